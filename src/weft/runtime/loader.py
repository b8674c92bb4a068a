"""Object code to callable addresses.

One LLJIT serves the process: an object is linked as a library of its own under a name that is never reused, so equal
symbols of two kernels do not meet, and unloading a kernel is dropping its tracker. JITLink lays an object's sections side
by side, so their distances fit 32 bits whatever large arrays are mapped. Undefined symbols (libm, libmvec) resolve from
the process, into which the mathematics libraries are loaded first.
"""

from __future__ import annotations

import itertools
import sys
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

_MATH_LIBRARIES: Final[dict[str, tuple[str, ...]]] = {"linux": ("libm.so.6", "libmvec.so.1")}
"""Libraries to load before linking, by `sys.platform`. One that is absent matters only to kernels that name its
symbols."""

_lock: Final = threading.Lock()
_numbers: Final = itertools.count()


@dataclass(frozen=True)
class LoadedCode:
    """Executable code; ``address`` is valid while this object lives."""

    address: int
    tracker: Any


@cache
def initialise() -> None:
    """Prepare LLVM for this machine."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _jit() -> Any:
    import llvmlite.binding as llvm

    initialise()
    for library in _MATH_LIBRARIES.get(sys.platform, ()):
        try:
            llvm.load_library_permanently(library)
        except RuntimeError:
            continue
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), jit=True
    )
    return llvm.create_lljit_compiler(machine, use_jit_link=sys.platform != "win32")  # COFF is new to JITLink


def load(code: bytes, symbol: str) -> LoadedCode:
    """Links a relocatable object into the process; `RuntimeError` where it is malformed or names an unknown symbol."""
    import llvmlite.binding as llvm  # here, for it is a tenth of `import weft`

    with _lock:
        jit = _jit()
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(symbol)
        try:
            tracker = builder.link(jit, f"weft{next(_numbers)}")
        except RuntimeError as error:
            raise RuntimeError(f"cannot load the object code of '{symbol}': {error}") from error
        return LoadedCode(tracker[symbol], tracker)

"""Object code to callable addresses.

Weft's own linker (`weft.runtime.linker`) takes what compilation makes on Linux and x86-64. LLVM's LLJIT takes the rest. There an
object is a library of its own, under a name that is never reused, so equal symbols of two kernels do not meet. JITLink lays an
object's sections side by side, so their distances fit 32 bits whatever large arrays are mapped. On Windows llvmlite has
RuntimeDyld in JITLink's place, which does not; code there has 64-bit addresses (`weft.target.CpuTarget.addressing`). Both make
pages executable when they are no longer writable. Undefined symbols (libm, libmvec) resolve from the process, into which the
mathematics libraries are loaded first.

Code is unloaded when the last reference to its `LoadedCode` goes. `loaded` counts what is loaded.
"""

from __future__ import annotations

import itertools
import sys
import threading
import weakref
from functools import cache
from typing import Any, Final

from weft.runtime import exclusion, linker
from weft.runtime.elf import LinkRefused
from weft.target import object_triple

_MATH_LIBRARIES: Final[dict[str, tuple[str, ...]]] = {"linux": ("libm.so.6", "libmvec.so.1")}
"""Libraries to load before linking, by `sys.platform`. One that is absent matters only to kernels that name its
symbols."""

_lock: Final = threading.Lock()
_numbers: Final = itertools.count()


class LoadedCode:
    """Executable code; ``address`` is valid while this object lives. ``owner`` unloads the code when it goes."""

    __slots__ = ("__weakref__", "address", "owner")

    def __init__(self, address: int, owner: object):
        self.address = address
        self.owner = owner
        _loaded.add(self)


_loaded: Final[weakref.WeakSet[LoadedCode]] = weakref.WeakSet()


def loaded() -> int:
    """How many objects are loaded."""
    return len(_loaded)


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
    machine = llvm.Target.from_triple(object_triple(llvm.get_process_triple())).create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), jit=True
    )
    return llvm.create_lljit_compiler(machine, use_jit_link=sys.platform != "win32")  # llvmlite has no JITLink there


def load(code: bytes, symbol: str) -> LoadedCode:
    """Links a relocatable object into the process; `RuntimeError` where it is malformed or names an unknown symbol."""
    try:
        return LoadedCode(*linker.link(code, symbol))
    except LinkRefused:
        return _load_by_llvm(code, symbol)


def _load_by_llvm(code: bytes, symbol: str) -> LoadedCode:
    import llvmlite.binding as llvm  # here, for it is a tenth of `import weft`

    with _lock:
        jit = _jit()
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(symbol)
        builder.import_symbol(exclusion.SYMBOL, exclusion.ADDRESS)
        try:
            tracker = builder.link(jit, f"weft{next(_numbers)}")
        except RuntimeError as error:
            raise RuntimeError(f"cannot load the object code of '{symbol}': {error}") from error
        return LoadedCode(tracker[symbol], tracker)

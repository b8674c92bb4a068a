"""What direct launches (`weft.runtime.plans`) share in a process: the native function, its block of words, and a workspace.

There is one workspace for all. A grid that several threads could share is run by the caller where it has been short so far, else
with workers that look for it (`weft.runtime.spinning`). Where too few do, Python wakes them (`Executable.spread`), and takes the
workspace away until no worker uses it. Interrupts are what they are for other
launches: `Watch` reads in a word that the workspace is in native code.

The offsets that native code reads are parts of the binary interfaces of CPython and NumPy. They are compared with a few objects
first; where they do not hold, or Python runs threads without its lock, nothing is launched directly.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.runtime import direct_code, executor, helpers
from weft.runtime import direct_words as code
from weft.runtime.loader import LoadedCode
from weft.runtime.place import CURRENT
from weft.runtime.workspace import Workspace

SLOTS: Final = 256
"""Slots in the workspace."""
POOL: Final = executor.pool
"""What gives the pool whose threads and watch direct launches know."""
_BUSY, _MAIN, _WORKSPACE = map(code.PROCESS.index, ("busy", "main", "workspace"))
_CALL: Final = 0x80 | 0x02
"""METH_FASTCALL | METH_KEYWORDS."""


class _Method(ctypes.Structure):
    """``PyMethodDef``."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


_new_function: Final = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Method), ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def _word(address: int, kind: Any = ctypes.c_uint64) -> int:
    return kind.from_address(address).value


def _flags(array: NDArray[Any]) -> int:
    return _word(id(array) + code.FLAGS, ctypes.c_int)


def _offsets_hold() -> bool:
    """Whether objects lie in memory as `direct_code` reads them."""
    if sys.implementation.name != "cpython" or ctypes.sizeof(ctypes.c_void_p) != 8 or sys.byteorder != "little":
        return False
    if not getattr(sys, "_is_gil_enabled", lambda: True)() or object.__basicsize__ != 16:
        return False
    cell = types.CellType(text := b"direct")
    items, array = (object(), 3), np.zeros((3, 5), np.int16)
    address, writable, aligned = id(array), code.WRITABLE, code.ALIGNED
    frozen = np.zeros(3, np.int8)
    frozen.flags.writeable = False
    astray = np.zeros(9, np.int8)[1:].view(np.int64)
    return (
        _word(id(items) + code.TYPE) == id(tuple)
        and _word(id(items) + code.SIZE) == 2
        and [_word(id(items) + code.ITEMS + 8 * at) for at in range(2)] == [id(item) for item in items]
        and ctypes.string_at(id(text) + code.PAYLOAD) == text
        and _word(id(cell) + code.CELL) == id(text)
        and _word(address + code.DATA) == array.__array_interface__["data"][0]
        and _word(address + code.NDIM, ctypes.c_int) == 2
        and [_word(_word(address + code.SHAPE) + 8 * at) for at in range(2)] == [3, 5]
        and [_word(_word(address + code.STRIDES) + 8 * at) for at in range(2)] == [10, 2]
        and _word(address + code.DTYPE) == id(array.dtype)
        and [bool(_flags(one) & writable) for one in (array, frozen, astray)] == [True, False, True]
        and [bool(_flags(one) & aligned) for one in (array, frozen, astray)] == [True, True, False]
    )


def _clock() -> tuple[int, int]:
    """The address of ``clock_gettime``, and the clock that `time.perf_counter_ns` reads with it; zeros where it does not."""
    if time.get_clock_info("perf_counter").implementation != "clock_gettime(CLOCK_MONOTONIC)":
        return 0, 0
    return ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0, time.CLOCK_MONOTONIC


def block_of(fields: Sequence[str], values: Mapping[str, float]) -> ctypes.Array[ctypes.c_int64]:
    """A block of words."""
    assert values.keys() == set(fields), "each word has its value"
    return (ctypes.c_int64 * len(fields))(*(values[name] for name in fields))


def words_of(words: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * max(1, len(words)))(*words)


class Process:
    """What all direct launches of a process share: the function's address, its block, and the ``workspace``."""

    def __init__(self, native: LoadedCode) -> None:
        self.method = _Method(b"launch", native.address, _CALL, b"Launches a kernel.")
        first = _workspace()
        self._spaces = {first.address: first}
        self._spare: list[Workspace] = []
        self._held: list[object] = [native]
        objects: dict[str, object] = {
            "None": None,
            "True": True,
            "False": False,
            "tuple": tuple,
            "int": int,
            "float": float,
            "bool": bool,
            "array": np.ndarray,
            "emulated": CURRENT,
            "wake": self._wake,
            "is_neg": "is_neg",
        }
        self._held += objects.values()
        words: dict[str, int] = dict.fromkeys(code.PROCESS, 0)
        words |= {name: id(value) for name, value in objects.items()}
        words |= {name: _address_of(name) for name in code.PROCESS if name.startswith("Py")}
        words["workspace"] = first.address
        words["clock"], words["which"] = _clock()
        words["spin"] = executor.SPIN
        self.block = block_of(code.PROCESS, words)
        self.address = ctypes.addressof(self.block)
        self.begin()

    def set(self, **words: int) -> None:
        """Writes words of the block."""
        for name, value in words.items():
            self.block[code.PROCESS.index(name)] = value

    def begin(self) -> None:
        """Begins in a process, with its pool: the first time, or in a forked child."""
        from weft.runtime.executable import LOOKING, SLEEPING

        pool = self._pool = POOL()  # the block has addresses of its words
        pool.watch.direct = lambda: self.workspace
        self.set(
            main=threading.main_thread().ident or 0,
            threads=pool.threads,
            leading=pool.watch.address_of_leading,
            asleep=pool.watch.address_of_asleep,
            pool=pool.address_of_words,
            installed=pool.watch.handler.address_of_installed,
            looking=LOOKING,
            sleeping=SLEEPING,
        )

    @property
    def workspace(self) -> Workspace:
        """The workspace that native code has now."""
        return self._spaces[self.block[_WORKSPACE]]

    def function(self, held: tuple[object, ...]) -> Callable[..., None]:
        """The native function; the first of ``held`` is the address of a kernel's block in bytes, the others live as long."""
        return _new_function(ctypes.byref(self.method), held, "weft")

    @property
    def is_busy(self) -> bool:
        """Whether a launch uses the workspace."""
        return self.block[_BUSY] != 0

    def reserve(self, scratch: int) -> bool:
        """Sees to so much scratch memory; False where that cannot be now."""
        if self.workspace.scratch_size < scratch:
            if self.is_busy:
                return False
            self.workspace.enter(scratch)
        return True

    def take(self) -> Workspace:
        """The workspace, in whose place native code gets another. A signal handler may raise between any two steps: one of them
        makes the change."""
        taken = self.workspace
        other = self._spare.pop() if self._spare else _workspace()
        other.enter(taken.scratch_size)
        self._spaces[other.address] = other
        self.block[_WORKSPACE] = other.address
        del self._spaces[taken.address]
        return taken

    def give(self, workspace: Workspace) -> None:
        """Ends the use of a workspace that was taken, by all threads."""
        self._spare.append(workspace)

    @staticmethod
    def _wake() -> None:
        POOL().watch.wake()


def _workspace() -> Workspace:
    workspace = Workspace(SLOTS)
    workspace.main = True  # only the main thread launches directly
    return workspace


def _address_of(name: str) -> int:
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


_found: Final[list[Process]] = []
_loaded: Final[dict[bool, LoadedCode | None]] = {}
"""The code, as it was had with the compiler and without."""


def process() -> Process | None:
    """What direct launches share; None where there are none. The code is compiled in a process that compiles, and is on disk for
    others."""
    if not _found and (native := _native()) is not None:
        _found.append(Process(native))
    return _found[0] if _found else None


def prepare() -> None:
    """Compiles the code in a process that compiles kernels, so that it is on disk where they are."""
    _native()


def _native() -> LoadedCode | None:
    may_compile = "weft.codegen.compile" in sys.modules
    if may_compile not in _loaded:
        _loaded[may_compile] = None
        if _offsets_hold():
            text = direct_code.text if may_compile else None
            _loaded[may_compile] = helpers.loaded(direct_code.SYMBOL, direct_code.version(), text)
    return _loaded[may_compile]


def _after_fork() -> None:
    for one in _found:
        if one.is_busy and threading.get_ident() != one.block[_MAIN]:
            one.take()  # the launch of a thread that the child does not have
            one.set(busy=0)
        one.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

"""The native interpreter in this process: loaded from disk where it is, compiled where launches take long enough to gain.

Without it everything runs on NumPy, which is the reference: results and counters are the same. Compiling takes a second or two,
once for a machine and a version of weft. So it waits until launches have taken `PATIENCE` seconds, and even the look for it
until they have taken `LOOK`.
"""

from __future__ import annotations

import ctypes
import hashlib
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.native import handlers, interpreter
from weft.extensions import extension, is_at_hand

SOURCES: Final = ("global_memory", "handlers", "interpreter", "running", "scalar", "shared")
"""The modules that the interpreter's text follows from."""

LOOK: Final = 0.1
"""Seconds that launches may take in all before the interpreter is looked for on disk: finding it means importing weft's runtime.
It is looked for at once where that has been imported."""

PATIENCE: Final = 0.5
"""Seconds that they may take before it is compiled."""

_POINT: Final = "emulator.native"

_ENTRY: Final = ctypes.PYFUNCTYPE(
    ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
)


class Native:
    """The interpreter's entry, ``call(which, a, b, c, d, e)``, and where its handlers are."""

    def __init__(self, address: int) -> None:
        self.call: Callable[[int, int, int, int, int, int], int] = _ENTRY(address)
        table = self.call(0, 0, 0, 0, 0, 0)
        count = len(handlers.HANDLERS)
        self.handlers: NDArray[np.int64] = np.ctypeslib.as_array((ctypes.c_int64 * count).from_address(table)).copy()


class _State:
    """What this process knows of the interpreter."""

    def __init__(self) -> None:
        self.allowed = True
        self.found: Native | None = None
        self.asked = False
        self.tried = False
        self.spent = 0.0


_STATE: Final = _State()


def available() -> Native | None:
    """The interpreter, if it is at hand, or launches have waited for long enough; None where it cannot be had, or not yet."""
    if not _STATE.allowed:
        return None
    if not _STATE.asked and (_STATE.spent > LOOK or is_at_hand(_POINT)):
        _STATE.asked = True
        _STATE.found = _STATE.found or _native(False)
    return compiled() if _STATE.found is None and _STATE.spent > PATIENCE else _STATE.found


def compiled() -> Native | None:
    """The interpreter, compiled if need be; None where it cannot be."""
    if not _STATE.allowed:
        return None
    if _STATE.found is None and not _STATE.tried:
        _STATE.tried = True
        _STATE.found = _native(True)
    return _STATE.found


class Patience:
    """How long launches have run without the interpreter."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self._asked = 0

    def ended(self) -> bool:
        """Whether it is time to ask for it (`available`); looks at the clock now and then."""
        self._asked += 1
        if self._asked % 16:
            return False
        self.stop()
        return (not _STATE.asked and _STATE.spent > LOOK) or (not _STATE.tried and _STATE.spent > PATIENCE)

    @property
    def over(self) -> bool:
        """Whether there is nothing more to wait for."""
        return _STATE.tried

    def stop(self) -> None:
        """Counts the seconds since the last look."""
        now = time.perf_counter()
        _STATE.spent += now - self._last
        self._last = now


@contextmanager
def only_numpy() -> Generator[None]:
    """Launches inside use NumPy alone: the reference that tests compare the interpreter with."""
    before, _STATE.allowed = _STATE.allowed, False
    try:
        yield
    finally:
        _STATE.allowed = before


def _native(compile: bool) -> Native | None:
    try:
        load = extension(_POINT)
    except LookupError:
        return None
    address: int | None = load(interpreter.SYMBOL, _version(), interpreter.text if compile else None)
    return None if address is None else Native(address)


@cache
def _version() -> str:
    """A digest of what the text follows from."""
    folder = Path(__file__).parent
    return hashlib.sha256(b"".join((folder / f"{name}.py").read_bytes() for name in SOURCES)).hexdigest()

"""The process's lock of atomics: where it lies. `weft.codegen.cpu.exclusive` says what it holds, and native code changes it."""

from __future__ import annotations

import ctypes
import os
from typing import Final

SYMBOL: Final = "weft_atomics"
"""The name by which native code refers to the lock. A test compares it with code generation's."""

_SIZE: Final = 128
_LINE: Final = 64

_block: Final = (ctypes.c_char * (_SIZE + _LINE))()
ADDRESS: Final = -(-ctypes.addressof(_block) // _LINE) * _LINE
"""The address of the lock: two cache lines."""


def free() -> None:
    """Frees the lock. Only where no thread can hold it: a forked child has the calling thread alone."""
    ctypes.memset(ADDRESS, 0, _SIZE)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=free)

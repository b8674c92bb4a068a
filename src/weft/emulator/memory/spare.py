"""Memory that is used again: that of the last large launch, and that of freed temporaries.

A launch copies its arrays into memory of its own. The first touch of fresh pages costs more than the copy: up to 0.3 s for
128 MiB in a virtual machine, where the host has to give them, too. So one piece of memory stays between launches, of `MOST` bytes
at most. It has the bytes of the launch before: who takes it overwrites all.

Instructions of many threads compute with temporary arrays of up to megabytes. glibc gives their memory back to the system when
they are freed, so that the next ones touch fresh pages: in some launches of a product of 512^3 by wgmma 60,000, half of the time.
"""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

LEAST: Final = 1 << 20
"""Bytes of the smallest memory that is kept: smaller ones cost nothing."""

MOST: Final = 256 << 20
"""Bytes of the largest."""

_TEACHES: Final = 31 << 20
"""Bytes of a freed array by which glibc learns to keep as many; above 32 MiB it learns nothing."""

_KEPT: Final[list[NDArray[np.uint8]]] = []


def take(size: int) -> NDArray[np.uint8] | None:
    """``size`` bytes with any contents, if so many are kept. They are the caller's until they are given back."""
    if not LEAST <= size <= MOST:
        return None
    try:
        kept = _KEPT.pop()
    except IndexError:  # none, or a launch of another thread has it
        return None
    return kept[:size] if kept.size >= size else None


def give(memory: NDArray[np.uint8]) -> None:
    """Keeps memory that nobody uses any more, in place of what was kept."""
    whole = memory if memory.base is None else memory.base
    assert isinstance(whole, np.ndarray)
    if LEAST <= whole.size <= MOST:
        _KEPT[:] = [whole]


@cache
def keep_temporaries() -> None:
    """Makes glibc keep up to 62 MiB that are freed, from the first launch on: its thresholds rise to the largest array that was
    freed, and to twice its size (mallopt(3), ``M_MMAP_THRESHOLD``). The array's pages are never touched. Other C libraries
    keep what they keep."""
    np.empty(_TEACHES, np.uint8)


def forget() -> None:
    """Frees what is kept."""
    _KEPT.clear()

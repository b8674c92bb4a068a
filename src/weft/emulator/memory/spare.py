"""The memory of the last large launch, kept for the next one.

A launch copies its arrays into memory of its own. The first touch of fresh pages costs more than the copy: up to 0.3 s for
128 MiB in a virtual machine, where the host has to give them, too. So one piece of memory stays between launches, of `MOST` bytes
at most. It has the bytes of the launch before: who takes it overwrites all.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

LEAST: Final = 1 << 20
"""Bytes of the smallest memory that is kept: smaller ones cost nothing."""

MOST: Final = 256 << 20
"""Bytes of the largest."""

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


def forget() -> None:
    """Frees what is kept."""
    _KEPT.clear()

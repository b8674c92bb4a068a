"""Which threads execute an instruction.

Every value is an array over all threads of the resident blocks; an instruction is one NumPy call over all of them, and its
results are written for the threads of an `Active` set. While all are active nothing needs a mask, which is several times faster;
whatever else is asked of a set is derived then.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

WARP = 32
"""Lanes of a warp."""

ALL_LANES: Final = 0xFFFFFFFF
"""The mask that names them all."""

Mask: TypeAlias = NDArray[np.bool_]
IndexArray: TypeAlias = NDArray[np.intp]


class Active:
    """A set of the T resident threads, T a multiple of 32."""

    def __init__(self, mask: Mask, full: bool | None = None) -> None:
        self.mask = mask
        """Whether each thread is in the set, (T,)."""
        self.full = bool(mask.all()) if full is None else full
        self._bits: dict[int, NDArray[Any]] = {}

    @cached_property
    def index(self) -> IndexArray:
        """The threads of the set, ascending."""
        return np.flatnonzero(self.mask)

    @cached_property
    def count(self) -> int:
        """How many threads."""
        return self.mask.size if self.full else int(np.count_nonzero(self.mask))

    @cached_property
    def lanes(self) -> Mask:
        """The mask as (warps, 32)."""
        return self.mask.reshape(-1, WARP)

    @cached_property
    def warps(self) -> IndexArray:
        """The warps with a thread in the set, ascending."""
        return np.flatnonzero(self.lanes.any(axis=1))

    @cached_property
    def warp_count(self) -> int:
        return self.mask.size // WARP if self.full else int(self.warps.size)

    @cached_property
    def ballots(self) -> NDArray[np.uint32]:
        """Bit i of entry w: lane i of warp w is in the set; (warps,)."""
        return np.packbits(self.lanes, axis=1, bitorder="little").view(np.uint32).reshape(-1)

    @cached_property
    def address(self) -> int:
        """Where the mask begins in memory."""
        start: int = self.mask.__array_interface__["data"][0]
        return start

    def bits(self, size: int) -> NDArray[Any]:
        """The mask as unsigned integers of ``size`` bytes, all ones for the threads in the set, (T,)."""
        if (found := self._bits.get(size)) is None:
            ones = np.negative(self.mask.view(np.int8))
            found = self._bits[size] = ones.astype(f"i{size}").view(f"u{size}")
        return found

    def narrow(self, predicate: Mask) -> Active:
        """Those for which the predicate holds."""
        if self.full:
            return Active(predicate.copy())
        return Active(self.mask & predicate, full=False)

    def __bool__(self) -> bool:
        return self.count > 0


def alike(there: Mask, members: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """For each thread of a set: which lanes of its warp are in the set with the same entry of ``members``, bit by bit; (T,)."""
    lanes, rows = there.reshape(-1, WARP), members.reshape(-1, WARP)
    if same_masks(lanes, rows):
        return np.repeat(np.packbits(lanes, axis=1, bitorder="little").view(np.uint32).reshape(-1), WARP)
    same = (rows[:, :, None] == rows[:, None, :]) & lanes[:, None, :]
    return np.packbits(same, axis=2, bitorder="little").view(np.uint32).reshape(-1)


def same_masks(lanes: Mask, rows: NDArray[np.uint32]) -> bool:
    """Whether in each warp, a row, all lanes of a set have the same mask."""
    first = np.take_along_axis(rows, lanes.argmax(axis=1)[:, None], axis=1)
    return not ((rows != first) & lanes).any()

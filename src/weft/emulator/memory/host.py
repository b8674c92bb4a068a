"""Addresses that a kernel finds in memory, of the host or of a `DeviceMemory`: a launch has its arrays elsewhere.

An array that a kernel reaches through an address in memory is no argument, so its launch names it (``memory=``). It becomes an
allocation as arguments do. Where a program uses an address of the array's bytes on the host, the allocation's address is meant.
Addresses up to a page behind an array become those behind its allocation, which is followed by a free page: such a fault names
the array. Others stay as they are, and are out of bounds, too.

A `weft.emulator.machine.device_memory.DeviceMemory` gives addresses in a window of their own, so that those of one that a launch
does not have are no array of the launch by accident. They are translated in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.memory.arena import PAGE

DEVICE: Final = 0x20_0000_0000
"""Where the addresses of a `DeviceMemory` begin."""

DEVICE_END: Final = 0x30_0000_0000


class HostAddresses:
    """Ranges of addresses (first byte, one past the last), which do not overlap, each with the launch's address of the same
    bytes."""

    def __init__(self, places: Sequence[tuple[int, int, int]] = ()) -> None:
        known = sorted(place for place in places if place[0] < place[1])
        self._lows = np.array([low for low, _, _ in known], np.uint64)
        self._ends = np.array([high + PAGE for _, high, _ in known], np.uint64)
        self._starts = np.array([start for _, _, start in known], np.uint64)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._lows.size)

    def translate(self, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The emulator's addresses of those (N,) that lie in a range or less than a page behind it; the others unchanged."""
        if not self:
            return addresses
        # -1, for an address below all ranges, is the last range, which begins above it.
        which = np.searchsorted(self._lows, addresses, side="right") - 1
        inside = (addresses >= self._lows[which]) & (addresses < self._ends[which])
        return np.where(inside, addresses - self._lows[which] + self._starts[which], addresses)

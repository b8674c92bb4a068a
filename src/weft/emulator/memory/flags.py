"""Strong accesses to flags, as they order the warps of one block.

A release write and an acquire read of one address order what is around them; so do relaxed ones with fences. Of a block's flags
`FLAGS` are told apart.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from weft.emulator.machine.active import IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.memory.clocks import Clocks

FLAGS: Final = 16
"""Addresses beyond share."""


class Flag(NamedTuple):
    """The key of a flag, or of several that share it."""

    space: Space
    number: int


class Flags:
    """What is told to some clocks of the accesses to flags."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._raised = False

    def reset(self) -> None:
        """No flag was ever raised."""
        self._raised = False

    def communicate(self, access: AccessBatch, warps: IndexArray, semantics: str) -> None:
        """A strong access of threads of these warps (N,)."""
        clocks = self._clocks
        reads, writes = access.kind is not Kind.WRITE, access.kind is not Kind.READ
        releases = writes and semantics in ("release", "acq_rel")
        acquires = reads and semantics in ("acquire", "acq_rel")
        lends = writes and clocks.fenced
        if not (releases or lends or (reads and self._raised)):
            return
        self._raised |= releases or lends
        flags = (access.addresses.astype(np.intp) >> 2) % FLAGS
        present: list[int] = np.unique(flags).tolist()
        for flag in present:
            key = Flag(access.space, flag)
            some = np.unique(warps[flags == flag])
            for turn in self._turns(some) if reads and writes else (some,):
                # Acquire before release: what an atomic takes over from the one before it, it hands on.
                if acquires:
                    clocks.acquire(key, turn)
                elif reads:
                    clocks.note(key, turn)
                if releases:
                    clocks.release(key, turn)
                elif lends:
                    clocks.release_fenced(key, turn)

    def _turns(self, warps: IndexArray) -> list[IndexArray]:
        """Ascending warps as their atomics on one address are served, in turn: of each block the first, the second, ..."""
        blocks = self._clocks.block_of[warps]
        place = np.arange(warps.size) - np.searchsorted(blocks, blocks)
        return [warps[place == turn] for turn in range(int(place.max(initial=-1)) + 1)]

"""Shared memory of clusters: an address names a block of the cluster and a byte of its shared memory.

Bits 24 and up of an address in shared memory are the rank of a block in its cluster, as on hardware; the 24 below are the byte. A
block's own variables have its own rank there, so that an address means the same to all blocks of a cluster, and without clusters,
where ranks are 0, it is the byte alone. Memory of another block of the cluster is reached by .shared::cluster and by generic
addresses, and as long as that block has threads (PTX ISA 5.1.7.1; Programming Guide, distributed shared memory).

    rank 1, byte 0x40:  0x100_0040          mapa of it, rank 0:  0x40
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import IndexArray
from weft.emulator.ptx.syntax import Instruction

RANK: Final = 24
"""The bit from which on an address has the rank."""

BYTE: Final = (1 << RANK) - 1

MOST: Final = 16
"""Blocks of a cluster, at most (sm_90, where the kernel allows more than 8)."""

_OWN: Final = frozenset({"shared", "shared::cta"})
_OTHERS: Final = frozenset({"shared::cluster", "cta_group::2", "multicast::cluster::all"})
_GENERIC: Final = frozenset({"ld", "st", "atom", "red"})
"""Instructions whose generic addresses may be those of another block of the cluster."""


def reaches(instruction: Instruction) -> bool:
    """Whether an instruction may access shared memory of other blocks of the cluster."""
    if not _OTHERS.isdisjoint(instruction.modifiers):
        return True
    return instruction.opcode in _GENERIC and _OWN.isdisjoint(instruction.modifiers)


class Clusters:
    """The resident blocks by clusters of ``size``: those of a cluster follow each other, by rank."""

    def __init__(self, size: int, blocks: int, block_threads: int) -> None:
        self.size = size
        self.block: IndexArray = np.arange(blocks * block_threads) // block_threads
        """The resident block of each thread."""
        self.rank: NDArray[np.int64] = (self.block % size).astype(np.int64)
        """Of each thread's block."""
        self.base: NDArray[np.uint64] = self.rank.astype(np.uint64) << np.uint64(RANK)
        """Where the addresses of each thread's block begin."""
        self.ended: Callable[[], NDArray[np.bool_]] = lambda: np.zeros(blocks, np.bool_)
        """Which blocks have no thread any more; the launch sets it."""
        self.reaches: Callable[[int], bool] = lambda site: True
        """Whether the instruction of a site may access other blocks' memory; the launch sets it."""

    def split(self, addresses: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ranks and the bytes of addresses."""
        given = addresses.view(np.int64) if addresses.dtype.itemsize == 8 else addresses.astype(np.int64)
        return given >> RANK, given & BYTE

    def blocks(self, threads: IndexArray, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """The resident blocks with these ranks in the threads' clusters."""
        return self.block[threads] - self.rank[threads] + ranks

    def at(self, addresses: NDArray[np.uint64], rank: int) -> NDArray[np.uint64]:
        """The same bytes of the block with a rank."""
        return (addresses & np.uint64(BYTE)) | np.uint64(rank << RANK)

"""Shared memory as the threads of a block see it: cells that are written and read in no order but the one that barriers make.

A simulation that copies labels in program order cannot find a missing barrier. Therefore each cell records which warps wrote
and read it, and in which interval between barriers. Whatever could be wrong on any schedule raises:

    warp 0 writes cell 3     warp 1 reads cell 3     no barrier between: an error, whatever the value
                             warp barrier: still an error; block barrier: fine

So do reading a cell that was not written, writing over one that may still be read, and two different values for one cell. Several
threads may write the same value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.layout.planning.machine import Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Memory:
    """Cells that threads write and read; see the module for what raises."""

    def __init__(self, size: int, like: NDArray[Any]):
        import numpy as np

        self.labels = np.zeros(size, dtype=like.dtype)
        self.written = np.full(size, -1)
        self.writers = np.zeros(size, dtype=np.int64)
        self.read_at = np.full(size, -1)
        self.readers = np.zeros(size, dtype=np.int64)
        self.now = 0
        self.fence = 0

    def barrier(self, scope: Scope) -> None:
        """All threads of a warp, or of the block, wait for each other."""
        self.now += 1
        if scope == "block":
            self.fence = self.now

    def write(self, cells: NDArray[Any], warps: NDArray[Any], labels: NDArray[Any]) -> None:
        """Each warp writes a label to a cell, all at once; the arrays are alike."""
        import numpy as np

        own = np.left_shift(1, warps)
        unread = self.read_at[cells]
        _refuse(unread == self.now, cells, "is written while it may still be read")
        _refuse(
            (unread >= self.fence) & (self.readers[cells] & ~own != 0), cells, "is written while it may still be read"
        )
        shared = (self.written[cells] >= self.fence) & (self.writers[cells] & ~own != 0)
        _refuse(shared & (self.labels[cells] != labels), cells, "gets two values at once")
        self.labels[cells] = labels
        _refuse(self.labels[cells] != labels, cells, "gets two values at once")
        self.writers[cells[self.written[cells] < self.now]] = 0
        np.bitwise_or.at(self.writers, cells, own)
        self.written[cells] = self.now

    def read(self, cells: NDArray[Any], warps: NDArray[Any]) -> NDArray[Any]:
        """The labels that each warp finds in its cell."""
        import numpy as np

        own = np.left_shift(1, warps)
        _refuse(self.written[cells] < 0, cells, "is read but was never written")
        _refuse(self.written[cells] == self.now, cells, "is read before a barrier")
        foreign = (self.written[cells] >= self.fence) & (self.writers[cells] & own == 0)
        _refuse(foreign, cells, "is read by a warp that has not waited for the one that wrote it")
        self.readers[cells[self.read_at[cells] < self.now]] = 0
        np.bitwise_or.at(self.readers, cells, own)
        self.read_at[cells] = self.now
        return self.labels[cells]


def _refuse(wrong: Any, cells: NDArray[Any], what: str) -> None:
    if wrong.any():
        raise ValueError(f"shared memory: cell {int(cells[wrong].flat[0])} {what}")

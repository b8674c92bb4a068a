"""Clocks of tensor memory: what tcgen05.fence orders, beside what orders all memory (PTX ISA 9.7.16.6.3).

Accesses to tensor memory are ordered by whatever orders others, once they are complete. Relaxed synchronisation orders them, too,
between tcgen05.fence::before_thread_sync and tcgen05.fence::after_thread_sync, and nothing but them. So they have clocks of their
own, which are told of all synchronisation; a tcgen05.fence is to them what membar is to all.

    tcgen05.ld; wait::ld; fence::before_thread_sync; mbarrier.arrive.relaxed     the phase has what the warp did before the fence
    mbarrier.try_wait.relaxed; fence::after_thread_sync; tcgen05.mma             noted at the wait, seen from the fence on

Of W warps of a block the columns are: W + w the operations that warp w began, as far as they are complete; 2 W + w the same, as
far as later operations come behind them in the tensor core's pipeline.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from weft.emulator.machine.active import IndexArray
from weft.emulator.memory.clocks import Clocks, Times


class TensorClocks(Clocks):
    """The clocks of ``blocks`` blocks of ``warps`` warps each, in ``parts``, as `Clocks`. Their time is their own."""

    def reset(self, blocks: int | None = None) -> None:
        super().reset(blocks)
        self.grow(2 * self.warps)
        self.hinted: Times = np.zeros((self.blocks * self.warps, 2, self.columns), np.int64)
        """What warps would have noted, had those who released it executed tcgen05.fence::before_thread_sync."""

    def tick(self) -> int:
        """The time of an access."""
        self.now += 1
        return self.now

    @property
    def fenced(self) -> bool:
        """Whether to be told of relaxed writes: always."""
        return True

    def before_thread_sync(self, warps: IndexArray) -> None:
        """tcgen05.fence::before_thread_sync: the pipeline has what the warps began before what they synchronise behind it."""
        own = self.column_of[warps]
        self.seen[self.block_of[warps], own, 0, 2 * self.warps + own] = self.now
        self.fence_before(warps)

    def commit(self, key: Hashable, warp: int, time: int) -> None:
        """Who acquires the key has seen what the warp began up to a time, and what was before that in the pipeline."""
        w, block, own = self.warps, int(self.block_of[warp]), int(self.column_of[warp])
        rows = np.zeros((1, 2, self.columns), np.int64)
        rows[0, 0, w : 2 * w] = self.seen[block, own, 0, 2 * w :]
        rows[0, 0, w + own] = time
        self.give(key, np.array([block]), rows)

    def release_fenced(self, key: Hashable, warps: IndexArray) -> None:
        super().release_fenced(key, warps)
        rows = self.rows(warps)
        rows[np.arange(warps.size), 0, 2 * self.warps + self.column_of[warps]] = self.now
        self.give(("unfenced", key), self.block_of[warps], rows)

    def acquire(self, key: Hashable, warps: IndexArray) -> None:
        super().acquire(key, warps)
        self._hint(key, warps)

    def note(self, key: Hashable, warps: IndexArray) -> None:
        super().note(key, warps)
        self._hint(key, warps)

    def _hint(self, key: Hashable, warps: IndexArray) -> None:
        if (record := self.keys.get(("unfenced", key))) is not None:
            self.hinted[warps] = np.maximum(self.hinted[warps], record[self.block_of[warps]])

    def forget(self, key: Hashable) -> None:
        super().forget(key)
        super().forget(("unfenced", key))

    def lacks(self, warp: int, column: int, time: int) -> str:
        """The fence that is missing for the warp to have seen what the agent of a column did; "" if it would not help."""
        if self.noted is not None and self.noted[warp, 0, column] >= time:
            return "after"
        return "before" if self.hinted[warp, 0, column] >= time else ""

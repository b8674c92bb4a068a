"""Who accessed each granule of shared memory last, and when.

A granule is as many bytes as the smallest access of the program, so that an access is whole granules. Who and when is one
number, a *mark*: the time in the upper 32 bits, below it whether it was the async proxy (1 bit), the column of the agent (11
bits: a warp of its block, or an asynchronous operation: `weft.emulator.memory.clocks`) and the thread (20 bits).

Of the plain writes to a granule only the last counts: writes that do not race are ordered, and who has seen the last has seen
all. Other accesses (plain reads; strong accesses, which never race with each other) may be many and unordered, so a `History`
has the last of every column. One would enter each of them as it happens; as nearly all of them are never asked about (a barrier
comes first, and is enough to know), they are put aside and entered when someone asks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Index
from weft.emulator.memory.clocks import NEVER, Clocks

TIME: Final = 32
COLUMN: Final = 20
COLUMNS: Final = 1 << (31 - COLUMN)
ASYNC: Final = 1 << 31
THREADS: Final = 1 << COLUMN
LOW: Final = (1 << TIME) - 1
PENDING: Final = 64
"""Accesses put aside before they are entered, at most."""

Marks = NDArray[np.int64]


@dataclass
class Who:
    """Who makes the accesses to some granules, entry by entry: ``low`` the agent and thread (a mark without time and proxy),
    ``column`` the agent alone, ``base`` where its row of clocks starts."""

    low: Marks
    column: Index
    base: Index
    operation: bool
    """Whether these are asynchronous operations."""


class History:
    """The last access of each column to each granule, of accesses that do not order each other."""

    def __init__(self, granules: int, blocks: int) -> None:
        self.granules = granules
        self.latest: Marks = np.zeros(granules, np.int64)
        """The last access by anyone."""
        self._pending: list[tuple[int, Index, Marks]] = []
        self._last: Marks = np.zeros((0, granules), np.int64)
        self._other: Marks = np.zeros((0, granules), np.int64)
        self._newest: Marks = np.zeros((blocks, 0), np.int64)
        """The time of each column's last access to anything."""

    def note(self, granules: Index, low: Marks, time: int, floor: int) -> None:
        """The accesses of one instruction."""
        self.latest[granules] = time << TIME
        pending = self._pending
        pending.append((time, granules, low))
        if len(pending) > PENDING:
            self._pending = [entry for entry in pending if entry[0] > floor]
            if len(self._pending) > PENDING // 2:
                self._enter()

    def _enter(self) -> None:
        for time, granules, low in self._pending:
            columns = low >> COLUMN
            if (missing := int(columns.max()) + 1 - self._last.shape[0]) > 0:
                more = np.zeros((missing, self.granules), np.int64)
                self._last = np.concatenate([self._last, more])
                self._other = np.concatenate([self._other, more])
                self._newest = np.pad(self._newest, [(0, 0), (0, missing)])
            self._enter_one(columns * self.granules + granules, low + (time << TIME))
            self._newest[granules // (self.granules // self._newest.shape[0]), columns] = time
        self._pending.clear()

    def _enter_one(self, places: Index, marks: Marks) -> None:
        """``other`` is the last access by a thread that is not the last one's: what the last one's thread has to ask about."""
        last, other = self._last.reshape(-1), self._other.reshape(-1)
        before = last[places]
        last[places] = marks
        changed = ((before ^ marks) & LOW != 0).nonzero()[0]
        other[places[changed]] = before[changed]
        lost = (last[places] != marks).nonzero()[0]  # lanes of this instruction that were not the last
        other[places[lost]] = marks[lost]

    def unseen(self, granules: Index, who: Who, clocks: Clocks) -> Marks:
        """For each entry, the mark of an access to its granule that it has not seen, or 0."""
        self._enter()
        found = np.zeros(granules.size, np.int64)
        seen = clocks.seen.reshape(-1)
        open_ = self._beyond(granules, who, clocks)
        for column in range(self._last.shape[0] if open_.size else 0):
            marks: Marks = self._last[column][granules[open_]]
            own = who.column[open_] == column
            if own.any():
                inner: Marks = np.zeros_like(marks)
                if not who.operation:
                    inner = np.where((marks ^ who.low[open_]) & LOW, marks, self._other[column][granules[open_]])
                marks = np.where(own, inner, marks)
            late = (marks >> TIME > seen[who.base[open_] + column]).nonzero()[0]
            found[open_[late]] = marks[late]
            keep = np.ones(open_.size, np.bool_)
            keep[late] = False
            open_ = open_[keep]
        return found

    def _beyond(self, granules: Index, who: Who, clocks: Clocks) -> Index:
        """The entries whose granule was accessed after what their agent has seen of every column: the others need no look."""
        columns = self._newest.shape[1]
        rows, entries = np.unique(who.base, return_inverse=True)
        seen = clocks.seen.reshape(-1)[rows[:, None] + np.arange(columns)]
        newest = self._newest[rows // (2 * clocks.columns**2)]
        limits = np.where(newest > seen, seen, NEVER).min(axis=1)
        return (self.latest[granules] >> TIME > limits[entries]).nonzero()[0]


def unseen_writes(marks: Marks, who: Who, clocks: Clocks, generic: bool) -> NDArray[np.bool_]:
    """Which of the last writes the entries have not seen. ``generic``: leave proxies out of account."""
    column = (marks >> COLUMN) & (COLUMNS - 1)
    seen = clocks.seen.reshape(-1)
    times, place = marks >> TIME, who.base + column
    unseen = times > seen[place]
    if not who.operation:
        return unseen & ((marks ^ who.low) & LOW != 0)
    # Of an operation's own column, it has not seen what it did itself.
    own = unseen & (who.column == column)
    if not generic:
        unseen = times > seen[place + np.where(marks & ASYNC, 0, clocks.columns)]
    return unseen & ~own

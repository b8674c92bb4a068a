"""The last accesses to each granule of shared memory: which thread, and when.

A granule is as many bytes as the smallest access of the program, so that an access is whole granules. Thread and time are
one number, a *mark*: the time in the upper 32 bits, below it whether it was the async proxy (1 bit), the column of the agent
(11 bits: a warp of its block, or an asynchronous operation: `weft.emulator.memory.clocks`) and the thread (20 bits).

Of the plain writes to a granule only the last counts (`LastWrites`): writes that do not race are ordered, and a thread that
has seen the last has seen all. Other accesses (plain reads; strong accesses, which never race with each other) may be many
and unordered, so a `History` has the last of every column.

Accesses are recorded in a list first, and entered into the tables only when a later access needs them. Nearly none is ever
needed: a barrier comes first, and the time at which a *line* of 16 bytes was accessed last shows that all threads have seen it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Proxy
from weft.emulator.memory.clocks import ALL, NEVER, WARPS, Agent, Clocks

TIME: Final = 32
COLUMN: Final = 20
COLUMNS: Final = 1 << (31 - COLUMN)
ASYNC: Final = 1 << 31
THREADS: Final = 1 << COLUMN
LOW: Final = (1 << TIME) - 1
PENDING: Final = 64
"""Accesses put aside before they are entered, at most."""

AT_ONCE: Final = 1 << 14
"""Marks that are compared at once."""

FEW: Final = 4
"""Accesses that are compared one by one."""

LINE: Final = 4
"""Lines are of 2**LINE bytes."""

Marks = NDArray[np.int64]
Latest = NDArray[np.int32]


@dataclass
class Who:
    """Who makes the accesses to some granules, entry by entry: ``low`` the agent and thread (a mark without time and proxy),
    ``column`` the agent alone, ``base`` where its row of clocks starts."""

    low: Marks
    column: IndexArray
    base: IndexArray
    operation: bool
    """Whether these are asynchronous operations."""


class Entries:
    """An access taken apart: an *entry* for each granule that each of its N threads accesses, ``each`` of them. ``flat`` (N,) is
    where the accesses begin, in bytes of all blocks' shared memory, ``low`` (N,) their marks without time and proxy; granules
    have 2**shift bytes."""

    def __init__(self, access: AccessBatch, agent: Agent | None, flat: IndexArray, low: Marks, shift: int) -> None:
        self.access = access
        self.agent = agent
        self.flat = flat
        self.low = low
        self.shift = shift
        self.each = max(access.size >> shift, 1)
        size = access.size
        self.aligned = (access.alignment or size) >= min(size, 1 << LINE)
        """Whether no access crosses a line that is not longer than one."""

    @cached_property
    def lines(self) -> IndexArray:
        """The lines that are accessed, some perhaps more than once."""
        if not self.aligned:
            return self.granules >> (LINE - self.shift)
        first: IndexArray = self.flat >> LINE
        if self.access.size > 1 << LINE:
            return (first[:, None] + np.arange(-(-self.access.size >> LINE))).reshape(-1)
        return first

    @cached_property
    def granules(self) -> IndexArray:
        """The granule of each entry."""
        first = self.flat >> self.shift
        return first if self.each == 1 else (first[:, None] + np.arange(self.each)).reshape(-1)

    @property
    def lows(self) -> Marks:
        """The mark of each entry, without time and proxy."""
        return self.low if self.each == 1 else self.low.repeat(self.each)

    def like(self, other: Entries) -> bool:
        """Whether these are the same threads at the same addresses, themselves."""
        return (
            self.agent is None
            and other.agent is None
            and self.access.size == other.access.size
            and self._bytes == other._bytes
        )

    @cached_property
    def _bytes(self) -> tuple[bytes, bytes]:
        """Addresses and threads, quick to compare."""
        return self.flat.tobytes(), self.low.tobytes()

    def of(self, entries: IndexArray) -> IndexArray:
        """Which of the N accesses each entry belongs to."""
        return entries if self.each == 1 else entries // self.each


def _distinct(pending: list[tuple[int, Entries]]) -> list[tuple[int, Entries]]:
    """Without accesses that are repeated later, as the same instruction in a loop does: these need not be entered."""
    later: dict[tuple[int, int, int], list[Entries]] = {}
    kept: list[tuple[int, Entries]] = []
    for time, made in reversed(pending):
        same = later.setdefault((made.access.site, made.flat.size, int(made.flat[0])), [])
        if not any(other.like(made) for other in same):
            same.append(made)
            kept.append((time, made))
    return kept[::-1]


class Aside:
    """Accesses that are not yet entered, with their times."""

    def __init__(self) -> None:
        self._pending: list[tuple[int, Entries]] = []
        self._entered = 0
        """The time of the last access that was entered."""

    def _put_aside(self, made: Entries, time: int) -> None:
        """An access that repeats the one before takes its place, as in `_distinct`."""
        pending = self._pending
        if pending and pending[-1][1].access.site == made.access.site and made.like(pending[-1][1]):
            pending[-1] = (time, made)
        else:
            pending.append((time, made))

    def is_own(self, made: Entries, floor: int) -> bool:
        """Whether what was accessed after ``floor`` was accessed by the same threads, each what it accesses now and no other
        does: a loop over memory of the threads' own. May say no where it is so."""
        if self._entered > floor or made.agent is not None:
            return False
        if len(self._pending) > FEW:
            self._pending = _distinct(self._pending)
        recent = [other for time, other in self._pending if time > floor]
        if len(recent) > FEW or not all(other.like(made) for other in recent):
            return False
        return bool((made.flat[1:] - made.flat[:-1] >= made.access.size).all())


class LastWrites(Aside):
    """The last plain write to each granule. With ``proxies``, marks are kept of writes that all threads have seen, too: whether a
    fence followed them may still be asked. ``owned``: for native accesses too (`weft.emulator.native.shared`)."""

    def __init__(self, granules: int, shift: int, proxies: bool, owned: bool = False) -> None:
        super().__init__()
        self.owned = owned
        self.owners: Marks | None = np.zeros(granules, np.int64) if owned and not proxies else None
        """The last writer of each granule, at once. Operations of the async proxy write more than is worth it."""
        self.latest: Latest = np.zeros(granules >> (LINE - shift), np.int32)
        """The time of the last write to each line."""
        self.generic: Latest = np.zeros_like(self.latest) if proxies else self.latest
        """The time of the last one of the generic proxy."""
        self._marks: Marks = np.zeros(granules, np.int64)
        self._proxies = proxies

    def note(self, made: Entries, time: int, common: int) -> None:
        """The writes of one instruction; of several threads' to one granule the last one's."""
        self.latest[made.lines] = time
        if self._proxies and made.access.proxy is Proxy.GENERIC:
            self.generic[made.lines] = time
        if self.owners is not None:
            self.owners[made.granules] = made.lows + (time << TIME)
        self.remember(made, time, common)

    def remember(self, made: Entries, time: int, common: int) -> None:
        """`note` of writes that the tables of lines and owners have."""
        self._put_aside(made, time)
        if len(self._pending) > PENDING:
            pending = self._pending if self._proxies else [entry for entry in self._pending if entry[0] > common]
            self._pending = _distinct(pending)
            if len(self._pending) > PENDING // 2:
                self._enter()

    def _enter(self) -> None:
        for time, made in self._pending:
            proxy = ASYNC if made.access.proxy is Proxy.ASYNC else 0
            self._marks[made.granules] = made.lows + ((time << TIME) + proxy)
            self._entered = time
        self._pending.clear()

    def marks(self, granules: IndexArray) -> Marks:
        """The marks of the last writes."""
        self._enter()
        return self._marks.take(granules)


class History(Aside):
    """The last access of each column to each granule, of accesses that do not order each other."""

    def __init__(self, granules: int, shift: int, blocks: int, owned: bool = False) -> None:
        super().__init__()
        self.owners: Marks | None = np.zeros(granules, np.int64) if owned else None
        """Who accessed each granule last, or wrote to it since; with `ASYNC`, others may have, too, whom that one had not seen.
        None once there are asynchronous operations."""
        self.granules = granules
        self.latest: Latest = np.zeros(granules >> (LINE - shift), np.int32)
        """The time of the last access to each line."""
        self.floor = WARPS
        """Which row of `Clocks.floors` matters: `ALL` once an asynchronous operation is among those who access."""
        self._line = LINE - shift
        self._last: Marks = np.zeros((0, granules), np.int64)
        self._other: Marks = np.zeros((0, granules), np.int64)
        self._newest: Marks = np.zeros((blocks, 0), np.int64)
        """The time of each column's last access to anything."""

    def note(self, made: Entries, time: int, common: int) -> None:
        """The accesses of one instruction. ``common``: what all threads have seen of the past."""
        if made.agent is not None:
            self.floor, self.owners = ALL, None
        self.latest[made.lines] = time
        if self.owners is not None:
            self.owners[made.granules] = (time << TIME) + ASYNC
        self.remember(made, time, common)

    def remember(self, made: Entries, time: int, common: int) -> None:
        """`note` of accesses that the tables of lines and owners have."""
        self._put_aside(made, time)
        if len(self._pending) > PENDING:
            self._pending = _distinct([entry for entry in self._pending if entry[0] > common])
            if len(self._pending) > PENDING // 2:
                self._enter()

    def written(self, made: Entries, time: int) -> None:
        """A write that does not race: who has seen it, has seen what was accessed before."""
        if self.owners is not None:
            self.owners[made.granules] = made.lows + (time << TIME)

    def since(self, made: Entries) -> Latest:
        """When there was an access to each entry's line."""
        return self.latest.take(made.granules >> self._line)

    def _enter(self) -> None:
        for time, made in self._pending:
            granules, low = made.granules, made.lows
            columns = low >> COLUMN
            if (missing := int(columns.max()) + 1 - self._last.shape[0]) > 0:
                more = np.zeros((missing, self.granules), np.int64)
                self._last = np.concatenate([self._last, more])
                self._other = np.concatenate([self._other, more])
                self._newest = np.pad(self._newest, [(0, 0), (0, missing)])
            self._enter_one(columns * self.granules + granules, low + (time << TIME))
            self._newest[granules // (self.granules // self._newest.shape[0]), columns] = time
            self._entered = time
        self._pending.clear()

    def _enter_one(self, places: IndexArray, marks: Marks) -> None:
        """``other`` is the last access by a thread that is not the last one's: what the last one's thread has to ask about."""
        last, other = self._last.reshape(-1), self._other.reshape(-1)
        before = last[places]
        last[places] = marks
        changed = ((before ^ marks) & LOW != 0).nonzero()[0]
        other[places[changed]] = before[changed]
        lost = (last[places] != marks).nonzero()[0]  # lanes of this instruction that were not the last
        other[places[lost]] = marks[lost]

    def unseen(self, granules: IndexArray, who: Who, clocks: Clocks) -> Marks:
        """For each entry, the mark of an access to its granule that it has not seen, or 0."""
        self._enter()
        columns = self._last.shape[0]
        if columns * granules.size <= AT_ONCE:
            return self._unseen(granules, who, clocks)
        found = np.zeros(granules.size, np.int64)
        open_ = self._beyond(granules, who, clocks)
        size = max(1, AT_ONCE // columns)
        for first in range(0, open_.size, size):
            part = open_[first : first + size]
            some = Who(who.low[part], who.column[part], who.base[part], who.operation)
            found[part] = self._unseen(granules[part], some, clocks)
        return found

    def _unseen(self, granules: IndexArray, who: Who, clocks: Clocks) -> Marks:
        """`unseen` by looking at all columns, (columns, entries)."""
        columns: IndexArray = np.arange(self._last.shape[0], dtype=np.intp).reshape(-1, 1)
        marks: Marks = self._last.take(granules, axis=1)
        own = who.column == columns
        if who.operation:
            marks[own] = 0
        else:
            mine = own & ((marks ^ who.low) & LOW == 0)
            place, entry = mine.nonzero()
            marks[place, entry] = self._other[place, granules[entry]]
        late = marks >> TIME > clocks.seen.reshape(-1).take(who.base + columns)
        if not late.any():
            return np.zeros(granules.size, np.int64)
        if not who.operation:
            self._excuse(marks, late, own, granules, who, clocks)
        marks[~late] = 0
        first = late.argmax(axis=0)
        return marks[first, np.arange(granules.size)]

    def _excuse(
        self,
        marks: Marks,
        late: NDArray[np.bool_],
        own: NDArray[np.bool_],
        granules: IndexArray,
        who: Who,
        clocks: Clocks,
    ) -> None:
        """Where a late access was of a lane that the accessing lane has met, the one before it is asked about in its place."""
        place, entry = (late & own).nonzero()
        excused = met(marks[place, entry], who.low[entry], clocks)
        place, entry = place[excused], entry[excused]
        before = self._other[place, granules[entry]]
        marks[place, entry] = before
        seen = clocks.seen.reshape(-1)[who.base[entry] + place]
        late[place, entry] = (before >> TIME > seen) & ~met(before, who.low[entry], clocks)

    def _beyond(self, granules: IndexArray, who: Who, clocks: Clocks) -> IndexArray:
        """The entries whose granule was accessed after what their agent has seen of every column: the others need no look."""
        columns = self._newest.shape[1]
        rows, entries = np.unique(who.base, return_inverse=True)
        seen = clocks.seen.reshape(-1)[rows[:, None] + np.arange(columns)]
        newest = self._newest[rows // (2 * clocks.columns**2)]
        limits = np.where(newest > seen, seen, NEVER).min(axis=1)
        return (self.latest[granules >> self._line] > limits[entries]).nonzero()[0]


def met(marks: Marks, low: Marks, clocks: Clocks) -> NDArray[np.bool_]:
    """Whether barriers of some lanes of a warp order these accesses before those of ``low``."""
    return marks >> TIME <= clocks.lanes_seen(low & (THREADS - 1), marks & (THREADS - 1))


def unseen_writes(marks: Marks, who: Who, clocks: Clocks, generic: bool) -> NDArray[np.bool_]:
    """Which of the last writes the entries have not seen. ``generic``: leave proxies out of account."""
    column = (marks >> COLUMN) & (COLUMNS - 1)
    seen = clocks.seen.reshape(-1)
    times, place = marks >> TIME, who.base + column
    unseen = times > seen[place]
    if not who.operation:
        return unseen & ((marks ^ who.low) & LOW != 0) & ~met(marks, who.low, clocks)
    # Of an operation's own column, it has not seen what it did itself.
    own = unseen & (who.column == column)
    if not generic:
        unseen = times > seen[place + np.where(marks & ASYNC, 0, clocks.columns)]
    return unseen & ~own

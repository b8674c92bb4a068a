"""What each warp has seen of every warp of the launch, through flags in global memory.

`weft.emulator.memory.clocks` has what warps of one block know of each other. Here is the rest: rows of times, one for each
resident warp, with a column for each warp of all batches so far. Times are those of the clocks. ``seen[warp, other]`` = t says:
the warp has seen all that the other did up to time t.

    block 0, warp 0 writes (time 1), fence.acq_rel.gpu, st.relaxed.gpu [flag]:     record of flag = [1, 0]
    block 1, warp 0 ld.acquire.gpu [flag]:                                        its row = [1, 0]: the write is seen

Each address that a release reached has a *record*: what an acquire of its value learns. An atomic adds to the record it finds
(PTX ISA, memory consistency model, observation order: a chain of read-modify-writes). Any other strong write puts its own in its
place: what its warp releases by it, and what the same warp released there before, if it was the last to do so (a release and a
later strong write are a release pattern). What others released reached that warp only if it acquired it. Nothing is done for a
weak write: an acquire that reads it without being ordered behind it races.

Scopes. A record has two rows: ``wide`` is what was released at .gpu or .sys scope, ``near`` what the block of the last releaser
may see, which is all. An acquire at .cta scope looks at records of its own block only.

Most kernels never ask: events wait in a queue until an access is in doubt (`known`). Nothing is recorded before the first
release or fence.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import IndexArray
from weft.emulator.memory.clocks import Clocks
from weft.emulator.memory.flags import Flag

RECORDS: Final = 1024
"""Records before those that no place has any more are dropped."""

QUEUE: Final = 1 << 22
"""Accesses of threads that wait at most; any other event counts as `EVENT` of them."""

EVENT: Final = 64

SHARED_FLAGS: Final = "flags"
"""The key of all flags of a block in shared memory."""

COLUMNS: Final = 1 << 14
"""Warps that are told apart. In a longer grid of programs that synchronise, earlier batches count as seen."""

Rows = NDArray[np.int64]


class Records:
    """What was released at each place, by number: 0 is nothing."""

    def __init__(self, places: int) -> None:
        self.numbers: NDArray[np.int32] = np.zeros(places, np.int32)
        """The record of each place."""
        self.near: Rows = np.zeros((1, 0), np.int64)
        self.wide: Rows = np.zeros((1, 0), np.int64)
        self.block: IndexArray = np.zeros(1, np.intp)
        """The block, over all batches, of who released last."""
        self.owner: IndexArray = np.zeros(1, np.intp)
        """The warp, over all batches."""
        self.own: IndexArray = np.zeros(1, np.intp)
        """The number of the record of what that warp released itself: this one, where no atomic added to another's."""
        self._used: IndexArray = np.zeros(0, np.intp)
        self._limit = RECORDS

    def widen(self, columns: int) -> None:
        """Rows of so many columns from now on."""
        self.near, self.wide = _widened(self.near, columns), _widened(self.wide, columns)

    def add(
        self, near: Rows, wide: Rows, block: IndexArray, owner: IndexArray, own: IndexArray | None = None
    ) -> IndexArray:
        """The numbers of new records, which no place has yet."""
        numbers: IndexArray = self.near.shape[0] + np.arange(near.shape[0], dtype=np.intp)
        self.near, self.wide = np.concatenate([self.near, near]), np.concatenate([self.wide, wide])
        self.block, self.owner = np.concatenate([self.block, block]), np.concatenate([self.owner, owner])
        self.own = np.concatenate([self.own, numbers if own is None else own])
        return numbers

    def put(self, places: IndexArray, numbers: IndexArray) -> None:
        """Which record each place has from now on."""
        self.numbers[places] = numbers
        self._used = np.concatenate([self._used, places])
        if self.near.shape[0] > self._limit:
            self._collect()

    def _collect(self) -> None:
        """Drops the records that no place has any more."""
        self._used = np.unique(self._used)
        numbers = self.numbers[self._used]
        kept = np.unique(np.concatenate([[0], numbers, self.own[numbers]]))
        self.numbers[self._used] = np.searchsorted(kept, numbers)
        self._used = self._used[numbers != 0]
        self.own = np.searchsorted(kept, self.own[kept])
        self.near, self.wide = self.near[kept], self.wide[kept]
        self.block, self.owner = self.block[kept], self.owner[kept]
        self._limit = 2 * kept.size + RECORDS


class Between:
    """The rows of the resident warps, and the records of ``places`` bytes of global memory."""

    def __init__(self, clocks: Clocks, places: int) -> None:
        self._clocks = clocks
        self._places = places
        self._warps = clocks.blocks * clocks.warps
        self.active = False
        """Whether anything was released."""
        self._batch = -1
        self._queue: list[tuple[Callable[..., None], int, tuple[Any, ...]]] = []
        self._queued = 0

    def begin(self) -> bool:
        """The next batch of blocks, which have seen nothing. Returns whether there are too many batches to tell them apart: then
        this is the first again, and earlier accesses are to be forgotten."""
        self._catch_up()
        self._batch += 1
        if not self.active:
            return False
        if full := self._columns > COLUMNS:
            self._batch, self.active = 0, False
        else:
            self._reset()
        return full

    def _reset(self) -> None:
        columns = self._columns
        self._seen: Rows = np.zeros((self._warps, columns), np.int64)
        self._fenced: Rows | None = None
        self._fenced_wide: Rows = self._seen
        self._noted: Rows | None = None
        self._noted_wide: Rows = self._seen
        self._keys: dict[Hashable, Rows] = {}
        self._records.widen(columns)

    def _activate(self) -> None:
        """From now on events are recorded. What warps of a block know of each other is taken over."""
        self.active = True
        self._records = Records(self._places)
        self._reset()
        clocks, warps = self._clocks, np.arange(self._warps)
        own = self._base + clocks.block_of[:, None] * clocks.warps + np.arange(clocks.warps)
        self._seen[warps[:, None], own] = clocks.seen[clocks.block_of, clocks.column_of, 0, : clocks.warps]
        blocks = np.arange(clocks.blocks)[:, None]
        own = self._base + blocks * clocks.warps + np.arange(clocks.warps)
        for name, record in clocks.keys.items():
            key = SHARED_FLAGS if isinstance(name, Flag) else name
            rows = self._keys.setdefault(key, np.zeros((clocks.blocks, self._columns), np.int64))
            rows[blocks, own] = np.maximum(rows[blocks, own], record[:, 0, : clocks.warps])

    @property
    def _base(self) -> int:
        """The first column of this batch."""
        return self._batch * self._warps

    @property
    def _columns(self) -> int:
        return self._base + self._warps

    # ---- what the accesses ask ---------------------------------------------------------------------------------------

    def known(self, warps: IndexArray, others: IndexArray, batches: IndexArray) -> Rows:
        """Up to which time each warp has seen another: ``others`` of these batches, counted back from this one."""
        if not self.active:
            return np.zeros(warps.size, np.int64)
        self._catch_up()
        columns = others + (self._batch - batches) * self._warps
        return self._seen[warps, columns]

    # ---- events ------------------------------------------------------------------------------------------------------

    def barrier(self, arriving: IndexArray, leaving: IndexArray) -> None:
        """In each block, the leaving warps have seen what the arriving ones have."""
        if self.active:
            self._later(self._barrier, arriving, leaving)

    def release(self, key: Hashable, warps: IndexArray) -> None:
        """To an object of each block."""
        if self.active:
            self._later(self._release, key, warps)

    def acquire(self, key: Hashable, warps: IndexArray) -> None:
        """From an object of each block."""
        if self.active:
            self._later(self._acquire, key, warps)

    def forget(self, key: Hashable) -> None:
        """The object is not used any more."""
        if self.active:
            self._later(self._forget, key)

    def fence(self, warps: IndexArray, wide: bool) -> None:
        """``wide``: at .gpu or .sys scope."""
        if not self.active:
            self._activate()
        self._later(self._fence, warps, wide)

    def strong(
        self, places: IndexArray, warps: IndexArray, reads: bool, writes: bool, semantics: str, wide: bool
    ) -> None:
        """A strong access of each of these warps (some more than once, ascending) to each of these places."""
        acquires = reads and semantics in ("acquire", "acq_rel")
        releases = writes and semantics in ("release", "acq_rel")
        if not self.active:
            if not releases:
                return
            self._activate()
        self._later(self._strong, places, warps, (reads, writes, acquires, releases), wide)

    def _later(self, event: Callable[..., None], *arguments: Any) -> None:
        self._queue.append((event, self._clocks.now, arguments))
        self._queued += max(EVENT, arguments[0].size) if event == self._strong else EVENT
        if self._queued > QUEUE:
            self._catch_up()

    def _catch_up(self) -> None:
        for event, now, arguments in self._queue:
            event(now, *arguments)
        self._queue.clear()
        self._queued = 0

    # ---- what they mean ----------------------------------------------------------------------------------------------

    def _rows(self, warps: IndexArray, now: int) -> Rows:
        """What these warps have seen and done; a copy."""
        rows: Rows = self._seen[warps]
        rows[np.arange(warps.size), self._base + warps] = now
        return rows

    def _barrier(self, now: int, arriving: IndexArray, leaving: IndexArray) -> None:
        clocks = self._clocks
        came = np.zeros((clocks.blocks, clocks.warps), np.bool_)
        came.reshape(-1)[arriving] = True
        seen = self._seen.reshape(clocks.blocks, clocks.warps, -1)
        joined = seen.max(axis=1, where=came[:, :, None], initial=0)
        blocks, columns = came.nonzero()
        joined[blocks, self._base + blocks * clocks.warps + columns] = now
        self._seen[leaving] = np.maximum(self._seen[leaving], joined[clocks.block_of[leaving]])

    def _release(self, now: int, key: Hashable, warps: IndexArray) -> None:
        if (record := self._keys.get(key)) is None:
            record = self._keys[key] = np.zeros((self._clocks.blocks, self._columns), np.int64)
        np.maximum.at(record, self._clocks.block_of[warps], self._rows(warps, now))

    def _acquire(self, now: int, key: Hashable, warps: IndexArray) -> None:
        if (record := self._keys.get(key)) is not None:
            self._learn(warps, record[self._clocks.block_of[warps]])

    def _forget(self, now: int, key: Hashable) -> None:
        self._keys.pop(key, None)

    def _learn(self, warps: IndexArray, rows: Rows) -> None:
        np.maximum.at(self._seen, warps, rows)

    def _fence(self, now: int, warps: IndexArray, wide: bool) -> None:
        if self._noted is not None:
            self._learn(warps, self._noted[warps])
            if wide:
                self._learn(warps, self._noted_wide[warps])
        if self._fenced is None:
            self._fenced, self._fenced_wide = np.zeros_like(self._seen), np.zeros_like(self._seen)
        self._fenced[warps] = rows = self._rows(warps, now)
        if wide:
            self._fenced_wide[warps] = rows

    def _strong(
        self, now: int, places: IndexArray, warps: IndexArray, does: tuple[bool, bool, bool, bool], wide: bool
    ) -> None:
        reads, writes, acquires, releases = does
        pairs = np.unique(places * self._warps + warps)
        places, warps = pairs // self._warps, pairs % self._warps
        if not reads:  # of several at one place the last stays
            last = np.append(places[1:] != places[:-1], True).nonzero()[0]
            places, warps = places[last], warps[last]
        rank = np.arange(places.size) - np.searchsorted(places, places)
        turns = int(rank.max(initial=-1)) + 1 if reads and writes else 1
        for turn in range(turns):
            mine = (rank == turn).nonzero()[0] if turns > 1 else slice(None)
            at, who = places[mine], warps[mine]
            # Acquire before release: what an atomic takes over from the one before it, it hands on.
            if reads:
                self._take(at, who, acquires, wide)
            if writes:
                self._give(now, at, who, reads, acquires, releases, wide)

    def _take(self, places: IndexArray, warps: IndexArray, acquires: bool, wide: bool) -> None:
        records = self._records
        found = np.unique(warps * records.near.shape[0] + records.numbers[places])
        warps, numbers = found // records.near.shape[0], found % records.near.shape[0]
        own = records.block[numbers] == self._blocks(warps)
        full = numbers > 0
        for some, rows, far in ((own & full, records.near, False), (~own & full, records.wide, True)):
            if not some.any() or (far and not wide):
                continue
            if acquires:
                self._learn(warps[some], rows[numbers[some]])
                continue
            if self._noted is None:
                self._noted, self._noted_wide = np.zeros_like(self._seen), np.zeros_like(self._seen)
            np.maximum.at(self._noted_wide if far else self._noted, warps[some], rows[numbers[some]])

    def _blocks(self, warps: IndexArray) -> IndexArray:
        """The blocks of these warps, over all batches."""
        return self._batch * self._clocks.blocks + self._clocks.block_of[warps]

    def _give(
        self,
        now: int,
        places: IndexArray,
        who: IndexArray,
        reads: bool,
        acquires: bool,
        releases: bool,
        wide: bool,
    ) -> None:
        """Strong writes of these warps, one a place."""
        records, fenced = self._records, self._fenced
        if not releases:  # without a fence an atomic hands on what is there, another write takes it away
            does = np.zeros(who.size, np.bool_) if fenced is None else fenced[who].any(axis=1)
            if not reads:
                idle, now_has = places[~does], records.numbers[places[~does]]
                same = records.owner[now_has] == self._base + who[~does]
                records.numbers[idle] = np.where(same, records.own[now_has], 0)
            places, who = places[does], who[does]
            if not places.size:
                return
        # All that an acquiring atomic found, it has in its own row.
        old = records.numbers[places] if not (acquires and releases and wide) else np.zeros(places.size, np.int32)
        pairs, which = np.unique(old.astype(np.intp) * self._warps + who, return_inverse=True)
        before, who = pairs // self._warps, pairs % self._warps
        near = self._rows(who, now) if releases or fenced is None else fenced[who]
        far = np.zeros_like(near)
        if wide:
            far = near.copy() if releases else self._fenced_wide[who]
        owner, block = self._base + who, self._blocks(who)
        mine = np.where(records.owner[before] == owner, records.own[before], 0)  # its own release stays in force
        numbers = records.add(np.maximum(near, records.near[mine]), np.maximum(far, records.wide[mine]), block, owner)
        if reads and before.any():
            there = np.where((records.block[before] == block)[:, None], records.near[before], records.wide[before])
            near = np.maximum(records.near[numbers], there)
            far = np.maximum(records.wide[numbers], records.wide[before])
            numbers = records.add(near, far, block, owner, numbers)
        records.put(places, numbers[which])


def _widened(rows: Rows, columns: int) -> Rows:
    return np.pad(rows, [(0, 0), (0, columns - rows.shape[1])])

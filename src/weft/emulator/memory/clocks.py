"""Vector clocks: what each warp, and each asynchronous operation, has seen of every other.

All agents share one time: the number of the access, over the whole launch. An agent has no clock of its own that counts
synchronisations. An entry ``seen[block, agent, 0, other]`` = t says: the agent has seen all that the other did up to time t.
Times of different agents can therefore be compared, and one number per block, its *floor*, stands for "all have seen
everything up to here", which is what a barrier brings about and what most accesses need to ask. (There are three such
numbers: an operation under way holds back the one for everything, but not the one for what warps did.)

    warp 0 writes (time 1), warp 1 writes (time 2), barrier:      seen[0] = seen[1] = [2, 2], floor 2
    warp 0 writes (time 3), releases to a key:                    key = [3, 2]
    warp 1 acquires the key:                                      seen[1] = [3, 2]; 3 <= 3, so warp 0's write is seen

An agent's own entry is what its *lanes* have seen of each other, all of all; what a bar.warp.sync of some lanes orders has a
table of lanes by lanes (`Clocks.lanes_seen`). Beside each row is a second one (index 1 on the third axis): what has been seen
and passed a ``fence.proxy.async``, so that an asynchronous operation may look at it.

There are any number of asynchronous operations but few columns. An operation takes the column of an earlier one that is
complete and whose completion its starters have seen: then an agent that has seen the later has seen the earlier, and the column
stays valid.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import ALL_LANES, WARP, IndexArray

NEVER: Final = np.iinfo(np.int64).max
FIRST_COLUMNS: Final = 2

ALL, WARPS, FENCED = 0, 1, 2
"""Rows of `Clocks.floors`."""

Times = NDArray[np.int64]


class Agent:
    """Asynchronous operations that some warps of any blocks began: ``columns`` (warps,) has the column of each warp's
    operation, or -1, ``serials`` which of the operations that ever had this column it is."""

    def __init__(self, warps: int = 0) -> None:
        self.columns: IndexArray = np.full(warps, -1, np.intp)
        self.serials: IndexArray = np.full(warps, -1, np.intp)
        self.finals: list[tuple[IndexArray, IndexArray, Times]] = []
        """Operations that are complete: the warps that said so, the serial numbers, and what is known to whoever knows it."""
        self.floors: Times = np.zeros((3, 0), np.int64)
        """`Clocks.floors` when the operations began: what all warps had seen, they have, too."""
        self.least: tuple[int, ...] = (0, 0, 0)


class Clocks:
    """The clocks of ``blocks`` blocks of ``warps`` warps each. Warps are numbered over all blocks. A cluster counts as one block
    here, of ``parts`` blocks: a barrier is then of some part's warps."""

    def __init__(self, blocks: int, warps: int, parts: int = 1) -> None:
        self.blocks = blocks
        self.warps = warps
        self.parts = parts
        self.block_of: IndexArray = np.arange(blocks * warps) // warps
        self.column_of: IndexArray = np.arange(blocks * warps) % warps
        self.part_of: IndexArray = self.column_of // (warps // parts)
        self.reset()

    def reset(self, blocks: int | None = None) -> None:
        """No access has happened yet; only the first ``blocks`` blocks have threads."""
        self.now: int = 0
        self.columns = self.warps
        self.seen: Times = np.zeros((self.blocks, self.columns, 2, self.columns), np.int64)
        self.began: Times = np.zeros((self.blocks, 0), np.int64)
        self.ended: Times = np.zeros((self.blocks, 0), np.int64)
        self.before: Times = np.zeros((self.blocks, 0), np.int64)
        """When the operations ended that had the columns before."""
        self.serials: IndexArray = np.zeros((self.blocks, 0), np.intp)
        self._serial = 0
        self.keys: dict[Hashable, Times] = {}
        self.floors: Times = np.zeros((3, self.blocks), np.int64)
        """Times up to which all warps of each block have seen everything (row `ALL`), have seen everything that warps did
        (`WARPS`), and up to which everything has passed to the async proxy (`FENCED`)."""
        self.floors[:, blocks:] = NEVER if blocks is not None else 0
        self.least: tuple[int, ...] = (0, 0, 0)
        """The least of each row."""
        self._common: Times = self.floors[0].copy()
        self.common = 0
        """What all warps and all operations have seen."""
        self._lanes: Times | None = None
        """(warps, lanes, lanes): what each lane has seen of each other one."""
        self._fenced: Times | None = None
        self.noted: Times | None = None

    # ---- what the accesses ask ---------------------------------------------------------------------------------------

    def bases(self) -> IndexArray:
        """Where in ``seen.ravel()`` each warp's row starts; its second row starts ``columns`` later."""
        return (self.block_of * self.columns + self.column_of) * (2 * self.columns)

    def operation_bases(self, agent: Agent) -> IndexArray:
        """The same for each warp's operation."""
        return (self.block_of * self.columns + agent.columns) * (2 * self.columns)

    # ---- synchronisation ---------------------------------------------------------------------------------------------

    def rows(self, warps: IndexArray) -> Times:
        """What these warps have seen and done, (n, 2, columns); a copy."""
        own = self.column_of[warps]
        rows = self.seen[self.block_of[warps], own]
        rows[np.arange(warps.size), 0, own] = self.now
        return rows

    def learn(self, warps: IndexArray, rows: Times) -> None:
        """These warps have seen what the rows (n, 2, columns) say."""
        place = self.block_of[warps], self.column_of[warps]
        self.seen[place] = np.maximum(self.seen[place], rows)

    def synchronise(self, warps: IndexArray, mask: int = ALL_LANES) -> None:
        """The lanes of each warp that are in the mask have seen each other."""
        if mask == ALL_LANES:
            own = self.column_of[warps]
            self.seen[self.block_of[warps], own, 0, own] = self.now
            return
        if self._lanes is None:
            self._lanes = np.zeros((self.blocks * self.warps, WARP, WARP), np.int64)
        members = np.array([lane for lane in range(WARP) if mask >> lane & 1])
        place = warps[:, None], members
        joined = self._lanes[place].max(axis=1)
        joined[:, members] = self.now
        self._lanes[place] = joined[:, None]

    def lanes_seen(self, threads: IndexArray, others: IndexArray) -> Times | int:
        """Up to which times threads have seen others of their warps by barriers of some lanes."""
        if self._lanes is None:
            return 0
        warps = threads // WARP
        return np.where(warps == others // WARP, self._lanes[warps, threads % WARP, others % WARP], 0)

    def by_part(self, arriving: IndexArray, leaving: IndexArray) -> list[tuple[IndexArray, IndexArray]]:
        """The warps of a barrier by the parts of their blocks."""
        if self.parts == 1:
            return [(arriving, leaving)]
        came, left = self.part_of[arriving], self.part_of[leaving]
        present: list[int] = np.unique(np.concatenate([came, left])).tolist()
        return [(arriving[came == part], leaving[left == part]) for part in present]

    def meet(self, arriving: IndexArray, leaving: IndexArray) -> None:
        """In each part of each block, the leaving warps have seen what the arriving ones did."""
        if self.parts == 1:
            self.barrier(arriving, leaving)
            return
        if arriving.size == leaving.size == self.blocks * self.warps:
            w, each = self.warps, self.warps // self.parts
            joined = self.seen[:, :w].reshape(self.blocks, self.parts, each, 2, self.columns).max(axis=2)
            joined[:, self.part_of[:w], 0, np.arange(w)] = self.now
            self.seen[:, :w] = joined.repeat(each, axis=1)
        else:
            for came, left in self.by_part(arriving, leaving):
                self.barrier(came, left)
        self._lift(np.arange(self.blocks), self.seen[:, : self.warps].min(axis=1))

    def barrier(self, arriving: IndexArray, leaving: IndexArray) -> None:
        """In each block, the leaving warps have seen what the arriving ones did. Of blocks in parts the warps are of one."""
        w = self.warps
        if arriving.size == leaving.size == self.blocks * w:
            joined = self.seen[:, :w].max(axis=1)
            joined[:, 0, :w] = self.now
            self.seen[:, :w] = joined[:, None]
            if self.columns > w:
                self._lift(np.arange(self.blocks), joined)
                return
            # The same, where there are warps alone: they have seen everything up to now.
            self.floors[FENCED] = fenced = joined[:, 1].min(axis=1)
            self.floors[:FENCED] = self._common[...] = self.common = now = self.now
            self.least = (now, now, int(fenced.min()))
            return
        came = np.zeros(self.blocks * w, np.bool_)
        came[arriving] = True
        came = came.reshape(self.blocks, w)
        joined = np.where(came[:, :, None, None], self.seen[:, :w], 0).max(axis=1)
        joined[:, 0, :w] = np.where(came, self.now, joined[:, 0, :w])
        self.learn(leaving, joined[self.block_of[leaving]])
        whole = came.all(axis=1) & (np.bincount(self.block_of[leaving], minlength=self.blocks) == w)
        if whole.any():
            blocks = whole.nonzero()[0]
            self._lift(blocks, joined[blocks])

    def _lift(self, blocks: IndexArray, joined: Times) -> None:
        """All warps of these blocks have seen ``joined``. The floor is what all of them have seen, nothing of an operation that
        not all know to be complete; what *all* have seen is not more than what operations under way had seen."""
        w = self.warps
        everything: Times = joined[..., :w].min(axis=2)
        of_warps, floors, common = everything[:, 0], everything[:, 0], everything[:, 0]
        if self.columns > w:
            ended, began = self.ended[blocks], self.began[blocks]
            floors = np.minimum(floors, np.where(joined[:, 0, w:] < ended, began, NEVER).min(axis=1))
            common = floors
            if (going := ended == NEVER).any():
                saw = self.seen[blocks, w:, 0]
                saw[..., w:] = np.where(saw[..., w:] < ended[:, None], saw[..., w:], NEVER)
                common = np.minimum(floors, np.where(going, saw.min(axis=2), NEVER).min(axis=1))
        fenced = self._fenced_floors(blocks, joined[:, 1])
        self.floors[:, blocks] = np.maximum(self.floors[:, blocks], [floors, of_warps, fenced])
        self.least = least(self.floors)
        self._common[blocks] = np.maximum(self._common[blocks], common)
        self.common = int(self._common.min())

    def _fenced_floors(self, blocks: IndexArray, passed: Times) -> Times:
        """`FENCED` of blocks, all of whose warps know that so much of each column has passed: all up to the end of an operation,
        or if what had the column before has passed, to its beginning, or to what has."""
        w = self.warps
        floors: Times = passed[:, :w].min(axis=1)
        if self.columns > w:
            slots = passed[:, w:]
            some = np.where(slots < self.before[blocks], slots, self.began[blocks])
            floors = np.minimum(floors, np.where(slots < self.ended[blocks], some, NEVER).min(axis=1))
        return floors

    def release(self, key: Hashable, warps: IndexArray) -> None:
        """Adds what the warps have seen and done to the key of their block."""
        self.give(key, self.block_of[warps], self.rows(warps))

    def acquire(self, key: Hashable, warps: IndexArray) -> None:
        """The warps have seen what was given to the key of their block."""
        if (record := self.keys.get(key)) is not None:
            self.learn(warps, self._wide(key, record)[self.block_of[warps]])

    def forget(self, key: Hashable) -> None:
        """The key is not used any more."""
        self.keys.pop(key, None)

    def fence_async(self, warps: IndexArray) -> None:
        """What the warps have seen and done has passed to the async proxy."""
        rows = self.rows(warps)
        place = self.block_of[warps], self.column_of[warps], 1
        self.seen[place] = np.maximum(self.seen[place], rows[:, 0])
        if warps.size == self.blocks * self.warps:
            floors = self._fenced_floors(np.arange(self.blocks), self.seen[:, : self.warps, 1].min(axis=1))
            self.floors[FENCED] = np.maximum(self.floors[FENCED], floors)
            self.least = least(self.floors)

    # ---- fences and relaxed accesses to flags ------------------------------------------------------------------------

    def fence(self, warps: IndexArray) -> None:
        """Relaxed writes from now on release what the warps have seen; what relaxed reads have noted is seen."""
        self.fence_after(warps)
        self.fence_before(warps)

    def fence_after(self, warps: IndexArray) -> None:
        """What relaxed reads of the warps have noted is seen."""
        if self.noted is not None:
            noted = self.noted = self._widened(self.noted)
            self.learn(warps, noted[warps])

    def fence_before(self, warps: IndexArray) -> None:
        """Relaxed writes of the warps from now on release what they have seen and done."""
        if self._fenced is None:
            self._fenced = np.zeros((self.blocks * self.warps, 2, self.columns), np.int64)
        fenced = self._fenced = self._widened(self._fenced)
        fenced[warps] = self.rows(warps)

    @property
    def fenced(self) -> bool:
        """Whether any warp has executed a fence."""
        return self._fenced is not None

    def release_fenced(self, key: Hashable, warps: IndexArray) -> None:
        """A relaxed write: what the warps had seen and done at their last fence."""
        if self._fenced is not None:
            fenced = self._fenced = self._widened(self._fenced)
            self.give(key, self.block_of[warps], fenced[warps])

    def note(self, key: Hashable, warps: IndexArray) -> None:
        """A relaxed read: seen at the warps' next fence."""
        if (record := self.keys.get(key)) is None:
            return
        if self.noted is None:
            self.noted = np.zeros((self.blocks * self.warps, 2, self.columns), np.int64)
        noted = self.noted = self._widened(self.noted)
        noted[warps] = np.maximum(noted[warps], self._wide(key, record)[self.block_of[warps]])

    # ---- asynchronous operations -------------------------------------------------------------------------------------

    def start(self, warps: IndexArray, together: int, agent: Agent | None) -> Agent:
        """Gives each warp (each ``together`` neighbouring warps) an operation that has seen what they have seen; warps that
        already have one in ``agent`` go on with it."""
        if agent is None:
            agent = Agent(self.blocks * self.warps)
        each = self.warps // self.parts
        groups = (self.block_of[warps] * self.parts + self.part_of[warps]) * each + self.column_of[
            warps
        ] % each // together
        new = np.r_[True, groups[1:] != groups[:-1]]
        heads, member = new.nonzero()[0], np.cumsum(new) - 1
        rows = np.maximum.reduceat(self.rows(warps), heads, axis=0)
        leaders = warps[heads]
        blocks, columns = self.block_of[leaders], agent.columns[leaders]
        if (fresh := ~self._going(agent, leaders)).any():
            columns[fresh] = self._columns_for(blocks[fresh], rows[fresh])
            rows = _padded(rows, self.columns)
            agent.columns[warps] = columns[member]
            agent.serials[warps] = self.serials[blocks, columns - self.warps][member]
        self.seen[blocks, columns] = np.maximum(self.seen[blocks, columns], rows)
        again = agent.floors.size and not np.array_equal((agent.columns >= 0).nonzero()[0], warps)
        agent.floors = np.minimum(agent.floors, self.floors) if again else self.floors.copy()
        agent.least = least(agent.floors)
        return agent

    def finish(self, agent: Agent, key: Hashable, warps: IndexArray | None) -> None:
        """The operations are complete, and known to the key, or to the warps that began them."""
        owners = (agent.columns >= 0).nonzero()[0] if warps is None else warps
        mine = self._mine(agent, owners)
        complete = owners[mine]
        if complete.size:
            blocks, columns = self.block_of[complete], agent.columns[complete]
            slots = columns - self.warps
            self.ended[blocks, slots] = np.minimum(self.ended[blocks, slots], self.now)
            rows = self.seen[blocks, columns]
            rows[np.arange(complete.size), 0, columns] = self.now
            agent.finals.append((complete, agent.serials[complete], rows))
            self._tell(complete, rows, key, warps)
        if complete.size < owners.size:
            # Said before, and the column is another operation's now: what was known then is known to these, too.
            again = owners[~mine]
            for some, serials, rows in agent.finals:
                same = (serials == agent.serials[again][:, None]) & (
                    agent.columns[some] == agent.columns[again][:, None]
                )
                which, known = (same & (self.block_of[some] == self.block_of[again][:, None])).nonzero()
                self._tell(again[which], _padded(rows[known], self.columns), key, warps)

    def _tell(self, owners: IndexArray, rows: Times, key: Hashable, warps: IndexArray | None) -> None:
        if key is not None:
            self.give(key, self.block_of[owners], rows)
        elif warps is not None:
            self.learn(owners, rows)

    def _mine(self, agent: Agent, warps: IndexArray) -> NDArray[np.bool_]:
        """Whether each warp's operation still has its column."""
        columns = agent.columns[warps]
        if not self.serials.shape[1]:
            return columns >= 0
        slots = np.maximum(columns - self.warps, 0)
        return (columns >= 0) & (self.serials[self.block_of[warps], slots] == agent.serials[warps])

    def _going(self, agent: Agent, warps: IndexArray) -> NDArray[np.bool_]:
        """Whether each warp's operation is under way."""
        mine = self._mine(agent, warps)
        if mine.any():
            slots = np.maximum(agent.columns[warps] - self.warps, 0)
            mine &= self.ended[self.block_of[warps], slots] == NEVER
        return mine

    def _columns_for(self, blocks: IndexArray, rows: Times) -> IndexArray:
        """A column for each of several new operations, ``blocks`` ascending."""
        while True:
            free = self.ended[blocks] <= rows[:, 0, self.warps :]  # (operations, slots)
            chosen = np.full(blocks.size, -1, np.intp)
            rank = np.arange(blocks.size) - np.searchsorted(blocks, blocks)
            for r in range(int(rank.max()) + 1):
                here = (rank == r).nonzero()[0]
                if not free.shape[1] or not free[here].any(axis=1).all():
                    break
                chosen[here] = slots = free[here].argmax(axis=1)
                taken = np.full(self.blocks, -1, np.intp)
                taken[blocks[here]] = slots
                free[np.arange(blocks.size), taken[blocks]] &= taken[blocks] < 0
            else:
                self.began[blocks, chosen] = self.now
                self.before[blocks, chosen] = self.ended[blocks, chosen]
                self._serial += 1
                self.serials[blocks, chosen] = self._serial
                self.ended[blocks, chosen] = NEVER
                self.seen[blocks, chosen + self.warps] = 0
                return chosen + self.warps
            self.grow(int(rank.max()) + 1)
            rows = _padded(rows, self.columns)

    def grow(self, least: int) -> None:
        """More columns, at least so many."""
        old = self.columns
        more = max(FIRST_COLUMNS, least, old - self.warps)
        self.columns += more
        seen = np.zeros((self.blocks, self.columns, 2, self.columns), np.int64)
        seen[:, :old, :, :old] = self.seen
        self.seen = seen
        fresh = np.zeros((self.blocks, more), np.int64)
        self.began = np.concatenate([self.began, fresh], axis=1)
        self.ended = np.concatenate([self.ended, fresh], axis=1)
        self.before = np.concatenate([self.before, fresh], axis=1)
        self.serials = np.concatenate([self.serials, fresh.astype(np.intp)], axis=1)

    # ---- keys --------------------------------------------------------------------------------------------------------

    def give(self, key: Hashable, blocks: IndexArray, rows: Times) -> None:
        """Adds rows to the key of their blocks, ascending."""
        if (record := self.keys.get(key)) is None:
            record = self.keys[key] = np.zeros((self.blocks, 2, self.columns), np.int64)
        record = self._wide(key, record)
        if blocks.size > 1 and not (heads := np.r_[True, blocks[1:] != blocks[:-1]]).all():
            starts = heads.nonzero()[0]
            rows, blocks = np.maximum.reduceat(rows, starts, axis=0), blocks[starts]
        record[blocks] = np.maximum(record[blocks], rows)

    def _wide(self, key: Hashable, record: Times) -> Times:
        if record.shape[-1] != self.columns:
            record = self.keys[key] = self._widened(record)
        return record

    def _widened(self, rows: Times) -> Times:
        return _padded(rows, self.columns)


def least(floors: Times) -> tuple[int, ...]:
    """The least of each row."""
    lowest: list[int] = floors.min(axis=1).tolist()
    return tuple(lowest)


def _padded(rows: Times, columns: int) -> Times:
    """Rows of fewer columns, with zeros for the others."""
    missing = columns - rows.shape[-1]
    return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, missing)]) if missing else rows

"""Races on global memory, within a block and between blocks.

Two accesses *race* if they are of different threads, touch a common byte, at least one writes, they are not morally strong
relative to each other, and nothing orders them (PTX ISA, memory consistency model: conflict, data race, causality order).

Morally strong are two strong accesses (volatile, relaxed, acquire, release, atomic) of the same bytes, each at a scope that has
the other's thread. So atomics of 4 and of 8 bytes on one address race, and so do atomics at .cta scope of two blocks. Of vectors
and packed halves each element is an access.

What orders accesses:

- A thread's own are in order.
- Threads of a block are ordered by what orders them on shared memory (`weft.emulator.memory.order`): barriers, bar.warp.sync,
  mbarriers, flags.
- Threads of two blocks are ordered by a release, and an acquire that reads what it wrote or what atomics made of it
  (`weft.emulator.memory.between`). A fence and a relaxed access are such a pair, too. Both need .gpu or .sys scope.
- Nothing else orders blocks: not their numbers, and not that the emulator runs some after others.

    st [x] (block 0);  ld [x] (block 1)                                                       race
    st [x], st.release.gpu [f] (block 0);  ld.acquire.gpu [f] sees it, ld [x] (block 1)       ordered
    st [x], st [f] (block 0);  ld.acquire.gpu [f] sees it, ld [x] (block 1)                   race: of [f], and of [x]

*Equal values.* A weak write of the bytes that are there already does not race with the writes before it. The ISA's axioms hold
for programs whose races are of whole accesses (mixed-size ones void them), and leave one of the values: all are the same. Threads
that hold copies of a tile's element write it so. Different values are a race, in one instruction too.

Limits. To synchronisation a warp is one, as for shared memory. The reads of cp.async count as their thread's when it issues them;
bulk and tensor copies of global memory are not looked at. Of reads and strong writes that many threads made long ago, before
`LOGGED` others, only the last is remembered.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Race, Where
from weft.emulator.machine.active import WARP, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Proxy, Space
from weft.emulator.memory.arena import PAGE, Heap
from weft.emulator.memory.between import SHARED_FLAGS, Between
from weft.emulator.memory.clocks import WARPS, Agent, Clocks
from weft.emulator.memory.flags import Flags
from weft.emulator.memory.global_shadow import (
    FAR,
    HOW,
    KIND,
    LOW,
    MANY,
    THREAD,
    TIME,
    Made,
    Marks,
    Place,
    morally_strong,
    strength,
)
from weft.emulator.memory.order import NullOrder
from weft.emulator.ptx.syntax import Instruction

Index3 = tuple[int, int, int]

LOGGED: Final = 1 << 23
"""Accesses of threads in the logs, at most."""

_NARROW: Final = "the scope .cta does not reach another block"

_VERB: Final = {Kind.READ: "reads", Kind.WRITE: "writes", Kind.ATOMIC: "updates"}
_PAST: Final = {Kind.READ: "read", Kind.WRITE: "wrote", Kind.ATOMIC: "updated"}


class GlobalOrder(NullOrder):
    """The detector for global memory, around the one for shared memory, to which it passes on what it is told."""

    active = True

    def __init__(
        self,
        heap: Heap,
        shared: NullOrder,
        blocks: int,
        block_threads: int,
        aligned: bool,
        instructions: Sequence[Instruction],
        coordinates: Callable[[int], tuple[Index3, Index3]],
        kernel: str = "",
    ) -> None:
        """``shared`` is the detector for shared memory; ``aligned`` says that all accesses are aligned. ``coordinates`` takes
        any thread, counted from the first resident one
        (below 0: of earlier blocks)."""
        self._heap = heap
        self._shared = shared
        self._aligned = aligned
        self._instructions = instructions
        self._coordinates = coordinates
        self._kernel = kernel
        self._clocks = clocks = Clocks(blocks, block_threads // WARP)
        self._flags = Flags(clocks)
        if blocks * block_threads > THREAD:
            raise ValueError(f"{blocks * block_threads} resident threads: races are checked for {THREAD} at most")
        threads: IndexArray = np.arange(blocks * block_threads, dtype=np.intp)
        self._warp: IndexArray = threads // WARP
        self._block: IndexArray = threads // block_threads
        self._places = [Place(a) for a in heap.allocations]
        self._owners: IndexArray = np.full(heap.bytes.size // PAGE, -1, np.intp)
        for number, a in enumerate(heap.allocations):
            self._owners[a.start // PAGE : -(-(a.start + a.size) // PAGE)] = number
        self._between = Between(clocks, heap.bytes.size)
        self._met: int | None = None
        """When all warps met at a barrier that the clocks do not know of."""
        self._logged = 0
        self._begins: list[int] = []
        """When each batch of blocks began."""

    def reset(self, blocks: int | None = None) -> None:
        """The next batch. Its time goes on: accesses of earlier ones are still there to race with."""
        now = self._clocks.now
        self._shared.reset(blocks)
        self._clocks.reset(blocks)
        self._clocks.now, self._met = now, None
        self._flags.reset()
        if self._between.begin():
            self._begins.clear()
            self._logged = 0
            for place in self._places:
                place.forget()
        for place in self._places:
            place.begin(now)
        self._begins.append(now)

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def observe(self, access: AccessBatch, agent: Agent | None = None) -> None:
        if access.space is Space.SHARED:
            self._shared.observe(access, agent)
            return
        if access.space is not Space.GLOBAL or access.proxy is Proxy.ASYNC or agent is not None:
            return
        flat = access.flat
        if flat is None or not flat.size:
            return
        self._clocks.now += 1
        low, high = access.span or (int(flat.min()), int(flat.max()))
        first, last = int(self._owners[low // PAGE]), int(self._owners[high // PAGE])
        if first == last >= 0:  # all in one
            self._observe(access, self._places[first], flat, access.threads, access.values)
            return
        owners = self._owners[flat // PAGE]
        present: list[int] = np.unique(owners[owners >= 0]).tolist()
        for owner in present:
            some = (owners == owner).nonzero()[0]
            values = None if access.values is None else access.values[some]
            self._observe(access, self._places[owner], flat[some], access.threads[some], values)

    def _observe(
        self,
        access: AccessBatch,
        place: Place,
        flat: IndexArray,
        threads: IndexArray,
        values: NDArray[np.uint8] | None,
    ) -> None:
        made = Made(self._clocks.now, access.site, access.kind, threads, flat, access.size, strength(access))
        alignment = access.alignment or access.size
        if not self._aligned and int(np.bitwise_or.reduce(flat)) & (alignment - 1):
            alignment = 1
        if place.run is not None and not made.how and made.alike(place.run):
            self._note(place, made)
            return
        place.refine(made, alignment)
        if access.kind is Kind.READ:
            if place.writes is not None or place.touched is not None:
                self._enter(place)
                assert place.writes is not None
                self._check(place, place.writes, made, place.units(made), None)
            self._note(place, made)
            return
        units = place.units(made)
        if not made.how and place.touch(units):
            self._note(place, made)
            return
        alone = self._write(place, made, units, values)
        self._note(place, made)
        place.pending()  # it is in the tables
        if alone:
            place.run = made

    def _note(self, place: Place, made: Made) -> None:
        self._logged += place.note(made)
        if self._logged > LOGGED:
            for other in self._places:
                self._enter(other)
                self._logged -= other.shorten()

    def _write(self, place: Place, made: Made, units: IndexArray, values: NDArray[np.uint8] | None) -> bool:
        """Checks writes, and puts them into the tables. Whether all is each thread's own now."""
        self._enter(place)
        if place.reads is not None:
            self._check(place, place.reads, made, units, None)
        if place.writes is None:
            place.writes = place.table()
        else:
            self._check(place, place.writes, made, units, values)
        if made.how:
            self._merge(place.writes, made, units)
            self._meet(place, made, units)
            return False
        marks = self._marks(made, units.size // made.flat.size)
        place.writes[units] = marks
        if place.reads is not None:
            place.reads[units] = 0
        if (units[1:] > units[:-1]).all():
            return True
        self._collide(place, made, units, marks, values)
        return False

    def _marks(self, made: Made, each: int) -> Marks:
        """The mark of each unit."""
        marks: Marks = made.threads + ((made.time << TIME) | (made.how << KIND))
        return marks if each == 1 else marks.repeat(each)

    def _enter(self, place: Place) -> None:
        """Puts into the tables what is in the log alone."""
        for made in place.pending():
            units = place.units(made)
            if made.kind is not Kind.READ:  # of new places, or in a run
                assert place.writes is not None
                place.writes[units] = self._marks(made, units.size // made.flat.size)
                if place.reads is not None:
                    place.reads[units] = 0
                continue
            if place.reads is None:
                place.reads = place.table()
            self._merge(place.reads, made, units)

    def _merge(self, table: Marks, made: Made, units: IndexArray) -> None:
        """Adds accesses that need not be ordered after those before them."""
        new = self._marks(made, units.size // made.flat.size)
        old = table.take(units)
        if old.any():
            blocks = self._block
            was, now = old & THREAD, new & THREAD
            here = old >> TIME > self._begins[self._batch(made.time)]
            other = (old != 0) & ~(here & (was == now))
            far = (old != 0) & ~(here & (blocks[was] == blocks[now]))
            mixed = (old != 0) & ((old >> KIND) & HOW != made.how)
            new = np.where(mixed, new & ~(HOW << KIND), new)
            new |= (old & (MANY | FAR)) | np.where(other, MANY, 0) | np.where(far, FAR | MANY, 0)
        table[units] = new
        self._share(table, units, new)

    def _share(self, table: Marks, units: IndexArray, new: Marks) -> IndexArray:
        """Marks the units that several threads accessed in one instruction, of whom one's marks are in the table; the others'
        entries."""
        got = table.take(units)
        lost = ((got ^ new) & THREAD).nonzero()[0]
        if lost.size:
            here = self._block[got[lost] & THREAD] == self._block[new[lost] & THREAD]
            table[units[lost]] |= MANY
            table[units[lost[~here]]] |= FAR
        return lost

    def _batch(self, time: int) -> int:
        """The batch of blocks of an access."""
        return bisect_left(self._begins, time) - 1

    def _meet(self, place: Place, made: Made, units: IndexArray) -> None:
        """Strong writes of one instruction whose scope is the block: those of two blocks to one unit race."""
        if (made.how - 1) & 1 or self._clocks.blocks == 1:
            return
        threads = made.threads.repeat(place.each(made))
        order = np.argsort(units, kind="stable")
        one, other = order[:-1], order[1:]
        blocks = self._block[threads]
        found = ((units[one] == units[other]) & (blocks[one] != blocks[other])).nonzero()[0]
        if found.size:
            unit, first, second = int(units[one[found[0]]]), int(threads[one[found[0]]]), int(threads[other[found[0]]])
            verb = {Kind.WRITE: "write", Kind.ATOMIC: "update"}[made.kind]
            text = f"{self._who(first)} and {self._who(second)} {verb} {self._range(place, unit)} in one instruction"
            self._raise(f"{text}; nothing orders them: {_NARROW}", made, second, place, unit)

    def _collide(
        self, place: Place, made: Made, units: IndexArray, marks: Marks, values: NDArray[np.uint8] | None
    ) -> None:
        """Several threads' writes to one unit in one instruction: the values must agree."""
        assert place.writes is not None
        if not self._share(place.writes, units, marks).size or values is None:
            return
        written = np.ascontiguousarray(values).reshape(units.size, -1)
        order = np.argsort(units, kind="stable")
        one, other = order[:-1], order[1:]
        differ = (units[one] == units[other]) & (written[one] != written[other]).any(axis=1)
        if differ.any():
            which = int(differ.argmax())
            each = units.size // made.flat.size
            first, second = (int(made.threads[i // each]) for i in (one[which], other[which]))
            text = (
                f"{self._who(first)} and {self._who(second)} write different values to "
                f"{self._range(place, int(units[one[which]]))} in one instruction"
            )
            self._raise(text, made, second, place, int(units[one[which]]))

    # ---- verdicts ----------------------------------------------------------------------------------------------------

    def _check(
        self, place: Place, table: Marks, made: Made, units: IndexArray, values: NDArray[np.uint8] | None
    ) -> None:
        """Against the accesses a table stands for. Raises: Race. ``values``: what is written, if those are writes."""
        marks = table.take(units)
        if not marks.any():
            return
        each = units.size // made.flat.size
        threads = made.threads if each == 1 else made.threads.repeat(each)
        begin = self._begins[-1]
        if not ((marks ^ threads) & LOW).any() and int(marks.min()) >> TIME > begin:
            return  # each thread's own
        entries = self._doubtful(marks, threads, made.how, begin)
        if entries.size and values is not None:
            differ = self._differ(place, units, entries, values)
            same, entries = entries[~differ], entries[differ]
            if same.size:  # reads before a write that this one is not behind are in the log alone
                self._search(place, made, units, same, threads[same], False)
        if not entries.size:
            return
        marks, who = marks[entries], threads[entries]
        single = marks & MANY == 0
        times, past = marks >> TIME, marks & THREAD
        batches = len(self._begins) - np.searchsorted(self._begins, times)
        seen = self._known(who, past, batches) >= times
        entries = entries[~(single & seen)]
        if entries.size:
            self._search(place, made, units, entries, threads[entries], table is place.writes)

    def _doubtful(self, marks: Marks, threads: IndexArray, how: int, begin: int) -> IndexArray:
        """The entries that their marks do not clear at once."""
        self._settle()
        times, past = marks >> TIME, marks & THREAD
        here = times > begin
        blocks = self._block[threads]
        near = here & (self._block[past] == blocks) & (marks & FAR == 0)
        clear = (marks == 0) | (here & ((marks ^ threads) & LOW == 0))
        clear |= near & (times <= self._clocks.floors[WARPS][blocks])
        if how:
            same = (marks >> KIND) & HOW == how
            clear |= same & morally_strong(how, how, near)
        return (~clear).nonzero()[0]

    def _differ(
        self, place: Place, units: IndexArray, entries: IndexArray, values: NDArray[np.uint8]
    ) -> NDArray[np.bool_]:
        """Where a write changes anything."""
        written = np.ascontiguousarray(values).reshape(units.size, -1)[entries]
        first = place.first_byte(0) + (units[entries] << place.shift)
        there = self._heap.bytes[first[:, None] + np.arange(written.shape[1])]
        return (written != there).any(axis=1)

    def _known(self, threads: IndexArray, others: IndexArray, batches: IndexArray) -> NDArray[np.int64]:
        """Up to which time the threads' warps have seen the others', of so many batches ago (0: this one)."""
        clocks = self._clocks
        warps, past = self._warp[threads], self._warp[others]
        near = (batches == 0) & (clocks.block_of[warps] == clocks.block_of[past])
        seen = clocks.seen[clocks.block_of[warps], clocks.column_of[warps], 0, clocks.column_of[past]]
        return np.maximum(np.where(near, seen, 0), self._between.known(warps, past, batches))

    def _search(
        self, place: Place, made: Made, units: IndexArray, entries: IndexArray, threads: IndexArray, writes: bool
    ) -> None:
        """Looks for a race in the log, the latest first, with writes or with reads."""
        wanted = units[entries]
        order = np.argsort(wanted, kind="stable")
        wanted, entries, threads = wanted[order], entries[order], threads[order]
        low, high = place.first_byte(int(wanted[0])), place.first_byte(int(wanted[-1]) + 1)
        for past in reversed(place.log):
            if (past.kind is not Kind.READ) != writes or past.flat.min() >= high or past.flat.max() + past.size <= low:
                continue
            theirs = place.units(past)
            begin, end = np.searchsorted(wanted, theirs), np.searchsorted(wanted, theirs, side="right")
            counts = end - begin
            if not counts.any():
                continue
            of = np.arange(theirs.size).repeat(counts)
            which = np.arange(of.size) - (np.cumsum(counts) - counts).repeat(counts) + begin.repeat(counts)
            mine, other = threads[which], past.threads[of // place.each(past)]
            back = len(self._begins) - 1 - self._batch(past.time)
            batches = np.full(mine.size, back)
            same_block = (back == 0) & (self._block[mine] == self._block[other])
            ordered = self._known(mine, other, batches) >= past.time
            ordered |= (back == 0) & (mine == other)
            ordered |= morally_strong(made.how, past.how, same_block)
            if not ordered.all():
                racing = (~ordered).nonzero()[0]
                found = int(racing[entries[which[racing]].argmin()])
                self._report(place, made, past, int(mine[found]), int(other[found]), int(wanted[which[found]]))
            if writes and not past.how:  # this is ordered behind those before it, or they wrote the same
                left = ~np.isin(wanted, theirs)
                wanted, entries, threads = wanted[left], entries[left], threads[left]
                if not wanted.size:
                    return

    def _report(self, place: Place, made: Made, past: Made, thread: int, other: int, unit: int) -> NoReturn:
        back = len(self._begins) - 1 - self._batch(past.time)
        earlier = other - back * self._block.size
        site = self._instructions[past.site]
        source = f" (source {site.source})" if site.source is not None else ""
        at = "with the same instruction before" if past.site == made.site else f"at PTX line {site.line}{source}"
        text = (
            f"{self._who(thread)} {_VERB[made.kind]} {self._range(place, unit)}, "
            f"which {self._who(earlier)} {_PAST[past.kind]} {at}"
        )
        same_block = back == 0 and self._block[thread] == self._block[other]
        if made.how and past.how:
            one, two = (1 << ((how - 1) >> 1) for how in (made.how, past.how))
            widths = f"strong accesses of {one} and of {two} bytes are not atomic to each other"
            why = widths if one != two else _NARROW
        elif not same_block:
            why = "blocks are ordered by a release and an acquire at .gpu scope"
        elif self._warp[thread] == self._warp[other]:
            why = "a bar.warp.sync or a barrier is missing between"
        else:
            why = "a barrier is missing between"
        self._raise(f"{text}; nothing orders them: {why}", made, thread, place, unit)

    def _raise(self, text: str, made: Made, thread: int, place: Place, unit: int) -> NoReturn:
        block, within = self._coordinates(thread)
        address = self._heap.describe(max(place.first_byte(unit), place.start))
        raise Race(text, Where(self._kernel, self._instructions[made.site], block, within, address))

    def _who(self, thread: int) -> str:
        block, within = self._coordinates(thread)
        return f"thread {within} of block {block}"

    def _range(self, place: Place, unit: int) -> str:
        first = place.first_byte(unit) - place.start
        last = first + (1 << place.shift) - 1
        return f"byte {first} of '{place.name}'" if first == last else f"bytes {first} to {last} of '{place.name}'"

    # ---- synchronisation ---------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Tells the clocks of the last barrier of all warps, which waits until they are asked."""
        if self._met is None:
            return
        clocks, everyone = self._clocks, np.arange(self._clocks.block_of.size)
        now, clocks.now, self._met = clocks.now, self._met, None
        clocks.barrier(everyone, everyone)
        clocks.now = now

    def barrier(self, arriving: IndexArray, leaving: IndexArray) -> None:
        self._shared.barrier(arriving, leaving)
        if arriving.size == leaving.size == self._clocks.block_of.size:
            self._met = self._clocks.now
        else:
            self._settle()
            self._clocks.barrier(arriving, leaving)
        self._between.barrier(arriving, leaving)

    def synchronise(self, warps: IndexArray) -> None:
        self._shared.synchronise(warps)
        self._settle()
        self._clocks.synchronise(warps)

    def release(self, key: Hashable, warps: IndexArray) -> None:
        self._shared.release(key, warps)
        self._settle()
        self._clocks.release(key, warps)
        self._between.release(key, warps)

    def acquire(self, key: Hashable, warps: IndexArray) -> None:
        self._shared.acquire(key, warps)
        self._settle()
        self._clocks.acquire(key, warps)
        self._between.acquire(key, warps)

    def forget(self, key: Hashable) -> None:
        self._shared.forget(key)
        self._clocks.keys.pop(key, None)
        self._between.forget(key)

    def communicate(self, access: AccessBatch, semantics: str = "relaxed") -> None:
        self._shared.communicate(access, semantics)
        self._settle()
        reads, writes = access.kind is not Kind.WRITE, access.kind is not Kind.READ
        warps = self._warp[access.threads]
        if access.space is Space.GLOBAL and access.flat is not None:
            self._between.strong(access.flat, warps, reads, writes, semantics, access.wide)
        elif access.space is Space.SHARED:
            self._flags.communicate(access, warps, semantics)
            if writes:
                self._between.release(SHARED_FLAGS, np.unique(warps))
            if reads:
                self._between.acquire(SHARED_FLAGS, np.unique(warps))

    def fence(self, warps: IndexArray, wide: bool = True) -> None:
        self._shared.fence(warps)
        self._settle()
        self._clocks.fence(warps)
        self._between.fence(warps, wide)

    def fence_async(self, warps: IndexArray) -> None:
        self._shared.fence_async(warps)

    def start(self, warps: IndexArray, together: int = 1, agent: Agent | None = None) -> Agent:
        return self._shared.start(warps, together, agent)

    def finish(self, agent: Agent, key: Hashable = None, warps: IndexArray | None = None) -> None:
        self._shared.finish(agent, key, warps)

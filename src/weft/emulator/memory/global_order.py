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

- The end of a copy releases to the mbarrier that tracks it what the copying warp did until then.

Limits. To synchronisation a warp is one, as for shared memory. Blocks of a cluster are one block to scopes, so that accesses at
.cta scope of two of them do not race. What cp.async, bulk and tensor copies read and write counts as
their thread's when it issues them: that it has to wait for them, and fence.proxy.async, are not checked here. Of reads and strong
writes that many threads made long ago, before `LOGGED` others, only the last is remembered.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import ALL_LANES, WARP, IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind, Space
from weft.emulator.memory.arena import PAGE, Heap
from weft.emulator.memory.between import SHARED_FLAGS, Between
from weft.emulator.memory.clocks import Agent, Clocks
from weft.emulator.memory.flags import Flags
from weft.emulator.memory.global_shadow import (
    FAR,
    HOW,
    KIND,
    MANY,
    THREAD,
    TIME,
    Made,
    Marks,
    Place,
    strength,
)
from weft.emulator.memory.global_verdicts import Coordinates, Verdicts
from weft.emulator.memory.order import NullOrder, Order
from weft.emulator.ptx.syntax import Instruction

LOGGED: Final = 1 << 23
"""Accesses of threads in the logs, at most."""


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
        coordinates: Coordinates,
        kernel: str = "",
        parts: int = 1,
    ) -> None:
        """``shared`` is the detector for shared memory; ``aligned`` says that all accesses are aligned. A cluster counts as a
        block here, with ``parts`` blocks in it."""
        self._shared = shared
        self._aligned = aligned
        self._clocks = clocks = Clocks(blocks, block_threads // WARP, parts)
        self._flags = Flags(clocks)
        if blocks * block_threads > THREAD:
            raise ValueError(f"{blocks * block_threads} resident threads: races are checked for {THREAD} at most")
        self._places = [Place(a) for a in heap.allocations]
        self._owners: IndexArray = np.full(heap.bytes.size // PAGE, -1, np.intp)
        for number, a in enumerate(heap.allocations):
            self._owners[a.start // PAGE : -(-(a.start + a.size) // PAGE)] = number
        self._between = Between(clocks, heap.bytes.size)
        self._verdicts = Verdicts(heap, clocks, self._between, block_threads, instructions, coordinates, kernel)
        self._logged = 0
        heap.on_given_again.append(self._given_again)

    def _given_again(self, start: int, end: int) -> None:
        """What was done to these bytes is over: malloc and free order it before what is done to them now."""
        number = int(self._owners[start // PAGE])
        if number >= 0:
            self._places[number].forget_bytes(start, end)

    @property
    def shared(self) -> Order | None:
        return self._shared.shared

    def reset(self, blocks: int | None = None) -> None:
        """The next batch. Its time goes on: accesses of earlier ones are still there to race with."""
        now = self._clocks.now
        self._shared.reset(blocks)
        self._clocks.reset(blocks)
        self._clocks.now, self._verdicts.met = now, None
        self._flags.reset()
        if self._between.begin():
            self._verdicts.begins.clear()
            self._logged = 0
            for place in self._places:
                place.forget()
        for place in self._places:
            place.begin(now)
        self._verdicts.begins.append(now)

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def observe(self, access: AccessBatch, agent: Agent | None = None) -> None:
        if access.space is Space.SHARED:
            self._shared.observe(access, agent)
            return
        if access.space is not Space.GLOBAL:
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
                self._verdicts.check(place, place.writes, made, place.units(made), None)
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
            self._verdicts.check(place, place.reads, made, units, None)
        if place.writes is None:
            place.writes = place.table()
        else:
            self._verdicts.check(place, place.writes, made, units, values)
        if made.how:
            self._merge(place.writes, made, units)
            self._verdicts.meet(place, made, units)
            return False
        marks = self._marks(made, units.size // made.flat.size)
        place.writes[units] = marks
        if place.reads is not None:
            place.reads[units] = 0
        if (units[1:] > units[:-1]).all():
            return True
        if self._share(place.writes, units, marks).size and values is not None:
            self._verdicts.agree(place, made, units, values)
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
            blocks = self._verdicts.block
            was, now = old & THREAD, new & THREAD
            here = old >> TIME > self._verdicts.begins[self._verdicts.batch(made.time)]
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
            here = self._verdicts.block[got[lost] & THREAD] == self._verdicts.block[new[lost] & THREAD]
            table[units[lost]] |= MANY
            table[units[lost[~here]]] |= FAR
        return lost

    # ---- synchronisation ---------------------------------------------------------------------------------------------

    def barrier(self, arriving: IndexArray, leaving: IndexArray) -> None:
        self._shared.barrier(arriving, leaving)
        if self._clocks.parts == 1 and arriving.size == leaving.size == self._clocks.block_of.size:
            self._verdicts.met = self._clocks.now
            self._between.barrier(arriving, leaving)
            return
        self._verdicts.settle()
        self._clocks.meet(arriving, leaving)
        if self._between.active:
            for came, left in self._clocks.by_part(arriving, leaving):
                self._between.barrier(came, left)

    def synchronise(self, warps: IndexArray, mask: int = ALL_LANES) -> None:
        self._shared.synchronise(warps, mask)
        self._verdicts.settle()
        self._clocks.synchronise(warps, mask)

    def release(self, key: Hashable, warps: IndexArray) -> None:
        self._shared.release(key, warps)
        self._verdicts.settle()
        self._clocks.release(key, warps)
        self._between.release(key, warps)

    def release_fenced(self, key: Hashable, warps: IndexArray) -> None:
        """After a fence that is not of shared memory alone, all that the warps did until now is taken to be released."""
        self._shared.release_fenced(key, warps)
        if self._clocks.fenced:
            self._verdicts.settle()
            self._clocks.release_fenced(key, warps)
            self._between.release(key, warps)

    def acquire(self, key: Hashable, warps: IndexArray) -> None:
        self._shared.acquire(key, warps)
        self._verdicts.settle()
        self._clocks.acquire(key, warps)
        self._between.acquire(key, warps)

    def note(self, key: Hashable, warps: IndexArray) -> None:
        """Between blocks that is taken to be an acquire, as `release_fenced` is to be a release."""
        self._shared.note(key, warps)
        self._verdicts.settle()
        self._clocks.note(key, warps)
        self._between.acquire(key, warps)

    def forget(self, key: Hashable) -> None:
        self._shared.forget(key)
        self._clocks.forget(key)
        self._between.forget(key)

    def communicate(self, access: AccessBatch, semantics: str = "relaxed") -> None:
        self._shared.communicate(access, semantics)
        self._verdicts.settle()
        reads, writes = access.kind is not Kind.WRITE, access.kind is not Kind.READ
        warps = self._verdicts.warp[access.threads]
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
        self._verdicts.settle()
        self._clocks.fence(warps)
        self._between.fence(warps, wide)

    def fence_shared(self, warps: IndexArray) -> None:
        self._shared.fence_shared(warps)

    def fence_async(self, warps: IndexArray) -> None:
        self._shared.fence_async(warps)

    def start(self, warps: IndexArray, together: int = 1, agent: Agent | None = None) -> Agent:
        return self._shared.start(warps, together, agent)

    def finish(self, agent: Agent, key: Hashable = None, warps: IndexArray | None = None) -> None:
        self._shared.finish(agent, key, warps)
        if key is not None and warps is not None:
            self._verdicts.settle()
            self._clocks.release(key, warps)
            self._between.release(key, warps)

"""Verdicts on accesses to global memory: which of those before race with them, and what is said of it.

Tables of marks (`weft.emulator.memory.global_shadow`) clear most accesses at once. For the others the clocks are asked, and where
a mark stands for several accesses, the log is searched from its end. `weft.emulator.memory.global_order` has the rules.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Race, Where
from weft.emulator.machine.active import WARP, IndexArray
from weft.emulator.memory.access_batch import Kind
from weft.emulator.memory.arena import Heap
from weft.emulator.memory.between import Between
from weft.emulator.memory.clocks import WARPS, Clocks
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
)
from weft.emulator.ptx.syntax import Instruction

Index3 = tuple[int, int, int]
Coordinates = Callable[[int], tuple[Index3, Index3]]
"""The block and place of a thread, counted from the first resident one (below 0: of earlier blocks)."""

_NARROW: Final = "the scope .cta does not reach another block"

_VERB: Final = {Kind.READ: "reads", Kind.WRITE: "writes", Kind.ATOMIC: "updates"}
_PAST: Final = {Kind.READ: "read", Kind.WRITE: "wrote", Kind.ATOMIC: "updated"}


class Verdicts:
    """Says whether accesses race, by what the clocks and the log know."""

    def __init__(
        self,
        heap: Heap,
        clocks: Clocks,
        between: Between,
        block_threads: int,
        instructions: Sequence[Instruction],
        coordinates: Coordinates,
        kernel: str,
    ) -> None:
        self._heap = heap
        self._clocks = clocks
        self._between = between
        self._instructions = instructions
        self._coordinates = coordinates
        self._kernel = kernel
        self.met: int | None = None
        """When all warps met at a barrier that the clocks do not know of."""
        threads: IndexArray = np.arange(clocks.block_of.size * WARP, dtype=np.intp)
        self.warp: IndexArray = threads // WARP
        """The warp of each resident thread."""
        self.block: IndexArray = threads // block_threads
        self.begins: list[int] = []
        """When each batch of blocks began."""

    def batch(self, time: int) -> int:
        """The batch of blocks of an access."""
        return bisect_left(self.begins, time) - 1

    def settle(self) -> None:
        """Tells the clocks of the last barrier of all warps, which waits until they are asked."""
        if self.met is None:
            return
        clocks, everyone = self._clocks, np.arange(self._clocks.block_of.size)
        now, clocks.now, self.met = clocks.now, self.met, None
        clocks.barrier(everyone, everyone)
        clocks.now = now

    def meet(self, place: Place, made: Made, units: IndexArray) -> None:
        """Strong writes of one instruction whose scope is the block: those of two blocks to one unit race."""
        if (made.how - 1) & 1 or self._clocks.blocks == 1:
            return
        threads = made.threads.repeat(place.each(made))
        order = np.argsort(units, kind="stable")
        one, other = order[:-1], order[1:]
        blocks = self.block[threads]
        found = ((units[one] == units[other]) & (blocks[one] != blocks[other])).nonzero()[0]
        if found.size:
            unit, first, second = int(units[one[found[0]]]), int(threads[one[found[0]]]), int(threads[other[found[0]]])
            verb = {Kind.WRITE: "write", Kind.ATOMIC: "update"}[made.kind]
            text = f"{self._who(first)} and {self._who(second)} {verb} {self._range(place, unit)} in one instruction"
            self._raise(f"{text}; nothing orders them: {_NARROW}", made, second, place, unit)

    def agree(self, place: Place, made: Made, units: IndexArray, values: NDArray[np.uint8]) -> None:
        """Several threads' writes to one unit in one instruction: the values must agree. Raises: Race."""
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

    def check(
        self, place: Place, table: Marks, made: Made, units: IndexArray, values: NDArray[np.uint8] | None
    ) -> None:
        """Against the accesses a table stands for. Raises: Race. ``values``: what is written, if those are writes."""
        marks = table.take(units)
        if not marks.any():
            return
        each = units.size // made.flat.size
        threads = made.threads if each == 1 else made.threads.repeat(each)
        begin = self.begins[-1]
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
        batches = len(self.begins) - np.searchsorted(self.begins, times)
        seen = self._known(who, past, batches) >= times
        entries = entries[~(single & seen)]
        if entries.size:
            self._search(place, made, units, entries, threads[entries], table is place.writes)

    def _doubtful(self, marks: Marks, threads: IndexArray, how: int, begin: int) -> IndexArray:
        """The entries that their marks do not clear at once."""
        self.settle()
        times, past = marks >> TIME, marks & THREAD
        here = times > begin
        blocks = self.block[threads]
        near = here & (self.block[past] == blocks) & (marks & FAR == 0)
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
        warps, past = self.warp[threads], self.warp[others]
        near = (batches == 0) & (clocks.block_of[warps] == clocks.block_of[past])
        seen = clocks.seen[clocks.block_of[warps], clocks.column_of[warps], 0, clocks.column_of[past]]
        seen = np.maximum(seen, clocks.lanes_seen(threads, others))
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
            back = len(self.begins) - 1 - self.batch(past.time)
            batches = np.full(mine.size, back)
            same_block = (back == 0) & (self.block[mine] == self.block[other])
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
        back = len(self.begins) - 1 - self.batch(past.time)
        earlier = other - back * self.block.size
        site = self._instructions[past.site]
        source = f" (source {site.source})" if site.source is not None else ""
        at = "with the same instruction before" if past.site == made.site else f"at PTX line {site.line}{source}"
        text = (
            f"{self._who(thread)} {_VERB[made.kind]} {self._range(place, unit)}, "
            f"which {self._who(earlier)} {_PAST[past.kind]} {at}"
        )
        same_block = back == 0 and self.block[thread] == self.block[other]
        if made.how and past.how:
            one, two = (1 << ((how - 1) >> 1) for how in (made.how, past.how))
            widths = f"strong accesses of {one} and of {two} bytes are not atomic to each other"
            why = widths if one != two else _NARROW
        elif not same_block:
            why = "blocks are ordered by a release and an acquire at .gpu scope"
        elif self.warp[thread] == self.warp[other]:
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

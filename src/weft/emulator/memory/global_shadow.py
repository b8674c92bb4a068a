"""The last accesses to each place of an allocation in global memory, and a log of all of them.

Most accesses need no more than a look at a table. A *unit* is as many bytes as the smallest access to the allocation so far, at
most 16; tables are refined when a smaller one comes. Of each unit a *mark* says who accessed it last, in one number:

    bit 0 .. 19     the thread
    bit 20          `MANY`: other threads did, too, and nothing orders them by what the table knows
    bit 21          `FAR`: some of these are of other blocks
    bit 22 .. 26    how: 0 for weak accesses, or a mixture; else the one kind of strong access (`strength`)
    bit 32 .. 62    when

A weak write that passed its check comes after all accesses before it, so it starts the unit's marks anew. Whatever races with
those races with it. Strong writes do not race with each other and need not be ordered, so they add to the mark, as reads do.

Where a mark does not decide, the log does: it has the accesses themselves.

Marks are not made before they are needed. Reads stay in the log alone until the first write to their allocation, which most
inputs never see. Writes of an allocation that was never read, each to units of its own, leave a byte for each unit. In a loop,
threads may read and write what is theirs: behind a checked write such accesses are a *run*, which stays in the log until others
come.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import IndexArray
from weft.emulator.memory.access_batch import AccessBatch, Kind
from weft.emulator.memory.arena import PAGE, Allocation

TIME: Final = 32
THREAD: Final = (1 << 20) - 1
MANY: Final = 1 << 20
FAR: Final = 1 << 21
KIND: Final = 22
LOW: Final = (1 << 22) - 1
"""Of a mark: who."""

HOW: Final = 31
"""Of a mark, ``KIND`` bits on: how."""

WIDEST: Final = 4
"""Units are of 2**WIDEST bytes at most."""

ALIKE: Final = 4
"""The latest accesses in a log that a new one may repeat."""

Marks = NDArray[np.int64]


def strength(access: AccessBatch) -> int:
    """How strong accesses are told apart, as a number above 0: by the bytes of an element, and whether the scope is wider than
    the block. Those of equal strength do not race, unless the scope is the block and they are of two."""
    if not (access.strong or access.kind is Kind.ATOMIC):
        return 0
    element = access.size if access.element is None else access.element
    return 1 + 2 * min(element.bit_length() - 1, WIDEST) + access.wide


def morally_strong(one: int, other: int, same_block: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether two accesses of these strengths are morally strong relative to each other (PTX ISA, moral strength): both strong,
    of the same bytes, each in the other's scope."""
    if not one or not other or (one - 1) >> 1 != (other - 1) >> 1:
        return np.zeros_like(same_block)
    return np.ones_like(same_block) if (one - 1) & (other - 1) & 1 else same_block


@dataclass
class Made:
    """An access of some threads in the log: ``flat`` (N,) are first bytes in the arena."""

    time: int
    site: int
    kind: Kind
    threads: IndexArray
    flat: IndexArray
    size: int
    how: int

    def alike(self, other: Made) -> bool:
        """Whether the same threads accessed the same places."""
        return (
            self.size == other.size
            and self.flat.size == other.flat.size
            and self.flat[0] == other.flat[0]
            and np.array_equal(self.flat, other.flat)
            and (self.threads is other.threads or np.array_equal(self.threads, other.threads))
        )


class Place:
    """An allocation's tables and log."""

    def __init__(self, allocation: Allocation) -> None:
        self.name = allocation.name
        self.start = allocation.start
        self._origin = allocation.start // PAGE * PAGE
        self._bytes = -(-(allocation.start + allocation.size - self._origin) // PAGE) * PAGE
        self.shift = WIDEST
        self.writes: Marks | None = None
        self.reads: Marks | None = None
        self.touched: NDArray[np.uint8] | None = None
        """Which units have been written, while there are no tables."""
        self.log: list[Made] = []
        self.run: Made | None = None
        """The write with which a run began."""
        self._begin = 0
        """When this batch of blocks began."""
        self._entered = 0
        """How many of the log are in the tables."""

    def forget(self) -> None:
        """Nothing was accessed."""
        self.writes, self.reads, self.touched, self.run, self._entered = None, None, None, None, 0
        self.log.clear()

    def forget_bytes(self, start: int, end: int) -> None:
        """Nothing accessed these bytes of the arena, which are whole pages."""
        units = slice((start - self._origin) >> self.shift, (end - self._origin) >> self.shift)
        for table in (self.writes, self.reads, self.touched):
            if table is not None:
                table[units] = 0
        kept: list[Made] = []
        entered = 0
        for number, made in enumerate(self.log):
            elsewhere = (made.flat < start) | (made.flat >= end)
            if elsewhere.all():
                kept.append(made)
            elif elsewhere.any():
                kept.append(replace(made, threads=made.threads[elsewhere], flat=made.flat[elsewhere]))
            entered += number < self._entered and bool(elsewhere.any())
        self.log[:], self._entered, self.run = kept, entered, None

    def begin(self, now: int) -> None:
        """The next batch of blocks: its threads are others, and the log keeps what those before did."""
        self.run, self._begin = None, now

    # ---- units -------------------------------------------------------------------------------------------------------

    def refine(self, made: Made, alignment: int) -> None:
        """Units so small that the access is of whole ones."""
        most = made.size | alignment
        shift = min((most & -most).bit_length() - 1, WIDEST)
        if shift >= self.shift:
            return
        ratio = 1 << (self.shift - shift)
        self.shift = shift
        self.writes = None if self.writes is None else self.writes.repeat(ratio)
        self.reads = None if self.reads is None else self.reads.repeat(ratio)
        self.touched = None if self.touched is None else self.touched.repeat(ratio)

    def each(self, made: Made) -> int:
        """Units of an access of one thread."""
        return max(made.size >> self.shift, 1)

    def units(self, made: Made) -> IndexArray:
        """The units accessed, `each` of every thread."""
        first = made.flat >> self.shift
        first -= self._origin >> self.shift
        each = self.each(made)
        return first if each == 1 else (first[:, None] + np.arange(each)).reshape(-1)

    def first_byte(self, unit: int) -> int:
        """Where in the arena a unit begins."""
        return (unit << self.shift) + self._origin

    def table(self) -> Marks:
        """An empty table."""
        return np.zeros(self._bytes >> self.shift, np.int64)

    def touch(self, units: IndexArray) -> bool:
        """Takes note of weak writes to these units, if that is all there is to do: no access is in the tables, none was a read,
        and no unit is written a second time."""
        if self.writes is not None or (self.touched is None and self.log):
            return False
        if not (units[1:] > units[:-1]).all():
            return False
        if self.touched is None:
            self.touched = np.zeros(self._bytes >> self.shift, np.uint8)
        elif self.touched.take(units).any():
            return False
        self.touched[units] = 1
        return True

    # ---- the log -----------------------------------------------------------------------------------------------------

    def note(self, made: Made) -> int:
        """Adds an access to the log; by how many accesses of threads it grows."""
        for back, other in enumerate(self.log[: -ALIKE - 1 : -1], 1):
            place = len(self.log) - back
            in_run = self.run is not None and place >= self._entered
            if other.site == made.site and other.time > self._begin and (in_run or made.alike(other)):
                if place < self._entered:
                    self._entered -= 1
                del self.log[-back]
                self.log.append(made)
                return 0
        self.log.append(made)
        return made.flat.size

    def shorten(self) -> int:
        """Drops the older half of the log, whose reads must be in the table; how many accesses of threads that are."""
        half = len(self.log) // 2
        dropped = sum(made.flat.size for made in self.log[:half])
        del self.log[:half]
        self._entered = max(self._entered - half, 0)
        return dropped

    def pending(self) -> list[Made]:
        """Accesses that are not in the tables; they are taken to be from now on. Of writes there is a table then."""
        found = self.log[self._entered :]
        self._entered = len(self.log)
        self.run = None
        if self.touched is not None:
            self.touched, self.writes = None, self.table()
        return found

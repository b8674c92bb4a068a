"""Segments that are rows alone, executed natively one after the other: loops and branches without memory, however lanes part.

The Python scheduler serves groups of threads, one segment of the first group at a time. So does the native one, with the same
rule, which makes the order of everything else the same: it goes on until a segment has to come that is more than rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import Active, Mask
from weft.emulator.machine.program import Program
from weft.emulator.native.arrays import address_of
from weft.emulator.native.code import Native
from weft.emulator.native.rows import Rows
from weft.emulator.native.running import SEGMENT_WORDS, Segment, Work

CHUNK: Final = 1 << 21
"""Instructions of warps between two looks at the world: an interrupt, a budget."""


class Region:
    """The segments of a launch, numbered in the scheduler's order."""

    def __init__(
        self, program: Program, rows: Rows, table: NDArray[np.int64], native: Native, starts: set[int]
    ) -> None:
        """``table`` are the finished rows; a segment begins at each of ``starts``."""
        priority = program.priority
        self.starts: list[int] = sorted(starts, key=priority.__getitem__)
        self.number: dict[int, int] = {pc: number for number, pc in enumerate(self.starts)}
        """The number of the segment that begins at a place."""
        self.branches: dict[int, int] = {}
        """For each segment that ends in a guarded branch: where that is."""
        self.table: NDArray[np.int64] = np.zeros((len(self.starts), SEGMENT_WORDS), np.int64)
        execution = rows.execution
        self._places: NDArray[np.uint32] = np.zeros((len(self.starts), execution.warps), np.uint32)
        self._call = native.call
        self._table = table
        base, size = address_of(table), table.strides[0]
        for number, pc in enumerate(self.starts):
            self._enter(program, rows, number, pc, base, size)
        self._work: NDArray[np.int64] = np.zeros(len(Work), np.int64)
        self._work[Work.SEGMENTS], self._work[Work.COUNT] = address_of(self.table), len(self.starts)
        self._work[Work.PLACES], self._work[Work.WARPS] = address_of(self._places), execution.warps
        self._address = address_of(self._work)
        self.native: list[bool] = self.table[:, Segment.NATIVE].astype(np.bool_).tolist()
        """Whether each segment is executed here."""

    def _enter(self, program: Program, rows: Rows, number: int, pc: int, base: int, size: int) -> None:
        """Fills in a segment, if it is rows, and at most a branch behind them."""
        first = site = pc
        while site in rows.ranges:
            site += 1
            if site in program.leaders:
                break
        count = rows.ranges[site - 1][1] - rows.ranges[first][0] if site > first else 0
        words = self.table[number]
        if site > first:
            words[Segment.ROWS], words[Segment.COUNT] = base + size * rows.ranges[first][0], count
        words[Segment.TARGET] = -1
        if site > first and site in program.leaders:
            words[Segment.FOLLOWING], words[Segment.LENGTH], words[Segment.NATIVE] = self.number[site], site - first, 1
            return
        instruction = program.instructions[site]
        targets = program.targets(site) if instruction.opcode == "bra" else []
        if len(targets) != 1 or instruction.name not in ("bra", "bra.uni"):
            return
        words[Segment.FOLLOWING] = -1
        if instruction.guard is not None:
            place = rows.place(program.function_of[site], instruction.guard.register, 1)
            if place is None:
                return
            words[Segment.GUARD], words[Segment.NEGATED] = place, instruction.guard.negated
            words[Segment.FOLLOWING] = self.number[site + 1]
            self.branches[number] = site
        words[Segment.TARGET], words[Segment.LENGTH] = self.number[targets[0]], site + 1 - first
        words[Segment.NATIVE] = 1

    def run(self, groups: dict[int, Active], pc: int, active: Active, allowed: int) -> int:
        """Executes the segment at ``pc``, whose threads are ``active``, and all that come next; ``groups``, from which they
        have been taken, are then what waits elsewhere. How many steps that were, of so many as are allowed; it may stop early."""
        number, native = self.number, self.native
        limit = len(self.starts)
        given: dict[int, Active] = {number[pc]: active}
        for place in list(groups):
            n = number[place]
            if native[n]:
                given[n] = groups.pop(place)
            else:
                limit = min(limit, n)
        table, places, work = self.table, self._places, self._work
        for n, threads in given.items():
            places[n] = threads.ballots
            table[n, Segment.PRESENT] = 1
        work[Work.LIMIT] = limit
        work[Work.BUDGET], work[Work.STEPS], work[Work.ALLOWED] = CHUNK, 0, allowed
        self._call(2, self._address, 0, 0, 0, 0)
        for n in table[:, Segment.PRESENT].nonzero()[0].tolist():
            bits = places[n].copy()
            places[n] = 0
            table[n, Segment.PRESENT] = 0
            threads = given.get(n)
            if threads is None or not np.array_equal(threads.ballots, bits):
                threads = active if np.array_equal(active.ballots, bits) else _threads(bits)
            groups[self.starts[n]] = (
                threads if (others := groups.get(self.starts[n])) is None else _both(others, threads)
            )
        return int(work[Work.STEPS])


def _threads(bits: NDArray[np.uint32]) -> Active:
    """The threads whose lanes are in the words."""
    mask: Mask = np.unpackbits(bits.view(np.uint8), bitorder="little").view(np.bool_)
    return Active(mask)


def _both(one: Active, other: Active) -> Active:
    return Active(one.mask | other.mask)

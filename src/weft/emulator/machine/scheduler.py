"""The order in which groups of threads run.

Threads at one place in the program are a group, and run together up to the next place where threads may part or meet (a
*segment*). Of several groups the first in `Program.priority` runs, so threads that are behind catch up. Threads that wait
(at a barrier, for a mbarrier) are parked until what they wait for has happened. When no group can run and some are parked,
that is a deadlock.

Spinning. A loop that reads a flag until another thread sets it would run for ever, if the other thread is further on in the
program. So a segment with polling instructions (volatile and acquiring loads, atomics, test_wait, nanosleep) may run a limited
number of times; after that, the groups run in turns. Loops without such instructions cannot depend on another thread. Lanes
that have left such a loop may then be ahead of those that are in it, and not meet them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import BarrierFault, Fault, PTXError
from weft.emulator.machine.active import Active, Mask
from weft.emulator.machine.binding import Binding
from weft.emulator.machine.execution import Execution
from weft.emulator.machine.steps import Steps
from weft.emulator.machine.variable_map import VariableMap
from weft.emulator.native import code
from weft.emulator.native.arrays import address_of
from weft.emulator.native.quick import SharedMemory
from weft.emulator.native.quick_global import GlobalMemory, takes_part
from weft.emulator.native.region import Region
from weft.emulator.native.rows import Rows
from weft.emulator.native.running import Row
from weft.emulator.native.running import Segment as Word
from weft.emulator.ops.registry import Destinations, Step, Transfer, lookup
from weft.emulator.ptx.syntax import Register

PATIENCE: Final = 256
"""Polls of a segment, while others wait, before those who make them are taken to be spinning."""

TURNS: Final = 16
"""Segments that others then execute before they may poll again."""

HOPELESS: Final = 2_000
"""After so many polls all state is looked at; when it is the same `STRIKES` times in a row, nothing will ever change."""

STRIKES: Final = 3

WEAK_POLLS: Final = frozenset({"volatile", "relaxed", "acquire"})
"""Modifiers that make a load one that may be repeated until another thread writes."""


class Segment:
    """Instructions that are executed one after the other by whoever executes the first. A step may be several instructions:
    ``sites`` are where steps begin."""

    def __init__(
        self, first: int, steps: list[Step], sites: list[int], transfer: Transfer | None, following: int
    ) -> None:
        self.first = first
        self.steps = steps
        self.sites = sites
        self.transfer = transfer
        self.following = following
        self.warps = 0
        self.threads = 0
        self.polls = 0
        self.patience = PATIENCE
        self.native = False
        """Whether it is rows alone, and at most a branch."""
        self.range = range(first, following)
        self.length = following - first


class Scheduler:
    """Executes the program from a kernel's start until all threads have ended."""

    def __init__(self, execution: Execution, variable_map: VariableMap, native: bool = True) -> None:
        """``native``: whether what can be may be executed natively."""
        self.execution = execution
        self.variable_map = variable_map
        self.program = execution.program
        self.segments: dict[int, Segment] = {}
        self.guarded: dict[int, list[int]] = {}
        """For each guarded instruction: how many threads its guard let through, in a list of one."""
        self.steps: dict[int, tuple[Step | Transfer, bool, bool]] = {}
        self.sites = variable_map.reached.sites
        self.timed = variable_map.reached.timed
        self.retired: list[Segment] = []
        """Segments from before the native interpreter was there."""
        self.rows: Rows | None = None
        self.region: Region | None = None
        self.row_words: NDArray[np.int64] | None = None
        native = native and not self.timed
        self.native = code.available() if native else None
        self.waiting = code.Patience() if native and self.native is None else None
        if self.native is not None:
            self._have(self.native)
        for site in self.sites:
            if self.rows is None or not self._add_row(site):
                self._bind(site)
        self.start = self.program.start[variable_map.kernel.name]
        self.polls = 0
        self.strikes = 0
        self.seen = b""
        self.taken = Steps(execution, execution.checks.steps)

    # ---- binding ----------------------------------------------------------------------------------------------------

    def _bind(self, site: int) -> None:
        instruction = self.program.instructions[site]
        entry = lookup(instruction.name)
        if entry is None:
            raise PTXError(
                f"the emulator does not know the instruction '{instruction.name}'", instruction.line, instruction.text
            )
        binding = Binding(self.execution, self.variable_map, site)
        bound = entry.binder(binding)
        polls = entry.polls or (instruction.opcode == "ld" and not WEAK_POLLS.isdisjoint(instruction.modifiers))
        if instruction.guard is not None:
            register = Register(instruction.guard.register)
            predicate = binding.predicate(register)
            negated = instruction.guard.negated
            let_through = self.guarded[site] = [0]
            if entry.transfer:
                bound = _guarded_transfer(bound, predicate, negated, let_through, site + 1)  # pyright: ignore[reportArgumentType]
            else:
                bound = _guarded_step(bound, predicate, negated, let_through)  # pyright: ignore[reportArgumentType]
        self.steps[site] = (bound, entry.transfer, polls)

    def _add_row(self, site: int) -> bool:
        assert self.rows is not None
        return self.rows.add(site, self.program.instructions[site], self.program.function_of[site])

    def _have(self, native: code.Native) -> None:
        execution = self.execution
        self.rows = Rows(execution, self.variable_map, native.handlers)
        if execution.shared_order is not None:
            execution.quick = SharedMemory(native, execution, execution.shared_order)
        if takes_part(execution):
            execution.quick_global = GlobalMemory(native, execution)

    def _adopt(self) -> None:
        """Goes on natively, if the interpreter is there now."""
        self.native = code.available()
        if self.native is None:
            if self.waiting is not None and self.waiting.over:
                self.waiting = None
            return
        self.waiting = None
        self._have(self.native)
        for site in self.sites:
            self._add_row(site)
        self.retired += self.segments.values()
        self.segments = {}

    def _make_region(self, native: code.Native) -> Region:
        """The launch's segments, for the native interpreter."""
        assert self.rows is not None
        if self.row_words is None:
            self.row_words = self.rows.finish()
        here = set(self.sites)
        starts = {site for site in self.program.leaders if site in here}
        starts |= {site + 1 for site, (_, transfer, _) in self.steps.items() if transfer and site + 1 in here}
        return Region(self.program, self.rows, self.row_words, native, starts)

    def _segment(self, first: int) -> Segment:
        steps: list[Step] = []
        sites: list[int] = []
        transfer: Transfer | None = None
        site = first
        polls = 0
        leaders = self.program.leaders
        ranges = {} if self.rows is None else self.rows.ranges
        while True:
            sites.append(site)
            if site in ranges:
                begin, end = ranges[site]
                site += 1
                while site not in leaders and site in ranges:
                    end = ranges[site][1]
                    site += 1
                steps.append(self._natively(begin, end))
            else:
                bound, is_transfer, polling = self.steps[site]
                polls += polling
                site += 1
                if is_transfer:
                    transfer = bound  # pyright: ignore[reportAssignmentType]
                    break
                steps.append(bound)  # pyright: ignore[reportArgumentType]
            if site in leaders:
                break
        segment = Segment(first, steps, sites, transfer, site)
        segment.polls = polls
        if self.native is not None:
            if self.region is None:
                self.region = self._make_region(self.native)
            number = self.region.number.get(first)
            segment.native = number is not None and self.region.native[number]
        before = next((old for old in self.retired if old.first == first), None)
        if before is not None:
            segment.patience = before.patience
        return segment

    def _natively(self, begin: int, end: int) -> Step:
        """Rows as a step."""
        assert self.rows is not None and self.native is not None
        if self.row_words is None:
            self.row_words = self.rows.finish()
        call, warps = self.native.call, self.execution.warps
        address, count = address_of(self.row_words) + self.row_words.strides[0] * begin, end - begin

        def run(active: Active) -> None:
            call(1, address, count, active.address, warps, 0)

        return run

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(self, starting: Active) -> None:
        """Runs a batch of blocks to its end."""
        groups: dict[int, Active] = {self.start: starting}
        asleep: dict[int, Active] = {}
        turns = 0
        execution, priority, taken = self.execution, self.program.priority, self.taken
        taken.begin()
        while True:
            if execution.stirred or not groups:
                execution.stirred = False
                self._wake(groups)
            if not groups:
                if not asleep:
                    break
                groups, asleep = asleep, {}
            if self.waiting is not None and self.waiting.ended():
                self._adopt()
            pc = next(iter(groups)) if len(groups) == 1 else min(groups, key=priority.__getitem__)
            active = groups.pop(pc)
            segment = self.segments.get(pc)
            if segment is None:
                segment = self.segments[pc] = self._segment(pc)
            if taken.ended:
                taken.write_down(segment.range, active)
            elif segment.native and not asleep:
                assert self.region is not None
                taken.taken += self.region.run(groups, pc, active, taken.left)
                continue
            taken.taken += segment.length
            destinations = self._execute(segment, active)
            for target, threads in destinations:
                self._join(groups, target, threads)
            if segment.polls and not self.timed:
                self._watch(segment, active)
            if segment.polls and (groups.keys() - {t for t, _ in destinations} or asleep or execution.parked):
                segment.patience -= segment.polls
                if segment.patience < 0:
                    segment.patience = 0
                    for target, _ in destinations:
                        if target in groups:
                            self._join(asleep, target, groups.pop(target))
                    turns = TURNS
                    continue
            if asleep and (turns := turns - 1) == 0:
                for target, threads in asleep.items():
                    self._join(groups, target, threads)
                asleep = {}
        if execution.parked:
            raise self._deadlock()
        for look in execution.endings:
            look()

    def _execute(self, segment: Segment, active: Active) -> Destinations:
        segment.warps += active.warp_count
        segment.threads += active.count
        step: Step | Transfer | None = None
        try:
            if self.timed:
                for step in segment.steps:
                    step(active)
                    self.execution.issued[active.warps] += 1
                self.execution.issued[active.warps] += segment.transfer is not None
            else:
                for step in segment.steps:
                    step(active)
            step = segment.transfer
            if step is None:
                return [(segment.following, active)]
            return step(active)
        except Exception as error:
            place = segment.steps.index(step) if step is not segment.transfer else -1  # pyright: ignore[reportArgumentType]
            instruction = self.program.instructions[segment.sites[place]]
            if isinstance(error, Fault):
                error.at(kernel=self.execution.kernel, instruction=instruction)
            else:
                error.add_note(f"while emulating PTX line {instruction.line}: {instruction.text}")
            raise

    @staticmethod
    def _join(groups: dict[int, Active], pc: int, threads: Active) -> None:
        if (others := groups.get(pc)) is None:
            if threads:
                groups[pc] = threads
        else:
            groups[pc] = Active(others.mask | threads.mask)

    def _wake(self, groups: dict[int, Active]) -> None:
        execution = self.execution
        waiting = execution.parked
        execution.parked = []
        for parked in waiting:
            ready = parked.ready() & parked.active.mask
            if not ready.any():
                execution.parked.append(parked)
                continue
            self._join(groups, parked.pc, Active(ready))
            rest = parked.active.narrow(~ready)
            if rest:
                parked.active = rest
                execution.parked.append(parked)

    def _deadlock(self) -> Fault:
        execution = self.execution
        lines = list(dict.fromkeys(parked.why() for parked in execution.parked))
        first = execution.parked[0]
        message = "threads wait for what will never come:\n    " + "\n    ".join(lines)
        return execution.fault(BarrierFault, message, first.site, int(first.active.index[0]))

    def _watch(self, segment: Segment, active: Active) -> None:
        """Raises once a loop that polls has been seen to leave all registers and all memory as they are."""
        self.polls += segment.polls
        if self.polls < HOPELESS:
            return
        self.polls = 0
        execution = self.execution
        digest = hashlib.blake2b()
        for array in (*execution.registers.values(), *(arena.bytes for arena in execution.memory.arenas.values())):
            digest.update(np.ascontiguousarray(array).data)
        seen = digest.digest()
        self.strikes = self.strikes + 1 if seen == self.seen else 0
        self.seen = seen
        if self.strikes >= STRIKES:
            message = (
                f"{active.count} threads repeat a loop that waits for another thread, and no thread changes anything"
            )
            raise execution.fault(BarrierFault, message, segment.first, int(active.index[0]))

    # ---- counting ---------------------------------------------------------------------------------------------------

    def count(self) -> None:
        """Adds how often each instruction was executed, and by how many threads, to the counters."""
        if self.waiting is not None:
            self.waiting.stop()
        made: dict[int, list[int]] = {}
        for segment in (*self.retired, *self.segments.values()):
            self._count(made, segment.first, segment.following, segment.warps, segment.threads)
        guarded = {site: through[0] for site, through in self.guarded.items()}
        if self.row_words is not None and self.rows is not None:
            for site, (begin, _) in self.rows.ranges.items():
                if self.program.instructions[site].guard is not None:
                    guarded[site] = guarded.get(site, 0) + int(self.row_words[begin, Row.THREADS])
        if self.region is not None:
            for pc, words in zip(self.region.starts, self.region.table.tolist(), strict=True):
                if words[Word.WARPS]:
                    self._count(made, pc, pc + words[Word.LENGTH], words[Word.WARPS], words[Word.THREADS])
            for number, site in self.region.branches.items():
                guarded[site] = guarded.get(site, 0) + int(self.region.table[number, Word.TAKEN])
        for site, (warps, threads) in made.items():
            self.execution.counters.executed(site, warps, guarded.get(site, threads))

    @staticmethod
    def _count(made: dict[int, list[int]], first: int, following: int, warps: int, threads: int) -> None:
        for site in range(first, following):
            counts = made.setdefault(site, [0, 0])
            counts[0] += warps
            counts[1] += threads


def _guarded_step(step: Step, predicate: Callable[[], Mask], negated: bool, let_through: list[int]) -> Step:
    def run(active: Active) -> None:
        values = ~predicate() if negated else predicate()
        chosen = active.narrow(values)
        if chosen.count == active.count:
            chosen = active
        elif not chosen.count:
            return
        let_through[0] += chosen.count
        step(chosen)

    return run


def _guarded_transfer(
    transfer: Transfer, predicate: Callable[[], Mask], negated: bool, let_through: list[int], following: int
) -> Transfer:
    def run(active: Active) -> Destinations:
        values = ~predicate() if negated else predicate()
        chosen = active.narrow(values)
        let_through[0] += chosen.count
        if chosen.count == active.count:
            return transfer(active)
        if not chosen.count:
            return [(following, active)]
        return [*transfer(chosen), (following, active.narrow(~values))]

    return run

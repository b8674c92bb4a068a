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

from weft.emulator.errors import BarrierFault, Fault, PTXError
from weft.emulator.machine.active import Active, Mask
from weft.emulator.machine.binding import Binding
from weft.emulator.machine.execution import Execution
from weft.emulator.machine.special import CLOCKS, CLOCKS_GLOBAL
from weft.emulator.machine.variable_map import VariableMap
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
    """Instructions that are executed one after the other by whoever executes the first."""

    def __init__(self, first: int, steps: list[Step], transfer: Transfer | None, following: int) -> None:
        self.first = first
        self.steps = steps
        self.transfer = transfer
        self.following = following
        self.warps = 0
        self.threads = 0
        self.polls = 0
        self.patience = PATIENCE
        self.length = len(steps) + (transfer is not None)


class Scheduler:
    """Executes the program from a kernel's start until all threads have ended."""

    def __init__(self, execution: Execution, variable_map: VariableMap) -> None:
        self.execution = execution
        self.variable_map = variable_map
        self.program = execution.program
        self.segments: dict[int, Segment] = {}
        self.guarded: dict[int, list[int]] = {}
        """For each guarded instruction: how many threads its guard let through, in a list of one."""
        self.steps: dict[int, tuple[Step | Transfer, bool, bool]] = {}
        self.timed = False
        for function in variable_map.functions:
            first = self.program.start[function.name]
            for site in range(first, first + len(function.instructions) + 1):
                self._bind(site)
        self.start = self.program.start[variable_map.kernel.name]
        self.polls = 0
        self.strikes = 0
        self.seen = b""

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
        self.timed |= any(
            isinstance(o, Register) and (o.name in CLOCKS or o.name in CLOCKS_GLOBAL) for o in instruction.operands
        )
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

    def _segment(self, first: int) -> Segment:
        steps: list[Step] = []
        transfer: Transfer | None = None
        site = first
        polls = 0
        while True:
            bound, is_transfer, polling = self.steps[site]
            polls += polling
            site += 1
            if is_transfer:
                transfer = bound  # pyright: ignore[reportAssignmentType]
                break
            steps.append(bound)  # pyright: ignore[reportArgumentType]
            if site in self.program.leaders:
                break
        segment = Segment(first, steps, transfer, site)
        segment.polls = polls
        return segment

    # ---- running ----------------------------------------------------------------------------------------------------

    def run(self, starting: Active) -> None:
        """Runs a batch of blocks to its end."""
        groups: dict[int, Active] = {self.start: starting}
        asleep: dict[int, Active] = {}
        turns = 0
        execution, priority = self.execution, self.program.priority
        while True:
            if execution.stirred or not groups:
                execution.stirred = False
                self._wake(groups)
            if not groups:
                if not asleep:
                    break
                groups, asleep = asleep, {}
            pc = next(iter(groups)) if len(groups) == 1 else min(groups, key=priority.__getitem__)
            active = groups.pop(pc)
            segment = self.segments.get(pc)
            if segment is None:
                segment = self.segments[pc] = self._segment(pc)
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
            place = segment.steps.index(step) if step is not segment.transfer else len(segment.steps)  # pyright: ignore[reportArgumentType]
            instruction = self.program.instructions[segment.first + place]
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
        counters = self.execution.counters
        for segment in self.segments.values():
            for site in range(segment.first, segment.first + segment.length):
                threads = self.guarded[site][0] if site in self.guarded else segment.threads
                counters.executed(site, segment.warps, threads)


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

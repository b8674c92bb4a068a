"""The planner: the cheapest plan from one distributed layout to another, on any machine.

Every way that does it is a candidate with a lower bound of its price. One search serves all needs and machines: candidates are
taken by their bounds, the best first, and built, until no bound is below the best price.

    what the conversion needs (`needs`)          ways
    nothing                                      no step
    a thread's own registers                     renaming and selecting; memory
    lanes of its warp                            lane exchanges; memory
    other warps                                  memory; halves, of which one stays in its warp
    anything, on a machine with ``shuffle``      two-input shuffles

`ConversionPlan.reason` says what was compared. Planning works on index bits: its time does not depend on the tensor's size.

What this does not do: conversions between blocks (their columns have to be equal), and exchanging lanes before or after memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP, why_not_distributed
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.matrix import Side
from weft.layout.planning.needs import Places, crossing, least_shuffles, needs
from weft.layout.planning.plan import ConversionPlan
from weft.layout.planning.price import EMPTY, Room, clocks, latency, memory_latency, price
from weft.layout.planning.steps import Cost, Parallel, Step, total
from weft.layout.planning.ways import halves, lanes, memory, vectors
from weft.layout.planning.ways.access_pairs import Task
from weft.layout.planning.ways.candidate import Built, Candidate, Kind

BLOCK = "block"
_INFINITE = float("inf")


@dataclass(frozen=True)
class _Question:
    """What is asked: the conversion, the machine, and what the rest of the kernel holds of it."""

    a: Places
    b: Places
    bits: int
    machine: MachineModel
    room: Room
    base: Cost = Cost()
    """What else is done at the same time: of a half that stays, all that is not its own."""

    @property
    def warps(self) -> int:
        return 1 << len(self.a.warp)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Warps, lanes and registers of the source."""
        return self.warps, 1 << len(self.a.lane), 1 << len(self.a.register)

    @property
    def task(self) -> Task:
        """The conversion through memory."""
        left = max(0, self.machine.scratch - self.room.shared)
        local = not crossing(self.a, self.b)
        return Task(Side(*self.a), Side(*self.b), self.bits, self.machine, local, left, self.room)

    def price(self, steps: tuple[Step, ...]) -> float:
        """The clocks of these steps."""
        registers = len(self.a.register), len(self.b.register)
        return price(
            steps, self.machine, self.warps, registers=registers, bits=self.bits, room=self.room, base=self.base
        )

    def pipes(self, cost: Cost) -> float:
        """The clocks of the busiest pipe."""
        return clocks(self.base + cost, self.machine, self.warps)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _registers(question: _Question) -> Candidate:
    step = lanes.rename(question.a, question.b, question.bits)
    how = "chosen by its lane and warp" if step.selects else "renamed"
    paid = question.price((step,))
    built = Built("registers", (step,), paid, f"each thread has what it needs: its registers are {how}")
    return Candidate("registers", paid, (0, 0, step.permutes), lambda _: built)


def _exchanges(question: _Question) -> Candidate:
    a, b, bits, machine = question.a, question.b, question.bits, question.machine
    least = least_shuffles(a, b, bits, machine.shuffle_bits)

    def build(to_beat: float) -> Built | None:
        steps = lanes.within_warps(a, b, bits, machine, question.pipes, machine.latency.shuffle, to_beat)
        if steps is None:
            return None
        cost = total([step.cost for step in steps])
        found = (
            f"{_count(cost.shuffles, 'shuffle')} (the least is {least}) and {_count(cost.permutes, 'permute')} a thread"
        )
        return Built("warp", steps, question.price(steps), f"it stays within warps: {found}")

    return Candidate("warp", question.pipes(Cost(shuffles=least)) + machine.latency.shuffle, (0, least, 0), build)


def _halves(question: _Question) -> Candidate | None:
    a, b, bits, machine = question.a, question.b, question.bits, question.machine
    first, last = a.first_copies, b.first_copies
    split = halves.split(first, last, bits)
    if split is None:
        return None
    before = (*([lanes.rename(a, first, bits)] if a != first else ()), split.deal)
    after = (split.gather, *([lanes.rename(last, b, bits)] if b != last else ()))
    inner = _Question(*halves.relabelled(split.source, split.destination), bits, machine, question.room)
    base = total([step.cost for step in (*before, *after)])
    least = base + memory.least_cost(inner.task)
    # What crosses warps in the half that stays has barriers of its own, and these are waited for in series (`price.latency`).
    series = 2 if crossing(split.source, split.destination) else 1
    bound = question.pipes(least) + series * memory_latency(machine, local=False)

    def build(to_beat: float) -> Built | None:
        # The half that stays is looked at first, beside the least that the other can cost: most often it is too dear already.
        if _best(replace(inner, base=question.base + least), "stays", to_beat) is None:
            return None
        moved = _best(inner, "memory")
        if moved is None:
            return None
        moves = halves.for_partner(moved.steps, split.partner)
        rest = base + total([step.cost for step in moves])
        if question.pipes(rest) + latency(moves, machine) > to_beat:
            return None
        stays = _best(replace(inner, base=question.base + rest), "stays", to_beat)
        if stays is None:
            return None
        staying = halves.above(stays.steps, rest.scratch)
        steps = (*before, Parallel(staying, moves), *after)
        if total([step.cost for step in steps]).scratch > machine.scratch - question.room.shared:
            return None
        reason = f"half of what each thread needs is in its warp ({stays.reason}), half moves through memory"
        return Built("halves", steps, question.price(steps), reason)

    return Candidate("halves", bound, (0, 0, 0), build)


def _candidates(question: _Question, only: str) -> Iterator[Candidate]:
    """All ways; ``only`` those through memory, or those by which a half may stay."""
    need = needs(question.a, question.b)
    if question.machine.lane_primitive == "shuffle":
        yield vectors.candidate(question.a, question.b, question.pipes)
        return
    if need == "nothing" and only != "memory":
        built = Built("nothing", (), 0, "no data moves: the layouts are equal")
        yield Candidate("nothing", 0, (0, 0, 0), lambda _: built)
        return
    if only != "memory":
        if need == "registers":
            yield _registers(question)
        elif need == "lanes":
            yield _exchanges(question)
        elif candidate := _halves(question):
            yield candidate
    if only != "stays" and question.machine.scratch:
        task = question.task
        bound = question.pipes(memory.least_cost(task)) + memory_latency(
            question.machine, task.local, memory.least_rounds(task)
        )
        yield Candidate("memory", bound, (0, 0, 0), partial(_through_memory, task))


def _search(candidates: Sequence[Candidate], to_beat: float = _INFINITE) -> list[Built]:
    """What had to be built of the candidates to know the cheapest: by their bounds, without those whose bound is not below
    the best price. Halves come last, since they are searches of their own: most often what is built by then rules them
    out."""
    built: list[Built] = []
    for candidate in sorted(candidates, key=lambda found: (found.kind == "halves", found.bound, found.order)):
        if candidate.bound > to_beat or (built and candidate.bound >= to_beat):
            continue
        made = candidate.build(to_beat)
        if made is not None:
            built.append(made)
            to_beat = min(to_beat, made.price)
    return built


def _cheapest(built: Sequence[Built]) -> Built | None:
    return min(built, key=lambda made: made.rank, default=None)


def _through_memory(task: Task, to_beat: float) -> Built | None:
    return _cheapest(_search(list(memory.candidates(task)), to_beat))


def _best(question: _Question, only: str = "", to_beat: float = _INFINITE) -> Built | None:
    """The cheapest way of those asked for, if it is no dearer than ``to_beat``."""
    candidates = list(_candidates(question, only))
    built = _search(candidates, to_beat)
    best = _cheapest(built)
    if best is None or best.price > to_beat:
        return None
    return replace(best, reason=_compared(best, built, candidates))


def _compared(best: Built, built: list[Built], candidates: list[Candidate]) -> str:
    """Why the best one, with the prices of the others."""
    if len(candidates) < 2 or not best.price:
        return best.reason
    others: list[str] = []
    words = {"warp": "shuffles", "memory": "memory", "registers": "registers", "halves": "half by half"}
    for candidate in candidates:
        if candidate.kind == best.kind:
            continue
        made = next((other for other in built if other.kind == candidate.kind), None)
        said = f"{made.price:.0f}" if made else f"at least {max(candidate.bound, 0):.0f}"
        others.append(f"{words[candidate.kind]} {said}")
    return f"{best.reason}; {best.price:.0f} clocks, {', '.join(others)}"


def _lower_bound(question: _Question, kind: Kind) -> Cost:
    """What no plan does better in: what crosses warps, and the shuffles of a plan by shuffles."""
    if kind == "warp" and question.machine.lane_primitive == "shfl":
        return Cost(shuffles=least_shuffles(question.a, question.b, question.bits, question.machine.shuffle_bits))
    return memory.least_moved(question.task) if kind in ("memory", "halves") else Cost()


@lru_cache(maxsize=4096)
def plan_conversion(
    source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel, room: Room = EMPTY
) -> ConversionPlan:
    """The cheapest plan that takes a tensor of elements of ``bits`` from one distributed layout to another.

    The layouts' input dimensions are register, lane, warp and block (those missing have size 1), with equally many lanes, warps
    and blocks and copies anywhere; ``room`` is what the rest of the kernel holds. `ValueError` says what else was found, or that
    no plan has enough scratch. Plans are kept.
    """
    _check("plan_conversion", source, destination, bits, machine, 64)
    # Every block does the same with its own part of the tensor.
    places = halves.relabelled(Places.of(source), Places.of(destination))
    question = _Question(*places, bits, machine, room)
    best = _best(question)
    if best is None:
        left = question.task.scratch
        raise ValueError(
            f"plan_conversion: {machine.name} has {left} bytes of scratch left, "
            f"expected at least {memory.least_scratch(question.task)}"
        )
    return ConversionPlan(
        best.kind, best.steps, _lower_bound(question, best.kind), best.reason, best.price, question.shape
    )


def plan_memory(
    source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel, room: Room = EMPTY
) -> ConversionPlan:
    """The cheapest plan in which everything goes through shared memory; see `plan_conversion`."""
    _check("plan_memory", source, destination, bits, machine, 8 * machine.widest)
    places = halves.relabelled(Places.of(source), Places.of(destination))
    question = _Question(*places, bits, machine, room)
    task = question.task
    best = _through_memory(task, _INFINITE)
    if best is None:
        least = memory.least_scratch(task)
        raise ValueError(
            f"plan_memory: {machine.name} has {task.scratch} bytes of scratch left, expected at least {least}"
        )
    return ConversionPlan("memory", best.steps, memory.least_moved(task), best.reason, best.price, question.shape)


def _check_layout(who: str, role: str, layout: LinearLayout, machine: MachineModel) -> None:
    known = (REGISTER, LANE, WARP, BLOCK)
    if unknown := [dim for dim in layout.in_dims if dim not in known]:
        raise ValueError(
            f"{who}: the {role} layout has input dimension {unknown[0]}, expected register, lane, warp or block"
        )
    if reason := why_not_distributed(layout):
        raise ValueError(f"{who}: the {role} layout is not distributed: {reason}")
    lane_count = layout.in_size(LANE) if LANE in layout.in_dims else 1
    if lane_count != machine.lanes:
        raise ValueError(f"{who}: the {role} layout has {lane_count} lanes, {machine.name} has {machine.lanes}")


def _check(
    who: str, source: LinearLayout, destination: LinearLayout, bits: int, machine: MachineModel, most: int
) -> None:
    if log2_exact(bits) is None or bits > most:
        raise ValueError(f"{who}: bits is {bits}, expected a power of two from 1 to {most}")
    for role, layout in (("source", source), ("destination", destination)):
        _check_layout(who, role, layout, machine)
    if source.outputs != destination.outputs:
        raise ValueError(
            f"{who}: the layouts are of different tensors: the source is {source}, the destination {destination}"
        )
    for dim in (WARP, BLOCK):
        before, after = (layout.in_size(dim) if dim in layout.in_dims else 1 for layout in (source, destination))
        if before != after:
            raise ValueError(f"{who}: the source has {before} {dim}s, the destination {after}")
        if before > 1 and machine.lane_primitive == "shuffle":
            raise ValueError(f"{who}: the layouts have {before} {dim}s, {machine.name} has one")
    before, after = (layout.columns(BLOCK) if BLOCK in layout.in_dims else () for layout in (source, destination))
    if before != after:
        bit = next(bit for bit in range(len(before)) if before[bit] != after[bit])
        raise ValueError(
            f"{who}: basis {bit} of block is {source.unflatten(before[bit])} in the source and "
            f"{destination.unflatten(after[bit])} in the destination, expected equal: no data moves between blocks"
        )

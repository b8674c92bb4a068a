"""A conversion as the states between its steps: what each register of each lane holds, computed by executing the plan on labels.

A label is an element's row-major position. The last state is compared with the destination layout: a wrong plan raises an error
instead of being drawn. A step of a few shuffle rounds is taken apart into them, as the paper's figure 3 does: as moves of one
stage where there is little to move, else as stages that fill the registers step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

from weft.layout import ConversionPlan, LinearLayout
from weft.layout.planning.check import Threads, cells_of, execute
from weft.layout.planning.scratch_memory import Memory
from weft.layout.planning.steps import Cost, LaneExchange, Move, Step
from weft.layout.planning.vectors import Shuffles
from weft.report.layouts.held import MOST_PLACES, all_sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDS: Final = 4
"""Up to this many rounds are shown apart."""
FEW: Final = 32
"""Up to this many cells, moves are shown one by one."""

State = tuple[tuple[tuple[int, ...], ...], ...]
"""[warp][lane][register]: the element there, -1 for none yet."""
Cell = tuple[int, int, int]
"""(warp, lane, register)."""


@dataclass(frozen=True)
class Stage:
    """What all threads hold, and what was done to get there, in lines."""

    done: tuple[str, ...]
    state: State
    moves: tuple[tuple[tuple[Cell, Cell], ...], ...] = ()
    """For each round, from which cell of the stage before to which of this one; none where there are too many."""


def stages(source: LinearLayout, destination: LinearLayout, plan: ConversionPlan) -> tuple[Stage, ...]:
    """The source's state and that after each step. `ValueError` for layouts too large to draw, `RuntimeError` where the plan does
    not arrive at the destination."""
    for layout in (source, destination):
        if len(layout.all_columns) > MOST_PLACES.bit_length() - 1:
            raise ValueError(f"a picture of {1 << len(layout.all_columns)} registers; expected at most {MOST_PLACES}")
    if source.in_dims and "block" in source.in_dims and source.in_bits("block"):
        raise ValueError(
            f"a picture of {source.in_size('block')} blocks, expected one: each converts its own part alike"
        )
    begin = initial(source)
    found = [Stage(("source",), begin)]
    for stage in _steps(plan.steps, begin) if plan.kind != "nothing" else ():
        found.append(stage if stage.moves else replace(stage, moves=_moved(found[-1].state, stage.state)))
    if len(found) == 1:
        found.append(Stage(("nothing moves",), begin, _moved(begin, begin)))
    if found[-1].state != initial(destination):
        raise RuntimeError(f"the plan from {source} to {destination} arrives elsewhere: {plan}")
    return tuple(found)


def initial(layout: LinearLayout) -> State:
    """What each register of each lane of each warp holds under a layout."""
    registers, lanes, warps = (
        all_sums(layout.columns(dim) if dim in layout.in_dims else ()) for dim in ("register", "lane", "warp")
    )
    return tuple(tuple(tuple(warp ^ lane ^ register for register in registers) for lane in lanes) for warp in warps)


def _frozen(state: NDArray[Any]) -> State:
    return tuple(tuple(tuple(int(x) for x in lane) for lane in warp) for warp in state.tolist())


def _steps(steps: Sequence[Step], begin: State) -> Iterator[Stage]:
    """The stages of a plan: one after each step that changes registers, with what led to it."""
    import numpy as np

    state = np.array(begin)
    memory = Memory(cells_of(steps), state)
    threads = Threads(state, memory)
    done: list[str] = []
    for number, step in enumerate(steps):
        state = threads.registers
        free = isinstance(step, Move) and not step.permutes
        done += () if free and number + 1 < len(steps) else lines_of(step)
        if isinstance(step, Shuffles):
            yield from _vectors(step, _frozen(state))
            done = []
        execute(step, threads)
        if threads.registers is state or isinstance(step, Shuffles) or (free and number + 1 < len(steps)):
            continue
        if free:
            done = [line for line in done if line != str(step)] or done
        after = threads.registers
        if isinstance(step, LaneExchange) and 1 < 1 << step.round_bits <= _ROUNDS:
            rounds = tuple(_rounds(step, state))
            if after.size <= FEW:
                lines = tuple(line for stage in rounds for line in stage.done)
                yield Stage(lines, _frozen(after), tuple(move for stage in rounds for move in stage.moves))
            else:
                yield from rounds
        else:
            yield Stage(tuple(done), _frozen(after))
        done = []


def _rounds(step: LaneExchange, state: NDArray[Any]) -> Iterator[Stage]:
    """The stages of an exchange, a round each."""
    import numpy as np

    rounds = 1 << step.round_bits
    result = np.full((*state.shape[:2], 1 << step.registers), -1)
    for number in range(rounds):
        word = np.take_along_axis(state, step.offered.at(number), axis=2)
        got = np.take_along_axis(word, step.reads.at(number), axis=1)
        warp, lane = np.nonzero(step.refused.at(number)[:, :, 0] == 0)
        into = step.into.at(number)
        result[warp[:, None], lane[:, None], into[warp, lane]] = got[warp, lane]
        reads = np.broadcast_to(step.reads.at(number), into.shape)
        offered = np.broadcast_to(step.offered.at(number), into.shape)
        moves = tuple(
            ((int(w), int(reads[w, r, s]), int(offered[w, reads[w, r, s], s])), (int(w), int(r), int(into[w, r, s])))
            for w, r in zip(warp, lane, strict=True)
            for s in range(into.shape[2])
        )
        shuffles = any(source[1] != target[1] for source, target in moves)
        what = f"shfl.{step.form}" if shuffles else "own lane, no shuffle"
        packed = f" of {step.word} \N{MULTIPLICATION SIGN} {step.bits} bits" if step.word > 1 and shuffles else ""
        few = moves if result.size <= FEW else ()
        yield Stage((f"round {number + 1} of {rounds}: {what}{packed}",), _frozen(result), (few,))


def _moved(before: State, after: State) -> tuple[tuple[tuple[Cell, Cell], ...], ...]:
    """Where each cell's element comes from, the own lane's copy where there is one."""
    if sum(len(lane) for warp in after for lane in warp) > FEW:
        return ()
    places: dict[int, list[Cell]] = {}
    for w, warp in enumerate(before):
        for t, lane in enumerate(warp):
            for r, element in enumerate(lane):
                places.setdefault(element, []).append((w, t, r))
    found: list[tuple[Cell, Cell]] = []
    for w, warp in enumerate(after):
        for t, lane in enumerate(warp):
            for r, element in enumerate(lane):
                own = [cell for cell in places[element] if cell[:2] == (w, t)]
                found.append(((own or places[element])[0], (w, t, r)))
    return (tuple(found),)


def lines_of(step: Step) -> tuple[str, ...]:
    """A step's parts, a line each."""
    if isinstance(step, Shuffles) and step.levels:
        return tuple(_shuffles(step.groups * level.outputs) for level in step.levels)
    return tuple(str(step).split("; "))


def _shuffles(count: int) -> str:
    return f"{count} shuffle{'s' if count > 1 else ''}"


def _vectors(step: Shuffles, begin: State) -> Iterator[Stage]:
    """The stages of a CPU's plan: the vectors of all groups after each level, then the destination's registers."""
    registers = list(zip(*begin[0], strict=True))
    groups = [[registers[source] for source in step.sources(group)] for group in range(step.groups)]
    for number, level in enumerate(step.levels):
        for at, vectors in enumerate(groups):
            shuffled: list[tuple[int, ...]] = []
            for v in range(level.outputs):
                joined = [label for operand in level.operands(v) for label in vectors[operand]]
                shuffled.append(tuple(joined[index] for index in level.mask(v)))
            groups[at] = shuffled
        text = f"step {number + 1} of {len(step.levels)}: {_shuffles(step.groups * level.outputs)}"
        if number + 1 < len(step.levels):
            yield Stage((text,), (tuple(zip(*(vector for group in groups for vector in group), strict=True)),))
        else:
            yield Stage((text,), _destination(step, groups))
    if not step.levels:
        yield Stage(("registers renamed, no instruction",), _destination(step, groups))


def _destination(step: Shuffles, groups: Sequence[Sequence[tuple[int, ...]]]) -> State:
    result: list[tuple[int, ...]] = [()] * step.destination_registers
    for group, vectors in enumerate(groups):
        for vector, targets in zip(vectors, step.destinations(group), strict=True):
            for target in targets:
                result[target] = vector
    return (tuple(zip(*result, strict=True)),)


def cost_text(cost: Cost) -> str:
    """The counts that are not 0, in words."""
    shown: list[str] = []
    for field in fields(cost):
        count = getattr(cost, field.name)
        if count:
            noun = "bytes of scratch" if field.name == "scratch" else field.name
            shown.append(f"{count} {noun[:-1] if count == 1 else noun}")
    return ", ".join(shown) or "nothing"

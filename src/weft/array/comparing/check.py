"""The porting check: one function, the same inputs, several systems.

`compare` traces the function under each system's semantics, aligns the executions by program point, and computes every
intermediate value. It says at which line the systems first differ, and which later differences only follow from that. Comparing
results alone would not find the line.
"""

from __future__ import annotations

import linecache
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from weft.array.api.fuse import Fused
from weft.array.comparing.alignment import Row, align
from weft.array.comparing.comparison import (
    Cell,
    Comparison,
    Exit,
    Kind,
    Line,
    Literal,
    Operation,
    Stop,
    Total,
    ValueDifference,
    listed,
)
from weft.array.comparing.dataflow import Flow, Outcome, evaluate, flows, nbytes
from weft.array.comparing.disparity import disparity, unlike
from weft.array.comparing.lenient import REFUSALS, fallback
from weft.array.comparing.recording import Call, Event, Recording, is_data, parameters
from weft.array.expression.structure import leaves, rebuild, shape_of
from weft.dtypes import DType, named
from weft.semantics import Constant, Operand, Promotion, Semantics, Type, get
from weft.semantics.alike import exact, same_meaning
from weft.semantics.core import show
from weft.semantics.difference import weak_types
from weft.semantics.explanation import write


def compare(
    function: Callable[..., object],
    inputs: object,
    systems: Sequence[str | Semantics] = ("jax", "dali"),
    *,
    backend: str | None = None,
) -> Comparison:
    """Where ``systems`` differ in what ``function`` computes of ``inputs``: types, values, bytes, line by line.

    ``inputs`` are a tuple or list of arguments, a dict of named ones, or a single argument; each may nest. Arrays (and NumPy's
    scalars) become arrays of the system; Python's numbers stay literals, everything else is passed as it is. The function is
    called once for each system, twice in one that refuses an operation, and must not change its inputs.

    A refused operation does not end the comparison: it is reported, and computed with its operands cast to the type in
    which the first of the other systems computes it. Where that does not help, or the function raises anything else, the
    system stops there.

    ``backend`` computes the values, ``reference`` or ``native``; by default the reference as long as they are few.

    `ValueError` for fewer than two systems, one named twice, an unknown one, or a function that fails in all of them;
    `TypeError` for one that returns no arrays or does not take the inputs, and for inputs that a system has no type for.
    """
    chosen = _systems(systems)
    plain: Callable[..., object] = (
        getattr(function, "__wrapped__", function) if isinstance(function, Fused) else function
    )
    name = str(getattr(function, "__name__", type(function).__name__))
    arguments, named = _arguments(inputs)
    call = Call(plain, name, arguments, named, parameters(plain, arguments, named))
    recordings = [call.record(system, [s for s in chosen if s is not system]) for system in chosen]
    _require_results(name, recordings)
    values = [evaluate(recording, backend) for recording in recordings]
    runs = [_Run(r, v, flows(r.events, v)) for r, v in zip(recordings, values, strict=True)]
    return _assemble(name, runs)


def _systems(names: Sequence[str | Semantics]) -> list[Semantics]:
    given = [names] if isinstance(names, (str, Semantics)) else list(names)
    chosen = [get(name) for name in given]
    if len(chosen) < 2:
        found = chosen[0].name if chosen else "none"
        raise ValueError(f"compare takes two systems or more, found {found}; for example systems=('jax', 'dali')")
    for i, system in enumerate(chosen):
        if system in chosen[:i]:
            raise ValueError(f"compare found {system.name} twice among the systems")
    return chosen


def _arguments(inputs: object) -> tuple[Sequence[object], Mapping[str, object]]:
    if isinstance(inputs, dict):
        return (), cast("dict[str, object]", inputs)
    return (list(cast("Sequence[object]", inputs)) if isinstance(inputs, (tuple, list)) else [inputs]), {}


def _require_results(name: str, recordings: Sequence[Recording]) -> None:
    errors = [recording.error for recording in recordings]
    if all(error is not None for error in errors):
        said = [f"{r.system.name}: {r.error} ({r.location})" for r in recordings]
        raise ValueError(f"{name} fails in every system; {'; '.join(said)}") from errors[0]
    for recording in recordings:
        if recording.error is None and not any(is_data(leaf) for leaf in leaves(recording.result)):
            found = listed(sorted({type(leaf).__name__ for leaf in leaves(recording.result)}) or ["nothing"])
            raise TypeError(f"{name} returned no arrays in {recording.system.name}, found {found}")


@dataclass(frozen=True)
class _Run:
    """An execution with its values."""

    recording: Recording
    values: Sequence[Outcome]
    flows: Sequence[Flow]

    @property
    def name(self) -> str:
        return self.recording.system.name

    def cell(self, index: int) -> Cell:
        """An event as the report has it."""
        event, flow, value = self.recording.events[index], self.flows[index], self.values[index]
        operands = tuple(map(_shown, event.operands))
        failure = str(value) if isinstance(value, Exception) else ""
        if event.node is None:
            return Cell(self.name, operands, refusal=str(event.outcome))
        promotion = event.outcome if isinstance(event.outcome, Promotion) else None
        step = None if promotion is None else fallback(promotion)
        both = "both operands" if len(operands) > 1 else "the operand"
        return Cell(
            self.name,
            operands,
            event.node.dtype,
            event.weak,
            event.node.shape,
            "" if promotion is None else promotion.meaning,
            None if promotion is None else promotion.operands,
            nbytes(event.node),
            flow.converted,
            _literals(event, flow),
            "" if step is None else step.text,
            "" if step is None else f"continued with {both} cast to {step.dtype}, as {step.system} computes",
            failure,
        )


def _shown(operand: Operand) -> str:
    return f"{operand.dtype}{'*' * operand.weak}" if isinstance(operand, Type) else show(operand)


def _literals(event: Event, flow: Flow) -> tuple[Literal, ...]:
    """The event's only number and what it became; more of them cannot be told apart."""
    written = [o for o in event.operands if not isinstance(o, (DType, Type))]
    if len(written) != 1 or len(flow.scalars) != 1:
        return ()
    shown = written[0].value if isinstance(written[0], Constant) else written[0]
    return (Literal(repr(shown), flow.scalars[0]),)


def _assemble(name: str, runs: Sequence[_Run]) -> Comparison:
    rows = align([[event.key for event in run.recording.events] for run in runs])
    ends = [len(run.recording.events) if run.recording.error is not None else None for run in runs]
    reached = [0] * len(runs)
    seen: Counter[object] = Counter()
    done: dict[tuple[int, int], Operation] = {}
    masks: dict[int, NDArray[np.bool_]] = {}
    operations: list[tuple[Event, Operation]] = []
    for row in rows:
        event = next(runs[k].recording.events[i] for k, i in enumerate(row) if i is not None)
        unreached = tuple(
            run.name for k, run in enumerate(runs) if row[k] is None and ends[k] is not None and reached[k] == ends[k]
        )
        operation = _operation(runs, row, event, seen[event.key], unreached, done, masks)
        seen[event.key] += 1
        operations.append((event, operation))
        for k, i in enumerate(row):
            if i is not None:
                reached[k] = i + 1
                done[k, i] = operation
    inner = [(event, operation) for event, operation in operations if event.key[0]]
    return Comparison(
        name,
        tuple(run.name for run in runs),
        tuple(o for event, o in operations if event.key[:2] == ("", 0)),
        _lines(inner),
        tuple(o for event, o in operations if event.key[:2] == ("", -1)),
        tuple(_total(run.name, [o for _, o in inner]) for run in runs),
        tuple(
            Stop(run.name, run.recording.location, str(run.recording.error))
            for run in runs
            if run.recording.error is not None
        ),
        _structures([run.recording for run in runs]),
        _exits([run.recording for run in runs]),
    )


def _operation(
    runs: Sequence[_Run],
    row: Row,
    event: Event,
    occurrence: int,
    unreached: tuple[str, ...],
    done: Mapping[tuple[int, int], Operation],
    masks: dict[int, NDArray[np.bool_]],
) -> Operation:
    """One row of the alignment."""
    here = [(run, i) for run, i in zip(runs, row, strict=True) if i is not None]
    cells = {run.name: run.cell(i) for run, i in here}
    parents = [done[k, p] for k, i in enumerate(row) if i is not None for p in runs[k].flows[i].parents]
    elementwise = all(run.flows[i].elementwise for run, i in here)
    shapes = [cell.shape for cell in cells.values() if cell.dtype is not None]
    values, mask = _values(here, _inherited(parents, masks, shapes) if elementwise else None)
    kinds = _kinds(cells, len(cells) + len(unreached) < len(runs), bool(values))
    before = {kind for kind in _FOLLOW for parent in parents if kind in parent.kinds}
    if any(Kind.CONTROL in parent.kinds for parent in parents):  # they come of different operations
        before |= _FOLLOW
    elif any(v.fresh for v in values):
        before.discard(Kind.VALUE)
    if Kind.DTYPE in before and _part(here):
        before.discard(Kind.DTYPE)
    propagated = tuple(kind for kind in kinds if kind in before)
    op = event.key[2]
    operands = next(iter(cells.values())).operands
    expression = write(op, operands) if operands else op
    operation = Operation(op, expression, occurrence, cells, kinds, propagated, values, unreached)
    if mask is not None:
        masks[id(operation)] = mask
    return operation


_FOLLOW = frozenset({Kind.FAILED, Kind.SHAPE, Kind.DTYPE, Kind.VALUE})
"""What a result may owe to an operand. A refusal or another branch is the place to look at, whatever came before."""


def _part(here: Sequence[tuple[_Run, int]]) -> bool:
    """Whether two systems give other types even to operands of the same types: to those that either of them has here."""
    asked = [(run.recording.system, event) for run, i in here if (event := run.recording.events[i]).node is not None]
    return any(
        one.node is not None
        and other.node is not None
        and one.node.dtype != other.node.dtype
        and not _meets(first, other)
        and not _meets(second, one)
        for k, (first, one) in enumerate(asked)
        for second, other in asked[k + 1 :]
    )


def _meets(system: Semantics, event: Event) -> bool:
    """Whether the system gives the event's type to the event's operands, weak ones as it knows them."""
    if not event.key[0] or event.key[2] == "astype" or event.node is None:
        return True
    weak = bool(weak_types(system))
    operands = [replace(o, weak=o.weak and weak) if isinstance(o, Type) else o for o in event.operands]
    try:
        return system.resolve(event.key[2], *operands).result == event.node.dtype
    except REFUSALS:
        return False


def _inherited(
    parents: Sequence[Operation], masks: Mapping[int, NDArray[np.bool_]], shapes: Sequence[tuple[int, ...]]
) -> list[NDArray[np.bool_]] | None:
    """Where the parents differ; None where an element of the result comes of several of theirs."""
    found = [masks[id(parent)] for parent in parents if id(parent) in masks]
    fits = all(mask.ndim <= len(shape) and _fits(mask.shape, shape) for mask in found for shape in shapes)
    return found if fits else None


def _fits(small: tuple[int, ...], large: tuple[int, ...]) -> bool:
    return all(a in (1, b) for a, b in zip(small[::-1], large[::-1], strict=False))


def _values(
    here: Sequence[tuple[_Run, int]], inherited: Sequence[NDArray[np.bool_]] | None
) -> tuple[tuple[ValueDifference, ...], NDArray[np.bool_] | None]:
    """Each system's values against the first's, and where any differ. ``inherited`` says where the operands did, None if
    elements do not come of elements."""
    known = [(run.name, run.values[i]) for run, i in here]
    arrays = [(name, value) for name, value in known if value is not None and not isinstance(value, Exception)]
    found: list[ValueDifference] = []
    mask: NDArray[np.bool_] | None = None
    for name, value in arrays[1:]:
        first, reference = arrays[0]
        if value.shape != reference.shape:
            continue
        differ = unlike(reference, value)
        mask = differ if mask is None else mask | differ
        new = differ
        for before in inherited or ():
            new = new & ~before
        difference = disparity(reference, value, new if new.any() else None)
        if difference is not None:
            fresh = 0 if inherited is None else int(np.count_nonzero(new))
            found.append(ValueDifference(first, name, difference, fresh))
    return tuple(found), mask


def _kinds(cells: Mapping[str, Cell], missing: bool, values: bool) -> tuple[Kind, ...]:
    known = [cell for cell in cells.values() if cell.dtype is not None]
    facts = {
        Kind.REFUSED: any(cell.refusal for cell in cells.values()),
        Kind.CONTROL: missing,
        Kind.FAILED: any(cell.failure for cell in known),
        Kind.SHAPE: len({cell.shape for cell in known}) > 1,
        Kind.DTYPE: len({cell.dtype for cell in known}) > 1,
        Kind.VALUE: values,
    }
    kinds = [kind for kind, holds in facts.items() if holds]
    if not kinds and not all(_alike(known[0], cell) for cell in known[1:]):
        kinds.append(Kind.MEANING)
    return tuple(kinds)


def _alike(a: Cell, b: Cell) -> bool:
    """Whether two systems compute the same, as far as the meanings' names tell."""
    if a.within is None or b.within is None:
        return True
    if a.meaning.startswith("convert") and a.dtype is not None:  # astype: they differ in what does not fit
        return a.meaning == b.meaning or a.dtype.is_float or exact(named(a.operands[0].rstrip("*")), a.dtype)
    return same_meaning(a.meaning, b.meaning, a.within) and same_meaning(a.meaning, b.meaning, b.within)


def _lines(inner: Sequence[tuple[Event, Operation]]) -> tuple[Line, ...]:
    """The operations by line, the lines in the order in which they were first reached."""
    found: dict[tuple[str, int], list[Operation]] = {}
    for event, operation in inner:
        found.setdefault(event.key[:2], []).append(operation)
    return tuple(
        Line(file, line, linecache.getline(file, line).strip(), tuple(operations))
        for (file, line), operations in found.items()
    )


def _total(system: str, operations: Sequence[Operation]) -> Total:
    cells = [cell for o in operations if (cell := o.cells.get(system)) is not None]
    return Total(system, sum(c.nbytes for c in cells), sum(c.converted for c in cells))


def _exits(recordings: Sequence[Recording]) -> tuple[Exit, ...]:
    """Where values left, each place once, in the order of the first system that came there."""
    found: dict[tuple[str, int, str], list[str]] = {}
    for recording in recordings:
        for left in recording.departures:
            systems = found.setdefault((left.file, left.line, left.way), [])
            if recording.system.name not in systems:
                systems.append(recording.system.name)
    return tuple(
        Exit(way, file, line, linecache.getline(file, line).strip(), tuple(systems))
        for (file, line, way), systems in found.items()
    )


def _structures(recordings: Sequence[Recording]) -> dict[str, str]:
    """How the results nest, where they nest otherwise than the first's; empty where all agree."""
    ended = [r for r in recordings if r.error is None]
    if len({shape_of(r.result) for r in ended}) == 1:
        return {}
    return {r.system.name: _nesting(r.result) for r in ended}


def _nesting(result: Any) -> str:
    return str(rebuild(result, lambda leaf: type(leaf).__name__)).replace("'", "")

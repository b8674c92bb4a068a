"""What a comparison of systems finds: plain data, line by line.

`weft.semantics.compare` makes it; `weft.report.comparison` draws it. An `Operation` is one operation the function did, in
every system: a `Cell` for each, and in which ways (`Kind`) they diverge. A divergence is *propagated* where an operand
diverged in that way before, so that what remains is where a port has to be repaired.

Two kinds are no divergence on the inputs at hand and do not count: another `Kind.MEANING` (floor and truncating division agree on
positive numbers), and a type that is weak in one system only, which shows where it matters, at the next operation.
"""

from __future__ import annotations

import enum
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from weft.array.comparing.disparity import Disparity
from weft.array.expression.tracing import BRANCH, Located
from weft.dtypes import DType
from weft.extensions import extension
from weft.semantics import Number


class Kind(enum.Enum):
    """How an operation diverges between systems, the most consequential first."""

    REFUSED = "refused"
    CONTROL = "control flow"
    FAILED = "failed"
    SHAPE = "shape"
    DTYPE = "dtype"
    VALUE = "value"
    MEANING = "meaning"


class Diverged(AssertionError):
    """The systems do not agree on a function and its inputs."""


@dataclass(frozen=True)
class Literal:
    """A number of the function's text, and what the system made of it."""

    written: str
    became: Number | None


@dataclass(frozen=True)
class Cell:
    """An operation in one system: of which ``operands`` (as written in an expression), the type and ``shape`` of the result,
    the ``meaning`` computed in ``within``.

    ``nbytes`` is the result's size, ``converted`` that of the values converted on the way: operands to the type they meet in,
    an outcome to the type of the result. Fused kernels keep both in registers; a system that computes operation by
    operation does not. A ``refusal`` is the system's reason and advice, ``continued`` how the rest was computed nevertheless;
    a ``failure`` is what the operation raised on these values.
    """

    system: str
    operands: tuple[str, ...] = ()
    dtype: DType | None = None
    weak: bool = False
    shape: tuple[int, ...] = ()
    meaning: str = ""
    within: DType | None = None
    nbytes: int = 0
    converted: int = 0
    literals: tuple[Literal, ...] = ()
    refusal: str = ""
    continued: str = ""
    failure: str = ""

    @property
    def type(self) -> str:
        """The type of the result; a star says that it is weak."""
        return "refused" if self.dtype is None else f"{self.dtype}{'*' * self.weak}"


@dataclass(frozen=True)
class ValueDifference:
    """The values of an operation in the system ``first`` and in ``second``; ``fresh`` elements differ although the operands'
    do not, and then the difference shown is the first of those."""

    first: str
    second: str
    found: Disparity
    fresh: int


@dataclass(frozen=True)
class Operation:
    """One operation of the function, the ``occurrence``-th of its kind on its line (from 0), in all systems.

    ``cells`` has no entry for a system that did not come here; ``unreached`` names those that had stopped before. ``kinds`` are
    the ways in which the systems diverge, ``propagated`` those of them in which an operand diverged before: for values,
    at every element that differs; for types, where operands of one system's types get one type in both. What comes
    of different operations is propagated from those.
    """

    op: str
    expression: str
    occurrence: int
    cells: Mapping[str, Cell]
    kinds: tuple[Kind, ...] = ()
    propagated: tuple[Kind, ...] = ()
    values: tuple[ValueDifference, ...] = ()
    unreached: tuple[str, ...] = ()

    @property
    def diverges(self) -> bool:
        """Whether the systems differ here on these inputs."""
        return any(kind is not Kind.MEANING for kind in self.kinds)

    @property
    def returned(self) -> bool:
        """Whether this is a result of the function, not an operation in it."""
        return self.op.startswith("return")

    @property
    def originates(self) -> bool:
        """Whether they differ in a way in which no operand did."""
        return any(kind not in (*self.propagated, Kind.MEANING) for kind in self.kinds)

    def sentences(self) -> Iterator[tuple[Kind, str]]:
        """Each divergence in words."""
        for kind in self.kinds:
            for sentence in _SENTENCES[kind](self):
                yield kind, f"propagated: {sentence}" if kind in self.propagated else sentence


@dataclass(frozen=True)
class Line(Located):
    """The operations of one line of Python, in the order of their execution. ``source`` is its text, or empty."""

    file: str
    line: int
    source: str
    operations: tuple[Operation, ...]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """All its operations' divergences."""
        return tuple(kind for kind in Kind if any(kind in operation.kinds for operation in self.operations))

    @property
    def diverges(self) -> bool:
        """Whether the systems differ on this line."""
        return any(operation.diverges for operation in self.operations)

    @property
    def originates(self) -> bool:
        """Whether they do of themselves, not only because an operand diverged."""
        return any(operation.originates for operation in self.operations)

    def nbytes(self, system: str) -> int:
        """What its results and conversions take in one system."""
        return sum(c.nbytes + c.converted for o in self.operations if (c := o.cells.get(system)) is not None)


@dataclass(frozen=True)
class Total:
    """A system's bytes: of all results, and of all conversions."""

    system: str
    nbytes: int
    converted: int


@dataclass(frozen=True)
class Stop:
    """Where a system could not go on: the exception and the user's line that raised it."""

    system: str
    location: str
    reason: str


@dataclass(frozen=True)
class Exit(Located):
    """Where the function took values out of ``systems``: which ``way`` (``numpy.asarray``, ``float()``). What it computed of them
    outside follows no system's rules and is not compared. A `branch` only asked whether a value is true, which is compared
    with the value; it denies no agreement."""

    way: str
    file: str
    line: int
    source: str
    systems: tuple[str, ...]

    @property
    def branch(self) -> bool:
        """Whether only a truth was asked."""
        return self.way == BRANCH


@dataclass(frozen=True)
class Comparison:
    """A function under several systems. The first of ``systems`` is the one the others are measured against."""

    function: str
    systems: tuple[str, ...]
    inputs: tuple[Operation, ...]
    lines: tuple[Line, ...]
    outputs: tuple[Operation, ...]
    totals: tuple[Total, ...]
    stops: tuple[Stop, ...] = ()
    structures: Mapping[str, str] = field(default_factory=dict[str, str])
    exits: tuple[Exit, ...] = ()

    @property
    def left(self) -> tuple[Exit, ...]:
        """The exits behind which something may have been computed: all but those that decide a branch."""
        return tuple(e for e in self.exits if not e.branch)

    @property
    def diverges(self) -> bool:
        """Whether the systems differ in an operation, a result, how far they came or what they return."""
        return bool(self.stops or self.structures) or any(o.diverges for o in self.operations)

    @property
    def agree(self) -> bool:
        """Whether types and values are the same in all systems, of every operation and of what is returned, and no value
        `left` them."""
        return not self.diverges and not self.left

    @property
    def exact(self) -> bool:
        """Whether what is returned is the same in all systems, types and values, none refuses an operation on the way, and
        no value `left` them."""
        return (
            not self.stops
            and not self.structures
            and not self.left
            and not any(_matters(o, True, True, 0.0) for o in self.operations)
        )

    @property
    def operations(self) -> tuple[Operation, ...]:
        """Inputs, operations and outputs, in order."""
        return (*self.inputs, *(o for line in self.lines for o in line.operations), *self.outputs)

    def first(self, kind: Kind) -> Line | None:
        """The first line that diverges so of itself."""
        return next((line for line in self.lines if _originates(line, kind)), None)

    def raise_for_divergence(
        self, *, results: bool = False, dtypes: bool = True, rtol: float = 0.0, exits: bool = True
    ) -> None:
        """`Diverged` unless the systems `agree`; with ``results=True``, unless the port is `exact`. ``dtypes=False`` lets other
        types pass as long as the values are the same, ``rtol`` values that differ by no more, relative to the greater of
        the two, ``exits=False`` values that left the systems."""
        asked = [o for o in self.operations if _matters(o, results, dtypes, rtol)]
        if asked or self.stops or self.structures or (exits and self.left):
            raise Diverged(_message(self, asked, self.left if exits else ()))

    def data(self) -> dict[str, Any]:
        """Everything, as JSON takes it; infinities and NaN are strings."""
        return {
            "function": self.function,
            "systems": list(self.systems),
            "agree": self.agree,
            "exact": self.exact,
            "inputs": [_data(o) for o in self.inputs],
            "lines": [
                {
                    "file": line.file,
                    "line": line.line,
                    "source": line.source,
                    "kinds": [kind.value for kind in line.kinds],
                    "bytes": {system: line.nbytes(system) for system in self.systems},
                    "operations": [_data(o) for o in line.operations],
                }
                for line in self.lines
            ],
            "outputs": [_data(o) for o in self.outputs],
            "structures": dict(self.structures),
            "totals": {t.system: {"results": t.nbytes, "conversions": t.converted} for t in self.totals},
            "exits": [
                {"way": e.way, "file": e.file, "line": e.line, "source": e.source, "systems": list(e.systems)}
                for e in self.exits
            ],
            "stops": [{"system": s.system, "location": s.location, "reason": s.reason} for s in self.stops],
        }

    def to_json(self, indent: int | None = 2) -> str:
        """`data` as text."""
        return json.dumps(self.data(), indent=indent)

    def to_html(self) -> str:
        """A page that shows the function line by line; it loads nothing and works without scripts."""
        return extension("comparison.page")(self)

    def __str__(self) -> str:
        return extension("comparison.text")(self)

    def __rich__(self) -> Any:
        return extension("comparison.drawn")(self)


# ---- in words ---------------------------------------------------------------------------------------------------------


def grouped(answers: Iterable[tuple[str, str]]) -> str:
    """(system, answer), systems of one answer together: ``uint8 in jax and numpy, int32 in dali``."""
    groups: dict[str, list[str]] = {}
    for system, answer in answers:
        groups.setdefault(answer, []).append(system)
    return ", ".join(f"{answer} in {listed(systems)}" for answer, systems in groups.items())


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _refused(o: Operation) -> Iterator[str]:
    for cell in o.cells.values():
        if cell.refusal:
            yield f"{cell.system} refuses: {cell.refusal}{f'; {cell.continued}' if cell.continued else ''}"


def _control(o: Operation) -> Iterator[str]:
    yield f"only {listed(list(o.cells))} {'does' if len(o.cells) == 1 else 'do'} this"


def _failed(o: Operation) -> Iterator[str]:
    yield from (f"{cell.system} fails on these values: {cell.failure}" for cell in o.cells.values() if cell.failure)


def _known(o: Operation) -> list[Cell]:
    return [cell for cell in o.cells.values() if cell.dtype is not None]


def _shapes(o: Operation) -> Iterator[str]:
    yield f"shape {grouped((c.system, str(c.shape)) for c in _known(o))}"


def _dtypes(o: Operation) -> Iterator[str]:
    yield grouped((c.system, str(c.dtype)) for c in _known(o))


def _values(o: Operation) -> Iterator[str]:
    for v in o.values:
        d = v.found
        counted = "the element differs" if d.size == 1 else f"{d.count} of {d.size} elements differ"
        counted += f", {v.fresh} of them only from here on" if 0 < v.fresh < d.count else ""
        place = f"first at {list(d.index)}: " if d.index and d.size > 1 else ""
        both = f"{place}{d.first!r} in {v.first}, {d.second!r} in {v.second}"
        yield f"{counted}, {both}{_distance(d)}{_literals(o, v)}"


def _distance(d: Disparity) -> str:
    if math.isnan(d.absolute) or isinstance(d.first, bool):
        return ""
    nans = f", {d.nans} of them NaN on one side" if d.nans else ""
    return f"; by at most {_short(d.absolute)} ({_short(d.relative)} relative){nans}"


def _short(number: float) -> str:
    return str(int(number)) if number.is_integer() and number < 2**53 else f"{number:.3g}"


def _literals(o: Operation, v: ValueDifference) -> str:
    first, second = o.cells[v.first], o.cells[v.second]
    both = zip(first.literals, second.literals, strict=False)
    odd = [(a, b) for a, b in both if a.became != b.became and a.became is not None and b.became is not None]
    return "".join(f"; {a.written} is {a.became!r} in {v.first}, {b.became!r} in {v.second}" for a, b in odd)


def _meanings(o: Operation) -> Iterator[str]:
    yield f"{grouped((c.system, c.meaning) for c in _known(o))}: other inputs may give other values"


_SENTENCES: Final = {
    Kind.REFUSED: _refused,
    Kind.CONTROL: _control,
    Kind.FAILED: _failed,
    Kind.SHAPE: _shapes,
    Kind.DTYPE: _dtypes,
    Kind.VALUE: _values,
    Kind.MEANING: _meanings,
}


def _originates(line: Line, kind: Kind) -> bool:
    return any(kind in o.kinds and kind not in o.propagated for o in line.operations)


def _matters(o: Operation, results: bool, dtypes: bool, rtol: float) -> bool:
    """Whether an operation diverges in a way that `Comparison.raise_for_divergence` was asked about."""
    for kind in o.kinds:
        if kind is Kind.MEANING or (kind is Kind.DTYPE and not dtypes):
            continue
        if results and not o.returned and kind is not Kind.REFUSED:
            continue
        if kind is not Kind.VALUE or any(v.found.nans or v.found.relative > rtol for v in o.values):
            return True
    return False


def _message(found: Comparison, asked: Sequence[Operation], left: Sequence[Exit]) -> str:
    """The first few operations that diverge of themselves, with their lines."""
    said = "diverge" if asked or found.stops or found.structures else "cannot be compared where values left them"
    parts = [f"{found.function}: {listed(found.systems)} {said}"]
    lines = {id(o): line for line in found.lines for o in line.operations}
    own = [o for o in asked if o.originates] or list(asked)
    for o in own[:3]:
        line = lines.get(id(o))
        parts.append(f"  {line.location}: {line.source}" if line else f"  {o.op}")
        parts += [f"    {o.expression}: {s}" for kind, s in o.sentences() if kind is not Kind.MEANING]
    if len(own) > 3:
        parts.append(f"  and {len(own) - 3} more; print the comparison for all of them")
    parts += [f"  {stop.system} stopped at {stop.location}: {stop.reason}" for stop in found.stops]
    parts += [f"  {system} returns {structure}" for system, structure in found.structures.items()]
    parts += [f"  {e.location}: {e.source}\n    values left {listed(e.systems)}: {e.way}" for e in left]
    return "\n".join(parts)


# ---- as JSON ----------------------------------------------------------------------------------------------------------


def _data(o: Operation) -> dict[str, Any]:
    return {
        "op": o.op,
        "expression": o.expression,
        "occurrence": o.occurrence,
        "kinds": [kind.value for kind in o.kinds],
        "propagated": [kind.value for kind in o.propagated],
        "unreached": list(o.unreached),
        "systems": {system: _cell(cell) for system, cell in o.cells.items()},
        "values": [
            {
                "systems": [v.first, v.second],
                "count": v.found.count,
                "fresh": v.fresh,
                "size": v.found.size,
                "index": list(v.found.index),
                "first": _number(v.found.first),
                "second": _number(v.found.second),
                "absolute": _number(v.found.absolute),
                "relative": _number(v.found.relative),
                "nans": v.found.nans,
            }
            for v in o.values
        ],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "operands": list(cell.operands),
        "dtype": None if cell.dtype is None else str(cell.dtype),
        "weak": cell.weak,
        "shape": list(cell.shape),
        "meaning": cell.meaning,
        "within": None if cell.within is None else str(cell.within),
        "bytes": cell.nbytes,
        "converted": cell.converted,
        "literals": {literal.written: _number(literal.became) for literal in cell.literals},
    }
    said = {"refusal": cell.refusal, "continued": cell.continued, "failure": cell.failure}
    return facts | {name: what for name, what in said.items() if what}


def _number(value: Number | None) -> bool | int | float | str | None:
    if isinstance(value, complex) or (isinstance(value, float) and not math.isfinite(value)):
        return str(value)
    return value

"""Every disagreement between two systems.

All operations are asked, on every pair of types that both systems have and with `LITERALS` on either side. Types alone are
not enough for porting: ``//`` of negative integers, comparisons that convert first, and literals that wrap differ where the
types agree. Each case that differs has a `Kind`:

========= ==========================================================================================
refused   one system refuses, the other does not
dtype     the results have different types
weak      the same type, weakly typed in one only
meaning   the same type, but the operation does something else to the values (`weft.semantics.alike`)
operands  the same type and operation, but the operands are converted to other types or numbers first
========= ==========================================================================================

A case has the first kind that applies. `Diff.differences` is the list; `Diff.groups` collects operations and operands that
differ in the same way, for display. Ternary operations, casts, and two literals with each other are not asked.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from typing import Any, Final

import numpy as np

from weft import dtypes, semantics
from weft.dtypes import DType
from weft.extensions import extension
from weft.semantics import ops
from weft.semantics.alike import exact, same_meaning
from weft.semantics.compact import compact
from weft.semantics.core import Constant, Number, Operand, Promotion, PromotionError, Semantics, Type, operand
from weft.semantics.explanation import Outcome, expression, outcome_data, symbol

LITERALS: Final[tuple[Number, ...]] = (True, 3, -1, 300, 2**31, 2**40, 2.5, 0.1, 1e300, 2.5j)
"""The literals that are asked about: one of each kind; integers that leave uint8, unsigned types, int32, uint32; floats that are
exact, rounded, beyond float32. The complex one only where both systems have complex types."""

OPS: Final[tuple[str, ...]] = (
    *(*ops.BINARY, *ops.LOGICAL, *ops.FAMILY_BINARY),
    *(*ops.UNARY, *ops.FAMILY_UNARY, *ops.REDUCTIONS, *ops.FAMILY_REDUCTIONS),
)
"""The operations that are asked about."""

_VALUES_ONLY: Final = frozenset({*ops.COMPARISONS, "argmax", "argmin", "any", "all"})
"""Operations whose result depends on the numbers alone: types that hold them exactly are as good as each other."""


class Kind(enum.StrEnum):
    """In which way two systems disagree on a case; in the order in which they are looked for."""

    REFUSED = "refused"
    DTYPE = "dtype"
    WEAK = "weak"
    MEANING = "meaning"
    OPERANDS = "operands"


@dataclass(frozen=True)
class Difference:
    """One case in which the systems disagree: ``a`` and ``b`` are what they answer, ``numbers`` what the literal becomes in each
    (for `Kind.OPERANDS`, where there is a literal)."""

    kind: Kind
    op: str
    operands: tuple[Operand, ...]
    a: Outcome
    b: Outcome
    numbers: tuple[Number, Number] | None = None

    def __str__(self) -> str:
        a, b = self.brief()
        return f"{expression(self.op, self.operands)}: {a} | {b}"

    def brief(self) -> tuple[str, str]:
        """What of each side's answer makes the difference, in a word or two."""
        a, b = self._brief(self.a), self._brief(self.b)
        if a != b or self.numbers is None:
            return a, b
        literal = next(o for o in self.operands if not isinstance(o, (DType, Type, Constant)))
        texts = ["literal kept" if number == literal else "literal changed" for number in self.numbers]
        if texts[0] == texts[1]:
            texts = [f"literal is {number!r}" for number in self.numbers]
        return texts[0], texts[1]

    def _brief(self, found: Outcome) -> str:
        if isinstance(found, PromotionError):
            return "refused"
        match self.kind:
            case Kind.REFUSED:
                return "accepted"
            case Kind.DTYPE:
                return str(found.type)
            case Kind.WEAK:
                return "weak" if found.weak else "not weak"
            case Kind.MEANING:
                return found.meaning
            case Kind.OPERANDS:
                return "exact" if found.keeps else f"in {found.operands}"


@dataclass(frozen=True)
class Group:
    """Operations that differ in the same way on the same operands: ``a`` and ``b`` in brief, ``operands`` in compact lines."""

    kind: Kind
    ops: tuple[str, ...]
    operands: tuple[str, ...]
    a: str
    b: str
    cases: int


@dataclass(frozen=True, repr=False)
class Diff:
    """The disagreements of ``a`` and ``b`` over ``cases`` cases; ``str`` has the groups as tables.

    ``common`` are the types asked about, ``only_a`` and ``only_b`` those one side has; likewise ``ops``, ``ops_only_a``,
    ``ops_only_b``.
    """

    a: Semantics
    b: Semantics
    ops: tuple[str, ...]
    ops_only_a: tuple[str, ...]
    ops_only_b: tuple[str, ...]
    common: tuple[Operand, ...]
    only_a: tuple[DType, ...]
    only_b: tuple[DType, ...]
    cases: int
    differences: tuple[Difference, ...]

    @cached_property
    def counts(self) -> dict[Kind, int]:
        """How many differences there are of each kind."""
        found = Counter(d.kind for d in self.differences)
        return {kind: found[kind] for kind in Kind}

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The differences, put together: by kind, then by operation."""
        found: dict[tuple[Kind, str, str, str], dict[tuple[Operand, ...], None]] = {}
        for d in self.differences:
            key = (d.kind, *d.brief(), d.op)
            found.setdefault(key, {})[d.operands] = None
        merged: dict[tuple[Kind, str, str, tuple[tuple[Operand, ...], ...]], list[str]] = {}
        for (kind, a, b, op), operands in found.items():
            merged.setdefault((kind, a, b, _ordered(operands)), []).append(op)
        lines = [
            Group(kind, tuple(group), compact(operands, self.asked), a, b, len(operands) * len(group))
            for (kind, a, b, operands), group in merged.items()
        ]
        kinds = list(Kind)
        return tuple(sorted(lines, key=lambda g: (kinds.index(g.kind), OPS.index(g.ops[0]), -g.cases)))

    @cached_property
    def agreeing_ops(self) -> tuple[str, ...]:
        """The operations without a difference."""
        differ = {d.op for d in self.differences}
        return tuple(op for op in self.ops if op not in differ)

    @cached_property
    def agreeing_pairs(self) -> tuple[str, ...]:
        """The pairs of types (in compact lines) on which no binary operation differs."""
        differ = {side for d in self.differences for side in (d.operands, d.operands[::-1]) if len(side) == 2}
        return compact(tuple(p for p in product(self.common, repeat=2) if p not in differ), self.common)

    @cached_property
    def asked(self) -> tuple[Operand, ...]:
        """The operands asked about: the common types and the literals."""
        return (*self.common, *_literals(self.common))

    def __repr__(self) -> str:
        return f"Diff({self.a.name}, {self.b.name}: {len(self.differences)} of {self.cases} cases differ)"

    def __str__(self) -> str:
        return extension("diff.text")(self)

    def __rich__(self) -> Any:
        return extension("diff.tables")(self)

    def data(self) -> dict[str, Any]:
        """The same as JSON takes it: every difference, in full."""
        return {
            "a": self.a.name,
            "b": self.b.name,
            "cases": self.cases,
            "counts": {str(kind): n for kind, n in self.counts.items()},
            "operations": {"common": self.ops, "only_a": self.ops_only_a, "only_b": self.ops_only_b},
            "types": {
                "common": [symbol(t) for t in self.common],
                "only_a": [str(d) for d in self.only_a],
                "only_b": [str(d) for d in self.only_b],
            },
            "differences": [
                {
                    "kind": str(d.kind),
                    "op": d.op,
                    "operands": [symbol(o) for o in d.operands],
                    "a": outcome_data(d.a),
                    "b": outcome_data(d.b),
                    **({} if d.numbers is None else {"literal": [repr(number) for number in d.numbers]}),
                }
                for d in self.differences
            ],
        }


def diff(a: str | Semantics, b: str | Semantics, ops: Iterable[str] | None = None) -> Diff:
    """Every disagreement of two systems, over ``ops`` (default: all) and the types both have. `ValueError` for an unknown
    system, and for an operation unknown or not asked about."""
    left, right = semantics.get(a), semantics.get(b)
    asked = tuple(OPS) if ops is None else tuple(dict.fromkeys(_asked(op) for op in ops))
    common = tuple(n for n in nodes(left) if n in nodes(right))
    has_a, has_b = ({op for op in asked if has(s, op)} for s in (left, right))
    both = tuple(op for op in asked if op in has_a and op in has_b)
    cases = 0
    found: list[Difference] = []
    for op in both:
        for operands in _cases(op, common):
            cases += 1
            one, other = _answer(left, op, operands), _answer(right, op, operands)
            if (kind := _kind(op, operands, (left, one), (right, other))) is not None:
                numbers = _literals_become((left, one), (right, other), operands) if kind is Kind.OPERANDS else None
                found.append(Difference(kind, op, operands, one, other, numbers))
    return Diff(
        left,
        right,
        both,
        tuple(op for op in asked if op in has_a - has_b),
        tuple(op for op in asked if op in has_b - has_a),
        common,
        tuple(d for d in left.dtypes if d not in right.dtypes),
        tuple(d for d in right.dtypes if d not in left.dtypes),
        cases,
        tuple(found),
    )


def nodes(system: Semantics) -> tuple[Operand, ...]:
    """The types of arrays a system tells apart: its dtypes, and its weak types."""
    return (*system.dtypes, *weak_types(system))


def weak_types(system: Semantics) -> tuple[Operand, ...]:
    """The weak types, one for each kind of literal that is weak in the system."""
    weak: list[Operand] = []
    for spelling, value in (("i*", 1), ("f*", 1.0), ("c*", 1j)):
        with suppress(PromotionError):
            if system.literal(value).weak:
                weak.append(operand(spelling))
    return tuple(weak)


def has(system: Semantics, op: str) -> bool:
    """Whether the system has the operation (canonical name), if only to refuse it for each of its types."""
    for dtype in system.dtypes:
        try:
            system.resolve(op, *[dtype] * ops.arity(op))
        except PromotionError:
            continue
        except ValueError:
            return False
    return True


def _asked(op: str) -> str:
    name = ops.canonical(op)
    if name not in OPS:
        raise ValueError(f"'{op}' is not compared: weft compares operations of one and two operands")
    return name


def _cases(op: str, common: tuple[Operand, ...]) -> Iterator[tuple[Operand, ...]]:
    """The operands ``op`` is asked about."""
    if ops.arity(op) == 1:
        yield from ((t,) for t in common)
        return
    yield from product(common, repeat=2)
    for value in _literals(common):
        for t in common:
            yield t, value
            yield value, t


def _literals(common: tuple[Operand, ...]) -> tuple[Number, ...]:
    """`LITERALS` that both sides may be asked about."""
    has_complex = any(dtype_of(t).is_complex for t in common)
    return tuple(v for v in LITERALS if has_complex or not isinstance(v, complex))


def dtype_of(node: Operand) -> DType:
    """The dtype of a type of arrays, weak or not."""
    match node:
        case DType():
            return node
        case Type() | Constant():
            return node.dtype
        case _:
            raise ValueError(f"a type is a dtype or a weak type, found {node!r}")


def _answer(system: Semantics, op: str, operands: tuple[Operand, ...]) -> Outcome:
    """As `outcome`, for operands that need no reading (there are tens of thousands)."""
    try:
        if op in ops.REDUCTIONS or op in ops.FAMILY_REDUCTIONS:
            return system.reduction(op, *operands)
        return system.unary(op, *operands) if len(operands) == 1 else system.binary(op, *operands)
    except PromotionError as error:
        return error


def _kind(
    op: str, operands: tuple[Operand, ...], one: tuple[Semantics, Outcome], other: tuple[Semantics, Outcome]
) -> Kind | None:
    """How two answers differ; None where they agree."""
    (left, a), (right, b) = one, other
    if isinstance(a, PromotionError) or isinstance(b, PromotionError):
        return None if isinstance(a, PromotionError) and isinstance(b, PromotionError) else Kind.REFUSED
    if a.result != b.result:
        return Kind.DTYPE
    if a.weak != b.weak:
        return Kind.WEAK
    if not (same_meaning(a.meaning, b.meaning, a.operands) and same_meaning(a.meaning, b.meaning, b.operands)):
        return Kind.MEANING
    if op in _VALUES_ONLY and _exact(left, a, operands) and _exact(right, b, operands):
        return None
    same = (a.operands, a.keeps, _number(left, a, operands)) == (b.operands, b.keeps, _number(right, b, operands))
    return None if same else Kind.OPERANDS


def _number(system: Semantics, found: Promotion, operands: tuple[Operand, ...]) -> Number | None:
    """What the literal among the operands becomes; None where there is none."""
    for value in operands:
        if not isinstance(value, (DType, Type, Constant)):
            return value if found.keeps else _rounded(system.number(value, found.operands), found.operands)
    return None


@lru_cache(typed=True)
def _rounded(number: Number, dtype: DType) -> Number:
    """A number as a value of a floating-point type; itself for other types, and where NumPy lacks the type."""
    if isinstance(number, complex) or not dtype.is_float:
        return number
    try:
        format = dtype.numpy
    except TypeError:
        return number
    with np.errstate(over="ignore"):
        return float(np.asarray(float(number), np.float64).astype(format))


def _literals_become(
    one: tuple[Semantics, Outcome], other: tuple[Semantics, Outcome], operands: tuple[Operand, ...]
) -> tuple[Number, Number] | None:
    """What the literal among the operands becomes in either system; None where there is none."""
    (left, a), (right, b) = one, other
    if isinstance(a, PromotionError) or isinstance(b, PromotionError):
        return None
    in_a, in_b = _number(left, a, operands), _number(right, b, operands)
    return None if in_a is None or in_b is None else (in_a, in_b)


def _exact(system: Semantics, found: Promotion, operands: tuple[Operand, ...]) -> bool:
    """Whether the operation sees the operands' own numbers."""
    return found.keeps or all(_holds(system, o, found.operands) for o in operands)


def _holds(system: Semantics, value: Operand, dtype: DType) -> bool:
    if isinstance(value, (DType, Type, Constant)):
        return exact(dtype_of(value), dtype)
    number = system.number(value, dtype)
    if isinstance(number, complex) or number != value:
        return False
    return not dtype.is_float or dtype.represents(number)


def _ordered(operands: Iterable[tuple[Operand, ...]]) -> tuple[tuple[Operand, ...], ...]:
    """A canonical order, so that equal sets are equal keys."""
    return tuple(sorted(operands, key=lambda pair: tuple(_rank(o) for o in pair)))


def _rank(asked: Operand) -> tuple[int, int, str]:
    """Types in the order of `dtypes.KNOWN`, weak ones after them, then the literals in theirs."""
    match asked:
        case DType():
            return (0, dtypes.KNOWN.index(asked), "")
        case Type() | Constant():
            return (1, dtypes.KNOWN.index(asked.dtype), "")
        case _:
            return (2, LITERALS.index(asked), symbol(asked))

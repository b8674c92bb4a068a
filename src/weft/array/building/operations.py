"""Turns an operator into nodes, by one question to the system.

The answer (`Promotion`) becomes nodes at once, so that execution does not ask again: both sides converted to the type they meet
in, the meaning applied there, the outcome converted to the type of the result. What a literal becomes is decided here too, by
the system's `Semantics.number`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from ctypes import c_float
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from weft import dtypes
from weft.array.building import collapse
from weft.array.expression import tracing, views
from weft.array.expression.conversion import convert, in_type
from weft.array.expression.nodes import SCANS, Apply, Node, Scalar
from weft.array.expression.support import UnsupportedDType, require
from weft.array.programs.parts import COMPUTED
from weft.dtypes import DType
from weft.semantics import Constant, Number, Operand, Promotion, PromotionError, Semantics, Type
from weft.semantics.meanings import FUNCTIONS, TRUTHS


class Value:
    """A node and whether its type is weak. ``counts`` is what the system takes another library's array for, where that is
    more than its type. Nothing is ever assigned again; a frozen dataclass would take three times as long to make."""

    __slots__ = ("node", "weak", "counts")

    def __init__(self, node: Node, weak: bool = False, counts: Type | None = None) -> None:
        self.node = node
        self.weak = weak
        self.counts = counts

    @property
    def type(self) -> Type:
        """How the system sees it."""
        return self.counts or Type(self.node.dtype, self.weak, scalar=not self.node.shape)


Argument: TypeAlias = Value | Constant | Number
"""What an operation takes: an array's value, or a number of the compile time."""

_COMPARISONS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
"""The comparisons of integers by what they are, on Python's numbers."""


_OF_PARTS: Final = frozenset({"abs", "real", "imag", "angle"})
"""The meanings that give the type of a complex number's parts."""

_OF_ONE_SIDE: Final = frozenset({"square"})
"""What some systems do instead of an operation with a known number on the right: ``x ** 2``."""


_ORDERED: Final = frozenset(
    {"<", "<=", ">", ">=", "minimum", "maximum", "fmin", "fmax", "clamp", "max", "min", "argmax", "argmin"}
    | {"cummax", "cummin"}
)
_OF_ORDER: Final = "compare abs(x), or real(x) with real(y)"


def as_operand(argument: Argument) -> Operand:
    """The argument as the system is asked about it."""
    return argument.type if isinstance(argument, Value) else argument


def binary(system: Semantics, op: str, lhs: Argument, rhs: Argument) -> Value:
    """``lhs op rhs`` for an op of `ops.BINARY` but ``where``, ``matmul`` and ``concat``."""

    def build(promotion: Promotion) -> Node:
        if promotion.keeps:
            return _exact(promotion, lhs, rhs)
        sides = (lhs,) if promotion.meaning in _OF_ONE_SIDE else (lhs, rhs)
        return _apply(op, promotion, [meet(system, side, promotion.operands) for side in sides])

    return _resolve(system, op, (lhs, rhs), build)


def unary(system: Semantics, op: str, argument: Value) -> Value:
    """``op argument`` for an op of `ops.UNARY`."""

    def build(promotion: Promotion) -> Node:
        source = in_type(system, argument.node, promotion.operands)
        return source if promotion.meaning == "identity" else _apply(op, promotion, [source])

    return _resolve(system, op, (argument,), build)


def where(system: Semantics, condition: Argument, x: Argument, y: Argument) -> Value:
    """``x`` where ``condition`` is not zero, else ``y``."""

    system.condition(as_operand(condition))

    def build(promotion: Promotion) -> Node:
        chosen = meet(system, condition, dtypes.bool_)
        return _apply("where", promotion, [chosen, *(meet(system, side, promotion.operands) for side in (x, y))])

    return _resolve(system, "where", (x, y), build)


def clamp(system: Semantics, value: Argument, low: Argument, high: Argument) -> Value:
    """``min(max(value, low), high)``."""
    low, high = _bounds(system, value, low, high)
    sides = (value, low, high)

    def build(promotion: Promotion) -> Node:
        return _apply("clamp", promotion, [meet(system, side, promotion.operands) for side in sides])

    return _resolve(system, "clamp", sides, build)


def _bounds(system: Semantics, value: Argument, low: Argument, high: Argument) -> tuple[Argument, Argument]:
    """The bounds, with the numbers by which the system replaces those that limit nothing."""
    new = system.bounds(as_operand(value), as_operand(low), as_operand(high))
    return new[0] if isinstance(new[0], int) else low, new[1] if isinstance(new[1], int) else high


def clamp_one(system: Semantics, op: str, value: Argument, bound: Argument) -> Value:
    """``value`` limited by one bound: ``maximum`` not below it, ``minimum`` not above."""
    bound = _bounds(system, value, bound, bound)[op == "minimum"]
    sides = (value, bound)

    def build(promotion: Promotion) -> Node:
        if promotion.meaning not in ("clamp", "clamp_flushed"):
            raise PromotionError(f"{system.name} clamps by two bounds", "pass both")
        one = replace(promotion, meaning=f"{op}_nan{promotion.meaning.removeprefix('clamp')}")
        return _apply("clamp", one, [meet(system, side, promotion.operands) for side in sides])

    return _resolve(system, "clamp", (value, bound, bound), build)


def matmul(system: Semantics, lhs: Value, rhs: Value) -> Value:
    """The matrix product with NumPy's rules for dimensions: vectors are a row on the left, a column on the right."""

    def build(promotion: Promotion) -> Node:
        left, right = (in_type(system, side.node, promotion.operands) for side in (lhs, rhs))
        return collapse.product(left, right)

    return _resolve(system, "matmul", (lhs, rhs), build)


def astype(system: Semantics, value: Value, dtype: DType) -> Value:
    """The explicit conversion, which the system defines."""
    system.operand(dtype)
    promotion = system.cast(value.node.dtype, require(dtype, f"{system.name} converts to"))
    node = convert(value.node, promotion.result, promotion.meaning)
    tracing.note("cast", (value.type,), promotion, node)
    return Value(node)


def reduce(system: Semantics, op: str, value: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """A reduction of `ops.REDUCTIONS` over ``axes`` (ascending); over none, elements are converted and stay."""

    def build(promotion: Promotion) -> Node:
        return collapse.reduction(system, promotion, value.node, op, axes)

    result = _resolve(system, op, (value,), build)
    if not keepdims or op in SCANS:
        return result
    return Value(views.expand_dims(result.node, axes), result.weak)


def composed(
    system: Semantics,
    op: str,
    value: Value,
    axes: tuple[int, ...],
    keepdims: bool,
    make: Callable[[Node, tuple[int, ...]], Node],
) -> Value:
    """A reduction that ``make`` builds of others, from elements of the type the system computes in."""

    def build(promotion: Promotion) -> Node:
        return make(in_type(system, value.node, promotion.operands), axes)

    result = _resolve(system, op, (value,), build)
    return Value(views.expand_dims(result.node, axes), result.weak) if keepdims else result


def literal(system: Semantics, value: Number) -> Value:
    """A number as an array of its own."""
    kind = system.literal(value)
    return Value(scalar(system, value, require(kind.dtype, f"{system.name} makes {value!r}")), kind.weak)


def constant(system: Semantics, value: Constant) -> Value:
    """A typed constant as an array of its own."""
    system.operand(value)
    return Value(scalar(system, value.value, require(value.dtype, "the constant is")))


def _resolve(system: Semantics, op: str, arguments: Sequence[Argument], build: Callable[[Promotion], Node]) -> Value:
    """Asks the system, builds, converts to the result; tells the tracer either way."""
    operands = _operands(op, arguments)
    try:
        promotion = _ask(system, op, operands)
        for dtype in (promotion.operands, promotion.result):
            require(dtype, f"in {system.name}, '{op}' gives")
        if promotion.meaning in FUNCTIONS and not (promotion.operands.is_float or promotion.operands.is_complex):
            raise PromotionError(
                f"{system.name} gives '{op}' of {promotion.operands} a type, and no package computes it",
                "convert with .astype('float32') first",
            )
        if promotion.operands.is_complex and op in ("argmax", "argmin") and system.name.startswith("jax"):
            raise PromotionError(
                f"{system.name} gives '{op}' of {promotion.operands} a type, and no package computes it", _OF_ORDER
            )
        if promotion.operands.is_complex and promotion.meaning not in COMPUTED:
            advice = _OF_ORDER if op in _ORDERED else "write it with exp and log, or of the parts real(x) and imag(x)"
            raise UnsupportedDType(f"weft does not compute '{op}' of {promotion.operands}; {advice}")
    except (PromotionError, OverflowError, TypeError, ValueError) as error:
        tracing.note(op, operands, error)
        raise
    node = in_type(system, build(promotion), promotion.result)
    tracing.note(op, operands, promotion, node)
    return Value(node, promotion.weak)


_REPEATING: Final = ("*", "/", "fmin", "fmax")
"""The operations that XLA computes otherwise where an operand is repeated."""


def _operands(op: str, arguments: Sequence[Argument]) -> list[Operand]:
    """The arguments as the system is asked about them; of those of `_REPEATING` it is told whether broadcasting repeats them."""
    operands = [as_operand(a) for a in arguments]
    if op not in _REPEATING or not all(isinstance(a, Value) for a in arguments):
        return operands
    values = [a for a in arguments if isinstance(a, Value)]
    if values[0].node.shape == values[1].node.shape:
        return operands
    shape = views.broadcast_shape(op, *(v.node.shape for v in values))
    return [replace(v.type, repeated=v.node.shape != shape) for v in values]


_ANSWERS: Final[dict[tuple[int, str, tuple[Operand, ...]], tuple[Semantics, Promotion]]] = {}
"""What systems have answered about types alone; the system is kept, so that nothing else gets its identity."""


def _ask(system: Semantics, op: str, operands: Sequence[Operand]) -> Promotion:
    """The promotion. Numbers are asked about each time: 1, 1.0 and True are equal, and so are the zeros."""
    if not all(type(o) is Type for o in operands):
        return system.resolve(op, *operands)
    key = (id(system), op, tuple(operands))
    if (found := _ANSWERS.get(key)) is None:
        found = _ANSWERS[key] = (system, system.resolve(op, *operands))
    return found[1]


def _apply(op: str, promotion: Promotion, arguments: Sequence[Node]) -> Node:
    dtype = dtypes.bool_ if promotion.meaning in TRUTHS else promotion.operands
    dtype = dtype.part if promotion.meaning in _OF_PARTS else dtype
    shape = views.broadcast_shape(op, *(a.shape for a in arguments))
    return Apply(shape, dtype, meaning=promotion.meaning, arguments=tuple(arguments))


def meet(system: Semantics, argument: Argument, dtype: DType) -> Node:
    """The argument in the type that promotion has chosen."""
    if isinstance(argument, Value):
        return in_type(system, argument.node, dtype)
    if isinstance(argument, Constant):
        return convert(scalar(system, argument.value, argument.dtype), dtype)
    return scalar(system, argument, dtype)


_SAFE: Final = 1 << 53
"""Numbers up to here are float64 exactly, or floats."""

_ROUNDED: Final[Mapping[DType, Callable[[float], float]]] = {
    dtypes.float32: lambda number: c_float(number).value,
    dtypes.float64: float,
}
"""Numbers up to `_SAFE` in the types that most have, in a fifth of NumPy's time."""


def scalar(system: Semantics, value: Number, dtype: DType) -> Scalar:
    """The number, as the system makes it one of ``dtype``."""
    number = system.number(value, dtype)
    if dtype.is_integer:
        return Scalar((), dtype, int(number.real))
    if dtype.is_bool:
        return Scalar((), dtype, bool(number))
    rounded = _ROUNDED.get(dtype)
    if rounded is not None and isinstance(number, (int, float)) and abs(number) <= _SAFE:
        return Scalar((), dtype, rounded(number))
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype.is_complex:
            return Scalar((), dtype, complex(np.asarray(number, np.complex128).astype(dtype.numpy)))
        return Scalar((), dtype, float(np.asarray(number.real, np.float64).astype(dtype.numpy)))


def _exact(promotion: Promotion, lhs: Argument, rhs: Argument) -> Node:
    """A comparison of integers of any types by what they are. A literal beyond 64 bits decides it without the data."""
    left, right = _kept(lhs), _kept(rhs)
    if isinstance(left, Node) and isinstance(right, Node):
        return _apply(promotion.meaning, promotion, [left, right])
    compare = _COMPARISONS[promotion.meaning]
    outcome = compare(*(0 if isinstance(side, Node) else side for side in (left, right)))
    shape = left.shape if isinstance(left, Node) else right.shape if isinstance(right, Node) else ()
    return views.broadcast_to(Scalar((), dtypes.bool_, value=outcome), shape)


def _kept(side: Argument) -> Node | int:
    """One side as it is; an integer beyond 64 bits stays a Python number."""
    if isinstance(side, Value):
        return side.node
    if isinstance(side, Constant):
        return Scalar((), side.dtype, value=side.value)
    number = int(side.real)
    for dtype in (dtypes.int64, dtypes.uint64):
        if dtype.min <= number <= dtype.max:
            return Scalar((), dtype, value=number)
    return number

"""Triton's promotion, as its documentation states it (`triton`) and as the package 3.9.0 computes it (`triton_3_9`).

Both are one implementation over data: an ordered tuple of named rules for the common type of two run-time values
(the first that applies decides), a table of what each op takes and gives, and a table of reductions. The package
differs from the document in its tuple of rules and in refusing unary ``+``; nothing else.

The rules, by the document's names:

=========== ============================================================ ==============================
kind        bool < integers < floats; the higher kind wins               int32, bfloat16 -> bfloat16
width       within a kind the wider wins                                 float32, float16 -> float32
supremum    same width and signedness, different: the next larger        float16, bfloat16 -> float32
fp8 pair    two different fp8 types                                      float8 e4m3fn, e5m2 -> float16
unsigned    same width, different signedness: the unsigned one           int32, uint32 -> uint32
=========== ============================================================ ==============================

A compile-time number does not take part unless its kind is higher than the other side's; then its own type decides,
the first it fits of int32, uint32, int64, uint64 or of float32, float64. An integer must be representable in the
common type either way; floats round.

Where the document is silent, `triton` does as the package does: ``/`` of integers is float32 (also of int64), ``//``
and the bit operators refuse floats, ``%`` of floats is fmod, comparisons give bool, a float below float32's normal
range does not fit float32, sums of integers narrower than 32 bits are int32 or uint32. Where the document states a rule
for all operators, the rule holds: float16 / float16 is float16 (the package: float32), and ``/ // %`` of mixed
signedness prefer unsigned (the package refuses).

Not expressible as a promotion, hence not in `triton_3_9`: the package shifts right arithmetically whenever the left
operand was signed *before* promotion. Here the promoted type decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from weft import dtypes
from weft.dtypes import DType, Kind
from weft.semantics.core import Constant, Number, Operand, Promotion, PromotionError, Semantics, Step, Type


@dataclass(frozen=True)
class Rule:
    """One step of the search for a common type.

    ``apply(a, b, op)`` returns it, or None where the rule says nothing, or raises `PromotionError` where it refuses.
    Every rule is symmetric in ``a`` and ``b``.
    """

    name: str
    apply: Callable[[DType, DType, str], DType | None] = field(repr=False)


@dataclass(frozen=True)
class OpRule:
    """What an op takes and gives.

    ``floats``: whether it takes them, else ``advice`` is the way out; ``result``: its type where that is not the common
    one; ``integers_as``: the type that integers are converted to first.
    """

    floats: bool = True
    result: DType | None = None
    integers_as: DType | None = None
    advice: str = ""


_BITS: Final = OpRule(
    floats=False, advice="convert with .to(tl.int{bits}) or reinterpret with .to(tl.int{bits}, bitcast=True)"
)
_COMPARE: Final = OpRule(result=dtypes.bool_)

BINARY: Final[Mapping[str, OpRule]] = {
    **dict.fromkeys(("+", "-", "*", "%", "where", "minimum", "maximum"), OpRule()),
    "/": OpRule(integers_as=dtypes.float32),
    "//": OpRule(floats=False, advice="use tl.floor(a / b) or convert both sides with .to(tl.int{bits})"),
    **dict.fromkeys(("&", "|", "^", "<<", ">>"), _BITS),
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), _COMPARE),
}
"""The binary ops; the rules of both versions read the op only to ask whether it divides."""

UNARY: Final[Mapping[str, frozenset[Kind]]] = {
    "neg": frozenset(Kind),
    "pos": frozenset(Kind),
    "~": frozenset({Kind.BOOL, Kind.INTEGER}),
    "not": frozenset({Kind.BOOL}),
}
"""The unary ops and the kinds they take; each keeps its operand's type (so -x of an unsigned x wraps)."""

_UNARY_ADVICE: Final[Mapping[str, str]] = {
    "pos": "leave it out",
    "~": "reinterpret the bits with .to(tl.int{bits}, bitcast=True)",
    "not": "compare with zero: x == 0",
}

_DIVISIONS: Final = frozenset({"/", "//", "%"})


def _kind(a: DType, b: DType, op: str) -> DType | None:
    return None if a.kind == b.kind else max(a, b, key=lambda d: d.kind)


def _width(a: DType, b: DType, op: str) -> DType | None:
    return None if a.bits == b.bits else max(a, b, key=lambda d: d.bits)


def _equal(a: DType, b: DType, op: str) -> DType | None:
    return a if a == b else None


def _supremum(a: DType, b: DType, op: str) -> DType | None:
    return dtypes.float32 if a.is_float and b.is_float and a.bits == b.bits == 16 else None


def _float8_pair(a: DType, b: DType, op: str) -> DType | None:
    return dtypes.float16 if a.is_float8 and b.is_float8 else None


def _unsigned(a: DType, b: DType, op: str) -> DType | None:
    return b if a.signed else a


def _either(dtype: DType) -> Rule:
    """The rule that a type wins against everything the earlier rules have left."""
    return Rule(f"either is {dtype}", lambda a, b, op: dtype if dtype in (a, b) else None)


def _division_of_floats(a: DType, b: DType, op: str) -> DType | None:
    return dtypes.float32 if op in _DIVISIONS and (a.is_float or b.is_float) else None


def _any_bfloat16(a: DType, b: DType, op: str) -> DType | None:
    return dtypes.float32 if dtypes.bfloat16 in (a, b) else None


def _refuse_float8(a: DType, b: DType, op: str) -> DType | None:
    if a.is_float8 or b.is_float8:
        raise PromotionError(f"{a} and {b} have no common type for '{op}'", "cast both sides with .to(tl.float32)")
    return None


def _refuse_mixed_division(a: DType, b: DType, op: str) -> DType | None:
    if op in _DIVISIONS and a.signed != b.signed:
        signed = a if a.signed else b
        raise PromotionError(f"'{op}' refuses {a} with {b}, one is signed", f"cast both sides with .to(tl.{signed})")
    return None


_EQUAL: Final = Rule("equal", _equal)
_WIDTH: Final = Rule("width", _width)
_FLOAT8_PAIR: Final = Rule("fp8 pair", _float8_pair)
_UNSIGNED: Final = Rule("prefer unsigned", _unsigned)

DOCUMENT_RULES: Final[tuple[Rule, ...]] = (
    _EQUAL,
    Rule("kind", _kind),
    _WIDTH,
    _FLOAT8_PAIR,
    Rule("supremum", _supremum),
    _UNSIGNED,
)
"""The documentation's algorithm."""

PACKAGE_RULES: Final[tuple[Rule, ...]] = (
    _either(dtypes.float64),
    Rule("division of floats", _division_of_floats),
    _either(dtypes.float32),
    _either(dtypes.float16),
    _EQUAL,
    Rule("bfloat16 with another type", _any_bfloat16),
    _FLOAT8_PAIR,
    Rule("fp8 with integer", _refuse_float8),
    Rule("division of mixed signedness", _refuse_mixed_division),
    _WIDTH,
    _UNSIGNED,
)
"""What triton 3.9.0 computes; bool counts as an unsigned integer of one bit."""


def _max_or_min(dtype: DType) -> DType:
    if dtype.bits >= 32:
        return dtype
    return dtypes.float32 if dtype.is_float else dtypes.int32


def _sum(dtype: DType) -> DType:
    if dtype.is_float or dtype.bits >= 32:
        return dtype
    return dtypes.int32 if dtype.signed else dtypes.uint32


def _same(dtype: DType) -> DType:
    return dtype


REDUCTIONS: Final[Mapping[str, Callable[[DType], DType]]] = {
    "sum": _sum,
    "cumsum": _sum,
    "max": _max_or_min,
    "min": _max_or_min,
    "argmax": _same,
    "argmin": _same,
}
"""The type in which each reduction is carried out."""

_INTEGER_LITERALS: Final = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)
_FLOAT32_NORMAL: Final = (2.0**-126, (2.0 - 2.0**-23) * 2.0**127)


MEANING: Final[Mapping[str, str]] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "divide",
    "//": "truncate_divide",
    "%": "truncate_remainder",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "shift_left",
    ">>": "shift_right",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "==": "equal",
    "!=": "not_equal",
    "where": "select",
    "minimum": "minimum",
    "maximum": "maximum",
    "pos": "identity",
    "neg": "neg",
    "~": "not",
    "not": "not",
}
"""What each op does in the common type: C's arithmetic."""


@dataclass(frozen=True)
class TritonSemantics(Semantics):
    """One version of Triton's rules; `weft.semantics.core.Semantics` says what the methods mean."""

    name: str
    title: str
    rules: tuple[Rule, ...] = field(repr=False)
    unary_ops: Mapping[str, frozenset[Kind]] = field(default_factory=lambda: UNARY, repr=False, hash=False)

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return dtypes.ALL

    def common(self, *operands: Operand) -> Promotion:
        first, *rest = operands
        promotion = self.binary("+", first, first)
        for operand in rest:
            promotion = self.binary("+", promotion.result, operand)
        return promotion

    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        rule = BINARY.get(op)
        if rule is None:
            raise ValueError(f"unknown binary operator '{op}'; {self.name} knows {' '.join(BINARY)}")
        left, right = _read(lhs), _read(rhs)
        common, name = self._common(op, left, right)
        if common.is_float and not rule.floats:
            raise PromotionError(f"'{op}' does not take {common}", rule.advice.format(bits=common.bits))
        for operand in (left, right):
            if not isinstance(operand, DType):
                _check_range(operand, common)
        steps = [Step(name, f"{lhs} and {rhs} meet in {common}")]
        if rule.integers_as is not None and not common.is_float:
            common = rule.integers_as
            steps.append(Step("division of integers", f"'{op}' computes in {common}"))
        return Promotion(common, rule.result or common, MEANING[op], steps=tuple(steps))

    def unary(self, op: str, operand: Operand) -> Promotion:
        kinds = self.unary_ops.get(op)
        if kinds is None:
            raise ValueError(f"unknown unary operator '{op}'; {self.name} knows {' '.join(UNARY)}")
        dtype = self._dtype(_read(operand))
        if dtype.kind not in kinds:
            shown = {"neg": "-", "pos": "+"}.get(op, op)
            advice = _UNARY_ADVICE[op].format(bits=dtype.bits)
            raise PromotionError(f"unary '{shown}' does not take {dtype}", advice)
        return Promotion(dtype, dtype, MEANING[op])

    def literal(self, value: Number) -> Type:
        return Type(self._dtype(_read(value)))

    def _dtype(self, operand: DType | bool | int | float) -> DType:
        """The type of a value by itself; of a literal, the first it fits."""
        if isinstance(operand, DType):
            return operand
        if isinstance(operand, bool):
            return dtypes.bool_
        if isinstance(operand, int):
            for dtype in _INTEGER_LITERALS:
                if dtype.min <= operand <= dtype.max:
                    return dtype
            raise PromotionError(
                f"Nonrepresentable integer {operand}: integers reach from {dtypes.int64.min} (int64) to "
                f"{dtypes.uint64.max} (uint64)",
                "write it as a float",
            )
        low, high = _FLOAT32_NORMAL
        special = operand == 0.0 or not math.isfinite(operand)
        return dtypes.float32 if special or low <= abs(operand) <= high else dtypes.float64

    def reduction(self, op: str, operand: Operand) -> Promotion:
        if op not in REDUCTIONS:
            raise ValueError(f"unknown reduction '{op}'; {self.name} knows {' '.join(REDUCTIONS)}")
        wide = REDUCTIONS[op](self._dtype(_read(operand)))
        return Promotion(wide, dtypes.int32 if op.startswith("arg") else wide, op)

    def cast(self, source: DType, target: DType) -> Promotion:
        return Promotion(target, target, "convert")

    def _common(self, op: str, lhs: DType | bool | int | float, rhs: DType | bool | int | float) -> tuple[DType, str]:
        """The type both sides are converted to, before `OpRule.integers_as`, and the rule that gave it."""
        a, b = self._dtype(lhs), self._dtype(rhs)
        # A number no higher in kind than the run-time value takes that value's type.
        if isinstance(lhs, DType) and not isinstance(rhs, DType) and b.kind <= a.kind:
            b = a
        elif isinstance(rhs, DType) and not isinstance(lhs, DType) and a.kind <= b.kind:
            a = b
        for rule in self.rules:
            if (common := rule.apply(a, b, op)) is not None:
                return common, rule.name
        raise AssertionError(f"{self.name}: no rule for {a} and {b}, though the last rule takes every pair")


def _read(operand: Operand) -> DType | bool | int | float:
    """Triton knows arrays by dtype alone, typed constants are arrays to it, and it has no complex numbers."""
    if isinstance(operand, (Type, Constant)):
        return operand.dtype
    if isinstance(operand, complex):
        raise PromotionError(f"Triton has no complex numbers, found {operand}", "keep two floats")
    return operand


def _check_range(value: float, dtype: DType) -> None:
    """Raise where an integer literal has no place in an integer type; floats round and so always fit."""
    if dtype.is_float or dtype.min <= value <= dtype.max:
        return
    low, high = min(value, dtype.min), max(value, dtype.max)
    wide = [d for d in dtypes.ALL if d.is_integer and d.min <= low and high <= d.max]
    wider = min(wide, key=lambda d: (d.bits, d.signed != dtype.signed), default=None)
    cast = f"cast the other operand to tl.{wider or dtypes.float64}"
    if value < 0 and not dtype.signed:
        raise PromotionError(f"Scalar {value} is negative and type {dtype} is unsigned", cast)
    raise PromotionError(f"Scalar {value} is out of range for type {dtype}", cast)


triton: Final = TritonSemantics("triton", "Triton as its documentation states it", DOCUMENT_RULES)
triton_3_9: Final = TritonSemantics(
    "triton@3.9", "Triton as the package 3.9.0 computes it", PACKAGE_RULES, {**UNARY, "pos": frozenset()}
)

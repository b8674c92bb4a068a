"""Triton's promotion, as its documentation states it (`triton`) and as the package 3.9.0 computes it (`triton_3_9`).

Both are one implementation over data: an ordered tuple of named rules for the common type of two run-time values, and tables
of what each op takes and gives. The first rule that applies decides, and its name is the reason. Nested conditions would
differ between document and package in a dozen places.

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
range does not fit float32, sums of integers narrower than 32 bits are int32 or uint32, functions take float32 and
float64 alone. Where the document states a rule for all operators, the rule holds: float16 / float16 is float16 (the
package: float32), and ``/ // %`` of mixed signedness prefer unsigned (the package refuses).

The document converts both inputs to the common type before the operation. So ``>>`` in an unsigned common type shifts in
zeros: int8(-5) >> uint8(3) is 251 >> 3 = 31.

Two numbers of the compile time among themselves are Python's: ``-7 // 2`` is -4 and ``-7 % 2`` is 1, as in kernels, where a
run-time value gives -3 and -1; comparisons look at the values, and a divisor of zero is refused.

Three habits of the package go beyond types. It has no unary ``+``. Its ``>>`` copies the sign bit or not by the sign of the
left operand (of the tensor, if that is a literal) *before* promotion: int32 >> uint32 is ``shift_right_arithmetic`` in uint32.
And it keeps float8_e4m3b15 as bytes, so that arithmetic in that type, and its conversion to float64, pass the front end and
fail in the verifier; weft refuses them, with a reason of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from weft import dtypes
from weft.dtypes import DType, Kind
from weft.semantics import ops
from weft.semantics.core import Constant, Number, Operand, Promotion, PromotionError, Semantics, Step, Type
from weft.semantics.ops import COMPARISONS, DIVISIONS
from weft.semantics.systems import family
from weft.semantics.systems.triton_rules import A_KIND, DOCUMENT_RULES, PACKAGE_RULES, Rule

DTYPES: Final[tuple[DType, ...]] = (
    *(dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    *(dtypes.float8_e4m3fn, dtypes.float8_e5m2),
    *(dtypes.float8_e4m3fnuz, dtypes.float8_e5m2fnuz, dtypes.float8_e4m3b15),
    *(dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64),
)
"""Triton's element types. Its kernels in weft compute with those of `dtypes.ALL`."""


@dataclass(frozen=True)
class OpRule:
    """What an op takes and gives.

    ``refused``: the kind it does not take, for which ``advice`` is the way out; ``result``: its type where that is not the
    common one; ``integers_as``: the type that integers are converted to first.
    """

    meaning: str
    refused: Kind | None = None
    result: DType | None = None
    integers_as: DType | None = None
    advice: str = ""


def _bits(meaning: str) -> OpRule:
    advice = "convert with .to(tl.int{bits}) or reinterpret with .to(tl.int{bits}, bitcast=True)"
    return OpRule(meaning, Kind.FLOAT, advice=advice)


def _compare(meaning: str) -> OpRule:
    return OpRule(meaning, result=dtypes.bool_)


BINARY: Final[Mapping[str, OpRule]] = {
    "+": OpRule("add"),
    "-": OpRule("sub"),
    "*": OpRule("mul"),
    "%": OpRule("truncate_remainder"),
    "where": OpRule("select"),
    "minimum": OpRule("minimum"),
    "maximum": OpRule("maximum"),
    "/": OpRule("divide", integers_as=dtypes.float32),
    "fdiv": OpRule("divide", Kind.INTEGER, advice="use a / b, which converts integers"),
    "//": OpRule(
        "truncate_divide", Kind.FLOAT, advice="use tl.floor(a / b) or convert both sides with .to(tl.int{bits})"
    ),
    "&": _bits("and"),
    "|": _bits("or"),
    "^": _bits("xor"),
    "<<": _bits("shift_left"),
    ">>": _bits("shift_right"),
    "<": _compare("less"),
    "<=": _compare("less_equal"),
    ">": _compare("greater"),
    ">=": _compare("greater_equal"),
    "==": _compare("equal"),
    "!=": _compare("not_equal"),
}
"""The binary ops whose two sides meet in one type; C's arithmetic. The rules of both versions read the op only to ask
whether it divides."""

_PYTHONS: Final[Mapping[str, str]] = {
    **{op: BINARY[op].meaning for op in ("/", *COMPARISONS)},
    "//": "floor_divide",
    "%": "floor_remainder",
    "**": "power",
}
"""The ops that differ between two numbers of the compile time, and Python's meaning."""

_OTHERS: Final = ("cdiv", "and", "or", "matmul", "**")
"""The binary ops with rules of their own."""

_FUNCTIONS: Final = (
    *("sqrt", "rsqrt", "exp", "exp2", "log", "log2", "sin", "cos", "erf", "sigmoid", "floor", "ceil"),
    *("cbrt", "log10", "tan", "tanh"),  # libdevice's
)

UNARY: Final[Mapping[str, frozenset[DType]]] = {
    **dict.fromkeys(("neg", "pos", "abs"), frozenset(DTYPES)),
    "~": frozenset(d for d in DTYPES if not d.is_float),
    "not": frozenset({dtypes.bool_}),
    **dict.fromkeys(_FUNCTIONS, frozenset({dtypes.float32, dtypes.float64})),
    **{
        op: frozenset({dtypes.float32, dtypes.float64})
        for op, row in family.FAMILY.items()
        if row.triton and op in ops.FAMILY_UNARY
    },
}
"""The unary ops and the types they take; each keeps its operand's type (so -x of an unsigned x wraps)."""

_UNARY_ADVICE: Final[Mapping[str, str]] = {
    "pos": "leave it out",
    "~": "reinterpret the bits with .to(tl.int{bits}, bitcast=True)",
    "not": "compare with zero: x == 0",
}


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
    "cumprod": _sum,
    "max": _max_or_min,
    "min": _max_or_min,
    "argmax": _same,
    "argmin": _same,
}
"""The type in which each reduction is carried out."""

_INTEGER_LITERALS: Final = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)
_FLOAT32_NORMAL: Final = (2.0**-126, (2.0 - 2.0**-23) * 2.0**127)

Side: TypeAlias = DType | bool | int | float
"""An operand as Triton sees it."""


@dataclass(frozen=True)
class TritonSemantics(Semantics):
    """One version of Triton's rules; `weft.semantics.core.Semantics` says what the methods mean.

    ``package``: with the habits of the package that the module names: no unary ``+``, ``>>`` by the left operand's sign,
    float8_e4m3b15 as bytes.
    """

    name: str
    title: str
    rules: tuple[Rule, ...] = field(repr=False)
    package: bool = False

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return DTYPES

    def common(self, *operands: Operand) -> Promotion:
        first, *rest = map(_read, operands)
        dtype = _own_type(first)
        steps = [] if isinstance(first, DType) else [_scalar_step(first, dtype)]
        side: Side = first
        for operand in rest:
            dtype, more = self._meet("+", side, operand)
            steps += more
            side = dtype
        return Promotion(dtype, dtype, steps=tuple(steps))

    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        left, right = _read(lhs), _read(rhs)
        if op in ("and", "or"):
            return _logical(op, left, right)
        if op == "cdiv":
            return self._ceil_divide(left, right)
        if op == "matmul":
            return _matmul(left, right)
        if op in ops.FAMILY_BINARY:
            return self._function(op, left, right)
        if op in _PYTHONS and not isinstance(left, DType) and not isinstance(right, DType):
            return _power(left, right) if op == "**" else self._numbers(op, left, right)
        if op == "**":
            raise PromotionError("'**' does not take values of the run time", "write x * x, or tl.exp2(tl.log2(x) * y)")
        promotion = self._binary(op, left, right)
        if self.package:
            _verify(op, promotion.operands, left, right)
        return promotion

    def _numbers(self, op: str, left: Side, right: Side) -> Promotion:
        """An op that means something else between two numbers of the compile time, which Python computes."""
        if op in DIVISIONS and right == 0:
            raise PromotionError(
                f"{left!r} {op} {right!r}: Python divides two numbers of the compile time, and refuses a divisor of zero",
                "divide by another number, or by a run-time value",
            )
        if op in COMPARISONS:
            exact = not isinstance(left, float) and not isinstance(right, float)
            step = Step("two numbers", f"Python computes '{op}' of numbers of the compile time, by their values")
            common = _own_type(left) if exact else dtypes.float64
            return Promotion(common, dtypes.bool_, BINARY[op].meaning, keeps=exact, steps=(step,))
        if op == "/":
            return self._binary(op, left, right)
        a, b = _own_type(left), _own_type(right)
        common, step = self._first_rule(a, b, "+")
        common = (
            dtypes.float64 if common.is_float else _holding(left, right, dtypes.int32 if common.is_bool else common)
        )
        rounded = {"//": "rounded down", "%": "with the divisor's sign"}[op]
        steps = (step, Step("two numbers", f"Python computes '{op}' of numbers of the compile time, {rounded}"))
        return Promotion(common, dtypes.float32 if common.is_float else common, _PYTHONS[op], steps=steps)

    def unary(self, op: str, operand: Operand) -> Promotion:
        takes = UNARY.get(op)
        if takes is None:
            raise ValueError(f"unknown unary operator '{op}'; {self.name} knows {' '.join(UNARY)}")
        dtype = _own_type(_read(operand))
        if dtype not in takes or (op == "pos" and self.package):
            shown = {"neg": "-", "pos": "+"}.get(op, op)
            advice = _UNARY_ADVICE.get(op, "convert with .to(tl.float32)").format(bits=dtype.bits)
            raise PromotionError(f"unary '{shown}' does not take {dtype}", advice)
        if op == "neg" and self.package and dtype == dtypes.float8_e4m3b15:
            raise _kept_as_bytes("unary '-'")
        meaning = {"pos": "identity", "~": "not", "round": "round_away"}.get(op, op)
        result = dtypes.int32 if op == "signbit" else dtypes.bool_ if op in family.QUESTIONS else dtype
        if op in ops.FAMILY:
            return Promotion(
                dtype, result, meaning, steps=(Step("function", f"libdevice.{op} of {dtype} is {result}"),)
            )
        return Promotion(dtype, dtype, meaning, steps=(Step("unary", f"'{op}' keeps {dtype}"),))

    def ternary(self, op: str, value: Operand, low: Operand, high: Operand) -> Promotion:
        if op != "clamp":
            raise ValueError(f"unknown ternary operator '{op}'; {self.name} knows clamp")
        sides = [_read(value), _read(low), _read(high)]
        common, steps = self._meet_all(op, sides)
        if self.package:
            for side in sides:
                _verify("clamp", common, side)
        return Promotion(common, common, "clamp", steps=tuple(steps))

    def number(self, value: Number, dtype: DType) -> Number:
        """As `Semantics.number`; the package reads constants of bfloat16 from their text with six decimals."""
        if self.package and dtype == dtypes.bfloat16 and isinstance(value, float) and math.isfinite(value):
            return float(f"{value:f}")
        return super().number(value, dtype)

    def literal(self, value: Number) -> Type:
        return Type(_own_type(_read(value)))

    def reduction(self, op: str, operand: Operand) -> Promotion:
        if op not in REDUCTIONS:
            raise ValueError(f"unknown reduction '{op}'; {self.name} knows {' '.join(REDUCTIONS)}")
        dtype = _own_type(_read(operand))
        wide = REDUCTIONS[op](dtype)
        if self.package and wide == dtypes.float8_e4m3b15:
            raise _kept_as_bytes(f"'{op}'")
        steps = [Step("reduction", f"'{op}' of {dtype} is carried out in {wide}")]
        if op.startswith("arg"):
            steps.append(Step("index", f"'{op}' gives int32"))
        return Promotion(wide, dtypes.int32 if op.startswith("arg") else wide, op, steps=tuple(steps))

    def cast(self, source: DType, target: DType) -> Promotion:
        if self.package and target == dtypes.float64:
            _verify("cast", target, source)
        return Promotion(target, target, "convert", steps=(Step("cast", f"{source} becomes {target}"),))

    def _binary(self, op: str, left: Side, right: Side) -> Promotion:
        """An op of `BINARY` as the front end sees it."""
        rule = BINARY.get(op)
        if rule is None:
            raise ValueError(f"unknown binary operator '{op}'; {self.name} knows {' '.join((*BINARY, *_OTHERS))}")
        common, steps = self._meet(op, left, right, rule)
        if rule.integers_as is not None and not common.is_float:
            common = rule.integers_as
            steps.append(Step("division of integers", f"'{op}' computes in {common}"))
        if rule.result is not None:
            steps.append(Step("comparison", f"'{op}' gives {rule.result}"))
        meaning = rule.meaning
        if op == ">>" and self.package:
            meaning = _shift_right(left, right, common)
        return Promotion(common, rule.result or common, meaning, steps=tuple(steps))

    def _function(self, op: str, left: Side, right: Side) -> Promotion:
        """A function of libdevice with two operands: both float32 or both float64, for nothing is converted."""
        if op not in family.FAMILY or not family.FAMILY[op].triton:
            raise ValueError(f"unknown binary operator '{op}'; {self.name} knows {' '.join((*BINARY, *_OTHERS))}")
        common, other = _own_type(left), _own_type(right)
        if common not in (dtypes.float32, dtypes.float64) or other != common:
            raise PromotionError(
                f"libdevice.{op} does not take {common} and {other}", "convert both with .to(tl.float32)"
            )
        return Promotion(common, common, op, steps=(Step("function", f"libdevice.{op} of {common} is {common}"),))

    def _meet(self, op: str, left: Side, right: Side, rule: OpRule | None = None) -> tuple[DType, list[Step]]:
        """The type both sides are converted to, before `OpRule.integers_as`, and how it was found."""
        a, b = _own_type(left), _own_type(right)
        steps: list[Step] = []
        # A number no higher in kind than the run-time value takes that value's type.
        if isinstance(left, DType) and not isinstance(right, DType):
            b, step = _beside(right, b, a)
            steps.append(step)
        elif isinstance(right, DType) and not isinstance(left, DType):
            a, step = _beside(left, a, b)
            steps.append(step)
        elif not isinstance(left, DType) and not isinstance(right, DType):
            steps += [_scalar_step(left, a), _scalar_step(right, b)]
        common, step = self._first_rule(a, b, op)
        steps.append(step)
        if rule is not None and rule.refused is not None and common.is_float == (rule.refused is Kind.FLOAT):
            raise PromotionError(f"'{op}' does not take {common}", rule.advice.format(bits=common.bits))
        for side in (left, right):
            if not isinstance(side, DType):
                _check_range(side, common)
        return common, steps

    def _meet_all(self, op: str, sides: Sequence[Side]) -> tuple[DType, list[Step]]:
        """The type more than two sides meet in: all run-time values meet, all numbers meet, then those two. A number must fit the
        outcome alone."""
        steps: list[Step] = []
        values = [side for side in sides if isinstance(side, DType)]
        numbers = [side for side in sides if not isinstance(side, DType)]
        steps += [_scalar_step(number, _own_type(number)) for number in numbers]
        groups = [list(map(_own_type, group)) for group in (values, numbers) if group]
        for group in groups:
            while len(group) > 1:
                joined, step = self._first_rule(group[0], group[1], op)
                group[:2] = [joined]
                steps.append(step)
        common = groups[0][0]
        if len(groups) == 2:
            own, step = _beside("the number", groups[1][0], common)
            common, rule = self._first_rule(common, own, op)
            steps += [step, rule]
        for number in numbers:
            _check_range(number, common)
        return common, steps

    def _first_rule(self, a: DType, b: DType, op: str) -> tuple[DType, Step]:
        for rule in self.rules:
            if (decision := rule.apply(a, b, op)) is not None:
                return decision[0], Step(rule.name, decision[1])
        raise AssertionError(f"{self.name}: no rule for {a} and {b}, though the last rule takes every pair")

    def _ceil_divide(self, left: Side, right: Side) -> Promotion:
        """``(x + (y - 1)) // y``, each operator by its own rules: Python's where both are numbers of the compile time."""
        if not isinstance(left, DType) and not isinstance(right, DType):
            return replace(self._numbers("//", left + (right - 1), right), meaning="ceil_divide_floor")
        less = self._binary("-", right, 1).result if isinstance(right, DType) else right - 1
        above = self._binary("+", left, less)
        quotient = self._binary("//", above.result, right)
        return Promotion(quotient.operands, quotient.result, "ceil_divide", steps=(*above.steps, *quotient.steps))


def _power(left: float, right: float) -> Promotion:
    """Python's power of two numbers: the type of the outcome."""
    try:
        outcome = left**right if abs(right) < 1 << 12 or abs(left) < 2 else math.inf
    except ArithmeticError as error:
        raise PromotionError(f"{left!r} ** {right!r}: {error}", "write the number") from None
    if isinstance(outcome, complex):
        raise PromotionError(f"{left!r} ** {right!r} is complex, and Triton has no complex numbers", "keep two floats")
    dtype = _own_type(int(outcome) if isinstance(outcome, bool) else outcome)
    step = Step("two numbers", f"Python computes '**' of numbers of the compile time: {outcome!r}")
    return Promotion(dtypes.float64 if dtype.is_float else dtype, dtype, "power", steps=(step,))


def _holding(left: Side, right: Side, common: DType) -> DType:
    """``common`` where it holds both integers, else the first type of integers that does."""
    for dtype in (common, *_INTEGER_LITERALS):
        if all(dtype.min <= side <= dtype.max for side in (left, right) if not isinstance(side, DType)):
            return dtype
    raise PromotionError(f"no type of 64 bits holds {left} and {right}", "write one of them as a float")


def _read(operand: Operand) -> Side:
    """Triton knows arrays by dtype alone, typed constants are arrays to it, and it has no complex numbers."""
    if isinstance(operand, Type) and operand.weak:
        raise PromotionError(f"Triton has no weakly typed tensors, found {operand}", f"use {operand.dtype}")
    if isinstance(operand, (Type, Constant)):
        return operand.dtype
    if isinstance(operand, complex):
        raise PromotionError(f"Triton has no complex numbers, found {operand}", "keep two floats")
    return operand


def _own_type(side: Side) -> DType:
    """The type of a value by itself; of a literal, the first it fits."""
    if isinstance(side, DType):
        return side
    if isinstance(side, bool):
        return dtypes.bool_
    if isinstance(side, int):
        for dtype in _INTEGER_LITERALS:
            if dtype.min <= side <= dtype.max:
                return dtype
        raise PromotionError(
            f"Nonrepresentable integer {side}: integers reach from {dtypes.int64.min} (int64) to "
            f"{dtypes.uint64.max} (uint64)",
            "write it as a float",
        )
    low, high = _FLOAT32_NORMAL
    special = side == 0.0 or not math.isfinite(side)
    return dtypes.float32 if special or low <= abs(side) <= high else dtypes.float64


def _scalar_step(value: Side, dtype: DType) -> Step:
    return Step("scalar", f"{value} by itself is {dtype}")


def _beside(value: object, own: DType, other: DType) -> tuple[DType, Step]:
    """The type of a number (by itself ``own``) beside a run-time value of type ``other``."""
    kind = A_KIND[own.kind]
    if own.kind <= other.kind:
        return other, Step("scalar", f"{value} is {kind}, of no higher kind than {other}, and takes its type")
    return own, Step("scalar", f"{value} is {kind}, of a higher kind than {other}; it first fits {own}")


def _check_range(value: float, dtype: DType) -> None:
    """Raise where an integer literal has no place in an integer type; floats round and so always fit."""
    if dtype.is_float or dtype.min <= value <= dtype.max:
        return
    low, high = min(value, dtype.min), max(value, dtype.max)
    wide = [d for d in DTYPES if d.is_integer and d.min <= low and high <= d.max]
    wider = min(wide, key=lambda d: (d.bits, d.signed != dtype.signed), default=None)
    cast = f"cast the other operand to tl.{wider or dtypes.float64}"
    if value < 0 and not dtype.signed:
        raise PromotionError(f"Scalar {value} is negative and type {dtype} is unsigned", cast)
    raise PromotionError(f"Scalar {value} is out of range for type {dtype}", cast)


def _shift_right(left: Side, right: Side, common: DType) -> str:
    """Which bits the package shifts in: copies of the sign if the left operand was signed, or the tensor beside a literal."""
    decides = right if isinstance(right, DType) and not isinstance(left, DType) else left
    signed = _own_type(decides).signed
    if signed and not common.signed:
        return "shift_right_arithmetic"
    if common.signed and not signed and not isinstance(left, DType):
        return "shift_right_logical"  # a literal beside a bool; unsigned tensors are not negative once they are signed
    return "shift_right"


def _logical(op: str, left: Side, right: Side) -> Promotion:
    for side in (left, right):
        if not (dtype := _own_type(side)).is_bool:
            raise PromotionError(f"'{op}' does not take {dtype}", "compare with zero: x != 0")
    return Promotion(dtypes.bool_, dtypes.bool_, op, steps=(Step("logical", f"'{op}' of two bools is bool"),))


def _matmul(left: Side, right: Side) -> Promotion:
    """``tl.dot``: two tiles of one type, or two of fp8, accumulated in 32 bits or float64."""
    a, b = _own_type(left), _own_type(right)
    for dtype in (a, b):
        if not dtype.is_float and dtype != dtypes.int8:
            raise PromotionError(f"tl.dot does not take {dtype}", "cast both sides with .to(tl.float32)")
    if a != b and not (a.is_float8 and b.is_float8):
        raise PromotionError(f"tl.dot takes two tiles of one type, found {a} and {b}", f"cast one with .to(tl.{a})")
    wide = a if a == dtypes.float64 else dtypes.float32 if a.is_float else dtypes.int32
    return Promotion(wide, wide, "matmul", steps=(Step("matrix product", f"{a} and {b} accumulate in {wide}"),))


def _kept_as_bytes(what: str) -> PromotionError:
    return PromotionError(
        f"{what} of float8_e4m3b15 does not pass Triton's verifier, which sees bytes", "cast with .to(tl.float32)"
    )


def _verify(op: str, common: DType, *sides: Side) -> None:
    """Raise where the package's IR of float8_e4m3b15 is not valid: arithmetic on the type itself, conversions to float64
    (those of ``/`` alone go by way of float32)."""
    if common == dtypes.float8_e4m3b15 and op not in ("where", "cast"):
        raise _kept_as_bytes(f"'{op}'")
    if common == dtypes.float64 and op != "/" and dtypes.float8_e4m3b15 in sides:
        raise PromotionError(
            "float8_e4m3b15 does not convert to float64: Triton's verifier sees bytes",
            "cast float8_e4m3b15 with .to(tl.float32) first",
        )


triton: Final = TritonSemantics("triton", "Triton as its documentation states it", DOCUMENT_RULES)
triton_3_9: Final = TritonSemantics(
    "triton@3.9", "Triton as the package 3.9.0 computes it", PACKAGE_RULES, package=True
)

"""PyTorch's promotion: operands in three classes of priority, and within a class a table of pairs.

The classes are tensors, 0-d tensors, and Python numbers. A class changes the outcome of those above it only if it is of a
higher category (bool < integers < floats < complex).

================= ========================================================= =====================================
pair              within a class: the higher category, then the wider        int64, float16 -> float16
pair              float16 with bfloat16, int8 with uint8: the next larger    float32, int16
priority          tensors, then 0-d tensors, then Python numbers             float16, float64[] -> float16
category          a lower class of a higher category raises the result       int8, 1.5 -> float32
complex           a complex number makes a float complex, keeping its width  float16, 1j -> complex32
float result      ``/`` and functions of floats take integers as float32     exp(int64) -> float32
kernels           then the op must be implemented for the type               uint32 + uint32 is refused
================= ========================================================= =====================================

A Python number enters as the default dtype of its category: int64, float32, complex64; an int from 2**63 on as uint64,
and none from 2**64 on. It is then converted to the type computed in and wraps there: ``uint8 + 300`` adds 44,
``uint8(255) == -1`` holds. A `Constant` counts as a tensor without dimensions.

uint16, uint32, uint64 and the float8 types meet only themselves (the integers also floats), and few ops are implemented
for them. What is refused follows the CPU's kernels, as recorded; for the ops that were not recorded (`matmul`, `clamp`,
`logaddexp`, `argmax`, ...) PyTorch's documentation. ``float4_e2m1fn_x2``, two numbers in a byte, is no type of weft.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

from weft import dtypes as d
from weft.dtypes import DType, Kind
from weft.semantics import ops
from weft.semantics.conversions import by_float32
from weft.semantics.core import Constant, Number, Operand, Promotion, PromotionError, Semantics, Step, Type, show
from weft.semantics.systems import family

SIGNED: Final = (d.int8, d.int16, d.int32, d.int64)
INTEGERS: Final = (d.uint8, *SIGNED)
LIMITED: Final = (d.uint16, d.uint32, d.uint64)
"""The integers with little support."""
FLOATS: Final = (d.float16, d.bfloat16, d.float32, d.float64)
COMPLEX: Final = (d.complex64, d.complex128)
FLOAT8: Final = (d.float8_e4m3fn, d.float8_e5m2, d.float8_e4m3fnuz, d.float8_e5m2fnuz, d.float8_e8m0fnu)
TYPES: Final[tuple[DType, ...]] = (d.bool_, *INTEGERS, *LIMITED, *FLOATS, d.complex32, *COMPLEX, *FLOAT8)

_REAL: Final = frozenset((d.bool_, *INTEGERS, *FLOATS))
_NUMBERS: Final = frozenset((*INTEGERS, *FLOATS))
_INEXACT: Final = frozenset((*FLOATS, *COMPLEX))
_BITS: Final = frozenset((d.bool_, *INTEGERS, *LIMITED))
_ANY: Final = frozenset(TYPES)

KERNELS: Final[Mapping[str, frozenset[DType]]] = {
    **dict.fromkeys(("+", "-"), _REAL | {d.complex32, *COMPLEX}),
    "*": _ANY,
    "/": _INEXACT,
    **dict.fromkeys(("//", "%", "fmod"), _NUMBERS),
    "**": _NUMBERS | {*COMPLEX},
    "fpow": frozenset((d.float64, d.complex128)),
    **dict.fromkeys(("&", "|", "^"), _BITS),
    **dict.fromkeys(("<<", ">>"), frozenset(INTEGERS)),
    **dict.fromkeys(("==", "!="), _ANY),
    **dict.fromkeys(("<", "<=", ">", ">="), _REAL),
    **dict.fromkeys(("where", "concat"), _ANY),
    **dict.fromkeys(("minimum", "maximum"), _REAL),
    "atan2": frozenset(FLOATS),
    "logaddexp": _INEXACT,
    "matmul": (_NUMBERS | {*COMPLEX, *FLOAT8}) - {d.float8_e8m0fnu},
    "clamp": _NUMBERS,
    "pos": _ANY - {d.bool_},
    "neg": _NUMBERS | {d.complex32, *COMPLEX},
    "~": frozenset((d.bool_, *INTEGERS)),
    "not": _REAL | {*COMPLEX},
    "abs": _ANY - {d.bool_, *LIMITED, d.float8_e8m0fnu},
    "sign": _REAL,
    "square": _NUMBERS | {*COMPLEX},
    **dict.fromkeys(("sqrt", "rsqrt", "exp", "exp2", "log", "log2", "log10"), _INEXACT),
    **dict.fromkeys(("sin", "cos", "tan", "tanh", "sigmoid"), _INEXACT),
    "erf": frozenset(FLOATS),
    **dict.fromkeys(("floor", "ceil"), _NUMBERS | {*LIMITED}),
    "real": _ANY,
    **dict.fromkeys(("var", "std"), _INEXACT | {d.complex32}),
    "logsumexp": _INEXACT,
    **dict.fromkeys(("cummax", "cummin"), _REAL),
    **dict.fromkeys(("sum", "prod", "cumsum", "cumprod"), frozenset((d.int64, *FLOATS, *COMPLEX))),
    "mean": _INEXACT,
    **dict.fromkeys(("max", "min"), _REAL),
    **dict.fromkeys(("argmax", "argmin"), _NUMBERS),
    **dict.fromkeys(("any", "all"), _ANY),
    **{op: row.torch for op, row in family.FAMILY.items() if row.torch},
}
"""The types each op computes in, on the CPU."""

FLOAT_RESULT: Final = frozenset(
    (*("/", "atan2", "sqrt", "rsqrt", "exp", "exp2", "log", "log2", "log10"), *("sin", "cos", "tan", "tanh"))
) | {
    *("sigmoid", "erf", "erfc", "lgamma", "log1p", "expm1", "sinh", "cosh", "asin", "acos", "atan"),
    *("asinh", "acosh", "atanh", "reciprocal", "angle", "copysign"),
}
"""The ops that compute integers and bools in the default dtype, float32."""

_TENSORS_ONLY: Final = frozenset(("minimum", "maximum", "atan2", "logaddexp", "matmul", "concat")) | {
    *("logical_and", "logical_or", "logical_xor", "hypot", "heaviside", "logaddexp2", "fmax", "fmin"),
}
_TENSOR_ON_THE_LEFT: Final = frozenset(("fmod", "copysign"))

MEANING: Final[Mapping[str, str]] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "divide",
    "//": "floor_divide",
    "%": "floor_remainder",
    "fmod": "truncate_remainder",
    "**": "power",
    "fpow": "power",
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
    "minimum": "minimum_nan",
    "maximum": "maximum_nan",
    "pos": "identity",
    "~": "not",
}
"""What each op does in the type computed in, where its own name does not say it."""

OF_BOOLS: Final[Mapping[str, str]] = {"+": "or", "*": "and"}
OF_INTEGERS: Final[Mapping[str, str]] = {
    "//": "floor_divide_checked",
    "%": "floor_remainder_checked",
    "fmod": "truncate_remainder_zero_checked",
    "**": "power_units",
    "floor": "identity",
    "ceil": "identity",
}
OF_FLOATS: Final[Mapping[str, str]] = {"sign": "sign_compare"}
"""What changes where an op computes in bools, in integers, in floats."""

HALVES: Final = (d.float16, d.bfloat16)
"""The floats beside which a scalar is not rounded (`_beside_scalar`)."""

NAMES: Final[Mapping[str, str]] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "//": "floor_divide",
    "%": "remainder",
    "**": "pow",
    "fpow": "float_power",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "<<": "bitwise_left_shift",
    ">>": "bitwise_right_shift",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "==": "eq",
    "!=": "ne",
    "concat": "cat",
    "pos": "positive",
    "~": "bitwise_not",
    "not": "logical_not",
}
"""PyTorch's name of an op, where it is another."""

COMPLEX_OF: Final[Mapping[DType, DType]] = {
    d.float16: d.complex32,
    d.bfloat16: d.complex64,
    d.float32: d.complex64,
    d.float64: d.complex128,
}
PART: Final[Mapping[DType, DType]] = {d.complex32: d.float16, d.complex64: d.float32, d.complex128: d.float64}
"""The type of the parts of a complex type."""

_CHECKED_NUMBERS: Final[Mapping[str, frozenset[DType]]] = {
    "where": frozenset((*INTEGERS, *LIMITED, d.float32, d.complex32, d.complex64)),
    "**": frozenset((*INTEGERS, *LIMITED, d.float16, d.bfloat16)),
    "clamp": frozenset((*INTEGERS, d.float16, d.bfloat16, d.float32)),
}
"""The types into which an op converts numbers only where they do not overflow."""

_PRIORITY: Final = ("tensors", "0-d tensors", "Python numbers")


def pair(a: DType, b: DType) -> DType:
    """``torch.promote_types``; `PromotionError` where it refuses."""
    if a == b:
        return a
    if a in FLOAT8 or b in FLOAT8:
        raise PromotionError(
            f"PyTorch does not promote {a} with {b}: float8 types meet only themselves",
            "convert both sides with .to(torch.float32)",
        )
    low, high = sorted((a, b), key=lambda t: (t.kind, t.bits))
    if (a in LIMITED or b in LIMITED) and not high.is_float:
        raise PromotionError(
            f"PyTorch does not promote {a} with {b}: uint16, uint32 and uint64 meet only themselves and floats",
            "convert both sides with .to(torch.int64)",
        )
    if high.is_complex:
        part = low if low.is_float else PART.get(low)
        return high if part is None else COMPLEX_OF[pair(PART[high], part)]
    if high.is_float:
        return d.float32 if low.is_float and low.bits == high.bits else high
    return d.int16 if {a, b} == {d.int8, d.uint8} else high


def combine(higher: DType, lower: DType) -> DType:
    """What a class gives together with all below it: its own type, unless the lower are of a higher category."""
    if higher.is_complex:
        return higher
    if higher.is_float:
        if not lower.is_complex:
            return higher
        if higher not in COMPLEX_OF:
            raise PromotionError(f"{higher} has no complex counterpart", "convert it with .to(torch.float32)")
        return COMPLEX_OF[higher]
    if lower.is_complex:  # not `pair`, which refuses it beside uint16, uint32 and uint64
        return lower
    if higher.is_bool or lower.is_float:
        return pair(higher, lower)
    return higher


@dataclass(frozen=True, slots=True)
class _Read:
    """An operand: its type, and the class it belongs to (0 tensors, 1 without dimensions, 2 Python numbers)."""

    dtype: DType
    rank: int
    number: Number | None = None

    def __str__(self) -> str:
        return (
            f"{self.dtype}{'[]' if self.rank == 1 else ''}" if self.number is None else f"Python's {show(self.number)}"
        )


def _read(operand: Operand) -> _Read:
    match operand:
        case bool():
            return _Read(d.bool_, 2, operand)
        case int():
            if not d.int64.min <= operand <= d.uint64.max:
                raise PromotionError(f"Python integer {operand} fits neither int64 nor uint64", "write it as a float")
            return _Read(d.int64 if operand <= d.int64.max else d.uint64, 2, operand)
        case float():
            return _Read(d.float32, 2, operand)
        case complex():
            return _Read(d.complex64, 2, operand)
        case Type():
            if operand.weak:
                raise PromotionError(f"PyTorch has no weakly typed tensors, found {operand}", f"use {operand.dtype}")
            return _Read(operand.dtype, int(operand.scalar))
        case Constant():
            return _Read(operand.dtype, 1)
        case _:
            return _Read(operand, 0)


def _shown(operands: Iterable[_Read]) -> str:
    return " and ".join(map(str, operands))


def result_type(operands: tuple[_Read, ...]) -> tuple[DType, list[Step]]:
    """``torch.result_type`` of any number of operands, and the rules that gave it."""
    if not operands:
        raise ValueError("a common type needs at least one operand")
    steps: list[Step] = []
    common = operands[0].dtype
    lowest = max(r.rank for r in operands)
    for rank in (2, 1, 0):  # the lowest class first: each is combined with what those below it gave
        members = [r for r in operands if r.rank == rank]
        if not members:
            continue
        own = reduce(pair, (r.dtype for r in members))
        if len({r.dtype for r in members}) > 1:
            steps.append(Step("pair", f"{_shown(members)} meet in {own}"))
        elif rank == 2:
            steps.append(Step("Python number", f"{_shown(members)} enters as {own}"))
        if rank == lowest:
            common = own
            continue
        lower, common = common, combine(own, common)
        if common == own:
            steps.append(
                Step("priority", f"{_PRIORITY[rank]} of {own} keep their type beside {lower} of lower priority")
            )
        elif common.is_complex and own.is_float:
            steps.append(Step("complex", f"{lower} of lower priority makes {own} complex: {common}"))
        else:
            steps.append(Step("category", f"{lower} is of a higher category than {own} and raises it to {common}"))
    return common, steps


@dataclass(frozen=True)
class TorchSemantics(Semantics):
    """PyTorch's rules; `weft.semantics.core.Semantics` says what the methods mean."""

    name: str
    title: str

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return TYPES

    def common(self, *operands: Operand) -> Promotion:
        dtype, steps = result_type(tuple(map(_read, operands)))
        return Promotion(dtype, dtype, steps=tuple(steps))

    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        if op not in ops.BINARY and op not in ops.FAMILY_BINARY:
            raise ValueError(f"{self.name} has no operation '{op}'")
        return self._compute(op, _read(lhs), _read(rhs))

    def unary(self, op: str, operand: Operand) -> Promotion:
        if op not in ops.UNARY and op not in ops.FAMILY_UNARY:
            raise ValueError(f"{self.name} has no operation '{op}'")
        return self._compute(op, _read(operand))

    def ternary(self, op: str, value: Operand, low: Operand, high: Operand) -> Promotion:
        if op not in ops.TERNARY:
            raise ValueError(f"{self.name} has no operation '{op}'")
        return self._compute(op, _read(value), _read(low), _read(high))

    def reduction(self, op: str, operand: Operand) -> Promotion:
        if op not in ops.REDUCTIONS and op not in ops.FAMILY_REDUCTIONS:
            raise ValueError(f"{self.name} has no operation '{op}'")
        dtype = _read(operand).dtype
        exact = dtype.is_bool or dtype.is_integer
        if op in ("mean", "var", "std") and exact:
            raise PromotionError(
                f"{op} takes floats and complex numbers, found {dtype}", "convert with .to(torch.float32)"
            )
        if op == "logsumexp" and exact:
            step = Step("float result", f"'{op}' of {dtype} computes in float32")
            return Promotion(d.float32, d.float32, op, steps=(step,))
        if op in ("sum", "prod", "cumsum", "cumprod"):
            wide = d.int64 if exact else dtype
            _check_kernel(op, wide)
            text = f"'{op}' of {dtype} accumulates in {wide}"
            return Promotion(wide, wide, op, steps=(Step("accumulator", text),))
        _check_kernel(op, dtype)
        if op in ("any", "all"):
            result = d.uint8 if dtype == d.uint8 else d.bool_
        else:
            result = d.int64 if op.startswith("arg") else PART.get(dtype, dtype) if op in ("var", "std") else dtype
        return Promotion(dtype, result, op, steps=(Step("reduction", f"'{op}' of {dtype} gives {result}"),))

    def literal(self, value: Number) -> Type:
        dtype = _read(value).dtype
        if dtype == d.uint64:
            raise PromotionError(f"Python integer {value} is out of bounds for int64", "give a dtype: torch.uint64")
        return Type(dtype)

    def cast(self, source: DType, target: DType) -> Promotion:
        text = f".to(torch.{target}) converts {source} unchecked"
        meaning = "convert_by_float32" if by_float32(source, target) else "convert_wrap"
        if target == d.float8_e4m3fn:
            meaning, text = "convert_wrap_saturated", f".to(torch.{target}) saturates"
        return Promotion(target, target, meaning, steps=(Step("to", text),))

    def conversion(self, source: DType, target: DType) -> str:
        return "convert_by_float32" if by_float32(source, target) else "convert"

    def condition(self, operand: Operand) -> Operand:
        """uint8 is deprecated, and taken."""
        if isinstance(operand, (bool, int, float, complex)):
            raise PromotionError("torch.where takes a tensor for a condition, found a number", "use torch.tensor")
        dtype = _read(operand).dtype
        if dtype not in (d.bool_, d.uint8):
            raise PromotionError(
                f"where expected condition to be a boolean tensor, but got a tensor with dtype {dtype}",
                "convert it with .to(torch.bool)",
            )
        return operand

    def _compute(self, op: str, *operands: _Read) -> Promotion:
        """The checks of an op, in PyTorch's order, and the type it computes in."""
        if op not in KERNELS:
            raise ValueError(f"{self.name} has no operation '{op}'")
        _check_operands(op, operands)
        if op == "fpow":
            return _float_power(operands)
        inverted = op == "/" and operands[0].number is not None
        if inverted:
            operands = (operands[0], _reciprocal(operands[1]))
        dtype, steps = result_type(operands)
        if op in FLOAT_RESULT and dtype.kind < Kind.FLOAT:
            steps.append(Step("float result", f"'{op}' of {dtype} computes in float32"))
            dtype = d.float32
        if op == "square" and dtype.is_bool:  # torch.square is x ** 2, and the 2 is a Python int
            dtype = d.int64
            steps.append(Step("square", "square is x ** 2, and the 2 raises bool to int64"))
        if op != "**" or not _trivial_power(*operands):
            _check_kernel("*" if inverted else op, dtype)
        if op == "*" and dtype in FLOAT8 and _reduced(*operands):
            raise PromotionError(
                f"torch.mul of {dtype} with a number or 0-d tensor is not implemented",
                "convert with .to(torch.float32)",
            )
        _check_numbers(op, operands, dtype)
        exponent = operands[-1].number
        if op == "**" and dtype.is_integer and isinstance(exponent, int) and exponent < 0:
            raise PromotionError(
                f"Integers to negative integer powers are not allowed, found ** {exponent}",
                f"write ** {float(exponent)}",
            )
        if not steps:
            steps.append(Step("equal", f"'{op}' computes in {dtype}"))
        computed = d.bool_ if op == "not" or op in family.LOGICAL else dtype  # which bits are set does not matter to it
        promotion = Promotion(computed, _result(op, dtype), _meaning(op, dtype), steps=tuple(steps))
        return _beside_scalar(op, promotion, operands)


def _beside_scalar(op: str, promotion: Promotion, operands: tuple[_Read, ...]) -> Promotion:
    """How products and quotients of floats treat a scalar. A number that is divided is multiplied with the reciprocal; beside
    16-bit floats a scalar on the right (of a product on either side) stays float32, and what is computed is rounded once."""
    dtype, inverted = promotion.operands, op == "/" and operands[0].number is not None
    if not dtype.is_float or op not in ("*", "/", "//"):
        return promotion
    if inverted:
        narrow = dtype in HALVES
        step = Step("reciprocal", f"a number divided by a tensor is the number times its reciprocal in {dtype}")
        name = f"multiply_reciprocal_{dtype}" if narrow else "multiply_reciprocal"
        return replace(promotion, operands=d.float32 if narrow else dtype, meaning=name, steps=(*promotion.steps, step))
    scalar = operands[1].rank > 0 or (op == "*" and operands[0].rank > 0)
    if dtype not in HALVES or not scalar:
        return promotion
    step = Step("scalar", f"a scalar beside {dtype} is float32, in which '{op}' is computed")
    meaning = "floor_divide" if op == "//" else promotion.meaning
    # The scalar is the right side if it is one, and of a product a number on either side. Integers beside it are rounded first.
    beside = operands[1] if op == "*" and (operands[1].rank == 0 or operands[0].number is not None) else operands[0]
    array = not beside.dtype.is_float
    return replace(promotion, operands=dtype if array else d.float32, meaning=meaning, steps=(*promotion.steps, step))


def _float_power(operands: tuple[_Read, ...]) -> Promotion:
    """``torch.float_power``, which converts each side by itself, so that they need not meet."""
    dtype = d.complex128 if any(r.dtype.is_complex for r in operands) else d.float64
    return Promotion(dtype, dtype, "power", steps=(Step("float power", f"float_power computes in {dtype}"),))


def _reciprocal(divisor: _Read) -> _Read:
    """What a number is multiplied with where it is divided by a tensor."""
    dtype = d.float32 if divisor.dtype.kind < Kind.FLOAT else divisor.dtype
    if dtype not in KERNELS["/"]:
        raise PromotionError(f"torch.reciprocal is not implemented for {dtype}", _way_out(KERNELS["/"], dtype))
    return _Read(dtype, divisor.rank)


def _trivial_power(base: _Read, exponent: _Read) -> bool:
    """Whether a power is a copy or ones, for which every type has a kernel."""
    return exponent.number in (0, 1) or (base.number == 1 and not isinstance(base.number, bool))


def _check_numbers(op: str, operands: tuple[_Read, ...], dtype: DType) -> None:
    """Raise where an op does not let a Python number wrap or overflow: ``where``, ``clamp``, and a power for its exponent.
    Numbers less than 0 wrap into unsigned types all the same, as far as their negatives are values."""
    types = _CHECKED_NUMBERS.get(op, ())
    for read in operands if op == "where" else operands[1:]:
        value = read.number
        if dtype not in types or value is None or isinstance(value, complex) or math.isinf(value):
            continue
        greatest = PART.get(dtype, dtype).largest if dtype.kind > Kind.INTEGER else dtype.max
        least = dtype.min if dtype.is_integer and dtype.signed else -greatest
        if value < least or value > greatest:
            raise PromotionError(
                f"torch.{NAMES.get(op, op)} does not convert {value!r} to {dtype} without overflow",
                f"write torch.tensor({value!r})",
            )


def _result(op: str, dtype: DType) -> DType:
    """The type an op gives from the one it computes in."""
    if op in ops.FAMILY:
        return family.result(op, dtype)
    if op in ops.COMPARISONS or op == "not":
        return d.bool_
    return PART.get(dtype, dtype) if op in ("abs", "real") else dtype


def _meaning(op: str, dtype: DType) -> str:
    if op == "real" and not dtype.is_complex:
        return "identity"
    if op == "angle" and dtype.is_float:
        return "angle_real"
    if op == "heaviside" and dtype.is_float:
        return "heaviside_compare"
    if op in ops.FAMILY:
        return family.meaning(op, dtype)
    if op == "//" and dtype in HALVES:
        return "floor_divide_stepped"
    if op == "*" and dtype == d.float8_e4m3fn:
        return "mul_saturated"
    tables = {Kind.BOOL: OF_BOOLS, Kind.INTEGER: OF_INTEGERS, Kind.FLOAT: OF_FLOATS}
    return tables.get(dtype.kind, {}).get(op) or MEANING.get(op, op)


def _check_operands(op: str, operands: tuple[_Read, ...]) -> None:
    """What PyTorch refuses before it promotes."""
    types = tuple(r.dtype for r in operands)
    name = NAMES.get(op, op)
    if op in _TENSORS_ONLY and any(r.rank == 2 for r in operands):
        raise PromotionError(f"torch.{name} takes tensors, found {_shown(operands)}", "make a tensor with torch.tensor")
    if op in _TENSOR_ON_THE_LEFT and operands[0].rank == 2:
        raise PromotionError(
            f"torch.{name} takes a tensor on the left, found {operands[0]}", "make a tensor with torch.tensor"
        )
    if op == "concat" and any(r.rank == 1 for r in operands):
        raise PromotionError(f"torch.cat takes tensors with dimensions, found {_shown(operands)}", "use .reshape(1)")
    if op == "matmul" and len({*types}) > 1:
        raise PromotionError(
            f"torch.matmul takes two tensors of one type, found {_shown(operands)}",
            f"convert both sides with .to(torch.{combined(types)})",
        )
    if op == "heaviside" and len({*types}) > 1:
        raise PromotionError(
            f"torch.heaviside takes two tensors of one type, found {_shown(operands)}",
            f"convert both sides with .to(torch.{combined(types)})",
        )
    if op == "-" and d.bool_ in types:
        raise PromotionError(
            f"torch.sub does not take bool, found {_shown(operands)}",
            "use ^ or torch.logical_xor, ~ to invert a mask, or convert with .to(torch.int64)",
        )
    if op in ("minimum", "maximum", "clamp") and any(t.is_complex for t in types):
        raise PromotionError(
            f"torch.{name} does not take complex numbers, found {_shown(operands)}", "use .real or .abs()"
        )


def _reduced(left: _Read, right: _Read) -> bool:
    """Whether a product has a scalar on the right, where PyTorch also puts numbers; float8 has no kernel for that."""
    return right.rank > 0 or left.number is not None


def combined(types: tuple[DType, ...]) -> DType:
    """A type to propose for a cast: the common one, float32 where there is none."""
    try:
        return reduce(pair, types)
    except PromotionError:
        return d.float32


def _check_kernel(op: str, dtype: DType) -> None:
    """Raise where an op is not implemented for the type it would compute in."""
    kernels = KERNELS[op]
    if dtype in kernels:
        return
    raise PromotionError(f"torch.{NAMES.get(op, op)} is not implemented for {dtype}", _way_out(kernels, dtype))


def _way_out(kernels: frozenset[DType], dtype: DType) -> str:
    """The cast to the nearest type that has a kernel."""
    if dtype.is_complex and d.complex64 not in kernels:
        return "use .real or .abs()"
    trials = {
        Kind.BOOL: (d.uint8, d.float32),
        Kind.INTEGER: (d.int64, d.float32),
        Kind.FLOAT: (d.float32, {16: d.int16, 32: d.int32, 64: d.int64}.get(dtype.bits, d.int8)),
        Kind.COMPLEX: (d.complex64,),
    }[dtype.kind]
    return f"convert with .to(torch.{next(t for t in (*trials, d.complex64) if t in kernels)})"


torch: Final = TorchSemantics("torch", "PyTorch 2.13.0")

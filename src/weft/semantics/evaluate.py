"""The definition of every name of `weft.semantics.meanings`, in NumPy, edge cases included; written for clarity, not speed.

An integer operation is a function of two Python integers, whose result wraps into the type at the end. NumPy's integers are
not used: their divisions, shifts and overflows follow NumPy's own rules, and NumPy has no integers narrower than 8 bits. A
bool is the unsigned integer of one bit. Floats narrower than 32 bits are computed in float32 and rounded once; functions of
calculus are computed in float64 and rounded to the compute type.

What the one-line definitions leave open:

| case | result |
|---|---|
| integers by 0: quotients, ``truncate_remainder``, ``floor_remainder`` | 0, x, 0 |
| ``x ** y`` of integers, y negative / 0 | 0 (also for 1 and -1) / 1 |
| ``floor_divide`` of floats | ``(x - fmod(x, y)) / y`` brought to the whole number below; 1 // 0.1 is 9 |
| ``floor_remainder`` of floats | fmod, moved by y where the signs differ; a zero has the sign of x |
| ``minimum`` and the like of two zeros | the second |
| ``sign`` of a zero | that zero |
| ``clamp`` of NaN, or with a NaN for a bound | NaN |
| ``max``, ``min`` with a NaN, ``argmax``, ``argmin`` | NaN, the first NaN (without ``propagate_nan``: as if it were not there) |
| ``convert_wrap`` out of int32 (to 64 bits and uint32: out of int64) | that type's least number, wrapped |
| ``convert_wrap`` to uint64, NaN or below int64 / from 2**64 on | 2**63 / 0 |
| ``convert_round`` of NaN to bool | True |
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.dtypes import DType
from weft.semantics import family
from weft.semantics.conversions import convert, dtype_of, flush, integers, wrap, wrapped
from weft.semantics.meanings import MEANINGS
from weft.semantics.packages import FORMULAS, ORDERS

__all__ = ["convert", "evaluate"]

Array: TypeAlias = NDArray[Any]
Integer = Callable[[int, int, DType], int]
"""A function of two integers of one type, its result not yet wrapped."""


def _toward_zero(x: int, y: int) -> int:
    return abs(x) // abs(y) * (-1 if (x < 0) != (y < 0) else 1) if y else 0


def _floor_xla(x: int, y: int, dtype: DType) -> int:
    if y:
        return x // y
    return -1 if x == 0 or not dtype.signed else -2


def _power(x: int, y: int, dtype: DType) -> int:
    return 0 if y < 0 else pow(x, y, 1 << dtype.bits)


def _power_units(x: int, y: int, dtype: DType) -> int:
    return x ** (y % 2) if y < 0 and x in (1, -1) else _power(x, y, dtype)


def _signed(x: int, dtype: DType) -> int:
    """The bits of ``x`` as a signed number."""
    return x - (1 << dtype.bits) if x >> (dtype.bits - 1) > 0 else x


def _shift_left(x: int, y: int, dtype: DType) -> int:
    amount = y % (1 << dtype.bits)
    return x << amount if amount < dtype.bits else 0


def _shift_right(x: int, y: int, dtype: DType) -> int:
    return x >> min(y % (1 << dtype.bits), dtype.bits)


def _masked_width(dtype: DType) -> int:
    return 64 if dtype.bits == 64 else 32


def _shift_left_masked(x: int, y: int, dtype: DType) -> int:
    width = _masked_width(dtype)
    shifted = (x << y % width) % (1 << width)
    return int(shifted != 0) if dtype.is_bool else shifted


INTEGERS: Final[dict[str, Integer]] = {
    "add": lambda x, y, _: x + y,
    "sub": lambda x, y, _: x - y,
    "mul": lambda x, y, _: x * y,
    "truncate_divide": lambda x, y, _: _toward_zero(x, y),
    "floor_divide": lambda x, y, _: x // y if y else 0,
    "floor_divide_xla": _floor_xla,
    "ceil_divide": lambda x, y, t: _toward_zero(wrap(x + y - 1, t), y),
    "ceil_divide_floor": lambda x, y, t: wrap(x + y - 1, t) // y if y else 0,
    "truncate_remainder": lambda x, y, _: x - y * _toward_zero(x, y),
    **dict.fromkeys(("floor_remainder", "floor_remainder_signed"), lambda x, y, _: x % y if y else 0),
    "truncate_remainder_zero": lambda x, y, _: x - y * _toward_zero(x, y) if y else 0,
    "power": _power,
    "power_units": _power_units,
    "power_xla": lambda x, y, t: 0 if x == 0 != y else _power(x, y % 64, t),
    "and": lambda x, y, _: x & y,
    "or": lambda x, y, _: x | y,
    "xor": lambda x, y, _: x ^ y,
    "shift_left": _shift_left,
    "shift_right": _shift_right,
    "shift_right_arithmetic": lambda x, y, t: _shift_right(_signed(x, t), y, t),
    "shift_right_logical": lambda x, y, t: _shift_right(x % (1 << t.bits), y, t),
    "shift_left_masked": _shift_left_masked,
    "shift_right_masked": lambda x, y, t: x >> y % _masked_width(t),
    **dict.fromkeys(("minimum", "minimum_nan", "minimum_less"), lambda x, y, _: min(x, y)),
    **dict.fromkeys(("maximum", "maximum_nan", "maximum_greater"), lambda x, y, _: max(x, y)),
    **family.INTEGERS_BINARY,
}
"""The meanings of two integers."""

INTEGERS_UNARY: Final[dict[str, Callable[[int], int]]] = {
    **dict.fromkeys(("identity", "real", "floor", "ceil"), lambda x: x),
    "neg": operator.neg,
    "not": operator.invert,
    **dict.fromkeys(("abs", "abs_compare"), abs),
    **dict.fromkeys(("sign", "sign_positive", "sign_compare"), lambda x: (x > 0) - (x < 0)),
    "square": lambda x: x * x,
    **family.INTEGERS_UNARY,
}
"""The meanings of one integer."""

COMPARISONS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}


def _remainder(x: Array, y: Array) -> Array:
    rest = np.fmod(x, y)
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


def _first_if(condition: NDArray[np.bool_], x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


def _rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _in_float64(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function of calculus, in float64 and rounded back."""

    def emit(*operands: Array) -> Array:
        if operands[0].dtype.kind == "c":
            return np.asarray(function(*operands))
        return np.asarray(function(*(x.astype(np.float64) for x in operands))).astype(operands[0].dtype)

    return emit


FLOATS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "divide": np.true_divide,
    "floor_divide": np.floor_divide,
    "ceil_divide_floor": lambda x, y: np.floor_divide(x + (y - 1), y),
    "truncate_remainder": np.fmod,
    "truncate_remainder_zero": np.fmod,
    "floor_remainder": _remainder,
    "power": _in_float64(np.power),
    "power_xla": _in_float64(np.power),
    "power_units": _in_float64(np.power),
    "minimum": lambda x, y: _first_if(np.isnan(y) | (x < y), x, y),
    "maximum": lambda x, y: _first_if(np.isnan(y) | (x > y), x, y),
    "minimum_nan": lambda x, y: _first_if(np.isnan(x) | (x < y), x, y),
    "maximum_nan": lambda x, y: _first_if(np.isnan(x) | (x > y), x, y),
    "minimum_less": lambda x, y: _first_if(x < y, x, y),
    "maximum_greater": lambda x, y: _first_if(x > y, x, y),
    "atan2": _in_float64(np.arctan2),
    "logaddexp": _in_float64(np.logaddexp),
    **family.FLOATS_BINARY,
}
"""The meanings of two floats, on float32 and float64."""

FLOATS_UNARY: Final[dict[str, Callable[[Any], Any]]] = {
    "identity": lambda x: x,
    "real": np.real,
    "neg": np.negative,
    "abs": np.abs,
    "sign": lambda x: np.sign(x) if x.dtype.kind == "c" else np.where(x > 0, 1, np.where(x < 0, -1, x)),
    "square": np.square,
    **{
        name: _in_float64(getattr(np, name))
        for name in ("sqrt", "cbrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh")
    },
    "rsqrt": _in_float64(_rsqrt),
    "erf": _in_float64(np.vectorize(math.erf, otypes=[np.float64])),
    "sigmoid": _in_float64(_sigmoid),
    "floor": np.floor,
    "ceil": np.ceil,
    **family.FLOATS_UNARY,
}
"""The meanings of one float, on float32 and float64."""

COMPLEX: Final = frozenset(
    ("add", "sub", "mul", "divide", "power", "identity", "real", "neg", "abs", "square")
    + (
        "sqrt",
        "exp",
        "log",
        "sin",
        "cos",
        "tan",
        "tanh",
        "equal",
        "not_equal",
        "select",
        "sum",
        "prod",
        "mean",
        "cumsum",
        "matmul",
    )
    + ("cumprod", "max", "min", "argmax", "argmin", "clamp")
    + tuple(family.COMPLEX)
)
"""The meanings that take complex numbers, as NumPy computes them."""

CHECKED: Final[Mapping[str, str]] = {
    name: name.removesuffix("_checked") for name in MEANINGS if name.endswith("_checked")
}
"""Checked meaning -> what it does where the check passes."""


def _check(meaning: str, dtype: DType, x: Array, y: Array) -> None:
    """Raise what a checked meaning of integers raises."""
    if dtype.is_float or dtype.is_complex:
        return
    if meaning == "power_checked":
        if dtype.signed and bool((y < 0).any()):
            raise ArithmeticError("integers to negative powers are no integers")
        return
    if not bool(y.astype(np.bool_).all()):
        raise ZeroDivisionError(f"division by zero of {dtype}")
    if (
        meaning in ("truncate_divide_checked", "truncate_remainder_checked")
        and dtype.signed
        and dtype.bits >= 32
        and bool(((x == dtype.min) & (y == -1)).any())
    ):
        raise OverflowError(f"{dtype.min} divided by -1 is out of range for {dtype}")


def _compute(function: Callable[..., Any], dtype: DType, *operands: Array) -> Array:
    """A function of floats in the compute type, rounded once."""
    wide = [np.asarray(x).astype(dtype.compute.numpy) for x in operands]
    result = np.asarray(function(*wide))
    return result if dtype.is_complex else result.astype(dtype.numpy)


def evaluate(
    meaning: str, *operands: Any, axis: int | tuple[int, ...] | None = None, propagate_nan: bool = True
) -> Array:
    """``meaning`` of arrays (or NumPy scalars), which broadcast.

    Operands have one dtype, but for the condition of ``select`` and for integers that are compared (by value). ``axis`` is what
    a reduction goes over (None: everything), and ``concat`` along. Conversions are `convert`'s. `ValueError` for an unknown
    meaning, `TypeError` for types that it does not take, `ArithmeticError` where a checked meaning finds a zero divisor, an
    overflow or a negative exponent.
    """
    if meaning not in MEANINGS:
        raise ValueError(f"there is no meaning '{meaning}'; weft knows {', '.join(MEANINGS)}")
    arrays: list[Array] = [np.asarray(x) for x in operands]
    kinds = [dtype_of(x) for x in arrays]
    if meaning == "select":
        kinds = kinds[1:]
    exact = meaning in COMPARISONS and all(k.is_integer or k.is_bool for k in kinds)
    if len(set(kinds)) > 1 and not exact:
        raise TypeError(f"'{meaning}' takes arrays of one dtype, found {' and '.join(map(str, kinds))}")
    dtype = kinds[-1]
    if dtype.is_complex and meaning not in COMPLEX:
        raise TypeError(f"'{meaning}' does not take {dtype}")
    if meaning in CHECKED:
        _check(meaning, dtype, *np.broadcast_arrays(*arrays))
        meaning = CHECKED[meaning]
    with np.errstate(all="ignore"):
        if meaning not in FORMULAS and meaning.endswith("_flushed"):
            return _flushed(meaning.removesuffix("_flushed"), dtype, arrays, axis, propagate_nan)
        if meaning in REDUCTIONS:
            return _reduce(meaning, dtype, arrays[0], axis, propagate_nan)
        if meaning == "concat":
            return np.concatenate(arrays, axis=axis if isinstance(axis, int) else 0)
        return _elementwise(meaning, dtype, arrays)


def _flushed(
    meaning: str, dtype: DType, arrays: list[Array], axis: int | tuple[int, ...] | None, propagate_nan: bool
) -> Array:
    """A meaning of floats, whose subnormal operands and results are zeros."""

    def flushed(x: Array) -> Array:
        return flush(x.astype(dtype.compute.numpy), dtype).astype(x.dtype)

    result = evaluate(meaning, *map(flushed, arrays), axis=axis, propagate_nan=propagate_nan)
    return flushed(result) if result.dtype == arrays[0].dtype else result


def _elementwise(meaning: str, dtype: DType, arrays: list[Array]) -> Array:
    real = dtype.is_float or dtype.is_complex
    if meaning in COMPARISONS:
        wide = [x.astype(dtype.compute.numpy) if real else integers(x) for x in arrays]
        return np.asarray(COMPARISONS[meaning](*wide)).astype(np.bool_)
    if meaning == "select":
        return np.where(arrays[0].astype(np.bool_), arrays[1], arrays[2])
    if meaning == "clamp":
        return evaluate("minimum_nan", evaluate("maximum_nan", *arrays[:2]), arrays[2])
    if meaning == "clamp_compare":
        x, low, high = arrays
        x = np.where(evaluate("less", x, low), low, x)
        return np.where(evaluate("greater", x, high), high, x)
    if meaning == "matmul":
        if real:
            return _compute(np.matmul, dtype, *arrays)
        if dtype.is_bool:
            return np.matmul(*arrays)
        return wrapped(np.asarray(np.matmul(*map(integers, arrays)), dtype=object), dtype)
    if real and meaning in ORDERS:
        return ORDERS[meaning](dtype, *(x.astype(dtype.compute.numpy) for x in arrays)).astype(np.bool_)
    if real and meaning in FORMULAS:
        return _compute(partial(FORMULAS[meaning], dtype), dtype, *arrays)
    if meaning in family.QUESTIONS:
        if real:
            return np.asarray(family.QUESTIONS[meaning](arrays[0].astype(dtype.compute.numpy)))
        answers = np.frompyfunc(family.QUESTIONS_OF_INTEGERS[meaning], 1, 1)(integers(arrays[0]))
        return np.asarray(answers).astype(np.bool_)
    if meaning == "reciprocal" and not real:
        return wrapped(np.asarray(np.frompyfunc(partial(family.reciprocal, dtype), 1, 1)(integers(arrays[0]))), dtype)
    tables = (FLOATS_UNARY, FLOATS) if real else (INTEGERS_UNARY, INTEGERS)
    function: Callable[..., Any] | None = tables[len(arrays) > 1].get(meaning)
    if function is None:
        raise TypeError(f"'{meaning}' does not take {dtype}")
    if real:
        return _compute(function, dtype, *arrays)
    whole = [integers(x) for x in arrays]
    if len(whole) == 1:
        return wrapped(np.frompyfunc(function, 1, 1)(*whole), dtype)
    return wrapped(np.frompyfunc(partial(_typed, function, dtype), 2, 1)(*whole), dtype)


def _typed(function: Integer, dtype: DType, x: int, y: int) -> int:
    return function(x, y, dtype)


REDUCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "sum": np.sum,
    "prod": np.prod,
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "cummax": np.maximum.accumulate,
    "cummin": np.minimum.accumulate,
    "var": np.var,
    "std": np.std,
    "logsumexp": np.logaddexp.reduce,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "any": np.any,
    "all": np.all,
}


def _reduce(meaning: str, dtype: DType, x: Array, axis: int | tuple[int, ...] | None, propagate_nan: bool) -> Array:
    """Elements of the type, reduced in it; indices are int64, truth values bools."""
    if meaning in ("any", "all"):
        return np.asarray(REDUCTIONS[meaning](x.astype(np.bool_), axis=axis))
    extreme = meaning.removeprefix("arg")
    wide = x.astype(dtype.compute.numpy)
    if extreme in ("max", "min"):
        if dtype.is_float and not propagate_nan:
            least = np.array(-np.inf if extreme == "max" else np.inf, wide.dtype)
            alone = np.isnan(wide).all(axis=axis, keepdims=True)  # nothing but NaN stays NaN
            wide = np.where(np.isnan(wide) & ~alone, least, wide)
        result = np.asarray(REDUCTIONS[meaning](wide, axis=axis))
        return result.astype(np.int64 if meaning != extreme else dtype.numpy)
    if dtype.is_float or dtype.is_complex:
        return np.asarray(REDUCTIONS[meaning](wide, axis=axis)).astype(dtype.numpy)
    if meaning in ("mean", "var", "std", "logsumexp"):
        raise TypeError(f"'{meaning}' does not take {dtype}")
    return wrapped(np.asarray(REDUCTIONS[meaning](integers(x), axis=axis), dtype=object), dtype)

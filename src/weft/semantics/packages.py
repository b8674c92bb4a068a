"""Meanings of floats that follow the formula of one package, in NumPy: `weft.semantics.evaluate` has all others.

A function gets the element type and its operands in the type's compute type (float32 for narrower types), and gives the
result there; the caller rounds it. What a package rounds on the way is rounded here (`_step`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft import dtypes
from weft.dtypes import DType
from weft.semantics.conversions import flush, nearest

Array: TypeAlias = NDArray[Any]
Formula = Callable[..., Array]
"""``formula(dtype, *operands)``."""


def _step(x: Array, dtype: DType) -> Array:
    """``x`` rounded to the element type."""
    return x.astype(dtype.numpy).astype(x.dtype)


def _wide_step(x: Array, dtype: DType) -> Array:
    """``x`` rounded to the element type as XLA does: to 8 bits by way of float16."""
    return _step(x.astype(np.float16).astype(x.dtype) if dtype.bits <= 8 else x, dtype)


def _calculus(function: Callable[[Any], Any], x: Array) -> Array:
    """A function of calculus in float64, rounded to the compute type."""
    return np.asarray(function(x.astype(np.float64))).astype(x.dtype)


def _exp2_xla(dtype: DType, x: Array) -> Array:
    ln2 = _wide_step(np.asarray(math.log(2)).astype(x.dtype), dtype)
    return _wide_step(_calculus(np.exp, _wide_step(x * ln2, dtype)), dtype)


def _halves(x: Array) -> tuple[Array, Array]:
    """Half of ``exp(x)`` and of ``exp(-x)``, by a sum in the exponent."""
    log_half = x.dtype.type(math.log(0.5))
    return _calculus(np.exp, x + log_half), _calculus(np.exp, -x + log_half)


def _cosh_xla(dtype: DType, x: Array) -> Array:
    rising, falling = _halves(x)
    return rising + falling


def _sinh_xla(dtype: DType, x: Array) -> Array:
    rising, falling = _halves(x)
    near = _calculus(np.expm1, x)
    small = x.dtype.type(0.5) * (near + near / (near + 1))
    return np.where(np.abs(x) < 1, small, rising - falling)


def _sigmoid_xla(dtype: DType, x: Array) -> Array:
    return _wide_step(1 / _wide_step(1 + _wide_step(_calculus(np.exp, -x), dtype), dtype), dtype)


def _added_exponentials(dtype: DType, x: Array, y: Array, small: Callable[[Array], Array]) -> Array:
    """``max(x, y) + small(-|x - y|)``; where the difference is NaN, the sum."""
    distance = _wide_step(x - y, dtype)
    most = np.where(np.isnan(x) | (x > y), x, y)
    total = _wide_step(most + small(-np.abs(distance)), dtype)
    return np.where(np.isnan(distance), _wide_step(x + y, dtype), total)


def _logaddexp_xla(dtype: DType, x: Array, y: Array) -> Array:
    def small(z: Array) -> Array:
        return _wide_step(_calculus(np.log1p, _wide_step(_calculus(np.exp, z), dtype)), dtype)

    return _added_exponentials(dtype, x, y, small)


def _logaddexp2_xla(dtype: DType, x: Array, y: Array) -> Array:
    def small(z: Array) -> Array:
        per_ln2 = _wide_step(np.asarray(1 / math.log(2)).astype(x.dtype), dtype)
        return _wide_step(per_ln2 * _wide_step(_calculus(np.log1p, _exp2_xla(dtype, z)), dtype), dtype)

    return _added_exponentials(dtype, x, y, small)


def _fused(x: Array, y: Array, z: Array) -> Array:
    """``x * y + z`` of finite numbers, rounded once; a zero or what is infinite as the steps give it."""

    def one(a: float, b: float, c: float) -> float:
        exact = Fraction(a) * Fraction(b) + Fraction(c) if all(map(math.isfinite, (a, b, c))) else Fraction(0)
        return a * b + c if exact == 0 else nearest(exact, dtypes.named(x.dtype.name))

    return np.vectorize(one, otypes=[np.float64])(*(v.astype(np.float64) for v in (x, y, z))).astype(x.dtype)


def _quotient(dtype: DType, x: Array, y: Array, flushed: bool) -> Array:
    quotient = _step(x / y, dtype)
    return flush(quotient, dtype) if flushed else quotient


def _floor_divide_quotient(flushed: bool) -> Formula:
    def formula(dtype: DType, x: Array, y: Array) -> Array:
        if flushed:
            x, y = flush(x, dtype), flush(y, dtype)
        return np.floor(_quotient(dtype, x, y, flushed))

    return formula


def _floor_remainder_fused(flushed: bool) -> Formula:
    """MAX's ``mod``."""

    def formula(dtype: DType, x: Array, y: Array) -> Array:
        if flushed:
            x, y = flush(x, dtype), flush(y, dtype)
        x, y = np.broadcast_arrays(x, y)
        whole = np.trunc(_quotient(dtype, x, y, flushed))
        narrow = dtype.bits <= 16
        rest = _step(x - _step(whole * y, dtype), dtype) if narrow else _fused(-whole, y, x)
        rest = flush(rest, dtype) if flushed else rest
        rest = np.where((rest != 0) & ((x < 0) != (y < 0)), rest + y, rest)
        return flush(_step(rest, dtype), dtype) if flushed else rest

    return formula


def _power_flushed(dtype: DType, x: Array, y: Array) -> Array:
    """XLA's ``pow``: the logarithm of a subnormal base is that of half the least number."""
    wide = dtype.compute
    small = (np.abs(x) < np.finfo(wide.numpy).tiny) & (x != 0)
    base, exponent = x.astype(np.float64), y.astype(np.float64)
    least = wide.bias + wide.mantissa  # half the least number has this exponent, which float64 lacks: two factors
    first, second = (np.power(2.0**-part, exponent) for part in (least // 2, least - least // 2))
    of_half = np.power(np.copysign(1.0, base), exponent) * (first * second)
    result = np.where(small, of_half, np.power(base, exponent)).astype(x.dtype)
    return flush(result, dtype)


def _cbrt_flushed(dtype: DType, x: Array) -> Array:
    if dtype.compute == dtypes.float64:
        return _calculus(np.cbrt, flush(x, dtype))
    small = (np.abs(x) < np.finfo(x.dtype).tiny) & (x != 0)
    return np.where(small, x.dtype.type(CBRT_OF_SUBNORMAL), _calculus(np.cbrt, x))


CBRT_OF_SUBNORMAL: Final = -5.595173541877215e-16
"""XLA's cube root of every float32 below the normal range, of both signs."""


def _asin_flushed(dtype: DType, x: Array) -> Array:
    """XLA's ``2 * atan2(x, 1 + sqrt(1 - x * x))``: of a small number the quotient is its half."""
    half = flush(x / 2, dtype)
    return np.where(half == 0, half, _calculus(np.arcsin, x))


def _preferred(compare: Callable[[Array, Array], Any]) -> Formula:
    """``x`` where it compares so with ``y``, both flushed, or where ``y`` is NaN; the operand itself is the result."""

    def formula(dtype: DType, x: Array, y: Array) -> Array:
        return np.where(np.isnan(y) | compare(flush(x, dtype), flush(y, dtype)), x, y)

    return formula


def _lesser(least: Callable[[Array, Array], Array]) -> Formula:
    """The lesser (or greater) of two flushed numbers; beside NaN the other side as it is."""

    def formula(dtype: DType, x: Array, y: Array) -> Array:
        return np.where(np.isnan(x), y, np.where(np.isnan(y), x, least(flush(x, dtype), flush(y, dtype))))

    return formula


def _heaviside_flushed(dtype: DType, x: Array, y: Array) -> Array:
    x = flush(x, dtype)
    return np.where(np.isnan(x), x, np.where(x == 0, y, (x > 0).astype(x.dtype)))


def _moves(rest: Array, y: Array) -> NDArray[np.bool_]:
    """Whether a remainder is not zero and of the other sign than the divisor."""
    return (rest != 0) & ((rest < 0) != (y < 0))


def _floor_divide_stepped(dtype: DType, x: Array, y: Array) -> Array:
    """PyTorch's ``div_floor_floating`` in a 16-bit type."""
    rest = _step(np.fmod(x, y), dtype)
    whole = _step(_step(x - rest, dtype) / y, dtype)
    whole = np.where(_moves(rest, y), _step(whole - 1, dtype), whole)
    floor = np.floor(whole)
    floor = np.where(_step(whole - floor, dtype) > 0.5, _step(floor + 1, dtype), floor)
    quotient = _step(x / y, dtype)
    near = np.where(whole != 0, floor, np.copysign(np.zeros_like(x), quotient))
    return np.where(y == 0, quotient, near)


def _floor_divide_xla(dtype: DType, x: Array, y: Array) -> Array:
    """jax.numpy's ``_float_divmod``."""
    rest = _step(np.fmod(x, y), dtype)
    whole = _step(np.where(y == 0, x, _step(x - rest, dtype)) / y, dtype)
    whole = np.where((rest != 0) & (np.sign(y) != np.sign(rest)), _step(whole - 1, dtype), whole)
    size = np.abs(whole)
    floor = np.floor(size)
    return np.copysign(np.where(size - floor >= 0.5, floor + 1, floor), whole)


def _floor_remainder_signed(dtype: DType, x: Array, y: Array) -> Array:
    """NumPy's ``npy_divmod``."""
    rest = np.fmod(x, y)
    rest = np.where(_moves(rest, y), rest + y, rest)
    return np.where(rest == 0, np.copysign(rest, y), rest)


def _floor_remainder_flushed(dtype: DType, x: Array, y: Array) -> Array:
    """jax.numpy's ``remainder``, whose ``fmod`` keeps subnormals; the rest of it does not."""
    divisor = flush(y, dtype)
    rest = np.fmod(x, divisor)
    small = flush(rest, dtype)
    return np.where(_moves(small, divisor), flush(small + divisor, dtype), rest)


def _truncate_remainder_flushed(dtype: DType, x: Array, y: Array) -> Array:
    """XLA's ``rem``: a subnormal divisor is 0, other subnormal numbers stay."""
    return np.fmod(x, flush(y, dtype))


def _multiply_reciprocal(dtype: DType, x: Array, y: Array) -> Array:
    return x * _step(1 / y, dtype)


def _multiply_reciprocal_flushed(dtype: DType, x: Array, y: Array) -> Array:
    return flush(flush(x, dtype) * flush(_step(1 / y, dtype), dtype), dtype)


def _multiply_reciprocal_left_bool(dtype: DType, x: Array, y: Array) -> Array:
    return np.where(x == 0, x.dtype.type(0), flush(_step(1 / y, dtype), dtype))


def _mul_left_bool(dtype: DType, x: Array, y: Array) -> Array:
    return np.where(x == 0, x.dtype.type(0), y)


def _mul_right_bool(dtype: DType, x: Array, y: Array) -> Array:
    return _mul_left_bool(dtype, y, x)


def _reciprocal_in(narrow: DType) -> Formula:
    def formula(dtype: DType, x: Array, y: Array) -> Array:
        return x * _step(1 / y, narrow)

    return formula


def _rsqrt_newton(dtype: DType, x: Array) -> Array:
    """``y * (1.5 - 0.5 * x * y * y)`` from the estimate ``y``, which is infinite for a subnormal, and 0 for infinity."""
    exact = (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype)
    lost = np.where(x == 0, np.nan, -np.inf).astype(x.dtype)
    return np.where(np.isposinf(x), np.nan, np.where(np.abs(x) < np.finfo(x.dtype).tiny, lost, exact))


def _mul_saturated(dtype: DType, x: Array, y: Array) -> Array:
    return np.clip(x * y, -dtype.largest, dtype.largest)  # a NaN stays


def _abs_compare(dtype: DType, x: Array) -> Array:
    return np.where(x < 0, -x, x)


def _sign_positive(dtype: DType, x: Array) -> Array:
    return np.where(np.isnan(x), x, np.sign(x) + 0.0)


def _sign_compare(dtype: DType, x: Array) -> Array:
    return np.where(x > 0, 1.0, 0.0) - np.where(x < 0, 1.0, 0.0)


def _integer_side(meaning: str, left: bool) -> Formula:
    """A comparison under which a negative operand on one side is less than whatever is on the other."""
    compare: Any = getattr(np, meaning)

    def formula(dtype: DType, x: Array, y: Array) -> Array:
        low, high = (-1, 0) if left else (0, -1)
        x, y = np.broadcast_arrays(x, y)
        negative: NDArray[np.bool_] = (x if left else y) < 0
        outcome: Array = np.array(compare(x, y))
        outcome[negative] = compare(low, high)
        return outcome

    return formula


FORMULAS: Final[Mapping[str, Formula]] = {
    "floor_divide_stepped": _floor_divide_stepped,
    "floor_divide_xla": _floor_divide_xla,
    "floor_remainder_signed": _floor_remainder_signed,
    "floor_remainder_flushed": _floor_remainder_flushed,
    **dict.fromkeys(("truncate_remainder_flushed", "truncate_remainder_zero_flushed"), _truncate_remainder_flushed),
    "exp2_xla": _exp2_xla,
    "sigmoid_xla": _sigmoid_xla,
    "logaddexp_xla": _logaddexp_xla,
    "logaddexp2_xla": _logaddexp2_xla,
    "power_flushed": _power_flushed,
    "cbrt_flushed": _cbrt_flushed,
    "asin_flushed": _asin_flushed,
    "floor_divide_quotient": _floor_divide_quotient(flushed=False),
    "floor_divide_quotient_flushed": _floor_divide_quotient(flushed=True),
    "floor_remainder_fused": _floor_remainder_fused(flushed=False),
    "floor_remainder_fused_flushed": _floor_remainder_fused(flushed=True),
    "minimum_flushed": _lesser(lambda x, y: np.where(x < y, x, y)),
    "maximum_flushed": _lesser(lambda x, y: np.where(x > y, x, y)),
    "minimum_chosen": _preferred(np.less),
    "maximum_chosen": _preferred(np.greater),
    "cosh_xla": _cosh_xla,
    "sinh_xla": _sinh_xla,
    "heaviside_flushed": _heaviside_flushed,
    "multiply_reciprocal": _multiply_reciprocal,
    "multiply_reciprocal_flushed": _multiply_reciprocal_flushed,
    "multiply_reciprocal_left_bool": _multiply_reciprocal_left_bool,
    "mul_left_bool": _mul_left_bool,
    "mul_right_bool": _mul_right_bool,
    "multiply_reciprocal_float16": _reciprocal_in(dtypes.float16),
    "multiply_reciprocal_bfloat16": _reciprocal_in(dtypes.bfloat16),
    "mul_saturated": _mul_saturated,
    "abs_compare": _abs_compare,
    "sign_positive": _sign_positive,
    "sign_compare": _sign_compare,
    "rsqrt_newton": _rsqrt_newton,
}
"""The formulas whose outcome has the operands' type."""


def _less_unordered(dtype: DType, x: Array, y: Array) -> Array:
    return ~(x >= y)


def _less_equal_unordered(dtype: DType, x: Array, y: Array) -> Array:
    return ~(x > y)


def _not_equal_ordered(dtype: DType, x: Array, y: Array) -> Array:
    return (x < y) | (x > y)


ORDERS: Final[Mapping[str, Formula]] = {
    "less_unordered": _less_unordered,
    "less_equal_unordered": _less_equal_unordered,
    "not_equal_ordered": _not_equal_ordered,
    **{
        f"{meaning}_{side}_integer": _integer_side(meaning, side == "left")
        for meaning in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
        for side in ("left", "right")
    },
}
"""MAX's comparisons of floats, and DALI's of a signed integer, already converted, with a float; the outcome is bool."""

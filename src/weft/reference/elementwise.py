"""The meaning of each elementwise kind: one table entry for each kind and class of types.

Integers are two's complement and wrap; a bool is the one-bit unsigned integer, so its sum is the exclusive or. Floats
are computed in the type's compute type (`weft.dtypes`) and rounded once more if that is wider. Transcendental functions
are evaluated in float64 and rounded to the compute type, so that float32 results are correctly rounded but for rare
near-ties.

Where mathematics has no answer, the reference chooses what every target reaches with a compare and a select:

| case | result |
|---|---|
| ``x / 0``, ``x rem 0`` of integers | 0, ``x`` (so that ``x == (x / y) * y + x rem y`` always) |
| ``MIN / -1``, ``MIN rem -1`` | ``MIN``, 0 (wrapped) |
| shift by an amount that, read as unsigned, is the width or more | 0; ``-1`` for ``shr`` of a negative number |
| ``min``, ``max`` with one NaN / ``minnan``, ``maxnan`` | the number / NaN |
| ``min``, ``max``, ``minnan``, ``maxnan`` of zeros of different signs | either: here the second, or the first if asked |
| ``rem`` of floats | C's ``fmod``, which is exact |
| ``pow`` of integers, the exponent negative / 0 | 0 / 1, whatever the base |
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.dtypes import DType
from weft.ir.tile import ATOMIC, BINARY, BOOL, COMPARE, FLOAT, INTEGER, TIED_ZEROS, UNARY
from weft.reference.numbers import Array, add_to_odd, rounded, wide


def _divide(x: Array, y: Array) -> Array:
    """C's quotient; NumPy's ``//`` rounds down, so where the remainder is not zero and the signs differ add one."""
    safe = np.where((y == 0) | (y == -1), 1, y).astype(y.dtype)
    quotient = x // safe + ((x % safe != 0) & ((x < 0) != (safe < 0)))
    return np.where(y == 0, 0, np.where(y == -1, 0 - x, quotient)).astype(x.dtype)


def _amount(x: Array, y: Array) -> tuple[Array, Array]:
    """Whether shifting ``x`` by ``y`` leaves any bit of it, and the amount, 0 where not."""
    unsigned = y.view(f"u{y.dtype.itemsize}")
    fits = unsigned < 8 * x.dtype.itemsize
    return fits, np.where(fits, y, 0).astype(y.dtype)


def _shift_left(x: Array, y: Array) -> Array:
    fits, amount = _amount(x, y)
    return np.where(fits, x << amount, 0).astype(x.dtype)


def _shift_right(x: Array, y: Array) -> Array:
    fits, amount = _amount(x, y)
    return np.where(fits, x >> amount, np.where(x < 0, -1, 0).astype(x.dtype))


def _rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def _power(x: Array, y: Array) -> Array:
    """By squaring, a bit of the exponent at a time."""
    result, base = np.ones_like(x), x
    for bit in range(8 * y.dtype.itemsize - (y.dtype.kind == "i")):
        result = np.where(y >> y.dtype.type(bit) & 1 != 0, result * base, result)
        base = base * base
    return np.where(y < 0, 0, result).astype(x.dtype)


def _upper_half(x: Array, y: Array) -> Array:
    """In Python's integers, which hold the whole product."""
    unsigned = f"u{x.dtype.itemsize}"
    product = np.multiply(x.astype(unsigned), y.astype(unsigned), dtype=object)
    return np.asarray(product >> 8 * x.dtype.itemsize).astype(unsigned).astype(x.dtype)


def _in_float64(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A transcendental function of float32 or float64, rounded from float64."""
    return lambda x, y: np.asarray(function(x.astype(np.float64), y.astype(np.float64))).astype(x.dtype)


FLOAT_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative,
    "abs": np.abs,
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sqrt": np.sqrt,
    "sqrt_rn": np.sqrt,
    "rsqrt": _rsqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "floor": np.floor,
    "ceil": np.ceil,
    "cbrt": np.cbrt,
    "log10": np.log10,
    "log1p": np.log1p,
    "tan": np.tan,
}
"""On float64 arrays."""

INTEGER_UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: 0 - x,
    "not": np.invert,
    "abs": np.abs,
}
"""On integer arrays, with the result in their type; ``abs`` of the least number is itself."""


def _first_if(condition: NDArray[np.bool_], x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    return np.where(condition, x, y)


FLOAT_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "div_rn": np.true_divide,
    "rem": np.fmod,
    "min": lambda x, y: _first_if(np.isnan(y) | (x < y), x, y),
    "max": lambda x, y: _first_if(np.isnan(y) | (x > y), x, y),
    "minnan": lambda x, y: _first_if(np.isnan(x) | (x < y), x, y),
    "maxnan": lambda x, y: _first_if(np.isnan(x) | (x > y), x, y),
    "pow": _in_float64(np.power),
    "atan2": _in_float64(np.arctan2),
}
"""On float32 and float64 arrays."""

INTEGER_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": _divide,
    "rem": lambda x, y: x - _divide(x, y) * y,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": _shift_left,
    "shr": _shift_right,
    "min": np.minimum,
    "max": np.maximum,
    "umulhi": _upper_half,
    "pow": _power,
}
"""On integer arrays of one type."""

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {kind: getattr(operator, kind) for kind in COMPARE}
"""On arrays of one type; Python's operators are IEEE 754's: ordered, but for ``ne``."""


def _check(table: str, entries: Iterable[str], kinds: Iterable[str]) -> None:
    """`ValueError` unless a table has one entry for each kind the IR knows."""
    if missing := set(kinds) ^ set(entries):
        raise ValueError(
            f"weft.reference: {table} and the tables of weft.ir.base differ in {', '.join(sorted(missing))}"
        )


_INTEGRAL = {INTEGER, BOOL}
_check("FLOAT_UNARY", FLOAT_UNARY, (kind for kind, classes in UNARY.items() if FLOAT in classes))
_check("INTEGER_UNARY", INTEGER_UNARY, (kind for kind, classes in UNARY.items() if classes & _INTEGRAL))
_check("FLOAT_BINARY", FLOAT_BINARY, (kind for kind, classes in BINARY.items() if FLOAT in classes))
_check("INTEGER_BINARY", INTEGER_BINARY, (kind for kind, classes in BINARY.items() if classes & _INTEGRAL))
_check("ATOMIC", ({"xchg"} | BINARY.keys()) & ATOMIC.keys(), ATOMIC)


def _one_bit(function: Callable[..., Any], *operands: Array) -> Array:
    """An integer function on bools: the low bit of the unsigned result."""
    return np.asarray(function(*(x.astype(np.uint8) for x in operands)) & 1).astype(np.bool_)


_SIGNS: Final[dict[str, Callable[[Array], Array]]] = {"abs": lambda x: x & 0x7F, "neg": lambda x: x ^ 0x80}
"""What changes the sign alone of a format that saturates: its greatest code is beyond what results are rounded to."""


def unary(kind: str, dtype: DType, x: Array) -> Array:
    """``kind(x)`` for ``x`` of type ``dtype``."""
    if dtype.saturates and kind in _SIGNS:
        return _SIGNS[kind](x)
    if dtype.is_float:
        in_compute = np.asarray(FLOAT_UNARY[kind](wide(x, dtype))).astype(dtype.compute.numpy)
        return rounded(in_compute.astype(np.float64), dtype)
    if dtype.is_bool:
        return _one_bit(INTEGER_UNARY[kind], x)
    return np.asarray(INTEGER_UNARY[kind](x))


def binary(kind: str, dtype: DType, x: Array, y: Array, first_zero: bool = False) -> Array:
    """``kind(x, y)`` for ``x`` and ``y`` of type ``dtype``. ``first_zero``: of two zeros `TIED_ZEROS` give the first."""
    if first_zero and dtype.is_float and kind in TIED_ZEROS:
        x, y = y, x
    if dtype.is_float:
        result = np.asarray(FLOAT_BINARY[kind](*(wide(v, dtype, dtype.compute) for v in (x, y))))
        return result if dtype.bits >= 32 else rounded(result.astype(np.float64), dtype)
    if dtype.is_bool:
        return _one_bit(INTEGER_BINARY[kind], x, y)
    return np.asarray(INTEGER_BINARY[kind](x, y))


def atomic(kind: str, dtype: DType, memory: Array, operand: Array, first_zero: bool = False) -> Array:
    """What an atomic kind leaves in memory: the operand, or what the binary kind of its name gives."""
    return operand if kind == "xchg" else binary(kind, dtype, memory, operand, first_zero)


def compare(kind: str, dtype: DType, x: Array, y: Array) -> Array:
    """``x kind y`` as bools, for ``x`` and ``y`` of type ``dtype``."""
    if dtype.is_float:
        x, y = (wide(v, dtype, dtype.compute) for v in (x, y))
    return np.asarray(COMPARISONS[kind](x, y))


def fma(dtype: DType, a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` rounded once to the compute type, and from there to ``dtype``."""
    if dtype.bits == 64:
        return np.asarray(_fma_float64(a, b, c))
    # A product of two float32 is exact in float64.
    total = add_to_odd(wide(a, dtype) * wide(b, dtype), wide(c, dtype))
    return rounded(total.astype(np.float32).astype(np.float64), dtype)


def _fma_one(a: float, b: float, c: float) -> float:
    """In rational arithmetic; where that has no answer (or no sign of zero) float64's own steps are exact, except that the
    product of two numbers must not become an infinity to meet an opposite one."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


_fma_float64 = np.vectorize(_fma_one, otypes=[np.float64])

"""Double-precision arithmetic (PTX ISA 9.7.3), each result rounded once, in each mode, and fma, which NumPy lacks.

There is nothing wider to compute in, so errors are computed instead: the error of a float64 sum or product is a float64
(Knuth; Dekker), and so is the remainder of a quotient or a square root. For fma the exact result is the product, its error and
the addend: three numbers that Boldo and Melquiond's algorithm rounds once (see `weft.emulator.arith.rounding`).

All of that holds while nothing overflows and no error underflows. Operands far from both (`_ordinary`) are computed
that way, all at once; the few that are not, one by one with rationals (`weft.emulator.arith.exact`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith import exact
from weft.emulator.arith.rounding import F64, directed, sum_error, to_odd

_LEAST, _MOST, _ADDEND = 2.0**-480, 2.0**480, 2.0**960
_SPLITTER: Final = float(2**27 + 1)


def add(x: F64, y: F64, mode: str) -> F64:
    """x + y."""
    near = x + y
    if mode == "rn":
        return near
    error = sum_error(x, y, near)
    result = _signed_zero(directed(near, error, mode), x, y, mode)
    return _repair(result, ~np.isfinite(error), exact.add, mode, x, y)


def sub(x: F64, y: F64, mode: str) -> F64:
    """x - y."""
    return x - y if mode == "rn" else add(x, -y, mode)


def mul(x: F64, y: F64, mode: str) -> F64:
    """x * y."""
    if mode == "rn":
        return x * y
    near, error = _product(x, y)
    return _repair(directed(near, error, mode), ~(_ordinary(x) & _ordinary(y)), exact.mul, mode, x, y)


def div(x: F64, y: F64, mode: str) -> F64:
    """x / y."""
    near = x / y
    if mode == "rn":
        return near
    back, error = _product(near, y)
    remainder = ((x - back) - error) * np.copysign(1.0, y)
    odd = ~(_ordinary(x) & _ordinary(y) & _ordinary(near)) & (y != 0)
    return _repair(directed(near, remainder, mode), odd, exact.div, mode, x, y)


def sqrt(x: F64, mode: str) -> F64:
    """The square root; of -0 it is -0."""
    if mode == "rn":
        return np.sqrt(x)
    scale = np.where(np.abs(x) < _LEAST, 2.0**200, np.where(np.abs(x) > _MOST, 2.0**-200, 1.0))
    scaled = x * (scale * scale)
    near = np.sqrt(scaled)
    square, error = _product(near, near)
    return directed(near, (scaled - square) - error, mode) / scale


def fma(x: F64, y: F64, z: F64, mode: str) -> F64:
    """x * y + z, rounded once."""
    product, product_error = _product(x, y)
    low = z + product_error
    low_error = sum_error(z, product_error, low)
    high = product + low
    high_error = sum_error(product, low, high)
    rest = high_error + low_error
    sticky = rest
    if np.count_nonzero(rest):
        sticky = to_odd(rest, sum_error(high_error, low_error, rest))
    result = np.asarray(high + sticky)
    if mode != "rn":
        result = directed(result, sum_error(high, sticky, result), mode)
    if np.count_nonzero(result) != result.size:
        result = np.where(result == 0, product + z, result)
        result = _signed_zero(result, product, z, mode)
    odd = ~(_ordinary(x) & _ordinary(y) & (np.abs(z) <= _ADDEND))
    if not np.count_nonzero(odd):
        return result
    finite = np.isfinite(x) & np.isfinite(y) & np.isfinite(z)
    result = np.where(finite, result, _with_infinite_addend(x, y, z))
    return _repair(result, odd, exact.fma, mode, x, y, z)


def _with_infinite_addend(x: F64, y: F64, z: F64) -> F64:
    """x * y + z where something is not finite: a product of finite numbers that overflows is no infinity."""
    product = x * y
    overflows = np.isinf(product) & np.isfinite(x) & np.isfinite(y)
    return np.where(overflows, z, product + z)


def _ordinary(x: F64) -> NDArray[np.bool_]:
    size = np.abs(x)
    return ((size >= _LEAST) & (size <= _MOST)) | (x == 0)


def _product(x: F64, y: F64) -> tuple[F64, F64]:
    """The product and its error (Dekker), for ordinary operands."""
    product = x * y
    x_high, x_low = _halves(x)
    y_high, y_low = _halves(y)
    return product, x_low * y_low - (((product - x_high * y_high) - x_low * y_high) - x_high * y_low)


def _halves(x: F64) -> tuple[F64, F64]:
    scaled = x * _SPLITTER
    high = scaled - (scaled - x)
    return high, x - high


def _signed_zero(result: F64, x: F64, y: F64, mode: str) -> F64:
    """An exact sum of zero is -0 in mode rm, unless both terms are +0."""
    if mode != "rm":
        return result
    return np.where((result == 0) & (np.signbit(x) | np.signbit(y)), -0.0, result)


def _repair(result: F64, odd: Any, one: Callable[..., float], mode: str, *operands: F64) -> F64:
    """Replaces the results that are odd, of finite operands, by exact ones."""
    for operand in operands:
        odd = odd & np.isfinite(operand)
    if not np.any(odd):
        return result
    result = np.array(result)
    values = [np.broadcast_to(operand, result.shape) for operand in operands]
    for index in zip(*np.nonzero(np.atleast_1d(odd)), strict=True) if result.ndim else [()]:
        result[index] = one(*(float(value[index]) for value in values), mode)
    return result

"""Double-precision operations on Python numbers, with rationals: slow, and right for every finite operand."""

from __future__ import annotations

import math
from fractions import Fraction


def rounded(value: Fraction, mode: str) -> float:
    """A rational other than zero, rounded to float64 in a mode (rn, rz, rm, rp)."""
    try:
        near = value.numerator / value.denominator  # Python rounds a quotient of integers once, to nearest even
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    if mode == "rn":
        return near
    order = (1 if near > 0 else -1) if math.isinf(near) else _compare(Fraction(near), value)
    if order > 0 and (mode == "rm" or (mode == "rz" and value > 0)):
        return math.nextafter(near, -math.inf)
    if order < 0 and (mode == "rp" or (mode == "rz" and value < 0)):
        return math.nextafter(near, math.inf)
    return near


def add(x: float, y: float, mode: str) -> float:
    """x + y."""
    return fma(x, 1.0, y, mode)


def mul(x: float, y: float, mode: str) -> float:
    """x * y."""
    value = Fraction(x) * Fraction(y)
    return rounded(value, mode) if value else math.copysign(0.0, x) * math.copysign(1.0, y)


def div(x: float, y: float, mode: str) -> float:
    """x / y, y not zero."""
    value = Fraction(x) / Fraction(y)
    return rounded(value, mode) if value else math.copysign(0.0, x) * math.copysign(1.0, y)


def fma(x: float, y: float, z: float, mode: str) -> float:
    """x * y + z."""
    value = Fraction(x) * Fraction(y) + Fraction(z)
    if value:
        return rounded(value, mode)
    product = math.copysign(1.0, x) * math.copysign(1.0, y)
    if z == 0 and product == math.copysign(1.0, z):
        return math.copysign(0.0, z)
    return -0.0 if mode == "rm" else 0.0


def _compare(x: Fraction, y: Fraction) -> int:
    return (x > y) - (x < y)

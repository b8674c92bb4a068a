"""Sequences of float ops, on float32 and float64: the caller widens narrower types and rounds at the end."""

from __future__ import annotations

from weft.frontend.builder import Builder
from weft.frontend.meanings.integers import constant
from weft.frontend.values import Tensor

LN2 = 0.693147180559945309417232121458176568


def _remains(b: Builder, rest: Tensor, y: Tensor) -> Tensor:
    """Whether a remainder is not zero and of the other sign than the divisor ``y``; false for NaN."""
    zero = constant(b, 0.0, y)
    opposite = b.binary("xor", b.compare("lt", rest, zero), b.compare("lt", y, zero))
    return b.binary("and", b.compare("ne", rest, zero), opposite)


def floor_remainder(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """fmod, moved by the divisor where the signs differ; a zero has the dividend's sign."""
    rest = b.binary("rem", x, y)
    return b.select(_remains(b, rest, y), b.binary("add", rest, y), rest)


def floor_divide(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """``(x - x mod y) / y``, which is a whole number but for rounding, so rounded to one; ``x / y`` where ``y`` is 0.

    ``floor(x / y)`` would round up first: 1 / 0.1 is 10, but 1 // 0.1 is 9."""
    zero = constant(b, 0.0, x)
    rest, quotient = b.binary("rem", x, y), b.binary("div_rn", x, y)
    whole = b.binary("div_rn", b.binary("sub", x, rest), y)
    whole = b.select(_remains(b, rest, y), b.binary("sub", whole, constant(b, 1.0, x)), whole)
    floor = b.unary("floor", whole)
    above = b.compare("gt", b.binary("sub", whole, floor), constant(b, 0.5, x))
    near = b.select(above, b.binary("add", floor, constant(b, 1.0, x)), floor)
    signed_zero = b.binary("mul", quotient, zero)  # the quotient is below 1 here
    near = b.select(b.compare("eq", whole, zero), signed_zero, near)
    return b.select(b.compare("eq", y, zero), quotient, near)


def ceil_divide_floor(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """``(x + (y - 1)) / y`` brought to the whole number below."""
    return floor_divide(b, b.binary("add", x, b.binary("sub", y, constant(b, 1.0, y))), y)


def logaddexp(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """``max + log1p(exp(-|x - y|))``; equal operands, infinities among them, give ``x + log 2``."""
    distance = b.unary("abs", b.binary("sub", x, y))
    small = b.unary("log1p", b.unary("exp", b.unary("neg", distance)))
    equal = b.compare("eq", x, y)
    return b.binary("add", b.binary("maxnan", x, y), b.select(equal, constant(b, LN2, x), small))


def sign(b: Builder, x: Tensor) -> Tensor:
    """-1 or 1; zeros and NaN stay."""
    zero = constant(b, 0.0, x)
    negative = b.select(b.compare("lt", x, zero), constant(b, -1.0, x), x)
    return b.select(b.compare("gt", x, zero), constant(b, 1.0, x), negative)


def sigmoid(b: Builder, x: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``, from the exponential of ``-|x|`` so that small results are not lost in an infinity."""
    one = constant(b, 1.0, x)
    small = b.unary("exp", b.unary("neg", b.unary("abs", x)))
    numerator = b.select(b.compare("lt", x, constant(b, 0.0, x)), small, one)
    return b.binary("div", numerator, b.binary("add", one, small))

"""What an exact result is in a floating-point format: one rounding of a rational, written as a textbook would.

The emulator's arithmetic is tested against this; nothing here is shared with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final


@dataclass(frozen=True)
class Shape:
    """A binary format: ``precision`` bits of significand, normal numbers from ``2**least``, finite up to ``largest``."""

    precision: int
    least: int
    largest: Fraction

    @property
    def smallest_normal(self) -> float:
        return math.ldexp(1.0, self.least)

    @cached_property
    def top(self) -> tuple[int, int]:
        """The largest number as ``(q, n)``: n units of ``2**q``, which is the distance of the numbers beside it."""
        quantum = logarithm(self.largest) - self.precision + 1
        return quantum, int(self.largest / power(quantum))


def power(exponent: int) -> Fraction:
    """``2**exponent``."""
    return Fraction(2**exponent) if exponent >= 0 else Fraction(1, 2**-exponent)


F64: Final = Shape(53, -1022, (2 - power(-52)) * power(1023))
F32: Final = Shape(24, -126, (2 - power(-23)) * power(127))
TF32: Final = Shape(11, -126, (2 - power(-10)) * power(127))
BF16: Final = Shape(8, -126, (2 - power(-7)) * power(127))
F16: Final = Shape(11, -14, Fraction(65504))
E4M3: Final = Shape(4, -6, Fraction(448))
E5M2: Final = Shape(3, -14, Fraction(57344))
E2M3: Final = Shape(4, 0, Fraction(15, 2))
E3M2: Final = Shape(3, -2, Fraction(28))
E2M1: Final = Shape(2, 0, Fraction(6))


def logarithm(value: Fraction) -> int:
    """The e with ``2**e <= |value| < 2**(e + 1)``."""
    numerator, denominator = abs(value.numerator), value.denominator
    e = numerator.bit_length() - denominator.bit_length()
    return e if denominator << max(e, 0) <= numerator << max(-e, 0) else e - 1


def to_integer(numerator: int, denominator: int, mode: str) -> int:
    """The integer a rational is rounded to."""
    below, rest = divmod(numerator, denominator)
    if rest == 0:
        return below
    match mode:
        case "rm":
            return below
        case "rp":
            return below + 1
        case "rz":
            return below if numerator > 0 else below + 1
        case "rn" if 2 * rest == denominator:
            return below if below % 2 == 0 else below + 1
        case "rna" if 2 * rest == denominator:
            return below + 1 if numerator > 0 else below
        case _:
            return below if 2 * rest < denominator else below + 1


def rounded(value: Fraction, shape: Shape, mode: str, zero: float = 0.0, saturating: bool = False) -> float:
    """A rational rounded once; ``zero`` is what an exact zero is. ``saturating``: overflow gives the largest finite number.

    The result is a Python float: every format here is part of it. Integers alone compute it: tests ask for a million values,
    and `Fraction` reduces after each step.
    """
    numerator, denominator = value.numerator, value.denominator
    if numerator == 0:
        return zero
    quantum = max(logarithm(value), shape.least) - shape.precision + 1
    units = to_integer(numerator << max(-quantum, 0), denominator << max(quantum, 0), mode)
    if (quantum, abs(units)) > shape.top:
        stays = mode == "rz" or (mode == "rm" and numerator > 0) or (mode == "rp" and numerator < 0)
        if not (stays or saturating):
            return math.inf if numerator > 0 else -math.inf
        quantum, units = shape.top
        units = units if numerator > 0 else -units
    return math.ldexp(units, quantum) if units or numerator > 0 else -0.0

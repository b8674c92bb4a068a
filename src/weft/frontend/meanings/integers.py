"""Sequences of integer ops.

C's quotient and remainder become the floored ones where the remainder is not zero and has not the divisor's sign. Tile IR
gives ``x / 0 = 0`` and ``x rem 0 = x``; each function says what it makes of that.
"""

from __future__ import annotations

from weft import dtypes
from weft.dtypes import DType
from weft.frontend.builder import Builder
from weft.frontend.values import Tensor


def constant(b: Builder, value: int | float, like: Tensor) -> Tensor:
    """``value`` in the dtype and shape of ``like``."""
    return b.constant(value, like.dtype, like.shape)


def _remains(b: Builder, rest: Tensor, y: Tensor) -> Tensor:
    """Whether a remainder of signed integers is not zero and of the other sign than the divisor ``y``."""
    zero = constant(b, 0, rest)
    return b.binary("and", b.compare("ne", rest, zero), b.compare("lt", b.binary("xor", rest, y), zero))


def floor_divide(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """Toward minus infinity; 0 for a zero divisor."""
    quotient = b.binary("div", x, y)
    if not x.dtype.signed:
        return quotient
    rest = b.binary("sub", x, b.binary("mul", quotient, y))
    down = b.binary("and", _remains(b, rest, y), b.compare("ne", y, constant(b, 0, y)))
    return b.binary("sub", quotient, b.cast(down, x.dtype))


def floor_divide_xla(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """The same, but a zero divisor gives all ones, and -2 if ``x`` is signed and not zero."""
    zero = constant(b, 0, y)
    ones = b.unary("not", zero)
    by_zero = ones
    if x.dtype.signed:
        by_zero = b.binary("sub", ones, b.cast(b.compare("ne", x, zero), x.dtype))
    return b.select(b.compare("eq", y, zero), by_zero, floor_divide(b, x, y))


def floor_remainder(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """``x - y * floor(x / y)``; 0 for a zero divisor."""
    rest = b.binary("rem", x, y)
    zero = constant(b, 0, x)
    if x.dtype.signed:
        rest = b.binary("add", rest, b.select(_remains(b, rest, y), y, zero))
    return b.select(b.compare("eq", y, zero), zero, rest)


def truncate_remainder_zero(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """C's remainder; 0 for a zero divisor."""
    zero = constant(b, 0, x)
    return b.select(b.compare("eq", y, zero), zero, b.binary("rem", x, y))


def power_units(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """The power; of 1 and -1 also where the exponent is negative, and then by its parity."""
    power = b.binary("pow", x, y)
    if not x.dtype.signed:
        return power
    one = constant(b, 1, x)
    unit = b.select(b.compare("eq", b.binary("and", y, one), one), x, one)
    units = b.binary("or", b.compare("eq", x, one), b.compare("eq", x, constant(b, -1, x)))
    return b.select(b.binary("and", units, b.compare("lt", y, constant(b, 0, y))), unit, power)


def power_xla(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """The exponent modulo 64, its bits read as unsigned; a power of 0 is 0 unless the exponent is."""
    zero = constant(b, 0, x)
    power = b.binary("pow", x, b.binary("and", y, constant(b, 63, y)))
    vanishes = b.binary("and", b.compare("eq", x, zero), b.compare("ne", y, zero))
    return b.select(vanishes, zero, power)


def ceil_divide(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """``(x + (y - 1)) / y`` with C's quotient."""
    return b.binary("div", b.binary("add", x, b.binary("sub", y, constant(b, 1, y))), y)


def ceil_divide_floor(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """``(x + (y - 1)) / y`` rounded toward minus infinity."""
    return floor_divide(b, b.binary("add", x, b.binary("sub", y, constant(b, 1, y))), y)


def or_not(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """``x | ~y``: bools divided, with all ones for a zero divisor."""
    return b.binary("or", x, b.unary("not", y))


def sign(b: Builder, x: Tensor) -> Tensor:
    """-1, 0 or 1."""
    zero = constant(b, 0, x)
    positive = b.cast(b.compare("ne" if not x.dtype.signed else "gt", x, zero), x.dtype)
    return b.binary("sub", positive, b.cast(b.compare("lt", x, zero), x.dtype)) if x.dtype.signed else positive


def _shift_right_as(b: Builder, x: Tensor, y: Tensor, dtype: DType) -> Tensor:
    return b.bitcast(b.binary("shr", b.bitcast(x, dtype), b.bitcast(y, dtype)), x.dtype)


def shift_right_arithmetic(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """Copies of the top bit come in, whatever the sign of the type."""
    return _shift_right_as(b, x, y, dtypes.parse(f"int{x.dtype.bits}"))


def shift_right_logical(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """Zeros come in, whatever the sign of the type."""
    return _shift_right_as(b, x, y, dtypes.parse(f"uint{x.dtype.bits}"))


def _masked(b: Builder, kind: str, x: Tensor, y: Tensor) -> Tensor:
    """A shift in 32 bits (64 for 64-bit types) by ``y`` modulo that width."""
    wide = x.dtype if x.dtype.bits >= 32 else dtypes.int32 if x.dtype.signed else dtypes.uint32
    amount = b.cast(y, wide)
    amount = b.binary("and", amount, constant(b, wide.bits - 1, amount))
    return b.binary(kind, b.cast(x, wide), amount)


def shift_left_masked(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """x86's shift after C's promotion, wrapped to the type (a bool: whether a bit is left)."""
    return b.cast(_masked(b, "shl", x, y), x.dtype)


def shift_right_masked(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    """The same to the right; no bit is lost by wrapping."""
    return b.cast(_masked(b, "shr", x, y), x.dtype)

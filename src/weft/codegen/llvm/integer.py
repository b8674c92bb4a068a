"""Integer arithmetic where LLVM's instructions are undefined, slow or missing: division, remainder, shifts, absolute value,
powers, upper halves of products.

LLVM's `sdiv` is undefined for ``x / 0`` and ``MIN / -1``, and no CPU divides integer vectors: LLVM takes the lanes apart.
Here a harmful divisor is replaced by 1 (which is already right for ``MIN / -1`` and ``MIN rem -1``), and vectors of up to
32 bits divide as floats. That is exact: for ``x, y < 2**k`` a quotient that is no integer lies ``1 / y`` or more below
the next integer ``n``, where ``n y < x + y < 2**(k + 1)``; relative to ``n`` that is more than ``2**-(k + 1)``, so a
float of more than ``k + 1`` significant bits does not round it up to ``n``.
A constant divisor is left to LLVM, which multiplies instead.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from weft.codegen.llvm.types import (
    F32,
    F64,
    I32,
    Splat,
    any_lane,
    has,
    inlined,
    integer_width,
    intrinsic,
    lanes_of,
    like,
    splat,
)
from weft.dtypes import DType


def divide(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
    """The quotient rounded toward zero; ``x / 0 == 0``."""
    divided = builder.sdiv if dtype.signed else builder.udiv
    if _is_harmless(y):
        return divided(x, y)
    by_zero, divisor = _safe_divisor(builder, dtype, x, y)
    as_float = _divides_as_float(builder, x, y)
    quotient = _float_quotient(builder, dtype, x, divisor) if as_float else divided(x, divisor)
    return builder.select(by_zero, splat(0, x.type), quotient)


def remainder(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
    """``x - x / y * y``, which has the sign of ``x``; ``x rem 0 == x``."""
    left = builder.srem if dtype.signed else builder.urem
    if _is_harmless(y):
        return left(x, y)
    by_zero, divisor = _safe_divisor(builder, dtype, x, y)
    if _divides_as_float(builder, x, y):
        rest = builder.sub(x, builder.mul(_float_quotient(builder, dtype, x, divisor), divisor))
    else:
        rest = left(x, divisor)
    return builder.select(by_zero, x, rest)


def _is_harmless(y: ir.Value) -> bool:
    """Whether a divisor is known to be neither 0 nor -1."""
    scalar = y.scalar if isinstance(y, Splat) else y
    return isinstance(scalar, ir.Constant) and isinstance(scalar.constant, int) and scalar.constant not in (0, -1)


def _safe_divisor(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value]:
    """Whether ``y`` is 0, and ``y`` with 1 in place of 0 and, where ``x`` is the least number, of -1."""
    by_zero = builder.icmp_unsigned("==", y, splat(0, y.type))
    harmful = by_zero
    if dtype.signed:
        least = builder.icmp_unsigned("==", x, splat(dtype.min, x.type))
        negates = builder.icmp_unsigned("==", y, splat(-1, y.type))
        harmful = builder.or_(by_zero, builder.and_(least, negates))
    return by_zero, builder.select(harmful, splat(1, y.type), y)


def _divides_as_float(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> bool:
    """Whether floats are the fastest way to divide by ``y``."""
    if has(builder, "ptx") or isinstance(y, ir.Constant):
        return False
    return lanes_of(x) is not None and integer_width(x) <= 32


def _float_quotient(builder: ir.IRBuilder, dtype: DType, x: ir.Value, divisor: ir.Value) -> ir.Value:
    """``x / divisor`` for a divisor that does no harm."""
    # Integers of 16 bits convert in the lanes of 32, where the hardware converts; float32 has 24 > 16 + 1 bits.
    float_ = like(x, F64 if dtype.bits == 32 else F32)
    middle = like(x, I32)
    if dtype.signed:
        wide, by = (builder.sitofp(builder.sext(v, middle), float_) for v in (x, divisor))
        whole = builder.fptosi(builder.fdiv(wide, by), middle)
    else:
        wide, by = (builder.uitofp(builder.zext(v, middle), float_) for v in (x, divisor))
        whole = builder.fptoui(builder.fdiv(wide, by), middle)
    return builder.trunc(whole, x.type)


def shift_left(builder: ir.IRBuilder, dtype: DType, x: ir.Value, amount: ir.Value) -> ir.Value:
    """``x << amount``, the amount read as unsigned; 0 from the width on."""
    amount = _bounded(builder, dtype, amount)
    fits = builder.icmp_unsigned("<", amount, splat(dtype.bits, amount.type))
    return builder.select(fits, builder.shl(x, amount), splat(0, x.type))


def shift_right(builder: ir.IRBuilder, dtype: DType, x: ir.Value, amount: ir.Value) -> ir.Value:
    """``x >> amount``, the amount read as unsigned; from the width on only copies of the sign of a signed type, 0 of an
    unsigned one."""
    if dtype.signed:
        return builder.ashr(x, intrinsic(builder, "umin", [amount, splat(dtype.bits - 1, amount.type)]))
    amount = _bounded(builder, dtype, amount)
    fits = builder.icmp_unsigned("<", amount, splat(dtype.bits, amount.type))
    return builder.select(fits, builder.lshr(x, amount), splat(0, x.type))


def _bounded(builder: ir.IRBuilder, dtype: DType, amount: ir.Value) -> ir.Value:
    """``amount``, or the width for more, where LLVM needs it.

    LLVM for PTX replaces the comparison and the selection by a shift whose amount is the low 32 bits: by 0 for 2^32.
    """
    if dtype.bits < 64 or not has(builder, "ptx"):
        return amount
    return intrinsic(builder, "umin", [amount, splat(dtype.bits, amount.type)])


def absolute(builder: ir.IRBuilder, dtype: DType, x: ir.Value) -> ir.Value:
    """``x`` or ``-x``; the least number is its own absolute value."""
    if not dtype.signed:
        return x
    return builder.select(builder.icmp_signed("<", x, splat(0, x.type)), builder.neg(x), x)


def power(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
    """``x ** y``, wrapped; 0 for a negative exponent. By squaring, until no lane has a bit of its exponent left."""
    if not dtype.signed:
        return inlined(builder, "pow", [x, y], x.type, _by_squaring)
    zero = splat(0, x.type)
    natural = inlined(builder, "pow", [x, intrinsic(builder, "smax", [y, zero])], x.type, _by_squaring)
    return builder.select(builder.icmp_signed("<", y, zero), zero, natural)


def upper_half(builder: ir.IRBuilder, dtype: DType, x: ir.Value, y: ir.Value) -> ir.Value:
    """The upper half of the product of unsigned numbers. Vectors of 64 bits are multiplied by halves: no CPU has the product, and
    LLVM would take the lanes apart."""
    if dtype.bits == 64 and lanes_of(x):
        return _upper_half_of_64(builder, x, y)
    wide = like(x, ir.IntType(2 * dtype.bits))
    product = builder.mul(builder.zext(x, wide), builder.zext(y, wide), flags=("nuw",))
    return builder.trunc(builder.lshr(product, splat(dtype.bits, wide)), x.type)


def _upper_half_of_64(builder: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """With ``x = 2**32 x1 + x0`` and ``y`` alike: ``x1 y1`` and the carries of ``x0 y1 + x1 y0 + (x0 y0 >> 32)``, added so
    that no sum overflows."""
    half, low = splat(32, x.type), splat(0xFFFFFFFF, x.type)
    (x1, x0), (y1, y0) = ((builder.lshr(v, half), builder.and_(v, low)) for v in (x, y))
    first = builder.add(builder.mul(x1, y0), builder.lshr(builder.mul(x0, y0), half))
    second = builder.add(builder.mul(x0, y1), builder.and_(first, low))
    carries = builder.add(builder.lshr(first, half), builder.lshr(second, half))
    return builder.add(builder.mul(x1, y1), carries)


def _by_squaring(builder: ir.IRBuilder, operands: Sequence[ir.Value]) -> ir.Value:
    base, exponent = operands
    zero, one = splat(0, base.type), splat(1, base.type)
    entry, loop, done = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    result, square, left = (builder.phi(base.type) for _ in range(3))
    odd = builder.icmp_unsigned("!=", builder.and_(left, one), zero)
    product = builder.select(odd, builder.mul(result, square), result)
    following = (product, builder.mul(square, square), builder.lshr(left, one))
    for phi, before, after in zip((result, square, left), (one, base, exponent), following, strict=True):
        phi.add_incoming(before, entry)
        phi.add_incoming(after, loop)
    builder.cbranch(any_lane(builder, builder.icmp_unsigned("!=", following[2], zero)), loop, done)
    builder.position_at_end(done)
    return product

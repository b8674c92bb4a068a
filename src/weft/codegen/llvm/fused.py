"""Multiply-add that rounds once, on machines without an instruction for it. Every result is that of the instruction.

The obvious way is libm's ``fma`` for each lane, which computes with integers. Here sums and products of float64 are taken in two
words, the rounded one and the rest, and the last words are *rounded to odd*: an inexact sum is the one of its two neighbours
whose last bit is 1. Such a sum is on no border between two results, so that rounding it again is right
(S. Boldo, G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).

- float32: the product is exact in float64, and 53 bits are at least the two more than 24 that rounding to odd needs.
- float64: as the paper has it, where no word leaves the range of the format. Other operands are scaled: the product is
  ``2^b p`` with ``1 <= p < 4``, and the addend ``2^b z``. An addend that is 2^120 times greater or smaller only decides in which
  direction to round, so that it is taken as that. A result below the normal range is rounded where ``2^-1074 / 2^b`` is the unit:
  by adding a power of two whose unit that is, in the same sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from weft.codegen.llvm.lanes import Lanes
from weft.codegen.llvm.types import F64, all_lanes, has, inlined, intrinsic, like, outlined, scalar_type

INFINITY = float("inf")
_FAR = 120
"""Exponents by which product and addend differ at most."""


def fma(builder: ir.IRBuilder, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    """``x * y + z`` rounded once, of float32 or float64 values of one shape."""
    if has(builder, "fma"):
        return intrinsic(builder, "fma", [x, y, z])
    body = _double if scalar_type(x) == F64 else _single
    return inlined(builder, "fma", [x, y, z], x.type, body)


def _single(builder: ir.IRBuilder, operands: Sequence[ir.Value]) -> ir.Value:
    x, y, z = (builder.fpext(operand, like(operand, F64)) for operand in operands)
    v = Lanes(builder, x)
    return builder.fptrunc(_odd_sum(v, v.mul(x, y), z), operands[0].type)


def _odd_sum(v: Lanes, x: ir.Value, y: ir.Value) -> ir.Value:
    """``x + y`` rounded to odd; infinities and NaN as they are."""
    sum_, rest = v.two_sum(x, y)
    bits = v.bits(sum_)
    apart = v.builder.icmp_signed("<", v.builder.xor(bits, v.bits(rest)), v.integer(0))
    step = v.builder.select(apart, v.integer(-1), v.integer(1))
    even = v.builder.icmp_unsigned("==", v.builder.and_(bits, v.integer(1)), v.integer(0))
    inexact = v.builder.and_(v.builder.fcmp_ordered("!=", rest, v.value(0.0)), even)
    return v.float(v.builder.add(bits, v.builder.select(inexact, step, v.integer(0))))


def _double(builder: ir.IRBuilder, operands: Sequence[ir.Value]) -> ir.Value:
    x, y, z = operands
    v = Lanes(builder, x)
    product = v.absolute(v.mul(x, y))
    sizes = (v.absolute(operand) for operand in operands)
    inside = v.builder.and_(v.less(product, 2.0**1000), v.builder.not_(v.less(product, 2.0**-960)))
    for zero in (x, y):
        inside = builder.or_(inside, v.equal(zero, 0.0))
    for size in sizes:
        inside = builder.and_(inside, v.less(size, 2.0**1000))
    near, far, done = (builder.append_basic_block(name) for name in ("near", "far", "done"))
    builder.cbranch(all_lanes(builder, inside), near, far).set_weights([1000, 1])
    builder.position_at_end(near)
    of_near = _in_range(v, x, y, z)
    builder.branch(done)
    builder.position_at_end(far)
    of_far = outlined(builder, "fma.scaled", operands, x.type, lambda b, v_: _scaled(Lanes(b, v_[0]), *v_))
    builder.branch(done)
    builder.position_at_end(done)
    result = builder.phi(x.type)
    result.add_incoming(of_near, near)
    result.add_incoming(of_far, far)
    return result


def _words(v: Lanes, x: ir.Value, y: ir.Value, z: ir.Value) -> tuple[ir.Value, ir.Value]:
    """``x y + z`` as the rounded sum of its highest words, and the others rounded to odd."""
    high, low = v.two_product(x, y)
    sum_, rest = v.two_sum(z, low)
    whole, more = v.two_sum(high, sum_)
    return whole, _odd_sum(v, rest, more)


def _in_range(v: Lanes, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    whole, rest = _words(v, x, y, z)
    product = v.mul(x, y)
    return v.select(v.equal(product, 0.0), v.add(product, z), v.add(whole, rest))


def _scaled(v: Lanes, x: ir.Value, y: ir.Value, z: ir.Value) -> ir.Value:
    """Of any operands."""
    builder = v.builder
    (m, i), (n, j), (o, k) = (v.split(v.absolute(operand), 1.0) for operand in (x, y, z))
    m, n, o = (v.with_sign(part, operand) for part, operand in ((m, x), (n, y), (o, z)))
    least, most = v.integer(-_FAR), v.integer(_FAR)
    no_addend = v.equal(z, 0.0)
    scale = builder.add(i, j)
    apart = builder.select(no_addend, least, builder.sub(k, scale))
    scale = builder.add(scale, intrinsic(builder, "smax", [builder.sub(apart, most), v.integer(0)]))
    apart = intrinsic(builder, "smax", [intrinsic(builder, "smin", [apart, most]), least])
    whole, rest = _words(v, m, n, v.select(no_addend, z, v.mul(o, v.power_of_two(apart))))
    sum_ = v.add(whole, rest)
    lowest = builder.sub(v.integer(1 - v.format.bias), scale)
    lowest = intrinsic(builder, "smax", [intrinsic(builder, "smin", [lowest, v.integer(300)]), v.integer(-1000)])
    border = v.power_of_two(lowest)
    raised = v.select(v.less(v.absolute(sum_), border), v.with_sign(border, sum_), 0.0)
    high, low = v.fast_two_sum(raised, whole)
    result = v.sub(v.add(high, _odd_sum(v, low, rest)), raised)
    quarter = builder.ashr(scale, v.integer(2))
    last = builder.sub(scale, builder.mul(quarter, v.integer(3)))
    for exponent in (quarter, quarter, quarter, last):
        result = v.mul(result, v.power_of_two(exponent))
    result = v.with_sign(result, sum_)
    finite = builder.and_(v.less(v.absolute(x), INFINITY), v.less(v.absolute(y), INFINITY))
    plain = v.add(v.mul(x, y), z)
    plain = v.select(builder.and_(finite, v.equal(v.absolute(z), INFINITY)), z, plain)
    exact = builder.or_(v.equal(x, 0.0), v.equal(y, 0.0))
    ordinary = builder.and_(builder.and_(finite, v.less(v.absolute(z), INFINITY)), builder.not_(exact))
    return v.select(ordinary, result, plain)

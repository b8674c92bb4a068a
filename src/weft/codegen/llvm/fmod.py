"""The remainder of floats (C's fmod), exact for all operands.

``|x| = m 2^i`` and ``|y| = d 2^j`` with ``m`` and ``d`` in ``[1, 2)``. The remainder is ``2^j`` times that of ``m 2^(i - j)`` by
``d``, and the power of two is multiplied in piece by piece, up to `steps` bits at a time, with a remainder by ``d`` after each.

For ``r < 2^(steps + 1)`` the quotient ``q = trunc(r / d)`` is an integer that the format holds. It is right, or too large by
1 where the division rounded up to an integer. All of ``r``, ``q d`` and ``r - q d`` are multiples of the unit of ``d``,
and ``-d <= r - q d < d``: one fused multiply-add gives it exactly, and one addition of ``d`` corrects it. float32 that is held in
float64 has quotients of 23 bits, so that ``q d`` is exact.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.llvm.lanes import WIDENED, Lanes
from weft.codegen.llvm.rounding import rounded
from weft.codegen.llvm.types import any_lane, intrinsic

INFINITY = float("inf")


def remainder(v: Lanes, x: ir.Value, y: ir.Value) -> ir.Value:
    """``x - trunc(x / y) y`` with the sign of ``x``; NaN for ``x`` infinite or ``y`` 0; ``x`` for ``y`` infinite."""
    builder = v.builder
    a, b = v.absolute(x), v.absolute(y)
    m, i = v.split(a, 1.0)
    d, j = v.split(b, 1.0)
    smaller = v.less(a, b)
    undefined = builder.or_(builder.or_(v.unordered(x, y), v.equal(a, INFINITY)), v.equal(b, 0.0))
    none = v.integer(0)
    idle = builder.or_(undefined, smaller)
    shift = builder.select(idle, none, intrinsic(builder, "smax", [builder.sub(i, j), none]))
    rest = v.scaled(_reduced(v, m, d, shift), j)
    result = v.select(smaller, x, v.with_sign(rest, x))
    return v.select(undefined, float("nan"), result)


def _reduced(v: Lanes, m: ir.Value, d: ir.Value, shift: ir.Value) -> ir.Value:
    """The remainder of ``m 2^shift`` by ``d``; a loop until no lane has anything left of its shift."""
    builder = v.builder
    steps = v.integer(22 if v.format is WIDENED else v.format.mantissa - 1)
    entry, loop, done = builder.block, builder.append_basic_block("loop"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    before, left = builder.phi(v.type), builder.phi(v.bits_type)
    bits = intrinsic(builder, "umin", [left, steps])
    r = v.mul(before, v.power_of_two(bits))
    q = rounded(builder, "trunc", v.div(r, d))
    difference = v.fma(builder.fneg(q), d, r)
    after = v.select(v.less(difference, 0.0), v.add(difference, d), difference)
    further = builder.sub(left, bits)
    for phi, first, following in ((before, m, after), (left, shift, further)):
        phi.add_incoming(first, entry)
        phi.add_incoming(following, loop)
    builder.cbranch(any_lane(builder, builder.icmp_unsigned("!=", further, v.integer(0))), loop, done)
    builder.position_at_end(done)
    return after

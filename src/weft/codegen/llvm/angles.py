"""sin, cos, tan and atan2.

``x = n pi/2 + r`` with ``|r| <= pi/4``; ``n`` modulo 4 says which of ``+-sin r``, ``+-cos r`` and their quotients the result is.
Up to the format's ``turns``, ``n`` is rounded from ``x 2/pi`` and ``r`` comes from three multiples of parts of pi/2. Larger ``x``
are rare: each lane then calls a scalar function of float64 that multiplies ``x`` by the bits of 2/pi that matter
(M. Payne, R. Hanek, 1983). A lane's result does not depend on the lanes beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from weft.codegen.llvm import coefficients as c
from weft.codegen.llvm.lanes import DOUBLE, Lanes
from weft.codegen.llvm.types import F64, I64, any_lane, intrinsic, like, outlined, per_lane, private

I128 = ir.IntType(128)
INFINITY = float("inf")
Kernel = Callable[[Lanes, ir.Value, ir.Value, ir.Value], ir.Value]
"""The function's value from ``n`` and from ``r`` in two words."""


def sin(v: Lanes, x: ir.Value) -> ir.Value:
    """The polynomial turns -0 into +0."""
    near = v.select(v.equal(x, 0.0), x, _sine_near(v, x, 0))
    return _with_far(v, x, near, "sin", lambda w, n, r, low: _sine(w, n, w.add(r, low)))


def cos(v: Lanes, x: ir.Value) -> ir.Value:
    """``sin(x + pi/2)``"""
    near = _sine_near(v, x, 1)
    return _with_far(v, x, near, "cos", lambda w, n, r, low: _sine(w, w.builder.add(n, w.integer(1)), w.add(r, low)))


def tan(v: Lanes, x: ir.Value) -> ir.Value:
    """``sin r / cos r`` or ``-cos r / sin r``, with ``r`` in two words; as for `sin`, -0 stays."""
    near = v.select(v.equal(x, 0.0), x, _tangent(v, *_reduced_to_pair(v, x)))
    return _with_far(v, x, near, "tan", _tangent)


def _sine_near(v: Lanes, x: ir.Value, quarter: int) -> ir.Value:
    """``sin(x + quarter pi/2)`` for ``|x|`` up to the format's ``turns``."""
    quadrant, n = v.nearest(x, v.format.two_over_pi)
    if quarter:
        quadrant = v.builder.add(quadrant, v.integer(quarter))
    r = x
    for part in v.format.half_pi:
        r = v.fma(n, -part, r)
    return _sine(v, quadrant, r)


def _sine(v: Lanes, quadrant: ir.Value, r: ir.Value) -> ir.Value:
    """``sin(quadrant pi/2 + r)``"""
    z = v.mul(r, r)
    sine = v.fma(v.mul(r, z), v.polynomial(z, v.format.sin_terms), r)
    cosine = v.fma(v.fma(v.polynomial(z, v.format.cos_terms), z, -0.5), z, 1.0)
    sign = v.builder.shl(v.builder.and_(quadrant, v.integer(2)), v.integer(v.format.integer.width - 2))
    return v.float(v.builder.xor(v.bits(v.select(_is_odd(v, quadrant), cosine, sine)), sign))


def _is_odd(v: Lanes, quadrant: ir.Value) -> ir.Value:
    return v.builder.icmp_unsigned("!=", v.builder.and_(quadrant, v.integer(1)), v.integer(0))


def _reduced_to_pair(v: Lanes, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """``n`` and ``r`` in two words. ``x - n p`` is exact for the first part ``p`` of pi/2, since the leading bits cancel."""
    quadrant, n = v.nearest(x, v.format.two_over_pi)
    first, second, third = v.format.half_pi
    near = v.fma(n, -first, x)
    product, product_rest = v.two_product(n, -second)
    r, rest = v.two_sum(near, product)
    return quadrant, r, v.fma(n, -third, v.add(rest, product_rest))


def _tangent(v: Lanes, quadrant: ir.Value, r: ir.Value, low: ir.Value) -> ir.Value:
    """``tan(quadrant pi/2 + r + low)``: ``sin(r + low)`` is ``sin r + low cos r``, ``cos(r + low)`` is ``cos r - low sin r``."""
    z = v.mul(r, r)
    half = v.mul(z, -0.5)
    cubic = v.fma(v.mul(r, z), v.polynomial(z, v.format.sin_terms), v.fma(half, low, low))
    sine, sine_low = v.fast_two_sum(r, cubic)
    quartic = v.mul(v.mul(z, z), v.polynomial(z, v.format.cos_terms))
    cosine, cosine_low = v.fast_two_sum(v.value(1.0), v.add(half, v.fma(v.builder.fneg(r), low, quartic)))
    odd = _is_odd(v, quadrant)
    over, over_low, under, under_low = (
        v.select(odd, x, y) for x, y in ((cosine, sine), (cosine_low, sine_low), (sine, cosine), (sine_low, cosine_low))
    )
    quotient = v.div(over, under)
    negative = v.builder.fneg(quotient)
    residual = v.fma(negative, under_low, v.add(v.fma(negative, under, over), over_low))
    result = v.add(quotient, v.div(residual, under))
    return v.select(odd, v.builder.fneg(result), result)


# Large angles.


def _with_far(v: Lanes, x: ir.Value, near: ir.Value, kind: str, kernel: Kernel) -> ir.Value:
    """``near``, but for lanes whose ``|x|`` is beyond the format's ``turns``."""
    builder = v.builder
    far_lanes = v.less(v.format.turns, v.absolute(x))
    entry, far_block, done = builder.block, *(builder.append_basic_block(name) for name in ("far", "done"))
    builder.cbranch(any_lane(builder, far_lanes), far_block, done).set_weights([1, 1000])
    builder.position_at_end(far_block)
    mixed = v.select(far_lanes, _far(v, x, kind, kernel), near)
    builder.branch(done)
    builder.position_at_end(done)
    merged = builder.phi(x.type)
    merged.add_incoming(near, entry)
    merged.add_incoming(mixed, far_block)
    return merged


def _far(v: Lanes, x: ir.Value, kind: str, kernel: Kernel) -> ir.Value:
    """The function of each lane by a scalar function of float64."""

    def scalar(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> ir.Value:
        w = Lanes(builder, arguments[0])
        result = kernel(w, *_reduced_by_words(w, arguments[0]))
        return w.select(w.less(w.absolute(arguments[0]), INFINITY), result, float("nan"))

    def lanes(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> ir.Value:
        function = private(builder.module, f"weft.{kind}.far", [F64], F64, scalar, "noinline")
        return per_lane(builder, function, arguments)

    wide = x if v.format is DOUBLE else v.builder.fpext(x, like(x, F64))
    result = outlined(v.builder, f"{kind}.lanes", [wide], wide.type, lanes)
    return result if v.format is DOUBLE else v.builder.fptrunc(result, x.type)


def _reduced_by_words(v: Lanes, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """``n`` and ``r`` in two words, for one float64; numbers of no meaning where ``|x|`` is below `turns` or infinite.

    ``|x| = m 2^e`` for integers, and ``m (2^e 2/pi)`` is wanted modulo 4. Bits of ``2^e 2/pi`` from 4 up do not count, and of
    the others 192 suffice: no float64 is nearer to a multiple of pi/2 than some 2^-61, and the error is below 2^-126.
    """
    builder = v.builder
    bits = v.bits(v.absolute(x))
    exponent = builder.lshr(bits, v.integer(52))
    m = builder.or_(builder.and_(bits, v.integer((1 << 52) - 1)), v.integer(1 << 52))
    start = builder.sub(exponent, v.integer(1023 + 52 - 64))  # the words have 64 bits before that of weight 2
    start = intrinsic(builder, "smin", [intrinsic(builder, "smax", [start, v.integer(0)]), v.integer(972 + 64)])
    high, middle, low = _words(v, start)
    product = builder.shl(builder.zext(builder.mul(m, high), I128), I128(64))
    product = builder.add(product, builder.mul(builder.zext(m, I128), builder.zext(middle, I128)))
    below = builder.mul(builder.zext(m, I128), builder.zext(low, I128))
    product = builder.add(product, builder.lshr(below, I128(64)))
    # The upper two bits are n rounded down; what follows is the fraction, as a signed one from -1/2 on.
    fraction = builder.shl(product, I128(2))
    up = builder.trunc(builder.lshr(fraction, I128(127)), I64)
    quadrant = builder.add(builder.trunc(builder.lshr(product, I128(126)), I64), up)
    r, r_low = _times_half_pi(v, *_fraction_pair(v, fraction))
    negative = v.is_negative(x)
    signed = [v.select(negative, builder.fneg(part), part) for part in (r, r_low)]
    return builder.select(negative, builder.neg(quadrant), quadrant), signed[0], signed[1]


def _words(v: Lanes, start: ir.Value) -> list[ir.Value]:
    """Three words of 2/pi from the bit ``start`` on."""
    builder = v.builder
    name = "weft.two_over_pi"
    table = builder.module.globals.get(name)
    if table is None:
        type_ = ir.ArrayType(I64, len(c.TWO_OVER_PI_WORDS))
        table = ir.GlobalVariable(builder.module, type_, name)
        table.linkage, table.global_constant = "internal", True
        table.initializer = ir.Constant(type_, [I64(word) for word in c.TWO_OVER_PI_WORDS])
    first = builder.lshr(start, v.integer(6))
    words = [
        builder.load(builder.gep(table, [builder.add(first, v.integer(i))], source_etype=I64), typ=I64, align=8)
        for i in range(4)
    ]
    shift = builder.and_(start, v.integer(63))
    return [intrinsic(builder, "fshl", [*pair, shift]) for pair in zip(words, words[1:], strict=False)]


def _fraction_pair(v: Lanes, fraction: ir.Value) -> tuple[ir.Value, ir.Value]:
    """A signed 128-bit integer over 2^128 in two words: pieces of 32, 48 and 48 bits convert exactly."""
    builder = v.builder
    top = builder.sitofp(builder.trunc(builder.ashr(fraction, I128(96)), I64), v.type)
    mask = v.integer((1 << 48) - 1)
    middle, low = (
        builder.uitofp(builder.and_(builder.trunc(builder.lshr(fraction, I128(at)), I64), mask), v.type)
        for at in (48, 0)
    )
    sum_, rest = v.fast_two_sum(v.mul(top, 2.0**-32), v.mul(middle, 2.0**-80))
    return v.fast_two_sum(sum_, v.fma(low, 2.0**-128, rest))


def _times_half_pi(v: Lanes, x: ir.Value, low: ir.Value) -> tuple[ir.Value, ir.Value]:
    first, second, _ = v.format.half_pi
    product, rest = v.two_product(x, first)
    return product, v.add(rest, v.fma(x, second, v.mul(low, first)))


# The angle of a point.


def atan2(v: Lanes, y: ir.Value, x: ir.Value) -> ir.Value:
    """The angle of ``(x, y)``, between -pi and pi; on the axes by the signs of zeros, as C99's annex F.9.1.4.

    With ``t`` the lesser of ``|x|`` and ``|y|`` over the greater, it is ``k pi/4 +- atan q``: ``q`` is ``t`` up to
    ``tan(pi/8)``, and from there on ``(t - 1) / (t + 1)``, in two words.
    """
    builder = v.builder
    small, large, steep = _sorted(v, x, y)
    turned = v.less(v.mul(large, 0.5**0.5 * 2 - 1), small)
    below, below_low = v.fast_two_sum(builder.fneg(large), small)
    above, above_low = v.fast_two_sum(large, small)
    numerator, denominator = v.select(turned, below, small), v.select(turned, above, large)
    quotient = v.div(numerator, v.select(v.equal(denominator, 0.0), 1.0, denominator))
    q = builder.fneg(quotient)
    residual = v.add(v.fma(q, denominator, numerator), v.select(turned, v.fma(q, above_low, below_low), 0.0))
    low = v.div(residual, v.select(v.equal(denominator, 0.0), 1.0, denominator))
    z = v.mul(quotient, quotient)
    tail = v.fma(v.mul(quotient, z), v.polynomial(z, v.format.atan_terms), low)
    # Eighths of a turn: t - k pi/4 is atan q; a steep angle is pi/2 - atan t; one with x < 0 is pi minus that.
    eighths = v.select(turned, 1.0, 0.0)
    eighths = v.select(steep, v.sub(2.0, eighths), eighths)
    left = v.is_negative(x)
    eighths = v.select(left, v.sub(4.0, eighths), eighths)
    backward = builder.xor(steep, left)
    base, base_low = v.two_product(eighths, v.format.half_pi[0] / 2)
    base_low = v.fma(eighths, v.format.half_pi[1] / 2, base_low)
    quotient, tail = (v.select(backward, builder.fneg(part), part) for part in (quotient, tail))
    sum_, rest = v.fast_two_sum(base, quotient)
    angle = v.with_sign(v.add(sum_, v.add(rest, v.add(base_low, tail))), y)
    return v.select(v.unordered(x, y), float("nan"), angle)


def _sorted(v: Lanes, x: ir.Value, y: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The lesser and the greater of ``|x|`` and ``|y|``, both times a power of two so that neither their sum nor residuals
    leave the format's range, and whether ``|y|`` is the greater. Of two infinities both become 1, of one the other 0."""
    a, b = v.absolute(x), v.absolute(y)
    steep = v.less(a, b)
    small, large = v.select(steep, a, b), v.select(steep, b, a)
    form = v.format
    raised = 2.0 ** (form.bias // 2)
    scale = v.select(v.less(large, raised), raised, v.select(v.less(2.0 ** (form.bias - 2), large), 0.25, 1.0))
    infinite = v.equal(large, INFINITY)
    small = v.select(infinite, v.select(v.equal(small, INFINITY), 1.0, 0.0), v.mul(small, scale))
    return small, v.select(infinite, 1.0, v.mul(large, scale)), steep

"""sin, cos, tan and atan2.

``x = n pi/2 + r`` with ``|r| <= pi/4``; ``n`` modulo 4 says which of ``+-sin r``, ``+-cos r`` and their quotients the result is.
Up to the format's ``turns``, ``n`` is rounded from ``x 2/pi`` and ``r`` comes from three multiples of parts of pi/2. Larger ``x``
are rare: a function apart, of float64, then multiplies ``x`` by the bits of 2/pi that matter (M. Payne, R. Hanek, 1983). A lane's
result does not depend on the lanes beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from weft.codegen.llvm import coefficients as c
from weft.codegen.llvm.lanes import DOUBLE, WIDENED, Lanes
from weft.codegen.llvm.types import (
    F64,
    I1,
    I32,
    I64,
    POINTER,
    any_lane,
    broadcast,
    intrinsic,
    lanes_of,
    like,
    outlined,
    scalar_type,
    splat,
)

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
    first, second, third = v.format.half_pi
    r = v.multiply_add(n, -third, v.fma(n, -second, v.fma(n, -first, x)))
    return _sine(v, quadrant, r)


def _sine(v: Lanes, quadrant: ir.Value, r: ir.Value) -> ir.Value:
    """``sin(quadrant pi/2 + r)``"""
    z = v.mul(r, r)
    sine = v.multiply_add(v.mul(r, z), v.polynomial(z, v.format.sin_terms), r)
    cosine = v.one_plus(v.multiply_add(v.polynomial(z, v.format.cos_terms), z, -0.5), z)
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
    return quadrant, r, v.multiply_add(n, -third, v.add(rest, product_rest))


def _tangent(v: Lanes, quadrant: ir.Value, r: ir.Value, low: ir.Value) -> ir.Value:
    """``tan(quadrant pi/2 + r + low)``: ``sin(r + low)`` is ``sin r + low cos r``, ``cos(r + low)`` is ``cos r - low sin r``."""
    z = v.mul(r, r)
    half = v.mul(z, -0.5)
    cubic = v.multiply_add(v.mul(r, z), v.polynomial(z, v.format.sin_terms), v.multiply_add(half, low, low))
    sine, sine_low = v.fast_two_sum(r, cubic)
    quartic = v.mul(v.mul(z, z), v.polynomial(z, v.format.cos_terms))
    cosine, cosine_low = v.fast_two_sum(v.value(1.0), v.add(half, v.multiply_add(v.builder.fneg(r), low, quartic)))
    odd = _is_odd(v, quadrant)
    over, over_low, under, under_low = (
        v.select(odd, x, y) for x, y in ((cosine, sine), (cosine_low, sine_low), (sine, cosine), (sine_low, cosine_low))
    )
    quotient = v.div(over, under)
    negative = v.builder.fneg(quotient)
    residual = v.multiply_add(negative, under_low, v.add(v.fma(negative, under, over), over_low))
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
    """The function of large angles, in float64; of float32 with the polynomials of float32."""
    single = v.format is not DOUBLE

    def lanes(builder: ir.IRBuilder, arguments: Sequence[ir.Value]) -> ir.Value:
        w = Lanes(builder, arguments[0], WIDENED if single else DOUBLE)
        result = kernel(w, *_reduced_by_words(w, arguments[0]))
        return w.select(w.less(w.absolute(arguments[0]), INFINITY), result, float("nan"))

    held = scalar_type(x) == F64
    wide = x if held else v.builder.fpext(x, like(x, F64))
    name = f"{kind}.far.single" if single else f"{kind}.far"
    result = outlined(v.builder, name, [wide], wide.type, lanes)
    return result if held else v.builder.fptrunc(result, x.type)


def _reduced_by_words(v: Lanes, x: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """``n`` and ``r`` in two words, for float64; numbers of no meaning where ``|x|`` is below `turns` or infinite.

    ``|x| = m 2^e`` for integers, and ``m (2^e 2/pi)`` is wanted modulo 4. Bits of ``2^e 2/pi`` from 4 up do not count, and of
    the others 192 suffice: no float64 is nearer to a multiple of pi/2 than some 2^-61, and the error is below 2^-123. float32
    takes 128 bits: none is nearer than 2^-34, and the error is below 2^-59.
    """
    builder = v.builder
    bits = v.bits(v.absolute(x))
    exponent = builder.lshr(bits, v.integer(52))
    m = builder.or_(builder.and_(bits, v.integer((1 << 52) - 1)), v.integer(1 << 52))
    start = builder.sub(exponent, v.integer(1023 + 52 - 64))  # the words have 64 bits before that of weight 2
    start = intrinsic(builder, "smin", [intrinsic(builder, "smax", [start, v.integer(0)]), v.integer(972 + 64)])
    high, low = _product(v, m, _words(v, start, 2 if v.format is WIDENED else 3))
    # The upper two bits are n rounded down; what follows is the fraction, as a signed one from -1/2 on.
    fraction = builder.or_(builder.shl(high, v.integer(2)), builder.lshr(low, v.integer(62)))
    up = builder.lshr(fraction, v.integer(63))
    quadrant = builder.add(builder.lshr(high, v.integer(62)), up)
    r, r_low = _times_half_pi(v, *_fraction_pair(v, fraction, builder.shl(low, v.integer(2))))
    negative = v.is_negative(x)
    signed = [v.select(negative, builder.fneg(part), part) for part in (r, r_low)]
    return builder.select(negative, builder.neg(quadrant), quadrant), signed[0], signed[1]


def _words(v: Lanes, start: ir.Value, count: int) -> list[ir.Value]:
    """So many words of 2/pi from the bit ``start`` on, the highest first."""
    builder, name = v.builder, "weft.two_over_pi"
    table = builder.module.globals.get(name)
    if table is None:
        type_ = ir.ArrayType(I64, len(c.TWO_OVER_PI_WORDS))
        table = ir.GlobalVariable(builder.module, type_, name)
        table.linkage, table.global_constant = "internal", True
        table.initializer = ir.Constant(type_, [I64(word) for word in c.TWO_OVER_PI_WORDS])
    base = builder.ptrtoint(table, I64)
    lanes = lanes_of(start)
    base = base if lanes is None else broadcast(builder, base, lanes)
    first = builder.add(base, builder.shl(builder.lshr(start, v.integer(6)), v.integer(3)))
    words = [_loaded(builder, builder.add(first, v.integer(8 * i))) for i in range(count + 1)]
    shift = builder.and_(start, v.integer(63))
    return [intrinsic(builder, "fshl", [*pair, shift]) for pair in zip(words, words[1:], strict=False)]


def _loaded(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    """The word at each address."""
    lanes = lanes_of(address)
    if lanes is None:
        return builder.load(builder.inttoptr(address, POINTER), typ=I64, align=8)
    pointers = builder.inttoptr(address, ir.VectorType(POINTER, lanes))
    every, unused = splat(1, ir.VectorType(I1, lanes)), splat(0, address.type)
    operands = [pointers, ir.Constant(I32, 8), every, unused]
    return intrinsic(builder, "masked.gather", operands, address.type, [address.type, pointers.type])


def _product(v: Lanes, m: ir.Value, words: Sequence[ir.Value]) -> tuple[ir.Value, ir.Value]:
    """``m`` times the words, as a number of words of which the first one is whole: its last word there, and the word behind it;
    some units less in the last place.

    In halves of words, as machines multiply 32 bits in vectors. A column is what weighs 2^32 to some power.
    """
    builder = v.builder
    half, low_half = v.integer(32), v.integer((1 << 32) - 1)

    def upper(x: ir.Value) -> ir.Value:
        return builder.lshr(x, half)

    def lower(x: ir.Value) -> ir.Value:
        return builder.and_(x, low_half)

    parts = [part for word in reversed(words) for part in (lower(word), upper(word))]
    columns: list[list[ir.Value]] = [[] for _ in parts]
    last = len(parts) - 4
    for shifted, factor in enumerate((lower(m), upper(m))):
        for place, part in enumerate(parts[: len(parts) - shifted], shifted):
            if place + 1 < last:
                continue
            product = builder.mul(factor, part)
            if place >= last:
                columns[place].append(lower(product))
            if place + 1 < len(parts):
                columns[place + 1].append(upper(product))
    digits: list[ir.Value] = []
    carry = v.integer(0)
    for column in columns[last:]:
        sum_: ir.Value = carry
        for term in column:
            sum_ = builder.add(sum_, term)
        digits.append(sum_)
        carry = upper(sum_)
    low, high = (builder.or_(lower(digits[i]), builder.shl(digits[i + 1], half)) for i in (0, 2))
    return high, low


def _fraction_pair(v: Lanes, high: ir.Value, low: ir.Value) -> tuple[ir.Value, ir.Value]:
    """A signed integer of two words over 2^128 in two floats: pieces of 32, 48 and 48 bits convert exactly."""
    builder = v.builder
    sign = v.integer(1 << 31)
    top = v.sub(_small_positive(v, builder.xor(builder.lshr(high, v.integer(32)), sign)), 2.0**31)
    mask = v.integer((1 << 48) - 1)
    middle = builder.or_(builder.shl(high, v.integer(16)), builder.lshr(low, v.integer(48)))
    middle, last = (_small_positive(v, builder.and_(piece, mask)) for piece in (middle, low))
    sum_, rest = v.fast_two_sum(v.mul(top, 2.0**-32), v.mul(middle, 2.0**-80))
    return v.fast_two_sum(sum_, v.multiply_add(last, 2.0**-128, rest))


def _small_positive(v: Lanes, x: ir.Value) -> ir.Value:
    """A positive integer of at most 52 bits as float64."""
    return v.sub(v.float(v.builder.or_(x, v.bits(2.0**52))), 2.0**52)


def _times_half_pi(v: Lanes, x: ir.Value, low: ir.Value) -> tuple[ir.Value, ir.Value]:
    first, second, _ = v.format.half_pi
    product, rest = v.two_product(x, first)
    return product, v.add(rest, v.multiply_add(x, second, v.mul(low, first)))


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
    residual = v.add(v.fma(q, denominator, numerator), v.select(turned, v.multiply_add(q, above_low, below_low), 0.0))
    low = v.div(residual, v.select(v.equal(denominator, 0.0), 1.0, denominator))
    z = v.mul(quotient, quotient)
    tail = v.multiply_add(v.mul(quotient, z), v.polynomial(z, v.format.atan_terms), low)
    # Eighths of a turn: t - k pi/4 is atan q; a steep angle is pi/2 - atan t; one with x < 0 is pi minus that.
    eighths = v.select(turned, 1.0, 0.0)
    eighths = v.select(steep, v.sub(2.0, eighths), eighths)
    left = v.is_negative(x)
    eighths = v.select(left, v.sub(4.0, eighths), eighths)
    backward = builder.xor(steep, left)
    base, base_low = v.two_product(eighths, v.format.half_pi[0] / 2)
    base_low = v.multiply_add(eighths, v.format.half_pi[1] / 2, base_low)
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

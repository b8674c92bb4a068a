"""pow, log10 and cbrt: the functions whose inner results need more than one word.

A power ``x^y`` is ``2^(y log2 x)``. An error of the exponent is a relative error of the result, and the exponent may be 1024:
the logarithm therefore has some 12 bits more than the format, as an unevaluated sum of two words.
`log10` takes the same logarithm, so that powers of ten give integers.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.llvm.lanes import Lanes

INFINITY = float("inf")
NAN = float("nan")
Pair = tuple[ir.Value, ir.Value]


def _log2_pair(v: Lanes, x: ir.Value) -> Pair:
    """``log2(x)`` in two words for ``x`` positive and finite.

    ``x = 2^k (1 + f)`` as in `_log`. With ``s = f / (2 + f)`` and ``z = s^2``, ``log(1 + f)`` is
    ``2 s (1 + z (1/3 + z q(z)))``, in which all but ``z q(z)`` is computed in two words.
    """
    m, exponent = v.split(x, 0.5**0.5)
    k = v.small(exponent)
    f = v.sub(m, 1.0)
    d, d_low = v.fast_two_sum(v.value(2.0), f)
    s = v.div(f, d)
    s_low = v.div(v.multiply_add(v.builder.fneg(s), d_low, v.fma(v.builder.fneg(s), d, f)), d)
    z, z_rest = v.two_product(s, s)
    z_low = v.multiply_add(v.add(s, s), s_low, z_rest)
    third, third_low = v.format.third
    inner, inner_rest = v.fast_two_sum(v.value(third), v.mul(z, v.polynomial(z, v.format.log_tail)))
    inner_low = v.add(inner_rest, third_low)
    u, u_rest = v.two_product(z, inner)
    u_low = v.add(u_rest, v.multiply_add(z, inner_low, v.mul(z_low, inner)))
    w, w_rest = v.two_product(s, u)
    w_low = v.add(w_rest, v.multiply_add(s, u_low, v.mul(s_low, u)))
    half, half_rest = v.fast_two_sum(s, w)
    half_low = v.add(half_rest, v.add(s_low, w_low))
    high, low = (2 * part for part in v.format.log2e)
    fraction, fraction_rest = v.two_product(half, high)
    fraction_low = v.add(fraction_rest, v.multiply_add(half, low, v.mul(half_low, high)))
    whole, whole_rest = v.fast_two_sum(k, fraction)
    return v.fast_two_sum(whole, v.add(whole_rest, fraction_low))


def log10(v: Lanes, x: ir.Value) -> ir.Value:
    """``log2(x) log10(2)``; NaN below 0."""
    log, log_low = _log2_pair(v, x)
    high, low = v.format.log10_2
    product, rest = v.two_product(log, high)
    return v.log_of_special(x, v.add(product, v.add(rest, v.multiply_add(log, low, v.mul(log_low, high)))))


def power(v: Lanes, x: ir.Value, y: ir.Value) -> ir.Value:
    """C's pow: of ``|x|``, then the sign where ``x`` has one and ``y`` is odd, and the cases of C99's annex F.9.4.4."""
    builder = v.builder
    a = v.absolute(x)
    sized = _power_of_absolute(v, a, y)
    # An infinite y is an even integer, as all floats from 2^(mantissa + 1) on are.
    whole = v.is_integer(y)
    odd = builder.and_(whole, builder.not_(v.is_integer(v.mul(y, 0.5))))
    signed = v.select(builder.and_(odd, v.is_negative(x)), builder.fneg(sized), sized)
    negative = builder.and_(v.less(x, 0.0), v.less(-INFINITY, x))
    real = v.select(builder.and_(negative, builder.not_(whole)), NAN, signed)
    number = v.select(v.unordered(x, y), NAN, real)
    # Such a y is even. Near its largest values `_power_of_absolute` makes NaN of 1 where products are split into words.
    flat = builder.and_(v.equal(x, -1.0), v.less(2.0 ** (v.format.mantissa + 2), v.absolute(y)))
    unit = builder.or_(flat, builder.or_(v.equal(x, 1.0), v.equal(y, 0.0)))
    return v.select(unit, 1.0, number)


def _power_of_absolute(v: Lanes, a: ir.Value, y: ir.Value) -> ir.Value:
    """``a^y`` for ``a >= 0``, but for ``1^inf`` and ``y = 0``."""
    log, log_low = _log2_pair(v, a)
    log = v.select(v.equal(a, 0.0), -INFINITY, v.select(v.equal(a, INFINITY), INFINITY, log))
    exponent, rest = v.two_product(y, log)
    bounded = v.within(exponent, v.format.exp2)
    # A product out of bounds may be infinite, and its rest NaN.
    exponent_low = v.select(v.equal(bounded, exponent), v.multiply_add(y, log_low, rest), 0.0)
    n, whole = v.nearest(bounded, 1.0)
    r = v.add(v.sub(bounded, whole), exponent_low)
    return v.scaled(v.one_plus(v.polynomial(r, v.format.exp2_terms), r), n)


def cbrt(v: Lanes, x: ir.Value) -> ir.Value:
    """``sign(x) 2^q c`` with ``c = cbrt(m)`` and ``|x| = 2^(3 q) m``, ``1 <= m < 8``.

    ``y``, near ``m^(-1/3)``, is a polynomial, then one step of third order. ``c = m y^2`` has an error ``e y^2 / 3`` for the
    exact residual ``e = m - c^3``.
    """
    builder = v.builder
    fraction, k = v.split(v.absolute(x), 1.0)
    third = v.format.third[0]
    shifted = builder.add(k, v.integer(3 << 10))  # not negative; (2^16 + 2) / 3 over 2^16 divides it exactly
    q = builder.sub(
        builder.lshr(builder.mul(shifted, v.integer(((1 << 16) + 2) // 3)), v.integer(16)), v.integer(1 << 10)
    )
    remainder = builder.sub(k, builder.mul(q, v.integer(3)))
    one, half, quarter = v.format.cbrt_scales
    is_one, is_two = (builder.icmp_unsigned("==", remainder, v.integer(i)) for i in (1, 2))
    scale = v.select(is_two, quarter, v.select(is_one, half, one))
    m = v.mul(fraction, v.power_of_two(remainder))
    y = v.mul(v.polynomial(v.sub(fraction, 1.0), v.format.cbrt_terms), scale)
    h = v.multiply_add(builder.fneg(v.mul(m, y)), v.mul(y, y), 1.0)
    y = v.multiply_add(v.mul(y, h), v.multiply_add(h, 2 / 9, third), y)
    square = v.mul(y, y)
    root = v.mul(m, square)
    root2, root2_low = v.two_product(root, root)
    negative = builder.fneg(root)
    residual = v.multiply_add(negative, root2_low, v.fma(negative, root2, m))
    root = v.multiply_add(v.mul(residual, square), third, root)
    result = v.with_sign(v.mul(root, v.power_of_two(q)), x)
    ordinary = builder.and_(v.less(0.0, v.absolute(x)), v.less(v.absolute(x), INFINITY))
    return v.select(ordinary, result, v.add(x, x))

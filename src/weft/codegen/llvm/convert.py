"""Conversions between element types, each rounded exactly once.

LLVM's `fptrunc` is not used on CPUs: float64 to bfloat16 is then two roundings on most targets, or a call to compiler-rt;
bfloat16's own instruction flushes subnormals; and float8 does not exist. All narrow floats share two routines that read the
format's row in `weft.dtypes`: `widen` to float32, which is exact, and `narrow` from float32, which rounds to nearest even.
float16 uses the target's instruction where it has one, and on NVIDIA GPUs bfloat16, too. There integers of 8 bits become
floats by byte permutes.

Whatever float32 cannot hold exactly (float64, integers of 32 and 64 bits) first becomes a float32 *rounded to odd*: the
truncated value, its last bit set if anything was lost. Rounding that to a format with at least two bits fewer
gives what rounding the exact value would (Boldo and Melquiond, 2008).

Float to integer saturates and takes NaN to 0; to bool is ``!= 0``; which NaN results from a NaN is not specified.
"""

from __future__ import annotations

from llvmlite import ir

from weft import dtypes
from weft.codegen.llvm.types import (
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    element_type,
    has,
    intrinsic,
    lanes_of,
    like,
    packed,
    scalar_type,
    shuffle,
    splat,
)
from weft.dtypes import DType

_MANTISSA = 23
_BIAS = 127
_INFINITY = 0x7F800000
_MAGNITUDE = 0x7FFFFFFF


def is_narrow(dtype: DType) -> bool:
    """Whether arithmetic on ``dtype`` is done in float32 and rounded back."""
    return dtype.is_float and dtype.bits < 32


def cast(builder: ir.IRBuilder, value: ir.Value, source: DType, target: DType) -> ir.Value:
    """`tile.cast`: ``value`` of type ``source`` as ``target``."""
    if source == target:
        return value
    if target.is_bool:
        return _to_bool(builder, value, source)
    if source.is_float:
        return _from_float(builder, value, source, target)
    if not target.is_float:
        return _between_integers(builder, value, source, target)
    if target in _BYTES and source.bits == 8 and (lanes_of(value) or 1) % 4 == 0 and has(builder, "ptx"):
        return _bytes_to_float(builder, value, source, target)
    if is_narrow(target):
        return narrow(builder, _integer_to_odd(builder, value, source), target)
    return _integer_to_float(builder, value, source, like(value, element_type(target)))


def bitcast(builder: ir.IRBuilder, value: ir.Value, target: DType) -> ir.Value:
    """`tile.bitcast` between numbers: the same bits as ``target``, which is as wide as the value."""
    return builder.bitcast(value, like(value, element_type(target)))


def widen(builder: ir.IRBuilder, value: ir.Value, dtype: DType) -> ir.Value:
    """A value of a narrow float type as float32, exactly; other types pass unchanged."""
    if not is_narrow(dtype):
        return value
    if half := packed(builder, dtype):
        return builder.fpext(builder.bitcast(value, like(value, half)), like(value, F32))
    if dtype == dtypes.bfloat16:
        return builder.bitcast(_shifted_left(builder, value, 32, 16), like(value, F32))
    reaches_infinity = dtype.all_numbers and dtype.exponent == dtypes.float16.exponent  # where float16 has one
    if has(builder, "half") and not reaches_infinity:
        return _widen_by_half(builder, value, dtype)
    return _widen_by_integers(builder, value, dtype)


def narrow(builder: ir.IRBuilder, value: ir.Value, dtype: DType) -> ir.Value:
    """A float32 value rounded to ``dtype``, to nearest even; to float32 unchanged.

    Beyond the largest finite value after rounding comes infinity, in a finite-only format NaN. A format that saturates rounds
    ties away from zero.
    """
    if not is_narrow(dtype):
        return value
    if half := packed(builder, dtype):
        return builder.bitcast(builder.fptrunc(value, like(value, half)), like(value, I16))
    if dtype == dtypes.bfloat16:
        return _round_to_bfloat16(builder, value)
    if dtype == dtypes.float16 and has(builder, "half"):
        return builder.bitcast(builder.fptrunc(value, like(value, F16)), like(value, I16))
    return _round_by_integers(builder, value, dtype)


def _shifted_left(builder: ir.IRBuilder, value: ir.Value, width: int, amount: int) -> ir.Value:
    """The bits of ``value`` in ``width`` bits, moved up by ``amount``. Bytes of a vector that become the upper halves of 16 bits
    are interleaved with zeros: one byte permute for two of them on a GPU, where shifts are done one by one."""
    type_ = like(value, ir.IntType(width))
    count = lanes_of(value)
    if count is not None and (scalar_type(value), width, amount) == (I8, 16, 8):
        places = [place for lane in range(count) for place in (count, lane)]
        return builder.bitcast(shuffle(builder, value, places, ir.Constant(value.type, None)), type_)
    return builder.shl(builder.zext(value, type_), splat(amount, type_))


def _widen_by_half(builder: ir.IRBuilder, value: ir.Value, dtype: DType) -> ir.Value:
    """Through float16, into which every format with at most 5 exponent and 10 mantissa bits fits but for its bias."""
    if dtype == dtypes.float8_e4m3fn and has(builder, "f8"):
        return builder.fpext(_by_pairs(builder, value), like(value, F32))
    if dtype.bits == 8:
        shift = 10 - dtype.mantissa
        bits = _shifted_left(builder, value, 16, 8 if shift == 8 else 0)
        if shift != 8:  # the sign stays on top, the rest moves down
            signed = builder.sext(value, like(value, I16))
            moved = builder.shl(signed, splat(shift, signed.type))
            bits = builder.and_(moved, splat(0x8000 | ((1 << (7 + shift)) - 1), moved.type))
    else:
        bits = value
    wide = builder.fpext(builder.bitcast(bits, like(value, F16)), like(value, F32))
    if scale := dtypes.float16.bias - dtype.bias:
        wide = builder.fmul(wide, splat(2.0**scale, wide.type))
    return _restore_nan(builder, wide, value, dtype)


def _by_pairs(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """float8_e4m3fn as float16, two by one instruction; the last of an odd number with a zero beside it."""
    count = lanes_of(value)
    if count is None:
        pair = intrinsic(builder, _PAIR, [builder.zext(value, I16)], ir.VectorType(F16, 2), [])
        return builder.extract_element(pair, ir.Constant(I32, 0))
    places = [*range(count), *[count] * (count % 2)]
    whole = value if count % 2 == 0 else shuffle(builder, value, places, ir.Constant(value.type, None))
    pairs = builder.bitcast(whole, ir.VectorType(I16, len(places) // 2))
    found: ir.Value = ir.Constant(ir.VectorType(I32, len(places) // 2), ir.Undefined)
    for place in range(len(places) // 2):
        at = ir.Constant(I32, place)
        pair = intrinsic(builder, _PAIR, [builder.extract_element(pairs, at)], ir.VectorType(F16, 2), [])
        found = builder.insert_element(found, builder.bitcast(pair, I32), at)
    halves = builder.bitcast(found, ir.VectorType(F16, len(places)))
    return halves if count % 2 == 0 else shuffle(builder, halves, range(count))


_PAIR = "nvvm.e4m3x2.to.f16x2.rn"


def _restore_nan(builder: ir.IRBuilder, wide: ir.Value, bits: ir.Value, dtype: DType) -> ir.Value:
    """The one NaN of a format of 8 bits without infinities, which widening took for a number: all ones below the sign, or the
    place of -0."""
    if not (dtype.finite_only and dtype.has_nan):
        return wide
    code = bits if dtype.all_numbers else builder.and_(bits, splat(0x7F, bits.type))
    is_nan = builder.icmp_unsigned("==", code, splat(0x80 if dtype.all_numbers else 0x7F, bits.type))
    return builder.select(is_nan, splat(float("nan"), wide.type), wide)


def _widen_by_integers(builder: ir.IRBuilder, value: ir.Value, dtype: DType) -> ir.Value:
    """Normal numbers by moving the fields and adding to the exponent, subnormal ones by converting the mantissa."""
    type_, float_ = like(value, I32), like(value, F32)
    bits = builder.zext(value, type_)
    sign = builder.shl(builder.lshr(bits, splat(dtype.bits - 1, type_)), splat(31, type_))
    magnitude = builder.and_(bits, splat((1 << (dtype.bits - 1)) - 1, type_))
    rebias = _BIAS - dtype.bias
    moved = builder.shl(magnitude, splat(_MANTISSA - dtype.mantissa, type_))
    normal = builder.add(moved, splat(rebias << _MANTISSA, type_))
    unit = 2.0 ** (1 - dtype.bias - dtype.mantissa)
    subnormal = builder.fmul(builder.sitofp(magnitude, float_), splat(unit, float_))
    is_subnormal = builder.icmp_unsigned("<", magnitude, splat(1 << dtype.mantissa, type_))
    result = builder.select(is_subnormal, builder.bitcast(subnormal, type_), normal)
    if dtype.finite_only:
        wide = builder.bitcast(builder.or_(result, sign), float_)
        return _restore_nan(builder, wide, value, dtype)
    special = splat(((1 << dtype.exponent) - 1) << dtype.mantissa, type_)
    is_special = builder.icmp_unsigned(">=", magnitude, special)
    result = builder.select(is_special, builder.or_(moved, splat(_INFINITY, type_)), result)
    return builder.bitcast(builder.or_(result, sign), float_)


def _round_to_bfloat16(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Adds half a unit less one, plus the last bit kept; the carry may run into the exponent, up to infinity."""
    type_ = like(value, I32)
    bits = builder.bitcast(value, type_)
    upper = builder.lshr(bits, splat(16, type_))
    odd = builder.and_(upper, splat(1, type_))
    rounded = builder.add(builder.add(bits, splat(0x7FFF, type_)), odd)
    quiet = builder.or_(bits, splat(1 << 22, type_))
    kept = builder.select(builder.fcmp_unordered("uno", value, value), quiet, rounded)
    return builder.trunc(builder.lshr(kept, splat(16, type_)), like(value, I16))


def _round_by_integers(builder: ir.IRBuilder, value: ir.Value, dtype: DType) -> ir.Value:
    """Results that are normal by adding to the bits as for bfloat16; subnormal ones by adding the power of two whose unit is
    the format's least number, so that the adder rounds."""
    type_ = like(value, I32)
    bits = builder.bitcast(value, type_)
    magnitude = builder.and_(bits, splat(_MAGNITUDE, type_))
    drop = _MANTISSA - dtype.mantissa
    odd = builder.and_(builder.lshr(magnitude, splat(drop, type_)), splat(1, type_))
    if dtype.saturates:  # a tie is rounded up, whatever the last bit is
        odd = splat(1, type_)
    rebias = (_BIAS - dtype.bias) << _MANTISSA
    half = builder.add(magnitude, splat((1 << (drop - 1)) - 1 - rebias, type_))
    normal = builder.lshr(builder.add(half, odd), splat(drop, type_))
    least_normal = 1 - dtype.bias
    magic = splat(2.0 ** (least_normal - dtype.mantissa + _MANTISSA), value.type)
    summed = builder.bitcast(builder.fadd(builder.bitcast(magnitude, value.type), magic), type_)
    subnormal = builder.sub(summed, builder.bitcast(magic, type_))
    if dtype.saturates:
        subnormal = builder.add(
            subnormal, _tie_rounded_down(builder, builder.bitcast(magnitude, value.type), summed, magic)
        )
    is_subnormal = builder.icmp_unsigned("<", magnitude, splat((least_normal + _BIAS) << _MANTISSA, type_))
    top = dtype.bits - 1
    sign = builder.and_(builder.lshr(bits, splat(31 - top, type_)), splat(1 << top, type_))
    narrow_ = like(value, ir.IntType(dtype.bits))
    if dtype.all_numbers:
        result = builder.select(is_subnormal, subnormal, normal)
        return builder.trunc(_without_infinities(builder, result, sign, dtype), narrow_)
    infinity = ((1 << dtype.exponent) - 1) << dtype.mantissa
    beyond, nan = (0x7F, 0x7F) if dtype.finite_only else (infinity, infinity | 1 << (dtype.mantissa - 1))
    result = builder.select(is_subnormal, subnormal, intrinsic(builder, "umin", [normal, splat(beyond, type_)]))
    is_nan = builder.icmp_unsigned(">", magnitude, splat(_INFINITY, type_))
    result = builder.select(is_nan, splat(nan, type_), result)
    return builder.trunc(builder.or_(result, sign), narrow_)


def _tie_rounded_down(builder: ir.IRBuilder, x: ir.Value, summed: ir.Value, magic: ir.Constant) -> ir.Value:
    """1 where adding ``magic`` to ``x`` rounded half a unit down, else 0. All differences are exact."""
    lost = builder.fsub(x, builder.fsub(builder.bitcast(summed, x.type), magic))
    is_tie = builder.fcmp_ordered("==", builder.fmul(lost, splat(2.0 ** (_MANTISSA + 1), x.type)), magic)
    return builder.zext(is_tie, summed.type)


def _without_infinities(builder: ir.IRBuilder, magnitude: ir.Value, sign: ir.Value, dtype: DType) -> ir.Value:
    """The code of a magnitude, which is large for infinity and NaN too, in a format all of whose magnitudes are numbers. What is
    beyond them is the greatest, or NaN: the code that would be -0."""
    type_ = magnitude.type
    if dtype.saturates:
        return builder.or_(intrinsic(builder, "umin", [magnitude, splat(dtype.saturates, type_)]), sign)
    is_zero = builder.icmp_unsigned("==", magnitude, splat(0, type_))
    code = builder.select(is_zero, magnitude, builder.or_(magnitude, sign))
    is_beyond = builder.icmp_unsigned(">", magnitude, splat(0x7F, type_))
    return builder.select(is_beyond, splat(0x80, type_), code)


def _to_bool(builder: ir.IRBuilder, value: ir.Value, source: DType) -> ir.Value:
    if not source.is_float:
        return builder.icmp_unsigned("!=", value, splat(0, value.type))
    wide = widen(builder, value, source)
    return builder.fcmp_unordered("!=", wide, splat(0.0, wide.type))


def _between_integers(builder: ir.IRBuilder, value: ir.Value, source: DType, target: DType) -> ir.Value:
    """Wraps; bools are the unsigned integers of one bit."""
    type_ = like(value, element_type(target))
    if target.bits <= source.bits:
        return builder.trunc(value, type_)
    return builder.sext(value, type_) if source.signed else builder.zext(value, type_)


def _integer_to_float(builder: ir.IRBuilder, value: ir.Value, source: DType, type_: ir.Type) -> ir.Value:
    return builder.sitofp(value, type_) if source.signed else builder.uitofp(value, type_)


_BYTES = {
    dtypes.float16: (F16, 0x64646464, (0x4140, 0x4342), 2.0**10),
    dtypes.float32: (F32, 0x4B000000, (0x7440, 0x7441, 0x7442, 0x7443), 2.0**23),
}
"""Floats whose lowest byte counts ones under some exponent: LLVM's type, a word with that exponent's bytes, the selectors that
put the bytes of a word below it, and the number that is a zero byte."""


def _bytes_to_float(builder: ir.IRBuilder, value: ir.Value, source: DType, target: DType) -> ir.Value:
    """Integers of 8 bits, a multiple of four of them, by byte permutes. Below the exponent of 2**10 a byte x is the float16
    2**10 + x, from which 2**10 is taken; of signed integers it is x + 128. Of float32 the same with 2**23."""
    type_, exponents, selectors, zero = _BYTES[target]
    count = lanes_of(value) or 1
    if source.signed:
        value, zero = builder.xor(value, splat(0x80, value.type)), zero + 128
    words = builder.bitcast(value, ir.VectorType(I32, count // 4))
    results = len(selectors) * count // 4
    found: ir.Value = ir.Constant(ir.VectorType(I32, results), ir.Undefined)
    for place in range(results):
        word = builder.extract_element(words, ir.Constant(I32, place // len(selectors)))
        operands = [word, ir.Constant(I32, exponents), ir.Constant(I32, selectors[place % len(selectors)])]
        found = builder.insert_element(
            found, intrinsic(builder, "nvvm.prmt", operands, I32, []), ir.Constant(I32, place)
        )
    floats = builder.bitcast(found, like(value, type_))
    difference = builder.fsub(floats, splat(zero, floats.type))
    return builder.bitcast(difference, like(value, element_type(target)))


def _integer_to_odd(builder: ir.IRBuilder, value: ir.Value, source: DType) -> ir.Value:
    """An integer as a float32 that rounds to every narrow format as the integer itself."""
    if source.bits <= 16:
        return cast(builder, value, source, dtypes.float32)
    if source.bits == 64:
        value = _to_53_bits(builder, value, source)
    return _float64_to_odd(builder, _integer_to_float(builder, value, source, like(value, F64)))


def _to_53_bits(builder: ir.IRBuilder, value: ir.Value, source: DType) -> ir.Value:
    """A 64-bit integer rounded to an odd multiple of ``2**11`` unless float64 holds it exactly."""
    type_ = value.type
    low = builder.and_(value, splat((1 << 11) - 1, type_))
    inexact = builder.zext(builder.icmp_unsigned("!=", low, splat(0, type_)), type_)
    odd = builder.or_(builder.sub(value, low), builder.shl(inexact, splat(11, type_)))
    if source.signed:  # value + 2**53 is in [0, 2**54]
        value_shifted = builder.add(value, splat(1 << 53, type_))
        exact = builder.icmp_unsigned("<=", value_shifted, splat(1 << 54, type_))
    else:
        exact = builder.icmp_unsigned("<=", value, splat(1 << 53, type_))
    return builder.select(exact, value, odd)


def _float64_to_odd(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """A float64 as float32 rounded to odd; infinity stays, NaN stays a NaN."""
    type_ = like(value, I32)
    near = builder.fptrunc(value, like(value, F32))
    back = builder.fpext(near, value.type)
    away = builder.fcmp_ordered(">", intrinsic(builder, "fabs", [back]), intrinsic(builder, "fabs", [value]))
    inexact = builder.fcmp_ordered("!=", back, value)
    truncated = builder.sub(builder.bitcast(near, type_), builder.zext(away, type_))
    return builder.bitcast(builder.or_(truncated, builder.zext(inexact, type_)), like(value, F32))


def _from_float(builder: ir.IRBuilder, value: ir.Value, source: DType, target: DType) -> ir.Value:
    wide = widen(builder, value, source)
    if not target.is_float:
        return _float_to_integer(builder, wide, source.compute, target)
    if is_narrow(target):
        return narrow(builder, _float64_to_odd(builder, wide) if source == dtypes.float64 else wide, target)
    return (builder.fpext if source.bits < target.bits else builder.fptrunc)(wide, like(value, element_type(target)))


def _float_to_integer(builder: ir.IRBuilder, value: ir.Value, source: DType, target: DType) -> ir.Value:
    """Truncated toward zero, saturated, NaN as 0. (LLVM's `fptosi.sat` does the same, but takes vectors apart.)"""
    excess = max(target.max.bit_length() - (source.mantissa + 1), 0)
    largest = target.max >> excess << excess  # that the float type holds
    low, high = splat(float(target.min), value.type), splat(float(largest), value.type)
    clamped = builder.select(builder.fcmp_ordered("<", value, low), low, value)
    clamped = builder.select(builder.fcmp_ordered(">", clamped, high), high, clamped)
    # Hardware converts to 32 and 64 bits, and signed integers best; its result for NaN is not used.
    middle = like(value, ir.IntType(max(target.bits, 32)))
    whole = (builder.fptosi if target.signed or target.bits < 32 else builder.fptoui)(clamped, middle)
    if excess:
        whole = builder.select(builder.fcmp_ordered(">", value, high), splat(target.max, middle), whole)
    whole = builder.select(builder.fcmp_unordered("uno", value, value), splat(0, middle), whole)
    return builder.trunc(whole, like(value, element_type(target)))

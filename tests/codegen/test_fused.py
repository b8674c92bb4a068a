"""Fused multiply-add and rounding to integers on CPUs without instructions for them: exact, against rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from weft import dtypes
from weft.codegen.llvm import arith
from weft.dtypes import DType

if TYPE_CHECKING:
    from codegen.conftest import Compiler

pytestmark = pytest.mark.jit

Array = NDArray[Any]
F32, F64 = dtypes.float32, dtypes.float64
INF, NAN = math.inf, math.nan


def fma(compiler: Compiler, dtype: DType, operands: Array, lanes: int | None = 16) -> Array:
    """``a * b + c`` of the rows of operands."""
    return compiler.run(lambda b, v: arith.fma(b, dtype, *v), [dtype] * 3, dtype, list(operands), lanes)


def nearest(x: Fraction, dtype: DType) -> float:
    """``x`` rounded to the nearest number of a format, of two the even one; 0 is positive."""
    least = 2 - (1 << (dtype.exponent - 1)) - dtype.mantissa
    size = abs(x)
    exponent = least
    if size:
        log = size.numerator.bit_length() - size.denominator.bit_length()
        log -= size < Fraction(2) ** log
        exponent = max(log - dtype.mantissa, least)
    scaled = size / Fraction(2) ** exponent
    whole, rest = divmod(scaled.numerator, scaled.denominator)
    whole += (2 * rest, whole & 1) > (scaled.denominator, 0)
    over = whole * Fraction(2) ** exponent >= Fraction(2) ** (1 << (dtype.exponent - 1))
    return math.copysign(INF if over else math.ldexp(whole, exponent), 1 if x >= 0 else -1)


def expected(a: float, b: float, c: float, dtype: DType) -> float:
    """IEEE 754, section 5.4.1: of the exact value, and of operands that are no finite numbers."""
    if not all(map(math.isfinite, (a, b))):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact:
        return nearest(exact, dtype)
    signs = {math.copysign(1, a) * math.copysign(1, b), math.copysign(1, c)}
    return -0.0 if signs == {-1.0} else 0.0


def assert_fused(compiler: Compiler, dtype: DType, operands: Array, lanes: int | None = 16) -> None:
    """Each result to the bit, but for the bits of NaN."""
    found = fma(compiler, dtype, operands, lanes)
    want = np.array([expected(float(a), float(b), float(c), dtype) for a, b, c in operands.T], dtype.numpy)
    same = (found == want) & (np.signbit(found) == np.signbit(want)) | np.isnan(found) & np.isnan(want)
    assert same.all(), [
        (*map(float.hex, map(float, row)), f, w)
        for row, f, w in zip(operands.T[~same], found[~same], want[~same], strict=True)
    ][:4]


def near(rng: np.random.Generator, dtype: DType, count: int) -> Array:
    """Operands whose sum cancels, is just beside the middle of two numbers, or has an addend that hardly counts."""
    bits = dtype.mantissa
    a, b = rng.integers(1 << bits, 2 << bits, (2, count)).astype(np.float64)
    a, b = (np.ldexp(x, -bits).astype(dtype.numpy) for x in (a, b))
    product = a.astype(np.float64) * b
    apart = rng.integers(-2 * bits - 4, 2 * bits + 4, count)
    kind = rng.integers(0, 4, count)
    c = np.ldexp(rng.integers(1, 1 << bits, count) / (1 << bits), apart)
    c = np.where(kind == 0, -product, c)
    c = np.where(kind == 1, np.ldexp(1.0, apart), c)
    eighths: Array = np.ldexp(np.rint(np.ldexp(product, 3)), -3)
    c = np.where(kind == 2, eighths - product, c)
    sparse = rng.random(count) < 0.5
    few = np.ldexp(1.0, -rng.integers(0, bits, count)) + 1
    a = np.where(sparse, few, a)
    middle = rng.random(count) < 0.3  # 1 - j^2 2^-2p beside a sum whose unit is 2
    unit = np.ldexp(np.floor(np.exp2(rng.uniform(0, bits / 2, count))), -bits)
    a, b = np.where(middle, 1 + unit, a), np.where(middle, 1 - unit, b)
    c = np.where(middle, rng.integers(1 << bits, 2 << bits, count) * 2.0, c)
    return np.array([a, b, c * rng.choice([-1.0, 1.0], count)]).astype(dtype.numpy)


@pytest.mark.parametrize("lanes", [16, None])
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_products_are_added_exactly(plain: Compiler, dtype: DType, lanes: int | None) -> None:
    """Random bits, sums that cancel, and sums near the middle of two numbers, moved over the whole range of exponents."""
    rng = np.random.default_rng(0)
    integer = f"u{dtype.itemsize}"
    anything = rng.integers(0, 1 << dtype.bits, (3, 3000), integer, endpoint=False).view(dtype.numpy)
    parts = [anything]
    most = 1 << (dtype.exponent - 1)
    for low, high in ((-2, 2), (-most, most), (-most - 2 * dtype.mantissa, -most + 10)):
        operands = near(rng, dtype, 3000)
        total = rng.integers(low, high, 3000)
        first = rng.integers(np.maximum(total - most // 2, -most + 2), np.minimum(total + most // 2, most - 2))
        parts.append(
            np.array([np.ldexp(operands[0], first), np.ldexp(operands[1], total - first), np.ldexp(operands[2], total)])
        )
    assert_fused(plain, dtype, np.concatenate(parts, axis=1).astype(dtype.numpy), lanes)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_special_operands(plain: Compiler, dtype: DType) -> None:
    """Every triple of zeros, infinities, NaN, the ends of the range and numbers near 1."""
    limits = np.finfo(dtype.numpy)
    sizes = [0.0, 1.0, 1.5, float(limits.max), float(limits.tiny), float(limits.smallest_subnormal), INF, NAN]
    values = np.array([s * x for x in sizes for s in (1, -1)], dtype.numpy)
    assert_fused(plain, dtype, np.array(np.meshgrid(values, values, values)).reshape(3, -1))


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("kind", ["floor", "ceil"])
def test_integers_beside_a_number(plain: Compiler, kind: str, dtype: DType) -> None:
    """Numbers of all exponents, integers and their neighbours, halves; with the signs of zeros."""
    rng = np.random.default_rng(0)
    anything = rng.integers(0, 1 << dtype.bits, 4000, f"u{dtype.itemsize}", endpoint=False).view(dtype.numpy)
    whole = np.concatenate([np.arange(-70, 71), 2.0 ** np.arange(dtype.mantissa + 3)]).astype(dtype.numpy)
    beside = [np.nextafter(whole, np.array(x, dtype.numpy)) for x in (INF, -INF)]
    x = np.concatenate([anything, whole, -whole, *beside, whole / 2, np.array([-0.0, INF, -INF], dtype.numpy)])
    found = plain.run(lambda b, v: arith.unary(b, kind, dtype, v[0]), [dtype], dtype, [x])
    rounding = {"floor": math.floor, "ceil": math.ceil}[kind]
    want = np.array([math.copysign(rounding(y), y) if math.isfinite(y) else y for y in map(float, x)], dtype.numpy)
    assert np.array_equal(found, want, equal_nan=True)
    numbers = ~np.isnan(want)
    assert np.array_equal(np.signbit(found[numbers]), np.signbit(want[numbers]))

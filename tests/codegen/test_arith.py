"""Elementwise kinds against exact arithmetic: Python's integers and fractions, each result rounded by definition."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sampling import grid
from weft import dtypes
from weft.codegen.llvm import arith
from weft.codegen.llvm.types import integer_width
from weft.dtypes import DType
from weft.ir.tile import BINARY, COMPARE, UNARY, class_of

if TYPE_CHECKING:
    from codegen.conftest import Compiler

pytestmark = pytest.mark.jit

Array = NDArray[Any]
FLOATS = [d for d in dtypes.ALL if d.is_float]
INTEGERS = [d for d in dtypes.ALL if not d.is_float]
TRANSCENDENTAL = {"exp", "exp2", "log", "log2", "sin", "cos", "tanh", "erf"}

# Oracles


def rounded(exact: Fraction, dtype: DType) -> float:
    """A non-zero rational number in a floating-point type: Python's `round` of a fraction ties to even."""
    bias = (1 << (dtype.exponent - 1)) - 1
    exponent = exact.numerator.bit_length() - exact.denominator.bit_length()  # of 2: right, or one too large
    while Fraction(2) ** exponent > abs(exact):
        exponent -= 1
    ulp = Fraction(2) ** (max(exponent, 1 - bias) - dtype.mantissa)
    result = round(exact / ulp) * ulp
    sign = 1 if exact > 0 else -1
    last = 2 - (1 + dtype.finite_only) * Fraction(1, 1 << dtype.mantissa)
    if abs(result) > last * Fraction(2) ** (bias + dtype.finite_only):
        return math.nan if dtype.finite_only else sign * math.inf
    return sign * abs(float(result))


def arithmetic(kind: str, x: float, y: float, dtype: DType) -> float:
    """``x kind y`` exactly, then rounded. Zeros, infinities and NaN follow float64's rules, which are IEEE 754's."""
    if kind == "div" and y == 0:
        return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1, y)  # noqa: PLR0124 (NaN)
    function: Callable[[Any, Any], Any] = getattr(operator, {"div": "truediv"}.get(kind, kind))
    if not (math.isfinite(x) and math.isfinite(y)):
        return function(x, y)
    exact = function(Fraction(x), Fraction(y))
    return rounded(exact, dtype) if exact else function(x, y)


def remainder(x: float, y: float) -> float:
    """C's fmod."""
    return math.fmod(x, y) if y and math.isfinite(x) and y == y else math.nan  # noqa: PLR0124 (NaN)


def extreme(kind: str, x: float, y: float) -> float:
    """min and max prefer the number, minnan and maxnan NaN."""
    choose = min if kind.startswith("min") else max
    if x != x or y != y:  # noqa: PLR0124 (NaN)
        return math.nan if kind.endswith("nan") or (x != x and y != y) else y if x != x else x  # noqa: PLR0124 (NaN)
    return choose(x, y)


def fused(a: float, b: float, c: float, dtype: DType) -> float:
    """``a b + c`` rounded to the compute type, then to ``dtype``."""
    if not all(map(math.isfinite, (a, b, c))):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if not exact:
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    once = rounded(exact, dtype.compute)
    return once if dtype.compute == dtype or not math.isfinite(once) or once == 0 else rounded(Fraction(once), dtype)


def integer_result(kind: str, x: int, y: int, dtype: DType) -> int:
    """On Python's integers, before wrapping."""
    shift = y % (1 << max(dtype.bits, 8))
    match kind:
        case "div" | "rem":
            quotient = 0 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
            return quotient if kind == "div" else x - quotient * y
        case "shl":
            return x << shift if shift < dtype.bits else 0
        case "shr":
            return x >> min(shift, dtype.bits)
        case "umulhi":
            return (x % (1 << dtype.bits)) * (y % (1 << dtype.bits)) >> dtype.bits
        case "pow":
            return 0 if y < 0 else pow(x, y, 1 << dtype.bits)
        case "min" | "max":
            return min(x, y) if kind == "min" else max(x, y)
        case _:
            names = {"and": "and_", "or": "or_"}
            return int(getattr(operator, names.get(kind, kind))(x, y))


def wrapped(value: int, dtype: DType) -> int:
    """Two's complement."""
    low = value % (1 << dtype.bits)
    return low - (1 << dtype.bits) if low > dtype.max else low


# Inputs


def values(dtype: DType, count: int, seed: int = 0) -> Array:
    """Random bits; of floats with a common exponent range half the time, and the special ones first."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.integers(0, 2, count).astype(np.bool_)
    bits = (
        rng.integers(0, 1 << 64, count, dtype=np.uint64, endpoint=False)
        if dtype.bits == 64
        else (rng.integers(0, 1 << dtype.bits, count))
    )
    raw = bits.astype(f"u{dtype.itemsize}").view(dtype.numpy)
    if dtype.is_float:
        special = np.array([0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.5]).astype(dtype.numpy)
        raw[::2] = rng.normal(scale=4, size=len(raw[::2])).astype(dtype.numpy)
    else:
        special = np.array([dtype.min, dtype.max, 0, 1, -1 if dtype.signed else 2, 7, dtype.bits], dtype.numpy)
        raw[::2] = raw[::2] % 37
    raw[: len(special)] = special
    return raw


def pairs(dtype: DType, count: int) -> tuple[Array, Array]:
    """All pairs of 8-bit integers; otherwise random ones after all pairs of special ones."""
    if dtype.bits <= 8 and not dtype.is_float:
        every = np.arange(1 << dtype.bits, dtype=np.uint8)
        every = every.astype(np.bool_) if dtype.is_bool else every.view(dtype.numpy)
        return np.repeat(every, len(every)), np.tile(every, len(every))
    x, y = values(dtype, count, 1), values(dtype, count, 2)
    special = values(dtype, 7)
    return np.concatenate([np.repeat(special, 7), x]), np.concatenate([np.tile(special, 7), y])


def assert_equal(got: Array, want: list[Any], dtype: DType, *inputs: Array, zeros_differ: bool = True) -> None:
    """Equal bits but for NaN (and, where allowed, signs of zeros)."""
    wanted = np.array(want, np.float64 if dtype.is_float else object).astype(dtype.numpy)
    same = got.view(f"u{dtype.itemsize}") == wanted.view(f"u{dtype.itemsize}")
    if dtype.is_float:
        same |= np.isnan(got) & np.isnan(wanted)
        same |= (got == wanted) & (not zeros_differ)
    wrong = np.flatnonzero(~same)
    assert not wrong.size, (
        f"{wrong.size} wrong, first {[i[wrong[0]] for i in inputs]}: {got[wrong[0]]!r}, not {wanted[wrong[0]]!r}"
    )


def listed(x: Array) -> list[Any]:
    """Python numbers."""
    return (x if x.dtype.kind in "biu" else x.astype(np.float64)).tolist()


# Binary kinds


def test_float_binary_kinds_are_exact_then_rounded(host: Compiler) -> None:
    for dtype in FLOATS:
        x, y = pairs(dtype, 400)
        for kind in ("add", "sub", "mul", "div"):
            got = host.run(lambda b, v, k=kind, d=dtype: arith.binary(b, k, d, *v), [dtype] * 2, dtype, [x, y])
            want = [arithmetic(kind, a, b, dtype) for a, b in zip(listed(x), listed(y), strict=True)]
            assert_equal(got, want, dtype, x, y)


@pytest.mark.parametrize("lanes", [16, None])
def test_float_choices_and_remainders(host: Compiler, lanes: int | None) -> None:
    for dtype in FLOATS:
        x, y = pairs(dtype, 400)
        for kind in ("min", "max", "minnan", "maxnan", "rem"):
            got = host.run(lambda b, v, k=kind, d=dtype: arith.binary(b, k, d, *v), [dtype] * 2, dtype, [x, y], lanes)
            function: Callable[[float, float], float] = (
                remainder if kind == "rem" else lambda a, b, k=kind: extreme(k, a, b)
            )
            want = [function(a, b) for a, b in zip(listed(x), listed(y), strict=True)]
            assert_equal(got, want, dtype, x, y, zeros_differ=kind == "rem")


@pytest.mark.parametrize(("dtype", "lanes"), grid(2, INTEGERS, [16, None]), ids=str)
def test_integer_binary_kinds(host: Compiler, dtype: DType, lanes: int | None) -> None:
    """Every pair of 8-bit operands."""
    if lanes is None and dtype.bits == 8:
        pytest.skip("every pair is in the vector test")
    x, y = pairs(dtype, 600)
    for kind in (k for k, classes in BINARY.items() if class_of(dtype) in classes):
        got = host.run(lambda b, v, k=kind: arith.binary(b, k, dtype, *v), [dtype] * 2, dtype, [x, y], lanes)
        want = [
            wrapped(integer_result(kind, int(a), int(b), dtype), dtype)
            for a, b in zip(listed(x), listed(y), strict=True)
        ]
        assert_equal(got, want, dtype, x, y)


@pytest.mark.parametrize("divisor", [0, 1, -1, 7, -128])
def test_division_by_a_constant(host: Compiler, divisor: int) -> None:
    """A constant divisor takes LLVM's own path."""
    x = np.arange(-128, 128).astype(np.int8)
    for kind in ("div", "rem"):
        got = host.run(
            lambda b, v, k=kind: arith.binary(b, k, dtypes.int8, v[0], arith.constant(dtypes.int8, divisor, 16)),
            [dtypes.int8],
            dtypes.int8,
            [x],
        )
        want = [wrapped(integer_result(kind, int(a), divisor, dtypes.int8), dtypes.int8) for a in x]
        assert_equal(got, want, dtypes.int8, x)


def test_vector_division_of_the_largest_quotients(plain: Compiler, host: Compiler) -> None:
    """Where ``x / y`` is closest below an integer: ``n y - 1`` over ``y``, whose quotient must not round up to ``n``."""
    for dtype in (dtypes.int32, dtypes.uint32, dtypes.int16, dtypes.uint16):
        y = np.array([2, 3, 5, 7, 127, 255, 1 << (dtype.bits // 2), (1 << (dtype.bits // 2)) - 1], object)
        n = dtype.max // y
        x = np.concatenate([n * y - 1, n * y, np.array([dtype.max] * len(y), object)]).astype(dtype.numpy)
        divisors = np.tile(y, 3).astype(dtype.numpy)
        for compiler in (plain, host):
            got = compiler.run(lambda b, v, d=dtype: arith.binary(b, "div", d, *v), [dtype] * 2, dtype, [x, divisors])
            assert got.tolist() == [int(a) // int(b) for a, b in zip(x, divisors, strict=True)]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_comparisons(host: Compiler, dtype: DType) -> None:
    x, y = pairs(dtype, 300)
    for kind in COMPARE:
        got = host.run(lambda b, v, k=kind: arith.compare(b, k, dtype, *v), [dtype] * 2, dtypes.bool_, [x, y])
        want = [getattr(operator, kind)(a, b) for a, b in zip(listed(x), listed(y), strict=True)]
        assert got.tolist() == want


# Unary kinds and fma


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_exact_unary_kinds(host: Compiler, dtype: DType) -> None:
    """Every value of up to 16 bits. Square roots are compared as squares: ``r`` is right if its neighbours' midpoints
    enclose the root."""
    x = values(dtype, 2000)
    if dtype.bits in (8, 16):
        x = np.arange(1 << dtype.bits).astype(f"u{dtype.itemsize}").view(dtype.numpy)
    functions: dict[str, Callable[[Any], Any]] = {
        "neg": operator.neg,
        "abs": abs,
        "not": lambda v: not v if dtype.is_bool else ~v,
        "floor": lambda v: math.copysign(math.floor(v), v) if math.isfinite(v) else v,
        "ceil": lambda v: math.copysign(math.ceil(v), v) if math.isfinite(v) else v,
    }
    for kind in (k for k, classes in UNARY.items() if class_of(dtype) in classes and k in functions):
        got = host.run(lambda b, v, k=kind: arith.unary(b, k, dtype, v[0]), [dtype], dtype, [x])
        want = [functions[kind](a) for a in listed(x)]
        assert_equal(got, want if dtype.is_float else [wrapped(int(w), dtype) for w in want], dtype, x)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_square_roots_are_the_nearest(host: Compiler, dtype: DType) -> None:
    x = np.abs(values(dtype, 500))
    got = host.run(lambda b, v: arith.unary(b, "sqrt", dtype, v[0]), [dtype], dtype, [x])
    below, above = (
        (np.nextafter(got, np.array(to, dtype.numpy)) for to in (0, math.inf)) if dtype.bits > 8 else (got, got)
    )
    for value, root, low, high in zip(listed(x), listed(got), listed(below), listed(above), strict=True):
        if not math.isfinite(value) or value == 0:
            assert root == value or (root != root and value != value)  # noqa: PLR0124 (NaN)
        elif dtype.bits == 8:
            assert root == rounded(Fraction(math.sqrt(value)), dtype)  # float64's error is far from any midpoint
        else:
            assert (
                (Fraction(low) + Fraction(root)) ** 2 <= 4 * Fraction(value) <= (Fraction(root) + Fraction(high)) ** 2
            )


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rsqrt_is_within_two_ulp(host: Compiler, dtype: DType) -> None:
    x = np.abs(values(dtype, 500))
    x = x[np.isfinite(x.astype(np.float64)) & (x != 0)]
    got = host.run(lambda b, v: arith.unary(b, "rsqrt", dtype, v[0]), [dtype], dtype, [x])
    tolerance = Fraction(2.0**-dtype.mantissa * (2 if dtype.bits >= 32 else 0.5000001 if dtype.mantissa > 3 else 1))
    for root, value in zip(got.tolist(), x.tolist(), strict=True):
        assert (1 - tolerance) ** 2 <= Fraction(root) ** 2 * Fraction(value) <= (1 + tolerance) ** 2


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma_rounds_once_to_the_compute_type(host: Compiler, plain: Compiler, dtype: DType) -> None:
    a, b, c = (values(dtype, 300, seed) for seed in (1, 2, 3))
    want = [fused(*v, dtype) for v in zip(listed(a), listed(b), listed(c), strict=True)]
    for compiler in (host, plain):
        got = compiler.run(lambda b, v: arith.fma(b, dtype, *v), [dtype] * 3, dtype, [a, b, c])
        assert_equal(got, want, dtype, a, b, c)


def test_products_and_sums_are_not_contracted(host: Compiler) -> None:
    """``(1 + 2^-12)^2 - (1 + 2^-11)`` is 0 if the product is rounded to float32 first, and 2^-24 if fused."""
    x = np.array([1 + 2.0**-12] * 16, np.float32)
    y = np.array([1 + 2.0**-11] * 16, np.float32)
    f32 = dtypes.float32

    def difference(b: Any, v: Any) -> Any:
        return arith.binary(b, "sub", f32, arith.binary(b, "mul", f32, v[0], v[0]), v[1])

    assert host.run(difference, [f32, f32], f32, [x, y]).tolist() == [0.0] * 16


def test_constants_have_their_bits(host: Compiler) -> None:
    cases: list[tuple[DType, int | float]] = [
        (dtypes.bool_, 1), (dtypes.int8, -128), (dtypes.uint8, 255), (dtypes.uint64, (1 << 64) - 1),
        (dtypes.int64, -(1 << 63)), (dtypes.float8_e4m3fn, 448.0), (dtypes.float8_e5m2, math.inf), (dtypes.float16, -0.0),
        (dtypes.bfloat16, math.nan), (dtypes.float32, 2.0**-149), (dtypes.float64, 5e-324), (dtypes.float32, -math.inf),
    ]  # fmt: skip
    for dtype, number in cases:
        for lanes in (16, None):
            ignored = np.zeros(16, dtype.numpy)
            got = host.run(
                lambda b, v, d=dtype, n=number, lanes=lanes: arith.constant(d, n, lanes),
                [dtype],
                dtype,
                [ignored],
                lanes,
            )
            assert_equal(got, [number] * 16, dtype)


def test_a_gap_in_a_table_is_named() -> None:
    message = "weft.codegen.llvm.arith: UNARY and the IR's kinds differ in exp, sin"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        arith.check_table("UNARY", ["neg", "sin"], ["neg", "exp"])


def test_integer_width_takes_integers() -> None:
    with pytest.raises(TypeError, match=r"^expected an integer value, found <4 x float>$"):
        integer_width(arith.constant(dtypes.float32, 1.0, 4))

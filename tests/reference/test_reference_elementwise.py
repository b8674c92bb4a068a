"""Elementwise kinds against Python's integers, rational arithmetic, ml_dtypes and decimal series."""

from __future__ import annotations

import decimal
import importlib.util
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sampling import examples
from weft import dtypes
from weft.dtypes import DType
from weft.ir.tile import BINARY, FLOAT, INTEGER, UNARY
from weft.reference import elementwise

Nearest = Callable[[Fraction, str], int]

FLOATS = [d for d in dtypes.ALL if d.is_float]
FLOAT8 = [d for d in FLOATS if d.bits == 8]
INTEGERS = [d for d in dtypes.ALL if d.is_integer]
INTEGER_KINDS = [kind for kind, classes in BINARY.items() if INTEGER in classes]
FLOAT_FUNCTIONS = [kind for kind, classes in UNARY.items() if classes == frozenset({FLOAT})]


def wrapped(value: int, dtype: DType) -> int:
    """``value`` modulo ``2**bits``, in the type's range."""
    low = value % (1 << dtype.bits)
    return low - (1 << dtype.bits) if low > dtype.max else low


def amount(y: int, dtype: DType) -> int:
    """A shift amount read as unsigned, no larger than the width."""
    return min(y % (1 << dtype.bits), dtype.bits)


def truncated(x: int, y: int) -> int:
    """C's quotient of Python integers; 0 for a zero divisor."""
    if y == 0:
        return 0
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


PYTHON_BINARY: dict[str, Callable[[int, int, DType], int]] = {
    "add": lambda x, y, _: x + y,
    "sub": lambda x, y, _: x - y,
    "mul": lambda x, y, _: x * y,
    "div": lambda x, y, _: truncated(x, y),
    "rem": lambda x, y, _: x if y == 0 else abs(x) % abs(y) * (-1 if x < 0 else 1),
    "and": lambda x, y, _: x & y,
    "or": lambda x, y, _: x | y,
    "xor": lambda x, y, _: x ^ y,
    "shl": lambda x, y, dtype: x << amount(y, dtype),
    "shr": lambda x, y, dtype: x >> amount(y, dtype),
    "min": lambda x, y, _: min(x, y),
    "max": lambda x, y, _: max(x, y),
    "umulhi": lambda x, y, dtype: (x % (1 << dtype.bits)) * (y % (1 << dtype.bits)) >> dtype.bits,
    "pow": lambda x, y, dtype: 0 if y < 0 else pow(x, y, 1 << dtype.bits),
}


def binary(kind: str, dtype: DType, x: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return elementwise.binary(kind, dtype, x, y)


def unary(kind: str, dtype: DType, x: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return elementwise.unary(kind, dtype, x)


def widened(x: NDArray[Any]) -> NDArray[Any]:
    with np.errstate(all="ignore"):
        return x.astype(np.float64)


def bits(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x).view(f"u{x.dtype.itemsize}")


def assert_same_floats(result: NDArray[Any], expected: NDArray[Any], message: str = "") -> None:
    """The same bits, zeros' signs included; any NaN equals any other."""
    assert result.dtype == expected.dtype
    nan = np.isnan(widened(expected))
    wrong = np.flatnonzero((np.isnan(widened(result)) != nan) | (~nan & (bits(result) != bits(expected))))
    assert not wrong.size, (
        f"{message} at {wrong[:5]}: {result.ravel()[wrong[:5]]}, expected {expected.ravel()[wrong[:5]]}"
    )


# Integers


@pytest.mark.parametrize("kind", INTEGER_KINDS)
@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=str)
def test_every_pair_of_bytes(dtype: DType, kind: str) -> None:
    values = list(range(dtype.min, dtype.max + 1))
    x, y = (a.astype(dtype.numpy) for a in np.meshgrid(values, values, indexing="ij"))
    result = binary(kind, dtype, x, y)
    function = PYTHON_BINARY[kind]
    assert result.dtype == dtype.numpy
    assert result.tolist() == [[wrapped(function(a, b, dtype), dtype) for b in values] for a in values]


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
@examples(100)
@given(data=st.data())
def test_wide_integers(dtype: DType, data: st.DataObject) -> None:
    ends = st.sampled_from([dtype.min, dtype.max, 0, 1, dtype.max // 2, -1 if dtype.signed else 2])
    value = st.integers(dtype.min, dtype.max) | ends | st.integers(0, min(70, dtype.max))
    x, y = data.draw(value), data.draw(value)
    for kind in INTEGER_KINDS:
        expected = PYTHON_BINARY[kind](x, y, dtype)
        result = binary(kind, dtype, np.array([x], dtype.numpy), np.array([y], dtype.numpy))
        assert int(result[0]) == wrapped(expected, dtype), f"{x} {kind} {y}"


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_where_mathematics_has_no_answer(dtype: DType) -> None:
    """Literal values of the table in the module's docstring."""

    def one(kind: str, x: int, y: int) -> int:
        return int(binary(kind, dtype, np.array(x, dtype.numpy), np.array(y, dtype.numpy)))

    assert (one("div", 7, 0), one("rem", 7, 0), one("div", 0, 0)) == (0, 7, 0)
    assert (one("shl", 5, dtype.bits), one("shr", 5, dtype.bits)) == (0, 0)
    assert one("shr", dtype.max, 1) == dtype.max // 2
    assert one("shl", 1, dtype.bits - 1) == wrapped(1 << (dtype.bits - 1), dtype)
    if dtype.signed:
        assert (one("div", dtype.min, -1), one("rem", dtype.min, -1)) == (dtype.min, 0)
        assert (one("div", -7, 2), one("rem", -7, 2), one("div", 7, -2), one("rem", 7, -2)) == (-3, -1, -3, 1)
        assert (one("shr", -5, dtype.bits), one("shr", -5, -1), one("shl", 5, -1), one("shr", -5, 1)) == (-1, -1, 0, -3)
    else:
        assert (one("div", dtype.max, 2), one("shr", dtype.max, dtype.max)) == (dtype.max // 2, 0)


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=str)
def test_unary_of_every_byte(dtype: DType) -> None:
    values = list(range(dtype.min, dtype.max + 1))
    x = np.array(values, dtype.numpy)
    assert unary("neg", dtype, x).tolist() == [wrapped(-v, dtype) for v in values]
    assert unary("not", dtype, x).tolist() == [wrapped(-1 - v, dtype) for v in values]
    assert unary("abs", dtype, x).tolist() == [wrapped(abs(v), dtype) for v in values]
    assert all(unary(kind, dtype, x).dtype == dtype.numpy for kind in ("neg", "not", "abs"))


BOOL_TABLES = {  # results for (0, 0), (0, 1), (1, 0), (1, 1), of one-bit unsigned integers
    "add": "0110", "sub": "0110", "mul": "0001", "div": "0001", "rem": "0010", "and": "0001", "or": "0111",
    "xor": "0110", "shl": "0010", "shr": "0010", "min": "0001", "max": "0111", "pow": "1011",
}  # fmt: skip


@pytest.mark.parametrize("kind", BOOL_TABLES)
def test_bools_are_one_bit_integers(kind: str) -> None:
    x, y = np.array([False, False, True, True]), np.array([False, True, False, True])
    result = binary(kind, dtypes.bool_, x, y)
    assert result.dtype == np.bool_
    assert "".join(str(int(v)) for v in result) == BOOL_TABLES[kind]


def test_unary_of_bools() -> None:
    x = np.array([False, True])
    assert unary("neg", dtypes.bool_, x).tolist() == [False, True]
    assert unary("not", dtypes.bool_, x).tolist() == [True, False]


# Floats


@pytest.mark.parametrize("kind", ["add", "sub", "mul", "div", "rem", "min", "max", "minnan", "maxnan"])
@pytest.mark.parametrize("dtype", FLOAT8, ids=str)
def test_every_pair_of_float8(dtype: DType, kind: str) -> None:
    """Against Python's doubles, which hold sums and products of these exactly, rounded by ml_dtypes from float32."""
    every = np.arange(256, dtype=np.uint8).view(dtype.numpy)
    x, y = (np.ascontiguousarray(a) for a in np.meshgrid(every, every, indexing="ij"))
    a, b = widened(x), widened(y)
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    with np.errstate(all="ignore"):
        wide = {
            "add": lambda: a + b,
            "sub": lambda: a - b,
            "mul": lambda: a * b,
            "div": lambda: a / b,
            "rem": lambda: np.array([[python_fmod(p, q) for q in b[0]] for p in a[:, 0].tolist()]),
            "min": lambda: np.where(nan_a, b, np.where(nan_b | (a < b), a, b)),
            "max": lambda: np.where(nan_a, b, np.where(nan_b | (a > b), a, b)),
            "minnan": lambda: np.where(nan_a | nan_b, np.nan, np.where(a < b, a, b)),
            "maxnan": lambda: np.where(nan_a | nan_b, np.nan, np.where(a > b, a, b)),
        }[kind]()
        expected = wide.astype(np.float32).astype(dtype.numpy)
    result = binary(kind, dtype, x, y)
    assert_same_floats(result.ravel(), expected.ravel(), f"{dtype} {kind}")


def python_fmod(x: float, y: float) -> float:
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return math.nan
    return math.fmod(x, y)


EXACT: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y if y else Fraction(0),
}


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_arithmetic_rounds_the_exact_result_once(dtype: DType, data: st.DataObject, nearest: Nearest) -> None:
    """The claim of `weft.dtypes`: float32 arithmetic rounded again equals the exact result rounded once."""
    last = nearest(Fraction(dtype.largest), dtype.name)
    pattern = st.integers(0, last) | st.integers(last // 2 - 40 if dtype.bits > 8 else 0, last // 2 + 40)
    sign = st.booleans()
    x, y = (
        np.array([data.draw(pattern) | data.draw(sign) << (dtype.bits - 1)], f"u{dtype.itemsize}").view(dtype.numpy)
        for _ in range(2)
    )
    exact_x, exact_y = Fraction(float(x[0])), Fraction(float(y[0]))
    for kind, function in EXACT.items():
        if kind == "div" and exact_y == 0:
            continue
        exact = function(exact_x, exact_y)
        result = binary(kind, dtype, x, y)
        expected = nearest(exact, dtype.name)
        if dtype.finite_only and expected & 0x7F == 0x7F:
            assert np.isnan(widened(result)[0])
        elif exact == 0:
            assert float(result[0]) == 0
        else:
            assert int(bits(result)[0]) == expected, f"{x} {kind} {y}"


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_min_and_max_with_nan(dtype: DType) -> None:
    nan = math.nan
    x, y = (np.array(v).astype(dtype.numpy) for v in ([nan, 1.0, nan, 1.0], [2.0, nan, nan, 2.0]))
    expected = {
        "min": [2.0, 1.0, nan, 1.0],
        "max": [2.0, 1.0, nan, 2.0],
        "minnan": [nan, nan, nan, 1.0],
        "maxnan": [nan, nan, nan, 2.0],
    }
    for kind, values in expected.items():
        assert_same_floats(binary(kind, dtype, x, y), np.array(values).astype(dtype.numpy), kind)


def test_remainder_of_floats() -> None:
    """C11 7.12.10.1 and F.10.7.1: the dividend's sign; a zero divisor or an infinite dividend gives NaN."""
    x = np.array([5.5, -5.5, 5.5, 0.0, -0.0, 1.0, math.inf, 1.0], np.float32)
    y = np.array([2.0, 2.0, -2.0, 3.0, 3.0, 0.0, 2.0, math.inf], np.float32)
    expected = np.array([1.5, -1.5, 1.5, 0.0, -0.0, math.nan, math.nan, 1.0], np.float32)
    assert_same_floats(binary("rem", dtypes.float32, x, y), expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_sign_and_rounding_functions(dtype: DType) -> None:
    x = np.array([1.5, -1.5, 0.0, -0.0, -0.25, 2.0, math.inf if not dtype.finite_only else 448.0]).astype(dtype.numpy)
    for kind, expected in {
        "neg": [-1.5, 1.5, -0.0, 0.0, 0.25, -2.0],
        "abs": [1.5, 1.5, 0.0, 0.0, 0.25, 2.0],
        "floor": [1.0, -2.0, 0.0, -0.0, -1.0, 2.0],
        "ceil": [2.0, -1.0, 0.0, -0.0, -0.0, 2.0],
    }.items():
        last = -widened(x)[-1] if kind == "neg" else widened(x)[-1]
        assert_same_floats(unary(kind, dtype, x), np.array([*expected, last]).astype(dtype.numpy), kind)


def series(x: Decimal, first: Decimal, step: Callable[[int, Decimal], Decimal]) -> Decimal:
    """``first`` plus terms, each from its index and the one before, until they are negligible."""
    total, term, n = first, first, 1
    while n < 4 or abs(term) > Decimal(10) ** -70:
        term = step(n, term)
        total += term
        n += 1
    return total


def decimal_erf(x: Decimal) -> Decimal:
    """2/sqrt(pi) * sum of (-1)^n x^(2n+1) / (n! (2n+1)) (DLMF 7.6.1); pi from Machin's formula."""
    total, power, n = x, x, 1
    while abs(power) > Decimal(10) ** -70 or n < 4:
        power *= -x * x / n
        total += power / (2 * n + 1)
        n += 1
    inverse = [
        series(Decimal(0), 1 / Decimal(k), lambda n, t, k=k: -t * (2 * n - 1) / (2 * n + 1) / k**2) for k in (5, 239)
    ]
    pi = 16 * inverse[0] - 4 * inverse[1]
    return 2 * total / pi.sqrt()


def decimal_tanh(x: Decimal) -> Decimal:
    e = (2 * x).exp()
    return (e - 1) / (e + 1)


LN2 = Decimal("0.693147180559945309417232121458176568075500134360255254120680009493393621969694715605863326996418687")
SERIES: dict[str, Callable[[Decimal], Decimal]] = {
    "exp": lambda x: x.exp(),
    "exp2": lambda x: (x * LN2).exp(),
    "log": lambda x: abs(x).ln(),
    "log2": lambda x: abs(x).ln() / LN2,
    **dict.fromkeys(("sqrt", "sqrt_rn"), lambda x: abs(x).sqrt()),
    "rsqrt": lambda x: 1 / abs(x).sqrt(),
    "sin": lambda x: series(x, x, lambda n, t: -t * x * x / (2 * n * (2 * n + 1))),
    "cos": lambda x: series(x, Decimal(1), lambda n, t: -t * x * x / ((2 * n - 1) * 2 * n)),
    "tanh": decimal_tanh,
    "erf": decimal_erf,
    "cbrt": lambda x: (abs(x) ** (1 / Decimal(3))).copy_sign(x),
    "log10": lambda x: abs(x).log10(),
    "log1p": lambda x: (1 + abs(x)).ln(),
    "tan": lambda x: SERIES["sin"](x) / SERIES["cos"](x),
    "floor": lambda x: x.to_integral_value(decimal.ROUND_FLOOR),
    "ceil": lambda x: x.to_integral_value(decimal.ROUND_CEILING),
}


@pytest.mark.parametrize("kind", FLOAT_FUNCTIONS)
def test_functions_are_correctly_rounded_in_float32(kind: str, nearest: Nearest) -> None:
    """Against 90 decimal digits: float32 exactly, bfloat16 twice rounded (to float32 first), float64 within two ulps."""
    generator = np.random.default_rng(7)
    x = (generator.standard_normal(40) * 3).astype(np.float32)
    if kind in ("log", "log2", "log10", "log1p", "sqrt", "sqrt_rn", "rsqrt"):
        x = np.abs(x)
    with decimal.localcontext(prec=90):
        exact = [Fraction(SERIES[kind](Decimal(float(v)))) for v in x]
    result = unary(kind, dtypes.float32, x)
    assert bits(result + np.float32(0)).tolist() == [nearest(v, "float32") for v in exact]
    wide = unary(kind, dtypes.float64, x.astype(np.float64))
    assert np.allclose(wide, [float(v) for v in exact], rtol=5e-16, atol=0)
    narrow = x.astype(dtypes.bfloat16.numpy)
    through = unary(kind, dtypes.float32, narrow.astype(np.float32)).astype(dtypes.bfloat16.numpy)
    assert_same_floats(unary(kind, dtypes.bfloat16, narrow), through)


SPECIAL = {  # C11 annex F: values at -inf, -1, -0.0, 0.0, inf, NaN
    "exp": (0.0, None, 1.0, 1.0, math.inf),
    "exp2": (0.0, 0.5, 1.0, 1.0, math.inf),
    "log": (math.nan, math.nan, -math.inf, -math.inf, math.inf),
    "log2": (math.nan, math.nan, -math.inf, -math.inf, math.inf),
    **dict.fromkeys(("sqrt", "sqrt_rn"), (math.nan, math.nan, -0.0, 0.0, math.inf)),
    "rsqrt": (math.nan, math.nan, -math.inf, math.inf, 0.0),
    "sin": (math.nan, None, -0.0, 0.0, math.nan),
    "cos": (math.nan, None, 1.0, 1.0, math.nan),
    "tanh": (-1.0, None, -0.0, 0.0, 1.0),
    "erf": (-1.0, None, -0.0, 0.0, 1.0),
    "cbrt": (-math.inf, -1.0, -0.0, 0.0, math.inf),
    "log10": (math.nan, math.nan, -math.inf, -math.inf, math.inf),
    "log1p": (math.nan, -math.inf, -0.0, 0.0, math.inf),
    "tan": (math.nan, None, -0.0, 0.0, math.nan),
    "floor": (-math.inf, -1.0, -0.0, 0.0, math.inf),
    "ceil": (-math.inf, -1.0, -0.0, 0.0, math.inf),
}


@pytest.mark.parametrize("dtype", [d for d in FLOATS if not d.finite_only], ids=str)
@pytest.mark.parametrize("kind", FLOAT_FUNCTIONS)
def test_functions_at_special_values(kind: str, dtype: DType) -> None:
    points = (-math.inf, -1.0, -0.0, 0.0, math.inf, math.nan)
    for point, expected in zip(points, (*SPECIAL[kind], math.nan), strict=True):
        if expected is not None:
            result = unary(kind, dtype, np.array([point]).astype(dtype.numpy))
            assert_same_floats(result, np.array([expected]).astype(dtype.numpy), f"{kind}({point})")


# Fused multiply-add

FINITE32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
FINITE64 = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=300, deadline=None)
@given(a=FINITE32, b=FINITE32, c=FINITE32)
@example(a=1 + 2**-12, b=1 + 2**-12, c=2**-60)  # the product's tail is a midpoint of float32; c decides
@example(a=1 + 2**-12, b=1 + 2**-12, c=-(2**-60))
@example(a=2**-100, b=2**-60, c=2**-140 + 2**-149)
def test_fma_of_float32_rounds_once(a: float, b: float, c: float, nearest: Nearest) -> None:
    assert_fma(dtypes.float32, a, b, c, nearest)


@settings(max_examples=300, deadline=None)
@given(a=FINITE64, b=FINITE64, c=FINITE64)
@example(a=1 + 2**-30, b=1 + 2**-30, c=-(1 + 2**-29))
@example(a=1e-200, b=-1e-200, c=0.0)
@example(a=1e200, b=1e200, c=-1.0)
@example(a=1.0, b=-1.0, c=1.0)
def test_fma_of_float64_rounds_once(a: float, b: float, c: float, nearest: Nearest) -> None:
    assert_fma(dtypes.float64, a, b, c, nearest)


def fma(dtype: DType, a: float, b: float, c: float) -> NDArray[Any]:
    operands = [np.array([v]).astype(dtype.numpy) for v in (a, b, c)]
    with np.errstate(all="ignore"):
        return elementwise.fma(dtype, *operands)


def assert_fma(dtype: DType, a: float, b: float, c: float, nearest: Nearest) -> None:
    result = fma(dtype, a, b, c)
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        assert float(result[0]) == 0
    else:
        assert hex(int(bits(result)[0])) == hex(nearest(exact, dtype.name))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_fma_of_special_values(dtype: DType) -> None:
    assert float(fma(dtype, 2.0, 3.0, 1.0)[0]) == 7.0
    assert np.isnan(widened(fma(dtype, math.nan, 1.0, 1.0))[0])
    assert math.copysign(1, float(fma(dtype, -1.0, 0.0, -0.0)[0])) == -1
    assert math.copysign(1, float(fma(dtype, 1.0, 1.0, -1.0)[0])) == 1
    if not dtype.finite_only:
        assert float(fma(dtype, math.inf, 1.0, 1.0)[0]) == math.inf
        assert np.isnan(widened(fma(dtype, math.inf, 0.0, 1.0))[0])
        assert np.isnan(widened(fma(dtype, math.inf, 1.0, -math.inf))[0])
        assert float(fma(dtype, dtype.largest, -dtype.largest, math.inf)[0]) == math.inf
    result = elementwise.fma(dtype, *(np.array(v).astype(dtype.numpy) for v in (2.0, 3.0, 1.0)))
    assert result.shape == ()
    assert result.dtype == dtype.numpy


def test_fma_of_narrow_floats_rounds_to_float32_first() -> None:
    """7 * 37 - 2**-30 is just below 259, the middle of bfloat16's 258 and 260; float32 makes it 259, whose tie is 260."""
    assert float(fma(dtypes.bfloat16, 7.0, 37.0, -(2.0**-30))[0]) == 260
    assert float(fma(dtypes.bfloat16, 7.0, 37.0, -0.5)[0]) == 258


# Comparison


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_comparisons(dtype: DType) -> None:
    """Every pair of a few values, NaN among them for floats, against Python's comparison of the exact values."""
    if dtype.is_float:
        values: list[Any] = [-1.5, -0.0, 0.0, 1.5, math.nan]
    else:
        values = [dtype.min, dtype.max, dtype.max - 1, 0, 1]
    x, y = np.meshgrid(np.array(values, dtype=object), np.array(values, dtype=object), indexing="ij")
    typed = [v.astype(np.float64 if dtype.is_float else dtype.numpy).astype(dtype.numpy) for v in (x, y)]
    pairs = list(zip(x.ravel(), y.ravel(), strict=True))
    for kind, expected in {
        "eq": [a == b for a, b in pairs],
        "ne": [a != b for a, b in pairs],
        "lt": [a < b for a, b in pairs],
        "le": [a <= b for a, b in pairs],
        "gt": [a > b for a, b in pairs],
        "ge": [a >= b for a, b in pairs],
    }.items():
        result = elementwise.compare(kind, dtype, *typed)
        assert result.dtype == np.bool_
        assert result.ravel().tolist() == expected, kind


# Completeness


def test_a_kind_without_meaning_fails_at_import(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(UNARY, "cosh", frozenset({FLOAT}))
    spec = importlib.util.find_spec("weft.reference.elementwise")
    assert spec is not None
    assert spec.loader is not None
    with pytest.raises(ValueError) as error:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert str(error.value) == "weft.reference: FLOAT_UNARY and the tables of weft.ir.base differ in cosh"

"""Transcendental functions: errors in units in the last place, special values, and the same on vectors as on scalars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from llvmlite import ir
from numpy.typing import NDArray

from sampling import at_night
from weft import dtypes
from weft.codegen.llvm import arith, vecmath
from weft.dtypes import DType

if TYPE_CHECKING:
    from codegen.conftest import Compiler

pytestmark = pytest.mark.jit

Array = NDArray[Any]
F32, F64 = dtypes.float32, dtypes.float64
UNARY = list(vecmath.UNARY)
BINARY = ["pow", "atan2"]
KINDS = UNARY + BINARY
GOLDEN = Path(__file__).parent.parent / "golden" / "vecmath_float64.txt"
REFERENCE: dict[str, Callable[..., Any]] = {
    **{kind: getattr(np, kind, None) or np.vectorize(math.erf, otypes=[np.float64]) for kind in UNARY},
    **{"pow": np.power, "atan2": np.arctan2},
}
"""In float64, whose error does not show in a float32."""

ERROR = {
    F32: {
        **{"exp": 0.91, "exp2": 0.9, "log": 0.9, "log2": 1.0, "log10": 0.6, "log1p": 0.9, "pow": 1.0},
        **{"sin": 1.5, "cos": 1.5, "tan": 1.3, "atan2": 0.9, "tanh": 1.59, "erf": 1.1, "cbrt": 0.6},
    },
    F64: {
        **{"exp": 0.9, "exp2": 0.9, "log": 0.9, "log2": 1.6, "log10": 0.6, "log1p": 0.9, "pow": 1.0},
        **{"sin": 1.4, "cos": 1.4, "tan": 1.3, "atan2": 0.9, "tanh": 1.5, "erf": 1.1, "cbrt": 0.6},
    },
}
"""The bounds that `weft.codegen.llvm.vecmath` states, in units in the last place of the exact value."""


@pytest.fixture(params=["host", "plain"])
def compiler(request: pytest.FixtureRequest) -> Compiler:
    """This machine, and one without fused multiply-add and roundings to integers."""
    return request.getfixturevalue(request.param)


def apply(compiler: Compiler, kind: str, dtype: DType, *operands: Array, lanes: int | None = 16) -> Array:
    """The compiled function of each element; ``fmod`` is the remainder."""

    def emit(builder: ir.IRBuilder, v: Sequence[ir.Value]) -> ir.Value:
        if len(v) == 1:
            return arith.unary(builder, kind, dtype, v[0])
        return arith.binary(builder, {"fmod": "rem"}.get(kind, kind), dtype, *v)

    return compiler.run(emit, [dtype] * len(operands), dtype, operands, lanes)


def unit(x: Array, dtype: DType) -> Array:
    """The distance of ``dtype``'s neighbours at the float64 values ``x``."""
    least = 2 - (1 << (dtype.exponent - 1))
    exponent = np.where(x == 0, least, np.maximum(np.frexp(x)[1] - 1, least))
    return np.ldexp(1.0, exponent - dtype.mantissa)


def every_exponent(count: int) -> Array:
    """``count`` float32 spread evenly over all bit patterns, up to a power of two of them."""
    step = (1 << 32) // count
    bits = np.arange(0, 1 << 32, step, dtype=np.uint64) + np.arange(count, dtype=np.uint64) * 40503 % step
    return bits.astype(np.uint32).view(np.float32)


SPAN = {
    **{"exp": 104, "exp2": 151, "log": 4, "log2": 4, "log10": 4, "log1p": 4, "pow": 30, "cbrt": 30},
    **{"sin": 400, "cos": 400, "tan": 400, "atan2": 4, "tanh": 10, "erf": 4},
}


def single_inputs(kind: str) -> list[Array]:
    """2^16 values of all exponents, and as many in the range where the function varies; for each operand of the kind."""
    span = SPAN[kind]
    rng = np.random.default_rng(0)
    parts = [every_exponent(1 << 16), rng.uniform(-span, span, 1 << 15), rng.uniform(-1.5, 1.5, 1 << 15)]
    if kind in ("sin", "cos", "tan"):
        parts.append(np.arange(80000) * (math.pi / 2))
    x = np.concatenate([p.astype(np.float32) for p in parts])
    if kind in UNARY:
        return [np.abs(x) if kind in ("log", "log2", "log10") else x]
    y = np.concatenate([rng.permutation(p) for p in parts]).astype(np.float32)
    if kind == "pow":  # exponents for which the power is in range
        base = np.where(rng.random(1 << 16) < 0.5, np.abs(x[: 1 << 16]), 1 + rng.uniform(-1e-3, 1e-3, 1 << 16))
        x = np.concatenate([x, base.astype(np.float32)])
        y = np.concatenate([y, (rng.uniform(-150, 128, 1 << 16) / np.log2(base)).astype(np.float32)])
    return [x, y]


def assert_single(kind: str, got: Array, operands: Sequence[Array]) -> None:
    """Each float32 result is within the kind's bound, or, where it is no finite number, what float64's rounds to."""
    want = np.asarray(REFERENCE[kind](*(x.astype(np.float64) for x in operands)))
    rounded = want.astype(np.float32)
    ordinary = np.isfinite(rounded)
    assert np.array_equal(got[~ordinary], rounded[~ordinary], equal_nan=True)
    error = np.abs(got[ordinary].astype(np.float64) - want[ordinary]) / unit(want[ordinary], F32)
    assert error.max() <= ERROR[F32][kind], ([x[ordinary][error.argmax()] for x in operands], error.max())


@pytest.mark.parametrize("kind", KINDS)
def test_float32_error(compiler: Compiler, kind: str) -> None:
    operands = single_inputs(kind)
    assert_single(kind, apply(compiler, kind, F32, *operands), operands)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [kind for kind in UNARY if kind != "erf"])
def test_every_float32(compiler: Compiler, kind: str) -> None:
    """Without erf, whose reference is Python's, one call an element."""
    for start in range(0, 1 << 32, 1 << 24):
        x = np.arange(start, start + (1 << 24), dtype=np.uint64).astype(np.uint32).view(np.float32)
        assert_single(kind, apply(compiler, kind, F32, x), [x])


def golden(kind: str) -> tuple[list[Array], Array, Array]:
    """Operands, the float64 nearest to each value, and by how many units in the last place the value exceeds it."""
    rows = [line.split()[1:] for line in GOLDEN.read_text().splitlines() if line.startswith(f"{kind} ")]
    *operands, high = (
        np.array([float.fromhex(text) for text in column]) for column in list(zip(*rows, strict=True))[:-1]
    )
    return operands, high, np.array([float(row[-1]) for row in rows])


@pytest.mark.parametrize("kind", KINDS)
def test_float64_error(compiler: Compiler, kind: str) -> None:
    operands, high, rest = golden(kind)
    assert len(high) > 100
    got = apply(compiler, kind, F64, *operands)
    error = np.abs((got - high) / unit(high, F64) - rest)
    assert error.max() <= ERROR[F64][kind], ([x[error.argmax()] for x in operands], error.max())


INF, NAN = math.inf, math.nan
SPECIAL: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e5, INF), (-1e5, 0.0)],
    "exp2": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (-3.0, 0.125), (1e5, INF), (-1e5, 0.0)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (NAN, NAN), (-1.0, NAN)],
    "log2": [(1.0, 0.0), (8.0, 3.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (NAN, NAN), (-1.0, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tan": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "log10": [(1.0, 0.0), (1000.0, 3.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (NAN, NAN), (-1.0, NAN)],
    "log1p": [(0.0, 0.0), (-0.0, -0.0), (-1.0, -INF), (INF, INF), (-INF, NAN), (NAN, NAN), (-1.5, NAN)],
    "cbrt": [(0.0, 0.0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (27.0, 3.0), (-0.125, -0.5)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (50.0, 1.0)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (50.0, 1.0)],
}


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("kind", UNARY)
def test_special_values(compiler: Compiler, kind: str, dtype: DType) -> None:
    x, want = (np.array(column, dtype.numpy) for column in zip(*SPECIAL[kind], strict=True))
    assert_same(apply(compiler, kind, dtype, x), want)


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize(("kind", "half"), [("exp", -math.log(2)), ("exp2", -1.0)])
def test_powers_that_vanish(compiler: Compiler, kind: str, half: float, dtype: DType) -> None:
    """From subnormal numbers to 0, and far beyond; in units of the least one."""
    least = 149 if dtype is F32 else 1074
    x = np.concatenate([np.linspace(least - 18, least + 10, 4001), np.geomspace(least + 10, 1e6, 4096)]) * half
    x = x.astype(dtype.numpy)
    got = np.ldexp(apply(compiler, kind, dtype, x).astype(np.float64), least)
    root = np.ldexp((np.exp if kind == "exp" else np.exp2)(x.astype(np.float64) / 2), least // 2)
    exact = root * np.ldexp(root, least % 2)
    assert np.abs(got - exact).max() <= 0.6
    assert not got[exact < 0.49].any()


def assert_same(got: Array, want: Array) -> None:
    """Equal with the signs of zeros; any NaN for NaN."""
    assert np.array_equal(got, want, equal_nan=True)
    numbers = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


def special_power(x: float, y: float) -> float | None:
    """C99, annex F.9.4.4, rule by rule; None where none applies."""
    whole = math.isinf(y) or (math.isfinite(y) and y == math.floor(y))
    odd = math.isfinite(y) and whole and int(y) % 2 == 1
    sign = math.copysign(1.0, x) if odd else 1.0
    if x == 1 or y == 0 or (x == -1 and math.isinf(y)):
        return 1.0
    if math.isnan(x) or math.isnan(y) or (x < 0 and math.isfinite(x) and not whole):
        return NAN
    if x == 0:
        return sign * (INF if y < 0 else 0.0)
    if math.isinf(y):
        return INF if (abs(x) > 1) == (y > 0) else 0.0
    if math.isinf(x):
        return sign * (INF if y > 0 else 0.0)
    return None


def special_angle(y: float, x: float) -> float | None:
    """C99, annex F.9.1.4, in the same way; the angles as float64."""
    if math.isnan(x) or math.isnan(y):
        return NAN
    left = math.copysign(1.0, x) < 0
    if math.isinf(x) and math.isinf(y):
        angle = 0.75 * math.pi if left else 0.25 * math.pi
    elif y == 0 or math.isinf(x):
        angle = math.pi if left else 0.0
    elif x == 0 or math.isinf(y):
        angle = 0.5 * math.pi
    else:
        return None
    return math.copysign(angle, y)


def special_remainder(x: float, y: float) -> float | None:
    """C99, annex F.9.7.1."""
    if math.isnan(x) or math.isnan(y) or math.isinf(x) or y == 0:
        return NAN
    return x if x == 0 or math.isinf(y) else None


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize(
    ("kind", "rules"), [("pow", special_power), ("atan2", special_angle), ("fmod", special_remainder)]
)
def test_special_pairs(
    compiler: Compiler, kind: str, rules: Callable[[float, float], float | None], dtype: DType
) -> None:
    """Every pair of special values and neighbours that some rule gives a result."""
    bits = dtype.mantissa
    found = [0.0, INF, NAN, 1.0, 0.5, 1.5, 2.0, 3.0, 2.0**bits - 1, 2.0**bits + 1, 2.0 ** (bits + 1), 2.0 ** (bits + 2)]
    found += [2.0 ** (2 - (1 << (dtype.exponent - 1)) - bits), float(np.finfo(dtype.numpy).max), 1 + 2.0**-bits]
    signed = [s * x for x in found for s in (1.0, -1.0)]
    rows = [(x, y, want) for x in signed for y in signed if (want := rules(x, y)) is not None]
    x, y, want = (np.array(column, dtype.numpy) for column in zip(*rows, strict=True))
    for lanes in (16, None):
        assert_same(apply(compiler, kind, dtype, x, y, lanes=lanes), want)


def test_powers_that_are_numbers_are_exact(compiler: Compiler) -> None:
    """Small integers to small powers, powers of two down to subnormal ones, powers of ten and their logarithms."""
    base, exponent = (g.ravel().astype(np.float64) for g in np.meshgrid(np.arange(-12, 13), np.arange(0, 6)))
    assert np.array_equal(apply(compiler, "pow", F64, base, exponent), base**exponent)
    assert np.array_equal(apply(compiler, "pow", F32, base, exponent), (base**exponent).astype(np.float32))
    powers = np.arange(-1074.0, 1024.0)
    assert np.array_equal(
        apply(compiler, "pow", F64, np.full(len(powers), 2.0), powers), np.ldexp(1.0, powers.astype(int))
    )
    tens = np.arange(0.0, 23.0)
    assert np.array_equal(apply(compiler, "pow", F64, np.full(23, 10.0), tens), [10.0**n for n in range(23)])
    assert np.array_equal(apply(compiler, "log10", F64, np.array([10.0**n for n in range(23)])), tens)
    assert np.array_equal(apply(compiler, "log10", F32, np.array([10.0**n for n in range(11)])), tens[:11])
    cubes = np.arange(-200.0, 201.0)
    for dtype in (F32, F64):
        assert np.array_equal(apply(compiler, "cbrt", dtype, cubes**3), cubes)


@pytest.mark.parametrize("lanes", [16, 3, None])
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_remainders_are_exact(compiler: Compiler, dtype: DType, lanes: int | None) -> None:
    """Against Python's fmod: all exponents, near ones, multiples and their neighbours, subnormals."""
    rng = np.random.default_rng(0)
    integer = f"u{dtype.itemsize}"
    x, y = (rng.integers(0, 1 << dtype.bits, 8000, integer, endpoint=False).view(dtype.numpy) for _ in range(2))
    small = rng.integers(0, 1 << dtype.mantissa, 2000, integer).view(dtype.numpy)
    near = (y[:2000] * rng.integers(1, 1000, 2000)).astype(dtype.numpy)
    toward = np.array(INF, dtype.numpy)
    x = np.concatenate([x, near, np.nextafter(near, toward), np.nextafter(near, -toward), x[:2000], small, small])
    y = np.concatenate([y, y[:2000], y[:2000], y[:2000], small, y[:2000], rng.permutation(small)])
    defined = np.isfinite(x) & (y != 0) & ~np.isnan(y)
    x, y = x[defined], y[defined]
    want = [math.fmod(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert_same(apply(compiler, "fmod", dtype, x, y, lanes=lanes), np.array(want, dtype.numpy))


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_subnormals_are_kept(compiler: Compiler, dtype: DType) -> None:
    """``exp2`` of every integer below the normal range is a power of two, and ``log2`` takes it back; odd functions are
    the identity (erf: twice over root pi) where the cube vanishes."""
    least = 2 - (1 << (dtype.exponent - 1)) - dtype.mantissa
    exponents = np.arange(least, least + dtype.mantissa).astype(dtype.numpy)
    powers = np.ldexp(np.ones(len(exponents), dtype.numpy), exponents.astype(np.int32))
    assert np.array_equal(apply(compiler, "exp2", dtype, exponents), powers)
    assert np.array_equal(apply(compiler, "log2", dtype, powers), exponents)
    assert np.array_equal(apply(compiler, "sin", dtype, powers), powers)
    assert np.array_equal(apply(compiler, "tanh", dtype, powers), powers)
    assert np.array_equal(apply(compiler, "exp2", dtype, exponents[:1] - 2), np.zeros(1, dtype.numpy))


def test_one_huge_angle_does_not_disturb_the_others(compiler: Compiler) -> None:
    """The lanes beside it keep their bits."""
    x = np.linspace(-3, 3, 16).astype(np.float32)
    huge = x.copy()
    huge[5] = 1e30
    for kind in ("sin", "cos", "tan"):
        got = apply(compiler, kind, F32, huge)
        assert_single(kind, got, [huge])
        assert np.array_equal(np.delete(got, 5), np.delete(apply(compiler, kind, F32, x), 5))


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_scalars_and_vectors_agree(compiler: Compiler, kind: str, dtype: DType) -> None:
    """Bit for bit, at any width; large angles, too. ``make test`` has four lanes for half of the functions, 32 for the others."""
    operands = [np.abs(x[20:100]).astype(dtype.numpy) for x in golden(kind)[0]]
    scalar = apply(compiler, kind, dtype, *operands, lanes=None)
    for lanes in (4, 32) if at_night() else [(4, 32)[(KINDS.index(kind) + (dtype is F64)) % 2]]:
        assert_same(scalar, apply(compiler, kind, dtype, *operands, lanes=lanes))


@pytest.mark.parametrize("kind", ["sin", "cos", "tan"])
def test_large_angles(compiler: Compiler, kind: str) -> None:
    """float32 of all exponents beyond the short reduction, and both sides of where it ends."""
    x = every_exponent(1 << 16)
    x = x[np.isfinite(x) & (np.abs(x) >= 2**17)]
    edge = np.array([2.0**17, np.nextafter(np.float32(2**17), np.float32(INF)), -(2.0**17)], np.float32)
    for angles in (x, edge):
        assert_single(kind, apply(compiler, kind, F32, angles), [angles])


def test_a_function_is_written_once_a_module(compiler: Compiler) -> None:
    """Two uses of one function in one shape share its body."""

    def twice(builder: ir.IRBuilder, operands: Any) -> ir.Value:
        return arith.unary(builder, "exp", F32, arith.unary(builder, "exp", F32, operands[0]))

    text = str(compiler.module(twice, [F32], F32, 16))
    assert text.count("define internal") == 1
    assert text.count('call <16 x float> @"weft.exp.v16f32"') == 2


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2], ids=str)
def test_narrow_floats_compute_in_float32(compiler: Compiler, dtype: DType) -> None:
    """Within one unit of the narrow type, for every value of it."""
    x = np.arange(1 << dtype.bits).astype(f"u{dtype.itemsize}").view(dtype.numpy)
    x = x[np.isfinite(x)]
    for kind in ("exp", "tanh", "sin"):
        want = np.asarray(REFERENCE[kind](x.astype(np.float64)))
        finite = np.isfinite(want.astype(dtype.numpy))
        got = apply(compiler, kind, dtype, x).astype(np.float64)
        assert (np.abs(got[finite] - want[finite]) <= 0.51 * unit(want[finite], dtype)).all()

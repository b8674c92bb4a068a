"""Transcendental functions: errors in units in the last place, special values, and the same on vectors as on scalars."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from llvmlite import ir
from numpy.typing import NDArray

from weft import dtypes
from weft.codegen.llvm import arith, vecmath
from weft.dtypes import DType

if TYPE_CHECKING:
    from codegen.conftest import Compiler

pytestmark = pytest.mark.jit

Array = NDArray[Any]
F32, F64 = dtypes.float32, dtypes.float64
KINDS = list(vecmath.FUNCTIONS)
GOLDEN = Path(__file__).parent.parent / "golden" / "vecmath_float64.txt"
REFERENCE = {kind: getattr(np, kind, None) or np.vectorize(math.erf, otypes=[np.float64]) for kind in KINDS}
"""In float64, whose error does not show in a float32."""

ERROR = {
    F32: {"exp": 0.9, "exp2": 0.9, "log": 0.9, "log2": 1.0, "sin": 1.5, "cos": 1.5, "tanh": 1.5, "erf": 1.1},
    F64: {"exp": 0.9, "exp2": 0.9, "log": 0.9, "log2": 1.6, "sin": 1.4, "cos": 1.4, "tanh": 1.5, "erf": 1.1},
}
"""The bounds that `weft.codegen.llvm.vecmath` states, in units in the last place of the exact value."""


def apply(compiler: Compiler, kind: str, dtype: DType, x: Array, lanes: int | None = 16) -> Array:
    """The compiled function of each element."""
    return compiler.run(lambda b, v: arith.unary(b, kind, dtype, v[0]), [dtype], dtype, [x], lanes)


def unit(x: Array, dtype: DType) -> Array:
    """The distance of ``dtype``'s neighbours at the float64 values ``x``."""
    least = 2 - (1 << (dtype.exponent - 1))
    exponent = np.where(x == 0, least, np.maximum(np.frexp(x)[1] - 1, least))
    return np.ldexp(1.0, exponent - dtype.mantissa)


def single_inputs(kind: str) -> Array:
    """2^16 values of all exponents, and as many in the range where the function varies."""
    bits = np.arange(0, 1 << 32, 1 << 16, dtype=np.uint64) + np.arange(1 << 16, dtype=np.uint64) * 40503 % (1 << 16)
    span = {"exp": 104, "exp2": 151, "log": 4, "log2": 4, "sin": 400, "cos": 400, "tanh": 10, "erf": 4}[kind]
    rng = np.random.default_rng(0)
    parts = [
        bits.astype(np.uint32).view(np.float32),
        rng.uniform(-span, span, 1 << 15),
        rng.uniform(-1.5, 1.5, 1 << 15),
    ]
    if kind in ("sin", "cos"):
        parts.append(np.arange(80000) * (math.pi / 2))
    x = np.concatenate([p.astype(np.float32) for p in parts])
    return np.abs(x) if kind.startswith("log") else x


@pytest.mark.parametrize("kind", KINDS)
def test_float32_error(host: Compiler, kind: str) -> None:
    x = single_inputs(kind)
    got = apply(host, kind, F32, x).astype(np.float64)
    want = np.asarray(REFERENCE[kind](x.astype(np.float64)))
    rounded = want.astype(np.float32)
    ordinary = np.isfinite(rounded)
    assert np.array_equal(got[~ordinary], rounded[~ordinary], equal_nan=True)
    error = np.abs(got[ordinary] - want[ordinary]) / unit(want[ordinary], F32)
    assert error.max() <= ERROR[F32][kind], (x[ordinary][error.argmax()], error.max())


def golden(kind: str) -> tuple[Array, Array, Array]:
    """Points, the float64 nearest to each value, and by how many units in the last place the value exceeds it."""
    rows = [line.split()[1:] for line in GOLDEN.read_text().splitlines() if line.startswith(f"{kind} ")]
    x, high = (np.array([float.fromhex(row[i]) for row in rows]) for i in (0, 1))
    return x, high, np.array([float(row[2]) for row in rows])


@pytest.mark.parametrize("kind", KINDS)
def test_float64_error(host: Compiler, kind: str) -> None:
    x, high, rest = golden(kind)
    assert len(x) > 100
    got = apply(host, kind, F64, x)
    error = np.abs((got - high) / unit(high, F64) - rest)
    assert error.max() <= ERROR[F64][kind], (x[error.argmax()], error.max())


@pytest.mark.parametrize("kind", KINDS)
def test_without_fused_multiply_add(plain: Compiler, kind: str) -> None:
    """libm, lane by lane; the bound is what C libraries keep to."""
    x, high, rest = golden(kind)
    error = np.abs((apply(plain, kind, F64, x) - high) / unit(high, F64) - rest)
    assert error.max() <= 2
    single = x.astype(np.float32)
    want = np.asarray(REFERENCE[kind](single.astype(np.float64)))
    got = apply(plain, kind, F32, single).astype(np.float64)
    ordinary = np.isfinite(want.astype(np.float32))
    assert (np.abs(got[ordinary] - want[ordinary]) <= 2 * unit(want[ordinary], F32)).all()


INF, NAN = math.inf, math.nan
SPECIAL: dict[str, list[tuple[float, float]]] = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e5, INF), (-1e5, 0.0)],
    "exp2": [(0.0, 1.0), (-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (-3.0, 0.125), (1e5, INF), (-1e5, 0.0)],
    "log": [(1.0, 0.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (NAN, NAN), (-1.0, NAN)],
    "log2": [(1.0, 0.0), (8.0, 3.0), (0.0, -INF), (-0.0, -INF), (INF, INF), (-INF, NAN), (NAN, NAN), (-1.0, NAN)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (50.0, 1.0)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (50.0, 1.0)],
}


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_special_values(host: Compiler, kind: str, dtype: DType) -> None:
    x, want = (np.array(column, dtype.numpy) for column in zip(*SPECIAL[kind], strict=True))
    got = apply(host, kind, dtype, x)
    assert np.array_equal(got, want, equal_nan=True)
    numbers = ~np.isnan(want)
    assert np.array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
def test_subnormals_are_kept(host: Compiler, dtype: DType) -> None:
    """``exp2`` of every integer below the normal range is a power of two, and ``log2`` takes it back; odd functions are
    the identity (erf: twice over root pi) where the cube vanishes."""
    least = 2 - (1 << (dtype.exponent - 1)) - dtype.mantissa
    exponents = np.arange(least, least + dtype.mantissa).astype(dtype.numpy)
    powers = np.ldexp(np.ones(len(exponents), dtype.numpy), exponents.astype(np.int32))
    assert np.array_equal(apply(host, "exp2", dtype, exponents), powers)
    assert np.array_equal(apply(host, "log2", dtype, powers), exponents)
    assert np.array_equal(apply(host, "sin", dtype, powers), powers)
    assert np.array_equal(apply(host, "tanh", dtype, powers), powers)
    assert np.array_equal(apply(host, "exp2", dtype, exponents[:1] - 2), np.zeros(1, dtype.numpy))


def test_one_huge_angle_does_not_disturb_the_others(host: Compiler) -> None:
    """The lanes beside it then come from libm, too, within the same bounds."""
    x = np.linspace(-3, 3, 16).astype(np.float32)
    x[5] = 1e30
    for kind in ("sin", "cos"):
        want = np.asarray(REFERENCE[kind](x.astype(np.float64)))
        assert (np.abs(apply(host, kind, F32, x) - want) <= 1.5 * unit(want, F32)).all()


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_scalars_and_vectors_agree(host: Compiler, kind: str, dtype: DType) -> None:
    """Bit for bit, at any width."""
    x = np.abs(golden(kind)[0][20:100]).astype(dtype.numpy)
    x = x[x < 1000]
    scalar, four, wide = (apply(host, kind, dtype, x, lanes) for lanes in (None, 4, 32))
    assert np.array_equal(scalar, four)
    assert np.array_equal(four, wide)


def test_a_function_is_written_once_a_module(host: Compiler) -> None:
    """Two uses of one function in one shape share its body."""

    def twice(builder: ir.IRBuilder, operands: Any) -> ir.Value:
        return arith.unary(builder, "exp", F32, arith.unary(builder, "exp", F32, operands[0]))

    text = str(host.module(twice, [F32], F32, 16))
    assert text.count("define internal") == 1
    assert text.count('call <16 x float> @"weft.exp.v16f32"') == 2


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2], ids=str)
def test_narrow_floats_compute_in_float32(host: Compiler, dtype: DType) -> None:
    """Within one unit of the narrow type, for every value of it."""
    x = np.arange(1 << dtype.bits).astype(f"u{dtype.itemsize}").view(dtype.numpy)
    x = x[np.isfinite(x)]
    for kind in ("exp", "tanh", "sin"):
        want = np.asarray(REFERENCE[kind](x.astype(np.float64)))
        finite = np.isfinite(want.astype(dtype.numpy))
        got = apply(host, kind, dtype, x).astype(np.float64)
        assert (np.abs(got[finite] - want[finite]) <= 0.51 * unit(want[finite], dtype)).all()

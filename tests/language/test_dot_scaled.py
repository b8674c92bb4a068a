"""Products of microscaled matrices against NumPy's float64, in which all products and sums here are exact."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from machines import on
from weft import target as targets
from weft.frontend.errors import CompilationError
from weft.target import FMA, product_for

pytestmark = pytest.mark.jit

TARGETS: Final = (None, "sm_90")
M, N, K = 32, 16, 64
E2M1: Final = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
TYPES: Final = {
    "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16, "fp16": np.float16,
}  # fmt: skip

Array = NDArray[Any]


def operand(name: str, shape: tuple[int, int], axis: int, seed: int) -> tuple[Array, Array]:
    """A matrix as it is stored, of e2m1 packed along ``axis``, and its values."""
    rng = np.random.default_rng(seed)
    if name != "e2m1":
        stored = (rng.integers(-8, 9, shape) / 4).astype(TYPES[name])
        return stored, stored.astype(np.float64)
    fours = rng.integers(0, 16, shape)
    low, high = np.take(fours, range(0, shape[axis], 2), axis), np.take(fours, range(1, shape[axis], 2), axis)
    return (low | high << 4).astype(np.uint8), E2M1[fours]


def exponents(rows: int, seed: int, dtype: Any = np.uint8) -> tuple[Array, Array]:
    """Scales for blocks along K, and the factors of all elements."""
    rng = np.random.default_rng(seed)
    if dtype is not np.uint8:
        scales = rng.choice(np.array([0.5, 1, 1.5, 2, -4]), (rows, K // 16)).astype(dtype)
        return scales, np.repeat(scales.astype(np.float64), 16, 1)
    scales = rng.integers(124, 131, (rows, K // 32)).astype(np.uint8)
    return scales, np.repeat(2.0 ** (scales.astype(np.int64) - 127), 32, 1)


@weft.jit
def matrix(x: Any, M: tl.constexpr, N: tl.constexpr) -> Any:
    return tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])


@weft.jit
def scaled(
    a: Any, u: Any, b: Any, v: Any, c: Any, out: Any, AF: tl.constexpr, BF: tl.constexpr, AK: tl.constexpr, BK: tl.constexpr,
    A: tl.constexpr, B: tl.constexpr, GROUPS: tl.constexpr, FAST: tl.constexpr, M: tl.constexpr, N: tl.constexpr,
) -> None:  # fmt: skip
    left: Any = matrix(a, A[0], A[1])
    right: Any = matrix(b, B[0], B[1])
    us = None if u is None else matrix(u, M, GROUPS)
    vs = None if v is None else matrix(v, N, GROUPS)
    total = None if c is None else matrix(c, M, N)
    total = tl.dot_scaled(left, us, AF, right, vs, BF, total, FAST, AK, BK)
    tl.static_assert(total.dtype == tl.float32)
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], total)


CASES: Final = (
    ("e2m1", "e2m1", True, True),
    ("e2m1", "e4m3", False, True),
    ("bf16", "e2m1", True, False),
    ("e5m2", "e4m3", True, True),
    ("fp16", "e5m2", True, True),
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("left", "right", "left_pack", "right_pack"), CASES)
def test_formats(target: str | None, left: str, right: str, left_pack: bool, right_pack: bool) -> None:
    """Operands of 16 bits have no scales, the others have; the first case adds to an accumulator."""
    a, x = operand(left, (M, K), int(left_pack), 1)
    b, y = operand(right, (K, N), int(not right_pack), 2)
    u, factors = exponents(M, 3)
    v, others = exponents(N, 4)
    c = np.arange(M * N, dtype=np.float32).reshape(M, N) if left == right else None
    x, u = (x, None) if left in ("bf16", "fp16") else (x * factors, u)
    out = np.zeros((M, N), np.float32)
    arguments = (a, u, b, v, c, out, left, right, left_pack, right_pack, a.shape, b.shape, K // 32, True, M, N)
    on(scaled, target)[(1,)](*arguments)
    assert np.array_equal(out, x @ (y * others.T) + (0 if c is None else c))


@pytest.mark.parametrize("fast", [False, True])
def test_extreme_scales(fast: bool) -> None:
    """0 is 2**-127; 255 is NaN, or whatever with ``fast_math``. bfloat16 holds the products of all others here. Those with
    2**-127 are subnormal, which instructions on bfloat16 take for zeros (`weft.target.PRODUCTS`)."""
    a, x = np.full((M, K // 2), 0x22, np.uint8), np.ones((M, K))
    b, y = operand("bf16", (K, N), 0, 6)
    u = np.full((M, K // 32), 127, np.uint8)
    u[0], u[1, 1], u[2] = 0, 255, 240
    out = np.zeros((M, N), np.float32)
    scaled[(1,)](a, u, b, None, None, out, "e2m1", "bf16", True, True, a.shape, b.shape, K // 32, fast, M, N)
    flushed = product_for(targets.host().enabled, "bfloat16", "float32") is not FMA
    expected = (x * np.repeat(np.where(flushed & (u == 0), 0, 2.0 ** (u.astype(np.int64) - 127)), 32, 1)) @ y
    kept = [row for row in range(M) if row != 1]
    assert np.array_equal(out[kept], expected[kept].astype(np.float32))
    assert fast or np.isnan(out[1]).all()


@pytest.mark.parametrize("target", TARGETS)
def test_scales_of_float8(target: str | None) -> None:
    """nvfp4: a scale of e4m3 for 16 elements of e2m1."""
    a, x = operand("e2m1", (M, K), 1, 7)
    b, y = operand("e2m1", (K, N), 0, 8)
    u, factors = exponents(M, 9, ml_dtypes.float8_e4m3fn)
    v, others = exponents(N, 10, ml_dtypes.float8_e4m3fn)
    out = np.zeros((M, N), np.float32)
    on(scaled, target)[(1,)](
        a, u, b, v, None, out, "e2m1", "e2m1", True, True, a.shape, b.shape, K // 16, False, M, N
    )  # fmt: skip
    assert np.array_equal(out, (x * factors) @ (y * others.T))


@weft.jit
def refused(CASE: tl.constexpr) -> None:
    x = tl.zeros((32, 32), tl.uint8)
    if CASE == 0:
        tl.dot_scaled(x, None, "e2m3", x, None, "e4m3")
    elif CASE == 1:
        tl.dot_scaled(x, None, "e4m3", x, None, "e4m3", lhs_k_pack=False)
    elif CASE == 2:
        tl.dot_scaled(x, None, "e2m1", x, None, "e4m3")
    elif CASE == 3:
        tl.dot_scaled(x, None, "bf16", x, None, "e4m3")
    elif CASE == 4:
        tl.dot_scaled(x, None, "e4m3", x, None, "e4m3", out_dtype=tl.float16)
    elif CASE == 5:
        tl.dot_scaled(x.to(tl.int8), None, "e2m1", x, None, "e2m1")
    elif CASE == 6:
        tl.dot_scaled(x, tl.zeros((32, 2), tl.uint8), "e5m2", x, tl.zeros((32, 1), tl.uint8), "e5m2")


REFUSED: Final = (
    "Invalid float format: e2m3.",
    "only mxfp4 inputs can be packed along a dimension different than K",
    "Reduction dimension should pack the same number of elements; (lhs: (32, 32) vs rhs: (32, 32))",
    "Unexpected dtype for bf16. Got uint8",
    "Only float32 is supported for out_dtype at the moment",
    "e2m1 format must be packed as uint8. Got int8",
    "Operands must have the same scale factor; (lhs: 16 vs rhs: 32)",
)


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals(case: int) -> None:
    with pytest.raises(CompilationError) as caught:
        refused[(1,)](case)
    assert REFUSED[case] in str(caught.value)


def test_scales_of_int8_are_codes_too() -> None:
    a, x = operand("e5m2", (M, K), 1, 1)
    b, y = operand("e4m3", (K, N), 0, 2)
    (u, f), (v, g) = exponents(M, 3), exponents(N, 4)
    assert u.max() > 127 and v.max() > 127
    out = np.zeros((M, N), np.float32)
    scaled[(1,)](
        a,
        u.view(np.int8),
        b,
        v.view(np.int8),
        None,
        out,
        "e5m2",
        "e4m3",
        True,
        True,
        a.shape,
        b.shape,
        K // 32,
        False,
        M,
        N,
    )
    np.testing.assert_array_equal(out, (x * f) @ (y * g.T))

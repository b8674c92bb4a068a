"""Kernels compiled by the Triton package, run, and compared with NumPy. A launch's shared memory is what the fixture's first line
says that the compiler asked for."""

from __future__ import annotations

import math
import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emulator_programs import SOURCES, program
from weft.emulator import OutOfBounds, Scratch, TensorMap, Trap
from weft.emulator.profile.profile import Profile

RNG = np.random.default_rng(3)


def launch(name: str, architecture: int, grid: int | tuple[int, ...], args: list[Any], variant: str = "") -> Profile:
    """Launches a fixture as its compiler says. Its last two arguments are scratch memory that none of them uses."""
    stem = f"triton_{name}{variant}_sm{architecture}"
    module = program(stem)
    (shared,) = re.findall(r" shared=(\d+)$", module.ptx.partition("\n")[0])
    (block,) = module.syntax.functions[name].directives[
        "reqntid"
    ]  # 32 num_warps, and the warps of its own that a kernel has
    return module.launch(name, grid, block, [*args, 0, 0], shared=int(shared))


def uniform(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("n", [1, 256, 700])
def test_vector_add(architecture: int, n: int) -> None:
    x, y, out = uniform(n), uniform(n), np.zeros(n, np.float32)
    launch("vector_add", architecture, -(-n // 256), [x, y, Scratch(out), n])
    assert np.array_equal(out, x + y)


@pytest.mark.parametrize("columns", [200, 256])
def test_softmax(columns: int) -> None:
    x = uniform(3, columns) * 5
    out = np.zeros_like(x)
    launch("softmax", 80, 3, [x, Scratch(out), columns])
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=2e-6)


def test_layer_norm() -> None:
    x, weight, bias = uniform(3, 200), uniform(200), uniform(200)
    out = np.zeros_like(x)
    launch("layer_norm", 80, 3, [x, weight, bias, Scratch(out), 200, 1e-5])
    wide = x.astype(np.float64)
    centred = wide - wide.mean(axis=1, keepdims=True)
    expected = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * weight + bias
    np.testing.assert_allclose(out, expected, atol=3e-6)


def test_reduce_rows() -> None:
    x = RNG.integers(-1000, 1000, (16, 64)).astype(np.float32)
    total, largest, where = np.zeros(64, np.float32), np.zeros(16, np.float32), np.zeros(16, np.int32)
    launch("reduce_rows", 80, 1, [x, *map(Scratch, (total, largest, where))])
    assert np.array_equal(total, x.sum(axis=0))
    assert np.array_equal(largest, x.max(axis=1))
    assert np.array_equal(where, x.argmin(axis=1))


def test_cumulative() -> None:
    x = RNG.integers(-1000, 1000, (4, 128)).astype(np.int32)
    out = np.zeros_like(x)
    launch("cumulative", 80, 1, [x, Scratch(out)])
    assert np.array_equal(out, np.cumsum(x, axis=1))


def test_histogram() -> None:
    x = RNG.integers(0, 20, 600).astype(np.int32)
    bins = np.zeros(20, np.int32)
    profile = launch("histogram", 80, 3, [x, bins, 600])
    assert np.array_equal(bins, np.bincount(x, minlength=20))
    assert profile.total("atomics") == 600


def integers(*shape: int) -> np.ndarray:
    """Small integers as f16: sums of their products are exact."""
    return RNG.integers(-4, 5, shape).astype(np.float16)


@pytest.mark.parametrize("architecture", [80, 90])
@pytest.mark.parametrize("k", [32, 128])
def test_matmul(architecture: int, k: int) -> None:
    m, n = 128, 32
    a, b, c = integers(m, k), integers(k, n), np.zeros((m, n), np.float32)
    profile = launch("matmul", architecture, (m // 64, n // 32), [a, b, Scratch(c), n, k])
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
    assert profile.total("matrix_flops") == 2 * m * n * k


def descriptor(array: np.ndarray, box: tuple[int, int]) -> list[Any]:
    """The arguments that a descriptor becomes: a tensor map, then shape and strides in elements."""
    return [TensorMap(array, box=box, swizzle="128B"), *array.shape, array.shape[1], 1]


def test_matmul_by_descriptors() -> None:
    m, n, k = 128, 64, 128
    a, b, c = integers(m, k), integers(k, n), np.zeros((m, n), np.float32)
    args: list[Any] = []
    for array, box in ((a, (64, 64)), (b, (64, 64)), (c, (64, 32))):
        args += descriptor(array, box)
    launch("matmul_descriptor", 90, (m // 64, n // 64), [*args, k])
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, scale: float, causal: bool) -> np.ndarray:
    scores = q.astype(np.float64) @ k.astype(np.float64).T * scale
    if causal:
        scores[np.triu_indices(len(q), 1)] = -np.inf
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ v.astype(np.float64)


@pytest.mark.parametrize("architecture", [80, 90, 100])
def test_attention(architecture: int) -> None:
    q, k, v = (uniform(64, 32).astype(np.float16) for _ in range(3))
    out = np.zeros((64, 32), np.float32)
    launch("attention", architecture, 1, [q, k, v, Scratch(out), 64, 0.5])
    # The weights are rounded to f16.
    np.testing.assert_allclose(out, attention(q, k, v, 0.5, causal=False), atol=2e-3)


def test_attention_specialised() -> None:
    """Two warp groups multiply and one copies; setmaxnreg moves registers between them."""
    q, k, v = (uniform(128, 64).astype(np.float16) for _ in range(3))
    out = np.zeros((128, 64), np.float16)
    args = [each for array in (q, k, v, out) for each in descriptor(array, (64, 64))]
    launch("attention_specialised", 90, 2, [*args, 0.25])
    np.testing.assert_allclose(out.astype(np.float64), attention(q, k, v, 0.25, causal=True), atol=2e-3)


PRODUCTS = [
    # KIND of the operands, precision, their dtypes, the result's, and whether operands are whole numbers (sums then are exact)
    (80, "bf16_ieee", (ml_dtypes.bfloat16, ml_dtypes.bfloat16), np.float32, True),
    (90, "bf16_ieee", (ml_dtypes.bfloat16, ml_dtypes.bfloat16), np.float32, True),
    (80, "i8_ieee", (np.int8, np.int8), np.int32, True),
    (90, "i8_ieee", (np.int8, np.int8), np.int32, True),
    (80, "fp32_tf32", (np.float32, np.float32), np.float32, True),
    (90, "fp32_tf32", (np.float32, np.float32), np.float32, True),
    (80, "fp32_tf32x3", (np.float32, np.float32), np.float32, False),
    (80, "fp64_ieee", (np.float64, np.float64), np.float64, False),
    (90, "fp8e5_ieee", (ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn), np.float32, True),
]


@pytest.mark.parametrize(
    ("architecture", "variant", "operands", "result", "whole"), PRODUCTS, ids=[f"{p[1]}-{p[0]}" for p in PRODUCTS]
)
def test_products(architecture: int, variant: str, operands: tuple[Any, Any], result: Any, whole: bool) -> None:
    shapes = ((64, 64), (32, 64))
    a, b = (
        (RNG.integers(-3, 4, s) if whole else RNG.normal(size=s)).astype(t)
        for s, t in zip(shapes, operands, strict=True)
    )
    c = np.zeros((64, 32), result)
    launch("product", architecture, 1, [a, b, Scratch(c)], f"_{variant}")
    exact = a.astype(np.float64).T @ b.astype(np.float64).T
    tolerance = 0 if whole else 64 * 8 * float(np.finfo(result).eps)
    np.testing.assert_allclose(c, exact, rtol=0, atol=tolerance)


def test_product_of_microscaled_numbers() -> None:
    e2m1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    e2m1 = np.concatenate([e2m1, -e2m1])
    a = RNG.integers(0, 256, (64, 32)).astype(np.uint8)
    b = RNG.integers(-3, 4, (64, 32)).astype(ml_dtypes.float8_e4m3fn)
    a_scale, b_scale = (RNG.integers(125, 130, (rows, 2)).astype(np.uint8) for rows in (64, 32))
    c = np.zeros((64, 32), np.float32)
    launch("product_scaled", 90, 1, [a, a_scale, b, b_scale, Scratch(c)])
    left = np.stack([e2m1[a & 15], e2m1[a >> 4]], axis=-1).reshape(64, 64)  # the first of a pair is the low half
    left = left * np.repeat(2.0 ** (a_scale.astype(int) - 127), 32, axis=1)
    right = b.astype(np.float64) * np.repeat(2.0 ** (b_scale.astype(int) - 127), 32, axis=1).T
    assert np.array_equal(c, left @ right)


def test_sort() -> None:
    x = RNG.integers(-999, 999, (2, 64)).astype(np.int32)
    out = np.zeros_like(x)
    launch("sort", 80, 1, [x, Scratch(out)])
    assert np.array_equal(out, np.sort(x, axis=1))


def test_mathematics() -> None:
    x = (RNG.normal(size=128) * 2).astype(np.float32)
    out = np.zeros((8, 128), np.float32)
    launch("mathematics", 80, 1, [x, Scratch(out)])
    wide = x.astype(np.float64)
    expected = [
        [math.erf(value) for value in wide],
        np.sin(wide),
        np.log(np.abs(wide) + 1),
        1 / (1 + np.exp(-wide)),
        np.tanh(wide),
        np.abs(wide) ** 1.7,
        np.arctan2(wide, 0.3),
        np.cos((x * np.float32(1000)).astype(np.float64)),
    ]
    for row, values in zip(out, expected, strict=True):
        np.testing.assert_allclose(row, values, rtol=3e-6, atol=3e-6)


def test_atomics() -> None:
    x, at = RNG.normal(size=256).astype(np.float32), np.arange(256)
    total, largest, least = np.zeros(3, np.float32), np.full(5, -9, np.float32), np.full(7, 999, np.int32)
    bits, count = np.zeros(1, np.int32), np.zeros(3, np.int32)
    launch("atomics", 80, 1, [total, largest, least, bits, count, x])
    for values, split, reduce in ((x, 3, np.sum), (x, 5, np.max), ((x * 100).astype(np.int32), 7, np.min)):
        found = {3: total, 5: largest, 7: least}[split]
        np.testing.assert_allclose(
            found, [reduce(values[at % split == i].astype(np.float64)) for i in range(split)], rtol=1e-5
        )
    assert bits[0] == np.bitwise_xor.reduce(at)
    assert count.tolist() == [5, 7, 1]


def test_printing() -> None:
    profile = launch("talkative", 80, 1, [np.arange(8, dtype=np.int32), Scratch(np.zeros(8, np.int32))])
    assert profile.output.splitlines() == [
        f"pid (0, 0, 0) idx ({i}) value: {i}" for i in [*range(8)] * 4
    ]  # four lanes hold each


def source_line(code: str) -> int:
    """The line of the kernels' source on which code stands."""
    lines = (SOURCES / "make_triton.py").read_text().splitlines()
    return 1 + next(i for i, line in enumerate(lines) if code in line)


def test_a_failed_assertion() -> None:
    x = np.arange(95, 103, dtype=np.int32)
    with pytest.raises(Trap) as caught:
        launch("talkative", 80, 1, [x, Scratch(np.zeros(8, np.int32))])
    line = source_line("tl.device_assert(")
    lines = str(caught.value).splitlines()
    assert lines[0] == f"trap: make_triton.py:{line}: unknown: assertion 'too large' failed"
    assert lines[1:3] == ["  kernel talkative", f"  source make_triton.py:{line}"]
    assert lines[4] == "  block (0, 0, 0), thread (5, 0, 0)"


def test_a_missing_mask() -> None:
    x, out = uniform(700), np.zeros(700, np.float32)
    with pytest.raises(OutOfBounds) as caught:
        launch("unmasked", 80, 3, [x, Scratch(out), 700])
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("out of bounds: read of ") and lines[0].endswith(" bytes of global memory")
    assert lines[1] == "  kernel unmasked"
    first = source_line("A mask for the store, none for the load.")
    assert lines[2] == f"  source make_triton.py:{first + 2}"
    assert lines[4].startswith("  block (2, 0, 0), thread (")
    assert lines[5].endswith("of 'argument 0' (2800 bytes)") or "past the end of 'argument 0' (2800 bytes)" in lines[5]

"""Kernels compiled by the Triton package, run, and compared with NumPy. A launch's shared memory and number of warps are what the
fixture's first line says that the compiler asked for."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from emulator_programs import PROGRAMS, program
from weft.emulator import Scratch, TensorMap
from weft.emulator.profile.profile import Profile

RNG = np.random.default_rng(3)


def launch(name: str, architecture: int, grid: int | tuple[int, ...], args: list[Any]) -> Profile:
    """Launches a fixture as its compiler says. Its last two arguments are scratch memory that none of them uses."""
    stem = f"triton_{name}_sm{architecture}"
    with (PROGRAMS / f"{stem}.ptx").open() as file:
        head = file.readline()
    said = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", head)}
    return program(stem).launch(name, grid, 32 * said["num_warps"], [*args, 0, 0], shared=said["shared"])


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


def test_matmul_by_descriptors() -> None:
    m, n, k = 128, 64, 128
    a, b, c = integers(m, k), integers(k, n), np.zeros((m, n), np.float32)
    args: list[Any] = []
    for array, box in ((a, (64, 64)), (b, (64, 64)), (c, (64, 32))):
        # A descriptor is a tensor map, then shape and strides in elements.
        args += [TensorMap(array, box=box, swizzle="128B"), *array.shape, array.shape[1], 1]
    launch("matmul_descriptor", 90, (m // 64, n // 64), [*args, k])
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("architecture", [80, 90])
def test_attention(architecture: int) -> None:
    q, k, v = (uniform(64, 32).astype(np.float16) for _ in range(3))
    out = np.zeros((64, 32), np.float32)
    launch("attention", architecture, 1, [q, k, v, Scratch(out), 64, 0.5])
    scores = q.astype(np.float64) @ k.astype(np.float64).T * 0.5
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(out, expected, atol=2e-3)  # the weights are rounded to f16

"""CUDA C for sm_90a: mbarriers, bulk and tensor copies, wgmma. Compared with NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_programs import program
from weft.emulator import Scratch, TensorMap

RNG = np.random.default_rng(9)


def integers(*shape: int) -> np.ndarray:
    """Small integers as f16: sums of their products are exact."""
    return RNG.integers(-4, 5, shape).astype(np.float16)


def test_tensor_copy() -> None:
    x = RNG.uniform(-1, 1, (20, 40)).astype(np.float32)
    out = np.full((24, 64), np.nan, np.float32)
    maps = [TensorMap(array, box=(8, 32), swizzle="128B") for array in (x, out)]
    profile = program("hopper").launch("tensor_copy", (2, 3), 64, maps)
    expected = np.zeros((24, 64), np.float32)
    expected[:20, :40] = 2 * x
    assert np.array_equal(out, expected)
    # Each word is read and written where the swizzle puts it: 8 warp-wide rows a block, without a conflict.
    assert profile.bank_conflicts == 0


def test_tensor_copy_leaves_what_is_outside() -> None:
    x = np.ones((8, 64), np.float32)
    out = np.full((8, 64), 7, np.float32)
    maps = [
        TensorMap(x, box=(8, 32), swizzle="128B"),
        TensorMap(out, shape=(5, 40), strides=(256, 4), box=(8, 32), swizzle="128B"),
    ]
    program("hopper").launch("tensor_copy", (2, 1), 32, maps)
    expected = np.full((8, 64), 7, np.float32)
    expected[:5, :40] = 2
    assert np.array_equal(out, expected)


@pytest.mark.parametrize(("tiles", "block"), [(1, 64), (2, 64), (5, 64), (7, 160)])
def test_pipeline(tiles: int, block: int) -> None:
    x = RNG.integers(-50, 50, (tiles, 128)).astype(np.float32)
    out = np.zeros(block - 32, np.float32)
    program("hopper").launch("pipeline", 1, block, [x, Scratch(out), tiles])
    expected = [x[:, i :: block - 32].sum() for i in range(block - 32)]
    assert out.tolist() == expected


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_handshake(rounds: int) -> None:
    x = RNG.integers(-100, 100, (rounds, 32)).astype(np.int32)
    out = np.zeros((rounds, 32), np.int32)
    program("hopper").launch("handshake", 1, 64, [x, Scratch(out), rounds])
    assert np.array_equal(out, 3 * x[:, ::-1])


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (64, 128, 192)])
def test_matmul_wgmma(m: int, n: int, k: int) -> None:
    a, b, c = integers(m, k), integers(n, k), np.zeros((m, n), np.float32)
    profile = program("hopper").launch("matmul_wgmma", (n // 64, m // 64), 128, [a, b, Scratch(c), n, k])
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
    assert profile.total("wgmma") == (m // 64) * (n // 64) * (k // 16)
    assert profile.total("matrix_flops") == 2 * m * n * k


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (128, 64, 192)])
def test_matmul_wgmma_tma(m: int, n: int, k: int) -> None:
    a, b, c = integers(m, k), integers(n, k), np.zeros((m, n), np.float32)
    maps = [TensorMap(array, box=(64, 64), swizzle="128B") for array in (a, b)]
    program("hopper").launch("matmul_wgmma_tma", (n // 64, m // 64), 128, [*maps, Scratch(c), n, k], shared=4 * 8192)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)

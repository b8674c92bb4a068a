"""The example kernels against float64 NumPy, on sizes that fill no tile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from dropout import dropout
from flash_attention import attention
from layer_norm import layer_norm
from matmul import matmul
from numpy.typing import NDArray
from softmax import softmax
from vector_add import add

from sampling import grid
from weft import dtypes

Array = NDArray[Any]

pytestmark = pytest.mark.jit

DTYPES = pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path))


def normal(dtype: Any, *shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(dtype)


def check(run: Callable[[Array], Any], expected: Array, dtype: Any, tolerance: float) -> None:
    """``tolerance`` bounds the error of float32 arithmetic; rounding to ``dtype`` comes on top. Nothing is written
    beside the output."""
    block = np.full((3, *expected.shape), 7, dtype)
    run(block[1])
    assert (block[[0, 2]] == 7).all()
    roundoff = 2.0 ** -dtypes.from_numpy(np.dtype(dtype)).mantissa / 2
    np.testing.assert_allclose(block[1].astype(np.float64), expected, rtol=roundoff + tolerance, atol=tolerance)


def softmax64(x: Array) -> Array:
    powers = np.exp(x.astype(np.float64) - x.astype(np.float64).max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def kept(n: int, p: float, seed: int) -> NDArray[np.bool_]:
    """Philox with 10 rounds by its definition (Salmon et al. 2011) for counters 0 to n - 1, and Triton's uniform numbers."""
    word = np.uint64((1 << 32) - 1)
    c = [np.arange(n, dtype=np.uint64), *(np.zeros((3, n), np.uint64))]
    keys = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        products = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        upper = [product >> np.uint64(32) for product in products]
        c = [upper[1] ^ c[1] ^ keys[0], products[1] & word, upper[0] ^ c[3] ^ keys[1], products[0] & word]
        keys = [
            key + added & word for key, added in zip(keys, (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)), strict=True)
        ]
    signed = c[0].astype(np.uint32).view(np.int32)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * np.float32(4.6566127342e-10) > np.float32(p)


@DTYPES
@pytest.mark.parametrize("n", [1, 63, 10_001])
def test_dropout(n: int, dtype: Any) -> None:
    x, p, seed = normal(dtype, n), 0.3, (5 << 32) + 123
    expected = np.where(kept(n, p, seed), x.astype(np.float64) / (1 - np.float64(np.float32(p))), 0.0)
    check(lambda out: dropout(x, out, p, seed), expected, dtype, 1e-6)


@DTYPES
@pytest.mark.parametrize("n", [1, 63, 4096, 10_001])
def test_add(n: int, dtype: Any) -> None:
    x, y = normal(dtype, n), normal(dtype, n, 1)[:, 0].copy()
    check(lambda out: add(x, y, out), x.astype(np.float64) + y.astype(np.float64), dtype, 0)


@DTYPES
@pytest.mark.parametrize("shape", [(1, 1), (3, 781), (5, 1024)])
def test_softmax(shape: tuple[int, int], dtype: Any) -> None:
    x = normal(dtype, *shape)
    check(lambda out: softmax(x, out), softmax64(x), dtype, 1e-6)


def test_softmax_of_a_long_row() -> None:
    x = normal(np.float32, 2, 100_000)
    check(lambda out: softmax(x, out), softmax64(x), np.float32, 1e-6)


@DTYPES
@pytest.mark.parametrize("columns", [2, 781, 2048])
def test_layer_norm(columns: int, dtype: Any) -> None:
    x, weight, bias = normal(dtype, 5, columns), normal(dtype, columns), normal(dtype, columns, 1)[:, 0].copy()
    wide = x.astype(np.float64)
    centered = wide - wide.mean(axis=1, keepdims=True)
    scale = np.sqrt((centered**2).mean(axis=1, keepdims=True) + 1e-5)
    expected = centered / scale * weight.astype(np.float64) + bias.astype(np.float64)
    check(lambda out: layer_norm(x, weight, bias, out), expected, dtype, 1e-5)


@DTYPES
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (37, 150, 65), (130, 20, 257)])
def test_matmul(m: int, n: int, k: int, dtype: Any) -> None:
    a, b = normal(dtype, m, k), normal(dtype, k, n)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    check(lambda out: matmul(a, b, out, 32, 32, 64), expected, dtype, 1e-4)


@DTYPES
@pytest.mark.parametrize(("length", "causal"), grid(2, [1, 100, 192], [False, True]))
def test_attention(length: int, causal: bool, dtype: Any) -> None:
    q, k, v = (normal(dtype, 2, length, 64)[:, :, ::step].copy() for step in (1, -1, 1))
    scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) / 8
    if causal:
        scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    expected = softmax64(scores) @ v.astype(np.float64)
    # In bfloat16 the weights are rounded before they meet v.
    tolerance = 1e-5 if dtype is np.float32 else 1e-2
    check(lambda out: attention(q, k, v, out, causal, 32, 64), expected, dtype, tolerance)

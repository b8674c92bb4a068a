"""Kernels in the language against the reference: memory through every shape of pointers, atomics, reductions with combine
functions, and control flow that carries tiles.

Float results are exact unless a test says otherwise: the kernels add and multiply, in one order.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportUnnecessaryComparison=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft.language as tl
from sampling import at_night, every, grid, some
from weft import dtypes
from weft.dtypes import DType
from weft.frontend import KernelFunction
from weft.ir.unsupported import UnsupportedOpError

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit

jit = KernelFunction
SIZES = [1, 4, 16, 64, 512]
"""Less than a vector, one vector, all registers unrolled, a loop."""

ADDED = [d for d in dtypes.ALL if not d.is_bool and not d.is_float8]
"""What `tl.atomic_add` takes."""


def values(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    """Integers between -100 and 100 (without sign: between 0 and 200) in any type."""
    numbers: Any = np.random.default_rng(seed).integers(-100, 100, shape)
    return (numbers + 100 if np.dtype(dtype).kind == "u" else numbers).astype(dtype)


# ---- memory ---------------------------------------------------------------------------------------------------------


@jit
def masked(x: Any, fill: Any, out: Any, begin: Any, end: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    mask = (i >= begin) & (i < end)
    a = tl.load(x + i, mask=mask, other=3)
    b = tl.load(x + i, mask=i < end, other=tl.load(fill + i))
    c = tl.load(x + i, mask=mask)
    tl.store(out + i, a, mask=i >= begin)
    tl.store(out + N + i, b, mask=i % 3 != 1)
    tl.store(out + 2 * N + i, c, mask=mask)
    tl.store(out + 3 * N + i, a, mask=end > i)


@pytest.mark.parametrize("dtype", every(3, dtypes.ALL), ids=str)
def test_masks_and_others(differ: Differential, dtype: DType) -> None:
    """Arrays end where the mask does, so that an access beyond it would be caught."""
    for n in (4, 16, 512):
        for begin, end in ((0, n), (1, n - 1), (n // 2, n), (0, 0)):
            x, fill, out = (values(m, dtype=dtype.numpy, seed=m) for m in (max(end, 1), n, 4 * n))
            out[:] = 1
            bounds = {"begin": np.int32(begin), "end": np.int32(end)}
            if (begin, end) in ((1, n - 1), (0, n)) or n == 16:
                differ(masked, promises=[n > 4], x=x, fill=fill, out=out, **bounds, N=n)


@jit
def strided(x: Any, out: Any, rows: Any, columns: Any, sr: Any, sc: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    r, c = tl.arange(0, M), tl.arange(0, N)
    mask = (r < rows)[:, None] & (c < columns)[None, :]
    v = tl.load(x + r[:, None] * sr + c[None, :] * sc, mask=mask, other=-1)
    tl.store(out + r[:, None] * N + c[None, :], v)
    tl.store(out + M * N + c[:, None] * M + r[None, :], tl.trans(v) + 1)
    tl.store(out + 2 * M * N + r[:, None] * N + (N - 1 - c)[None, :], v, mask=mask)


@pytest.mark.parametrize("sizes", some([(1, 1), (4, 2), (2, 32), (32, 2), (16, 16), (64, 32)], (64, 32)), ids=str)
def test_two_dimensional_pointers(differ: Differential, sizes: tuple[int, int]) -> None:
    """Row-major, column-major, reversed and with gaps; strides known at compile time and not (by turns, nightly both)."""
    m, n = sizes
    strides = [(n, 1), (1, m), (2 * n, 2), (0, 1), (1, 0)]
    for place, (sr, sc) in enumerate(strides, m.bit_length()):
        x = values(max(1, m * sr + n * sc + m * n))
        for make in (int, np.int32) if at_night() else ((int, np.int32)[place % 2],):
            steps = {"sr": make(sr), "sc": make(sc)}
            edge = {"rows": np.int32(max(1, m - 1)), "columns": np.int32(n)}
            differ(strided, promises=[True], x=x, out=np.zeros(3 * m * n, np.float32), **edge, **steps, M=m, N=n)


@jit
def signed_offsets(x: Any, index: Any, out: Any, middle: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    j = tl.load(index + i)
    center = x + middle
    tl.store(out + i, tl.load(center + j))
    tl.store(out + N + i, tl.load(center - i))
    tl.store(out + 2 * N + i, tl.load(center + (i - N).to(tl.int64)))
    tl.store(out + 3 * N + i, tl.load(x + (j.to(tl.int64) + middle)))


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("n", SIZES)
def test_negative_offsets_of_every_width(differ: Differential, n: int, dtype: Any) -> None:
    reach = min(n, 120)
    index = np.random.default_rng(0).integers(-reach, reach, n).astype(dtype)
    out = np.zeros(4 * n, np.float32)
    differ(signed_offsets, promises=[True], x=values(2 * n + 1), index=index, out=out, middle=np.int32(n), N=n)


@jit
def unsigned_offsets(x: Any, index: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + tl.load(index + i)))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_unsigned_offsets_are_not_negative(differ: Differential, dtype: Any) -> None:
    """The largest offsets have the sign bit of their type set."""
    high = 1 << (8 * np.dtype(dtype).itemsize - 1)
    x = values(high + 40 if high < 1 << 20 else 1)
    index = np.arange(32).astype(dtype) + dtype(high if high < 1 << 20 else 0) if len(x) > 1 else np.zeros(32, dtype)
    differ(unsigned_offsets, x=x, index=index, out=np.zeros(32, np.float32), N=32)


@jit
def gather_rows(table: Any, index: Any, out: Any, stride: Any, R: tl.constexpr, C: tl.constexpr) -> None:
    rows = tl.load(index + tl.arange(0, R))
    c = tl.arange(0, C)
    v = tl.load(table + rows[:, None] * stride + c[None, :])
    tl.store(out + tl.arange(0, R)[:, None] * C + c[None, :], v)
    tl.store(out + R * C + tl.arange(0, R), tl.load(table + rows * stride))


@pytest.mark.parametrize("sizes", [(1, 16), (4, 4), (16, 2), (8, 64), (64, 8)], ids=str)
def test_gather(differ: Differential, sizes: tuple[int, int]) -> None:
    r, c = sizes
    index = np.random.default_rng(0).integers(0, 20, r).astype(np.int64)
    out = np.zeros(r * c + r, np.float32)
    differ(gather_rows, table=values(20, c), index=index, out=out, stride=np.int32(c), R=r, C=c)


@jit
def broadcast_access(x: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, M)
    same = tl.load(x + n + tl.zeros((M, N), tl.int32))
    rows = tl.load(x + i[:, None] + tl.zeros((M, N), tl.int32))
    tl.store(out + i[:, None] * N + tl.arange(0, N)[None, :], same * rows)
    tl.store(out + M * N + n, tl.load(x + n))
    tl.store(out + M * N + n + 1, tl.load(x + n, mask=n > 1000, other=5.0), mask=n < 1000)
    tl.store(out + M * N + n + 1, 9.0, mask=n > 1000)


@pytest.mark.parametrize("sizes", [(1, 1), (4, 2), (2, 64), (64, 4)], ids=str)
def test_one_address_for_many_elements(differ: Differential, sizes: tuple[int, int]) -> None:
    m, n = sizes
    differ(broadcast_access, x=values(m + 4), out=np.zeros(m * n + 8, np.float32), n=np.int32(2), M=m, N=n)


# ---- atomics --------------------------------------------------------------------------------------------------------


@jit
def histogram(x: Any, counts: Any, amount: Any, n: Any, N: tl.constexpr) -> None:
    """Along the axis whose programs run one by one: three are too few to run together."""
    i = tl.program_id(2) * N + tl.arange(0, N)
    tl.atomic_add(counts + tl.load(x + i, mask=i < n), amount, mask=i < n)


@jit
def claim(counter: Any, out: Any, value: Any, n: Any, N: tl.constexpr) -> None:
    """The old values of addresses that do not meet, and of a scalar."""
    i = tl.arange(0, N)
    old = tl.atomic_add(counter + i, value, mask=i != n)
    tl.store(out + i, old, mask=i != n)
    first = tl.atomic_add(counter + N, value)
    tl.store(out + N, first)
    tl.atomic_add(counter + N, value, mask=n < 0)
    tl.atomic_add(counter + N + 1 + tl.zeros((N,), tl.int32), value)


@pytest.mark.parametrize(("dtype", "n"), grid(3, ADDED, [1, 4, 64, 512]), ids=str)
def test_atomic_add(differ: Differential, dtype: DType, n: int) -> None:
    """Colliding addresses all count; sums of a few small integers are exact in every type."""
    x = np.random.default_rng(0).integers(0, 3 + n // 2, 3 * n).astype(np.int32)
    amount: Any = dtype.numpy.type(1)
    count = np.zeros(3 + n // 2, dtype.numpy)
    if dtype.bits < differ.least_atomic_bits:
        with pytest.raises(UnsupportedOpError, match=f"^tile.atomic_rmw has no instruction for {dtype} on sm_"):
            differ(histogram, (1, 1, 3), promises=[True], x=x, counts=count, amount=amount, n=np.int32(3 * n - 1), N=n)
        return
    differ(histogram, (1, 1, 3), promises=[True], x=x, counts=count, amount=amount, n=np.int32(3 * n - 1), N=n)
    counter, out = (
        values(n + 2, dtype=dtype.numpy) if dtype.bits > 8 else np.zeros(n + 2, dtype.numpy),
        np.zeros(n + 1, dtype.numpy),
    )
    differ(claim, promises=[False], counter=counter, out=out, value=amount, n=np.int32(n // 2), N=n)


# ---- reductions of the language -------------------------------------------------------------------------------------


@jit
def reductions(
    x: Any, out: Any, where: Any, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, LEFT: tl.constexpr
) -> None:
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, LEFT)
    v = tl.load(x + i[:, None] * N + j[None, :])
    tl.store(out + k, tl.sum(v, axis=AXIS))
    tl.store(out + LEFT + k, tl.max(v, axis=AXIS))
    low, at = tl.min(v, axis=AXIS, return_indices=True)
    tl.store(out + 2 * LEFT + k, low)
    tl.store(where + k, at)
    tl.store(where + LEFT + k, tl.argmax(v, axis=AXIS))
    tl.store(where + 2 * LEFT, tl.argmin(v, axis=None))
    tl.store(out + 3 * LEFT, tl.sum(v))
    tl.store(out + 3 * LEFT + 1 + tl.arange(0, 1)[:, None], tl.max(v, keep_dims=True))


@pytest.mark.parametrize(
    ("sizes", "axis"), grid(3, [(1, 1), (2, 4), (16, 1), (1, 32), (8, 64), (64, 16)], [0, 1]), ids=str
)
def test_sums_extrema_and_their_places(differ: Differential, sizes: tuple[int, int], axis: int) -> None:
    m, n = sizes
    left = sizes[1 - axis]
    half = (m.bit_length() + axis) % 2  # of the types, by turns; nightly all
    types: tuple[Any, ...] = (np.int8, np.float32, np.uint32, np.float16, np.int64, np.float64)
    for dtype in (t for at, t in enumerate(types) if at_night() or at % 2 == half or t is np.float32):
        x: Any = (values(m, n, dtype=np.int16) % 3).astype(dtype)  # many ties; sums that float16 holds
        if dtype is np.float32 and m * n > 8:
            x.reshape(-1)[::5] = np.nan
        wide = np.float64 if x.dtype.kind == "f" else np.int64
        out, where = np.zeros(3 * left + 2, wide), np.zeros(2 * left + 1, np.int32)
        differ(reductions, promises=[True], x=x, out=out, where=where, M=m, N=n, AXIS=axis, LEFT=left)


@jit
def welford(mean_a: Any, m2_a: Any, n_a: Any, mean_b: Any, m2_b: Any, n_b: Any) -> Any:
    total = n_a + n_b
    share = n_b / total
    delta = mean_b - mean_a
    return mean_a + delta * share, m2_a + m2_b + delta * delta * n_a * share, total


@jit
def longest(length_a: Any, id_a: Any, length_b: Any, id_b: Any) -> Any:
    """With branches, also nested, and a value that only one side changes."""
    length, who = length_a, id_a
    if length_b > length_a:
        length, who = length_b, id_b
    elif length_b == length_a:
        who = tl.minimum(id_a, id_b)
    return length, who


@jit
def gcd_step(a: Any, b: Any) -> Any:
    """Divides by what has been reduced so far."""
    return tl.maximum(a, b) // tl.minimum(tl.minimum(a, b), 1) + 7 % b * 0


@jit
def user_reductions(x: Any, out: Any, stats: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    v = tl.load(x + at)
    length, who = tl.reduce((v, at), 1, longest)
    tl.store(out + i, length)
    tl.store(out + M + i, who)
    tl.store(out + 2 * M + j, tl.reduce(v + 101, 0, gcd_step))
    f = v.to(tl.float64)
    mean, m2, count = tl.reduce((f, tl.zeros_like(f), tl.full((M, N), 1.0, tl.float64)), 0, welford)
    tl.store(stats + j, mean)
    tl.store(stats + N + j, m2)
    tl.store(stats + 2 * N + j, count)


@pytest.mark.parametrize("sizes", [(1, 1), (2, 4), (16, 1), (1, 32), (8, 64), (64, 16)], ids=str)
def test_combine_functions(differ: Differential, sizes: tuple[int, int]) -> None:
    m, n = sizes
    x = values(m, n, dtype=np.int32)
    arrays = {"x": x, "out": np.zeros(2 * m + n, np.int32), "stats": np.zeros(3 * n)}
    module = differ.build(user_reductions, **arrays, M=m, N=n)
    expected = differ.module(module, list(arrays.values()), ulps=1e5)[2]  # 10**5 ulps are 2**-36, relatively
    np.testing.assert_allclose(expected[:n], x.mean(axis=0), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(expected[n : 2 * n], x.var(axis=0) * m, rtol=1e-12, atol=1e-12)

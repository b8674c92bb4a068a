"""Scans, gathers and histograms of the language on each machine, against NumPy's accumulations and a loop for affine maps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from machines import on
from sampling import grid

pytestmark = pytest.mark.jit

TARGETS: Final = (None, "sm_90", pytest.param("sm_80", marks=pytest.mark.nightly))
RNG: Final = np.random.default_rng(5)
Array = NDArray[Any]


def turned(x: Array, axis: int, reverse: bool) -> Array:
    return np.flip(x, axis) if reverse else x


# ---- scans -----------------------------------------------------------------------------------------------------------


@weft.jit
def compose(a: Any, b: Any, c: Any, d: Any) -> Any:
    """x -> a x + b, then x -> c x + d. It does not commute."""
    return a * c, b * c + d


@weft.jit
def affine(
    x: Any, y: Any, out: Any, last: Any, M: tl.constexpr, N: tl.constexpr, A: tl.constexpr, R: tl.constexpr
) -> None:
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.associative_scan((tl.load(x + i), tl.load(y + i)), A, compose, reverse=R)
    tl.store(out + i, a)
    tl.store(last + i, b)


def composed(a: Array, b: Array, axis: int, reverse: bool) -> tuple[Array, Array]:
    a, b = (np.moveaxis(turned(x, axis, reverse), axis, 0).copy() for x in (a, b))
    for i in range(1, len(a)):
        b[i] = b[i - 1] * a[i] + b[i]
        a[i] = a[i - 1] * a[i]
    first, second = (turned(np.moveaxis(x, 0, axis), axis, reverse) for x in (a, b))
    return first, second


SHAPES: Final[Sequence[tuple[int, int]]] = ((4, 8), (1, 64), (64, 1), (64, 64), (512, 4), (2, 512), (16, 512))
"""The last goes by rows on a CPU."""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "axis", "reverse"), grid(3, SHAPES, (0, 1), (False, True)))
def test_tuples_that_do_not_commute(target: str | None, shape: tuple[int, int], axis: int, reverse: bool) -> None:
    x, y = (RNG.integers(-9, 9, shape).astype(np.int32) for _ in range(2))
    first, second = np.zeros_like(x), np.zeros_like(x)
    on(affine, target)[(1,)](x, y, first, second, *shape, axis, reverse)
    expected = composed(x, y, axis, reverse)
    np.testing.assert_array_equal(first, expected[0])
    np.testing.assert_array_equal(second, expected[1])


@weft.jit
def running(x: Any, sums: Any, products: Any, N: tl.constexpr, R: tl.constexpr, D: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(sums + i, tl.cumsum(v, reverse=R, dtype=D))
    tl.store(products + i, v.cumprod(0, R, D))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("dtype", "asked"), [(ml_dtypes.bfloat16, None), (np.float16, None), (np.float32, tl.bfloat16)]
)
def test_narrow_floats_are_rounded_once(target: str | None, dtype: Any, asked: Any) -> None:
    """1 + 1 + ... would stay 256 in bfloat16 and 2048 in float16."""
    narrow = ml_dtypes.bfloat16 if asked is not None else dtype
    x = np.ones(4096, dtype)
    sums, products = np.zeros(4096, narrow), np.zeros(4096, narrow)
    on(running, target)[(1,)](x, sums, products, 4096, False, asked)
    np.testing.assert_array_equal(sums, np.arange(1, 4097).astype(np.float32).astype(narrow))
    x = np.where(np.arange(64) % 2, 1 + 1 / 64, 1).astype(dtype)
    on(running, target)[(1,)](x, sums, products, 64, False, asked)
    exact = np.cumprod(x.astype(np.float64))
    half_a_unit = 2.0 ** (-11 if narrow is np.float16 else -8)
    np.testing.assert_allclose(products[:64].astype(np.float64), exact, rtol=1.001 * half_a_unit)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("dtype", "wide", "asked"),
    [
        (np.int8, np.int32, None),
        (np.uint16, np.uint32, None),
        (np.bool_, np.uint32, None),
        (np.int64, np.int64, None),
        (np.float32, np.float32, None),
        (np.int32, np.float64, tl.float64),
        (np.float16, np.float32, tl.float32),
        (np.int32, np.int8, tl.int8),
    ],
)
def test_sums_and_products_by_type(target: str | None, dtype: Any, wide: Any, asked: Any) -> None:
    """Of whole numbers, so that every order gives the same; products are of the first elements alone."""
    x = RNG.integers(0, 2, 256).astype(dtype)
    x[:20] = 1 if dtype is np.bool_ else 2
    sums, products = np.zeros(256, wide), np.zeros(256, wide)
    on(running, target)[(1,)](x, sums, products, 256, False, asked)
    np.testing.assert_array_equal(sums, np.cumsum(x, dtype=wide))
    multiplied: Array = np.multiply.accumulate(x.astype(wide), dtype=wide)
    np.testing.assert_array_equal(products, multiplied)
    on(running, target)[(1,)](x, sums, products, 256, True, asked)
    backwards = np.asarray(np.cumsum(np.flip(x), dtype=wide))
    np.testing.assert_array_equal(sums, np.flip(backwards))


@pytest.mark.parametrize("target", TARGETS)
def test_rounding_is_that_of_some_grouping_and_of_every_run(target: str | None) -> None:
    x = RNG.standard_normal(4096).astype(np.float32)
    found = [np.zeros_like(x) for _ in range(3)]
    on(running, target)[(1,)](x, found[0], found[2], 4096, False, None)
    on(running, target)[(1,)](x, found[1], found[2], 4096, False, None)
    np.testing.assert_array_equal(found[0], found[1])
    exact, size = np.cumsum(x.astype(np.float64)), np.cumsum(np.abs(x.astype(np.float64)))
    assert np.all(np.abs(found[0] - exact) <= 24 * 2.0**-24 * size)  # at most 4 + 8 or 5 + 5 + 5 additions for each


@weft.jit
def later_of(a: Any, i: Any, b: Any, j: Any) -> Any:
    """The last element that is not zero, and its index."""
    if b != 0:
        a = b
        i = j
    return a, i


@weft.jit
def last_seen(x: Any, value: Any, at: Any, total: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i)
    a, j = tl.associative_scan((v, i.to(tl.int64)), 0, later_of)
    tl.store(value + i, a)
    tl.store(at + i, j)
    tl.store(total, tl.sum(v, 0))


@pytest.mark.parametrize("target", TARGETS)
def test_branches_and_types_of_several_widths(target: str | None) -> None:
    x = (RNG.integers(0, 4, 256) == 0).astype(np.int16) * RNG.integers(1, 99, 256).astype(np.int16)
    x[0] = 7
    value, at, total = np.zeros_like(x), np.zeros(256, np.int64), np.zeros(1, np.int32)
    on(last_seen, target)[(1,)](x, value, at, total, 256)
    places = np.maximum.accumulate(np.where(x != 0, np.arange(256), 0))
    np.testing.assert_array_equal(at, places)
    np.testing.assert_array_equal(value, x[places])
    assert total[0] == x.sum()


@weft.jit
def in_a_loop(x: Any, out: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + i)
    for _ in range(n):
        v = tl.cumsum(v, 1) + tl.cumsum(v, 1, reverse=True) - tl.cumsum(v, 0)
    tl.store(out + i, v)


@pytest.mark.parametrize("target", TARGETS)
def test_scans_of_what_a_loop_carries(target: str | None) -> None:
    x = RNG.integers(-9, 9, (16, 32)).astype(np.int32)
    out = np.zeros_like(x)
    on(in_a_loop, target)[(1,)](x, out, 3, 16, 32)
    for _ in range(3):
        x = (np.cumsum(x, 1) + np.cumsum(x[:, ::-1], 1)[:, ::-1] - np.cumsum(x, 0)).astype(np.int32)
    np.testing.assert_array_equal(out, x)


@weft.jit
def of_three(
    x: Any, out: Any, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, X: tl.constexpr, T: tl.constexpr
) -> None:
    i = tl.reshape(tl.arange(0, A * B * C), (A, B, C))
    if T:
        i = tl.permute(i, 2, 1, 0)
    tl.store(out + i, tl.cumsum(tl.load(x + i), X))


@pytest.mark.parametrize("shape", [(4, 16, 512), (16, 512, 4), (2, 4, 8)])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("transposed", [False, True])
def test_native_scans_of_rank_3(shape: tuple[int, ...], axis: int, transposed: bool) -> None:
    """By rows and by columns, of memory in either order."""
    x = RNG.integers(-9, 9, shape).astype(np.int32)
    out = np.zeros_like(x)
    of_three[(1,)](x, out, *shape, axis, transposed)
    np.testing.assert_array_equal(out, np.cumsum(x, 2 - axis % 3 if transposed else axis))


# ---- gathers ---------------------------------------------------------------------------------------------------------


@weft.jit
def take(x: Any, index: Any, out: Any, FROM: tl.constexpr, TO: tl.constexpr, A: tl.constexpr) -> None:
    i = tl.arange(0, FROM[0])[:, None] * FROM[1] + tl.arange(0, FROM[1])[None, :]
    j = tl.arange(0, TO[0])[:, None] * TO[1] + tl.arange(0, TO[1])[None, :]
    tl.store(out + j, tl.gather(tl.load(x + i), tl.load(index + j), A))


GATHERS: Final = [
    ((16, 32), 1, 32, np.float32, np.int32),
    ((16, 32), 0, 64, np.float16, np.int64),
    ((4, 256), -1, 8, np.int8, np.uint8),
    ((256, 4), 0, 1, np.bool_, np.int16),
    ((1, 64), 1, 64, np.float64, np.int8),
    ((64, 64), 0, 64, np.int64, np.uint32),
    ((8, 1), 1, 16, np.int32, np.int32),
]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "axis", "size", "dtype", "index_dtype"), GATHERS)
def test_gathers(
    target: str | None, shape: tuple[int, int], axis: int, size: int, dtype: Any, index_dtype: Any
) -> None:
    x = RNG.integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)
    wanted = tuple(size if d == axis % 2 else n for d, n in enumerate(shape))
    index = RNG.integers(0, shape[axis], wanted).astype(index_dtype)
    out = np.zeros(wanted, dtype)
    on(take, target)[(1,)](x, index, out, shape, wanted, axis)
    np.testing.assert_array_equal(out, np.take_along_axis(x, index.astype(np.int64), axis))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("axis", [0, 1])
def test_an_index_outside_the_axis_reads_no_foreign_memory(target: str | None, axis: int) -> None:
    """All elements are marked, and indices reach far beyond both ends."""
    x = np.full((64, 32), 7, np.int32)
    index = RNG.integers(-(2**31), 2**31 - 1, (64, 32)).astype(np.int32)
    index[0], index[1] = -1, (64, 32)[axis]
    out = np.full_like(x, -1)
    on(take, target)[(1,)](x, index, out, (64, 32), (64, 32), axis)
    assert set(np.unique(out)) <= {0, 7}


@weft.jit
def of_carried(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i)
    w = v * 2
    for step in range(n):
        w = tl.gather(w, v, 0) + w
        v = tl.gather(v + step, v, 0) & (N - 1)
        v = tl.gather(v, v, 0)
    tl.store(out + i, v + w)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [16, 512])
def test_gathers_of_what_a_loop_carries(target: str | None, size: int) -> None:
    """A gather reads the whole tile before the loop writes it back; sources are also computed, and their own indices."""
    v = RNG.permutation(size).astype(np.int32)
    out = np.zeros_like(v)
    on(of_carried, target)[(1,)](v, out, 3, size)
    w = v * 2
    for step in range(3):
        w = w[v] + w
        v = (v + step)[v] & (size - 1)
        v = v[v]
    np.testing.assert_array_equal(out, v + w)


# ---- histograms ------------------------------------------------------------------------------------------------------


@weft.jit
def counts(x: Any, mask: Any, out: Any, N: tl.constexpr, B: tl.constexpr, M: tl.constexpr) -> None:
    i = tl.arange(0, N)
    allowed = tl.load(mask + i) if M else None
    tl.store(out + tl.arange(0, B), tl.histogram(tl.load(x + i), B, allowed))


def counted(x: Array, bins: int) -> Array:
    return np.bincount(x[(x >= 0) & (x < bins)].astype(np.int64), minlength=bins).astype(np.int32)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("size", "bins"), [(1, 1), (16, 4), (1024, 16), (1024, 256), (256, 2048), (4096, 2), (8, 64)])
@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_histograms(target: str | None, size: int, bins: int, dtype: Any) -> None:
    """Values outside of the bins, the extreme ones among them, are not counted; nor are those that the mask leaves out."""
    x = RNG.integers(0, bins + 3, size).astype(dtype)
    x[: size // 4] = np.resize(np.array([np.iinfo(dtype).max, np.iinfo(dtype).min, bins, bins - 1], dtype), size // 4)
    mask = RNG.integers(0, 2, size).astype(np.bool_)
    for masked in (False, True):
        out = np.full(bins, -1, np.int32)
        on(counts, target)[(1,)](x, mask, out, size, bins, masked)
        np.testing.assert_array_equal(out, counted(x[mask] if masked else x, bins))


@weft.jit
def counts_of_casts(x: Any, scale: Any, out: Any, n: Any, N: tl.constexpr, B: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = (tl.load(x + i, mask=i < n) * scale).to(tl.int32)
    tl.store(out + tl.arange(0, B), tl.histogram(v, B, mask=i < n))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16, np.int64, np.float32])
@pytest.mark.parametrize("n", [512, 500, 3])
def test_histograms_of_casts(target: str | None, dtype: Any, n: int) -> None:
    """Of numbers that are cast when they have been loaded (a factor of 1 changes nothing), and of computed ones; -1 is outside,
    and so is what is beyond the end."""
    is_float = np.issubdtype(dtype, np.floating)
    size, bins, scale = 512, 64, 4 if is_float else 1
    x = RNG.integers(-1 if np.issubdtype(dtype, np.signedinteger) else 0, bins // scale + 3, size).astype(dtype)
    x[:2] = 1e30 if is_float else np.iinfo(dtype).max, bins // scale - 1
    for factor in (1, scale):
        out = np.full(bins, -1, np.int32)
        on(counts_of_casts, target)[(1,)](x, factor, out, n, size, bins)
        number = np.clip(x * float(factor), -(2.0**31), 2.0**31 - 1) if is_float else x
        np.testing.assert_array_equal(out, counted(number[:n].astype(np.int64).astype(np.int32), bins))


@pytest.mark.parametrize("bins", [1, 16, 4096])
@pytest.mark.parametrize("size", [1 << 15, 1 << 16])
def test_histograms_of_one_number(size: int, bins: int) -> None:
    """A count is as large as the tile."""
    x = np.full(size, bins - 1, np.int32)
    for masked in (False, True):
        out = np.full(bins, -1, np.int32)
        counts[(1,)](x, np.ones(size, np.bool_), out, size, bins, masked)
        np.testing.assert_array_equal(out, counted(x, bins))
        counts[(1,)](x + 1, np.ones(size, np.bool_), out, size, bins, masked)
        assert not out.any()


@weft.jit
def several(x: Any, out: Any, n: Any, N: tl.constexpr, B: tl.constexpr) -> None:
    i, total = tl.arange(0, N), tl.zeros((B,), tl.int32)
    for k in range(n):
        v = tl.load(x + k * N + i, mask=k * N + i < 700, other=-1)
        first = tl.histogram(v, B)
        total += first * (k + 1) + tl.sum(v, 0) + tl.histogram(tl.cumsum(v, 0).to(tl.uint32, bitcast=True), B, v > 3)
        total += tl.histogram(first, B)
    tl.store(out + tl.arange(0, B), total)


@pytest.mark.parametrize("target", TARGETS)
def test_histograms_in_a_loop_beside_other_collectives(target: str | None) -> None:
    """In one register loop with a sum and a scan; of a histogram; with counts that begin at 0 in each iteration."""
    size, bins = 256, 32
    x = RNG.integers(-2, bins + 3, 3 * size).astype(np.int32)
    out, expected = np.zeros(bins, np.int32), np.zeros(bins, np.int32)
    on(several, target)[(1,)](x, out, 3, size, bins)
    x[700:] = -1
    for k, v in enumerate(x.reshape(3, size)):
        first = counted(v, bins)
        expected += first * (k + 1) + v.sum(dtype=np.int32) + counted(np.cumsum(v)[v > 3], bins) + counted(first, bins)
    np.testing.assert_array_equal(out, expected)

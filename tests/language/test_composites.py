"""Functions of the language that are written in it, against their definitions in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.frontend.errors import CompilationError

pytestmark = pytest.mark.jit


@weft.jit
def swizzle(rows: Any, columns: Any, size_i: Any, size_j: Any, size_g: Any) -> None:
    i, j = tl.program_id(0), tl.program_id(1)
    row, column = tl.swizzle2d(i, j, size_i, size_j, size_g)
    tl.store(rows + i * size_j + j, row)
    tl.store(columns + i * size_j + j, column)


@pytest.mark.parametrize(
    ("size_i", "size_j", "size_g"), [(4, 4, 2), (5, 3, 2), (1, 7, 4), (7, 1, 3), (6, 5, 8), (3, 3, 1)]
)
def test_swizzle2d(size_i: int, size_j: int, size_g: int) -> None:
    """Groups of rows one after the other, each column by column."""
    expected = [
        (row, column)
        for first in range(0, size_i, size_g)
        for column in range(size_j)
        for row in range(first, min(first + size_g, size_i))
    ]
    rows, columns = np.full((2, size_i * size_j), -1, np.int32)
    swizzle[(size_i, size_j)](rows, columns, size_i, size_j, size_g)
    assert list(zip(rows.tolist(), columns.tolist(), strict=True)) == expected


@weft.jit
def reshaped(x: Any, out: Any, DIM: tl.constexpr) -> None:
    tile = tl.load(x + tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :])
    wide = tl.unsqueeze(tile, DIM)
    tl.static_assert(wide.shape == ((1, 2, 4), (2, 1, 4), (2, 4, 1))[DIM % 3])
    narrow = tl.squeeze(wide, DIM)
    tl.static_assert(narrow.shape == (2, 4))
    tl.store(out + tl.arange(0, 2)[:, None] * 4 + tl.arange(0, 4)[None, :], narrow)


@pytest.mark.parametrize("dim", range(-3, 3))
def test_squeeze_is_the_inverse_of_unsqueeze(dim: int) -> None:
    x, out = np.arange(8.0), np.zeros(8)
    reshaped[(1,)](x, out, dim)
    assert np.array_equal(out, x)


@weft.jit
def bits(x: Any, rows: Any, columns: Any, every: Any) -> None:
    tile = tl.load(x + tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :])
    tl.store(rows + tl.arange(0, 8), tl.reduce_or(tile, 1))
    tl.store(columns + tl.arange(0, 16)[None, :], tile.reduce_or(0, keep_dims=True))
    tl.store(every, tl.reduce_or(tile, None))


@pytest.mark.parametrize("target", [None, "sm_90"])
@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.int64, np.bool_])
def test_reduce_or(dtype: type[np.generic], target: str | None) -> None:
    random = np.random.default_rng(0)
    x = (random.integers(0, 256, 8 * 16) & random.integers(0, 256, 8 * 16)).astype(np.uint8).astype(dtype)
    rows, columns, every = np.zeros(8, dtype), np.zeros(16, dtype), np.zeros(1, dtype)
    (bits if target is None else bits.on(target))[(1,)](x, rows, columns, every)
    tile = x.reshape(8, 16)
    assert np.array_equal(rows, np.bitwise_or.reduce(tile, 1))
    assert np.array_equal(columns, np.bitwise_or.reduce(tile, 0))
    assert every[0] == np.bitwise_or.reduce(x)


@weft.jit
def dependent(x: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    tl.extra.cuda.gdc_wait()
    value = tl.load(x + i)
    tl.extra.cuda.gdc.gdc_launch_dependents()
    tl.store(x + i, value * 2)


@pytest.mark.parametrize("target", [None, "sm_90"])
def test_dependent_launches_follow_one_another(target: str | None) -> None:
    x = np.arange(64, dtype=np.int32)
    for _ in range(3):
        (dependent if target is None else dependent.on(target))[(1,)](x, 64)
    assert x.tolist() == [8 * i for i in range(64)]


@weft.jit
def no_such_dimension(out: Any) -> None:
    tl.store(out, tl.squeeze(tl.zeros((1, 2), tl.int32), 2))


@weft.jit
def a_larger_dimension(out: Any) -> None:
    tl.store(out, tl.squeeze(tl.zeros((1, 2), tl.int32), -1))


@weft.jit
def bits_of_floats(out: Any) -> None:
    tl.store(out, tl.reduce_or(tl.zeros((4,), tl.float32), 0))


@pytest.mark.parametrize(
    ("kernel", "message", "hint"),
    [
        (no_such_dimension, "tl.squeeze: the tile has no such dimension", None),
        (a_larger_dimension, "tl.squeeze: the dimension has a size of 1", None),
        (
            bits_of_floats,
            "tl.reduce_or takes integers, found float32[4]",
            "reinterpret the bits: .to(tl.int32, bitcast=True)",
        ),
    ],
)
def test_errors(kernel: Any, message: str, hint: str | None) -> None:
    with pytest.raises(CompilationError) as caught:
        kernel[(1,)](np.zeros(1, np.int32))
    assert (caught.value.message, caught.value.hint) == (message, hint)


@weft.jit
def single(x: Any, out: Any, SHAPE: tl.constexpr) -> None:
    value = tl.load(x + tl.full(SHAPE, 0, tl.int32)).item()
    tl.static_assert(value.shape == ())
    tl.store(out, value)
    if tl.load(x + tl.arange(0, 1)) < 3:
        tl.store(out + 1, value)


@pytest.mark.filterwarnings("ignore:If conditional called")
@pytest.mark.parametrize("target", [None, "sm_90"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize("number", [2, 3])
def test_the_item_of_a_tile_of_one_element(number: int, shape: tuple[int, ...], target: str | None) -> None:
    x, out = np.array([number], np.int16), np.zeros(2, np.int16)
    (single if target is None else single.on(target))[(1,)](x, out, shape)
    assert out.tolist() == [number, 0 if number == 3 else number]


@weft.jit
def several(x: Any) -> None:
    tl.store(x, tl.arange(0, 2).item())


def test_a_tile_of_two_elements_has_no_item() -> None:
    with pytest.raises(CompilationError, match="can only unsplat single-element tensors"):
        several[(1,)](np.zeros(1, np.int32))


def test_a_tile_as_a_condition_is_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE", "0")  # the compiler warns, and a kernel on disk is not compiled
    text = (
        "If conditional called with multidimensional Tensor instead of scalar; please use "
        '"if (tl.load(x + tl.arange(0, 1)) < 3).item()" instead'
    )
    fresh = weft.jit(single.fn)
    with pytest.warns(UserWarning) as warned:
        fresh[(1,)](np.zeros(1, np.int32), np.zeros(2, np.int32), (1,))
    assert [str(w.message) for w in warned] == [text]


@weft.jit
def indexed(x: Any, out: Any) -> None:
    tl.static_assert(x[:].shape == ())
    tl.store(out[None, :, None], tl.load(x[None, None, :]))


def test_colons_of_a_scalar_have_no_effect() -> None:
    out = np.zeros(1)
    indexed[(1,)](np.full(1, 3.0), out)
    assert out[0] == 3


@weft.jit
def of_none(out: Any, values: Any) -> None:
    item = 5
    made = tl.tuple([item + 1 for item in values])
    fresh = tl.tuple([other + 1 for other in values])
    tl.static_assert(len(made) + len(fresh) == 0)
    tl.store(out, item)


def test_a_comprehension_over_the_empty_tuple() -> None:
    out = np.zeros(1)
    of_none[(1,)](out, ())
    assert out[0] == 5

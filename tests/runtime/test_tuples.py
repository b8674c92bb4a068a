"""Tuples as arguments of launches: nested, named, with arrays, numbers, None and compile-time values."""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import weft
import weft.language as tl

pytestmark = pytest.mark.jit


@weft.jit
def nested(out: Any, nothing: Any, first: Any, k: tl.constexpr, n: Any, second: Any) -> None:
    tl.static_assert(nothing is None and first[1][1] is None and first[1][3] == 4)
    tl.store(out, tl.load(first[0]))
    tl.store(out + 1, first[1][0])
    tl.store(out + 2, tl.load(first[1][2]))
    tl.store(out + 3, k + n)
    tl.store(out + 4, tl.load(second[0] + 1))
    tl.store(out + 5, len(second) + len(first[1]))


def launched(*arguments: Any) -> list[int]:
    x0, x1, y = (np.array([v, v + 1], np.int32) for v in (8, 12, 10))
    out = np.zeros(6, np.int32)
    nested[(1,)](out, None, (x0, (arguments[0], None, x1, tl.constexpr(4))), 20, arguments[1], (y,))
    return out.tolist()


def test_nested_tuples() -> None:
    for number, n in ((1, 1), (7, 16), (2**40 % 1000, 3)):
        assert launched(number, n) == [8, number, 12, 20 + n, 11, 5]


def test_nested_tuples_on_a_gpu() -> None:
    with weft.emulate("sm_80"):
        assert launched(5, 6) == [8, 5, 12, 26, 11, 5]


class View(NamedTuple):
    base: Any
    shape: Any
    strides: Any


class Function(NamedTuple):
    call: Any
    captured: Any


@weft.jit
def scale(x: Any, factor: Any) -> Any:
    return x * tl.load(factor)


@weft.jit
def offset(x: Any, a: Any, b: Any) -> Any:
    return x + a - b


@weft.jit
def mapped(function: Any, x: Any, y: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    i, j = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    inside = (i < y.shape[0]) & (j < y.shape[1])
    values = tl.load(x.base + i * x.strides[0] + j * x.strides[1], mask=inside, other=0)
    tl.store(y.base + i * y.strides[0] + j * y.strides[1], function.call(values, *function.captured), mask=inside)


def view(array: Any) -> View:
    return View(array, array.shape, tuple(s // array.itemsize for s in array.strides))


def test_named_tuples_with_functions() -> None:
    x = np.random.default_rng(0).random((7, 9)).astype(np.float32)
    y = np.zeros((5, 6), np.float32)
    factor = np.array([5.5], np.float32)
    mapped[(1,)](Function(scale, (factor,)), view(x), view(y), 8, 8)
    assert np.array_equal(y, x[:5, :6] * np.float32(5.5))
    mapped[(1,)](Function(offset, (3, 1)), view(x), view(y), 8, 8)
    assert np.array_equal(y, x[:5, :6] + np.float32(3) - np.float32(1))
    with weft.emulate("sm_90"):
        mapped[(1,)](Function(scale, (factor,)), view(x), view(y), 8, 8)
    assert np.array_equal(y, x[:5, :6] * np.float32(5.5))


@weft.jit
def length(out: Any, values: Any) -> None:
    tl.store(out, len(values))


@pytest.mark.parametrize("count", [0, 1, 3])
def test_tuples_of_any_length(count: int) -> None:
    out = np.zeros(1, np.int32)
    length[(1,)](out, tuple(range(count)))
    assert out[0] == count


def test_an_item_that_no_kernel_takes() -> None:
    with pytest.raises(TypeError) as caught:
        length[(1,)](np.zeros(1, np.int32), (1, 1j))
    assert str(caught.value) == (
        "kernel 'length': parameter 'values.1': expected an array, an int, a float, a bool or None, found complex 1j"
    )

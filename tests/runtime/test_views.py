"""Strided views in checked kernels: which are refused, and in which words."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import weft
import weft.array as wa
from weft import language as tl
from weft.runtime.memory import extent_of

A = np.arange(128, dtype=np.float32).reshape(8, 16)
FLAT = A.reshape(128)
CUBE = np.arange(2 * 3 * 5, dtype=np.int16).reshape(2, 3, 5)
RECORDS = np.zeros(4, [("x", "f4"), ("y", "i2")])["x"]


@weft.jit(checked=True)
def given(x: Any, stride: Any, STRIDES: tl.constexpr = None) -> None: ...  # pyright: ignore[reportArgumentType]


ADVICE = "pass the strides as arguments, or a contiguous copy, as numpy.ascontiguousarray makes it"


def words(shape: str, strides: str, stride: str) -> str:
    return (
        f"kernel 'given': parameter 'x': found a view of shape {shape} with strides {strides} in elements, but the stride "
        f"{stride} is neither an argument nor a number in the kernel, which is checked; {ADVICE}"
    )


@pytest.mark.parametrize(
    ("view", "stride", "message"),
    [
        (FLAT[::2], 3, words("(64,)", "(2,)", "2")),
        (FLAT[::2], -2, words("(64,)", "(2,)", "2")),
        (FLAT[::2], 8, words("(64,)", "(2,)", "2")),
        (FLAT[::-1], 2, words("(128,)", "(-1,)", "-1")),
        (A[:, :5], 5, words("(8, 5)", "(16, 1)", "16")),
        (A[:, :5], 32, words("(8, 5)", "(16, 1)", "16")),
        (A[:, ::2], 16, words("(8, 8)", "(16, 2)", "2")),
        (A[::2], 16, words("(4, 16)", "(32, 1)", "32")),
        (A.T, 8, words("(16, 8)", "(1, 16)", "16")),
        (A[:, 3], 3, words("(8,)", "(16,)", "16")),
        (A[:, :5][None, :, :, None], True, words("(1, 8, 5, 1)", "(0, 16, 1, 0)", "16")),
        (CUBE.T, 5, words("(5, 3, 2)", "(1, 5, 15)", "15")),
        (RECORDS, 6, words("(4,)", "(3/2,)", "3/2")),
    ],
)
def test_a_view_whose_strides_the_kernel_is_not_given(fake_compiler: Any, view: Any, stride: Any, message: str) -> None:
    with pytest.raises(ValueError, match="view") as raised:
        given[(1,)](view, stride)
    if view.shape[0] == 1:  # NumPy may give a dimension of size 1 any stride
        message = message.replace("(0, 16, 1, 0)", str(tuple(s // 4 for s in view.strides)))
    assert str(raised.value) == message
    assert not fake_compiler.calls


@pytest.mark.parametrize(
    ("view", "stride", "constants"),
    [
        (FLAT[::2], 2, None),
        (FLAT[::2], np.int64(2), None),
        (FLAT[::2], 3, 2),
        (FLAT[::2], 3, tl.constexpr(2)),
        (FLAT[::-1], -1, None),
        (A[:, :5], 16, None),
        (A[:, :5], 5, (16, 1)),
        (np.lib.stride_tricks.as_strided(FLAT, (8, 1, 5), (64, 28, 4)), 16, None),
        (A[:, ::2], 2, None),
        (A.T, 3, (1, (16,))),
        (CUBE.T, 5, 3),
        (CUBE.transpose(1, 0, 2), 5, 3),
        (A[2:5], 3, None),
        (A[None], 3, None),
        (A[:1, :5], 3, None),
        (A[:0, ::2], 3, None),
        (FLAT[:1][::2], 3, None),
        (np.broadcast_to(FLAT[:5], (4, 5)), 3, None),
        (np.broadcast_to(FLAT[:5, None], (5, 4)), 3, None),
        (np.lib.stride_tricks.sliding_window_view(FLAT, 3), 3, None),
        (np.asfortranarray(FLAT), 3, None),
    ],
)
def test_views_that_a_kernel_may_be_given(fake_compiler: Any, view: Any, stride: Any, constants: Any) -> None:
    assert fake_compiler is not None
    given[(1,)](view, stride, constants)


def test_a_kernel_that_is_not_checked_takes_any_view(fake_compiler: Any) -> None:
    weft.jit(given.fn)[(1,)](FLAT[::2], 3)
    assert len(fake_compiler.calls) == 1


def test_a_stride_in_the_kernels_text_counts(fake_compiler: Any) -> None:
    @weft.jit(checked=True)
    def pairs(x: Any, y: Any) -> None:
        tl.store(y, tl.load(x + 2) + tl.load(x - 16))

    pairs[(1,)](FLAT[::2], A[:, 3])
    pairs[(1,)](FLAT[::-2], A[::-1])
    with pytest.raises(ValueError, match="the stride 3 is neither an argument nor a number in the kernel"):
        pairs[(1,)](FLAT[::3], FLAT)


def test_kernels_that_are_generated_for_the_strides_take_any_view(fake_compiler: Any) -> None:
    kernel = weft.jit(checked=True)(given.fn)
    kernel.knows_strides = True
    kernel[(1,)](FLAT[::2], 3)
    assert len(fake_compiler.calls) == 1


def test_arrays_of_weft_are_computed_with_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CHECKED", "1")
    value = np.arange(13 * 29).reshape(13, 29) * (1 + 2j)  # a shape that no other test plans
    assert np.array_equal((wa.asarray(value, "numpy").T[::2, ::-1] - 1).numpy(), value.T[::2, ::-1] - 1)


class Tensor:
    """Imitates a PyTorch tensor."""

    def __init__(self, array: Any) -> None:
        self.array, self.dtype, self.shape = array, array.dtype, array.shape

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.array.itemsize for s in self.array.strides)


class OnlyDLPack:
    """An array that offers nothing but DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)


@pytest.mark.parametrize("library", [Tensor, OnlyDLPack])
def test_arrays_of_other_libraries(fake_compiler: Any, library: Any) -> None:
    with pytest.raises(ValueError, match="view") as raised:
        given[(1,)](library(A[:, :5]), 5)
    assert str(raised.value) == words("(8, 5)", "(16, 1)", "16")
    given[(1,)](library(A[:, :5]), 16)
    given[(1,)](library(A[2:]), 5)


@weft.jit(checked=True)
def total(x: Any, out: Any, rows: Any, columns: Any, row_stride: Any, column_stride: Any) -> None:
    result = 0.0
    for i in range(rows):
        for j in range(columns):
            result += tl.load(x + i * row_stride + j * column_stride)
    tl.store(out, result)


@pytest.mark.parametrize("view", [A, A.T, A[:, :5], A[::2, ::-3], A[::-1], A[:, 3:4], A[2:3]])
def test_kernels_that_are_given_the_strides_step_over_the_rest(view: Any) -> None:
    out = np.zeros(1, np.float32)
    strides = [s // 4 for s in view.strides]
    total[(1,)](view, out, *view.shape, *strides)
    assert out[0] == view.sum()


def test_a_contiguous_reading_of_an_accepted_view_is_right_or_leaves_it(fake_compiler: Any) -> None:
    """Brute force over views whose strides no launch gives: where all of a row-major reading lies in the bytes of the view,
    it finds the elements of the view."""
    accepted = 0
    base = np.arange(64)
    for shape in itertools.product((1, 2, 3), repeat=3):
        for strides in itertools.product((0, 1, 2, 3, 6), repeat=3):
            view = np.lib.stride_tricks.as_strided(base, shape, [8 * s for s in strides])
            low, high = extent_of(0, shape, strides, 1)
            if low + view.size <= high and not np.array_equal(view.ravel(), base[: view.size]):
                with pytest.raises(ValueError, match="view"):
                    bare[(1,)](view)
            elif np.array_equal(view.ravel(), base[: view.size]):
                bare[(1,)](view)
                accepted += 1
    assert accepted > 100
    assert fake_compiler.calls


@weft.jit(checked=True)
def bare(x: Any) -> None: ...

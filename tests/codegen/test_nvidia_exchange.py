"""Conversions and reductions as PTX: every element arrives, from any distributed layout to any other.

The modules are written in laid-out tile IR, so that layouts are free. The emulator checks bounds, races and barriers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laid_out import DTYPES, TARGETS, Laid, expected, layouts
from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import tensor
from weft.layout import LinearLayout, reduce, reshape
from weft.target import GpuTarget


def convert(source: LinearLayout, others: Sequence[LinearLayout], dtype: DType, target: GpuTarget, warps: int) -> None:
    """Numbers are converted from one layout to each of the others in turn, and stored there."""
    size = source.shape[0]
    kernel = Laid()
    value = kernel.numbers(size, source, dtype)
    for layout in others:
        value = kernel.emit(tile.ConvertLayoutOp(value, layout))
        kernel.store(value, size, layout, dtype)
    for found in kernel.run(target, warps):
        np.testing.assert_array_equal(found, expected(size, dtype))


def any_conversions(target: GpuTarget, data: st.DataObject, most: int) -> None:
    """Two conversions in a row between drawn layouts of at most 2**most elements."""
    warps = data.draw(st.integers(0, 2))
    bits = data.draw(st.integers(5, most))
    some = [data.draw(layouts(bits, warps)) for _ in range(3)]
    convert(some[0], some[1:], data.draw(st.sampled_from(DTYPES)), target, warps)


def any_reduction(target: GpuTarget, data: st.DataObject) -> None:
    """Sums along an axis of a tensor of whole numbers, which are exact."""
    warps = data.draw(st.integers(0, 2))
    shape = [1 << data.draw(st.integers(0, 5)) for _ in range(2)]
    axis = data.draw(st.integers(0, 1))
    size = shape[0] * shape[1]
    flat = data.draw(layouts(size.bit_length() - 1, warps))
    layout = reshape(flat, shape)
    dtype = data.draw(st.sampled_from((dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float32)))
    kernel = Laid()
    value = kernel.emit(tile.ReshapeOp(kernel.numbers(size, flat, dtype), shape, layout))
    result = reduce(layout, axis)
    kept = shape[1 - axis]
    type_ = tensor(dtype, (kept,), result)
    total = kernel.emit(tile.ReduceOp([value], axis, tile.ReduceOp.region(dtype, "add"), [type_]))
    kernel.store(total, kept, result, dtype)
    (found,) = kernel.run(target, warps)
    np.testing.assert_array_equal(found, expected(size, dtype).reshape(shape).sum(axis).astype(dtype.numpy))


ANY = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


@ANY
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_conversions_between_any_layouts(target: GpuTarget, data: st.DataObject) -> None:
    any_conversions(target, data, most=9)


@ANY
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_reductions_of_any_layout(target: GpuTarget, data: st.DataObject) -> None:
    any_reduction(target, data)


@pytest.mark.nightly
@ANY
@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_many_conversions(target: GpuTarget, data: st.DataObject) -> None:
    any_conversions(target, data, most=11)


@pytest.mark.nightly
@ANY
@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_many_reductions(target: GpuTarget, data: st.DataObject) -> None:
    any_reduction(target, data)

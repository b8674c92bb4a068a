"""Conversions and reductions as PTX: every element arrives, from any distributed layout to any other.

The modules are written in laid-out tile IR, so that layouts are free. The emulator checks bounds, races and barriers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from weft import dtypes, emulator
from weft.codegen import machine_for
from weft.codegen.kernel import GpuKernel
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import pointer, tensor
from weft.layout import LinearLayout, reduce, reshape
from weft.options import Options
from weft.target import GpuTarget
from weft.transforms.nvidia.barriers import PlaceBarriers
from weft.transforms.nvidia.scratch import AllocateScratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

TARGETS = (GpuTarget(80), GpuTarget(90))
DTYPES = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64)


@st.composite
def layouts(draw: st.DrawFn, bits: int, warps: int) -> LinearLayout:
    """Any distributed layout of 2**bits elements: each bit of lanes and warps is one of the tensor's or none, the rest are
    registers, in any order and with at most one copy."""
    places = 5 + warps
    units = draw(st.permutations([1 << bit for bit in range(bits)]))
    taken = draw(st.lists(st.booleans(), min_size=places, max_size=places))
    left = list(units)
    threads = [left.pop() if take and left else 0 for take in taken]
    copy = draw(st.integers(0, len(left) * 4))
    if copy < len(left):
        left.insert(copy, 0)
    columns = {"register": tuple(left), "lane": tuple(threads[:5]), "warp": tuple(threads[5:])}
    return LinearLayout.from_columns(columns, [("dim0", bits)])


class Laid:
    """A function in laid-out tile IR, for a GPU."""

    def __init__(self) -> None:
        self.block = Block()
        self.outputs: list[NDArray[Any]] = []

    def emit(self, op: Operation) -> SSAValue:
        """Adds an op; returns its first result."""
        self.block.add_op(op)
        return op.results[0]

    def numbers(self, size: int, layout: LinearLayout, dtype: DType) -> SSAValue:
        """Each element's number, modulo what the type holds."""
        index = self.emit(tile.ArangeOp(0, size, layout))
        if dtype.is_float:
            least = self.emit(tile.BinaryOp("and", index, self.emit(tile.ConstantOp(1023, index.type))))
            return self.emit(tile.CastOp(least, dtype))
        return self.emit(tile.CastOp(index, dtype))

    def store(self, value: SSAValue, size: int, layout: LinearLayout, dtype: DType) -> None:
        """A new argument that takes the value, element by element."""
        base = self.block.insert_arg(pointer(dtype), len(self.block.args))
        self.outputs.append(np.zeros(size, dtype.numpy))
        index = self.emit(tile.ArangeOp(0, size, layout))
        pointers = self.emit(tile.AddPtrOp(self.emit(tile.SplatOp(base, (size,), layout)), index))
        self.block.add_op(tile.StoreOp(pointers, value))

    def run(self, target: GpuTarget, warps: int) -> list[NDArray[Any]]:
        """Compiles and runs it; what the outputs hold."""
        self.block.add_op(ReturnOp())
        function = FuncOp("kernel", (list(self.block.arg_types), []), Region(self.block))
        module = ModuleOp([function])
        module.verify()
        for one in (AllocateScratch(target.name), PlaceBarriers(target.name, disjoint=True)):
            one.apply(Context(), module)
        machine = machine_for(target)
        options = Options(disjoint=True, launch=(("num_warps", 1 << warps),))
        kernel = machine.finish(machine.emit(function, options))
        assert isinstance(kernel, GpuKernel)
        emulator.Module(kernel.ptx).launch("kernel", 1, kernel.threads, self.outputs, shared=kernel.shared)
        return self.outputs


def expected(size: int, dtype: DType) -> NDArray[Any]:
    """The numbers of `Laid.numbers`."""
    index = np.arange(size)
    return (index & 1023).astype(dtype.numpy) if dtype.is_float else index.astype(dtype.numpy)


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

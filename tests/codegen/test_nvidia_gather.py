"""Gathers as PTX: from any distributed layout, with indices in any other, by shuffles and through shared memory.

The oracle is `numpy.take_along_axis`. The emulator checks bounds, races and barriers.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from laid_out import DTYPES, TARGETS, Laid, layouts
from weft import dtypes, emulator
from weft.codegen import compile_module
from weft.codegen.nvidia import gather as emission
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import layout_of, pointer
from weft.layout import LinearLayout, coalesced, plan_gather, reshape
from weft.options import Options
from weft.target import GpuTarget
from weft.transforms.axis import DIVISIBILITY
from weft.transforms.nvidia import scratch

ANY = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
INDICES = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.int32, dtypes.int64)


def gathered(
    target: GpuTarget,
    warps: int,
    shapes: tuple[list[int], list[int]],
    flat: tuple[LinearLayout, LinearLayout],
    axis: int,
    dtype: DType,
    wanted: DType,
    seed: int,
) -> None:
    """A gather with random indices between two layouts, given as those of flat tensors, beside NumPy's."""
    rng = np.random.default_rng(seed)
    sizes = [int(np.prod(shape)) for shape in shapes]
    x = rng.integers(0, 2, sizes[0]).astype(np.bool_) if dtype.is_bool else np.arange(sizes[0]).astype(dtype.numpy)
    places = rng.integers(0, min(shapes[0][axis], 128), sizes[1]).astype(wanted.numpy)
    kernel = Laid()
    source, index = (
        kernel.emit(tile.ReshapeOp(kernel.load(data, layout, type_), shape, reshape(layout, shape)))
        for data, layout, type_, shape in ((x, flat[0], dtype, shapes[0]), (places, flat[1], wanted, shapes[1]))
    )
    result = kernel.emit(tile.GatherOp(source, index, axis))
    kernel.store(kernel.emit(tile.ReshapeOp(result, [sizes[1]], flat[1])), sizes[1], flat[1], dtype)
    found = kernel.run(target, warps)[-1]
    expected = np.take_along_axis(x.reshape(shapes[0]), places.reshape(shapes[1]).astype(np.int64), axis)
    np.testing.assert_array_equal(found.reshape(shapes[1]), expected)


def any_gather(target: GpuTarget, data: st.DataObject, most: int) -> None:
    """Between drawn layouts."""
    warps = data.draw(st.integers(0, 2))
    bits = [data.draw(st.integers(0, most)) for _ in range(2)]
    axis = data.draw(st.integers(0, 1))
    other = list(bits)
    other[axis] = data.draw(st.integers(0, most))
    flat = data.draw(layouts(sum(bits), warps)), data.draw(layouts(sum(other), warps))
    shapes = [1 << b for b in bits], [1 << b for b in other]
    dtype = data.draw(st.sampled_from((*DTYPES, dtypes.bool_)))
    gathered(target, warps, shapes, flat, axis, dtype, data.draw(st.sampled_from(INDICES)), 1)


@ANY
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_gathers_of_any_layout(target: GpuTarget, data: st.DataObject) -> None:
    any_gather(target, data, most=4)


@pytest.mark.nightly
@ANY
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_many_gathers(target: GpuTarget, data: st.DataObject) -> None:
    any_gather(target, data, most=6)


def rows(shape: list[int], warps: int) -> LinearLayout:
    """Row-major, as a flat tensor's layout."""
    return reshape(coalesced(shape, 32, 1 << warps), [shape[0] * shape[1]])


def test_a_warps_own_rows_by_shuffles_and_through_memory() -> None:
    """Rows of 8 are shuffled: 8 lanes hold 4 elements each of a row of 32, so results are tried in 4 registers."""
    target = TARGETS[1]
    for shape, kind in (([64, 8], "shuffles"), ([64, 128], "memory")):
        layout = rows(shape, 2)
        plan = plan_gather(reshape(layout, shape), reshape(layout, shape), 1, 32, target.model)
        assert plan.kind == kind
        gathered(target, 2, (shape, shape), (layout, layout), 1, dtypes.float32, dtypes.int32, 2)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("scratch_bytes", [512, 2048])
def test_a_source_larger_than_scratch_goes_in_rounds(
    axis: int, scratch_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8 KiB through less: 4 or 16 rounds, cut in registers, lanes or the axis."""
    shape, target = [32, 64], TARGETS[1]
    model = replace(target.model, scratch=scratch_bytes)

    def planned(op: tile.GatherOp, _: object) -> object:
        return plan_gather(layout_of(op.source), layout_of(op.index), op.axis.value.data, 32, model)

    monkeypatch.setattr(scratch, "gather_plan", planned)
    monkeypatch.setattr(emission, "gather_plan", planned)
    for source, index in (
        (rows(shape, 2), rows(shape, 2)),
        (rows(shape, 2), reshape(coalesced(shape, 32, 4, (0, 1)), [2048])),
    ):
        plan = plan_gather(reshape(source, shape), reshape(index, shape), axis, 32, model)
        assert plan.memory is not None or plan.kind == "shuffles"
        gathered(target, 2, (shape, shape), (source, index), axis, dtypes.float32, dtypes.int32, 3)


def test_a_large_gather_goes_in_strips_and_spills_nothing() -> None:
    """32 threads would hold 256 elements of the source and as many indices each. A strip has 32 of both, 16 rows. Accesses stay
    as wide as they were: 8 of 128 bits for each array and strip."""
    rng = np.random.default_rng(0)
    x, index = np.arange(8192, dtype=np.float32), rng.integers(0, 64, 8192).astype(np.int32)
    block = Block(arg_types=[pointer(dtypes.float32), pointer(dtypes.int32), pointer(dtypes.float32)])
    numbers = tile.ArangeOp(0, 8192)
    flat = tile.ReshapeOp(numbers.result, (128, 64))
    block.add_ops([numbers, flat])
    pointers: list[SSAValue] = []
    for base in block.args:
        splat = tile.SplatOp(base, (128, 64))
        place = tile.AddPtrOp(splat.result, flat.result)
        block.add_ops([splat, place])
        pointers.append(place.result)
    loads = [tile.LoadOp(each) for each in pointers[:2]]
    result = tile.GatherOp(loads[0].result, loads[1].result, 1)
    block.add_ops([*loads, result, tile.StoreOp(pointers[2], result.result), ReturnOp()])
    facts = ArrayAttr([DictionaryAttr({DIVISIBILITY: IntegerAttr(16, i64)})] * 3)
    module = ModuleOp([FuncOp("kernel", (list(block.arg_types), []), Region(block), arg_attrs=facts)])
    kernel = compile_module(module, TARGETS[0], Options(disjoint=True, launch=(("num_warps", 1),)))
    assert kernel.ptx.count("ld.global.v4.b32") == 16
    assert kernel.ptx.count("st.global.v4.b32") == 8
    out = np.zeros(8192, np.float32)
    profile = emulator.Module(kernel.ptx).launch("kernel", 1, kernel.threads, [x, index, out], shared=kernel.shared)
    np.testing.assert_array_equal(
        out.reshape(128, 64), np.take_along_axis(x.reshape(128, 64), index.reshape(128, 64), 1)
    )
    assert profile.resources is None or profile.resources.spill_stores == 0


def test_an_index_outside_of_the_axis_reads_an_element_of_the_tile() -> None:
    """The result is not specified, but nothing else is read: the emulator would raise."""
    for shape in ([64, 8], [64, 128]):
        layout, size = rows(shape, 2), shape[0] * shape[1]
        kernel = Laid()
        places = np.resize(np.array([-1, 1 << 20, shape[1], -(1 << 31)], np.int32), size)
        source = kernel.emit(tile.ReshapeOp(kernel.numbers(size, layout, dtypes.int32), shape, reshape(layout, shape)))
        index = kernel.emit(tile.ReshapeOp(kernel.load(places, layout, dtypes.int32), shape, reshape(layout, shape)))
        result = kernel.emit(tile.GatherOp(source, index, 1))
        kernel.store(kernel.emit(tile.ReshapeOp(result, [size], layout)), size, layout, dtypes.int32)
        found = kernel.run(TARGETS[0], 2)[-1]
        assert np.array_equal(found // shape[1], np.arange(size) // shape[1])

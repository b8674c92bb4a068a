"""Join, split and flip: as PTX under any layout that the rules accept, and on CPUs, where a flip in a loop of registers meets
registers that the loop visits at other times. The oracle is NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from xdsl.dialects import func

from laid_out import DTYPES, TARGETS, Laid, layouts
from weft import dtypes
from weft import language as tl
from weft.codegen import lay_out
from weft.codegen.cpu.cost import Costs
from weft.codegen.cpu.fusion import Fusion
from weft.codegen.cpu.placement import BufferPlacement
from weft.codegen.cpu.schedule import RegisterLoop
from weft.codegen.emit.rearranging import crossed, halves, joined
from weft.dtypes import DType
from weft.frontend import ConstantArgument, KernelFunction, PointerArgument, build_module
from weft.ir import tile
from weft.ir.types import layout_of, tensor
from weft.layout import LinearLayout, join, reshape
from weft.target import CpuTarget, GpuTarget
from weft.transforms.axis import analyse, base_arguments
from weft.transforms.layouts.rearranged import flip_of, flips, join_to, paired, split_of

ANY = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
BOOLS = (*DTYPES, dtypes.bool_)


def test_join_of_single_registers() -> None:
    """Two vectors of one element become one of two, as the other operand of an elementwise op has."""
    layout = LinearLayout.from_columns({"register": (), "lane": (1, 2, 4, 8, 16), "warp": ()}, [("dim0", 5)])
    kernel = Laid()
    pairs = kernel.emit(tile.JoinOp(*(kernel.numbers(32, layout, dtypes.float64) for _ in range(2))))
    total = kernel.emit(tile.BinaryOp("add", pairs, kernel.emit(tile.ConstantOp(1, pairs.type))))
    flat = reshape(join(layout), [64])
    kernel.store(kernel.emit(tile.ReshapeOp(total, [64], flat)), 64, flat, dtypes.float64)
    assert kernel.run(TARGETS[1], 0)[-1].tolist() == [1 + number // 2 for number in range(64)]


def numbers(size: int, dtype: DType, seed: int) -> NDArray[Any]:
    """Elements that tell places apart, as far as the type does."""
    rng = np.random.default_rng(seed)
    if dtype.is_bool:
        return rng.integers(0, 2, size).astype(np.bool_)
    return rng.permutation(size).astype(dtype.numpy)


@ANY
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_join_of_any_layout(target: GpuTarget, data: st.DataObject) -> None:
    warps, bits = data.draw(st.integers(0, 2)), data.draw(st.integers(0, 8))
    layout, dtype = data.draw(layouts(bits, warps)), data.draw(st.sampled_from(BOOLS))
    x, y = numbers(1 << bits, dtype, 1), numbers(1 << bits, dtype, 2)
    kernel = Laid()
    pairs = kernel.emit(tile.JoinOp(*(kernel.load(each, layout, dtype) for each in (x, y))))
    # Another operand of the layout: its vectors are divided as the layout says, and so must be those of the join.
    zeros = kernel.emit(tile.ConstantOp(0, pairs.type))
    pairs = kernel.emit(tile.BinaryOp("xor" if dtype.is_bool else "add", pairs, zeros))
    flat = reshape(join(layout), [2 << bits])
    kernel.store(kernel.emit(tile.ReshapeOp(pairs, [2 << bits], flat)), 2 << bits, flat, dtype)
    np.testing.assert_array_equal(kernel.run(target, warps)[-1].reshape(-1, 2), np.stack([x, y], -1))


@ANY
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_split_of_any_layout_with_pairs_in_registers(target: GpuTarget, data: st.DataObject) -> None:
    warps, bits = data.draw(st.integers(0, 2)), data.draw(st.integers(1, 8))
    source, dtype = paired(data.draw(layouts(bits, warps))), data.draw(st.sampled_from(BOOLS))
    x = numbers(1 << bits, dtype, 3)
    kernel = Laid()
    shaped = reshape(source, [1 << bits - 1, 2])
    loaded = kernel.emit(tile.ReshapeOp(kernel.load(x, source, dtype), [1 << bits - 1, 2], shaped))
    op = tile.SplitOp(loaded)
    kernel.emit(op)
    for half in (op.first, op.second):
        kernel.store(half, 1 << bits - 1, layout_of(half), dtype)
    *_, first, second = kernel.run(target, warps)
    np.testing.assert_array_equal(np.stack([first, second], -1), x.reshape(-1, 2))


@ANY
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_flip_within_warps(target: GpuTarget, data: st.DataObject) -> None:
    warps = data.draw(st.integers(0, 2))
    sizes = [1 << data.draw(st.integers(0, 4)) for _ in range(2)]
    axis, dtype = data.draw(st.integers(0, 1)), data.draw(st.sampled_from(BOOLS))
    size = sizes[0] * sizes[1]
    drawn = reshape(data.draw(layouts(size.bit_length() - 1, warps)), sizes)
    op = tile.FlipOp(kernel_argument(sizes, drawn).result, axis)
    layout = flip_of(op, drawn).results[0]
    assert layout is not None and flips(op, layout)
    x = numbers(size, dtype, 4)
    kernel = Laid()
    flat = reshape(layout, [size])
    loaded = kernel.emit(tile.ReshapeOp(kernel.load(x, flat, dtype), sizes, layout))
    flipped = kernel.emit(tile.FlipOp(loaded, axis))
    kernel.store(kernel.emit(tile.ReshapeOp(flipped, [size], flat)), size, flat, dtype)
    np.testing.assert_array_equal(kernel.run(target, warps)[-1].reshape(sizes), np.flip(x.reshape(sizes), axis))


def kernel_argument(shape: list[int], layout: LinearLayout) -> tile.ConstantOp:
    """A tile under a layout."""
    return tile.ConstantOp(0, tensor(dtypes.int32, shape, layout))


def test_maps_of_registers() -> None:
    """A layout of 8 elements by registers 1, 2 and a lane; the second dimension of a pair is its lowest bit."""
    layout = LinearLayout.from_columns({"register": (1, 2), "lane": (4,)}, [("dim0", 3)])
    x = kernel_argument([8], layout)
    pairs = tile.JoinOp(x.result, x.result)
    # Registers of the result: the pair's bit, then those of the operands.
    assert joined(pairs) == ((0, 1, 2), 1)
    # Registers of a half: 1 and 2 of the source stand behind the pair's.
    assert halves(tile.SplitOp(pairs.result)) == ((2, 4), 1)
    # 7 - i complements all three bits.
    assert crossed(tile.FlipOp(x.result, 0)) == (3, 1)


def test_layouts_of_pairs_in_lanes() -> None:
    """The pair's bit trades places with the highest register's; a thread of one element gets a second one."""
    layout = LinearLayout.from_columns({"register": (4, 8), "lane": (1, 2)}, [("dim0", 3), ("dim1", 1)])
    found = split_of(layout)
    assert found.operands[0] is not None
    assert found.operands[0].columns("register") == (1, 4)
    assert found.operands[0].columns("lane") == (8, 2)
    single = LinearLayout.from_columns({"register": (), "lane": (1, 2)}, [("dim0", 1), ("dim1", 1)])
    assert dict(paired(single).inputs) == {"register": (1,), "lane": (0, 2)}
    assert join_to(layout) == []


def test_flipped_bits_in_warps_trade_places_with_others() -> None:
    """Bits 4 and 8 are flipped: that of a warp goes to a register, and where none is left warps hold copies."""
    layout = LinearLayout.from_columns({"register": (1,), "lane": (2, 4), "warp": (8,)}, [("dim0", 2), ("dim1", 2)])
    op = tile.FlipOp(kernel_argument([4, 4], layout).result, 0)
    assert not flips(op, layout)
    (moved,) = flip_of(op, layout).results
    assert moved is not None
    assert [moved.columns(name) for name in ("register", "lane", "warp")] == [(8,), (2, 4), (1,)]
    all_warps = LinearLayout.from_columns({"register": (), "lane": (1,), "warp": (2,)}, [("dim0", 2)])
    (copied,) = flip_of(tile.FlipOp(kernel_argument([4], all_warps).result, 0), all_warps).results
    assert copied is not None
    assert [copied.columns(name) for name in ("register", "lane", "warp")] == [(2,), (1,), (0,)]


def sorted_tile(x: Any, out: Any, N: tl.constexpr) -> None:
    at = tl.arange(0, N)
    tl.store(out + at, tl.sort(tl.load(x + at)))


def test_loops_of_a_sort_need_few_values() -> None:
    """Each loop's needs end at the tile that the loop before has left in memory. With all tiles before that a loop needed up to
    360 values."""
    types: dict[str, Any] = dict.fromkeys(("x", "out"), PointerArgument(dtypes.float32))
    module = build_module(KernelFunction(sorted_tile), types | {"N": ConstantArgument(1024)})
    target = CpuTarget("x86_64-unknown-linux-gnu", "haswell", "+avx,+avx2,+fma,+f16c,+sse2", 256)
    lay_out(module, target)
    (function,) = (op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    facts = analyse(function)
    pointers = [op.pointer for op in function.body.block.ops if tile.is_access(op)]
    items = Fusion(base_arguments(pointers), True, facts).items(function.body.block)
    schedule = BufferPlacement(Costs(facts)).place(function.body.block, items)
    placed = [item for item in schedule.items if isinstance(item, RegisterLoop) and not item.roots]
    assert len(placed) > 10
    assert max(len(loop.needs) for loop in placed) < 150
    ops = sum(1 for _ in function.body.block.ops)
    assert sum(len(loop.needs) for loop in placed) < 3 * ops

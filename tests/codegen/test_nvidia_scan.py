"""Scans as PTX: of tensors in any distributed layout, from either end, with combine regions that do not commute.

Oracles are NumPy's accumulations, and a loop for affine maps. The emulator checks bounds, races and barriers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.ir import Block, Region

from laid_out import TARGETS, Laid, layouts
from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import scalar
from weft.layout import LinearLayout, reshape
from weft.target import GpuTarget

if TYPE_CHECKING:
    from numpy.typing import NDArray

ANY = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
SECOND = {dtypes.int8: dtypes.int8, dtypes.int16: dtypes.int8, dtypes.int32: dtypes.int32, dtypes.int64: dtypes.int32}
"""The type of an affine map's second number: never wider than the first, whose products wrap; else maps do not associate."""


def affine(first: DType, second: DType) -> Region:
    """``(a, b) . (c, d) = (a c, b c + d)``: x -> a x + b, then x -> c x + d. It does not commute."""
    block = Block(arg_types=[scalar(first), scalar(second), scalar(first), scalar(second)])
    a, b, c, d = block.args
    ops: list[Any] = [tile.BinaryOp("mul", a, c), tile.CastOp(c, second)]
    ops.append(tile.BinaryOp("mul", b, ops[1].result))
    ops.append(tile.BinaryOp("add", ops[2].result, d))
    block.add_ops([*ops, tile.YieldOp(ops[0].result, ops[3].result)])
    return Region(block)


def prefixes(a: NDArray[Any], b: NDArray[Any], axis: int, reverse: bool) -> tuple[NDArray[Any], NDArray[Any]]:
    """The affine maps of all prefixes, element by element."""
    a, b = (np.moveaxis(np.flip(x, axis) if reverse else x, axis, 0).copy() for x in (a, b))
    for i in range(1, len(a)):
        b[i] = b[i - 1] * a[i].astype(b.dtype) + b[i]
        a[i] = a[i - 1] * a[i]
    found = [np.moveaxis(x, 0, axis) for x in (a, b)]
    first, second = (np.flip(x, axis) if reverse else x for x in found)
    return first, second


def any_scan(target: GpuTarget, data: st.DataObject, most: int) -> None:
    """Of a tensor in a drawn layout."""
    warps = data.draw(st.integers(0, 2))
    bits = [data.draw(st.integers(0, most)) for _ in range(2)]
    scanned(
        target,
        warps,
        [1 << b for b in bits],
        data.draw(layouts(sum(bits), warps)),
        data.draw(st.integers(0, 1)),
        data.draw(st.booleans()),
        data.draw(st.sampled_from(("add", "affine"))),
        data.draw(st.sampled_from((dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64))),
    )


def scanned(
    target: GpuTarget,
    warps: int,
    shape: list[int],
    flat: LinearLayout,
    axis: int,
    reverse: bool,
    kind: str,
    dtype: DType,
) -> None:
    """A scan beside NumPy's."""
    size, layout = shape[0] * shape[1], reshape(flat, shape)
    rng = np.random.default_rng(size)
    types = [dtype] if kind == "add" else [dtype, SECOND[dtype]]
    arrays = [rng.integers(-4, 5, size).astype(type_.numpy) for type_ in types]
    kernel = Laid()
    sources = [
        kernel.emit(tile.ReshapeOp(kernel.load(x, flat, type_), shape, layout))
        for x, type_ in zip(arrays, types, strict=True)
    ]
    region = tile.ReduceOp.region(dtype, "add") if kind == "add" else affine(*types)
    op = tile.ScanOp(sources, axis, region, reverse=reverse)
    kernel.emit(op)
    for result, type_ in zip(op.results_, types, strict=True):
        kernel.store(kernel.emit(tile.ReshapeOp(result, [size], flat)), size, flat, type_)
    found = [x.reshape(shape) for x in kernel.run(target, warps)[len(types) :]]
    shaped = [x.reshape(shape) for x in arrays]
    if kind == "add":
        turned = np.flip(shaped[0], axis) if reverse else shaped[0]
        total = np.cumsum(turned, axis, dtype.numpy)
        expected: tuple[NDArray[Any], ...] = (np.flip(total, axis) if reverse else total,)
    else:
        with np.errstate(over="ignore"):
            expected = prefixes(shaped[0], shaped[1], axis, reverse)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@ANY
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_scans_of_any_layout(target: GpuTarget, data: st.DataObject) -> None:
    any_scan(target, data, most=4)


@pytest.mark.nightly
@ANY
@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_many_scans(target: GpuTarget, data: st.DataObject) -> None:
    any_scan(target, data, most=6)


@pytest.mark.parametrize("reverse", [False, True], ids=["forward", "reverse"])
@pytest.mark.parametrize(
    "order",
    ["rrllllllww", "lrlrlrlwlw", "wllwrrllrl", "llrrlllrww", "rrrwwlllll"],
)
def test_every_kind_of_run_below_every_other(order: str, reverse: bool) -> None:
    """The axis's bits, lowest first, in registers (r), lanes (l) and warps (w)."""
    places: dict[str, list[int]] = {"r": [], "l": [], "w": []}
    for bit, where in enumerate(order):
        places[where].append(1 << bit)
    lanes = [*places["l"], *[0] * (5 - len(places["l"]))][:5]
    extra = [unit for unit in places["l"][5:]]
    columns = {"register": (*places["r"], *extra), "lane": tuple(lanes), "warp": tuple(places["w"])}
    layout = LinearLayout.from_columns(columns, [("dim0", len(order))])
    scanned(TARGETS[1], 2, [1 << len(order), 1], layout, 0, reverse, "affine", dtypes.int32)

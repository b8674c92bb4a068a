"""Types of tile IR, and what the ops' constructors infer."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType, i32
from xdsl.dialects.test import TestOp as AnyOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from weft import dtypes
from weft.ir import tile
from weft.ir.types import (
    PointerType,
    dtype_of,
    element_of,
    is_pointer,
    layout_of,
    like,
    pointer,
    scalar,
    shape_of,
    tensor,
    with_layout,
)
from weft.layout import LinearLayout

Parse = Callable[[str], ModuleOp]
Print = Callable[..., str]

SPELLINGS = {
    "bool": "i1", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64",
    "uint8": "ui8", "uint16": "ui16", "uint32": "ui32", "uint64": "ui64",
    "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2",
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip
LANES = LinearLayout({"lane": [[1], [2]]}, {"dim0": 4})
REVERSED = LinearLayout({"lane": [[2], [1]]}, {"dim0": 4})


def value(type_: Attribute) -> SSAValue:
    """A value of that type, from nowhere."""
    return AnyOp(result_types=[type_]).results[0]


def test_every_dtype_has_its_spelling() -> None:
    assert {d.name: str(scalar(d)) for d in dtypes.ALL} == SPELLINGS
    assert all(dtype_of(scalar(d)) is d for d in dtypes.ALL)


def test_tensors_and_scalars() -> None:
    type_ = tensor(dtypes.float32, (2, 4))
    assert str(type_) == "tensor<2x4xf32>"
    assert (shape_of(type_), element_of(type_), dtype_of(value(type_))) == (
        (2, 4),
        scalar(dtypes.float32),
        dtypes.float32,
    )
    assert tensor(dtypes.float32, ()) == scalar(dtypes.float32)
    assert shape_of(scalar(dtypes.int8)) == ()
    assert str(like(type_, dtypes.bool_)) == "tensor<2x4xi1>"
    assert like(scalar(dtypes.int8), pointer(dtypes.int8)) == pointer(dtypes.int8)


def test_pointers() -> None:
    type_ = tensor(pointer(dtypes.bfloat16), (4,))
    assert str(type_) == "tensor<4x!tile.ptr<bf16>>"
    assert is_pointer(type_)
    assert not is_pointer(scalar(dtypes.int64))
    assert dtype_of(type_) is dtypes.bfloat16
    with pytest.raises(VerifyException) as error:
        PointerType(pointer(dtypes.int8))
    assert str(error.value) == "tile.ptr points to numbers, found !tile.ptr<i8>"


def test_layouts() -> None:
    type_ = tensor(dtypes.int32, (4,), LANES)
    assert str(type_) == 'tensor<4xi32, #tile.layout<"{lane: [1,2]} -> [dim0: 4]">>'
    assert layout_of(type_) == LANES
    assert layout_of(like(type_, dtypes.bool_)) == LANES
    assert with_layout(tensor(dtypes.int32, (4,)), LANES) == type_
    assert layout_of(with_layout(type_, REVERSED)) == REVERSED
    assert with_layout(i32, LANES) == i32
    with pytest.raises(TypeError) as error:
        layout_of(tensor(dtypes.int32, (4,)))
    assert str(error.value) == "tensor<4xi32> carries no layout; run the layout pass first"


def test_a_type_that_is_no_element() -> None:
    with pytest.raises(TypeError) as error:
        dtype_of(TensorType(TensorType(i32, [2]), [2]))
    assert str(error.value) == "tensor<2xi32> is not an element type of tile IR"


F32, I32, I1, PTR = (scalar(dtypes.float32), scalar(dtypes.int32), scalar(dtypes.bool_), pointer(dtypes.float32))
X = tensor(F32, (2, 4))


@pytest.mark.parametrize(
    ("op", "results"),
    [
        (tile.ConstantOp(1, tensor(dtypes.int8, (4,))), "tensor<4xi8>"),
        (tile.ProgramIdOp(2), "i32"),
        (tile.NumProgramsOp(0), "i32"),
        (tile.ArangeOp(2, 6), "tensor<4xi32>"),
        (tile.ArangeOp(0, 4, LANES), 'tensor<4xi32, #tile.layout<"{lane: [1,2]} -> [dim0: 4]">>'),
        (tile.SplatOp(value(F32), (2, 4)), "tensor<2x4xf32>"),
        (tile.SplatOp(value(PTR), (4,)), "tensor<4x!tile.ptr<f32>>"),
        (tile.BroadcastOp(value(tensor(F32, (2, 1))), (2, 4)), "tensor<2x4xf32>"),
        (tile.ExpandDimsOp(value(X), 1), "tensor<2x1x4xf32>"),
        (tile.ReshapeOp(value(X), (8,)), "tensor<8xf32>"),
        (tile.TransOp(value(X), (1, 0)), "tensor<4x2xf32>"),
        (
            tile.ConvertLayoutOp(value(tensor(I32, (4,))), LANES),
            'tensor<4xi32, #tile.layout<"{lane: [1,2]} -> [dim0: 4]">>',
        ),
        (tile.UnaryOp("exp", value(X)), "tensor<2x4xf32>"),
        (tile.BinaryOp("add", value(X), value(X)), "tensor<2x4xf32>"),
        (tile.CompareOp("lt", value(X), value(X)), "tensor<2x4xi1>"),
        (tile.SelectOp(value(I1), value(F32), value(F32)), "f32"),
        (tile.FmaOp(value(F32), value(F32), value(F32)), "f32"),
        (tile.CastOp(value(X), dtypes.bfloat16), "tensor<2x4xbf16>"),
        (tile.BitcastOp(value(X), dtypes.uint32), "tensor<2x4xui32>"),
        (tile.BitcastOp(value(scalar(dtypes.int64)), PTR), "!tile.ptr<f32>"),
        (tile.HintOp(value(I32), divisibility=[16]), "i32"),
        (tile.AddPtrOp(value(PTR), value(I32)), "!tile.ptr<f32>"),
        (tile.LoadOp(value(tensor(PTR, (4,)))), "tensor<4xf32>"),
        (tile.StoreOp(value(PTR), value(F32), value(I1)), ""),
        (tile.AtomicRmwOp("add", value(PTR), value(F32)), "f32"),
        (tile.AssumeOp(value(I1)), ""),
        (tile.ReduceOp([value(X)], 0, tile.ReduceOp.region(dtypes.float32, "max")), "tensor<4xf32>"),
        (tile.ReduceOp([value(tensor(F32, (4,)))], 0, tile.ReduceOp.region(dtypes.float32, "add")), "f32"),
        (tile.DotOp(value(X), value(tensor(F32, (4, 8))), value(tensor(F32, (2, 8)))), "tensor<2x8xf32>"),
    ],
    ids=lambda x: x.name if isinstance(x, Operation) else "",
)
def test_constructors_infer_result_types(op: Operation, results: str) -> None:
    op.verify()
    assert ", ".join(str(r.type) for r in op.results) == results


def test_properties_read_as_python_values() -> None:
    assert tile.TransOp(value(X), (1, 0)).permutation == (1, 0)
    hint = tile.HintOp(value(tensor(I32, (2, 4))), divisibility=[1, 16], constancy=[2, 1])
    assert hint.hints == {"divisibility": (1, 16), "constancy": (2, 1)}
    assert tile.ConstantOp(True, I1).number == 1
    assert isinstance(tile.ConstantOp(3, F32).number, float)


@settings(max_examples=200, deadline=None)
@given(number=st.floats())
def test_float_constants_survive_their_text(number: float, parse: Parse, print_module: Print) -> None:
    text = print_module(ModuleOp([tile.ConstantOp(number, scalar(dtypes.float64))]))
    op = parse(text).body.block.first_op
    assert isinstance(op, tile.ConstantOp)
    same = math.isnan(op.number) if math.isnan(number) else op.number == number
    assert same, text
    assert math.isnan(number) or math.copysign(1, op.number) == math.copysign(1, number)


@settings(max_examples=50, deadline=None)
@given(number=st.integers(-(1 << 63), (1 << 63) - 1))
def test_integer_constants_survive_their_text(number: int, parse: Parse, print_module: Print) -> None:
    op = parse(print_module(ModuleOp([tile.ConstantOp(number, scalar(dtypes.int64))]))).body.block.first_op
    assert isinstance(op, tile.ConstantOp)
    assert op.number == number


def test_attributes_survive_their_text(parse: Parse, print_module: Print) -> None:
    """Attributes that passes attach are printed by formats of our own, too."""
    op = tile.ConstantOp(1, I32)
    op.attributes["note"] = I32
    text = print_module(ModuleOp([op]))
    assert text == "builtin.module {\n  %0 = tile.constant 1 {note = i32} : i32\n}\n"
    assert print_module(parse(text)) == text

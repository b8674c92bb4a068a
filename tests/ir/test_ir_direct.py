"""`weft.ir.direct` says what xDSL's public ways say, and functions remembered by identity give what they give without memory."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import IntAttr, IntegerType, ModuleOp
from xdsl.ir import Attribute

from weft import dtypes
from weft.ir import tile
from weft.ir.direct import by_identity, operands_of, ops_in, set_type
from weft.ir.types import PointerType, dtype_of, scalar, shape_of, tensor

Parse = Callable[[str], ModuleOp]
Print = Callable[..., str]

TEXT = """
func.func @k(%n: i32, %p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %o: tensor<4xf32>) {
  %z = tile.constant 0.0 : f32
  %s = scf.for %i = %n to %n step %n iter_args(%a = %z) -> (f32) : i32 {
    %x = tile.load %p mask %m : tensor<4xi1> other %o : tensor<4xf32> : tensor<4x!tile.ptr<f32>> to tensor<4xf32>
    %y = "tile.reduce"(%x) <{axis = 0 : i64}> ({
    ^bb0(%l: f32, %r: f32):
      %t = tile.binary "add" %l, %r : f32
      tile.yield %t : f32
    }) : (tensor<4xf32>) -> f32
    %b = tile.binary "add" %a, %y : f32
    scf.yield %b : f32
  }
  func.return
}
"""


def test_operands_and_order_are_xdsls(parse: Parse) -> None:
    module = parse(TEXT)
    module.verify()
    ops = list(ops_in(module))
    assert ops == list(module.walk())
    assert len(ops) == 11, "the module, the function, and nine ops in it"
    for op in ops:
        assert list(operands_of(op)) == list(op.operands)


def test_the_op_just_given_may_be_erased(parse: Parse) -> None:
    module = parse('func.func @k() {\n  "test.op"() : () -> ()\n  "test.op"() : () -> ()\n  func.return\n}')
    seen: list[str] = []
    for op in ops_in(module):
        seen.append(op.name)
        if op.name == "test.op":
            op.detach()
    assert seen == ["builtin.module", "func.func", "test.op", "test.op", "func.return"]
    assert [op.name for op in module.walk()] == ["builtin.module", "func.func", "func.return"]


def test_a_value_keeps_its_uses_and_name_with_another_type(parse: Parse, print_module: Print) -> None:
    module = parse('func.func @k(%p: i32) {\n  %x = "test.op"() : () -> i32\n  "test.op"(%x, %x) : (i32, i32) -> ()\n}')
    value = next(op for op in ops_in(module) if op.results).results[0]
    set_type(value, scalar(dtypes.int64))
    assert value.uses.get_length() == 2
    assert print_module(module) == (
        'builtin.module {\n  func.func @k(%p: i32) {\n    %x = "test.op"() : () -> i64\n'
        '    "test.op"(%x, %x) : (i64, i64) -> ()\n  }\n}\n'
    )


def test_parts_of_a_load(parse: Parse) -> None:
    lines = {
        "%a = tile.load %p : tensor<4x!tile.ptr<f32>> to tensor<4xf32>": (False, False),
        "%a = tile.load %p mask %m : tensor<4xi1> : tensor<4x!tile.ptr<f32>> to tensor<4xf32>": (True, False),
        "%a = tile.load %p mask %m : tensor<4xi1> other %o : tensor<4xf32> "
        ": tensor<4x!tile.ptr<f32>> to tensor<4xf32>": (True, True),
    }
    for line, (masked, filled) in lines.items():
        module = parse(
            f"func.func @k(%p: tensor<4x!tile.ptr<f32>>, %m: tensor<4xi1>, %o: tensor<4xf32>) {{\n{line}\n}}"
        )
        load = next(op for op in ops_in(module) if isinstance(op, tile.LoadOp))
        block = load.parent
        assert block is not None
        pointer, mask, other = block.args
        assert (load.pointer, load.mask, load.other) == (pointer, mask if masked else None, other if filled else None)
        assert (load.address, load.condition, load.default) == (load.pointer, load.mask, load.other)


def test_equal_types_of_other_objects_have_the_same_meaning() -> None:
    assert dtype_of(IntegerType(32)) is dtypes.int32
    assert dtype_of(PointerType(IntegerType(16))) is dtypes.int16
    assert shape_of(tensor(IntegerType(8), (2, 4))) == (2, 4)


def test_memory_by_identity_never_mistakes_an_object() -> None:
    """As many short-lived attributes as there are entries and more: addresses are used again, answers are not."""
    asked: list[int] = []

    @by_identity
    def data(attribute: IntAttr) -> int:
        asked.append(attribute.data)
        return attribute.data

    for number in range(10_000):
        assert data(IntAttr(number)) == number
    kept = IntAttr(-1)
    assert [data(kept), data(kept)] == [-1, -1]
    assert asked == [*range(10_000), -1]


def test_memory_by_identity_of_two_objects() -> None:
    @by_identity
    def pair(x: Attribute, y: Attribute) -> tuple[Attribute, Attribute]:
        return x, y

    a, b = IntAttr(1), IntAttr(2)
    assert [pair(a, b), pair(b, a), pair(a, a), pair(a, b)] == [(a, b), (b, a), (a, a), (a, b)]

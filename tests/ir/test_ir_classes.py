"""Classes of ops: every op has one, and views say so by trait and by interface alike."""

from __future__ import annotations

import pytest
from xdsl.ir import Block, Operation
from xdsl.irdl import IRDLOperation
from xdsl.traits import IsTerminator, MemoryEffect, RecursiveMemoryEffect

from weft.ir import tile

OPS = list(tile.Tile.operations)


def classes_of(op: type[Operation]) -> list[str]:
    """The op's classes: traits of class, an effect on memory of its own, the end of a block."""
    traits = list(op.traits)
    found = [type(trait).__name__ for trait in traits if isinstance(trait, tile.OpClass)]
    effects = [trait for trait in traits if isinstance(trait, MemoryEffect)]
    # Pure and RecursiveMemoryEffect are effects to xDSL, too: neither touches memory by itself.
    own = [e for e in effects if not isinstance(e, RecursiveMemoryEffect) and type(e).__name__ != "Pure"]
    return found + ["memory"] * bool(own) + ["terminator"] * any(isinstance(t, IsTerminator) for t in traits)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_every_op_has_exactly_one_class(op: type[Operation]) -> None:
    assert len(classes_of(op)) == 1


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_trait_of_shape_ops_and_their_interface_go_together(op: type[Operation]) -> None:
    assert op.has_trait(tile.Shape) == issubclass(op, tile.ShapeOp)


def test_a_view_has_one_operand() -> None:
    """`View` is about the registers of the first operand; an op with more could not be one."""
    for op in OPS:
        if op.has_trait(tile.View):
            assert issubclass(op, IRDLOperation)
            assert len(op.get_irdl_definition().operands) == 1


def test_classes_of_some_ops() -> None:
    expected = {
        tile.SplatOp: "Generator",
        tile.TransOp: "Shape",
        tile.HintOp: "Elementwise",
        tile.AddPtrOp: "Elementwise",
        tile.ConvertLayoutOp: "Conversion",
        tile.ReduceOp: "Collective",
        tile.GatherOp: "Collective",
        tile.ScanOp: "Collective",
        tile.HistogramOp: "Collective",
        tile.JoinOp: "Rearranging",
        tile.FlipOp: "Rearranging",
        tile.LoadOp: "memory",
        tile.YieldOp: "terminator",
        tile.ProgramIdOp: "GridFact",
    }
    assert {op: classes_of(op) for op in expected} == {op: [name] for op, name in expected.items()}


def test_what_is_no_op_has_no_trait() -> None:
    """The owner of a block's argument is the block."""
    assert not tile.is_a(Block(), tile.Generator)

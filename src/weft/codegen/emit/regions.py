"""The combine region of a reduction or scan, computed on scalars or on vectors.

A region with branches computes both sides and selects, lane by lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

from weft.codegen.emit.context import Emit
from weft.codegen.llvm.types import lanes_of
from weft.ir import tile
from weft.ir.types import dtype_of
from weft.ir.unsupported import UnsupportedOpError

COMBINES = "compute with the elements alone: arithmetic, comparisons, 'if' and tl.static_range"


def evaluate(emit: Emit, block: Block, arguments: Sequence[ir.Value]) -> list[ir.Value]:
    """What a combine region yields for its arguments: scalars, or vectors of one length."""
    values: dict[SSAValue, ir.Value] = dict(zip(block.args, arguments, strict=True))
    return _evaluate(emit, block, values, lanes_of(arguments[0]))


def _evaluate(emit: Emit, block: Block, values: dict[SSAValue, ir.Value], lanes: int | None) -> list[ir.Value]:
    """What a block of scalar ops hands on, computed in every lane; ``values`` gains its results."""

    def value_of(value: SSAValue) -> ir.Value:
        if value in values:
            return values[value]
        scalar = emit.scalar(value)
        return scalar if lanes is None else emit.splat(scalar, lanes)

    for op in block.ops:
        if isinstance(op, tile.YieldOp | scf.YieldOp):
            return [value_of(v) for v in op.operands]
        if isinstance(op, scf.IfOp):
            # Both sides: elementwise ops have a result for every operand, so that the unwanted one does no harm.
            sides = [_evaluate(emit, r.block, values, lanes) for r in op.regions if r.blocks]
            condition = value_of(op.cond)
            for result, pair in zip(op.output, zip(*sides, strict=True), strict=True):
                values[result] = emit.builder.select(condition, *pair)
        elif tile.is_a(op, tile.Elementwise):
            values[op.results[0]] = emit.compute(op, [value_of(v) for v in op.operands])
        elif not isinstance(op, tile.ConstantOp):
            raise UnsupportedOpError(op, f"is not supported in the combine function of a {_name(block)}", hint=COMBINES)
    raise AssertionError("the verifier asks blocks of a combine region to end by yielding")


def _name(block: Block) -> str:
    """What the op is called whose region has the block, itself or in a branch."""
    op = block.parent_op()
    while isinstance(op, scf.IfOp):
        op = op.parent_op()
    return "scan" if isinstance(op, tile.ScanOp) else "reduction"


def commutes(op: tile.ReduceOp) -> bool:
    """Whether the region is one commutative op on its two arguments, whose bits do not depend on their order."""
    only = op.single_op
    return only is not None and tile.same_either_way(only.kind.data, dtype_of(only.result))

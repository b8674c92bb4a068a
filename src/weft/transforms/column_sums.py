"""Loops that do nothing but add sums of tiles to what they carry.

    for k: total += sum(x(k), axis=0)                                              is such a loop
    for k: total += sum(x(k), axis=0); squares += sum(x(k) * x(k), axis=0)         so is this
    for k: total += x(k)                                                           adds no sum
    for k: total += sum(x(k), axis=0); most = max(most, total)                     uses a total

The elements of such a sum may be added in any place, one after the other: side by side (`weft.codegen.cpu.side_sums`), or strip
by strip (`weft.codegen.cpu.strips`).
"""

from __future__ import annotations

from xdsl.dialects import scf

from weft.ir import tile
from weft.ir.types import dtype_of, is_tile, shape_of


def is_added(op: tile.ReduceOp, loop: scf.ForOp) -> bool:
    """Whether a loop only adds the sum to what it carries, and rounds no total in each iteration."""
    end = loop.body.block.last_op
    if not op.is_sum or not op.results_[0].has_one_use():
        return False
    (use,) = op.results_[0].uses
    total = use.operation
    if (
        not isinstance(total, tile.BinaryOp)
        or total.kind.data != "add"
        or not total.result.has_one_use()
        or end is None
    ):
        return False
    (last,) = total.result.uses
    argument = total.operands[1 - use.index]
    carried = last.operation is end and argument is loop.body.block.args[1 + last.index]
    return dtype_of(op.sources[0]).holds_sums and carried and argument.has_one_use()


def adds_columns(loop: scf.ForOp) -> bool:
    """Whether all tiles that a loop carries are rows of totals, to each of which it adds one sum."""
    sums = [op for op in loop.body.block.ops if isinstance(op, tile.ReduceOp)]
    carried = [argument for argument in loop.iter_args if is_tile(argument)]
    rows = all(len(shape_of(argument)) == 1 for argument in carried)
    return bool(carried) and rows and len(sums) == len(carried) and all(is_added(op, loop) for op in sums)

"""Tiles that a loop only shifts are carried as one scalar.

Kernels advance tiles of pointers or offsets each iteration (``ptrs += BLOCK * stride``). Carried as tiles they would live
in memory, be rewritten element by element, and hide from axis analysis that the tile keeps its shape. But if the body yields
``x + splat(s)``, then in every iteration x is its initial value plus a splat of the sum of the s so far:

    before                                          after
    for x = init:                                   for d = 0:
        ... uses x ...                                  x = init + splat(d);  ... uses x ...
        yield x + splat(s)                              yield d + s
                                                    result: init + splat(last d)

For pointers and integers alike; ``s`` may vary between iterations. The sum of pointer offsets is kept in int64.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.direct import ops_in
from weft.ir.types import dtype_of, is_pointer, scalar, shape_of


@dataclass(frozen=True)
class UniformCarry(ModulePass):
    """Replaces carried tiles that are only shifted by carried scalars."""

    name = "uniform-carry"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in ops_in(op) if isinstance(inner, scf.ForOp)]:
            _rewrite(loop)


def _uniform(value: SSAValue) -> SSAValue | int | None:
    """The scalar in every element of a tile: a value or a number; None if it is not one splat."""
    match value.owner:
        case tile.SplatOp():
            return value.owner.source
        case tile.ConstantOp() if isinstance(value.owner.number, int):
            return value.owner.number
        case _:
            return None


def _shift(argument: SSAValue, yielded: SSAValue) -> tuple[SSAValue | int, DType] | None:
    """``(s, its dtype)`` where the yielded tile is ``argument + splat(s)``."""
    op = yielded.owner
    match op:
        case tile.AddPtrOp() if op.pointer is argument:
            offset = op.offset
        case tile.BinaryOp() if op.kind.data == "add" and dtype_of(op.result).is_integer and argument in op.operands:
            offset = op.rhs if op.lhs is argument else op.lhs
        case _:
            return None
    step = _uniform(offset)
    return None if step is None else (step, dtype_of(offset))


def _rewrite(loop: scf.ForOp) -> None:
    body = loop.body.block
    terminator = body.last_op
    if not isinstance(terminator, scf.YieldOp):
        return
    for i, argument in enumerate(body.args[1:]):
        if not shape_of(argument):
            continue
        shift = _shift(argument, terminator.operands[i])
        if shift is not None:
            _replace(loop, body, terminator, i, shift)


def _insert(op: Operation, point: InsertPoint, template: Operation) -> SSAValue:
    op.location = template.location
    Rewriter.insert_op(op, point)
    return op.results[0]


def _added(initial: SSAValue, sum_: SSAValue, point: InsertPoint, template: Operation) -> SSAValue:
    tile_sum = _insert(tile.SplatOp(sum_, shape_of(initial)), point, template)
    op = tile.AddPtrOp(initial, tile_sum) if is_pointer(initial) else tile.BinaryOp("add", initial, tile_sum)
    return _insert(op, point, template)


def _replace(
    loop: scf.ForOp, body: Block, terminator: scf.YieldOp, i: int, shift: tuple[SSAValue | int, DType]
) -> None:
    argument, initial, result = body.args[1 + i], loop.iter_args[i], loop.res[i]
    total = dtypes.int64 if is_pointer(argument) else dtype_of(argument)
    zero = _insert(tile.ConstantOp(0, scalar(total)), InsertPoint.before(loop), loop)
    carried = body.insert_arg(scalar(total), 1 + i)
    carried.name_hint = argument.name_hint
    shifted = _added(initial, carried, InsertPoint.at_start(body), loop)
    shifted.name_hint = argument.name_hint
    step, dtype = shift
    end = InsertPoint.before(terminator)
    amount = _insert(tile.ConstantOp(step, scalar(dtype)), end, loop) if isinstance(step, int) else step
    if dtype != total:
        amount = _insert(tile.CastOp(amount, total), end, loop)
    terminator.operands[i] = _insert(tile.BinaryOp("add", carried, amount), end, loop)
    argument.replace_all_uses_with(shifted)
    body.erase_arg(argument)
    loop.operands[3 + i] = zero
    after = InsertPoint.after(loop)
    new_result = Rewriter.replace_value_with_new_type(result, scalar(total))
    if new_result.first_use is not None:
        uses = list(new_result.uses)
        final = _added(initial, new_result, after, loop)
        for use in uses:
            use.operation.operands[use.index] = final

"""Neighbouring programs of single numbers become one program of a vector.

A program that computes one number costs as much as one that fills a register: a nanosecond for the launch to reach it. Here
`LANES` neighbours along x run as one, whose lanes they are:

    x = program_id(0)                                    programs x, x + 1, ..
    x = splat(program_id(0)) + arange(0, 64)             the same programs together, from x on

All that depends on the id becomes a tile, and everything else stays a scalar. `weft.transforms.join_programs` does this for
programs of tiles. The rules for kernels without tiles are:

1. *No effects but loads and stores*, plain ones, and no control flow.
2. *Elements apart.* Each store moves by one element from program to program, as does each load that depends on the id. So no two
   lanes store to one place, and a vector is one access.

An element of a tile is computed as a scalar is, with the same bits.
"""

from __future__ import annotations

from typing import Final

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from weft.ir import tile
from weft.ir.direct import ops_in, set_type
from weft.ir.types import element_of, is_tile, shape_of, tensor
from weft.transforms.axis import analyse

LANES: Final = 64
"""How many programs become one: the lanes of four registers of 512 bits, which take longer than the launch to reach them."""


def join_scalars(kernel: func.FuncOp) -> func.FuncOp | None:
    """The function that runs `LANES` programs along x; None where the rules do not hold."""
    if not all(map(_is_allowed, kernel.body.block.ops)):
        return None
    copy = kernel.clone()
    lanes = _lanes_of(copy)
    for op in list(copy.body.block.ops):
        _spread(op, lanes)
    facts = analyse(copy)
    accesses = [op for op in ops_in(copy) if isinstance(op, tile.LoadOp | tile.StoreOp)]
    for op in accesses:
        if not is_tile(op.pointer):
            if isinstance(op, tile.StoreOp):
                return None
            continue
        info = facts.get(op.pointer)
        if info is None or info.contiguity != (LANES,):
            return None
    return copy if any(isinstance(op, tile.StoreOp) for op in accesses) else None


def _is_allowed(op: Operation) -> bool:
    """Rule 1."""
    if op.regions or any(map(is_tile, (*op.operands, *op.results))):
        return False
    if isinstance(op, tile.LoadOp):
        return op.volatile is None
    if isinstance(op, tile.StoreOp):
        return op.release is None
    simple = isinstance(op, func.ReturnOp | tile.ProgramIdOp | tile.NumProgramsOp | tile.ConstantOp)
    return simple or tile.is_a(op, tile.Elementwise)


def _lanes_of(function: func.FuncOp) -> set[SSAValue]:
    """Gives each program of a group a lane: the tiles of ids, which take the place of the id."""
    found: set[SSAValue] = set()
    for op in list(function.body.block.ops):
        if isinstance(op, tile.ProgramIdOp) and not op.axis.value.data:
            uses = list(op.result.uses)
            first, each = tile.SplatOp(op.result, (LANES,)), tile.ArangeOp(0, LANES)
            ids = tile.BinaryOp("add", first.result, each.result)
            for new in (first, each, ids):
                new.location = op.location
            Rewriter.insert_op([first, each, ids], InsertPoint.after(op))
            for use in uses:
                use.operation.operands[use.index] = ids.result
            found.add(ids.result)
    return found


def _spread(op: Operation, lanes: set[SSAValue]) -> None:
    """Makes an op one of tiles if an operand is; its other operands are then the same in all lanes."""
    if op.results and op.results[0] in lanes or not any(operand in lanes for operand in op.operands):
        return
    for at, operand in enumerate(op.operands):
        if not shape_of(operand):
            same = tile.SplatOp(operand, (LANES,))
            same.location = op.location
            Rewriter.insert_op(same, InsertPoint.before(op))
            op.operands[at] = same.result
    for result in op.results:
        set_type(result, tensor(element_of(result), (LANES,)))
        lanes.add(result)

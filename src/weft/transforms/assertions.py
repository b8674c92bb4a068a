"""Assertions in combine functions become data of the reduction or scan.

A machine evaluates a combine function on vectors, also for elements whose results it drops. An assertion that is executed there
would fail for such elements, too. So each assertion gives the reduction one more tile, of int32: whether it failed in what has
been combined so far. The assertion itself comes after the op:

    %r = tile.reduce %x axis 0                         %r, %f = tile.reduce %x, %zeros axis 0
      (%a, %b):                                          (%a, %fa, %b, %fb):
        %s = tile.binary "add" %a, %b            ->        %s = tile.binary "add" %a, %b
        tile.assert %c, "message"                          %now = tile.cast (not %c)
        tile.yield %s                                      tile.yield %s, %fa | %fb | %now
                                                       tile.assert (%f == 0), "message"

An assertion in a branch of an ``scf.if`` is a result of the ``if``, which is 0 on the other side.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from weft import dtypes
from weft.ir import tile
from weft.ir.direct import operands_of, ops_in
from weft.ir.types import scalar, shape_of, tensor

INT = scalar(dtypes.int32)
Op = TypeVar("Op", bound=Operation)


@dataclass(frozen=True)
class CollectAssertions(ModulePass):
    """Moves assertions out of combine functions: the op carries whether they failed."""

    name = "collect-assertions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        combining = [inner for inner in ops_in(op) if isinstance(inner, tile.CombiningOp)]
        for inner in combining:
            checks = [check for check in ops_in(inner) if isinstance(check, tile.AssertOp)]
            if checks:
                _collect(inner, checks)


def _collect(op: tile.CombiningOp, checks: Sequence[tile.AssertOp]) -> None:
    """Replaces ``op`` by one that carries whether the ``checks`` in it failed, and the assertions after it."""
    block, count = op.combine.block, len(op.sources)
    end = block.last_op
    assert end is not None, "the verifier asks for a yield"
    for check in checks:  # used at once: the next one may replace the same scf.if
        failed = _failed(check, block)
        end.operands = [*end.operands, failed]
    yielded, failures = end.operands[:count], end.operands[count:]
    for i in range(len(checks)):
        block.insert_arg(INT, count + i)
    for _ in checks:
        block.insert_arg(INT, len(block.args))
    carried = block.args[count : count + len(checks)], block.args[2 * count + len(checks) :]
    flags: list[SSAValue] = []
    for before, element, now in zip(*carried, failures, strict=True):
        earlier = _before(end, tile.BinaryOp("or", before, element))
        flags.append(_before(end, tile.BinaryOp("or", earlier.result, now)).result)
    end.operands = [*yielded, *flags]
    none = _before(op, tile.ConstantOp(0, tensor(INT, shape_of(op.sources[0]))))
    sources = [*operands_of(op), *([none.result] * len(checks))]
    axis, region = op.axis.value.data, op.detach_region(op.combine)
    new: tile.CombiningOp = (
        tile.ReduceOp(sources, axis, region)
        if isinstance(op, tile.ReduceOp)
        else tile.ScanOp(sources, axis, region, reverse=op.reverse is not None)
    )
    new.location = op.location
    following = _asserted(new.results[count:], checks)
    Rewriter.replace_op(op, [new, *following], new.results[:count])


def _failed(check: tile.AssertOp, outermost: Block) -> SSAValue:
    """Whether a check fails, as an int32 of ``outermost``: 0 where it is not reached. The check is erased."""
    holds = _before(check, tile.UnaryOp("not", check.condition))
    failed: SSAValue = _before(check, tile.CastOp(holds.result, dtypes.int32)).result
    block = check.parent_block()
    Rewriter.erase_op(check)
    while block is not outermost:
        branch = block.parent_op() if block is not None else None
        assert isinstance(branch, scf.IfOp), "combine regions have no control flow but scf.if"
        block, failed = branch.parent_block(), _result_of(branch, failed)
    return failed


def _result_of(branch: scf.IfOp, value: SSAValue) -> SSAValue:
    """An int32 of one side as a result of the ``if``, 0 on the other side; the op is replaced."""
    for region in (branch.true_region, branch.false_region):
        if not region.blocks:
            region.add_block(Block([scf.YieldOp()]))
        end = region.block.last_op
        assert end is not None, "the verifier asks for a yield"
        if value.owner is region.block or (isinstance(value.owner, Operation) and value.owner.parent is region.block):
            given = value
        else:
            given = _before(end, tile.ConstantOp(0, INT)).result
        end.operands = [*end.operands, given]
    true, false = map(branch.detach_region, (branch.true_region, branch.false_region))
    new = scf.IfOp(branch.cond, [*(r.type for r in branch.results), INT], true, false)
    new.location = branch.location
    Rewriter.replace_op(branch, new, new.results[:-1])
    return new.results[-1]


def _asserted(failed: Sequence[SSAValue], checks: Sequence[tile.AssertOp]) -> list[Operation]:
    """The assertions that no element of the tiles ``failed`` is other than 0."""
    ops: list[Operation] = []
    for value, check in zip(failed, checks, strict=True):
        found: list[Operation] = []
        if len(shape := shape_of(value)) > 1:
            found.append(tile.ReshapeOp(value, (prod(shape),)))
        if shape:
            flat = found[-1].results[0] if found else value
            found.append(tile.ReduceOp([flat], 0, tile.ReduceOp.region(dtypes.int32, "or")))
        found.append(tile.CastOp(found[-1].results[0] if found else value, dtypes.bool_))
        found.append(tile.UnaryOp("not", found[-1].results[0]))
        found.append(tile.AssertOp(found[-1].results[0], check.message.data))
        for one in found:
            one.location = check.location
        ops += found
    return ops


def _before(place: Operation, op: Op) -> Op:
    """``op``, inserted before ``place``, at its location."""
    op.location = place.location
    Rewriter.insert_op(op, InsertPoint.before(place))
    return op

"""Ops that compute the same in every iteration move in front of the loop.

Every op without effects may move, even out of a loop that never runs: none of ours traps. Loads stay. Inner loops come
first, so that what leaves one may leave the next. Ops under an ``scf.if`` stay there: moving them would only do work
that the branch may not need.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from weft.transforms.effects import Effect, effect_of, is_terminator


@dataclass(frozen=True)
class Licm(ModulePass):
    """Hoists loop-invariant ops out of ``scf.for`` and ``scf.while``."""

    name = "licm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _visit(op)


def _visit(op: Operation) -> None:
    for region in op.regions:
        for block in region.blocks:
            for inner in tuple(block.ops):
                if inner.regions:
                    _visit(inner)
    parent = op.parent_block()
    if parent is not None and isinstance(op, scf.ForOp | scf.WhileOp):
        varying: set[SSAValue] = set()
        for region in op.regions:
            for block in region.blocks:
                _hoist(op, parent, block, varying)


def _hoist(loop: Operation, parent: Block, block: Block, varying: set[SSAValue]) -> None:
    """Moves what reads none of ``varying``, the values made inside the loop, to which the other results are added."""
    varying.update(block.args)
    for op in tuple(block.ops):
        stays = isinstance(op, scf.IfOp | scf.ForOp | scf.WhileOp) or is_terminator(op)
        if not stays and effect_of(op) is Effect.NONE and not _reads(op, varying):
            op.detach()
            parent.insert_op_before(op, loop)
        else:
            varying.update(op.results)


def _reads(op: Operation, varying: set[SSAValue]) -> bool:
    """Whether the op or one in its regions has a varying operand."""
    return any(not varying.isdisjoint(inner.operands) for inner in (op.walk() if op.regions else (op,)))

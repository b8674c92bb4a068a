"""Erases ops whose results are not read.

One walk against program order suffices: uses come after definitions, so when an op is visited its dead users are gone. Loads
are erased, too, because reading is not observable; a volatile load is not. A loop may carry a value from which it computes that
value alone. Such a value has one use: the yield at its own position.
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
class Dce(ModulePass):
    """Erases what has no effect and no reader."""

    name = "dce"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for region in op.regions:
            for block in region.blocks:
                _visit(block)


def _visit(block: Block) -> None:
    op = block.last_op
    while op is not None:
        before = op.prev_op
        if _is_dead(op):
            block.erase_op(op)
        else:
            if isinstance(op, scf.ForOp):
                op = _drop_carried(op)
            elif isinstance(op, scf.IfOp):
                op = _drop_results(op)
            for region in op.regions:
                for inner in region.blocks:
                    _visit(inner)
        op = before


def _is_dead(op: Operation) -> bool:
    for result in op.results:
        if result.first_use is not None:
            return False
    return not is_terminator(op) and effect_of(op) <= Effect.READ


def _only_yielded(argument: SSAValue, end: Operation, position: int) -> bool:
    """Whether a carried value has no reader but, perhaps, the yield that carries it on."""
    return all(use.operation is end and use.index == position for use in argument.uses)


def _drop_carried(op: scf.ForOp) -> scf.ForOp:
    """The loop without the carried values that are not read, or the loop itself."""
    block, end = op.body.block, op.body.block.last_op
    assert isinstance(end, scf.YieldOp), "the verifier asks scf.for for it"
    dead = [
        i
        for i, (argument, result) in enumerate(zip(block.args[1:], op.results, strict=True))
        if result.first_use is None and _only_yielded(argument, end, i)
    ]
    if not dead:
        return op
    parent = op.parent_block()
    assert parent is not None, f"{op.name} stands in no block"
    kept = [i for i in range(len(op.results)) if i not in dead]
    end.operands = [end.operands[i] for i in kept]
    for i in reversed(dead):
        block.erase_arg(block.args[1 + i])
    initial = [op.iter_args[i] for i in kept]
    new = scf.ForOp(op.lb, op.ub, op.step, initial, op.detach_region(op.body))
    new.attributes.update(op.attributes)
    new.location = op.location
    for i, result in zip(kept, new.results, strict=True):
        op.results[i].replace_all_uses_with(result)
    parent.insert_op_before(new, op)
    parent.erase_op(op)
    return new


def _drop_results(op: scf.IfOp) -> scf.IfOp:
    """The ``if`` without the results that are not read, or the ``if`` itself."""
    kept = [i for i, result in enumerate(op.results) if result.first_use is not None]
    parent = op.parent_block()
    if len(kept) == len(op.results) or parent is None:
        return op
    for region in op.regions:
        end = region.block.last_op
        assert isinstance(end, scf.YieldOp), "the verifier asks scf.if for it"
        end.operands = [end.operands[i] for i in kept]
    then, other = op.true_region, op.false_region
    types = [op.results[i].type for i in kept]
    new = scf.IfOp(op.cond, types, op.detach_region(then), op.detach_region(other))
    new.attributes.update(op.attributes)
    new.location = op.location
    parent.insert_op_before(new, op)
    for i, result in zip(kept, new.results, strict=True):
        op.results[i].replace_all_uses_with(result)
        result.name_hint = op.results[i].name_hint
    parent.erase_op(op)
    return new

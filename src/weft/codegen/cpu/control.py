"""Structured control flow: scf's loops and branches around the schedules of their blocks.

What control flow merges gets a place of its own, a stack slot for a scalar and a buffer for a tile. A carried tile's
buffer is both what the body reads and what it writes; `weft.codegen.cpu.placement` has seen to it that nothing reads the old
value afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import SSAValue

from weft.codegen.cpu.buffers import Buffer, element_of_value
from weft.codegen.cpu.schedule import is_tile
from weft.codegen.emit.errors import EmissionError
from weft.codegen.llvm.types import intrinsic
from weft.ir.types import layout_of

if TYPE_CHECKING:
    from weft.codegen.cpu.emitter import Emitter


def _slot(emitter: Emitter, value: SSAValue) -> Buffer | ir.Value:
    """Storage for a value that control flow merges: a buffer for a tile, a stack slot for a scalar."""
    if is_tile(value):
        return emitter.pool.allocate(element_of_value(value), layout_of(value))
    return emitter.entry.alloca(element_of_value(value).register_type(None))


def _put(emitter: Emitter, values: Sequence[SSAValue], slots: Sequence[Buffer | ir.Value]) -> None:
    """Writes values to slots, all read before any scalar is written."""
    scalars = [None if is_tile(value) else emitter.scalar(value) for value in values]
    for value, slot, scalar in zip(values, slots, scalars, strict=True):
        if isinstance(slot, Buffer):
            if emitter.buffers.get(value) is not slot:
                emitter.fill(value, slot)
        elif scalar is not None:
            emitter.builder.store(scalar, slot)


def _get(emitter: Emitter, values: Sequence[SSAValue], slots: Sequence[Buffer | ir.Value]) -> None:
    """Makes slots the homes of values."""
    for value, slot in zip(values, slots, strict=True):
        if isinstance(slot, Buffer):
            emitter.buffers[value] = slot
        else:
            emitter.scalars[value] = emitter.builder.load(slot, typ=element_of_value(value).register_type(None))


def emit_for(emitter: Emitter, op: scf.ForOp) -> None:
    induction, *carried = op.body.block.args
    slots = [_slot(emitter, argument) for argument in carried]
    _put(emitter, op.iter_args, slots)
    lower, upper, step = (emitter.scalar(v) for v in (op.lb, op.ub, op.step))
    # The counter is compared before it is advanced: past the last iteration it could wrap.
    last = intrinsic(emitter.builder, "ssub.sat", [upper, step])
    before = emitter.builder.block
    body, done = (emitter.function.append_basic_block(n) for n in ("for", "done"))
    emitter.builder.cbranch(emitter.builder.icmp_signed("<", lower, upper), body, done)
    emitter.builder.position_at_end(body)
    counter = emitter.builder.phi(lower.type)
    counter.add_incoming(lower, before)
    emitter.scalars[induction] = counter
    pending, emitter.pending_copies = emitter.pending_copies, []
    with emitter.scope():
        _get(emitter, carried, slots)
        emitter.block(op.body.block)
        terminator = op.body.block.last_op
        if terminator is None:
            raise EmissionError(op, "has an empty body")
        scalars = [(value, slot) for value, slot in zip(terminator.operands, slots, strict=True) if not is_tile(value)]
        _put(emitter, [value for value, _ in scalars], [slot for _, slot in scalars])
        for source, target in emitter.pending_copies:
            emitter.copy(source, target)
    emitter.pending_copies = pending
    counter.add_incoming(emitter.builder.add(counter, step, flags=("nsw",)), emitter.builder.block)
    emitter.builder.cbranch(emitter.builder.icmp_signed("<", counter, last), body, done)
    emitter.builder.position_at_end(done)
    _get(emitter, op.res, slots)


def emit_if(emitter: Emitter, op: scf.IfOp) -> None:
    slots = [_slot(emitter, result) for result in op.output]
    then, otherwise, done = (emitter.function.append_basic_block(n) for n in ("then", "else", "endif"))
    emitter.builder.cbranch(emitter.scalar(op.cond), then, otherwise)
    for block, region in ((then, op.true_region), (otherwise, op.false_region)):
        emitter.builder.position_at_end(block)
        if region.blocks:
            with emitter.scope():
                emitter.block(region.block)
                terminator = region.block.last_op
                _put(emitter, terminator.operands if terminator is not None else [], slots)
        emitter.builder.branch(done)
    emitter.builder.position_at_end(done)
    _get(emitter, op.output, slots)


def emit_while(emitter: Emitter, op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    carried = [_slot(emitter, argument) for argument in before.args]
    passed = [_slot(emitter, argument) for argument in after.args]
    _put(emitter, op.arguments, carried)
    head, body, done = (emitter.function.append_basic_block(n) for n in ("while", "body", "done"))
    emitter.builder.branch(head)
    emitter.builder.position_at_end(head)
    with emitter.scope():
        _get(emitter, before.args, carried)
        emitter.block(before)
        condition = before.last_op
        if not isinstance(condition, scf.ConditionOp):
            raise EmissionError(op, "does not end its first region with scf.condition")
        _put(emitter, condition.args, passed)
        emitter.builder.cbranch(emitter.scalar(condition.condition), body, done)
    emitter.builder.position_at_end(body)
    with emitter.scope():
        _get(emitter, after.args, passed)
        emitter.block(after)
        terminator = after.last_op
        _put(emitter, terminator.operands if terminator is not None else [], carried)
    emitter.builder.branch(head)
    emitter.builder.position_at_end(done)
    _get(emitter, op.res, passed)

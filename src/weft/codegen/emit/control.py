"""Structured control flow, for every machine: scf's loops and branches around their blocks.

What control flow merges gets a place of its own: a stack slot for a scalar, and for a tile what the machine's `Emit.slot` gives.
Values written to slots are loaded again where control flow meets; LLVM turns stack slots into phis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.codegen.emit.context import Emit, Lowering, Slot
from weft.codegen.llvm.types import intrinsic


class ScalarSlot:
    """A stack slot for a scalar of an LLVM type."""

    def __init__(self, emit: Emit, type_: ir.Type):
        self._emit = emit
        self._type = type_
        self._pointer = emit.entry.alloca(type_)

    def put(self, value: SSAValue) -> None:
        """Stores a scalar."""
        self._emit.builder.store(self._emit.scalar(value), self._pointer)

    def get(self, value: SSAValue) -> None:
        """Loads the scalar for ``value``."""
        self._emit.scalars[value] = self._emit.builder.load(self._pointer, typ=self._type)


def _put(values: Sequence[SSAValue], slots: Sequence[Slot]) -> None:
    for value, slot in zip(values, slots, strict=True):
        slot.put(value)


def _get(values: Sequence[SSAValue], slots: Sequence[Slot]) -> None:
    for value, slot in zip(values, slots, strict=True):
        slot.get(value)


def _for(emit: Emit, op: scf.ForOp) -> None:
    carried = op.body.block.args[1:]
    slots = [emit.slot(argument) for argument in carried]
    _put(op.iter_args, slots)

    def body() -> None:
        _get(carried, slots)
        emit.block(op.body.block)
        terminator = op.body.block.last_op
        assert terminator is not None, "the verifier asks scf.for for a terminator"
        emit.carry(terminator.operands, slots)

    counted(emit, op, body)
    _get(op.res, slots)


def counted(emit: Emit, op: scf.ForOp, body: Callable[[], None]) -> None:
    """Emits a counted loop around what ``body`` emits for an iteration."""
    lower, upper, step = (emit.scalar(v) for v in (op.lb, op.ub, op.step))
    # The counter is compared before it is advanced: past the last iteration it could wrap.
    last = intrinsic(emit.builder, "ssub.sat", [upper, step])
    before = emit.builder.block
    head, done = (emit.function.append_basic_block(n) for n in ("for", "done"))
    emit.builder.cbranch(emit.builder.icmp_signed("<", lower, upper), head, done)
    emit.builder.position_at_end(head)
    counter = emit.builder.phi(lower.type)
    counter.add_incoming(lower, before)
    emit.scalars[op.body.block.args[0]] = counter
    with emit.scope():
        body()
    emit.back_edge(op)
    counter.add_incoming(emit.builder.add(counter, step, flags=("nsw",)), emit.builder.block)
    emit.builder.cbranch(emit.builder.icmp_signed("<", counter, last), head, done)
    emit.builder.position_at_end(done)


def _if(emit: Emit, op: scf.IfOp) -> None:
    slots = [emit.slot(result) for result in op.output]
    then, otherwise, done = (emit.function.append_basic_block(n) for n in ("then", "else", "endif"))
    emit.builder.cbranch(emit.scalar(op.cond), then, otherwise)
    for block, region in ((then, op.true_region), (otherwise, op.false_region)):
        emit.builder.position_at_end(block)
        if region.blocks:
            with emit.scope():
                emit.block(region.block)
                terminator = region.block.last_op
                _put(terminator.operands if terminator is not None else [], slots)
        emit.builder.branch(done)
    emit.builder.position_at_end(done)
    _get(op.output, slots)


def _while(emit: Emit, op: scf.WhileOp) -> None:
    before, after = op.before_region.block, op.after_region.block
    carried = [emit.slot(argument) for argument in before.args]
    passed = [emit.slot(argument) for argument in after.args]
    _put(op.arguments, carried)
    head, body, done = (emit.function.append_basic_block(n) for n in ("while", "body", "done"))
    emit.builder.branch(head)
    emit.builder.position_at_end(head)
    with emit.scope():
        _get(before.args, carried)
        emit.block(before)
        condition = before.last_op
        assert isinstance(condition, scf.ConditionOp), "the verifier asks scf.while for it"
        _put(condition.args, passed)
        emit.builder.cbranch(emit.scalar(condition.condition), body, done)
    emit.builder.position_at_end(body)
    with emit.scope():
        _get(after.args, passed)
        emit.block(after)
        terminator = after.last_op
        _put(terminator.operands if terminator is not None else [], carried)
    emit.back_edge(op)
    emit.builder.branch(head)
    emit.builder.position_at_end(done)
    _get(op.res, passed)


def _terminator(emit: Emit, op: Operation) -> None:
    """Nothing: the loop or branch reads the operands."""


CONTROL: Final[Mapping[type[Operation], Lowering]] = {
    scf.ForOp: _for,
    scf.IfOp: _if,
    scf.WhileOp: _while,
    scf.YieldOp: _terminator,
    scf.ConditionOp: _terminator,
}
"""The lowerings of scf."""

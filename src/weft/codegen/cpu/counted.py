"""Loops of emitted code whose number of iterations is known at run time."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from llvmlite import ir

from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import I64, intrinsic


@contextmanager
def loop_to(registers: Registers, trips: ir.Value) -> Generator[ir.Value]:
    """A loop of ``trips`` iterations, at least one; gives its counter."""
    builder, before = registers.builder, registers.builder.block
    head, done = (registers.function.append_basic_block(name) for name in ("repeat", "repeated"))
    builder.branch(head)
    builder.position_at_end(head)
    counter = builder.phi(I64)
    counter.add_incoming(ir.Constant(I64, 0), before)
    with registers.scope():
        yield counter
    after = builder.add(counter, ir.Constant(I64, 1))
    counter.add_incoming(after, builder.block)
    registers.repeats(builder.cbranch(builder.icmp_unsigned("<", after, trips), head, done))
    builder.position_at_end(done)


def rounded_up(registers: Registers, number: ir.Value, step: int) -> ir.Value:
    """The least multiple of ``step`` that is not below ``number``, and at least ``step``; a power of two."""
    up = registers.builder.add(number, ir.Constant(I64, step - 1))
    return intrinsic(
        registers.builder, "umax", [registers.builder.and_(up, ir.Constant(I64, -step)), ir.Constant(I64, step)]
    )


@contextmanager
def over_blocks(registers: Registers, wanted: ir.Value, size: int, block: int) -> Generator[ir.Value | None]:
    """A loop over the blocks that hold the first ``wanted`` of ``size`` elements, and at least over the first; gives its counter,
    or None where there is one block. Both sizes are powers of two."""
    if size <= block:
        yield None
        return
    trips = registers.builder.udiv(rounded_up(registers, wanted, block), ir.Constant(I64, block))
    with loop_to(registers, trips) as counter:
        yield counter


@contextmanager
def over_steps(registers: Registers, start: ir.Value, end: ir.Value, step: int) -> Generator[ir.Value]:
    """A loop over ``start``, ``start + step`` and so on below ``end``; perhaps none at all."""
    builder = registers.builder
    with builder.if_then(builder.icmp_signed("<", start, end)):
        span = builder.add(builder.sub(end, start), ir.Constant(I64, step - 1))
        with loop_to(registers, builder.udiv(span, ir.Constant(I64, step))) as counter:
            yield builder.add(start, builder.mul(counter, ir.Constant(I64, step)))

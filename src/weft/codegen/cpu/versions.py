"""Versions of a register loop: one without its masks for when all of them are true, one with them.

In the second most registers are still whole. Where its body has no copies, the last lane of each register tells
(`Registers.ordered_masks`), so that no vector of a mask is computed for them. Which masks one scalar test can decide is
`weft.codegen.cpu.masks`' to say.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import reduce
from typing import Any

from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu.loops import UNROLL_BITS, is_small, last_register
from weft.codegen.cpu.masks import decided_by_last, depends_on, last_is_highest
from weft.codegen.cpu.schedule import WHOLE, RegisterLoop
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.views import used_registers
from weft.ir import tile
from weft.ir.types import is_tile, layout_of


@contextmanager
def mask_versions(registers: Registers, loop: RegisterLoop) -> Generator[list[AbstractContextManager[None]]]:
    """The versions of a loop to emit, each a context to emit it in; just one where no scalar test before the loop can tell
    that its masks are true."""
    loads = [value.owner for value in loop.needs if is_tile(value) and value not in registers.buffers]
    accesses = [op for op in (*loads, *loop.roots) if isinstance(op, tile.LoadOp | tile.StoreOp)]
    masks = dict.fromkeys(
        a.mask
        for a in accesses
        if a.mask is not None
        and decided_by_last(a.mask, registers.facts.axis)
        and last_is_highest(layout_of(a.mask))
        and not depends_on(a.mask, loop.roots)
    )
    if not masks or is_small(loop.layout):
        yield [nullcontext()]
        return
    lane = loop.layout.in_size("lane") - 1
    with registers.scope():
        lasts = [registers.lane(mask, last_register(layout_of(mask)), lane) for mask in masks]
    full = reduce(registers.builder.and_, lasts)
    with registers.builder.if_else(full, likely=True) as (whole, ragged):
        ordered: frozenset[SSAValue] = frozenset() if gains_from_copies(loop) else frozenset(masks)
        yield [_version(registers, whole, true=frozenset(masks)), _version(registers, ragged, ordered=ordered)]


def gains_from_copies(loop: RegisterLoop) -> bool:
    """Whether unrolled copies of a loop's body do less work than the body as often. Reductions have an accumulator for each copy,
    and a value that copies share is computed once."""
    if loop.axis is not None:
        return True
    used = used_registers(loop.layout)
    lowest = [j for j in range(used.bit_length()) if used >> j & 1][:UNROLL_BITS]
    return any(
        not columns[j]
        for value, at in loop.needs.items()
        if is_tile(value) and not _is_cheap(value)
        for columns in at
        if columns is not WHOLE
        for j in lowest
    )


def _is_cheap(value: SSAValue) -> bool:
    """Whether a value is made of scalars, or another value seen differently."""
    op = value.owner
    return isinstance(op, Operation) and (tile.is_a(op, tile.Generator) or tile.is_a(op, tile.View))


@contextmanager
def _version(
    registers: Registers,
    branch: AbstractContextManager[Any],
    *,
    true: frozenset[SSAValue] = frozenset(),
    ordered: frozenset[SSAValue] = frozenset(),
) -> Generator[None]:
    with branch, registers.scope():
        registers.true_masks, registers.ordered_masks = true, ordered
        yield
        registers.true_masks = registers.ordered_masks = frozenset()

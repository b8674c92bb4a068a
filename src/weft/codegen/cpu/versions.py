"""Versions of a register loop: one without its masks for when all of them are true, one with them.

Which masks one scalar test can decide is `weft.codegen.cpu.masks`' to say.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import reduce
from typing import Any

from weft.codegen.cpu.loops import is_small, last_register
from weft.codegen.cpu.masks import decided_by_last, depends_on
from weft.codegen.cpu.schedule import RegisterLoop
from weft.codegen.cpu.values import Registers
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
        if a.mask is not None and decided_by_last(a.mask, registers.facts.axis) and not depends_on(a.mask, loop.roots)
    )
    if not masks or is_small(loop.layout):
        yield [nullcontext()]
        return
    lane = loop.layout.in_size("lane") - 1
    with registers.scope():
        lasts = [registers.lane(mask, last_register(layout_of(mask)), lane) for mask in masks]
    full = reduce(registers.builder.and_, lasts)
    with registers.builder.if_else(full, likely=True) as (whole, ragged):
        yield [_version(registers, whole, frozenset(masks)), _version(registers, ragged, frozenset())]


@contextmanager
def _version(registers: Registers, branch: AbstractContextManager[Any], true_masks: frozenset[Any]) -> Generator[None]:
    with branch, registers.scope():
        registers.true_masks = true_masks
        yield
        registers.true_masks = frozenset()

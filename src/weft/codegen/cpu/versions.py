"""Versions of the body of a register loop: without its masks for registers in which all are true, and with them.

The loop goes over groups of registers. One scalar test for each group chooses the version. So most of a tile whose end is cut off
is loaded by plain instructions, and masked ones are for the registers at the end. Which masks one scalar test can decide is
`weft.codegen.cpu.masks`' to say. A loop that does nothing but store under one mask skips groups that are beyond the end: their
first element is not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.cpu.masks import decided_by_last, depends_on, last_is_highest
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.schedule import WHOLE, Columns, RegisterLoop
from weft.codegen.cpu.values import Registers
from weft.ir import tile
from weft.ir.types import is_tile, layout_of


def mask_versions(registers: Registers, loop: RegisterLoop) -> MaskVersions | None:
    """The versions of a loop's body; None where no scalar test can tell that masks of a group are true."""
    loads = [value.owner for value in loop.needs if is_tile(value) and value not in registers.buffers]
    accesses = [op for op in (*loads, *loop.roots) if isinstance(op, tile.LoadOp | tile.StoreOp)]
    masks = dict.fromkeys(
        a.mask
        for a in accesses
        if a.mask is not None
        and decided_by_last(a.mask, registers.facts.axis)
        and last_is_highest(layout_of(a.mask))
        and ascend(loop.needs.get(a.mask, ()))
        and not depends_on(a.mask, loop.roots)
    )
    if not masks:
        return None

    stores = [root.mask for root in loop.roots if isinstance(root, tile.StoreOp)]
    only_stores = len(stores) == len(loop.roots) and not loop.kept and len(set(stores)) == 1
    deciding = next((mask for mask in stores if only_stores and mask in masks), None)
    return MaskVersions(registers, loop, tuple(masks), deciding)


@dataclass(frozen=True)
class MaskVersions:
    """Emits code for a group of registers of a loop in two versions, by ``masks``: one where all elements of the group are there,
    and one where some may not be, and which is skipped where the ``deciding`` mask, if any, is false in all."""

    registers: Registers
    loop: RegisterLoop
    masks: tuple[SSAValue, ...]
    deciding: SSAValue | None

    def __call__(self, last: RegisterIndex, whole: Callable[[], None], ragged: Callable[[], None]) -> None:
        """For the group whose last register is given."""
        self.branch(self.tests(last), last, whole, ragged)

    def tests(self, last: RegisterIndex) -> list[ir.Value]:
        """Bools that are all true if all elements are there, of the group whose last register is given."""
        return [
            self.registers.lane(mask, last.through(columns[:-1]), layout_of(mask).in_size("lane") - 1)
            for mask in self.masks
            for columns in sorted(self.loop.needs[mask])
        ]

    def begins(self, first: RegisterIndex) -> ir.Value:
        """Whether the first element is there, of the group whose first register is given."""
        tests = [
            self.registers.lane(mask, first.through(columns[:-1]), 0)
            for mask in self.masks
            for columns in sorted(self.loop.needs[mask])
        ]
        return reduce(self.registers.builder.or_, tests)

    def branch(
        self, tests: Sequence[ir.Value], last: RegisterIndex, whole: Callable[[], None], ragged: Callable[[], None]
    ) -> None:
        """As `__call__`, by tests of what the group holds."""
        registers, masks = self.registers, frozenset(self.masks)
        with registers.builder.if_else(reduce(registers.builder.and_, tests), likely=True) as (then, otherwise):
            with then, registers.knowing(true=masks):
                whole()
            ragged_version = registers.knowing(ragged=masks)
            with otherwise, ragged_version, _unless_beyond(registers, self.loop, self.deciding, last):
                ragged()


@contextmanager
def _unless_beyond(
    registers: Registers, loop: RegisterLoop, mask: SSAValue | None, last: RegisterIndex
) -> Generator[None]:
    """Emits code for a group of registers that is skipped where the first element of a mask is false: then all are
    (`weft.codegen.cpu.masks`). Without a mask it always runs."""
    if mask is None:
        yield
        return
    first = RegisterIndex(
        0, last.terms
    )  # at most the group's first, and none of its elements is stored where this one is not
    tests = [registers.lane(mask, first.through(columns[:-1]), 0) for columns in sorted(loop.needs[mask])]
    with registers.builder.if_then(reduce(registers.builder.or_, tests)), registers.scope():
        yield


def ascend(needed: Collection[Columns]) -> bool:
    """Whether the last register of a group is needed with the last register of the mask's: each bit goes to a bit of its own, or
    to none."""
    return bool(needed) and all(
        columns is not WHOLE
        and columns[-1:] == (0,)
        and all(c & (c - 1) == 0 for c in columns)
        and len({c for c in columns if c}) == sum(1 for c in columns if c)
        for columns in needed
    )

"""What a product's sums begin with, where that is known: then they begin in registers, and nothing writes it to memory first.

    for panels:  sums += product        before: the sums' buffer is filled, and each block of sums loaded from it
                                        now:    in the first iteration each block of sums begins with the constant

A loop that does not run leaves its constant: then the buffer is filled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import BlockArgument, SSAValue

from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import constant
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.cpu import MultiplyOp
from weft.target import PRODUCTS


class Start(NamedTuple):
    """The number that all sums begin with: always, or in the first iteration of a loop."""

    number: float
    loop: scf.ForOp | None = None


def start_of(op: MultiplyOp) -> Start | None:
    """What a product's sums begin with; None where they are in memory. A tile register can be cleared, not filled, and not in one
    iteration alone."""
    acc, loop, tiles = op.acc, op.parent_op(), bool(PRODUCTS[op.instruction.data].rows)
    if isinstance(acc, BlockArgument) and isinstance(loop, scf.ForOp) and acc.block is op.parent and not tiles:
        number = _number(loop.iter_args[acc.index - 1]) if acc.has_one_use() else None
        return None if number is None else Start(number, loop)
    number = _number(acc)
    return None if number is None or (tiles and number) else Start(number)


def _number(value: SSAValue) -> float | None:
    return value.owner.number if isinstance(value.owner, tile.ConstantOp) else None


def is_skipped(registers: Registers, loop: scf.ForOp) -> ir.Value:
    """Whether a loop does not run."""
    return registers.builder.icmp_signed(">=", registers.scalar(loop.lb), registers.scalar(loop.ub))


class Beginning:
    """How the sums of a product begin in registers, where that is lowered."""

    def __init__(self, registers: Registers, start: Start | None):
        self._start = start
        self._first: ir.Value | None = None
        """Whether the iteration of the loop is the first."""
        if start is not None and start.loop is not None:
            counter, first = (registers.scalar(value) for value in (start.loop.body.block.args[0], start.loop.lb))
            self._first = registers.builder.icmp_signed("==", counter, first)

    def sums(
        self, builder: ir.IRBuilder, places: Sequence[ir.Value], type_: ir.VectorType, dtype: DType, align: int
    ) -> list[ir.Value]:
        """Those vectors whose places in memory are given."""

        def loaded() -> list[ir.Value]:
            return [builder.load(place, typ=type_, align=align) for place in places]

        if self._start is None:
            return loaded()
        number: ir.Value = constant(dtype, self._start.number, type_.count)
        if self._first is None:
            return [number] * len(places)
        before = builder.block
        with builder.if_then(builder.not_(self._first), likely=False):
            sums, end = loaded(), builder.block
        found = [builder.phi(type_) for _ in sums]
        for phi, value in zip(found, sums, strict=True):
            phi.add_incoming(value, end)
            phi.add_incoming(number, before)
        return list[ir.Value](found)

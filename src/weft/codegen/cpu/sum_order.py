"""In which order a reduction combines the elements along its axis.

The bits of a sum of floats depend on it. A function that runs joined programs (`weft.transforms.join_programs`) must add up in
the order of the function that runs a program alone. So both have `ACCUMULATORS` accumulators, whether their registers are in a
loop or unrolled; a loop that only accumulates adds up each sum in one, and that to what it carries
(`weft.codegen.cpu.accumulate`). Each way to emit a reduction records its order, and the joined function is left out where they
differ (`weft.codegen.cpu.machine`).

    8 registers, 4 accumulators      ((r0 + r4) + (r1 + r5)) + ((r2 + r6) + (r3 + r7))
    8 registers, 8 accumulators      ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7))
    8 registers, 1 accumulator       (((r0 + r1) + r2) + ..) + r7
"""

from __future__ import annotations

from typing import Final, NamedTuple

from weft.codegen.cpu.loops import axis_bits
from weft.ir import tile
from weft.ir.types import layout_of

ACCUMULATORS: Final = 4
"""How many accumulators reductions of functions have that must have one order."""


class SumOrder(NamedTuple):
    """The order in which a reduction combines: so many registers along the axis, taken in turns by so many accumulators, which
    are combined in pairs. ``lanes``: how far each lane bit moves along the axis. ``iterations``: where the accumulators are kept
    throughout a loop, of how many iterations that are one the registers are; else 0."""

    registers: int
    accumulators: int
    lanes: tuple[int, ...]
    iterations: int = 0


def order_of(op: tile.ReduceOp, accumulators: int) -> SumOrder:
    """The order of a reduction with so many accumulators."""
    layout, axis = layout_of(op.sources[0]), op.axis.value.data
    below = sum(bits for _, bits in layout.outputs[axis + 1 :])
    along = (layout.shape[axis] - 1) << below
    lanes = tuple((column & along) >> below for column in layout.columns("lane") if column & along)
    return SumOrder(1 << len(axis_bits(layout, "register", axis)), accumulators, lanes)

"""Loops that fill a panel by rows: each row of the operand for all steps, before the next row.

    for each step:                               for each row that is wanted:
        for each row of the step's tile:             for each step:
            pack its columns             ->              pack its columns

A row of a step's tile is few lines of memory, and the next row is in another page. Processors prefetch along a row: packing a
4 MB matrix in tiles of 64 columns took 16 ns a line step by step, and 9 row by row. Rows that are not wanted are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from weft.codegen.cpu.loops import axis_bits
from weft.codegen.cpu.schedule import RegisterLoop, Schedule
from weft.ir import cpu
from weft.ir.types import is_tile, layout_of, shape_of

TOGETHER: Final = 32
"""Rows are packed in groups of so many: a multiplication takes at most so many at once (`weft.codegen.cpu.tile_product`)."""


@dataclass(frozen=True)
class Filling:
    """The rows that a loop fills: how many are wanted of how many, and the register bits that are a row's number."""

    wanted: SSAValue
    rows: int
    bits: tuple[int, ...]


def filling_of(loop: scf.ForOp, schedule: Schedule) -> Filling | None:
    """What a loop fills whose body has this schedule: it packs one tile into a panel by rows, and does nothing else. None for
    another loop."""
    loops = [item for item in schedule.items if isinstance(item, RegisterLoop)]
    scalars = [item for item in schedule.items if not isinstance(item, RegisterLoop)]
    if len(loops) != 1 or len(loops[0].roots) != 1 or loops[0].kept or schedule.buffered or loop.iter_args:
        return None
    (pack,) = loops[0].roots
    if not isinstance(pack, cpu.PackOp) or pack.geometry.width:
        return None
    if any(op.regions or any(map(is_tile, (*op.operands, *op.results))) for op in scalars):
        return None
    layout = layout_of(pack.value)
    return Filling(pack.size, shape_of(pack.value)[0], tuple(axis_bits(layout, "register", 0)))

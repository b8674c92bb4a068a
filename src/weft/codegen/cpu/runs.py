"""How the lanes of a register lie in memory.

They fall into runs whose addresses ascend by one element: as long as the layout walks one dimension and axis analysis knows the
pointers contiguous along it. Lanes that only duplicate others belong to the run of those.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.values import Registers
from weft.ir.types import layout_of
from weft.layout import Runs, runs_of

SHORTEST_RUN: Final = 4
"""Runs of at least this many elements are worth a vector access each."""


def runs(registers: Registers, pointer: SSAValue) -> Runs:
    """The runs of an access through a tile of pointers."""
    return runs_of(layout_of(pointer), registers.facts.axis[pointer].contiguity)


def mask_of(registers: Registers, mask: SSAValue | None, index: RegisterIndex) -> ir.Value | None:
    """The vector of a mask; None where there is none or it is known to be true."""
    if mask is None or mask in registers.true_masks:
        return None
    return registers.vector(mask, index)

"""How many lanes the registers of a kernel have: twice as many where it computes on bytes.

A register of 16 lanes is 64 bytes of float32, 32 of 16-bit integers, and 16 of bytes. Kernels that load and store bytes, and
compute on them in 8 and 16 bits (`weft.transforms.narrow_integers` sees to that), get registers of 32 lanes, which are loaded and
stored by half as many instructions. 64 lanes were no faster on Zen 4 (docs/benchmarks/indices.md).

Such a kernel has no loops, reductions or other ops whose cost grows with lanes, and its tiles have rows of two such registers.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from weft.ir import cpu, tile
from weft.ir.direct import operands_of, ops_in
from weft.ir.types import dtype_of, is_pointer, is_tile, shape_of

_WIDEST = 2
"""The bytes of an element that is computed from bytes."""


def lanes_for(function: func.FuncOp, lanes: int) -> int:
    """The lanes of a function's registers, on a machine of ``lanes``."""
    return 2 * lanes if _is_of_bytes(function, 2 * lanes) else lanes


def _is_of_bytes(function: func.FuncOp, lanes: int) -> bool:
    """Whether a function loads and stores rows of at least two registers of bytes, and computes on them in `_WIDEST` bytes."""
    data: set[SSAValue] = set()
    accesses = 0
    for op in ops_in(function):
        if isinstance(op, tile.LoadOp | tile.StoreOp):
            shape = shape_of(op.pointer)
            if not shape or shape[-1] < 2 * lanes or dtype_of(op.pointer).itemsize > 1:
                return False
            accesses += 1
        elif not _is_computed(op):
            return False
        if isinstance(op, tile.LoadOp) or any(operand in data for operand in operands_of(op)):
            data.update(op.results)
            if any(is_pointer(each) or dtype_of(each).itemsize > _WIDEST for each in op.results if is_tile(each)):
                return False
    return accesses > 0


def _is_computed(op: Operation) -> bool:
    """Whether an op computes elements, or moves none."""
    numbers = func.FuncOp | func.ReturnOp | tile.ProgramIdOp | cpu.PresentOp
    return isinstance(op, numbers) or any(tile.is_a(op, each) for each in (tile.Elementwise, tile.Generator, tile.View))

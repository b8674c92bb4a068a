"""Which dots a matrix instruction computes, and which threads compute by themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer, shape_of
from weft.target import GpuTarget


@dataclass(frozen=True)
class MatrixInstruction:
    """``mma.sync`` of M = 16, N = 8 and ``k``: the feature of the target that it needs, and PTX's names of the types."""

    k: int
    feature: str
    operand: str
    accumulator: str


MATRIX_INSTRUCTIONS: Final[Mapping[tuple[DType, DType], MatrixInstruction]] = {
    (dtypes.float16, dtypes.float32): MatrixInstruction(16, "mma.f16", "f16", "f32"),
    (dtypes.bfloat16, dtypes.float32): MatrixInstruction(16, "mma.bf16", "bf16", "f32"),
    (dtypes.int8, dtypes.int32): MatrixInstruction(32, "mma.i8", "s8", "s32"),
    (dtypes.uint8, dtypes.int32): MatrixInstruction(32, "mma.i8", "u8", "s32"),
    (dtypes.float8_e4m3fn, dtypes.float32): MatrixInstruction(32, "mma.f8", "e4m3", "f32"),
    (dtypes.float8_e5m2, dtypes.float32): MatrixInstruction(32, "mma.f8", "e5m2", "f32"),
}
"""By the types of the operands and of the accumulator (PTX ISA, "mma")."""

TF32: Final = MatrixInstruction(8, "mma.tf32", "tf32", "f32")


def instruction_of(op: tile.DotOp, target: GpuTarget) -> MatrixInstruction | None:
    """The matrix instruction that computes a dot; None where the target has none for its types, or the tile is smaller."""
    a, b, acc = (dtype_of(value) for value in (op.a, op.b, op.acc))
    if is_pointer(op.a) or a != b:
        return None
    found = MATRIX_INSTRUCTIONS.get((a, acc))
    if a == dtypes.float32 and acc == dtypes.float32 and op.input_precision.data == "tf32":
        found = TF32
    if found is None or not target.has(found.feature):
        return None
    return found if fits(op, found) else None


def fits(op: tile.DotOp, instruction: MatrixInstruction) -> bool:
    """Whether a dot is at least as large as the instruction in each dimension."""
    (m, k), (_, n) = shape_of(op.a), shape_of(op.b)
    return m >= 16 and n >= 8 and k >= instruction.k


@dataclass(frozen=True)
class DotScratch:
    """Both operands of a dot in shared memory, by rows: where the right one begins, and the bytes between rows.

    Rows of the left operand are 16 bytes longer than their elements. Threads that read one column of several rows then find
    them in different banks.
    """

    left_stride: int
    right: int
    right_stride: int
    bytes: int


def dot_scratch(op: tile.DotOp) -> DotScratch:
    """The scratch of a dot without a matrix instruction."""
    (rows, depth), (_, columns) = shape_of(op.a), shape_of(op.b)
    left = -(-depth * dtype_of(op.a).itemsize // 16) * 16 + 16
    right = -(-columns * dtype_of(op.b).itemsize // 16) * 16
    return DotScratch(left, rows * left, right, rows * left + depth * right)

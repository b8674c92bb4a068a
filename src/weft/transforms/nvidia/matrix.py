"""Which dots a matrix instruction computes, and which threads compute by themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from xdsl.ir import Block

from weft import dtypes
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer, shape_of
from weft.target import GpuTarget


@dataclass(frozen=True)
class MatrixShape:
    """A shape of ``mma.sync``: M and K (N is 8), the feature of a target that it needs, and the clocks it takes. From compute
    capability ``until`` on it is not used.

    A multiprocessor of an A100 computes 1,024 products of float16 a clock, twice as many of 8 bits, half as many of tf32, and 64
    of float64; that of an H100 computes 128 of float64 (white papers).
    """

    m: int
    k: int
    feature: str
    clocks: float = 2.0
    until: int | None = None


@dataclass(frozen=True)
class MatrixFamily:
    """Types that ``mma.sync`` multiplies: each operand is one of ``operands``. Of the shapes the first that fits is taken."""

    operands: Sequence[DType]
    accumulators: Sequence[DType]
    shapes: Sequence[MatrixShape]


MATRIX_FAMILIES: Final = (
    MatrixFamily(
        (dtypes.float16,),
        (dtypes.float16, dtypes.float32),
        [MatrixShape(16, 16, "mma.f16"), MatrixShape(16, 8, "mma.f16", 1.0)],
    ),
    MatrixFamily(
        (dtypes.bfloat16,), (dtypes.float32,), [MatrixShape(16, 16, "mma.bf16"), MatrixShape(16, 8, "mma.bf16", 1.0)]
    ),
    MatrixFamily(
        (dtypes.int8, dtypes.uint8),
        (dtypes.int32,),
        [MatrixShape(16, 32, "mma.i8"), MatrixShape(16, 16, "mma.i8", 1.0)],
    ),
    MatrixFamily(
        (dtypes.float8_e4m3fn, dtypes.float8_e5m2), (dtypes.float32,), [MatrixShape(16, 32, "mma.f8", until=90)]
    ),
    MatrixFamily(
        (dtypes.float64,),
        (dtypes.float64,),
        [
            MatrixShape(16, 8, "mma.m16.f64", 8.0),
            MatrixShape(16, 4, "mma.m16.f64", 4.0),
            MatrixShape(8, 4, "mma.f64", 4.0),
        ],
    ),
)
"""What ``mma.sync`` multiplies and sums (PTX ISA, "mma"). Shapes of one family are in order of preference. There is no m16n8k16
of float64: it takes 24 registers for operands, and ptxas spills for it where it does not for two m16n8k8. ``sm_90`` has no
machine instruction for float8: ptxas makes two of float16, four conversions and four additions of each. Operands that are
float16 before are converted once, by one instruction for two elements."""

TF32: Final = MatrixFamily(
    (dtypes.float32,), (dtypes.float32,), [MatrixShape(16, 8, "mma.tf32"), MatrixShape(16, 4, "mma.tf32", 1.0)]
)
"""Only where the kernel permits it."""

_PTX_NAMES: Final[Mapping[DType, str]] = {
    dtypes.float16: "f16",
    dtypes.bfloat16: "bf16",
    dtypes.float64: "f64",
    dtypes.int8: "s8",
    dtypes.uint8: "u8",
    dtypes.float8_e4m3fn: "e4m3",
    dtypes.float8_e5m2: "e5m2",
    dtypes.int32: "s32",
}


@dataclass(frozen=True)
class MatrixInstruction:
    """``mma.sync`` of a shape for the types of two operands and of the sums."""

    shape: MatrixShape
    left: DType
    right: DType
    sums: DType

    @property
    def m(self) -> int:
        """Rows of the left operand."""
        return self.shape.m

    @property
    def k(self) -> int:
        """Products of a sum."""
        return self.shape.k

    @property
    def per_register(self) -> int:
        """Elements of the operands in a register of 32 bits; of 64 bits for float64."""
        return max(1, 32 // self.left.bits)

    @property
    def name(self) -> str:
        """As PTX spells it."""
        left, right = ("tf32" if d == dtypes.float32 else _PTX_NAMES[d] for d in (self.left, self.right))
        sums = "f32" if self.sums == dtypes.float32 else _PTX_NAMES[self.sums]
        return f"mma.sync.aligned.m{self.m}n8k{self.k}.row.col.{sums}.{left}.{right}.{sums}"


def instruction_of(op: tile.DotOp, target: GpuTarget) -> MatrixInstruction | None:
    """The matrix instruction that computes a dot; None where the target has none for its types, or the tile is smaller."""
    if is_pointer(op.a):
        return None
    a, b, sums = (dtype_of(value) for value in (op.a, op.b, op.acc))
    family = family_of(a, b, sums, tf32=op.input_precision.data == "tf32")
    shape = None if family is None else shape_for(op, family, target)
    return None if shape is None else MatrixInstruction(shape, a, b, sums)


def family_of(a: DType, b: DType, sums: DType, *, tf32: bool = False) -> MatrixFamily | None:
    """The family of two operands and their sums."""
    for family in (*MATRIX_FAMILIES, TF32) if tf32 else MATRIX_FAMILIES:
        if a in family.operands and b in family.operands and sums in family.accumulators:
            return family
    return None


def matrix_dots(block: Block, target: GpuTarget) -> dict[tile.DotOp, MatrixInstruction]:
    """The dots directly in a block that matrix instructions compute, in their order."""
    dots = [op for op in block.ops if isinstance(op, tile.DotOp)]
    return {op: found for op in dots if (found := instruction_of(op, target)) is not None}


def shape_for(op: tile.DotOp, family: MatrixFamily, target: GpuTarget) -> MatrixShape | None:
    """The first shape of a family that the target has and that is not larger than a dot in any dimension."""
    (m, k), (_, n) = shape_of(op.a), shape_of(op.b)
    for shape in family.shapes:
        used = target.has(shape.feature) and (shape.until is None or target.sm < shape.until)
        if used and m >= shape.m and n >= 8 and k >= shape.k:
            return shape
    return None


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

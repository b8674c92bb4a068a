"""The layout rules of an NVIDIA GPU: accesses are coalesced, dots are matrix instructions, conversions have plans.

Tiles that nothing decides are laid out as for a row-major access. A dot whose types a matrix instruction takes gets its
fragments (`weft.layout.nvidia_mma`); any other is computed by each thread for its own results, from operands in shared memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from weft.ir import tile
from weft.ir.types import dtype_of, shape_of
from weft.layout import (
    LinearLayout,
    blocked,
    coalesced,
    nvidia_mma,
    nvidia_mma_operand,
    plan_conversion,
)
from weft.target import GpuTarget, gpu
from weft.transforms.layouts.assign import AssignLayouts
from weft.transforms.layouts.preferences import Preferences, contiguity
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts
from weft.transforms.nvidia.matrix import instruction_of

LANES = 32


@dataclass(frozen=True)
class ThreadRules(Preferences):
    """Rules for blocks of ``warps`` on a GPU; see the module and `LayoutRules`."""

    machine = "a GPU"

    target: GpuTarget
    warps: int

    def default(self, shape: Sequence[int]) -> LinearLayout:
        """Row-major, elements of 32 bits in vectors of 128."""
        return coalesced(shape, 32, self.warps)

    def anchor(self, pointer: SSAValue, facts: LayoutFacts) -> LinearLayout:
        """Vectors along the dimension in which the pointers are most contiguous; where they are not at all, their own."""
        shape = shape_of(pointer)
        runs = contiguity(pointer, facts)
        if max(runs) == 1 and facts.weights[pointer]:
            return facts.layouts[pointer]
        order = sorted(range(len(shape)), key=lambda d: (-runs[d], -d))
        bits = 8 * dtype_of(pointer).itemsize
        info = facts.axis.get(pointer)
        alignment = bits // 8 if info is None else max(bits // 8, info.divisibility[order[0]])
        return coalesced(shape, bits, self.warps, order, runs[order[0]], min(alignment, 16))

    def suits(self, own: LinearLayout, anchor: LinearLayout) -> bool:
        """Whether it is the anchor, or has one element in all."""
        return own == anchor or not prod(own.shape) > 1

    def dot(self, op: tile.DotOp) -> Sequence[OperandLayouts]:
        """The fragments of the matrix instruction; without one, operands as they are loaded."""
        a, b, result = (shape_of(value) for value in (op.a, op.b, op.result))
        if instruction_of(op, self.target) is not None:
            warps = warp_grid(result, self.warps)
            width = 32 // dtype_of(op.a).bits
            left, right = (
                nvidia_mma_operand(shape, index, width, 2, warps, (16, 8)) for index, shape in enumerate((a, b))
            )
            sums = nvidia_mma(result, 2, warps, (16, 8))
            return [OperandLayouts((left, right, sums), (sums,))]
        sums = blocked(result, (1, 1), (LANES // 8, 8), (self.warps, 1), (1, 0))
        return [OperandLayouts((self.default(a), self.default(b), sums), (sums,))]

    def op_cost(self, op: Operation, chosen: OperandLayouts, facts: LayoutFacts) -> float:
        """Not asked: there is one candidate for each op."""
        return 0.0

    def conversion_cost(self, source: LinearLayout, destination: LinearLayout, bits: int) -> float:
        """The price of the plan."""
        return plan_conversion(source, destination, bits, self.target.model).price


@dataclass(frozen=True)
class AssignThreadLayouts(ModulePass):
    """Gives every tensor type a layout, from ``register``, ``lane`` and ``warp`` to its dimensions, for blocks of ``warps`` on a
    GPU. This is `AssignLayouts` with options that ``weft opt`` can spell."""

    name = "assign-thread-layouts"

    target: str = "sm_90"
    warps: int = 4

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        AssignLayouts(ThreadRules(gpu(self.target), self.warps)).apply(ctx, op)


def warp_grid(shape: Sequence[int], warps: int) -> tuple[int, int]:
    """How warps divide a result of (M, N): whoever has more tiles left is divided."""
    rows, columns = 1, 1
    while rows * columns < warps:
        if shape[0] // rows // 16 >= shape[1] // columns // 8:
            rows *= 2
        else:
            columns *= 2
    return rows, columns

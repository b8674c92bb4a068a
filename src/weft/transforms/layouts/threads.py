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

from weft.ir import gpu, tile
from weft.ir.types import dtype_of, is_tile, shape_of
from weft.layout import (
    LinearLayout,
    blocked,
    coalesced,
    expand_dims,
    plan_conversion,
    reduce,
)
from weft.layout.planning.bounds import least_conversion
from weft.target import GpuTarget
from weft.target import gpu as target_of
from weft.transforms.layouts.assign import AssignLayouts
from weft.transforms.layouts.preferences import Preferences, layouts, same
from weft.transforms.layouts.rearranged import flips, join_of, join_to, split_of, split_to
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts
from weft.transforms.layouts.thread_accesses import accessed
from weft.transforms.layouts.thread_dots import chained, fragments, warp_grid
from weft.transforms.layouts.thread_prices import FRAGMENTS, issued_permutes, op_price, spilled
from weft.transforms.layouts.thread_proposals import (
    access_layouts,
    element_bytes,
    gather_layouts,
    grown,
    joint_layouts,
    reduction_layouts,
    scattered,
)
from weft.transforms.nvidia.matrix import instruction_of
from weft.transforms.nvidia.scratch import element_bits

LANES = 32
WANTED = 2
"""Results of a reduction that are tried with all of its sources."""
ACCESSES = (tile.LoadOp, tile.StoreOp, tile.AtomicRmwOp, tile.AtomicCasOp)


@dataclass(frozen=True)
class ThreadRules(Preferences):
    """Rules for blocks of ``warps`` on a GPU; see the module and `LayoutRules`."""

    machine = "a GPU"

    target: GpuTarget
    warps: int

    def default(self, shape: Sequence[int]) -> LinearLayout:
        """Row-major, elements of 32 bits in vectors of 128."""
        return coalesced(shape, 32, self.warps)

    def candidates(self, op: Operation, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        """The preferred layouts. A copy into a buffer is laid out as a load, what is stored in a buffer as it is, a gather's
        result as its index, a scan's results as its heaviest source; a histogram takes its source as it is."""
        if isinstance(op, gpu.AsyncCopyOp):
            # A copy is of 4 bytes at least, best of 16: of a small tile some threads copy nothing.
            held = prod(shape_of(op.pointer)) * dtype_of(op.pointer).itemsize
            return [same(op, self.anchor(op.pointer, facts, max(1, 16 * LANES * self.warps // held)))]
        if isinstance(op, gpu.LocalStoreOp):
            return [same(op, facts.layouts[op.value])]
        if isinstance(op, tile.GatherOp):
            index = facts.layouts[op.index]
            return [OperandLayouts((facts.layouts[op.source], index), (index,))]
        if isinstance(op, tile.ScanOp):
            return [same(op, facts.layouts[facts.heaviest(op.sources)])]
        if isinstance(op, tile.HistogramOp):
            return [layouts(op, facts.layouts[op.source], self.default(shape_of(op.result)))]
        return super().candidates(op, facts)

    def anchor(self, pointer: SSAValue, facts: LayoutFacts, copies: int = 1) -> LinearLayout:
        """See `thread_accesses.accessed`."""
        return accessed(pointer, facts, self.warps, copies)

    def suits(self, own: LinearLayout, anchor: LinearLayout) -> bool:
        """Whether it is the anchor, or has one element in all."""
        return own == anchor or not prod(own.shape) > 1

    def dot(self, op: tile.DotOp, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        """The fragments of the matrix instruction; without one, operands as they are loaded.

        Bytes of a right operand that lies in memory by rows come in pairs of neighbouring columns. Such a pair is of two tiles of
        the instruction: both read it with the transposing ``ldmatrix`` and take a byte each (`pair_columns`).
        """
        a, b, result = (shape_of(value) for value in (op.a, op.b, op.result))
        if (found := instruction_of(op, self.target)) is not None:
            grid = warp_grid(result, self.warps, found.m, whole_rows=chained(op))
            return [fragments(op, found, grid, facts)]
        sums = blocked(result, (1, 1), (LANES // 8, 8), (self.warps, 1), (1, 0))
        return [OperandLayouts((self.default(a), self.default(b), sums), (sums,))]

    def op_cost(self, op: Operation, chosen: OperandLayouts, facts: LayoutFacts) -> float:
        """Clocks; see `thread_prices`."""
        return op_price(op, chosen, facts, facts.free, self.target)

    def least_cost(self, op: Operation, chosen: OperandLayouts, facts: LayoutFacts) -> float:
        """`op_cost`, of a reduction the least of any plan."""
        return op_price(op, chosen, facts, facts.free, self.target, exact=False)

    def conversion_cost(self, source: LinearLayout, destination: LinearLayout, bits: int) -> float:
        """The price of the plan, and of issuing its permutes: a kernel's other instructions do not let them hide."""
        plan = plan_conversion(source, destination, bits, self.target.model)
        return plan.price + issued_permutes(plan.cost.permutes, self.warps)

    def least_conversion(self, source: LinearLayout, destination: LinearLayout, bits: int) -> float:
        """By `weft.layout.planning.bounds`."""
        least = least_conversion(source, destination, bits, self.target.model)
        return least.price + issued_permutes(least.permutes, self.warps)

    def bits(self, value: SSAValue) -> int:
        """A bool travels as a byte, a pointer as 64 bits."""
        return element_bits(value)

    def spills(self, words: int) -> float:
        """See `thread_prices.spilled`."""
        return spilled(words + FRAGMENTS, self.warps, self.target.model)

    def spells(self, op: Operation | None) -> int:
        """Dots, whose emission takes a tile's sums from registers in a row; then what walks memory; then others."""
        return 0 if isinstance(op, tile.DotOp) else 1 if isinstance(op, ACCESSES) else 2

    def proposals(self, op: Operation, preferred: OperandLayouts, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        """See `thread_proposals`."""
        match op:
            case tile.LoadOp() | tile.StoreOp() | tile.AtomicRmwOp() | tile.AtomicCasOp():
                return [same(op, layout) for layout in access_layouts(op, self.warps, facts)]
            case tile.ReduceOp() if preferred.operands[0] is not None:
                found = reduction_layouts(preferred.operands[0], op.axis.value.data)
                return [_reduced(op, layout) for layout in found]
            case tile.DotOp() if (found := instruction_of(op, self.target)) is not None:
                rows = [1 << bit for bit in range(self.warps.bit_length())]
                return [fragments(op, found, (count, self.warps // count), facts) for count in rows]
            case tile.GatherOp():
                return [_gathered(op, layout) for layout in gather_layouts(op, self.warps)]
            case _:
                return []

    def with_operand(self, op: Operation, index: int, layout: LinearLayout) -> Sequence[OperandLayouts]:
        """Accesses, prints and elementwise ops take any layout, and so does a reduction."""
        if isinstance(op, (*ACCESSES, tile.PrintOp, tile.AssemblyOp)) or tile.is_a(op, tile.Elementwise):
            return [same(op, layout)]
        if isinstance(op, tile.GatherOp) and shape_of(op.source) == shape_of(op.index):
            return [_gathered(op, (layout, layout))]
        if isinstance(op, tile.HistogramOp):
            return [layouts(op, layout, self.default(shape_of(op.result)))]
        if isinstance(op, tile.JoinOp):
            return [join_of(layout)]
        if isinstance(op, tile.SplitOp):
            return [split_of(layout)] if 1 in layout.columns("register") else []
        if isinstance(op, tile.FlipOp):
            return [same(op, layout)] if flips(op, layout) else []
        if not isinstance(op, tile.ReduceOp):
            return []
        plain = _reduced(op, layout)
        result = plain.results[0]
        return [plain] if result is None else [plain, layouts(op, layout, scattered(result))]

    def with_result(self, op: Operation, preferred: OperandLayouts, layout: LinearLayout) -> Sequence[OperandLayouts]:
        """As `with_operand`. The source of a reduction has the axis in registers, or in the copies of the result, or has the
        preferred layout."""
        if isinstance(op, (*ACCESSES, tile.AssemblyOp)) or tile.is_a(op, tile.Elementwise):
            return [same(op, layout)]
        if isinstance(op, tile.GatherOp) and shape_of(op.source) == shape_of(op.index):
            return [_gathered(op, (layout, layout))]
        if isinstance(op, tile.HistogramOp) and preferred.operands[0] is not None:
            return [layouts(op, preferred.operands[0], layout)]
        if isinstance(op, tile.JoinOp):
            return join_to(layout)
        if isinstance(op, tile.SplitOp):
            return [split_to(layout)]
        if isinstance(op, tile.FlipOp):
            return [same(op, layout)] if flips(op, layout) else []
        if not isinstance(op, tile.ReduceOp) or preferred.operands[0] is None:
            return []
        grew = grown(expand_dims(layout, op.axis.value.data), shape_of(op.sources[0]))
        return [*(_reduced(op, source) for source in grew), layouts(op, preferred.operands[0], layout)]

    def combined(self, op: Operation, found: Sequence[OperandLayouts]) -> Sequence[OperandLayouts]:
        """Each source of a reduction with each of the first results that readers want."""
        if not isinstance(op, tile.ReduceOp) or not is_tile(op.results_[0]):
            return []
        axis = op.axis.value.data
        pairs = [(each.operands[0], each.results[0]) for each in found]
        wanted = [
            out for source, out in pairs if source is not None and out is not None and out != reduce(source, axis)
        ]
        sources = dict.fromkeys(source for source, _ in pairs if source is not None)
        return [layouts(op, source, out) for out in list(dict.fromkeys(wanted))[:WANTED] for source in sources]

    def joint(self, op: Operation, own: OperandLayouts, other: OperandLayouts) -> Sequence[OperandLayouts]:
        """Vectors and sectors of both, in registers and lanes."""
        mine, theirs = own.operands[0], other.operands[0]
        if not isinstance(op, ACCESSES) or mine is None or theirs is None:
            return []
        return [same(op, layout) for layout in joint_layouts(mine, theirs, element_bytes(op))]

    def given(self, path: Sequence[tile.ShapeOp], layout: LinearLayout) -> Sequence[LinearLayout]:
        """A broadcast puts new elements in registers, or first where lanes and warps hold copies."""
        found = [layout]
        for op in path:
            if isinstance(op, tile.BroadcastOp):
                found = [each for layout in found for each in grown(layout, shape_of(op.result))]
            else:
                found = [op.result_layout(layout) for layout in found]
        return found


@dataclass(frozen=True)
class AssignThreadLayouts(ModulePass):
    """Gives every tensor type a layout, from ``register``, ``lane`` and ``warp`` to its dimensions, for blocks of ``warps`` on a
    GPU. This is `AssignLayouts` with options that ``weft opt`` can spell."""

    name = "assign-thread-layouts"

    target: str = "sm_90"
    warps: int = 4
    solve: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        AssignLayouts(ThreadRules(target_of(self.target), self.warps), self.solve).apply(ctx, op)


def _reduced(op: tile.ReduceOp, source: LinearLayout) -> OperandLayouts:
    """A reduction whose results stay where they come about."""
    return layouts(op, source, reduce(source, op.axis.value.data))


def _gathered(op: tile.GatherOp, chosen: tuple[LinearLayout, LinearLayout]) -> OperandLayouts:
    """A gather from a source in the first layout; indices and result are in the second."""
    return OperandLayouts(chosen, (chosen[1],))

"""The layout rules of a CPU: a register is a vector of lanes, and conversions are shuffles.

The candidates are those of `preferences`. Prices count vector instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from weft.ir import tile
from weft.ir.assembly import needs_gpu
from weft.ir.types import shape_of
from weft.layout import LinearLayout, plan_conversion, runs_of, vector, vector_machine
from weft.transforms.layouts.assign import AssignLayouts
from weft.transforms.layouts.byte_lanes import lanes_for
from weft.transforms.layouts.preferences import Preferences, contiguity, layouts, same
from weft.transforms.layouts.rearranged import split_of, split_to
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts


@lru_cache(maxsize=1024)
def _vector(shape: tuple[int, ...], lanes: int, order: tuple[int, ...] | None = None) -> LinearLayout:
    """`vector`, made once: most tiles of a kernel have the same layout."""
    return vector(shape, lanes, order)


def lanes_in_a_row(layout: LinearLayout, axis: int) -> bool:
    """Whether a register's elements along ``axis`` are neighbours: registers move it further than lanes do."""
    below = sum(bits for _, bits in layout.outputs[axis + 1 :])
    along = (layout.shape[axis] - 1) << below
    lanes, registers = ([c for c in layout.columns(dim) if c & along] for dim in ("lane", "register"))
    return max(lanes, default=0) < min(registers, default=1 << layout.out_bits)


@dataclass(frozen=True)
class VectorRules(Preferences):
    """Rules for vectors of ``lanes`` elements; see the module and `LayoutRules`."""

    machine = "a CPU"

    lanes: int

    def default(self, shape: Sequence[int]) -> LinearLayout:
        """Row-major vectors."""
        return _vector(tuple(shape), self.lanes)

    def candidates(self, op: Operation, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        """The preferred layouts. A gather's result is as its index. A scan's tensors are as the heaviest source, if its lanes
        hold elements in a row along the axis."""
        if isinstance(op, tile.AssemblyOp):
            raise needs_gpu(op)
        if isinstance(op, tile.GatherOp):
            index = facts.layouts[op.index]
            return [OperandLayouts((facts.layouts[op.source], index), (index,))]
        if isinstance(op, tile.HistogramOp):
            return [layouts(op, facts.layouts[op.source], self.default(shape_of(op.result)))]
        if isinstance(op, tile.ScanOp):
            layout = facts.layouts[facts.heaviest(op.sources)]
            return [same(op, layout if lanes_in_a_row(layout, op.axis.value.data) else self.default(layout.shape))]
        return super().candidates(op, facts)

    def anchor(self, pointer: SSAValue, facts: LayoutFacts) -> LinearLayout:
        """The layout whose lanes walk the dimension along which the pointers are most contiguous; where they are not at
        all, the pointers' own."""
        shape = shape_of(pointer)
        runs = contiguity(pointer, facts)
        if max(runs) == 1 and facts.weights[pointer]:
            return facts.layouts[pointer]
        order = sorted(range(len(shape)), key=lambda d: (-min(runs[d], self.lanes), -d))
        return _vector(shape, self.lanes, tuple(order))

    def suits(self, own: LinearLayout, anchor: LinearLayout) -> bool:
        """Whether its lanes walk memory as the anchor's do, or hold one element each."""
        lanes = own.columns("lane")
        return lanes == anchor.columns("lane") or not any(lanes)

    def dot(self, op: tile.DotOp, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        """Two candidates: the first operand by rows or by columns."""
        a, b, result = (shape_of(value) for value in (op.a, op.b, op.result))
        right, sums = self.default(b), self.default(result)
        by_rows, by_columns = self.default(a), vector(a, self.lanes, (0, 1))
        return [OperandLayouts((left, right, sums), (sums,)) for left in (by_rows, by_columns)]

    def split(self, op: tile.SplitOp, facts: LayoutFacts) -> OperandLayouts:
        """Pairs in registers stay; pairs in lanes are taken apart into row-major halves."""
        source = facts.layouts[op.source]
        return split_of(source) if 1 in source.columns("register") else split_to(self.default(shape_of(op.first)))

    def op_cost(self, op: Operation, chosen: OperandLayouts, facts: LayoutFacts) -> float:
        """Vector instructions: one for each different register of the widest tile, and for an access as many as its lanes
        fall into runs of consecutive addresses."""
        layouts = [layout for layout in (*chosen.operands, *chosen.results) if layout is not None]
        registers = max((1 << sum(map(bool, layout.columns("register"))) for layout in layouts), default=0)
        if not tile.is_access(op) or chosen.operands[0] is None:
            return registers
        return registers * len(runs_of(chosen.operands[0], contiguity(op.pointer, facts)).starts)

    def conversion_cost(self, source: LinearLayout, destination: LinearLayout, bits: int) -> float:
        """The price of the plan."""
        return plan_conversion(source, destination, bits, vector_machine(self.lanes)).price


@dataclass(frozen=True)
class AssignVectorLayouts(ModulePass):
    """Gives every tensor type a layout, from ``register`` and ``lane`` (of ``lanes``, twice as many in functions of bytes:
    `weft.transforms.layouts.byte_lanes`) to its dimensions. This is `AssignLayouts` for a CPU, with an option that ``weft opt``
    can spell."""

    name = AssignLayouts.name

    lanes: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if isinstance(function, func.FuncOp):
                AssignLayouts(VectorRules(lanes_for(function, self.lanes))).assign(function)

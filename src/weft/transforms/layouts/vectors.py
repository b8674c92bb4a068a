"""The layout rules of a CPU: a register is a vector of lanes, and conversions are shuffles.

The candidates follow rules 1 to 3 of `weft.transforms.layouts.assign`. Prices count vector
instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from weft.ir import tile
from weft.ir.types import is_tile, shape_of
from weft.ir.unsupported import UnsupportedOpError
from weft.layout import LinearLayout, plan_conversion, reduce, runs_of, vector, vector_machine
from weft.transforms.layouts.assign import AssignLayouts
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts


@lru_cache(maxsize=1024)
def _vector(shape: tuple[int, ...], lanes: int, order: tuple[int, ...] | None = None) -> LinearLayout:
    """`vector`, made once: most tiles of a kernel have the same layout."""
    return vector(shape, lanes, order)


@dataclass(frozen=True)
class VectorRules:
    """Rules for vectors of ``lanes`` elements; see the module and `LayoutRules`."""

    lanes: int

    def candidates(self, op: Operation, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        """The preferred layouts; for a dot two, with the first operand by rows or by columns."""
        match op:
            case _ if tile.is_a(op, tile.Generator):
                return [_same(op, self.default(shape_of(op.results[0])))]
            case _ if tile.is_a(op, tile.Elementwise):
                tiles = [value for value in op.operands if is_tile(value)]
                return [_same(op, facts.layouts[facts.heaviest(tiles)])]
            case tile.LoadOp():
                return [_same(op, self.anchor(op.pointer, facts))]
            case tile.StoreOp() | tile.AtomicRmwOp() | tile.AtomicCasOp():
                return [_same(op, self._access(op.pointer, op.value, facts))]
            case tile.DotOp():
                return self._dot(op)
            case tile.ReduceOp():
                source = facts.layouts[facts.heaviest(op.sources)]
                reduced = reduce(source, op.axis.value.data)
                return [_layouts(op, source, reduced)]
            case tile.ShapeOp():
                return [self._shape(op, facts)]
            case tile.ConvertLayoutOp():
                raise UnsupportedOpError(op, "stands in the module before layouts are assigned")
            case _:
                raise UnsupportedOpError(op, "has no rule that gives its tiles layouts on a CPU")

    def default(self, shape: Sequence[int]) -> LinearLayout:
        """Row-major vectors."""
        return _vector(tuple(shape), self.lanes)

    def anchor(self, pointer: SSAValue, facts: LayoutFacts) -> LinearLayout:
        """The layout whose lanes walk the dimension along which the pointers are most contiguous; where they are not at
        all, the pointers' own."""
        shape = shape_of(pointer)
        runs = _contiguity(pointer, facts)
        if max(runs) == 1 and facts.weights[pointer]:
            return facts.layouts[pointer]
        order = sorted(range(len(shape)), key=lambda d: (-min(runs[d], self.lanes), -d))
        return _vector(shape, self.lanes, tuple(order))

    def _access(self, pointer: SSAValue, value: SSAValue, facts: LayoutFacts) -> LinearLayout:
        """The layout in which to write ``value``: its own if its lanes suit the memory (or hold one element each), else
        the anchor."""
        anchor = self.anchor(pointer, facts)
        if not facts.weights[value]:
            return anchor
        own = facts.layouts[value]
        lanes = own.columns("lane")
        return own if lanes == anchor.columns("lane") or not any(lanes) else anchor

    def _dot(self, op: tile.DotOp) -> list[OperandLayouts]:
        a, b, result = (shape_of(value) for value in (op.a, op.b, op.result))
        right, sums = self.default(b), self.default(result)
        by_rows, by_columns = self.default(a), vector(a, self.lanes, (0, 1))
        return [OperandLayouts((left, right, sums), (sums,)) for left in (by_rows, by_columns)]

    def _shape(self, op: tile.ShapeOp, facts: LayoutFacts) -> OperandLayouts:
        """Carried where something is to carry; else, or where the tile grows, the default."""
        shape = shape_of(op.result)
        grown = isinstance(op, tile.BroadcastOp) and shape != shape_of(op.source)
        if grown or not shape_of(op.source) or not facts.weights[op.source]:
            layout = self.default(shape)
        else:
            layout = op.result_layout(facts.layouts[op.source])
        return OperandLayouts((op.source_layout(layout) if shape_of(op.source) else None,), (layout,))

    def op_cost(self, op: Operation, chosen: OperandLayouts, facts: LayoutFacts) -> float:
        """Vector instructions: one for each different register of the widest tile, and for an access as many as its lanes
        fall into runs of consecutive addresses."""
        layouts = [layout for layout in (*chosen.operands, *chosen.results) if layout is not None]
        registers = max((1 << sum(map(bool, layout.columns("register"))) for layout in layouts), default=0)
        if not tile.is_access(op) or chosen.operands[0] is None:
            return registers
        return registers * len(runs_of(chosen.operands[0], _contiguity(op.pointer, facts)).starts)

    def conversion_cost(self, source: LinearLayout, destination: LinearLayout, bits: int) -> float:
        """The price of the plan."""
        return plan_conversion(source, destination, bits, vector_machine(self.lanes)).price


@dataclass(frozen=True)
class AssignVectorLayouts(ModulePass):
    """Gives every tensor type a layout, from ``register`` and ``lane`` (of ``lanes``) to its dimensions. This is `AssignLayouts`
    for a CPU, with an option that ``weft opt`` can spell."""

    name = AssignLayouts.name

    lanes: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        AssignLayouts(VectorRules(self.lanes)).apply(ctx, op)


def _contiguity(pointer: SSAValue, facts: LayoutFacts) -> list[int]:
    """How many pointers in a row, along each dimension, address neighbouring elements."""
    shape = shape_of(pointer)
    info = facts.axis.get(pointer)
    return [1] * len(shape) if info is None else [min(c, n) for c, n in zip(info.contiguity, shape, strict=True)]


def _same(op: Operation, layout: LinearLayout) -> OperandLayouts:
    """One layout for all tiles of an op."""
    return _layouts(op, layout, layout)


def _layouts(op: Operation, operands: LinearLayout, results: LinearLayout) -> OperandLayouts:
    return OperandLayouts(
        tuple([operands if is_tile(value) else None for value in op.operands]),
        tuple([results if is_tile(value) else None for value in op.results]),
    )

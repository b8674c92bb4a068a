"""What the layout rules of all machines have in common: a preference for each class of ops.

The candidates follow rules 1 to 3 of `weft.transforms.layouts.assign`. A machine says which layout walks memory well (`anchor`),
which one a tile has that nothing else decides (`default`), and what its dot takes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from xdsl.ir import Operation, SSAValue

from weft.ir import tile
from weft.ir.types import is_tile, shape_of
from weft.ir.unsupported import UnsupportedOpError
from weft.layout import LinearLayout, reduce
from weft.transforms.layouts.rearranged import flip_of, join_of, split_of
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts


class Preferences(ABC):
    """Candidates by preference; see `LayoutRules`. ``machine`` is named in messages."""

    machine: ClassVar[str]

    @abstractmethod
    def default(self, shape: Sequence[int]) -> LinearLayout:
        """The layout of a tile that nothing else decides."""

    @abstractmethod
    def anchor(self, pointer: SSAValue, facts: LayoutFacts) -> LinearLayout:
        """The layout in which memory is accessed through ``pointer``."""

    @abstractmethod
    def suits(self, own: LinearLayout, anchor: LinearLayout) -> bool:
        """Whether a value may be stored under its ``own`` layout."""

    @abstractmethod
    def dot(self, op: tile.DotOp, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        """The layouts of a dot."""

    def candidates(self, op: Operation, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        """The preferred layouts."""
        match op:
            case _ if tile.is_a(op, tile.Generator):
                return [same(op, self.default(shape_of(op.results[0])))]
            case _ if tile.is_a(op, tile.Elementwise):
                tiles = [value for value in op.operands if is_tile(value)]
                return [same(op, facts.layouts[facts.heaviest(tiles)])]
            case tile.LoadOp():
                return [same(op, self.anchor(op.pointer, facts))]
            case tile.StoreOp() | tile.AtomicRmwOp() | tile.AtomicCasOp():
                return [same(op, self._access(op.pointer, op.value, facts))]
            case tile.DotOp():
                return self.dot(op, facts)
            case tile.AssemblyOp():
                return [same(op, facts.layouts[facts.heaviest(op.sources)])]
            case tile.PrintOp():
                return [layouts(op, facts.layouts[op.operands[0]], facts.layouts[op.operands[0]])]
            case tile.ReduceOp():
                source = facts.layouts[facts.heaviest(op.sources)]
                return [layouts(op, source, reduce(source, op.axis.value.data))]
            case tile.ShapeOp():
                return [self._shape(op, facts)]
            case tile.JoinOp():
                return [join_of(facts.layouts[facts.heaviest((op.lhs, op.rhs))])]
            case tile.SplitOp():
                return [self.split(op, facts)]
            case tile.FlipOp():
                return [flip_of(op, facts.layouts[op.source])]
            case tile.ConvertLayoutOp():
                raise UnsupportedOpError(op, "stands in the module before layouts are assigned")
            case _:
                raise UnsupportedOpError(op, f"has no rule that gives its tiles layouts on {self.machine}")

    def split(self, op: tile.SplitOp, facts: LayoutFacts) -> OperandLayouts:
        """The layouts of a split."""
        return split_of(facts.layouts[op.source])

    def _access(self, pointer: SSAValue, value: SSAValue, facts: LayoutFacts) -> LinearLayout:
        """The layout in which to write ``value``: its own if that suits the memory, else the anchor."""
        anchor = self.anchor(pointer, facts)
        if not facts.weights[value]:
            return anchor
        own = facts.layouts[value]
        return own if self.suits(own, anchor) else anchor

    def _shape(self, op: tile.ShapeOp, facts: LayoutFacts) -> OperandLayouts:
        """Carried where something is to carry; else, or where the tile grows, the default."""
        shape = shape_of(op.result)
        grown = isinstance(op, tile.BroadcastOp) and shape != shape_of(op.source)
        if grown or not shape_of(op.source) or not facts.weights[op.source]:
            layout = self.default(shape)
        else:
            layout = op.result_layout(facts.layouts[op.source])
        return OperandLayouts((op.source_layout(layout) if shape_of(op.source) else None,), (layout,))


def contiguity(pointer: SSAValue, facts: LayoutFacts) -> list[int]:
    """How many pointers in a row, along each dimension, address neighbouring elements."""
    shape = shape_of(pointer)
    info = facts.axis.get(pointer)
    return [1] * len(shape) if info is None else [min(c, n) for c, n in zip(info.contiguity, shape, strict=True)]


def same(op: Operation, layout: LinearLayout) -> OperandLayouts:
    """One layout for all tiles of an op."""
    return layouts(op, layout, layout)


def layouts(op: Operation, operands: LinearLayout, results: LinearLayout) -> OperandLayouts:
    """One layout for all tiles among the operands, and one for those among the results."""
    return OperandLayouts(
        tuple([operands if is_tile(value) else None for value in op.operands]),
        tuple([results if is_tile(value) else None for value in op.results]),
    )

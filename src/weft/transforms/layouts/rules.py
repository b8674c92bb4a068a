"""What a machine says about the layouts of its ops.

A machine's `LayoutRules` propose layouts for an op and price them. The pass of `assign` takes the cheapest proposal of every
op, in program order. A solver may choose for a whole kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from xdsl.ir import Operation, SSAValue

from weft.ir import tile
from weft.layout import LinearLayout
from weft.transforms.axis import AxisInfo
from weft.transforms.layouts.free import Free


@dataclass(frozen=True)
class OperandLayouts:
    """A layout for each operand and each result of an op, in order; None for scalars."""

    operands: tuple[LinearLayout | None, ...]
    results: tuple[LinearLayout | None, ...]


@dataclass
class LayoutFacts:
    """What is known when an op is asked about: ``axis`` about tiles of integers and pointers, and of the values before it their
    ``layouts`` and ``weights``. A weight counts the elements that came from memory, a dot or a reduction; a value of weight 0
    is free: it may be computed again in any layout."""

    axis: dict[SSAValue, AxisInfo]
    layouts: dict[SSAValue, LinearLayout] = field(default_factory=dict[SSAValue, LinearLayout])
    weights: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    free: Free = field(default_factory=Free)
    spelling: Callable[[LinearLayout], LinearLayout] | None = None
    """How a layout is spelled in the IR, among those equal up to the order of registers. None: as it comes."""

    def spelled(self, layout: LinearLayout) -> LinearLayout:
        """The layout as it is spelled in the IR."""
        return layout if self.spelling is None else self.spelling(layout)

    def set(self, value: SSAValue, layout: LinearLayout, weight: int) -> None:
        """Enters a value."""
        self.layouts[value] = layout
        self.weights[value] = weight

    def heaviest(self, values: Sequence[SSAValue]) -> SSAValue:
        """The value of the largest weight, the first of several."""
        return max(values, key=lambda v: self.weights[v])


class LayoutRules(Protocol):
    """A machine's rules."""

    def candidates(self, op: Operation, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        """Layouts under which the machine can execute the op, never empty; among equally cheap ones the preferred first.
        `UnsupportedOpError` for an op that it has no rule for."""
        ...

    def op_cost(self, op: Operation, chosen: OperandLayouts, facts: LayoutFacts) -> float:
        """The price of one execution of the op under the layouts."""
        ...

    def conversion_cost(self, source: LinearLayout, destination: LinearLayout, bits: int) -> float:
        """The price of converting a tile with elements of ``bits``: its plan's."""
        ...


@runtime_checkable
class SolverRules(LayoutRules, Protocol):
    """What a solver asks besides, to choose for a whole kernel (`weft.transforms.layouts.solve`)."""

    def proposals(self, op: Operation, preferred: OperandLayouts, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        """Layouts that the op would take by itself, besides the preferred ones; none for an op that does not care."""
        ...

    def with_operand(self, op: Operation, index: int, layout: LinearLayout) -> Sequence[OperandLayouts]:
        """Layouts under which the op takes operand ``index`` as it is given; none where it cannot."""
        ...

    def with_result(self, op: Operation, preferred: OperandLayouts, layout: LinearLayout) -> Sequence[OperandLayouts]:
        """Layouts under which the op makes its results as they are wanted; none where it cannot."""
        ...

    def combined(self, op: Operation, found: Sequence[OperandLayouts]) -> Sequence[OperandLayouts]:
        """Layouts made of parts of those found for an op."""
        ...

    def joint(self, op: Operation, own: OperandLayouts, other: OperandLayouts) -> Sequence[OperandLayouts]:
        """Layouts of an access that suit it and also the access for which ``other`` was proposed."""
        ...

    def given(self, path: Sequence[tile.ShapeOp], layout: LinearLayout) -> Sequence[LinearLayout]:
        """Layouts that shape ops, in order, may give their result from a source under ``layout`` without a move."""
        ...

    def least_cost(self, op: Operation, chosen: OperandLayouts, facts: LayoutFacts) -> float:
        """A lower bound of `op_cost`, found without planning."""
        ...

    def least_conversion(self, source: LinearLayout, destination: LinearLayout, bits: int) -> float:
        """A lower bound of `conversion_cost`, found without planning."""
        ...

    def bits(self, value: SSAValue) -> int:
        """The width of an element of a tile as it travels."""
        ...

    def spills(self, words: int) -> float:
        """The price of holding so many words of 32 bits in each thread at once, for each execution of the block."""
        ...

    def spells(self, op: Operation | None) -> int:
        """A rank: among layouts equal up to the order of registers the op of the lowest rank decides that order. The results of
        rank 0 are in the order that the op proposes, always."""
        ...

"""What a machine says about the layouts of its ops.

A machine's `LayoutRules` propose layouts for an op and price them. The pass of `assign` takes the cheapest proposal of every
op, in program order. A solver may choose for a whole kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from xdsl.ir import Operation, SSAValue

from weft.layout import LinearLayout
from weft.transforms.axis import AxisInfo


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

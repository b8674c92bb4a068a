"""Functions of values that all lanes repeat, computed in full registers.

A reduction along the lanes leaves its result in each of them: the maxima of 32 rows are 32 registers of 16 equal lanes, and so is
all that is computed from them. An addition is as cheap there as anywhere. An exponential is some 20 instructions, and attention
takes those of its rows' maxima in each block. Here such a function is computed in a layout whose lanes hold different elements:

    y = exp2(x)          32 registers
    f = convert(x)        2 registers, by shuffles
    g = exp2(f)           2 registers
    y = convert(g)       32 registers, by broadcasts

An element's bits do not depend on its lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from weft.ir import tile
from weft.ir.direct import operands_of, ops_in
from weft.ir.types import is_tile, layout_of, shape_of, with_layout
from weft.layout import vector

FUNCTIONS: Final = frozenset(
    {"exp", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh", "erf", "cbrt", "pow", "atan2"}
)
"""Kinds that cost more than the two conversions."""

LEAST: Final = 4
"""Registers from which on it pays: fewer cost less than to shuffle them."""


@dataclass(frozen=True)
class FillLanes(ModulePass):
    """Computes `FUNCTIONS` of repeated values in row-major vectors of ``lanes``; for laid-out tile IR of a CPU."""

    name = "fill-lanes"

    lanes: int = 16

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [inner for inner in ops_in(op) if _repeats(inner)]:
            self._fill(function)

    def _fill(self, op: Operation) -> None:
        result = op.results[0]
        full = vector(shape_of(result), self.lanes)
        filled = [tile.ConvertLayoutOp(operand, full) for operand in operands_of(op)]
        computed = type(op).create(
            operands=[each.result for each in filled],
            result_types=[with_layout(result.type, full)],
            properties=dict(op.properties),
        )
        repeated = tile.ConvertLayoutOp(computed.results[0], layout_of(result))
        for new in (*filled, computed, repeated):
            new.location = op.location
        Rewriter.replace_op(op, [*filled, computed, repeated], [repeated.result])


def _repeats(op: Operation) -> bool:
    """Whether an op is such a function in `LEAST` registers and more, of equal lanes each."""
    if not isinstance(op, tile.UnaryOp | tile.BinaryOp) or op.kind.data not in FUNCTIONS or not is_tile(op.result):
        return False
    layout = layout_of(op.result)
    registers = 1 << sum(map(bool, layout.columns("register")))
    return registers >= LEAST and not any(layout.columns("lane"))

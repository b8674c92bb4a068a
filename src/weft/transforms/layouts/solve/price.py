"""The price of a function whose tiles have layouts: what the IR says, whoever chose them.

Each op costs what the machine's rules say of the layouts in its types, each conversion what its plan costs, each times its trips.
This walks the IR alone, so that it judges any assignment, and a solution's price can be checked against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from weft.ir import tile
from weft.ir.types import is_tile, layout_of
from weft.layout import LinearLayout
from weft.transforms.axis import analyse
from weft.transforms.layouts.rules import LayoutFacts, OperandLayouts, SolverRules
from weft.transforms.layouts.solve.lifetimes import Lifetimes
from weft.transforms.layouts.solve.problem import state
from weft.transforms.layouts.solve.trips import Trips, ops_of


@dataclass(frozen=True)
class Priced:
    """What an op of a function costs in one execution, and how often it is executed."""

    op: Operation
    price: float
    trips: float


def prices_of(function: func.FuncOp, rules: SolverRules) -> Iterator[Priced]:
    """The price of every op that has one. Free values are charged to their readers."""
    facts, trips = LayoutFacts(dict(analyse(function))), Trips()
    for op in ops_of(function.body.block):
        if isinstance(op, tile.ConvertLayoutOp):
            price = rules.conversion_cost(layout_of(op.source), layout_of(op.result), rules.bits(op.source))
        elif isinstance(op, tile.ShapeOp) or any(is_tile(r) and facts.free.is_free(r) for r in op.results):
            continue
        elif any(map(is_tile, (*op.operands, *op.results))) and not op.regions or isinstance(op, tile.CombiningOp):
            price = rules.op_cost(op, OperandLayouts(_layouts(op.operands), _layouts(op.results)), facts)
        else:
            continue
        yield Priced(op, price, trips.of(op))


def price_of(function: func.FuncOp, rules: SolverRules) -> float:
    """The price of a function whose dead ops are gone, spills included."""
    return sum(each.price * each.trips for each in prices_of(function, rules)) + spills_of(function, rules)


def spills_of(function: func.FuncOp, rules: SolverRules) -> float:
    """The price of registers that lifetimes take beyond those of a thread."""
    facts, chosen = LayoutFacts({}), dict[Operation, OperandLayouts]()
    for op in ops_of(function.body.block):
        if isinstance(op, tile.CombiningOp) or not (op.regions or isinstance(op, tile.ConvertLayoutOp)):
            chosen[op] = OperandLayouts(_layouts(op.operands), _layouts(op.results))
        for value in (*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)):
            if is_tile(value):
                facts.layouts[value] = layout_of(value)
    problem = state(function, facts, chosen)
    return Lifetimes(function, problem, rules).price([variable.preferred for variable in problem.variables])


def _layouts(values: Sequence[SSAValue]) -> tuple[LinearLayout | None, ...]:
    return tuple([layout_of(value) if is_tile(value) else None for value in values])

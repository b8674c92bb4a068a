"""The CPU's layout rules: what they propose first, and prices that order layouts as the instructions do."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Block, Operation, Region, SSAValue

from weft import dtypes
from weft.ir import tile
from weft.ir.location import Position, location
from weft.ir.types import layout_of, pointer, shape_of, tensor
from weft.ir.unsupported import UnsupportedOpError
from weft.layout import LinearLayout, plan_conversion, vector, vector_machine
from weft.transforms.axis import AxisInfo
from weft.transforms.layouts import AssignLayouts, LayoutFacts, LayoutRules, OperandLayouts, VectorRules

RULES: LayoutRules = VectorRules(4)
ROWS = vector((8, 16), 4)
COLUMNS = vector((8, 16), 4, (0, 1))


def access(contiguity: tuple[int, ...]) -> tuple[tile.LoadOp, LayoutFacts]:
    """A load of 8x16 elements through pointers with this contiguity."""
    block = Block(arg_types=[tensor(pointer(dtypes.float32), (8, 16))])
    op = tile.LoadOp(block.args[0])
    facts = LayoutFacts({block.args[0]: AxisInfo(contiguity, (1, 1), (1, 1))})
    facts.set(block.args[0], ROWS, 0)
    return op, facts


def same(layout: object, operands: int = 1) -> tuple[object, ...]:
    return (layout,) * operands


@pytest.mark.parametrize(
    ("contiguity", "layout"),
    [((1, 16), ROWS), ((8, 1), COLUMNS), ((1, 1), ROWS), ((8, 16), ROWS), ((4, 2), COLUMNS)],
)
def test_a_load_walks_the_dimension_that_is_most_contiguous(contiguity: tuple[int, int], layout: object) -> None:
    """Up to the lanes: with 8 and 16 in a row both fill a vector of 4, and the last dimension wins."""
    op, facts = access(contiguity)
    assert [c.results for c in RULES.candidates(op, facts)] == [same(layout)]


def test_a_load_through_scattered_pointers_takes_their_layout() -> None:
    op, facts = access((1, 1))
    facts.set(op.pointer, COLUMNS, 128)
    assert RULES.candidates(op, facts)[0].results == same(COLUMNS)


def test_a_load_costs_its_runs() -> None:
    """128 elements in 32 vectors of 4 lanes: one access a vector where the lanes ascend, one a lane where they do not, two
    where pairs do."""
    op, facts = access((1, 16))
    assert RULES.op_cost(op, OperandLayouts((ROWS,), (ROWS,)), facts) == 32
    assert RULES.op_cost(op, OperandLayouts((COLUMNS,), (COLUMNS,)), facts) == 128
    op, facts = access((1, 2))
    assert RULES.op_cost(op, OperandLayouts((ROWS,), (ROWS,)), facts) == 64


def test_duplicate_registers_cost_nothing() -> None:
    op, facts = access((1, 16))
    small = vector((1, 2), 4)
    assert RULES.op_cost(op, OperandLayouts((small,), (small,)), facts) == 1


def test_a_conversion_costs_the_price_of_its_plan() -> None:
    assert RULES.conversion_cost(ROWS, ROWS, 32) == 0
    assert RULES.conversion_cost(ROWS, COLUMNS, 32) == plan_conversion(ROWS, COLUMNS, 32, vector_machine(4)).price > 0


def dot() -> tuple[tile.DotOp, ModuleOp]:
    """A product of two blocks of loads, in a kernel."""
    block = Block(arg_types=[pointer(dtypes.float32), f32])
    starts = [tile.SplatOp(block.args[0], shape) for shape in ((8, 16), (16, 8))]
    a, b = (tile.LoadOp(start.results[0]) for start in starts)
    zero = tile.SplatOp(block.args[1], (8, 8))
    op = tile.DotOp(a.result, b.result, zero.results[0])
    block.add_ops([*starts, a, b, zero, op, func.ReturnOp()])
    kernel = func.FuncOp("k", (list(block.arg_types), []), Region(block))
    return op, ModuleOp([kernel])


def test_a_dot_reads_its_first_operand_by_rows_or_by_columns() -> None:
    op, _ = dot()
    found = RULES.candidates(op, LayoutFacts({}))
    assert [c.operands[0] for c in found] == [ROWS, COLUMNS]
    others = (vector((16, 8), 4), vector((8, 8), 4))
    assert {(c.operands[1:], c.results) for c in found} == {(others, same(vector((8, 8), 4)))}


@dataclass(frozen=True)
class Priced(VectorRules):
    """Loads ``by_columns`` or by rows, and given prices: of the dot's candidates, and of any conversion."""

    by_columns: bool = False
    dots: tuple[float, float] = (0, 0)
    conversion: float = 1

    def anchor(self, pointer: SSAValue, facts: LayoutFacts) -> LinearLayout:
        return vector(shape_of(pointer), 4, (0, 1) if self.by_columns else (1, 0))

    def op_cost(self, op: Operation, chosen: OperandLayouts, facts: LayoutFacts) -> float:
        return self.dots[chosen.operands[0] == COLUMNS]

    def conversion_cost(self, source: LinearLayout, destination: LinearLayout, bits: int) -> float:
        assert (source != destination, bits) == (True, 32)
        return self.conversion


@pytest.mark.parametrize(
    ("rules", "taken"),
    [
        (Priced(4), ROWS),
        (Priced(4, by_columns=True), COLUMNS),
        (Priced(4, by_columns=True, conversion=0), ROWS),  # the first of equals
        (Priced(4, dots=(3, 1)), COLUMNS),
        (Priced(4, dots=(3, 1), conversion=2), ROWS),
        (Priced(4, dots=(1, 3), by_columns=True), ROWS),
    ],
)
def test_the_cheapest_candidate_is_taken_its_conversions_included(rules: LayoutRules, taken: LinearLayout) -> None:
    """Of the two candidates one needs a conversion, of the price given; the second operand costs both the same."""
    op, module = dot()
    AssignLayouts(rules).apply(Context(), module)
    assert layout_of(op.a) == taken


def test_a_conversion_has_no_candidates() -> None:
    block = Block(arg_types=[tensor(dtypes.float32, (8, 16), ROWS)])
    message = "^tile.convert_layout stands in the module before layouts are assigned$"
    with pytest.raises(UnsupportedOpError, match=message):
        RULES.candidates(tile.ConvertLayoutOp(block.args[0], COLUMNS), LayoutFacts({}))


def test_an_op_without_a_rule_is_named() -> None:
    op = tile.ProgramIdOp(0)
    op.location = location([Position("gone.py", 12, 4, "kernel")])
    with pytest.raises(UnsupportedOpError) as raised:
        RULES.candidates(op, LayoutFacts({}))
    assert (
        str(raised.value)
        == "tile.program_id has no rule that gives its tiles layouts on a CPU\n  gone.py:12:5, in kernel"
    )

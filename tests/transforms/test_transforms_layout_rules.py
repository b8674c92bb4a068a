"""The CPU's layout rules: what they propose first, and prices that order layouts as the instructions do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


class Recording:
    """A CPU's rules that take the dot's candidate of index ``taken``; ``priced`` has the conversions priced for each."""

    def __init__(self, taken: int):
        self._rules = VectorRules(4)
        self._taken = taken
        self._current = 0
        self.priced: list[list[str]] = [[], []]

    def candidates(self, op: Operation, facts: LayoutFacts) -> Sequence[OperandLayouts]:
        return self._rules.candidates(op, facts)

    def op_cost(self, op: Operation, chosen: OperandLayouts, facts: LayoutFacts) -> float:
        self._current = int(chosen.operands[0] == COLUMNS)
        return 0 if self._current == self._taken else 1e9

    def conversion_cost(self, source: LinearLayout, destination: LinearLayout, bits: int) -> float:
        self.priced[self._current].append(f"{source} to {destination}")
        return 1


LOADED = """
  %i8 = tile.arange 0 8 : tensor<8xi32>
  %i16 = tile.arange 0 16 : tensor<16xi32>
  %p8 = tile.splat %x : !tile.ptr<f32> to tensor<8x!tile.ptr<f32>>
  %p16 = tile.splat %x : !tile.ptr<f32> to tensor<16x!tile.ptr<f32>>
  %at8 = tile.addptr %p8, %i8 : tensor<8x!tile.ptr<f32>>, tensor<8xi32> to tensor<8x!tile.ptr<f32>>
  %at16 = tile.addptr %p16, %i16 : tensor<16x!tile.ptr<f32>>, tensor<16xi32> to tensor<16x!tile.ptr<f32>>
  %v8 = tile.load %at8 : tensor<8x!tile.ptr<f32>> to tensor<8xf32>
  %v16 = tile.load %at16 : tensor<16x!tile.ptr<f32>> to tensor<16xf32>
  %f = tile.cast %i16 : tensor<16xi32> to tensor<16xf32>
"""
LEFT = {
    "broadcast along rows": """
  %c = tile.expand_dims %v16 0 : tensor<16xf32> to tensor<1x16xf32>
  %a = tile.broadcast %c : tensor<1x16xf32> to tensor<8x16xf32>
""",
    "broadcast along columns": """
  %c = tile.expand_dims %v8 1 : tensor<8xf32> to tensor<8x1xf32>
  %a = tile.broadcast %c : tensor<8x1xf32> to tensor<8x16xf32>
""",
    "free": """
  %c = tile.expand_dims %f 0 : tensor<16xf32> to tensor<1x16xf32>
  %a = tile.broadcast %c : tensor<1x16xf32> to tensor<8x16xf32>
""",
    "sum of broadcasts": """
  %c = tile.expand_dims %v8 1 : tensor<8xf32> to tensor<8x1xf32>
  %d = tile.broadcast %c : tensor<8x1xf32> to tensor<8x16xf32>
  %e = tile.expand_dims %v16 0 : tensor<16xf32> to tensor<1x16xf32>
  %g = tile.broadcast %e : tensor<1x16xf32> to tensor<8x16xf32>
  %a = tile.binary "add" %d, %g : tensor<8x16xf32>
""",
}


@pytest.mark.parametrize("taken", [0, 1])
@pytest.mark.parametrize("left", LEFT)
def test_what_is_priced_is_what_is_inserted(kernel: Callable[[str, str], ModuleOp], left: str, taken: int) -> None:
    """A clone of a shape op costs the conversion of its source, which a broadcast makes much smaller."""
    rest = """
      %z = tile.constant 0.0 : tensor<8x8xf32>
      %b = tile.constant 1.0 : tensor<16x8xf32>
      %r = tile.dot %a, %b, %z : tensor<8x16xf32>, tensor<16x8xf32> to tensor<8x8xf32>
    """
    module = kernel("%x: !tile.ptr<f32>", LOADED + LEFT[left] + rest)
    rules = Recording(taken)
    AssignLayouts(rules).apply(Context(), module)
    conversions = (op for op in module.walk() if isinstance(op, tile.ConvertLayoutOp))
    found = [f"{layout_of(op.source)} to {layout_of(op.result)}" for op in conversions]
    assert sorted(found) == sorted(rules.priced[taken])


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

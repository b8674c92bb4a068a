"""Conversion plans, executed on labels and compared with direct evaluation; their cost against bounds found by counting."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout import (
    ConversionPlan,
    Cost,
    LinearLayout,
    Shuffle,
    Shuffles,
    blocked,
    plan_conversion,
    reshape,
    trans,
    vector,
    vector_machine,
)

LANE_BITS = st.sampled_from([2, 3, 4])


@dataclass(frozen=True)
class Planned:
    """A plan for a CPU, which is one step, and what the tests ask of it."""

    plan: ConversionPlan

    @property
    def step(self) -> Shuffles:
        (step,) = self.plan.steps
        assert isinstance(step, Shuffles)
        return step

    @property
    def kind(self) -> str:
        return self.plan.kind

    @property
    def steps(self) -> tuple[Shuffle, ...]:
        return self.step.levels

    @property
    def depth(self) -> int:
        return len(self.steps)

    @property
    def cost(self) -> int:
        assert self.plan.cost == Cost(shuffles=self.step.cost.shuffles)
        return self.plan.cost.shuffles

    @property
    def groups(self) -> int:
        return self.step.groups

    @property
    def group_bits(self) -> int:
        """k: how many bits enter the lanes; a group reads 2^k source vectors."""
        return len(self.step.source.offsets).bit_length() - 1

    def sources(self, group: int) -> tuple[int, ...]:
        return self.step.sources(group)

    def destinations(self, group: int) -> tuple[tuple[int, ...], ...]:
        return self.step.destinations(group)

    def simulate(self, registers: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Registers of lanes, where plans have lanes of registers."""
        state = np.array(registers).T[None]
        return self.plan.simulate(state)[0].T.tolist()


def planned(source: LinearLayout, destination: LinearLayout) -> Planned:
    lanes = source.in_size("lane") if "lane" in source.in_dims else 1
    return Planned(plan_conversion(source, destination, 32, vector_machine(lanes)))


def labels(layout: LinearLayout) -> list[list[int]]:
    """The flattened element in each register and lane, straight from the layout."""
    return [
        [layout.flat(register=register, lane=lane) for lane in range(layout.in_size("lane"))]
        for register in range(layout.in_size("register"))
    ]


def fewest_levels(source: LinearLayout, destination: LinearLayout) -> int:
    """How deep two-input shuffles must be, by counting the source vectors that some destination vector needs.

    An element's holders differ only in duplicates, so each element counts for the set of registers that hold it.
    """
    holders: dict[int, set[int]] = {}
    vectors = labels(source)
    for register, vector_labels in enumerate(vectors):
        for label in vector_labels:
            holders.setdefault(label, set()).add(register)
    needs = max(len({frozenset(holders[label]) for label in wanted}) for wanted in labels(destination))
    if needs > 1:
        return (needs - 1).bit_length()
    return 0 if all(wanted in vectors for wanted in labels(destination)) else 1


@st.composite
def pairs(draw: st.DrawFn, distributed: Any) -> tuple[LinearLayout, LinearLayout]:
    """Two distributed layouts of one tensor, with duplicates anywhere, on one machine."""
    lane_bits = draw(LANE_BITS)
    shape_bits = draw(st.lists(st.integers(0, 4), min_size=1, max_size=2))
    while sum(shape_bits) > lane_bits + 4:
        shape_bits[shape_bits.index(max(shape_bits))] -= 1
    return draw(distributed(shape_bits, lane_bits)), draw(distributed(shape_bits, lane_bits))


@given(st.data())
@examples(300)
def test_plans_do_what_the_layouts_say(distributed: Any, data: st.DataObject) -> None:
    source, destination = data.draw(pairs(distributed))
    plan = planned(source, destination)
    assert plan.simulate(labels(source)) == labels(destination)
    assert plan.depth == fewest_levels(source, destination)
    # Every destination register is written once; no source register is read twice.
    written = [d for group in range(plan.groups) for vector in plan.destinations(group) for d in vector]
    assert sorted(written) == list(range(plan.step.destination_registers))
    read = [register for group in range(plan.groups) for register in plan.sources(group)]
    assert len(set(read)) == len(read)
    assert len(plan.sources(0)) == 1 << plan.group_bits
    # The steps fit together, and every mask is one LLVM takes.
    made = 1 << plan.group_bits
    for step in plan.steps:
        assert (step.inputs, step.lanes) == (made, plan.step.lanes)
        made = step.outputs
        for output in range(step.outputs):
            operands = step.operands(output)
            assert len(operands) == (2 if step.partner else 1)
            assert all(0 <= operand < step.inputs for operand in operands)
            assert all(0 <= lane < plan.step.lanes * len(operands) for lane in step.mask(output))
            assert len(step.mask(output)) == plan.step.lanes
    assert made == len(plan.destinations(0))


@given(st.data())
@examples(100)
def test_kinds_say_what_a_plan_needs(distributed: Any, data: st.DataObject) -> None:
    source, destination = data.draw(pairs(distributed))
    plan = planned(source, destination)
    levels = fewest_levels(source, destination)
    if source == destination:
        assert plan.kind == "nothing"
    elif labels(source) == labels(destination):
        raise AssertionError("two layouts hold the same labels")
    elif levels == 0:
        assert plan.kind == "registers"
    else:
        assert plan.kind == "warp"
    assert (plan.cost == 0) == (levels == 0) == (plan.steps == ())


def test_many_seeded_pairs() -> None:
    """One-dimensional layouts from a seed, more of them than hypothesis draws and up to 64 registers of 16 lanes."""
    rng = random.Random(20)
    kinds: dict[str, int] = {}

    def layout(bits: int, lane_bits: int) -> LinearLayout:
        register_bits = rng.randint(max(0, bits - lane_bits), 6)
        columns = [(1 << bit,) for bit in range(bits)] + [(0,)] * (register_bits + lane_bits - bits)
        rng.shuffle(columns)
        return LinearLayout({"register": columns[:register_bits], "lane": columns[register_bits:]}, {"dim0": 1 << bits})

    for _ in range(500):
        lane_bits = rng.randint(0, 4)
        bits = rng.randint(0, lane_bits + 6)
        source, destination = layout(bits, lane_bits), layout(bits, lane_bits)
        plan = planned(source, destination)
        assert plan.simulate(labels(source)) == labels(destination), (source, destination)
        kinds[plan.kind] = kinds.get(plan.kind, 0) + 1
    assert min(kinds[kind] for kind in ("registers", "warp")) > 20, kinds


# Known plans


def test_the_modules_example() -> None:
    a = LinearLayout.parse("{register: [(0,1)], lane: [(0,2),(1,0)]} -> [dim0: 2, dim1: 4]")
    b = LinearLayout.parse("{register: [(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 4]")
    plan = planned(a, b)
    assert (plan.kind, plan.group_bits, plan.groups, plan.cost) == ("warp", 1, 1, 2)
    (step,) = plan.steps
    assert [step.operands(v) for v in range(2)] == [(0, 1), (0, 1)]
    assert [step.mask(v) for v in range(2)] == [(0, 4, 1, 5), (2, 6, 3, 7)]
    assert plan.simulate([["00", "02", "10", "12"], ["01", "03", "11", "13"]]) == [
        ["00", "01", "02", "03"],
        ["10", "11", "12", "13"],
    ]


def test_nothing_to_do() -> None:
    layout = vector((128, 128))
    plan = planned(layout, layout)
    assert (plan.kind, plan.steps, plan.cost, plan.groups) == ("nothing", (), 0, 1024)
    assert [(plan.sources(g), plan.destinations(g)) for g in (0, 1, 1023)] == [
        ((0,), ((0,),)),
        ((1,), ((1,),)),
        ((1023,), ((1023,),)),
    ]
    # Equal as maps, listed in another order.
    turned = LinearLayout(
        {"lane": layout.bases("lane"), "register": layout.bases("register")}, {"dim0": 128, "dim1": 128}
    )
    assert planned(layout, turned).kind == "nothing"


def test_registers_are_renamed() -> None:
    source = vector((4, 32))
    destination = LinearLayout(
        {"register": [(1, 0), (0, 16), (0, 0), (2, 0)], "lane": source.bases("lane")}, {"dim0": 4, "dim1": 32}
    )
    # Source registers are (dim0 << 1 | dim1 / 16). Destination bits 0, 1, 3 are source bits 1, 0, 2; bit 2 is a copy.
    plan = planned(source, destination)
    assert (plan.kind, plan.cost, plan.groups) == ("registers", 0, 8)
    assert {plan.sources(g): plan.destinations(g) for g in range(8)} == {
        (0,): ((0, 4),),
        (2,): ((1, 5),),
        (1,): ((2, 6),),
        (3,): ((3, 7),),
        (4,): ((8, 12),),
        (6,): ((9, 13),),
        (5,): ((10, 14),),
        (7,): ((11, 15),),
    }


def test_one_vector_is_reversed_in_its_bits() -> None:
    source = LinearLayout.parse("{register: [8], lane: [1,2,4]} -> [dim0: 16]")
    destination = LinearLayout.parse("{register: [8], lane: [4,2,1]} -> [dim0: 16]")
    plan = planned(source, destination)
    assert (plan.kind, plan.groups, plan.cost) == ("warp", 2, 2)
    assert plan.steps[0].operands(0) == (0,)
    assert plan.steps[0].mask(0) == (0, 4, 2, 6, 1, 5, 3, 7)


def test_a_row_is_spread_over_registers() -> None:
    """Each element of one vector in all lanes of its own: four shuffles of one vector, with four masks."""
    source = LinearLayout.parse("{register: [], lane: [1,2]} -> [dim0: 4]")
    destination = LinearLayout.parse("{register: [1,2], lane: [0,0]} -> [dim0: 4]")
    plan = planned(source, destination)
    assert (plan.kind, plan.groups, plan.cost) == ("warp", 1, 4)
    (step,) = plan.steps
    assert [step.mask(v) for v in range(4)] == [(v,) * 4 for v in range(4)]
    back = planned(destination, source)
    # Four vectors into one: a tree of three shuffles, two and one.
    assert (back.kind, back.group_bits, back.cost) == ("warp", 2, 3)
    assert [step.outputs for step in back.steps] == [2, 1]
    assert back.simulate([[v] * 4 for v in range(4)]) == [[0, 1, 2, 3]]


@pytest.mark.parametrize(("size", "lanes", "bits"), [(4, 4, 2), (16, 16, 4), (128, 16, 4), (64, 4, 2), (1024, 16, 4)])
def test_transposition(size: int, lanes: int, bits: int) -> None:
    """A matrix of square blocks, lanes on a side: log2(lanes) shuffles per vector."""
    plan = planned(vector((size, size), lanes), vector((size, size), lanes, (0, 1)))
    assert (plan.kind, plan.group_bits, plan.depth) == ("warp", bits, bits)
    assert plan.cost == size * size // lanes * bits


def test_a_transpositions_masks_are_interleavings() -> None:
    """Each entering bit goes straight to its lane bit, so no lanes are permuted besides: both steps swap one bit."""
    first, second = planned(vector((4, 4), 4), vector((4, 4), 4, (0, 1))).steps
    # Rows r0..r3 of a 4x4 matrix. Row bit 0 <-> lane bit 0, then row bit 1 <-> lane bit 1.
    assert [first.operands(v) for v in range(4)] == [(0, 1), (0, 1), (2, 3), (2, 3)]
    assert [first.mask(v) for v in range(4)] == [(0, 4, 2, 6), (1, 5, 3, 7), (0, 4, 2, 6), (1, 5, 3, 7)]
    assert [second.operands(v) for v in range(4)] == [(0, 2), (1, 3), (0, 2), (1, 3)]
    assert [second.mask(v) for v in range(4)] == [(0, 1, 4, 5), (0, 1, 4, 5), (2, 3, 6, 7), (2, 3, 6, 7)]


def test_duplicates_that_stay_are_read_in_place() -> None:
    """Lane bit 1 holds duplicates before and after: lanes 2 and 3 read lanes 2 and 3, not the first copies."""
    source = LinearLayout.parse("{register: [2], lane: [1,0]} -> [dim0: 4]")
    destination = LinearLayout.parse("{register: [1], lane: [2,0]} -> [dim0: 4]")
    (step,) = planned(source, destination).steps
    assert [step.mask(v) for v in range(2)] == [(0, 4, 2, 6), (1, 5, 3, 7)]


def test_a_bit_that_can_enter_its_final_lane_bit_does() -> None:
    """Tensor bit 8 ends in lane bit 2, which held duplicates: its merge is a blend, no lane moves."""
    source = LinearLayout.parse("{register: [4,8], lane: [1,2,0]} -> [dim0: 16]")
    destination = LinearLayout.parse("{register: [1], lane: [4,2,8]} -> [dim0: 16]")
    merge, exchange = planned(source, destination).steps
    assert sorted(merge.operands(v)[0] ^ merge.operands(v)[1] for v in range(merge.outputs)) == [merge.partner] * 2
    assert {merge.mask(v) for v in range(merge.outputs)} == {(0, 1, 2, 3, 12, 13, 14, 15)}
    assert [exchange.mask(v) for v in range(2)] == [(0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)]


def test_merges_come_before_exchanges() -> None:
    """Two bits enter, one leaves, one lane bit held duplicates: 4 vectors, merged to 2, exchanged: 2 + 2 shuffles."""
    source = LinearLayout.parse("{register: [1,2], lane: [4,0]} -> [dim0: 8]")
    destination = LinearLayout.parse("{register: [4], lane: [1,2]} -> [dim0: 8]")
    plan = planned(source, destination)
    assert [step.outputs for step in plan.steps] == [2, 2]
    assert plan.simulate(labels(source)) == labels(destination)


def test_shape_operations_cost_nothing_where_the_layout_follows() -> None:
    layout = vector((8, 32))
    assert planned(layout, trans(trans(layout, (1, 0)), (1, 0))).kind == "nothing"
    assert planned(reshape(layout, (256,)), vector((256,))).kind == "nothing"


def test_planning_looks_at_bits_only() -> None:
    """2^60 elements: nothing could be materialised."""
    plan = planned(vector((1 << 30, 1 << 30)), vector((1 << 30, 1 << 30), order=(0, 1)))
    assert plan.groups == 1 << 52
    assert plan.cost == 4 << 56
    assert len(plan.sources(1 << 51)) == 16


def test_degenerate_tensors() -> None:
    for shape in ((), (1,), (1, 1)):
        plan = planned(vector(shape), vector(shape))
        assert (plan.kind, plan.groups) == ("nothing", 1)
        assert plan.simulate([["x"] * 16]) == [["x"] * 16]
    one_lane = planned(vector((4, 4), 1), vector((4, 4), 1, (0, 1)))
    assert one_lane.kind == "registers"
    assert one_lane.simulate([[i] for i in range(16)]) == [[i % 4 * 4 + i // 4] for i in range(16)]


def test_plans_are_cached() -> None:
    arguments = vector((64, 64)), vector((64, 64), order=(0, 1)), 32, vector_machine(16)
    assert plan_conversion(*arguments) is plan_conversion(*arguments)


# Words


@pytest.mark.parametrize(
    ("source", "destination", "reason"),
    [
        ("{register: [2], lane: [1]}", "{register: [2], lane: [1]}", "no data moves: the layouts are equal"),
        (
            "{register: [2], lane: [1]}",
            "{register: [2,0], lane: [1]}",
            "registers are renamed: the layouts have the same lane columns",
        ),
        (
            "{register: [], lane: [1,2]}",
            "{register: [], lane: [2,1]}",
            "each destination vector is one source vector with its lanes permuted: 1 shuffle in 1 group, one per vector, "
            "the least where lanes change",
        ),
        (
            "{register: [2], lane: [1]}",
            "{register: [1], lane: [2]}",
            "the conversion takes 1 bit of the tensor from registers to lanes, so each destination vector "
            "holds elements of 2 source vectors: 2 shuffles in 1 group, 1 deep; "
            "1 is the least, as t levels of two-input shuffles reach 2^t vectors",
        ),
    ],
)
def test_reasons(source: str, destination: str, reason: str) -> None:
    plan = planned(*(LinearLayout.parse(f"{text} -> [dim0: 4]") for text in (source, destination)))
    assert plan.plan.reason == reason


@pytest.mark.parametrize(
    ("source", "destination", "message"),
    [
        (
            blocked((4,), (1,), (2,), (2,), (0,)),
            vector((4,), 2),
            "plan_conversion: the source has 2 warps, the destination 1",
        ),
        (
            vector((4,), 2),
            LinearLayout.identity(4, "lane", "dim0"),
            "plan_conversion: the destination layout has 4 lanes, cpu has 2",
        ),
        (
            vector((4,), 2),
            LinearLayout.parse("{register: [3], lane: [1]} -> [dim0: 4]"),
            "plan_conversion: the destination layout is not distributed: basis 0 of register is (3,), "
            "expected at most one bit set",
        ),
        (
            LinearLayout.parse("{register: [], lane: [1]} -> [dim0: 4]"),
            vector((4,), 2),
            "plan_conversion: the source layout is not distributed: it is not surjective: "
            "1 of 2 output bits are reached",
        ),
        (
            vector((4,), 2),
            vector((2, 2), 2),
            "plan_conversion: the layouts are of different tensors: the source is {register: [2], lane: [1]} -> [dim0: 4], "
            "the destination {register: [(1,0)], lane: [(0,1)]} -> [dim0: 2, dim1: 2]",
        ),
        (
            vector((4,), 2),
            vector((4,), 4),
            "plan_conversion: the destination layout has 4 lanes, cpu has 2",
        ),
    ],
)
def test_what_cannot_be_planned(source: LinearLayout, destination: LinearLayout, message: str) -> None:
    with pytest.raises(ValueError) as error:
        planned(source, destination)
    assert str(error.value) == message


def test_a_cpu_has_one_warp() -> None:
    layout = blocked((4,), (1,), (2,), (2,), (0,))
    with pytest.raises(ValueError) as error:
        planned(layout, layout)
    assert str(error.value) == "plan_conversion: the layouts have 2 warps, cpu has one"


@pytest.mark.parametrize(
    ("registers", "message"),
    [
        ([[0, 1]], "simulate: labels have shape (1, 2, 1), expected (1, 2, 2) (warps, lanes, registers)"),
        ([[0], [2]], "simulate: labels have shape (1, 1, 2), expected (1, 2, 2) (warps, lanes, registers)"),
    ],
)
def test_simulation_needs_the_sources_registers(registers: list[list[int]], message: str) -> None:
    plan = planned(vector((4,), 2), vector((4,), 2))
    with pytest.raises(ValueError) as error:
        plan.simulate(registers)
    assert str(error.value) == message

"""Gather plans: simulated on labels against NumPy's ``take_along_axis``, and their counts against hand derivations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from weft.layout import LinearLayout, blocked, nvidia_mma, sliced
from weft.layout.planning.gather import GatherPlan, plan_gather
from weft.layout.planning.machine import CDNA, HOPPER, MachineModel

Registers = NDArray[Any]


def held(layout: LinearLayout, tensor: Registers) -> Registers:
    """What each thread holds of a tensor: (warps, lanes, registers), by evaluating the layout at every place."""
    sizes = [layout.in_size(d) if d in layout.in_dims else 1 for d in ("warp", "lane", "register")]
    out = np.empty(sizes, tensor.dtype)
    for w, lane, r in np.ndindex(*sizes):
        place = layout.apply({d: n for d, n in (("warp", w), ("lane", lane), ("register", r)) if d in layout.in_dims})
        out[w, lane, r] = tensor[tuple(place.values())]
    return out


def check(plan: GatherPlan, seed: int = 0) -> None:
    draw = np.random.default_rng(seed)
    tensor = draw.permutation(int(np.prod(plan.source.shape))).reshape(plan.source.shape)
    index = draw.integers(0, plan.source.shape[plan.axis], plan.index.shape)
    expected = np.take_along_axis(tensor, index, plan.axis)
    got = plan.simulate(held(plan.source, tensor), held(plan.index, index))
    np.testing.assert_array_equal(got, held(plan.index, expected))


def row(n: int, **other: Any) -> LinearLayout:
    """16 x n: two rows of 16 lanes, four warps down the rows."""
    sizes = {"size": (1, 1), "lanes": (2, 16), "warps": (4, 1), **other}
    return blocked((16, n), sizes["size"], sizes["lanes"], sizes["warps"], (1, 0))


@pytest.mark.parametrize(
    ("source", "index", "axis", "rounds", "shuffles"),
    [
        # 16 lanes hold a row of 16: one register each, one shuffle for each of two results (rows 0..7 and 8..15).
        (row(16), row(16), 1, 1, 2),
        # Rows of 64 take 4 registers of a lane: the index's two high bits choose one, 4 rounds; 8 results.
        (row(64), row(64), 1, 4, 32),
        # 4 indices for rows of 64: still 4 rounds each; a warp's 16 lanes hold copies of 4 results: 2 registers.
        (row(64), row(4), 1, 4, 8),
        # Rows in registers alone (axis 0 of a column of 4 in one thread): the lane is the thread's own, all is rounds.
        (
            blocked((4, 32), (4, 1), (1, 32), (1, 1), (0, 1)),
            blocked((4, 32), (4, 1), (1, 32), (1, 1), (0, 1)),
            0,
            4,
            16,
        ),
        # Index in another layout than the source: rows still match warp by warp.
        (row(64), row(64, size=(1, 4), lanes=(2, 16)), 1, 4, 32),
    ],
)
def test_counts(source: LinearLayout, index: LinearLayout, axis: int, rounds: int, shuffles: int) -> None:
    plan = plan_gather(source, index, axis, 32, HOPPER)
    offered = plan if plan.kind == "shuffles" else None
    cost = plan.cost if offered else plan.alternative
    assert cost is not None
    assert cost.shuffles == shuffles
    if offered:
        assert plan.rounds == rounds
    check(plan)


def test_wide_elements_take_two_shuffles_and_narrow_ones_one() -> None:
    assert [plan_gather(row(16), row(16), 1, bits, HOPPER).cost.shuffles for bits in (8, 32, 64)] == [2, 2, 4]


def test_what_lies_in_other_warps_goes_through_memory() -> None:
    """Along axis 0 the four warps hold four rows of tiles each."""
    plan = plan_gather(row(16), row(16), 0, 32, HOPPER)
    assert (plan.kind, plan.rounds, plan.alternative) == ("memory", 0, None)
    assert plan.reason == "through memory: bit 1 along dim0 leads to another warp"
    # 16 x 16 words: 2 registers stored by one 64-bit store, 8 wavefronts of 128 bytes; 2 loads in each of 4 warps.
    assert (plan.cost.stores, plan.cost.loads, plan.cost.wavefronts, plan.cost.barriers) == (1, 2, 8 + 8, 1)
    assert plan.cost.scratch == 1024
    check(plan)


def test_long_rows_in_few_lanes_are_cheaper_through_memory() -> None:
    source = blocked((4, 1024), (1, 1), (4, 8), (1, 1), (1, 0))
    plan = plan_gather(source, source, 1, 32, HOPPER)
    assert plan.kind == "memory"
    assert plan.alternative is not None
    assert plan.alternative.shuffles == 128 * 128
    assert plan.reason.startswith("through memory though within each warp: ")
    check(plan)


def test_copies_are_read_from_lanes_not_from_registers() -> None:
    """A source whose rows every lane holds copies of by lane bits needs no rounds for them."""
    source = sliced(nvidia_mma((16, 8), 2, (1, 1), (16, 8)), 1)  # 16 rows: 8 in lanes, 4 copies, 2 in registers
    plan = plan_gather(source, source, 0, 32, HOPPER)
    assert plan.rounds == 2  # the row's high bit is in a register
    check(plan)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[LinearLayout, LinearLayout, int, MachineModel]:
    """Random blocked sources and indices of one, two or three dimensions."""
    machine = draw(st.sampled_from((HOPPER, CDNA)))
    rank = draw(st.integers(1, 3))
    bits = [draw(st.integers(0, 3)) for _ in range(rank)]
    axis = draw(st.integers(0, rank - 1))
    lane_bits = machine.lanes.bit_length() - 1
    warp_bits = draw(st.integers(0, 2))

    def layout(sizes: list[int]) -> LinearLayout:
        lanes, warps = [0] * rank, [0] * rank
        for _ in range(lane_bits):
            lanes[draw(st.integers(0, rank - 1))] += 1
        for _ in range(warp_bits):
            warps[draw(st.integers(0, rank - 1))] += 1
        size = [draw(st.integers(0, 2)) for _ in range(rank)]
        order = draw(st.permutations(range(rank)))
        return blocked(
            [1 << n for n in sizes], [1 << n for n in size], [1 << n for n in lanes], [1 << n for n in warps], order
        )

    other = list(bits)
    other[axis] = draw(st.integers(0, 3))
    return layout(bits), layout(other), axis, machine


@settings(max_examples=150, deadline=None)
@given(pairs(), st.sampled_from((8, 16, 32, 64)))
def test_every_plan_gathers(drawn: tuple[LinearLayout, LinearLayout, int, MachineModel], bits: int) -> None:
    source, index, axis, machine = drawn
    check(plan_gather(source, index, axis, bits, machine))


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (
            lambda: plan_gather(row(16), row(16), 2, 32, HOPPER),
            "plan_gather: axis 2 of a source with [dim0, dim1] and an index with [dim0, dim1]",
        ),
        (
            lambda: plan_gather(row(16), blocked((32, 16), (1, 1), (2, 16), (4, 1), (1, 0)), 1, 32, HOPPER),
            "plan_gather: dim0 is 16 in the source and 32 in the index; only dim1 may differ",
        ),
        (
            lambda: plan_gather(row(16), row(16, warps=(1, 1)), 1, 32, HOPPER),
            "plan_gather: the source has 4 warps, the index 1",
        ),
        (
            lambda: plan_gather(row(16), row(16), 1, 32, CDNA),
            "plan_gather: the source layout has 32 lanes, gfx942 has 64",
        ),
        (
            lambda: plan_gather(LinearLayout({"lane": [(1,)], "block": []}, {"dim0": 2}), row(16), 0, 32, HOPPER),
            "plan_gather: the source layout has input dimension block, expected register, lane, warp",
        ),
        (
            lambda: plan_gather(LinearLayout({"lane": [(3,)]}, {"dim0": 4}), row(16), 0, 32, HOPPER),
            "plan_gather: the source layout is not distributed: basis 0 of lane is (3,), expected at most one bit set",
        ),
    ],
)
def test_refusals(fails: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        fails()
    assert str(caught.value) == message

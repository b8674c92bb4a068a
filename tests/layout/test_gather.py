"""Gather plans: simulated on labels against NumPy's ``take_along_axis``, and their counts against hand derivations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product as product_of
from math import comb, factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sampling import examples
from weft.layout import LinearLayout, blocked, nvidia_mma, sliced
from weft.layout.planning.gather import GatherPlan, plan_gather
from weft.layout.planning.gather_memory import expected_wavefronts, memory_ways
from weft.layout.planning.machine import CDNA, HOPPER, MachineModel, vector_machine

Registers = NDArray[Any]


def held(layout: LinearLayout, tensor: Registers, block: int = 0) -> Registers:
    """What each thread of a block holds of a tensor: (warps, lanes, registers), by evaluating the layout at every place."""
    sizes = [layout.in_size(d) if d in layout.in_dims else 1 for d in ("warp", "lane", "register")]
    out = np.empty(sizes, tensor.dtype)
    own = (("block", block),)
    for w, lane, r in np.ndindex(*sizes):
        places = (("warp", w), ("lane", lane), ("register", r), *own)
        place = layout.apply({d: n for d, n in places if d in layout.in_dims})
        out[w, lane, r] = tensor[tuple(place.values())]
    return out


def check(plan: GatherPlan, seed: int = 0) -> None:
    draw = np.random.default_rng(seed)
    tensor = draw.permutation(int(np.prod(plan.source.shape))).reshape(plan.source.shape)
    index = draw.integers(0, plan.source.shape[plan.axis], plan.index.shape)
    expected = np.take_along_axis(tensor, index, plan.axis)
    for block in range(plan.source.in_size("block") if "block" in plan.source.in_dims else 1):
        got = plan.simulate(held(plan.source, tensor, block), held(plan.index, index, block), block)
        np.testing.assert_array_equal(got, held(plan.index, expected, block))


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
    # 16 x 16 words: 2 registers stored by one 64-bit store, 8 wavefronts of 128 bytes; 2 loads in each of 4 warps. Two lanes
    # draw from the rows of each column, which lie in 2 banks: in some of 16 columns they meet nearly always, 2 wavefronts.
    assert (plan.cost.stores, plan.cost.loads, plan.cost.wavefronts, plan.cost.barriers) == (1, 2, 8 + 16, 1)
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


@examples(150)
@given(pairs(), st.sampled_from((8, 16, 32, 64)))
def test_every_plan_gathers(drawn: tuple[LinearLayout, LinearLayout, int, MachineModel], bits: int) -> None:
    source, index, axis, machine = drawn
    check(plan_gather(source, index, axis, bits, machine))


# Memory: its limit, its orders, the mean of wavefronts


def halves(axis: int) -> LinearLayout:
    """16 x 16, split between two blocks along an axis."""
    return blocked((16, 16), (1, 1), (2, 16), (4, 1), (1, 0), cga_layout=[(1, 0)] if axis == 0 else [(0, 1)])


def test_blocks_gather_in_their_own_part() -> None:
    """Rows 0..7 are block 0's, 8..15 block 1's; each row is in 16 lanes of one warp."""
    plan = plan_gather(halves(0), halves(0), 1, 32, HOPPER)
    assert (plan.kind, plan.cost.shuffles) == ("shuffles", 1)
    check(plan)
    # Columns 0..7 and 8..15: along rows, whose warps differ, through the memory of each block.
    plan = plan_gather(halves(1), halves(1), 0, 32, HOPPER)
    assert (plan.kind, plan.cost.scratch) == ("memory", 16 * 8 * 4)
    check(plan)


def test_scratch_is_what_the_machine_has() -> None:
    """256 x 256 float32 are 262,144 bytes; a block of sm_90 may have 232,448. Two rounds of half of the tensor: the rows' high
    bit is cut if the columns are the axis, and source and index have it in registers."""
    source = blocked((256, 256), (1, 1), (1, 32), (1, 8), (1, 0))
    plan = plan_gather(source, source, 1, 32, HOPPER)
    assert plan.memory is not None
    assert (plan.kind, plan.memory.rounds, plan.cost.scratch, plan.cost.barriers) == ("memory", 2, 131072, 3)
    # 65,536 elements in 256 threads: 256 loads each, however many rounds there are.
    assert plan.cost.loads == 256
    assert plan.reason.endswith("; in 2 rounds, as a block may have 232448 bytes")


def test_an_axis_larger_than_scratch_is_tried_in_every_round() -> None:
    source = blocked((256,), (1,), (32,), (4,), (0,))
    plan = plan_gather(source, source, 0, 32, replace(HOPPER, scratch=512))
    assert plan.memory is not None
    assert (plan.memory.rounds, plan.cost.scratch, plan.cost.loads, plan.cost.barriers) == (2, 512, 4, 3)
    check(plan)


def test_rounds_store_vectors_since_matrices_take_all_lanes() -> None:
    source = nvidia_mma((64, 64), 2, (4, 1), (16, 8))
    stores = [
        {way.store.way for way in memory_ways(source, source, 0, 16, replace(HOPPER, scratch=size), local=False)}
        for size in (8192, 4096)
    ]
    assert "matrix" in stores[0]
    assert stores[1] == {"vector"}


@examples(40)
@given(pairs(), st.sampled_from((1, 8, 16, 64)), st.sampled_from((8, 32, 128, 1024)))
def test_every_plan_keeps_within_scratch(
    drawn: tuple[LinearLayout, LinearLayout, int, MachineModel], bits: int, scratch: int
) -> None:
    source, index, axis, machine = drawn
    for way in memory_ways(source, index, axis, bits, replace(machine, scratch=scratch), local=False):
        assert way.cost.scratch <= scratch
        check(GatherPlan("memory", source, index, axis, None, way, way.cost, None, ""))


@pytest.mark.parametrize("bits", [-1, 0, 3, 7, 48, 128])
def test_bits_are_powers_of_two_up_to_64(bits: int) -> None:
    with pytest.raises(ValueError) as caught:
        plan_gather(row(16), row(16), 1, bits, HOPPER)
    assert str(caught.value) == f"plan_gather: bits is {bits}, expected a power of two from 1 to 64"


def test_bits_below_a_byte_take_a_byte_of_memory() -> None:
    plans = [plan_gather(row(16), row(16), 0, bits, HOPPER) for bits in (1, 2, 4, 8, 16)]
    assert [plan.cost.scratch for plan in plans] == [256, 256, 256, 256, 512]


def product(a: list[float], b: list[float], degree: int) -> list[float]:
    """The product of two polynomials, cut at a degree; all terms are positive, so nothing cancels."""
    return [*np.convolve(a, b), *[0.0] * degree][: degree + 1]


def mean_of_largest(lanes: int, banks: int, bracket: Callable[[int], list[float]], values: int) -> float:
    """The mean of the largest occupancy, from P(max <= m) = n! / values^n [x^n] bracket(m)^banks."""
    mean = 0.0
    for m in range(lanes):
        power = [1.0]
        for _ in range(banks):
            power = product(power, bracket(m), lanes)
        mean += 1 - power[lanes] * factorial(lanes) / float(values) ** lanes
    return mean


def apart(lanes: int) -> Callable[[int], list[float]]:
    """Each lane wants a word of its own."""
    return lambda m: [1 / factorial(k) for k in range(min(m, lanes) + 1)]


def sharing(lanes: int, rows: int) -> Callable[[int], list[float]]:
    """Lanes share the words of one memory with ``rows`` in each bank: sum over d <= m of C(rows, d) (e^x - 1)^d."""
    step = [0.0, *(1 / factorial(k) for k in range(1, lanes + 1))]

    def bracket(m: int) -> list[float]:
        out, power = [0.0] * (lanes + 1), [1.0]
        for d in range(min(m, rows) + 1):
            for k, x in enumerate(power):
                out[k] += comb(rows, d) * x
            power = product(power, step, lanes)
        return out

    return bracket


EIGHT = replace(HOPPER, lanes=8, banks=8)


@pytest.mark.parametrize(
    ("machine", "lanes", "along", "copies", "expected"),
    [
        # 32 rows of 2^10 words, a lane each: all words differ, 32 lanes draw from 32 banks: 3.53.
        (HOPPER, range(10, 15), range(10), 0, mean_of_largest(32, 32, apart(32), 32)),
        # 8 lanes along one row of 16 words: two in each bank, shared by the lanes that draw them.
        (EIGHT, (), range(4), 0, mean_of_largest(8, 8, sharing(8, 2), 16)),
        # The same, but all lanes hold copies of one index.
        (EIGHT, (), range(4), 7, 1.0),
        # Two lanes that meet in a bank half of the time.
        (replace(HOPPER, lanes=2, banks=2), (1,), range(1), 0, 1.5),
        # Lanes in different banks never meet, whatever the index.
        (HOPPER, range(5), range(5, 10), 0, 1.0),
        # All on 32 words: one in each bank.
        (HOPPER, (), range(5), 0, 1.0),
    ],
)
def test_the_mean_of_wavefronts(
    machine: MachineModel, lanes: Sequence[int], along: range, copies: int, expected: float
) -> None:
    columns = (*(1 << bit for bit in lanes), 0, 0, 0, 0, 0)[: machine.lanes.bit_length() - 1]
    counted = expected_wavefronts(columns, tuple(1 << bit for bit in along), 32, machine, copies)
    assert counted == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(("lanes", "along"), [((4,), (1, 2)), ((2,), (1, 4)), ((8,), (1, 2, 4)), ((4, 16), (1, 2, 8))])
def test_the_mean_of_wavefronts_by_enumeration(lanes: tuple[int, ...], along: tuple[int, ...]) -> None:
    """Every index of every lane, on 4 banks: the words that the busiest bank serves."""
    machine = replace(HOPPER, lanes=1 << len(lanes), banks=4)
    values = [sum(column for bit, column in enumerate(along) if a >> bit & 1) for a in range(1 << len(along))]
    bases = [sum(column for bit, column in enumerate(lanes) if n >> bit & 1) for n in range(machine.lanes)]
    total = 0
    for drawn in product_of(values, repeat=len(bases)):
        words = {base ^ value for base, value in zip(bases, drawn, strict=True)}
        total += max(sum(word % 4 == bank for word in words) for bank in range(4))
    exact = total / len(values) ** len(bases)
    assert expected_wavefronts(lanes, along, 32, machine) == pytest.approx(exact, abs=0.05)


def test_random_indices_cost_conflicts_and_the_order_of_scratch_avoids_them() -> None:
    """32 lanes along rows of 1,024: the axis is in the banks, 3.53 wavefronts a load whatever the order. 32 lanes down the
    columns: scratch puts them in different banks, so that loads have none."""
    along = blocked((4, 1024), (1, 1), (1, 32), (4, 1), (1, 0))
    plan = plan_gather(along, along, 1, 32, HOPPER)
    assert plan.memory is not None
    waves = plan.memory.mean_wavefronts
    # Each lane's place along the axis is no part of its address: all draw from the same 1,024 words, 32 in each bank.
    assert waves == pytest.approx(mean_of_largest(32, 32, sharing(32, 32), 1024), abs=0.1)
    assert plan.cost.wavefronts >= 4 * 32 * 3.4
    down = blocked((128, 64), (1, 1), (32, 1), (4, 1), (1, 0))
    plan = plan_gather(down, down, 1, 32, HOPPER)
    assert plan.memory is not None
    assert plan.memory.memory.columns("offset")[:5] == tuple(64 << bit for bit in range(5))
    # 64 loads and 64 stores of 4 warps, one wavefront each.
    assert (plan.cost.loads, plan.cost.wavefronts) == (64, 4 * 64 + 4 * 64)


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
            lambda: plan_gather(LinearLayout({"lane": [(1,)], "thread": []}, {"dim0": 2}), row(16), 0, 32, HOPPER),
            "plan_gather: the source layout has input dimension thread, expected register, lane, warp or block",
        ),
        (
            lambda: plan_gather(halves(1), halves(1), 1, 32, HOPPER),
            "plan_gather: bit 3 along dim1 leads to another block, and blocks share no memory",
        ),
        (
            lambda: plan_gather(halves(0), halves(1), 0, 32, HOPPER),
            "plan_gather: bit 3 along dim0 leads to another block, and blocks share no memory",
        ),
        (
            lambda: plan_gather(halves(0), row(16), 1, 32, HOPPER),
            "plan_gather: the source has 2 blocks, the index 1",
        ),
        (
            lambda: plan_gather(row(16), row(16), 0, 32, vector_machine(32)),
            "plan_gather: bit 1 along dim0 leads to another warp, and cpu has no shared memory",
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

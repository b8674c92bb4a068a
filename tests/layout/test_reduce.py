"""Reduction plans: simulated against NumPy on random layouts, counts against hand derivations, and table 3 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sampling import examples
from weft.layout import (
    LinearLayout,
    blocked,
    nvidia_mma,
    nvidia_mma_operand,
    sliced,
)
from weft.layout import reduce as reduced_layout
from weft.layout.planning.machine import HOPPER
from weft.layout.planning.reduce import Butterfly, Halve, ReducePlan, Redux, plan_reduce


def held(layout: LinearLayout, tensor: NDArray[Any], block: int = 0) -> NDArray[Any]:
    """What each thread of a block holds: (warps, lanes, registers), by evaluating the layout at every place."""
    dims = ("warp", "lane", "register")
    sizes = [layout.in_size(d) if d in layout.in_dims else 1 for d in dims]
    out = np.empty(sizes, tensor.dtype)
    flat = tensor.reshape(-1)
    for place in np.ndindex(*sizes):
        places = dict(zip((*dims, "block"), (*place, block), strict=True))
        out[place] = flat[layout.flat(**{d: n for d, n in places.items() if d in layout.in_dims})]
    return out


def check(plan: ReducePlan, source: LinearLayout, axis: int, seed: int = 0) -> None:
    """Sums of numbers drawn at random: an element that is missing or counted twice changes them."""
    tensor = np.random.default_rng(seed).integers(1, 1 << 40, source.shape)
    expected = np.asarray(tensor.sum(axis))
    for block in range(source.in_size("block") if "block" in source.in_dims else 1):
        got = plan.simulate(held(source, tensor, block), np.add)
        np.testing.assert_array_equal(got, held(plan.result, expected, block))


# Worked by hand

COLUMNS = LinearLayout.parse(
    "{register: [(0,1),(0,2),(0,4)], lane: [(1,0),(2,0),(4,0),(8,0),(16,0)]} -> [dim0: 32, dim1: 8]"
)


def test_a_scattered_result_takes_recursive_halving() -> None:
    """8 columns in 8 registers, 32 rows in 32 lanes. Three bits are halved: 4 + 2 + 1 shuffles = 8 (1 - 2^-3); the last two lane
    bits take one shuffle each for the one register that is left."""
    scattered = LinearLayout.parse("{register: [], lane: [1,2,4,0,0]} -> [dim0: 8]")
    plan = plan_reduce(COLUMNS, 0, 32, HOPPER, scattered)
    assert (plan.cost.shuffles, plan.cost.loads, plan.cost.barriers) == (4 + 2 + 1 + 1 + 1, 0, 0)
    assert sum(isinstance(step, Halve) for step in plan.steps) == 3
    check(plan, COLUMNS, 0)


@pytest.mark.parametrize(("registers", "lanes"), [(1, 1), (2, 2), (3, 3), (4, 3), (4, 4), (5, 5)])
def test_halving_takes_r_times_1_minus_2_to_the_minus_a(registers: int, lanes: int) -> None:
    """r = 2^registers results a thread, a = ``lanes`` lane bits along the axis, scattered over all of these."""
    r, a = 1 << registers, lanes
    units = [1 << bit for bit in range(registers)]
    source = LinearLayout(
        {
            "register": [(0, unit) for unit in units],
            "lane": [*((1 << bit, 0) for bit in range(a)), *((0, r << bit) for bit in range(5 - a))],
        },
        {"dim0": 1 << a, "dim1": r << (5 - a)},
    )
    result = LinearLayout(
        {
            "register": [(unit,) for unit in units[: registers - a]],
            "lane": [*((unit,) for unit in reversed(units[registers - a :])), *((r << bit,) for bit in range(5 - a))],
        },
        {"dim0": r << (5 - a)},
    )
    plan = plan_reduce(source, 0, 32, HOPPER, result)
    assert plan.cost.shuffles == r - r // 2**a
    check(plan, source, 0)
    # Copies for all: no more than butterflies, r a.
    copies = plan_reduce(source, 0, 32, HOPPER)
    assert copies.cost.shuffles <= r * a
    check(copies, source, 0)


@pytest.mark.parametrize(("bits", "shuffles"), [(64, 34), (32, 17), (16, 10), (8, 8)])
def test_narrow_elements_travel_together(bits: int, shuffles: int) -> None:
    """32 rows in 32 lanes, 8 results a lane, 4 warps side by side. Halved, 32 bits: 4 + 2 + 1, then 1 + 1 for the one that is
    left, and 8 to make the copies; butterflies alone would take 40. With 16 bits two results go in a word: 2 + 1, then three
    bits of one word, and 4.
    With 8 bits the copies are made by one shuffle more than they need, because an exchange more would be waited for: where
    shuffles have no latency, 7 are enough."""
    down = blocked((32, 32), (1, 8), (32, 1), (1, 4), (1, 0))
    plan = plan_reduce(down, 0, bits, HOPPER)
    assert plan.cost.shuffles <= shuffles
    unwaited = replace(HOPPER, latency=replace(HOPPER.latency, shuffle=0))
    assert bits != 8 or plan_reduce(down, 0, bits, unwaited).cost.shuffles <= 7
    check(plan, down, 0)


def test_halving_beside_triton() -> None:
    """A sum over the rows of 64 x 64 float32, 4 warps. Triton 3.9: 80 shuffles, 4 stores, 4 loads, 7 barriers. r = 16, a = 3,
    b = 2: 16 (1 - 2^-3) = 14 shuffles leave 2 results a lane, which one store of two words a lane can move."""
    source = blocked((64, 64), (1, 4), (8, 4), (4, 1), (1, 0))
    plan = plan_reduce(source, 0, 32, HOPPER)
    assert plan.cost.shuffles <= 14
    assert plan.cost.barriers <= 2
    assert plan.cost.stores + plan.cost.loads <= 7
    check(plan, source, 0)


def test_warps_meet_once() -> None:
    """64 x 64, 4 warps down the rows: one exchange, whatever the shape of the result."""
    source = blocked((64, 64), (1, 4), (2, 16), (4, 1), (1, 0))
    row = blocked((64,), (1,), (32,), (4,), (0,))
    for result in (None, row):
        plan = plan_reduce(source, 0, 32, HOPPER, result)
        assert plan.cost.barriers <= 2
        check(plan, source, 0)
    # Its own layout for a store: one barrier, 64 results of 4 parts, a word a lane.
    plan = plan_reduce(source, 0, 32, HOPPER, row)
    assert plan.cost.barriers == 1


def test_copies_share_the_work() -> None:
    """8 columns in registers, 16 rows in 16 lanes; the fifth lane bit holds copies. Each copy takes 4 of the 8 results."""
    source = LinearLayout.parse(
        "{register: [(0,1),(0,2),(0,4)], lane: [(1,0),(2,0),(4,0),(8,0),(0,0)]} -> [dim0: 16, dim1: 8]"
    )
    scattered = LinearLayout.parse("{register: [], lane: [1,2,0,0,4]} -> [dim0: 8]")
    plan = plan_reduce(source, 0, 32, HOPPER, scattered)
    # 4 results: 2 + 1, then 1 for each of two bits: without sharing 4 + 2 + 1 + 1 and a shuffle to the copy.
    assert plan.cost.shuffles == 2 + 1 + 1 + 1
    assert "2 copies take a share each" in plan.reason
    check(plan, source, 0)


ROW = "{register: [1,2], lane: [4,8,16,32,64], warp: [128,256]} -> [dim0: 512]"


def test_an_instruction_over_all_lanes() -> None:
    """512 integers: 4 in each thread, then 32 lanes by one instruction in place of 5 shuffles, then 4 warps."""
    source = LinearLayout.parse(ROW)
    plan = plan_reduce(source, 0, 32, HOPPER, redux=True)
    assert [step for step in plan.steps if isinstance(step, Redux | Butterfly)] == [Redux(1, 32)]
    assert (plan.cost.reduces, plan.cost.shuffles) == (1, 0)
    assert "all lanes by redux.sync" in plan.reason
    check(plan, source, 0)
    assert plan_reduce(source, 0, 32, HOPPER).cost.reduces == 0
    assert plan_reduce(source, 0, 32, replace(HOPPER, redux=False), redux=True).cost.reduces == 0
    assert plan_reduce(source, 0, 64, HOPPER, redux=True).cost.reduces == 0


def test_the_instruction_takes_all_lanes_only() -> None:
    """The axis is on 4 of 5 lane bits."""
    source = LinearLayout.parse("{register: [], lane: [(1,0),(2,0),(4,0),(8,0),(0,1)]} -> [dim0: 16, dim1: 2]")
    assert plan_reduce(source, 0, 32, HOPPER, redux=True).cost.reduces == 0


@pytest.mark.parametrize(("warps", "counts"), [(1, (0, 32)), (16, (31, 0))])
def test_many_registers_of_many_warps_are_halved(warps: int, counts: tuple[int, int]) -> None:
    """32 results in 32 registers, of which each lane wants one: 31 shuffles and 93 selects and sums, or 32 instructions that take
    as long as 64 shuffles. One warp waits less for the latter; many warps do the former in less time."""
    across = [(0, 32 << bit) for bit in range(warps.bit_length() - 1)]
    source = LinearLayout(
        {"register": [(0, 1 << bit) for bit in range(5)], "lane": [(1 << bit, 0) for bit in range(5)], "warp": across},
        {"dim0": 32, "dim1": 32 * warps},
    )
    inputs = {"register": [], "lane": [(1 << bit,) for bit in range(5)], "warp": [unit[1:] for unit in across]}
    plan = plan_reduce(source, 0, 32, HOPPER, LinearLayout(inputs, {"dim0": 32 * warps}), redux=True)
    assert (plan.cost.shuffles, plan.cost.reduces) == counts
    check(plan, source, 0)


def test_partial_results_are_not_copies() -> None:
    """Copies take shares through shared memory here. Lanes 0 and 16 hold partial results of the same rows. The exchange must
    keep both."""
    source = LinearLayout.parse(
        "{register: [(0,1),(0,2),(1,0),(2,0),(4,0),(8,0),(16,0)], lane: [(0,0),(0,0),(0,0),(0,0),(0,4)], warp: [(0,0),(0,0)]}"
        " -> [dim0: 32, dim1: 8]"
    )
    plan = plan_reduce(source, 1, 64, HOPPER)
    assert "copies take a share each" in plan.reason
    assert plan.cost.stores
    check(plan, source, 1)


def test_an_axis_in_registers_or_of_size_1_moves_nothing() -> None:
    source = blocked((4, 128), (4, 1), (1, 32), (1, 4), (1, 0))
    plan = plan_reduce(source, 0, 32, HOPPER)
    assert (plan.combines, plan.cost.shuffles, plan.cost.barriers) == (3, 0, 0)
    check(plan, source, 0)
    single = blocked((1, 128), (1, 1), (1, 32), (1, 4), (1, 0))
    plan = plan_reduce(single, 0, 32, HOPPER)
    assert plan.steps == ()
    check(plan, single, 0)


# Laws


@st.composite
def sources(draw: st.DrawFn) -> tuple[LinearLayout, int, LinearLayout | None]:
    """A distributed layout with copies anywhere, two warps bits, blocks off the axis; and a result layout or None."""
    sizes = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    axis = draw(st.integers(0, len(sizes) - 1))
    outputs = tuple((f"dim{at}", size) for at, size in enumerate(sizes))
    units = [1 << bit for bit in range(sum(sizes))]
    below = sum(sizes[axis + 1 :])
    along = [unit for unit in units if below <= unit.bit_length() - 1 < below + sizes[axis]]
    off = [unit for unit in units if unit not in along]
    blocks = off[-1:] if off and draw(st.booleans()) else []
    warp_bits = draw(st.integers(0, 2))
    rest = [unit for unit in units if unit not in blocks]

    def layout(rest: list[int], outputs: tuple[tuple[str, int], ...], blocks: list[int]) -> LinearLayout:
        registers = max(0, len(rest) - 5 - warp_bits) + draw(st.integers(0, 2))
        columns = draw(st.permutations(rest + [0] * (registers + 5 + warp_bits - len(rest))))
        dims = {
            "register": columns[:registers],
            "lane": columns[registers : registers + 5],
            "warp": columns[registers + 5 :],
        }
        if blocks:
            dims["block"] = blocks
        return LinearLayout.from_columns({dim: tuple(of) for dim, of in dims.items()}, outputs)

    source = layout(rest, outputs, blocks)
    if draw(st.booleans()):
        return source, axis, None
    child = reduced_layout(source, axis)
    kept = [1 << bit for bit in range(child.out_bits)]
    home = list(child.columns("block")) if blocks else []
    return source, axis, layout([unit for unit in kept if unit not in home], child.outputs, home)


@examples(120)
@given(sources(), st.sampled_from((8, 16, 32, 64)))
def test_every_plan_reduces(drawn: tuple[LinearLayout, int, LinearLayout | None], bits: int) -> None:
    source, axis, result = drawn
    for redux in (False, True):
        check(plan_reduce(source, axis, bits, HOPPER, result, redux), source, axis)


# Table 3

SHAPES = ((16, 16), (32, 32), (64, 64), (128, 128), (128, 16))


def _mma(shape: tuple[int, int], warps: int) -> LinearLayout:
    return nvidia_mma(shape, 2, (warps, 1), (16, 8))


def _operand(shape: tuple[int, int], warps: int) -> LinearLayout:
    return nvidia_mma_operand(shape, 0, 2, 2, (warps, 1), (16, 8))


def _custom(shape: tuple[int, int], warps: int) -> LinearLayout:
    """Bits of rows and columns dealt by turns: no family's."""
    rows, columns = (size.bit_length() - 1 for size in shape)
    units = [1 << bit for bit in range(rows + columns)]
    mixed = sorted(units, key=lambda unit: (unit.bit_length() * 5) % (rows + columns + 1))
    count = warps.bit_length() - 1
    registers = len(mixed) - 5 - count
    dims = {
        "register": tuple(mixed[:registers]),
        "lane": tuple(mixed[registers : registers + 5]),
        "warp": tuple(mixed[registers + 5 :]),
    }
    return LinearLayout.from_columns(dims, (("dim0", rows), ("dim1", columns)))


def _sliced_mma(shape: tuple[int, int], warps: int) -> LinearLayout:
    """A slice of a batch of matrices along the batch."""
    return sliced(nvidia_mma((2, *shape), 2, (1, warps, 1), (1, 16, 8)), 0)


def _sliced_operand(shape: tuple[int, int], warps: int) -> LinearLayout:
    return sliced(nvidia_mma_operand((2, *shape), 0, 2, 2, (1, warps, 1), (1, 16, 8)), 0)


# Kind, cases, the paper's shared memory instructions (and those of the Triton that the authors compare with), and ours: stores
# and loads of a thread, in all cases together.
TABLE_3: list[tuple[str, Callable[[tuple[int, int], int], LinearLayout], int, int, int]] = [
    ("Blocked", lambda shape, warps: blocked(shape, (1, 4), (8, 4), (warps, 1), (1, 0)), 20, 1388, 76),  # 5888
    ("MMA", _mma, 20, 3517, 63),  # 5914
    ("MMA Input", _operand, 10, 5884, 28),  # not supported
    (
        "Sliced<Blocked>",
        lambda shape, warps: sliced(
            blocked((shape[0], 2, shape[1]), (1, 2, 2), (4, 1, 8), (warps, 1, 1), (2, 1, 0)), 1
        ),
        20,
        4687,  # 6703
        62,
    ),
    ("Sliced<MMA>", _sliced_mma, 10, 320, 28),  # not supported
    ("Sliced<MMA Input>", _sliced_operand, 10, 545, 28),  # not supported
    ("Custom", _custom, 10, 913, 34),  # not supported
]


def cases(count: int) -> Iterator[tuple[tuple[int, int], int, int]]:
    """(shape, warps, axis): the paper says 16 x 16 to 128 x 128 and several numbers of warps; it does not list them."""
    for shape in SHAPES:
        for axis in (0, 1):
            for warps in (4, 8)[: count // 10]:
                yield shape, warps, axis


@pytest.mark.parametrize(("kind", "family", "count", "paper", "ours"), TABLE_3, ids=[row[0] for row in TABLE_3])
def test_table_3(
    kind: str, family: Callable[[tuple[int, int], int], LinearLayout], count: int, paper: int, ours: int
) -> None:
    """Each kind reduces right in as many cases as the paper has, with no more shared memory instructions in all. The paper says
    neither its cases nor what it counts (a thread's or a block's instructions); ours are a thread's."""
    instructions = 0
    tried = list(cases(count))
    assert len(tried) == count
    for shape, warps, axis in tried:
        source = family(shape, warps)
        plan = plan_reduce(source, axis, 32, HOPPER)
        if shape[0] * shape[1] <= 4096:
            check(plan, source, axis)
        instructions += plan.cost.stores + plan.cost.loads
    assert instructions <= ours <= paper, kind


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (lambda: plan_reduce(COLUMNS, 0, 24, HOPPER), "plan_reduce: bits is 24, expected a power of two from 1 to 64"),
        (lambda: plan_reduce(COLUMNS, 2, 32, HOPPER), "plan_reduce: axis 2 is out of range for rank 2"),
        (
            lambda: plan_reduce(LinearLayout.parse("{lane: [1]} -> [dim0: 2]"), 0, 32, HOPPER),
            "plan_reduce: the source layout has 2 lanes, sm_90 has 32",
        ),
        (
            lambda: plan_reduce(LinearLayout.parse("{thread: [1]} -> [dim0: 2]"), 0, 32, HOPPER),
            "plan_reduce: the source layout has input dimension thread, expected register, lane, warp or block",
        ),
        (
            lambda: plan_reduce(LinearLayout.parse("{lane: [3,1]} -> [dim0: 4]"), 0, 32, HOPPER),
            "plan_reduce: the source layout is not distributed: basis 0 of lane is (3,), expected at most one bit set",
        ),
        (
            lambda: plan_reduce(blocked((64,), (1,), (32,), (1,), (0,), cga_layout=[(1,)]), 0, 32, HOPPER),
            "plan_reduce: basis 0 of block is (32,), along dim0: blocks share no memory to reduce through",
        ),
        (
            lambda: plan_reduce(COLUMNS, 0, 32, HOPPER, blocked((16,), (1,), (32,), (1,), (0,))),
            f"plan_reduce: the result layout is {blocked((16,), (1,), (32,), (1,), (0,))}, expected one of shape (8,)",
        ),
        (
            lambda: plan_reduce(COLUMNS, 0, 32, HOPPER, blocked((8,), (1,), (32,), (2,), (0,))),
            "plan_reduce: the source has 1 warps, the result 2",
        ),
    ],
)
def test_refusals(fails: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        fails()
    assert str(caught.value) == message

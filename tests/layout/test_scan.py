"""Scan plans: simulated on random layouts with an operation that does not commute, against prefixes taken one by one; counts
against hand derivations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sampling import examples
from weft.layout import LinearLayout, blocked, nvidia_mma, sliced
from weft.layout.planning.machine import CDNA, HOPPER, MachineModel
from weft.layout.planning.scan import Bit, ScanPlan, Shift, plan_scan

PRIME = 1_000_003


def affine(earlier: NDArray[Any], later: NDArray[Any]) -> NDArray[Any]:
    """``later`` after ``earlier``: maps x -> p x + q modulo a prime, packed as p * PRIME + q. Associative, not commutative."""
    p, q = earlier // PRIME, earlier % PRIME
    s, t = later // PRIME, later % PRIME
    return s * p % PRIME * PRIME + (s * q + t) % PRIME


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


def check(plan: ScanPlan) -> None:
    tensor = np.random.default_rng(0).integers(PRIME, PRIME * PRIME, plan.source.shape)
    expected = tensor.copy()
    lines = np.moveaxis(expected, plan.axis, 0)
    order = range(len(lines) - 2, -1, -1) if plan.reverse else range(1, len(lines))
    for i in order:
        lines[i] = affine(lines[i + 1 if plan.reverse else i - 1], lines[i])
    for block in range(plan.source.in_size("block") if "block" in plan.source.in_dims else 1):
        got = plan.simulate(held(plan.source, tensor, block), affine)
        np.testing.assert_array_equal(got, held(plan.source, expected, block))


def test_the_operation_of_these_tests() -> None:
    """2 x + 1, then 3 x: 6 x + 3. The other way round: 6 x + 1."""
    a, b = np.array([2 * PRIME + 1]), np.array([3 * PRIME])
    assert affine(a, b)[0] == 6 * PRIME + 3
    assert affine(b, a)[0] == 6 * PRIME + 1


# Worked by hand


def test_registers_alone() -> None:
    plan = plan_scan(blocked((8, 32), (8, 1), (1, 32), (1, 1), (1, 0)), 0, 32, HOPPER)
    assert (plan.cost.shuffles, plan.cost.barriers, plan.combines) == (0, 0, 7)
    check(plan)


@pytest.mark.parametrize("reverse", [False, True])
def test_lanes_alone_take_a_shuffle_for_each_bit(reverse: bool) -> None:
    plan = plan_scan(blocked((32, 4), (1, 4), (32, 1), (1, 1), (1, 0)), 0, 32, HOPPER, reverse)
    # 4 registers, 5 lane bits.
    assert (plan.cost.shuffles, plan.combines) == (4 * 5, 4 * 5)
    check(plan)


@pytest.mark.parametrize("reverse", [False, True])
def test_registers_below_lanes_scan_their_totals(reverse: bool) -> None:
    """4 registers, 32 lanes: 3 serial steps, one total in 5 shuffles, one shuffle to shift it, 4 to combine it with all."""
    plan = plan_scan(blocked((128,), (4,), (32,), (1,), (0,)), 0, 32, HOPPER, reverse)
    assert (plan.cost.shuffles, plan.combines) == (5 + 1, 3 + 5 + 4)
    check(plan)


@pytest.mark.parametrize("reverse", [False, True])
def test_lanes_below_registers_carry_the_last_lane(reverse: bool) -> None:
    """Rows of 32 lanes, 4 of them in registers: 4 x 5 shuffles, then 4 totals are spread by a shuffle each."""
    plan = plan_scan(blocked((128,), (1,), (32,), (1,), (0,)), 0, 32, HOPPER, reverse)
    assert (plan.cost.shuffles, plan.cost.barriers) == (4 * 5 + 4, 0)
    # 20 across lanes, 3 to scan 4 totals, 3 of 4 registers have something before them.
    assert plan.combines == 20 + 3 + 3
    check(plan)


@pytest.mark.parametrize("reverse", [False, True])
def test_warps_meet_once(reverse: bool) -> None:
    """The module's example: 5 + 1 shuffles in the warp, 1 to spread its total; each thread loads the totals of 4 warps."""
    plan = plan_scan(blocked((512,), (4,), (32,), (4,), (0,)), 0, 32, HOPPER, reverse)
    assert (plan.cost.shuffles, plan.cost.barriers, plan.cost.stores, plan.cost.loads) == (5 + 1 + 1, 1, 1, 1)
    # One total of each warp, not of each lane.
    assert plan.cost.scratch == 4 * 4
    check(plan)


def test_beside_triton() -> None:
    """cumsum of 64 x 64 float32 along axis 0, 4 warps, in the layout that Triton 3.9 chooses. There: 64 shuffles, 32 stores and
    124 loads, since each thread reads what all warps before it have, for each register. Here 32 shuffles for the lane bit, 32 to
    spread totals, and at most 8 stores and 32 loads of four words."""
    plan = plan_scan(blocked((64, 64), (1, 4), (2, 16), (4, 1), (1, 0)), 0, 32, HOPPER)
    assert plan.cost.shuffles == 64
    assert (plan.cost.stores <= 8, plan.cost.loads <= 32) == (True, True)
    check(plan)


def test_lanes_that_hold_copies_take_a_share() -> None:
    """Where shuffles are waited for less than they take: with four warps, not with one."""
    lanes = "register: [(0,1),(0,2),(0,4)], lane: [(1,0),(2,0),(4,0),(8,0),(0,0)]"
    alone = plan_scan(LinearLayout.parse(f"{{{lanes}}} -> [dim0: 16, dim1: 8]"), 0, 32, HOPPER)
    assert alone.cost.shuffles == 8 * 4
    check(alone)
    source = LinearLayout.parse(f"{{{lanes}, warp: [(0,8),(0,16)]}} -> [dim0: 16, dim1: 32]")
    plan = plan_scan(source, 0, 32, HOPPER)
    # Each copy scans 4 of the 8 columns, 4 x 4 shuffles, then gets the other 4: 20, not 8 x 4.
    assert plan.cost.shuffles == 4 * 4 + 4
    assert "2 copies take a share each" in plan.reason
    check(plan)


def test_registers_that_hold_copies_are_scanned_once() -> None:
    plan = plan_scan(LinearLayout.parse("{register: [0,0], lane: [1,2,4,8,16]} -> [dim0: 32]"), 0, 32, HOPPER)
    assert (plan.cost.shuffles, plan.combines) == (5, 5)
    check(plan)


def test_a_slice_of_a_matrix_fragment() -> None:
    source = sliced(nvidia_mma((64, 16), 2, (4, 1), (16, 8)), 1)
    for reverse in (False, True):
        check(plan_scan(source, 0, 32, HOPPER, reverse))


def test_an_axis_of_size_1_needs_nothing() -> None:
    plan = plan_scan(blocked((1, 64), (1, 1), (1, 32), (1, 2), (1, 0)), 0, 32, HOPPER)
    assert plan.steps == ()
    check(plan)


# Laws


@st.composite
def sources(draw: st.DrawFn) -> tuple[LinearLayout, int, MachineModel]:
    """A distributed layout with copies anywhere and blocks off the axis."""
    machine = draw(st.sampled_from((HOPPER, CDNA)))
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=3))
    axis = draw(st.integers(0, len(sizes) - 1))
    units = [1 << bit for bit in range(sum(sizes))]
    below = sum(sizes[axis + 1 :])
    off = [unit for unit in units if not below < unit.bit_length() <= below + sizes[axis]]
    blocks = off[-1:] if draw(st.booleans()) else []
    rest = [unit for unit in units if unit not in blocks]
    lanes, warps = machine.lanes.bit_length() - 1, draw(st.integers(0, 2))
    registers = max(0, len(rest) - lanes - warps) + draw(st.integers(0, 2))
    columns = draw(st.permutations(rest + [0] * (registers + lanes + warps - len(rest))))
    dims = {
        "register": tuple(columns[:registers]),
        "lane": tuple(columns[registers : registers + lanes]),
        "warp": tuple(columns[registers + lanes :]),
        **({"block": tuple(blocks)} if blocks else {}),
    }
    outputs = tuple((f"dim{at}", size) for at, size in enumerate(sizes))
    return LinearLayout.from_columns(dims, outputs), axis, machine


@examples(60)
@given(sources(), st.sampled_from((8, 32, 64)), st.booleans())
def test_every_plan_scans(drawn: tuple[LinearLayout, int, MachineModel], bits: int, reverse: bool) -> None:
    source, axis, machine = drawn
    plan = plan_scan(source, axis, bits, machine, reverse)
    # Warps exchange data in one step at most.
    assert sum(step.cost.barriers > 0 for step in plan.steps) <= 1
    check(plan)


ROW = blocked((64,), (1,), (32,), (2,), (0,))


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (lambda: plan_scan(ROW, 0, 0, HOPPER), "plan_scan: bits is 0, expected a power of two from 1 to 64"),
        (lambda: plan_scan(ROW, 1, 32, HOPPER), "plan_scan: axis 1 is out of range for rank 1"),
        (lambda: plan_scan(ROW, 0, 32, CDNA), "plan_scan: the layout has 32 lanes, gfx942 has 64"),
        (
            lambda: plan_scan(LinearLayout.parse("{thread: [1]} -> [dim0: 2]"), 0, 32, HOPPER),
            "plan_scan: the layout has input dimension thread, expected register, lane, warp or block",
        ),
        (
            lambda: plan_scan(LinearLayout.parse("{lane: [3,1]} -> [dim0: 4]"), 0, 32, HOPPER),
            "plan_scan: the layout is not distributed: basis 0 of lane is (3,), expected at most one bit set",
        ),
        (
            lambda: plan_scan(blocked((64,), (1,), (32,), (1,), (0,), cga_layout=[(1,)]), 0, 32, HOPPER),
            "plan_scan: basis 0 of block is (32,), along dim0: blocks share no memory to scan through",
        ),
    ],
)
def test_refusals(fails: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        fails()
    assert str(caught.value) == message


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("order", ["rl", "lr", "lrlr", "rlrrl", "llrrlr"])
def test_a_shift_as_a_thread_carries_it_out(order: str, reverse: bool) -> None:
    """A lane reads what `stops` says: the first stop whose bit is set (clear, in reverse); so does what it is offered."""
    places = {"r": 0, "l": 0}
    along: list[Bit] = []
    for where in order:
        along.append(Bit("register" if where == "r" else "lane", places[where]))
        places[where] += 1
    shift = Shift(tuple(along), 1 << places["r"], 32, reverse)
    state = np.arange(32 << places["r"]).reshape(1, 32, -1)
    found = np.empty_like(state)
    for lane in range(32):
        for register in range(shift.registers):
            *at, last = shift.stops(register)
            taken = next((s for s in at if s.lane is not None and (lane >> s.lane & 1) != reverse), last)
            offering = lane ^ taken.flips
            assert taken == next((s for s in at if s.lane is not None and (offering >> s.lane & 1) == reverse), last)
            found[0, lane, register] = state[0, offering, taken.register]
    np.testing.assert_array_equal(found, shift.apply(state, affine))
    size = 1 << len(order)
    numbers = np.zeros(state.shape, dtype=np.int64)
    for index in np.ndindex(state.shape):
        for place, bit in enumerate(along):
            numbers[index] |= (index[2 if bit.dim == "register" else 1] >> bit.at & 1) << place
    step = 1 if reverse else -1
    before = numbers.reshape(-1)[found]
    np.testing.assert_array_equal(before, (numbers + step) % size)

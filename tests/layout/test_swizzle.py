"""Optimal swizzles: wavefronts from simulated addresses against the bound, on random layouts and on worked examples."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.layout import LinearLayout, blocked, optimal_swizzle, simulate_wavefronts
from weft.layout.banks import Banks


def simulated(accesses: Sequence[LinearLayout], bits: int, banks: Banks | None = None) -> list[int]:
    """What each access takes with the optimal memory, from addresses; also that the swizzle says the same."""
    machine = banks or Banks()
    swizzle = optimal_swizzle(*accesses, bits=bits, banks=machine)
    counted = [
        simulate_wavefronts(layout, swizzle.memory, bits, cost.vector, machine)
        for layout, cost in zip(accesses, swizzle.accesses, strict=True)
    ]
    assert counted == [cost.wavefronts for cost in swizzle.accesses]
    assert sum(counted) == swizzle.wavefronts == swizzle.least + swizzle.gap
    return counted


@st.composite
def accesses(draw: st.DrawFn, count: int) -> list[LinearLayout]:
    """Distributed layouts of one tensor with 32 lanes and some warps; every dimension may hold copies."""
    shape_bits = draw(st.lists(st.integers(0, 4), min_size=1, max_size=3))
    units = [
        tuple((1 << bit) if axis == other else 0 for other in range(len(shape_bits)))
        for axis, bits in enumerate(shape_bits)
        for bit in range(bits)
    ]
    layouts: list[LinearLayout] = []
    for _ in range(count):
        lane_bits, warp_bits = draw(st.sampled_from([(5, 0), (5, 2), (6, 1), (3, 0)]))
        register_bits = max(0, len(units) - lane_bits - warp_bits) + draw(st.integers(0, 3))
        zeros = [(0,) * len(shape_bits)] * max(0, register_bits + lane_bits + warp_bits - len(units))
        columns = draw(st.permutations(units + zeros))
        cuts = (register_bits, register_bits + lane_bits)
        layouts.append(
            LinearLayout(
                {"register": columns[: cuts[0]], "lane": columns[cuts[0] : cuts[1]], "warp": columns[cuts[1] :]},
                {f"dim{axis}": 1 << bits for axis, bits in enumerate(shape_bits)},
            )
        )
    return layouts


@given(accesses(2), st.sampled_from([8, 16, 32, 64, 128]))
@settings(max_examples=150, deadline=None)
def test_two_accesses_never_conflict(layouts: list[LinearLayout], bits: int) -> None:
    """Lemma 9.6, from simulated addresses."""
    swizzle = optimal_swizzle(*layouts, bits=bits)
    assert simulated(layouts, bits) == [cost.bound for cost in swizzle.accesses]
    assert swizzle.gap == 0


def test_a_transpose_of_halves() -> None:
    """The module's example."""
    a = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0))
    b = blocked((64, 64), (8, 1), (8, 4), (1, 4), (0, 1))
    # A: 4096 elements / 128 threads = 32 registers = 4 vectors of 128 bits; 4 warps * 4 vectors * 4 phases = 64.
    # B: 32 registers one by one; 4 warps * 32 = 128, each instruction a single phase of 32 halves.
    assert simulated((a, b), 16) == [64, 128]


def test_no_accesses() -> None:
    with pytest.raises(ValueError) as error:
        optimal_swizzle(bits=16)
    assert str(error.value) == "optimal_swizzle: got no accesses, expected at least one layout"

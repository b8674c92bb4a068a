"""The price of costs, in clocks, by hand."""

from __future__ import annotations

import pytest

from weft.layout.planning.machine import CDNA, HOPPER
from weft.layout.planning.price import clocks, least_cost
from weft.layout.planning.steps import Cost


@pytest.mark.parametrize(
    ("cost", "warps", "price"),
    [
        (Cost(), 4, 0),
        # A warp's shuffle is 32 lanes, a clock; two of its selects take one.
        (Cost(shuffles=8), 4, 32),
        (Cost(permutes=8), 4, 16),
        # Pipes work at the same time: 8 x 4 clocks of data hide 12 x 4 / 2 of arithmetic, not 24 x 4 / 2.
        (Cost(shuffles=8, permutes=12), 4, 32),
        (Cost(shuffles=8, permutes=24), 4, 48),
        # Wavefronts are the block's already; instructions are issued 4 a clock.
        (Cost(stores=4, loads=4, wavefronts=128, barriers=1), 4, 128),
        (Cost(stores=64, loads=64, wavefronts=16), 4, 128),
    ],
)
def test_clocks(cost: Cost, warps: int, price: float) -> None:
    assert clocks(cost, HOPPER, warps) == price


def test_a_warp_of_64_takes_twice_the_clocks() -> None:
    assert clocks(Cost(shuffles=8), CDNA, 1) == 16
    assert clocks(Cost(permutes=8), CDNA, 1) == 8


def test_the_least_through_memory() -> None:
    # 128x128 f16: 32 KB are 256 wavefronts to store; each of 4 warps loads a quarter, or all of it.
    assert least_cost(1 << 14, 1 << 12, 16, HOPPER, 4) == Cost(stores=1, loads=1, wavefronts=256 + 4 * 64, barriers=1)
    assert least_cost(1 << 14, 1 << 14, 16, HOPPER, 4).wavefronts == 256 + 4 * 256
    assert least_cost(1, 1, 8, HOPPER, 1).wavefronts == 2

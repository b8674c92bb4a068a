"""What a conversion needs, and the least it takes: by ranks, against sets of what each thread, lane and warp holds and wants."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from weft.layout import LinearLayout, blocked, nvidia_mma, nvidia_mma_operand
from weft.layout.planning.needs import Places, crossing, least_shuffles, needs, received_words, sent_words


def layout(register: list[int], lane: list[int], warp: list[int], size: int) -> LinearLayout:
    dims = {"register": register, "lane": lane, "warp": warp}
    return LinearLayout({dim: [(basis,) for basis in bases] for dim, bases in dims.items()}, {"dim0": size})


def need(source: LinearLayout, destination: LinearLayout) -> str:
    return needs(Places.of(source), Places.of(destination))


def needed_by_sets(source: Any, destination: Any) -> str:
    """The same by looking at every thread."""

    def within(owners: int) -> bool:
        pools = (state.reshape(owners, -1).tolist() for state in (source, destination))
        return all(set(wanted) <= set(own) for own, wanted in zip(*pools, strict=True))

    if source.shape == destination.shape and (source == destination).all():
        return "nothing"
    warps, lanes, _ = source.shape
    return "registers" if within(warps * lanes) else "lanes" if within(warps) else "warps"


def shuffles_by_sets(source: Any, destination: Any, bits: int, width: int) -> tuple[int, int]:
    """The least words that the worst thread receives, and that lanes holding what their warp wants send."""
    received = sent = 0
    for held, wanted in zip(source.tolist(), destination.tolist(), strict=True):
        missing: list[set[int]] = [set(mine) - set(own) for own, mine in zip(held, wanted, strict=True)]
        everything: set[int] = {element for mine in wanted for element in mine}
        senders = sum(not everything.isdisjoint(own) for own in held)
        received = max(received, -(-max(map(len, missing)) * bits // width))
        sent = max(sent, -(-len(set[int]().union(*missing)) * bits // (width * senders)))
    return received, sent


@pytest.mark.parametrize("lane_bits", [0, 1, 3, 5, 6])
def test_by_ranks_as_by_sets(gpu_pair: Any, held: Any, lane_bits: int) -> None:
    rng = random.Random(lane_bits)
    seen: Counter[str] = Counter()
    for _ in range(200):
        source, destination = gpu_pair(rng, lane_bits, rng.randint(0, 3), rng.randint(0, 4))
        a, b = Places.of(source), Places.of(destination)
        states = held(source), held(destination)
        found = needs(a, b)
        assert found == needed_by_sets(*states), (source, destination)
        assert (crossing(a, b) != 0) == (found == "warps")
        if found == "lanes":
            bits, width = 1 << rng.randint(0, 6), rng.choice((32, 64))
            assert (received_words(a, b, bits, width), sent_words(a, b, bits, width)) == shuffles_by_sets(
                *states, bits, width
            )
        seen[found] += 1
    assert seen["nothing"] and seen["registers"] and seen["warps"] and (seen["lanes"] or lane_bits == 0), seen


def test_nothing() -> None:
    source = layout([1], [2, 0], [4], 8)
    assert need(source, source) == "nothing"


def test_copies_make_a_conversion_stay_within_warps() -> None:
    """A 16x16 result of wgmma wraps around its 64 rows: every warp holds all of it, so any layout can be had within the warp,
    although no warp column is as it was."""
    source = nvidia_mma((16, 16), 3, (4, 1), (16, 16))
    destination = blocked((16, 16), (1, 2), (4, 8), (4, 1), (1, 0))
    assert source.columns("warp") == (0, 0)
    assert all(destination.columns("warp"))
    assert need(source, destination) == "lanes"
    # Back, each warp holds four rows and wants all.
    assert need(destination, source) == "warps"


def test_a_lane_that_holds_copies_needs_only_its_registers() -> None:
    """Both lanes have 0 and 1; then lane 0 is to have 0 and lane 1 to have 1: each selects."""
    assert need(layout([1], [0], [], 2), layout([], [1], [], 2)) == "registers"
    assert need(layout([], [1], [], 2), layout([1], [0], [], 2)) == "lanes"


def test_a_warp_selects_its_registers() -> None:
    assert need(layout([1], [2], [0], 4), layout([], [2], [1], 4)) == "registers"
    assert need(layout([1], [2], [0], 4), layout([1], [0], [2], 4)) == "lanes"
    assert need(layout([], [2], [1], 4), layout([1], [2], [0], 4)) == "warps"


def test_what_crosses_warps() -> None:
    """Warp bit 0 (element bit 8) goes to a register, whose bit 1 goes to the warps: only 8 differs among what a warp wants
    and does not hold."""
    a, b = Places.of(layout([1, 2], [4], [8], 16)), Places.of(layout([8, 2], [4], [1], 16))
    assert crossing(a, b) == 8
    assert crossing(a, a) == 0


def test_bounds_of_known_conversions() -> None:
    # f32, 16x16 of one warp: from mma results to the left operand with one element at a time, each of the 8 elements of a
    # thread is in another lane for some lane: (0,1) of the register bits enters the lanes.
    a = Places.of(nvidia_mma((16, 16), 2, (1, 1), (16, 8)))
    b = Places.of(nvidia_mma_operand((16, 16), 0, 1, 2, (1, 1), (16, 8)))
    assert least_shuffles(a, b, 32, 32) == 8
    # One register bit exchanged with one lane bit, in place: half of 4 registers moves.
    a, b = Places.of(layout([1, 2], [4, 8], [], 16)), Places.of(layout([4, 2], [1, 8], [], 16))
    assert [least_shuffles(a, b, bits, 32) for bits in (64, 32, 16, 8, 4)] == [4, 2, 1, 1, 1]
    # Lane bit 4 is where the warp's number takes its place: 4 of 8 lanes hold the 16 elements a warp wants, 2 registers each
    # of 2 x 4. In the others' place a lane wants register bit 1: of 16 elements, 16 / 2^1 may stay, 8 / 4 are sent a lane.
    a, b = Places.of(layout([1, 2], [4, 8, 16], [0], 32)), Places.of(layout([2], [1, 8, 16], [4], 32))
    assert (received_words(a, b, 32, 32), sent_words(a, b, 32, 32)) == (2, 2)

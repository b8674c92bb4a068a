"""The counting rules, against sets of bytes in Python, by hand, and against layouts' bank conflicts."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import ceil
from typing import TypeAlias

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.emulator.machine.active import IndexArray
from weft.emulator.profile.counting import collisions, local_sectors, requests, sectors, wavefronts
from weft.layout import LinearLayout, bank_conflicts

SIZES = (1, 2, 4, 8, 16)

# ---- the definitions, lane by lane ------------------------------------------------------------------------------------

Lanes: TypeAlias = Sequence[int | None]
"""The address of each of 32 lanes, None for those that are not active."""


def slow_wavefronts(lanes: Lanes, size: int) -> tuple[int, int]:
    """A set of words for each bank, in every phase."""
    width = {1: 32, 2: 32, 4: 32, 8: 16, 16: 8}[size]
    total = ideal = 0
    for start in range(0, 32, width):
        words = {
            byte // 4
            for address in lanes[start : start + width]
            if address is not None
            for byte in range(address, address + size)
        }
        banks: dict[int, set[int]] = defaultdict(set)
        for word in words:
            banks[word % 32].add(word)
        total += max((len(bank) for bank in banks.values()), default=0)
        ideal += ceil(len(words) / 32)
    return total, ideal


def slow_sectors(lanes: Lanes, size: int) -> tuple[int, int]:
    """The set of bytes."""
    touched = {byte for address in lanes if address is not None for byte in range(address, address + size)}
    return len({byte // 32 for byte in touched}), ceil(len(touched) / 32)


def slow_local(lanes: Lanes, size: int) -> tuple[int, int]:
    """The set of words, each at its place in the warp's memory."""
    words = {
        32 * (byte // 4) + lane
        for lane, address in enumerate(lanes)
        if address is not None
        for byte in range(address, address + size)
    }
    return len({word // 8 for word in words}), ceil(len(words) / 8)


def slow_collisions(lanes: Lanes) -> int:
    active = [address for address in lanes if address is not None]
    return len(active) - len(set(active))


def arrays(warps: Sequence[Lanes]) -> tuple[IndexArray, NDArray[np.int64]]:
    """What the counting functions take."""
    lanes = [(32 * warp + lane, a) for warp, row in enumerate(warps) for lane, a in enumerate(row) if a is not None]
    return np.array([thread for thread, _ in lanes], np.intp), np.array([a for _, a in lanes], np.int64)


# ---- random accesses ----------------------------------------------------------------------------------------------------


def generated(seed: int, size: int) -> list[Lanes]:
    """A few warps of one of the kinds of access that programs have, some with lanes switched off."""
    rng = random.Random(seed)
    base = rng.choice((0, 1 << 20, 0x7F12_3400_0000)) + size * rng.randrange(64)
    warps: list[Lanes] = []
    for _ in range(rng.randrange(1, 5)):
        kind = rng.randrange(6)
        step = rng.choice((1, 2, 3, 4, 8, 32, 33, 64))
        lanes: list[int | None] = [
            base
            + size
            * (
                lane * step,
                rng.randrange(1 << rng.randrange(1, 12)),
                7,
                (31 - lane) * step,
                (lane % 8) * step + lane // 8,
                lane ^ step,
            )[kind]
            for lane in range(32)
        ]
        off = rng.choice((0, 0, 0.2, 0.5, 0.97, 1))
        warps.append([None if rng.random() < off else address for address in lanes])
    return warps


@pytest.mark.parametrize("size", SIZES)
def test_random_accesses_count_as_sets_do(size: int):
    for seed in range(500):
        warps = generated(seed, size)
        threads, addresses = arrays(warps)
        if not len(threads):
            continue
        assert wavefronts(threads, addresses, size) == total(slow_wavefronts(lanes, size) for lanes in warps), seed
        assert sectors(threads, addresses, size) == total(slow_sectors(lanes, size) for lanes in warps), seed
        assert collisions(threads, addresses) == sum(map(slow_collisions, warps)), seed
        assert requests(threads) == sum(any(a is not None for a in lanes) for lanes in warps), seed
        local = [
            [None if a is None else a % (1 << 16) for a in lanes] for lanes in warps
        ]  # it is small, and starts at 0
        expected = total(slow_local(lanes, size) for lanes in local)
        assert local_sectors(threads, addresses % (1 << 16), size) == expected, seed


def total(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    first, second = zip(*counts, strict=True)
    return sum(first), sum(second)


def test_addresses_may_be_as_far_apart_as_64_bits_allow():
    """Allocations lie anywhere; with checks switched off, so may accesses."""
    far = [None] * 20 + [0, 4, 1 << 61, (1 << 61) + 28, -(1 << 61), -(1 << 61) + 8, 0, 4, 8, 12, 16, 20]
    assert sectors(*arrays([far, far]), 4) == (6, 4)  # three sectors; ten words: 40 bytes
    assert collisions(*arrays([far])) == 2


# ---- by hand ------------------------------------------------------------------------------------------------------------

LANE = np.arange(32)


@pytest.mark.parametrize(
    ("addresses", "size", "expected"),
    [
        (4 * LANE, 4, (1, 1)),  # a row of words
        (128 * LANE, 4, (32, 1)),  # a column of a 32-wide tile
        (132 * LANE, 4, (1, 1)),  # the same, rows padded by a word
        (64 + 0 * LANE, 4, (1, 1)),  # a broadcast
        (8 * LANE, 4, (2, 1)),  # every other word: 16 banks, two words each
        (2 * LANE, 2, (1, 1)),  # halves: 16 words, two lanes each
        (LANE, 1, (1, 1)),
        (64 * LANE, 2, (16, 1)),  # words 16 i: banks 0 and 16, 16 words each
        (8 * LANE, 8, (2, 2)),  # two half warps
        (16 * LANE, 16, (4, 4)),  # four quarters
        (256 * LANE, 16, (32, 4)),  # in each quarter eight vectors in the same four banks
        (16 * (LANE // 8), 16, (4, 4)),  # a quarter wants one vector; quarters are served one after another
        (128 * (LANE % 2), 4, (2, 1)),  # two words in bank 0
    ],
)
def test_wavefronts_by_hand(addresses: NDArray[np.int64], size: int, expected: tuple[int, int]):
    assert wavefronts(LANE, addresses, size) == expected


@pytest.mark.parametrize(
    ("addresses", "size", "expected"),
    [
        (4 * LANE, 4, (4, 4)),
        (4 * LANE + 4, 4, (5, 4)),  # the same 128 bytes, across a boundary
        (8 * LANE, 4, (8, 4)),  # every other word
        (128 * LANE, 4, (32, 4)),
        (0 * LANE, 4, (1, 1)),
        (LANE, 1, (1, 1)),
        (2 * LANE, 2, (2, 2)),
        (16 * LANE, 16, (16, 16)),
        (32 * LANE, 32, (32, 32)),
    ],
)
def test_sectors_by_hand(addresses: NDArray[np.int64], size: int, expected: tuple[int, int]):
    assert sectors(LANE, addresses, size) == expected


@pytest.mark.parametrize(
    ("addresses", "size", "expected"),
    [
        (0 * LANE, 4, (4, 4)),  # a spilled register: one word of each lane, side by side
        (0 * LANE, 1, (4, 4)),  # a byte is a word of its own
        (0 * LANE, 8, (8, 8)),
        (16 + 0 * LANE, 16, (16, 16)),
        (4 * LANE, 4, (32, 4)),  # each lane another element of its array
        (4 * (LANE // 8), 4, (4, 4)),  # lanes of a sector stay together
    ],
)
def test_local_sectors_by_hand(addresses: NDArray[np.int64], size: int, expected: tuple[int, int]):
    assert local_sectors(LANE, addresses, size) == expected


def test_a_phase_with_no_active_lane_costs_nothing():
    assert wavefronts(LANE[:8], 16 * LANE[:8], 16) == (1, 1)
    assert wavefronts(LANE[:8], 8 * LANE[:8], 8) == (1, 1)
    assert wavefronts(LANE[[0, 31]], 16 * LANE[[0, 31]], 16) == (2, 2)


def test_collisions_are_lanes_less_addresses():
    assert collisions(LANE, 0 * LANE) == 31
    assert collisions(LANE, 4 * (LANE // 2)) == 16
    assert collisions(LANE[:3], 0 * LANE[:3]) == 2
    assert collisions(np.arange(64), np.zeros(64, np.int64)) == 62  # two warps do not collide with each other


# ---- linear accesses ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("vector", [1, 2, 4])
def test_wavefronts_are_those_of_layouts(bits: int, vector: int):
    """A warp reads a 32 x 4 tile, lane i row i, from a row-major 32 x n matrix: rank arithmetic says the same."""
    for columns in (4, 8, 16, 32, 64):
        rows = [(1 << i, 0) for i in range(5)]
        unit = [(0, 1 << i) for i in range(columns.bit_length() - 1)]
        access = LinearLayout({"register": unit, "lane": rows}, {"row": 32, "column": columns})
        memory = LinearLayout({"offset": [*unit, *rows]}, {"row": 32, "column": columns})
        expected = bank_conflicts(access, memory, bits, vector)
        size = vector * bits // 8
        addresses = LANE * columns * bits // 8
        assert wavefronts(LANE, addresses, size) == (expected.per_request, expected.phases)

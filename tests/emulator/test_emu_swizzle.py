"""Swizzles against the tables of the PTX ISA, section 5.5.7, "Swizzling Modes": the 16-byte cells of rows of 128 bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from weft.emulator.arith.swizzle import Swizzle
from weft.layout import nvmma_shared

# The cells of a row, as the ISA prints them: at each place, which cell of the source row is there.
PLAIN = "0 1 2 3 4 5 6 7"
TABLES = {
    Swizzle.NONE: [PLAIN],
    Swizzle.B32: [PLAIN, "1 0 3 2 5 4 7 6"],
    Swizzle.B64: [PLAIN, "1 0 3 2 5 4 7 6", "2 3 0 1 6 7 4 5", "3 2 1 0 7 6 5 4"],
    Swizzle.B128: [
        PLAIN,
        "1 0 3 2 5 4 7 6",
        "2 3 0 1 6 7 4 5",
        "3 2 1 0 7 6 5 4",
        "4 5 6 7 0 1 2 3",
        "5 4 7 6 1 0 3 2",
        "6 7 4 5 2 3 0 1",
        "7 6 5 4 3 2 1 0",
    ],
    Swizzle.B128_ATOM_32B: [PLAIN, "2 3 0 1 6 7 4 5", "4 5 6 7 0 1 2 3", "6 7 4 5 2 3 0 1"],
    Swizzle.B128_ATOM_64B: [PLAIN, "4 5 6 7 0 1 2 3"],
}


def memory(swizzle: Swizzle, size: int = 4096) -> list[int]:
    """Which byte of an unswizzled layout each byte of memory holds."""
    places = swizzle(np.arange(size))
    held = [-1] * size
    for byte, place in enumerate(places.tolist()):
        held[place] = byte
    return held


@pytest.mark.parametrize("swizzle", TABLES, ids=lambda s: s.name)
def test_tables_of_the_isa(swizzle: Swizzle) -> None:
    table = TABLES[swizzle]
    expected = [
        row * 128 + int(cell) * 16 + byte
        for row in range(32)
        for cell in table[row % len(table)].split()
        for byte in range(16)
    ]
    assert memory(swizzle) == expected


def test_flip_of_8_bytes() -> None:
    """As with 32-byte atoms, but each odd row has the halves of its cells exchanged."""
    plain = memory(Swizzle.B128_ATOM_32B)
    expected: list[int] = []
    for start in range(0, len(plain), 16):
        cell = plain[start : start + 16]
        expected += cell[8:] + cell[:8] if (start // 128) % 2 else cell
    assert memory(Swizzle.B128_ATOM_32B_FLIP_8B) == expected


@pytest.mark.parametrize("swizzle", Swizzle, ids=lambda s: s.name)
def test_laws(swizzle: Swizzle) -> None:
    addresses = np.arange(4096)
    there = swizzle(addresses)
    np.testing.assert_array_equal(swizzle(there), addresses)  # its own inverse
    assert sorted(there.tolist()) == addresses.tolist()  # one-to-one
    np.testing.assert_array_equal(there // swizzle.period, addresses // swizzle.period)  # within a period
    np.testing.assert_array_equal(there % swizzle.atom, addresses % swizzle.atom)
    # Periodic, and with no shorter period (of 128 bytes or more).
    np.testing.assert_array_equal(swizzle(addresses + swizzle.period), there + swizzle.period)
    if swizzle is not Swizzle.NONE:
        half = swizzle.period // 2
        assert (swizzle(addresses + half) != there + half).any()


@pytest.mark.parametrize("swizzle", [Swizzle.B32, Swizzle.B64, Swizzle.B128], ids=lambda s: s.name)
@pytest.mark.parametrize("bits", [8, 16, 32])
def test_agrees_with_the_layouts(swizzle: Swizzle, bits: int) -> None:
    """A matrix as wide as the swizzle, in weft.layout's words: the layout maps offsets to (row, column)."""
    width = swizzle.span * 8 // bits
    layout = nvmma_shared((32, width), swizzle.span, bits)
    for offset in range(32 * width):
        row, column = layout.apply({"offset": offset}).values()
        address = np.array([(row * width + column) * bits // 8])
        assert int(swizzle(address)[0]) == offset * bits // 8


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_keeps_type_and_shape(dtype: type[np.integer[Any]]) -> None:
    addresses = np.array([[0x80, 0x190], [0x2F0, 0x3FF]], dtype)
    for swizzle in Swizzle:
        assert swizzle(addresses).dtype == dtype
    # 0x190 has row 3, cell 1: 1 ^ 3 = 2. 0x2f0: row 5, cell 7: 2. 0x3ff: row 7, cell 7: 0.
    expected = np.array([[0x90, 0x1A0], [0x2A0, 0x38F]], dtype)
    np.testing.assert_array_equal(Swizzle.B128(addresses), expected)
    np.testing.assert_array_equal(addresses, np.array([[0x80, 0x190], [0x2F0, 0x3FF]], dtype))

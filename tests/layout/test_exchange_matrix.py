"""Which rows of 16 bytes two accesses agree on: literal cases derived from the fragments of ldmatrix and stmatrix."""

from __future__ import annotations

from dataclasses import replace

import pytest

from weft.layout.planning.machine import AMPERE, CDNA, HOPPER, MachineModel
from weft.layout.planning.matrix import AccessKind, Rows, Side, available, row_bits, row_numbers, shared_rows, word_bits

BYTES = replace(HOPPER, matrix_b8=True)


@pytest.mark.parametrize(
    ("machine", "stores", "unit_bits", "padded", "expected"),
    [
        (HOPPER, True, 16, False, ("vector", "matrix", "transposed")),
        (AMPERE, True, 16, False, ("vector",)),
        (AMPERE, False, 16, False, ("vector", "matrix", "transposed")),
        (HOPPER, False, 8, False, ("vector", "matrix")),
        (BYTES, False, 8, False, ("vector", "matrix", "bytes")),
        (BYTES, True, 8, False, ("vector", "matrix")),
        (HOPPER, False, 32, False, ("vector", "matrix")),
        (HOPPER, False, 64, False, ("vector",)),
        (HOPPER, False, 8, True, ("vector",)),
        (CDNA, False, 16, False, ("vector",)),
        (replace(HOPPER, lanes=64), False, 16, False, ("vector",)),
        (MachineModel("none"), False, 16, False, ("vector",)),
    ],
)
def test_available(
    machine: MachineModel, stores: bool, unit_bits: int, padded: bool, expected: tuple[AccessKind, ...]
) -> None:
    assert available(machine, stores, unit_bits, padded) == expected


def test_row_bits() -> None:
    assert [row_bits(bits) for bits in (8, 16, 32)] == [4, 3, 2]


A = Side((1, 2, 4, 8), (16, 32, 64, 128, 256), (512,))
"""Rows of 8 float16 in registers, and one register more."""
B = Side((8, 512, 16), (32, 1, 2, 4, 64), (128,))
C = Side((1, 16), (2, 4, 8, 32, 64), ())


def rows(store: AccessKind, load: AccessKind, source: Side, destination: Side, unit_bits: int = 16) -> list[Rows]:
    return list(shared_rows(store, load, source, destination, unit_bits, row_bits(unit_bits)))


def test_vectors_share_what_both_hold_and_may_be_wider_on_one_side() -> None:
    """Both hold 8; then A's vectors grow by 1, 2, or B's by 512, 16."""
    assert rows("vector", "vector", A, B) == [
        Rows((8,), 1, 1),
        Rows((8, 1), 2, 1),
        Rows((8, 1, 2), 3, 1),
        Rows((8, 512), 1, 2),
        Rows((8, 512, 16), 1, 3),
    ]


def test_transposed_rows_are_lanes_2_to_4() -> None:
    """B's lanes 2, 3, 4 are 2, 4, 64: A holds 2 and 4 of them in registers and stores vectors of four."""
    assert rows("vector", "transposed", A, B) == [Rows((2, 4, 64), 2, 3)]
    assert rows("transposed", "vector", B, A) == [Rows((2, 4, 64), 3, 2)]


def test_rows_of_a_matrix_are_a_word_and_lanes_0_and_1() -> None:
    """C's row: a register, then 2 and 4. The register is one that A holds, so that A stores all of it at once."""
    assert rows("vector", "matrix", A, C) == [Rows((1, 2, 4), 3, 3)]
    # A's: a register, 16, 32. B holds 16, but first comes what both hold.
    assert rows("matrix", "vector", A, B) == [Rows((8, 16, 32), 3, 2)]


def test_two_matrices_agree_where_both_fix_the_same() -> None:
    """A fixes (any, 16, 32), B transposed (2, 4, 64): they differ. With D (1, 16, 32) they agree, as A holds 1."""
    assert rows("matrix", "transposed", A, B) == []
    d = Side((2, 4), (8, 64, 1, 16, 32), ())
    assert rows("matrix", "transposed", A, d) == [Rows((1, 16, 32), 3, 3)]
    assert rows("transposed", "matrix", d, A) == [Rows((1, 16, 32), 3, 3)]


def test_copies_in_lanes_that_a_row_needs_refuse_it() -> None:
    assert rows("vector", "transposed", A, Side(B.registers, (32, 1, 0, 4, 64), ())) == []
    assert rows("vector", "matrix", A, Side(C.registers, (0, 4, 8, 32, 64), ())) == []


def test_a_transposed_matrix_needs_two_rows_in_a_thread() -> None:
    assert rows("vector", "transposed", A, Side((8,), (32, 1, 2, 4, 64), ())) == [Rows((2, 4, 64), 2, 3)]
    assert rows("vector", "transposed", A, Side((), (32, 1, 2, 4, 64), ())) == []


def test_bytes_have_a_register_in_their_row() -> None:
    """16 bytes: lanes 2, 3, 4 (2, 4, 64) and a register; two other registers make a word of four rows."""
    side = Side((8, 512, 16), B.lanes, B.warps)
    assert rows("vector", "bytes", A, side, 8) == [Rows((2, 4, 64, 8), 2, 4)]
    assert rows("vector", "bytes", A, Side((8, 512), B.lanes, ()), 8) == []


@pytest.mark.parametrize(
    ("access", "first", "taken", "word", "numbers"),
    [
        ("matrix", (8, 32, 1), 3, (8,), (2, 4, 64)),
        ("transposed", (2, 4, 64), 3, (8,), (8, 32, 1)),
        ("bytes", (2, 4, 64, 16), 4, (8, 512, 16), (8, 512, 32, 1)),
    ],
)
def test_words_and_row_numbers(
    access: AccessKind, first: tuple[int, ...], taken: int, word: tuple[int, ...], numbers: tuple[int, ...]
) -> None:
    assert word_bits(access, B, first, taken, ()) == word
    assert row_numbers(access, B, word, ()) == numbers
    # What is inside a unit comes first in a word and has no part in a row's number.
    assert word_bits(access, B, first, taken, (1024,)) == (1024, *word)
    assert row_numbers(access, B, (1024, *word), (1024,)) == numbers


def test_a_vector_is_its_unit_and_what_is_taken_of_the_row() -> None:
    assert word_bits("vector", A, (1, 2, 4), 2, (8,)) == (8, 1, 2)


def test_sides() -> None:
    side = Side((1, 0, 2), (4, 0), (8,))
    assert side.held == (1, 2)
    assert side.without([2, 4, 8]) == Side((1, 0, 0), (0, 0), (0,))
    assert (side.mask(1), side.mask(2)) == (1, 4)

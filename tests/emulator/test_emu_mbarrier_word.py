"""The mbarrier object's word against a model of one object in Python integers, one operation after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.emulator.arith.mbarrier_word import MOST, Object, countable, initial, parity, pending, valid


@dataclass
class Model:
    """One object, as the ISA's text has it."""

    expected: int
    pending: int
    tx: int = 0
    phase: int = 0

    def settle(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.expected

    def arrive(self, count: int) -> None:
        assert count <= self.pending
        self.pending -= count
        self.settle()

    def drop(self, count: int) -> None:
        assert count < self.expected
        self.expected -= count
        self.arrive(count)

    def transact(self, amount: int) -> None:
        self.tx += amount
        self.settle()


def array(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(values, np.int64)


OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["arrive", "drop", "expect", "complete"]), st.integers(1, 5)), min_size=1, max_size=40
)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 12), OPERATIONS)
def test_a_sequence_of_operations(count: int, operations: list[tuple[str, int]]) -> None:
    model = Model(count, count)
    word = int(initial(array(count))[0])
    for name, wanted in operations:
        amount = wanted
        before = model.phase
        match name:
            case "arrive":
                amount = min(amount, model.pending)
                if not amount:
                    continue
                model.arrive(amount)
                found, done = Object.unpack(word).after(arrivals=amount)
            case "drop":
                amount = min(amount, model.pending, model.expected - 1)
                if amount < 1:
                    continue
                model.drop(amount)
                found, done = Object.unpack(word).after(arrivals=amount, dropped=amount)
            case "expect":
                model.transact(16 * amount)
                found, done = Object.unpack(word).after(transactions=16 * amount)
            case _:
                model.transact(-16 * amount)
                found, done = Object.unpack(word).after(transactions=-16 * amount)
        word = found.pack()
        assert found == Object.unpack(word)
        assert found == (model.pending, model.expected, model.tx, model.phase % 2)
        assert done == (model.phase > before)
        words = np.array([word], np.uint64)
        assert (pending(words)[0], parity(words)[0]) == (model.pending, model.phase % 2)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ((3, 5, -16, 0), 3 | 5 << 20 | (2**21 - 16) << 40 | 2 << 62),
        ((0, 1, MOST, 1), 1 << 20 | MOST << 40 | 1 << 61 | 2 << 62),
        ((MOST, MOST, -MOST, 1), MOST | MOST << 20 | (2**21 - MOST) << 40 | 1 << 61 | 2 << 62),
    ],
)
def test_the_layout(fields: tuple[int, int, int, int], word: int) -> None:
    """By the table: pending in bits 0-19, expected in 20-39, tx in 40-60, parity in 61, 2 in 62-63."""
    assert Object(*fields).pack() == word
    assert Object.unpack(word) == fields


def test_which_words_are_objects() -> None:
    words = np.array([0, 2**64 - 1, 1 << 62, 2 << 62, 3 << 62], np.uint64)
    assert valid(words).tolist() == [False, False, False, True, False]
    assert countable(array(0, 1, MOST, MOST + 1, -1)).tolist() == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("arrivals", "dropped", "transactions", "message"),
    [
        (3, 0, 0, "3 arrivals in a phase that waits for 2 arrivals"),
        (2, 2, 0, "2 arrivals dropped of 2 expected: none would be left to expect"),
        (0, 0, MOST + 1, "a tx-count of 1048576 bytes; it may be -1048575 to 1048575"),
        (0, 0, -MOST - 1, "a tx-count of -1048576 bytes; it may be -1048575 to 1048575"),
        (2, 1, MOST, ""),
        (2, 0, -MOST, ""),
    ],
)
def test_what_no_object_may_do(arrivals: int, dropped: int, transactions: int, message: str) -> None:
    assert Object(2, 2).wrong(arrivals, dropped, transactions) == message


@pytest.mark.parametrize(
    ("pending", "transactions", "words"),
    [
        (1, 4096, "1 arrival and 4096 bytes"),
        (2, 0, "2 arrivals"),
        (0, 1, "1 byte"),
        (0, -32, "an expect_tx of 32 bytes that came already"),
        (1, -1, "1 arrival and an expect_tx of 1 byte that came already"),
    ],
)
def test_what_a_phase_lacks(pending: int, transactions: int, words: str) -> None:
    assert Object(pending, 4, transactions).lacks() == words

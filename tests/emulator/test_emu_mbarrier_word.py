"""The mbarrier object's word against a model of one object in Python integers, one operation after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.emulator.arith.mbarrier_word import MOST, Objects, countable, valid


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
    objects = Objects.initial(array(count))
    for name, wanted in operations:
        amount = wanted
        before = model.phase
        match name:
            case "arrive":
                amount = min(amount, model.pending)
                if not amount:
                    continue
                model.arrive(amount)
                objects, done = objects.after(arrivals=amount)
            case "drop":
                amount = min(amount, model.pending, model.expected - 1)
                if amount < 1:
                    continue
                model.drop(amount)
                objects, done = objects.after(arrivals=amount, dropped=amount)
            case "expect":
                model.transact(16 * amount)
                objects, done = objects.after(transactions=16 * amount)
            case _:
                model.transact(-16 * amount)
                objects, done = objects.after(transactions=-16 * amount)
        objects = Objects.unpack(objects.pack())
        state = tuple(int(x[0]) for x in (objects.expected, objects.pending, objects.transactions, objects.parity))
        assert state == (model.expected, model.pending, model.tx, model.phase % 2)
        assert bool(done[0]) == (model.phase > before)


def test_the_layout() -> None:
    # By the table: pending in bits 0-19, expected in 20-39, tx in 40-60, parity in 61, 2 in 62-63.
    objects = Objects(array(3, 0, MOST), array(5, 1, MOST), array(-16, MOST, -MOST), array(0, 1, 1))
    expected = [
        3 | 5 << 20 | (2**21 - 16) << 40 | 2 << 62,
        0 | 1 << 20 | MOST << 40 | 1 << 61 | 2 << 62,
        MOST | MOST << 20 | (2**21 - MOST) << 40 | 1 << 61 | 2 << 62,
    ]
    assert objects.pack().tolist() == expected
    back = Objects.unpack(objects.pack())
    for name in ("pending", "expected", "transactions", "parity"):
        assert getattr(back, name).tolist() == getattr(objects, name).tolist()


def test_which_words_are_objects() -> None:
    words = np.array([0, 2**64 - 1, 1 << 62, 2 << 62, 3 << 62], np.uint64)
    assert valid(words).tolist() == [False, False, False, True, False]
    assert countable(array(0, 1, MOST, MOST + 1, -1)).tolist() == [False, True, True, False, False]


@pytest.mark.parametrize(
    ("arrivals", "dropped", "transactions", "message"),
    [
        (array(1, 3), 0, 0, (1, "3 arrivals in a phase that waits for 2 arrivals")),
        (array(5, 0), 0, 0, (0, "5 arrivals in a phase that waits for 4 arrivals")),
        (array(1, 2), array(0, 2), 0, (1, "2 arrivals dropped of 2 expected: none would be left to expect")),
        (0, 0, array(MOST + 1, 0), (0, "a tx-count of 1048576 bytes; it may be -1048575 to 1048575")),
        (0, 0, array(0, -MOST - 1), (1, "a tx-count of -1048576 bytes; it may be -1048575 to 1048575")),
        (array(4, 2), array(1, 1), array(MOST, -MOST), None),
    ],
)
def test_what_no_object_may_do(arrivals: object, dropped: object, transactions: object, message: object) -> None:
    objects = Objects.initial(array(4, 2))
    assert objects.wrong(arrivals, dropped, transactions) == message  # pyright: ignore[reportArgumentType]


def test_what_a_phase_lacks() -> None:
    objects = Objects(array(1, 2, 0, 0, 1), array(4, 4, 4, 4, 4), array(4096, 0, 1, -32, -1), array(0, 0, 0, 0, 0))
    assert [objects.lacks(i) for i in range(5)] == [
        "1 arrival and 4096 bytes",
        "2 arrivals",
        "1 byte",
        "an expect_tx of 32 bytes that came already",
        "1 arrival and an expect_tx of 1 byte that came already",
    ]

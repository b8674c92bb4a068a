"""The mbarrier object as a 64-bit word, and the operations on it, for many barriers at once (PTX ISA 9.7.15.16).

The word in shared memory is the object, as on hardware, so that initialising, overwriting and reusing its memory behave as
they do there. The ISA says what the object holds but not where, and programs may not look inside. The layout is the
emulator's own:

    bits  0-19   pending arrivals of the current phase, 0 to 2**20 - 1
    bits 20-39   expected arrivals of the following phases, 1 to 2**20 - 1
    bits 40-60   tx-count, in two's complement, -(2**20 - 1) to 2**20 - 1
    bit  61      parity of the current phase
    bits 62-63   2 in a valid object; so neither zeros nor all ones are one

Law: whenever an operation leaves no pending arrival and a tx-count of 0, the phase is complete: its parity flips, and as many
arrivals are pending as are expected. An arrival token (the ``state`` operand) is the word as it was before the arrival.

Several lanes of one instruction may act on one barrier: their operations are added up, which is what any order of them does, as
long as no more arrive than are pending; more are a fault. What is computed here is one object at a time, in Python's integers:
few of a block's threads act on a barrier at once, and mostly on the same one.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int64]

MOST: Final = 2**20 - 1
"""The largest count of arrivals, and of bytes outstanding either way (PTX ISA, table of mbarrier counts, ``.layout::v0``)."""

VALID: Final = 2


class Object(NamedTuple):
    """A valid mbarrier object, unpacked."""

    pending: int
    expected: int
    transactions: int = 0
    parity: int = 0

    @classmethod
    def unpack(cls, word: int) -> Object:
        """The object in a `valid` word."""
        transactions = word >> 40 & 0x1FFFFF
        return cls(word & MOST, word >> 20 & MOST, transactions - (transactions >> 20 << 21), word >> 61 & 1)

    def pack(self) -> int:
        """Its word."""
        return (
            self.pending | self.expected << 20 | (self.transactions & 0x1FFFFF) << 40 | self.parity << 61 | VALID << 62
        )

    def after(self, arrivals: int = 0, dropped: int = 0, transactions: int = 0) -> tuple[Object, bool]:
        """The object after ``arrivals`` arrivals, ``dropped`` of them for good, and ``transactions`` more bytes to wait for
        (fewer, if negative); and whether that completes the phase. Requires: `wrong` finds nothing."""
        pending, expected = self.pending - arrivals, self.expected - dropped
        total = self.transactions + transactions
        if pending or total:
            return Object(pending, expected, total, self.parity), False
        return Object(expected, expected, 0, self.parity ^ 1), True

    def wrong(self, arrivals: int = 0, dropped: int = 0, transactions: int = 0) -> str:
        """Why it may not do `after` with these; "" if it may."""
        if arrivals > self.pending:
            return f"{plural(arrivals, 'arrival')} in a phase that waits for {plural(self.pending, 'arrival')}"
        if dropped and dropped >= self.expected:
            return f"{plural(dropped, 'arrival')} dropped of {self.expected} expected: none would be left to expect"
        if abs(total := self.transactions + transactions) > MOST:
            return f"a tx-count of {total} bytes; it may be {-MOST} to {MOST}"
        return ""

    def lacks(self) -> str:
        """What its current phase still waits for, in words."""
        parts: list[str] = []
        if self.pending:
            parts.append(plural(self.pending, "arrival"))
        if self.transactions > 0:
            parts.append(plural(self.transactions, "byte"))
        elif self.transactions < 0:
            parts.append(f"an expect_tx of {plural(-self.transactions, 'byte')} that came already")
        return " and ".join(parts)


def initial(counts: NDArray[Any]) -> Words:
    """What mbarrier.init makes of counts that are `countable`."""
    words = counts.astype(np.uint64)
    return words | words << np.uint64(20) | np.uint64(VALID << 62)


def valid(words: Words) -> NDArray[np.bool_]:
    """Which words are mbarrier objects."""
    return (words >> np.uint64(62)) == VALID


def pending(words: Words) -> NDArray[np.uint32]:
    """The pending arrivals of objects, or tokens."""
    return words.astype(np.uint32) & np.uint32(MOST)


def parity(words: Words) -> Counts:
    """The parity of the phase that objects are in, or that tokens are of."""
    return (words >> np.uint64(61)).view(np.int64) & 1


def countable(counts: NDArray[Any]) -> NDArray[np.bool_]:
    """Which counts mbarrier.init and arrivals may have."""
    return (counts >= 1) & (counts <= MOST)


def plural(count: Any, noun: str) -> str:
    """``1 arrival``, ``2 arrivals``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

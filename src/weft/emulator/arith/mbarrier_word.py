"""The mbarrier object as a 64-bit word, and the operations on it, for many barriers at once (PTX ISA 9.7.15.16).

The ISA says what the object knows, not where: programs cannot look inside. One would keep a table of objects beside the memory;
here the word in shared memory is the object, as on hardware, so that initialising, overwriting and reusing its memory do what
they do there. This layout is ours:

    bits  0-19   pending arrivals of the current phase, 0 to 2**20 - 1
    bits 20-39   expected arrivals of the following phases, 1 to 2**20 - 1
    bits 40-60   tx-count, in two's complement, -(2**20 - 1) to 2**20 - 1
    bit  61      parity of the current phase
    bits 62-63   2 in a valid object; so neither zeros nor all ones are one

Law: whenever an operation leaves no pending arrival and a tx-count of 0, the phase is complete: its parity flips, and as many
arrivals are pending as are expected. An arrival token (the ``state`` operand) is the word as it was before the arrival.

Several lanes of one instruction may act on one barrier: their operations are added up, which is what any order of them does, as
long as no more arrive than are pending; more are a fault.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Words: TypeAlias = NDArray[np.uint64]
Counts: TypeAlias = NDArray[np.int64]

MOST: Final = 2**20 - 1
"""The largest count of arrivals, and of bytes outstanding either way (PTX ISA, table of mbarrier counts, ``.layout::v0``)."""

VALID: Final = 2

_FIELD: Final = np.uint64(0xFFFFF)


@dataclass(frozen=True)
class Objects:
    """Valid mbarrier objects, unpacked: arrays of one length."""

    pending: Counts
    expected: Counts
    transactions: Counts
    parity: Counts

    @classmethod
    def initial(cls, counts: Counts) -> Objects:
        """What mbarrier.init makes of counts that are `countable`."""
        zero = np.zeros(counts.shape, np.int64)
        return cls(counts, counts, zero, zero)

    @classmethod
    def unpack(cls, words: Words) -> Objects:
        """The objects in these words; of words that are no `valid` objects, anything."""
        transactions = ((words >> np.uint64(40)) & np.uint64(0x1FFFFF)).astype(np.int64)
        return cls(
            (words & _FIELD).astype(np.int64),
            ((words >> np.uint64(20)) & _FIELD).astype(np.int64),
            transactions - ((transactions >> 20) << 21),
            ((words >> np.uint64(61)) & np.uint64(1)).astype(np.int64),
        )

    def pack(self) -> Words:
        """The words of these objects."""
        word = self.pending | (self.expected << 20) | ((self.transactions & 0x1FFFFF) << 40) | (self.parity << 61)
        return word.astype(np.uint64) | np.uint64(VALID << 62)

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Whether the phase is complete, before it has turned into the next."""
        return (self.pending == 0) & (self.transactions == 0)

    def after(
        self, arrivals: Counts | int = 0, dropped: Counts | int = 0, transactions: Counts | int = 0
    ) -> tuple[Objects, NDArray[np.bool_]]:
        """The objects after ``arrivals`` arrivals, ``dropped`` of them for good, and ``transactions`` more bytes to wait for
        (fewer, if negative); and which of them have completed their phase. Requires: `wrong` finds nothing."""
        changed = replace(
            self,
            pending=self.pending - arrivals,
            expected=self.expected - dropped,
            transactions=self.transactions + transactions,
        )
        done = changed.complete
        if done.any():
            pending = np.where(done, changed.expected, changed.pending)
            changed = replace(changed, pending=pending, parity=changed.parity ^ done)
        return changed, done

    def wrong(
        self, arrivals: Counts | int = 0, dropped: Counts | int = 0, transactions: Counts | int = 0
    ) -> tuple[int, str] | None:
        """The first object that may not do `after` with these, and why; None if all may."""
        zero = np.zeros(self.pending.shape, np.int64)
        arriving, leaving, more = zero + arrivals, zero + dropped, zero + transactions
        if (bad := arriving > self.pending).any():
            i = int(bad.argmax())
            return i, f"{plural(arriving[i], 'arrival')} in a phase that waits for {plural(self.pending[i], 'arrival')}"
        if (bad := (leaving > 0) & (leaving >= self.expected)).any():
            i = int(bad.argmax())
            return (
                i,
                f"{plural(leaving[i], 'arrival')} dropped of {self.expected[i]} expected: none would be left to expect",
            )
        total = self.transactions + more
        if (bad := np.abs(total) > MOST).any():
            return int(bad.argmax()), f"a tx-count of {total[int(bad.argmax())]} bytes; it may be {-MOST} to {MOST}"
        return None

    def lacks(self, index: int) -> str:
        """What the current phase of one object still waits for, in words."""
        parts: list[str] = []
        if pending := int(self.pending[index]):
            parts.append(plural(pending, "arrival"))
        transactions = int(self.transactions[index])
        if transactions > 0:
            parts.append(plural(transactions, "byte"))
        elif transactions < 0:
            parts.append(f"an expect_tx of {plural(-transactions, 'byte')} that came already")
        return " and ".join(parts)


def valid(words: Words) -> NDArray[np.bool_]:
    """Which words are mbarrier objects."""
    return (words >> np.uint64(62)) == VALID


def countable(counts: NDArray[Any]) -> NDArray[np.bool_]:
    """Which counts mbarrier.init and arrivals may have."""
    return (counts >= 1) & (counts <= MOST)


def plural(count: Any, noun: str) -> str:
    """``1 arrival``, ``2 arrivals``."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"

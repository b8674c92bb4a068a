"""Permutes as data: words of 32 bits, the permutes that make words of words, and networks of them.

    value                what it is
    0 to sources - 1     a word that the thread holds
    sources + i          the result of permute i, of two earlier values: ``prmt.b32 d, a, b, selector``

Digit i of a selector names the part that becomes part i of the result: first come the parts of ``a``, then those of ``b``. Parts
are bytes, and a digit is a nibble, as ``prmt.b32`` takes it. Where elements below a byte move within words, parts are elements
(`Network.parts`); shift, mask and merge then do what ``prmt`` does for bytes. Where threads differ in what they do, a permute has
one selector for each value of some thread bits.

Which register is where in a word is said by `Words`, for the source and for the result: registers are packed, or alone in the
lowest part of a word as a narrow load leaves them. `networks.build` makes networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from numpy.typing import NDArray

WORD_BITS: Final = 32
"""What a register of a GPU holds, and a byte permute makes."""
WORD_BYTES: Final = WORD_BITS // 8
FIRST_WORD: Final = 0x3210
"""The selector that gives ``a``."""
SECOND_WORD: Final = 0x7654
"""The selector that gives ``b``."""
WITHIN_WORDS: Final = 3
"""Instructions of a permute whose parts are less than a byte: shift, mask, merge."""


def word_bits(bits: int) -> int:
    """log2 of the elements in a word: how many of the lowest register bits lie within words."""
    return max(0, (WORD_BITS // bits).bit_length() - 1)


class Words(NamedTuple):
    """How registers of one element each lie in words of 32 bits.

    Register r is in word ``r >> inside``; bit i of r, below ``inside``, is bit ``places[i]`` of its slot. A slot has as many bits
    as an element. The lowest ``unit`` bits are dense, and above them ``gap`` slot bits are left out: memory has a byte for what
    fills no byte. Slots without a register hold anything. An element wider than a word takes the next words, the lowest first.

        float16, inside = 1     word 0 is (register 0, register 1)
        float16, inside = 0     word 0 is (register 0, anything): what ``ld.shared.u16`` leaves
    """

    bits: int
    inside: int
    unit: int = 0
    gap: int = 0

    @classmethod
    def packed(cls, bits: int) -> Words:
        """Registers one after the other, as many in a word as fit."""
        return cls(bits, word_bits(bits))

    @property
    def places(self) -> tuple[int, ...]:
        """The slot bit of each register bit within a word."""
        dense = min(self.unit, self.inside)
        return (*range(dense), *range(dense + self.gap, self.inside + self.gap))

    @property
    def parts(self) -> int:
        """Parts of an element: its bytes, or 1."""
        return max(1, self.bits // 8)

    def cells(self, registers: int) -> NDArray[Any]:
        """Where in the words, counted in parts of a byte or of a smaller element, each register lies: (registers, parts)."""
        import numpy as np

        part = min(8, self.bits)
        numbers = np.arange(registers)
        slots = sum(((numbers >> bit & 1) << place for bit, place in enumerate(self.places)), numbers * 0)
        first = (numbers >> self.inside) * (max(self.bits, WORD_BITS) // part) + slots * (self.bits // part)
        return first[:, None] + np.arange(self.bits // part)


@dataclass(frozen=True)
class Permute:
    """``prmt.b32`` of the values ``a`` and ``b``, or what does the same for smaller parts.

    ``selectors`` are numbered by the thread bits ``thread_bits``, the first of them lowest. Thread bits count those of the lane
    first, then those of the warp.
    """

    a: int
    b: int
    selectors: tuple[int, ...]
    thread_bits: tuple[int, ...] = ()

    @property
    def selects(self) -> bool:
        """Whether it takes one of both words whole in each thread: a ``selp`` does the same."""
        return set(self.selectors) <= {FIRST_WORD, SECOND_WORD}

    def selector(self, thread: int) -> int:
        """The selector in a thread, which is numbered by its thread bits."""
        return self.selectors[sum((thread >> bit & 1) << place for place, bit in enumerate(self.thread_bits))]


@dataclass(frozen=True)
class Network:
    """``permutes`` in order, and the value that each word of the result is: see the module."""

    sources: int
    permutes: tuple[Permute, ...]
    outputs: tuple[int, ...]
    parts: int = WORD_BYTES
    """Parts of a word that a selector names: bytes, or elements below a byte."""

    @property
    def instructions(self) -> int:
        """How many instructions the permutes take."""
        return len(self.permutes) * (1 if self.parts == WORD_BYTES else WITHIN_WORDS)


def digit_bits(parts: int) -> int:
    """Bits of a digit of a selector, which names one of ``2 * parts`` parts."""
    return 4 if parts <= 2 * WORD_BYTES else 8

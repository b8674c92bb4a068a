"""Networks of byte permutes, as data: how a thread makes new words of 32 bits from the words that it holds.

    value                what it is
    0 to sources - 1     a word that the thread holds
    sources + i          the result of permute i, of two earlier values: ``prmt.b32 d, a, b, selector``

Nibble i of a selector names the byte that becomes byte i of the result: 0 to 3 are of ``a``, 4 to 7 of ``b``. Where threads
differ in what they do, a permute has one selector for each value of some thread bits.

A network passes through *states*. A state says which source register each slot of each word holds, by columns: of the word bits,
of the slot bits (elements in a word), and of the thread bits. Each step takes in one bit u that tells source words apart, and
that a slot or the thread chooses at the end. A result of a step is therefore made of two words. A step is one of these:

    merge      u is selected by the thread, or goes to a slot bit whose elements are not kept: half as many words are left
    exchange   u changes places with a slot bit that is to tell words apart, or stays in its place and is flipped by the thread

Merges come first, because they leave fewer words for the steps after them. The last step makes the destination's words.

    2x2 elements of 16 bits, transposed: word bit and slot bit are exchanged

    source         a = (0, 1)   b = (2, 3)
    destination    (0, 2) = prmt a, b, 0x5410       (1, 3) = prmt a, b, 0x7632

What this does not do: each column has to be one source bit, or none. Elements below a byte are moved in whole words only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from weft.layout.algebra import f2

WORD_BITS: Final = 32
"""What a register of a GPU holds, and a byte permute makes."""
WORD_BYTES: Final = WORD_BITS // 8
FIRST_WORD: Final = 0x3210
"""The selector that gives ``a``."""
SECOND_WORD: Final = 0x7654
"""The selector that gives ``b``."""


def word_bits(bits: int) -> int:
    """log2 of the elements in a word: how many of the lowest register bits lie within words."""
    return max(0, (WORD_BITS // bits).bit_length() - 1)


@dataclass(frozen=True)
class Permute:
    """``prmt.b32`` of the values ``a`` and ``b``.

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


@dataclass(frozen=True)
class State:
    """The source register in each word, slot and thread: the XOR of these columns."""

    words: f2.Matrix
    slots: f2.Matrix
    threads: f2.Matrix


def _ends(registers: f2.Matrix, chosen: f2.Matrix, bits: int) -> tuple[State, State] | None:
    """The first and the last state; None where elements below a byte move within words."""
    low = word_bits(bits)
    parts = max(0, (bits // WORD_BITS).bit_length() - 1)
    if bits < 8:
        inside, rest = registers[:low], (*registers[low:], *chosen)
        if inside != f2.identity(len(inside)) or any(column & ((1 << low) - 1) for column in rest):
            return None
        registers, chosen, low = tuple(c >> low for c in registers[low:]), tuple(c >> low for c in chosen), 0
    registers = (*f2.identity(parts), *(column << parts for column in registers))
    chosen = tuple(column << parts for column in chosen)
    # The slots that too few registers leave empty keep what they have, where nothing else needs it.
    inside = registers[:low]
    inside += tuple(0 if 1 << slot in chosen + inside else 1 << slot for slot in range(len(inside), low))
    last = State(registers[low:], inside, chosen)
    units = sorted({column for column in (*last.words, *last.slots, *last.threads) if column >> low})
    if any(column & (column - 1) for column in (*registers, *chosen)):
        raise ValueError(f"permutes: columns {registers} and {chosen}, expected powers of two and zeros")
    return State(tuple(units), f2.identity(low), (0,) * len(chosen)), last


def _take_in(first: State, last: State) -> list[tuple[int, int | None, bool]]:
    """For each step the bit u that it takes in, the slot bit that u goes to, and whether this is a merge; merges first."""
    kept = (*last.slots, *last.words)
    leaving = [slot for slot, unit in enumerate(first.slots) if unit in last.words]
    free = [slot for slot, unit in enumerate(first.slots) if unit not in kept]
    merges: list[tuple[int, int | None, bool]] = []
    exchanges: list[tuple[int, int | None, bool]] = []
    for unit in first.words:
        if unit in last.slots:
            if leaving:
                exchanges.append((unit, leaving.pop(0), False))
            else:
                merges.append((unit, free.pop(0), True))
        elif unit in last.threads:
            stays = unit in last.words
            (exchanges if stays else merges).append((unit, None, not stays))
    return merges + exchanges


def states(registers: f2.Matrix, chosen: f2.Matrix, bits: int) -> tuple[State, ...] | None:
    """The states of a network, from the source to the destination; one where all words are renamed. None where elements below
    a byte move within words. ``chosen`` are the columns of the thread bits."""
    ends = _ends(registers, chosen, bits)
    if ends is None:
        return None
    first, last = ends
    low = len(first.slots)
    steps = _take_in(first, last)
    within = any(column and not column >> low for column in (*last.words, *last.threads))
    if not steps and not within and first.slots == last.slots:
        return (last,)
    found = [first]
    for unit, slot, merges in steps[:-1]:
        state = found[-1]
        slots = list(state.slots)
        partner = unit
        if slot is not None:
            partner, slots[slot] = slots[slot], unit
        words = tuple(partner if word == unit else word for word in state.words if not (merges and word == unit))
        # Threads choose what has been taken in, and what neither words nor slots have any more.
        open_units = {*words, *slots} - {unit}
        threads = tuple(
            own if own or target in open_units else target
            for own, target in zip(state.threads, last.threads, strict=True)
        )
        found.append(State(words, tuple(slots), threads))
    return (*found, last)


@lru_cache(maxsize=1024)
def length(registers: f2.Matrix, chosen: f2.Matrix, bits: int) -> int | None:
    """How many permutes the network has, counted without making it."""
    found = states(registers, chosen, bits)
    if found is None or len(found) == 1:
        return None if found is None else 0
    return sum(1 << len(state.words) for state in found[1:-1]) + (1 << f2.rank(found[-1].words))


def _places(state: State, columns: Sequence[int]) -> list[tuple[int, int]]:
    """For each column the masks of word bits and of slot bits at which a state has it."""
    at = {unit: (1 << bit, 0) for bit, unit in enumerate(state.words)}
    at |= {unit: (0, 1 << bit) for bit, unit in enumerate(state.slots)}
    at[0] = (0, 0)
    return [at[column] for column in columns]


def _permutes(before: State, after: State) -> Iterator[Permute]:
    """The permutes of a step, for each word of the state ``after``; operands are words of ``before``."""
    size = WORD_BYTES >> len(before.slots)
    words, slots = _places(before, after.words), _places(before, after.slots)
    changed = [x ^ y for x, y in zip(before.threads, after.threads, strict=True)]
    thread_bits = tuple(bit for bit, column in enumerate(changed) if column)
    chosen = _places(before, [changed[bit] for bit in thread_bits])
    partner = max((word for word, _ in (*slots, *chosen)), default=0)
    to_word, to_slot = ([place[i] for place in (*slots, *chosen)] for i in (0, 1))
    for number in range(1 << len(after.words)):
        start, first_slot = (f2.apply([place[i] for place in words], number) for i in (0, 1))
        selectors: list[int] = []
        for thread in range(1 << len(thread_bits)):
            selector = 0
            for slot in range(1 << len(slots)):
                index = slot | thread << len(slots)
                word, place = start ^ f2.apply(to_word, index), first_slot ^ f2.apply(to_slot, index)
                first_byte = (WORD_BYTES if word != start else 0) + place * size
                for byte in range(size):
                    selector |= (first_byte + byte) << 4 * (slot * size + byte)
            selectors.append(selector)
        yield Permute(start, start ^ partner, tuple(selectors), thread_bits)


def build(registers: f2.Matrix, chosen: f2.Matrix, bits: int) -> Network | None:
    """The network that makes word after word of the result; None where elements below a byte move within words.

    Result register r of thread t is the source's at the XOR of the columns ``registers`` by r and ``chosen`` by t. Elements
    that are wider than a word are some words each, the lowest first.
    """
    found = states(registers, chosen, bits)
    if found is None:
        return None
    low = word_bits(bits) if bits >= 8 else 0
    columns = [column >> low for column in found[0].words]
    sources = 1 << max(columns, default=0).bit_length()
    values = [f2.apply(columns, word) for word in range(1 << len(columns))]
    made: dict[Permute, int] = {}
    for before, after in zip(found, found[1:], strict=False):
        permutes = [Permute(values[p.a], values[p.b], p.selectors, p.thread_bits) for p in _permutes(before, after)]
        values = [made.setdefault(permute, sources + len(made)) for permute in permutes]
    return Network(sources, tuple(made), tuple(values))

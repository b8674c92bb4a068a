"""Networks of permutes (`permutes`) that rearrange a thread's registers: the fewest known, made or only counted.

A network passes through *states*. A state says which source register each slot of each word holds, by columns: of the word bits,
of the slot bits (elements in a word), and of the thread bits. Each step takes in one bit u that tells source words apart, and
that a slot or the thread chooses at the end. A result of a step is therefore made of two words. A step is one of these:

    merge      u is selected by the thread, or goes to a slot bit whose elements are not kept: half as many words are left
    exchange   u changes places with a slot bit that is to tell words apart, or stays in its place and is flipped by the thread

Merges come first, because they leave fewer words for the steps after them. The last step makes the destination's words.

    2x2 elements of 16 bits, transposed: word bit and slot bit are exchanged

    source         a = (0, 1)   b = (2, 3)
    destination    (0, 2) = prmt a, b, 0x5410       (1, 3) = prmt a, b, 0x7632

Columns of several source bits, which accesses to a swizzled memory may ask for, are made word by word (`permute_trees`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from weft.layout.algebra import f2
from weft.layout.planning import permute_trees
from weft.layout.planning.permutes import (
    WITHIN_WORDS,
    WORD_BITS,
    WORD_BYTES,
    Network,
    Permute,
    Words,
    digit_bits,
    word_bits,
)

_NOT_HELD: Final = 40
"""Slots without a register have units from this bit on, which no column names."""


class State(NamedTuple):
    """The source register in each word, slot and thread: the XOR of these columns."""

    words: f2.Matrix
    slots: f2.Matrix
    threads: f2.Matrix


def _whole(registers: f2.Matrix, chosen: f2.Matrix, low: int) -> bool:
    """Whether words are moved whole: what is in the lowest ``low`` bits stays there."""
    inside, rest = registers[:low], (*registers[low:], *chosen)
    return inside == f2.identity(len(inside)) and not any(column & ((1 << low) - 1) for column in rest)


class _Ends(NamedTuple):
    """The first and the last state, the parts of a word that move, and how many of the lowest register bits lie within words."""

    first: State
    last: State
    parts: int
    inside: int


def _ends(registers: f2.Matrix, chosen: f2.Matrix, taken: Words, made: Words) -> _Ends:
    """Where a network begins and ends."""
    bits, low, parts = taken.bits, word_bits(taken.bits), max(WORD_BYTES, WORD_BITS // taken.bits)
    if bits < 8 and taken == made == Words.packed(bits) and _whole(registers, chosen, low):
        registers, chosen = tuple(c >> low for c in registers[low:]), tuple(c >> low for c in chosen)
        taken, made, low, parts = Words(WORD_BITS, 0), Words(WORD_BITS, 0), 0, WORD_BYTES
    if bits > WORD_BITS:
        wide = (bits // WORD_BITS).bit_length() - 1
        registers = (*f2.identity(wide), *(column << wide for column in registers))
        chosen = tuple(column << wide for column in chosen)
    held = _slots(taken, low)
    words = registers[made.inside :]
    # Slots without a register keep what they have, where nothing else needs it.
    needed = {*registers, *chosen}
    slots = [0 if unit in needed else unit for unit in held]
    for place, column in zip(made.places, registers, strict=False):
        slots[place] = column
    units = needed.difference(held, (0,))
    first = State(tuple(sorted(units)), held, (0,) * len(chosen))
    return _Ends(first, State(words, tuple(slots), chosen), parts, taken.inside)


@lru_cache(maxsize=256)
def _slots(words: Words, low: int) -> f2.Matrix:
    """The register bit of each slot bit, as a unit."""
    held = [1 << (_NOT_HELD + slot) for slot in range(low)]
    for bit, place in enumerate(words.places):
        held[place] = 1 << bit
    return tuple(held)


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


def _combines(registers: f2.Matrix, chosen: f2.Matrix) -> bool:
    """Whether a column is the XOR of several source bits."""
    return any([column & (column - 1) for column in (*registers, *chosen)])


def _renames(first: State, last: State) -> bool:
    """Whether whole words are renamed alike in all threads."""
    return first.slots == last.slots and not any(last.threads) and not set(first.slots).intersection(last.words)


def _states(first: State, last: State) -> Iterator[State]:
    """The states of a network, from the source to the destination; one where all words are renamed."""
    if _renames(first, last):
        yield last
        return
    yield first
    state = first
    for unit, slot, merges in _take_in(first, last)[:-1]:
        slots = list(state.slots)
        partner = unit
        if slot is not None:
            partner, slots[slot] = slots[slot], unit
        words = tuple(partner if word == unit else word for word in state.words if not (merges and word == unit))
        # Threads choose what has been taken in, what leaves its slot, and what neither words nor slots have any more.
        open_units = {*words, *slots} - {unit, partner}
        threads = tuple(
            own if own or target in open_units else target
            for own, target in zip(state.threads, last.threads, strict=True)
        )
        state = State(words, tuple(slots), threads)
        yield state
    yield last


class Summary(NamedTuple):
    """What is known of a network without making it."""

    instructions: int
    levels: int
    """Levels of permutes; none where words are renamed."""
    taken_in: tuple[int, ...]
    """For each level that makes words of two the slot bit of the result that tells these apart, -1 where words or threads do."""
    parts: int


def summary(registers: f2.Matrix, chosen: f2.Matrix, taken: Words, made: Words) -> Summary:
    """What the network takes; which thread bit chooses which column makes no difference."""
    return _summary(registers, tuple(sorted([column for column in chosen if column])), taken, made)


def length(registers: f2.Matrix, chosen: f2.Matrix, taken: Words, made: Words) -> int:
    """How many instructions the network takes, counted without making it."""
    return summary(registers, chosen, taken, made).instructions


@lru_cache(maxsize=4096)
def _summary(registers: f2.Matrix, chosen: f2.Matrix, taken: Words, made: Words) -> Summary:
    if _combines(registers, chosen):
        return Summary(permute_trees.length(registers, chosen, taken, made), 1, (), WORD_BYTES)
    first, last, parts, _ = _ends(registers, chosen, taken, made)
    if _renames(first, last):
        return Summary(0, 0, (), parts)
    steps = _take_in(first, last)
    words, count = len(first.words), 0
    for _, _, merges in steps[:-1]:
        words -= merges
        count += 1 << words
    count += 1 << len({column for column in last.words if column})
    slots = {unit: slot for slot, unit in enumerate(last.slots)}
    return Summary(
        count * (1 if parts == WORD_BYTES else WITHIN_WORDS),
        max(1, len(steps)),
        tuple([slots.get(unit, -1) for unit, _, _ in steps]),
        parts,
    )


def _places(state: State, columns: Sequence[int]) -> list[tuple[int, int]]:
    """For each column the masks of word bits and of slot bits at which a state has it."""
    at = {unit: (1 << bit, 0) for bit, unit in enumerate(state.words)}
    at |= {unit: (0, 1 << bit) for bit, unit in enumerate(state.slots)}
    at[0] = (0, 0)
    return [at[column] for column in columns]


def _permutes(before: State, after: State, parts: int) -> Iterator[Permute]:
    """The permutes of a step, for each word of the state ``after``; operands are words of ``before``."""
    size = parts >> len(before.slots)
    digit = digit_bits(parts)
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
                first_part = (parts if word != start else 0) + place * size
                for part in range(size):
                    selector |= (first_part + part) << digit * (slot * size + part)
            selectors.append(selector)
        yield Permute(start, start ^ partner, tuple(selectors), thread_bits)


def build(registers: f2.Matrix, chosen: f2.Matrix, taken: Words, made: Words, sources: int = 0) -> Network:
    """The network that makes word after word of the result; at least ``sources`` words are held before.

    Result register r of thread t is the source's at the XOR of the columns ``registers`` by r and ``chosen`` by t. The source's
    registers lie in words as ``taken`` says, the result's as ``made``.
    """
    if _combines(registers, chosen):
        return permute_trees.build(registers, chosen, taken, made, sources)
    first, last, parts, inside = _ends(registers, chosen, taken, made)
    found = list(_states(first, last))
    columns = [column >> inside for column in found[0].words]
    sources = max(sources, 1 << max(columns, default=0).bit_length())
    values = [f2.apply(columns, word) for word in range(1 << len(columns))]
    made_by: dict[Permute, int] = {}
    for before, after in zip(found, found[1:], strict=False):
        permutes = [
            Permute(values[p.a], values[p.b], p.selectors, p.thread_bits) for p in _permutes(before, after, parts)
        ]
        values = [made_by.setdefault(permute, sources + len(made_by)) for permute in permutes]
    return Network(sources, tuple(made_by), tuple(values), parts)

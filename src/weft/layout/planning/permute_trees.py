"""Networks whose columns are XORs of several source bits: each word of the result is made by a tree of its own.

A result word's slots lie in the source words ``start + span(b_1 .. b_s)``. The first level takes parts of two words that
differ in b_1 and puts them into their places. Each further level chooses, part by part, between two results of the level before.
A tree takes 2^s - 1 permutes, or one where a word's slots only change places.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.layout.algebra import f2
from weft.layout.planning.permutes import WITHIN_WORDS, WORD_BYTES, Network, Permute, Words, digit_bits, word_bits


@dataclass(frozen=True)
class _Columns:
    """The columns of words, slots and threads as (word, slot) of the source, and the word bits that a tree takes in."""

    words: tuple[tuple[int, int], ...]
    slots: tuple[tuple[int, int], ...]
    threads: tuple[tuple[int, int], ...]
    basis: f2.Matrix
    parts: int
    moved: bool
    """Whether slots change places, in some word at least."""


def _columns(registers: f2.Matrix, chosen: f2.Matrix, taken: Words, made: Words) -> _Columns:
    mask = (1 << taken.inside) - 1

    def place(column: int) -> tuple[int, int]:
        slot = sum(1 << at for bit, at in enumerate(taken.places) if column >> bit & 1)
        return column >> taken.inside, slot

    at = dict(zip(made.places, registers, strict=False))
    # Slots without a register repeat another.
    slots = tuple(place(at.get(slot, 0)) for slot in range(word_bits(taken.bits)))
    words, threads = tuple(map(place, registers[made.inside :])), tuple(map(place, chosen))
    moved = tuple(at.get(slot, 1 << slot) for slot in range(len(slots))) != f2.identity(len(slots))
    return _Columns(
        words,
        slots,
        threads,
        f2.reduced_basis([word for word, _ in (*slots, *threads)]),
        max(WORD_BYTES, 1 << len(slots)),
        moved or taken != made or any(column & mask for column in (*registers[made.inside :], *chosen)),
    )


def length(registers: f2.Matrix, chosen: f2.Matrix, taken: Words, made: Words) -> int:
    """How many instructions the trees take."""
    found = _columns(registers, chosen, taken, made)
    each = (1 << len(found.basis)) - 1 if found.basis else int(found.moved)
    wide = max(1, taken.bits // 32)
    return (each << len(found.words)) * wide * (1 if found.parts == WORD_BYTES else WITHIN_WORDS)


def build(registers: f2.Matrix, chosen: f2.Matrix, taken: Words, made: Words, sources: int = 0) -> Network:
    """The network of trees; see `networks.build`."""
    found = _columns(registers, chosen, taken, made)
    wide = max(1, taken.bits // 32)
    every = 0
    for word, _ in (*found.words, *found.slots, *found.threads):
        every |= word
    sources = max(sources, (1 << every.bit_length()) * wide)
    permutes: list[Permute] = []
    outputs: list[int] = []
    for number in range(1 << len(found.words)):
        start, slot = (f2.apply([column[i] for column in found.words], number) for i in (0, 1))
        for part in range(wide):
            outputs.append(_tree(found, start, slot, part, wide, sources, permutes))
    return Network(sources, tuple(permutes), tuple(outputs), found.parts)


def _tree(found: _Columns, start: int, slot: int, part: int, wide: int, sources: int, permutes: list[Permute]) -> int:
    """The value of a result word; its permutes are added."""
    if not found.basis and not found.moved:
        return start * wide + part
    digit, size = digit_bits(found.parts), found.parts >> len(found.slots)
    thread_bits = tuple(bit for bit, column in enumerate(found.threads) if any(column))
    echelon = f2.Echelon(found.basis)

    def value(coordinates: int) -> int:
        return (start ^ f2.apply(found.basis, coordinates)) * wide + part

    def selectors(level: int) -> tuple[int, ...]:
        made: list[int] = []
        for thread in range(1 << len(thread_bits)):
            selector = 0
            for index in range(1 << len(found.slots)):
                word, place = start, slot
                for bit, column in enumerate(found.slots):
                    if index >> bit & 1:
                        word, place = word ^ column[0], place ^ column[1]
                for at, bit in enumerate(thread_bits):
                    if thread >> at & 1:
                        word, place = word ^ found.threads[bit][0], place ^ found.threads[bit][1]
                second = echelon.reduce(word ^ start)[1] >> level & 1
                for step in range(size):
                    first = (index if level else place) * size + step
                    selector |= (first + found.parts * second) << digit * (index * size + step)
            made.append(selector)
        return tuple(made)

    values = [value(coordinates) for coordinates in range(1 << len(found.basis))]
    for level in range(max(1, len(found.basis))):
        chosen = selectors(level)
        pairs = list(zip(values[::2], values[1::2], strict=True)) if found.basis else [(values[0], values[0])]
        values = list(range(sources + len(permutes), sources + len(permutes) + len(pairs)))
        permutes += [Permute(a, b, chosen, thread_bits) for a, b in pairs]
    return values[0]

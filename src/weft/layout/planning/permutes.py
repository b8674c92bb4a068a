"""Permutes: how many instructions it takes a thread to rearrange its own registers, and the `Move` that does it.

An instruction makes one word of two, by a byte permute whose selector may differ from lane to lane, or by a select. A word
made of (or chosen by lane from) one of 2^s others takes a tree of 2^s - 1; 2^s words made of the same 2^s others share the
trees' inner nodes, as in a butterfly network, s each. Elements below a byte cannot be permuted by one instruction: shift,
mask and merge make three. Indices of lanes and selectors are computed once and not counted. Renaming whole words costs
nothing. `networks` has the permutes of a `Move` as data; `count` serves what has no network yet.
"""

from __future__ import annotations

from weft.layout.algebra import f2
from weft.layout.planning.networks import WORD_BITS, length, word_bits
from weft.layout.planning.steps import Move


def network(inputs: int, shared: int, outputs: int) -> int:
    """Permutes that make 2^outputs words, each of 2^inputs others, where groups of 2^shared are made of the same ones."""
    shared = min(shared, outputs)
    if shared >= inputs:
        return inputs << outputs
    group = (1 << inputs) - (1 << shared) + (shared << shared)
    return group << (outputs - shared)


def within_words(bits: int) -> int:
    """Instructions that rearrange elements of ``bits`` between two words."""
    return 1 if bits >= 8 else 3


def words(bits: int) -> int:
    """Words of an element that is wider than one, else 1."""
    return max(1, bits // WORD_BITS)


def count(registers: f2.Matrix, by_lane: f2.Matrix, by_warp: f2.Matrix, bits: int) -> int:
    """Permutes of the `Move` by these columns."""
    low = word_bits(bits)
    mask = (1 << low) - 1
    inside, across = registers[:low], registers[low:]
    chosen = (*by_lane, *by_warp)
    sources = f2.Echelon([column >> low for column in (*inside, *chosen)])
    needed = sources.rank
    outputs = f2.rank(across)
    for column in across:
        sources.add(column >> low)
    shared = outputs - (sources.rank - needed)
    whole = inside == f2.identity(len(inside)) and not any(column & mask for column in (*across, *chosen))
    found = network(needed, shared, outputs) if needed else 0 if whole else 1 << outputs
    return found * words(bits) * (1 if whole else within_words(bits))


def move(registers: f2.Matrix, by_lane: f2.Matrix, by_warp: f2.Matrix, bits: int, warp_flip: int = 0) -> Move:
    """The `Move` by these columns. Its permutes are those of its network, or `count` where it has none."""
    permutes = length(registers, (*by_lane, *by_warp), bits)
    if permutes is None:
        permutes = count(registers, by_lane, by_warp, bits)
    return Move(registers, by_lane, by_warp, bits, permutes, warp_flip=warp_flip)

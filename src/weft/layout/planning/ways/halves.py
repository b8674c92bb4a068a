"""The way by halves: what a warp has already stays, the rest moves through memory.

Where warp bit i moves the tensor's bit a from the warps into registers, each thread needs both values of a, and one of
them is in its own warp. Say B has bit c at i, from A's registers (or copies: then every register counts as both). What a thread
holds splits by h = a + c, and so does what it needs: the half h = 0 stays within its warp, and only h = 1 moves
through memory. Either is a conversion of half the size, from A without c to B without a where warp bit i means a; with h = 1
the warp to receive is the one whose bit i is the other.

    A: {register: [c, ..], warp: [a]}    B: {register: [a, ..], warp: [c]}

               warp 0 has        warp 1 has        warp 0 needs      warp 1 needs
    h = 0      a=0 c=0           a=1 c=1           a=0 c=0           a=1 c=1          stays
    h = 1      a=0 c=1           a=1 c=0           a=1 c=0           a=0 c=1          moves

The halves are conversions in turn, so with m such bits a part of 2^-m stays where that is worth it. In the half that moves, the
loads and what follows use the addresses and registers of warp ``w ^ partner`` (``warp_flip``).

What this does not do: a part of the lanes staying.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from weft.layout.planning.accesses import ALIGNMENT, Access
from weft.layout.planning.needs import Places
from weft.layout.planning.permutes import WORD_BITS
from weft.layout.planning.steps import Barrier, Move, Parallel, Step


@dataclass(frozen=True)
class Split:
    """A conversion cut into halves: the registers are dealt to them, each goes from ``source`` to ``destination``, and they are
    dealt back. See the module."""

    deal: Move
    source: Places
    destination: Places
    gather: Move
    partner: int


class Cut(NamedTuple):
    """Where a conversion splits: the warp bit, and the tensor bits that leave it and enter it."""

    warp_bit: int
    out: int
    into: int


class Halved(NamedTuple):
    """The register bits of the source that each half keeps, and a half's source and destination."""

    kept: tuple[int, ...]
    source: Places
    destination: Places


def cut(a: Places, b: Places, bits: int) -> Cut | None:
    """The first warp bit where a conversion has halves, of whole words each. Requires no copies in registers."""
    if a.warp == b.warp:
        return None
    for i, (out, into) in enumerate(zip(a.warp, b.warp, strict=True)):
        if not out or out == into or out not in b.register or (into and into not in a.register):
            continue
        kept = len(a.register) - (into in a.register)
        if bits << min(kept, len(b.register) - 1) >= WORD_BITS:
            return Cut(i, out, into)
    return None


def halved(a: Places, b: Places, at: Cut) -> Halved:
    """The halves of a conversion."""
    i, out, into = at
    kept = tuple([bit for bit, unit in enumerate(a.register) if unit != into])
    source = Places(tuple([a.register[bit] for bit in kept]), a.lane, a.warp)
    warp = (*b.warp[:i], out, *b.warp[i + 1 :])
    return Halved(kept, source, Places(tuple([u for u in b.register if u != out]), b.lane, warp))


def split(a: Places, b: Places, bits: int) -> Split | None:
    """The conversion as halves (`halved`)."""
    at = cut(a, b, bits)
    if at is None:
        return None
    found = halved(a, b, at)
    by_warp = [0] * len(a.warp)
    half = 1 << a.register.index(at.into) if at.into else 0
    by_warp[at.warp_bit] = half
    deal = Move.packed((*(1 << bit for bit in found.kept), half), (0,) * len(a.lane), tuple(by_warp), bits)
    upper = 1 << len(found.destination.register)
    places = {unit: 1 << bit for bit, unit in enumerate(found.destination.register)} | {at.out: upper}
    by_warp[at.warp_bit] = upper
    gather = Move.packed(tuple(places[unit] for unit in b.register), (0,) * len(a.lane), tuple(by_warp), bits)
    return Split(deal, found.source, found.destination, gather, 1 << at.warp_bit)


def relabelled(a: Places, b: Places) -> tuple[Places, Places]:
    """Both layouts with the tensor's bits numbered without gaps: what only blocks tell apart is left out."""
    units = sorted({unit for columns in (*a, *b) for unit in columns if unit})
    at = {unit: 1 << bit for bit, unit in enumerate(units)} | {0: 0}

    def renamed(places: Places) -> Places:
        return Places(*(tuple(at[unit] for unit in columns) for columns in places))

    return renamed(a), renamed(b)


def for_partner(steps: Sequence[Step], partner: int) -> tuple[Step, ...]:
    """The steps of a conversion through memory, such that each warp gets what they would give to warp ``w ^ partner``:
    warps wait for each other, and loads and what follows are the partner's."""
    found: list[Step] = []
    for step in steps:
        if isinstance(step, Barrier):
            found.append(Barrier("block"))
        elif (isinstance(step, Access) and not step.stores) or (isinstance(step, Move) and step.loaded):
            found.append(replace(step, warp_flip=step.warp_flip ^ partner))
        else:
            found.append(step)
    return tuple(found)


def above(steps: Sequence[Step], scratch: int) -> tuple[Step, ...]:
    """The steps with their scratch after ``scratch`` bytes that others use."""
    base = -(-scratch // ALIGNMENT) * ALIGNMENT

    def moved(step: Step) -> Step:
        if isinstance(step, Parallel):
            return Parallel(above(step.stays, scratch), above(step.moves, scratch))
        if isinstance(step, Access):
            return replace(step, addresses=replace(step.addresses, base=step.addresses.base + base))
        return step

    return tuple(map(moved, steps))

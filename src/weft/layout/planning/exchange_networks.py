"""The permutes of a lane exchange, as data: from a thread's words to those that it offers, and from those received to its own.

    offer      registers (slot, round) of the words offered      made of the thread's own registers
    receive    the thread's new registers                        made of what it received

Both are networks of `networks`. The values of ``receive`` go on from those of ``offer``: first come all of these (own words,
then results of permutes), then the words received, round after round, without the rounds in which every lane reads itself.

    swap of register bit 0 with lane bit 0, 32 bits; a and b are the thread's words, l is its lane's bit 0

    offer      2 = l ? a : b            what the neighbour lacks
    shuffle    3 = 2 of the neighbour
    receive    4 = l ? 3 : a            new register 0: one permute for each word
               5 = l ? b : 3            new register 1

In the round that stays, the word offered would be ``l ? b : a``. It is not made: where one level of permutes makes the words
offered, and `receive` wants of such a word, in each of its permutes, only what comes from one of both operands, it takes the
operand itself. Where offered words are made of one word each, none is made: the word itself is offered, and the receiver takes
the parts that the sender would have chosen, by the sender's number. `made_words` says which of these it is:

    none     an offered word is made of one word
    moved    an offered word is made of two, told apart by the thread, or by a slot that becomes a word bit
    all      anything else
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from weft.layout.algebra import f2
from weft.layout.planning.networks import Summary, build, summary
from weft.layout.planning.permutes import WORD_BITS, Network, Permute, Words, digit_bits


class Columns(NamedTuple):
    """What `networks.build` takes."""

    registers: f2.Matrix
    chosen: f2.Matrix
    taken: Words
    made: Words

    @property
    def summary(self) -> Summary:
        """What is known of the network without making it."""
        return summary(*self)


@dataclass(frozen=True)
class ExchangeNetworks:
    """See the module. ``offer.outputs`` are the words of the rounds that shuffle, in order; an element wider than a word has
    some words a round."""

    offer: Network
    receive: Network

    @property
    def instructions(self) -> int:
        """How many instructions both take."""
        return self.offer.instructions + self.receive.instructions


Offer = Literal["all", "moved", "none"]
"""Which rounds' words are made: all, those of rounds that shuffle, or none; see the module."""


def made_words(offer: Columns, receive: Columns) -> Offer:
    """Which words have to be made before they are offered, by the levels of both networks."""
    making, putting = offer.summary, receive.summary
    if making.levels != 1 or not putting.levels or making.parts != putting.parts:
        return "all"
    if not making.taken_in:
        return "none"
    if putting.levels > 1 or not all(offer.registers[offer.made.inside :]):
        return "all"
    (slot,) = making.taken_in
    slots = receive.registers[: receive.made.inside]
    apart = 1 << slot in slots if slot >= 0 else any(column in slots for column in receive.chosen if column)
    return "all" if apart else "moved"


def count(offer: Columns, receive: Columns, stays: int, rounds: int) -> int:
    """The instructions of both networks, counted without making them; ``stays`` of ``rounds`` stay in their lanes."""
    making = made_words(offer, receive)
    made = 0 if making == "none" else offer.summary.instructions
    if making == "moved":
        made -= made * stays // rounds
    return made + receive.summary.instructions


@dataclass(frozen=True)
class Rounds:
    """Which lane each lane reads: the XOR of the columns ``reads`` by the bits of its thread, and of the round's ``offset``.
    A round ``moved`` shuffles."""

    reads: f2.Matrix
    lane_bits: int
    offsets: tuple[int, ...]
    moved: tuple[bool, ...]

    def seen(self, permute: Permute, number: int, value: int) -> Permute:
        """What a lane makes of the ``value`` it received in a round, as ``permute`` would have made it in the lane that it
        reads."""
        bits = range(len(self.reads))
        asked = [bit for bit in permute.thread_bits if bit < self.lane_bits]
        mine = [bit for bit in bits if any(self.reads[bit] >> lane & 1 for lane in asked)]
        mine += [bit for bit in permute.thread_bits if bit >= self.lane_bits and bit not in mine]
        thread_bits = tuple(sorted(mine))
        selectors: list[int] = []
        for chosen in range(1 << len(thread_bits)):
            thread = sum((chosen >> place & 1) << bit for place, bit in enumerate(thread_bits))
            lane = f2.apply(self.reads, thread) ^ self.offsets[number]
            selectors.append(permute.selector(lane | thread >> self.lane_bits << self.lane_bits))
        return Permute(value, value, tuple(selectors), thread_bits)


def build_exchange(offer: Columns, receive: Columns, rounds: Rounds, own_words: int) -> ExchangeNetworks:
    """Both networks."""
    parts = max(1, offer.taken.bits // WORD_BITS)
    making = made_words(offer, receive)
    whole = build(*offer, sources=own_words)
    made = {own_words + at: permute for at, permute in enumerate(whole.permutes)}
    values = own_words + len(whole.permutes)
    arrived: list[int] = []  # the value of each round's words
    offered: list[int] = []
    inner: dict[int, Permute] = {}
    for number, moved in enumerate(rounds.moved):
        for value in whole.outputs[number * parts : (number + 1) * parts]:
            at = values + len(offered) if moved else value
            arrived.append(at)
            if moved:
                offered.append(made[value].a if making == "none" else value)
                if making == "none":
                    inner[at] = rounds.seen(made[value], number, at)
            elif making != "all":
                inner[at] = made[value]
    put = build(*receive, sources=len(arrived))
    sources = values + len(offered)

    def renumbered(value: int) -> int:
        return arrived[value] if value < len(arrived) else value - len(arrived) + sources

    permutes = [replace(p, a=renumbered(p.a), b=renumbered(p.b)) for p in put.permutes]
    return pruned(
        Network(own_words, whole.permutes, tuple(offered), whole.parts),
        Network(
            sources,
            tuple(bypass(permute, inner, put.parts) for permute in permutes),
            tuple(map(renumbered, put.outputs)),
            put.parts,
        ),
    )


def bypass(permute: Permute, made: dict[int, Permute], parts: int) -> Permute:
    """The permute without operands that other permutes make, where it wants of these what comes from one of theirs only."""
    for second in (False, True):
        operand = permute.b if second else permute.a
        inner = made.get(operand)
        if inner is not None:
            permute = _through(permute, inner, second, parts) or permute
    return permute


def _through(permute: Permute, inner: Permute, second: bool, parts: int) -> Permute | None:
    digit = digit_bits(parts)
    mask = (1 << digit) - 1
    thread_bits = tuple(sorted({*permute.thread_bits, *inner.thread_bits}))
    selectors: list[int] = []
    wanted: set[int] = set()
    for number in range(1 << len(thread_bits)):
        thread = sum((number >> place & 1) << bit for place, bit in enumerate(thread_bits))
        outer_selector, inner_selector = permute.selector(thread), inner.selector(thread)
        selector = 0
        for place in range(parts):
            part = outer_selector >> digit * place & mask
            if (part >= parts) == second:
                part = inner_selector >> digit * (part % parts) & mask
                wanted.add(inner.b if part >= parts else inner.a)
                part = part % parts + (parts if second else 0)
            selector |= part << digit * place
        selectors.append(selector)
    if len(wanted) > 1:
        return None
    (value,) = wanted or {permute.b if second else permute.a}
    a, b = (permute.a, value) if second else (value, permute.b)
    return Permute(a, b, tuple(selectors), thread_bits)


def pruned(offer: Network, receive: Network) -> ExchangeNetworks:
    """Both networks without permutes of the first whose results are not used."""
    used = {*offer.outputs, *receive.outputs, *(value for p in receive.permutes for value in (p.a, p.b))}
    kept: dict[int, Permute] = {}
    for number in reversed(range(len(offer.permutes))):
        value = offer.sources + number
        if value in used:
            permute = offer.permutes[number]
            kept[value] = permute
            used |= {permute.a, permute.b}
    at = {value: value for value in range(offer.sources)}
    for value in sorted(kept):
        at[value] = offer.sources + len(at) - offer.sources
    gone = offer.sources + len(offer.permutes) - len(at)

    def moved(value: int) -> int:
        return at[value] if value in at else value - gone

    def renumbered(permute: Permute) -> Permute:
        return replace(permute, a=moved(permute.a), b=moved(permute.b))

    return ExchangeNetworks(
        Network(
            offer.sources,
            tuple(renumbered(kept[value]) for value in sorted(kept)),
            tuple(map(moved, offer.outputs)),
            offer.parts,
        ),
        Network(
            receive.sources - gone,
            tuple(map(renumbered, receive.permutes)),
            tuple(map(moved, receive.outputs)),
            receive.parts,
        ),
    )

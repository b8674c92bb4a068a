"""Conversions inside a warp: what a conversion between distributed layouts needs, and its best sequence of shuffles.

Definition. Source A and destination B send register, lane and warp bits to bits of the tensor, each column a unit vector or
zero (definition 4.10). With S = span(A_register, A_lane), what a warp holds, the conversion stays within warps iff

    span(B_register, B_lane) is within S,  and for each warp bit i: A_warp[i] + B_warp[i] is in S

and within threads iff the same holds with S = span(A_register), lanes among the bits i. One would compare the warps' columns for
equality, and call a layout whose warps hold copies a conversion across warps. Columns being units, a span is a mask and
membership an AND.

One exchange (paper 5.4). Where a tensor bit goes decides everything:

    B \\ A     register                        lane
    register   common: packs words, or rounds  leaves the lanes (e)
    lane       enters the lanes (f)            lanes are permuted
    warp       selected by the warp            half of the lanes are read

Each entering f is paired with a lane position p of A that has a leaving e, or copies. With e, ``round = e + f``: the lane at
p offers the register f = round + p, the receiver puts what it gets at e = round + f. In any round each lane then offers one word
and reads one. With copies, the copy that the receiver reads offers its f. 2^k words exchanged by k pairs at their
own positions (p is also where B has f) take 2^k - 1 shuffles: round 0 stays. That is the bound below, met.

A word holds elements that take the same way, which differ in common bits only. Where these are fewer than fill a word, or
where selects cost more than shuffles, the pairs are exchanged in several steps, a few each, through layouts in between: bits
already exchanged, or yet to be, pack the words of the others. `sequence` considers all cuts of the pairs, and the price decides.

Bounds. A thread needs 2^|B_register| elements and has, of these, none or 2^|A_register and B_register|. It has none
in some lane iff a lane or warp bit's A + B is outside span(A_register, B_register). What it lacks has to be received, a word a
shuffle. And each element that a lane lacks has to be sent by a lane that holds it, while each sends a word a shuffle; where
the warp's number takes the place of a lane bit, half of the lanes hold nothing that the warp needs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from weft.layout.algebra import f2
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.shuffles import Exchange, Index, Registers, network, within_words, word_bits, words
from weft.layout.planning.steps import Cost, Step

Needs: TypeAlias = Literal["nothing", "registers", "lanes", "warps"]
Price: TypeAlias = Callable[[Cost], float]


class Places(NamedTuple):
    """A distributed layout as columns: the tensor bit, a unit vector or 0, of each register, lane and warp bit."""

    register: f2.Matrix
    lane: f2.Matrix
    warp: f2.Matrix

    @classmethod
    def of(cls, layout: LinearLayout) -> Places:
        """The columns of a layout; dimensions it lacks have no bits."""
        columns = dict(layout.inputs)
        return cls(columns.get(REGISTER, ()), columns.get(LANE, ()), columns.get(WARP, ()))

    @property
    def first_copies(self) -> Places:
        """Without the registers that hold copies."""
        return self._replace(register=tuple(column for column in self.register if column))


def _mask(columns: Sequence[int]) -> int:
    mask = 0
    for column in columns:
        mask |= column
    return mask


def crossing(a: Places, b: Places) -> int:
    """The tensor bits, as a mask, for which the conversion crosses warps: no warp need hold all the elements it is to have that
    differ in them. 0 iff it stays within warps."""
    held = _mask(a.register) | _mask(a.lane)
    wanted = _mask(b.register) | _mask(b.lane)
    return (wanted | _mask([x ^ y for x, y in zip(a.warp, b.warp, strict=True)])) & ~held


def _crosses_lanes(a: Places, b: Places) -> bool:
    held = _mask(a.register)
    threads = zip((*a.lane, *a.warp), (*b.lane, *b.warp), strict=True)
    return bool((_mask(b.register) | _mask([x ^ y for x, y in threads])) & ~held)


def needs(a: Places, b: Places) -> Needs:
    """What the conversion needs, exactly: nothing, its own registers, lanes of the warp, or other warps."""
    if a == b:
        return "nothing"
    if crossing(a, b):
        return "warps"
    return "lanes" if _crosses_lanes(a, b) else "registers"


def received_words(a: Places, b: Places, bits: int, width: int) -> int:
    """The least shuffles of ``width`` bits in which the worst thread receives what it lacks; see the module."""
    mine = _mask(a.register)
    wanted = _mask(b.register)
    elements = 1 << wanted.bit_count()
    moved = _mask([x ^ y for x, y in zip((*a.lane, *a.warp), (*b.lane, *b.warp), strict=True)])
    if not moved & ~(mine | wanted):
        elements -= 1 << (mine & wanted).bit_count()
    return -(-elements * bits // width)


def sent_words(a: Places, b: Places, bits: int, width: int) -> int:
    """The least shuffles of ``width`` bits in which the lanes that hold what the warp needs send what others lack; see the
    module. Requires that the conversion stays within warps."""
    wanted = _mask(b.register) | _mask(b.lane)
    fixed = _mask(a.lane) & ~wanted  # half of the lanes for each: the warp's number says which
    moving = [(x & wanted, y) for x, y in zip(a.lane, b.lane, strict=True) if x and x != y]
    elements = 1 << wanted.bit_count()
    if all(y for _, y in moving):
        # An element stays if its lane agrees in each bit that moves, else all of its copies are where it was not.
        elements -= elements >> f2.rank([x ^ y for x, y in moving])
    senders = 1 << (len(a.lane) - fixed.bit_count())
    return -(-elements * bits // (width * senders))


def least_shuffles(a: Places, b: Places, bits: int, width: int) -> int:
    """What no sequence of shuffles can do better, by ranks; for a conversion within warps."""
    return max(received_words(a, b, bits, width), sent_words(a, b, bits, width))


# Within threads


def rename(a: Places, b: Places, bits: int) -> Registers:
    """The step for a conversion that needs registers only."""
    at = {column: 1 << i for i, column in enumerate(a.register) if column}
    at[0] = 0
    return Registers(
        tuple(at[column] for column in b.register),
        tuple(0 if x == y else at[y] for x, y in zip(a.lane, b.lane, strict=True)),
        tuple(0 if x == y else at[y] for x, y in zip(a.warp, b.warp, strict=True)),
        bits,
    )


# One exchange


@dataclass
class _Columns:
    """The columns of an `Index` as they are found."""

    round: list[int]
    lane: list[int]
    warp: list[int]

    def index(self, slot: f2.Matrix = ()) -> Index:
        return Index(tuple(self.round), tuple(self.lane), tuple(self.warp), slot)


@lru_cache(maxsize=1024)
def _register_bits(columns: f2.Matrix) -> dict[int, int]:
    """The mask of each tensor bit's register bit."""
    return {unit: 1 << i for i, unit in enumerate(columns)}


@lru_cache(maxsize=1024)
def _lane_positions(columns: f2.Matrix) -> dict[int, int]:
    """The position of each tensor bit among the lane bits."""
    return {unit: p for p, unit in enumerate(columns) if unit}


class Exchanger:
    """The exchanges from ``a`` to ``b``, which stay within warps and have no copies in registers."""

    def __init__(self, a: Places, b: Places, bits: int, machine: MachineModel):
        self.a, self.b, self.bits, self.machine = a, b, bits, machine
        self.from_register, self.from_lane = _register_bits(a.register), _lane_positions(a.lane)
        self.to_register, self.to_lane = _register_bits(b.register), _lane_positions(b.lane)
        self.leaving = [unit for unit in self.from_lane if unit in self.to_register]
        self.pairs = self._pair()
        common = [unit for unit in a.register if unit in self.to_register]
        self.pack = self._pack(common)
        self.grouped = [unit for unit in common if unit not in self.pack]
        entered = set(self.pairs.values())
        self.refused = [unit for unit in self.to_lane if unit in self.from_register and unit not in entered]

    def _pair(self) -> dict[int, int]:
        """The entering bit of each lane position that offers one: its own position where that is free, copies before leaving
        bits else, since copies need nothing put back."""
        entering = [unit for unit in self.to_lane if unit in self.from_register]
        if not entering:
            return {}
        free = [p for p, unit in enumerate(self.a.lane) if not unit or unit in self.to_register]
        pairs = {self.to_lane[unit]: unit for unit in entering if self.to_lane[unit] in free}
        if len(pairs) == len(entering):
            return pairs
        waiting = [unit for unit in entering if self.to_lane[unit] not in pairs]
        remaining = sorted((p for p in free if p not in pairs), key=lambda p: self.a.lane[p] != 0)
        return {**pairs, **dict(zip(remaining, waiting, strict=False))}

    def _pack(self, common: Sequence[int]) -> tuple[int, ...]:
        """The common bits that pack a word, those first that lie within words already."""
        slots = max(0, (self.machine.shuffle_bits // self.bits).bit_length() - 1)
        if len(common) <= slots:
            return tuple(common)
        low = word_bits(self.bits)
        before, after = self.a.register[:low], self.b.register[:low]
        chosen = sorted(common, key=lambda unit: -((unit in before) + (unit in after)))[:slots]
        return tuple(unit for unit in common if unit in chosen)

    @property
    def swapped(self) -> list[int]:
        """The lane positions whose pairs exchange a leaving bit with an entering one, the highest registers first: these
        move whole words."""
        swaps = [p for p in self.pairs if self.a.lane[p]]
        return sorted(swaps, key=lambda p: -self.from_register[self.pairs[p]])

    def exchange(self, spread: bool = False) -> Exchange:
        """The step. A leaving bit without a partner has a round for each value; or, with ``spread``, for its sum with the lane's
        own: then in one of both rounds a lane has the element already."""
        lanes, warps = len(self.a.lane), len(self.a.warp)
        offered, reads, into, refused = (_Columns([], [0] * lanes, [0] * warps) for _ in range(4))

        def add_round(offers: int = 0, lane: int = 0, puts: int = 0, refuses: int = 0) -> None:
            for columns, column in ((offered, offers), (reads, lane), (into, puts), (refused, refuses)):
                columns.round.append(column)

        for unit in self.grouped:
            add_round(offers=self.from_register[unit], puts=self.to_register[unit])
        for unit in self.leaving:
            p = self.from_lane[unit]
            partner = self.pairs.get(p, 0)
            add_round(offers=self.from_register.get(partner, 0), lane=1 << p, puts=self.to_register[unit])
            if spread and not partner:
                reads.lane[p] |= 1 << p
                into.lane[p] |= self.to_register[unit]
        for unit in self.refused:
            refused.lane[self.to_lane[unit]] |= 1 << len(into.round)
            add_round(offers=self.from_register[unit], refuses=1 << len(into.round))
        for p, unit in enumerate(self.a.lane):
            if partner := self.pairs.get(p, 0):
                q = self.to_lane[partner]
                offered.lane[p] |= self.from_register[partner]
                reads.lane[q] |= 1 << p
                if unit:
                    into.lane[q] |= self.to_register[unit]
            elif not unit:
                reads.lane[p] |= 1 << p
            elif unit in self.to_lane:
                reads.lane[self.to_lane[unit]] |= 1 << p
        for i, unit in self._into_warps():
            if unit in self.from_register:
                offered.warp[i] |= self.from_register[unit]
            else:
                reads.warp[i] |= 1 << self.from_lane[unit]
        return Exchange(
            len(into.round),
            offered.index(tuple(self.from_register[unit] for unit in self.pack)),
            reads.index(),
            into.index(tuple(self.to_register[unit] for unit in self.pack)),
            refused.index(),
            len(self.b.register),
            self.bits,
            self.machine.shuffle_bits,
            self.cost(spread).permutes,
        )

    def _into_warps(self) -> list[tuple[int, int]]:
        """The tensor bits that the warp's number takes the place of, each with the warp bit."""
        pairs = enumerate(zip(self.a.warp, self.b.warp, strict=True))
        return [(i, unit) for i, (before, unit) in pairs if unit and unit != before]

    def _stays(self, spread: bool) -> bool:
        """Whether there is a round in which every lane reads itself."""
        for p, unit in enumerate(self.a.lane):
            if partner := self.pairs.get(p, 0):
                if self.to_lane[partner] != p:
                    return False
            elif unit and not (spread and unit in self.to_register) and self.to_lane.get(unit) != p:
                return False
        return True

    def cost(self, spread: bool = False) -> Cost:
        """What `exchange` costs, counted without making it. Permutes make the words to offer from the source's, and the
        destination's from those received."""
        low, pack = word_bits(self.bits), set(self.pack)
        before, after = self.a.register[:low], self.b.register[:low]
        # Bits that senders choose by lane or warp; that receivers put by lane; that tell apart the words a lane offers.
        chosen = {*self.pairs.values(), *(unit for _, unit in self._into_warps() if unit in self.from_register)}
        put_by_lane = {self.a.lane[p] for p in (*self.pairs, *(self.spread if spread else ()))} - {0}
        swapped = [partner for p, partner in self.pairs.items() if self.a.lane[p]]
        varying = {*self.grouped, *swapped, *self.refused}
        round_bits = len(self.grouped) + len(self.leaving) + len(self.refused)
        moved = 1 << round_bits
        if self._stays(spread):
            moved -= moved >> len(self.leaving)
        mixed = (chosen | pack) - set(before)
        made = network(len(mixed), len(varying & (mixed | set(before))), len(varying))
        if len(mixed) <= 1 and not self.spread and pack.intersection(after) <= set(before):
            # What stays of a word is put from the one it was in; in a larger network, words in between are shared with it.
            made = made * moved >> round_bits
        arriving = (set(after) | put_by_lane) - pack
        across = self.b.register[low:]
        apart = len(arriving) + len(self.refused)
        put = network(apart, sum(unit in pack or unit in arriving for unit in across), len(across))
        if not apart and not mixed and before != after:
            put = 1 << len(across)
        whole = before == after and set(before) == pack
        permutes = (made + put) * words(self.bits) * (1 if whole else within_words(self.bits))
        each = -(-(self.bits << len(self.pack)) // self.machine.shuffle_bits)
        return Cost(shuffles=moved * each, permutes=permutes)

    @property
    def spread(self) -> list[int]:
        """The lane positions whose leaving bits have no partner: lanes will hold copies."""
        return [self.from_lane[unit] for unit in self.leaving if self.from_lane[unit] not in self.pairs]

    def after(self, positions: Sequence[int]) -> Places:
        """The layout in which the bits at these lane positions have left, each for its partner in the partner's place, or for
        copies, and no more."""
        register, lane = list(self.a.register), list(self.a.lane)
        for p in positions:
            entering = self.pairs.get(p, 0)
            if entering:
                register[register.index(entering)] = lane[p]
            else:
                register.append(lane[p])
            lane[p] = entering
        return self.a._replace(register=tuple(register), lane=tuple(lane))


def _spreads(exchanger: Exchanger, price: Price) -> bool:
    """Whether the exchange in one step is cheaper spread."""
    return bool(exchanger.spread) and price(exchanger.cost(spread=True)) < price(exchanger.cost())


class _Way(NamedTuple):
    """Exchanges from the first layout to a station: what they cost, the last of them, and the way before it."""

    shuffles: int
    permutes: int
    last: Exchanger | None = None
    before: _Way | None = None

    def then(self, exchanger: Exchanger, price: Price) -> _Way:
        """This way and one exchange more."""
        cost = exchanger.cost(_spreads(exchanger, price))
        return _Way(self.shuffles + cost.shuffles, self.permutes + cost.permutes, exchanger, self)

    def steps(self, price: Price) -> tuple[Exchange, ...]:
        """Its exchanges, made."""
        if self.last is None or self.before is None:
            return ()
        return (*self.before.steps(price), self.last.exchange(_spreads(self.last, price)))


def sequence(a: Places, b: Places, bits: int, machine: MachineModel, price: Price) -> tuple[Exchange, ...]:
    """The cheapest exchanges from ``a`` to ``b``, which stay within warps and have no copies in registers: in one step, or
    through layouts in which the first few pairs are exchanged already, any increasing sequence of them."""
    whole = Exchanger(a, b, bits, machine)
    moves = whole.swapped
    if 1 << len(whole.pack) >= machine.shuffle_bits // bits:
        if len(moves) < 2:
            return (whole.exchange(_spreads(whole, price)),)
    elif len(whole.pack) < len(b.register):
        moves = moves + whole.spread
    stations = [whole.after(moves[:count]) for count in range(len(moves) + 1)]
    if stations[-1] == b:
        stations.pop()
    ways = [_Way(0, 0)]
    for at, station in enumerate((*stations[1:], b), 1):
        last = at == len(stations)
        found = [
            way.then(whole if last and not start else Exchanger(stations[start], station, bits, machine), price)
            for start, way in enumerate(ways)
        ]
        ways.append(min(found, key=lambda way: price(Cost(shuffles=way.shuffles, permutes=way.permutes))))
    return ways[-1].steps(price)


def warp_steps(a: Places, b: Places, bits: int, machine: MachineModel, price: Price) -> tuple[Step, ...] | None:
    """The steps of a conversion within warps; None where it crosses them. Copies in registers are dropped first, made last."""
    need = needs(a, b)
    if need == "warps":
        return None
    if need == "nothing":
        return ()
    if need == "registers":
        return (rename(a, b, bits),)
    first, last = a.first_copies, b.first_copies
    steps: list[Step] = [rename(a, first, bits)] if first != a else []
    steps += sequence(first, last, bits, machine, price)
    return (*steps, rename(last, b, bits)) if last != b else tuple(steps)

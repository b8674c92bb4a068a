"""The ways inside a warp: registers renamed or selected, and sequences of lane exchanges by ``shfl``.

One exchange (paper 5.4). Each entering bit f is paired with a lane position p of A (`needs.pair`) that has a leaving e, or
copies. With e, ``round = e + f``: the lane at p offers the register f = round + p, the receiver puts what it gets at e =
round + f. In any round each lane then offers one word and reads one. With copies, the copy that the receiver reads offers
its f. 2^k words exchanged by k pairs at their own positions (p is also where B has f) take 2^k - 1 shuffles: round 0 stays.
That is the bound, met.

A word holds elements that take the same way, which differ in common bits only. Where these are fewer than fill a word, or
where selects cost more than shuffles, the pairs are exchanged in several steps, a few each, through layouts in between: bits
already exchanged, or yet to be, pack the words of the others. `sequence` considers all cuts of the pairs; each exchange adds the
latency of a shuffle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from weft.layout.algebra import f2
from weft.layout.planning.exchange_networks import Columns, count
from weft.layout.planning.machine import MachineModel
from weft.layout.planning.needs import Places, needs, pair
from weft.layout.planning.permutes import Words, word_bits
from weft.layout.planning.steps import Cost, Index, LaneExchange, Move, Step

Price: TypeAlias = Callable[[Cost], float]
"""The clocks of the busiest pipe."""
_INFINITE: Final = float("inf")


def rename(a: Places, b: Places, bits: int) -> Move:
    """The step for a conversion that needs registers only."""
    at = {column: 1 << i for i, column in enumerate(a.register) if column}
    at[0] = 0
    return Move.packed(
        tuple(at[column] for column in b.register),
        tuple(0 if x == y else at[y] for x, y in zip(a.lane, b.lane, strict=True)),
        tuple(0 if x == y else at[y] for x, y in zip(a.warp, b.warp, strict=True)),
        bits,
    )


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
        entering = [unit for unit in self.to_lane if unit in self.from_register]
        self.pairs = pair(entering, self.leaving, a.lane, b.lane, copies_first=False)
        common = [unit for unit in a.register if unit in self.to_register]
        self.pack = self._pack(common)
        self.grouped = [unit for unit in common if unit not in self.pack]
        entered = set(self.pairs.values())
        self.refused = [unit for unit in self.to_lane if unit in self.from_register and unit not in entered]

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

    def exchange(self, spread: bool = False) -> LaneExchange:
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
        return LaneExchange(
            len(into.round),
            offered.index(tuple(self.from_register[unit] for unit in self.pack)),
            reads.index(),
            into.index(tuple(self.to_register[unit] for unit in self.pack)),
            refused.index(),
            len(self.b.register),
            len(self.a.register),
            self.bits,
            self.machine.shuffle_bits,
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
        """What `exchange` costs, counted without making it: by the columns of its networks, whatever lanes and warps choose by
        them."""
        partners = [self.pairs.get(self.from_lane[unit], 0) for unit in self.leaving]
        chosen = {*self.pairs.values(), *(unit for _, unit in self._into_warps() if unit in self.from_register)}
        own, travelling = Words.packed(self.bits), Words(self.bits, len(self.pack))
        offered = tuple(
            self.from_register.get(unit, 0) for unit in (*self.pack, *self.grouped, *partners, *self.refused)
        )
        offer = Columns(offered, tuple(sorted(self.from_register[unit] for unit in chosen)), own, travelling)
        rounds = (*self.pack, *self.grouped, *self.leaving, *self.refused)
        at = {unit: 1 << bit for bit, unit in enumerate(rounds)}
        put = [unit for unit, partner in zip(self.leaving, partners, strict=True) if partner or spread]
        receive = Columns(
            tuple(at[unit] for unit in self.b.register),
            tuple(at[unit] for unit in (*put, *self.refused)),
            travelling,
            own,
        )
        round_bits = len(rounds) - len(self.pack)
        stays = 1 << (round_bits - len(self.leaving)) if self._stays(spread) else 0
        each = -(-(self.bits << len(self.pack)) // self.machine.shuffle_bits)
        permutes = count(offer, receive, stays, 1 << round_bits)
        return Cost(shuffles=((1 << round_bits) - stays) * each, permutes=permutes)

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
    """Exchanges from the first layout to a station: what they cost, how many, the last of them, and the way before it."""

    shuffles: int
    permutes: int
    exchanges: int = 0
    last: Exchanger | None = None
    before: _Way | None = None

    def then(self, exchanger: Exchanger, price: Price) -> _Way:
        """This way and one exchange more."""
        cost = exchanger.cost(_spreads(exchanger, price))
        return _Way(self.shuffles + cost.shuffles, self.permutes + cost.permutes, self.exchanges + 1, exchanger, self)

    def price(self, price: Price, latency: float) -> float:
        """Its clocks."""
        return price(Cost(shuffles=self.shuffles, permutes=self.permutes)) + self.exchanges * latency

    def steps(self, price: Price) -> tuple[LaneExchange, ...]:
        """Its exchanges, made."""
        if self.last is None or self.before is None:
            return ()
        return (*self.before.steps(price), self.last.exchange(_spreads(self.last, price)))


def sequence(
    a: Places,
    b: Places,
    bits: int,
    machine: MachineModel,
    price: Price,
    latency: float = 0,
    to_beat: float = _INFINITE,
) -> tuple[LaneExchange, ...] | None:
    """The cheapest exchanges from ``a`` to ``b``, which stay within warps and have no copies in registers: in one step, or
    through layouts in which the first few pairs are exchanged already, any increasing sequence of them. Each exchange waits for
    ``latency``. None where every sequence is dearer than ``to_beat``."""
    whole = Exchanger(a, b, bits, machine)
    moves = whole.swapped
    if 1 << len(whole.pack) >= machine.shuffle_bits // bits:
        if len(moves) < 2:
            alone = _Way(0, 0).then(whole, price)
            return alone.steps(price) if alone.price(price, latency) <= to_beat else None
    elif len(whole.pack) < len(b.register):
        moves = moves + whole.spread
    stations = [whole.after(moves[:count]) for count in range(len(moves) + 1)]
    if stations[-1] == b:
        stations.pop()
    ways: list[_Way | None] = [_Way(0, 0)]
    for at, station in enumerate((*stations[1:], b), 1):
        last = at == len(stations)
        best, least = None, to_beat
        for start, before in reversed(tuple(enumerate(ways))):
            # What a way has paid already only grows.
            if before is None or before.price(price, latency) + latency > least:
                continue
            exchanger = whole if last and not start else Exchanger(stations[start], station, bits, machine)
            way = before.then(exchanger, price)
            if (paid := way.price(price, latency)) <= least:
                best, least = way, paid
        ways.append(best)
    return None if ways[-1] is None else ways[-1].steps(price)


def within_warps(
    a: Places,
    b: Places,
    bits: int,
    machine: MachineModel,
    price: Price,
    latency: float = 0,
    to_beat: float = _INFINITE,
) -> tuple[Step, ...] | None:
    """The steps of a conversion within warps; None where it crosses them, or is dearer than ``to_beat``. Copies in registers are
    dropped first, made last."""
    need = needs(a, b)
    if need == "warps":
        return None
    if need == "nothing":
        return ()
    if need == "registers":
        return (rename(a, b, bits),)
    first, last = a.first_copies, b.first_copies
    steps: list[Step] = [rename(a, first, bits)] if first != a else []
    exchanges = sequence(first, last, bits, machine, price, latency, to_beat)
    if exchanges is None:
        return None
    steps += exchanges
    return (*steps, rename(last, b, bits)) if last != b else tuple(steps)

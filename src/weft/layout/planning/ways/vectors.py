"""Conversions on a machine of vectors (paper 5.4): two-input shuffles, each of which exchanges a bit and permutes lanes at once.

Definition. In registers r and lanes l, the conversion is the linear map C: (destination r, l) -> (source r, l) with
``source(C(x)) == destination(x)``; among its solutions one that is the identity on lanes where both layouts agree, and
reads duplicate registers from the first copy, duplicate lanes from their own lane where they can. Each destination bit
moves one tensor bit, which the source has either in a register bit or in a lane bit (`needs`).

Bits that stay in registers only rename vectors: they cut the conversion into groups alike, each from 2^k source vectors to 2^m
destination vectors, where k bits enter the lanes and m bits leave them. Within a group, k steps bring in one entering bit each:
into a lane bit that held duplicates, which halves the vectors (a merge), else in exchange for a leaving bit (which keeps their
number). What is left to do, lanes to permute and bits to spread over new vectors, happens in the last step's shuffle.

    A: {register: [(0,1)], lane: [(0,2),(1,0)]}   B: {register: [(1,0)], lane: [(0,1),(0,2)]}   on a 2x4 tensor

    A   r0: 00 02 10 12    (0,1) enters the lanes, (1,0) leaves, (0,2) is permuted: k = 1, one group, one step:
        r1: 01 03 11 13    B r0 = shuffle(A r0, A r1, <0, 4, 1, 5>), B r1 = shuffle(A r0, A r1, <2, 6, 3, 7>)

Bound: a destination vector holds elements of 2^k source vectors, and t levels of two-input shuffles reach at most 2^t, so no plan
has fewer than k levels; this one has k, and for k = 0 one if any lane changes.

What this does not do: it counts every shuffle as 1, although a target may have cheaper ones for some masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from weft.layout.algebra import f2
from weft.layout.planning.needs import Places, pair
from weft.layout.planning.steps import Cost
from weft.layout.planning.vectors import Place, RegisterMap, Shuffle, Shuffles
from weft.layout.planning.ways.candidate import Built, Candidate, Kind


@dataclass
class _State:
    """A group between steps: the tensor bit (a unit vector, or 0 for duplicates) in each vector bit and lane bit."""

    vectors: list[int]
    lanes: list[int]

    def step_to(self, after: _State) -> Shuffle:
        """The shuffle whose result is the group in state ``after``."""
        places = {bit: Place(1 << i, 0) for i, bit in enumerate(self.vectors)}
        places |= {bit: Place(0, 1 << i) for i, bit in enumerate(self.lanes)}
        places[0] = Place(0, 0)
        lane_bits: list[Place] = []
        for lane, bit in enumerate(after.lanes):
            place = places[bit]
            # All copies would do. The one in the same lane makes a merge a blend, and keeps a lane that holds copies in place.
            same_lane = 1 << lane if not self.lanes[lane] else 0
            lane_bits.append(Place(place.vector, place.lane or same_lane))
        return Shuffle(1 << len(self.vectors), tuple(places[bit] for bit in after.vectors), tuple(lane_bits))

    def take_in(self, entering: int, lane: int) -> _State:
        """The state after ``entering`` has moved from a vector bit to ``lane``: a merge where that held duplicates, which costs
        the group that vector bit, else an exchange."""
        leaving = self.lanes[lane]
        vectors = [leaving if bit == entering else bit for bit in self.vectors]
        lanes = list(self.lanes)
        lanes[lane] = entering
        return _State([bit for bit in vectors if bit], lanes)


def _levels(entering: Sequence[int], last: _State, source_lanes: Sequence[int]) -> tuple[Shuffle, ...]:
    """The shuffles of one group from the source's lanes, with ``entering`` in its vector bits, to the state ``last``."""
    states = [_State(list(entering), list(source_lanes))]
    pairs = pair(entering, last.vectors, source_lanes, last.lanes, copies_first=True)
    for lane, bit in list(pairs.items())[:-1]:
        states.append(states[-1].take_in(bit, lane))
    if entering or last.vectors or last.lanes != states[0].lanes:
        states.append(last)
    return tuple(before.step_to(after) for before, after in zip(states, states[1:], strict=False))


def _span(columns: Sequence[int]) -> tuple[int, ...]:
    """All sums of the columns, by the mask that selects them."""
    return tuple(f2.apply(columns, mask) for mask in range(1 << len(columns)))


def shuffles(a: Places, b: Places) -> Shuffles:
    """The step from ``a`` to ``b``, which have no warps. Works on index bits: its time does not depend on the tensor's size."""
    register_of = {bit: 1 << i for i, bit in enumerate(a.register) if bit}
    entering = [bit for bit in b.lane if bit in register_of]
    renamed = [(i, bit) for i, bit in enumerate(b.register) if bit in register_of]
    leaving = [(i, bit) for i, bit in enumerate(b.register) if bit and bit not in register_of]
    copies = _span([1 << i for i, bit in enumerate(b.register) if not bit])
    return Shuffles(
        lanes=1 << len(a.lane),
        source_registers=1 << len(a.register),
        destination_registers=1 << len(b.register),
        source=RegisterMap(
            tuple(register_of[bit] for _, bit in renamed),
            tuple((offset,) for offset in _span([register_of[bit] for bit in entering])),
        ),
        destination=RegisterMap(
            tuple(1 << i for i, _ in renamed),
            tuple(tuple(offset | copy for copy in copies) for offset in _span([1 << i for i, _ in leaving])),
        ),
        levels=_levels(entering, _State([bit for _, bit in leaving], list(b.lane)), a.lane),
    )


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def candidate(a: Places, b: Places, pipes: Callable[[Cost], float]) -> Candidate:
    """The only way on a machine of vectors. It has a step even where nothing moves: that copies registers."""
    step = shuffles(a, b)
    entering = len(step.source.offsets).bit_length() - 1
    counted = f"{_counted(step.cost.shuffles, 'shuffle')} in {_counted(step.groups, 'group')}"
    kind: Kind
    if a == b:
        kind, reason = "nothing", "no data moves: the layouts are equal"
    elif not step.levels:
        kind, reason = "registers", "registers are renamed: the layouts have the same lane columns"
    elif not entering:
        kind, reason = (
            "warp",
            f"each destination vector is one source vector with its lanes permuted: {counted}, "
            "one per vector, the least where lanes change",
        )
    else:
        kind, reason = (
            "warp",
            f"the conversion takes {_counted(entering, 'bit')} of the tensor from registers to lanes, so each "
            f"destination vector holds elements of {1 << entering} source vectors: {counted}, "
            f"{len(step.levels)} deep; {entering} is the least, as t levels of two-input shuffles reach 2^t vectors",
        )
    price = pipes(step.cost)
    built = Built(kind, (step,), price, reason)
    return Candidate(kind, price, (0, step.cost.shuffles, 0), lambda _: built)

"""Conversion plans: the same tensor from one distributed layout to another on a machine of vectors (paper 5.4).

The machine has registers, each a vector of lanes, and one way to move data: a shuffle, which fills a vector from any
lanes of one or two others. One would usually go through memory, or exchange one register bit with one lane bit at a time
and permute lanes before and after. Here every step is one shuffle per vector that does all three at once.

Definition. In registers r and lanes l, the conversion is the linear map C: (destination r, l) -> (source r, l) with
``source(C(x)) == destination(x)``; among its solutions one that is the identity on lanes where both layouts agree, and
reads duplicate registers from the first copy, duplicate lanes from their own lane where they can. Each destination bit
moves one tensor bit, which the source has either in a register bit or in a lane bit:

    destination \\ source   register               lane
    register               group bit              leaves the lanes
    lane                   enters the lanes (k)   permuted

Group bits only rename vectors: they cut the conversion into groups alike, each from 2^k source vectors to 2^m destination
vectors where m bits leave the lanes. Within a group, k steps bring in one entering bit each: into a lane bit that held
duplicates, which halves the vectors (a merge), else in exchange for a leaving bit (which keeps their number). What is left to
do, lanes to permute and bits to spread over new vectors, happens in the last step's shuffle.

    A: {register: [(0,1)], lane: [(0,2),(1,0)]}   B: {register: [(1,0)], lane: [(0,1),(0,2)]}   on a 2x4 tensor

    A   r0: 00 02 10 12    (0,1) enters the lanes, (1,0) leaves, (0,2) is permuted: k = 1, one group, one step:
        r1: 01 03 11 13    B r0 = shuffle(A r0, A r1, <0, 4, 1, 5>), B r1 = shuffle(A r0, A r1, <2, 6, 3, 7>)

Law: `Plan.simulate` on labels of the source's elements gives the destination's. Bound: a destination vector holds elements of
2^k source vectors, and t levels of two-input shuffles reach at most 2^t, so no plan has fewer than k steps; this one has k,
and for k = 0 one if any lane changes.

What this does not do: layouts with warps or swizzles (those need memory), and it counts every shuffle as 1, although a target
may have cheaper ones for some masks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Literal, TypeAlias, TypeVar

from weft.layout.algebra import f2
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, why_not_distributed

T = TypeVar("T")
Kind: TypeAlias = Literal["noop", "registers", "lanes", "exchange"]


@dataclass(frozen=True)
class Place:
    """Where an index bit of a step's result points in its input: a mask of vector bits and one of lane bits."""

    vector: int
    lane: int


@dataclass(frozen=True)
class Shuffle:
    """One level of a group: ``new[v][l] = old[..][..]`` at the XOR of the places of v's and l's bits.

    ``lane_bits`` have at most one distinct non-zero ``vector``, so each result reads one or two vectors.
    """

    inputs: int
    """How many vectors of the group it reads."""
    vector_bits: tuple[Place, ...]
    lane_bits: tuple[Place, ...]

    @property
    def outputs(self) -> int:
        """How many vectors it makes."""
        return 1 << len(self.vector_bits)

    @property
    def lanes(self) -> int:
        """Lanes of a vector."""
        return 1 << len(self.lane_bits)

    @cached_property
    def partner(self) -> int:
        """The XOR between the indices of the two vectors read; 0 where each result reads one."""
        return max(place.vector for place in (*self.lane_bits, Place(0, 0)))

    def operands(self, output: int) -> tuple[int, ...]:
        """The one or two input vectors that result ``output`` reads, in the order its mask counts."""
        first = f2.apply([place.vector for place in self.vector_bits], output)
        return (first, first ^ self.partner) if self.partner else (first,)

    def mask(self, output: int) -> tuple[int, ...]:
        """For each lane of result ``output``, the lane it reads; lanes of the second operand count from ``lanes`` on, as in
        LLVM's ``shufflevector``."""
        lane_columns = [place.lane | (self.lanes if place.vector else 0) for place in self.lane_bits]
        start = f2.apply([place.lane for place in self.vector_bits], output)
        return tuple(start ^ f2.apply(lane_columns, lane) for lane in range(self.lanes))


@dataclass(frozen=True)
class RegisterMap:
    """The registers of each group: an XOR of ``group_columns`` by the group's bits, and an offset per vector of the group.

    ``offsets[v]`` has several entries where several registers hold vector v.
    """

    group_columns: f2.Matrix
    offsets: tuple[tuple[int, ...], ...]

    def registers(self, group: int) -> tuple[tuple[int, ...], ...]:
        """For each vector of the group the registers that hold it."""
        base = f2.apply(self.group_columns, group)
        return tuple(tuple(base ^ offset for offset in offsets) for offsets in self.offsets)


@dataclass(frozen=True)
class Plan:
    """What to emit: for each of ``groups`` groups, load the ``source`` registers (one each), run ``steps``, store each vector to
    its ``destination`` registers. Masks and operands are the same in all groups."""

    kind: Kind
    lanes: int
    source_registers: int
    destination_registers: int
    source: RegisterMap
    destination: RegisterMap
    steps: tuple[Shuffle, ...]
    group_bits: int
    """k: how many bits enter the lanes; a group reads 2^k source vectors."""

    @property
    def groups(self) -> int:
        """How many groups, all alike."""
        return 1 << len(self.source.group_columns)

    def sources(self, group: int) -> tuple[int, ...]:
        """The source register of each vector a group starts with."""
        return tuple(registers[0] for registers in self.source.registers(group))

    def destinations(self, group: int) -> tuple[tuple[int, ...], ...]:
        """For each vector a group ends with, the destination registers that hold it."""
        return self.destination.registers(group)

    @property
    def cost(self) -> int:
        """Shuffles, over all groups."""
        return self.groups * sum(step.outputs for step in self.steps)

    @property
    def depth(self) -> int:
        """Shuffles between any source and any destination vector."""
        return len(self.steps)

    @property
    def lower_bound(self) -> int:
        """The least `depth` of any plan, by rank."""
        return 1 if self.kind == "lanes" else self.group_bits

    @property
    def reason(self) -> str:
        """Why the plan is what it is, in words."""
        counted = f"{_counted(self.cost, 'shuffle')} in {_counted(self.groups, 'group')}"
        match self.kind:
            case "noop":
                return "no data moves: the layouts are equal"
            case "registers":
                return "registers are renamed: the layouts have the same lane columns"
            case "lanes":
                return (
                    f"each destination vector is one source vector with its lanes permuted: {counted}, "
                    "one per vector, the least where lanes change"
                )
            case "exchange":
                return (
                    f"the conversion takes {_counted(self.group_bits, 'bit')} of the tensor from registers to lanes, so each "
                    f"destination vector holds elements of {1 << self.group_bits} source vectors: {counted}, "
                    f"{self.depth} deep; {self.lower_bound} is the least, as t levels of two-input shuffles reach 2^t vectors"
                )

    def simulate(self, registers: Sequence[Sequence[T]]) -> list[list[T]]:
        """The destination registers for these source registers, each a list of one label per lane."""
        shape = {len(register) for register in registers}
        if len(registers) != self.source_registers or shape - {self.lanes}:
            raise ValueError(
                f"simulate: got {len(registers)} registers of {sorted(shape)} lanes, "
                f"the source has {self.source_registers} of {self.lanes}"
            )
        result: list[list[T]] = [[] for _ in range(self.destination_registers)]
        for group in range(self.groups):
            vectors = [list(registers[register]) for register in self.sources(group)]
            for step in self.steps:
                vectors = [_shuffle(vectors, step.operands(v), step.mask(v)) for v in range(step.outputs)]
            for vector, targets in zip(vectors, self.destinations(group), strict=True):
                for target in targets:
                    result[target] = list(vector)
        return result


def _shuffle(vectors: Sequence[Sequence[T]], operands: Sequence[int], mask: Sequence[int]) -> list[T]:
    joined = [label for operand in operands for label in vectors[operand]]
    return [joined[index] for index in mask]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


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


def _entrances(entering: Sequence[int], source: Sequence[int], destination: Sequence[int]) -> list[tuple[int, int]]:
    """``(tensor bit, lane bit)`` pairs, in the order of the steps: where each entering bit replaces what the source had.

    Lanes with duplicates come first, since a merge makes all later steps cheaper; within each kind a bit that ends in a
    lane bit which is free goes there at once.
    """
    staying = set(destination)
    duplicate = [lane for lane, bit in enumerate(source) if not bit]
    leaving = [lane for lane, bit in enumerate(source) if bit and bit not in staying]
    waiting = list(entering)
    pairs: list[tuple[int, int]] = []
    for free in (duplicate, leaving):
        direct = [bit for bit in waiting if destination.index(bit) in free]
        chosen = (direct + [bit for bit in waiting if bit not in direct])[: len(free)]
        remaining = [lane for lane in free if destination[lane] not in direct]
        for bit in chosen:
            pairs.append((bit, destination.index(bit) if bit in direct else remaining.pop(0)))
            waiting.remove(bit)
    return pairs


def _steps(entering: Sequence[int], last: _State, source_lanes: Sequence[int]) -> tuple[Shuffle, ...]:
    """The shuffles of one group from the source's lanes, with ``entering`` in its vector bits, to the state ``last``."""
    states = [_State(list(entering), list(source_lanes))]
    for bit, lane in _entrances(entering, source_lanes, last.lanes)[:-1]:
        states.append(states[-1].take_in(bit, lane))
    if entering or last.vectors or last.lanes != states[0].lanes:
        states.append(last)
    return tuple(before.step_to(after) for before, after in zip(states, states[1:], strict=False))


def _span(columns: Sequence[int]) -> tuple[int, ...]:
    """All sums of the columns, by the mask that selects them."""
    return tuple(f2.apply(columns, mask) for mask in range(1 << len(columns)))


def _check(source: LinearLayout, destination: LinearLayout) -> None:
    for role, layout in (("source", source), ("destination", destination)):
        if set(layout.in_dims) != {REGISTER, LANE}:
            raise ValueError(
                f"plan_conversion: the {role} layout has input dimensions [{', '.join(layout.in_dims)}], "
                "expected register and lane"
            )
        if reason := why_not_distributed(layout):
            raise ValueError(f"plan_conversion: the {role} layout is not distributed: {reason}")
    if source.outputs != destination.outputs:
        raise ValueError(f"plan_conversion: the layouts are of different tensors, {source} and {destination}")
    if source.in_bits(LANE) != destination.in_bits(LANE):
        raise ValueError(
            f"plan_conversion: the source has {source.in_size(LANE)} lanes, the destination {destination.in_size(LANE)}"
        )


@lru_cache(maxsize=4096)
def plan_conversion(source: LinearLayout, destination: LinearLayout) -> Plan:
    """The plan that takes a tensor from one layout to the other; see the module.

    Both are distributed, from ``register`` and ``lane`` to the same tensor, with equally many lanes, and may hold duplicates
    anywhere; `ValueError` says which of these fails. Works on index bits: its time does not depend on the tensor's size.
    """
    _check(source, destination)
    from_registers, from_lanes = source.columns(REGISTER), source.columns(LANE)
    to_registers, to_lanes = destination.columns(REGISTER), destination.columns(LANE)
    register_of = {bit: 1 << i for i, bit in enumerate(from_registers) if bit}
    entering = [bit for bit in to_lanes if bit in register_of]
    renamed = [(i, bit) for i, bit in enumerate(to_registers) if bit in register_of]
    leaving = [(i, bit) for i, bit in enumerate(to_registers) if bit and bit not in register_of]
    copies = _span([1 << i for i, bit in enumerate(to_registers) if not bit])
    steps = _steps(entering, _State([bit for _, bit in leaving], list(to_lanes)), from_lanes)
    if source.equal(destination):
        kind: Kind = "noop"
    else:
        kind = "exchange" if entering else "lanes" if steps else "registers"
    return Plan(
        kind=kind,
        lanes=source.in_size(LANE),
        source_registers=source.in_size(REGISTER),
        destination_registers=destination.in_size(REGISTER),
        source=RegisterMap(
            tuple(register_of[bit] for _, bit in renamed),
            tuple((offset,) for offset in _span([register_of[bit] for bit in entering])),
        ),
        destination=RegisterMap(
            tuple(1 << i for i, _ in renamed),
            tuple(tuple(offset | copy for copy in copies) for offset in _span([1 << i for i, _ in leaving])),
        ),
        steps=steps,
        group_bits=len(entering),
    )

"""The steps of a plan, as data: what each does to registers, what it costs, and its text.

A plan is a sequence of steps (`plan.ConversionPlan`). `check` executes steps on labels; a code generator spells them out; both
read the same fields and nothing else.

    step           does                                                             module
    Move           each thread rearranges its own registers                         here
    LaneExchange   rounds of ``shfl``: lanes of a warp exchange words               here
    Shuffles       levels of two-input shuffles of whole vectors (a CPU)            `vectors`
    Store, Load    shared memory, by vectors or by matrices: `VectorAccess`         `accesses`
    Barrier        threads of a warp or of the block wait for each other            here
    Parallel       the lower half of the registers takes some steps, the upper      here
                   half takes others

A *register file* is what each thread holds: 2^n registers of one element each, whatever its width. How it lies in words of 32
bits is said by `permutes.Words`. Elements narrower than a word are packed in the order of their registers: word w holds the
registers from ``w << word_bits(bits)`` on, the first of them in its lowest bits. Only between a store or load and the `Move`
beside it may they lie otherwise (`Move.made`, `Access.words`). A step reads the file that the thread holds. Loads fill another
file, and the first `Move` with ``loaded`` makes the thread's file of it.

Every register, lane or address in a step is linear: the XOR of one column for each index bit (of a register, lane, warp, round).

    swap of register bit 0 with lane bit 0       round 0          round 1
    offers register  round ^ lane                own register     the other one
    reads lane       round ^ lane                itself: free     its neighbour (shfl.bfly 1)
    into register    round ^ lane
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weft.layout.algebra import f2
from weft.layout.algebra.lazy import lazy
from weft.layout.planning.exchange_networks import Columns, ExchangeNetworks, Rounds, build_exchange, count
from weft.layout.planning.machine import Scope
from weft.layout.planning.networks import build, length
from weft.layout.planning.permutes import WORD_BITS, Network, Words

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Cost:
    """What a step or plan costs.

    Each thread: ``shuffles``, ``permutes`` (byte permutes, selects and packing), ``stores`` and ``loads`` (shared memory
    instructions), ``reduces`` (``redux.sync``). The whole block: ``wavefronts`` (shared memory transactions of all warps),
    ``barriers`` of either scope. In space: ``scratch`` bytes, the most in use at once.
    """

    shuffles: int = 0
    permutes: int = 0
    stores: int = 0
    loads: int = 0
    wavefronts: int = 0
    barriers: int = 0
    scratch: int = 0
    reduces: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.shuffles + other.shuffles,
            self.permutes + other.permutes,
            self.stores + other.stores,
            self.loads + other.loads,
            self.wavefronts + other.wavefronts,
            self.barriers + other.barriers,
            max(self.scratch, other.scratch),
            self.reduces + other.reduces,
        )

    @property
    def instructions(self) -> int:
        """Instructions of each thread."""
        return self.shuffles + self.permutes + self.stores + self.loads + self.reduces


def total(costs: Sequence[Cost]) -> Cost:
    """Costs one after the other."""
    return sum(costs, Cost())


class Step(ABC):
    """One thing that all threads do."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """What it costs."""

    @abstractmethod
    def __str__(self) -> str:
        """What it is, in a line: ``16 shfl.idx``, ``store 4 x 128 bits``."""


def table(columns: Sequence[int]) -> NDArray[Any]:
    """All XORs of the columns, by the mask that selects them."""
    import numpy as np

    sums = np.zeros(1, dtype=np.int64)
    for column in columns:
        sums = np.concatenate([sums, sums ^ column])
    return sums


@dataclass(frozen=True)
class Move(Step):
    """Each thread rearranges its own registers: new register r of lane l in warp w is the old one at the XOR of the
    ``registers`` columns by r, ``by_lane`` by l, and ``by_warp`` by ``w ^ warp_flip``.

    Emission. The old registers lie in words as ``taken`` says, the new ones as ``made``. ``network`` makes new words of old ones:
    its values are 32-bit registers, each permute is a ``prmt.b32``. Where a permute has ``thread_bits``, its selector is a
    value that the thread computes once from the bits of its lane and of ``warp ^ warp_flip``; where it `selects`, a ``selp`` by
    that bit does the same. A network without permutes only gives names: new word i is the old word ``network.outputs[i]``.
    """

    registers: f2.Matrix
    by_lane: f2.Matrix
    by_warp: f2.Matrix
    taken: Words
    made: Words
    loaded: bool = False
    """The old registers are those that loads have filled, else those that the thread holds."""
    warp_flip: int = 0

    @classmethod
    def packed(
        cls, registers: f2.Matrix, by_lane: f2.Matrix, by_warp: f2.Matrix, bits: int, *, loaded: bool = False
    ) -> Move:
        """A move from packed words of elements of ``bits`` to packed words."""
        return cls(registers, by_lane, by_warp, Words.packed(bits), Words.packed(bits), loaded)

    @lazy
    def network(self) -> Network:
        """The permutes that do it; thread bits are those of the lane, then those of ``warp ^ warp_flip``."""
        return build(self.registers, (*self.by_lane, *self.by_warp), self.taken, self.made)

    @property
    def permutes(self) -> int:
        """How many instructions it takes."""
        return length(self.registers, (*self.by_lane, *self.by_warp), self.taken, self.made)

    @property
    def cost(self) -> Cost:
        """Permutes only: none where whole words are renamed alike in all threads."""
        return Cost(permutes=self.permutes)

    @property
    def selects(self) -> bool:
        """Whether threads differ in what they do."""
        return any(self.by_lane) or any(self.by_warp)

    def __str__(self) -> str:
        if not self.permutes:
            return "registers selected" if self.selects else "registers renamed"
        plural = "" if self.permutes == 1 else "s"
        return f"registers {'selected' if self.selects else 'permuted'}, {self.permutes} permute{plural}"


@dataclass(frozen=True)
class Index:
    """A register or lane as the XOR of columns by the bits of the round, of a lane, of its warp, and of a slot in a word."""

    round: f2.Matrix
    lane: f2.Matrix
    warp: f2.Matrix
    slot: f2.Matrix = ()

    def at(self, number: int) -> NDArray[Any]:
        """Its value in a round, of shape (warps, lanes, slots)."""
        lanes = table(self.warp)[:, None, None] ^ table(self.lane)[None, :, None] ^ table(self.slot)[None, None, :]
        return lanes ^ f2.apply(self.round, number)


@dataclass(frozen=True)
class LaneExchange(Step):
    """Rounds of shuffles, 2^round_bits. In each, a lane offers a word of the registers ``offered`` (by its own lane), reads the
    word of lane ``reads`` (by its own lane), and puts it into the registers ``into``, unless ``refused`` is not 0: then the
    word is another lane's. Rounds in which every lane reads itself shuffle nothing.

    Emission, for a thread. First the permutes of ``networks.offer``, of its own words. Then for each round ``rounds.moved`` one
    ``shfl.sync.idx`` of the next of ``networks.offer.outputs`` (two for elements of 64 bits), from lane ``reads.at(round)[warp,
    lane, 0]``: the XOR of a value that the thread computes once and of the constant ``rounds.offsets[round]``; ``shfl.sync.bfly``
    by that constant where `form` says so. Then the permutes of ``networks.receive``, whose values go on with the words received.
    All lanes of all warps take part, so the member mask is full. ``offered``, ``into`` and ``refused`` need not be looked at.
    """

    round_bits: int
    offered: Index
    reads: Index
    into: Index
    refused: Index
    registers: int
    """Register bits of the result."""
    source_registers: int
    """Register bits before."""
    bits: int
    shuffle_bits: int

    @lazy
    def columns(self) -> tuple[Columns, Columns]:
        """What `exchange_networks` makes networks of: the words to offer from the thread's own, its own from those received."""
        slots, own = len(self.offered.slot), Words.packed(self.bits)
        travelling = Words(self.bits, slots)
        offer = Columns(
            (*self.offered.slot, *self.offered.round), (*self.offered.lane, *self.offered.warp), own, travelling
        )
        places = {unit: 1 << at for at, unit in enumerate((*self.into.slot, *self.into.round)) if unit}
        chosen = [
            sum(place for unit, place in places.items() if put & unit) ^ refused << slots
            for put, refused in zip(
                (*self.into.lane, *self.into.warp), (*self.refused.lane, *self.refused.warp), strict=True
            )
        ]
        if missing := [bit for bit in range(self.registers) if 1 << bit not in places]:
            raise RuntimeError(
                f"shfl.{self.form}: neither rounds nor slots tell bit {missing[0]} of the registers apart"
            )
        result = tuple(places[1 << bit] for bit in range(self.registers))
        return offer, Columns(result, tuple(chosen), travelling, own)

    @lazy
    def rounds(self) -> Rounds:
        """Whom each lane reads in each round, and in which rounds that is not itself."""
        offsets = tuple(f2.apply(self.reads.round, number) for number in range(1 << self.round_bits))
        moved = tuple(not self.stays or offset != 0 for offset in offsets)
        return Rounds((*self.reads.lane, *self.reads.warp), len(self.reads.lane), offsets, moved)

    @lazy
    def networks(self) -> ExchangeNetworks:
        """The permutes before and after the shuffles; thread bits are those of the lane, then those of the warp."""
        own = max(1, (self.bits << self.source_registers) // WORD_BITS)
        return build_exchange(*self.columns, self.rounds, own)

    @lazy
    def permutes(self) -> int:
        """How many instructions both networks take."""
        return count(*self.columns, self.stays, 1 << self.round_bits)

    @lazy
    def stays(self) -> int:
        """How many rounds stay within their lanes."""
        if self.reads.lane != f2.identity(len(self.reads.lane)) or any(self.reads.warp):
            return 0
        return 1 << (self.round_bits - f2.rank(self.reads.round))

    @property
    def form(self) -> str:
        """``bfly`` where each round's partner is the lane's number XOR a constant, else ``idx``."""
        return "bfly" if self.stays else "idx"

    @property
    def word(self) -> int:
        """Elements that travel together."""
        return 1 << len(self.offered.slot)

    @property
    def cost(self) -> Cost:
        """Shuffles: each round's word takes as many as cover its bits."""
        each = -(-self.word * self.bits // self.shuffle_bits)
        return Cost(shuffles=((1 << self.round_bits) - self.stays) * each, permutes=self.permutes)

    def __str__(self) -> str:
        shuffles = f"{self.cost.shuffles} shfl.{self.form}"
        packed = f" of {self.word} x {self.bits} bits" if self.word > 1 else ""
        return f"{shuffles}{packed}, {self.permutes} permutes" if self.permutes else shuffles + packed


@dataclass(frozen=True)
class Barrier(Step):
    """All threads of a warp (``bar.warp.sync``) or block (``bar.sync``) wait for each other; both count as one barrier."""

    scope: Scope

    @property
    def cost(self) -> Cost:
        return Cost(barriers=1)

    def __str__(self) -> str:
        return "barrier" if self.scope == "block" else "warp barrier"


@dataclass(frozen=True)
class Parallel(Step):
    """The lower half of the registers takes the steps ``stays``, the upper half takes ``moves``; both leave equally many. Halves
    are whole words: the lower half of the words, and the upper one.

    Neither half reads what the other holds, so a code generator may interleave them. Both use one shared memory, at the offsets
    that their accesses name.
    """

    stays: tuple[Step, ...]
    moves: tuple[Step, ...]

    @property
    def cost(self) -> Cost:
        """That of both halves."""
        return total([step.cost for step in (*self.stays, *self.moves)])

    def __str__(self) -> str:
        stays, moves = (steps_text(steps) for steps in (self.stays, self.moves))
        return f"half stays ({stays}), half moves ({moves})"


def steps_text(steps: Sequence[Step]) -> str:
    """The steps in words; those that are no instructions are named only where there is nothing else."""
    texts = [str(step) for step in steps if not (isinstance(step, Move) and not step.permutes)]
    return "; ".join(texts or map(str, steps[:1])) or "nothing"


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """All steps in order, those of halves after each other in the place of their `Parallel`."""
    for step in steps:
        if isinstance(step, Parallel):
            yield from walk(step.stays)
            yield from walk(step.moves)
        else:
            yield step

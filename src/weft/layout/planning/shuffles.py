"""Steps inside a warp: registers renamed or selected, and words exchanged between lanes by shuffles.

One would describe an exchange by its algebra and trust it. Here a step says literally, for every round of shuffles, which
registers a lane packs into the word it offers, which lane it reads, and where it puts what it gets: all of them XORs of
columns by the bits of the round, the lane, the warp and the element's slot in the word. Executing a step on labels follows
these, so a wrong lane index gives a wrong label.

    swap of register bit 0 with lane bit 0       round 0          round 1
    offers register  round ^ lane                own register     the other one
    reads lane       round ^ lane                itself: free     its neighbour (shfl.bfly 1)
    into register    round ^ lane

A word has `MachineModel.shuffle_bits`. Elements narrower than that are held packed, in the order of their registers, as wide
loads and matrix fragments deliver them; so renaming registers is free for whole words, and costs byte permutes within them.

Rule of the permutes (Cost.permutes): an instruction makes one word of two, by a byte permute whose selector may differ
from lane to lane, or by a select. A word made of (or chosen by lane from) one of 2^s others takes a tree of 2^s - 1; 2^s words
made of the same 2^s others share the trees' inner nodes, as in a butterfly network, s each. Elements below a byte cannot be
permuted by one instruction: shift, mask and merge make three. Indices of lanes and selectors are computed once and not counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from weft.layout.algebra import f2
from weft.layout.planning.steps import Cost, Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

WORD_BITS: Final = 32
"""What a register of the machine holds, and a permute makes."""


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


def word_bits(bits: int) -> int:
    """log2 of the elements in a word: how many of the lowest register bits lie within words."""
    return max(0, (WORD_BITS // bits).bit_length() - 1)


def words(bits: int) -> int:
    """Words of an element that is wider than one, else 1."""
    return max(1, bits // WORD_BITS)


def table(columns: Sequence[int]) -> NDArray[Any]:
    """All XORs of the columns, by the mask that selects them."""
    import numpy as np

    sums = np.zeros(1, dtype=np.int64)
    for column in columns:
        sums = np.concatenate([sums, sums ^ column])
    return sums


@dataclass(frozen=True)
class Registers(Step):
    """Each thread rearranges its own registers: new register r of lane l in warp w is the old one at the XOR of the
    ``registers`` columns by r, ``by_lane`` by l and ``by_warp`` by w."""

    registers: f2.Matrix
    by_lane: f2.Matrix
    by_warp: f2.Matrix
    bits: int

    @property
    def cost(self) -> Cost:
        """Permutes only: none where whole words are renamed alike in all threads."""
        return Cost(permutes=self._permutes)

    @cached_property
    def _permutes(self) -> int:
        low = word_bits(self.bits)
        mask = (1 << low) - 1
        inside, across = self.registers[:low], self.registers[low:]
        chosen = (*self.by_lane, *self.by_warp)
        sources = f2.Echelon([column >> low for column in (*inside, *chosen)])
        needed = sources.rank
        outputs = f2.rank(across)
        for column in across:
            sources.add(column >> low)
        shared = outputs - (sources.rank - needed)
        whole = inside == f2.identity(len(inside)) and not any(column & mask for column in (*across, *chosen))
        count = network(needed, shared, outputs) if needed else 0 if whole else 1 << outputs
        return count * words(self.bits) * (1 if whole else within_words(self.bits))

    @property
    def selects(self) -> bool:
        """Whether threads differ in what they do."""
        return any(self.by_lane) or any(self.by_warp)

    def apply(self, state: NDArray[Any]) -> NDArray[Any]:
        import numpy as np

        index: NDArray[Any] = (
            table(self.by_warp)[:, None, None]
            ^ table(self.by_lane)[None, :, None]
            ^ table(self.registers)[None, None, :]
        )
        return np.take_along_axis(state, index, axis=2)

    def __str__(self) -> str:
        what = "registers selected" if self.selects else "registers renamed"
        permutes = self.cost.permutes
        return f"{what}, {permutes} permute{'' if permutes == 1 else 's'}" if permutes else what


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
class Exchange(Step):
    """Rounds of shuffles, 2^round_bits. In each, a lane offers a word of the registers ``offered`` (by its own lane), reads the
    word of lane ``reads`` (by its own lane), and puts it into the registers ``into``, unless ``refused`` is not 0: then the
    word is another lane's. Rounds in which every lane reads itself shuffle nothing."""

    round_bits: int
    offered: Index
    reads: Index
    into: Index
    refused: Index
    registers: int
    """Register bits of the result."""
    bits: int
    shuffle_bits: int
    permutes: int

    @cached_property
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

    def apply(self, state: NDArray[Any]) -> NDArray[Any]:
        """`RuntimeError` where a register gets no element or two: then the step itself is wrong."""
        import numpy as np

        warps, lanes, _ = state.shape
        result = np.zeros((warps, lanes, 1 << self.registers), dtype=state.dtype)
        times = np.zeros(result.shape, dtype=np.int64)
        for number in range(1 << self.round_bits):
            word = np.take_along_axis(state, self.offered.at(number), axis=2)
            got = np.take_along_axis(word, self.reads.at(number), axis=1)
            takes = np.nonzero(self.refused.at(number)[:, :, 0] == 0)
            place = (takes[0][:, None], takes[1][:, None], self.into.at(number)[takes])
            result[place] = got[takes]
            times[place] += 1
        if (times != 1).any():
            raise RuntimeError(f"{self}: a register receives {times.min()} to {times.max()} elements, expected 1")
        return result

    def __str__(self) -> str:
        shuffles = f"{self.cost.shuffles} shfl.{self.form}"
        packed = f" of {self.word} x {self.bits} bits" if self.word > 1 else ""
        return f"{shuffles}{packed}, {self.permutes} permutes" if self.permutes else shuffles + packed

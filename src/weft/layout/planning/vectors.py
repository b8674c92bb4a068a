"""The step of a machine whose lane primitive is ``shuffle``: levels of two-input shuffles, alike in many groups of vectors.

A *group* reads a few source vectors, passes them through the levels, and writes each result to its destination registers.
Masks and operands are the same in all groups, so a code generator may loop over groups.

    new[v][l] = old[..][..] at the XOR of the places of v's and l's bits: any lane of one or two vectors
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.layout.algebra import f2
from weft.layout.algebra.lazy import lazy
from weft.layout.planning.steps import Cost, Step


@dataclass(frozen=True)
class Place:
    """Where an index bit of a step's result points in its input: a mask of vector bits and one of lane bits."""

    vector: int
    lane: int


@dataclass(frozen=True)
class Shuffle:
    """One level of a group: see the module.

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

    @lazy
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
class Shuffles(Step):
    """For each of ``groups`` groups: take the ``source`` registers (one each), run ``levels``, put each vector into its
    ``destination`` registers."""

    lanes: int
    source_registers: int
    destination_registers: int
    source: RegisterMap
    destination: RegisterMap
    levels: tuple[Shuffle, ...]

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
    def cost(self) -> Cost:
        """Shuffles, over all groups. Renaming registers costs nothing."""
        return Cost(shuffles=self.groups * sum(level.outputs for level in self.levels))

    def __str__(self) -> str:
        if not self.levels:
            return "rename registers"
        count = self.cost.shuffles
        depth = len(self.levels)
        plural = "" if depth == 1 else "s"
        return f"{count} shuffle{'' if count == 1 else 's'} in {depth} level{plural}"

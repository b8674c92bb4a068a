"""Gathers through shared memory: the source is stored, then each result is loaded from an address that depends on its index.

Scratch is a memory layout of the source, chosen among a few orders of its bits, lowest offset first:

    row-major                            the address of an element is computed with one multiplication
    lanes, axis, rest                    the index's lanes off the axis lie in different banks
    registers, lanes, axis, rest         the source's registers make vectors for the stores

Expected wavefronts. A load's address is ``base(lane) ^ index``, so its wavefronts depend on data. The plan counts their mean for
independent, uniformly random indices. With n lanes that draw from B banks, and no two of the same word, the largest of B
occupancy numbers is at most m with probability

    P(max <= m) = n! / B^n [x^n] (1 + x + .. + x^m / m!)^B        (Flajolet and Sedgewick, Analytic Combinatorics, II.3)

Lanes that want the same word share it; with R rows in each bank and all lanes of one base the bracket becomes the sum over
d <= m of C(R, d) (e^x - 1)^d, and B^n becomes (B R)^n. Lanes of different bases mix both, for which there is no short formula.
So `expected_wavefronts` draws `SAMPLES` times with a fixed seed; tests hold it against both formulas and against enumeration.

    32 lanes on rows of 1,024 float32: 3.53 wavefronts; on rows of 32: 1; on 32 rows in 32 banks: 1

Rounds. A source larger than scratch is cut by its top offset bits. Bits that source and index both have in registers cost
nothing but barriers. Others leave lanes out of a round, and a bit of the axis makes each round try every result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from weft.layout.algebra import f2
from weft.layout.algebra.lazy import lazy
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP
from weft.layout.memory.banks import BLOCK, OFFSET
from weft.layout.planning.access import AccessPlan, plan_access
from weft.layout.planning.machine import MachineModel, Scope
from weft.layout.planning.scratch_memory import Memory
from weft.layout.planning.steps import Cost, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLES: Final = 1024
"""Draws of `expected_wavefronts`: the mean of wavefronts of 32 lanes is within 0.1 of the expectation."""


@dataclass(frozen=True)
class GatherMemory:
    """A gather through memory: ``store`` puts the source into scratch, in rounds of ``2**tile`` elements; after a barrier each
    thread loads the results whose elements are there."""

    memory: LinearLayout
    """(offset, block) -> source element."""
    store: AccessPlan
    base: tuple[f2.Matrix, f2.Matrix, f2.Matrix, f2.Matrix]
    """The offset columns of a result's register, lane, warp and block, without the axis."""
    along: f2.Matrix
    """The offset columns of the index's bits."""
    copies: int
    """The lane bits, as a mask, that are copies of an index."""
    tile: int
    scope: Scope
    """Who waits at the barriers: the warp where each warp reads what it wrote."""
    bits: int
    """Bits that an element takes in memory: 8 or more."""
    machine: MachineModel

    @property
    def rounds(self) -> int:
        """How often scratch is filled."""
        return 1 << (self.memory.in_bits(OFFSET) - self.tile)

    @property
    def mean_wavefronts(self) -> float:
        """Wavefronts of a warp for each result, all rounds together, in the mean over random indices."""
        return expected_wavefronts(self.base[1], self.along, self.bits, self.machine, self.copies, self.tile)

    @lazy
    def cost(self) -> Cost:
        """Loads and stores of all rounds; the loads' wavefronts are the mean for random indices, rounded up."""
        register, lane, warp, _ = self.base
        high = [column >> self.tile for column in lane]
        tries = 1 << f2.rank([*high, *(column >> self.tile for column in self.along)])
        results = 1 << len(register)
        # The index's bits are put where runs of consecutive offset bits begin: one multiply-add for a run, two more for others.
        runs = sum(
            1 for low, column in zip((0, *self.along), self.along, strict=False) if column != low << 1 or not low
        )
        loads = Cost(
            loads=results * tries,
            permutes=results * (2 * max(1, runs) - 1 + (tries > 1) * tries),
            wavefronts=ceil(self.mean_wavefronts * (results << len(warp))),
        )
        stored = self.store.cost
        again = 1 << f2.rank([column >> self.tile for column in self.store.columns.lane])
        stores = Cost(stored.shuffles, stored.permutes, stored.stores * again, 0, stored.wavefronts)
        scratch = (1 << self.tile) * self.bits // 8
        return stores + loads + Cost(barriers=2 * self.rounds - 1, scratch=scratch)


@lru_cache(maxsize=4096)
def expected_wavefronts(
    lanes: f2.Matrix, along: f2.Matrix, bits: int, machine: MachineModel, copies: int = 0, tile: int = 64
) -> float:
    """The mean wavefronts of one load by all lanes, lane l from element ``lanes l ^ along a``, with a random a for each lane; see
    the module. Lanes that differ in the mask ``copies`` have the same a. Elements beyond ``2**tile`` are loaded in other
    rounds, whose wavefronts are added."""
    import numpy as np

    unit = max(machine.bank_bytes, bits // 8)
    banks = machine.wavefront_bytes // unit
    count = 1 << len(lanes)
    draws = np.random.default_rng(0).integers(0, 1 << len(along), (SAMPLES, count))
    places = table(lanes) ^ table(along)[draws[:, np.arange(count) & ~copies]]
    words = places * (bits // 8) // unit
    phases = max(1, count // banks)
    # A request is what is served together: the same draw, round and phase.
    phase = np.arange(count) // banks if phases > 1 else np.zeros(count, dtype=np.int64)
    request = ((places >> tile) * phases + phase) * SAMPLES + np.arange(SAMPLES)[:, None]
    reach = int(words.max()) + 1
    distinct = np.unique(request * reach + words)
    served, number = np.unique(distinct // reach * banks + distinct % reach % banks, return_counts=True)
    first = np.flatnonzero(np.diff(served // banks, prepend=-1))
    return float(np.maximum.reduceat(number, first).sum()) / SAMPLES


def memory_ways(
    source: LinearLayout, index: LinearLayout, axis: int, bits: int, machine: MachineModel, local: bool
) -> list[GatherMemory]:
    """The ways through memory, one for each order of scratch; none on a machine without. ``local``: each warp holds what its
    threads may ask for."""
    if not machine.scratch:
        return []
    bits = max(8, bits)
    mask = (source.shape[axis] - 1) << sum(size for _, size in source.outputs[axis + 1 :])
    held = sorted(c for dim in (REGISTER, LANE, WARP) for c in _columns(source, dim) if c)
    asked = {dim: _off_axis(source, index, axis, _columns(index, dim)) for dim in (REGISTER, LANE, WARP, BLOCK)}
    # What source and index both have in registers divides among rounds at no cost; the axis is the last to be cut.
    registers = (_columns(source, REGISTER), asked[REGISTER])
    by_cost = sorted(
        held, key=lambda unit: (bool(unit & mask), unit not in registers[1], unit not in registers[0], -unit)
    )
    cuts = 0
    while bits << (len(held) - cuts) > 8 * machine.scratch:
        cuts += 1
    cut = by_cost[:cuts]
    inner = [unit for unit in held if unit not in cut]
    axis_units = [unit for unit in inner if unit & mask]
    lanes = [unit for unit in asked[LANE] if unit in inner]
    widest = (8 * machine.widest // bits).bit_length() - 1
    vector = [unit for unit in registers[0] if unit in inner and unit not in lanes][:widest]
    starts = [inner, [*lanes, *axis_units], *([*vector[: k + 1], *lanes, *axis_units] for k in range(len(vector)))]
    ways: dict[tuple[int, ...], GatherMemory] = {}
    blocks = {BLOCK: _columns(source, BLOCK)} if BLOCK in source.in_dims else {}
    for start in starts:
        order = tuple(dict.fromkeys((*start, *inner)))
        if order in ways:
            continue
        memory = LinearLayout.from_columns({OFFSET: (*order, *cut), **blocks}, source.outputs)
        echelon = f2.Echelon((*order, *cut))

        def offsets(columns: Sequence[int], echelon: f2.Echelon = echelon) -> f2.Matrix:
            return tuple(echelon.reduce(column)[1] for column in columns)

        # Block columns lead to the block's own part: where they differ, the rest is in the block.
        home = [a ^ b for a, b in zip(asked[BLOCK], blocks.get(BLOCK, ()), strict=True)]
        ways[order] = GatherMemory(
            memory,
            # A matrix access takes all lanes, so only vectors can leave some to another round.
            plan_access(source, memory, bits, machine, stores=True, way="vector" if cut else None),
            (offsets(asked[REGISTER]), offsets(asked[LANE]), offsets(asked[WARP]), offsets(home)),
            offsets([unit for unit in held if unit & mask]),
            sum(1 << bit for bit, column in enumerate(_columns(index, LANE)) if not column),
            len(order),
            "warp" if local and all(_columns(source, WARP)) else "block",
            bits,
            machine,
        )
    return list(ways.values())


def _columns(layout: LinearLayout, dim: str) -> f2.Matrix:
    return layout.columns(dim) if dim in layout.in_dims else ()


def _off_axis(source: LinearLayout, index: LinearLayout, axis: int, columns: f2.Matrix) -> f2.Matrix:
    """Columns of the index without their part along the axis, flattened as the source's are."""
    names = [name for name in index.out_dims if name != index.out_dims[axis]]
    part = LinearLayout.from_columns({OFFSET: columns}, index.outputs).sublayout((OFFSET,), names)
    return part.repack(source.outputs)[OFFSET]


def through_memory(plan: GatherMemory, labels: NDArray[Any], indices: NDArray[Any], block: int) -> NDArray[Any]:
    """The results, with every store and load really made in a scratch of ``2**tile`` elements that notices missing barriers."""
    import numpy as np

    register, lane, warp, home = plan.base
    places = (
        table(warp)[:, None, None]
        ^ table(lane)[None, :, None]
        ^ table(register)
        ^ f2.apply(home, block)
        ^ table(plan.along)[indices]
    )
    size = 1 << plan.tile
    scratch = Memory(size, labels)
    out = np.empty_like(labels, shape=indices.shape)
    taken = np.zeros(indices.shape, dtype=bool)
    for number in range(plan.rounds):
        if number:
            scratch.barrier(plan.scope)
        for w, lanes, registers, offsets in plan.store.moves(block):
            own = offsets // size == number
            if own.any():
                scratch.write(
                    offsets[own] % size, np.full(np.count_nonzero(own), w), labels[w, lanes[own], registers[own]]
                )
        scratch.barrier(plan.scope)
        for w in range(len(places)):
            own = places[w] // size == number
            if own.any():
                out[w][own] = scratch.read(places[w][own] % size, np.full(np.count_nonzero(own), w))
                taken[w][own] = True
    if not taken.all():
        raise ValueError("shared memory: a result was loaded in no round")
    return out

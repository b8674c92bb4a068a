"""The best shared-memory layout for any set of readers and writers (paper 5.4, 9.2).

One would usually know a few swizzles and pick the one that conflicts least. Here the layout is computed from the accesses,
distributed layouts (register, lane, warp) -> tensor, and is proved best or comes with its distance from the bound.

Definition. A memory layout is a basis of the tensor's index space, its columns the offset bits:

    [ vector bits | bank bits | index bits ]      the lowest bits move inside a vector, the next choose the banks

Two facts decide the wavefronts of access i (`weft.layout.banks`):
1. Its vectors. It can move 2^v elements at once iff the first v columns lie in the span of its registers.
2. Its conflicts. With Q_i the span of the lanes of one phase and of the first v columns (of the first word, if that is more),
   a phase takes ``2**dim(Idx n Q_i)`` wavefronts, Idx the span of the index bits.

Vectors. The first columns are nested, so widths are too: what all accesses share comes first, then what all but one share,
and so on. The paper stops after the first; going on lets a transpose of bytes store words where it has to load bytes. Each
order of leaving is tried, and no layout can have wider vectors than one of them.

Conflicts. dim Q_i is at most the bits that fill the banks, as phases shrink when vectors grow. So for two accesses lemma 9.5
gives an Idx that meets neither: no conflicts, always. For more there may be none. Then linear maps to the banks are searched
for one that is one-to-one on each Q_i (Idx is its kernel), from several starts, in a fixed order: what is found may be
suboptimal, and `Swizzle.gap` says by how much at most.

    64x64 float16, A stores 8 elements of a row per thread, B loads 8 of a column: no register in common, so B's vectors are
    single elements; A's are 128 bits. A takes 64 wavefronts and B 128, none of them for conflicts, with memory

    {offset: [(0,1),(0,2),(0,4), (0,8),(0,16),(0,32), (1,0),(2,0),(4,0),(8,4),(16,8),(32,16)]} -> [dim0: 64, dim1: 64]
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weft.layout import f2, subspaces
from weft.layout.banks import BLOCK, OFFSET, SHARED, BankConflicts, Banks, bank_conflicts
from weft.layout.families import LANE, REGISTER, WARP
from weft.layout.linear_layout import LinearLayout

_ORDERS = 120
"""How many orders of leaving are tried: all of them for up to five accesses."""
_RESTARTS = 12
"""How many starts the search for three or more accesses makes."""


@dataclass(frozen=True)
class Swizzle:
    """A memory layout for some accesses, with what each costs."""

    memory: LinearLayout
    """``offset`` -> tensor, one-to-one; with ``block`` where the accesses have it."""
    accesses: tuple[BankConflicts, ...]
    """Vector width and wavefronts of each access, in the order they were given."""
    least: int
    """No memory layout needs fewer wavefronts for all accesses together (each moving whole aligned vectors)."""

    @property
    def vector_bits(self) -> tuple[int, ...]:
        """Bits per lane and instruction of each access."""
        return tuple(access.vector_bits for access in self.accesses)

    @property
    def wavefronts(self) -> int:
        """Wavefronts of all accesses together."""
        return sum(access.wavefronts for access in self.accesses)

    @property
    def gap(self) -> int:
        """How many wavefronts a better layout could save at most; 0: this is the best."""
        return self.wavefronts - self.least

    @property
    def reason(self) -> str:
        """Why nothing is better, or by how much it could be, in words."""
        costs = ", ".join(f"{a.wavefronts} of {a.vector_bits} bits" for a in self.accesses)
        if not self.gap:
            return (
                f"optimal: the accesses take {costs}; without conflicts, at the widest vectors that any layout gives them, "
                f"they take {self.least} together"
            )
        return f"the accesses take {costs}, {self.wavefronts} together; no layout takes fewer than {self.least}"


@dataclass(frozen=True)
class _Access:
    registers: f2.Matrix
    lanes: f2.Matrix
    warp_bits: int

    @classmethod
    def of(cls, layout: LinearLayout) -> _Access:
        dims = {dim: layout.columns(dim) if dim in layout.in_dims else () for dim in (REGISTER, LANE, WARP)}
        return cls(subspaces.basis(dims[REGISTER]), dims[LANE], len(dims[WARP]))

    def bound(self, width: int, bits: int, banks: Banks) -> tuple[int, int]:
        """Wavefronts and instructions with vectors of 2^width elements and no conflicts."""
        requests = 1 << (len(self.registers) - width + self.warp_bits)
        phases = max(1, (1 << len(self.lanes)) // banks.phase_lanes(bits << width))
        return requests * phases, requests

    def banked(self, first: Sequence[int], width: int, bits: int, banks: Banks) -> f2.Matrix:
        """Q: the lanes of a phase and the columns inside a vector or word, of the memory's ``first`` columns."""
        phase = self.lanes[: banks.phase_lanes(bits << width).bit_length() - 1]
        inside = max(width, (banks.bits // bits).bit_length() - 1)
        return subspaces.basis((*first[:inside], *phase))


@dataclass(frozen=True)
class _Vectors:
    """The first columns of a memory layout and log2 of the vector size each access gets from them."""

    columns: f2.Matrix
    widths: tuple[int, ...]


def _nested(accesses: Sequence[_Access], order: Sequence[int], most: int) -> _Vectors:
    """What all accesses' registers share, then what all but ``order[0]``'s share, and so on, up to ``most`` columns."""
    widths = [0] * len(accesses)
    columns: f2.Matrix = ()
    for leaving, access in enumerate(order):
        staying = order[leaving:]
        shared = accesses[staying[0]].registers
        for other in staying[1:]:
            shared = subspaces.intersection(shared, accesses[other].registers)
        # Register columns in the order of the first access: its vectors then hold its registers in their order.
        registers = (c for i in sorted(staying) for c in accesses[i].registers if subspaces.contains(shared, (c,)))
        columns += subspaces.extend(columns, (*registers, *shared))
        columns = columns[:most]
        widths[access] = len(columns)
    return _Vectors(columns, tuple(widths))


def _index_bits(spaces: Sequence[f2.Matrix], weights: Sequence[int], whole: f2.Matrix, count: int) -> f2.Matrix:
    """``count`` independent vectors of ``whole`` whose span meets the spaces as little as can be found; not at all the first."""
    numbers = range(len(spaces))
    largest = [i for i in numbers if not any(_covers(spaces, j, i) for j in numbers if j != i)]
    if len(largest) <= 2:
        return subspaces.common_complement(spaces[largest[0]], spaces[largest[-1]], whole)[:count]
    largest.sort(key=lambda i: i != 0 and not _covers(spaces, i, 0))
    return _search([spaces[i] for i in largest], [weights[i] for i in largest], whole, count)


def _covers(spaces: Sequence[f2.Matrix], large: int, small: int) -> bool:
    """Whether space ``large`` makes space ``small`` superfluous: it contains it, and is the first such of its size."""
    if not subspaces.contains(spaces[large], spaces[small]):
        return False
    return len(spaces[large]) > len(spaces[small]) or large < small


def _search(spaces: Sequence[f2.Matrix], weights: Sequence[int], whole: f2.Matrix, count: int) -> f2.Matrix:
    """The kernel of a map to the banks that is one-to-one on ``spaces[0]`` and loses little on the others.

    Up to a change of basis of the banks the map is the identity on ``spaces[0]``. The images of the other basis vectors are
    improved one at a time until none helps, from several random starts.
    """
    rows = len(whole) - count
    coordinates = (*spaces[0], *subspaces.extend(spaces[0], whole))
    echelon = f2.Echelon(coordinates)
    members = [[echelon.reduce(vector)[1] for vector in space] for space in spaces]

    def cost(images: Sequence[int]) -> int:
        ranks = (f2.rank([f2.apply(images, vector) for vector in space]) for space in members)
        return sum(w << (len(space) - rank) for w, space, rank in zip(weights, members, ranks, strict=True))

    fixed = f2.identity(len(spaces[0]))
    generator = random.Random(0)
    best, best_images = -1, list(fixed)
    for _ in range(_RESTARTS):
        images = [*fixed, *(generator.randrange(1 << rows) for _ in coordinates[len(fixed) :])]
        current = cost(images)
        improved = True
        while improved and current > sum(weights):
            improved = False
            for free in range(len(fixed), len(images)):
                for value in range(1 << rows):
                    trial = [*images[:free], value, *images[free + 1 :]]
                    if (changed := cost(trial)) < current:
                        images, current, improved = trial, changed, True
        if best < 0 or current < best:
            best, best_images = current, images
        if best == sum(weights):
            break
    return tuple(f2.apply(coordinates, relation) for relation in f2.kernel(best_images))[:count]


def _memory(accesses: Sequence[_Access], chosen: _Vectors, whole: f2.Matrix, bits: int, banks: Banks) -> f2.Matrix:
    """The offset columns for these vectors."""
    word = (banks.bits // bits).bit_length() - 1
    first = chosen.columns
    if len(first) < word:
        # Columns inside a word that are no vector: lanes that all accesses have share words, any other bits do as well.
        shared = accesses[0].lanes
        for access in accesses[1:]:
            shared = subspaces.intersection(shared, access.lanes)
        first += subspaces.extend(first, (*shared, *whole))[: word - len(first)]
    filling = (banks.count * banks.bits // bits).bit_length() - 1
    count = max(0, len(whole) - filling)
    # The widest first: its space holds all of the first columns, which the index bits have to avoid whatever they cost.
    widest = sorted(range(len(accesses)), key=lambda i: -chosen.widths[i])
    spaces = [accesses[i].banked(first, chosen.widths[i], bits, banks) for i in widest]
    weights = [accesses[i].bound(chosen.widths[i], bits, banks)[0] for i in widest]
    index = _index_bits(spaces, weights, whole, count) if count else ()
    return (*first, *subspaces.extend((*first, *index), whole), *index)


def _orders(count: int) -> Iterator[tuple[int, ...]]:
    return itertools.islice(itertools.permutations(range(count)), _ORDERS)


def _check(accesses: Sequence[LinearLayout]) -> None:
    if not accesses:
        raise ValueError("optimal_swizzle: got no accesses, expected at least one layout")
    for number, layout in enumerate(accesses):
        unknown = [dim for dim in layout.in_dims if dim not in (REGISTER, LANE, WARP, BLOCK)]
        if unknown:
            raise ValueError(
                f"optimal_swizzle: access {number} has input dimension {unknown[0]}, expected register, lane, warp and block"
            )
        if layout.outputs != accesses[0].outputs:
            raise ValueError(
                f"optimal_swizzle: access {number} is of another tensor than access 0, {layout} and {accesses[0]}"
            )
        if _block(layout) != _block(accesses[0]):
            raise ValueError(
                f"optimal_swizzle: access {number} is split among blocks in another way than access 0, "
                f"{layout} and {accesses[0]}"
            )


def _block(layout: LinearLayout) -> f2.Matrix:
    return layout.columns(BLOCK) if BLOCK in layout.in_dims else ()


def optimal_swizzle(*accesses: LinearLayout, bits: int, banks: Banks = SHARED, widest: int | None = None) -> Swizzle:
    """The memory layout with the fewest wavefronts for these accesses, loads or stores, of elements of ``bits``.

    Each access is a layout from ``register``, ``lane``, ``warp`` (any may be absent; ``block`` alike in all) to the same tensor;
    columns may be any, not only unit vectors. Memory holds the elements that some access reaches, each once: all of the tensor,
    or the part that a round of a conversion moves. ``widest`` lowers the widest access (default 128 bits). An ldmatrix is an
    access too: 16 bytes of a row in registers, the rows in lanes.

    For two accesses the result never conflicts and is optimal; for more see `Swizzle.gap`. With several of equally many
    wavefronts, one with the fewest instructions.
    """
    _check(accesses)
    banks.check("optimal_swizzle", bits)
    limit = banks.widest if widest is None else widest
    if limit < bits or limit > banks.widest or limit & (limit - 1):
        raise ValueError(f"optimal_swizzle: widest is {limit}, expected a power of two from {bits} to {banks.widest}")
    parts = [_Access.of(layout) for layout in accesses]
    reached = [c for layout in accesses for dim in layout.in_dims if dim != BLOCK for c in layout.columns(dim)]
    # Unit vectors first where they are in the span: they make the plainest columns.
    inside = f2.Echelon(reached)
    units = [unit for unit in f2.identity(accesses[0].out_bits) if not inside.reduce(unit)[0]]
    whole = subspaces.basis((*units, *reached))
    most = (limit // bits).bit_length() - 1
    choices = {_nested(parts, order, most) for order in _orders(len(parts))}

    def bound(choice: _Vectors) -> tuple[int, int]:
        costs = [part.bound(width, bits, banks) for part, width in zip(parts, choice.widths, strict=True)]
        return sum(wavefronts for wavefronts, _ in costs), sum(requests for _, requests in costs)

    ranked = sorted(choices, key=lambda choice: (*bound(choice), choice.columns))
    least = bound(ranked[0])[0]
    best: Swizzle | None = None
    for choice in ranked:
        if best is not None and best.wavefronts <= bound(choice)[0]:
            break
        columns = {OFFSET: _memory(parts, choice, whole, bits, banks)}
        if BLOCK in accesses[0].in_dims:
            columns[BLOCK] = _block(accesses[0])
        memory = LinearLayout.from_columns(columns, accesses[0].outputs)
        costs = tuple(
            bank_conflicts(layout, memory, bits, 1 << width, banks)
            for layout, width in zip(accesses, choice.widths, strict=True)
        )
        swizzle = Swizzle(memory, costs, least)
        if best is None or swizzle.wavefronts < best.wavefronts:
            best = swizzle
    if best is None:
        raise ValueError("optimal_swizzle: no order of accesses was tried")
    return best

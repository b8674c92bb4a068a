"""The best shared-memory layout for any set of readers and writers (paper 5.4, 9.2).

The layout is computed from the accesses, which are distributed layouts (register, lane, warp) -> tensor; it is not chosen
from a list of known swizzles. It is proved optimal, or returned with its distance from the bound.

Definition. A memory layout is a basis of the tensor's index space, its columns the offset bits:

    [ vector bits | bank bits | index bits ]      the lowest bits move inside a vector, the next choose the banks

Two facts decide the wavefronts of access i (`weft.layout.memory.banks`):
1. Its vectors. It can move 2^v elements at once iff the first v columns lie in the span of its registers, and its lanes and warps
   in that of the other columns.
2. Its conflicts. With Q_i the span of the lanes of one phase and of the first v columns (of the first word, if that is more),
   a phase takes ``2**dim(Idx n Q_i)`` wavefronts, Idx the span of the index bits.

Vectors. The first columns are nested, so widths are too: what all accesses share comes first, then what all but one share, and so
on. The paper stops after the first; going on lets a transpose of bytes store words where it has to load bytes. Each order of
leaving is tried, and each end; no layout can have wider vectors than one of them.

Conflicts. dim Q_i is at most the bits that fill the banks, as phases shrink when vectors grow. So if all have the same
vectors, lemma 9.5 gives for two accesses an Idx that meets neither. Wider vectors of one access, up to a word, change nothing:
banks do not see inside words. Beyond, they bind which banks the other can use, unless its lanes run along them or along
registers of the first, whose vectors then are permuted, each in its own way. That gets fewer instructions for the same
wavefronts or is not taken. So two accesses of distributed layouts never conflict, at the least wavefronts of any layout, if the
lanes of a warp fill the banks with one word each (32 lanes); a smaller warp needs wide vectors for that. For such, and for more
accesses, `Swizzle.gap` says how far from the least the result may be.

    64x64 float16, A stores 8 elements of a row per thread, B loads 8 of a column: no register in common, so B's vectors are
    single elements; A's are 128 bits, of registers along which B's lanes run. A takes 64 wavefronts and B 128, none of them for
    conflicts, with memory

    {offset: [(0,1),(0,2),(16,0),(0,8),(0,16),(0,32),(0,4),(1,0),(2,0),(4,0),(8,8),(32,16)]} -> [dim0: 64, dim1: 64]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from weft.layout.algebra import f2, subspaces
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import LANE, REGISTER, WARP
from weft.layout.memory.banks import BLOCK, OFFSET, SHARED, BankConflicts, Banks, bank_conflicts
from weft.layout.memory.index_bits import index_bits

_ORDERS = 120
"""How many orders of leaving are tried: all of them for up to five accesses."""


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
    def requests(self) -> int:
        """Instructions of all accesses together."""
        return sum(access.requests for access in self.accesses)

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
    warps: f2.Matrix

    @classmethod
    def of(cls, layout: LinearLayout) -> _Access:
        columns = [layout.columns(dim) if dim in layout.in_dims else () for dim in (REGISTER, LANE, WARP)]
        return cls(subspaces.basis(columns[0]), columns[1], columns[2])

    def bound(self, width: int, bits: int, banks: Banks) -> tuple[int, int]:
        """Wavefronts and instructions with vectors of 2^width elements and no conflicts."""
        requests = 1 << (len(self.registers) - width + len(self.warps))
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

    def until(self, end: int) -> _Vectors:
        """Only the first ``end`` columns."""
        return _Vectors(self.columns[:end], tuple(min(width, end) for width in self.widths))


class _Sharing:
    """What the registers of several accesses have in common, found once for each set of accesses."""

    def __init__(self, accesses: Sequence[_Access]):
        self._accesses = accesses
        self._lanes = [f2.Echelon(access.lanes) for access in accesses]
        self._found: dict[tuple[int, ...], f2.Matrix] = {}

    def registers(self, group: tuple[int, ...]) -> f2.Matrix:
        """A basis of the intersection, register columns first, those of the first access before others."""
        if group not in self._found:
            shared = self._accesses[group[0]].registers
            for other in group[1:]:
                shared = subspaces.intersection(self._accesses[other].registers, shared)
            inside = f2.Echelon(shared)
            own = (c for i in group for c in self._accesses[i].registers if not inside.reduce(c)[0])
            self._found[group] = subspaces.basis((*own, *shared))
        return self._found[group]

    def nested(self, order: Sequence[int], most: int) -> _Vectors:
        """What all accesses' registers share, then what all but ``order[0]``'s share, and so on, up to ``most`` columns."""
        widths = [0] * len(order)
        columns: f2.Matrix = ()
        for leaving, access in enumerate(order):
            if len(columns) < most:
                # First the columns along which the lanes of those that left run: these leave them all banks.
                run = [self._lanes[gone] for gone in order[:leaving]]
                further = list(self.registers(tuple(sorted(order[leaving:]))))
                further.sort(key=lambda c: -sum(not lanes.reduce(c)[0] for lanes in run))
                columns = (*columns, *subspaces.extend(columns, further))[:most]
            widths[access] = len(columns)
        return _Vectors(columns, tuple(widths))


def _choices(accesses: Sequence[_Access], most: int) -> set[_Vectors]:
    """All vectors to try."""
    sharing = _Sharing(accesses)
    orders = itertools.islice(itertools.permutations(range(len(accesses))), _ORDERS)
    nested = {sharing.nested(order, most) for order in orders}
    return {vectors.until(end) for vectors in nested for end in range(len(vectors.columns) + 1)}


def _others(
    accesses: Sequence[_Access], widths: Sequence[int], first: f2.Matrix, whole: f2.Matrix
) -> list[tuple[int, int]] | None:
    """A basis of a space for all columns but the ``first``, a complement of them that has the lanes and warps of each access,
    but for columns of ``first`` above its vectors; None where there is none (never for distributed layouts).

    Beside each vector is the first place p that is free: any of ``first[p:]`` may be added to it.
    """
    echelon = f2.Echelon()
    found: list[tuple[int, int]] = []
    missing = set(first)
    for place in reversed(range(len(first))):
        held = [c for a, width in zip(accesses, widths, strict=True) if width > place for c in (*a.lanes, *a.warps)]
        if subspaces.contains((*first[:place], *first[place + 1 :], *held), (first[place],)):
            return None
        missing -= {c for c in first[place + 1 :] if subspaces.contains(held, (c,)) and echelon.add(c)}
        found += [(c, place + 1) for c in held if echelon.add(c)]
    if not all(echelon.add(c) for c in first if c in missing):
        return None
    return found + [(c, 0) for c in whole if echelon.add(c)]


def _twisted(first: f2.Matrix, others: Sequence[tuple[int, int]], needs: Sequence[tuple[f2.Matrix, int]]) -> f2.Matrix:
    """The ``others`` with some of the first columns added where they may, so that along each space in ``needs`` the first
    columns' coordinates have at least the rank beside it, as far as one change after the other gets there."""
    echelon = f2.Echelon((*first, *(vector for vector, _ in others)))
    inside = (1 << len(first)) - 1
    members = [([echelon.reduce(vector)[1] for vector in space], need) for space, need in needs]
    added = [0] * len(others)

    def lacking() -> int:
        lack = 0
        for space, need in members:
            # An element without added columns has the coordinates of the vector before; with them, it moves along.
            images = [(vector & inside) ^ f2.apply(added, vector >> len(first)) for vector in space]
            lack += max(0, need - f2.rank(images))
        return lack

    current = lacking()
    changes = [(i, 1 << row) for i, (_, place) in enumerate(others) for row in range(place, len(first))]
    while current:
        for i, change in changes:
            added[i] ^= change
            if (changed := lacking()) < current:
                current = changed
                break
            added[i] ^= change
        else:
            break
    return tuple(sorted(v ^ f2.apply(first, by) for (v, _), by in zip(others, added, strict=True)))


def _memory(
    accesses: Sequence[_Access], chosen: _Vectors, whole: f2.Matrix, bits: int, banks: Banks, strict: bool
) -> f2.Matrix | None:
    """The offset columns for these vectors; None where they cannot be, and if ``strict`` where they make conflicts certain."""
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
    others = _others(accesses, chosen.widths, first, whole)
    if others is None:
        return None
    if not count:
        return (*first, *_twisted(first, others, ()))
    spaces = [a.banked(first, width, bits, banks) for a, width in zip(accesses, chosen.widths, strict=True)]
    weights = [a.bound(width, bits, banks)[0] for a, width in zip(accesses, chosen.widths, strict=True)]
    rest = _twisted(first, others, [(space, len(space) - (filling - len(first))) for space in spaces])
    banked = [subspaces.intersection(rest, space) for space in spaces]
    if strict and any(len(space) + count > len(rest) for space in banked):
        return None
    index = index_bits(banked, weights, rest, count)
    return (*first, *subspaces.extend(index, rest), *index)


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

    For two accesses of distributed layouts by warps of 32 lanes or more nothing conflicts and the result is optimal; for more
    accesses see `Swizzle.gap`. Among layouts with equally many wavefronts, one with few instructions.
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

    def bound(choice: _Vectors) -> tuple[int, int]:
        costs = [part.bound(width, bits, banks) for part, width in zip(parts, choice.widths, strict=True)]
        return sum(wavefronts for wavefronts, _ in costs), sum(requests for _, requests in costs)

    ranked = sorted(_choices(parts, most), key=lambda choice: (*bound(choice), choice.columns, choice.widths))
    least = bound(ranked[0])[0]
    best: Swizzle | None = None
    for strict, choice in itertools.product((True, False), ranked):
        if best is not None and not best.gap:
            break
        if best is not None and best.wavefronts <= bound(choice)[0]:
            continue
        offset = _memory(parts, choice, whole, bits, banks, strict)
        if offset is None:
            continue
        columns = {OFFSET: offset, **({BLOCK: _block(accesses[0])} if BLOCK in accesses[0].in_dims else {})}
        memory = LinearLayout.from_columns(columns, accesses[0].outputs)
        costs = tuple(
            bank_conflicts(layout, memory, bits, 1 << width, banks)
            for layout, width in zip(accesses, choice.widths, strict=True)
        )
        swizzle = Swizzle(memory, costs, least)
        if best is None or (swizzle.wavefronts, swizzle.requests) < (best.wavefronts, best.requests):
            best = swizzle
    if best is None:
        raise ValueError("optimal_swizzle: internal error, vectors of one element were not possible")
    return best

"""Dealing: how every distributed family gives the bits of a tensor's index to machine dimensions.

A product of identity and zero layouts would have to be cut to a smaller tensor and repeated for a larger one. Dealing covers
all three cases: each axis of the tensor is a pile of bits, lowest on top, and a family is a list of *steps* ``(machine
dimension, axis, bits)``, each of which takes that many bits from the pile:

    shape (16, 4); steps (register, columns, 1) (lane, columns, 2) (lane, rows, 3), then the rest in registers

    step                columns' pile   rows' pile    dealt
    register columns 1  1 2             1 2 4 8       register: (0,1)
    lane columns 2      2               1 2 4 8       lane: (0,2) (0,0)      the pile ran out: copies
    lane rows 3                         1 2 4 8       lane: .. (1,0) (2,0) (4,0)
    rest                                8             register: .. (8,0)

What follows: a dealt layout is distributed (definition 4.10) by construction, as no bit is dealt twice and the rest goes to
registers; larger tiles than the tensor leave zero columns, smaller ones repeat.

``cga_layout`` puts bits of the ``block`` dimension at the top: basis i says which half (or quarter, ...) of the tensor bit i of
the block index selects, in units of one block's part, so ``[[1, 0], [0, 1]]`` cuts rows, then columns, in two. Those bits leave
the bottom of the piles first. Without it (None) the layout has no ``block`` dimension; with none of them (``[]``) an empty one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TypeAlias

from weft.layout.algebra import f2
from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout

REGISTER = "register"
LANE = "lane"
WARP = "warp"
BLOCK = "block"

ROWS, COLUMNS = -2, -1
"""The axes of a matrix; a third axis before them is a batch."""

Step: TypeAlias = tuple[str, int, int]
"""``(machine dimension, axis, bits)``."""
Bases: TypeAlias = Sequence[Sequence[int]]


def tensor_outputs(shape: Sequence[int]) -> tuple[tuple[str, int], ...]:
    """``(name, bits)`` of a tensor's dimensions, as `LinearLayout.from_columns` takes them; `ValueError` for a size that is
    not a power of two."""
    outputs: list[tuple[str, int]] = []
    for axis, size in enumerate(shape):
        bits = log2_exact(size)
        if bits is None:
            raise ValueError(f"dim{axis} of shape {tuple(shape)} is {size}, expected a power of two")
        outputs.append((f"dim{axis}", bits))
    return tuple(outputs)


def dimension_units(outputs: Sequence[tuple[str, int]]) -> list[f2.Matrix]:
    """For each dimension the flattened unit vectors of its bits, lowest first."""
    units: list[f2.Matrix] = []
    shift = sum(bits for _, bits in outputs)
    for _, bits in outputs:
        shift -= bits
        units.append(tuple(1 << (shift + bit) for bit in range(bits)))
    return units


def bits_per_axis(function: str, name: str, sizes: Sequence[int], rank: int) -> list[int]:
    """The logarithms of ``sizes``, one for each of ``rank`` dimensions; `ValueError` in the words of ``function`` otherwise."""
    if len(sizes) != rank:
        raise ValueError(f"{function}: {name} {tuple(sizes)} has {len(sizes)} dimensions, the shape has {rank}")
    return [bits_of(function, name, sizes, size) for size in sizes]


def bits_of(function: str, name: str, sizes: Sequence[int], size: int) -> int:
    """The logarithm of one of ``sizes``."""
    bits = log2_exact(size)
    if bits is None:
        raise ValueError(f"{function}: {name} {tuple(sizes)} holds {size}, expected powers of two")
    return bits


def size_bits(function: str, name: str, size: int) -> int:
    """The logarithm of a size that stands alone."""
    bits = log2_exact(size)
    if bits is None:
        raise ValueError(f"{function}: {name} is {size}, expected a power of two")
    return bits


def check_order(function: str, rank: int, order: Sequence[int]) -> None:
    """`ValueError` unless ``order`` is a permutation of the dimensions."""
    if sorted(order) != list(range(rank)):
        raise ValueError(f"{function}: order {tuple(order)} is not a permutation of the {rank} dimensions")


def check_matrix(function: str, shape: Sequence[int]) -> None:
    """`ValueError` unless ``shape`` is of a matrix or a batch of matrices."""
    if len(shape) not in (2, 3):
        raise ValueError(f"{function}: shape {tuple(shape)} has {len(shape)} dimensions, expected 2, or 3 with a batch")


def contraction_axis(function: str, operand_index: int) -> int:
    """The axis of an operand that the product sums over: the columns of operand 0, the rows of operand 1."""
    if operand_index not in (0, 1):
        raise ValueError(f"{function}: operand_index is {operand_index}, expected 0 (left) or 1 (right)")
    return COLUMNS if operand_index == 0 else ROWS


def grid_places(function: str, bases: Mapping[str, Bases], rank: int) -> dict[str, list[tuple[int, int] | None]]:
    """``(axis, bit)`` of each basis of a grid of tiles or blocks, None for a zero one, by the argument it was given in.

    `ValueError` unless the bases are unit vectors or zero, none twice, and have each axis' bits from the lowest without a gap.
    """
    places: dict[str, list[tuple[int, int] | None]] = {name: [] for name in bases}
    seen: set[tuple[int, int]] = set()
    for name, vectors in bases.items():
        for basis in vectors:
            if len(basis) != rank:
                raise ValueError(
                    f"{function}: {name} basis {tuple(basis)} has {len(basis)} coordinates, the shape has {rank}"
                )
            coordinates = [(axis, value) for axis, value in enumerate(basis) if value]
            if not coordinates:
                places[name].append(None)
                continue
            axis, value = coordinates[0]
            bit = log2_exact(value)
            if len(coordinates) > 1 or bit is None:
                raise ValueError(f"{function}: {name} basis {tuple(basis)} is not a power of two along one dimension")
            if (axis, bit) in seen:
                raise ValueError(f"{function}: {name} basis {tuple(basis)} is there twice")
            seen.add((axis, bit))
            places[name].append((axis, bit))
    for axis, bit in sorted(seen):
        if bit and (axis, bit - 1) not in seen:
            names = " and ".join(bases)
            raise ValueError(f"{function}: {names}: {1 << bit} along dim{axis} is there but not {1 << (bit - 1)}")
    return places


@lru_cache(maxsize=1024)
def _tensor(shape: tuple[int, ...]) -> tuple[tuple[tuple[str, int], ...], tuple[f2.Matrix, ...]]:
    """The outputs and the full piles of a tensor."""
    outputs = tensor_outputs(shape)
    return outputs, tuple(dimension_units(outputs))


class Deal:
    """The piles of one tensor and what has been dealt of them; see the module."""

    def __init__(self, function: str, shape: Sequence[int], cga_layout: Bases | None = None, whole: int | None = None):
        """``whole`` is an axis that every block has all of (an operand's contraction), whatever ``cga_layout`` says."""
        self._outputs, piles = _tensor(tuple(shape))
        self._piles = list(piles)
        self._columns: dict[str, list[int]] = {REGISTER: [], LANE: [], WARP: []}
        if cga_layout is not None:
            rank = len(shape)
            kept = None if whole is None else whole % rank
            places = grid_places(function, {"cga_layout": cga_layout}, rank)["cga_layout"]
            self._columns[BLOCK] = self._reserve([None if place and place[0] == kept else place for place in places])

    def _reserve(self, places: Sequence[tuple[int, int] | None]) -> list[int]:
        """Take the bits of blocks from the bottom of the piles."""
        tops: dict[int, f2.Matrix] = {}
        for axis, pile in enumerate(self._piles):
            split = sum(place is not None and place[0] == axis for place in places)
            at = max(0, len(pile) - split)
            self._piles[axis], tops[axis] = pile[:at], pile[at:]
        return [tops[place[0]][place[1]] if place and place[1] < len(tops[place[0]]) else 0 for place in places]

    def steps(self, steps: Iterable[Step]) -> None:
        """Deal; where a pile runs out, copies (zero columns) stand for the missing bits."""
        for dim, axis, bits in steps:
            pile = self._piles[axis]
            self._columns[dim] += (*pile[:bits], *(0,) * (bits - len(pile)))
            self._piles[axis] = pile[bits:]

    def copies(self, dim: str, bits: int) -> None:
        """``bits`` bits of ``dim`` that select nothing."""
        self._columns[dim] += (0,) * bits

    def grid(self, places: Mapping[str, Sequence[tuple[int, int] | None]]) -> None:
        """Deal the top of the piles by place: `grid_places`, by machine dimension."""
        for dim, entries in places.items():
            for place in entries:
                pile = self._piles[place[0]] if place else ()
                self._columns[dim].append(pile[place[1]] if place and place[1] < len(pile) else 0)
        taken = [place[0] for entries in places.values() for place in entries if place]
        for axis, pile in enumerate(self._piles):
            self._piles[axis] = pile[taken.count(axis) :]

    def rest(self, order: Iterable[int]) -> None:
        """What is left of the axes in ``order`` goes to registers."""
        for axis in order:
            self._columns[REGISTER] += self._piles[axis]
            self._piles[axis] = ()

    def layout(self, copies_in_registers: bool = True) -> LinearLayout:
        """What has been dealt; without ``copies_in_registers`` a thread keeps one register of each element."""
        if not copies_in_registers:
            self._columns[REGISTER] = [column for column in self._columns[REGISTER] if column]
        return LinearLayout.from_columns({dim: tuple(dealt) for dim, dealt in self._columns.items()}, self._outputs)

"""Flattened indices: the coordinates of several dimensions side by side in one integer.

Definition. *Fields* ``((name, bits), ...)`` list dimensions, the slowest first; a flattened index has the last one's coordinate
in its lowest bits, so it is the position in the row-major tensor.

    fields (("dim0", 1), ("dim1", 2), ("dim2", 1))      coordinates (1, 2, 0)  <->  0b1_10_0 = 12

Reordering, dropping or widening dimensions is a few *moves*: all bits that shift by the same amount move together, under one
mask. The index is not taken apart into coordinates. Reordering n dimensions takes at most n moves; dropping or widening the
slowest takes one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import index as as_int
from typing import TypeAlias

Fields: TypeAlias = tuple[tuple[str, int], ...]
Moves: TypeAlias = tuple[tuple[int, int, int], ...]
"""``(mask, left, right)``: the bits under the mask go up by ``left`` and down by ``right``, one of which is 0."""


def log2_exact(size: int) -> int | None:
    """The n with ``2**n == size``, or None, as for what is no integer."""
    if size.__class__ is not int:
        return log2_exact(as_int(size)) if hasattr(size, "__index__") else None
    return size.bit_length() - 1 if size > 0 and size & (size - 1) == 0 else None


def flatten(coordinates: Iterable[int], fields: Fields) -> int:
    """The flattened index of coordinates, one for each field."""
    index = 0
    for coordinate, (_, bits) in zip(coordinates, fields, strict=True):
        index = index << bits | coordinate
    return index


def unflatten(index: int, fields: Fields) -> tuple[int, ...]:
    """The coordinates of a flattened index."""
    coordinates: list[int] = []
    for _, bits in reversed(fields):
        coordinates.append(index & ((1 << bits) - 1))
        index >>= bits
    return tuple(reversed(coordinates))


def positions(fields: Iterable[tuple[str, int]]) -> dict[str, tuple[int, int]]:
    """Each field's (shift, bits), the last field first."""
    found: dict[str, tuple[int, int]] = {}
    shift = 0
    for name, bits in reversed(tuple(fields)):
        found[name] = (shift, bits)
        shift += bits
    return found


def moves(bits_from_to: Iterable[tuple[int, int, int]]) -> Moves:
    """The moves that take ``bits`` bits ``from`` one position ``to`` another, for each triple; all others are dropped."""
    masks: dict[int, int] = {}
    for bits, source, target in bits_from_to:
        if bits:
            masks[target - source] = masks.get(target - source, 0) | ((1 << bits) - 1) << source
    return tuple([(mask, max(up, 0), max(-up, 0)) for up, mask in masks.items()])


def repacking(old: Mapping[str, tuple[int, int]], new: Mapping[str, tuple[int, int]]) -> Moves:
    """The moves between two lists of fields, given by their `positions`: fields only in ``old`` are dropped, only in ``new``
    zero; those in both go to the lowest bits of their new place, which is at least as wide."""
    return moves([(bits, shift, new[name][0]) for name, (shift, bits) in old.items() if name in new])


def move(columns: Sequence[int], steps: Moves) -> tuple[int, ...]:
    """Each index after its moves."""
    if len(steps) == 1:
        ((mask, left, right),) = steps
        return tuple([(column & mask) << left >> right for column in columns])
    moved: list[int] = []
    for column in columns:
        result = 0
        if column:
            for mask, left, right in steps:
                result |= (column & mask) << left >> right
        moved.append(result)
    return tuple(moved)

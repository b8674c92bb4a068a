"""Where the elements of a tensor copy's box are, in global and in shared memory (PTX ISA 5.5, tiled mode).

Definition. A tensor has up to five dimensions, dimension 0 the innermost, as in PTX. Element ``i`` of it is at

    address + i0 * element + i1 * stride1 + i2 * stride2 + ...         (strides in bytes)

A copy moves a box that starts at coordinates ``c``: element ``b`` of the box is element ``c + b * step`` of the tensor, with
``b[k]`` from 0 to ``ceil(box[k] / step[k]) - 1``. In shared memory the box is dense, dimension 0 innermost, and then swizzled
by address. What of the box is outside the tensor, in any dimension and on either side, is filled in loads and left out in
stores.

The box is computed as *runs*, not element by element: an address, a place in the box, and one length for all runs of a copy.
This suffices because the elements of a row (dimension 0) are adjacent on both sides, and all rows of a copy are cut at the
same places. Worked: a tensor of 4 rows of 20 one-byte elements, 32 bytes apart; a box of 2 rows of 16, at column -1 and row
3:

    row 3   [ .  60 61 62 ... 6e ]       one run: 15 bytes from address + 96, to byte 1 of the box
    row 4   [ .   .  .  . ...  . ]       none: there are four rows
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.swizzle import Swizzle

CHUNK: Final = 16
"""Bytes that swizzles keep together, but for the one that flips 8, and of which bulk copies copy a multiple."""

LINE: Final = 128
"""Bytes of a row of shared memory's banks; a swizzle permutes each."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Runs:
    """Rows of boxes, M of them, each of ``size`` bytes side by side."""

    copy: NDArray[np.intp]
    """Which of the copies each is of."""
    place: NDArray[np.intp]
    """Its first byte in the dense box."""
    address: NDArray[np.uint64]
    """Its first byte in global memory."""
    size: int


@dataclass(frozen=True)
class Tensor:
    """A tensor in global memory, and the box that is copied of it. Sizes in elements, innermost dimension first."""

    address: int
    element: int
    """Bytes of an element: 1, 2, 4 or 8."""
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    """Bytes from one element to the next in each dimension; the first is ``element``."""
    box: tuple[int, ...]
    steps: tuple[int, ...]
    """Which elements of the box there are: each step-th; the first is 1."""

    @property
    def rank(self) -> int:
        return len(self.sizes)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """Elements of a box in each dimension."""
        return tuple(-(-box // step) for box, step in zip(self.box, self.steps, strict=True))

    @cached_property
    def row(self) -> int:
        """Bytes of a row of the box."""
        return self.counts[0] * self.element

    @cached_property
    def bytes(self) -> int:
        """Bytes of the box in shared memory, whether they are of the tensor or filled in."""
        return math.prod(self.counts) * self.element

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """For each row of the box: how many elements it is from the start, in dimensions 1 and up; (rows, rank - 1)."""
        outer = self.counts[1:]
        if not outer:
            return np.zeros((1, 0), np.int64)
        grid = np.indices(outer[::-1]).reshape(len(outer), -1)[::-1].T
        return grid * np.array(self.steps[1:], np.int64)

    def runs(self, coordinates: NDArray[np.int64]) -> list[Runs]:
        """What copies from boxes at these coordinates, (N, rank), move: an entry for each length of row there is.

        Postcondition: each byte of a box that is inside the tensor is in one run.
        """
        first = np.maximum(coordinates[:, 0], 0)
        last = np.minimum(coordinates[:, 0] + self.counts[0], self.sizes[0])
        lengths = np.maximum(last - first, 0)
        index = coordinates[:, None, 1:] + self._rows
        inside = ((index >= 0) & (index < np.array(self.sizes[1:], np.int64))).all(axis=2)
        starts = self.address + first * self.element
        found: list[Runs] = []
        for length in sorted({int(n) for n in lengths} - {0}):
            copy, row = (inside & (lengths == length)[:, None]).nonzero()
            if not copy.size:
                continue
            offsets = index[copy, row] @ np.array(self.strides[1:], np.int64)
            place = row * self.row + (first - coordinates[:, 0])[copy] * self.element
            found.append(Runs(copy, place, (starts[copy] + offsets).view(np.uint64), length * self.element))
        return found


def gather(runs: Runs, boxes: Bytes) -> Bytes:
    """What dense boxes, (N, bytes), have at the runs: (M, size)."""
    if len(runs.copy) * runs.size == boxes.size:
        return boxes.reshape(-1, runs.size)
    return boxes[runs.copy[:, None], runs.place[:, None] + np.arange(runs.size)]


def scatter(runs: Runs, values: Bytes, boxes: Bytes) -> None:
    """Puts the runs' values, (M, size), into dense boxes, (N, bytes)."""
    if len(runs.copy) * runs.size == boxes.size:
        boxes[...] = values.reshape(boxes.shape)
    else:
        boxes[runs.copy[:, None], runs.place[:, None] + np.arange(runs.size)] = values


@dataclass(frozen=True)
class Shared:
    """Where boxes are in shared memory: ``addresses`` (K,), ``size`` bytes at each, of the copies ``copy`` (K,)."""

    addresses: NDArray[np.uint64]
    size: int
    copy: NDArray[np.intp]
    chunks: NDArray[np.intp] | None
    """The chunk of the dense box that each chunk in order of ``addresses`` is: for all copies, or for each of them (copies,
    chunks). None if they are in order."""
    chunk: int = CHUNK
    """Bytes of a chunk."""

    @classmethod
    def of(cls, bases: NDArray[np.uint64], size: int, swizzle: Swizzle) -> Shared:
        """Boxes of ``size`` bytes at ``bases`` (N,), multiples of a line.

        A swizzle permutes within lines, so the bytes of whole lines are together; of others each chunk is on its own.
        """
        copies = np.arange(bases.size)
        if swizzle is Swizzle.NONE:
            return cls(bases, size, copies, None)
        chunk = min(CHUNK, swizzle.atom)
        starts = (bases % np.uint64(swizzle.period)).tolist()
        orders = [_swizzled(start, size, swizzle) for start in starts]
        alike = all(start == starts[0] for start in starts)
        chunks = orders[0][0] if alike else np.stack([order for order, _ in orders])
        if size % LINE == 0:
            return cls(bases, size, copies, chunks, chunk)
        places = np.stack([places for _, places in orders]) + bases[:, None]
        return cls(places.reshape(-1), chunk, np.repeat(copies, places.shape[1]), chunks, chunk)

    def arrange(self, boxes: Bytes) -> Bytes:
        """What dense boxes, (N, bytes), put at the addresses: (K, size)."""
        if self.chunks is None:
            return boxes
        cells = boxes.view(_CELLS[self.chunk])
        moved = (
            np.take(cells, self.chunks, axis=1)
            if self.chunks.ndim == 1
            else np.take_along_axis(cells, self.chunks, axis=1)
        )
        return moved.view(np.uint8).reshape(-1, self.size)

    def collect(self, values: Bytes) -> Bytes:
        """The dense boxes, (N, bytes), of what is at the addresses, (K, size): the inverse of `arrange`."""
        if self.chunks is None:
            return values
        cells = np.ascontiguousarray(values).reshape(-1, self.chunk * self.chunks.shape[-1]).view(_CELLS[self.chunk])
        dense = np.empty_like(cells)
        if self.chunks.ndim == 1:
            dense[:, self.chunks] = cells
        else:
            np.put_along_axis(dense, self.chunks, cells, axis=1)
        return dense.view(np.uint8)


_CELLS: Final = {16: np.dtype(np.complex128), 8: np.dtype(np.uint64)}
"""A type of as many bytes as a chunk, to move chunks as a whole."""


@lru_cache(maxsize=1024)
def _swizzled(start: int, size: int, swizzle: Swizzle) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
    """The chunks of a dense box at ``start`` in the order in which they are in memory, and where each is from the start."""
    places = swizzle(np.arange(start, start + size, min(CHUNK, swizzle.atom)))
    order = np.argsort(places)
    return order, (places[order] - start).astype(np.uint64)


def touched_sectors(copy: NDArray[Any], addresses: NDArray[np.uint64], size: int) -> int:
    """The 32-byte sectors of global memory that runs touch, those that several runs of one copy share once.

    The runs of each copy are together, in any order.
    """
    first = (addresses >> np.uint64(5)).astype(np.int64)
    last = ((addresses + np.uint64(size - 1)) >> np.uint64(5)).astype(np.int64)
    apart = (first[1:] > last[:-1]) | (copy[1:] != copy[:-1])
    if apart.all():  # rows of boxes are mostly in order, and copies are
        return int((last - first).sum()) + addresses.size
    order = np.lexsort((first, copy))
    copy, first, last = copy[order], first[order], last[order]
    reached = np.maximum.accumulate(last + copy * (1 << 44)) - copy * (1 << 44)
    before = np.where(copy[1:] == copy[:-1], reached[:-1], -1)
    fresh = np.concatenate((first[:1], np.maximum(first[1:], before + 1)))
    return int(np.maximum(last - fresh + 1, 0).sum())

"""Bytes with an address: allocations, what of them has been written, and gathers of many words at once.

Each state space is one array of bytes, its *arena*, with gaps of unallocated bytes between allocations. A table has, for every
256 bytes of the arena, where the allocation there begins and ends. The bounds check of all accesses of an instruction is one
gather from that table; an array for each buffer would need a search at each access.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.memory import spare

PAGE: Final = 256
"""Allocations begin at multiples of this many bytes, as CUDA's do, and no two share a page."""

_WORDS: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}

_QUAD: Final = 16
"""Bytes of the widest access. Aligned ones are moved whole, as a NumPy type of that size, rather than word by word."""

_QUADS: Final = np.dtype(np.complex128)

_QUAD_WRITTEN: Final = np.full(_QUAD, 1, np.uint8).view(_QUADS)[0]


@dataclass(frozen=True)
class Allocation:
    """``size`` bytes of an arena from byte ``start`` on."""

    name: str
    start: int
    size: int


class Arena:
    """``size`` bytes. `track` says whether reads of bytes never written are to be found."""

    def __init__(self, size: int, track: bool, filled: list[Allocation] | None = None) -> None:
        """``filled``: what the caller fills whole, where memory of an earlier launch will do."""
        size = -(-size // PAGE) * PAGE
        kept = None if filled is None else spare.take(size)
        self.bytes: NDArray[np.uint8] = np.zeros(size, np.uint8) if kept is None else kept
        if kept is not None and filled is not None:
            end = 0
            for a in filled:
                kept[end : a.start] = 0
                end = a.start + a.size
            kept[end:] = 0
        self.written: NDArray[np.uint8] | None = np.zeros(size, np.uint8) if track else None
        self._words = {width: self.bytes.view(dtype) for width, dtype in _WORDS.items()}
        self._written = {} if self.written is None else {w: self.written.view(dtype) for w, dtype in _WORDS.items()}
        self._quads = self.bytes.view(_QUADS)
        self._quads_written = None if self.written is None else self.written.view(_QUADS)

    def forget(self) -> None:
        """Nothing has been written."""
        if self.written is not None:
            self.written[...] = 0

    def mark(self, start: int, size: int) -> None:
        """These bytes count as written."""
        if self.written is not None:
            self.written[start : start + size] = 1

    def gather(self, flat: NDArray[np.intp], size: int, width: int) -> NDArray[Any]:
        """``size`` bytes from each of ``flat`` (N,), as (N, size // width) words; (N,) of a single word. Aligned to ``width``."""
        if size == _QUAD and _aligned(flat):
            return self._quads[flat >> 4].view(_WORDS[width]).reshape(-1, _QUAD // width)
        words = self._words[width]
        first = flat if width == 1 else flat // width
        count = size // width
        return words[first] if count == 1 else words[first[:, None] + np.arange(count)]

    def scatter(self, flat: NDArray[np.intp], width: int, values: NDArray[Any]) -> None:
        """Writes (N, count) words of ``width`` bytes, or (N,), to each of ``flat``. Of several to one place the last stays."""
        if values.ndim == 2 and values.shape[1] * width == _QUAD and _aligned(flat):
            self._quads[flat >> 4] = np.ascontiguousarray(values).view(_QUADS).reshape(-1)
            if self._quads_written is not None:
                self._quads_written[flat >> 4] = _QUAD_WRITTEN
            return
        places: NDArray[np.intp] = flat if width == 1 else flat // width
        if values.ndim == 2:
            columns: NDArray[np.intp] = np.arange(values.shape[1], dtype=np.intp)
            places = (np.expand_dims(places, 1) + columns).reshape(-1)
        self._words[width][places] = values.reshape(-1)
        if self.written is not None:
            self._written[width][places] = int.from_bytes(b"\1" * width, "little")

    def unwritten(self, flat: NDArray[np.intp], size: int, width: int) -> NDArray[np.bool_] | None:
        """Which accesses read a byte that has not been written; None if none does."""
        if self.written is None:
            return None
        if size == _QUAD and self._quads_written is not None and _aligned(flat):
            found = self._quads_written[flat >> 4].view(_WORDS[width]).reshape(-1, _QUAD // width)
        else:
            words = self._written[width]
            first = flat if width == 1 else flat // width
            count = size // width
            found = words[first] if count == 1 else words[first[:, None] + np.arange(count)]
        bad = found != int.from_bytes(b"\1" * width, "little")
        if not bad.any():
            return None
        return bad if bad.ndim == 1 else bad.any(axis=1)


class Heap(Arena):
    """An arena of allocations with gaps between, at addresses from ``base`` on."""

    def __init__(
        self, base: int, allocations: list[Allocation], track: bool, filled: list[Allocation] | None = None
    ) -> None:
        end = max((a.start + a.size for a in allocations), default=0)
        super().__init__(end + 2 * PAGE, track, filled)
        self.base = base
        self.allocations = allocations
        self.describers: list[Callable[[int], str]] = []
        """What else has words for some bytes, "" for others."""
        self.on_given_again: list[Callable[[int, int], None]] = []
        """What is told that bytes are another allocation's from now on: the first, and the one behind the last."""
        pages = self.bytes.size // PAGE
        self.begins: NDArray[np.int64] = np.zeros(pages, np.int64)
        """For each page, where the allocation that has it begins."""
        self.ends: NDArray[np.int64] = np.zeros(pages, np.int64)
        """And where it ends; 0 if none has it."""
        for a in allocations:
            if a.size:
                pages_of = slice(a.start // PAGE, (a.start + a.size - 1) // PAGE + 1)
                self.begins[pages_of] = a.start
                self.ends[pages_of] = a.start + a.size

    def given_again(self, start: int, end: int) -> None:
        """These bytes, whole pages, are another allocation's from now on: nothing has been written there, nor read."""
        if self.written is not None:
            self.written[start:end] = 0
        for tell in self.on_given_again:
            tell(start, end)

    def outside(self, flat: NDArray[np.int64], size: int, span: tuple[int, int]) -> NDArray[np.bool_] | None:
        """Which accesses are not inside an allocation; None if all are. ``span`` is the least and the greatest of ``flat``."""
        low, high = span
        if low >= 0 and high < self.bytes.size:
            page = low // PAGE
            if self.begins[page] <= low and high + size <= self.ends[page]:  # all in one
                return None
        within = (flat >= 0) & (flat < self.bytes.size)
        pages = np.where(within, flat, self.bytes.size - PAGE) // PAGE
        bad = ~within | (flat < self.begins[pages]) | (flat + size > self.ends[pages])
        return bad if bad.any() else None

    def describe(self, flat: int) -> str:
        """Words for an address of this arena: which allocation it is in or after."""
        for describe in self.describers:
            if words := describe(flat):
                return words
        here = f"0x{self.base + flat:x}"
        inside = [a for a in self.allocations if a.start <= flat < a.start + a.size]
        if inside:
            a = inside[0]
            return f"{here}: byte {flat - a.start} of '{a.name}' ({a.size} bytes)"
        nearest = min(
            self.allocations, key=lambda a: min(abs(flat - a.start), abs(flat - a.start - a.size)), default=None
        )
        if nearest is None:
            return f"{here}: nothing is allocated"
        if flat < nearest.start:
            return f"{here}: {nearest.start - flat} bytes before '{nearest.name}' ({nearest.size} bytes)"
        past = flat - nearest.start - nearest.size
        return f"{here}: {past} bytes past the end of '{nearest.name}' ({nearest.size} bytes)"


def _aligned(flat: NDArray[np.intp]) -> bool:
    """Whether all are multiples of 16."""
    return not int(np.bitwise_or.reduce(flat)) & (_QUAD - 1)


def layout(sizes: list[tuple[str, int, int]]) -> list[Allocation]:
    """Places allocations (name, bytes, skew) one after the other, each on pages of its own and ``skew`` bytes, less than a
    page, into the first, with at least a free page before and after each."""
    placed: list[Allocation] = []
    start = PAGE
    for name, size, skew in sizes:
        placed.append(Allocation(name, start + skew, size))
        start += (-(-(size + skew) // PAGE) + 1) * PAGE
    return placed


def width_of(size: int, alignment: int) -> int:
    """The widest word that accesses of ``size`` bytes at multiples of ``alignment`` are made of."""
    return next(width for width in (8, 4, 2, 1) if size % width == 0 and alignment % width == 0)

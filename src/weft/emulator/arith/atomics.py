"""What many threads' atomic operations do to memory, one after the other (PTX ISA 9.7.13.6 and 9.7.13.7).

Threads that meet at one address take turns, in ascending order; hardware may choose any order, so a program that depends on it
is wrong, and sums of floats may differ in their last bits. Each thread gets the value from before its turn.

The general method takes turns in *rounds*: in round r, the r-th thread of every address. It is right for every operation,
and slow where thousands of threads meet at one address. Faster methods are used where they apply: prefix sums for sums of
integers, a shift for exchanges, accumulation address by address for minima, maxima and sums of floats where that takes fewer
steps, and one step a swap for compare-and-swap.

    address   8 8 4 8        sorted by address, threads ascending:   4: thread 2      8: threads 0, 1, 3
    add       1 2 5 3        values before, with 10 everywhere:     10               10, 11, 13       afterwards 15 and 16
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.bulk_reduce import reduction
from weft.emulator.machine.active import IndexArray

Words = NDArray[Any]
Combine = Callable[[Words, Words], Words]

PAIR: Final = np.dtype([("low", "<u8"), ("high", "<u8")])
"""128 bits."""

_BITS: Final = {16: np.dtype("u2"), 32: np.dtype("u4"), 64: np.dtype("u8"), 128: PAIR}

_UFUNCS: Final[dict[str, np.ufunc]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "min": np.minimum,
    "max": np.maximum,
}


@dataclass(frozen=True)
class Operation:
    """``name`` (add, min, max, and, or, xor, inc, dec, exch, cas) of elements of PTX type ``kind``. With ``flush``, subnormal f32
    count as zeros, and results that are subnormal become zeros."""

    name: str
    kind: str
    flush: bool = False

    @property
    def dtype(self) -> np.dtype[Any]:
        """Elements as bits."""
        return _BITS[int(self.kind.lstrip("bfsu"))]

    @property
    def number(self) -> np.dtype[Any]:
        """Elements as NumPy's numbers, of the kinds it has."""
        letter = {"b": "u", "s": "i"}.get(self.kind[0], self.kind[0])
        return np.dtype(f"{letter}{self.dtype.itemsize}")

    def __call__(self, memory: Words, places: IndexArray, values: Words, compare: Words | None = None) -> Words:
        """Performs the operation on ``memory`` (elements' bits), for each entry at its place with its value, in order; what each
        entry finds. ``compare`` is what cas compares with."""
        if distinct(places):
            before = memory[places]
            memory[places] = self.result(before, values, compare)
            return before
        order = places.argsort(kind="stable")
        turns = Turns(places[order])
        given = values[order]
        expected = None if compare is None else compare[order]
        found = self._in_turns(memory, turns, given, expected)
        before = np.empty_like(found)
        before[order] = found
        return before

    def result(self, before: Words, values: Words, compare: Words | None) -> Words:
        """What memory has after each entry's turn."""
        if self.name == "exch":
            return values
        if self.name == "cas":
            assert compare is not None
            return np.where(before == compare, values, before)
        if self.flush:
            before, values = _flushed(before), _flushed(values)
        result = _reduction(self.name, self.kind)(_bytes(before), _bytes(values)).view(self.dtype)
        return _flushed(result) if self.flush else result

    def _in_turns(self, memory: Words, turns: Turns, values: Words, compare: Words | None) -> Words:
        if self.name == "cas":
            assert compare is not None
            return _swaps(memory, turns, values, compare)
        if self.name == "exch":
            return _exchanges(memory, turns, values)
        if self.name == "add" and self.kind[0] in "us":
            return _sums(memory, turns, values)
        accumulate = self._accumulator(memory, turns, values)
        if accumulate is not None and turns.starts.size < turns.longest:
            return self._by_place(memory, turns, values, accumulate)
        return self._rounds(memory, turns, values)

    def _accumulator(self, memory: Words, turns: Turns, values: Words) -> np.ufunc | None:
        """The ufunc that takes the steps of one place after the other just as `result` does, if there is one."""
        if self.name in _UFUNCS and self.kind not in ("f16", "bf16"):
            return _UFUNCS[self.name]
        if self.name == "add" and self.kind in ("f32", "f64"):
            # NaNs have their bits, and subnormal sums may be flushed: leave these to `result`.
            numbers: Words = np.concatenate([values, memory[turns.of]]).view(self.number)
            if not self.flush and bool(np.isfinite(numbers).all()):
                return np.add
        return None

    def _by_place(self, memory: Words, turns: Turns, values: Words, accumulate: np.ufunc) -> Words:
        found = np.empty_like(values)
        for start, end in zip(turns.starts.tolist(), turns.ends.tolist(), strict=True):
            place = turns.places[start]
            steps: Words = np.concatenate([memory[place : place + 1], values[start:end]]).view(self.number)
            with np.errstate(all="ignore"):
                results = accumulate.accumulate(steps).view(self.dtype)
            if self.kind == "f32":
                results[np.isnan(results.view(np.float32))] = 0x7FFF_FFFF
            found[start:end] = results[:-1]
            memory[place] = results[-1]
        return found

    def _rounds(self, memory: Words, turns: Turns, values: Words) -> Words:
        found = np.empty_like(values)
        for turn in range(turns.longest):
            going = turns.starts + turn
            going = going[going < turns.ends]
            places = turns.places[going]
            found[going] = before = memory[places]
            memory[places] = self.result(before, values[going], None)
        return found


class Turns:
    """Entries sorted by place, and in each place in the order of their turns."""

    def __init__(self, places: IndexArray) -> None:
        self.places = places
        new = np.r_[True, places[1:] != places[:-1]]
        self.starts: IndexArray = new.nonzero()[0]
        """Where each place's entries begin."""
        self.ends: IndexArray = np.r_[self.starts[1:], places.size]
        self.group: IndexArray = new.cumsum() - 1
        """Which place each entry is of."""
        self.longest = int((self.ends - self.starts).max())

    @property
    def of(self) -> IndexArray:
        """The places, each once."""
        return self.places[self.starts]


_reduction = functools.cache(reduction)


def distinct(places: IndexArray) -> bool:
    """Whether no two entries are at one place."""
    if places.size < 2 or bool((places[1:] > places[:-1]).all()):
        return True
    ordered = np.sort(places)
    return bool((ordered[1:] != ordered[:-1]).all())


def _sums(memory: Words, turns: Turns, values: Words) -> Words:
    """Integers modulo a power of two: a prefix sum over all places, less what came before the place."""
    total = np.add.accumulate(values, dtype=values.dtype)
    first = turns.starts
    offset = memory[turns.of] - (total[first] - values[first])
    after = total + offset[turns.group]
    memory[turns.of] = after[turns.ends - 1]
    return after - values


def _exchanges(memory: Words, turns: Turns, values: Words) -> Words:
    """Each finds what the one before has left."""
    found = np.empty_like(values)
    found[1:] = values[:-1]
    found[turns.starts] = memory[turns.of]
    memory[turns.of] = values[turns.ends - 1]
    return found


def _swaps(memory: Words, turns: Turns, values: Words, compare: Words) -> Words:
    """Up to the first that matches, all find what is there; it swaps; and so on with the rest."""
    found = np.empty_like(values)
    next_: IndexArray = turns.starts.copy()
    entries = np.arange(values.size)
    while (next_ < turns.ends).any():
        current = memory[turns.of][turns.group]
        open_ = entries >= next_[turns.group]
        matches = np.where(open_ & (compare == current), entries, values.size)
        first = np.minimum.reduceat(matches, turns.starts)
        upto = np.minimum(first, turns.ends - 1)
        now = open_ & (entries <= upto[turns.group])
        found[now] = current[now]
        swapping = first < values.size
        memory[turns.of[swapping]] = values[first[swapping]]
        next_ = upto + 1
    return found


def _bytes(words: Words) -> NDArray[np.uint8]:
    return np.ascontiguousarray(words).view(np.uint8)


def _flushed(bits: Words) -> Words:
    """Subnormal f32 as zeros with their sign."""
    return np.where((bits & np.uint32(0x7F80_0000)) == 0, bits & np.uint32(0x8000_0000), bits)

"""CuTe's layouts, to and from linear ones where both can say it.

CuTe writes a layout as ``shape:stride``, nested tuples of equal form, and an offset as the inner product of coordinates and
strides; the first mode is the fastest. `Swizzle<B,M,S>` in front XORs B bits of the offset, those from bit M + S on, onto
those from bit M on::

    Sw<2,0,2> o (4,4):(4,1)     (i, j) -> (4i + j) ^ i

Where all extents and strides are powers of two and the modes do not overlap, sums never carry, so the offset is an XOR and
the layout is linear over F2: each bit of a mode has a basis. A linear layout whose bases have one bit each (or none, which is
stride 0) is ``shape:stride``; one whose bases have more may be a swizzle of such, and `from_linear` looks for the
least one. Extents that are not powers of two, strides that carry and general XORs are on one side only, and refused.

What a mode is named in a linear layout: ``mode0``, ``mode1``, ... for the top-level modes in CuTe's order, and ``offset``
for the result. So ``to_linear`` gives the map from a tensor's coordinates (or from threads and values) to offsets; a shared
memory layout of this library, ``offset -> dims``, is its inverse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from weft.layout.algebra.fields import log2_exact
from weft.layout.algebra.linear_layout import LinearLayout

Nest: TypeAlias = "int | tuple[Nest, ...]"
"""An integer, or a tuple of nests."""

_TOKEN = re.compile(r"\s*(\d+|[(),:]|Swizzle<|Sw<|>|o\b)")


@dataclass(frozen=True)
class Swizzle:
    """``Swizzle<bits, base, shift>``: ``x ^ ((x >> shift) & mask)`` with ``bits`` ones in the mask from bit ``base`` on."""

    bits: int
    base: int
    shift: int

    def __call__(self, offset: int) -> int:
        """The swizzled offset."""
        return offset ^ ((offset >> self.shift) & (((1 << self.bits) - 1) << self.base))

    def __str__(self) -> str:
        return f"Sw<{self.bits},{self.base},{self.shift}>"


@dataclass(frozen=True)
class CuteLayout:
    """``swizzle o shape:stride``. `ValueError` where shape and stride have different forms."""

    shape: tuple[Nest, ...]
    stride: tuple[Nest, ...]
    swizzle: Swizzle | None = None

    def __post_init__(self) -> None:
        if reason := _misfit(self.shape, self.stride):
            raise ValueError(f"shape {show(self.shape)} and stride {show(self.stride)} differ: {reason}")

    @classmethod
    def parse(cls, text: str) -> CuteLayout:
        """The layout that a text like ``Sw<3,4,3> o (8,(4,2)):(8,(1,64))`` spells; `ValueError` says where it breaks off."""
        return _Parser(text).layout()

    def __call__(self, *coordinates: int) -> int:
        """The offset of one coordinate for each top-level mode; a nested mode takes one too, first part fastest."""
        if len(coordinates) != len(self.shape):
            raise ValueError(f"{self} takes {len(self.shape)} coordinates, found {len(coordinates)}")
        offset = 0
        for coordinate, shape, stride in zip(coordinates, self.shape, self.stride, strict=True):
            left = coordinate
            for n, d in _leaves(shape, stride):
                offset += left % n * d
                left //= n
        return offset if self.swizzle is None else self.swizzle(offset)

    def __str__(self) -> str:
        plain_mode = len(self.shape) == 1 and isinstance(self.shape[0], int)
        shape, stride = (nest[0] if plain_mode else nest for nest in (self.shape, self.stride))
        plain = f"{show(shape)}:{show(stride)}"
        return plain if self.swizzle is None else f"{self.swizzle} o {plain}"


def to_linear(layout: CuteLayout) -> LinearLayout:
    """The linear layout ``mode0, mode1, ... -> offset``; `ValueError` for what is not linear over F2."""
    bases: dict[str, list[tuple[int]]] = {}
    used = 0
    for axis, (shape, stride) in enumerate(zip(layout.shape, layout.stride, strict=True)):
        bases[f"mode{axis}"] = []
        for n, d in _leaves(shape, stride):
            bits = log2_exact(n)
            if bits is None:
                raise ValueError(f"{layout}: extent {n} of mode {axis} is not a power of two")
            for bit in range(bits):
                basis = d << bit
                if basis and (log2_exact(basis) is None or basis & used):
                    raise ValueError(f"{layout}: stride {d} of mode {axis} carries into another, so sums are no XORs")
                used |= basis
                bases[f"mode{axis}"].append((layout.swizzle(basis) if layout.swizzle else basis,))
    reached = max((b[0] for vectors in bases.values() for b in vectors), default=0)
    return LinearLayout(bases, {"offset": 1 << reached.bit_length()})


def from_linear(layout: LinearLayout) -> CuteLayout:
    """The CuTe layout of a linear one with a single output: a mode for each input dimension, in their order.

    `ValueError` where it takes more than one swizzle. Among swizzles that do, the one of fewest bits, then of the lowest base.
    """
    if len(layout.out_dims) != 1:
        raise ValueError(
            f"a CuTe layout gives one offset, this one has the outputs [{', '.join(layout.out_dims)}]; flatten them first"
        )
    columns = [layout.columns(dim) for dim in layout.in_dims]
    for swizzle in _candidates(layout.out_bits):
        straight = [[swizzle(c) if swizzle else c for c in mode] for mode in columns]
        flat = [c for mode in straight for c in mode if c]
        if all(c & (c - 1) == 0 for c in flat) and len(set(flat)) == len(flat):
            modes = [_mode(mode) for mode in straight]
            return CuteLayout(tuple(m[0] for m in modes), tuple(m[1] for m in modes), swizzle)
    raise ValueError(f"{layout} is no shape:stride under one Swizzle<B,M,S>")


def _candidates(bits: int) -> Iterator[Swizzle | None]:
    """No swizzle, then all that undo themselves (shift >= bits), simplest first."""
    yield None
    for count in range(1, bits // 2 + 1):
        for base in range(bits - 2 * count + 1):
            for shift in range(count, bits - base - count + 1):
                yield Swizzle(count, base, shift)


def _mode(columns: Sequence[int]) -> tuple[Nest, Nest]:
    """One mode as coalesced ``shape:stride``: neighbouring bits with doubling strides are one extent."""
    parts: list[tuple[int, int]] = []
    for column in columns:
        if parts and column == parts[-1][0] * parts[-1][1]:
            parts[-1] = (parts[-1][0] * 2, parts[-1][1])
        else:
            parts.append((2, column))
    if not parts:
        return 1, 0
    if len(parts) == 1:
        return parts[0]
    return tuple(n for n, _ in parts), tuple(d for _, d in parts)


def _leaves(shape: Nest, stride: Nest) -> Iterator[tuple[int, int]]:
    if isinstance(shape, tuple) and isinstance(stride, tuple):
        for n, d in zip(shape, stride, strict=True):
            yield from _leaves(n, d)
    elif isinstance(shape, int) and isinstance(stride, int):
        yield shape, stride


def _misfit(shape: Nest, stride: Nest) -> str | None:
    if isinstance(shape, int) and isinstance(stride, int):
        return f"extent {shape} is below 1" if shape < 1 else f"stride {stride} is below 0" if stride < 0 else None
    if isinstance(shape, int) or isinstance(stride, int):
        return f"{show(shape)} beside {show(stride)}"
    if len(shape) != len(stride):
        return f"{len(shape)} modes beside {len(stride)}"
    return next((reason for n, d in zip(shape, stride, strict=True) if (reason := _misfit(n, d))), None)


def show(nest: Nest) -> str:
    """A nest as CuTe prints it."""
    return str(nest) if isinstance(nest, int) else f"({','.join(map(show, nest))})"


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def layout(self) -> CuteLayout:
        swizzle = None
        if self._next() in ("Sw<", "Swizzle<"):
            self._take()
            numbers = [self._number()]
            for _ in range(2):
                self._expect(",")
                numbers.append(self._number())
            self._expect(">")
            self._expect("o")
            swizzle = Swizzle(*numbers)
        shape = self._nest()
        self._expect(":")
        stride = self._nest()
        if self.text[self.at :].strip():
            raise self._error("the end")
        if isinstance(shape, int) and isinstance(stride, int):
            return CuteLayout((shape,), (stride,), swizzle)
        return CuteLayout(_tuple(shape), _tuple(stride), swizzle)

    def _nest(self) -> Nest:
        if self._next() != "(":
            return self._number()
        self._take()
        items: list[Nest] = []
        while self._next() != ")":
            items.append(self._nest())
            if self._next() == ",":
                self._take()
        self._take()
        return tuple(items)

    def _number(self) -> int:
        if not (self._next() or "").isdecimal():
            raise self._error("a number")
        return int(self._take())

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise self._error(f"'{token}'")
        self._take()

    def _next(self) -> str | None:
        found = _TOKEN.match(self.text, self.at)
        return found[1] if found else None

    def _take(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            raise self._error("a layout")
        self.at = found.end()
        return found[1]

    def _error(self, expected: str) -> ValueError:
        found = self.text[self.at :].strip() or "the end"
        return ValueError(f"not a CuTe layout: expected {expected}, found {found!r} in {self.text!r}")


def _tuple(nest: Nest) -> tuple[Nest, ...]:
    return nest if isinstance(nest, tuple) else (nest,)

"""The holders of each element of a tensor: the inverse of a layout as a table, from which pictures are drawn.

The algebra never lists elements, but a picture must. There is therefore a largest tensor (`MOST`), beyond which the message
says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from weft.layout import LinearLayout

MOST: Final = 1 << 16
"""Elements of the largest tensor that is drawn: 256 x 256."""
MOST_PLACES: Final = 1 << 20
"""Places (registers of all threads, or offsets) of the largest layout that is drawn."""

BANK: Final = "bank"
"""What a memory's elements can be coloured by, beside their offset."""


def all_sums(columns: Sequence[int]) -> list[int]:
    """The XOR of the columns at the set bits of each index."""
    sums = [0]
    for column in columns:
        sums += [value ^ column for value in sums]
    return sums


@dataclass(frozen=True)
class Held:
    """A layout and, for each element in row-major order, the places that hold it, first to last.

    A place is a flattened input index (first dimension fastest); `index` takes it apart. ``bits`` is the width of an element,
    which says in which bank an offset is.
    """

    layout: LinearLayout
    bits: int = 32

    def __post_init__(self) -> None:
        if self.layout.out_bits > MOST.bit_length() - 1:
            raise ValueError(
                f"a picture of {1 << self.layout.out_bits} elements, {'x'.join(map(str, self.layout.shape))}; "
                f"expected at most {MOST}"
            )
        if len(self.layout.all_columns) > MOST_PLACES.bit_length() - 1:
            raise ValueError(
                f"a picture of {1 << len(self.layout.all_columns)} registers or offsets; expected at most {MOST_PLACES}"
            )

    @cached_property
    def places(self) -> tuple[tuple[int, ...], ...]:
        """The places of each element."""
        found: list[list[int]] = [[] for _ in range(1 << self.layout.out_bits)]
        for place, element in enumerate(all_sums(self.layout.all_columns)):
            found[element].append(place)
        return tuple(tuple(places) for places in found)

    @cached_property
    def _fields(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        shift = 0
        for name, columns in self.layout.inputs:
            found[name] = shift, (1 << len(columns)) - 1
            shift += len(columns)
        return found

    @property
    def keys(self) -> tuple[str, ...]:
        """What a picture can be coloured by: the input dimensions, and the bank where there is an offset."""
        return (*self.layout.in_dims, *((BANK,) if "offset" in self.layout.in_dims else ()))

    def size(self, key: str) -> int:
        """How many values ``key`` has."""
        return 32 if key == BANK else self.layout.in_size(key)

    def index(self, place: int, key: str) -> int:
        """The value of ``key`` at a place."""
        if key == BANK:
            return self.index(place, "offset") * self.bits // 32 % 32
        shift, mask = self._fields[key]
        return place >> shift & mask

    def values(self, element: int, key: str) -> tuple[int, ...]:
        """The different values of ``key`` that hold an element, in the order of places."""
        if len(self.places[element]) == 1:
            return (self.index(self.places[element][0], key),)
        return tuple(dict.fromkeys(self.index(place, key) for place in self.places[element]))

    @cached_property
    def main(self) -> str | None:
        """The dimension that a cell names first: the lane, else what is not a register."""
        for name in ("lane", "offset", *(dim for dim in self.layout.in_dims if dim != "register")):
            if name in self.layout.in_dims:
                return name
        return self.layout.in_dims[0] if self.layout.in_dims else None

    @cached_property
    def below(self) -> str | None:
        """The dimension that a cell names second: the register."""
        rest = [dim for dim in self.layout.in_dims if dim not in (self.main, *self.owners, "warp", "block")]
        return "register" if "register" in rest else rest[0] if rest else None

    @cached_property
    def owners(self) -> tuple[str, ...]:
        """The dimensions whose regions are outlined: warps and blocks, where there are several."""
        return tuple(
            d for d in ("block", "warp") if d in self.layout.in_dims and self.layout.in_bits(d) and d != self.main
        )

    def owner(self, element: int) -> tuple[tuple[int, ...], ...]:
        """Whose an element is: the values of each of `owners`."""
        return tuple(self.values(element, dim) for dim in self.owners)

    def by(self, key: str | None) -> str | None:
        """The key to colour by: the one given, or the bank, or the first a cell names. `ValueError` for one there is not."""
        if key is None:
            return BANK if BANK in self.keys else self.main
        if key not in self.keys:
            raise ValueError(f"cannot colour by {key!r}, the layout has [{', '.join(self.keys)}]")
        return key


@dataclass(frozen=True)
class Panel:
    """A rectangle of elements: row r, column c is element ``base + r * stride + c``."""

    label: str
    base: int
    rows: int
    columns: int
    stride: int
    row_step: int = 1
    """What a row adds to the number it is labelled with: the row's length where one dimension is cut into rows."""

    def element(self, row: int, column: int) -> int:
        """The element at a row and column."""
        return self.base + row * self.stride + column


def panels(layout: LinearLayout) -> tuple[Panel, ...]:
    """A tensor as rectangles: a vector in rows of 32 or more, a matrix as it is, more dimensions as slices."""
    shape = layout.shape
    if len(shape) < 2:
        total = 1 << layout.out_bits
        columns = min(total, max(32, 1 << -(-layout.out_bits // 2)))
        return (Panel("", 0, total // columns, columns, columns, columns),)
    rows, columns = shape[-2:]
    leading = LinearLayout({}, dict(zip(layout.out_dims[:-2], shape[:-2], strict=True)))
    found: list[Panel] = []
    for number in range(1 << leading.out_bits):
        coordinates = zip(leading.out_dims, leading.unflatten(number), strict=True)
        label = ", ".join(f"{name} = {index}" for name, index in coordinates)
        found.append(Panel(label, number * rows * columns, rows, columns, columns))
    return tuple(found)


def letter(dim: str) -> str:
    """How a cell abbreviates a dimension: the paper's t, r and w, else its first letter."""
    return "t" if dim == "lane" else dim[0]


def counted(layout: LinearLayout) -> str:
    """The sizes of the input dimensions in words."""
    parts = [f"{1 << len(columns)} {name}{'s' if len(columns) else ''}" for name, columns in layout.inputs]
    return ", ".join(parts) or "no machine dimensions"


def times(values: Sequence[int]) -> str:
    """``x4`` for what is held four times, nothing for once."""
    return f"\N{MULTIPLICATION SIGN}{len(values)}" if len(values) > 1 else ""

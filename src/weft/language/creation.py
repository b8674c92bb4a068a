"""Functions that make tiles and scalars: from the grid, from numbers, from types."""

from __future__ import annotations

from typing import Any

from weft.dtypes import DType
from weft.language.core import Shape, Tile, composite, constexpr, pointer_type, stub, tensor
from weft.language.elementwise import minimum


@stub
def program_id(axis: int | constexpr) -> tensor:
    """This program's index along grid axis 0, 1 or 2: an int32 scalar."""
    ...


@stub
def num_programs(axis: int | constexpr) -> tensor:
    """The size of the grid along axis 0, 1 or 2: an int32 scalar."""
    ...


@composite
def swizzle2d(i: Tile, j: Tile, size_i: Tile, size_j: Tile, size_g: Tile) -> tuple[tensor, tensor]:
    """Row and column of a program in a grid of ``size_i`` by ``size_j`` whose programs go down the columns of ``size_g`` rows
    at a time: programs that run together read fewer tiles of a matrix product's operands. The last rows may be fewer."""
    place: Any = i * size_j + j
    first = place // (size_g * size_j) * size_g
    rows = minimum(size_i - first, size_g)
    inside = place % (size_g * size_j)
    return first + inside % rows, inside // rows


@stub
def arange(start: int | constexpr, end: int | constexpr) -> tensor:
    """``start, start + 1, ..., end - 1`` as int32; both compile-time, ``end - start`` a power of two."""
    ...


@stub
def full(shape: Shape, value: Tile, dtype: DType | constexpr) -> tensor:
    """A tile of ``shape`` with ``value`` (a number, or a scalar, which is converted) in every element."""
    ...


@stub
def zeros(shape: Shape, dtype: DType | constexpr) -> tensor:
    """A tile of ``shape`` with 0 in every element."""
    ...


@stub
def zeros_like(input: tensor) -> tensor:
    """Zeros in the shape and dtype of ``input``."""
    ...


@stub
def cast(
    input: Tile,
    dtype: DType | pointer_type | constexpr,
    fp_downcast_rounding: str | None = None,
    bitcast: bool | constexpr = False,
) -> tensor:
    """``input`` as another dtype, also written ``input.to(dtype)``.

    Values are converted: floats round to nearest even, floats to integers truncate, integers wrap, to bool is ``!= 0``.
    With ``bitcast`` (and between pointer types) the bits stay and their number must agree. ``fp_downcast_rounding`` may
    say ``"rtne"``.
    """
    ...

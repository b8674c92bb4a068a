"""Ops that give the same elements another shape, or repeat them. No element is computed."""

from __future__ import annotations

from typing import Any

from weft.language.compiletime import static_assert
from weft.language.core import Tile, composite, constexpr, stub, tensor


@stub
def broadcast(input: Tile, other: Tile) -> tuple[tensor, tensor]:
    """Both in their common shape: sizes of 1 and missing leading dimensions grow."""
    ...


@stub
def broadcast_to(input: Tile, *shape: Any) -> tensor:
    """``input`` in ``shape``, given as a tuple or as separate sizes."""
    ...


@stub
def expand_dims(input: tensor, axis: Any) -> tensor:
    """A new dimension of size 1 at ``axis`` (or at each of several) of the result."""
    ...


@composite
def squeeze(x: tensor, dim: int | constexpr) -> tensor:
    """``x`` without its dimension ``dim``, whose size is 1; counted from the end if negative."""
    static_assert(-len(x.shape) <= dim < len(x.shape), "the tile has no such dimension")
    at: constexpr = constexpr(dim + len(x.shape) if dim < 0 else dim)
    static_assert(x.shape[at] == 1, "the dimension has a size of 1")
    return reshape(x, x.shape[:at] + x.shape[at + 1 :])


@composite
def unsqueeze(x: tensor, dim: int | constexpr) -> tensor:
    """`expand_dims` by its name in PyTorch."""
    return expand_dims(x, dim)


@stub
def reshape(input: tensor, *shape: Any, can_reorder: bool | constexpr = False) -> tensor:
    """The elements in row-major order under another shape; with ``can_reorder`` any order would do."""
    ...


@stub
def view(input: tensor, *shape: Any) -> tensor:
    """`reshape` by its older name; the order of elements is kept."""
    ...


@stub
def ravel(x: tensor, can_reorder: bool | constexpr = False) -> tensor:
    """All elements in one dimension, in row-major order."""
    ...


@stub
def trans(input: tensor, *dims: Any) -> tensor:
    """The dimensions in the order ``dims``; without it the last two are exchanged."""
    ...


@stub
def permute(input: tensor, *dims: Any) -> tensor:
    """The dimensions in the order ``dims``: result dimension ``i`` is source dimension ``dims[i]``."""
    ...

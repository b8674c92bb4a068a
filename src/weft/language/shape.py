"""Ops that give the same elements another shape, or repeat them. No element is computed."""

from __future__ import annotations

from typing import Any

from weft.language.compiletime import static_assert
from weft.language.core import Tile, composite, constexpr, constexpr_function, stub, tensor


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


@composite
def item(input: tensor) -> tensor:
    """The element of a tile of a single element, as a scalar; written ``x.item()``."""
    static_assert(input.numel == 1, "can only unsplat single-element tensors")
    return input if len(input.shape) == 0 else reshape(input, ())


@stub
def join(a: tensor, b: tensor) -> tensor:
    """Both as the pairs of a new last dimension of size 2, after broadcasting: ``[.., 0]`` is ``a``, ``[.., 1]`` is ``b``. Two
    scalars give a tile of two elements."""
    ...


@stub
def split(a: tensor) -> tuple[tensor, tensor]:
    """The elements ``a[.., 0]`` and ``a[.., 1]``: the last dimension, of size 2, goes. A tile of two elements gives scalars."""
    ...


@stub
def flip(x: tensor, dim: int | constexpr | None = None) -> tensor:
    """The elements along ``dim`` (None: the last) in the opposite order."""
    ...


@composite
def interleave(a: tensor, b: tensor) -> tensor:
    """The elements of both in turns along the last dimension, after broadcasting; of two scalars a tile."""
    pairs = join(a, b)
    if len(pairs.shape) == 1:
        return pairs
    return reshape(pairs, pairs.shape[:-2] + (2 * pairs.shape[-2],))


@constexpr_function
def _before(rank: Any, dim: Any) -> Any:
    """The order of dimensions that puts the last, number ``rank``, before number ``dim``."""
    return (*range(dim), rank, *range(dim, rank))


@composite
def cat(input: tensor, other: tensor, can_reorder: bool | constexpr = False, dim: int | constexpr = 0) -> tensor:
    """Tiles of one shape one after the other along ``dim``. With ``can_reorder`` any order would do, as of one dimension."""
    rank: constexpr = constexpr(len(input.shape))
    static_assert(rank == len(other.shape), "tensors must have the same rank")
    static_assert(-rank <= dim < rank, "tl.cat: the tiles have no such dimension")
    static_assert(tuple(input.shape) == tuple(other.shape), "tl.cat requires tensors of the same shape")
    at: constexpr = constexpr(dim + rank if dim < 0 else dim)
    pairs = permute(join(input, other), _before(rank, at))
    return reshape(pairs, input.shape[:at] + (2 * input.shape[at],) + input.shape[at + 1 :])


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

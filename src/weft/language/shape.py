"""Ops that give the same elements another shape, or repeat them. No element is computed."""

from __future__ import annotations

from typing import Any

from weft.language.core import Tile, constexpr, stub, tensor


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

"""Ops that read and write memory through tiles of pointers. ``pointer + i`` counts elements."""

from __future__ import annotations

from weft.language.core import Tile, constexpr, stub, tensor


@stub
def load(
    pointer: tensor,
    mask: Tile | None = None,
    other: Tile | None = None,
    *,
    cache_modifier: str | constexpr = "",
    eviction_policy: str | constexpr = "",
    volatile: bool | constexpr = False,
) -> tensor:
    """What ``pointer`` points at, elementwise.

    Where ``mask`` (bools, broadcast to the pointers) is false no memory is touched and the element is ``other``
    (converted to the dtype pointed to), or unspecified without it. The keyword arguments are advice about caches;
    results do not depend on them.
    """
    ...


@stub
def store(
    pointer: tensor,
    value: Tile,
    mask: Tile | None = None,
    *,
    cache_modifier: str | constexpr = "",
    eviction_policy: str | constexpr = "",
) -> None:
    """Write ``value`` (broadcast, converted to the dtype pointed to) where ``mask`` is true."""
    ...


@stub
def atomic_add(
    pointer: tensor,
    val: Tile,
    mask: Tile | None = None,
    sem: str | constexpr | None = None,
    scope: str | constexpr | None = None,
) -> tensor:
    """Add ``val`` to memory, each element indivisibly; the result is what was there before.

    Elements of one tile that meet at an address all count. ``sem`` (memory ordering) and ``scope`` may be weaker than
    what is done.
    """
    ...

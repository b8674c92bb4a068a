"""Functions of scalars over the elements of tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.language.core import Tile, constexpr, stub


@stub
def map_elementwise(scalar_fn: Callable[..., Any], *args: Tile, pack: int | constexpr = 1) -> Any:
    """``scalar_fn`` of the elements of tiles, which broadcast: a tile, or a tuple of tiles where it returns a tuple.

    With ``pack`` > 1 one call takes ``pack`` elements of each tile, all those of the first before those of the second, and
    returns as many of each result. The function is compiled for whole tiles: both sides of an ``if`` on elements are computed,
    and each element takes its own. Loads, stores and atomics there are masked, assertions hold for the elements that reach them.
    A loop cannot depend on elements, nor can `atomic_cas`, `atomic_poll`, a barrier or a print be under a condition on them.
    (Triton compiles branches.)
    """
    ...

"""Nested tuples, lists and dicts of arrays, as lists of leaves and back."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, cast


def leaves(value: Any) -> Iterator[object]:
    """Everything in a nest that is no tuple, list or dict, in order."""
    if not isinstance(value, (tuple, list, dict)):
        yield value
        return
    for item in _items(cast(Any, value)):
        yield from leaves(item)


def rebuild(value: Any, leaf: Callable[[object], object]) -> Any:
    """The same nest with other leaves, each asked for once, in the order of `leaves`."""
    if not isinstance(value, (tuple, list, dict)):
        return leaf(value)
    nest = cast(Any, value)
    items = [rebuild(item, leaf) for item in _items(nest)]
    if isinstance(value, dict):
        return dict(zip(nest, items, strict=True))
    return items if isinstance(value, list) else type(nest)(*items) if hasattr(nest, "_fields") else tuple(items)


def shape_of(value: Any) -> Hashable:
    """A nest without its leaves, to compare by."""
    if not isinstance(value, (tuple, list, dict)):
        return None
    nest = cast(Any, value)
    names: tuple[Hashable, ...] = tuple(nest) if isinstance(value, dict) else ()
    return cast(Any, type(nest)), names, tuple(map(shape_of, _items(nest)))


def _items(nest: Any) -> list[Any]:
    return list(nest.values() if hasattr(nest, "values") else nest)

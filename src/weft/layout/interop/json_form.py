"""Layouts as JSON: bases by input dimension and sizes by output dimension, both in order.

::

    {"bases": {"register": [[0, 1]], "lane": [[0, 2], [1, 0]]}, "sizes": {"dim0": 2, "dim1": 4}}
"""

from __future__ import annotations

import json
from typing import Any, cast

from weft.layout.algebra.linear_layout import LinearLayout


def to_json(layout: LinearLayout, indent: int | None = None) -> str:
    """The layout's text; ``indent`` as in `json.dumps`."""
    bases = {dim: [list(basis) for basis in layout.bases(dim)] for dim in layout.in_dims}
    sizes = {dim: layout.out_size(dim) for dim in layout.out_dims}
    return json.dumps({"bases": bases, "sizes": sizes}, indent=indent)


def from_json(text: str) -> LinearLayout:
    """The layout of a text; `ValueError` says what is wrong with it."""
    try:
        found: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not a layout in JSON: {error}") from None
    if not isinstance(found, dict) or set(cast("dict[str, Any]", found)) != {"bases", "sizes"}:
        raise ValueError('not a layout in JSON: expected an object with "bases" and "sizes"')
    bases, sizes = cast("dict[str, Any]", found)["bases"], cast("dict[str, Any]", found)["sizes"]
    if not _is_bases(bases):
        raise ValueError('not a layout in JSON: "bases" maps names to lists of lists of integers')
    if not isinstance(sizes, dict) or not all(_is_int(n) for n in cast("dict[str, Any]", sizes).values()):
        raise ValueError('not a layout in JSON: "sizes" maps names to integers')
    return LinearLayout(bases, cast("dict[str, int]", sizes))


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_bases(bases: object) -> bool:
    if not isinstance(bases, dict):
        return False
    for listed in cast("dict[str, object]", bases).values():
        if not isinstance(listed, list):
            return False
        for vector in cast("list[object]", listed):
            if not isinstance(vector, list) or not all(map(_is_int, cast("list[object]", vector))):
                return False
    return True

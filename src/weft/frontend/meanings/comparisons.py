"""Comparisons of integers of different types by the numbers they stand for, without converting one side to the other's type."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

from weft import dtypes
from weft.frontend.builder import Builder
from weft.frontend.meanings.integers import constant
from weft.frontend.values import Tensor

COMPARISONS: Final[Mapping[str, str]] = {
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}
"""Comparisons and the kind of `tile.compare` each is."""

PYTHON: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    meaning: getattr(operator, kind) for meaning, kind in COMPARISONS.items()
}
"""Comparisons of Python's numbers."""

_TURNED: Final[Mapping[str, str]] = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
"""Kind -> the kind with its sides exchanged."""

_OF_NEGATIVE: Final = frozenset({"ne", "lt", "le"})
"""The kinds that hold between a negative number and a natural one."""


def exactly(b: Builder, meaning: str, x: Tensor, y: Tensor) -> Tensor:
    """A comparison of two integers (or bools) of any types and one shape."""
    kind = COMPARISONS[meaning]
    if x.dtype == y.dtype:
        return b.compare(kind, x, y)
    for dtype in (x.dtype, y.dtype, dtypes.int16, dtypes.int32, dtypes.int64):
        if all(dtype.min <= d.min and d.max <= dtype.max for d in (x.dtype, y.dtype)):
            return b.compare(kind, b.cast(x, dtype), b.cast(y, dtype))
    if y.dtype.signed:
        x, y, kind = y, x, _TURNED[kind]
    # A signed integer and an uint64: below zero the sign decides.
    natural = b.compare(kind, b.cast(x, y.dtype), y)
    always = b.constant(kind in _OF_NEGATIVE, dtypes.bool_, x.shape)
    return b.select(b.compare("lt", x, constant(b, 0, x)), always, natural)

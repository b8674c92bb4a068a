"""Small names of ``triton``: sizes, and decorators of functions and classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from weft.language.aggregates import aggregate
from weft.language.core import constexpr_function, must_use_result
from weft.runtime import sizes

__all__ = ["aggregate", "must_use_result", "next_power_of_2"]

_power: Callable[[int], int] = cast("Any", sizes.next_power_of_2).function


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least ``n``; 0 for 0, as in Triton. `ValueError` for negative numbers."""
    return 0 if n == 0 else _power(n)

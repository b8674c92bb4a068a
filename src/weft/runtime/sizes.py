"""The arithmetic of grids and tiles, on the host, and in kernels on what is known at compile time."""

from __future__ import annotations

from weft.language.core import constexpr_function


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """``x / y`` rounded up: how many tiles of ``y`` cover ``x``."""
    return -(x // -y)


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least ``n``; `ValueError` for ``n < 1``."""
    if n < 1:
        raise ValueError(f"next_power_of_2: expected a positive integer, found {n}")
    return 1 << (n - 1).bit_length()

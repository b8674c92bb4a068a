"""Where arrays are."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray


def address_of(array: NDArray[Any]) -> int:
    """Where an array's memory begins."""
    start: int = array.__array_interface__["data"][0]
    return start

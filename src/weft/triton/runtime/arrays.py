"""What a sweep does to the arrays of a launch, for tensors and NumPy arrays alike."""

from __future__ import annotations

from typing import Any


def zero(array: Any) -> None:
    """Sets all elements to zero."""
    if hasattr(array, "zero_"):
        array.zero_()
    else:
        array[...] = 0


def copy_of(array: Any) -> Any:
    """A copy."""
    return array.clone() if hasattr(array, "clone") else array.copy()


def restore(array: Any, copy: Any) -> None:
    """Copies the elements back."""
    if hasattr(array, "copy_"):
        array.copy_(copy)
    else:
        array[...] = copy

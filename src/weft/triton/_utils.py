"""``triton._utils``: the names of types."""

from __future__ import annotations

from weft.language.core import MAX_ELEMENTS
from weft.triton.names import CANONICAL, canonicalize_dtype, canonicalize_ptr_dtype
from weft.triton.tools.tensor_descriptor import check_block

TRITON_MAX_TENSOR_NUMEL = MAX_ELEMENTS
type_canonicalisation_dict = CANONICAL
validate_block_shape = check_block

__all__ = ["TRITON_MAX_TENSOR_NUMEL", "canonicalize_dtype", "canonicalize_ptr_dtype", "type_canonicalisation_dict",
           "validate_block_shape"]  # fmt: skip


def is_power_of_two(x: int) -> bool:
    """Whether a number is a power of two; 0 is none."""
    return x > 0 and not x & (x - 1)

"""What a kernel is compiled for: one entry per parameter, in order.

The runtime derives a signature from the arguments of a launch; equal signatures share one compiled kernel. The
frontend turns pointer and scalar entries into function arguments and constants into compile-time values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from weft.dtypes import DType


@dataclass(frozen=True)
class PointerArgument:
    """An array: a pointer to elements of ``dtype``; ``aligned`` says that its address is a multiple of 16 bytes."""

    dtype: DType
    aligned: bool = False


@dataclass(frozen=True)
class ScalarArgument:
    """A run-time number; ``divisible`` says that an integer is a multiple of 16."""

    dtype: DType
    divisible: bool = False


@dataclass(frozen=True)
class ConstantArgument:
    """A compile-time value: a ``tl.constexpr`` parameter, an integer 1, or None."""

    value: Any


Argument: TypeAlias = PointerArgument | ScalarArgument | ConstantArgument
Signature: TypeAlias = Mapping[str, Argument]

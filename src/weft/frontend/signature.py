"""What a kernel is compiled for: one entry per parameter, in order.

The runtime derives a signature from the arguments of a launch; equal signatures share one compiled kernel. The
frontend turns pointer and scalar entries into function arguments and constants into compile-time values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

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


@dataclass(frozen=True)
class TupleParts:
    """What is known at compile time of a tuple of ``count`` items, of which each is a parameter (`part_names`); ``kind`` is the
    class of a named tuple."""

    count: int
    kind: type[Any] | None = None


def part_names(name: str, count: int) -> list[str]:
    """The parameters that a tuple for the parameter ``name`` becomes, in order."""
    return [f"{name}.{i}" for i in range(count)]


class DescriptorBlock(NamedTuple):
    """What is known at compile time of a descriptor that the host passes."""

    block_shape: tuple[int, ...]
    padding: str


def descriptor_names(name: str, rank: int) -> list[str]:
    """The arguments that a parameter ``name`` for a descriptor becomes, in order."""
    return [f"{name}.base", *(f"{name}.{what}.{d}" for what in ("shape", "strides") for d in range(rank))]


Argument: TypeAlias = PointerArgument | ScalarArgument | ConstantArgument
Signature: TypeAlias = Mapping[str, Argument]

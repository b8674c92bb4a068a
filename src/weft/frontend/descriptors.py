"""Tensor descriptors as values of kernels: base, shape and strides of an array, and the shape of its blocks.

A descriptor that the host passes arrives as a compile-time part (`weft.frontend.signature.DescriptorBlock`) and as arguments of
its own: the base, the sizes and the strides, named after the parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from weft import language as tl
from weft.frontend.compound import Compound
from weft.frontend.values import Tensor
from weft.language.core import block_type


class TensorDescriptor(Compound):
    """An array with blocks: ``shape`` are int32 scalars, ``strides`` int64 scalars."""

    attributes: ClassVar[dict[str, Callable[[Any], Any]]] = {
        "shape": lambda d: d.shape,
        "strides": lambda d: d.strides,
        "dtype": lambda d: d.base.dtype,
        "block_shape": lambda d: d.block,
        "block_type": lambda d: block_type(d.base.dtype, d.block),
    }
    methods: ClassVar[dict[str, Any]] = {
        name: getattr(tl.tensor_descriptor, name)
        for name in (
            "load",
            "store",
            "gather",
            "scatter",
            *(f"atomic_{k}" for k in ("add", "min", "max", "and", "or", "xor")),
        )
    }

    def __init__(
        self, base: Tensor, shape: Sequence[Tensor], strides: Sequence[Tensor], block: Sequence[int], padding: str
    ) -> None:
        self.base = base
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.block = tuple(block)
        self.padding = padding

    @property
    def parts(self) -> tuple[Tensor, ...]:
        return (self.base, *self.shape, *self.strides)

    def with_parts(self, parts: Sequence[Tensor]) -> TensorDescriptor:
        base, *rest = parts
        rank = len(self.block)
        return TensorDescriptor(base, rest[:rank], rest[rank:], self.block, self.padding)

    def same_kind(self, other: object) -> bool:
        return isinstance(other, TensorDescriptor) and (self.block, self.padding) == (other.block, other.padding)

    def __str__(self) -> str:
        return f"tensor descriptor of {self.base.dtype}{list(self.block)}"

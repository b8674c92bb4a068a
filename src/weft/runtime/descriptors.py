"""Tensor descriptors that the host passes to kernels.

In a launch such a parameter becomes several: what is known at compile time (the block's shape, the padding), the array, its
sizes and its strides. They are specialised as arguments of their own are: a size that is a multiple of 16 is known as such.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from weft.frontend.signature import DescriptorBlock, descriptor_names
from weft.runtime.memory import is_numpy_array, memory_of

ALIGNMENT = 16
"""In bytes, of the array and of its strides: TMA's."""


@dataclass
class TensorDescriptor:
    """An array of one to five dimensions, of which kernels read and write blocks (`weft.language.tensor_descriptor`).

    ``shape`` and ``strides`` (in elements; the last is 1) are those of the array at ``base``, which may have others. ``padding``
    (``zero``, ``nan``) is what kernels read outside of it. Raises `ValueError` for what Triton's class refuses.
    """

    base: Any
    shape: Sequence[int]
    strides: Sequence[int]
    block_shape: Sequence[int]
    padding: str = "zero"
    round_f32_to_tf32: bool = False

    def __post_init__(self) -> None:
        memory = memory_of(self.base)
        if memory is None:
            raise ValueError(f"a descriptor's base is an array, found {type(self.base).__name__}")
        rank, size = len(self.shape), memory.dtype.itemsize
        if not 1 <= rank <= 5:
            raise ValueError(f"a descriptor has 1 to 5 dimensions, found {rank}")
        for name in ("strides", "block_shape"):
            if len(getattr(self, name)) != rank:
                raise ValueError(
                    f"a descriptor of {rank} dimensions has {rank} {name}, found {len(getattr(self, name))}"
                )
        if memory.address % ALIGNMENT:
            raise ValueError(f"the base of a descriptor is {ALIGNMENT}-byte aligned, found address {memory.address:#x}")
        if any(n < 1 or n & (n - 1) for n in self.block_shape) or math.prod(self.block_shape) > 1 << 20:
            raise ValueError(
                f"the sizes of a block are powers of two with a product up to 2**20, found {self.block_shape}"
            )
        if any(stride * size % ALIGNMENT for stride in self.strides[:-1]):
            raise ValueError(
                f"the strides of a descriptor are {ALIGNMENT}-byte aligned, found {self.strides} of {size} bytes"
            )
        if self.strides[-1] != 1:
            raise ValueError(f"the last dimension of a descriptor is contiguous, found a stride of {self.strides[-1]}")
        if any(n < 1 for n in self.shape):
            raise ValueError(f"the sizes of a descriptor are positive, found {self.shape}")
        if self.padding not in ("zero", "nan"):
            raise ValueError(f"a descriptor pads with 'zero' or 'nan', found {self.padding!r}")
        if self.padding == "nan" and not memory.dtype.is_float:
            raise ValueError(f"padding with NaN needs an array of floats, found {memory.dtype}")
        if self.round_f32_to_tf32 and memory.dtype.name != "float32":
            raise ValueError(f"round_f32_to_tf32 needs an array of float32, found {memory.dtype}")

    @staticmethod
    def from_tensor(
        tensor: Any, block_shape: Sequence[int], padding: str = "zero", round_f32_to_tf32: bool = False
    ) -> TensorDescriptor:
        """The descriptor of a whole array."""
        if is_numpy_array(tensor):
            strides: Any = [n // tensor.itemsize for n in tensor.strides]
        else:
            strides = tensor.stride()
        return TensorDescriptor(tensor, tensor.shape, strides, block_shape, padding, round_f32_to_tf32)


def expanded(name: str, descriptor: TensorDescriptor) -> list[tuple[str, bool, Any]]:
    """The arguments that a descriptor for the parameter ``name`` becomes: name, whether it is a constant, value."""
    block = DescriptorBlock(tuple(map(int, descriptor.block_shape)), descriptor.padding)
    values = [descriptor.base, *map(int, descriptor.shape), *map(int, descriptor.strides)]
    names = descriptor_names(name, len(block.block_shape))
    return [
        (name, True, block),
        *((part, False, cast("Any", value)) for part, value in zip(names, values, strict=True)),
    ]

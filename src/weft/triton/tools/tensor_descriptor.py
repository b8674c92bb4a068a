"""``triton.tools.tensor_descriptor``: the host's descriptors of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from weft.language.core import MAX_ELEMENTS
from weft.runtime import descriptors

_LONGEST: Final = 5


class TensorDescriptor(descriptors.TensorDescriptor):
    """A tensor with the block that a kernel reads or writes at a time; see `weft.TensorDescriptor`.

    Raises: `AssertionError`, `ValueError` in Triton's words for what it refuses.
    """

    def __post_init__(self) -> None:
        rank = len(self.shape)
        itemsize: int = self.base.dtype.itemsize
        name = str(self.base.dtype).rpartition(".")[2]
        for holds, message in (
            (len(self.strides) == rank, f"rank mismatch: {self}"),
            (len(self.block_shape) == rank, f"rank mismatch: {self}"),
            (rank > 0, "rank must not be zero"),
            (rank <= _LONGEST, f"rank cannot be more than {_LONGEST}"),
            (_address(self.base) % 16 == 0, "base must be 16-byte aligned"),
            (all(s * itemsize % 16 == 0 for s in self.strides[:-1]), "strides must be 16-byte aligned"),
            (all(size > 0 for size in self.shape), "shape must be positive"),
            (not rank or self.strides[-1] == 1, "Last dimension must be contiguous"),
            (self.padding in {"zero", "nan"}, "Illegal value for padding"),
            (
                self.padding == "zero" or "float" in name,
                "Padding option `nan` is only supported for floating point tensors",
            ),
            (
                not self.round_f32_to_tf32 or name == "float32",
                "round_f32_to_tf32 is only supported for float32 tensors",
            ),
        ):
            if not holds:
                raise AssertionError(message)
        check_block(self.block_shape)

    @staticmethod
    def from_tensor(
        tensor: Any, block_shape: Sequence[int], padding: str = "zero", round_f32_to_tf32: bool = False
    ) -> TensorDescriptor:
        """The descriptor of a whole tensor."""
        strides = tensor.stride() if callable(getattr(tensor, "stride", None)) else _strides(tensor)
        return TensorDescriptor(tensor, tensor.shape, strides, block_shape, padding, round_f32_to_tf32)


def _strides(array: Any) -> list[int]:
    return [stride // array.itemsize for stride in array.strides]


def _address(base: Any) -> int:
    if type(base).__name__ in {"FakeTensor", "FunctionalTensor"}:  # of torch.compile; they have no memory
        return 0
    return base.data_ptr() if hasattr(base, "data_ptr") else base.__array_interface__["data"][0]


def check_block(shape: Sequence[int]) -> int:
    """The elements of a block. Raises: `TypeError`, `ValueError` for sizes that no tile has."""
    elements = 1
    for i, size in enumerate(shape):
        if not isinstance(size, int):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"Shape element {i} must have type `constexpr[int]`, got `constexpr[{type(size)}]")
        if size < 1 or size & (size - 1):
            raise ValueError(f"Shape element {i} must be a power of 2")
        elements *= size
    if elements > MAX_ELEMENTS:
        raise ValueError(f"numel ({elements}) exceeds triton maximum tensor numel ({MAX_ELEMENTS})")
    return elements

"""Tensor descriptors: an array in memory with its shape and strides, of which blocks are read and written."""

from __future__ import annotations

from typing import Any

from weft.language.core import OutsideKernelError, constexpr, stub, tensor


class tensor_descriptor:
    """A descriptor, made in a kernel by `make_tensor_descriptor` or passed to it as a `weft.TensorDescriptor`.

    ``shape`` are int32 scalars, ``strides`` int64 scalars, in elements; ``block_shape``, ``block_type`` and ``dtype`` are
    known at compile time. What lies outside of the array is read as padding and never written.
    """

    shape: tuple[Any, ...]
    strides: tuple[Any, ...]
    block_shape: tuple[int, ...]
    dtype: Any

    def __init__(self) -> None:
        raise OutsideKernelError(
            "tl.tensor_descriptor cannot be made by calling it: use tl.make_tensor_descriptor in a kernel, or pass a "
            "weft.TensorDescriptor to it"
        )

    @stub
    def load(self, offsets: Any) -> tensor:
        """The block at ``offsets``, one int32 for each dimension."""
        ...

    @stub
    def store(self, offsets: Any, value: tensor) -> None:
        """Write ``value``, a tile of the block's shape that is converted to the descriptor's dtype, at ``offsets``."""
        ...

    @stub
    def gather(self, x_offsets: tensor, y_offset: Any) -> tensor:
        """The rows ``x_offsets`` of an array of two dimensions, from column ``y_offset`` on. The block has one row; the result
        has one for each offset."""
        ...

    @stub
    def scatter(self, value: tensor, x_offsets: tensor, y_offset: Any) -> None:
        """Write the rows of ``value`` to the rows ``x_offsets``, from column ``y_offset`` on."""
        ...

    @stub
    def atomic_add(self, offsets: Any, value: tensor) -> None:
        """Add ``value`` to the block at ``offsets``, each element indivisibly, in no order."""
        ...

    @stub
    def atomic_min(self, offsets: Any, value: tensor) -> None:
        """Replace the block at ``offsets`` by the lesser of it and ``value``, as `atomic_add` adds."""
        ...

    @stub
    def atomic_max(self, offsets: Any, value: tensor) -> None:
        """Replace the block at ``offsets`` by the greater of it and ``value``, as `atomic_add` adds."""
        ...

    @stub
    def atomic_and(self, offsets: Any, value: tensor) -> None:
        """Replace the block at ``offsets`` by ``block & value``, as `atomic_add` adds. For integers of 32 and 64 bits."""
        ...

    @stub
    def atomic_or(self, offsets: Any, value: tensor) -> None:
        """Replace the block at ``offsets`` by ``block | value``, as `atomic_add` adds. For integers of 32 and 64 bits."""
        ...

    @stub
    def atomic_xor(self, offsets: Any, value: tensor) -> None:
        """Replace the block at ``offsets`` by ``block ^ value``, as `atomic_add` adds. For integers of 32 and 64 bits."""
        ...


@stub
def make_tensor_descriptor(
    base: tensor, shape: Any, strides: Any, block_shape: Any, padding_option: str | constexpr = "zero"
) -> Any:
    """A descriptor of the array at ``base``: one to five dimensions, ``strides`` in elements, the last of them 1 at compile time.

    A block's last dimension has at least 16 bytes, and strides known at compile time are multiples of 16 bytes, as TMA asks.
    ``padding_option`` (``zero``, ``nan``) is what lies outside of the array.
    """
    ...


@stub
def load_tensor_descriptor(desc: Any, offsets: Any) -> tensor:
    """`tensor_descriptor.load` as a function."""
    ...


@stub
def store_tensor_descriptor(desc: Any, offsets: Any, value: tensor) -> None:
    """`tensor_descriptor.store` as a function."""
    ...

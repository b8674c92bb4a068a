"""Block pointers: making, moving, loading, storing."""

from __future__ import annotations

from collections.abc import Sequence

from weft import dtypes
from weft import language as tl
from weft.dtypes import DType
from weft.frontend.blocks import BlockPointer, addresses, inside, padding
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import integer, word
from weft.frontend.literals import represents
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, check_shape, describe, is_number, is_tuple
from weft.language.core import pointer_type

PADDINGS = ("zero", "nan")


def items(value: Value) -> tuple[Value, ...]:
    """A tuple, or one value as a tuple of it."""
    return value if is_tuple(value) else (value,)


def scalar(b: Builder, value: Value, dtype: DType, argument: str) -> Tensor:
    """An integer, known at compile time or not, as a scalar of ``dtype`` (int64, or int32 for offsets)."""
    if is_number(value) and isinstance(value, int) and not isinstance(value, bool):
        if not dtype.min <= value <= dtype.max:
            raise CompilationError(f"'{argument}' holds {value}, which {dtype} does not hold", argument=argument)
        return b.constant(value, dtype)
    if not isinstance(value, Tensor) or value.is_pointer or value.shape or not value.dtype.is_integer:
        raise CompilationError(
            f"'{argument}' holds integers, one for each dimension, found {describe(value)}", argument=argument
        )
    if dtype.bits < value.dtype.bits:
        raise CompilationError(
            f"'{argument}' holds integers of {dtype.bits} bits, found {describe(value)}",
            hint="add a .to(tl.int32), or move the base pointer instead",
            argument=argument,
        )
    return b.cast(value, dtype)


def scalars(b: Builder, value: Value, dtype: DType, argument: str) -> tuple[Tensor, ...]:
    """`scalar` of each item."""
    return tuple(scalar(b, item, dtype, argument) for item in items(value))


def same_length(rank: int, what: str, **lists: Sequence[object]) -> None:
    """Refuse lists that do not have one entry for each of the block's dimensions."""
    for argument, entries in lists.items():
        if len(entries) != rank:
            raise CompilationError(
                f"'{argument}' has {len(entries)} entries, but {what} has {rank} dimensions", argument=argument
            )


@implements(tl.make_block_ptr)
def _make_block_ptr(
    b: Builder, base: Value, shape: Value, strides: Value, offsets: Value, block_shape: Value, order: Value
) -> BlockPointer:
    if not isinstance(base, Tensor) or not base.is_pointer or base.shape:
        raise CompilationError(
            f"'base' is one pointer, found {describe(base)}",
            hint="move a block pointer with tl.advance",
            argument="base",
        )
    if base.dtype.is_bool:
        base = b.bitcast(base, pointer_type(dtypes.int8))
    block = tuple(integer(item, "block_shape") for item in items(block_shape))
    sizes, steps = scalars(b, shape, dtypes.int64, "shape"), scalars(b, strides, dtypes.int64, "strides")
    places = scalars(b, offsets, dtypes.int32, "offsets")
    dimensions = [integer(item, "order") for item in items(order)]
    if sorted(dimensions) != list(range(len(dimensions))):
        raise CompilationError(
            f"'order' lists each dimension once, found {describe(order)}",
            hint=f"for example {tuple(reversed(range(len(block))))}",
            argument="order",
        )
    same_length(len(block), "'block_shape'", shape=sizes, strides=steps, offsets=places, order=dimensions)
    check_shape(block)
    return BlockPointer(base, sizes, steps, places, block)


@implements(tl.advance)
def _advance(b: Builder, base: Value, offsets: Value) -> BlockPointer:
    if not isinstance(base, BlockPointer):
        raise CompilationError(
            f"'base' is a block pointer, found {describe(base)}", hint="add offsets to other pointers", argument="base"
        )
    steps = scalars(b, offsets, dtypes.int32, "offsets")
    same_length(len(base.block), "the block", offsets=steps)
    given = zip(items(offsets), base.offsets, steps, strict=True)
    places = [old if is_number(item) and item == 0 else b.binary("add", old, step) for item, old, step in given]
    return BlockPointer(base.base, base.shape, base.strides, places, base.block)


def _checked(value: Value, rank: int) -> tuple[int, ...]:
    """The dimensions of ``boundary_check``."""
    found = tuple(integer(item, "boundary_check") for item in items(() if value is None else value))
    for d in found:
        if not 0 <= d < rank:
            raise CompilationError(
                f"'boundary_check' lists dimensions of the block, 0 to {rank - 1}, found {d}", argument="boundary_check"
            )
    if len(set(found)) < len(found):
        raise CompilationError(
            f"'boundary_check' lists a dimension twice, found {describe(found)}", argument="boundary_check"
        )
    return tuple(sorted(found))


def _refuse_mask(**given: Value) -> None:
    for argument, value in given.items():
        if value is not None:
            raise CompilationError(
                f"'{argument}' cannot be given for a block pointer",
                hint="name the dimensions to check with boundary_check=",
                argument=argument,
            )


def load_of(
    b: Builder, pointer: BlockPointer, mask: Value, other: Value, boundary_check: Value, padding_option: Value
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Pointers, mask, and what is loaded where the mask is false, of a load through a block pointer."""
    _refuse_mask(mask=mask, other=other)
    option = word(padding_option, PADDINGS, "padding_option")
    dtype = pointer.base.dtype
    if option == "nan" and not dtype.is_float:
        raise CompilationError(
            f"padding with NaN needs a block of floats, found {pointer}",
            hint="pad with 'zero'",
            argument="padding_option",
        )
    active = inside(b, pointer.shape, pointer.offsets, pointer.block, _checked(boundary_check, len(pointer.block)))
    default = None if active is None else padding(b, dtype, option, pointer.block)
    return addresses(b, pointer.base, pointer.strides, pointer.offsets, pointer.block), active, default


def store_of(
    b: Builder, pointer: BlockPointer, value: Value, mask: Value, boundary_check: Value
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Pointers, values and mask of a store through a block pointer."""
    _refuse_mask(mask=mask)
    stored = stored_in_block(b, value, pointer.base.dtype, pointer.block)
    active = inside(b, pointer.shape, pointer.offsets, pointer.block, _checked(boundary_check, len(pointer.block)))
    return addresses(b, pointer.base, pointer.strides, pointer.offsets, pointer.block), stored, active


def stored_in_block(b: Builder, value: Value, dtype: DType, block: tuple[int, ...]) -> Tensor:
    """What is stored in a block: a number, a scalar, or a tile of the block's shape; of the block's dtype."""
    if is_number(value) and represents(dtype, value):
        return b.constant(value, dtype, block)
    value = b.tensor(value, "value")
    if value.is_pointer:
        raise CompilationError(f"'value' is a tile of numbers, found {describe(value)}", argument="value")
    if value.shape not in ((), block):
        raise CompilationError(f"'value' has shape {value.shape}, but the block has {block}", argument="value")
    if value.dtype != dtype:
        raise CompilationError(
            f"'value' is of {value.dtype}, but the block is of {dtype}",
            hint=f"convert it with .to(tl.{dtype})",
            argument="value",
        )
    return b.broadcast_to(value, block)

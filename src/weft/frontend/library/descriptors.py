"""Tensor descriptors: making them, and what reads and writes through them."""

from __future__ import annotations

from typing import Final

from weft import dtypes
from weft import language as tl
from weft.dtypes import DType
from weft.frontend.arithmetic import add_pointer
from weft.frontend.blocks import addresses, inside, padding, within
from weft.frontend.builder import Builder
from weft.frontend.constness import refuse_const
from weft.frontend.descriptors import TensorDescriptor
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import integer, word
from weft.frontend.library.blocks import PADDINGS, items, same_length, scalar, scalars
from weft.frontend.promotion import converted
from weft.frontend.registry import Stub, implements
from weft.frontend.values import Tensor, Value, check_shape, describe, is_runtime
from weft.ir import tile

LEAST_BYTES: Final = 16
"""Of a block's last dimension, and what divides the strides: TMA's."""
LEAST_ROWS: Final = 8
"""Of a gather and a scatter."""

_WIDE: Final = (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64)
_HALF: Final = (dtypes.float16, dtypes.bfloat16)

REDUCIBLE: Final[dict[str, tuple[DType, ...]]] = {
    "add": (dtypes.int32, dtypes.uint32, dtypes.uint64, dtypes.float32, *_HALF),
    **dict.fromkeys(("min", "max"), (*_WIDE, *_HALF)),
    **dict.fromkeys(("and", "or", "xor"), _WIDE),
}
"""Kind of a descriptor's atomic operation -> the dtypes it takes, as in Triton."""


@implements(tl.make_tensor_descriptor)
def _make_tensor_descriptor(
    b: Builder, base: Value, shape: Value, strides: Value, block_shape: Value, padding_option: Value
) -> TensorDescriptor:
    if not isinstance(base, Tensor) or not base.is_pointer or base.shape:
        raise CompilationError(f"'base' is one pointer, found {describe(base)}", argument="base")
    rank = len(items(shape))
    if not 1 <= rank <= 5:
        raise CompilationError(f"a descriptor has 1 to 5 dimensions, found {rank}", argument="shape")
    same_length(rank, "'shape'", strides=items(strides), block_shape=items(block_shape))
    block = tuple(integer(item, "block_shape") for item in items(block_shape))
    check_shape(block)
    _check_widths(base.dtype, items(strides), block)
    option = word(padding_option, PADDINGS, "padding_option", "zero")
    if option == "nan" and not base.dtype.is_float:
        raise CompilationError(
            f"padding with NaN needs an array of floats, found {describe(base)}",
            hint="pad with 'zero'",
            argument="padding_option",
        )
    sizes = [_size(b, item) for item in items(shape)]
    return TensorDescriptor(base, sizes, scalars(b, strides, dtypes.int64, "strides"), block, option)


def _size(b: Builder, value: Value) -> Tensor:
    """A size as int32; a run-time one is converted, as in Triton."""
    if isinstance(value, Tensor):
        return scalar(b, b.cast(value, dtypes.int32) if value.dtype.is_integer else value, dtypes.int32, "shape")
    return scalar(b, value, dtypes.int32, "shape")


def _check_widths(dtype: DType, strides: tuple[Value, ...], block: tuple[int, ...]) -> None:
    """The rules of TMA, which Triton applies on every machine."""
    size = dtype.itemsize
    if block[-1] * size < LEAST_BYTES:
        raise CompilationError(
            f"a descriptor's block has at least {LEAST_BYTES} bytes in its last dimension, found {block[-1]} * {size} = "
            f"{block[-1] * size} bytes",
            argument="block_shape",
        )
    if is_runtime(strides[-1]) or strides[-1] != 1:
        raise CompilationError(
            f"the last stride of a descriptor is 1 at compile time, found {describe(strides[-1])}",
            hint="exchange the dimensions, or use pointers",
            argument="strides",
        )
    for stride in strides[:-1]:
        if not is_runtime(stride) and integer(stride, "strides") * size % LEAST_BYTES:
            raise CompilationError(
                f"the strides of a descriptor are multiples of {LEAST_BYTES} bytes, found {stride} * {size} = "
                f"{stride * size} bytes",
                argument="strides",
            )


def _descriptor(value: Value, argument: str) -> TensorDescriptor:
    if not isinstance(value, TensorDescriptor):
        raise CompilationError(
            f"'{argument}' is a tensor descriptor, found {describe(value)}",
            hint="make it with tl.make_tensor_descriptor, or pass a weft.TensorDescriptor",
            argument=argument,
        )
    return value


def _place(b: Builder, desc: TensorDescriptor, offsets: Value) -> tuple[Tensor, Tensor]:
    """Pointers to the elements of the block at ``offsets``, and which lie in the array."""
    places = scalars(b, offsets, dtypes.int32, "offsets")
    same_length(len(desc.block), "the descriptor", offsets=places)
    active = b.reached(desc.block, inside(b, desc.shape, places, desc.block, range(len(desc.block))))
    assert active is not None, "every dimension is checked"
    return addresses(b, desc.base, desc.strides, places, desc.block), active


def _load(b: Builder, desc: TensorDescriptor, pointers: Tensor, active: Tensor) -> Tensor:
    dtype = desc.base.dtype
    outside = padding(b, dtype, desc.padding, pointers.shape)
    op = b.emit(tile.LoadOp(pointers.ssa, active.ssa, None if outside is None else outside.ssa))
    return Tensor(op.result, dtype, pointers.shape)


def _tile(b: Builder, desc: TensorDescriptor, value: Value, shape: tuple[int, ...]) -> Tensor:
    """What is stored: a tile of ``shape``."""
    stored = b.tensor(value, "value")
    if stored.is_pointer or stored.shape != shape:
        raise CompilationError(f"'value' has the shape {shape} for {desc}, found {describe(stored)}", argument="value")
    return stored


@implements(tl.tensor_descriptor.load)
def _method_load(b: Builder, self: Value, offsets: Value) -> Tensor:
    desc = _descriptor(self, "self")
    return _load(b, desc, *_place(b, desc, offsets))


@implements(tl.load_tensor_descriptor)
def _load_tensor_descriptor(b: Builder, desc: Value, offsets: Value) -> Tensor:
    return _method_load(b, _descriptor(desc, "desc"), offsets)


@implements(tl.tensor_descriptor.store)
def _method_store(b: Builder, self: Value, offsets: Value, value: Value) -> None:
    desc = _descriptor(self, "self")
    pointers, active = _place(b, desc, offsets)
    stored = converted(b, _tile(b, desc, value, desc.block), desc.base.dtype)
    refuse_const(b, pointers)
    b.emit(tile.StoreOp(pointers.ssa, stored.ssa, active.ssa))


@implements(tl.store_tensor_descriptor)
def _store_tensor_descriptor(b: Builder, desc: Value, offsets: Value, value: Value) -> None:
    _method_store(b, _descriptor(desc, "desc"), offsets, value)


def _rows(b: Builder, desc: TensorDescriptor, x_offsets: Value, y_offset: Value) -> tuple[Tensor, Tensor]:
    """Pointers to the elements of some rows, and which lie in the array."""
    if len(desc.block) != 2 or desc.block[0] != 1:
        raise CompilationError(f"rows are taken through a descriptor of one row, found {desc}", argument="self")
    if (
        not isinstance(x_offsets, Tensor)
        or len(x_offsets.shape) != 1
        or x_offsets.dtype not in (dtypes.int16, dtypes.int32)
    ):
        raise CompilationError(
            f"'x_offsets' is a tile of one dimension of int16 or int32, found {describe(x_offsets)}",
            argument="x_offsets",
        )
    columns, (count,) = desc.block[1], x_offsets.shape
    least = 32 // (8 * desc.base.dtype.itemsize) * 8
    if count < LEAST_ROWS or columns < least:
        raise CompilationError(
            f"rows of {desc.base.dtype} are taken at least {LEAST_ROWS} at a time and {least} columns wide, "
            f"found {count} rows of {columns}",
            argument="x_offsets",
        )
    rows = b.expand_dims(b.cast(x_offsets, dtypes.int32), 1)
    places = [b.constant(0, dtypes.int32), scalar(b, y_offset, dtypes.int32, "y_offset")]
    line = addresses(b, desc.base, desc.strides, places, desc.block)
    steps = b.binary("mul", *b.broadcast(b.cast(rows, dtypes.int64), desc.strides[0]))
    active = within(b, rows, desc.shape[0])
    if (held := inside(b, desc.shape, places, desc.block, (1,))) is not None:
        active = b.binary("and", *b.broadcast(active, held))
    pointers = add_pointer(b, line, steps)
    return pointers, b.reached(pointers.shape, active) or active


@implements(tl.tensor_descriptor.gather)
def _gather(b: Builder, self: Value, x_offsets: Value, y_offset: Value) -> Tensor:
    desc = _descriptor(self, "self")
    return _load(b, desc, *_rows(b, desc, x_offsets, y_offset))


@implements(tl.tensor_descriptor.scatter)
def _scatter(b: Builder, self: Value, value: Value, x_offsets: Value, y_offset: Value) -> None:
    desc = _descriptor(self, "self")
    pointers, active = _rows(b, desc, x_offsets, y_offset)
    stored = converted(b, _tile(b, desc, value, pointers.shape), desc.base.dtype)
    refuse_const(b, pointers)
    b.emit(tile.StoreOp(pointers.ssa, stored.ssa, active.ssa))


def _register(stub: Stub, kind: str) -> None:
    @implements(stub)
    def _(b: Builder, self: Value, offsets: Value, value: Value) -> None:
        desc = _descriptor(self, "self")
        dtype = desc.base.dtype
        if dtype not in REDUCIBLE[kind]:
            takes = ", ".join(map(str, REDUCIBLE[kind]))
            raise CompilationError(
                f"tl.tensor_descriptor.atomic_{kind} does not take {dtype}", hint=f"it takes {takes}", argument="self"
            )
        operand = _tile(b, desc, value, desc.block)
        if operand.dtype != dtype:
            raise CompilationError(
                f"'value' is of {operand.dtype}, but the descriptor is of {dtype}",
                hint=f"convert it with .to(tl.{dtype})",
                argument="value",
            )
        pointers, active = _place(b, desc, offsets)
        refuse_const(b, pointers)
        b.emit(tile.AtomicRmwOp(kind, pointers.ssa, operand.ssa, active.ssa, sem="relaxed", scope="gpu"))


for _kind in REDUCIBLE:
    _register(getattr(tl.tensor_descriptor, f"atomic_{_kind}"), _kind)

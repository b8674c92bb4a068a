"""The ops that only a GPU has; the dialect ``gpu`` beside ``tile``.

They are ops on whole tiles and blocks, as tile IR's are. Passes of `weft.transforms.nvidia` make them; the frontend never does.

# Buffers

A buffer is shared memory for several tiles of one type, its *slots*; `AllocOp` makes it. ``local_store`` writes a tile into a
slot, ``local_load`` reads it. Copies into it are asynchronous:

    async_copy   begins to copy a tile from global memory into a slot
    commit       makes a group of the copies that were begun since the last commit
    wait         returns when at most ``pending`` of the latest groups are still under way

Until its group has been waited for, a slot that is copied into must not be read (`weft.reference` raises). A buffer in a loop is
used in turn: in one iteration, two slot operands that are different values are different slots. `PlaceBarriers` relies on that.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import I64, IntAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from weft import dtypes
from weft.dtypes import DType
from weft.ir.base import TileOp, word
from weft.ir.classes import Generator
from weft.ir.memory import LOAD_CACHES
from weft.ir.types import (
    defect,
    dtype_of,
    element_of,
    has_layout,
    layout_of,
    like,
    pointer,
    scalar,
    shape_of,
    tensor,
)
from weft.layout import LinearLayout


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """``!gpu.buffer<3 x tensor<64x32xf16>>``: shared memory for 3 tiles. The tensor's encoding, if any, is the memory layout of
    one: from ``offset``, in elements, to the tensor's dimensions."""

    name = "gpu.buffer"

    slots: IntAttr
    tile: Attribute

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            slots = parser.parse_integer(allow_boolean=False, allow_negative=False)
            parser.parse_keyword("x")
            return [IntAttr(slots), parser.parse_type()]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.slots.data} x ")
            printer.print_attribute(self.tile)

    def verify(self) -> None:
        if not shape_of(self.tile):
            raise VerifyException(f"gpu.buffer holds tensors, found {self.tile}")
        if reason := defect(self.tile):
            raise VerifyException(f"gpu.buffer: {reason}")
        if self.layout is not None and self.layout.in_dims != ("offset",):
            raise VerifyException(f"gpu.buffer: the layout goes from {', '.join(self.layout.in_dims)}, expected offset")

    @staticmethod
    def of(slots: int, shape: Sequence[int], dtype: DType, layout: LinearLayout | None = None) -> BufferType:
        """The type of a buffer of ``slots`` tiles."""
        return BufferType(IntAttr(slots), tensor(dtype, shape, layout))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a tile."""
        return shape_of(self.tile)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return dtype_of(self.tile)

    @property
    def layout(self) -> LinearLayout | None:
        """The memory layout of a slot; None before `LayOutBuffers` has run."""
        return layout_of(self.tile) if has_layout(self.tile) else None

    @property
    def slot_bytes(self) -> int:
        """The bytes of one slot."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def bytes(self) -> int:
        """The bytes of all slots."""
        return self.slots.data * self.slot_bytes


def buffer_of(value: SSAValue) -> BufferType:
    """The type of a buffer; `VerifyException` for another value."""
    if not isinstance(value.type, BufferType):
        raise VerifyException(f"expected a buffer, found {value.type}")
    return value.type


class BufferOp(TileOp):
    """Base of the ops with a buffer, which is no value of tile IR."""

    def verify(self, verify_nested_ops: bool = True) -> None:
        for value in (*self.operands, *self.results):
            if not isinstance(value.type, BufferType) and (reason := defect(value.type)):
                raise VerifyException(f"{self.name}: {reason}")
        super(TileOp, self).verify(verify_nested_ops)


SLOT = scalar(dtypes.int32)


@irdl_op_definition
class AllocOp(BufferOp):
    """A buffer for the rest of the block, its contents undefined."""

    name = "gpu.alloc"
    result = result_def()
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type_: BufferType):
        super().__init__(result_types=[type_])

    def verify_(self) -> None:
        buffer_of(self.result)


@irdl_op_definition
class AsyncCopyOp(BufferOp):
    """Begins to copy the elements at a tile of pointers into a slot, if the scalar ``enabled`` holds. Elements whose mask is
    false become zeros; of these no memory is read."""

    name = "gpu.async_copy"
    pointer = operand_def()
    mask = opt_operand_def()
    buffer = operand_def()
    slot = operand_def(SLOT)
    enabled = operand_def(scalar(dtypes.bool_))
    cache = prop_def(StringAttr, default_value=StringAttr(""))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$pointer (`mask` $mask^ `:` type($mask))? `to` $buffer `[` $slot `]` `if` $enabled (`cache` $cache^)? attr-dict "
        "`:` type($pointer) `to` type($buffer)"
    )

    def __init__(
        self,
        pointer: SSAValue,
        mask: SSAValue | None,
        buffer: SSAValue,
        slot: SSAValue,
        enabled: SSAValue,
        cache: str = "",
    ):
        super().__init__(operands=[pointer, mask, buffer, slot, enabled], properties={"cache": word(cache)})

    def verify_(self) -> None:
        held = buffer_of(self.buffer)
        if element_of(self.pointer) != pointer(held.dtype) or shape_of(self.pointer) != held.shape:
            raise VerifyException(f"gpu.async_copy: {self.pointer.type} does not fit {held}")
        if self.mask is not None and self.mask.type != like(self.pointer, dtypes.bool_):
            raise VerifyException(
                f"gpu.async_copy: the mask is {self.mask.type}, expected {like(self.pointer, dtypes.bool_)}"
            )
        if self.cache.data and self.cache.data not in LOAD_CACHES:
            names = ", ".join(LOAD_CACHES)
            raise VerifyException(
                f"gpu.async_copy: unknown cache modifier '{self.cache.data}', expected one of {names}"
            )


@irdl_op_definition
class CommitOp(TileOp):
    """Makes a group of the copies begun since the last commit; it may have none."""

    name = "gpu.commit"
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class WaitOp(BufferOp):
    """Returns when at most the latest ``pending`` groups are under way. Each thread then sees what it copied itself into the
    ``buffers``; the copies of other threads it sees behind a barrier."""

    name = "gpu.wait"
    pending = prop_def(IntegerAttr[I64])
    buffers = var_operand_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$pending `:` $buffers attr-dict `:` type($buffers)"

    def __init__(self, pending: int, buffers: Sequence[SSAValue]):
        super().__init__(operands=buffers, properties={"pending": IntegerAttr(pending, i64)})

    def verify_(self) -> None:
        for value in self.buffers:
            buffer_of(value)
        if self.pending.value.data < 0:
            raise VerifyException(f"gpu.wait: {self.pending.value.data} pending groups")


@irdl_op_definition
class LocalStoreOp(BufferOp):
    """Writes a tile into a slot. Other threads see it behind a barrier."""

    name = "gpu.local_store"
    value = operand_def()
    buffer = operand_def()
    slot = operand_def(SLOT)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$value `to` $buffer `[` $slot `]` attr-dict `:` type($value) `to` type($buffer)"

    def __init__(self, value: SSAValue, buffer: SSAValue, slot: SSAValue):
        super().__init__(operands=[value, buffer, slot])

    def verify_(self) -> None:
        held = buffer_of(self.buffer)
        if shape_of(self.value) != held.shape or element_of(self.value) != scalar(held.dtype):
            raise VerifyException(f"gpu.local_store: {held} does not hold {self.value.type}")


@irdl_op_definition
class LocalLoadOp(BufferOp):
    """The tile in a slot, in any layout: it is free, and read again where it is wanted in another."""

    name = "gpu.local_load"
    buffer = operand_def()
    slot = operand_def(SLOT)
    result = result_def()
    traits = traits_def(MemoryReadEffect(), Generator())
    assembly_format = "$buffer `[` $slot `]` attr-dict `:` type($buffer) `to` type($result)"

    def __init__(self, buffer: SSAValue, slot: SSAValue):
        held = buffer_of(buffer)
        super().__init__(operands=[buffer, slot], result_types=[tensor(held.dtype, held.shape)])

    def verify_(self) -> None:
        held = buffer_of(self.buffer)
        if shape_of(self.result) != held.shape or element_of(self.result) != scalar(held.dtype):
            raise VerifyException(f"gpu.local_load: {held} does not hold {self.result.type}")


@irdl_op_definition
class BarrierOp(TileOp):
    """All threads of the block wait for each other, and see what the others wrote before. ``reason`` names the hazard."""

    name = "gpu.barrier"
    reason = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$reason attr-dict"

    def __init__(self, reason: str):
        super().__init__(properties={"reason": StringAttr(reason)})


Gpu = Dialect("gpu", [AllocOp, AsyncCopyOp, CommitOp, WaitOp, LocalStoreOp, LocalLoadOp, BarrierOp], [BufferType])
"""The dialect."""

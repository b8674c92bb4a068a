"""Pointers and what is behind them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from weft import dtypes
from weft.ir.base import ATOMIC, TileOp, check_kind
from weft.ir.classes import Addressing, Elementwise
from weft.ir.types import PointerType, dtype_of, element_of, is_pointer, like, scalar


@irdl_op_definition
class AddPtrOp(TileOp):
    """``pointer + offset``; the integer offset counts elements and is sign- or zero-extended by its type."""

    name = "tile.addptr"
    pointer = operand_def()
    offset = operand_def()
    result = result_def()
    traits = traits_def(Pure(), Elementwise(), Addressing())
    assembly_format = "$pointer `,` $offset attr-dict `:` type($pointer) `,` type($offset) `to` type($result)"

    def __init__(self, pointer: SSAValue, offset: SSAValue):
        super().__init__(operands=[pointer, offset], result_types=[pointer.type])

    def verify_(self) -> None:
        if self.pointer.type != self.result.type or not is_pointer(self.pointer):
            raise VerifyException(f"tile.addptr: expected pointers, found {self.pointer.type} to {self.result.type}")
        whole = not is_pointer(self.offset) and dtype_of(self.offset).is_integer
        if not whole or like(self.pointer, element_of(self.offset)) != self.offset.type:
            raise VerifyException(f"tile.addptr: the offset is {self.offset.type} for pointers {self.pointer.type}")


def _verify_access(op: TileOp, pointer: SSAValue, values: Sequence[SSAValue], mask: SSAValue | None) -> None:
    element = element_of(pointer)
    if not isinstance(element, PointerType):
        raise VerifyException(f"{op.name}: expected pointers, found {pointer.type}")
    for value in values:
        if value.type != like(pointer, element.pointee):
            raise VerifyException(
                f"{op.name}: {pointer.type} holds {like(pointer, element.pointee)}, found {value.type}"
            )
    if mask is not None and mask.type != like(pointer, dtypes.bool_):
        raise VerifyException(f"{op.name}: the mask is {mask.type}, expected {like(pointer, dtypes.bool_)}")


@irdl_op_definition
class LoadOp(TileOp):
    """Reads each element; where the mask is false no memory is touched and ``other`` is the value."""

    name = "tile.load"
    pointer = operand_def()
    mask = opt_operand_def()
    other = opt_operand_def()
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$pointer (`mask` $mask^ `:` type($mask))? (`other` $other^ `:` type($other))? attr-dict "
        "`:` type($pointer) `to` type($result)"
    )

    def __init__(self, pointer: SSAValue, mask: SSAValue | None = None, other: SSAValue | None = None):
        element = element_of(pointer)
        pointee = element.pointee if isinstance(element, PointerType) else element
        super().__init__(operands=[pointer, mask, other], result_types=[like(pointer, pointee)])

    def verify_(self) -> None:
        values = [self.result] if self.other is None else [self.result, self.other]
        _verify_access(self, self.pointer, values, self.mask)
        if self.other is not None and self.mask is None:
            raise VerifyException("tile.load: 'other' needs a mask")


@irdl_op_definition
class StoreOp(TileOp):
    """Writes each element whose mask is true (all, without one)."""

    name = "tile.store"
    pointer = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$pointer `,` $value (`mask` $mask^ `:` type($mask))? attr-dict `:` type($pointer) `,` type($value)"
    )

    def __init__(self, pointer: SSAValue, value: SSAValue, mask: SSAValue | None = None):
        super().__init__(operands=[pointer, value, mask])

    def verify_(self) -> None:
        _verify_access(self, self.pointer, [self.value], self.mask)


@irdl_op_definition
class AtomicRmwOp(TileOp):
    """``*p = kind(*p, value)``, indivisibly, for each element whose mask is true; the result is what was there before
    (unspecified where masked off). Kinds: `ATOMIC`. Elements of one tile that meet at an address all take effect."""

    name = "tile.atomic_rmw"
    kind = prop_def(StringAttr)
    pointer = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    result = result_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$kind $pointer `,` $value (`mask` $mask^ `:` type($mask))? attr-dict `:` type($pointer) `,` type($value)"
        " `to` type($result)"
    )

    def __init__(self, kind: str, pointer: SSAValue, value: SSAValue, mask: SSAValue | None = None):
        super().__init__(
            operands=[pointer, value, mask], properties={"kind": StringAttr(kind)}, result_types=[value.type]
        )

    def verify_(self) -> None:
        check_kind("tile.atomic_rmw", self.kind.data, ATOMIC, self.value)
        _verify_access(self, self.pointer, [self.value, self.result], self.mask)


@irdl_op_definition
class AssumeOp(TileOp):
    """The scalar bool holds; the compiler may use it. Where it does not hold, behaviour is undefined."""

    name = "tile.assume"
    condition = operand_def(scalar(dtypes.bool_))
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$condition attr-dict"

    def __init__(self, condition: SSAValue):
        super().__init__(operands=[condition])

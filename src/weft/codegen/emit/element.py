"""What an element is in LLVM: in registers, and in memory."""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.llvm.types import I64, llvm_type, storage_type
from weft.dtypes import DType
from weft.ir.types import dtype_of, is_pointer


@dataclass(frozen=True)
class Element:
    """How a tile's elements look in registers and in memory. ``dtype`` is None for pointers, which are 64-bit integers."""

    dtype: DType | None

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return 8 if self.dtype is None else self.dtype.itemsize

    def register_type(self, lanes: int | None) -> ir.Type:
        """The LLVM type of a scalar (None) or vector of such elements between ops."""
        if self.dtype is not None:
            return llvm_type(self.dtype, lanes)
        return I64 if lanes is None else ir.VectorType(I64, lanes)

    def storage_type(self, lanes: int | None) -> ir.Type:
        """The LLVM type of the same in memory."""
        return self.register_type(lanes) if self.dtype is None else storage_type(self.dtype, lanes)

    def to_storage(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        """The value as memory holds it."""
        if self.dtype is None or not self.dtype.is_bool:
            return value
        lanes = value.type.count if isinstance(value.type, ir.VectorType) else None
        return builder.zext(value, self.storage_type(lanes))

    def from_storage(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        """The value as computations want it; any non-zero byte is a true bool."""
        if self.dtype is None or not self.dtype.is_bool:
            return value
        return builder.icmp_unsigned("!=", value, ir.Constant(value.type, None))


def element_of_value(value: SSAValue) -> Element:
    """The element description of a tile or scalar value."""
    return Element(None if is_pointer(value) else dtype_of(value))

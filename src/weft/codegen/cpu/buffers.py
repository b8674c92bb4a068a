"""Tiles in local memory: a program's own arrays, between the register loops that write and read them.

A buffer holds the different registers of a layout one behind the other, each as one vector in its storage type (a
bool is a byte). Small buffers are stack slots, which LLVM turns back into registers once their loops are unrolled. Larger ones
are pieces of the scratch that the launch gives each thread, so that a thread's stack size never limits a tile.
"""

from __future__ import annotations

from llvmlite import ir

from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.views import slot_count, slots
from weft.codegen.emit.element import Element
from weft.codegen.llvm.types import I8, I64, has
from weft.codegen.llvm.volatile import make_volatile
from weft.layout import LinearLayout

STACK_REGISTERS = 8
"""Buffers of up to this many registers are stack slots."""


class Buffer:
    """One tile in memory. Registers are addressed by `RegisterIndex` in the layout's own register numbering. ``scratch``: it lies
    in the thread's scratch memory, not in a stack slot."""

    def __init__(self, pointer: ir.Value, element: Element, layout: LinearLayout, *, scratch: bool = False):
        self.pointer = pointer
        self.element = element
        self.layout = layout
        self.scratch = scratch
        self.lanes = layout.in_size("lane")

    @property
    def bytes(self) -> int:
        """Its size in memory."""
        return buffer_bytes(self.element, self.layout)

    def address(self, builder: ir.IRBuilder, index: RegisterIndex, lane: int = 0) -> ir.Value:
        """A pointer to one lane of a register."""
        dynamic, const = index.through(slots(self.layout)).emit(builder)
        stride = self.lanes * self.element.size
        pointer = self.pointer
        if dynamic is not None:
            pointer = builder.gep(pointer, [builder.mul(dynamic, ir.Constant(I64, stride))], source_etype=I8)
        offset = const * stride + lane * self.element.size
        return builder.gep(pointer, [ir.Constant(I64, offset)], source_etype=I8) if offset else pointer

    def load(self, builder: ir.IRBuilder, index: RegisterIndex) -> ir.Value:
        """One register."""
        type_ = self.element.storage_type(self.lanes)
        value = builder.load(self.address(builder, index), typ=type_, align=self._align)
        return self.element.from_storage(builder, value)

    def load_lane(self, builder: ir.IRBuilder, index: RegisterIndex, lane: int) -> ir.Value:
        """One lane of a register, as a scalar."""
        value = builder.load(
            self.address(builder, index, lane), typ=self.element.storage_type(None), align=self.element.size
        )
        return self.element.from_storage(builder, value)

    def store(self, builder: ir.IRBuilder, index: RegisterIndex, value: ir.Value) -> None:
        """Replaces one register.

        LLVM writes a select between what memory holds and something else, as a running maximum is, by a masked store. AVX2's
        take tens of cycles on AMD's CPUs, and loads behind them wait. It leaves volatile stores alone; stack slots must not have
        any, since it would not turn them into registers."""
        value = self.element.to_storage(builder, value)
        store = builder.store(value, self.address(builder, index), align=self._align)
        if self.scratch and isinstance(value, ir.SelectInstr) and has(builder, "slow_masked_stores"):
            make_volatile(store)

    @property
    def _align(self) -> int:
        return min(64, self.lanes * self.element.size)


def buffer_bytes(element: Element, layout: LinearLayout) -> int:
    """Bytes a tile needs, each different register once."""
    return slot_count(layout) * layout.in_size("lane") * element.size


class BufferPool:
    """Hands out buffers: stack slots from the function's entry block, or consecutive pieces of scratch memory."""

    def __init__(self, entry: ir.IRBuilder, scratch: ir.Value):
        self._entry = entry
        self._scratch = scratch
        self.used = 0
        self.offset_of_last = 0
        """Where in scratch memory the latest piece begins."""

    def allocate(self, element: Element, layout: LinearLayout) -> Buffer:
        """A new buffer; its contents are undefined."""
        size = buffer_bytes(element, layout)
        if slot_count(layout) > STACK_REGISTERS:
            return Buffer(self.bytes(size), element, layout, scratch=True)
        pointer = self._entry.alloca(ir.ArrayType(I8, size))
        pointer.align = 64
        pointer.type = ir.PointerType()  # llvmlite's typed pointers of stack slots would restrict stores
        return Buffer(pointer, element, layout)

    def bytes(self, size: int) -> ir.Value:
        """A pointer to so many bytes of scratch memory."""
        self.offset_of_last = self.used
        pointer = self._entry.gep(self._scratch, [ir.Constant(I64, self.used)], source_etype=I8)
        self.used += -(-size // 64) * 64
        return pointer

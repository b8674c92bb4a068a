"""The emission of a kernel for the threads of a block.

Every op is emitted once, in program order, for all threads: a tile is the `File` of registers that its layout gives a thread.
What threads do differently follows from their number: an index, lane or address is the XOR of one column for each bit of the
thread (`Threads.linear`), because layouts are linear.

Scalars are the same in all threads. So branches and loops on them are taken by all threads together, and barriers inside them
are safe. What could break that is read by one thread and told to the others (`Threads.publish`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from weft.codegen.emit.context import Emit, Facts, Grid, Lowering, Slot
from weft.codegen.emit.control import ScalarSlot
from weft.codegen.emit.element import element_of_value
from weft.codegen.llvm.types import I32, I64, intrinsic, splat
from weft.codegen.nvidia.debug import Lines
from weft.codegen.nvidia.files import File, chunk_sizes
from weft.codegen.nvidia.products import product
from weft.ir import tile
from weft.ir.types import layout_of, shape_of
from weft.layout import LinearLayout
from weft.options import Options
from weft.target import GpuTarget

LANE_BITS = 5


class FileSlot:
    """A place for a tile's registers: a stack slot for each vector, which LLVM turns into registers."""

    def __init__(self, threads: Threads, value: SSAValue):
        element = element_of_value(value).register_type(None)
        registers = layout_of(value).in_size("register")
        self._threads = threads
        self._types = [ir.VectorType(element, size) for size in chunk_sizes(registers)]
        self._slots = [threads.entry.alloca(type_) for type_ in self._types]

    def put(self, value: SSAValue) -> None:
        """Stores a tile."""
        self.write(self._threads.files[value])

    def get(self, value: SSAValue) -> None:
        """Loads the tile for ``value``."""
        self._threads.files[value] = self.read()

    def write(self, file: File) -> None:
        """Stores a file."""
        for chunk, slot in zip(file, self._slots, strict=True):
            self._threads.builder.store(chunk, slot)

    def read(self) -> File:
        """The file stored last."""
        builder = self._threads.builder
        return tuple(builder.load(slot, typ=type_) for slot, type_ in zip(self._slots, self._types, strict=True))


class Threads(Emit):
    """The emission of one kernel; see the module. ``files`` has the registers of tiles, ``words`` those that were
    read from a buffer, as words of 32 bits; ``shared`` is the block's scratch, in ``target``'s shared memory."""

    def __init__(
        self,
        function: ir.Function,
        lowerings: Mapping[type[Operation], Lowering],
        options: Options,
        facts: Facts,
        grid: Grid,
        target: GpuTarget,
        warps: int,
        shared: ir.Value,
    ):
        super().__init__(function, lowerings, options, facts, grid)
        self.target = target
        self.machine = target.name
        self.warps = warps
        self.shared = shared
        self.lines: Lines | None = None
        self.files: dict[SSAValue, File] = {}
        self.words: dict[SSAValue, Sequence[ir.Value]] = {}
        self.thread = intrinsic(self.entry, "nvvm.read.ptx.sreg.tid.x", [], I32, [])
        self._linear: dict[tuple[int, ...], ir.Value] = {}

    # -- what the shared lowerings ask -----------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Emits the ops of a block in their order."""
        for op in block.ops:
            if not op.has_trait(IsTerminator):
                if self.lines is not None:
                    self.builder.debug_metadata = self.lines.of(op)
                self.lower(op)

    def compute(self, op: Operation, operands: Sequence[ir.Value]) -> ir.Value:
        """One elementwise op on scalars or vectors."""
        found = product(self.builder, op, operands) if isinstance(op, tile.BinaryOp) else None
        return super().compute(op, operands) if found is None else found

    def slot(self, value: SSAValue) -> Slot:
        """A place for a tile or scalar."""
        if shape_of(value):
            return FileSlot(self, value)
        return ScalarSlot(self, element_of_value(value).register_type(None))

    def carry(self, values: Sequence[SSAValue], slots: Sequence[Slot]) -> None:
        """Hands on what an iteration yields."""
        for value, slot in zip(values, slots, strict=True):
            slot.put(value)

    def back_edge(self, loop: scf.ForOp | scf.WhileOp) -> None:
        """Nothing: a launch on a GPU cannot be stopped."""

    # -- threads ---------------------------------------------------------------------------------------------------------

    def linear(self, columns: Sequence[int]) -> ir.Value:
        """The XOR of the columns whose bit is set in the thread's number, as i32. The first five columns are those of the lane.

        Computed at the function's start, once for each list of columns.
        """
        key = tuple(columns)
        if key not in self._linear:
            self._linear[key] = xor_of_columns(self.entry, self.thread, key)
        return self._linear[key]

    def thread_bit(self, bit: int) -> ir.Value:
        """Whether a bit of the thread's number is set, as i1."""
        return self.entry.icmp_unsigned("!=", self.linear((*(0,) * bit, 1)), ir.Constant(I32, 0))

    def first_copy(self, columns: Sequence[int]) -> ir.Value | None:
        """Whether this thread is the first of those that hold the same: its number has no bit whose column is 0. None where no
        threads hold the same."""
        return self.without(sum(1 << bit for bit, column in enumerate(columns) if not column))

    def without(self, mask: int) -> ir.Value | None:
        """Whether this thread's number has no bit of the mask; None for a mask without bits."""
        if not mask:
            return None
        return self.entry.icmp_unsigned("==", self.entry.and_(self.thread, ir.Constant(I32, mask)), ir.Constant(I32, 0))

    # -- shared memory ---------------------------------------------------------------------------------------------------

    def shared_address(self, offset: ir.Value, immediate: int) -> ir.Value:
        """The pointer to byte ``offset + immediate`` of the block's scratch."""
        at = self.builder.gep(self.shared, [self.builder.zext(offset, I64)], source_etype=ir.IntType(8))
        return self.behind(at, immediate)

    def behind(self, pointer: ir.Value, immediate: int) -> ir.Value:
        """The pointer to a byte behind a pointer."""
        if not immediate:
            return pointer
        return self.builder.gep(pointer, [ir.Constant(I64, immediate)], source_etype=ir.IntType(8))


def thread_columns(layout: LinearLayout) -> tuple[int, ...]:
    """The columns of a layout's lanes, then of its warps."""
    warps = layout.columns("warp") if "warp" in layout.in_dims else ()
    return (*layout.columns("lane"), *warps)


def xor_of_columns(builder: ir.IRBuilder, number: ir.Value, columns: Sequence[int]) -> ir.Value:
    """The XOR of columns by the bits of ``number``, an i32 or a vector of them: bits that move by one distance are moved
    together."""
    moved: dict[int, int] = {}
    for bit, column in enumerate(columns):
        for place in range(column.bit_length()):
            if column >> place & 1:
                moved[place - bit] = moved.get(place - bit, 0) | 1 << bit
    result: ir.Value | None = None
    for distance, mask in sorted(moved.items()):
        part = builder.and_(number, splat(mask, number.type))
        if distance:
            shift = builder.shl if distance > 0 else builder.lshr
            part = shift(part, splat(abs(distance), number.type))
        result = part if result is None else builder.xor(result, part)
    return splat(0, number.type) if result is None else result

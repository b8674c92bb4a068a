"""The registers of tiles, on demand.

A tile value is never emitted as a whole. It is a recipe that gives the vector of any of its registers at any `RegisterIndex`: by
reading its buffer, or by emitting the op that computes it, once per iteration of the loops it depends on. A lane alone is made
with scalar instructions where the op is one that addresses and masks are made of.

What has been computed is remembered by scope: it holds where the code that computed it dominates.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import NamedTuple, TypeAlias, TypeGuard

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft import dtypes
from weft.codegen.cpu import rearranging
from weft.codegen.cpu.beyond import Beyond
from weft.codegen.cpu.buffers import Buffer, BufferPool
from weft.codegen.cpu.cost import work
from weft.codegen.cpu.filling_groups import GroupFilling, Packed
from weft.codegen.cpu.generators import generated_lane, generated_register
from weft.codegen.cpu.later import Later
from weft.codegen.cpu.loops import Terms, over_registers
from weft.codegen.cpu.near import Near, nearest
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.schedule import Columns, Item, Schedule, trace
from weft.codegen.cpu.sum_order import SumOrder
from weft.codegen.cpu.views import used_registers
from weft.codegen.emit.context import Emit, Facts, Grid, Lowering
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.faults import Faults
from weft.codegen.emit.views import columns_of_view
from weft.codegen.llvm import arith
from weft.codegen.llvm.masked import unknown_place
from weft.codegen.llvm.types import I1, I32, I64, POINTER, Module, intrinsic
from weft.ir import tile
from weft.ir.cpu import MultiplyOp
from weft.ir.direct import defining_op, operands_of
from weft.ir.types import dtype_of, is_pointer, layout_of
from weft.ir.unsupported import name_op
from weft.layout import LinearLayout
from weft.options import Options
from weft.target import CpuTarget
from weft.transforms.invariant_loads import is_invariant

LONG_BLOCK = 512
"""The LLVM instructions after which a basic block is split."""


class Key(NamedTuple):
    """A register of a tile, or one ``lane`` of it (-1: all), among the values remembered in a scope. ``ahead``: what it will be
    so many rows later (`weft.codegen.cpu.rows_ahead`), also of a scalar."""

    value: SSAValue
    at: RegisterIndex
    lane: int = -1
    ahead: int = 0


def _register(value: SSAValue, index: RegisterIndex) -> Key:
    """The register, by its first number where several hold the same."""
    layout = layout_of(value)
    bits, used = layout.in_bits("register"), used_registers(layout)
    return Key(value, index if used == (1 << bits) - 1 else index.within(used))


def _is_one_division(op: Operation) -> bool:
    """Whether an op divides integers, the same ones in all lanes of a register. Machines divide vectors of them lane by lane, or
    as floats in many instructions."""
    if not isinstance(op, tile.BinaryOp) or op.kind.data not in ("div", "rem") or dtype_of(op.result).is_float:
        return False
    lanes = layout_of(op.result).columns("lane")
    return bool(lanes) and not any(lanes)


Fetch: TypeAlias = Callable[[ir.Value | None, ir.Value | None, tuple[int, int]], None]
"""Prefetches a block of a tile that begins at a row and a column, None for the first, and has so many of them."""


class Registers(Emit):
    """The emission of a kernel for a CPU, as far as it concerns the registers of tiles; see the module."""

    machine = "the CPU"

    def __init__(
        self,
        function: ir.Function,
        lowerings: Mapping[type[Operation], Lowering],
        options: Options,
        facts: Facts,
        grid: Grid,
        faults: Faults,
        target: CpuTarget,
        scratch: ir.Value,
    ):
        super().__init__(function, lowerings, options, facts, grid)
        self.faults = faults
        self.target = target
        self.pool = BufferPool(self.entry, scratch)
        self.buffers: dict[SSAValue, Buffer] = {}
        self.true_masks: frozenset[SSAValue] = frozenset()
        """Masks that hold everywhere in the code that is being emitted."""
        self.ragged_masks: frozenset[SSAValue] = frozenset()
        """Masks of which some hold elements that are false, in the code that is being emitted."""
        self.begun_masks: frozenset[SSAValue] = frozenset()
        """Of these, masks that hold for the first element of the register that is being emitted."""
        self.cleared: list[int] = []
        """Offsets in scratch memory of int64 words that are 0 when a thread begins a launch."""
        self.alone: ir.Value | None = None
        """Whether the program's thread has all atomics of the process to itself; None where it never has."""
        self.beyond: Mapping[BlockArgument | None, Beyond] = {}
        """Arguments that the thread may have a copy of, where updates may be beyond it (`weft.codegen.cpu.copies`)."""
        self.streams: Mapping[Operation, ir.Value] = {}
        """Stores that may go past the caches (`weft.codegen.cpu.streaming`), each with whether they do in this launch."""
        self.uses_tiles = False
        """Whether the kernel uses the tile registers of AMX."""
        self.paired = False
        """Whether the kernel has another function, whose sums must be added up in the same order."""
        self.present: ir.Value = ir.Constant(I32, 1)
        """How many programs the function runs (i32)."""
        self.most = 1
        """The most programs that it may run, if it may run any number."""
        self.later = Later()
        """The register loops behind the one that is being emitted, where rows far apart are prefetched: in a loop's body."""
        self.by_halves = False
        """Whether the register loop that is being emitted loads long vectors by halves (`weft.codegen.cpu.halved_loads`)."""
        self.halves_apart = False
        """Whether it uses them by halves, too."""
        self.together = 1
        """How many programs of the grid the function runs at once."""
        self.far: Mapping[Operation, ir.Value] = {}
        """Loads that prefetch with the register that is being emitted, by how many bytes (`weft.codegen.cpu.far_ahead`)."""
        self.every_second: frozenset[SSAValue] = frozenset()
        """Pointers whose lanes are two elements apart in the loop that is being emitted (`weft.codegen.cpu.strided`)."""
        self.parts = 1
        """In how many parts the loop that is being emitted goes over its tiles."""
        self.walked = 1
        """The longest dimension of the tiles all of whose registers are visited."""
        self.orders: dict[tile.ReduceOp, set[SumOrder]] = {}
        """The orders in which reductions are combined, in the code so far."""
        self.reduced: set[Operation] = set()
        """Reductions whose results the loop before has left, in place of what it carried (`weft.codegen.cpu.walk_rows`)."""
        self.fillings: dict[MultiplyOp, GroupFilling] = {}
        """How products fill their right panels by groups (`weft.codegen.cpu.filling_groups`)."""
        self.results: dict[MultiplyOp, Fetch] = {}
        """How products prefetch where their sums are stored (`weft.codegen.cpu.results_ahead`)."""
        self.packed: Packed | None = None
        """Where a stretch is left that is being packed, where a product multiplies it meanwhile."""
        self._memo: list[dict[Key, ir.Value]] = [{}]
        self._views: dict[Operation, Columns] = {}
        """`columns_of_view` of the views so far. Emission changes no op."""
        self._is_split = False

    @contextmanager
    def knowing(
        self,
        *,
        true: frozenset[SSAValue] = frozenset(),
        ragged: frozenset[SSAValue] = frozenset(),
        begun: frozenset[SSAValue] = frozenset(),
    ) -> Generator[None]:
        """Emits code where masks are known to be true, beside those that are already, or some of them not to be."""
        before = self.true_masks, self.ragged_masks, self.begun_masks
        self.true_masks, self.ragged_masks, self.begun_masks = before[0] | true, ragged, begun
        with self.scope():
            yield
        self.true_masks, self.ragged_masks, self.begun_masks = before

    @cached_property
    def mapped(self) -> ir.Value:
        """The address of memory on the stack that a register of any type may be loaded from."""
        return unknown_place(self.entry, self.entry.alloca(ir.ArrayType(I64, self.target.lanes)))

    @abstractmethod
    def load_register(self, op: tile.LoadOp, index: RegisterIndex) -> ir.Value:
        """One register of a load."""

    @abstractmethod
    def store_register(self, op: tile.StoreOp, index: RegisterIndex) -> None:
        """One register of a store."""

    @abstractmethod
    def load_lane(self, op: tile.LoadOp, index: RegisterIndex, lane: int) -> ir.Value:
        """One lane of a load whose mask, if any, is true there."""

    @abstractmethod
    def home(self, value: SSAValue) -> Buffer:
        """The buffer in which a value of the block that is being emitted shall live."""

    @abstractmethod
    def reordered(self, op: scf.ForOp) -> bool:
        """Emits a loop that has an order of its own: one that only accumulates (`weft.codegen.cpu.accumulate`), or fills a panel
        by rows (`weft.codegen.cpu.filling`). Whether it is one."""

    @abstractmethod
    def delayed(self, op: scf.IfOp) -> bool:
        """Whether a product fills the panel that a branch fills (`weft.codegen.cpu.filling_groups`)."""

    @abstractmethod
    def item(self, item: Item, among: int = -1, within: Terms = ()) -> None:
        """Emits an item of the schedule at hand; a register loop as `over_registers` has it."""

    @abstractmethod
    def scheduled(self, schedule: Schedule, buffers: dict[SSAValue, Buffer]) -> AbstractContextManager[None]:
        """Items that are emitted inside are of this schedule, whose values live in ``buffers``."""

    def fault(self, site: int, address: ir.Value) -> None:
        """Reports the failed access of a checked kernel, and leaves the program."""
        self.faults.leave(self.builder, site, self.grid.ids, address)

    # -- whole registers -------------------------------------------------------------------------------------------------

    def vector(self, value: SSAValue, index: RegisterIndex) -> ir.Value:
        """The vector of one register of a tile."""
        return self.demand(_register(value, index), self._vector_sources, self._vector)

    def remember(self, value: SSAValue, index: RegisterIndex, vector: ir.Value) -> None:
        """Records a register that a root has just computed."""
        self._memo[-1][_register(value, index)] = vector

    def repeats(self, branch: ir.Instruction) -> None:
        """LLVM does not unroll what `over_registers` has unrolled as far as it shall be."""
        module = self.builder.module
        if isinstance(module, Module):
            branch.set_metadata("llvm.loop", module.unrolled)

    def through(self, view: Operation, index: RegisterIndex) -> RegisterIndex:
        """The register of a view's operand that is the view's register ``index``."""
        columns = self._views.get(view)
        if columns is None:
            columns = self._views[view] = columns_of_view(view)
        return index.through(columns)

    def _vector_sources(self, key: Key) -> list[Key]:
        """The registers from which one is computed; none for what is read, known, loaded or made of scalars."""
        value, index = key.value, key.at
        op = defining_op(value)
        if op is None or value in self.buffers or value in self.true_masks:
            return []
        if tile.is_a(op, tile.Generator) or type(op) is tile.LoadOp or _is_one_division(op):
            return []
        if tile.is_a(op, tile.View):
            return [_register(operands_of(op)[0], self.through(op, index))]
        if rearranging.is_rearranging(op):
            return [_register(*each) for each in rearranging.sources(op, value, index)]
        return [_register(operand, index) for operand in operands_of(op)]

    def _vector(self, key: Key) -> ir.Value:
        value, index = key.value, key.at
        if value in self.buffers:
            return self.buffers[value].load(self.builder, index)
        op = defining_op(value)
        assert op is not None, f"tile argument {value} has no buffer"
        if value in self.true_masks:
            return arith.constant(dtypes.bool_, 1, layout_of(value).in_size("lane"))
        match op:
            case _ if tile.is_a(op, tile.Generator):
                return generated_register(self, op, index)
            case _ if tile.is_a(op, tile.View):
                return self.vector(operands_of(op)[0], self.through(op, index))
            case _ if type(op) is tile.LoadOp and is_invariant(op):
                return self.load_register(op, index)
            case _ if _is_one_division(op):
                return self.splat(self.lane(value, index, 0), layout_of(value).in_size("lane"))
            case _ if rearranging.is_rearranging(op):
                found = [self.vector(*each) for each in rearranging.sources(op, value, index)]
                return rearranging.vector(self, op, index, found)
            case _:
                return self.compute(op, [self.vector(operand, index) for operand in operands_of(op)])

    # -- single lanes ----------------------------------------------------------------------------------------------------

    def lane(self, value: SSAValue, index: RegisterIndex, lane: int) -> ir.Value:
        """One lane of one register as a scalar, computed with scalar instructions where that is possible."""
        return self.demand(Key(value, index, lane), self._lane_sources, self._lane)

    def _lane_sources(self, key: Key) -> list[Key]:
        """The scalars from which one lane is computed; none where it is taken out of a vector."""
        value, index, lane, _ = key
        op = value.owner
        if value in self.buffers or not isinstance(op, Operation) or tile.is_a(op, tile.Generator):
            return []
        if tile.is_a(op, tile.View):
            return [Key(operands_of(op)[0], self.through(op, index), lane)]
        if tile.is_a(op, tile.Addressing) and Key(value, index) not in self._memo[-1]:
            near = self._nearest(value, index, lane)
            if near.distance:
                return [Key(value, near.at, near.lane)]
            return [Key(operand, index, lane) for operand in operands_of(op)]
        if self._is_loaded_alone(op, key):
            return [Key(op.pointer, index, lane)]
        return []

    def _is_loaded_alone(self, op: Operation, key: Key) -> TypeGuard[tile.LoadOp]:
        """Whether one lane of a load is loaded, rather than taken out of its register."""
        return self.is_loadable(op) and self._remembered(_register(key.value, key.at)) is None

    def is_loadable(self, op: object) -> TypeGuard[tile.LoadOp]:
        """Whether an op loads what the kernel does not change, under a mask that is true: at any time again, and by lane."""
        if type(op) is not tile.LoadOp or not is_invariant(op):
            return False
        return op.mask is None or op.mask in self.true_masks

    def is_loaded_by_lane(self, value: SSAValue, index: RegisterIndex) -> bool:
        """Whether `lane` loads each lane of a register, and at most casts it between integers."""
        while isinstance(op := value.owner, Operation) and value not in self.buffers:
            if tile.is_a(op, tile.View):
                value, index = operands_of(op)[0], self.through(op, index)
            elif isinstance(op, tile.CastOp) and not any(dtype_of(each).is_float for each in (op.source, op.result)):
                value = op.source
            else:
                return self._is_loaded_alone(op, Key(value, index))
        return False

    def _lane(self, key: Key) -> ir.Value:
        value, index, lane, _ = key
        if value in self.buffers:
            return self.buffers[value].load_lane(self.builder, index, lane)
        op = value.owner
        assert isinstance(op, Operation), f"tile argument {value} has no buffer"
        if tile.is_a(op, tile.Generator):
            return generated_lane(self, op, index, lane)
        if tile.is_a(op, tile.View):
            return self.lane(operands_of(op)[0], self.through(op, index), lane)
        if tile.is_a(op, tile.Addressing) and Key(value, index) not in self._memo[-1]:
            near = self._nearest(value, index, lane)
            if near.distance:
                return self.builder.add(self.lane(value, near.at, near.lane), ir.Constant(I64, near.distance))
            return self.compute(op, [self.lane(operand, index, lane) for operand in operands_of(op)])
        if self._is_loaded_alone(op, key):
            return self.load_lane(op, index, lane)
        return self.builder.extract_element(self.vector(value, index), ir.Constant(I32, lane))

    def _nearest(self, value: SSAValue, index: RegisterIndex, lane: int) -> Near:
        """From which lane a lane of a tile of pointers is known to be how far; from itself in other tiles. Axis analysis says so.
        Accesses of whole registers rely on it, too."""
        if not is_pointer(value):
            return Near(index, lane, 0)
        return nearest(layout_of(value), self.facts.axis[value], index, lane)

    # -- memory of values ------------------------------------------------------------------------------------------------

    def demand(self, goal: Key, sources: Callable[[Key], list[Key]], emit: Callable[[Key], ir.Value]) -> ir.Value:
        """What is remembered under a key, once it and all its sources have been emitted. Not by recursion: an unrolled loop
        makes chains of ops that are longer than Python's stack."""
        pending = [goal]
        try:
            while pending:
                key = pending[-1]
                if self._remembered(key) is None:
                    missing = [source for source in sources(key) if self._remembered(source) is None]
                    if missing:
                        pending.extend(reversed(missing))
                        continue
                    self._memo[-1][key] = emit(key)
                    self.split_long_block()
                pending.pop()
        except Exception as error:
            if isinstance(owner := pending[-1].value.owner, Operation):
                name_op(error, owner)
            raise
        found = self._remembered(goal)
        assert found is not None, f"{goal} has not been emitted"
        return found

    def _remembered(self, key: Key) -> ir.Value | None:
        for scope in reversed(self._memo):
            found = scope.get(key)
            if found is not None:
                return found
        return None

    @contextmanager
    def scope(self) -> Generator[None]:
        """Values remembered inside are forgotten at the end: they do not dominate what follows."""
        self._memo.append({})
        yield
        self._memo.pop()

    def split_long_block(self) -> None:
        """Continues in a new LLVM block if the current one is long.

        LLVM selects instructions and allocates registers block by block, in time that grows with the square of a block's
        length. It joins blocks again, and moves computations into a block's only successor, where nothing stands between
        them. So control passes on by two ways, chosen by a word of memory, of which one holds an instruction that LLVM must
        keep: an empty piece of assembly. At run time that is a load and a branch in hundreds of instructions.
        """
        if len(self.builder.block.instructions) >= LONG_BLOCK:
            self._is_split = True
            self._split()

    def end_blocks(self) -> None:
        """Ends the program's last block before it returns: LLVM moves computations into a block that returns."""
        if self._is_split:
            self._split()

    def _split(self) -> None:
        builder = self.builder
        word = builder.load_atomic(self.faults.record, "monotonic", 8, typ=I64)
        with builder.if_then(builder.icmp_unsigned("!=", word, ir.Constant(I64, 0)), likely=False):
            builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], side_effect=True)

    # -- whole tiles -----------------------------------------------------------------------------------------------------

    def fill(self, value: SSAValue, target: Buffer, among: int = -1, within: Terms = ()) -> None:
        """Writes the registers of a tile to a buffer: those of `over_registers`, else all."""
        self.note_walk(layout_of(value))
        needs: dict[SSAValue, set[Columns]] = {}
        trace([value], layout_of(value), needs, self.buffers)
        over_registers(
            self,
            layout_of(value),
            None,
            [],
            work(needs),
            lambda index, _copy, _first: target.store(self.builder, index, self.vector(value, index)),
            among=among,
            within=within,
        )

    def note_walk(self, layout: LinearLayout) -> None:
        """Notes that all registers of a layout are visited, also those that hold nothing that is wanted."""
        self.walked = max(self.walked, *layout.shape)

    def copy(self, source: Buffer, target: Buffer) -> None:
        """Copies a whole buffer to another of the same layout."""
        size, volatile = ir.Constant(I64, source.bytes), ir.Constant(I1, 0)
        operands = [target.pointer, source.pointer, size, volatile]
        intrinsic(self.builder, "memcpy", operands, ir.VoidType(), [POINTER, POINTER, I64])

    def in_memory(self, value: SSAValue) -> Buffer:
        """The value's buffer; a recipe from an outer block is written to a new one."""
        if value in self.buffers:
            return self.buffers[value]
        buffer = self.pool.allocate(element_of_value(value), layout_of(value))
        self.fill(value, buffer)
        return buffer

"""Tile IR, laid out, to LLVM IR for one program of the grid, on a CPU.

`weft.codegen.cpu.fusion` decides which register loops a block becomes and `weft.codegen.cpu.placement` which tiles have buffers;
this module walks that schedule. Registers are emitted on demand inside the loops (`weft.codegen.cpu.values`), other ops by the
machine's table (`weft.codegen.cpu.lowering`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from llvmlite import ir
from xdsl.dialects import func, scf
from xdsl.ir import Block, Operation, SSAValue

from weft.codegen.cpu.access import Accesses
from weft.codegen.cpu.accumulate import accumulation_of, emit_accumulation
from weft.codegen.cpu.atomic_access import atomic
from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.cost import Costs, work
from weft.codegen.cpu.counted import loop_to
from weft.codegen.cpu.extents import extent_of
from weft.codegen.cpu.fill_panels import fill_rows
from weft.codegen.cpu.filling import filling_of
from weft.codegen.cpu.filling_groups import filled_by_groups
from weft.codegen.cpu.fusion import Fusion
from weft.codegen.cpu.gather import gathered
from weft.codegen.cpu.halved_loads import reads_streams
from weft.codegen.cpu.histogram import Histogram
from weft.codegen.cpu.later import Later
from weft.codegen.cpu.loops import Terms, axis_bits, over_registers
from weft.codegen.cpu.panels import guard_of, pack, row_bits
from weft.codegen.cpu.placement import BufferPlacement
from weft.codegen.cpu.reduce import Reduction
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.results_ahead import results_of
from weft.codegen.cpu.scan import Scan, goes_by_rows
from weft.codegen.cpu.schedule import Item, RegisterLoop, Schedule, WriteBack
from weft.codegen.cpu.starts import is_skipped, start_of
from weft.codegen.cpu.strided import every_second
from weft.codegen.cpu.strips import Strips, emit_strips
from weft.codegen.cpu.sum_order import ACCUMULATORS
from weft.codegen.cpu.turned import Turn, emit_turn, items_or_turns
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.versions import mask_versions
from weft.codegen.cpu.views import used_registers
from weft.codegen.cpu.walk_rows import emit_walk
from weft.codegen.cpu.walks import walk_of
from weft.codegen.emit.context import Facts, Grid, Lowering, Slot
from weft.codegen.emit.control import ScalarSlot
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.faults import Faults
from weft.codegen.llvm.types import I32
from weft.ir import cpu, tile
from weft.ir.types import is_tile, layout_of
from weft.ir.unsupported import name_op
from weft.options import Options
from weft.target import CpuTarget


class TileSlot:
    """A buffer for a tile that control flow merges. A carried tile's buffer is both what the body reads and what it writes;
    placement has seen to it that nothing reads the old value afterwards."""

    def __init__(self, registers: Registers, buffer: Buffer, product: cpu.MultiplyOp | None = None):
        """``product`` is the only reader of a carried tile, if that is one."""
        self._registers = registers
        self._buffer = buffer
        self._product = product

    def put(self, value: SSAValue) -> None:
        """Writes a tile to the buffer, unless it lives there. Of the first tile that is put only the rows that the product reads,
        and where its sums begin in registers (`weft.codegen.cpu.starts`) only if the loop is skipped."""
        product, self._product = self._product, None
        if self._registers.buffers.get(value) is self._buffer:
            return
        if product is not None and (start := start_of(product)) is not None and start.loop is not None:
            with self._registers.builder.if_then(is_skipped(self._registers, start.loop), likely=False):
                self._write(value, _rows_wanted(product))
        else:
            self._write(value, None if product is None else _rows_wanted(product))

    def _write(self, value: SSAValue, rows: SSAValue | None) -> None:
        """Writes so many rows of a tile, None all."""
        registers = self._registers
        bits = tuple(axis_bits(self._buffer.layout, "register", 0)) if rows is not None else ()
        if rows is None or 1 << len(bits) != self._buffer.layout.shape[0]:
            registers.fill(value, self._buffer)
            return
        with loop_to(registers, registers.scalar(rows)) as row:
            registers.fill(value, self._buffer, ~sum(bits), ((Counter(row, len(bits)), bits),))

    def get(self, value: SSAValue) -> None:
        """Makes the buffer the home of ``value``."""
        self._registers.buffers[value] = self._buffer


def _may_take_long(loop: scf.ForOp | scf.WhileOp) -> bool:
    """Whether a loop's back edge looks whether the launch stops: not in a ``for`` loop of plain scalar ops.

    A look costs about a nanosecond. In loops over tiles that is within the noise of several percent (measured: 0.89 to 1.02 of
    the time without it; softmax of 256 columns: 1.02). A loop of a few scalar ops would take up to twice as long, and is over
    soon without it. Every ``while`` loop looks, since it may wait for another program.
    """
    return isinstance(loop, scf.WhileOp) or any(
        isinstance(op, scf.ForOp | scf.WhileOp | tile.AtomicRmwOp | tile.AtomicCasOp)
        or any(map(is_tile, (*op.operands, *op.results)))
        for op in loop.body.walk()
    )


def _product_of(carried: SSAValue) -> cpu.MultiplyOp | None:
    """The product that adds to a tile which a loop carries, if nothing else reads that or the sums."""
    product = next((use.operation for use in carried.uses), None) if carried.has_one_use() else None
    if not isinstance(product, cpu.MultiplyOp) or product.acc is not carried or not product.result.has_one_use():
        return None
    return product


def _rows_wanted(product: cpu.MultiplyOp) -> SSAValue | None:
    """How many rows are wanted of what a product adds to, if that is known before its loop. None where all are."""
    loop, rows = product.parent_op(), product.rows
    known = (
        rows.owner.parent_op() is not loop if isinstance(rows.owner, Operation) else rows.owner is not product.parent
    )
    return rows if known and isinstance(loop, scf.ForOp) and not isinstance(rows.owner, tile.ConstantOp) else None


def _named(loop: RegisterLoop) -> Operation:
    """The op named for what fails outside the loop's body: a reduction, which is finished there, else the first."""
    ops = [root.op if isinstance(root, WriteBack) else root for root in loop.roots]
    ops += [value.owner for value in loop.kept if isinstance(value.owner, Operation)]
    return next((op for op in ops if isinstance(op, tile.ReduceOp)), ops[0])


class Emitter(Registers):
    """Emits the body of one kernel function into an LLVM function; see the module."""

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
        super().__init__(function, lowerings, options, facts, grid, faults, target, scratch)
        self._accesses = Accesses(self)
        self._fusion = Fusion(facts.base_of, options.disjoint, facts.axis)
        self._placement = BufferPlacement(Costs(facts.axis))
        self._schedules: list[tuple[Schedule, dict[SSAValue, Buffer]]] = []
        self._staged: list[tuple[Buffer, Buffer]] = []

    def emit_function(self, op: func.FuncOp, arguments: Sequence[ir.Value]) -> int:
        """Emits the whole kernel; ``arguments`` are its scalars (pointers as i64). Returns the scratch bytes it needs."""
        self.scalars.update(zip(op.body.block.args, arguments, strict=True))
        self.block(op.body.block)
        self.end_blocks()
        self.builder.ret(ir.Constant(I32, 0))
        self.entry.branch(self.start)
        return self.pool.used

    # -- what the shared lowerings ask -----------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Emits a block's schedule."""
        schedule = self._schedule(block)
        self._schedules.append((schedule, {}))
        staged, self._staged = self._staged, []
        outer, self.later = self.later, self._later(block, schedule)
        for item, behind in items_or_turns(self, schedule):
            self.split_long_block()
            for loop in item.loops if isinstance(item, Turn) else [item]:
                if isinstance(loop, RegisterLoop):
                    self.later.begin()
            if isinstance(item, Turn):
                emit_turn(self, item)
            else:
                self.results.update(results_of(self, item, behind))
                self.item(item)
        self.later = outer
        for source, target in self._staged:
            self.copy(source, target)
        self._staged = staged
        self._schedules.pop()

    def _later(self, block: Block, schedule: Schedule) -> Later:
        if "prefetch-rows" not in self.target.enabled or not isinstance(block.parent_op(), scf.ForOp):
            return Later()
        return Later([item for item in schedule.items if isinstance(item, RegisterLoop)], schedule.buffered)

    def _schedule(self, block: Block) -> Schedule:
        return self._placement.place(block, self._fusion.items(block))

    def item(self, item: Item, among: int = -1, within: Terms = ()) -> None:
        """Emits an item of a schedule; a register loop as `over_registers` has it."""
        if not isinstance(item, RegisterLoop):
            self.lower(item)
            return
        try:
            self._register_loop(item, among, within)
        except Exception as error:
            name_op(error, _named(item))
            raise

    @contextmanager
    def scheduled(self, schedule: Schedule, buffers: dict[SSAValue, Buffer]) -> Generator[None]:
        """Items that are emitted inside are of this schedule."""
        self._schedules.append((schedule, buffers))
        yield
        self._schedules.pop()

    def reordered(self, op: scf.ForOp) -> bool:
        """Emits a loop that has an order of its own; whether it is one."""
        schedule = self._schedule(op.body.block)
        found = accumulation_of(op, schedule, self.target.sum_bytes, any_number=self.most > 1)
        if isinstance(found, Strips):
            emit_strips(self, op, found)
        elif found is not None and (walk := walk_of(op, found, self.target, self.facts.axis)) is not None:
            emit_walk(self, op, walk)
        elif found is not None:
            emit_accumulation(self, op, found)
        elif (filling := filling_of(op, schedule)) is not None:
            fill_rows(self, op, schedule, filling)
        else:
            return False
        return True

    def delayed(self, op: scf.IfOp) -> bool:
        """Whether a product fills the panel that a branch fills."""
        found = filled_by_groups(op, self._schedule)
        if found is not None:
            self.fillings[found[0]] = found[1]
        return found is not None

    def slot(self, value: SSAValue) -> Slot:
        """A buffer for a tile, a stack slot for a scalar."""
        element = element_of_value(value)
        if is_tile(value):
            return TileSlot(self, self.pool.allocate(element, layout_of(value)), _product_of(value))
        return ScalarSlot(self, element.register_type(None))

    def carry(self, values: Sequence[SSAValue], slots: Sequence[Slot]) -> None:
        """Writes the scalars; the block's write-backs have written the tiles."""
        for value, slot in zip(values, slots, strict=True):
            if not is_tile(value):
                slot.put(value)

    def load_register(self, op: tile.LoadOp, index: RegisterIndex) -> ir.Value:
        """One register of a load."""
        return self._accesses.load(op, index)

    def store_register(self, op: tile.StoreOp, index: RegisterIndex) -> None:
        """One register of a store."""
        self._accesses.store(op, index)

    def load_lane(self, op: tile.LoadOp, index: RegisterIndex, lane: int) -> ir.Value:
        """One lane of a load."""
        return self._accesses.load_lane(op, index, lane)

    def home(self, value: SSAValue) -> Buffer:
        """The buffer of a value of the block that is being emitted, which may be another value's that it hands on."""
        schedule, allocated = self._schedules[-1]
        root = value
        while root in schedule.shared:
            root = schedule.shared[root]
        if root in self.buffers:
            return self.buffers[root]
        if root not in allocated:
            allocated[root] = self.pool.allocate(element_of_value(root), layout_of(root))
        return allocated[root]

    # -- register loops --------------------------------------------------------------------------------------------------

    def _register_loop(self, loop: RegisterLoop, among: int = -1, within: Terms = ()) -> None:
        if done := self.reduced.intersection(loop.roots):
            self.reduced -= done
            loop = replace(loop, roots=[root for root in loop.roots if root not in done])
            if not loop.roots and not loop.kept:
                return
        loop.settle(self.buffers)
        reductions = {root: Reduction(self, root, self.home) for root in loop.roots if isinstance(root, tile.ReduceOp)}
        by_rows = not reductions and loop.axis is not None and goes_by_rows(loop.layout, loop.axis)
        scans = {root: Scan(self, root, by_rows=by_rows) for root in loop.roots if isinstance(root, tile.ScanOp)}
        histograms = {
            root: Histogram(self, root, self.home(root.result))
            for root in loop.roots
            if isinstance(root, tile.HistogramOp)
        }
        sources = {root: self.in_memory(root.source) for root in loop.roots if isinstance(root, tile.GatherOp)}
        targets = [(value, self.home(value)) for value in loop.kept]
        ends = None if within else extent_of(self, loop)
        if ends is None:
            self.note_walk(loop.layout)
        else:
            for reduction in reductions.values():
                reduction.ends(ends.ends_before(loop.layout.shape[-1]))
        self.by_halves = "halved-loads" in self.target.enabled and reads_streams(loop, self.buffers)
        write_backs = [(root.value, self._written_back(root)) for root in loop.roots if isinstance(root, WriteBack)]

        def body(index: RegisterIndex, copy: int, first: ir.Value | None) -> None:
            for root in loop.roots:
                self.split_long_block()
                if isinstance(root, WriteBack):
                    continue
                try:
                    if isinstance(root, tile.ReduceOp):
                        reductions[root].step([self.vector(s, index) for s in root.sources], copy, first)
                    elif isinstance(root, tile.ScanOp):
                        found = scans[root].step([self.vector(s, index) for s in root.sources], index, copy, first)
                        for result, vector in zip(root.results_, found, strict=True):
                            self.remember(result, index, vector)
                    elif isinstance(root, tile.HistogramOp):
                        histograms[root].step(index)
                    elif isinstance(root, tile.GatherOp):
                        self.remember(root.result, index, gathered(self, root, sources[root], index))
                    else:
                        self._root(root, index)
                except Exception as error:
                    name_op(error, root)
                    raise
            for value, buffer in targets:
                self.split_long_block()
                buffer.store(self.builder, index, self.vector(value, index))
            vectors = [self.vector(value, index) for value, _ in write_backs]
            for (_, buffer), vector in zip(write_backs, vectors, strict=True):
                buffer.store(self.builder, index, vector)

        together = loop.grouped_bits if self.packed is None else among & used_registers(loop.layout)

        def emit() -> None:
            over_registers(
                self,
                loop.layout,
                loop.axis,
                [*reductions.values(), *scans.values(), *histograms.values()],
                work(loop.needs) + sum(each.work for each in histograms.values()),
                body,
                reverse=bool(loop.reverse),
                by_rows=by_rows,
                unrolled=loop.crossed_bits,
                also=row_bits(loop.packs),
                versions=mask_versions(self, loop),
                together=together.bit_count(),
                among=among,
                within=within,
                accumulators=ACCUMULATORS if self.paired and reductions else 0,
                ends=ends,
                guard=None if within else guard_of(self, loop),
            )

        if (found := every_second(self, loop)) is None:
            emit()
        else:
            with self.builder.if_else(found[0]) as (then, otherwise):
                with then, self.scope():
                    self.every_second = found[1]
                    emit()
                self.every_second = frozenset()
                with otherwise, self.scope():
                    emit()
        self.by_halves = False
        for finished in (*reductions.values(), *histograms.values()):
            finished.publish()
        for value, buffer in targets:
            self.buffers[value] = buffer

    def _written_back(self, root: WriteBack) -> Buffer:
        """Where a write-back writes: the carried tile's buffer, or a copy that becomes it at the end of the block."""
        carried = self.buffers[root.carried]
        if not root.staged:
            return carried
        copy = self.pool.allocate(carried.element, carried.layout)
        self._staged.append((copy, carried))
        return copy

    def _root(self, op: Operation, index: RegisterIndex) -> None:
        match op:
            case tile.LoadOp():
                self.remember(op.result, index, self._accesses.load(op, index))
            case tile.StoreOp():
                self.store_register(op, index)
            case cpu.PackOp():
                pack(self, op, index)
            case _:
                assert isinstance(op, tile.AtomicRmwOp | tile.AtomicCasOp), f"{op.name} is no root of a register loop"
                self.remember(op.result, index, atomic(self, op, index))

    def back_edge(self, loop: scf.ForOp | scf.WhileOp) -> None:
        """Leaves the program where the launch stops."""
        if _may_take_long(loop):
            self.faults.leave_if_stopped(self.builder)

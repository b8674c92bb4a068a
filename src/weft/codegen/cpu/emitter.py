"""Tile IR, laid out, to LLVM IR for one program of the grid.

A tile value is never "emitted" as a whole. Scalars are LLVM values; a tile is a recipe that gives the vector of any of
its registers at any `Index`, by reading a buffer or by emitting the op that computes it, once per iteration
of the loops it depends on. `weft.codegen.cpu.fusion` has decided which register loops a block becomes and
`weft.codegen.cpu.placement` which tiles have buffers; this module walks that schedule.

Pointers are 64-bit integers in registers; an access turns them into LLVM pointers.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import reduce
from typing import Any, NamedTuple

from llvmlite import ir
from xdsl.dialects import func, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from weft import dtypes
from weft.codegen.cpu.access import Accesses
from weft.codegen.cpu.buffers import Buffer, BufferPool, element_of_value
from weft.codegen.cpu.control import emit_for, emit_if, emit_while
from weft.codegen.cpu.cost import Costs
from weft.codegen.cpu.exchange import emit_conversion
from weft.codegen.cpu.fusion import Fusion
from weft.codegen.cpu.index import I64, Index, apply_columns
from weft.codegen.cpu.loops import is_small, last_register, over_registers
from weft.codegen.cpu.masks import decided_by_last, depends_on
from weft.codegen.cpu.microkernel import emit_dot
from weft.codegen.cpu.placement import Placement
from weft.codegen.cpu.reduce import Fold
from weft.codegen.cpu.schedule import RegisterLoop, Schedule, WriteBack, is_tile
from weft.codegen.cpu.views import VIEWS, used_registers, view_columns
from weft.codegen.emit.errors import EmissionError
from weft.codegen.kernel import AccessSite, CompileOptions
from weft.codegen.llvm import arith
from weft.codegen.llvm.types import I1, I8, I32, POINTER, broadcast, intrinsic
from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer, layout_of
from weft.target import CpuTarget
from weft.transforms.axis import AxisInfo
from weft.transforms.invariant_loads import is_invariant

_MADE = (tile.SplatOp, tile.ConstantOp, tile.ArangeOp)
"""Ops whose tiles are made of scalars and constants."""

_SCALAR_TOO = (tile.AddPtrOp, tile.BinaryOp, tile.CastOp, tile.SelectOp, tile.CompareOp, tile.BitcastOp)
"""Ops that are worth computing for one lane alone: those that addresses and masks are made of."""


class Key(NamedTuple):
    """A register of a tile, or one ``lane`` of it (-1: all), among the values remembered in a scope."""

    value: SSAValue
    at: Index
    lane: int = -1


def _register(value: SSAValue, index: Index) -> Key:
    """The register, by its first number where several hold the same."""
    layout = layout_of(value)
    bits, used = layout.in_bits("register"), used_registers(layout)
    if used != (1 << bits) - 1:
        index = index.through(tuple(used & (1 << j) for j in range(bits)))
    return Key(value, index)


class Emitter:
    """Emits the body of one kernel function into an LLVM function; see the module."""

    def __init__(
        self,
        function: ir.Function,
        target: CpuTarget,
        options: CompileOptions,
        axis: Mapping[SSAValue, AxisInfo],
        base_of: Mapping[SSAValue, BlockArgument | None],
    ):
        self.function = function
        self.module: ir.Module = function.module
        self.target = target
        self.options = options
        self.axis = axis
        self.base_of = base_of
        entry = function.append_basic_block("entry")
        start = function.append_basic_block("start")
        self.entry = ir.IRBuilder(entry)
        self.builder = ir.IRBuilder(start)
        self._start = start
        self.scalars: dict[SSAValue, ir.Value] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self._memo: list[dict[Key, ir.Value]] = [{}]
        self.grid: dict[str, ir.Value] = {}
        self.sites: list[AccessSite] = []
        self.bounds: dict[SSAValue, tuple[ir.Value, ir.Value]] = {}
        self.true_masks: frozenset[SSAValue] = frozenset()
        self.fault_record: ir.Value = ir.Constant(POINTER, None)
        self.pending_copies: list[tuple[Buffer, Buffer]] = []
        self.accesses = Accesses(self)
        self._fusion = Fusion(base_of, options.disjoint, axis)
        self._placement = Placement(Costs(axis))

    def emit_function(
        self, op: func.FuncOp, arguments: Sequence[ir.Value], grid: Mapping[str, ir.Value], scratch: ir.Value
    ) -> int:
        """Emits the whole kernel; ``arguments`` are its scalars (pointers as i64). Returns the scratch bytes it needs."""
        self.pool = BufferPool(self.entry, scratch)
        self.grid.update(grid)
        self.scalars.update(zip(op.body.block.args, arguments, strict=True))
        self.block(op.body.block)
        self.builder.ret(ir.Constant(I32, 0))
        self.entry.branch(self._start)
        return self.pool.used

    # -- values ----------------------------------------------------------------------------------------------------------

    def scalar(self, value: SSAValue) -> ir.Value:
        """The LLVM value of a rank-0 value."""
        try:
            return self.scalars[value]
        except KeyError:
            owner = value.owner
            if isinstance(owner, tile.ConstantOp):
                return arith.constant(dtype_of(value), owner.number, None)
            if isinstance(owner, Operation):
                raise EmissionError(owner, "its scalar result is used before it is emitted") from None
            raise

    def vector(self, value: SSAValue, index: Index) -> ir.Value:
        """The vector of one register of a tile."""
        return self._demand(_register(value, index), self._vector_sources, self._vector)

    def _demand(self, goal: Key, sources: Callable[[Key], list[Key]], emit: Callable[[Key], ir.Value]) -> ir.Value:
        """What is remembered under a key, once it and all its sources have been emitted. Not by recursion: an unrolled loop
        makes chains of ops that are longer than Python's stack."""
        pending = [goal]
        while pending:
            key = pending[-1]
            if self._remembered(key) is None:
                missing = [source for source in sources(key) if self._remembered(source) is None]
                if missing:
                    pending.extend(reversed(missing))
                    continue
                self._memo[-1][key] = emit(key)
            pending.pop()
        found = self._remembered(goal)
        if found is None:
            raise KeyError(f"{goal} has not been emitted")
        return found

    def _remembered(self, key: Key) -> ir.Value | None:
        for scope in reversed(self._memo):
            if key in scope:
                return scope[key]
        return None

    def _vector_sources(self, key: Key) -> list[Key]:
        """The registers from which one is computed; none for what is read, known, loaded or made of scalars."""
        value, index = key.value, key.at
        op = value.owner
        if value in self.buffers or value in self.true_masks:
            return []
        if not isinstance(op, Operation) or isinstance(op, (*_MADE, tile.LoadOp)):
            return []
        if isinstance(op, VIEWS):
            return [_register(op.operands[0], index.through(self._view(op)))]
        return [_register(operand, index) for operand in op.operands]

    def remember(self, value: SSAValue, index: Index, vector: ir.Value) -> None:
        """Records a register that a root has just computed."""
        self._memo[-1][_register(value, index)] = vector

    def _vector(self, key: Key) -> ir.Value:
        value, index = key.value, key.at
        if value in self.buffers:
            return self.buffers[value].load(self.builder, index)
        op = value.owner
        if not isinstance(op, Operation):
            raise ValueError(f"tile argument {value} has no buffer")
        layout = layout_of(value)
        lanes = layout.in_size("lane")
        if value in self.true_masks:
            return arith.constant(dtypes.bool_, 1, lanes)
        match op:
            case tile.SplatOp():
                return self.splat(self.scalar(op.source), lanes)
            case tile.ConstantOp():
                return arith.constant(dtype_of(value), op.number, lanes)
            case tile.ArangeOp():
                columns = layout.columns("lane")
                within = [apply_columns(columns, lane) for lane in range(lanes)]
                vector_type = ir.VectorType(I32, lanes)
                base = self.splat(self._arange_base(op, index), lanes)
                return self.builder.add(base, ir.Constant(vector_type, [ir.Constant(I32, w) for w in within]))
            case _ if isinstance(op, VIEWS):
                return self.vector(op.operands[0], index.through(self._view(op)))
            case tile.LoadOp() if is_invariant(op):
                return self.accesses.load(op, index)
            case _:
                return self.compute(op, [self.vector(operand, index) for operand in op.operands])

    def _view(self, op: Operation) -> tuple[int, ...]:
        columns = view_columns(op)
        if columns is None:
            raise EmissionError(op, "is not a view of its source's registers")
        return columns

    def _arange_base(self, op: tile.ArangeOp, index: Index) -> ir.Value:
        offset = index.through(layout_of(op.result).columns("register")).value(self.builder)
        return self.builder.add(self.builder.trunc(offset, I32), ir.Constant(I32, op.start.value.data))

    def lane(self, value: SSAValue, index: Index, lane: int) -> ir.Value:
        """One lane of one register as a scalar, computed with scalar instructions where that is possible."""
        return self._demand(Key(value, index, lane), self._lane_sources, self._lane)

    def _lane_sources(self, key: Key) -> list[Key]:
        """The scalars from which one lane is computed; none where it is taken out of a vector."""
        value, index, lane = key
        op = value.owner
        if value in self.buffers or isinstance(op, _MADE):
            return []
        if isinstance(op, VIEWS):
            return [Key(op.operands[0], index.through(self._view(op)), lane)]
        if isinstance(op, _SCALAR_TOO) and Key(value, index) not in self._memo[-1]:
            return [Key(operand, index, lane) for operand in op.operands]
        return []

    def _lane(self, key: Key) -> ir.Value:
        value, index, lane = key
        if value in self.buffers:
            return self.buffers[value].load_lane(self.builder, index, lane)
        op = value.owner
        match op:
            case tile.SplatOp():
                return self.scalar(op.source)
            case tile.ConstantOp():
                return arith.constant(dtype_of(value), op.number, None)
            case tile.ArangeOp():
                within = apply_columns(layout_of(value).columns("lane"), lane)
                base = self._arange_base(op, index)
                return self.builder.add(base, ir.Constant(I32, within)) if within else base
            case _ if isinstance(op, VIEWS):
                return self.lane(op.operands[0], index.through(self._view(op)), lane)
            case _ if isinstance(op, _SCALAR_TOO) and Key(value, index) not in self._memo[-1]:
                return self.compute(op, [self.lane(operand, index, lane) for operand in op.operands])
            case _:
                return self.builder.extract_element(self.vector(value, index), ir.Constant(I32, lane))

    def splat(self, scalar: ir.Value, lanes: int) -> ir.Value:
        """A scalar in every lane."""
        return broadcast(self.builder, scalar, lanes)

    # -- elementwise -----------------------------------------------------------------------------------------------------

    def compute(self, op: Operation, operands: Sequence[ir.Value]) -> ir.Value:
        """One elementwise op on scalars or vectors."""
        builder = self.builder
        match op:
            case tile.UnaryOp():
                return arith.unary(builder, op.kind.data, dtype_of(op.operand), *operands)
            case tile.BinaryOp():
                return arith.binary(builder, op.kind.data, dtype_of(op.lhs), *operands)
            case tile.CompareOp():
                dtype = dtypes.uint64 if is_pointer(op.lhs) else dtype_of(op.lhs)
                return arith.compare(builder, op.kind.data, dtype, *operands)
            case tile.SelectOp():
                condition, then, otherwise = operands
                return builder.select(condition, then, otherwise)
            case tile.FmaOp():
                return arith.fma(builder, dtype_of(op.result), *operands)
            case tile.CastOp():
                return arith.cast(builder, operands[0], dtype_of(op.source), dtype_of(op.result))
            case tile.BitcastOp():
                return self._bitcast(op, operands[0])
            case tile.HintOp():
                return operands[0]
            case tile.AddPtrOp():
                return self._addptr(op, *operands)
            case tile.ConstantOp():
                return arith.constant(dtype_of(op.result), op.number, None)
            case _:
                raise EmissionError(op, "has no elementwise code on the CPU")

    def _bitcast(self, op: tile.BitcastOp, value: ir.Value) -> ir.Value:
        source, result = (None if is_pointer(v) else dtype_of(v) for v in (op.source, op.result))
        if source is None and result is None:
            return value
        return arith.bitcast(self.builder, value, result or dtypes.int64)

    def _addptr(self, op: tile.AddPtrOp, pointer: ir.Value, offset: ir.Value) -> ir.Value:
        builder = self.builder
        dtype = dtype_of(op.offset)
        if dtype.bits < 64:
            offset = (builder.sext if dtype.signed else builder.zext)(offset, pointer.type)
        shift = dtype_of(op.pointer).itemsize.bit_length() - 1
        if shift:
            amount = ir.Constant(I64, shift)
            lanes = pointer.type.count if isinstance(pointer.type, ir.VectorType) else None
            offset = builder.shl(offset, amount if lanes is None else self.splat(amount, lanes))
        return builder.add(pointer, offset)

    # -- blocks ----------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Emits a block's schedule."""
        schedule = self._placement.place(block, self._fusion.items(block))
        allocated: dict[SSAValue, Buffer] = {}
        for item in schedule.items:
            if isinstance(item, RegisterLoop):
                self._register_loop(item, schedule, allocated)
            elif isinstance(item, func.ReturnOp):
                continue
            else:
                self._item(item, schedule, allocated)

    def _buffer(self, value: SSAValue, schedule: Schedule, allocated: dict[SSAValue, Buffer]) -> Buffer:
        """The buffer of a value of this block, which may be another value's that it hands on."""
        root = value
        while root in schedule.shared:
            root = schedule.shared[root]
        if root in self.buffers:
            return self.buffers[root]
        if root not in allocated:
            allocated[root] = self.pool.allocate(element_of_value(root), layout_of(root))
        return allocated[root]

    def _item(self, op: Operation, schedule: Schedule, allocated: dict[SSAValue, Buffer]) -> None:
        match op:
            case scf.ForOp():
                emit_for(self, op)
            case scf.IfOp():
                emit_if(self, op)
            case scf.WhileOp():
                emit_while(self, op)
            case scf.YieldOp() | scf.ConditionOp():
                pass  # its loop or branch reads the operands
            case tile.DotOp():
                self._dot(op, schedule, allocated)
            case tile.ConvertLayoutOp() if is_tile(op.result):
                result = self._buffer(op.result, schedule, allocated)
                emit_conversion(self, self._in_memory(op.source), result, layout_of(op.source), layout_of(op.result))
                self.buffers[op.result] = result
            case tile.ConvertLayoutOp():
                self.scalars[op.result] = self.scalar(op.source)
            case tile.ProgramIdOp() | tile.NumProgramsOp():
                kind = "program_id" if isinstance(op, tile.ProgramIdOp) else "num_programs"
                self.scalars[op.result] = self.grid[f"{kind}{op.axis.value.data}"]
            case tile.AssumeOp():
                intrinsic(self.builder, "assume", [self.scalar(op.condition)], ir.VoidType(), [])
            case tile.LoadOp():
                self.scalars[op.result] = self.accesses.load_scalar(op)
            case tile.StoreOp():
                self.accesses.store_scalar(op)
            case tile.AtomicRmwOp():
                self.scalars[op.result] = self.accesses.atomic_scalar(op)
            case tile.BroadcastOp() | tile.ExpandDimsOp() | tile.ReshapeOp() | tile.TransOp():
                raise EmissionError(op, "has a scalar result from a tile")
            case tile.TileOp() if len(op.results) == 1:
                self.scalars[op.results[0]] = self.compute(op, [self.scalar(operand) for operand in op.operands])
            case _:
                raise EmissionError(op, "has no code on the CPU")

    def _dot(self, op: tile.DotOp, schedule: Schedule, allocated: dict[SSAValue, Buffer]) -> None:
        result = self._buffer(op.result, schedule, allocated)
        if op.acc not in self.buffers:
            self.fill(op.acc, result)
        elif self.buffers[op.acc].pointer is not result.pointer:
            self.copy(self.buffers[op.acc], result)
        emit_dot(self, op, self._in_memory(op.a), self._in_memory(op.b), result)
        self.buffers[op.result] = result

    def _in_memory(self, value: SSAValue) -> Buffer:
        """The value's buffer; a recipe from an outer block is written to a new one."""
        if value in self.buffers:
            return self.buffers[value]
        buffer = self.pool.allocate(element_of_value(value), layout_of(value))
        self.fill(value, buffer)
        return buffer

    def copy(self, source: Buffer, target: Buffer) -> None:
        """Copies a whole buffer to another of the same layout."""
        size, volatile = ir.Constant(I64, source.bytes), ir.Constant(I1, 0)
        operands = [target.pointer, source.pointer, size, volatile]
        intrinsic(self.builder, "memcpy", operands, ir.VoidType(), [POINTER, POINTER, I64])

    def fault(self, site: int, address: ir.Value) -> None:
        """Reports a failed access, unless another was first, and leaves the kernel."""
        builder, record = self.builder, self.fault_record
        one = ir.Constant(I64, 1)
        claimed = builder.extract_value(builder.cmpxchg(record, ir.Constant(I64, 0), one, "monotonic", "monotonic"), 1)
        with builder.if_then(claimed):
            ids = [builder.zext(self.grid[f"program_id{axis}"], I64) for axis in range(3)]
            for slot, value in enumerate([ir.Constant(I64, site), *ids, address], start=1):
                builder.store(value, builder.gep(record, [ir.Constant(I64, 8 * slot)], source_etype=I8))
        builder.ret(ir.Constant(I32, 1))

    # -- register loops --------------------------------------------------------------------------------------------------

    def _register_loop(self, loop: RegisterLoop, schedule: Schedule, allocated: dict[SSAValue, Buffer]) -> None:
        folds = [
            Fold(self, root, lambda value: self._buffer(value, schedule, allocated))
            for root in loop.roots
            if isinstance(root, tile.ReduceOp)
        ]
        targets = [(value, self._buffer(value, schedule, allocated)) for value in loop.kept]
        staged: list[tuple[Buffer, Buffer]] = []
        write_backs: list[tuple[SSAValue, Buffer]] = []
        for root in loop.roots:
            if isinstance(root, WriteBack):
                carried = self.buffers[root.carried]
                target = self.pool.allocate(carried.element, carried.layout) if root.staged else carried
                write_backs.append((root.value, target))
                if root.staged:
                    staged.append((target, carried))
        by_root = {fold.op: fold for fold in folds}

        def body(index: Index, copy: int, first: ir.Value | None) -> None:
            for root in loop.roots:
                if isinstance(root, tile.ReduceOp):
                    by_root[root].step([self.vector(s, index) for s in root.sources], copy, first)
                elif not isinstance(root, WriteBack):
                    self._root(root, index)
            for value, buffer in targets:
                buffer.store(self.builder, index, self.vector(value, index))
            vectors = [self.vector(value, index) for value, _ in write_backs]
            for (_, buffer), vector in zip(write_backs, vectors, strict=True):
                buffer.store(self.builder, index, vector)

        with self._unmasked_where_possible(loop) as versions:
            for version in versions:
                with version:
                    over_registers(self, loop.layout, loop.folds, folds, body)
        for fold in folds:
            fold.publish()
        for value, buffer in targets:
            self.buffers[value] = buffer
        self.pending_copies.extend(staged)

    @contextmanager
    def _unmasked_where_possible(self, loop: RegisterLoop) -> Generator[list[AbstractContextManager[None]]]:
        """The versions of a loop to emit: one without its masks for when all are true, and one with them, if one scalar test
        can tell (`weft.codegen.cpu.masks`); else just the one."""
        loads = [value.owner for value in loop.needs if is_tile(value) and value not in self.buffers]
        accesses = [op for op in (*loads, *loop.roots) if isinstance(op, tile.LoadOp | tile.StoreOp)]
        masks = dict.fromkeys(
            a.mask
            for a in accesses
            if a.mask is not None and decided_by_last(a.mask, self.axis) and not depends_on(a.mask, loop.roots)
        )
        if not masks or is_small(loop.layout):
            yield [nullcontext()]
            return
        lane = loop.layout.in_size("lane") - 1
        with self.scope():
            lasts = [self.lane(mask, last_register(layout_of(mask)), lane) for mask in masks]
        full = reduce(self.builder.and_, lasts)
        with self.builder.if_else(full, likely=True) as (whole, ragged):
            yield [self._version(whole, frozenset(masks)), self._version(ragged, frozenset())]

    @contextmanager
    def _version(self, branch: AbstractContextManager[Any], true_masks: frozenset[SSAValue]) -> Generator[None]:
        with branch, self.scope():
            self.true_masks = true_masks
            yield
            self.true_masks = frozenset()

    def _root(self, op: Operation, index: Index) -> None:
        match op:
            case tile.LoadOp():
                self.remember(op.result, index, self.accesses.load(op, index))
            case tile.StoreOp():
                self.accesses.store(op, index)
            case tile.AtomicRmwOp():
                self.remember(op.result, index, self.accesses.atomic(op, index))
            case _:
                raise EmissionError(op, "is no root of a register loop")

    def fill(self, value: SSAValue, target: Buffer) -> None:
        """Writes every register of a tile to a buffer."""
        over_registers(
            self,
            layout_of(value),
            None,
            [],
            lambda index, _copy, _first: target.store(self.builder, index, self.vector(value, index)),
        )

    @contextmanager
    def scope(self) -> Generator[None]:
        """Values remembered inside are forgotten at the end: they do not dominate what follows."""
        self._memo.append({})
        yield
        self._memo.pop()

    @contextmanager
    def loop(self, trips: int) -> Generator[ir.Value]:
        """A loop of a constant number of iterations; gives its i64 counter."""
        before = self.builder.block
        head = self.function.append_basic_block("loop")
        self.builder.branch(head)
        self.builder.position_at_end(head)
        counter = self.builder.phi(I64)
        counter.add_incoming(ir.Constant(I64, 0), before)
        with self.scope():
            yield counter
        after = self.builder.add(counter, ir.Constant(I64, 1))
        counter.add_incoming(after, self.builder.block)
        done = self.function.append_basic_block("after")
        again = self.builder.icmp_unsigned("<", after, ir.Constant(I64, trips))
        self.builder.cbranch(again, head, done)
        self.builder.position_at_end(done)

"""Loops that only accumulate: a group of accumulators stays in registers for the whole loop.

    before                                          after
    for k:                                          for each group of 8 registers:
        for each register r of the tile:                for k:
            total[r] = total[r] + x(k, r)                   for r of the group: total[r] = total[r] + x(k, r)

Before, each iteration reads and writes all accumulators in memory, and goes through all rows of the tile, of which a tall one has
more than a processor fetches ahead from. Each accumulator is computed in the same order as before.

Such a loop

1. does nothing else: its schedule (`weft.codegen.cpu.schedule`) has one register loop, which writes back what is carried, and
   perhaps one before it of reductions along registers alone. Short ones are computed where a group needs them. Where the loop
   only adds up sums they may be long: the registers of a group's sums are added up side by side, in the order of memory
   (`Accumulation.beside`);
2. needs no value that is better computed once than for each group;
3. moves along memory from one iteration to the next, or has one group. A loop that goes down a matrix would come back for each
   group of columns; if it only adds up columns, it does so by strips (`weft.codegen.cpu.strips`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.cost import work
from weft.codegen.cpu.far_ahead import distances
from weft.codegen.cpu.loops import UNROLL_BUDGET, axis_bits
from weft.codegen.cpu.order import steps_in
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.schedule import RegisterLoop, Schedule, WriteBack
from weft.codegen.cpu.side_sums import UNROLLED, add_up, along_registers, to_source
from weft.codegen.cpu.strips import Strips
from weft.codegen.cpu.sum_order import order_of
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.versions import mask_versions
from weft.codegen.cpu.views import register_bits, used_registers
from weft.codegen.emit.control import counted
from weft.codegen.emit.element import Element, element_of_value
from weft.codegen.emit.regions import evaluate
from weft.codegen.llvm.types import I8
from weft.ir import tile
from weft.ir.types import dtype_of, is_tile, layout_of
from weft.layout import LinearLayout
from weft.layout.algebra import f2
from weft.transforms.column_sums import is_added

GROUP_BITS: Final = 3
"""How many accumulators of a tile a group has, as a power of two: enough to hide the latency of additions, few enough that their
addresses are in registers."""

WHOLE_BITS: Final = 4
"""As `GROUP_BITS`, where these are all."""

BUDGET: Final = 384
"""The most work (`weft.codegen.cpu.cost.work`) of a group's iteration."""

NEAR: Final = 1024
"""The elements by which a loop may move in an iteration."""


@dataclass(frozen=True)
class Accumulation:
    """A loop that only accumulates: the scalar ops of its body, the reductions and their register loop, the write-backs, the
    register bits of a group and the others. ``beside``: it only adds sums, whose registers are added up side by side."""

    scalars: Sequence[Operation]
    sums: Sequence[tile.ReduceOp]
    summing: RegisterLoop | None
    adding: RegisterLoop
    group: Sequence[int]
    others: Sequence[int]
    beside: bool = False

    @property
    def layout(self) -> LinearLayout:
        """The layout of the accumulators."""
        return self.adding.layout


def accumulation_of(
    loop: scf.ForOp, schedule: Schedule, sum_bytes: int, *, any_number: bool = False
) -> Accumulation | Strips | None:
    """What a loop is whose body has this schedule; None if it is no loop of this kind. ``sum_bytes``: what accumulators may take
    of the machine's registers. ``any_number``: its function runs any number of programs, with which only loops by strips end."""
    carried = [argument for argument in loop.body.block.args if is_tile(argument)]
    loops = [item for item in schedule.items if isinstance(item, RegisterLoop)]
    others = [item for item in schedule.items if not isinstance(item, RegisterLoop | scf.YieldOp)]
    if not carried or len(loops) not in (1, 2) or schedule.shared or any(loop.kept for loop in loops):
        return None
    *before, adding = loops
    if not all(isinstance(root, WriteBack) and not root.staged for root in adding.roots):
        return None
    if len(adding.roots) != len(carried) or any(layout_of(argument) != adding.layout for argument in carried):
        return None
    if any(op.regions or any(map(is_tile, (*op.operands, *op.results))) or not _is_scalar(op) for op in others):
        return None
    summing = before[0] if before else None
    sums = [root for root in summing.roots if isinstance(root, tile.ReduceOp)] if summing else []
    if summing and (len(sums) != len(summing.roots) or not all(_is_inline(op, adding.layout) for op in sums)):
        return None
    if schedule.buffered - {result for op in sums for result in op.results_}:
        return None
    length = 1 << len(along_registers(sums[0])) if sums else 1
    once = work(summing.needs) if summing else 0
    bits = register_bits(adding.layout)
    along_memory = _moves_along_memory(loop, loops)
    fitting = max(sum_bytes // sum(map(_register_bytes, carried)), 2).bit_length() - 1
    several = min(GROUP_BITS, fitting)
    most = several if along_memory and _reads_rows(adding.layout, bits[several:]) else min(WHOLE_BITS, fitting)
    beside = bool(sums) and sum(is_added(op, loop) for op in sums) == len(carried)
    allowed = _bits_within(2 * once, UNROLL_BUDGET) if beside else _bits_within(work(adding.needs) + length * once)
    group = len(bits) if len(bits) <= min(most, allowed) else min(several, allowed, len(bits))
    grouped = allowed >= 0 and (group == len(bits) or (along_memory and bool(sums or group)))
    if (any_number or not grouped) and beside and summing is not None and _is_row(adding.layout):
        return Strips(others, sums, summing, adding.layout)
    return Accumulation(others, sums, summing, adding, bits[:group], bits[group:], beside) if grouped else None


def loads_of(loop: RegisterLoop) -> list[tile.LoadOp]:
    """The loads whose registers a loop needs."""
    return [value.owner for value in loop.needs if isinstance(value.owner, tile.LoadOp)]


def _is_row(layout: LinearLayout) -> bool:
    """Whether a tile has one dimension, along which registers lie behind one another."""
    used = used_registers(layout)
    moves = [column for j, column in enumerate(layout.columns("register")) if used >> j & 1]
    return len(layout.shape) == 1 and moves == [layout.shape[0] >> len(moves) - at for at in range(len(moves))]


def _reads_rows(layout: LinearLayout, bits: Sequence[int]) -> bool:
    """Whether the registers that differ by these bits are in other rows of memory than the lanes of one."""
    lanes = layout.columns("lane")
    axis = next((axis for axis in range(len(layout.shape)) if axis_bits(layout, "lane", axis)), None)
    within = [] if axis is None else axis_bits(layout, "register", axis)
    return any(lanes) and not set(bits) & set(within)


def _register_bytes(value: SSAValue) -> int:
    return layout_of(value).in_size("lane") * dtype_of(value).itemsize


def _bits_within(work: int, budget: int = BUDGET) -> int:
    """How many copies of so much work are within the budget, as a power of two; -1 for none."""
    return (budget // max(work, 1)).bit_length() - 1


def _is_scalar(op: Operation) -> bool:
    """Whether an op without tiles may be emitted for each group: it computes, and touches no memory."""
    return isinstance(op, tile.TileOp) and tile.ordering_of(op) is None and tile.is_a(op, tile.Elementwise)


def _is_inline(op: tile.ReduceOp, layout: LinearLayout) -> bool:
    """Whether a reduction goes along registers alone, and its results are laid out as the accumulators."""
    along_lanes = axis_bits(layout_of(op.sources[0]), "lane", op.axis.value.data)
    return not along_lanes and all(layout_of(result) == layout for result in op.results_)


def _moves_along_memory(loop: scf.ForOp, loops: Sequence[RegisterLoop]) -> bool:
    """Whether the loads of a loop move by few elements in an iteration. Those that follow loaded indices say nothing."""
    steps = steps_in(loop)
    loads = [value.owner for each in loops for value in each.needs if isinstance(value.owner, tile.LoadOp)]
    moved = [step for load in loads if (step := steps.of(load.pointer)) is not None]
    return any(moved) and all(abs(step) <= NEAR for step in moved)


class _Group(Buffer):
    """The accumulators of a group, in a stack slot, which LLVM turns into registers."""

    def __init__(self, pointer: ir.Value, element: Element, layout: LinearLayout, within: int):
        super().__init__(pointer, element, layout)
        self._within = within

    def address(self, builder: ir.IRBuilder, index: RegisterIndex, lane: int = 0) -> ir.Value:
        return super().address(builder, index.within(self._within), lane)


class _Sum(Buffer):
    """A result of a reduction along registers, which is computed when it is read."""

    def __init__(self, registers: Registers, op: tile.ReduceOp, number: int):
        result = op.results_[number]
        super().__init__(ir.Constant(I8.as_pointer(), None), element_of_value(result), layout_of(result))
        self._registers, self._op, self._number = registers, op, number
        self._columns = to_source(op)

    def load(self, builder: ir.IRBuilder, index: RegisterIndex) -> ir.Value:
        registers, op = self._registers, self._op
        first, along = index.through(self._columns), along_registers(op)
        pending: list[tuple[int, list[ir.Value]]] = []  # neighbours are combined in pairs, pairs in pairs
        for at in range(1 << len(along)):
            place = RegisterIndex(first.const ^ f2.apply(along, at), first.terms)
            level, values = 0, [registers.vector(source, place) for source in op.sources]
            while pending and pending[-1][0] == level:
                values = evaluate(registers, op.combine.block, [*pending.pop()[1], *values])
                level += 1
            pending.append((level, values))
        registers.orders.setdefault(op, set()).add(order_of(op, 1 << len(along)))
        return pending[0][1][self._number]


def emit_accumulation(registers: Registers, loop: scf.ForOp, found: Accumulation) -> None:
    """Emits the loop, and makes its results available."""
    arguments, block = loop.body.block.args[1:], loop.body.block
    rows = list(zip(arguments, loop.iter_args, loop.res, strict=True))
    scalars = [(row, registers.slot(row[0])) for row in rows if not is_tile(row[0])]
    tiles = [row for row in rows if is_tile(row[0])]
    results = [registers.pool.allocate(element_of_value(argument), found.layout) for argument, _, _ in tiles]
    within = sum(found.group)
    held = [_held(registers, argument, found, within) for argument, _, _ in tiles]
    far: dict[Operation, ir.Value] = {}
    yielded: dict[SSAValue, SSAValue] = dict(
        zip(arguments, block.last_op.operands if block.last_op is not None else (), strict=True)
    )
    copies = [f2.apply(found.group, copy) for copy in range(1 << len(found.group))]

    def iteration(places: Sequence[RegisterIndex]) -> None:
        for (argument, _, _), slot in scalars:
            slot.get(argument)
        for op in found.scalars:
            registers.lower(op)
        registers.buffers.update({argument: buffer for (argument, _, _), buffer in zip(tiles, held, strict=True)})
        if not found.beside:
            for op in found.sums:
                registers.buffers.update({result: _Sum(registers, op, n) for n, result in enumerate(op.results_)})

        def add() -> None:
            for number, place in enumerate(places):
                registers.far = {} if number % UNROLLED else far
                new = [registers.vector(yielded[argument], place) for argument, _, _ in tiles]
                registers.far = {}
                for buffer, vector in zip(held, new, strict=True):
                    buffer.store(registers.builder, place, vector)

        if found.beside:
            assert found.summing is not None, "what is added up is a sum"
            totals = {value: argument for argument, value in yielded.items()}
            add_up(registers, found.summing, found.sums, totals, places, far)
        else:
            _in_versions(registers, found, places[-1], add)
        for (argument, _, _), slot in scalars:
            slot.put(yielded[argument])

    def group(base: RegisterIndex) -> None:
        places = [RegisterIndex(base.const ^ copy, base.terms) for copy in copies]
        with registers.scope():
            for (_, initial, _), buffer in zip(tiles, held, strict=True):
                for place in places:
                    buffer.store(registers.builder, place, registers.vector(initial, place))
        for (_, initial, _), slot in scalars:
            slot.put(initial)
        if _is_row(found.layout) and (found.beside or not found.others):
            far.update(distances(registers, loop, loads_of(found.summing or found.adding)))
        counted(registers, loop, lambda: iteration(places))
        for buffer, result in zip(held, results, strict=True):
            for place in places:
                result.store(registers.builder, place, buffer.load(registers.builder, place))

    if found.others:
        registers.note_walk(found.layout)
        parts, registers.parts = registers.parts, 1 << len(found.others)
        with registers.loop(registers.parts) as position:
            group(RegisterIndex(0, ((Counter(position, len(found.others)), tuple(found.others)),)))
        registers.parts = parts
    else:
        group(RegisterIndex())
    for (_, _, result), buffer in zip(tiles, results, strict=True):
        registers.buffers[result] = buffer
    for (_, _, result), slot in scalars:
        slot.get(result)


def _held(registers: Registers, argument: SSAValue, found: Accumulation, within: int) -> _Group:
    element = element_of_value(argument)
    size = found.layout.in_size("lane") * element.size << len(found.group)
    pointer = registers.entry.alloca(ir.ArrayType(I8, size))
    pointer.align = 64
    pointer.type = ir.PointerType()
    return _Group(pointer, element, found.layout, within)


def _in_versions(registers: Registers, found: Accumulation, last: RegisterIndex, add: Callable[[], None]) -> None:
    """Emits an iteration of a group whose last register is given: without masks where all are true, and with them."""
    loop = found.summing or found.adding
    loop.settle(registers.buffers)
    versions = mask_versions(registers, loop)
    if versions is None:
        add()
        return
    if found.sums:
        along = along_registers(found.sums[0])
        first = last.through(to_source(found.sums[0]))
        last = RegisterIndex(first.const ^ f2.apply(along, (1 << len(along)) - 1), first.terms)
    versions(last, add, add)

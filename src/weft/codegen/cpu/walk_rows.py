"""Sums along rows: rows are walked one after the other, each from its beginning to its end.

    side by side                                     one after the other
    for k:                                           for each row r:
        for each row r: total[r] += x(r, k)              for k, four at a time:
                                                             total0 += x(r, k), total1 += x(r, k + 1), ..
                                                         total[r] = (total0 + total1) + (total2 + total3)

Side by side, eight rows hide the latency of additions, but a processor fetches ahead along a few rows only, and begins with eight
new ones each time. Rows of a matrix lie one behind the other in memory: row by row, it never stops fetching. So a loop that
only accumulates (`weft.codegen.cpu.accumulate`) has several accumulators for each row instead. Where an iteration has fewer
registers of a row than that, several iterations are one.

Such a loop

1. only adds to what it carries, and only the sums of that along the rows are used, behind it. The order of the additions is then
   free (docs/architecture.md, "Meaning");
2. carries tiles whose lanes lie along the rows, in few registers each.

Where all rows need the same registers from memory, as a matrix times a vector does, several rows are walked side by side: else
each load of the matrix would take another load. They share the accumulators, too.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.codegen.cpu.accumulate import BUDGET, GROUP_BITS, Accumulation
from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.cost import work
from weft.codegen.cpu.counted import loop_to
from weft.codegen.cpu.loops import Terms, axis_bits
from weft.codegen.cpu.reduce import Reduction
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.schedule import WHOLE, RegisterLoop, identity, is_recomputable
from weft.codegen.cpu.side_sums import along_registers, nothing, register_type, to_source
from weft.codegen.cpu.sum_order import SumOrder
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.versions import mask_versions
from weft.codegen.cpu.views import used_registers
from weft.codegen.emit.control import counted
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.regions import evaluate
from weft.codegen.llvm.types import I64
from weft.ir import tile
from weft.ir.direct import defining_op
from weft.ir.types import dtype_of, is_tile, layout_of
from weft.layout import LinearLayout
from weft.layout.algebra import f2

CHAINS: Final = 8
"""The most registers of the machine that are added to in turns: an addition takes three or four cycles, and machines begin two in
each."""

ACCUMULATORS: Final = 4
"""The most accumulators of one register of a tile."""


@dataclass(frozen=True)
class Walk:
    """How a loop walks rows. ``sources``: what is added to each carried tile, register by register. ``sums``: the reductions that
    do so in the body, if any; ``behind``: those of the carried tiles behind the loop.

    ``along`` are the register bits of a source that are added to one register of the carried tile, whose own become the
    ``columns`` of the source. Registers that differ by the bits ``beside`` are walked together, by the ``rest`` one after the
    other. 2 to the ``accumulators`` add up each register, and 2 to the ``iterations`` are one.
    """

    scalars: Sequence[Operation]
    loop: RegisterLoop
    layout: LinearLayout
    sources: Sequence[SSAValue]
    sums: Sequence[tile.ReduceOp]
    behind: Sequence[tile.ReduceOp]
    along: Sequence[int]
    columns: Sequence[int]
    within: Sequence[int]
    beside: Sequence[int]
    rest: Sequence[int]
    accumulators: int
    iterations: int


def walk_of(loop: scf.ForOp, found: Accumulation, bits: int) -> Walk | None:
    """How to walk the rows of a loop that accumulates, on a machine whose registers have so many bits; None if it does not add up
    rows."""
    layout, registers = found.layout, found.summing or found.adding
    arguments = [argument for argument in loop.body.block.args[1:] if is_tile(argument)]
    behind = [_sum_behind(loop, loop.res[argument.index - 1]) for argument in arguments]
    sums = [op for op in behind if op is not None]
    sources = [_source(loop, argument, found) for argument in arguments]
    added = [source for source in sources if source is not None]
    if len(sums) < len(behind) or len(added) < len(sources) or len({op.axis.value.data for op in sums}) != 1:
        return None
    axis = sums[0].axis.value.data
    lanes, within = (axis_bits(layout, dim, axis) for dim in ("lane", "register"))
    if len(lanes) != layout.in_bits("lane"):
        return None
    rows = [bit for bit in _bits(layout) if bit not in within]
    size = layout.in_size("lane") * max(dtype_of(source).itemsize for source in added)
    chains = max(CHAINS * bits // (8 * size), 1).bit_length() - 1
    along = along_registers(found.sums[0]) if found.sums else []
    columns = to_source(found.sums[0]) if found.sums else identity(layout)[:-1]
    beside = within
    if _shares_registers(registers, [f2.apply(columns, bit) for bit in rows]):
        beside = [*within, *rows[: max(chains - len(within), 0)]]
    allowed = (BUDGET // max(work(registers.needs), 1)).bit_length() - 1
    if len(beside) > GROUP_BITS or len(beside) > allowed:
        return None
    accumulators = max(min(chains, ACCUMULATORS.bit_length() - 1, allowed) - len(beside), 0)
    iterations = max(accumulators - len(along), 0)
    if iterations and not _counts(loop, 1 << iterations):
        accumulators, iterations = accumulators - iterations, 0
    if not accumulators and not rows:
        return None
    return Walk(
        found.scalars,
        registers,
        layout,
        added,
        found.sums,
        sums,
        along,
        columns,
        within,
        beside,
        [bit for bit in rows if bit not in beside],
        accumulators,
        iterations,
    )


def _bits(layout: LinearLayout) -> list[int]:
    used = used_registers(layout)
    return [1 << j for j in range(used.bit_length()) if used >> j & 1]


def _sum_behind(loop: scf.ForOp, result: SSAValue) -> tile.ReduceOp | None:
    """The sum that is the only use of a loop's result."""
    uses = list(result.uses)
    op = uses[0].operation if len(uses) == 1 else None
    return op if isinstance(op, tile.ReduceOp) and op.parent is loop.parent and is_sum(op) else None


def _source(loop: scf.ForOp, argument: BlockArgument, found: Accumulation) -> SSAValue | None:
    """What the loop adds to a carried tile, register by register, if it does nothing else with the tile."""
    end, dtype = loop.body.block.last_op, dtype_of(argument)
    (use, *others) = argument.uses
    total = use.operation
    if others or end is None or not isinstance(total, tile.BinaryOp) or total.kind.data != "add":
        return None
    exact = dtype.bits >= 32 if dtype.is_float else dtype.is_integer
    if not exact or not total.result.has_one_use() or end.operands[argument.index - 1] is not total.result:
        return None
    added = total.operands[1 - use.index]
    op = defining_op(added)
    if not isinstance(op, tile.ReduceOp) or op not in found.sums:
        return None if found.sums else added
    return op.sources[0] if added.has_one_use() and is_sum(op) else None


def _shares_registers(loop: RegisterLoop, rows: Sequence[int]) -> bool:
    """Whether an iteration reads registers of several elements that are the same for all rows, which differ by these bits."""
    for value, needed in loop.needs.items():
        if not rows or not is_tile(value) or not any(layout_of(value).columns("lane")):
            continue
        if is_recomputable(value) and not isinstance(value.owner, tile.LoadOp):
            continue
        if all(at is not WHOLE and not any(at[bit.bit_length() - 1] for bit in rows) for at in needed):
            return True
    return False


def _counts(loop: scf.ForOp, together: int) -> bool:
    """Whether so many iterations may be one: they carry nothing but tiles, and the counter moves by a known number."""
    step = defining_op(loop.step)
    known = isinstance(step, tile.ConstantOp) and step.number > 0 and step.number * together < 1 << 31
    return known and all(map(is_tile, loop.body.block.args[1:]))


def emit_walk(registers: Registers, loop: scf.ForOp, walk: Walk) -> None:
    """Emits the loop, and makes its results available."""
    _Emission(registers, loop, walk).run()


class _Emission:
    """The emission of one loop. Its accumulators are known by carried tile, place among the registers beside it, and number."""

    def __init__(self, registers: Registers, loop: scf.ForOp, walk: Walk):
        self._registers, self._loop, self._walk = registers, loop, walk
        rows = list(zip(loop.body.block.args[1:], loop.iter_args, loop.res, strict=True))
        self._tiles = [row for row in rows if is_tile(row[0])]
        self._scalars = [(row, registers.slot(row[0])) for row in rows if not is_tile(row[0])]
        end = loop.body.block.last_op
        self._yielded: Sequence[SSAValue] = () if end is None else end.operands
        self._totals = [Reduction(registers, op, partial(_own_buffer, registers)) for op in walk.behind]
        self._beside = [f2.apply(walk.beside, copy) for copy in range(1 << len(walk.beside))]
        self._slots = {
            (i, copy, at): registers.entry.alloca(register_type(source))
            for at in range(1 << walk.accumulators)
            for copy in self._beside
            for i, source in enumerate(walk.sources)
        }
        for op in (*walk.sums, *walk.behind):
            order = SumOrder(1 << len(walk.along), 1 << walk.accumulators, (), 1 << walk.iterations)
            registers.orders.setdefault(op, set()).add(order)
        walk.loop.settle(registers.buffers)
        self._versions = mask_versions(registers, walk.loop)

    def run(self) -> None:
        """Emits it."""
        registers, rest = self._registers, self._walk.rest
        if rest:
            parts, registers.parts = registers.parts, 1 << len(rest)
            with registers.loop(registers.parts) as position:
                self._row(RegisterIndex(0, ((Counter(position, len(rest)), tuple(rest)),)))
            registers.parts = parts
        else:
            self._row(RegisterIndex())
        for total in self._totals:
            total.publish()
            registers.reduced.add(total.op)
        for (_, _, result), slot in self._scalars:
            slot.get(result)

    def _row(self, row: RegisterIndex) -> None:
        """The loop for a row, or for those that are walked together."""
        registers, builder, walk = self._registers, self._registers.builder, self._walk
        with registers.scope():
            for (i, copy, at), slot in self._slots.items():
                first = registers.vector(self._tiles[i][1], _moved(row, copy)) if not at else nothing(walk.sources[i])
                builder.store(first, slot)
        for (_, initial, _), slot in self._scalars:
            slot.put(initial)
        if walk.iterations:
            self._several(row)
        else:
            counted(registers, self._loop, lambda: self._one(row))
        within = [f2.apply(walk.within, copy) for copy in range(1 << len(walk.within))]
        for copy, (i, total) in product(self._beside, enumerate(self._totals)):
            if copy & sum(walk.within):
                continue
            total.start(len(within), looped=False)
            for at in within:
                total.step([self._added_up(i, copy ^ at)], at, None)
            total.finish(_moved(row, copy))

    def _added_up(self, i: int, copy: int) -> ir.Value:
        """The sum of a register's accumulators."""
        slots = [self._slots[i, copy, at] for at in range(1 << self._walk.accumulators)]
        sums = [self._registers.builder.load(slot, typ=register_type(self._walk.sources[i])) for slot in slots]
        while len(sums) > 1:
            sums = [self._sum(i, *pair) for pair in zip(sums[::2], sums[1::2], strict=True)]
        return sums[0]

    def _one(self, row: RegisterIndex) -> None:
        """An iteration of the loop, in steps of as many registers as there are accumulators."""
        registers, walk = self._registers, self._walk
        for (argument, _, _), slot in self._scalars:
            slot.get(argument)
        for op in walk.scalars:
            registers.lower(op)
        if high := walk.along[walk.accumulators :]:
            with registers.loop(1 << len(high)) as position:
                self._step(row, ((Counter(position, len(high)), tuple(high)),))
        else:
            self._step(row)
        for (argument, _, _), slot in self._scalars:
            slot.put(self._yielded[argument.index - 1])

    def _several(self, row: RegisterIndex) -> None:
        """The loop, several iterations at a time while there are as many."""
        registers, builder, loop, walk = self._registers, self._registers.builder, self._loop, self._walk
        lower, upper, step = (registers.scalar(value) for value in (loop.lb, loop.ub, loop.step))
        place = registers.entry.alloca(lower.type)
        builder.store(lower, place)

        def repeat(trips: ir.Value, together: int) -> None:
            nothing = ir.Constant(I64, 0)
            with builder.if_then(builder.icmp_unsigned("!=", trips, nothing)), loop_to(registers, trips):
                counters: list[ir.Value] = [builder.load(place, typ=lower.type)]
                for _ in range(together):
                    counters.append(builder.add(counters[-1], step, flags=("nsw",)))
                self._step(row, (), counters[:-1])
                builder.store(counters[-1], place)
                registers.back_edge(loop)

        with builder.if_then(builder.icmp_signed("<", lower, upper)):
            last = builder.udiv(builder.sub(builder.sub(upper, lower), ir.Constant(lower.type, 1)), step)
            last = builder.zext(last, I64) if lower.type != I64 else last
            trips, together = builder.add(last, ir.Constant(I64, 1)), 1 << walk.iterations
            repeat(builder.lshr(trips, ir.Constant(I64, walk.iterations)), together)
            repeat(builder.and_(trips, ir.Constant(I64, together - 1)), 1)

    def _step(self, row: RegisterIndex, terms: Terms = (), counters: Sequence[ir.Value] = ()) -> None:
        """Adds the next registers of a row, those of several iterations where their ``counters`` are given."""
        walk, versions = self._walk, self._versions
        low = walk.along[: walk.accumulators]

        def index(copy: int, at: int) -> RegisterIndex:
            first = _moved(row, copy).through(walk.columns)
            return RegisterIndex(first.const ^ f2.apply(low, at), (*first.terms, *terms))

        def add() -> None:
            for number, iteration in enumerate(self._iterations(counters)):
                with iteration:
                    for at, copy, (i, source) in product(range(1 << len(low)), self._beside, enumerate(walk.sources)):
                        slot = self._slots[i, copy, (number << len(low)) + at]
                        value = self._registers.vector(source, index(copy, at))
                        total = self._registers.builder.load(slot, typ=value.type)
                        self._registers.builder.store(self._sum(i, total, value), slot)

        if versions is None:
            add()
            return
        last, tests = index(self._beside[-1], (1 << len(low)) - 1), list[ir.Value]()
        for iteration in self._iterations(counters):
            with iteration:
                tests += versions.tests(last)
        versions.branch(tests, last, add, add)

    def _iterations(self, counters: Sequence[ir.Value]) -> Iterator[AbstractContextManager[None]]:
        """For each counter a scope in which the loop has it; the present one where there are none."""
        return (self._iteration(counter) for counter in counters or (None,))

    @contextmanager
    def _iteration(self, counter: ir.Value | None) -> Generator[None]:
        with self._registers.scope():
            if counter is not None:
                self._registers.scalars[self._loop.body.block.args[0]] = counter
                for op in self._walk.scalars:
                    self._registers.lower(op)
            yield

    def _sum(self, i: int, a: ir.Value, b: ir.Value) -> ir.Value:
        return evaluate(self._registers, self._walk.behind[i].combine.block, [a, b])[0]


def _own_buffer(registers: Registers, value: SSAValue) -> Buffer:
    return registers.pool.allocate(element_of_value(value), layout_of(value))


def _moved(index: RegisterIndex, by: int) -> RegisterIndex:
    return RegisterIndex(index.const ^ by, index.terms)


def is_sum(op: tile.ReduceOp) -> bool:
    """Whether a reduction is the sum of one tile."""
    return len(op.sources) == 1 and op.single_op is not None and op.single_op.kind.data == "add"

"""Loops that walk rows (`weft.codegen.cpu.walks`), emitted row by row.

    for each row r:
        for k, four registers at a time:         one test whether a mask cuts any of them off
            total0 += x(r, k), total1 += x(r, k + 1), ..
        result[r] = sum of the lanes of (total0 + total1) + (total2 + total3)

Where an iteration has more registers of a row, one test is for all of them; only where a mask cuts some off each four are tested.

The sums of lanes stand behind the loop in the kernel. They are emitted with each row, so that the processor fetches the next row
meanwhile (`Registers.reduced`).

Where a mask cuts off some of a step's registers, each is tested again. A load that gives zeros where its mask ends is left out
where no element is there: adding one zero is as good as adding many, but not as adding none, since -0.0 + 0.0 is 0.0. A walk that
stands beside another one (`Walk.lone`) adds such registers in a loop, which is less code.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import product
from typing import TypeAlias

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft.codegen.cpu.accumulate import loads_of
from weft.codegen.cpu.buffers import Buffer
from weft.codegen.cpu.counted import loop_to
from weft.codegen.cpu.far_ahead import distances
from weft.codegen.cpu.lone_rows import is_lone
from weft.codegen.cpu.loops import Terms
from weft.codegen.cpu.masks import is_prefix
from weft.codegen.cpu.reduce import Reduction
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.side_sums import nothing, register_type
from weft.codegen.cpu.sum_order import SumOrder
from weft.codegen.cpu.totals import Total, keep_apart
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.versions import MaskVersions, mask_versions
from weft.codegen.cpu.walks import Walk
from weft.codegen.cpu.zeros import is_positive_zero
from weft.codegen.emit.context import Slot
from weft.codegen.emit.control import counted
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.regions import evaluate
from weft.codegen.llvm.types import I64, intrinsic
from weft.ir import tile
from weft.ir.types import is_tile, layout_of
from weft.layout.algebra import f2
from weft.transforms.axis import AxisInfo


def emit_walk(registers: Registers, loop: scf.ForOp, walk: Walk) -> None:
    """Emits the loop, and makes its results available."""
    rows = zip(loop.body.block.args[1:], loop.iter_args, loop.res, strict=True)
    scalars = [(row, registers.slot(row[0])) for row in rows if not is_tile(row[0])]
    totals = [Reduction(registers, op, partial(_own_buffer, registers)) for op in walk.behind]
    if walk.lone is None:
        _Emission(registers, loop, walk, scalars, totals).run()
    else:
        with registers.builder.if_else(is_lone(registers, loop, walk.bytes)) as branches:
            for branch, each in zip(branches, (walk.lone, walk), strict=True):
                with branch, registers.scope():
                    _Emission(registers, loop, each, scalars, totals).run()
    for total in totals:
        total.publish()
        registers.reduced.add(total.op)
    for (_, _, result), slot in scalars:
        slot.get(result)


_Carried: TypeAlias = tuple[BlockArgument, SSAValue, SSAValue]
"""What a loop carries, its first value, and its last."""


class _Emission:
    """The emission of one loop. Its accumulators are known by carried tile, place among the registers beside it, and number.
    ``sums`` are those behind the loop, ``scalars`` the numbers that it carries."""

    def __init__(
        self,
        registers: Registers,
        loop: scf.ForOp,
        walk: Walk,
        scalars: Sequence[tuple[_Carried, Slot]],
        sums: Sequence[Reduction],
    ):
        self._registers, self._loop, self._walk = registers, loop, walk
        self._far: Mapping[Operation, ir.Value] = {}
        self._scalars, self._sums = scalars, sums
        rows = zip(loop.body.block.args[1:], loop.iter_args, loop.res, strict=True)
        self._tiles = [row for row in rows if is_tile(row[0])]
        end = loop.body.block.last_op
        self._yielded: Sequence[SSAValue] = () if end is None else end.operands
        self._beside = [f2.apply(walk.beside, copy) for copy in range(1 << len(walk.beside))]
        self._totals = {
            (i, copy, at): Total(registers, register_type(source), partial(self._sum, i), halved=walk.halved)
            for at in range(1 << walk.accumulators)
            for copy in self._beside
            for i, source in enumerate(walk.sources)
        }
        for op in (*walk.sums, *walk.behind):
            order = SumOrder(1 << len(walk.along), 1 << walk.accumulators, (), 1 << walk.iterations)
            registers.orders.setdefault(op, set()).add(order)
        walk.loop.settle(registers.buffers)
        self._versions = versions = mask_versions(registers, walk.loop)
        self._masks_zeros = versions is not None and all(
            _masks_zeros(source, versions, registers.facts.axis) for source in walk.sources
        )

    def run(self) -> None:
        """Emits it."""
        registers, rest = self._registers, self._walk.rest
        registers.by_halves = registers.halves_apart = self._walk.halved
        if len(self._walk.beside) == len(self._walk.within):
            self._far = distances(registers, self._loop, loads_of(self._walk.loop))
        if rest:
            parts, registers.parts = registers.parts, 1 << len(rest)
            with self._over_rows() as position:
                self._row(RegisterIndex(0, ((Counter(position, len(rest)), tuple(rest)),)))
            registers.parts = parts
        else:
            self._row(RegisterIndex())
        registers.by_halves = registers.halves_apart = False

    @contextmanager
    def _over_rows(self) -> Generator[ir.Value]:
        """A loop over the rows, or groups of them; where there are any, if only the first are stored."""
        registers, builder, walk = self._registers, self._registers.builder, self._walk
        most = 1 << len(walk.rest)
        if walk.limit is None:
            with registers.loop(most) as position:
                yield position
            return
        first, limit = (_number(registers, value) for value in (walk.limit.first, walk.limit.limit))
        rows = intrinsic(builder, "smax", [builder.sub(limit, first), ir.Constant(I64, 0)])
        together = len(walk.beside) - len(walk.within)
        groups = builder.lshr(builder.add(rows, ir.Constant(I64, (1 << together) - 1)), ir.Constant(I64, together))
        groups = intrinsic(builder, "umin", [groups, ir.Constant(I64, most)])
        some = builder.icmp_unsigned("!=", groups, ir.Constant(I64, 0))
        with builder.if_then(some), loop_to(registers, groups) as position:
            yield position

    def _row(self, row: RegisterIndex) -> None:
        """The loop for a row, or for those that are walked together."""
        registers, walk = self._registers, self._walk
        with registers.scope():
            for (i, copy, at), total in self._totals.items():
                total.put(
                    registers.vector(self._tiles[i][1], _moved(row, copy)) if not at else nothing(walk.sources[i])
                )
        for (_, initial, _), slot in self._scalars:
            slot.put(initial)
        if walk.iterations:
            self._several(row)
        else:
            counted(registers, self._loop, lambda: self._one(row))
        within = [f2.apply(walk.within, copy) for copy in range(1 << len(walk.within))]
        for copy, (i, reduction) in product(self._beside, enumerate(self._sums)):
            if copy & sum(walk.within):
                continue
            reduction.start(len(within), looped=False)
            for at in within:
                reduction.step([self._added_up(i, copy ^ at)], at, None)
            reduction.finish(_moved(row, copy))

    def _added_up(self, i: int, copy: int) -> ir.Value:
        """The sum of a register's accumulators."""
        sums = [self._totals[i, copy, at].get() for at in range(1 << self._walk.accumulators)]
        while len(sums) > 1:
            sums = [self._sum(i, *pair) for pair in zip(sums[::2], sums[1::2], strict=True)]
        return sums[0]

    def _one(self, row: RegisterIndex) -> None:
        """An iteration of the loop, in steps of as many registers as there are accumulators. One test of the masks is for all
        steps: with one for each, row sums of 1777x1001 in tiles of 16x256 took 1.1 of the time."""
        registers, walk = self._registers, self._walk
        for (argument, _, _), slot in self._scalars:
            slot.get(argument)
        for op in walk.scalars:
            registers.lower(op)
        if high := walk.along[walk.accumulators :]:
            last = _moved(row, self._beside[-1]).through(walk.columns)
            last = _moved(last, f2.apply(walk.along, (1 << len(walk.along)) - 1))

            def steps(whole: bool) -> None:
                with registers.loop(1 << len(high)) as position:
                    self._step(row, ((Counter(position, len(high)), tuple(high)),), whole=whole)

            if self._versions is None:
                steps(False)
            else:
                self._versions(last, partial(steps, True), partial(steps, False))
        else:
            self._step(row)
        for (argument, _, _), slot in self._scalars:
            slot.put(self._yielded[argument.index - 1])

    def _several(self, row: RegisterIndex) -> None:
        """The loop, several iterations at a time while there are as many, then half as many once, and so on. With a loop of those
        that are left row sums of 1777x1001 in tiles of 16 took 1.08 of the time."""
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
            trips = builder.add(last, ir.Constant(I64, 1))
            for bit in reversed(range(walk.iterations + 1)):
                times = builder.lshr(trips, ir.Constant(I64, bit))
                repeat(times if bit == walk.iterations else builder.and_(times, ir.Constant(I64, 1)), 1 << bit)

    def _step(
        self, row: RegisterIndex, terms: Terms = (), counters: Sequence[ir.Value] = (), *, whole: bool = False
    ) -> None:
        """Adds the next registers of a row, those of several iterations where their ``counters`` are given, and all of which are
        there if ``whole``."""
        walk, versions = self._walk, self._versions
        low = walk.along[: walk.accumulators]

        def index(copy: int, at: int) -> RegisterIndex:
            first = _moved(row, copy).through(walk.columns)
            return RegisterIndex(first.const ^ f2.apply(low, at), (*first.terms, *terms))

        def add(number: int, at: int) -> None:
            for copy, (i, source) in product(self._beside, enumerate(walk.sources)):
                total = self._totals[i, copy, (number << len(low)) + at]
                self._registers.far = self._far if not (number or at) else {}
                total.add(self._registers.vector(source, index(copy, at)))
                self._registers.far = {}

        def each(emit: Callable[[int, int], None]) -> None:
            for number, iteration in enumerate(self._iterations(counters)):
                with iteration:
                    for at in range(1 << len(low)):
                        emit(number, at)

        if versions is None or whole:
            each(add)
            return

        def unless_empty(at: int, emit: Callable[[], None]) -> None:
            """Emits what adds registers from one on, or a zero where nothing of them is there."""
            if not self._masks_zeros:
                emit()
                return
            with self._registers.builder.if_else(versions.begins(index(0, at))) as (then, otherwise):
                with then, self._registers.scope():
                    emit()
                with otherwise:
                    for copy, i in product(self._beside, range(len(walk.sources))):
                        self._totals[i, copy, at].add(ir.Constant(register_type(walk.sources[i]), None))

        def alone(number: int, at: int) -> None:
            one = partial(add, number, at)
            versions(index(self._beside[-1], at), one, partial(unless_empty, at, one))

        def singly() -> None:
            """Adds all to the first accumulator, in a loop."""
            with self._counted(counters), self._over(low) as place:
                for copy, (i, source) in product(self._beside, enumerate(walk.sources)):
                    first = index(copy, 0)
                    at = RegisterIndex(first.const, (*first.terms, *place))
                    self._totals[i, copy, 0].add(self._registers.vector(source, at))

        def ragged() -> None:
            if walk.singly:
                singly()
            elif not low:  # an iteration that runs is not empty
                each(add)
            elif walk.iterations:
                each(alone)
            else:
                unless_empty(0, partial(each, alone))
            keep_apart(self._registers, (slot for total in self._totals.values() for slot in total.slots))

        if walk.singly and len(counters) == 1:  # of the last iterations
            singly()
            return
        last, tests = index(self._beside[-1], (1 << len(low)) - 1), list[ir.Value]()
        for iteration in self._iterations(counters):
            with iteration:
                tests += versions.tests(last)
        versions.branch(tests, last, partial(each, add), ragged)

    @contextmanager
    def _over(self, bits: Sequence[int]) -> Generator[Terms]:
        """A loop over the registers that differ by these bits."""
        if not bits:
            yield ()
            return
        with self._registers.loop(1 << len(bits)) as position:
            yield ((Counter(position, len(bits)), tuple(bits)),)

    @contextmanager
    def _counted(self, counters: Sequence[ir.Value]) -> Generator[None]:
        """A loop over the iterations that have these counters; the present one where there are none."""
        registers, builder = self._registers, self._registers.builder
        if len(counters) < 2:
            with self._iteration(counters[0] if counters else None):
                yield
            return
        step = registers.scalar(self._loop.step)
        with registers.loop(len(counters)) as position:
            number = builder.trunc(position, step.type) if step.type != I64 else position
            with self._iteration(builder.add(counters[0], builder.mul(number, step))):
                yield

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


def _masks_zeros(value: SSAValue, versions: MaskVersions, axis: Mapping[SSAValue, AxisInfo]) -> bool:
    """Whether a tile is a load, which gives zeros from where one of the masks ends."""
    op = value.owner
    while isinstance(op, Operation) and tile.is_a(op, tile.View):
        op = op.operands[0].owner
    if not isinstance(op, tile.LoadOp) or op.mask is None or op.other is None or op.mask not in versions.masks:
        return False
    return is_positive_zero(op.other) and is_prefix(op.mask, axis)


def _number(registers: Registers, value: SSAValue | int) -> ir.Value:
    """An int32 as i64."""
    return ir.Constant(I64, value) if isinstance(value, int) else registers.builder.sext(registers.scalar(value), I64)


def _own_buffer(registers: Registers, value: SSAValue) -> Buffer:
    return registers.pool.allocate(element_of_value(value), layout_of(value))


def _moved(index: RegisterIndex, by: int) -> RegisterIndex:
    return RegisterIndex(index.const ^ by, index.terms)

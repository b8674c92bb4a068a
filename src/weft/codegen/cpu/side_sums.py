"""Sums of registers that are added up side by side.

    one after the other                              side by side
    for each place of the sums:                      for each step along the axis:
        for each register r along the axis:              for each place of the sums: sum += x(place, r)
            sum += x(place, r)

Where a loop only adds sums to what it carries (`weft.codegen.cpu.accumulate`), the registers of each sum are added in the order
of memory. Where there are many they are in a loop, in which each sum gets its next ones: so rows are read side by side, and each
row from its beginning to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from itertools import product
from typing import Final

from llvmlite import ir
from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu.loops import axis_bits
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.schedule import RegisterLoop
from weft.codegen.cpu.sum_order import order_of
from weft.codegen.cpu.totals import keep_apart
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.versions import mask_versions
from weft.codegen.emit.element import element_of_value
from weft.codegen.emit.regions import evaluate
from weft.codegen.llvm.types import constant
from weft.ir import tile
from weft.ir.types import dtype_of, layout_of
from weft.layout.algebra import f2
from weft.layout.families.distributed import without_axis

UNROLLED: Final = 8
"""The registers of sums that one iteration of the loop along their axis adds up."""


def along_registers(op: tile.ReduceOp) -> list[int]:
    """The register bits of a reduction's source that move along its axis."""
    return axis_bits(layout_of(op.sources[0]), "register", op.axis.value.data)


def to_source(op: tile.ReduceOp) -> tuple[int, ...]:
    """Columns from the registers of a reduction's results to its sources'."""
    kept = without_axis(layout_of(op.sources[0]), op.axis.value.data).columns("register")
    return tuple(1 << kept.index(c) if c else 0 for c in layout_of(op.results_[0]).columns("register"))


def add_up(
    registers: Registers,
    summing: RegisterLoop,
    reductions: Sequence[tile.ReduceOp],
    totals: Mapping[SSAValue, SSAValue],
    places: Sequence[RegisterIndex],
    far: Mapping[Operation, ir.Value],
) -> None:
    """Adds up the registers of a loop's ``reductions`` at ``places``, and adds the sums to the accumulators, which are ``totals``
    of what is carried on."""
    builder = registers.builder
    summing.settle(registers.buffers)
    versions = mask_versions(registers, summing)
    along, columns = along_registers(reductions[0]), to_source(reductions[0])
    most = max(UNROLLED // len(places), 1).bit_length() - 1
    unrolled = min(len(along), most)
    low, high = along[:unrolled], along[unrolled:]
    for op in reductions:
        registers.orders.setdefault(op, set()).add(order_of(op, 1))

    def index(place: RegisterIndex, base: RegisterIndex, at: int) -> RegisterIndex:
        first = place.through(columns)
        return RegisterIndex(base.const ^ first.const ^ f2.apply(low, at), (*base.terms, *first.terms))

    def add(op: tile.ReduceOp, total: ir.Value, value: ir.Value) -> ir.Value:
        return evaluate(registers, op.combine.block, [total, value])[0]

    def finish(op: tile.ReduceOp, place: RegisterIndex, total: ir.Value) -> None:
        (use,) = op.results_[0].uses
        accumulator = registers.buffers[totals[use.operation.results[0]]]
        accumulator.store(builder, place, add(op, accumulator.load(builder, place), total))

    def in_versions(base: RegisterIndex, whole: Callable[[], None], ragged: Callable[[], None]) -> None:
        if versions is None:
            whole()
        else:
            versions(index(places[-1], base, (1 << unrolled) - 1), whole, ragged)

    def at_once() -> None:
        for place, op in product(places, reductions):
            values = [registers.vector(op.sources[0], index(place, base, at)) for at in range(1 << unrolled)]
            finish(op, place, reduce(partial(add, op), values))

    def step(base: RegisterIndex, copies: int) -> None:
        for number, (at, (place, op)) in enumerate(product(range(copies), sums)):
            registers.far = far if not number % UNROLLED else {}
            slot, value = sums[place, op], registers.vector(op.sources[0], index(place, base, at))
            registers.far = {}
            builder.store(add(op, builder.load(slot, typ=value.type), value), slot)

    def one_by_one(base: RegisterIndex) -> None:
        if not low:
            step(base, 1)
            keep_apart(registers, [(slot, register_type(op.sources[0])) for (_, op), slot in sums.items()])
            return
        with registers.loop(1 << len(low)) as position:
            step(RegisterIndex(base.const, (*base.terms, (Counter(position, len(low)), tuple(low)))), 1)

    def through_slots(emit: Callable[[], None]) -> None:
        for (_, op), slot in sums.items():
            builder.store(nothing(op.sources[0]), slot)
        emit()
        for (place, op), slot in sums.items():
            finish(op, place, builder.load(slot, typ=register_type(op.sources[0])))

    base = RegisterIndex()
    sums = {
        (place, op): registers.entry.alloca(register_type(op.sources[0])) for place, op in product(places, reductions)
    }
    if not high:
        in_versions(base, at_once, partial(through_slots, partial(one_by_one, base)))
        return

    def in_loop() -> None:
        with registers.loop(1 << len(high)) as position:
            group = RegisterIndex(0, ((Counter(position, len(high)), tuple(high)),))
            in_versions(group, partial(step, group, 1 << unrolled), partial(one_by_one, group))

    through_slots(in_loop)


def register_type(value: SSAValue) -> ir.VectorType:
    """The type of a register of a tile that is added up."""
    return ir.VectorType(element_of_value(value).register_type(None), layout_of(value).in_size("lane"))


def nothing(value: SSAValue) -> ir.Constant:
    """A register of what changes no sum of a tile."""
    dtype = dtype_of(value)
    return constant(dtype, -0.0 if dtype.is_float else 0, layout_of(value).in_size("lane"))

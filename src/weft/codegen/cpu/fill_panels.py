"""Emits loops that fill panels: row by row (`weft.codegen.cpu.filling`), or group by group of columns while a product multiplies
what was packed (`weft.codegen.cpu.filling_groups`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Final

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import Block

from weft.codegen.cpu.counted import loop_to, rounded_up
from weft.codegen.cpu.far_ahead import fetch
from weft.codegen.cpu.filling import TOGETHER, Filling
from weft.codegen.cpu.filling_groups import GroupFilling, Packed
from weft.codegen.cpu.loops import Terms
from weft.codegen.cpu.next_rows import LINE
from weft.codegen.cpu.register_index import Counter, RegisterIndex
from weft.codegen.cpu.schedule import RegisterLoop, Schedule
from weft.codegen.cpu.values import Registers
from weft.codegen.cpu.views import register_bits, used_registers
from weft.codegen.emit.control import counted
from weft.codegen.llvm.types import I8, I64, POINTER
from weft.ir import tile
from weft.ir.types import dtype_of, layout_of

_AHEAD: Final = 16
"""The stretches of the depth by which a row is prefetched before it is packed: some 300 cycles. Where neighbours use the last
cache, nine of ten launches of float32 33x777x1001 in C took up to 530 us so, and 620 to 730 without."""


def fill_rows(registers: Registers, op: scf.ForOp, schedule: Schedule, found: Filling) -> None:
    """Emits a loop that fills a panel, row by row."""
    rows = rounded_up(registers, registers.scalar(found.wanted), min(found.rows, TOGETHER))
    with registers.scheduled(schedule, {}), loop_to(registers, rows) as row:
        place = (Counter(row, len(found.bits)), found.bits)

        def step() -> None:
            for item in schedule.items:
                registers.item(item, ~sum(found.bits), (place,))

        counted(registers, op, step)


def prepare(registers: Registers, filling: GroupFilling) -> None:
    """Computes what a panel is filled from into buffers."""
    schedule = filling.schedules[filling.block]
    if not any(isinstance(item, RegisterLoop) for item in schedule.items):
        return
    stale = registers.scalar(filling.op.cond)
    with registers.builder.if_then(stale), registers.scope(), registers.scheduled(schedule, filling.buffers):
        for item in schedule.items:
            if isinstance(item, RegisterLoop):
                bits = tuple(register_bits(item.layout))
                with registers.loop(1 << len(bits)) as position:
                    registers.item(item, 0, ((Counter(position, len(bits)), bits),))
            elif not isinstance(item, scf.ForOp):
                registers.item(item)


def fill_group(
    registers: Registers,
    filling: GroupFilling,
    group: ir.Value | None,
    deep: int,
    packed: Packed,
    then: Callable[[ir.Value], None],
) -> None:
    """Fills one group of a panel, None where it has one, in stretches of the depth of so many elements. ``then`` gets the number
    of each among the panel's, and finds it in ``packed``."""
    builder = registers.builder
    bits, rows, before = filling.group_bits, filling.stretch_bits(deep), registers.entry.alloca(I64)
    builder.store(ir.Constant(I64, 0), before)
    here: Terms = () if group is None else ((Counter(group, len(bits)), bits),)

    def fill(block: Block) -> None:
        with registers.scheduled(filling.schedules[block], filling.buffers):
            for item in filling.schedules[block].items:
                if isinstance(item, scf.ForOp):
                    counted(registers, item, partial(fill, item.body.block))
                elif not isinstance(item, RegisterLoop):
                    registers.item(item)
                elif item.roots:
                    _compute_shared_ends(registers, item, sum(rows), here)
                    with registers.loop(1 << len(rows)) as position:
                        place = (*here, (Counter(position, len(rows)), rows))
                        _fetch_ahead(registers, filling, item, place, before)
                        registers.packed = packed
                        registers.item(item, ~sum((*bits, *rows)), place)
                        registers.packed = None
                        first = builder.mul(registers.scalar(filling.pack.at), ir.Constant(I64, 1 << len(rows)))
                        then(builder.add(first, position))

    fill(filling.block)


def loaded(loop: RegisterLoop) -> tile.LoadOp | None:
    """The load of a packed tile's own elements: not of scales, which fewer elements of memory are repeated for."""
    loads = [value.owner for value in loop.needs if isinstance(value.owner, tile.LoadOp)]
    return next((load for load in loads if layout_of(load.result) == loop.layout), None)


def _fetch_ahead(
    registers: Registers, filling: GroupFilling, loop: RegisterLoop, within: Terms, before: ir.Value
) -> None:
    """Prefetches a row of a group that is packed `_AHEAD` stretches later, if its address is as far away as so many times the
    one ``before`` this one's. Rows of elements that are packed together are short, and not worth it."""
    load = loaded(loop)
    if load is None or filling.pack.geometry.group > 1:
        return
    builder, size = registers.builder, dtype_of(load.result).itemsize * filling.pack.geometry.width
    first = registers.lane(load.pointer, RegisterIndex(0, within), 0)
    grown = builder.mul(builder.sub(first, builder.load(before, typ=I64)), ir.Constant(I64, _AHEAD))
    builder.store(first, before)
    row = builder.inttoptr(builder.add(first, grown), POINTER)
    for end in range(min(size, LINE), size + 1, LINE):
        fetch(builder, builder.gep(row, [ir.Constant(I64, end - 1)], source_etype=I8))


def _compute_shared_ends(registers: Registers, loop: RegisterLoop, rows: int, within: Terms) -> None:
    """Computes, before a loop over rows, the first and the last lanes of what is broadcast to all rows, as columns' offsets
    and masks are. They decide whether a register is whole, and whether it is a run of memory. In the loop they would be taken
    out of vectors for each row, by units that wait for multiply-adds."""
    loop.settle(registers.buffers)
    used = used_registers(loop.layout) & ~rows & ~sum(image for _, images in within for image in images)
    own = [register for register in range(used + 1) if register & ~used == 0]
    for value, columns in [(value, each) for value, found in loop.needs.items() for each in found]:
        view = value.owner
        if not isinstance(view, tile.BroadcastOp) or value in registers.buffers:
            continue
        if registers.through(view, RegisterIndex(rows).through(columns[:-1])).const:
            continue
        for register, lane in product(own, (0, layout_of(value).in_size("lane") - 1)):
            index = RegisterIndex(register, within).through(columns[:-1])
            registers.lane(view.source, registers.through(view, index), lane)

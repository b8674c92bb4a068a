"""Prefetches far ahead of loops that read long stretches once, in launches that read more than the last cache serves fast.

    for k in range(0, n, 64):
        prefetch(x + k * 4 + 16 KiB)
        total0 += x(k), total1 += x(k + 16), total2 += x(k + 32), total3 += x(k + 48)

A processor that fetches ahead stops where a page ends. A line that is fetched `AHEAD` bytes early makes it begin in a later one,
and finds where that lies. In C on Zen 4, sums of float32 in us without and with one for each 512 bytes, to the second cache:

| rows | bytes | pages of 2 MiB | pages of 4 KiB |
|---|--:|--:|--:|
| one of 2^23 | 32 MiB | 651, 562 | 946, 631 |
| 2048 of 2048 | 16 MiB | 211, 191 | 249, 212 |
| 3072 of 1024 | 12 MiB | 143, 136 | 189, 156 |
| 2048 of 1024 | 8 MiB | 85, 87 | 85, 87 |
| 512 of 512 | 1 MiB | 10.4, 10.6 | 10.8, 11.1 |

Every fourth element of 16 MiB takes 0.7 to 0.9 of the time. Distances of 12 to 128 KiB and one prefetch for each 256 bytes to
4 KiB took as long, prefetches of each line or to the first cache 1.1 to 1.5 times as long as none. Copies and additions gained
nothing: their time goes to what they write. So a loop prefetches if

1. the CPU gains by it (``far-prefetches`` of `weft.target.TUNING`);
2. it sums rows one by one (`weft.codegen.cpu.walks`, `weft.codegen.cpu.accumulate`), whose loads go on where the iteration
   before has ended, or loads elements apart from windows (`weft.codegen.cpu.strided`), by pointers from outside of loops. Rows
   side by side gained nothing;
3. the launch's programs read a third of the last cache (`CpuTarget.cache`) together, or more. That is known when the kernel runs:
   else the prefetch is of the line that is loaded, which costs one per cent.

Tiles that are laid out anew for what stores them, as transposes do, are loaded by rows of which a processor follows none. So a
load also prefetches the same row of the tile below, or one of the same tile that is `BELOW` rows below, if

1. the CPU gains by it, as above;
2. the load's only use is a conversion of its layout, outside of the kernel's loops;
3. the next program takes the rows below, or others far away.

In C transposes of 1777x1001 float32 by tiles of 64x64 took 544 to 824 us, with these prefetches 437 to 485, of 2048x2048 2.4 and
3.3 ms (in pages of 4 KiB), with them 2.1 and 2.7, of 512x512 49 us and 49.

What is fetched beyond the end of an array is of no use. A prefetch never fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from math import prod
from typing import Final

from llvmlite import ir
from xdsl.dialects import func, scf
from xdsl.ir import Operation, SSAValue

from weft.codegen.cpu.near import nearest
from weft.codegen.cpu.order import Steps, steps_in
from weft.codegen.cpu.register_index import RegisterIndex
from weft.codegen.cpu.values import Registers
from weft.codegen.llvm.types import I8, I32, I64, POINTER, intrinsic
from weft.ir import tile
from weft.ir.types import dtype_of, layout_of, shape_of
from weft.transforms.affine import Product, Step, step_along
from weft.transforms.constants import number_of

AHEAD: Final = 16 << 10
"""How many bytes ahead a loop prefetches."""

EACH: Final = 512
"""The bytes of which one line is prefetched, at most."""

BELOW: Final = 64
"""How many rows below a row of a tile that is turned the one is that its load prefetches, at most. Rows that lie a power of two
apart share a part of the second cache: 256 rows of 8 KiB have 128 lines in it, and evict each other."""

_HOW: Final = (ir.Constant(I32, 0), ir.Constant(I32, 2), ir.Constant(I32, 1))
"""For a read, to the second-level cache, of data (LLVM Language Reference, "llvm.prefetch")."""

PARTS: Final = 3
"""The part of the last cache that a launch reads at least."""


def distances(registers: Registers, loop: scf.ForOp, loads: Sequence[tile.LoadOp]) -> Mapping[Operation, ir.Value]:
    """By how many bytes each load of a loop that prefetches shall be ahead (i64)."""
    count = number_of(loop.step)
    if "far-prefetches" not in registers.target.enabled or not isinstance(count, int):
        return {}
    builder, steps = registers.builder, steps_in(loop)
    rank = max((len(shape_of(load.pointer)) for load in loads), default=0)
    found: dict[Operation, ir.Value] = {}
    for load in loads:
        step = steps.of(load.pointer)
        if not rank or len(shape_of(load.pointer)) != rank or not step or load.volatile is not None:
            continue
        each = prod(shape_of(load.pointer)) * dtype_of(load.result).itemsize
        least = registers.target.cache // PARTS * count * registers.together // each
        enough = builder.icmp_signed(">=", _iterations(registers, loop), ir.Constant(I64, least))
        found[load] = builder.select(enough, ir.Constant(I64, AHEAD), ir.Constant(I64, 0))
    return found


def fetch_windows(registers: Registers, pointer: SSAValue, index: RegisterIndex, start: ir.Value, span: int) -> None:
    """Prefetches for a register of pointers that are apart, which is loaded from so many bytes from an address on."""
    owner = pointer.owner
    if "far-prefetches" not in registers.target.enabled or pointer in registers.every_second:
        return
    if not isinstance(owner, Operation) or not isinstance(owner.parent_op(), func.FuncOp):
        return
    layout = layout_of(pointer)
    if nearest(layout, registers.facts.axis[pointer], index, 0).distance % EACH >= span:
        return
    each = max(prod(layout.shape) * span // layout.in_size("lane"), 1)  # lanes may be more than elements
    builder = registers.entry
    least = ir.Constant(I64, registers.target.cache // PARTS * registers.together // each)
    enough = builder.icmp_signed(">=", _programs(builder, registers), least)
    fetch_ahead(registers.builder, start, builder.select(enough, ir.Constant(I64, AHEAD), ir.Constant(I64, 0)))


def fetch_below(registers: Registers, load: tile.LoadOp, address: ir.Value) -> None:
    """Prefetches what the tile below has at an address of a load's tile, or what is `BELOW` rows below."""
    rank, use = len(shape_of(load.pointer)), next(iter(load.result.uses), None)
    if "far-prefetches" not in registers.target.enabled or rank != 2 or not load.result.has_one_use() or use is None:
        return
    if not isinstance(use.operation, tile.ConvertLayoutOp) or not isinstance(load.parent_op(), func.FuncOp):
        return
    rows, columns = shape_of(load.pointer)
    moved, step = Steps(0).of(load.pointer), step_along(load.pointer, 0, registers.facts.axis)
    if moved is not None and moved > columns and step is not None:
        below = tuple(Product(each.factor * min(rows, BELOW), each.uniform) for each in step)
        fetch_ahead(registers.builder, address, bytes_of(registers, below))


def bytes_of(registers: Registers, step: Step) -> ir.Value:
    """A number of bytes."""
    builder = registers.builder
    total: ir.Value = ir.Constant(I64, 0)
    for factor, uniform in step:
        product: ir.Value = ir.Constant(I64, factor)
        for each in uniform:
            number = registers.lane(each, RegisterIndex(), 0)
            product = builder.mul(product, number if number.type == I64 else builder.sext(number, I64))
        total = builder.add(total, product)
    return total


def _programs(builder: ir.IRBuilder, registers: Registers) -> ir.Value:
    """The programs of the launch (i64)."""
    return reduce(builder.mul, [builder.zext(size, I64) for size in registers.grid.sizes])


def _iterations(registers: Registers, loop: scf.ForOp) -> ir.Value:
    """What a loop counts in all programs of the launch, and in the loops around it (i64)."""
    builder = registers.builder
    total = _programs(builder, registers)
    around: Operation | None = loop
    while isinstance(around, scf.ForOp):
        lower, upper = (registers.scalar(value) for value in (around.lb, around.ub))
        span = builder.sub(upper, lower)
        total = builder.mul(total, builder.sext(span, I64) if span.type != I64 else span)
        around = around.parent_op()
    return total


def fetch_ahead(builder: ir.IRBuilder, address: ir.Value, distance: ir.Value) -> None:
    """Prefetches a line so many bytes behind an address."""
    fetch(builder, builder.gep(address, [distance], source_etype=I8))


def fetch(builder: ir.IRBuilder, place: ir.Value) -> None:
    """Prefetches the line of a place to the second-level cache."""
    intrinsic(builder, "prefetch", [place, *_HOW], ir.VoidType(), [POINTER])

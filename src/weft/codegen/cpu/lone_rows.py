"""Rows that share registers, as those of a matrix times a vector do: where they are walked one by one, and not side by side.

    side by side, 8 rows                             one by one, 4 registers
    for k:                                           for each row r:
        v = x(k)                                         for k, four at a time:
        for each row r: total[r] += a(r, k) * v              total0 += a(r, k) * x(k), total1 += a(r, k + 1) * x(k + 1), ..

Side by side takes 9 loads for 8 registers of the matrix, one by one takes 16. But one by one, a processor that fetches ahead
never begins anew, and the loads of ``x`` come from the first cache. A launch walks rows one by one if

1. the CPU gains by it (``lone-rows`` of `weft.target.TUNING`);
2. a row has `LEAST` to `MOST` bytes. Shorter rows end too often. ``x`` of longer ones does not stay in the first cache beside the
   rows;
3. rows lie whole cache lines apart, as is known when the kernel is compiled (`rows_apart`). Else most loads cross lines.

In C on Zen 4, float32, times one by one over times side by side:

| matrix | 512x512 | 512x2048 | 4096x1024 | 2048x2048 | 1024x4096 | 512x8192 | 1001x1777 |
|---|--:|--:|--:|--:|--:|--:|--:|
| one by one | 1.00 | 0.83 | 0.82 | 0.91 | 1.12 | 1.50 | 1.00 |

The length is known when the kernel runs: it has both loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Final

from llvmlite import ir
from xdsl.dialects import scf
from xdsl.ir import SSAValue

from weft.codegen.cpu.values import Registers
from weft.ir import tile
from weft.ir.types import shape_of
from weft.transforms.affine import step_along
from weft.transforms.axis_info import AxisInfo, lowest_bit
from weft.transforms.constants import number_of

LINE: Final = 64
"""The bytes of a cache line."""

LEAST: Final = 4 << 10
MOST: Final = 8 << 10


def rows_apart(load: tile.LoadOp, axis: int, facts: Mapping[SSAValue, AxisInfo]) -> int:
    """A power of two that divides the bytes from a row that is loaded to the next, 1 where nothing is known; 0 where all rows
    are the same, and for tiles of one axis, which have an element a row or none. Rows are along ``axis``."""
    if len(shape_of(load.pointer)) == 1:
        return 0
    if len(shape_of(load.pointer)) > 2:
        return 1
    step = step_along(load.pointer, 1 - axis, facts)
    if step is None:
        return 1
    numbers = [factor * prod(facts[value].divisibility[0] for value in uniform) for factor, uniform in step]
    return min(map(lowest_bit, numbers), default=0)


def is_lone(registers: Registers, loop: scf.ForOp, bytes_: int) -> ir.Value:
    """Whether rows have such a length, of a loop that takes so many bytes of a row in an iteration (i1). The loop counts by a
    constant."""
    builder, (lower, upper) = registers.builder, (registers.scalar(v) for v in (loop.lb, loop.ub))
    step, span = number_of(loop.step), builder.sub(upper, lower)
    assert isinstance(step, int), "the loop counts by a constant"
    least, most = (ir.Constant(span.type, bound * step // bytes_) for bound in (LEAST, MOST))
    fits = builder.and_(builder.icmp_signed(">=", span, least), builder.icmp_signed("<=", span, most))
    return builder.and_(builder.icmp_signed("<", lower, upper), fits)

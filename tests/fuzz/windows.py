"""Loops that sum windows of an array: strided, overlapping, along rows or columns, cut off at an end.

What they sum are small whole numbers, so sums are exact in any order: a CPU keeps the totals in registers, sums lanes behind the
loop, in parts, or joins neighbouring programs.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from fuzz.typed import Typed
from weft import dtypes

if TYPE_CHECKING:
    from fuzz.generator import Generator


def window(g: Generator) -> None:
    """A loop that sums windows; its sum is an exact value."""
    r: random.Random = g.random
    dtype = r.choice((dtypes.float32, dtypes.float32, dtypes.int32, dtypes.float64))
    rows, columns = r.choice((1, 1, 2, 4, 16, 32)), r.choice((1, 4, 8, 16, 16, 32, 64))
    trips, stride = r.choice((0, 1, 2, 3, 5)), r.choice((1, 1, 1, 2, 3))
    length = max(1, trips) * (rows if (down := rows > 1 and r.random() < 0.6) else columns)
    step = r.choice((1, rows if down else columns, rows if down else columns, max(1, (rows if down else columns) // 2)))
    wide = length * stride + columns * g.programs
    apart = r.choice((wide, columns, 1))  # from one row to the next: less than its length, so that rows overlap
    size = (length + rows) * (apart + stride) + wide + columns * (stride + g.programs)
    name = g.argument("in", "input", dtype.name, size, "small")
    distance = str(apart) if r.random() < 0.5 else g.argument("stride", "number", apart)
    total, at = g.new(), g.new("k")
    steps = range(0, length if trips else 0, step)
    end = g.argument("n", "number", steps.stop if r.random() < 0.7 else max(0, steps.stop - r.randint(1, 3)))
    lanes = f"tl.arange(0, {columns})"
    mine = f"pid * {columns} + {lanes}" if r.random() < 0.7 else f"pid + {lanes} * {stride}"
    along = f"{at} + tl.arange(0, {rows if down else columns})"
    mask = f", mask={{}} < {end}, other={r.choice((0, 0, 1))}" if r.random() < 0.6 else ""
    if rows == 1:
        text, axis, shape = f"{name} + ({along}) * {stride}", 0, ()
        mask = mask.format(f"({along})")
    elif down:  # rows follow each other: the columns are summed, which are the program's own
        text, axis, shape = f"{name} + ({along})[:, None] * {distance} + ({mine})[None, :]", 0, (columns,)
        mask = mask.format(f"({along})[:, None] + tl.zeros(({rows}, {columns}), tl.int32)")
    else:
        text = f"{name} + tl.arange(0, {rows})[:, None] * {distance} + ({along})[None, :] * {stride}"
        axis, shape = 1, (rows,)
        mask = mask.format(f"({along})[None, :] + tl.zeros(({rows}, {columns}), tl.int32)")
    whole = (columns,) if rows == 1 else (rows, columns)
    last = r.random() < 0.4
    g.emit(f"{total} = tl.zeros({whole if last else shape}, tl.{dtype.name})")
    with g.block(f"for {at} in range(0, {end}, {step}):", Typed(at, dtypes.int32)):
        loaded = g.define(Typed(f"tl.load({text}{mask})", dtype, whole))
        g.emit(f"{total} += {loaded.text}" if last else f"{total} += tl.sum({loaded.text}, axis={axis})")
    if last:
        g.emit(f"{total} = tl.sum({total}, axis={axis})")
    g.scopes[-1].append(Typed(total, dtype, shape))

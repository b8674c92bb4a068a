"""Loops over a contraction whose loads feed ``tl.dot``: what a GPU pipelines and a CPU blocks.

Some loops stand in one or two others, which go through more of the arrays and carry the sums on.

Operands are small whole numbers, so that sums are exact in any order. Some arrays hold such numbers, which are multiplied as they
are loaded; of others the numbers are made in the loop.
"""

from __future__ import annotations

import random
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from fuzz.products import dot_sums
from fuzz.typed import LARGEST_TILE, Typed, whole
from weft import dtypes
from weft.dtypes import DType

if TYPE_CHECKING:
    from fuzz.generator import Generator

OPERANDS: Final = (
    dtypes.float16,
    dtypes.bfloat16,
    dtypes.float32,
    dtypes.int8,
    dtypes.float8_e4m3fn,
    dtypes.float8_e5m2,
    dtypes.float64,
)


class Nest:
    """One loop: the names of its ranges, its tile sizes, and how many iterations there are at most."""

    def __init__(self, g: Generator) -> None:
        self.g = g
        r = g.random
        self.m, self.n, self.k = r.choice((16, 16, 32, 64)), r.choice((8, 16, 32, 64)), r.choice((16, 32, 32, 64))
        if self.m * self.n > LARGEST_TILE:
            self.n = LARGEST_TILE // self.m
        self.trips = r.choice((0, 1, 2, 3, 5))
        self.rows, self.columns, self.depth, self.at = (g.new(prefix) for prefix in ("rows", "columns", "depth", "k"))
        for name, size in ((self.rows, self.m), (self.columns, self.n), (self.depth, self.k)):
            g.emit(f"{name} = tl.arange(0, {size})")
        self.around = [(g.new("outer"), r.choice((0, 1, 2, 3))) for _ in range(r.choice((0, 0, 0, 1, 2)))]
        # Loops end in the middle of a tile, too: the arrays have all of it.
        total = self.trips * self.k
        self.end = g.argument("n", "number", total if r.random() < 0.7 else max(0, total - r.randint(1, self.k - 1)))

    def operand(self, left: bool, dtype: DType, carried: list[str]) -> Typed:
        """The tile of one iteration, and the advance of its pointers where they are ``carried``."""
        g, r = self.g, self.g.random
        own, size = (self.rows, self.m) if left else (self.columns, self.n)
        shape = (self.m, self.k) if left else (self.k, self.n)
        depth_last = r.random() < 0.5  # whether memory is contiguous along the contraction
        stored = dtype if r.random() < 0.6 else r.choice(OPERANDS)
        inner = max(1, self.trips) * self.k
        length, before = inner, ""
        for name, trips in self.around:
            before += f" + {name} * {length}"
            length *= max(1, trips)
        small = r.random() < 0.6
        if small:
            name = g.argument("in", "input", stored.name, size * length, "small")
        else:
            name = g.array("input", stored, size * length, None)
        stride = str(length if depth_last else size)
        if r.random() < 0.4:
            stride = g.argument("stride", "number", int(stride))
        mine, along = ("[:, None]", "[None, :]") if left else ("[None, :]", "[:, None]")
        if r.random() < 0.3:  # as in Triton's tutorial: rows beyond the end begin again
            wrapped, end = g.new("wrapped"), g.argument("n", "number", r.randint(1, size))
            g.lines.insert(self.before, "    " * (len(g.scopes) - 1) + f"{wrapped} = {own} % {end}")
            self.before += 1
            own = wrapped
        masked = r.random() < 0.5
        mask = f", mask=(({self.at} + {self.depth}) < {self.end}){along}, other={r.choice((0, 0, 2))}" if masked else ""
        if r.random() < 0.4:
            pointers = g.new("at")
            steps = f"{self.depth}{along}" if depth_last else f"{self.depth}{along} * {stride}"
            rest = f"{own}{mine} * {stride}" if depth_last else f"{own}{mine}"
            if before:
                rest += before if depth_last else f" + ({before[3:]}) * {stride}"
            g.lines.insert(self.before, "    " * (len(g.scopes) - 1) + f"{pointers} = {name} + {rest} + {steps}")
            self.before += 1
            carried.append(f"{pointers} += {self.k}" if depth_last else f"{pointers} += {self.k} * {stride}")
            text = f"tl.load({pointers}{mask})"
        else:
            here = f"({self.at}{before} + {self.depth}){along}"
            offsets = f"{own}{mine} * {stride} + {here}" if depth_last else f"{own}{mine} + {here} * {stride}"
            text = f"tl.load({name} + {offsets}{mask})"
        loaded = g.define(Typed(text, stored, shape))
        if small and stored == dtype:
            return loaded
        return whole(loaded, dtype) if not small else Typed(f"{loaded.text}.to(tl.{dtype.name})", dtype, shape)

    before = 0
    """The line at which pointers are made, in front of the loop."""


def nest(g: Generator) -> None:
    """A loop over a contraction, perhaps in others; its sum is an exact value."""
    r: random.Random = g.random
    loop = Nest(g)
    dtype = r.choice(OPERANDS)
    sums = dot_sums(dtype)
    total = g.new()
    g.emit(f"{total} = tl.zeros(({loop.m}, {loop.n}), tl.{sums.name})")
    stages = r.choice(("", "", ", num_stages=1", ", num_stages=2", ", num_stages=4"))
    carried: list[str] = []
    with ExitStack() as blocks:
        for name, trips in loop.around:
            bound = g.argument("n", "number", trips) if r.random() < 0.5 else trips
            blocks.enter_context(g.block(f"for {name} in range({bound}):", Typed(name, dtypes.int32)))
        loop.before = len(g.lines)
        header = f"for {loop.at} in tl.range(0, {loop.end}, {loop.k}{stages}):"
        blocks.enter_context(g.block(header, Typed(loop.at, dtypes.int32)))
        left, right = loop.operand(True, dtype, carried), loop.operand(False, dtype, carried)
        if r.random() < 0.3:
            g.statements(1)
        precision = ', input_precision="tf32"' if dtype == dtypes.float32 and r.random() < 0.7 else ""
        g.emit(f"{total} = tl.dot({left.text}, {right.text}, {total}{precision})")
        for line in carried:
            g.emit(line)
    g.scopes[-1].append(Typed(total, sums, (loop.m, loop.n)))

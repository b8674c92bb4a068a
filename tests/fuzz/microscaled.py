"""Products of microscaled matrices beside products of the same numbers, decoded from memory by hand.

A trap compares the two, since the reference runs the same composite function.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from fuzz.typed import Typed
from weft import dtypes

if TYPE_CHECKING:
    from fuzz.generator import Generator

FORMATS: Final = {
    "e2m1": dtypes.uint8,
    "e4m3": dtypes.float8_e4m3fn,
    "e5m2": dtypes.float8_e5m2,
    "bf16": dtypes.bfloat16,
    "fp16": dtypes.float16,
}
BLOCK: Final = 32
"""How many elements have one scale."""


@dataclass(frozen=True)
class Operand:
    """The texts of an operand, its scales and its decoded numbers."""

    format: str
    stored: str
    scale: str
    numbers: str


def scaled(g: Generator) -> None:
    """``tl.dot_scaled`` of matrices of any formats; a scale or both may be missing."""
    r = g.random
    m, n, k = r.choice((8, 16, 32)), r.choice((8, 16, 32)), r.choice((32, 64))
    left, right = operand(g, m, k, True), operand(g, n, k, False)
    value = g.define(
        Typed(
            f'(tl.dot_scaled({left.stored}, {left.scale}, "{left.format}", {right.stored}, {right.scale}, '
            f'"{right.format}") + 0.0)',
            dtypes.float32,
            (m, n),
        )
    )
    hand = g.define(Typed(f"tl.dot({left.numbers}, {right.numbers})", dtypes.float32, (m, n)))
    g.alike(value, hand.text)


def operand(g: Generator, rows: int, inner: int, left: bool) -> Operand:
    """An operand of so many rows, or columns if it is not the left one. Its numbers are small, so that sums are exact."""
    r, name = g.random, g.random.choice(tuple(FORMATS))
    own, along = (g.new("t") for _ in range(2))
    across, down = ("[:, None]", "[None, :]") if left else ("[None, :]", "[:, None]")
    g.emit(f"{own} = tl.arange(0, {rows}){across}")
    stored, numbers, scale = (g.new("t") for _ in range(3))
    packed = 1 if name != "e2m1" else 2
    size = rows * inner // packed
    matrix = g.argument("in", "input", FORMATS[name].name, size, *(("small",) if packed == 1 else ()))
    g.emit(f"{along} = tl.arange(0, {inner // packed}){down}")
    g.emit(f"{stored} = tl.load({matrix} + {own} * {inner // packed} + {along})")
    every = f"tl.arange(0, {inner}){down}"
    if packed == 1:
        g.emit(f"{numbers} = {stored}.to(tl.float32)")
    else:
        code, low = g.new("t"), g.new("t")
        g.emit(f"{code} = tl.load({matrix} + {own} * {inner // 2} + {every} // 2).to(tl.int32) >> ({every} % 2 * 4)")
        g.emit(f"{low} = {code} & 7")
        size = f"tl.where({low} < 5, {low} * 0.5, tl.where({low} < 6, 3.0, {low} * 2.0 - 8.0))"
        g.emit(f"{numbers} = tl.where({low} == 4, 2.0, {size}) * (1 - ({code} >> 2 & 2))")
    if r.random() < 0.25:
        return Operand(name, stored, "None", numbers)
    codes = g.array("input", dtypes.uint8, rows * inner // BLOCK, None)
    blocks = f"tl.arange(0, {rows})[:, None] * {inner // BLOCK} + tl.arange(0, {inner // BLOCK})[None, :]"
    g.emit(f"{scale} = (tl.load({codes} + {blocks}) & 3) + 126")
    factor = g.new("t")
    g.emit(f"{factor} = (tl.load({codes} + {own} * {inner // BLOCK} + {every} // {BLOCK}) & 3).to(tl.int32)")
    g.emit(f"{numbers} = {numbers} * (1 << {factor}).to(tl.float32) * 0.5")
    return Operand(name, stored, scale, numbers)

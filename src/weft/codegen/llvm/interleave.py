"""Vectors whose lanes take turns, by the shuffles that CPUs have.

LLVM takes a shuffle of many vectors apart lane by lane, in whatever steps it finds. CPUs interleave halves of blocks of 16 bytes
(``punpckl``, ``zip1``), and then move whole blocks. Four vectors of bytes, of which each has four blocks, take eight of either:

    a0 a1 .. | a16 .. | .. .     a0 b0 a1 b1 .. | a16 .. | .. .     a0 b0 c0 d0 a1 b1 .. | a16 ..     a0 .. d3 | a4 .. d7 | .. .
    b0 b1 .. | b16 .. | .. .     a8 b8 a9 b9 .. | a24 .. | .. .     a4 b4 c4 d4 ..       | a20 ..     a16 ..
    c0 c1 .. | c16 .. | .. .     c0 d0 c1 d1 .. | c16 .. | .. .     a8 b8 c8 d8 ..       | a24 ..     a32 ..
    d0 d1 .. | d16 .. | .. .     c8 d8 c9 d9 .. | c24 .. | .. .     a12 b12 ..           | a28 ..     a48 ..
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from weft.codegen.llvm.masked import concatenated
from weft.codegen.llvm.types import lanes_of, shuffle

_BLOCK: Final = 16
"""Bytes within which elements of two vectors interleave."""


def interleaved(builder: ir.IRBuilder, parts: Sequence[ir.Value], size: int) -> list[ir.Value]:
    """Lane 0 of each part, then lane 1 of each and so on, in as many vectors of as many lanes. Numbers of parts and of lanes are
    powers of two, and elements have ``size`` bytes. More parts than lanes, or than elements in a block, are left to LLVM."""
    lanes = lanes_of(parts[0]) or 1
    block = min(lanes, _BLOCK // size)
    if len(parts) > block:
        whole, order = (
            concatenated(builder, parts),
            [part * lanes + lane for lane in range(lanes) for part in range(len(parts))],
        )
        return [shuffle(builder, whole, order[i : i + lanes]) for i in range(0, len(order), lanes)]
    return _merged(builder, _merged(builder, parts, 1, block), block, lanes)


def _merged(builder: ir.IRBuilder, vectors: Sequence[ir.Value], unit: int, window: int) -> list[ir.Value]:
    """Of so many lanes of each vector in turn, within windows of lanes of all vectors: those of two vectors, then those of two
    such pairs, which take turns by twice as many, and so on."""
    groups = [[vector] for vector in vectors]
    while len(groups) > 1:
        groups = [_turns(builder, *pair, unit, window) for pair in zip(groups[::2], groups[1::2], strict=True)]
        unit *= 2
    return groups[0]


def _turns(builder: ir.IRBuilder, low: list[ir.Value], high: list[ir.Value], unit: int, window: int) -> list[ir.Value]:
    """``unit`` lanes of one list of vectors and as many of the other, by turns; whole vectors where they have no more lanes."""
    lanes = lanes_of(low[0]) or 1
    step = max(1, unit // lanes)
    result: list[ir.Value] = []
    for i in range(0, len(low), step):
        if unit >= lanes:
            result += low[i : i + step] + high[i : i + step]
            continue
        for half in (0, window // 2):
            first = [start + half + at for start in range(0, lanes, window) for at in range(0, window // 2, unit)]
            order = [side + lane + j for lane in first for side in (0, lanes) for j in range(unit)]
            result.append(shuffle(builder, low[i], order, high[i]))
    return result

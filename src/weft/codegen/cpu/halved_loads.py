"""Vectors of 64 bytes that are loaded as two of 32, where several arrays go by.

Zen 4 has instructions that load 64 bytes. But a loop that reads two arrays and writes a third gets more of the memory's bandwidth
by loads of 32: additions of 2^22 float32 elements took 0.85 to 0.9 of the time, from the third cache 0.91, from the second 0.93
to 1.0. Presumably the processor fetches further ahead. Loops that reduce what they load, and those with one array, gained nothing
or lost up to 8 %. So a register loop loads by halves if

1. the CPU gains by it (``halved-loads`` of `weft.target.TUNING`);
2. it stores a tile, and does nothing but load and store;
3. it loads at least two tiles, each once for each of its registers.

Sums along rows are the exception. A loop that walks a row (`weft.codegen.cpu.walks`) loads and adds by halves, if rows are known
to lie whole lines apart: from the third cache 2,048 rows of 2,048 float32 took 0.89 of the time, from the second as long. Of rows
that begin anywhere some loads cross lines either way, and it took 0.95 to 1.06.

LLVM would make one load of the two. An empty piece of assembly hides where one of them came from. Where they are added by halves
nothing puts them together, and additions take them from memory, in its order.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from llvmlite import ir
from xdsl.ir import SSAValue

from weft.codegen.cpu.schedule import RegisterLoop
from weft.codegen.llvm.types import I8, I64, shuffle, unknown
from weft.ir import tile
from weft.ir.types import is_tile, layout_of

BYTES: Final = 64
"""Of vectors that are loaded by halves."""


def reads_streams(loop: RegisterLoop, buffered: Container[SSAValue]) -> bool:
    """Whether a register loop writes what it makes of several tiles, rules 2 and 3; what is ``buffered`` is not loaded."""
    if not any(isinstance(root, tile.StoreOp) for root in loop.roots):
        return False
    if not all(isinstance(root, tile.LoadOp | tile.StoreOp) for root in loop.roots):
        return False
    loads = [value for value in loop.needs if isinstance(value.owner, tile.LoadOp) and value not in buffered]
    return sum(is_tile(value) and layout_of(value) == loop.layout for value in loads) > 1


def load_halves(builder: ir.IRBuilder, address: ir.Value, type_: ir.VectorType, size: int, apart: bool) -> ir.Value:
    """Loads a vector of elements of ``size`` bytes, which is also their alignment, as two of half the length; ``apart``: they are
    used by halves."""
    half = ir.VectorType(type_.element, type_.count // 2)
    further = builder.gep(address, [ir.Constant(I64, half.count * size)], source_etype=I8)
    low, high = (builder.load(place, typ=half, align=size) for place in (address, further))
    return shuffle(builder, low, range(type_.count), high if apart else unknown(builder, high, "v"))

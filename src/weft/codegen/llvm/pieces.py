"""Parts of vectors: stores of those that are wider than the machine's registers, in the order of memory.

LLVM stores the registers of a wide vector from the last to the first. Arrays seldom begin where a cache line does, so each of
these stores may cross two lines, and in that order neighbouring lines take turns: a row in the second-level cache then takes
twice the time. So each register is a store of its own, the lowest address first, which LLVM keeps.

Stores past the caches have pieces of 16 bytes, whatever the registers: they must be aligned, and NumPy's large arrays begin
16 bytes behind a line. The processor collects the pieces of a line and writes it whole.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from weft.codegen.llvm.types import I8, I32, I64, integer_width, lanes_of, scalar_type, shuffle, unknown

PIECE: Final = 16
"""The bytes of a piece that is stored past the caches, and its alignment."""


def store_pieces(builder: ir.IRBuilder, value: ir.Value, address: ir.Value, size: int, register_bits: int) -> None:
    """Stores a vector of elements of ``size`` bytes, which is also their alignment; ``register_bits`` are those of a SIMD
    register."""
    lanes = lanes_of(value) or 1
    step = min(lanes, register_bits // (8 * size))
    for start in range(0, lanes, step):
        place = builder.gep(address, [ir.Constant(I64, start * size)], source_etype=I8) if start else address
        builder.store(shuffle(builder, value, range(start, start + step)), place, align=size)


def stream_pieces(builder: ir.IRBuilder, value: ir.Value, address: ir.Value, size: int) -> None:
    """Stores a vector of elements of ``size`` bytes past the caches, to an address that is a multiple of `PIECE`. Another thread
    sees it in order only behind a fence."""
    lanes = lanes_of(value) or 1
    step = PIECE // size
    for start in range(0, lanes, step):
        place = builder.gep(address, [ir.Constant(I64, start * size)], source_etype=I8) if start else address
        piece = builder.store(shuffle(builder, value, range(start, start + step)), place, align=PIECE)
        piece.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(I32, 1)]))


def taken_out(builder: ir.IRBuilder, vector: ir.Value) -> list[ir.Value]:
    """Each lane of a vector of integers: words of 64 bits are taken out of it and parted by shifts, which takes half as many
    transfers from vector registers to others. The words go through empty pieces of assembly, since LLVM would take out each
    lane."""
    lanes, width, element = lanes_of(vector) or 1, integer_width(vector), scalar_type(vector)
    each = I64.width // width
    if each < 2 or lanes % each:
        return [builder.extract_element(vector, ir.Constant(I32, lane)) for lane in range(lanes)]
    words = builder.bitcast(vector, ir.VectorType(I64, lanes // each))
    found: list[ir.Value] = []
    for at in range(lanes // each):
        word = unknown(builder, builder.extract_element(words, ir.Constant(I32, at)), "r")
        found += [builder.trunc(builder.lshr(word, ir.Constant(I64, width * i)), element) for i in range(each)]
    return found

"""Masked loads.

LLVM's backend for AVX2 takes a mask that it knows to be false for one that is true (LLVM 22.1): it reads what is masked off, or
stops at an assertion. So there each register is a load of its own, whose mask goes through an empty piece of assembly. LLVM knows
nothing of what comes out, and it costs no instruction. Masked stores are right, and loads for AVX-512.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from weft.codegen.llvm.types import I8, I32, I64, POINTER, intrinsic, lanes_of, shuffle, splat

_AVX2_BITS: Final = 256
"""A SIMD register of AVX and AVX2, which no other machine has."""

_LEAST_BITS: Final = 128
"""A SIMD register of SSE. A narrower vector cannot go through assembly; LLVM widens it, and its mask, rightly."""

_MASKED_SIZES: Final = (4, 8)
"""The bytes of elements that AVX and AVX2 load under a mask. Others become scalar loads before the backend."""


def masked_load(
    builder: ir.IRBuilder, address: ir.Value, mask: ir.Value, fill: ir.Value, size: int, register_bits: int
) -> ir.Value:
    """The elements from ``address`` on where ``mask`` is true, those of ``fill`` elsewhere.

    ``size`` is that of an element in bytes, and the alignment; ``register_bits`` that of a SIMD register.
    """
    lanes = lanes_of(mask) or 1
    step = min(lanes, register_bits // (8 * size))
    if register_bits != _AVX2_BITS or size not in _MASKED_SIZES or 8 * size * step < _LEAST_BITS:
        return _load(builder, address, mask, fill, size)
    parts: list[ir.Value] = []
    for start in range(0, lanes, step):
        at = range(start, start + step)
        active = _unknown(builder, shuffle(builder, mask, at), 8 * size)
        place = builder.gep(address, [ir.Constant(I64, start * size)], source_etype=I8) if start else address
        parts.append(_load(builder, place, active, shuffle(builder, fill, at), size))
    return concatenated(builder, parts)


def _load(builder: ir.IRBuilder, address: ir.Value, mask: ir.Value, fill: ir.Value, size: int) -> ir.Value:
    operands = [address, ir.Constant(I32, size), mask, fill]
    return intrinsic(builder, "masked.load", operands, fill.type, [fill.type, POINTER])


def _unknown(builder: ir.IRBuilder, mask: ir.Value, bits: int) -> ir.Value:
    """The mask, as LLVM knows nothing of it; ``bits`` is the width of what it masks."""
    register = ir.VectorType(ir.IntType(bits), lanes_of(mask) or 1)
    same = builder.asm(ir.FunctionType(register, [register]), "", "=x,0", [builder.sext(mask, register)], False)
    return builder.icmp_signed("<", same, splat(0, register))


def concatenated(builder: ir.IRBuilder, parts: Sequence[ir.Value]) -> ir.Value:
    """The lanes of all parts, a power of two of them, in one vector."""
    while len(parts) > 1:
        lanes = range(2 * (lanes_of(parts[0]) or 1))
        parts = [shuffle(builder, low, lanes, high) for low, high in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]

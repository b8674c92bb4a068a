"""Products of 64 bits of which only halves are used, as two products of 32 bits.

LLVM multiplies two extended numbers of 32 bits by one ``mul.wide``. Where a kernel takes a product apart again (generators of
random numbers, divisions by multiplication), LLVM first moves the truncations behind the arithmetic on the halves. It then
finds neither half, and keeps ``cvt.u64.u32``, ``mul.lo.s64`` and arithmetic of 64 bits, each several instructions of the machine.

    (a.to(uint64) * C >> 32).to(uint32) ^ b     mul.hi.u32, xor.b32

So the halves are computed apart and put together as a number of 64 bits, which LLVM drops since no reader wants it whole.
A product that is wanted whole stays LLVM's. The upper half alone is an op (``umulhi``).
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from xdsl.ir import SSAValue

from weft import dtypes
from weft.codegen.llvm.types import I32, intrinsic, lanes_of, like, splat
from weft.codegen.nvidia.files import of_scalars, scalars
from weft.ir import tile
from weft.ir.types import dtype_of, is_pointer

_WORD = 32
_UNSIGNED = range(1 << _WORD)
_SIGNED = range(-(1 << _WORD - 1), 1 << _WORD - 1)


def product(builder: ir.IRBuilder, op: tile.BinaryOp, operands: Sequence[ir.Value]) -> ir.Value | None:
    """What an op computes of its operands, scalars or vectors, if it is a product of 32 bits; else None."""
    if op.kind.data == "umulhi" and dtype_of(op.result).bits == _WORD:
        return _upper(builder, _UNSIGNED, *operands)
    word = by_halves(op)
    return None if word is None else _by_halves(builder, word, operands)


def by_halves(op: tile.BinaryOp) -> range | None:
    """The numbers of 32 bits that both operands of a product of 64 bits are, if only its halves are used; else None."""
    if op.kind.data != "mul" or dtype_of(op.result) not in (dtypes.int64, dtypes.uint64):
        return None
    if not all(_takes_half(use.operation, op.result) for use in op.result.uses):
        return None
    return next((word for word in (_UNSIGNED, _SIGNED) if _fits(op.lhs, word) and _fits(op.rhs, word)), None)


def _by_halves(builder: ir.IRBuilder, word: range, operands: Sequence[ir.Value]) -> ir.Value:
    """The product of two numbers of 64 bits that are numbers of ``word``."""
    a, b = (builder.trunc(operand, like(operand, I32)) for operand in operands)
    wide, half = operands[0].type, splat(_WORD, operands[0].type)
    low = builder.zext(builder.mul(a, b), wide)
    high = builder.zext(_upper(builder, word, a, b), wide)
    return builder.or_(low, builder.shl(high, half))


def _upper(builder: ir.IRBuilder, word: range, a: ir.Value, b: ir.Value) -> ir.Value:
    """The upper 32 bits of a product, by LLVM's intrinsic for PTX, which has no vectors. A product of 64 bits would not do: an
    extension that LLVM moves out of a loop is out of sight when ``mul.hi`` is selected."""
    name = f"nvvm.mulhi.{'i' if word is _SIGNED else 'ui'}"
    if lanes_of(a) is None:
        return intrinsic(builder, name, [a, b], overloads=())
    pairs = zip(scalars(builder, (a,)), scalars(builder, (b,)), strict=True)
    (chunk,) = of_scalars(builder, [intrinsic(builder, name, pair, overloads=()) for pair in pairs])
    return chunk


def _takes_half(op: object, product: SSAValue) -> bool:
    """Whether an op uses the upper or the lower 32 bits of a product only."""
    match op:
        case tile.CastOp():
            dtype = None if is_pointer(op.result) else dtype_of(op.result)
            return dtype is not None and not dtype.is_float and 1 < dtype.bits <= _WORD
        case tile.BinaryOp() if op.kind.data == "shr" and op.lhs is product:
            amount = op.rhs.owner
            return isinstance(amount, tile.ConstantOp) and amount.number >= _WORD
        case _:
            return False


def _fits(value: SSAValue, word: range) -> bool:
    """Whether every element is a number of ``word``: a constant, or extended from a narrower type."""
    match value.owner:
        case tile.ConstantOp() as op:
            return op.number in word
        case tile.CastOp() as op if not dtype_of(op.source).is_float:
            dtype = dtype_of(op.source)
            return dtype.min in word and dtype.max in word
        case tile.ShapeOp() | tile.SplatOp() as op:
            return _fits(op.operands[0], word)
        case _:
            return False

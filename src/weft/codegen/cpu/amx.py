"""AMX: tile registers of 16 rows of 64 bytes, and their instructions as LLVM's intrinsics.

The numbers of tiles are constants of the code. One configuration serves all kernels: eight tiles of the greatest size. It
belongs to a thread; the operating system saves tiles with the thread's other registers only until they are released.
"""

from __future__ import annotations

from typing import Final

from llvmlite import ir

from weft.codegen.llvm.types import I8, I64, POINTER, declare

ROWS: Final = 16
BYTES: Final = 64
_TILES: Final = 8
_NAME: Final = "weft.tiles"

PRODUCTS: Final = {"amx.bf16": "tdpbf16ps", "amx.int8": "tdpbssd"}
"""The instruction that multiplies two tiles and adds to a third, by the name of its product (`weft.target.PRODUCTS`)."""


def _call(builder: ir.IRBuilder, name: str, operands: list[ir.Value]) -> None:
    function = declare(builder.module, f"llvm.x86.{name}", ir.VoidType(), [operand.type for operand in operands])
    builder.call(function, operands)


def _tile(number: int) -> ir.Constant:
    return ir.Constant(I8, number)


def configure(builder: ir.IRBuilder) -> None:
    """Makes the tiles ready, all of 16 rows of 64 bytes (Intel SDM, LDTILECFG: palette, start row, bytes a row, rows)."""
    columns = [BYTES & 0xFF, BYTES >> 8] * _TILES + [0] * 2 * (16 - _TILES)
    data = [1, 0, *[0] * 14, *columns, *[ROWS] * _TILES, *[0] * (16 - _TILES)]
    type_ = ir.ArrayType(I8, len(data))
    table = ir.GlobalVariable(builder.module, type_, _NAME)
    table.initializer = ir.Constant(type_, bytearray(data))
    table.global_constant, table.linkage, table.align = True, "internal", 64
    _call(builder, "ldtilecfg", [builder.bitcast(table, POINTER)])


def release(builder: ir.IRBuilder) -> None:
    """Ends the use of tiles."""
    _call(builder, "tilerelease", [])


def clear(builder: ir.IRBuilder, tile: int) -> None:
    """Zeros for a tile."""
    _call(builder, "tilezero", [_tile(tile)])


def load(builder: ir.IRBuilder, tile: int, pointer: ir.Value, stride: int) -> None:
    """Loads a tile whose rows are ``stride`` bytes apart."""
    _call(builder, "tileloadd64", [_tile(tile), pointer, ir.Constant(I64, stride)])


def store(builder: ir.IRBuilder, tile: int, pointer: ir.Value, stride: int) -> None:
    """Stores a tile in rows that are ``stride`` bytes apart."""
    _call(builder, "tilestored64", [_tile(tile), pointer, ir.Constant(I64, stride)])


def multiply(builder: ir.IRBuilder, product: str, sums: int, left: int, right: int) -> None:
    """Adds the product of two tiles to a third."""
    _call(builder, PRODUCTS[product], [_tile(sums), _tile(left), _tile(right)])

"""``tl.meaning``: the operations of every system, by the name of what they do."""

from __future__ import annotations

from weft import dtypes
from weft import language as tl
from weft.dtypes import DType
from weft.frontend import meanings
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import dtype_of, tile_of
from weft.frontend.literals import represents
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, describe, is_number, is_tuple


@implements(tl.meaning)
def _meaning(b: Builder, name: Value, operands: Value) -> Tensor:
    if not isinstance(name, str) or not is_tuple(operands):
        raise CompilationError(f"'name' is the name of a meaning, found {describe(name)}", argument="name")
    if name in meanings.CONVERSIONS:
        return _convert(b, name, operands)
    count = meanings.arity(name)
    if len(operands) != count:
        plural = "operand" if count == 1 else "operands"
        raise CompilationError(f"'{name}' takes {count} {plural}, found {len(operands)}", argument="operands")
    leading = [b.cast(tile_of(b, operands[0], "operands"), dtypes.bool_)] if name == "select" else []
    tiles = _tiles(b, name, operands[len(leading) :])
    tiles = b.broadcast(*leading, *tiles)
    kinds = {x.dtype for x in tiles[len(leading) :]}
    if len(kinds) == 1:
        return meanings.apply(b, name, *tiles)
    if name in meanings.COMPARISONS and not any(x.dtype.is_float for x in tiles):
        return meanings.exactly(b, name, *tiles)
    shown = " and ".join(describe(x) for x in tiles[len(leading) :])
    raise CompilationError(
        f"'{name}' takes operands of one dtype, found {shown}",
        hint=f'convert one, for example with tl.meaning("convert", x, tl.{tiles[-1].dtype})',
        argument="operands",
    )


def _convert(b: Builder, name: str, operands: tuple[Value, ...]) -> Tensor:
    if len(operands) != 2:
        raise CompilationError(f"'{name}' takes a tile and a dtype, found {describe(operands)}", argument="operands")
    return meanings.CONVERSIONS[name](b, tile_of(b, operands[0], "operands"), dtype_of(operands[1], "operands"))


def _tiles(b: Builder, name: str, operands: tuple[Value, ...]) -> list[Tensor]:
    """The operands as tiles, numbers in the dtype of the first tile."""
    dtype = next((x.dtype for x in operands if isinstance(x, Tensor)), None)
    if dtype is None:
        raise CompilationError(
            f"'{name}' needs a tile, found {describe(operands)}", hint="make one with tl.full", argument="operands"
        )
    return [_number(b, x, dtype) if is_number(x) else tile_of(b, x, "operands") for x in operands]


def _number(b: Builder, value: bool | int | float, dtype: DType) -> Tensor:
    if not represents(dtype, value):
        raise CompilationError(f"{value!r} is no number of {dtype}", argument="operands")
    return b.constant(value, dtype)

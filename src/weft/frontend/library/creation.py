"""Tiles from the grid, from numbers, from types."""

from __future__ import annotations

from weft import language as tl
from weft.dtypes import DType, int32
from weft.frontend import meanings
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import dtype_of, flag, integer, integers, tile_of, word
from weft.frontend.literals import represents
from weft.frontend.narrowing import towards_zero
from weft.frontend.promotion import converted, is_triton
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, check_shape, describe, is_number
from weft.ir import tile
from weft.language.core import block_type, pointer_type


def _grid_axis(value: Value) -> int:
    axis = integer(value, "axis")
    if axis not in (0, 1, 2):
        raise CompilationError(f"grids have the axes 0, 1 and 2, found {axis}", argument="axis")
    return axis


@implements(tl.program_id)
def _program_id(b: Builder, axis: Value) -> Tensor:
    return Tensor(b.emit(tile.ProgramIdOp(_grid_axis(axis))).result, int32, ())


@implements(tl.num_programs)
def _num_programs(b: Builder, axis: Value) -> Tensor:
    return Tensor(b.emit(tile.NumProgramsOp(_grid_axis(axis))).result, int32, ())


@implements(tl.arange)
def _arange(b: Builder, start: Value, end: Value) -> Tensor:
    first, last = integer(start, "start"), integer(end, "end")
    if last <= first:
        raise CompilationError(f"tl.arange needs an end beyond its start, found {first} to {last}", argument="end")
    if not int32.min <= first <= last - 1 <= int32.max:
        raise CompilationError(f"tl.arange counts in int32, found {first} to {last}", argument="end")
    check_shape((last - first,))
    return Tensor(b.emit(tile.ArangeOp(first, last)).result, int32, (last - first,))


@implements(tl.full)
def _full(b: Builder, shape: Value, value: Value, dtype: Value) -> Tensor:
    sizes, element = integers(shape, "shape"), dtype_of(dtype, "dtype")
    check_shape(sizes)
    if is_number(value):
        if (
            isinstance(value, int)
            and not element.is_float
            and not element.is_bool
            and not element.min <= value <= element.max
        ):
            raise CompilationError(
                f"{value} is out of range for {element}, {element.min} to {element.max}", argument="value"
            )
        return b.constant(_whole(value, element), element, sizes)
    scalar = tile_of(b, value, "value")
    if scalar.shape:
        raise CompilationError(
            f"'value' is one number, found {describe(scalar)}",
            hint="use tl.broadcast_to to repeat a tile",
            argument="value",
        )
    return b.broadcast_to(converted(b, scalar, element), sizes)


def _whole(value: bool | int | float, dtype: DType) -> bool | int | float:
    """``value``, which an integer dtype takes only if it is a whole number in range."""
    if not dtype.is_integer or not isinstance(value, float):
        return value
    if value.is_integer() and dtype.min <= value <= dtype.max:
        return int(value)
    raise CompilationError(f"{value} is no number of {dtype}", argument="value")


@implements(tl.zeros)
def _zeros(b: Builder, shape: Value, dtype: Value) -> Tensor:
    return _full(b, shape, 0, dtype)


@implements(tl.zeros_like)
def _zeros_like(b: Builder, input: Value) -> Tensor:
    like = tile_of(b, input, "input")
    return b.constant(0, like.dtype, like.shape)


@implements(tl.cast)
def _cast(b: Builder, input: Value, dtype: Value, fp_downcast_rounding: Value, bitcast: Value) -> Tensor:
    rounding = word(fp_downcast_rounding, ("rtne", "rtz"), "fp_downcast_rounding")
    if (
        not rounding
        and is_number(input)
        and isinstance(dtype, DType)
        and represents(dtype, input)
        and not flag(bitcast, "bitcast")
    ):
        return b.constant(input, dtype)  # straight to the dtype asked for, which loses nothing
    x = b.tensor(input, "input")
    if isinstance(dtype, pointer_type):
        return b.bitcast(x, dtype)
    element = dtype_of(dtype.element_ty if isinstance(dtype, block_type) else dtype, "dtype")
    if flag(bitcast, "bitcast") or (x.is_pointer and element.is_integer and element.bits == 64):
        return b.bitcast(x, element)  # an address is its number
    if rounding and not x.is_pointer and x.dtype != element:
        _check_narrowing(x.dtype, element)
        if rounding == "rtz":
            return towards_zero(b, x, element)
    if x.is_pointer or is_triton(b.semantics):
        return converted(b, x, element)
    promotion = b.semantics.cast(x.dtype, element)
    return meanings.CONVERSIONS[promotion.meaning](b, x, promotion.result).typed(False)


def _check_narrowing(source: DType, target: DType) -> None:
    """Refuse a rounding of a conversion that is not of floats to narrower ones, as Triton does."""
    if not (source.is_float and target.is_float and target.bits < source.bits):
        raise CompilationError(
            "fp_downcast_rounding should be set only for truncating fp conversions. Source scalar type is "
            f"{source.triton} and destination type is {target.triton}",
            hint="leave it out",
            argument="fp_downcast_rounding",
        )


@implements(tl.to_tensor)
def _to_tensor(b: Builder, x: Value) -> Tensor:
    return b.tensor(x, "x")

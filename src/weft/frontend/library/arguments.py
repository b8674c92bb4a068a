"""Checks of arguments that several ops make, with one wording each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.dtypes import ALL, DType
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError, NotConstexpr
from weft.frontend.values import Tensor, Value, describe, is_runtime, is_tuple


def integer(value: Value, argument: str) -> int:
    """A compile-time integer."""
    if is_runtime(value):
        raise NotConstexpr(f"'{argument}' must be known at compile time, found {describe(value)}", argument=argument)
    if isinstance(value, bool) or not isinstance(value, int):
        raise CompilationError(f"'{argument}' is an integer, found {describe(value)}", argument=argument)
    return value


def flag(value: Value, argument: str) -> bool:
    """A compile-time truth value."""
    if is_runtime(value):
        raise NotConstexpr(f"'{argument}' must be known at compile time, found {describe(value)}", argument=argument)
    return bool(value)


def boolean(value: Value, argument: str) -> bool:
    """A compile-time True or False, and nothing that only counts as such."""
    if is_runtime(value):
        raise NotConstexpr(f"'{argument}' must be known at compile time, found {describe(value)}", argument=argument)
    if not isinstance(value, bool):
        raise CompilationError(f"'{argument}' is True or False, found {describe(value)}", argument=argument)
    return value


def quotient(ieee_rounding: Value) -> str:
    """The kind of division that a flag ``ieee_rounding`` asks for: True for the correctly rounded one."""
    rounded = ieee_rounding is not None and boolean(ieee_rounding, "ieee_rounding")
    return "div_rn" if rounded else "div"


def word(value: Value, allowed: Sequence[str], argument: str, default: str = "") -> str:
    """One of a few words; None and the empty string are the default."""
    if is_runtime(value):
        raise NotConstexpr(f"'{argument}' must be known at compile time, found {describe(value)}", argument=argument)
    if value is None or value == "":
        return default
    if value not in allowed:
        names = ", ".join(repr(name) for name in allowed)
        raise CompilationError(f"'{argument}' is one of {names}, found {describe(value)}", argument=argument)
    return str(value)


def integers(value: Value, argument: str) -> tuple[int, ...]:
    """Compile-time integers: a tuple, or one alone."""
    if is_tuple(value):
        return tuple(integer(item, argument) for item in value)
    return (integer(value, argument),)


def variadic(values: tuple[Any, ...], argument: str) -> tuple[int, ...]:
    """Compile-time integers passed separately or as one tuple."""
    return integers(values[0] if len(values) == 1 else values, argument)


def dtype_of(value: Value, argument: str) -> DType:
    """A dtype."""
    if not isinstance(value, DType):
        name = getattr(value, "__name__", "")
        raise CompilationError(
            f"'{argument}' is a dtype such as tl.float32, found {describe(value)}",
            hint=f"use tl.{name}" if name in {str(d) for d in ALL} else None,
            argument=argument,
        )
    return value


def axis(value: Value, rank: int, argument: str = "axis") -> int:
    """A dimension of a tile of ``rank``; negative ones count from the end."""
    found = integer(value, argument)
    if not -rank <= found < rank:
        shown = f"0 to {rank - 1}" if rank else "none: it is a scalar"
        raise CompilationError(f"'{argument}' is {found}, but the tile's dimensions are {shown}", argument=argument)
    return found % rank


def tile_of(b: Builder, value: Value, argument: str) -> Tensor:
    """A tile or scalar of numbers; compile-time numbers become scalars."""
    tensor = b.tensor(value, argument)
    if tensor.is_pointer:
        raise CompilationError(
            f"'{argument}' is a tile of numbers, found {describe(tensor)}",
            hint="load what it points to",
            argument=argument,
        )
    return tensor


def floats(b: Builder, value: Value, argument: str) -> Tensor:
    """A tile or scalar of floats."""
    tensor = tile_of(b, value, argument)
    if not tensor.dtype.is_float:
        raise CompilationError(
            f"'{argument}' is a tile of floats, found {describe(tensor)}",
            hint="convert it with .to(tl.float32)",
            argument=argument,
        )
    return tensor

"""Source text with its type: what the generator composes.

The generator never asks the compiler whether an expression is valid. It computes the type of all that it writes, shapes by
NumPy's broadcasting and dtypes by `weft.semantics`, so a kernel that the frontend refuses is a bug on one of the sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import triton as semantics
from weft.semantics.core import PromotionError

Shape: TypeAlias = tuple[int, ...]

INTEGERS: Final = tuple(d for d in dtypes.ALL if d.is_integer)
FLOATS: Final = tuple(d for d in dtypes.ALL if d.is_float)
LARGEST_TILE: Final = 2048


@dataclass(frozen=True)
class Check:
    """How an inexact value is compared: a rule of `case`, with its parameters."""

    rule: str
    parameters: tuple[str | float, ...]


@dataclass(frozen=True)
class Typed:
    """An expression (or the name of a variable) of a run-time value.

    ``check`` is None where native code must give the reference's bits. A value that need not (a sum in another order) would
    taint all that is computed from it, so the generator only moves it and stores it.
    """

    text: str
    dtype: DType
    shape: Shape = ()
    check: Check | None = None

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def called(self, name: str) -> Typed:
        """The variable it is assigned to."""
        return replace(self, text=name)


def common_shape(*shapes: Shape) -> Shape | None:
    """The shape that the arguments broadcast to, if there is one and it is not too large."""
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        return None
    return shape if math.prod(shape) <= LARGEST_TILE else None


def fits(shape: Shape, target: Shape) -> bool:
    """Whether ``shape`` broadcasts to ``target``."""
    return common_shape(shape, target) == target


def lines_up(shape: Shape, target: Shape) -> bool:
    """Whether ``shape`` broadcasts to ``target`` where memory is written: with as many dimensions, or as a scalar."""
    return fits(shape, target) and len(shape) in (0, len(target))


def binary(op: str, a: Typed, b: Typed | int | float | bool, flip: bool = False) -> Typed | None:
    """``a op b`` (``flip``: ``b op a``), or None where semantics refuse it, the shapes do not meet, or it is the quotient of
    integers, which is inexact."""
    other = b.shape if isinstance(b, Typed) else ()
    shape = common_shape(a.shape, other)
    right = b.dtype if isinstance(b, Typed) else b
    try:
        promotion = semantics.binary(op, right, a.dtype) if flip else semantics.binary(op, a.dtype, right)
    except PromotionError:
        return None
    if shape is None:
        return None
    text = b.text if isinstance(b, Typed) else literal(b)
    left, right_text = (text, a.text) if flip else (a.text, text)
    if op in ("minimum", "maximum"):
        return zero_is_positive(Typed(f"tl.{op}({left}, {right_text})", promotion.result, shape))
    if op == "/":  # `/` itself is an approximation on GPUs
        if not (a.dtype.is_float and (not isinstance(b, Typed) or b.dtype.is_float)):
            return None
        return Typed(f"tl.div_rn({left}, {right_text})", promotion.result, shape)
    return Typed(f"({left} {op} {right_text})", promotion.result, shape)


def literal(value: int | float | bool) -> str:
    """The Python spelling of a number, parenthesised where it begins with a sign."""
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return f"({value})" if not isinstance(value, bool) and (value < 0 or str(value).startswith("-")) else str(value)


def where(condition: Typed, a: Typed, b: Typed) -> Typed | None:
    """``tl.where``; the promotion of its two values."""
    shape = common_shape(condition.shape, a.shape, b.shape)
    if shape is None:
        return None
    dtype = semantics.binary("where", a.dtype, b.dtype).operands
    return Typed(f"tl.where({condition.text}, {a.text}, {b.text})", dtype, shape)


def cast(a: Typed, dtype: DType) -> Typed:
    """``a`` converted, if it has another dtype."""
    return a if a.dtype == dtype else replace(a, text=f"{a.text}.to(tl.{spelling(dtype)})", dtype=dtype)


def spelling(dtype: DType) -> str:
    """The dtype's name in `weft.language`."""
    return "int1" if dtype.is_bool else dtype.name


def whole(a: Typed, dtype: DType) -> Typed:
    """Small whole numbers made of ``a``, -4 to 3, which every dtype holds and whose sums are exact in floats."""
    return cast(Typed(f"({cast(a, dtypes.int8).text} >> 5)", dtypes.int8, a.shape), dtype)


def zero_is_positive(a: Typed) -> Typed:
    """``a`` with -0.0 made 0.0: ``min`` and ``max`` may return either zero."""
    return replace(a, text=f"({a.text} + 0.0)") if a.dtype.is_float else a

"""Products of matrices: forms as those of `expressions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuzz.scope import text_of
from fuzz.typed import FLOATS, LARGEST_TILE, Check, Typed, cast, whole
from weft import dtypes
from weft.dtypes import DType

if TYPE_CHECKING:
    from fuzz.scope import Scope

LARGEST_PRODUCT = 1 << 15
"""How many products of two numbers a ``tl.dot`` sums at most."""


def dot_sums(dtype: DType) -> DType:
    """The dtype in which products of ``dtype`` are summed."""
    return dtypes.int32 if not dtype.is_float else dtypes.float64 if dtype.bits == 64 else dtypes.float32


def product(scope: Scope) -> Typed | None:
    """``tl.dot`` of small whole numbers, so that every order of summation gives the same, with or without accumulator."""
    found = matrices(scope)
    return found and of_whole_numbers(scope, *found)


def of_whole_numbers(scope: Scope, a: Typed, b: Typed) -> Typed:
    """The product of small whole numbers made of two values, of rank 2 or more."""
    r = scope.random
    operand_dtype = r.choice((*FLOATS, dtypes.int8, dtypes.uint8))
    sums = dot_sums(operand_dtype)
    shape = (*a.shape[:-1], b.shape[-1])
    acc = scope.pick(lambda v: v.shape == shape) if r.random() < 0.5 else None
    extra = ""
    if acc is not None:
        if sums.is_float or r.random() < 0.5 or acc.dtype != sums:
            acc = whole(acc, sums)
        extra = f", {acc.text}" if r.random() < 0.5 else f", acc={acc.text}"
    left, right = (
        Typed(f"({whole(x, dtypes.int8).text} & 3)", dtypes.int8, x.shape) if operand_dtype == dtypes.uint8 else x
        for x in (a, b)
    )
    left, right = (
        cast(x, operand_dtype) if operand_dtype == dtypes.uint8 else whole(x, operand_dtype) for x in (left, right)
    )
    text = f"tl.dot({left.text}, {right.text}{extra})"
    return Typed(f"({text} + 0.0)" if sums.is_float else text, sums, shape)


def matrices(scope: Scope) -> tuple[Typed, Typed] | None:
    """Two matrices with a product, the second made of any value of a fitting size."""
    a = scope.pick(lambda v: len(v.shape) == 2)
    if a is None:
        return None
    inner = a.shape[1]
    b = scope.pick(lambda v: len(v.shape) == 2 and v.shape[0] == inner)
    if b is None and (other := scope.pick(lambda v: bool(v.shape) and v.size >= inner)):
        shape = (inner, other.size // inner)
        b = Typed(f"tl.reshape({other.text}, {text_of(scope, shape)})", other.dtype, shape)
    if b is None and a.shape[0] > 1:
        b = Typed(f"tl.trans({a.text})", a.dtype, a.shape[::-1])
    if b is None or a.shape[0] * b.shape[1] > LARGEST_TILE or a.size * b.shape[1] > LARGEST_PRODUCT:
        return None
    return a, b


def general(scope: Scope) -> tuple[Typed, Typed | None] | None:
    """A product of any floats."""
    found = matrices(scope)
    if found is None:
        return None
    dtype = scope.random.choice(FLOATS)
    a, b = (cast(x, dtype) for x in found)
    sums = dot_sums(dtype)
    shape = (a.shape[0], b.shape[1])
    wide = (f"tl.abs({cast(x, dtypes.float64).text})" for x in (a, b))
    magnitude = Typed(f"tl.dot({', '.join(wide)})", dtypes.float64, shape)
    check = Check("within", (2 * (a.shape[1] + 2) * 2.0**-sums.mantissa,))
    return Typed(f"tl.dot({a.text}, {b.text})", sums, shape, check), magnitude

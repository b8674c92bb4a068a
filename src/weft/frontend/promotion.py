"""Asking the kernel's semantics: values become operands, and its refusals become errors of the kernel.

Only this module calls the semantics object. A question is about more than a dtype (a weak type, a value without dimensions, the
number itself), and the answer may be a type that a kernel may not have; both are handled once, here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import dtypes
from weft.dtypes import DType
from weft.frontend import meanings
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.values import Tensor, Value, describe, is_number
from weft.semantics.core import Number, Operand, Promotion, PromotionError, Semantics, Type

SATURATING = (dtypes.float8_e4m3fn, dtypes.float8_e5m2)
"""Types for which Triton's conversions, `cvt.satfinite` in PTX, give the largest number for what is beyond it, infinity too."""


def is_triton(semantics: Semantics) -> bool:
    """Whether the functions of the language mean what their documentation says, not what another system's do."""
    return semantics.name.partition("@")[0] == "triton"


def numbers_have_types(semantics: Semantics) -> bool:
    """Whether a number by itself has a type (MAX has none)."""
    try:
        semantics.literal(0)
    except PromotionError:
        return False
    return True


def operand(b: Builder, value: Value, op: str) -> Operand:
    """What the semantics is asked about: a type, or the number itself."""
    if not isinstance(value, Tensor):
        if not is_number(value):
            hint = "test for None with 'is None'" if value is None else None
            raise CompilationError(f"'{op}' takes tiles and numbers, found {describe(value)}", hint=hint)
        return value
    if value.dtype not in b.semantics.dtypes:
        has = ", ".join(str(d) for d in b.semantics.dtypes)
        raise CompilationError(f"{b.semantics} has no dtype {value.dtype}", hint=f"convert it to one of {has}")
    if value.weak or not value.shape:
        return Type(value.dtype, value.weak, scalar=not value.shape)
    return value.dtype


def resolve(b: Builder, op: str, *values: Value) -> Promotion:
    """What ``op`` (in any spelling of `weft.semantics.ops`) is for the values; `PromotionError` where the semantics refuses it,
    `CompilationError` where it does not have it."""
    operands = [operand(b, value, op) for value in values]
    if op in ("*", "/"):
        operands = _repeated(values, operands)
    try:
        promotion = b.semantics.resolve(op, *operands)
    except ValueError as error:
        message, _, advice = str(error).partition("; ")
        raise CompilationError(message, hint=advice or None) from None
    for dtype in (promotion.operands, promotion.result):
        if dtype not in dtypes.ELEMENTS:
            raise CompilationError(f"{b.semantics} computes '{op}' in {dtype}, which kernels do not have")
    return promotion


def _repeated(values: Sequence[Value], operands: Sequence[Operand]) -> list[Operand]:
    """The operands of ``*`` and ``/``, with those that broadcasting repeats marked as such: XLA divides by them otherwise."""
    shapes = [value.shape for value in values if isinstance(value, Tensor) and value.shape]
    if len(shapes) < 2 or shapes[0] == shapes[1]:
        return list(operands)
    rank = max(map(len, shapes))
    common = tuple(map(max, zip(*((*(1,) * (rank - len(shape)), *shape) for shape in shapes), strict=True)))
    return [
        Type(value.dtype, value.weak, repeated=value.shape != common) if isinstance(value, Tensor) else asked
        for value, asked in zip(values, operands, strict=True)
    ]


def convert(b: Builder, value: Value, dtype: DType, shape: tuple[int, ...] = ()) -> Tensor:
    """A tile converted, or a compile-time number made in ``shape`` at once."""
    if isinstance(value, Tensor):
        return meanings.CONVERSIONS[b.semantics.conversion(value.dtype, dtype)](b, value, dtype)
    number: Any = b.semantics.number(value, dtype)
    return b.constant(number, dtype, shape)


def converted(b: Builder, x: Tensor, dtype: DType) -> Tensor:
    """A conversion that the program asks for by name, or by what it stores to. In Triton's semantics what is beyond one of the
    `SATURATING` types becomes its largest number; a NaN stays one. Integers, which Triton does not convert, do likewise."""
    saturates = dtype in SATURATING and is_triton(b.semantics)
    if saturates and x.dtype.is_integer and x.dtype.max > dtype.largest:
        x = b.cast(x, dtypes.float32)  # which has every integer that is not beyond
    if saturates and x.dtype.is_float and x.dtype.largest > dtype.largest:
        least, largest = (b.constant(bound, x.dtype, x.shape) for bound in (-dtype.largest, dtype.largest))
        x = b.binary("minnan", b.binary("maxnan", x, least), largest)
    return b.cast(x, dtype)


def operands_of(b: Builder, promotion: Promotion, *values: Value) -> list[Tensor]:
    """The values in the dtype they are computed in and in their common shape."""
    shape = next((v.shape for v in values if isinstance(v, Tensor)), ())
    return b.broadcast(*(convert(b, value, promotion.operands, shape) for value in values))


def emit(b: Builder, promotion: Promotion, *tensors: Tensor) -> Tensor:
    """What the promotion means, of tensors as `operands_of` gives them."""
    result = meanings.apply(b, promotion.meaning, *tensors)
    return b.cast(result, promotion.result).typed(promotion.weak)


def compute(b: Builder, op: str, *values: Value) -> Tensor:
    """``op`` of the values, as the semantics says."""
    promotion = resolve(b, op, *values)
    if promotion.keeps:
        return _exactly(b, promotion, *values)
    return emit(b, promotion, *operands_of(b, promotion, *values))


def _exactly(b: Builder, promotion: Promotion, lhs: Value, rhs: Value) -> Tensor:
    """A comparison by value. A number that the other side's type does not hold decides by itself."""
    if isinstance(lhs, Tensor) and isinstance(rhs, Tensor):
        return meanings.exactly(b, promotion.meaning, *b.broadcast(lhs, rhs))
    tile: Tensor = lhs if isinstance(lhs, Tensor) else rhs
    number: Number = rhs if isinstance(lhs, Tensor) else lhs
    dtype = tile.dtype
    if dtype.min <= int(number.real) <= dtype.max:
        sides = [convert(b, value, dtype, tile.shape) for value in (lhs, rhs)]
        return meanings.apply(b, promotion.meaning, *sides)
    any_of_tile = dtype.min  # all its numbers lie on one side
    pair = (any_of_tile, number) if isinstance(lhs, Tensor) else (number, any_of_tile)
    return b.constant(meanings.PYTHON[promotion.meaning](*pair), dtypes.bool_, tile.shape)

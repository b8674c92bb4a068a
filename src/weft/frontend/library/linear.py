"""The matrix product."""

from __future__ import annotations

from typing import Final

from weft import dtypes
from weft import language as tl
from weft.dtypes import DType
from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError
from weft.frontend.library.arguments import boolean, dtype_of, integer, tile_of, word
from weft.frontend.library.batches import batched
from weft.frontend.promotion import converted
from weft.frontend.registry import implements
from weft.frontend.values import Tensor, Value, describe
from weft.ir import tile
from weft.ir.tile import PRECISIONS

SUMS: Final[dict[DType, DType]] = {
    dtypes.float64: dtypes.float64,
    dtypes.int8: dtypes.int32,
    dtypes.uint8: dtypes.int32,
    **dict.fromkeys(
        (dtypes.float8_e4m3fn, dtypes.float8_e5m2, dtypes.float16, dtypes.bfloat16, dtypes.float32), dtypes.float32
    ),
}
"""Operand dtype -> the dtype products are summed in."""

NARROW: Final = dtypes.float16
"""Of these operands sums may be in their own dtype, where the kernel asks for such a result."""


@implements(tl.dot)
def _dot(
    b: Builder,
    input: Value,
    other: Value,
    acc: Value,
    input_precision: Value,
    allow_tf32: Value,
    max_num_imprecise_acc: Value,
    out_dtype: Value,
) -> Tensor:
    left, right = tile_of(b, input, "input"), tile_of(b, other, "other")
    _check(left, right)
    if not {left.dtype, right.dtype} <= SUMS.keys():
        # Kinds of float8 that no machine multiplies: float16 has their numbers.
        left, right = b.cast(left, dtypes.float16), b.cast(right, dtypes.float16)
    precision = _precision(input_precision, allow_tf32)
    imprecise = _imprecise(max_num_imprecise_acc, left)
    sums = SUMS[left.dtype]
    shape = (*left.shape[:-1], right.shape[-1])
    given = None if acc is None else tile_of(b, acc, "acc")
    if given is not None and given.shape != shape:
        raise CompilationError(f"'acc' has shape {given.shape}, but the product has {shape}", argument="acc")
    wanted = None if out_dtype is None else dtype_of(out_dtype, "out_dtype")
    result = _result(left.dtype, sums, wanted, given)
    if left.dtype == right.dtype == result == NARROW:
        sums = NARROW

    def product(x: Tensor, y: Tensor, start: Tensor | None) -> Tensor:
        size = (x.shape[0], y.shape[1])
        start = b.constant(0, sums, size) if start is None else start
        op = b.emit(tile.DotOp(x.ssa, y.ssa, start.ssa, precision=precision, imprecise=imprecise))
        return Tensor(op.result, sums, size)

    total = batched(b, left, right, None if given is None else b.cast(given, sums), product)
    return converted(b, total, result)


def _result(operands: DType, sums: DType, wanted: DType | None, acc: Tensor | None) -> DType:
    """The dtype of a product: the accumulator's, or ``wanted`` for operands of float16 and float8. Of others it is that of the
    sums, whatever is wanted, as in Triton."""
    if acc is not None and wanted is not None and acc.dtype != wanted:
        raise CompilationError(
            f"expected accumulator dtype {wanted}, got {acc.dtype}; pass out_dtype={acc.dtype} to use this accumulator dtype",
            argument="acc",
        )
    if operands.is_float and wanted == dtypes.bfloat16:
        raise CompilationError(
            "out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16 and cast with `.to(tl.bfloat16)`",
            argument="out_dtype",
        )
    if acc is None and not (operands.is_float8 or operands == dtypes.float16):
        return sums
    result = acc.dtype if acc is not None else wanted or sums
    if result.is_float != sums.is_float or (not result.is_float and result != sums) or result.bits > sums.bits:
        argument = "out_dtype" if acc is None else "acc"
        raise CompilationError(
            f"products of {operands} are summed in {sums}, which does not give {result}", argument=argument
        )
    return result


def _precision(input_precision: Value, allow_tf32: Value) -> str:
    """The word of `PRECISIONS`; ``allow_tf32`` is the older spelling of two of them."""
    if allow_tf32 is None:
        given = input_precision.lower() if isinstance(input_precision, str) else input_precision
        return word(given, PRECISIONS, "input_precision", "ieee")
    if input_precision is not None:
        raise CompilationError(
            "'allow_tf32' and 'input_precision' say the same thing: pass one of them", argument="allow_tf32"
        )
    return "tf32" if boolean(allow_tf32, "allow_tf32") else "ieee"


def _imprecise(value: Value, left: Tensor) -> int | None:
    """How many products may be summed in less than float32; None where the kernel does not say."""
    if value is None:
        return None
    number = integer(value, "max_num_imprecise_acc")
    if number < 0:
        raise CompilationError(
            f"'max_num_imprecise_acc' is at least 0, found {number}", argument="max_num_imprecise_acc"
        )
    if left.dtype.is_float8 and number > left.shape[-1]:
        raise CompilationError(
            f"'max_num_imprecise_acc' is at most the inner size {left.shape[-1]}, found {number}",
            argument="max_num_imprecise_acc",
        )
    return number


def _check(left: Tensor, right: Tensor) -> None:
    """Refuse operands that have no product."""
    for value, argument in ((left, "input"), (right, "other")):
        if len(value.shape) < 2:
            raise CompilationError(f"'{argument}' of tl.dot is a matrix, found {describe(value)}", argument=argument)
    if left.shape[:-2] != right.shape[:-2]:
        raise CompilationError(
            f"tl.dot of shapes {left.shape} and {right.shape}: all dimensions but the last two are equal",
            hint="use tl.expand_dims and tl.broadcast_to for an operand of fewer matrices",
        )
    if left.shape[-1] != right.shape[-2]:
        raise CompilationError(
            f"tl.dot of shapes {left.shape} and {right.shape}: "
            f"the inner sizes {left.shape[-1]} and {right.shape[-2]} differ",
            hint="transpose an operand with tl.trans, or load it the other way round",
        )
    if left.dtype != right.dtype and not (left.dtype.is_float8 and right.dtype.is_float8):
        raise CompilationError(
            f"tl.dot multiplies matrices of one dtype, found {left.dtype} and {right.dtype}",
            hint=f"convert one with .to(tl.{left.dtype})",
        )
    if left.dtype not in SUMS and not left.dtype.is_float8:
        names = ", ".join(str(d) for d in SUMS)
        raise CompilationError(
            f"tl.dot does not multiply {left.dtype}; it takes {names}", hint="convert the operands", argument="input"
        )

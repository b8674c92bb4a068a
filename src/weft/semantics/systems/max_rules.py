"""Where two types of MAX meet: in the document's lattice, and by the package's rule of category and width.

The package has no lattice: the type of the greater category and width is the result or the pair is refused, and no greater type
is tried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from weft import dtypes
from weft.dtypes import DType
from weft.semantics.core import PromotionError, Step
from weft.semantics.lattice import Lattice

LATTICE: Final = Lattice[DType](
    {
        dtypes.bool_: (dtypes.int8, dtypes.uint8),
        dtypes.int8: (dtypes.int16,),
        dtypes.int16: (dtypes.int32,),
        dtypes.int32: (dtypes.int64,),
        dtypes.int64: (dtypes.float16,),
        dtypes.uint8: (dtypes.int16, dtypes.uint16),
        dtypes.uint16: (dtypes.int32, dtypes.uint32),
        dtypes.uint32: (dtypes.int64, dtypes.uint64),
        dtypes.uint64: (dtypes.float16,),
        dtypes.index: (dtypes.uint64,),
        dtypes.address: (dtypes.uint64,),
        dtypes.float16: (dtypes.bfloat16,),
        dtypes.bfloat16: (dtypes.float32,),
        dtypes.float32: (dtypes.tensor_float32,),
        dtypes.tensor_float32: (dtypes.float64,),
        dtypes.float64: (),
    }
)
"""The document's order."""

DOCUMENT_EXCEPTIONS: Final[Mapping[tuple[DType, DType], DType]] = {
    (dtypes.bool_, dtypes.index): dtypes.int64,
    (dtypes.bool_, dtypes.address): dtypes.int64,
    (dtypes.int8, dtypes.index): dtypes.index,
    (dtypes.int8, dtypes.address): dtypes.address,
}
"""(row, column) -> cell of the document's table, for the cells that are not the join."""


INTEGERS: Final = (
    *(dtypes.uint8, dtypes.int8, dtypes.uint16, dtypes.int16, dtypes.uint32, dtypes.int32, dtypes.uint64, dtypes.int64),
)
FLOATS: Final = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


def converts_safely(source: DType, target: DType) -> bool:
    """The package's test of one conversion (its float16 takes float8_e8m0fnu, whose numbers reach 2**127)."""
    if source == target or source.is_bool:
        return True
    if source.is_float:
        return target.is_float and target.bits > source.bits
    value_bits = source.bits - source.signed
    if target.is_float:
        return value_bits <= target.mantissa + 1
    return target.is_integer and source.signed <= target.signed and value_bits <= target.bits - target.signed


def join_of(a: DType, b: DType) -> tuple[DType, Step]:
    """Where the document's lattice says they meet; float64 is above all."""
    join = LATTICE.join(a, b)
    if join is None:
        raise PromotionError(f"{a} and {b} meet nowhere in the lattice", "cast one side to the other's type")
    if a == b:
        return join, Step("equal", f"both are {a}")
    paths = [" -> ".join(map(str, LATTICE.path(d, join) or ())) for d in (a, b) if d != join]
    return join, Step("lattice", f"{a} and {b} meet in {join}: {', '.join(paths)}")


def _category_and_width(a: DType, b: DType) -> DType:
    """The type of the greater category and the greater width; among floats none is narrower than 16 bits."""
    bits = b.bits if b.bits > a.bits else a.bits
    if not (a.is_float or b.is_float):
        return next(d for d in INTEGERS if d.bits == bits and d.signed == (a.signed or b.signed))
    if bits <= 16 and dtypes.bfloat16 in (a, b):
        return dtypes.bfloat16
    return next(d for d in FLOATS if d.bits >= bits)


def meet_safely(a: DType, b: DType) -> tuple[DType, Step]:
    """Where the package lets two types meet, or `PromotionError`."""
    if a == b:
        return a, Step("equal", f"both are {a}")
    if a.is_bool or b.is_bool:
        other = b if a.is_bool else a
        return other, Step("bool", f"bool yields to {other}")
    target = _category_and_width(a, b)
    for side in (a, b):
        if not converts_safely(side, target):
            raise PromotionError(f"Unsafe cast from {side} to {target}", _advise(side, target))
    return target, Step("category and width", f"{a} and {b} meet in {target}, a safe conversion of both")


def _advise(source: DType, target: DType) -> str:
    """The cast that makes a refused conversion legal: to what holds the values if there is such a type, else to the target."""
    kind = FLOATS if target.is_float else [d for d in INTEGERS if d.signed]
    home = next((d for d in kind if d not in (source, dtypes.bfloat16) and converts_safely(source, d)), None)
    loss = "rounding" if target.is_float else "wrapping"
    if home is None:
        return f"cast the {source} side, if {loss} is fine: ops.cast(x, DType.{target})"
    return f"cast the {source} side: ops.cast(x, DType.{home}), or to {target} if {loss} is fine"

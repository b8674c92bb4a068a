"""Functions with one right answer on every machine, most of them libdevice's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from fuzz.typed import Typed, cast, fits
from weft import dtypes
from weft.dtypes import DType

if TYPE_CHECKING:
    from fuzz.scope import Scope

F32, F64, I32, U32, I64, U64, BOOL = (
    dtypes.float32,
    dtypes.float64,
    dtypes.int32,
    dtypes.uint32,
    dtypes.int64,
    dtypes.uint64,
    dtypes.bool_,
)

Signature: TypeAlias = tuple[tuple[DType, ...], DType]
"""The operands' dtypes and the result's."""


def _each(names: str, *signatures: Signature) -> list[tuple[str, Signature]]:
    return [(name, signature) for name in names.split() for signature in signatures]


def _same(count: int, *kinds: DType) -> list[Signature]:
    """Operands and results of one dtype."""
    return [((dtype,) * count, dtype) for dtype in kinds]


def _converting(names: str, source: str) -> list[tuple[str, Signature]]:
    """``source2name_mode`` of the four modes of rounding. Unsigned results come as signed words, as in Triton."""
    operand = {"float": F32, "double": F64, "int": I32, "uint": U32, "ll": I64, "ull": U64}
    result = operand | {"uint": I32, "ull": I64}
    return [
        (f"{source}2{name}_{mode}", ((operand[source],), result[name]))
        for name in names.split()
        for mode in ("rn", "rz", "rd", "ru")
    ]


EXACT: Final[Sequence[tuple[str, Signature]]] = (
    *_each("copysign fdim nextafter", *_same(2, F32, F64)),
    *_each("trunc rint nearbyint round logb saturatef", *_same(1, F32, F64)),
    *_each("isnan isinf", ((F32,), BOOL), ((F64,), BOOL)),
    *_each("finitef", ((F32,), BOOL)),
    *_each("llrint llround", ((F32,), I64), ((F64,), I64)),
    *_each("ilogb", ((F32,), I32), ((F64,), I32)),
    *_each("ldexp scalbn", ((F32, I32), F32), ((F64, I32), F64)),
    *_each("fmod remainder", *_same(2, F32, F64)),
    *_each("add_rn sub_rn mul_rn add_rz sub_rd mul_ru mul_rz add_rd div_rd div_ru", *_same(2, F32, F64)),
    *_each("rcp_rn rcp_rz sqrt_rd sqrt_ru", *_same(1, F32, F64)),
    *_each("fma_rn", *_same(3, F32, F64)),
    *_each("fma_rz fma_rd fma_ru", *_same(3, F32)),
    *_converting("int uint ll ull", "float"),
    *_converting("int uint ll ull float", "double"),
    *_converting("float", "int"),
    *_converting("float", "uint"),
    *_converting("float double", "ll"),
    *_converting("float double", "ull"),
    *_each("popc clz", *(((d,), I32) for d in (I32, U32, I64, U64))),
    *_each("brev", *_same(1, I32, U32, I64, U64)),
    *_each("ffs", *(((d,), I32) for d in (I32, I64))),
    *_each("byte_perm", *_same(3, I32)),
    *_each("mulhi", *_same(2, I32, U32, I64, U64)),
    *_each("mul24 hadd rhadd", *_same(2, I32, U32)),
    *_each("sad", ((I32, I32, U32), I32)),
    *_each("int_as_float", ((I32,), F32)),
    *_each("hiloint2double", ((I32, I32), F64)),
)
"""Names of libdevice's functions and the operands that they get here."""


def function(scope: Scope) -> Typed | None:
    """A function of libdevice of values that are converted to what it takes."""
    name, (operands, result) = scope.random.choice(EXACT)
    first = scope.pick()
    if first is None:
        return None
    shape = first.shape
    others = [scope.pick(lambda v: fits(v.shape, shape)) or first for _ in operands[1:]]
    given = [cast(v, dtype) for v, dtype in zip((first, *others), operands, strict=True)]
    return Typed(f"libdevice.{name}({', '.join(v.text for v in given)})", result, shape)

"""The tables of elementwise kinds, and the base class of all tile ops."""

from __future__ import annotations

from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
)
from xdsl.utils.exceptions import VerifyException

from weft.dtypes import DType
from weft.ir.types import dtype_of, is_pointer


class TileOp(IRDLOperation):
    """Base of the dialect's ops."""


FLOAT: str = "float"
INTEGER: str = "integer"
BOOL: str = "bool"

UNARY: dict[str, frozenset[str]] = {
    "neg": frozenset({FLOAT, INTEGER, BOOL}),
    "not": frozenset({INTEGER, BOOL}),
    "abs": frozenset({FLOAT, INTEGER}),
    **dict.fromkeys(
        ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos", "tanh", "erf", "floor", "ceil"),
        frozenset({FLOAT}),
    ),
}
"""Unary kinds and the element kinds they take. ``not`` complements bits (of a bool: negates it)."""

BINARY: dict[str, frozenset[str]] = {
    **dict.fromkeys(("add", "sub", "mul"), frozenset({FLOAT, INTEGER, BOOL})),
    "div": frozenset({FLOAT, INTEGER, BOOL}),
    "rem": frozenset({FLOAT, INTEGER, BOOL}),
    **dict.fromkeys(("and", "or", "xor", "shl", "shr"), frozenset({INTEGER, BOOL})),
    "min": frozenset({FLOAT, INTEGER, BOOL}),
    "max": frozenset({FLOAT, INTEGER, BOOL}),
    "minnan": frozenset({FLOAT}),
    "maxnan": frozenset({FLOAT}),
}
"""Binary kinds. ``div`` of floats is the true division, of integers C's; ``rem`` has the sign of the dividend (fmod);
``shr`` is arithmetic for signed types; ``min``/``max`` return the number where one operand is NaN (and order -0 < +0 is not
promised), ``minnan``/``maxnan`` return NaN."""

COMPARE: tuple[str, ...] = ("eq", "ne", "lt", "le", "gt", "ge")
"""Predicates; on floats ordered, except ``ne``, which is true for NaN."""

ATOMIC: dict[str, frozenset[str]] = {
    "add": frozenset({FLOAT, INTEGER}),
}
"""Read-modify-write kinds."""


def class_of(dtype: DType) -> str:
    return FLOAT if dtype.is_float else BOOL if dtype.is_bool else INTEGER


def check_kind(name: str, kind: str, table: dict[str, frozenset[str]], operand: SSAValue) -> None:
    if kind not in table:
        raise VerifyException(f"{name}: unknown kind '{kind}', expected one of {', '.join(table)}")
    if is_pointer(operand):
        raise VerifyException(f"{name} {kind} does not take pointers")
    dtype = dtype_of(operand)
    if class_of(dtype) not in table[kind]:
        raise VerifyException(f"{name} {kind} does not take {dtype}")

"""How tables and pictures show a type: its category (a colour) and a code of at most four characters.

A whole promotion table must fit 120 columns, so ``float32`` is ``f32`` there; every row names its type in full, and next
to it the code, so no legend is needed. A weak type is its kind and a star.
"""

from __future__ import annotations

from typing import Final

from weft import dtypes
from weft.dtypes import DType
from weft.semantics.core import Operand, Type
from weft.semantics.difference import dtype_of

STYLES: Final[dict[str, str]] = {
    "bool": "",
    "unsigned": "green",
    "signed": "bright_blue",
    "narrow": "magenta",
    "float": "yellow",
    "complex": "cyan",
    "other": "bright_yellow",
    "refused": "red",
    "absent": "bright_black",
}
"""Each category's colour on a terminal."""

_CODES: Final[dict[DType, str]] = {
    dtypes.bool_: "bool",
    dtypes.bfloat16: "bf16",
    dtypes.tensor_float32: "tf32",
    dtypes.index: "idx",
    dtypes.address: "addr",
    dtypes.float4_e2m1fn: "e2m1",
    dtypes.float6_e2m3fn: "e2m3",
    dtypes.float6_e3m2fn: "e3m2",
    dtypes.float8_e3m4: "e3m4",
    dtypes.float8_e4m3: "e4m3",
    dtypes.float8_e4m3b11fnuz: "b11",
    dtypes.float8_e4m3b15: "b15",
    dtypes.float8_e4m3fn: "e4fn",
    dtypes.float8_e4m3fnuz: "e4uz",
    dtypes.float8_e5m2: "e5m2",
    dtypes.float8_e5m2fnuz: "e5uz",
    dtypes.float8_e8m0fnu: "e8m0",
}


def category(node: Operand) -> str:
    """Which of `STYLES` a type belongs to."""
    dtype = dtype_of(node)
    if dtype in (dtypes.index, dtypes.address):
        return "other"
    if dtype.is_bool:
        return "bool"
    if dtype.is_integer:
        return "signed" if dtype.signed else "unsigned"
    if dtype.is_complex:
        return "complex"
    return "narrow" if dtype.bits <= 8 else "float"


def code(node: Operand) -> str:
    """A type in at most four characters: ``u8``, ``bf16``, ``e4fn``, ``f*``."""
    dtype = dtype_of(node)
    if isinstance(node, Type) and node.weak and not dtype.is_bool:
        return "bifc"[dtype.kind] + "*"
    kind = "u" if dtype.is_integer and not dtype.signed else "bifc"[dtype.kind]
    return _CODES.get(dtype, f"{kind}{dtype.bits}")

"""Triton's short names of dtypes."""

from __future__ import annotations

from typing import Final

from weft import dtypes

_SHORT: Final = {d.name: f"{'i' if d.signed else 'u'}{d.bits}" for d in dtypes.ALL if d.is_integer}
_FLOATS: Final = {name: d.triton for d in dtypes.KNOWN if d.is_float and d.bits >= 8 for name in (d.name, *d.aliases)}

CANONICAL: Final[dict[str, str]] = {
    **{**_SHORT, **_FLOATS, "int": "i32", "float": "fp32", "double": "fp64", "half": "fp16", "void": "void"},
    **{short: short for short in (*_SHORT.values(), *_FLOATS.values())},
    **dict.fromkeys(("bool", "bool_", "int1", "uint1", "i1", "u1"), "u1"),
}
"""Any spelling of a type -> Triton's short one."""


def canonicalize_dtype(dtype: object) -> str:
    """The short name of a type of PyTorch's, NumPy's or the language."""
    return CANONICAL[str(dtype).rpartition(".")[2]]


def canonicalize_ptr_dtype(dtype: object, is_const: bool) -> str:
    """The short name of a pointer to such a type."""
    return f"{'*k' if is_const else '*'}{canonicalize_dtype(dtype)}"

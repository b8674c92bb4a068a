"""``triton.language.core``: the language, and what library code takes from here."""

# pyright: reportUnsupportedDunderAll=false, reportUnusedImport=false
from __future__ import annotations

from typing import Any

from weft import language
from weft.language import *  # noqa: F403  # all of its names
from weft.language.aggregates import aggregate
from weft.language.core import Absent, constexpr
from weft.triton.language.helpers import CONSTEXPR_0, get_int_dtype
from weft.triton.language.types import const, constexpr_type, dtype, str_to_ty, tensor_descriptor_type, void
from weft.triton.values import must_use_result

_aggregate = aggregate

__all__ = language.__all__ + [
    "CONSTEXPR_0",
    "builtin",
    "const",
    "constexpr_type",
    "dtype",
    "extern",
    "get_int_dtype",
    "must_use_result",
    "str_to_ty",
    "tensor_descriptor_type",
    "void",
]


def builtin(fn: Any) -> Any:
    """Refused in kernels: functions over Triton's compiler have no meaning in weft."""
    return Absent(fn.__name__)


extern = builtin


def _unwrap_if_constexpr(value: Any) -> Any:  # pyright: ignore[reportUnusedFunction]
    """The value of a constexpr; other values as they are."""
    return value.value if isinstance(value, constexpr) else value


def __getattr__(name: str) -> Any:
    from weft.triton import language as whole

    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(whole, name)

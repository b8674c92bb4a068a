"""``triton.language``: weft's language, with the names of Triton's that have a meaning on the host only.

Names that weft's language does not have are `Absent`: a program may import them, and using one in a kernel is an error that
names it.
"""

# pyright: reportUnsupportedDunderAll=false, reportUnusedImport=false
from __future__ import annotations

import builtins
import importlib
from typing import Any

from weft import dtypes, language
from weft.language import *  # noqa: F403  # all of its names
from weft.language.aggregates import aggregate
from weft.language.core import Absent, constexpr, pointer_type, tensor
from weft.triton.language.types import const, dtype, str_to_ty, tensor_descriptor_type, void

core, extra, math, random, standard, target_info = (
    importlib.import_module(f"{__name__}.{_name}")  # the names above include weft's own `extra`, `math` and `random`
    for _name in ("core", "extra", "math", "random", "standard", "target_info")
)

tuple = getattr(language, "tuple", builtins.tuple)
slice = getattr(language, "slice", builtins.slice)
pi32_t = pointer_type(dtypes.int32)

__all__ = language.__all__ + [
    "aggregate", "const", "constexpr", "core", "dtype", "extra", "math", "pi32_t", "random", "slice", "standard",
    "str_to_ty", "target_info", "tensor", "tensor_descriptor_type", "tuple", "void",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name == "tuple_type":
        return Absent(name)
    raise AttributeError(f"module 'triton.language' has no attribute {name!r}")

"""Types as command lines spell them: PTX's and LLVM's short names beside weft's and Triton's."""

from __future__ import annotations

from typing import Final

from weft import dtypes
from weft.dtypes import DType

_SHORT: Final = {
    **{
        f"{letter}{bits}": f"{name}{bits}"
        for letter, name in (("i", "int"), ("s", "int"), ("u", "uint"), ("b", "uint"))
        for bits in (8, 16, 32, 64)
    },
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
}
"""Short names beyond those that `weft.dtypes.named` knows."""


def named(name: str) -> DType:
    """Return the type of that name (``f32``, ``fp32``, ``float32``). `ValueError` with the nearest name for an unknown one."""
    return dtypes.named(_SHORT.get(name, name))

"""``triton.tools``: descriptions of tensors for kernels, and layouts.

`LinearLayout` is loaded when it is asked for: few programs do, and it would double the time that ``import triton`` takes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.triton.tools import tensor_descriptor

if TYPE_CHECKING:
    from weft.triton.tools.linear_layout import LinearLayout

__all__ = ["LinearLayout", "tensor_descriptor"]


def __getattr__(name: str) -> Any:
    if name != "LinearLayout":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from weft.triton.tools.linear_layout import LinearLayout

    return LinearLayout

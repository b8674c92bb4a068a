"""``triton.tools``: descriptions of tensors for kernels, and layouts."""

from __future__ import annotations

from weft.triton.tools import tensor_descriptor
from weft.triton.tools.linear_layout import LinearLayout

__all__ = ["LinearLayout", "tensor_descriptor"]

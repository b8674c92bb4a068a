"""``triton.tools``: descriptions of tensors for kernels."""

from __future__ import annotations

from weft.triton.tools import tensor_descriptor

__all__ = ["tensor_descriptor"]

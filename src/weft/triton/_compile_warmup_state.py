"""``triton._compile_warmup_state``: Triton's tests ask here whether they only compile."""

from __future__ import annotations

from weft.triton._internal_testing import is_compile_warmup

__all__ = ["is_compile_warmup"]

"""``triton.language.extra``."""

from __future__ import annotations

from weft.triton.language.extra import cuda, hip, libdevice

__all__ = ["cuda", "hip", "libdevice"]

"""Functions beyond Triton's core language, by the library that provides them there."""

from __future__ import annotations

from weft.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]

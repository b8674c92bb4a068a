"""``triton.language.extra.hip``: libdevice under the machine's name."""

from __future__ import annotations

from weft.triton.language.extra.hip import libdevice

__all__ = ["libdevice"]

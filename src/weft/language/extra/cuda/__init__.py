"""What ``triton.language.extra.cuda`` has that is no matter of the machine: `libdevice`."""

from __future__ import annotations

from weft.language.extra import libdevice

__all__ = ["libdevice"]

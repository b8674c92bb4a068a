"""``triton.language.extra.cuda``: libdevice, and what only a GPU can mean."""

from __future__ import annotations

from typing import Any

from weft.language.core import Absent
from weft.triton.language.extra.cuda import libdevice

__all__ = ["libdevice"]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return Absent(f"extra.cuda.{name}")

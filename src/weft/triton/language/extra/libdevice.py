"""``triton.language.extra.libdevice``. Functions that weft does not have are refused where a kernel calls them."""

# pyright: reportUnsupportedDunderAll=false, reportUnusedImport=false
from __future__ import annotations

from typing import Any

from weft.language.core import Absent
from weft.language.extra import libdevice
from weft.language.extra.libdevice import *  # noqa: F403  # all of its names

__all__ = list(libdevice.__all__)


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return Absent(f"extra.libdevice.{name}")

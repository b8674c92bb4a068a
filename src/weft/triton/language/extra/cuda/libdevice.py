"""``triton.language.extra.cuda.libdevice``: the same functions as ``triton.language.extra.libdevice``."""

# pyright: reportUnsupportedDunderAll=false, reportUnusedImport=false
from __future__ import annotations

from typing import Any

from weft.triton.language.extra import libdevice
from weft.triton.language.extra.libdevice import *  # noqa: F403  # all of its names

__all__ = list(libdevice.__all__)


def __getattr__(name: str) -> Any:
    return getattr(libdevice, name)

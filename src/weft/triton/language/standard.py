"""``triton.language.standard``: the functions that Triton writes in its own language."""

# pyright: reportUnsupportedDunderAll=false, reportUnusedImport=false
from __future__ import annotations

from typing import Any

from weft import language
from weft.language import *  # noqa: F403  # all of its names
from weft.triton.language import helpers

__all__ = list(language.__all__)


def __getattr__(name: str) -> Any:
    from weft.triton import language as whole

    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(helpers if name in vars(helpers) else whole, name)

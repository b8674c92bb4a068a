"""``triton.language.random``."""

# pyright: reportUnsupportedDunderAll=false, reportUnusedImport=false
from __future__ import annotations

from weft.language import random as functions
from weft.language.random import *  # noqa: F403  # all of its names

__all__ = [name for name in dir(functions) if not name.startswith("_")]

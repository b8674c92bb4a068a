"""``triton.language.math``, with the functions of libdevice that older programs take from here."""

# pyright: reportUnsupportedDunderAll=false, reportUnusedImport=false
from __future__ import annotations

from weft.language import math as functions
from weft.language.extra import libdevice
from weft.language.extra.libdevice import *  # noqa: F403  # all of its names
from weft.language.math import *  # noqa: F403  # all of its names

__all__ = functions.__all__ + libdevice.__all__

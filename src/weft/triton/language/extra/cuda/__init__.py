"""``triton.language.extra.cuda``: libdevice, and what only a GPU can mean."""

from __future__ import annotations

from typing import Any

from weft.language.core import Absent
from weft.language.extra.cuda import gdc_launch_dependents, gdc_wait, globaltimer, num_threads, num_warps, smid
from weft.triton.language.extra.cuda import libdevice

__all__ = ["gdc_launch_dependents", "gdc_wait", "globaltimer", "libdevice", "num_threads", "num_warps", "smid"]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    return Absent(f"extra.cuda.{name}")

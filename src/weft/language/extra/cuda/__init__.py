"""What ``triton.language.extra.cuda`` has that means something on every machine."""

from __future__ import annotations

from weft.language.extra import libdevice
from weft.language.extra.cuda import gdc
from weft.language.extra.cuda.gdc import gdc_launch_dependents, gdc_wait
from weft.language.registers import globaltimer, num_threads, num_warps, smid

__all__ = [
    "gdc", "gdc_launch_dependents", "gdc_wait", "globaltimer", "libdevice", "num_threads", "num_warps", "smid",
]  # fmt: skip

"""``triton.backends``: what weft compiles for. The table has one entry, for this machine's CPU and emulated GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from weft.triton.backends.compiler import BaseBackend
from weft.triton.backends.driver import CpuDriver


@dataclass(frozen=True)
class Backend:
    """A compiler with its driver."""

    compiler: type[BaseBackend]
    driver: type[Any]


backends: Final[dict[str, Backend]] = {"cpu": Backend(BaseBackend, CpuDriver)}
"""By name; PyTorch's compiler looks for this one."""

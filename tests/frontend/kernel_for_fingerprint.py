"""A kernel that other processes load (see test_frontend_source)."""

from __future__ import annotations

from typing import Any

import weft.language as tl
from weft.frontend import KernelFunction

SIZE = tl.constexpr(16)


@KernelFunction
def helper(x: Any) -> Any:
    return x + SIZE


@KernelFunction
def KERNEL(p: Any) -> None:
    tl.store(p + tl.arange(0, SIZE), helper(tl.zeros((16,), tl.float32)))

"""Where a test launches its kernels."""

from __future__ import annotations

from typing import Any


def on(kernel: Any, target: str | None) -> Any:
    """The kernel for an emulated GPU, or natively for None."""
    return kernel if target is None else kernel.on(target)

"""Vector addition: the smallest complete kernel. One program adds BLOCK elements; the mask guards the last one."""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x: Any, y: Any, out: Any, block: int = 4096) -> Any:
    """``out = x + y`` for arrays of equal size; returns ``out``."""
    n = out.size
    add_kernel[(weft.cdiv(n, block),)](x, y, out, n, BLOCK=block)
    return out


def main() -> None:
    """Compare with NumPy."""
    x, y = np.random.default_rng(0).standard_normal((2, 5000), np.float32)
    compare("vector add", lambda: add(x, y, np.empty_like(x)), x + y, 0)


if __name__ == "__main__":
    main()

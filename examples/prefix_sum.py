"""Sums of all elements up to each, in one pass over an array of any length: programs hand their totals on.

Inside a block `tl.cumsum` does it. A block also needs the sum of all blocks before it. Programs start in increasing order, so a
program may wait for a lower one: it waits for the sum that its predecessor leaves, adds its own total, and leaves that. The
chain is as long as there are blocks, but all that a link takes is one load, one addition and one store; the blocks themselves
are loaded and summed at the same time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def prefix_sum_kernel(x_ptr, out_ptr, carry_ptr, ready_ptr, n, BLOCK: tl.constexpr):
    """``carry`` [programs] are sums of all blocks up to each; ``ready`` [programs] starts as 0."""
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0)
    sums = tl.cumsum(x, axis=0)
    total = tl.sum(x, axis=0)
    before = total * 0
    if pid > 0:
        # An atomic that acquires sees what was stored before the release that it reads.
        while tl.atomic_add(ready_ptr + pid - 1, 0, sem="acquire") == 0:
            pass
        before = tl.load(carry_ptr + pid - 1)
    tl.store(carry_ptr + pid, before + total)
    tl.atomic_xchg(ready_ptr + pid, 1, sem="release")
    tl.store(out_ptr + offsets, before + sums, mask=offsets < n)


def prefix_sum(x: Any, out: Any, block: int = 4096) -> Any:
    """``out[i] = sum(x[: i + 1])`` in the type of ``x``; returns ``out``."""
    programs = weft.cdiv(x.size, block)
    carry, ready = np.empty(programs, x.dtype), np.zeros(programs, np.int32)
    prefix_sum_kernel[(programs,)](x, out, carry, ready, x.size, BLOCK=block)
    return out


def main() -> None:
    """Compare with NumPy: integers exactly, floats up to rounding."""
    random = np.random.default_rng(0)
    for x, tolerance in ((random.integers(-100, 100, 3000), 0), (random.standard_normal(3000, np.float32), 1e-6)):
        expected = np.cumsum(x, dtype=np.float64)
        compare(f"prefix sum, {x.dtype}", lambda x=x: prefix_sum(x, np.empty_like(x), block=256), expected, tolerance)


if __name__ == "__main__":
    main()

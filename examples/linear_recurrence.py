"""The recurrence h[t] = a[t] * h[t - 1] + x[t], by a scan: gated and state-space models are made of it.

Step by step it is a chain as long as the sequence. But two steps (a1, x1) and (a2, x2), one after the other, are a step again:

    h -> a2 * (a1 * h + x1) + x2 = (a1 * a2) * h + (a2 * x1 + x2)

So `tl.associative_scan` can combine steps in any grouping, and takes log2(BLOCK) rounds instead of BLOCK. One program owns one
channel of one sequence; what a block ends with is what the next begins with.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def both_steps(a1, x1, a2, x2):
    """The first step, then the second, as one."""
    return a1 * a2, a2 * x1 + x2


@weft.jit
def recurrence_kernel(a_ptr, x_ptr, h_ptr, length, channels, BLOCK: tl.constexpr):
    """Arrays are [sequences, length, channels]; a grid of (sequences, channels)."""
    first = tl.program_id(0) * length * channels + tl.program_id(1)
    t = tl.arange(0, BLOCK)
    h = 0.0
    for start in range(0, length, BLOCK):
        places = first + (start + t) * channels
        mask = start + t < length
        # Beyond the end stand steps that change nothing: h -> 1 * h + 0.
        a = tl.load(a_ptr + places, mask=mask, other=1.0).to(tl.float32)
        x = tl.load(x_ptr + places, mask=mask, other=0.0).to(tl.float32)
        factors, terms = tl.associative_scan((a, x), 0, both_steps)
        states = factors * h + terms
        tl.store(h_ptr + places, states.to(h_ptr.dtype.element_ty), mask=mask)
        # A tile has no index: the sum over all but the last element taken as 0 is the last element.
        h = tl.sum(tl.where(t == BLOCK - 1, states, 0.0), axis=0)


def recurrence(a: Any, x: Any, h: Any, block: int = 1024) -> Any:
    """All states h of the recurrence, from h = 0, for arrays [sequences, length, channels]; returns ``h``."""
    sequences, length, channels = x.shape
    block = min(block, weft.next_power_of_2(length))
    recurrence_kernel[(sequences, channels)](a, x, h, length, channels, BLOCK=block)
    return h


def main() -> None:
    """Compare with NumPy, step by step."""
    random = np.random.default_rng(0)
    a = random.uniform(0.5, 1, (2, 300, 3)).astype(np.float32)
    x = random.standard_normal((2, 300, 3)).astype(np.float32)
    expected = np.zeros(x.shape)
    state = np.zeros((2, 3))
    for t in range(300):
        expected[:, t] = state = a[:, t] * state + x[:, t]
    compare("linear recurrence", lambda: recurrence(a, x, np.empty_like(x), block=128), expected, 1e-6)


if __name__ == "__main__":
    main()

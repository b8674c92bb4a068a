"""Dropout that stores no mask: a program draws again, from the seed and an element's index, which elements it keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    keep = tl.rand(seed, offsets) > p
    # What is kept grows, so that the expected value of an element stays what it was.
    out = tl.where(keep, x / (1 - p), 0.0)
    tl.store(out_ptr + offsets, out.to(out_ptr.dtype.element_ty), mask=mask)


def dropout(x: Any, out: Any, p: float, seed: int) -> Any:
    """Each element of ``x`` with probability ``1 - p``, divided by that, else 0; the same seed keeps the same ones. Applied to
    the gradient of ``out``, it gives that of ``x``. Returns ``out``."""
    n = x.size
    dropout_kernel[(weft.cdiv(n, 1024),)](x, out, n, p, seed, BLOCK=1024)
    return out


def main() -> None:
    """NumPy's dropout, given which elements the kernel has kept; and how many those are."""
    x = np.random.default_rng(0).standard_normal(4000).astype(np.float32)
    kept = dropout(x, np.empty_like(x), 0.25, seed=7) != 0
    print(f"kept {kept.mean():.1%} of the elements, expected 75%")
    compare("dropout", lambda: dropout(x, np.empty_like(x), 0.25, seed=7), np.where(kept, x / 0.75, 0), 1e-6)


if __name__ == "__main__":
    main()

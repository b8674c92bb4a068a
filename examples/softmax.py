"""Fused softmax: each row is read once and written once. One program owns a row, and the row is one tile."""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def softmax_kernel(x_ptr, out_ptr, x_stride, out_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    # Beyond the row stands -inf: it never is the maximum, and its exponential is 0.
    x = tl.load(x_ptr + row * x_stride + offsets, mask=mask, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    result = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * out_stride + offsets, result.to(out_ptr.dtype.element_ty), mask=mask)


def softmax(x: Any, out: Any) -> Any:
    """Softmax along the rows of ``x`` [rows, columns], computed in float32; returns ``out``."""
    rows, columns = x.shape
    softmax_kernel[(rows,)](x, out, columns, columns, columns, BLOCK=weft.next_power_of_2(columns))
    return out


def main() -> None:
    """Compare with NumPy."""
    x = np.random.default_rng(0).standard_normal((5, 781), np.float32)
    powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    compare("softmax", lambda: softmax(x, np.empty_like(x)), powers / powers.sum(axis=1, keepdims=True), 1e-6)


if __name__ == "__main__":
    main()

"""Layer norm: mean, variance, scale and shift of a row in one pass over memory. One program owns a row."""

from __future__ import annotations

from typing import Any

import weft
import weft.language as tl


@weft.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, stride, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centered = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centered * centered, axis=0) / columns
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    result = centered * tl.rsqrt(variance + epsilon) * weight + bias
    tl.store(out_ptr + row * stride + offsets, result.to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm(x: Any, weight: Any, bias: Any, out: Any, epsilon: float = 1e-5) -> Any:
    """Layer norm along the rows of ``x`` [rows, columns], computed in float32; returns ``out``."""
    rows, columns = x.shape
    block = weft.next_power_of_2(columns)
    layer_norm_kernel[(rows,)](x, weight, bias, out, columns, columns, epsilon, BLOCK=block)
    return out

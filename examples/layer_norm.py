"""Layer norm and its gradient. One program owns a row; programs share the gradients of weight and bias under locks.

The forward pass keeps each row's mean and the reciprocal of its standard deviation, so that the backward pass does not
compute them again. There, the gradients of weight and bias are sums over all rows. They are computed in two stages:

1. The program of row r adds its terms to the partial sums of group ``r % GROUPS``, while it holds that group's lock.
2. A second kernel adds up the GROUPS partial sums.

Few groups mean that programs wait for each other; many mean more memory for the second stage to read.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import compare

import weft
import weft.language as tl


@weft.jit
def layer_norm_kernel(
    x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, scale_ptr, stride, columns, epsilon, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / columns
    centered = tl.where(mask, x - mean, 0.0)
    scale = tl.rsqrt(tl.sum(centered * centered, axis=0) / columns + epsilon)
    # An argument that is None is known when the kernel is compiled: without a backward pass nothing is stored.
    if mean_ptr is not None:
        tl.store(mean_ptr + row, mean)
        tl.store(scale_ptr + row, scale)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    bias = tl.load(bias_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    result = centered * scale * weight + bias
    tl.store(out_ptr + row * stride + offsets, result.to(out_ptr.dtype.element_ty), mask=mask)


@weft.jit
def layer_norm_backward_kernel(
    dout_ptr,
    x_ptr,
    weight_ptr,
    mean_ptr,
    scale_ptr,
    dx_ptr,
    partial_dweight_ptr,
    partial_dbias_ptr,
    lock_ptr,
    stride,
    columns,
    GROUPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The gradient of one row, and the row's terms of the partial sums; partial sums [GROUPS, columns] and locks start as 0."""
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    dout = tl.load(dout_ptr + row * stride + offsets, mask=mask, other=0.0).to(tl.float32)
    weight = tl.load(weight_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    scale = tl.load(scale_ptr + row)
    normal = tl.where(mask, (x - tl.load(mean_ptr + row)) * scale, 0.0)
    # x moves the mean and the deviation as well: what it does to them is taken off.
    dnormal = dout * weight
    through_mean = tl.sum(dnormal, axis=0) / columns
    through_scale = tl.sum(dnormal * normal, axis=0) / columns
    dx = (dnormal - through_mean - normal * through_scale) * scale
    tl.store(dx_ptr + row * stride + offsets, dx.to(dx_ptr.dtype.element_ty), mask=mask)

    group = row % GROUPS
    dweight_tile = partial_dweight_ptr + group * columns + offsets
    dbias_tile = partial_dbias_ptr + group * columns + offsets
    while tl.atomic_cas(lock_ptr + group, 0, 1) == 1:  # 0 becomes 1: this program has the lock
        pass
    tl.store(dweight_tile, tl.load(dweight_tile, mask=mask, other=0.0) + dout * normal, mask=mask)
    tl.store(dbias_tile, tl.load(dbias_tile, mask=mask, other=0.0) + dout, mask=mask)
    # All threads of the program have stored their part before the lock is given back.
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr + group, 0)


@weft.jit
def sum_groups_kernel(partial_ptr, out_ptr, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """The sums of BLOCK columns of a [GROUPS, columns] array."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < columns
    groups = tl.arange(0, GROUPS)
    tile = tl.load(partial_ptr + groups[:, None] * columns + offsets[None, :], mask=mask[None, :], other=0.0)
    tl.store(out_ptr + offsets, tl.sum(tile, axis=0).to(out_ptr.dtype.element_ty), mask=mask)


def layer_norm(x: Any, weight: Any, bias: Any, out: Any, mean: Any = None, scale: Any = None, epsilon=1e-5) -> Any:
    """Layer norm along the rows of ``x`` [rows, columns], computed in float32; returns ``out``. ``mean`` and ``scale``
    [rows], float32, keep what `layer_norm_backward` needs."""
    rows, columns = x.shape
    block = weft.next_power_of_2(columns)
    layer_norm_kernel[(rows,)](x, weight, bias, out, mean, scale, columns, columns, epsilon, BLOCK=block)
    return out


def layer_norm_backward(
    dout: Any, x: Any, weight: Any, mean: Any, scale: Any, groups: int = 16
) -> tuple[Any, Any, Any]:
    """The gradients of x, weight and bias, given that of the output."""
    rows, columns = x.shape
    dx, dweight, dbias = np.empty_like(x), np.empty_like(weight), np.empty_like(weight)
    partial_dweight, partial_dbias = np.zeros((2, groups, columns), np.float32)
    layer_norm_backward_kernel[(rows,)](
        dout, x, weight, mean, scale, dx, partial_dweight, partial_dbias, np.zeros(groups, np.int32), columns, columns,
        GROUPS=groups, BLOCK=weft.next_power_of_2(columns),
    )  # fmt: skip
    for partial, total in ((partial_dweight, dweight), (partial_dbias, dbias)):
        sum_groups_kernel[(weft.cdiv(columns, 128),)](partial, total, columns, GROUPS=groups, BLOCK=128)
    return dx, dweight, dbias


def main() -> None:
    """Compare both passes with NumPy."""
    random = np.random.default_rng(0)
    x, dout = random.standard_normal((2, 23, 300), np.float32)
    weight, bias = random.standard_normal((2, 300), np.float32)
    mean, scale = np.empty((2, 23), np.float32)

    deviation = np.sqrt(x.var(axis=1, keepdims=True, dtype=np.float64) + 1e-5)
    normal = (x - x.mean(axis=1, keepdims=True, dtype=np.float64)) / deviation
    dnormal = dout * weight
    lost = dnormal.mean(axis=1, keepdims=True) + normal * (dnormal * normal).mean(axis=1, keepdims=True)

    def forward():
        return layer_norm(x, weight, bias, np.empty_like(x), mean, scale)

    def backward():
        return layer_norm_backward(dout, x, weight, mean, scale, groups=4)

    gradients = (dnormal - lost) / deviation, (dout * normal).sum(axis=0), dout.sum(axis=0)
    compare("layer norm", forward, normal * weight + bias, 1e-5)
    compare("layer norm backward", backward, gradients, 1e-5)


if __name__ == "__main__":
    main()

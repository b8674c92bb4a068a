"""Bytes and rows: blending two images of uint8, the backward pass of layer norm."""

from __future__ import annotations

import numpy as np
from machine import Baseline
from rows import (
    Family,
    Row,
    bytes_,
    jax,
    normal,
    tensor,
    tiled,
    torch,
    with_c,
    with_jax,
    with_numba,
    with_numpy,
    with_torch,
)

import weft
import weft.language as tl

BLOCKS = ((64,), (256,), (1024,), (4096,))


@weft.jit
def blend_kernel(a, b, out, n, weight, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(a + offsets, mask=inside).to(tl.uint16)
    y = tl.load(b + offsets, mask=inside).to(tl.uint16)
    w = weight.to(tl.uint16)
    tl.store(out + offsets, ((x * w + y * (256 - w).to(tl.uint16)) >> 8).to(tl.uint8), mask=inside)


@weft.jit
def blend_wide_kernel(a, b, out, n, weight, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x = tl.load(a + offsets, mask=inside).to(tl.int32)
    y = tl.load(b + offsets, mask=inside).to(tl.int32)
    tl.store(out + offsets, ((x * weight + y * (256 - weight)) >> 8).to(tl.uint8), mask=inside)


@weft.jit
def byte_max_kernel(a, b, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = offsets < n
    x, y = tl.load(a + offsets, mask=inside), tl.load(b + offsets, mask=inside)
    tl.store(out + offsets, tl.maximum(x, y) - (x & y), mask=inside)


@weft.jit
def layer_norm_backward_kernel(
    dy, x, weight, mean, scale, dx, dweight, dbias, rows, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):
    """dx of a row for each program; dweight and dbias summed over the rows of a group of programs."""
    group = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    w = tl.load(weight + at, mask=inside, other=0.0)
    sum_w = tl.zeros((BLOCK,), tl.float32)
    sum_b = tl.zeros((BLOCK,), tl.float32)
    for row in range(group, rows, GROUPS):
        g = tl.load(dy + row * columns + at, mask=inside, other=0.0)
        normed = (tl.load(x + row * columns + at, mask=inside, other=0.0) - tl.load(mean + row)) * tl.load(scale + row)
        normed = tl.where(inside, normed, 0.0)
        wg = w * g
        c1 = tl.sum(normed * wg, axis=0) / columns
        c2 = tl.sum(wg, axis=0) / columns
        tl.store(dx + row * columns + at, (wg - (normed * c1 + c2)) * tl.load(scale + row), mask=inside)
        sum_w += g * normed
        sum_b += g
    tl.atomic_add(dweight + at, sum_w, mask=inside, sem="relaxed")
    tl.atomic_add(dbias + at, sum_b, mask=inside, sem="relaxed")


def blend(kernel, name: str, n: int, weight: int = 77):
    def build(c: Baseline | None) -> Row:
        a, b = bytes_(n), bytes_(n)[::-1].copy()
        wide = a.astype(np.uint16), b.astype(np.uint16)

        def in_numpy(out):
            np.copyto(
                out, ((a.astype(np.uint16) * np.uint16(weight) + b * np.uint16(256 - weight)) >> 8).astype(np.uint8)
            )

        return Row(
            name,
            (wide[0] * weight + wide[1] * (256 - weight)) >> 8,
            tiled(
                BLOCKS,
                n,
                lambda out, block: kernel[(weft.cdiv(n, block),)](a, b, out, n, weight, BLOCK=block),
                np.uint8,
            ),
            {
                **with_numpy(n, in_numpy, np.uint8),
                **with_jax(
                    lambda a, b: (
                        (a.astype(jax.numpy.uint16) * weight + b.astype(jax.numpy.uint16) * (256 - weight)) >> 8
                    ).astype(jax.numpy.uint8),
                    a,
                    b,
                ),
                **with_numba(n, lambda k, out: k.blend(a, b, out, weight), np.uint8),
                **with_c(c, n, lambda c, out: c.blend(a, b, out, n, weight), np.uint8),
            },
            moved=3 * n,
            exact=True,
        )

    return build


def byte_max(name: str, n: int):
    def build(c: Baseline | None) -> Row:
        a, b = bytes_(n), bytes_(n)[::-1].copy()
        return Row(
            name,
            np.maximum(a, b) - (a & b),
            tiled(
                BLOCKS,
                n,
                lambda out, block: byte_max_kernel[(weft.cdiv(n, block),)](a, b, out, n, BLOCK=block),
                np.uint8,
            ),
            {
                **with_numpy(n, lambda out: np.subtract(np.maximum(a, b), a & b, out=out), np.uint8),
                **with_jax(lambda a, b: jax.numpy.maximum(a, b) - (a & b), a, b),
                **with_numba(n, lambda k, out: k.byte_max(a, b, out), np.uint8),
                **with_c(c, n, lambda c, out: c.byte_max(a, b, out, n), np.uint8),
            },
            moved=3 * n,
            exact=True,
        )

    return build


def layer_norm_backward(name: str, rows: int, columns: int):
    def build(_: Baseline | None) -> Row:
        dy, x, weight = normal(rows, columns), normal(rows, columns)[::-1].copy(), normal(columns)
        mean = x.mean(axis=1)
        scale = 1 / np.sqrt(x.var(axis=1) + np.float32(1e-5))
        dweight, dbias = np.zeros(columns, np.float32), np.zeros(columns, np.float32)
        normed = (x - mean[:, None]) * scale[:, None]
        wg = dy.astype(np.float64) * weight
        c1, c2 = (normed * wg).mean(axis=1, keepdims=True), wg.mean(axis=1, keepdims=True)

        def run(out, groups):
            dweight.fill(0)
            dbias.fill(0)
            layer_norm_backward_kernel[(groups,)](
                dy,
                x,
                weight,
                mean,
                scale,
                out,
                dweight,
                dbias,
                rows,
                columns,
                GROUPS=groups,
                BLOCK=weft.next_power_of_2(columns),
            )

        def in_torch():
            tensors = (tensor(dy), tensor(x), [columns], tensor(mean)[:, None], tensor(scale)[:, None])
            return torch.ops.aten.native_layer_norm_backward(*tensors, tensor(weight), tensor(weight), [True] * 3)[0]

        def in_jax(dy, x, weight, mean, scale):
            normed = (x - mean[:, None]) * scale[:, None]
            wg = dy * weight
            c1, c2 = (normed * wg).mean(axis=1, keepdims=True), wg.mean(axis=1, keepdims=True)
            dx = (wg - normed * c1 - c2) * scale[:, None]
            sums = (dy * normed).sum(axis=0) + dy.sum(axis=0)
            return dx.at[0, 0].add(0 * sums.sum())

        return Row(
            name,
            (wg - (normed * c1 + c2)) * scale[:, None],
            tiled(((2,), (8,), (32,), (64,)), (rows, columns), run),
            {
                **with_torch(in_torch),
                **with_jax(in_jax, dy, x, weight, mean, scale),
                **with_numba((rows, columns), lambda k, out: k.layer_norm_backward(dy, x, weight, mean, scale, out)),
            },
            moved=3 * 4 * rows * columns,
            tolerance=1e-3,
        )

    return build


ROWS: Family = {
    "blend": blend(blend_kernel, "uint8 blend 2^22, uint16", 1 << 22),
    "blend-wide": blend(blend_wide_kernel, "uint8 blend 2^22, int32", 1 << 22),
    "byte-max": byte_max("uint8 max and and, 2^22", 1 << 22),
    "layer-norm-backward": layer_norm_backward("layer norm backward 2048x1024, by groups", 2048, 1024),
    "layer-norm-backward-odd": layer_norm_backward("layer norm backward 2048x777, by groups", 2048, 777),
}

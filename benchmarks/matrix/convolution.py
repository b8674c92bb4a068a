"""Convolutions of images as one matrix product, whose left operand is gathered from the image as it is needed."""

from __future__ import annotations

import numpy as np
from machine import Baseline
from rows import Family, Row, jax, normal, tensor, tiled, torch, with_jax, with_torch

import weft
import weft.language as tl

TILES = ((16, 16, 16), (64, 16, 16), (64, 64, 16), (64, 64, 64), (128, 32, 32), (256, 64, 64))


@weft.jit
def convolution_kernel(
    image, weight, out, H, W, C: tl.constexpr, K: tl.constexpr, R: tl.constexpr, S: tl.constexpr, pixels,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """NHWC by RSCK, no padding: pixels of the output by channels, summed over R, S and C."""
    at = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    p, q = H - R + 1, W - S + 1
    first = ((at // (p * q) * H + at // q % p) * W + at % q) * C
    total = tl.zeros((BM, BN), tl.float32)
    for r in range(R):
        for s in range(S):
            for c in range(0, C, BK):
                k = c + tl.arange(0, BK)
                a = tl.load(
                    image + first[:, None] + (r * W + s) * C + k[None, :], mask=(at < pixels)[:, None], other=0.0
                )
                b = tl.load(weight + ((r * S + s) * C + k[:, None]) * K + n[None, :])
                total = tl.dot(a, b, total)
    tl.store(out + at[:, None] * K + n[None, :], total, mask=(at < pixels)[:, None])


def convolution(name: str, n: int, h: int, w: int, c: int, k: int, r: int):
    def build(_: Baseline | None) -> Row:
        image, weight = normal(n, h, w, c), normal(r, r, c, k)
        p, q = h - r + 1, w - r + 1
        windows = np.lib.stride_tricks.sliding_window_view(image, (r, r), axis=(1, 2))
        expected = np.einsum("npqcrs,rsck->npqk", windows, weight, optimize=True)
        planes, filters = (
            tensor(image.transpose(0, 3, 1, 2)),
            tensor(np.ascontiguousarray(weight.transpose(3, 2, 0, 1))),
        )

        def run(out, bm, bn, bk):
            pixels = n * p * q
            convolution_kernel[(weft.cdiv(pixels, bm), k // bn)](
                image, weight, out, h, w, c, k, r, r, pixels, BM=bm, BN=bn, BK=bk
            )

        def in_jax(image, weight):
            return jax.lax.conv_general_dilated(
                image, weight, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )

        return Row(
            name,
            expected,
            tiled(TILES, (n, p, q, k), run),
            {
                **with_torch(lambda: torch.nn.functional.conv2d(planes, filters).permute(0, 2, 3, 1)),
                **with_jax(in_jax, image, weight),
            },
            flops=2 * n * p * q * k * c * r * r,
            tolerance=5e-3,
        )

    return build


ROWS: Family = {"convolution": convolution("convolution 4x34x34x64 by 3x3x64x64", 4, 34, 34, 64, 64, 3)}

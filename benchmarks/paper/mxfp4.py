"""Section 5.2 of the linear layouts paper: a product of bfloat16 and mxfp4, which is unpacked and scaled by shape operations.

A byte has two neighbours of e2m1 along the depth, and 32 of them share a scale of e8m0. One kernel makes them bfloat16: bytes
are broadcast to pairs and shifted, or split and joined (`tl.join`); scales are broadcast to 32 and reshaped. The other is
`tl.dot_scaled`. Triton 3.9 (``--triton``) compiles the same kernels. The paper has times: up to 1.87 times legacy Triton's.
All are executed, and compared with NumPy bit for bit: all products and sums are exact.
"""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
from common import WARPS, Array, Made, by_triton, by_weft, equal, finish, launched, parser, show

import weft
import weft.language as tl

M, N, K, DEPTH = 64, 64, 64, 128
STAGES: Final = 3
METRICS: Final = ("executions", "shared_wavefronts", "shuffles", "barriers", "mma", "wgmma")
HEADS: Final = (
    "kernel",
    "instructions",
    "shared wavefronts",
    "shuffles",
    "barriers",
    "mma",
    "wgmma",
    "spill bytes",
    "seconds",
)
E2M1: Final = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)


@weft.jit
def decoded(four: Any, exponents: Any, K: tl.constexpr, N: tl.constexpr) -> Any:
    size = four & 7
    bits = tl.where(size < 2, size * 0x3F00, 0x3F00 + (size << 6)) | ((four & 8) << 12)
    numbers = tl.reshape(bits.to(tl.uint16).to(tl.bfloat16, bitcast=True), (K, N))
    scale = (exponents.to(tl.uint16) << 7).to(tl.bfloat16, bitcast=True)
    scale = tl.reshape(tl.broadcast_to(scale[:, None, :], (K // 32, 32, N)), (K, N))
    return numbers * scale


@weft.jit
def mxfp4(
    x: Any,
    packed: Any,
    scales: Any,
    out: Any,
    depth: Any,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    JOIN: tl.constexpr,
) -> None:
    rows, columns, inside = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    halves, groups = tl.arange(0, K // 2), tl.arange(0, K // 32)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, depth, K):
        left = tl.load(x + rows[:, None] * depth + (start + inside)[None, :])
        pairs = tl.load(packed + (start // 2 + halves)[:, None] * N + columns[None, :])
        exponents = tl.load(scales + (start // 32 + groups)[:, None] * N + columns[None, :])
        if JOIN:
            four = tl.join(pairs & 15, pairs >> 4).permute(0, 2, 1)
        else:
            four = pairs[:, None, :] >> (tl.arange(0, 2) * 4).to(tl.uint8)[None, :, None]
        total = tl.dot(left, decoded(four.to(tl.uint16), exponents, K, N), total)
    tl.store(out + rows[:, None] * N + columns[None, :], total)


@weft.jit
def scaled(
    x: Any, packed: Any, scales: Any, out: Any, depth: Any, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
) -> None:
    rows, columns, inside = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    halves, groups = tl.arange(0, K // 2), tl.arange(0, K // 32)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, depth, K):
        left = tl.load(x + rows[:, None] * depth + (start + inside)[None, :])
        pairs = tl.load(packed + (start // 2 + halves)[:, None] * N + columns[None, :])
        exponents = tl.load(scales + (start // 32 + groups)[None, :] * N + columns[:, None])
        total = tl.dot_scaled(left, None, "bf16", pairs, exponents, "e2m1", total)
    tl.store(out + rows[:, None] * N + columns[None, :], total)


KERNELS: Final[dict[str, tuple[Any, dict[str, bool]]]] = {
    "broadcast and shift": (mxfp4, {"JOIN": False}),
    "tl.join": (mxfp4, {"JOIN": True}),
    "tl.dot_scaled": (scaled, {}),
}
"""Kernels and their constants beside the sizes."""


def arguments() -> tuple[list[Array], Array]:
    """The arrays, and what the product is."""
    rng = np.random.default_rng(52)
    x = (rng.integers(-8, 8, (M, DEPTH)) / 4).astype(ml_dtypes.bfloat16)
    fours = rng.integers(0, 16, (DEPTH, N)).astype(np.uint8)
    scales = rng.integers(125, 130, (DEPTH // 32, N)).astype(np.uint8)
    packed = fours[::2] | fours[1::2] << 4
    weights = E2M1[fours] * np.exp2(scales.astype(np.float32) - 127).repeat(32, 0)
    expected = x.astype(np.float64) @ weights.astype(np.float64)
    return [x, packed, scales, np.zeros((M, N), np.float32)], expected.astype(np.float32)


def request(kernel: str, constants: dict[str, bool], target: str) -> dict[str, Any]:
    """What Triton is asked to compile."""
    return {
        "kernel": kernel,
        "target": int(target[3:]),
        "signature": {"x": "*bf16", "packed": "*u8", "scales": "*u8", "out": "*fp32", "depth": "i32"},
        "constants": {"M": M, "N": N, "K": K, **constants},
        "options": {"num_warps": WARPS, "num_stages": STAGES, "ptx_version": 84},
    }


def main() -> None:
    """Prints the table."""
    given = parser("Section 5.2: bfloat16 by mxfp4, counted.").parse_args()
    arrays, expected = arguments()
    rows: list[tuple[str, Made]] = []
    for name, (kernel, constants) in KERNELS.items():
        sizes = {"M": M, "N": N, "K": K, **constants}
        rows.append((f"weft, {name}", by_weft(kernel, arrays, given.target, sizes, [DEPTH], num_stages=STAGES)))
    if given.triton:
        asked = [request(kernel.name, constants, given.target) for kernel, constants in KERNELS.values()]
        for (name, (kernel, _)), other in zip(KERNELS.items(), by_triton(given.triton, asked), strict=True):
            if "error" in other:
                print(f"{name}: {other['error']}")
                continue
            rows.append((f"Triton, {name}", launched(other, kernel.name, arrays, numbers=[DEPTH])))
    cells = [
        [name, *(f"{made.count(metric):,}" for metric in METRICS), made.spills, f"{made.seconds:.2f}"]
        for name, made in rows
    ]
    show(f"bfloat16 x mxfp4, {M}x{N}x{DEPTH}, {given.target}", HEADS, cells, markdown=given.markdown)
    finish([name for name, made in rows if not equal(made.arrays[3], expected)])


if __name__ == "__main__":
    main()

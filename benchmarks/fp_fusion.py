"""What `enable_fp_fusion=True` is worth on a CPU: kernels whose products may be added without being rounded, beside themselves.

Run as ``python benchmarks/fp_fusion.py``. Least and median time of interleaved launches, and their ratios, for arrays in cache
and in memory.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import weft
import weft.language as tl

REPEATS = 41
BLOCK = 1024


@weft.jit
def axpy(x: Any, y: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, 1.5 * tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@weft.jit
def polynomial(x: Any, y: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    total = v * 0.5
    for k in tl.static_range(16):
        total = total * v + 0.1 * k
    tl.store(out + i, total, mask=i < n)


@weft.jit
def gelu(x: Any, y: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v * tl.sigmoid(1.5957691216 * (v + 0.044715 * v * v * v)), mask=i < n)


@weft.jit
def rotation(x: Any, y: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    tl.store(out + i, a * a - b * b, mask=i < n)
    tl.store(out + n + i, b * a + a * b, mask=i < n)


@weft.jit
def mandelbrot(x: Any, y: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    a, b = tl.load(x + i, mask=i < n), tl.load(y + i, mask=i < n)
    real, imaginary, count = a, b, tl.zeros((B,), tl.float32)
    for _ in range(64):
        real, imaginary = real * real - imaginary * imaginary + a, 2 * real * imaginary + b
        count += tl.where(real * real + imaginary * imaginary < 4, 1.0, 0.0)
    tl.store(out + i, count, mask=i < n)


def milliseconds(launches: dict[bool, Callable[[], None]]) -> dict[bool, list[float]]:
    """Times of the launches, in turns."""
    times: dict[bool, list[float]] = {fused: [] for fused in launches}
    for turn in range(REPEATS + 3):
        for fused, launch in launches.items():
            start = time.perf_counter()
            launch()
            if turn >= 3:
                times[fused].append(1000 * (time.perf_counter() - start))
    return times


def main() -> None:
    """Prints the table."""
    print(
        "| kernel | elements | rounded, ms | fused, ms | fused / rounded | of the medians |\n|---|--:|--:|--:|--:|--:|"
    )
    rng = np.random.default_rng(1)
    for n in (1 << 14, 1 << 22):
        x, y = (rng.random(n).astype(np.float32) for _ in range(2))
        out = np.zeros(2 * n, np.float32)
        for kernel in (axpy, polynomial, gelu, rotation, mandelbrot):
            launches = {
                fused: kernel[(n // BLOCK,)].bind(x, y, out, n, BLOCK, enable_fp_fusion=fused)
                for fused in (False, True)
            }
            times = milliseconds(launches)
            least, median = ({fused: of(found) for fused, found in times.items()} for of in (min, statistics.median))
            print(
                f"| {kernel.name} | {n} | {least[False]:.4f} | {least[True]:.4f} | {least[True] / least[False]:.2f} "
                f"| {median[True] / median[False]:.2f} |"
            )


if __name__ == "__main__":
    main()

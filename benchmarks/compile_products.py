"""How long products of matrices and attention take to compile and to launch for the first time.

Each kernel is measured in processes of its own, without a cache: processor time in ms of the second compilation of the process
(the first is a small kernel, so that LLVM and the compiler are loaded), and the median of later ones, which differ in
``num_warps`` alone. A process has one thread.

Run with ``python benchmarks/compile_products.py [--repeats N]``. ``PYTHONPATH=OTHER/src`` measures another tree; trees are best
measured in turns. Bytecode should be there (``python -m compileall -q src``).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.table import Table

import weft
import weft.language as tl

LATER = (2, 8, 16, 32)


@weft.jit
def small(x, n, N: tl.constexpr):
    places = tl.arange(0, N)
    tl.store(x + places, 1.0, mask=places < n)


@weft.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """Row-major float32; offsets of rows and columns modulo the sizes, masks along the depth."""
    across = tl.cdiv(N, BN)
    m = tl.program_id(0) // across * BM + tl.arange(0, BM)
    n = tl.program_id(0) % across * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left, right = a + (m % M)[:, None] * K + k[None, :], b + k[:, None] * N + (n % N)[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(K, BK)):
        x = tl.load(left, mask=k[None, :] < K - step * BK, other=0.0)
        y = tl.load(right, mask=k[:, None] < K - step * BK, other=0.0)
        total = tl.dot(x, y, total)
        left += BK
        right += BK * N
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m < M)[:, None] & (n < N)[None, :])


@weft.jit
def attention(q, k, v, out, N, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    """One head of float32 with D columns."""
    row, column = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    queries = tl.load(q + row[:, None] * D + column[None, :]) * scale
    highest = tl.full((BM,), float("-inf"), tl.float32)
    weights = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else N
    for start in range(0, end, BN):
        key = start + tl.arange(0, BN)
        scores = tl.dot(queries, tl.trans(tl.load(k + key[:, None] * D + column[None, :])))
        if CAUSAL:
            scores = tl.where(row[:, None] >= key[None, :], scores, float("-inf"))
        higher = tl.maximum(highest, tl.max(scores, 1))
        each, before = tl.exp(scores - higher[:, None]), tl.exp(highest - higher)
        weights = weights * before + tl.sum(each, 1)
        total = tl.dot(each, tl.load(v + key[:, None] * D + column[None, :]), total * before[:, None])
        highest = higher
    tl.store(out + row[:, None] * D + column[None, :], total / weights[:, None])


def _launch_product(warps: int) -> None:
    x = np.ones((128, 128), np.float32)
    product[(4,)](x, x.copy(), x.copy(), 128, 128, 128, BM=64, BN=64, BK=32, num_warps=warps)


def _launch_attention(warps: int, *, causal: bool) -> None:
    x = np.ones((128, 64), np.float32)
    attention[(2,)](
        x, x.copy(), x.copy(), x.copy(), 128, 0.1, D=64, BM=64, BN=64, CAUSAL=causal, num_warps=warps
    )  # fmt: skip


KERNELS: dict[str, Callable[[int], None]] = {
    "product": _launch_product,
    "attention": lambda warps: _launch_attention(warps, causal=False),
    "causal attention": lambda warps: _launch_attention(warps, causal=True),
}


def _took(launch: Callable[[], None]) -> float:
    start = time.process_time()
    launch()
    return (time.process_time() - start) * 1e3


def measured(name: str) -> tuple[float, float]:
    """The second compilation of this process, and the median of later ones."""
    small[(1,)](np.zeros(64, np.float32), 64, N=64)
    launch = KERNELS[name]
    return _took(lambda: launch(4)), statistics.median([_took(lambda warps=warps: launch(warps)) for warps in LATER])


def _in_a_process(name: str) -> list[float]:
    command = [sys.executable, __file__, "--one", name]
    environment = {**os.environ, "WEFT_CACHE": "0", "WEFT_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [float(part) for part in done.stdout.split()]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="How long products and attention take to compile, in processor ms.")
    parser.add_argument("--repeats", type=int, default=5, help="processes for each kernel; least and median are shown")
    parser.add_argument("--one", choices=KERNELS, help="measure one kernel in this process, and print the numbers")
    given = parser.parse_args()
    if given.one:
        print(*measured(given.one))
        return
    table = Table("kernel", "second: least", "median", "later: least", "median", title=f"processor ms, {weft.__file__}")
    for name in KERNELS:
        runs = [_in_a_process(name) for _ in range(given.repeats)]
        columns = [f"{pick(each):.0f}" for each in zip(*runs, strict=True) for pick in (min, statistics.median)]
        table.add_row(name, *columns)
    Console().print(table)


if __name__ == "__main__":
    main()

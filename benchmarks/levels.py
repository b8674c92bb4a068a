"""What kernels cost on the levels of x86-64 below this machine's, beside this machine: masks and mathematical functions.

Run ``python benchmarks/levels.py`` (``--rounds 5``, ``--only store``). Each level runs in processes of its own, as `WEFT_TARGET`
is read once; the levels take turns. A cell is the median over the rounds of the least processor time of one thread, in
nanoseconds per element, and in brackets its ratio to ``native``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

LEVELS = ("native", "x86-64-v4", "x86-64-v3", "x86-64-v2", "x86-64")
SIZE, BLOCK, ROWS = 1 << 16, 1024, 64
BATCHES, SECONDS = 15, 0.02
os.environ.setdefault("WEFT_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))


def cases() -> dict[str, tuple[Callable[[], object], int]]:
    """What is timed, and its elements, by name."""
    from layer_norm import layer_norm_kernel
    from softmax import softmax_kernel

    import weft
    import weft.language as tl

    @weft.jit
    def scattered_mask(x_ptr: Any, m_ptr: Any, out_ptr: Any, BLOCK: tl.constexpr) -> None:
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i), mask=tl.load(m_ptr + i) > 0)

    @weft.jit
    def scattered_load(x_ptr: Any, m_ptr: Any, out_ptr: Any, BLOCK: tl.constexpr) -> None:
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out_ptr + i, tl.load(x_ptr + i, mask=tl.load(m_ptr + i) > 0, other=0))

    @weft.jit
    def rows_cut_off(x_ptr: Any, out_ptr: Any, columns: Any, R: tl.constexpr, C: tl.constexpr) -> None:
        i, j = tl.program_id(0) * R + tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
        inside = j < columns
        x = tl.load(x_ptr + i * columns + j, mask=inside, other=0)
        tl.store(out_ptr + i * columns + j, x + x, mask=inside)

    @weft.jit
    def function(x_ptr: Any, out_ptr: Any, KIND: tl.constexpr, BLOCK: tl.constexpr) -> None:
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i)
        if KIND == "exp":
            y = tl.exp(x)
        elif KIND == "log":
            y = tl.log(x)
        elif KIND == "sin":
            y = tl.sin(x)
        elif KIND == "floor":
            y = tl.floor(x)
        elif KIND == "ceil":
            y = tl.ceil(x)
        elif KIND == "pow":
            y = tl.extra.libdevice.pow(x, 1.5)
        else:
            y = tl.fma(x, x, x)
        tl.store(out_ptr + i, y)

    rng = np.random.default_rng(0)
    grid = (SIZE // BLOCK,)
    found: dict[str, tuple[Callable[[], object], int]] = {}
    mask = rng.integers(0, 2, SIZE).astype(np.int8)
    for dtype in (np.int8, np.int16, np.float32, np.float64):
        x, out = rng.integers(0, 100, SIZE).astype(dtype), np.zeros(SIZE, dtype)
        name = np.dtype(dtype).name
        for title, kernel in (("store", scattered_mask), ("load", scattered_load)):
            found[f"masked {title}, {name}"] = lambda k=kernel, x=x, o=out: k[grid](x, mask, o, BLOCK=BLOCK), SIZE
    for columns in (60, 64):
        for dtype in (np.int8, np.float32):
            x, out = (np.zeros(ROWS * 16 * columns, dtype) for _ in range(2))
            found[f"16x64 tile, {columns} columns, {np.dtype(dtype).name}"] = (
                lambda x=x, o=out, c=columns: rows_cut_off[(ROWS,)](x, o, c, R=16, C=64),
                x.size,
            )
    for columns in (1000, 1024):
        for dtype in (np.float32, ml_dtypes.bfloat16):
            x = rng.standard_normal((ROWS, columns)).astype(dtype)
            out = np.zeros_like(x)
            found[f"softmax, {columns} columns, {np.dtype(dtype).name}"] = (
                lambda x=x, o=out, c=columns: softmax_kernel[(ROWS,)](x, o, c, c, c, BLOCK=1024),
                x.size,
            )
    x, weight = rng.standard_normal((ROWS, 1024), np.float32), np.ones(1024, np.float32)
    out = np.zeros_like(x)
    found["layer norm, 1024 columns"] = (
        lambda x=x, o=out: layer_norm_kernel[(ROWS,)](x, weight, weight, o, None, None, 1024, 1024, 1e-5, BLOCK=1024),
        x.size,
    )
    for dtype in (np.float32, np.float64):
        near = rng.uniform(0.1, 10, SIZE).astype(dtype)
        out = np.zeros_like(near)
        inputs = {"large sin": near * dtype(2.0**40)} | dict.fromkeys(
            ("exp", "log", "sin", "pow", "floor", "ceil", "fma"), near
        )
        for name, x in inputs.items():
            kind = name.split()[-1]
            found[f"{name}, {np.dtype(dtype).name}"] = (
                lambda x=x, o=out, kind=kind: function[grid](x, o, KIND=kind, BLOCK=BLOCK),
                SIZE,
            )
    return found


def least(run: Callable[[], object], elements: int) -> float:
    """The least processor time of several batches, in nanoseconds per element."""
    run()
    start = time.process_time_ns()
    run()
    each = max(1, int(SECONDS * 1e9 / BATCHES / max(time.process_time_ns() - start, 1)))
    best = float("inf")
    for _ in range(BATCHES):
        start = time.process_time_ns()
        for _ in range(each):
            run()
        best = min(best, (time.process_time_ns() - start) / each)
    return best / elements


def measured(only: str) -> dict[str, float]:
    """All cases whose name contains a text, at the level of this process."""
    return {name: least(*case) for name, case in cases().items() if only in name}


def main() -> None:
    """Prints the table, or as a child of itself one level's numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--levels", default=",".join(LEVELS))
    parser.add_argument("--measure", action="store_true", help="measure this process, as JSON")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.only)))
        return
    levels = options.levels.split(",")
    rounds: dict[str, list[dict[str, float]]] = {level: [] for level in levels}
    for _ in range(options.rounds):
        for level in levels:
            command = [sys.executable, __file__, "--measure", "--only", options.only]
            output = subprocess.run(command, env=os.environ | {"WEFT_TARGET": level}, check=True, capture_output=True)
            rounds[level].append(json.loads(output.stdout))
    print("| case |", " | ".join(levels), "|")
    print("|---|" + "---|" * len(levels))
    for name in rounds[levels[0]][0]:
        cells = [statistics.median(found[name] for found in rounds[level]) for level in levels]
        print(f"| {name} |", " | ".join(f"{cell:.2f} ({cell / cells[0]:.1f})" for cell in cells), "|")


if __name__ == "__main__":
    main()

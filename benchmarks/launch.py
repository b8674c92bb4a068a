"""What a launch costs before and after the kernel's own work: medians over many launches of an almost empty kernel.

Run as ``python benchmarks/launch.py``. The aim is under 15 us for a compiled kernel on a grid of one program.
"""

from __future__ import annotations

import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

import weft
import weft.language as tl

REPEATS = 5000


@weft.jit
def almost_empty(a: Any, b: Any, c: Any, out: Any, n: Any, m: Any, scale: Any, BLOCK: tl.constexpr) -> None:
    pid = tl.program_id(0)
    tl.store(out + pid, scale, mask=pid < n)


def microseconds(launch: Callable[[], None]) -> tuple[float, float]:
    """Median and 90th percentile of one call."""
    launch()
    times: list[int] = []
    for _ in range(REPEATS):
        start = time.perf_counter_ns()
        launch()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1000, statistics.quantiles(times, n=10)[-1] / 1000


def cases() -> dict[str, Callable[[], None]]:
    """Name -> one launch."""
    arrays = [np.zeros(1024, np.float32) for _ in range(4)]
    narrow = [np.zeros(1024, ml_dtypes.bfloat16) for _ in range(4)]
    views = [np.zeros(2048, np.float32)[::2] for _ in range(4)]
    launcher = almost_empty[(1,)]

    def grid(meta: dict[str, Any]) -> tuple[int]:
        return (weft.cdiv(meta["m"], meta["BLOCK"]),)

    result: dict[str, Callable[[], None]] = {
        "1 program": lambda: almost_empty[(1,)](*arrays, 100, 200, 1.5, BLOCK=256),
        "1 program, grid a function": lambda: almost_empty[grid](*arrays, 100, 200, 1.5, BLOCK=256),
        "1 program, launcher kept": lambda: launcher(*arrays, 100, 200, 1.5, 256),
        "1 program, bfloat16": lambda: almost_empty[(1,)](*narrow, 100, 200, 1.5, BLOCK=256),
        "1 program, strided views": lambda: almost_empty[(1,)](*views, 100, 200, 1.5, BLOCK=256),
        "2 programs": lambda: almost_empty[(2,)](*arrays, 100, 200, 1.5, BLOCK=256),
        "64 programs": lambda: almost_empty[(64,)](*arrays, 100, 200, 1.5, BLOCK=256),
    }
    if not importlib.util.find_spec("torch"):
        return result
    torch: Any = importlib.import_module("torch")
    tensors = [torch.zeros(1024) for _ in range(4)]
    return result | {"1 program, torch": lambda: almost_empty[(1,)](*tensors, 100, 200, 1.5, BLOCK=256)}


def main() -> None:
    """Prints the table."""
    print(f"{'launch (4 arrays, 3 numbers)':32}{'median us':>12}{'90% us':>10}")
    for name, launch in cases().items():
        median, high = microseconds(launch)
        print(f"{name:32}{median:12.1f}{high:10.1f}")


if __name__ == "__main__":
    main()

"""What watching for races on global memory costs: emulated launches with and without the check.

Run as ``python benchmarks/races.py``. Some kernels of `gpu_counts` run with both in turns, after one
launch of each that compiles and warms up. Figures are processor time: of the one thread that the emulator uses.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import gpu_counts
import gpu_kernels
from rich.console import Console
from rich.progress import track
from rich.table import Table

import weft
from weft.emulator import Checks

CHOSEN = ("vector add 4000", "softmax 8x1000", "matmul f16 64x64x32", "attention forward D=64", "histogram 4000")
CHECKS = (Checks(), Checks(global_races=False))


def seconds(case: gpu_counts.Case, arguments: list[Any], target: str, checks: Checks) -> float:
    """The processor time of a launch."""
    kernel = getattr(gpu_kernels, case.kernel)
    with weft.emulate(target, checks=checks):
        start = time.process_time()
        kernel[case.grid](*arguments, **case.constants, **case.options)
        return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description="What watching for races on global memory costs.")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--only", default="", help="kernels whose name contains this, instead of the usual ones")
    options = parser.parse_args()
    cases = [c for c in gpu_counts.CASES if (options.only in c.name if options.only else c.name in CHOSEN)]
    found: dict[str, tuple[list[float], list[float]]] = {case.name: ([], []) for case in cases}
    arguments = {case.name: case.make() for case in cases}
    for repeat in track(range(options.repeats + 1), console=Console(stderr=True), transient=True):
        for case in cases:
            for times, checks in zip(found[case.name], CHECKS, strict=True):
                taken = seconds(case, arguments[case.name], options.target, checks)
                if repeat:
                    times.append(taken)
    table = Table(title=f"milliseconds of a launch on {options.target}")
    for column in ("kernel", "watched", "unwatched", "ratio of medians", "of minima"):
        table.add_column(column, justify="left" if column == "kernel" else "right")
    for name, (watched, blind) in found.items():
        medians, minima = ([f(times) for times in (watched, blind)] for f in (statistics.median, min))
        table.add_row(
            name,
            *(f"{1e3 * t:.1f}" for t in medians),
            f"{medians[0] / medians[1]:.2f}",
            f"{minima[0] / minima[1]:.2f}",
        )
    Console().print(table)


if __name__ == "__main__":
    main()

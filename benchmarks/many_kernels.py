"""What thousands of compiled kernels take in one process: memory for each, and time to compile each.

Each kernel is a function of its own text, compiled without the disk cache, launched once and kept. In the end all are dropped,
and what is still loaded is counted. The first 100 kernels do not count: they fill caches of a fixed size. Times are the wall
clock's and the process's own; on a busy machine compare the second.

Run with ``python benchmarks/many_kernels.py [--kernels 3000] [--different]``. ``--different`` takes kernels of several shapes in
turns (elementwise, softmax, reduction, loop, dot).
"""

from __future__ import annotations

import argparse
import gc
import linecache
import os
import statistics
import textwrap
import time
from pathlib import Path
from typing import Any

os.environ["WEFT_CACHE"] = "0"

import numpy as np
from rich.console import Console
from rich.table import Table

from weft.runtime import loader, pages

HEADER = """
import weft
import weft.language as tl

@weft.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
"""
BODIES = {
    "elementwise": """
        tl.store(out + offsets, tl.load(x + offsets, mask=mask) * {number}.5 + tl.load(y + offsets, mask=mask), mask=mask)
    """,
    "softmax": """
        row = tl.load(x + offsets, mask=mask, other=-float("inf")) * {number}.5
        numerator = tl.exp(row - tl.max(row, axis=0))
        tl.store(out + offsets, numerator / tl.sum(numerator, axis=0), mask=mask)
    """,
    "reduction": """
        row = tl.load(x + offsets, mask=mask, other=0.0) * {number}.5
        tl.store(out + tl.program_id(0), tl.sum(row, axis=0))
    """,
    "loop": """
        total = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n, BLOCK):
            total += tl.load(x + start + tl.arange(0, BLOCK), mask=start + tl.arange(0, BLOCK) < n, other=0.0) * {number}.5
        tl.store(out + offsets, total, mask=mask)
    """,
    "dot": """
        rows, columns = tl.arange(0, 16)[:, None], tl.arange(0, 16)[None, :]
        a = tl.load(x + rows * 16 + columns) * {number}.5
        tl.store(out + rows * 16 + columns, tl.dot(a, tl.load(y + rows * 16 + columns)))
    """,
}
"""Kinds of kernels; each is compiled anew for each ``number``."""

X, Y, OUT = (np.ones(1024, np.float32) for _ in range(3))
BATCHES = 5
FIRST = 100


def made(kind: str, number: int) -> Any:
    """A kernel of a text of its own."""
    text = HEADER + textwrap.indent(textwrap.dedent(BODIES[kind]).strip(), "    ").format(number=number) + "\n"
    file = f"<kernel {number}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, file, "exec"), scope)
    return scope["kernel"]


def resident() -> float:
    """MB of memory that the process has."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Memory and time of thousands of kernels in one process.")
    parser.add_argument("--kernels", type=int, default=3000, help="kernels that count")
    parser.add_argument("--different", action="store_true", help="kernels of several shapes in turns")
    given = parser.parse_args()
    kinds = list(BODIES) if given.different else ["elementwise"]
    table = Table(
        "kernels", "memory MB", "KiB each", "median ms", "median ms of processor", title="kernels in one process"
    )
    held: list[Any] = []
    wall: list[float] = []
    used: list[float] = []
    start = last = resident()
    for number in range(FIRST + given.kernels):
        if number == FIRST:
            gc.collect()
            start = last = resident()
            wall.clear()
            used.clear()
        before = time.perf_counter(), time.process_time()
        kernel = made(kinds[number % len(kinds)], number)
        kernel[(1,)](X, Y, OUT, 256, BLOCK=256)
        wall.append(time.perf_counter() - before[0])
        used.append(time.process_time() - before[1])
        held.append(kernel)
        done = number + 1 - FIRST
        size = given.kernels // BATCHES
        if done > 0 and done % size == 0:
            now = resident()
            medians = (f"{1000 * statistics.median(times[-size:]):.1f}" for times in (wall, used))
            table.add_row(str(done), f"{now:.0f}", f"{(now - last) * 1e6 / 1024 / size:.1f}", *medians)
            last = now
    grown = resident() - start
    loaded, code = loader.loaded(), pages.used()
    held.clear()
    del kernel
    gc.collect()
    console = Console()
    console.print(table)
    console.print(f"{given.kernels} kernels: {grown:.0f} MB, {sum(wall):.0f} s ({sum(used):.0f} s of processor)")
    console.print(
        f"loaded {loaded} ({code / 1e6:.0f} MB of code), after dropping them {loader.loaded()} ({pages.used()} bytes)"
    )


if __name__ == "__main__":
    main()

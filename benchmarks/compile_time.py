"""How long kernels take to compile, from their source to a loaded function, by the size of the source.

Each kernel is compiled in a process of its own without a cache; the table shows its processor time after weft is imported.
Bytecode of the modules that the first launch loads is there: a first run, which does not count, has written it. A column doubles
or quadruples the size of the one before, so that a row that grows faster than its size shows.

Run with ``python benchmarks/compile_time.py [--repeats N] [--first]``. ``PYTHONPATH=OTHER/src`` measures another tree.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from rich.console import Console
from rich.table import Table

SIZES = {
    "static_range, tile": (256, 1024, 4096),
    "static_range, scalar": (256, 1024, 4096),
    "straight lines": (250, 1000, 4000),
    "nested loops": (6, 12, 18),
}
HEADER = "import weft\nimport weft.language as tl\n\n\n@weft.jit\ndef kernel(x, out, count, N: tl.constexpr):\n"


def source(kind: str, size: int) -> str:
    """The text of a kernel."""
    if kind == "static_range, tile":
        body = f"""
            offsets = tl.arange(0, N)
            total = tl.zeros((N,), tl.float32)
            for i in tl.static_range({size}):
                total += tl.load(x + offsets + i * N)
            tl.store(out + offsets, total)
        """
    elif kind == "static_range, scalar":
        body = f"""
            total = 0.0
            for i in tl.static_range({size}):
                total += tl.load(x + i)
            tl.store(out, total)
        """
    elif kind == "straight lines":
        lines = "\n".join(f"value = value * 1.0001 + {i}.0" for i in range(size))
        body = f"offsets = tl.arange(0, N)\nvalue = tl.load(x + offsets)\n{lines}\ntl.store(out + offsets, value)\n"
    else:
        loops = "\n".join(f"{'    ' * depth}for i{depth} in range(count):" for depth in range(size))
        work = f"{'    ' * size}value = value + 1.0"
        body = f"offsets = tl.arange(0, N)\nvalue = tl.load(x + offsets)\n{loops}\n{work}\ntl.store(out + offsets, value)\n"
    return HEADER + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n"


MEASURE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
import measured
x, out = np.zeros(128 * 4096, np.float32), np.zeros(128, np.float32)
start = time.process_time()
measured.kernel[(1,)](x, out, 2, N=128)
print(time.process_time() - start)
"""


def seconds(kind: str, size: int) -> float:
    """The processor time of one cold compilation. The process writes bytecode, as users' do."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "measured.py").write_text(source(kind, size), encoding="utf-8")
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["WEFT_CACHE_DIR"] = str(Path(folder, "cache"))
        command = [sys.executable, "-c", MEASURE, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        return float(done.stdout)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="How long kernels take to compile, by the size of the source.")
    parser.add_argument("--repeats", type=int, default=3, help="cold compilations of each kernel; the median is shown")
    parser.add_argument("--first", action="store_true", help="the smallest size of each kernel only")
    given = parser.parse_args()
    columns = 1 if given.first else 3
    table = Table("kernel", *[f"size {i + 1}" for i in range(columns)], title="seconds of processor time, cold")
    seconds("nested loops", 1)
    for kind, sizes in SIZES.items():
        times = {size: [seconds(kind, size) for _ in range(given.repeats)] for size in sizes[:columns]}
        table.add_row(kind, *[f"{size}: {statistics.median(found):.2f}" for size, found in times.items()])
    Console().print(table)


if __name__ == "__main__":
    main()

"""weft beside NumPy, PyTorch, JAX, Numba and C: one process, the same inputs, repeats interleaved, medians.

Run ``make bench`` (or ``python benchmarks/bench.py --help``). Peers that are not installed are left out. Before it is
timed, each result is compared with NumPy's. All peers use all cores as they come. Before each measurement the process
rests, so that a predecessor's spinning threads fall asleep, and the peer runs once untimed, so that all start from their
own warm threads, clocks and caches.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import statistics
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import array_cases
import cases as catalogue
import machine
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

BUILDERS = {**catalogue.BUILDERS, **{f"array-{name}": build for name, build in array_cases.BUILDERS.items()}}
PEERS = ("weft", "C", "NumPy", "PyTorch", "JAX", "Numba")
PACKAGES = {"NumPy": "numpy", "PyTorch": "torch", "JAX": "jax", "Numba": "numba", "weft": "weft"}
REST = 0.01

IMPORT = "import time; t = time.perf_counter(); import weft; weft.jit; print((time.perf_counter() - t) * 1e3)"
"""`weft.jit` is loaded at its first use, and brings the compiler."""
COMPILE = """
import sys, time
sys.path.insert(0, {examples!r})
import numpy as np
from softmax import softmax
from vector_add import add
x = np.zeros((4, 4096), np.float32)
if {loaded}:
    add(x, x, x.copy())
start = time.perf_counter()
softmax(x, x.copy())
print((time.perf_counter() - start) * 1e3)
"""


@dataclass
class Result:
    """One case: median milliseconds for each peer; ``limit`` is the fraction of the machine's limit that weft reaches."""

    case: str
    milliseconds: dict[str, float] = field(default_factory=dict[str, float])
    limit: float | None = None
    best_peer: float | None = None
    """The best median of those that are neither weft nor C, where the comparison means something."""


def timed(case: catalogue.Case, runner: catalogue.Runner) -> float:
    """Milliseconds of one run, right after an untimed one."""
    time.sleep(REST)
    runner.run()
    start = time.perf_counter()
    for _ in range(case.calls):
        runner.run()
    return (time.perf_counter() - start) / case.calls * 1e3


def check(case: catalogue.Case) -> None:
    """Runs each peer once; `ArithmeticError` for a result that is not NumPy's within the case's tolerance."""
    for peer, runner in case.peers.items():
        runner.run()
        if not np.allclose(runner.result(), case.expected, rtol=case.tolerance, atol=case.tolerance):
            worst = np.abs(runner.result() - case.expected).max()
            raise ArithmeticError(f"{case.name}: {peer} is off by up to {worst}")


def measure(case: catalogue.Case, repeats: int, limits: machine.Limits | None) -> Result:
    """Medians over interleaved repeats."""
    check(case)
    times: dict[str, list[float]] = {peer: [] for peer in PEERS if peer in case.peers}
    for _ in range(repeats):
        for peer, series in times.items():
            series.append(timed(case, case.peers[peer]))
    result = Result(case.name, {peer: statistics.median(series) for peer, series in times.items()})
    if case.calls == 1:
        result.best_peer = min(t for peer, t in result.milliseconds.items() if peer not in ("weft", "C"))
    if limits and (case.moved or case.flops):
        bus = limits.read if case.reads_only else limits.copy
        result.limit = max(case.moved / bus, case.flops / limits.flops) / (result.milliseconds["weft"] * 1e-3)
    return result


def compile_times(repeats: int) -> list[Result]:
    """What starting costs, in fresh processes without a cache."""
    examples = str(Path(__file__).parents[1] / "examples")
    rows = {
        "import weft, weft.jit": IMPORT,
        "cold compile, softmax": COMPILE.format(examples=examples, loaded=True),
        "first call, softmax": COMPILE.format(examples=examples, loaded=False),
    }
    return [Result(name, {"weft": machine.fresh_process(code, repeats, WEFT_CACHE="0")}) for name, code in rows.items()]


def ratio(mine: float, other: float | None) -> str:
    return "" if other is None else f"{mine / other:.2f}"


def number(milliseconds: float | None) -> str:
    if milliseconds is None:
        return ""
    return f"{milliseconds:.2f}" if milliseconds >= 0.1 else f"{milliseconds * 1e3:.1f} us"


def table(results: list[Result]) -> Table:
    """Medians, and weft's time as a multiple of the best peer's and of C's (below 1 is faster)."""
    view = Table(title="median milliseconds", title_justify="left")
    view.add_column("case")
    peers = [peer for peer in PEERS if any(peer in r.milliseconds for r in results)]
    for heading in (*peers, "weft / best peer", "weft / C", "of the limit"):
        view.add_column(heading, justify="right")
    for result in results:
        mine = result.milliseconds["weft"]
        view.add_row(
            result.case,
            *(number(result.milliseconds.get(peer)) for peer in peers),
            ratio(mine, result.best_peer),
            ratio(mine, result.milliseconds.get("C")),
            "" if result.limit is None else f"{result.limit:.0%}",
        )
    return view


def versions() -> dict[str, str]:
    """The version of each installed peer."""
    found: dict[str, str] = {}
    for peer, package in PACKAGES.items():
        try:
            found[peer] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    choices = (*BUILDERS, "compile")
    parser.add_argument("--only", nargs="+", choices=choices, default=choices, metavar="CASE", help=", ".join(choices))
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    options = parser.parse_args(arguments)
    console, progress = Console(), Console(stderr=True)
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as directory:
        c = machine.build_baseline(Path(directory))
        limits = machine.measure_limits(c) if c else None
        names = [name for name in options.only if name in BUILDERS]
        for case in track(
            (BUILDERS[name](c) for name in names), "measuring", total=len(names), console=progress, transient=True
        ):
            results.append(measure(case, options.repeats, limits))
        if "compile" in options.only:
            results += compile_times(min(options.repeats, 7))
    console.print(machine.describe())
    console.print(", ".join(f"{peer} {version}" for peer, version in versions().items()))
    if limits:
        console.print(
            f"limits, measured in C: copy {limits.copy / 1e9:.1f} GB/s, read {limits.read / 1e9:.1f} GB/s,"
            f" float32 {limits.flops / 1e9:.0f} GFLOP/s"
        )
    else:
        console.print("no C baseline: it needs a C compiler with GCC's vectors, and libmvec")
    console.print(table(results))
    if options.json:
        record = {
            "machine": machine.describe(),
            "date": time.strftime("%Y-%m-%d"),
            "versions": versions(),
            "limits": asdict(limits) if limits else None,
            "repeats": options.repeats,
            "results": [asdict(result) for result in results],
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""weft beside its peers over a matrix of computations and tile shapes: medians of interleaved runs, as ratios.

``python benchmarks/matrix --help``. Each row is one computation (`rows.Row`); its cells are weft at one tile shape. A cell's
ratio is its time over that of the best peer: below 1 weft is faster. The summary has the geometric mean and the worst cells
over all rows, and for each row the slowest tile shape over the fastest.

With one thread the clock is the process's processor time, which other work on the machine does not lengthen.

To add rows, write a module with a ``ROWS`` of them and name it in `FAMILIES`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import machine
    from rows import Family, Row, Runner

FAMILIES = ("reductions", "movement", "scattered", "pointwise", "convolution", "products")
"""Modules of this folder, in the order of the table."""

LEVELS = ("x86-64-v3",)
"""Those that `instructions` knows."""

SLOW = 20
"""A peer that takes so many times as long as the fastest runner of its row is timed once, in its second call."""

REST = 4.0
"""Milliseconds before a measurement with several threads: those of the runner before wind down meanwhile. With one there is
nothing to wait for, and on a shared machine a rest measures what its neighbours leave in the last cache."""

WARM = 10e-3
"""Seconds for which a computation runs before it is timed: caches are its own, and other threads awake. In 2 ms one runner read a
matrix of 16 MiB 3 times and another 15 times, and the first was timed before the matrix was in the cache."""

OPENBLAS_LOOKS = 22
"""After a product the threads of NumPy's OpenBLAS look for work for 2 to this power cycles: 1.4 ms at 3 GHz, less than `REST`. By
default it is 2 to the 26th, and whatever ran within 20 ms of NumPy shared a core with them."""

SHORTEST = 1e-3
"""Seconds that one measurement takes at least: shorter computations run several times in it."""


@dataclass
class Result:
    """One row: median microseconds for each tile shape and peer, which peers were timed once, which ones are left out since they
    compute something else, and which fraction of the machine's limit the best tile reaches."""

    row: str
    tiles: dict[str, float] = field(default_factory=dict[str, float])
    peers: dict[str, float] = field(default_factory=dict[str, float])
    once: list[str] = field(default_factory=list[str])
    wrong: list[str] = field(default_factory=list[str])
    limit: float | None = None

    @property
    def best_peer(self) -> str:
        return min(self.peers, key=self.peers.__getitem__)

    def peer_time(self, name: str) -> str:
        """A peer and its time, for the table."""
        return f"{name} {time_of(self.peers[name])}{' (one call)' if name in self.once else ''}"

    def ratio(self, tile: str) -> float:
        """A cell: weft's time over the best peer's."""
        return self.tiles[tile] / self.peers[self.best_peer]


def use_threads(threads: int | None) -> None:
    """Keeps this process and all peers to so many cores; before they are imported, since their pools are then as large."""
    os.environ["OPENBLAS_THREAD_TIMEOUT"] = str(OPENBLAS_LOOKS)
    if threads is None:
        return
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    for package in ("OMP", "MKL", "OPENBLAS", "NUMBA", "WEFT"):
        os.environ[f"{package}_NUM_THREADS"] = str(threads)


def families() -> dict[str, Family]:
    """The rows of each family."""
    return {name: importlib.import_module(name).ROWS for name in FAMILIES}


def chosen(known: dict[str, Family], only: list[str] | None) -> Family:
    """The rows of the families and rows named; all for None."""
    rows = {name: build for family in known.values() for name, build in family.items()}
    if only is None:
        return rows
    names = [row for name in only for row in known.get(name, {name: None})]
    unknown = [name for name in names if name not in rows]
    if unknown:
        sys.exit(f"no row or family {', '.join(unknown)}; there are {', '.join((*known, *rows))}")
    return {name: rows[name] for name in names}


def check(row: Row) -> list[str]:
    """Runs all once; the peers that compute something else. `ArithmeticError` for a result of weft that is not the expected
    one."""
    import numpy as np

    wrong: list[str] = []
    tolerance = 0.0 if row.exact else row.tolerance
    for label, runner in (*row.tiles.items(), *row.peers.items()):
        if runner.out is not None:
            runner.out.fill(0)
        runner.run()
        found = runner.result().astype(np.float64)
        if np.allclose(found, row.expected, rtol=tolerance, atol=tolerance):
            continue
        if label in row.tiles:
            raise ArithmeticError(f"{row.name}: {label} is off by up to {np.abs(found - row.expected).max()}")
        wrong.append(label)
    return wrong


@dataclass(frozen=True)
class Stopwatch:
    """``clock`` in seconds, and the seconds of ``rest`` before each measurement."""

    clock: Callable[[], float]
    rest: float

    def timed(self, runner: Runner, calls: int, *, warm: bool = True) -> float:
        """Microseconds of one run, right after untimed ones (``warm``) for `WARM`: as long for each runner."""
        if self.rest:
            time.sleep(self.rest)
        until = time.perf_counter() + WARM
        while warm:
            runner.run()
            warm = time.perf_counter() < until
        start = self.clock()
        for _ in range(calls):
            runner.run()
        return (self.clock() - start) / calls * 1e6


def measure(row: Row, repeats: int, limits: machine.Limits | None, stopwatch: Stopwatch) -> Result:
    """Medians over interleaved repeats, each in an order of its own: what runs behind a peer pays for what that leaves in caches,
    and for threads that wind down."""
    wrong = check(row)
    peers = {("peers", p): r for p, r in row.peers.items() if p not in wrong}
    runners = {("tiles", t): r for t, r in row.tiles.items()} | peers
    second = {key: stopwatch.timed(runner, 1, warm=False) for key, runner in runners.items()}
    slow = [key for key, taken in second.items() if key[0] == "peers" and taken > SLOW * min(second.values())]
    calls = {
        key: max(1, min(1000, round(SHORTEST * 1e6 / stopwatch.timed(runner, 1))))
        for key, runner in runners.items()
        if key not in slow
    }
    times: dict[tuple[str, str], list[float]] = {key: [second[key]] if key in slow else [] for key in runners}
    order, generator = list(calls), random.Random(0)
    for _ in range(repeats):
        generator.shuffle(order)
        for key in order:
            times[key].append(stopwatch.timed(runners[key], calls[key]))
    result = Result(row.name, once=[name for _, name in slow], wrong=wrong)
    for (kind, name), series in times.items():
        getattr(result, kind)[name] = statistics.median(series)
    if limits and (row.moved or row.flops):
        bus = limits.read if row.reads_only else limits.copy
        seconds = max(row.moved / bus, row.flops / limits.flops)
        result.limit = seconds / (min(result.tiles.values()) * 1e-6)
    return result


def markdown(results: list[Result]) -> str:
    """One line a row: the peers, and each tile's ratio to the best of them."""
    lines = [
        "| row | best peer | tile: weft / best peer | slowest / fastest tile | of the limit |",
        "|---|---|---|--:|--:|",
    ]
    for r in results:
        cells = ", ".join(f"{tile}: {r.ratio(tile):.2f}" for tile in r.tiles)
        spread = max(r.tiles.values()) / min(r.tiles.values())
        limit = "" if r.limit is None else f"{r.limit:.0%}"
        out = f"; {', '.join(r.wrong)} left out: another result" if r.wrong else ""
        lines.append(f"| {r.row} | {r.peer_time(r.best_peer)}{out} | {cells} | {spread:.2f} | {limit} |")
    return "\n".join(lines)


def time_of(microseconds: float) -> str:
    return f"{microseconds / 1e3:.2f} ms" if microseconds >= 1e3 else f"{microseconds:.0f} us"


def summary(results: list[Result]) -> str:
    """The goals of the matrix, and how far they are."""
    cells = {f"{r.row} {tile}": r.ratio(tile) for r in results for tile in r.tiles}
    mean = math.exp(statistics.fmean(map(math.log, cells.values())))
    best = math.exp(statistics.fmean(math.log(min(map(r.ratio, r.tiles))) for r in results))
    above = sum(ratio > 1.1 for ratio in cells.values())
    spread = sum(max(r.tiles.values()) > 1.25 * min(r.tiles.values()) for r in results)
    worst = sorted(cells.items(), key=lambda item: -item[1])[:12]
    return (
        f"{len(cells)} cells, geometric mean {mean:.2f} ({best:.2f} with each row's best tile); {above} cells above 1.1 of the "
        f"best peer; {spread} of {len(results)} rows have a tile shape above 1.25 times the best.\n\nWorst: "
        + ", ".join(f"{name} {ratio:.2f}" for name, ratio in worst)
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", metavar="ROW", help="families and rows (default: all)")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, help="cores that weft and all peers may use (default: all)")
    parser.add_argument(
        "--rest", type=float, metavar="MS", help=f"before each measurement (default: {REST}, 0 with one thread)"
    )
    parser.add_argument(
        "--level", choices=LEVELS, help="instructions of x86-64 that weft and all peers may use (default: all)"
    )
    parser.add_argument("--json", type=Path, help="also write the results to this file")
    parser.add_argument("--list", action="store_true", help="name the rows and stop")
    options = parser.parse_args()
    use_threads(options.threads)
    here = Path(__file__).parent
    sys.path[:0] = [str(here), str(here.parent)]
    if options.level:
        importlib.import_module("instructions").hold_to(options.level)
    import machine

    alone = options.threads == 1
    rest = options.rest if options.rest is not None else 0 if alone else REST
    stopwatch = Stopwatch(time.process_time if alone else time.perf_counter, rest / 1e3)
    known = families()
    if options.list:
        print("\n".join(f"{name}: {', '.join(rows)}" for name, rows in known.items()))
        return 0
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="weft-matrix-") as directory:
        c = machine.build_baseline(Path(directory), here / "loops.c", options.level or "native")
        limits = machine.measure_limits(c) if c else None
        for name, build in chosen(known, options.only).items():
            row = build(c)
            results.append(measure(row, options.repeats, limits, stopwatch))
            print(f"{name} {time_of(min(results[-1].tiles.values()))}", file=sys.stderr, flush=True)
            peers = ", ".join(map(results[-1].peer_time, results[-1].peers))
            tiles = ", ".join(f"{t} {time_of(v)}" for t, v in results[-1].tiles.items())
            print(f"    {tiles} | {peers}", file=sys.stderr, flush=True)
    print(f"{time.strftime('%Y-%m-%d')}, {machine.describe()}, {options.repeats} repeats, {rest:g} ms of rest")
    if limits:
        print(
            f"limits, measured in C: copy {limits.copy / 1e9:.1f} GB/s, read {limits.read / 1e9:.1f} GB/s,"
            f" float32 {limits.flops / 1e9:.0f} GFLOP/s"
        )
    print(f"\n{markdown(results)}\n\n{summary(results)}")
    if options.json:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs many generated kernels on all cores, and shrinks what fails (``make fuzz``).

Each failure leaves ``fuzz-failures/seed_N.py``, a kernel file that is ready to be moved to ``tests/fuzz/regressions``, where
``make test`` runs it. ``python tests/fuzz/campaign.py --seed N`` runs and shrinks one seed.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from fuzz.case import NATIVE
from fuzz.generator import generate
from fuzz.process import verdicts
from fuzz.shrink import fails_like, shrink
from fuzz.worker import AGREES, Verdict

BATCH = 50
"""Kernels a worker process runs."""
TIMEOUT = 120.0
"""Seconds for a kernel, by default."""
FAILURES = Path(__file__).parents[2] / "fuzz-failures"


def keep(verdict: Verdict, shrinking: bool, machines: Sequence[str]) -> Path:
    """Writes the failing kernel, shrunk, with what went wrong as its docstring."""
    text = generate(int(verdict.item))
    if shrinking:
        text = shrink(text, fails_like(verdict.kind, machines=machines))
    _, _, rest = text.partition("\n")
    reason = f"{verdict.kind}: {verdict.message}".replace("\\", "\\\\").replace('"""', "'''")
    FAILURES.mkdir(exist_ok=True)
    path = FAILURES / f"seed_{verdict.item}.py"
    path.write_text(f'"""Seed {verdict.item}. {reason}"""\n{rest}\n')
    return path


def campaign(
    seeds: range, jobs: int, console: Console, machines: Sequence[str], timeout: float = TIMEOUT
) -> list[Verdict]:
    """Judges all seeds on the machines; returns the failures by seed."""
    failures: list[Verdict] = []
    batches: Iterator[range] = iter(seeds[i : i + BATCH] for i in range(0, len(seeds), BATCH))
    lock = threading.Lock()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress, ThreadPoolExecutor(jobs) as threads:
        task = progress.add_task("kernels", total=len(seeds))

        def work() -> None:
            while True:
                with lock:
                    batch = next(batches, None)
                if batch is None:
                    return
                for verdict in verdicts([str(seed) for seed in batch], timeout, machines):
                    progress.advance(task)
                    if verdict.kind != AGREES:
                        failures.append(verdict)
                        first = verdict.message.splitlines()[0] if verdict.message else ""
                        progress.console.print(f"seed {verdict.item}: {verdict.kind}: {first}", markup=False)

        for future in [threads.submit(work) for _ in range(jobs)]:
            future.result()
    return sorted(failures, key=lambda verdict: int(verdict.item))


def main(arguments: list[str] | None = None) -> int:
    """0 if every kernel agrees."""
    parser = argparse.ArgumentParser(description="Compare compiled code with the reference on generated kernels.")
    parser.add_argument("--kernels", type=int, default=10_000, help="how many seeds (default 10000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--seed", type=int, help="only this seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=TIMEOUT, metavar="S", help="for a kernel (default 120 s)")
    parser.add_argument("--shrink", type=int, default=10, metavar="N", help="how many failures to shrink (default 10)")
    parser.add_argument(
        "--on",
        metavar="MACHINE",
        nargs="+",
        default=[NATIVE, "sm_80", "sm_90"],
        help="native, and GPUs, which are emulated; each kernel runs on all of them (default native sm_80 sm_90)",
    )
    options = parser.parse_args(arguments)
    if options.seed is not None:
        options.first, options.kernels, options.jobs = options.seed, 1, 1
    console = Console()
    seeds = range(options.first, options.first + options.kernels)
    failures = campaign(seeds, options.jobs, console, options.on, options.timeout)
    for index, verdict in enumerate(failures):
        path = keep(verdict, shrinking=index < options.shrink, machines=options.on)
        console.print(f"kept {path}", markup=False)
    console.print(f"{options.kernels - len(failures)} of {options.kernels} kernels agree with the reference.")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

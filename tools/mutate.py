"""Tests the tests: changes a module in small ways and tells which changes no test notices.

``python tools/mutate.py src/weft/codegen/cpu/fusion.py --tests "tests/codegen/test_schedule.py" --sample 100 --seed 0``

Prints a table of killed and survived mutants, and the source line of each survivor. A survivor is a missing test, an
equivalent mutant (it changes no result), or code without a purpose. `mutation.sites` lists the changes that are made.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads do not survive a fork
os.environ.setdefault("WEFT_CACHE", "0")  # nor shall a mutant's code survive the mutant

import pytest
from mutation.run import HUNG, KILLED, SURVIVED, UNTESTED, Baseline, Campaign, Outcome
from mutation.sites import KINDS, Mutant, mutants_of
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

_LEFT = re.compile(rf"^(?:\S*/)?([^/\s]+):(\d+): (?:{SURVIVED}|{UNTESTED}): (.*)$", re.MULTILINE)
"""A mutant that no test has noticed, as `shown` prints it: file, line, kind and change."""


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Change modules in small ways and tell which changes no test notices.")
    parser.add_argument("modules", nargs="+", type=Path, help="source files below a folder named src")
    parser.add_argument("--tests", default="", help="what to give to pytest, in one string")
    parser.add_argument("--sample", type=int, metavar="N", help="only N mutants, chosen at random (default: all)")
    parser.add_argument("--seed", type=int, default=0, help="of the choice (default 0)")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only these kinds of change")
    parser.add_argument("--function", metavar="REGEX", help="only in functions (Class.name) that match")
    parser.add_argument("--line", action="append", type=int, metavar="N", help="only on these lines")
    parser.add_argument(
        "--again", type=Path, metavar="FILE", help="only those that FILE, an earlier output, has as left"
    )
    parser.add_argument("--patience", type=float, default=10, metavar="S", help="seconds beyond which a mutant hangs")
    parser.add_argument(
        "--verbose", action="store_true", help="print the killed mutants too, with the test that failed"
    )
    parser.add_argument("--budget", type=float, default=float("inf"), metavar="S", help="seconds of tests for a mutant")
    parser.add_argument("--list", action="store_true", help="print the mutants, run nothing")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="append the table to FILE as Markdown")
    return parser.parse_args(arguments)


def chosen(options: argparse.Namespace) -> list[tuple[Path, Mutant]]:
    """The mutants that the options ask for."""
    left = None if options.again is None else set(_LEFT.findall(options.again.read_text(encoding="utf-8")))
    found: list[tuple[Path, Mutant]] = []
    for path in map(Path.resolve, options.modules):
        for mutant in mutants_of(path.read_bytes()):
            of_kind = not options.kind or mutant.kind in options.kind
            there = not options.line or mutant.line in options.line
            there &= left is None or (path.name, str(mutant.line), f"{mutant.kind}: {mutant.change}") in left
            if of_kind and there and (not options.function or re.search(options.function, mutant.function or "")):
                found.append((path, mutant))
    if options.sample is not None and options.sample < len(found):
        kept = sorted(random.Random(options.seed).sample(range(len(found)), options.sample))
        found = [found[i] for i in kept]
    return found


def root_of(modules: Sequence[Path]) -> Path:
    """The folder whose ``src`` holds all modules."""
    roots = {path.parents[len(path.parents) - path.parts.index("src")] for path in modules if "src" in path.parts}
    if len(roots) != 1 or not all("src" in path.parts for path in modules):
        raise SystemExit("mutate: the modules must lie below one folder named src")
    return roots.pop()


def shown(outcome: Outcome, root: Path) -> str:
    """A mutant and what became of it, on one line."""
    mutant = outcome.mutant
    test = f" by {outcome.test}" if outcome.test else ""
    return f"{outcome.path.relative_to(root)}:{mutant.line}: {outcome.status}{test}: {mutant.kind}: {mutant.change}"


def summary(outcomes: Sequence[Outcome], root: Path) -> list[tuple[str, Counter[str]]]:
    """How many mutants of each module fared how."""
    counts: dict[str, Counter[str]] = {}
    for outcome in outcomes:
        counts.setdefault(str(outcome.path.relative_to(root / "src")), Counter())[outcome.status] += 1
    return list(counts.items())


def print_table(console: Console, rows: Sequence[tuple[str, Counter[str]]]) -> None:
    """The summary, a row for each module."""
    table = Table("module", "mutants", KILLED, HUNG, SURVIVED, UNTESTED)
    for name, count in rows:
        numbers = (count.total(), *(count[status] for status in (KILLED, HUNG, SURVIVED, UNTESTED)))
        table.add_row(name, *map(str, numbers))
    console.print(table)


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if no mutant survives, 1 if some do, 2 if the tests cannot be run."""
    options = parsed(arguments)
    console = Console(width=None if sys.stdout.isatty() else 200, emoji=False)
    mutants = chosen(options)
    if options.list:
        for path, mutant in mutants:
            console.print(f"{path.name}:{mutant.line}: {mutant.kind}: {mutant.change}", markup=False, highlight=False)
        return 0
    root = root_of([path.resolve() for path in options.modules])
    sys.path.insert(0, str(root / "src"))
    outcomes: list[Outcome] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("running the tests on the unchanged sources", total=len(mutants))

        def ready(baseline: Baseline) -> None:
            progress.update(task, description="mutants")
            for test in baseline.failing:
                progress.console.print(f"left out, since it fails on the unchanged sources: {test}", markup=False)

        def report(outcome: Outcome) -> None:
            outcomes.append(outcome)
            progress.advance(task)
            if options.verbose or outcome.status in (SURVIVED, UNTESTED):
                progress.console.print(shown(outcome, root), markup=False, highlight=False, soft_wrap=True)

        campaign = Campaign(root, mutants, report, ready, options.patience, options.budget)
        quiet = ["-p", "no:cacheprovider", "-p", "no:faulthandler", "--capture=no"]
        quiet.append("--assert=plain")  # pytest rewrites functions of the module that assert: they would not be found
        status = pytest.main([*shlex.split(options.tests), *quiet], plugins=[campaign])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        console.print(f"mutate: pytest ended with {pytest.ExitCode(status).name}", markup=False)
        return 2
    rows = summary(outcomes, root)
    print_table(console, rows)
    if options.markdown is not None:
        with options.markdown.open("a") as out:
            for name, count in rows:
                killed = count[KILLED] + count[HUNG]
                out.write(f"| `{name}` | {count.total()} | {killed} | {count.total() - killed} |\n")
    return int(any(o.status in (SURVIVED, UNTESTED) for o in outcomes))


if __name__ == "__main__":
    sys.exit(main())

"""Compares weft's semantics with the real packages, cell by cell (``make oracles``).

``python tests/oracles/compare.py --system jax`` asks one package; it is installed into ``.oracles`` first. The exit status is 1
where an answer differs and `known.toml` has no reason for it.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence, Set
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from datetime import date
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from rich.console import Console
from rich.table import Table

from oracles import environments, judge, trees
from oracles.judge import Verdict
from oracles.probe import Question, ask
from oracles.questions import PLANS, Plan, cells, values, without_data
from weft.semantics import ops

KNOWN: Final = Path(__file__).with_name("known.toml")
SHOWN: Final = 40
"""How many disagreements of one system are printed, unless ``--all``."""


@dataclass(frozen=True)
class Known:
    """A disagreement that has a reason: patterns of the system, the question, what each side says, and the kind of questions."""

    system: str
    question: str
    reason: str
    package: str = ""
    weft: str = ""
    kind: str = ""

    def covers(self, system: str, kind: str, verdict: Verdict) -> bool:
        """Whether this is the reason."""
        return (
            re.fullmatch(self.system, system) is not None
            and re.match(self.kind, kind) is not None
            and re.fullmatch(self.question, verdict.question) is not None
            and re.match(self.package, verdict.package) is not None
            and re.match(self.weft, verdict.weft) is not None
        )


@dataclass
class Tally:
    """The outcome for one kind of question of one system."""

    system: str
    kind: str
    asked: int = 0
    unanswered: int = 0
    agreed: int = 0
    known: Counter[Known] = field(default_factory=Counter[Known])
    open: list[Verdict] = field(default_factory=list[Verdict])
    seconds: float = 0.0

    def differs(self, reasons: Sequence[Known], verdict: Verdict) -> None:
        """Books a disagreement."""
        found = next((known for known in reasons if known.covers(self.system, self.kind, verdict)), None)
        if found is None:
            self.open.append(verdict)
        else:
            self.known[found] += 1


def compare_types(reasons: Sequence[Known], plan: Plan) -> list[Tally]:
    """Every cell of a system."""
    started = time.monotonic()
    questions = list(cells(plan))
    tally = Tally(plan.system, "types", len(questions))
    system = plan.semantics
    answers = ask(plan.package, plan.system, questions, plan.batch)
    for question, answer in zip(questions, answers, strict=True):
        ours = judge.typed(system, question)
        if answer == judge.UNKNOWN:
            tally.unanswered += 1
        elif judge.agree_types(answer, ours):
            tally.agreed += 1
        else:
            tally.differs(reasons, Verdict(without_data(question), answer, ours))
    tally.seconds = time.monotonic() - started
    return [tally]


def compare_values(reasons: Sequence[Known], plan: Plan, native: int, seed: int) -> list[Tally]:
    """A sample of values: the reference on all, generated kernels on every ``native``-th."""
    started = time.monotonic()
    questions = values(plan, seed)
    answers = _answers(plan, questions, {at for at, (op, *_) in enumerate(questions) if op in ops.REDUCTIONS})
    asked = time.monotonic()
    tallies = [Tally(plan.system, "values, reference"), Tally(plan.system, "values, native")]
    tallies[0].seconds = asked - started
    for tally, backend, step in zip(tallies, ("reference", "native"), (1, native), strict=True):
        began = time.monotonic()
        for question, answer in list(zip(questions, answers, strict=True))[::step]:
            _value(tally, plan, reasons, question, answer, backend)
        tally.seconds += time.monotonic() - began
    return tallies


def _answers(plan: Plan, questions: Sequence[Question], constant: Set[int]) -> list[str]:
    """The package's values. One that compiles slowly has a graph for those that are the same in every run, one for `Plan.whole`
    others, and the rest by operation (``probes/max_nodes.py``)."""
    if not plan.whole:
        return ask(plan.package, plan.system, questions, plan.value_batch)
    others = [at for at in range(len(questions)) if at not in constant]
    whole = others[:: max(len(others) // plan.whole, 1)]
    rest = sorted({*others} - {*whole})
    found: dict[int, str] = {}
    for places, variant, batch in (
        (sorted(constant), plan.system, plan.value_batch),
        (whole, plan.system, plan.value_batch),
        (rest, f"{plan.system} nodes", len(rest)),
    ):
        answers = ask(plan.package, variant, [questions[at] for at in places], batch) if places else []
        found |= zip(places, answers, strict=True)
    return [found[at] for at in range(len(questions))]


def _value(tally: Tally, plan: Plan, reasons: Sequence[Known], question: Question, answer: str, backend: str) -> None:
    tally.asked += 1
    ours = judge.compute(judge.build(plan.semantics, question), backend)
    if answer == judge.UNKNOWN or judge.is_empty(answer) or (isinstance(ours, str) and ours == judge.UNKNOWN):
        tally.unanswered += 1
    elif (difference := judge.agree_values(question, answer, ours)) is None:
        tally.agreed += 1
    else:
        tally.differs(reasons, Verdict(without_data(question) + " =", *difference))


def compare_trees(reasons: Sequence[Known], plan: Plan, native: int, seed: int, count: int) -> list[Tally]:
    """Random expression trees: the reference on all, generated kernels on every ``native``-th."""
    started = time.monotonic()
    questions = list(trees.trees(plan, count, seed))
    answers = _answers(plan, questions, set())
    tallies = [Tally(plan.system, f"trees, {backend}") for backend in ("reference", "native")]
    tallies[0].seconds = time.monotonic() - started
    for tally, backend, step in zip(tallies, ("reference", "native"), (1, native), strict=True):
        began = time.monotonic()
        for question, answer in list(zip(questions, answers, strict=True))[::step]:
            tally.asked += 1
            if answer.startswith(judge.UNKNOWN):
                tally.unanswered += 1
                continue
            nodes = trees.build(plan.semantics, question)
            verdict = trees.agree(question, nodes, trees.compute(nodes, backend), answer)
            if verdict is None:
                tally.agreed += 1
            else:
                tally.differs(reasons, verdict)
        tally.seconds += time.monotonic() - began
    return tallies


def known() -> list[Known]:
    """The disagreements that have a reason."""
    return [Known(**entry) for entry in tomllib.loads(KNOWN.read_text())["known"]]


def report(console: Console, tallies: Sequence[Tally], everything: bool) -> None:
    """The table, the known disagreements with their reasons, and the open ones in full."""
    table = Table(title="weft and the packages", title_justify="left")
    for name in ("system", "questions", "asked", "no answer", "agreed", "known", "open", "seconds"):
        table.add_column(name, justify="left" if name in ("system", "questions") else "right")
    for t in tallies:
        counts = (t.asked, t.unanswered, t.agreed, t.known.total(), len(t.open))
        table.add_row(t.system, t.kind, *(f"{c:,}" for c in counts), f"{t.seconds:.0f}")
    console.print(table)
    for t in tallies:
        for entry, count in t.known.items():
            console.print(f"{t.system}, {t.kind}: {count} known: {entry.reason}", highlight=False, markup=False)
    for t in tallies:
        for verdict in t.open if everything else t.open[:SHOWN]:
            line = f"{t.system}: {verdict.question}\n    package: {verdict.package}\n    weft:    {verdict.weft}"
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        if len(t.open) > SHOWN and not everything:
            console.print(f"... and {len(t.open) - SHOWN} more of {t.system}, {t.kind} (--all prints them)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Asks, compares, reports; 1 where something differs that has no reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", action="append", choices=sorted(PLANS), help="only this package (may be repeated)")
    parser.add_argument("--types", action="store_true", help="only types, no values")
    parser.add_argument("--values", action="store_true", help="only values")
    parser.add_argument("--trees", action="store_true", help="only expression trees")
    parser.add_argument("--count", type=int, default=2000, metavar="N", help="so many trees a system (2000)")
    parser.add_argument("--seed", type=int, default=date.today().toordinal(), help="of samples and trees (today)")
    parser.add_argument("--native", type=int, default=8, metavar="N", help="every N-th value on generated kernels too")
    parser.add_argument(
        "--jobs", type=int, default=min(os.cpu_count() or 1, 4), metavar="N", help="processes (one a core)"
    )
    parser.add_argument("--all", action="store_true", help="print every disagreement")
    options = parser.parse_args(arguments)
    console = Console()
    console.print(f"seed {options.seed}")
    everything = not (options.types or options.values or options.trees)
    tasks: list[tuple[Callable[..., list[Tally]], Any]] = []
    for package in options.system or list(PLANS):
        environments.python(package)
        for plan in PLANS[package]:
            if everything or options.types:
                tasks.append((compare_types, (plan,)))
            if plan.values and (everything or options.values):
                tasks.append((compare_values, (plan, options.native, options.seed)))
            if plan.values and (everything or options.trees):
                tasks.append((compare_trees, (plan, options.native, options.seed, options.count)))
    tallies = run(tasks, options.jobs)
    report(console, tallies, options.all)
    return int(any(t.open for t in tallies))


def _task(function: Callable[..., list[Tally]], rest: Any) -> list[Tally]:
    return function(known(), *rest)


def run(tasks: Sequence[tuple[Callable[..., list[Tally]], Any]], jobs: int) -> list[Tally]:
    """What all tasks find, in their order."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        waiting = [pool.submit(_task, function, rest) for function, rest in tasks]
        for done in as_completed(waiting):
            for t in done.result():
                sys.stderr.write(f"{t.system}, {t.kind}: {t.asked} asked, {len(t.open)} open, {t.seconds:.0f} s\n")
        return [tally for done in waiting for tally in done.result()]


if __name__ == "__main__":
    sys.exit(main())

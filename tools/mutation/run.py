"""Runs the tests that execute a mutant's line, on the mutant, until one fails.

pytest collects the tests once. Each runs unchanged in a forked process, which reports which lines of the modules under test it
executes. Then each mutant has a forked process of its own, in which the code of the mutated function is replaced and
only the tests that execute its line run: first those that killed other mutants, then of each test function the case that is fast
and executes much of the module, then its other cases.
Tables, defaults and class bodies cannot be replaced this way: for these mutants pytest runs in a new process, on a temporary
copy of the sources. The checkout is never written to.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import itertools
import os
import pickle
import pkgutil
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from mutation.sites import Mutant

KILLED, SURVIVED, UNTESTED, HUNG = "killed", "survived", "no test", "timeout"


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: `KILLED`, `HUNG` (which counts as killed), `SURVIVED`, or `UNTESTED` where no test executes the
    line; and the test that failed."""

    path: Path
    mutant: Mutant
    status: str
    test: str = ""


@dataclass
class Baseline:
    """What the tests do on the unchanged sources: seconds and lines (by file) of each that passes, and those that fail."""

    seconds: dict[str, float] = field(default_factory=dict[str, float])
    lines: dict[str, dict[str, set[int]]] = field(default_factory=dict[str, dict[str, set[int]]])
    failing: list[str] = field(default_factory=list[str])


@dataclass
class Campaign:
    """A pytest plugin that judges ``mutants`` instead of running the collected tests once; ``report`` gets each outcome.
    A mutant gets as many tests as take ``budget`` seconds on the unchanged sources."""

    root: Path
    mutants: Sequence[tuple[Path, Mutant]]
    report: Callable[[Outcome], None]
    ready: Callable[[Baseline], None]
    patience: float = 10.0
    budget: float = float("inf")
    _kills: Counter[str] = field(default_factory=Counter[str])
    _sources: dict[Path, bytes] = field(default_factory=dict[Path, bytes])

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        """Keeps pytest's own report from the terminal, and Hypothesis from shrinking the example that kills a mutant."""
        config.pluginmanager.unregister(name="terminalreporter")
        from hypothesis import Phase, settings  # pytest complains of plugins that are imported before it starts

        settings.register_profile("mutants", phases=(Phase.explicit, Phase.generate), database=None)
        settings.load_profile("mutants")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of pytest's own loop."""
        if session.testsfailed or not session.items:
            raise pytest.UsageError("the tests cannot be collected")
        items = {item.nodeid: item for item in session.items}
        self._sources = {path: path.read_bytes() for path, _ in self.mutants}  # they may be edited while this runs
        files = {str(path): path for path in self._sources}
        _import_all(self.root / "src")
        gc.unfreeze()  # a conftest may have frozen the functions, and then they are not listed
        functions = [f for f in gc.get_objects() if isinstance(f, FunctionType) and f.__code__.co_filename in files]
        gc.freeze()  # a collection in a forked process need not look at, and so copy, what is here already
        found = _baseline(session.items, frozenset(files))
        self.ready(found)
        with tempfile.TemporaryDirectory(prefix="mutants-") as directory:
            copy = _Copy(self.root, Path(directory))
            for path, mutant in self.mutants:
                self.report(self._judge(path, mutant, items, found, functions, copy))
        return True

    def _judge(
        self,
        path: Path,
        mutant: Mutant,
        items: Mapping[str, pytest.Item],
        baseline: Baseline,
        functions: Sequence[FunctionType],
        copy: _Copy,
    ) -> Outcome:
        reached = {test: files.get(str(path), set[int]()) for test, files in baseline.lines.items()}
        executing = [test for test, lines in reached.items() if _executes(lines, mutant)]
        executing.sort(key=lambda test: baseline.seconds[test] / (len(reached[test]) * (1 + self._kills[test])))
        turns: Counter[str] = Counter()
        turn: dict[str, int] = {}
        for test in executing:  # cases of one function are alike: one of each function comes before the second of any
            function = test.partition("[")[0]
            turn[test] = turns[function]
            turns[function] += 1
        executing.sort(key=lambda test: -1 if self._kills[test] else turn[test])
        if not executing:
            return Outcome(path, mutant, UNTESTED)
        ends = list(itertools.accumulate(baseline.seconds[test] for test in executing))
        executing = executing[: 1 + sum(end <= self.budget for end in ends[1:])]
        seconds = self.patience + 5 * sum(baseline.seconds[test] for test in executing)
        found: Any = NotImplemented
        if mutant.function is not None:
            tests = {items[test]: self.patience + 5 * baseline.seconds[test] for test in executing}
            source, name = self._sources[path], mutant.function
            texts = (source, mutant.apply(source))
            before, after = (_codes(compile(text, str(path), "exec", dont_inherit=True), name) for text in texts)
            pairs = zip(before, after, strict=True)
            if len(before) == len(after):
                found = _forked(lambda: _first_failure(pairs, functions, tests), seconds)
        if found is NotImplemented:
            found = copy.run(path, mutant, self._sources[path], executing, seconds)
        outcome = _outcome(path, mutant, found)
        self._kills[outcome.test] += 1
        return outcome


def _import_all(source: Path) -> None:
    """Imports all modules below a folder. A function can be replaced once it is there, what is imported here no forked process
    has to import again, and what is edited while this runs changes no test."""
    for found in pkgutil.walk_packages([str(source)]):
        if not found.name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of what is optional
                importlib.import_module(found.name)


def _executes(lines: set[int], mutant: Mutant) -> bool:
    """Whether a test with these lines may notice: it executes the mutant's line, or for tables and defaults the file at all."""
    return bool(lines) if mutant.function is None else not lines.isdisjoint(mutant.lines)


def _outcome(path: Path, mutant: Mutant, found: Any) -> Outcome:
    if found == HUNG:
        return Outcome(path, mutant, HUNG)
    return Outcome(path, mutant, SURVIVED) if found is None else Outcome(path, mutant, KILLED, str(found))


def _forked(work: Callable[[], Any], seconds: float | None) -> Any:
    """What ``work`` returns in a forked process; a text where the process dies, `HUNG` where it takes longer."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        os.setsid()
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        with os.fdopen(write, "wb") as out:
            try:
                out.write(pickle.dumps(work()))
            except BaseException as error:
                out.write(pickle.dumps(f"{type(error).__name__}: {error}"))
        os._exit(0)
    os.close(write)
    data, end = b"", None if seconds is None else time.monotonic() + seconds
    while True:
        left = None if end is None else max(0.0, end - time.monotonic())
        if not select.select([read], [], [], left)[0]:
            os.killpg(child, signal.SIGKILL)
            data = pickle.dumps(HUNG)
            break
        part = os.read(read, 1 << 20)
        if not part:
            break
        data += part
    os.close(read)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return HUNG
    return pickle.loads(data) if data else f"the process died (wait status {status})"


# ---- the tests, in a forked process ---------------------------------------------------------------------------------


class _Failures:
    """A plugin that notes which tests fail."""

    def __init__(self) -> None:
        self.failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def _run(items: Sequence[pytest.Item]) -> Iterable[tuple[pytest.Item, bool]]:
    """Runs the tests in order; gives each with whether it failed."""
    failures = _Failures()
    items[0].config.pluginmanager.register(failures)
    for item, following in zip(items, [*items[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        yield item, item.nodeid in failures.failed


def _baseline(items: Sequence[pytest.Item], files: frozenset[str]) -> Baseline:
    """Each test in a process of its own: what an earlier one has computed or compiled, a later one executes as well."""
    result = Baseline()
    for item in items:
        found = _forked(functools.partial(_traced, item, files), None)
        if isinstance(found, str):
            result.failing.append(item.nodeid)
        else:
            result.seconds[item.nodeid], result.lines[item.nodeid] = found
    return result


def _traced(item: pytest.Item, files: frozenset[str]) -> tuple[float, dict[str, set[int]]] | str:
    """Seconds of a test and the lines that it executes, by file; a text where it fails."""
    lines: dict[str, set[int]] = {}

    def in_function(frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            lines.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return in_function

    def at_call(frame: FrameType, event: str, argument: Any) -> Any:
        return in_function(frame, "line", argument) if frame.f_code.co_filename in files else None

    start = time.monotonic()
    sys.settrace(at_call)
    ((_, failed),) = _run([item])
    sys.settrace(None)
    return "failed" if failed else (time.monotonic() - start, lines)


def _first_failure(
    codes: Iterable[tuple[CodeType, CodeType]], functions: Sequence[FunctionType], seconds: Mapping[pytest.Item, float]
) -> Any:
    """The first of the tests that fails with the second code of each pair in place of the first; None if none does,
    NotImplemented where code cannot be replaced. A test that takes longer than its seconds ends the process by SIGALRM."""
    replaced = 0
    for before, after in codes:
        for function in functions:
            if function.__code__.co_filename == before.co_filename and function.__code__ == before:
                if len(before.co_freevars) != len(after.co_freevars):
                    return NotImplemented
                function.__code__ = after
                replaced += 1
    if not replaced:
        return NotImplemented
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    limits = iter([*seconds.values(), 0])
    signal.setitimer(signal.ITIMER_REAL, next(limits))
    for item, failed in _run(list(seconds)):
        if failed:
            return item.nodeid
        signal.setitimer(signal.ITIMER_REAL, next(limits))
    return None


def _codes(code: CodeType, name: str) -> list[CodeType]:
    """The code objects of that qualified name and of the functions in them, which may have been made before, in order; not
    those of comprehensions, which are made anew each time."""
    inner = [
        constant for constant in code.co_consts if isinstance(constant, CodeType) and not _is_comprehension(constant)
    ]
    there = [c for c in inner if c.co_qualname == name or c.co_qualname.startswith(f"{name}.<locals>.")]
    return [found for c in inner for found in ([c] if c in there else []) + _codes(c, name)]


def _is_comprehension(code: CodeType) -> bool:
    return code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


# ---- the tests, in a new process ------------------------------------------------------------------------------------


class _Copy:
    """A copy of the sources, in which one mutant at a time is written."""

    def __init__(self, root: Path, directory: Path):
        self._root = root
        self._source = directory / "src"
        shutil.copytree(root / "src", self._source)

    def run(self, path: Path, mutant: Mutant, original: bytes, tests: Sequence[str], seconds: float) -> Any:
        """The first test that fails on the mutant, None if none does."""
        copy = self._source / path.relative_to(self._root / "src")
        copy.write_bytes(mutant.apply(original))
        shutil.rmtree(copy.parent / "__pycache__", ignore_errors=True)
        environment = {**os.environ, "PYTHONPATH": str(self._source), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
        quiet = subprocess.DEVNULL
        try:
            done = subprocess.run(
                command, cwd=self._root, env=environment, timeout=seconds + 30, stdout=quiet, stderr=quiet, check=False
            )
        except subprocess.TimeoutExpired:
            return HUNG
        finally:
            copy.write_bytes(original)
        return None if done.returncode == 0 else "in a new process"

"""Runs kernels one after the other and reports each as a line of JSON; a process of its own, since native code may crash.

``python -m fuzz.worker [--on=MACHINE,...] ITEM...`` (with ``tests`` on the path): an item is a seed or a kernel file, a machine
``native`` (the default) or a GPU, whose PTX the emulator runs. For each item two lines
go to standard output, ``{"item": ...}`` when it starts and the `Verdict` when it is done. A process that ends in between
has crashed on it.
"""

from __future__ import annotations

import dataclasses
import gc
import json
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fuzz import case
from fuzz.generator import generate
from weft import CompilationError

AGREES = "agrees"
ON = "--on="


@dataclass(frozen=True)
class Verdict:
    """How a kernel fared: `AGREES`, ``mismatch``, ``refused`` (by the frontend), or the name of an exception; ``crash`` and
    ``timeout`` are what the parent process sees."""

    item: str
    kind: str
    message: str = ""


@contextmanager
def few_collections() -> Generator[None]:
    """Python's collector runs seldom: it would take a fifth of the time, looking again and again at what lives on. Each kernel
    leaves 4 MB for it."""
    gc.collect()
    gc.freeze()
    before = gc.get_threshold()
    gc.set_threshold(1_000_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def judge(item: str, path: Path, machines: Sequence[str] = (case.NATIVE,)) -> Verdict:
    """Runs the kernel file by the reference and on the machines."""
    try:
        mismatches = case.run(case.load(path), machines)
    except CompilationError as error:
        return Verdict(item, "refused", str(error))
    except Exception as error:  # whatever the compiler under test raises is a finding
        return Verdict(item, type(error).__name__, str(error))
    if mismatches:
        return Verdict(item, "mismatch", "\n".join(map(str, mismatches)))
    return Verdict(item, AGREES)


def judge_seed(seed: int, directory: Path, machines: Sequence[str] = (case.NATIVE,)) -> Verdict:
    """Writes the seed's kernel into ``directory`` (a kernel needs a source file) and runs it."""
    path = directory / f"seed_{seed}.py"
    path.write_text(generate(seed))
    return judge(str(seed), path, machines)


def _report(record: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def _judged(item: str, directory: Path, machines: Sequence[str]) -> Verdict:
    return judge_seed(int(item), directory, machines) if item.isdigit() else judge(item, Path(item), machines)


def main(items: list[str]) -> None:
    """Judges every item."""
    machines = [case.NATIVE]
    if items and items[0].startswith(ON):
        machines, items = items[0].removeprefix(ON).split(","), items[1:]
    with tempfile.TemporaryDirectory(prefix="weft-fuzz-") as directory, few_collections():
        for item in items:
            _report({"item": item})
            verdict = _judged(item, Path(directory), machines)
            _report(dataclasses.asdict(verdict))


if __name__ == "__main__":
    main(sys.argv[1:])

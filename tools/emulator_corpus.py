"""Counts what of a corpus of PTX files the emulator takes.

    python tools/emulator_corpus.py FOLDER [FOLDER ...] [--jobs 2]

A folder is a corpus: all files of it that end in ``.ptx``. For each it prints how many files parse, and of the instructions that
their kernels may reach how many bind, as a launch would bind them; then why the others are refused, most frequent first, with
an example of each. An instruction of a file counts once, however many of its kernels reach it. Nothing is executed, so kernels
need no arguments. Outside programs are compiled elsewhere, for example

    nvcc -ptx -arch=sm_90a -std=c++17 -o corpus/vectorAdd.ptx vectorAdd.cu

The exit code is 1 if anything was refused.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

import weft.emulator.machine.launch as launching
from weft.emulator import Checks, LaunchError, PTXError, ops
from weft.emulator.machine.active import Active
from weft.emulator.machine.execution import Execution
from weft.emulator.machine.program import Program
from weft.emulator.machine.scheduler import Scheduler
from weft.emulator.machine.symbols import size_of
from weft.emulator.machine.variable_map import VariableMap
from weft.emulator.ptx import parse
from weft.emulator.ptx.syntax import Function

BLOCK = 128
"""Threads of the launch that is prepared, where a kernel allows as many."""


@dataclass
class Count:
    """What was found in a file, or in several."""

    files: int = 0
    parsed: int = 0
    kernels: int = 0
    prepared: int = 0
    """Kernels all of whose instructions bind."""
    instructions: int = 0
    bound: int = 0
    refusals: Counter[str] = field(default_factory=Counter[str])
    """By reason: of files that do not parse, of instructions that do not bind."""
    examples: dict[str, str] = field(default_factory=dict[str, str])
    """By reason: where, and the instruction."""

    def add(self, other: Count) -> None:
        """What another file has."""
        for name in ("files", "parsed", "kernels", "prepared", "instructions", "bound"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.refusals += other.refusals
        self.examples = other.examples | self.examples

    def refuse(self, file: Path, error: PTXError) -> None:
        """Writes a refusal down under its reason, without the line."""
        message, _, text = str(error).partition("\n")
        reason = message.partition(": ")[2] if error.line else message
        self.refusals[reason] += 1
        self.examples.setdefault(reason, f"{file.name}:{error.line}: {text.strip()}")


class _Asking(Scheduler):
    """Binds each instruction by itself and keeps the refusals; runs nothing."""

    def __init__(self, execution: Execution, variable_map: VariableMap) -> None:
        self.refused: dict[int, PTXError] = {}
        super().__init__(execution, variable_map, native=False)
        raise _Asked(self.sites, self.refused)

    def _bind(self, site: int) -> None:
        try:
            super()._bind(site)
        except PTXError as error:
            self.refused[site] = error

    def run(self, starting: Active) -> None:
        """Never called: the launch ends where it is bound."""


class _Asked(Exception):
    """The end of a launch that was prepared only: the instructions that may run, and those that are refused."""

    def __init__(self, sites: list[int], refused: dict[int, PTXError]) -> None:
        super().__init__()
        self.sites = sites
        self.refused = refused


def ask(program: Program, kernel: Function) -> _Asked:
    """Prepares a launch of a kernel. Raises: PTXError, LaunchError for what refuses it whole."""
    directives = kernel.directives
    threads = math.prod(directives.get("maxntid", (BLOCK,)))
    block = _shape(directives.get("reqntid", (min(BLOCK, threads),)))
    required = "reqnctapercluster" in directives
    whole = required and "blocksareclusters" not in directives
    grid = _shape(directives["reqnctapercluster"]) if whole else (1, 1, 1)
    cluster = (1, 1, 1) if "explicitcluster" in directives and not required else None
    arguments = [bytes(size_of(parameter)) for parameter in kernel.parameters]
    before, launching.Scheduler = launching.Scheduler, _Asking
    try:
        launching.launch(program, kernel.name, grid, block, arguments, 0, Checks.none(), cluster=cluster)
    except _Asked as asked:
        return asked
    finally:
        launching.Scheduler = before
    raise AssertionError("a launch that was prepared only went on")


def _shape(given: tuple[int, ...]) -> tuple[int, int, int]:
    x, y, z = (*given, 1, 1)[:3]
    return x, y, z


def count(file: Path) -> Count:
    """What the emulator takes of a file."""
    ops.load()
    found = Count(files=1)
    try:
        program = Program(parse(file.read_text(encoding="utf-8", errors="replace")))
    except PTXError as error:
        found.refuse(file, error)
        return found
    found.parsed = 1
    functions = [f for f in program.module.functions.values() if not f.declared]
    ends = {
        program.start[f.name] + len(f.instructions) for f in functions
    }  # what a function without a ret at its end has
    seen: set[int] = set()
    for kernel in functions:
        if not kernel.entry:
            continue
        found.kernels += 1
        try:
            asked = ask(program, kernel)
        except PTXError as error:
            found.refuse(file, error)
            continue
        except LaunchError as error:
            found.refuse(file, PTXError(f"{error}"))
            continue
        found.prepared += not asked.refused
        fresh = [site for site in asked.sites if site not in seen and site not in ends]
        seen.update(fresh)
        found.instructions += len(fresh)
        found.bound += sum(site not in asked.refused for site in fresh)
        for site in fresh:
            if site in asked.refused:
                found.refuse(file, asked.refused[site])
    return found


def counted(files: Iterable[Path], jobs: int = 1) -> Count:
    """What the emulator takes of files together."""
    total = Count()
    if jobs == 1:
        for file in files:
            total.add(count(file))
        return total
    with ProcessPoolExecutor(jobs) as pool:
        for part in pool.map(count, files):
            total.add(part)
    return total


def main() -> int:
    """Prints the counts of each folder. Returns the exit code."""
    parser = argparse.ArgumentParser(description="What of a corpus of PTX files the emulator takes.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args()
    console = Console(width=160)
    table = Table("corpus", "files", "parse", "kernels", "bind whole", "instructions", "bind")
    refused = Table("corpus", "refused", "why", "for example")
    refusals = 0
    for folder in options.folders:
        found = counted(sorted(folder.rglob("*.ptx")), options.jobs)
        numbers = found.files, found.parsed, found.kernels, found.prepared, found.instructions, found.bound
        table.add_row(folder.name, *(f"{number:,}" for number in numbers))
        for reason, times in found.refusals.most_common():
            refused.add_row(folder.name, f"{times:,}", reason, found.examples[reason])
        refusals += found.refusals.total()
    console.print(table)
    if refusals:
        console.print(refused)
    return int(refusals > 0)


if __name__ == "__main__":
    sys.exit(main())

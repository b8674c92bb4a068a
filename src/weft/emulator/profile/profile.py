"""What a launch did, counted: per PTX instruction, per source line, in all.

A profile is a value: frozen, comparable, deterministic, convertible to JSON and back, so that a test can ask it for a
number. `print` shows a table, `Profile.html` makes a page.

It has no times. What it counts follows from the program and its data alone, so two runs are equal and a difference is a change
of the program. What a GPU would add and PTX does not determine (`NOT_MODELLED`) is not estimated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from weft.emulator.profile import ptxas
from weft.emulator.profile.counters import Counters
from weft.emulator.profile.metrics import METRICS
from weft.emulator.profile.mix import CLASSES, EXECUTIONS, class_of, flops_of
from weft.emulator.profile.ptxas import Resources
from weft.emulator.profile.rows import Counts, InstructionRow, LineRow, summed
from weft.emulator.profile.sources import ends
from weft.emulator.ptx.syntax import Instruction

if TYPE_CHECKING:
    from rich.console import RenderableType

Dim3: TypeAlias = tuple[int, int, int]

NOT_MODELLED: Final = (
    "time: no cycles, latencies, stalls or overlap",
    "caches: a sector is counted when it is asked for, wherever it is found",
    "scheduling and occupancy: which blocks run together, and in what order warps do",
    "what ptxas makes of the PTX: instructions are PTX's, not the machine's",
)
"""What a profile does not know."""

VERSION: Final = 1
"""Of the JSON form."""


@dataclass(frozen=True)
class Launch:
    """What was launched, and how it was watched."""

    kernel: str
    grid: Dim3
    block: Dim3
    target: str
    """The module's: ``sm_90a``."""
    static_shared: int = 0
    """Bytes of shared memory per block that the PTX declares."""
    dynamic_shared: int = 0
    """Bytes per block that the launch adds."""
    checks: Mapping[str, bool] = field(default_factory=dict[str, bool])
    """What was watched for, and what was not."""

    @property
    def blocks(self) -> int:
        return self.grid[0] * self.grid[1] * self.grid[2]

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.block[0] * self.block[1] * self.block[2]


@dataclass(frozen=True)
class Profile:
    """The counts of a launch."""

    launch: Launch
    instructions: tuple[InstructionRow, ...]
    """Of the functions that were executed, in the order of the PTX."""
    text: str = field(default="", repr=False)
    """The PTX."""
    output: str = ""
    """What the kernel printed (vprintf)."""

    @classmethod
    def of(
        cls,
        launch: Launch,
        instructions: Sequence[Instruction],
        functions: Sequence[str],
        counters: Counters,
        text: str = "",
        output: str = "",
    ) -> Profile:
        """A profile from the counters of a program's ``instructions``, each of one of ``functions``."""
        reached = {functions[site] for site in counters.sites_run()}
        sites = [site for site, function in enumerate(functions) if function in reached]
        rows: list[InstructionRow] = []
        for site, count in zip(sites, counters.rows(sites), strict=True):
            instruction = instructions[site]
            # A function's end that is not written in the text is listed only if threads came there.
            if not count and instruction.text.startswith("("):
                continue
            if (metric := EXECUTIONS.get(instruction.opcode)) and "executions" in count:
                count[metric] = count["executions"]
            if flops := flops_of(instruction) * count.get("threads", 0):
                count["thread_flops"] = count.get("thread_flops", 0) + flops
            source = instruction.source
            caller = source.chain[0] if source and source.inlined_at else None
            rows.append(
                InstructionRow(
                    counts=count,
                    function=functions[site],
                    line=instruction.line,
                    text=instruction.text,
                    kind=class_of(instruction),
                    file=source.file if source else "",
                    source_line=source.line if source else 0,
                    called_file=caller.file if caller else "",
                    called_line=caller.line if caller else 0,
                )
            )
        return cls(launch, tuple(rows), text, output)

    # ---- sums -------------------------------------------------------------------------------------------------------

    @cached_property
    def totals(self) -> Counts:
        """The kernel's counts."""
        counts = summed(self.instructions)
        return Counts({name: counts[name] for name in METRICS if name in counts})

    def total(self, metric: str) -> int:
        """A metric's value for the kernel. Raises: ValueError for what is no metric."""
        return self.totals[metric]

    @cached_property
    def lines(self) -> tuple[LineRow, ...]:
        """The source lines, by file and line; none where the PTX has no ``.loc``."""
        of: dict[tuple[str, int], list[InstructionRow]] = {}
        for row in self.instructions:
            if row.source_line:
                of.setdefault((row.file, row.source_line), []).append(row)
        return tuple(LineRow(summed(rows), file, line, tuple(rows)) for (file, line), rows in sorted(of.items()))

    @cached_property
    def at_calls(self) -> Profile:
        """The same counts by the kernel's own lines: inlined code counts at the line that called it, not where it was written."""
        rows = tuple(
            replace(row, file=row.called_file, source_line=row.called_line, called_file="", called_line=0)
            if row.called_line
            else row
            for row in self.instructions
        )
        return replace(self, instructions=rows)

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The source files, as the PTX names them."""
        return tuple(dict.fromkeys(row.file for row in self.lines))

    def line(self, number: int, file: str | None = None) -> LineRow:
        """A source line's counts; ``file`` may be the end of its path. Raises: KeyError where it has no instruction."""
        wanted = [row for row in self.lines if row.line == number and (file is None or ends(row.file, file))]
        if len(wanted) == 1:
            return wanted[0]
        name = f"{file}:{number}" if file else f"line {number}"
        if wanted:
            raise KeyError(f"{name} is in several files: {', '.join(row.file for row in wanted)}; say which")
        there = ", ".join(row.name for row in self.lines) or "none: the PTX has no .loc (compile with -lineinfo)"
        raise KeyError(f"{name} has no instruction; lines that have: {there}")

    def __getitem__(self, place: str) -> LineRow:
        """A source line by its name: ``profile["kernel.cu:12"]``."""
        file, colon, number = place.rpartition(":")
        if not colon or not number.isdigit():
            raise KeyError(f"'{place}' is no source line, expected file:line")
        return self.line(int(number), file)

    def ptx_line(self, number: int) -> InstructionRow:
        """The instruction on a line of the PTX. Raises: KeyError where there is none, or it was not part of the launch."""
        for row in self.instructions:
            if row.line == number:
                return row
        raise KeyError(f"PTX line {number} has no instruction of a function that was executed")

    @cached_property
    def mix(self) -> dict[str, int]:
        """Executions of each class of instruction, of those that were executed, in the order of `CLASSES`."""
        found: dict[str, int] = {}
        for row in self.instructions:
            found[row.kind] = found.get(row.kind, 0) + row["executions"]
        return {name: found[name] for name in CLASSES if found.get(name)}

    def hottest(self, count: int) -> tuple[LineRow | InstructionRow, ...]:
        """The rows with the most `heat`: source lines, or instructions where no lines are known."""
        rows: Sequence[LineRow | InstructionRow] = self.lines or self.instructions
        ranked = sorted(rows, key=lambda row: (-row.heat, row.line))
        return tuple(row for row in ranked[:count] if row.heat)

    # ---- what is asked for most ----------------------------------------------------------------------------------------

    @property
    def kernel(self) -> str:
        return self.launch.kernel

    @property
    def bank_conflicts(self) -> int:
        """Shared-memory wavefronts beyond the ideal."""
        return self.total("bank_conflicts")

    @property
    def excess_sectors(self) -> int:
        """Sectors of global memory beyond the ideal: what uncoalesced accesses cost."""
        return self.total("excess_sectors")

    @property
    def lane_efficiency(self) -> float:
        """Threads that executed, of all lanes of the warps that did."""
        return self.totals.lane_efficiency

    @cached_property
    def resources(self) -> Resources | None:
        """Registers, spills, shared memory: what ptxas says, None where there is no ptxas or it refuses the module."""
        return None if isinstance(self._ptxas, str) else self._ptxas

    @property
    def no_resources(self) -> str:
        """Why `resources` is None, "" where it is not."""
        return self._ptxas if isinstance(self._ptxas, str) else ""

    @cached_property
    def _ptxas(self) -> Resources | str:
        if not self.text:
            return "the profile has no PTX"
        return ptxas.resources(self.text, self.kernel, self.launch.target)

    # ---- other forms --------------------------------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        launch = self.launch
        return {
            "version": VERSION,
            "kernel": launch.kernel,
            "grid": list(launch.grid),
            "block": list(launch.block),
            "target": launch.target,
            "static_shared": launch.static_shared,
            "dynamic_shared": launch.dynamic_shared,
            "checks": dict(launch.checks),
            "totals": {name: self.total(name) for name in METRICS if self.total(name)},
            "mix": self.mix,
            "instructions": [row.data() for row in self.instructions],
            "output": self.output,
            "ptx": self.text,
        }

    def to_json(self) -> str:
        """The profile as JSON; `from_json` reads it."""
        return json.dumps(self.data(), indent=1)

    @classmethod
    def from_json(cls, text: str) -> Profile:
        """A profile from what `to_json` wrote. Raises: ValueError for anything else."""
        found: Any = json.loads(text)
        if not isinstance(found, dict) or cast("dict[str, Any]", found).get("version") != VERSION:
            raise ValueError(f"this is no profile of version {VERSION}")
        found = cast("dict[str, Any]", found)
        launch = Launch(
            found["kernel"],
            _three(found["grid"]),
            _three(found["block"]),
            found["target"],
            found["static_shared"],
            found["dynamic_shared"],
            found["checks"],
        )
        rows = tuple(InstructionRow(**row) for row in found["instructions"])
        return cls(launch, rows, found["ptx"], found["output"])

    def html(self, sources: Mapping[str, str] | str | Path | None = None) -> str:
        """A page that stands alone: the source, or the PTX where there is no source, annotated line by line.

        ``sources`` has the files' text, or is a directory they are in; by default they are read from where the PTX says.
        """
        from weft.emulator.profile.page import page

        return page(self, sources)

    def render(self, sources: Mapping[str, str] | str | Path | None = None) -> RenderableType:
        """What is printed, for rich; ``sources`` as in `html`."""
        from weft.emulator.profile.table import table

        return table(self, sources)

    def __rich__(self) -> RenderableType:
        return self.render()

    def __str__(self) -> str:
        from weft.emulator.profile.table import plain

        return plain(self)


def _three(values: Sequence[int]) -> Dim3:
    x, y, z = values
    return x, y, z

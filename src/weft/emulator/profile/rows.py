"""The rows of a profile: counts of an instruction, and of a source line, which is several instructions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from weft.emulator.machine.active import WARP
from weft.emulator.profile.metrics import check_metric, value_of
from weft.emulator.profile.sources import parts

HEAT: Final = ("executions", "shared_wavefronts", "global_sectors", "local_sectors")
"""What a row's `heat` is the sum of: work for the issue slots, the banks and the sectors. It ranks rows, and is no time."""


@dataclass(frozen=True)
class Counts:
    """Counts by metric, those that are zero left out."""

    counts: Mapping[str, int]

    def __getitem__(self, metric: str) -> int:
        """A metric's value, counted or derived. Raises: ValueError for what is no metric."""
        return value_of(check_metric(metric), self.counts)

    @property
    def lane_efficiency(self) -> float:
        """Threads that executed, of all lanes of the warps that did: 1 without divergence, predication and partial warps."""
        return self["threads"] / (WARP * self["executions"]) if self["executions"] else 0.0

    @property
    def heat(self) -> int:
        """How much there is to do; see `HEAT`."""
        return sum(self[metric] for metric in HEAT)


def summed(rows: Iterable[Counts]) -> dict[str, int]:
    """Counts of rows together, metrics in the order they are met."""
    total: dict[str, int] = {}
    for row in rows:
        for name, count in row.counts.items():
            total[name] = total.get(name, 0) + count
    return total


@dataclass(frozen=True)
class InstructionRow(Counts):
    """A PTX instruction of a function that was executed."""

    function: str
    line: int
    """In the PTX, from 1."""
    text: str
    """As written."""
    kind: str
    """Its class, a key of `weft.emulator.profile.mix.CLASSES`."""
    file: str = ""
    """The source file it was compiled from, as the PTX names it; "" where the PTX does not say."""
    source_line: int = 0
    called_file: str = ""
    """Of inlined code: the file and the line of the function itself, from which it was called; "" and 0 of other code."""
    called_line: int = 0

    def data(self) -> dict[str, Any]:
        """As JSON."""
        called = {"called_file": self.called_file, "called_line": self.called_line} if self.called_line else {}
        return {
            "function": self.function,
            "line": self.line,
            "text": self.text,
            "kind": self.kind,
            "file": self.file,
            "source_line": self.source_line,
            **called,
            "counts": dict(self.counts),
        }


@dataclass(frozen=True)
class LineRow(Counts):
    """A source line: the sum over the instructions it was compiled to. Inlined code counts where it was written."""

    file: str
    line: int
    instructions: tuple[InstructionRow, ...]

    @property
    def name(self) -> str:
        """``kernel.cu:12``."""
        return f"{parts(self.file)[-1]}:{self.line}"

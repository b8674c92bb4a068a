"""A profile in the terminal: what was launched, the totals, the instruction mix, the hottest lines.

Numbers are exact, never rounded to thousands; what did not happen has no row. Beside each number that has an ideal is the
ideal, and how often the number is the ideal: the column to look at.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from weft.emulator.profile.mix import CLASSES
from weft.emulator.profile.profile import NOT_MODELLED, Profile
from weft.emulator.profile.rows import InstructionRow, LineRow
from weft.emulator.profile.sources import Sources

WIDTH: Final = 120
"""Columns of a profile that is printed to no terminal."""

HOTTEST: Final = 12
"""Lines that are listed."""

MEMORY: Final = (
    ("shared loads", "shared_load", "wavefronts"),
    ("shared stores", "shared_store", "wavefronts"),
    ("shared atomics", "shared_atomic", "wavefronts"),
    ("global loads", "global_load", "sectors"),
    ("global stores", "global_store", "sectors"),
    ("global atomics", "global_atomic", "sectors"),
    ("local loads", "local_load", "sectors"),
    ("local stores", "local_store", "sectors"),
)
"""The rows of the table of memory: their name, their metrics' prefix, and what they are counted in."""

OTHERS: Final = (
    "atomics",
    "atomic_collisions",
    "async_global_load_bytes",
    "async_global_store_bytes",
    "async_global_load_sectors",
    "async_global_store_sectors",
    "async_shared_load_bytes",
    "async_shared_store_bytes",
    "shuffles",
    "votes",
    "barriers",
    "mma",
    "wgmma",
    "tcgen05",
    "matrix_flops",
    "thread_flops",
)
"""Metrics that are listed where they are not zero."""

BAD: Final = 1.01
"""From how many times the ideal on a number is marked."""


def plain(profile: Profile) -> str:
    """The table as text without colours, 120 columns wide."""
    file = io.StringIO()
    console = Console(file=file, width=WIDTH, highlight=False, emoji=False, markup=False, color_system=None)
    console.print(table(profile))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def table(profile: Profile, sources: Mapping[str, str] | str | Path | None = None) -> RenderableType:
    """Everything there is to print; ``sources`` as in `Profile.html`."""
    parts: list[RenderableType] = [_heading(profile), *_launch(profile), Text()]
    for part in (_memory(profile), _others(profile), _mix(profile), _hottest(profile, Sources.of(profile, sources))):
        if part is not None:
            parts += [part, Text()]
    if profile.output:
        parts += [Text("printed by the kernel", style="bold"), Text(profile.output.rstrip("\n")), Text()]
    parts.append(Text("not modelled: " + "; ".join(note.partition(":")[0] for note in NOT_MODELLED), style="dim"))
    return Group(*parts)


def _heading(profile: Profile) -> Text:
    launch = profile.launch
    grid, block = (" x ".join(map(str, dims)) for dims in (launch.grid, launch.block))
    heading = Text(profile.kernel, style="bold")
    heading.append(f"  grid {grid}, block {block}, {launch.target}", style="not bold")
    return heading


def _launch(profile: Profile) -> list[Text]:
    launch, totals = profile.launch, profile.totals
    shared = f"shared memory per block: {launch.static_shared:,} bytes"
    if launch.dynamic_shared:
        shared += f" + {launch.dynamic_shared:,} dynamic"
    if (known := profile.resources) is not None:
        spills = f"spills {known.spill_stores:,} + {known.spill_loads:,} bytes" if known.spill_stores else "no spills"
        shared += f"; {known.registers} registers, {spills} (ptxas)"
    else:
        shared += f"; registers and spills unknown: {profile.no_resources}"
    executed = (
        f"{totals['executions']:,} warp instructions, {totals['threads']:,} thread instructions, "
        f"{profile.lane_efficiency:.1%} of lanes active"
    )
    off = [name for name, on in launch.checks.items() if not on]
    lines = [Text(shared), Text(executed)]
    if off:
        lines.append(Text(f"checks that were off: {', '.join(off)}", style="yellow"))
    return lines


def _grid(*columns: str, text: int = 1) -> Table:
    """A table whose first columns, ``text`` many, are text and whose others are numbers."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for number, column in enumerate(columns):
        made.add_column(column, justify="left" if number < text else "right", no_wrap=True, overflow="ellipsis")
    return made


def times(count: int, ideal: int) -> Text:
    """How often ``count`` is its ideal, marked where it is more."""
    if not ideal:
        return Text("")
    ratio = count / ideal
    return Text(f"{ratio:.2f}x", style="bold red" if ratio > BAD else "green")


def _memory(profile: Profile) -> Table | None:
    made = _grid("memory", "requests", "bytes", "counted in", "number", "ideal", "of the ideal", text=1)
    for name, prefix, unit in MEMORY:
        if not (requests := profile.total(f"{prefix}_requests")):
            continue
        number, ideal = profile.total(f"{prefix}_{unit}"), profile.total(f"{prefix}_ideal_{unit}")
        size = profile.total(f"{prefix}_bytes")
        made.add_row(name, f"{requests:,}", f"{size:,}", unit, f"{number:,}", f"{ideal:,}", times(number, ideal))
    return made if made.row_count else None


def _others(profile: Profile) -> Table | None:
    made = _grid("other counts", "number")
    for name in OTHERS:
        if count := profile.total(name):
            made.add_row(name.replace("_", " "), f"{count:,}")
    return made if made.row_count else None


def _mix(profile: Profile) -> Table | None:
    total = profile.total("executions")
    if not total:
        return None
    made = _grid("instruction mix", "warp instructions", "share", "")
    made.columns[-1].justify = "left"
    for name, count in sorted(profile.mix.items(), key=lambda item: -item[1]):
        share = count / total
        made.add_row(CLASSES[name], f"{count:,}", f"{share:.1%}", Text("#" * round(24 * share), style="cyan"))
    return made


def _hottest(profile: Profile, sources: Sources) -> Table | None:
    rows = profile.hottest(HOTTEST)
    if not rows:
        return None
    what = "hottest lines" if profile.lines else "hottest instructions"
    made = _grid(what, "", "executions", "lanes", "wavefronts", "ideal", "sectors", "ideal", text=2)
    made.columns[1].ratio = 1
    made.columns[1].no_wrap, made.columns[1].overflow = False, "fold"
    made.expand = True
    for row in rows:
        name, text = _described(row, sources)
        made.add_row(name, Text(text), f"{row['executions']:,}", f"{row.lane_efficiency:.0%}", *_costs(row))
    return made


def _described(row: LineRow | InstructionRow, sources: Sources) -> tuple[str, str]:
    if isinstance(row, LineRow):
        return row.name, sources.line(row.file, row.line).strip()
    return f"PTX {row.line}", row.text


def _costs(row: LineRow | InstructionRow) -> Sequence[Text | str]:
    """Wavefronts and sectors beside their ideals; nothing where there are none."""
    cells: list[Text | str] = []
    for space, unit in (("shared", "wavefronts"), ("global", "sectors")):
        number, ideal = row[f"{space}_{unit}"], row[f"{space}_ideal_{unit}"]
        style = "bold red" if number > BAD * ideal else ""
        cells += [Text(f"{number:,}", style=style), f"{ideal:,}"] if number else ["", ""]
    return cells

"""A profile as a page: the source annotated line by line, and the PTX, sortable.

One file, without anything it would load: it can be attached, committed, opened years later. A click on a source line lights the
instructions it was compiled to, and the other way round. Where there is no source text, the PTX is the text that is annotated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from weft.emulator.profile.metrics import METRICS
from weft.emulator.profile.mix import CLASSES
from weft.emulator.profile.page_parts import SCRIPT, STYLE
from weft.emulator.profile.profile import NOT_MODELLED, Profile
from weft.emulator.profile.rows import HEAT, Counts, InstructionRow
from weft.emulator.profile.sources import Sources
from weft.emulator.profile.table import BAD, MEMORY, OTHERS

COLUMNS: Final = (
    ("executions", "executions", "times a warp executed it"),
    ("lanes", "lanes", "threads that executed, of all lanes of the warps that did"),
    ("wavefronts", "wavefronts", METRICS["shared_wavefronts"].meaning),
    ("conflicts", "of ideal", "wavefronts by the ideal number: above 1, bank conflicts"),
    ("sectors", "sectors", METRICS["global_sectors"].meaning),
    ("excess", "of ideal", "sectors by the ideal number: above 1, uncoalesced accesses"),
    ("bytes", "bytes", "bytes that threads ask for in shared, global and local memory"),
)
"""The columns beside each line: their key, what stands above, and what that means."""


def page(profile: Profile, sources: Mapping[str, str] | str | Path | None = None) -> str:
    """The page; see `Profile.html`."""
    found = Sources.of(profile, sources)
    views = [_source(profile, name, found.lines(name)) for name in profile.files if found.lines(name)]
    missing = [name for name in profile.files if not found.lines(name)]
    parts = [
        _heading(profile),
        f'<div class="flow"><div>{_memory(profile)}{_others(profile)}</div>{_mix(profile)}</div>\n',
        *views,
        _missing(missing),
        _ptx(profile),
        _output(profile),
        _notes(),
    ]
    title = escape(f"{profile.kernel}: profile")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n'
        f"<body>\n{''.join(part for part in parts if part)}<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _heading(profile: Profile) -> str:
    launch = profile.launch
    grid, block = (" × ".join(map(str, dims)) for dims in (launch.grid, launch.block))
    shared = f"{launch.static_shared:,} bytes"
    if launch.dynamic_shared:
        shared += f" + {launch.dynamic_shared:,} dynamic"
    if (known := profile.resources) is not None:
        stores, loads = known.spill_stores, known.spill_loads
        spills = f"spills: {stores:,} bytes stored, {loads:,} loaded" if stores or loads else "no spills"
        registers = f"{known.registers} registers, {spills} (ptxas)"
    else:
        registers = f"registers and spills unknown: {escape(profile.no_resources)}"
    off = [name for name, on in launch.checks.items() if not on]
    checks = f'<p class="warn">checks that were off: {", ".join(map(escape, off))}</p>\n' if off else ""
    return (
        '<button id="theme">dark / light</button>\n'
        f"<h1><code>{escape(profile.kernel)}</code></h1>\n"
        f'<p class="soft">grid {grid}, block {block}, {escape(launch.target)}; '
        f"shared memory per block: {shared}; {registers}</p>\n"
        f"<p>{profile.total('executions'):,} warp instructions, {profile.total('threads'):,} thread instructions, "
        f"{profile.lane_efficiency:.1%} of lanes active</p>\n{checks}"
    )


def _rows(head: Iterable[str], rows: Iterable[Iterable[str]], left: int = 1) -> str:
    """A plain table: its first columns, ``left`` many, are text. Cells are HTML."""
    names = "".join(f"<th{' class=left' if i < left else ''}>{name}</th>" for i, name in enumerate(head))
    body = "".join(
        "<tr>"
        + "".join(cell if cell.startswith("<td") else _cell(cell, i < left) for i, cell in enumerate(row))
        + "</tr>\n"
        for row in rows
    )
    return f"<table><thead><tr>{names}</tr></thead><tbody>\n{body}</tbody></table>\n"


def _cell(text: str, left: bool) -> str:
    return f"<td{' class=left' if left else ''}>{text}</td>"


def _times(count: int, ideal: int) -> str:
    """A cell: how often a number is its ideal."""
    if not ideal:
        return "<td></td>"
    ratio = count / ideal
    return f'<td class="{"bad" if ratio > BAD else "good"}">{ratio:.2f}×</td>'


def _memory(profile: Profile) -> str:
    rows: list[list[str]] = []
    for name, prefix, unit in MEMORY:
        if requests := profile.total(f"{prefix}_requests"):
            number, ideal = profile.total(f"{prefix}_{unit}"), profile.total(f"{prefix}_ideal_{unit}")
            size = profile.total(f"{prefix}_bytes")
            numbers = [f"{requests:,}", f"{size:,}", f"{number:,} {unit}", f"{ideal:,}"]
            rows.append([name, *numbers, _times(number, ideal)])
    head = ("", "requests", "bytes", "transactions", "ideal", "of ideal")
    return f"<section><h2>memory</h2>{_rows(head, rows)}</section>\n" if rows else ""


def _mix(profile: Profile) -> str:
    total = profile.total("executions")
    if not total:
        return ""
    rows = [
        [CLASSES[name], f"{n:,}", f"{n / total:.1%}", f'<td class="left">{_bar("mixbar", 120 * n / total)}</td>']
        for name, n in sorted(profile.mix.items(), key=lambda item: -item[1])
    ]
    return f"<section><h2>instruction mix</h2>{_rows(('', 'warp instructions', 'share', ''), rows)}</section>\n"


def _bar(kind: str, width: float) -> str:
    return f'<span class="{kind}" style="width:{width:.1f}px"></span>'


def _others(profile: Profile) -> str:
    rows = [[name.replace("_", " "), f"{count:,}"] for name in OTHERS if (count := profile.total(name))]
    return f"<section><h2>other counts</h2>{_rows(('', 'number'), rows)}</section>\n" if rows else ""


# ---- lines ----------------------------------------------------------------------------------------------------------------


def _numbers(row: Counts) -> dict[str, float]:
    """What each of `COLUMNS` shows."""
    sizes = (f"{space}_bytes" for space in ("shared", "global", "local"))
    return {
        "executions": row["executions"],
        "lanes": row.lane_efficiency,
        "wavefronts": row["shared_wavefronts"],
        "conflicts": _ratio(row["shared_wavefronts"], row["shared_ideal_wavefronts"]),
        "sectors": row["global_sectors"],
        "excess": _ratio(row["global_sectors"], row["global_ideal_sectors"]),
        "bytes": sum(row[size] for size in sizes),
        "heat": row.heat,
    }


def _ratio(count: int, ideal: int) -> float:
    return count / ideal if ideal else 0.0


def _counted(row: Counts, hottest: int) -> str:
    """The cells of a line: its heat, then `COLUMNS`."""
    numbers = _numbers(row)
    cells = [f'<td class="heats">{_bar("heat", 64 * row.heat / hottest) if row.heat else ""}</td>']
    for key, _, _ in COLUMNS:
        number = numbers[key]
        if key == "lanes":
            cells.append(f"<td>{number:.0%}</td>" if numbers["executions"] else "<td></td>")
        elif key in ("conflicts", "excess"):
            style = "bad" if number > BAD else "good"
            cells.append(f'<td class="{style}">{number:.2f}×</td>' if number else "<td></td>")
        else:
            cells.append(f"<td>{int(number):,}</td>" if number or key == "executions" else "<td></td>")
    return "".join(cells)


_EMPTY: Final = "<td></td>" * (1 + len(COLUMNS))


def _head(sortable: bool, last: Sequence[tuple[str, str]]) -> str:
    """The heading of a view of lines; ``last`` are the columns after the counters, each a key and a name."""

    def cell(key: str, name: str, meaning: str, left: bool = False) -> str:
        attributes = (' class="left"' if left else "") + (f' data-key="{key}"' if sortable else "")
        return f'<th{attributes} title="{escape(meaning)}">{name}</th>'

    heat = cell("heat", "heat", " + ".join(name.replace("_", " ") for name in HEAT), left=True)
    cells = [heat, *(cell(key, name, meaning) for key, name, meaning in COLUMNS)]
    cells += [cell(key, name, "", left=key == "text") for key, name in last]
    return f"<thead><tr>{''.join(cells)}</tr></thead>"


def _place(file: str, line: int, files: Sequence[str]) -> str:
    """What ties the two views together."""
    return f' data-place="{files.index(file)}:{line}"' if line else ""


def _source(profile: Profile, file: str, lines: Sequence[str]) -> str:
    rows = {row.line: row for row in profile.lines if row.file == file}
    hottest = max(row.heat for row in profile.lines) or 1
    body: list[str] = []
    for number, text in enumerate(lines, 1):
        row = rows.get(number)
        numbers = _counted(row, hottest) if row else _EMPTY
        attributes = f' class="has"{_place(file, number, profile.files)}' if row else ""
        body.append(
            f'<tr{attributes}>{numbers}<td class="place">{number}</td><td class="text">{escape(text)}</td></tr>\n'
        )
    name = escape(file.rpartition("/")[2])
    head = _head(False, (("line", "line"), ("text", "source")))
    return f'<h2>{name}</h2>\n<div class="scroll"><table class="lines">{head}<tbody>\n{"".join(body)}</tbody></table></div>\n'


def _missing(files: Sequence[str]) -> str:
    if not files:
        return ""
    names = ", ".join(escape(file.rpartition("/")[2]) for file in files)
    return f'<p class="soft">source text not found: {names}</p>\n'


def _ptx(profile: Profile) -> str:
    hottest = max((row.heat for row in profile.instructions), default=0) or 1
    files = profile.files
    body = "".join(_ptx_row(row, hottest, files) for row in profile.instructions)
    head = _head(True, (("line", "line"), ("text", "PTX"), ("source", "source")))
    return f'<h2>PTX</h2>\n<div class="scroll"><table class="ptx">{head}<tbody>\n{body}</tbody></table></div>\n'


def _ptx_row(row: InstructionRow, hottest: int, files: Sequence[str]) -> str:
    data = "".join(f' data-{key}="{number:g}"' for key, number in _numbers(row).items() if number)
    place = f"{row.file.rpartition('/')[2]}:{row.source_line}" if row.source_line else ""
    source = f' data-source="{row.source_line}"' if row.source_line else ""
    return (
        f'<tr data-line="{row.line}"{data}{source}{_place(row.file, row.source_line, files)}>{_counted(row, hottest)}'
        f'<td class="place">{row.line}</td><td class="text" title="{escape(CLASSES[row.kind])}">{escape(row.text)}</td>'
        f'<td class="place left">{escape(place)}</td></tr>\n'
    )


# ---- the rest ---------------------------------------------------------------------------------------------------------------


def _output(profile: Profile) -> str:
    if not profile.output:
        return ""
    return f'<h2>printed by the kernel</h2>\n<pre class="output">{escape(profile.output)}</pre>\n'


def _notes() -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in NOT_MODELLED)
    rows = [
        [
            f"<code>{metric.name}</code>",
            metric.unit,
            escape(metric.meaning),
            f"<code>{metric.ncu}</code>" if metric.ncu else "",
        ]
        for metric in METRICS.values()
    ]
    table = _rows(("metric", "unit", "meaning", "Nsight Compute"), rows, left=4)
    return (
        f"<h2>what this does not know</h2>\n<ul>{items}</ul>\n"
        f"<details><summary>what is counted: {len(METRICS)} metrics</summary>{table}</details>\n"
    )

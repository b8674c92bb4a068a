"""A profile as a page: the source annotated line by line, and the PTX, sortable.

The page is one file that loads nothing, so it can be attached or committed. A click on a source line highlights the
instructions it was compiled to, and the reverse. A search leaves the lines of source and PTX that have the text. Where there is
no source text, the PTX is the text that is annotated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from weft.emulator.profile.metrics import METRICS
from weft.emulator.profile.mix import CLASSES
from weft.emulator.profile.page_lines import bar, hottest, ptx, source
from weft.emulator.profile.page_parts import SCRIPT, STYLE
from weft.emulator.profile.profile import NOT_MODELLED, Profile
from weft.emulator.profile.sources import Sources, parts
from weft.emulator.profile.table import BAD, MEMORY, OTHERS


def page(profile: Profile, sources: Mapping[str, str] | str | Path | None = None) -> str:
    """The page; see `Profile.html`."""
    found = Sources.of(profile, sources)
    views = [source(profile, name, found.lines(name)) for name in profile.files if found.lines(name)]
    missing = [name for name in profile.files if not found.lines(name)]
    parts = [
        _heading(profile),
        f'<div class="flow"><div>{_memory(profile)}{_others(profile)}</div>{_mix(profile)}</div>\n',
        hottest(profile, found),
        *views,
        _missing(missing),
        ptx(profile),
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
        '<label class="search"><span id="hits" class="soft"></span> '
        '<input id="search" type="search" placeholder="search the lines: /" aria-label="search"></label>\n'
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
        [CLASSES[name], f"{n:,}", f"{n / total:.1%}", f'<td class="left">{bar("mixbar", 120 * n / total)}</td>']
        for name, n in sorted(profile.mix.items(), key=lambda item: -item[1])
    ]
    return f"<section><h2>instruction mix</h2>{_rows(('', 'warp instructions', 'share', ''), rows)}</section>\n"


def _others(profile: Profile) -> str:
    rows = [[name.replace("_", " "), f"{count:,}"] for name in OTHERS if (count := profile.total(name))]
    return f"<section><h2>other counts</h2>{_rows(('', 'number'), rows)}</section>\n" if rows else ""


def _missing(files: Sequence[str]) -> str:
    if not files:
        return ""
    names = ", ".join(escape(parts(file)[-1]) for file in files)
    return f'<p class="soft">source text not found: {names}</p>\n'


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

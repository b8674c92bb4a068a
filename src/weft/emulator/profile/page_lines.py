"""The lines of a profile's page: counters beside each line of source, and of PTX.

Both views have the same columns; rows of the same source line have the same ``data-place``, by which the page's script finds
them. Source lines far from any that has instructions are hidden until the reader opens them.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from weft.emulator.profile.metrics import METRICS
from weft.emulator.profile.mix import CLASSES
from weft.emulator.profile.profile import Profile
from weft.emulator.profile.rows import HEAT, Counts, InstructionRow, LineRow
from weft.emulator.profile.sources import Sources, parts
from weft.emulator.profile.table import BAD

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

CONTEXT: Final = 3
"""Lines of source that are shown around those that have instructions."""

HOTTEST: Final = 8
"""Lines that are listed as hottest."""


def bar(kind: str, width: float) -> str:
    """A bar, so many pixels wide."""
    return f'<span class="{kind}" style="width:{width:.1f}px"></span>'


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
    cells = [f'<td class="heats">{bar("heat", 64 * row.heat / hottest) if row.heat else ""}</td>']
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


def _all(row: Counts) -> str:
    """Every count of a row, shown where a pointer rests on it."""
    text = "\n".join(f"{name.replace('_', ' ')}: {count:,}" for name, count in row.counts.items())
    return f' title="{escape(text)}"' if text else ""


def _place(file: str, line: int, files: Sequence[str]) -> str:
    """What ties the two views together."""
    return f' data-place="{files.index(file)}:{line}"' if line else ""


def source(profile: Profile, file: str, lines: Sequence[str]) -> str:
    """A file's lines."""
    rows = {row.line: row for row in profile.lines if row.file == file}
    hottest = max(row.heat for row in profile.lines) or 1
    near = {line + away for line in rows for away in range(-CONTEXT, CONTEXT + 1)}
    near |= {line + 1 for line in near if line + 2 in near}  # to fold one line saves none
    body: list[str] = []
    for number, text in enumerate(lines, 1):
        row = rows.get(number)
        numbers = _counted(row, hottest) if row else _EMPTY
        if number not in near and (number == 1 or number - 1 in near):
            end = next((n for n in range(number, len(lines) + 1) if n in near), len(lines) + 1)
            body.append(f'<tr class="fold">{_EMPTY}<td></td><td class="text">lines {number} to {end - 1}</td></tr>\n')
        attributes = f' class="has"{_all(row)}{_place(file, number, profile.files)}' if row else ""
        attributes = attributes if number in near else ' class="far"'
        body.append(
            f'<tr{attributes}>{numbers}<td class="place">{number}</td><td class="text">{escape(text)}</td></tr>\n'
        )
    name = escape(parts(file)[-1])
    head = _head(False, (("line", "line"), ("text", "source")))
    return f'<h2>{name}</h2>\n<div class="scroll"><table class="lines">{head}<tbody>\n{"".join(body)}</tbody></table></div>\n'


def hottest(profile: Profile, sources: Sources) -> str:
    """The hottest lines, where there are more than one sees at once."""
    if len(profile.lines) <= HOTTEST:
        return ""
    rows = profile.hottest(HOTTEST)
    body = "".join(
        f"<tr{_all(row)}{_place(row.file, row.line, profile.files)}>{_counted(row, rows[0].heat)}"
        f'<td class="place">{escape(row.name)}</td>'
        f'<td class="text">{escape(sources.line(row.file, row.line).strip())}</td></tr>\n'
        for row in rows
        if isinstance(row, LineRow)
    )
    head = _head(False, (("line", "line"), ("text", "source")))
    return (
        f'<h2>hottest lines</h2>\n<div class="scroll"><table class="hot">{head}<tbody>\n{body}</tbody></table></div>\n'
    )


def ptx(profile: Profile) -> str:
    """The instructions, which can be sorted."""
    hottest = max((row.heat for row in profile.instructions), default=0) or 1
    files = profile.files
    body = "".join(_ptx_row(row, hottest, files) for row in profile.instructions)
    head = _head(True, (("line", "line"), ("source", "source"), ("text", "PTX")))
    return f'<h2>PTX</h2>\n<div class="scroll"><table class="ptx">{head}<tbody>\n{body}</tbody></table></div>\n'


def _ptx_row(row: InstructionRow, hottest: int, files: Sequence[str]) -> str:
    data = "".join(f' data-{key}="{number:g}"' for key, number in _numbers(row).items() if number)
    place = f"{parts(row.file)[-1]}:{row.source_line}" if row.source_line else ""
    source = f' data-source="{row.source_line}"' if row.source_line else ""
    return (
        f'<tr data-line="{row.line}"{_all(row)}{data}{source}{_place(row.file, row.source_line, files)}>{_counted(row, hottest)}'
        f'<td class="place">{row.line}</td><td class="place">{escape(place)}</td>'
        f'<td class="text" title="{escape(CLASSES[row.kind])}">{escape(row.text)}</td></tr>\n'
    )

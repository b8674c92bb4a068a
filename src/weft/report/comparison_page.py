"""A comparison of systems as a page: the function's source with what each line does in each system.

A line shows its types, its bytes and how it diverges; opened, its operations as `weft.report.comparison` has them. The strip at
the right has a mark for every line that diverges, so that a long function is seen at once. The lines are ``details``
elements: without scripts everything can be read, and the script adds the filter and the keys. The page loads nothing.
"""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Final

from weft.array.comparing.comparison import Comparison, Exit, Kind, Line, Operation, Stop, grouped, listed
from weft.report.comparison import alike, answer_rows, place, text, told
from weft.report.comparison_style import SCRIPT, STYLE

_CLASSES: Final[Mapping[Kind, str]] = {
    Kind.REFUSED: "refused",
    Kind.CONTROL: "control",
    Kind.FAILED: "refused",
    Kind.SHAPE: "control",
    Kind.DTYPE: "dtype",
    Kind.VALUE: "value",
    Kind.MEANING: "meaning",
}
_LEGEND: Final = (
    ("value", "another value"),
    ("dtype", "another type"),
    ("refused", "refused or failed"),
    ("control", "other operations or shapes"),
    ("exit", "values leave the systems"),
    ("meaning", "another operation, same values here"),
    ("follows", "follows from a line before"),
)


def page(found: Comparison) -> str:
    """The page, as text."""
    title = f"{found.function}: {', '.join(found.systems)}"
    files = list(dict.fromkeys([*(line.file for line in found.lines), *(e.file for e in found.exits)]))
    body = [
        f"<header><h1>{escape(_verdict(found))}</h1>{_totals(found)}{_legend()}</header>",
        _section("inputs", [o for o in found.inputs if o.kinds], found),
        *(_file(file, found, len(files) > 1) for file in files),
        _section("returned", list(found.outputs), found),
        "".join(f'<p class="stop">{escape(_stopped(stop))}</p>' for stop in found.stops),
        "".join(f"<p>{escape(f'{system} returns {nest}')}</p>" for system, nest in found.structures.items()),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{STYLE}</style>\n</head>\n"
        f'<body style="--systems:{len(found.systems)}">\n<main>\n{"".join(body)}</main>\n<nav id="strip"></nav>\n'
        f"<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _verdict(found: Comparison) -> str:
    return text(found).partition("\n")[0]


def _stopped(stop: Stop) -> str:
    file, _, line = stop.location.rpartition(":")
    where = place(file, int(line)) if line.isdigit() else stop.location
    return f"{stop.system} stops at {where}: {stop.reason}"


def _totals(found: Comparison) -> str:
    first = found.totals[0].nbytes + found.totals[0].converted
    rows: list[str] = []
    for total in found.totals:
        together = total.nbytes + total.converted
        times = f"{together / first:.2f}x" if first and total is not found.totals[0] else ""
        cells = (f"{total.nbytes:,}", f"{total.converted:,}", f"{together:,}", times)
        rows.append(f"<tr><th>{escape(total.system)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("", "bytes of results", "of conversions", "together", ""))
    return f'<table class="totals"><tr>{head}</tr>{"".join(rows)}</table>'


def _legend() -> str:
    marks = " ".join(f'<span><span class="mark {kind}"></span>{escape(said)}</span>' for kind, said in _LEGEND)
    keys = '<button type="button" id="only">only lines that differ</button> <kbd>n</kbd> next, <kbd>p</kbd> previous'
    return f'<p class="legend">{marks}</p><p class="keys">{keys}</p>'


def _section(name: str, operations: Sequence[Operation], found: Comparison) -> str:
    """Inputs and results, which have no line."""
    if not operations:
        return ""
    kind = _class(operations)
    row = _row("", name, _types(operations), _bytes_of(operations, found), kind)
    opened = " open" if any(o.originates for o in operations) else ""
    inside = f"<summary>{row}</summary>{_inside(operations, found)}"
    return f'<section><details class="line {kind}"{opened}>{inside}</details></section>'


# ---- the source --------------------------------------------------------------------------------------------------------


def _file(file: str, found: Comparison, named: bool) -> str:
    lines = {line.line: line for line in found.lines if line.file == file}
    exits: dict[int, list[Exit]] = {}
    for exit_ in found.exits:
        if exit_.file == file:
            exits.setdefault(exit_.line, []).append(exit_)
    source = linecache.getlines(file)
    shown = [_line(n, source, lines.get(n), exits.get(n, ()), found) for n in _extent(source, {*lines, *exits})]
    head = f"<h2>{escape(os.path.basename(file))}</h2>" if named else ""
    names = "".join(f"<span>{escape(system)}</span>" for system in found.systems)
    columns = f'<div class="row head"><span></span><code></code><span></span>{names}</div>'
    return f"<section>{head}{columns}{''.join(shown)}</section>"


def _extent(source: Sequence[str], seen: set[int]) -> Iterator[int]:
    """The lines of the functions in which something happened, in order."""
    chosen = set(seen)
    try:
        tree = ast.parse("".join(source))
    except SyntaxError:
        tree = ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.end_lineno is not None:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if seen.intersection(range(first, node.end_lineno + 1)):
                chosen.update(range(first, node.end_lineno + 1))
    yield from sorted(chosen)


def _line(number: int, source: Sequence[str], line: Line | None, exits: Sequence[Exit], found: Comparison) -> str:
    code = source[number - 1].rstrip() if 0 < number <= len(source) else ""
    left = [e for e in exits if not e.branch]
    if line is None and not exits:
        return f'<div class="line idle">{_row(str(number), code, "", [""] * len(found.systems), "")}</div>'
    operations = () if line is None else line.operations
    kind = "exit" if left else _class(operations)
    opened = " open" if left or (line is not None and line.originates) else ""
    row = _row(str(number), code, _types(operations), _bytes_of(operations, found), kind)
    said = "".join(f'<p class="exit">{escape(_left(e))}</p>' for e in exits)
    return (
        f'<details class="line {kind}" id="L{number}"{opened}><summary>{row}</summary>'
        f"{said}{_inside(operations, found)}</details>"
    )


def _left(exit_: Exit) -> str:
    what = "a branch asks for a truth" if exit_.branch else "values leave"
    return f"{what}: {exit_.way} in {listed(exit_.systems)}"


def _class(operations: Sequence[Operation]) -> str:
    """How the operations diverge of themselves, the most consequential first; else whether they only follow."""
    own = {kind for o in operations for kind in o.kinds if kind not in o.propagated}
    if chosen := next((_CLASSES[kind] for kind in Kind if kind in own and kind is not Kind.MEANING), ""):
        return chosen
    if any(o.diverges for o in operations):
        return "follows"
    return "meaning" if own else "same"


def _row(number: str, code: str, types: str, sizes: Sequence[str], kind: str) -> str:
    bytes_ = "".join(f"<span>{size}</span>" for size in sizes)
    name = f' title="{escape(dict(_LEGEND)[kind])}"' if kind in dict(_LEGEND) else ""
    return (
        f'<span class="row"{name}><span class="number">{number}</span><code>{escape(code) or "&nbsp;"}</code>'
        f'<span class="types">{escape(types)}</span>{bytes_}</span>'
    )


def _types(operations: Sequence[Operation]) -> str:
    """The types of the line's last operation."""
    known = [c for c in operations[-1].cells.values() if c.dtype is not None] if operations else []
    types = {c.type for c in known}
    return next(iter(types)) if len(types) == 1 else grouped((c.system, c.type) for c in known) if known else ""


def _bytes_of(operations: Sequence[Operation], found: Comparison) -> list[str]:
    sizes = [
        sum(c.nbytes + c.converted for o in operations if (c := o.cells.get(system)) is not None)
        for system in found.systems
    ]
    return [f"{size:,} B" if operations else "" for size in sizes]


def _inside(operations: Sequence[Operation], found: Comparison) -> str:
    """A line's operations, each with a row for each answer and the sentences about it."""
    blocks: list[str] = []
    for group in alike(operations):
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(cell.plain)}</td>' for cell in row)}</tr>" for row in answer_rows(group, found)
        )
        notes = "".join(
            f'<p class="{"follows" if follows else _CLASSES[kind]}">{escape(sentence)}</p>'
            for kind, follows, sentence in told(group)
        )
        blocks.append(f"<table>{rows}</table>{notes}")
    return f'<div class="inside">{"".join(blocks)}</div>' if blocks else ""

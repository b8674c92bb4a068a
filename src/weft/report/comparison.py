"""A comparison of systems as text: where they first differ, what each line costs, and every line that diverges.

Operations that a line repeats are one row with their count, because a loop of a thousand steps is one line of Python. Lines in
which all systems agree are only counted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from weft.array.comparing.comparison import Cell, Comparison, Kind, Line, Operation, listed
from weft.report.plain import WIDTH, plain
from weft.report.types import STYLES, category
from weft.semantics.explanation import write

_COLOURS: Final[dict[Kind, str]] = {
    Kind.REFUSED: "red",
    Kind.CONTROL: "magenta",
    Kind.FAILED: "red",
    Kind.SHAPE: "magenta",
    Kind.DTYPE: "yellow",
    Kind.VALUE: "bold red",
    Kind.MEANING: "cyan",
}
"""How each kind of divergence stands out."""

_FIRST: Final[dict[Kind, str]] = {
    Kind.REFUSED: "first refusal",
    Kind.CONTROL: "first other branch",
    Kind.FAILED: "first failure",
    Kind.SHAPE: "first other shape",
    Kind.DTYPE: "first other type",
    Kind.VALUE: "first other value",
}

_PER_TIME: Final = (Kind.VALUE, Kind.FAILED, Kind.CONTROL, Kind.SHAPE)
"""What one turn of a loop may have and the next one not."""

_ANY: Final = "..."
"""A number that changes from one turn of a loop to the next."""

_NUMBERS: Final = ("inf", "nan", "True", "False")
"""Numbers that look like names."""

_WIDEST: Final = 48
"""Columns of the widest expression before it is folded."""


def text(found: Comparison, width: int = WIDTH) -> str:
    """The report without colours."""
    return plain(drawn(found), width)


def drawn(found: Comparison) -> RenderableType:
    """The report for a console."""
    shown = [line for line in found.lines if line.kinds]
    sections = [
        (Text("inputs", "bold"), [o for o in found.inputs if o.kinds]),
        *((_heading(line), line.operations) for line in shown),
        (Text("returned", "bold"), [o for o in found.outputs if o.kinds]),
    ]
    blocks = [(heading, _blocks(operations, found)) for heading, operations in sections if operations]
    rows = [row for _, each in blocks for block in each for row in block.rows]
    widths = [max(row[column].cell_len for row in rows) for column in range(len(rows[0]))] if rows else []
    parts: list[RenderableType] = [_verdict(found), *_firsts(found), Text(), _totals(found)]
    for heading, each in blocks:
        parts += [Text(), heading]
        for block in each:
            parts += [
                Padding(block.table(widths), (0, 0, 0, 2)),
                *(Padding(note, (0, 0, 0, 4)) for note in block.notes),
            ]
    return Group(*parts, *_notes(found, len(found.lines) - len(shown)))


def place(file: str, line: int) -> str:
    """``file:line`` as seen from the working directory; of a file elsewhere, its name."""
    near = os.path.relpath(file) if os.path.isabs(file) else file
    return f"{os.path.basename(file) if near.startswith(os.pardir) else near}:{line}"


def _verdict(found: Comparison) -> Text:
    systems = listed(found.systems)
    if found.agree:
        return Text(f"{found.function}: {systems} agree in every type and value", "bold green")
    if not found.diverges:
        return Text(f"{found.function}: not known whether {systems} agree, for values left them", "bold yellow")
    lines = sum(line.diverges for line in found.lines)
    own = sum(line.originates for line in found.lines)
    counted = f" on {lines} of {len(found.lines)} lines, of themselves on {own}" if lines else ""
    if found.exact:
        return Text(f"{found.function}: {systems} agree in what is returned; they diverge{counted}", "bold yellow")
    return Text(f"{found.function}: {systems} diverge{counted}", "bold red")


def _firsts(found: Comparison) -> Iterator[Text]:
    width = max(map(len, _FIRST.values()))
    for kind, said in _FIRST.items():
        if (line := found.first(kind)) is not None:
            head = Text(f"  {said:<{width}}  ", _COLOURS[kind], no_wrap=True, overflow="ellipsis")
            yield head.append(f"{place(line.file, line.line)}  {line.source}", "default not bold")
    for exit_ in found.left:
        where = f"{place(exit_.file, exit_.line)}  {exit_.source}"
        yield Text(f"  {'values leave':<{width}}  ", "magenta").append(where, "default not bold")
        yield Text(f"  {'':<{width}}  {exit_.way} in {listed(exit_.systems)}; what is computed of them is not compared")
    for stop in found.stops:
        file, _, line = stop.location.rpartition(":")
        where = place(file, int(line)) if line.isdigit() else stop.location
        yield Text(f"  {stop.system} stops at {where}: {stop.reason}", "red")
    for system, structure in found.structures.items():
        yield Text(f"  {system} returns {structure}", "magenta")


def _totals(found: Comparison) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 2, 0, 0))
    for name in ("system", "bytes of results", "of conversions", "together", f"beside {found.systems[0]}"):
        table.add_column(name, justify="left" if name == "system" else "right")
    first = found.totals[0].nbytes + found.totals[0].converted
    for total in found.totals:
        together = total.nbytes + total.converted
        beside = "" if total is found.totals[0] else _more(together, first)
        table.add_row(total.system, f"{total.nbytes:,}", f"{total.converted:,}", f"{together:,}", beside)
    return table


def _more(bytes_: int, first: int) -> str:
    times = f" ({bytes_ / first:.2f}x)" if first else ""
    return f"{bytes_ - first:+,}{times}" if bytes_ != first else "the same"


def _heading(line: Line) -> Text:
    return Text(place(line.file, line.line), "bold").append(f"  {line.source}", "not bold")


@dataclass(frozen=True)
class _Block:
    """An operation: a row for each system, and what is to be said below them."""

    rows: list[list[Text]]
    notes: list[Text]

    def table(self, widths: Sequence[int]) -> Table:
        """The rows; ``widths`` line them up with those of the other blocks."""
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        last = len(widths) - 1
        for i, width in enumerate(widths):
            table.add_column(width=min(width, _WIDEST), justify="right" if i == last else "left", overflow="fold")
        for row in self.rows:
            table.add_row(*row)
        return table


def _blocks(operations: Sequence[Operation], found: Comparison) -> list[_Block]:
    return [
        _Block(
            answer_rows(group, found),
            [Text(sentence, "bright_black" if follows else _COLOURS[kind]) for kind, follows, sentence in told(group)],
        )
        for group in alike(operations)
    ]


def alike(operations: Sequence[Operation]) -> list[list[Operation]]:
    """Operations of a line that differ in their occurrence and values only, in the order of the first of each kind."""
    groups: dict[object, list[Operation]] = {}
    for o in operations:
        cells = tuple((c.system, _types(c), c.type, c.meaning, c.refusal) for c in o.cells.values())
        groups.setdefault((o.op, cells), []).append(o)
    return list(groups.values())


def _types(cell: Cell) -> tuple[str, ...]:
    """The operands, numbers left out."""
    return tuple(operand if operand[0].isalpha() and operand not in _NUMBERS else _ANY for operand in cell.operands)


def told(group: Sequence[Operation]) -> Iterator[tuple[Kind, bool, str]]:
    """What diverges in the group, and whether it only follows: of the first operation that does."""
    for kind in Kind:
        diverging = [o for o in group if kind in o.kinds]
        if not diverging or (kind is Kind.MEANING and any(Kind.VALUE in o.kinds for o in group)):
            continue
        first = next((o for o in diverging if kind not in o.propagated), diverging[0])
        times = f"{len(diverging)} of {len(group)} times, here time {first.occurrence + 1}: " if len(group) > 1 else ""
        for told, sentence in first.sentences():
            if told is kind:
                yield kind, kind in first.propagated, f"{times if kind in _PER_TIME else ''}{sentence}"


def answer_rows(group: Sequence[Operation], found: Comparison) -> list[list[Text]]:
    """A row for each answer, with the systems that give it."""
    rows: list[tuple[list[Text], list[str]]] = []
    for system in found.systems:
        row = _row(system, group)
        known = next((systems for other, systems in rows if other == row), None)
        if known is None:
            rows.append((row, [system]))
        else:
            known.append(system)
    turns = f" ({len(group)} times)" if len(group) > 1 else ""
    rows[0][0][0].append(turns)
    return [[Text(", ".join(systems), "bright_black"), *row] for row, systems in rows]


def _row(system: str, group: Sequence[Operation]) -> list[Text]:
    cells = [cell for o in group if (cell := o.cells.get(system)) is not None]
    if not cells:
        stopped = any(system in o.unreached for o in group)
        return [Text(), Text("not reached" if stopped else "not done", STYLES["absent"]), Text(), Text()]
    cell = cells[0]
    same = len({o.expression for o in group}) == 1
    expression = write(group[0].op, cell.operands if same else _types(cell)) if cell.operands else group[0].op
    style = STYLES["refused"] if cell.dtype is None else STYLES[category(cell.dtype)]
    converted = sum(c.converted for c in cells)
    extra = f" + {converted:,}" if converted else ""
    size = f"{sum(c.nbytes for c in cells):,}{extra} B"
    return [Text(expression), Text(cell.type, style), Text(_computes(cell)), Text(size)]


def _computes(cell: Cell) -> str:
    if not cell.meaning:
        return ""
    within = f" in {cell.within}" if cell.within is not None and cell.within != cell.dtype else ""
    return f"{cell.meaning}{within}{' after a cast' if cell.continued else ''}"


def _notes(found: Comparison, agreeing: int) -> Iterator[RenderableType]:
    notes: list[str] = []
    if agreeing:
        notes.append(f"{agreeing} {'other ' if agreeing < len(found.lines) else ''}{'line' if agreeing == 1 else 'lines'} agree"
                     f"{'s' if agreeing == 1 else ''}")  # fmt: skip
    if any(c.weak for o in found.operations if o.kinds for c in o.cells.values()):
        notes.append("* weak: yields to the types that the program chose")
    if notes:
        yield Text()
        yield from (Text(note, "bright_black") for note in notes)

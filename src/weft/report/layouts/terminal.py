"""Layouts in the terminal: grids with the colours of SVG's, shared memory, conversions and matrices as text.

A cell says ``warp.lane.register`` where that fits, then the lane alone; where neither does, colours alone, two rows to a line;
without colours, what fits of the rows, and a line that says what is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.style import Style
from rich.text import Text

from weft.layout import ConversionPlan, LinearLayout
from weft.report.layouts.banks import Access
from weft.report.layouts.colours import Colour, palette
from weft.report.layouts.conversion import KINDS, plan_lines
from weft.report.layouts.grid import heading as grid_heading
from weft.report.layouts.held import Held, Panel, counted, panels
from weft.report.layouts.matrix import dimension_colour
from weft.report.layouts.matrix import heading as matrix_heading
from weft.report.layouts.stages import FEW, initial, lines_of

_INK = "#111827"


@dataclass(frozen=True)
class Page:
    """What a terminal has: columns, whether it shows colours, whether it shows more than ASCII."""

    width: int = 120
    colour: bool = True
    unicode: bool = True


PAGE: Final = Page()
"""A terminal of 120 columns with colours."""


def _on(colour: Colour | None) -> Style:
    return Style() if colour is None else Style(color=_INK, bgcolor=colour.light)


def grid_text(layout: LinearLayout, by: str | None = None, *, bits: int = 32, page: Page = PAGE) -> RenderableType:
    """The grid; see `weft.report.layouts.grid`."""
    held = Held(layout, bits)
    key = held.by(by)
    form = _form(held, page)
    found = panels(layout)
    says = ".".join(form.dims)
    title = grid_heading(held, key).replace("\N{MULTIPLICATION SIGN}", "x")
    parts: list[RenderableType] = [Text(title, "bold"), Text(counted(layout) + (f"; cells: {says}" if says else ""))]
    blocks = [_panel(held, key, panel, form, page) for panel in found]
    parts += [Text(), *_beside(blocks, page.width)]
    if form.left_out:
        parts.append(Text(form.left_out, "dim"))
    if page.colour and key and key not in form.dims:
        parts += [Text(), *_legend(held, key, page.width)]
    if any(len(places) > 1 for places in held.places):
        most = max(len(places) for places in held.places)
        parts.append(Text(f"held up to {most} times; cells name the first holder"))
    parts.append(Text(str(layout), "dim"))
    return Group(*parts)


@dataclass(frozen=True)
class _Form:
    """How cells are written: the dimensions they name, how wide, how many columns fit; ``blocks``: colours alone, two rows to a
    line."""

    dims: tuple[str, ...]
    width: int
    columns: int
    left_out: str = ""
    blocks: bool = False


def _form(held: Held, page: Page) -> _Form:
    found = panels(held.layout)
    columns = found[0].columns
    room = page.width - _label_width(found)
    main = (held.main,) if held.main else ()
    below = (held.below,) if held.below and held.size(held.below) > 1 else ()
    choices = [(*held.owners, *main, *below), (*main, *below), main]
    for dims in choices:
        width = _cell_width(held, dims)
        if width * columns <= room:
            return _Form(dims, width, columns)
    if page.colour and page.unicode and columns <= room:
        return _Form((), 1, columns, blocks=True)
    blocks = page.colour and page.unicode
    width = 1 if blocks else _cell_width(held, main)
    fits = 1
    while fits * 2 * width <= room and fits < columns:
        fits *= 2
    wanted = width * columns + page.width - room
    note = f"columns {fits} to {columns - 1} need a terminal of {wanted} columns; --svg and --html show all"
    return _Form(() if blocks else main, width, fits, note, blocks)


def _cell_width(held: Held, dims: Sequence[str]) -> int:
    return max(2, sum(len(str(held.size(dim) - 1)) for dim in dims) + len(dims))


def _label_width(found: Sequence[Panel]) -> int:
    return max(len(str((panel.rows - 1) * panel.row_step)) for panel in found) + 1


def _panel(held: Held, by: str | None, panel: Panel, form: _Form, page: Page) -> list[Text]:
    colours = palette(held.size(by) if by else 1)
    room = _label_width([panel])

    def colour(row: int, column: int) -> Colour | None:
        values = held.values(panel.element(row, column), by) if by else (0,)
        return colours[values[0]] if values and held.places[panel.element(row, column)] and page.colour else None

    lines = [Text(panel.label, "bold")] if panel.label else []
    head = Text(" " * room)
    step = 1
    while step * form.width < len(str(form.columns)) + 1:
        step *= 2
    for column in range(0, form.columns, step):
        head.append(
            f"{column:<{form.width * step}}"[: form.width * step]
            if form.blocks
            else f"{column:>{form.width - 1}}".ljust(form.width * step)
        )
    head.rstrip()
    lines.append(head)
    rows_a_line = 2 if form.blocks else 1
    for row in range(0, panel.rows, rows_a_line):
        line = Text(f"{row * panel.row_step:>{room - 1}} ")
        for column in range(form.columns):
            if not form.blocks:
                line.append(
                    f"{_says(held, panel.element(row, column), form.dims):>{form.width - 1}} ", _on(colour(row, column))
                )
                continue
            upper = colour(row, column)
            lower = colour(row + 1, column) if row + 1 < panel.rows else None
            line.append("\N{UPPER HALF BLOCK}", Style(color=upper and upper.light, bgcolor=lower and lower.light))
        lines.append(line)
    return lines


def _says(held: Held, element: int, dims: Sequence[str]) -> str:
    places = held.places[element]
    if not places:
        return "-"
    return ".".join(str(held.index(places[0], dim)) for dim in dims) or "."


def _beside(blocks: Sequence[list[Text]], width: int) -> list[Text]:
    """Blocks of lines side by side where they fit, three columns apart."""
    wide = max(line.cell_len for block in blocks for line in block)
    each = max(1, (width + 3) // (wide + 3))
    lines: list[Text] = []
    for start in range(0, len(blocks), each):
        row = blocks[start : start + each]
        if start:
            lines.append(Text())
        for i in range(len(row[0])):
            line = Text()
            for j, block in enumerate(row):
                if j:
                    line.append(" " * (3 + wide - row[j - 1][i].cell_len))
                line.append_text(block[i])
            lines.append(line)
    return lines


def _legend(held: Held, by: str, width: int) -> list[Text]:
    lines: list[Text] = []
    line = Text(f"{by} ")
    for index, colour in enumerate(palette(held.size(by))[:64]):
        if line.cell_len + len(str(index)) + 2 > width:
            lines.append(line)
            line = Text(" " * (len(by) + 1))
        line.append(f" {index} ", _on(colour))
    return [*lines, line]


def banks_text(*accesses: Access, page: Page = PAGE) -> RenderableType:
    """Banks and rows of accesses to one memory; see `weft.report.layouts.banks`. A cell is the first lane that wants the word."""
    heading = Text(f"shared memory: {accesses[0].banks.count} banks, the first instruction of warp 0", "bold")
    parts = [_banks(access, page) for access in accesses]
    return Group(heading, *parts, Text(f"memory {accesses[0].memory}", "dim"))


def _banks(access: Access, page: Page) -> RenderableType:
    conflicts = access.conflicts()
    cells = {(w.row, w.bank): w for w in reversed(access.words)}
    rows = sorted({row for row, _ in cells})
    room = max(4, len(str(rows[-1] * 128))) + 1
    width = 3 if page.width - room < access.banks.count * 4 else 4
    head, served = Text("bank".rjust(room - 1) + " "), Text("byte".rjust(room - 1) + " ")
    for bank in range(access.banks.count):
        count = len(conflicts.get(bank, (0,)))
        style = "bold red" if count > 1 else ""
        head.append(f"{bank:>{width - 1}} ", style)
        served.append((f"x{count}" if count > 1 else "").rjust(width - 1) + " ", style)
    lines = [head, served]
    colours = palette(max(1, len(access.offsets)))
    for i, row in enumerate(rows):
        if i and row != rows[i - 1] + 1:
            lines.append(Text(":".rjust(room - 1)))
        line = Text(f"{row * access.banks.count * access.banks.bits // 8:>{room - 1}} ")
        for bank in range(access.banks.count):
            word = cells.get((row, bank))
            if word is None:
                line.append(".".rjust(width - 1) + " ", "dim")
                continue
            mark = "!" if not word.phase and bank in conflicts else " "
            style = _on(colours[word.lanes[0]]) if page.colour and not word.phase else Style(dim=bool(word.phase))
            line.append(f"{word.lanes[0]:>{width - 1}}{mark}", style)
        lines.append(line)
    what = "; !: its bank serves several words of one phase" if conflicts else ""
    notes = [Text(f"cells: the first lane that wants the word{what}", "dim")]
    if any(word.phase for word in access.words):
        first = access.banks.phase_lanes(access.cost.vector_bits)
        notes.append(Text(f"lanes from {first} on are in later phases, which cost as much as the first", "dim"))
    sentence = access.sentence().replace("\N{MULTIPLICATION SIGN}", "x")
    head_lines = [
        Text(sentence, "red" if conflicts else ""),
        Text(access.total()),
        Text(str(access.distributed), "dim"),
    ]
    return Group(*head_lines, Text(), *lines, *notes, Text())


def matrix_text(layout: LinearLayout, *, page: Page = PAGE) -> RenderableType:
    """The matrix with its labels, ones in the colour of their input dimension."""
    title = matrix_heading(layout).replace("\N{MULTIPLICATION SIGN}", "x")
    body = Text(str(layout.matrix()))
    if page.colour:
        body = _ones(layout, str(layout.matrix()))
    return Group(Text(title, "bold"), Text(), body, Text(), Text(str(layout), "dim"))


def _ones(layout: LinearLayout, drawn: str) -> Text:
    """The matrix's text with colours: the k-th cell of a row belongs to the k-th column."""
    owners = [(name, i) for i, (name, columns) in enumerate(layout.inputs) for _ in columns]
    rows = drawn.split("\n")
    body = Text("\n".join(rows[:2]))
    for line in rows[2:]:
        body.append("\n")
        cells = [at for at, character in enumerate(line) if character in "1."][-len(owners) :]
        owner = dict(zip(cells, owners, strict=False))
        for at, character in enumerate(line):
            one = owner.get(at) if character == "1" else None
            body.append(character, _on(dimension_colour(*one)) if one else None)
    return body


def conversion_text(
    source: LinearLayout, destination: LinearLayout, plan: ConversionPlan, *, page: Page = PAGE
) -> RenderableType:
    """What the plan does, step by step, what it costs and why; for small tensors what lanes hold before and after."""
    parts: list[RenderableType] = [
        Text(f"{'x'.join(map(str, source.shape)) or 'scalar'}: {KINDS[plan.kind]}", "bold"),
        Text(f"from {source}", "dim"),
        Text(f"to   {destination}", "dim"),
        Text(),
    ]
    done = plan.steps if plan.kind != "nothing" else ()
    steps = [(line,) for step in done for line in lines_of(step)]
    for number, lines in enumerate(steps, 1):
        parts.append(Text(f"{number:>3}  {lines[0]}"))
        parts += [Text(f"     {line}") for line in lines[1:]]
    parts += [Text("     nothing to do")] if not steps else []
    parts += [Text(), *map(Text, plan_lines(plan))]
    few = 1 << len(source.all_columns) <= FEW * 8 and page.width >= 60
    if few:
        parts += [
            Text(),
            _held_text("before", source, source, page),
            Text(),
            _held_text("after", destination, source, page),
        ]
    return Group(*parts)


def _held_text(title: str, layout: LinearLayout, source: LinearLayout, page: Page) -> RenderableType:
    """What each lane holds, a line for each register, as much as fits; colours are those of the source's lanes."""
    owner: dict[int, int] = {}
    for warp in initial(source):
        for lane, held in enumerate(warp):
            for element in held:
                owner.setdefault(element, lane)
    state = initial(layout)
    colours = palette(len(initial(source)[0]))
    name: Callable[[int], str] = lambda element: ",".join(map(str, layout.unflatten(element)))  # noqa: E731
    width = max(len(name(element)) for element in owner) + 1
    width = max(width, len(f"t{len(state[0]) - 1}") + 1)
    fits = max(1, min(len(state[0]), (page.width - 6) // width))
    lines: list[Text] = []
    for w, warp in enumerate(state):
        left = f" of warp {w}" if len(state) > 1 else ""
        some = f", lanes 0 to {fits - 1}" if fits < len(warp) else ""
        lines.append(Text(f"{title}{left}{some}", "bold"))
        lines.append(Text("      " + "".join(f"{f't{lane}':>{width - 1}} " for lane in range(fits)).rstrip()))
        for register in range(len(warp[0])):
            line = Text(f"{f'r{register}':>5} ")
            for lane in range(fits):
                element = warp[lane][register]
                style = _on(colours[owner[element]]) if page.colour else Style()
                line.append(f"{name(element):>{width - 1}} ", style)
            lines.append(line)
    return Group(*lines)

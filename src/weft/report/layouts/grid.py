"""A tensor as a grid: each cell in the colour of the lane (or warp, or register) that holds it, as SVG.

What is drawn depends on the size of a cell, because labels in all cells of a 128x128 tensor cannot be read:

    cells of         up to        show
    40 px            16 columns   lane, register, how many hold it; stripes of all holders' colours
    28 px            32 columns   the same, smaller
    14 px            64 columns   the lane, where it fits
    7 px and less    256 columns  colours alone

Where cells have no text, the first 16x16 elements are drawn beside them in detail.

Warps (and blocks) are outlined and named where a region is wide enough. An element with several holders has a stripe for each, as
many as fit; an element without a holder is grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from weft.layout import LinearLayout
from weft.report.layouts.colours import Colour, palette
from weft.report.layouts.held import Held, Panel, counted, letter, panels, times
from weft.report.layouts.svg import CHARACTER, MARGIN, Svg, number, wrapped

_CELLS: Final = ((16, 40.0), (32, 28.0), (64, 14.0), (128, 7.0), (1 << 16, 4.0))
"""Up to how many columns (or twice as many rows) a panel has cells of which size."""
_WIDEST: Final = 1500
"""Slices go into a further row where they would be wider than this."""
_DETAIL: Final = 16
HIDDEN: Final = ' style="display:none"'
_SMALL: Final = 7
"""The size of what cells say that have room for a lane only."""


@dataclass(frozen=True)
class Drawn:
    """Where a panel is in a drawing: what a pointer needs to find the element under it."""

    panel: Panel
    x: float
    y: float
    cell: float

    @property
    def right(self) -> float:
        """Its right side."""
        return self.x + self.panel.columns * self.cell

    @property
    def bottom(self) -> float:
        """Its lower side."""
        return self.y + self.panel.rows * self.cell


def grid_svg(layout: LinearLayout, by: str | None = None, *, bits: int = 32, title: str | None = None) -> str:
    """The picture. ``by`` is an input dimension, or ``bank`` for a memory of elements of ``bits``; `ValueError` where it is
    neither, or the tensor is too large."""
    held = Held(layout, bits)
    svg = Svg()
    draw_grid(svg, held, held.by(by), MARGIN, MARGIN, title)
    return svg.document(title or heading(held, held.by(by)))


def heading(held: Held, by: str | None) -> str:
    """What the picture shows."""
    shape = " \N{MULTIPLICATION SIGN} ".join(map(str, held.layout.shape)) or "scalar"
    return f"{shape} by {by}" if by else shape


def grid_layers(held: Held) -> tuple[str, ...]:
    """What a picture that can be recoloured is coloured by: every key with several values, or else the only one."""
    return tuple(key for key in held.keys if held.size(key) > 1 and (key != "offset" or held.size(key) <= 256))


def draw_grid(
    svg: Svg,
    held: Held,
    by: str | None,
    x: float,
    y: float,
    title: str | None = None,
    layers: Sequence[str] = (),
    detail: bool = True,
) -> list[Drawn]:
    """Draws all slices with their captions, the left upper corner at (x, y). With ``layers`` the colours of each of these are
    there, in groups of the class ``by``, all but ``by``'s hidden. Without ``detail`` a large grid is alone."""
    y = draw_heading(svg, held, None if layers else by, x, y, title)
    drawn = place_panels(panels(held.layout), x + 34, y + 34)
    if detail and len(drawn) == 1 and not _labelled(held, drawn[0].cell):
        drawn.append(_detail(drawn[0]))
    bottom = max(at.bottom for at in drawn) + 14
    right = max(*(at.right for at in drawn), x + 360)
    svg.reach(right, bottom)
    ends: list[float] = []
    for key in layers or (by,):
        if layers:
            svg.add(f'<g class="by" data-by="{key}"{"" if key == by else HIDDEN}>')
        for at in drawn:
            draw_cells(svg, held, key, at)
        ends.append(draw_legend(svg, held, key, x, bottom, right))
        if layers:
            svg.add("</g>")
    for at in drawn:
        draw_axes(svg, held.layout, at)
        draw_labels(svg, held, at)
        draw_outlines(svg, held, at)
    if len(drawn) > 1 and drawn[-1].panel.base == drawn[0].panel.base:
        _frame(svg, drawn[0], drawn[-1])
    y = max(ends)
    for line in wrapped(str(held.layout), max(60, int((right - x) / (10 * CHARACTER)))):
        y += 15
        svg.text(x, y, 10, line, "start faint")
    return drawn


def draw_heading(svg: Svg, held: Held, by: str | None, x: float, y: float, title: str | None) -> float:
    """The title and what the layout has; returns where to go on."""
    svg.text(x, y + 12, 15, title or heading(held, by), "start bold")
    svg.text(x, y + 31, 11, counted(held.layout), "start faint")
    return y + 36


def place_panels(shown: Sequence[Panel], x: float, y: float) -> list[Drawn]:
    """The panels side by side, in as many rows as needed."""
    columns = max(max(panel.columns, panel.rows // 2) for panel in shown)
    if len(shown) > 1:
        columns *= 2 if len(shown) <= 4 else 4
    cell = next(size for most, size in _CELLS if columns <= most)
    drawn: list[Drawn] = []
    left, top = x, y
    for panel in shown:
        if left > x and left + panel.columns * cell > _WIDEST:
            left, top = x, top + panel.rows * cell + 64
        drawn.append(Drawn(panel, left, top + (20 if panel.label else 0), cell))
        left += panel.columns * cell + 48
    return drawn


def draw_axes(svg: Svg, layout: LinearLayout, at: Drawn) -> None:
    """Numbers along the upper and left side, and the dimensions' names."""
    panel = at.panel
    if panel.label:
        svg.text(at.x, at.y - 32, 11, panel.label, "start bold")
    size = 10 if at.cell >= 14 else 9
    names = layout.out_dims[-2:]
    if len(names) == 2:
        svg.text(at.x - 6, at.y - 5, size, f"{names[0]}\N{DOWNWARDS ARROW}", "end faint")
        svg.text(at.x, at.y - 18, size, f"{names[1]}\N{RIGHTWARDS ARROW}", "start faint")
    elif names:
        svg.text(at.x, at.y - 18, size, f"{names[0]}\N{RIGHTWARDS ARROW}", "start faint")
    for column in _ticks(panel.columns, at.cell, len(str(panel.columns)) * size * CHARACTER + 5):
        svg.text(at.x + (column + 0.5) * at.cell, at.y - 5, size, str(column), "faint")
    for row in _ticks(panel.rows, at.cell, size + 3):
        svg.text(at.x - 6, at.y + (row + 0.5) * at.cell + size * 0.35, size, str(row * panel.row_step), "end faint")


def _ticks(count: int, cell: float, room: float) -> range:
    """Which rows or columns have a number: every first, second, fourth, ..."""
    step = 1
    while step * cell < room:
        step *= 2
    return range(0, count, step)


def stripes(held: Held, element: int, by: str | None, most: int) -> tuple[int, ...]:
    """The indices of the colours of an element, at most ``most``; none where no thread holds it."""
    if not held.places[element]:
        return ()
    return held.values(element, by)[:most] if by else (0,)


def draw_cells(svg: Svg, held: Held, by: str | None, at: Drawn) -> None:
    """The colours: a group of one path for each."""
    colours = palette(held.size(by) if by else 1)
    most = max(1, int(at.cell // 5))
    paths: dict[Colour | None, list[str]] = {}
    for row in range(at.panel.rows):
        top = at.y + row * at.cell
        found = [stripes(held, at.panel.element(row, c), by, most) for c in range(at.panel.columns)]
        column = 0
        while column < len(found):
            count = 1
            while column + count < len(found) and found[column + count] == found[column] and len(found[column]) < 2:
                count += 1
            shown = found[column] or (None,)
            width = at.cell * count / len(shown)
            for i, index in enumerate(shown):
                left = at.x + column * at.cell + i * width
                box = f"M{number(left)} {number(top)}h{number(width)}v{number(at.cell)}h{number(-width)}z"
                paths.setdefault(None if index is None else colours[index], []).append(box)
            column += count
    svg.reach(at.right, at.bottom)
    svg.add(f'<g class="cells" data-by="{by or ""}">')
    for colour, boxes in sorted(paths.items(), key=lambda item: (item[0] is None, item[0].name if item[0] else "")):
        if colour:
            svg.colours.add(colour)
        svg.path("".join(boxes), colour.name if colour else "empty")
    svg.add("</g>")


def draw_labels(svg: Svg, held: Held, at: Drawn) -> None:
    """The lines between the cells and what each cell says, where there is room."""
    if at.cell >= 10:
        lines = [
            f"M{number(at.x + c * at.cell)} {number(at.y)}V{number(at.bottom)}" for c in range(1, at.panel.columns)
        ]
        lines += [f"M{number(at.x)} {number(at.y + r * at.cell)}H{number(at.right)}" for r in range(1, at.panel.rows)]
        svg.path("".join(lines), "grid", 1)
    if _labelled(held, at.cell):
        _labels(svg, held, at)


def _labelled(held: Held, cell: float) -> bool:
    """Whether a cell has room to say something."""
    if cell >= 20:
        return True
    return held.main is not None and len(str(held.size(held.main) - 1)) * _SMALL * CHARACTER < cell - 3


def _labels(svg: Svg, held: Held, at: Drawn) -> None:
    small, cell = at.cell < 20, at.cell
    for row in range(at.panel.rows):
        for column in range(at.panel.columns):
            element = at.panel.element(row, column)
            lines = cell_text(held, element)
            x, y = at.x + (column + 0.5) * cell, at.y + row * cell
            if not lines:
                continue
            first, *rest = lines
            if small:
                svg.text(x, y + cell * 0.68, _SMALL, first[1:])
                continue
            size = min(cell * 0.31, cell * 0.88 / (CHARACTER * max(3, len(first))))
            svg.text(x, y + cell * (0.56 if rest else 0.64), size, first, "bold")
            for second in rest:
                below = min(cell * 0.27, cell * 0.88 / (CHARACTER * len(second)))
                svg.text(x, y + cell * 0.87, below, second)


def cell_text(held: Held, element: int) -> tuple[str, ...]:
    """What a cell says: the first holder's lane and register, and how many hold it where they are several."""
    places = held.places[element]
    if not places or held.main is None:
        return ()
    repeated = times(places)
    first = f"{letter(held.main)}{held.index(places[0], held.main)}"
    if held.below is None:
        return (first, repeated) if repeated else (first,)
    second = f"{letter(held.below)}{held.index(places[0], held.below)}"
    return first, f"{second} {repeated}".strip()


def draw_outlines(svg: Svg, held: Held, at: Drawn) -> None:
    """Lines around what a warp (or block) holds, and its name in each region's corner; a frame where there is one warp."""
    panel, cell = at.panel, at.cell
    owners = [[held.owner(panel.element(r, c)) for c in range(panel.columns)] for r in range(panel.rows)]
    lines = [f"M{number(at.x)} {number(at.y)}H{number(at.right)}V{number(at.bottom)}H{number(at.x)}z"]
    for r, row in enumerate(owners):
        for c, owner in enumerate(row):
            left, top = at.x + c * cell, at.y + r * cell
            if c and row[c - 1] != owner:
                lines.append(f"M{number(left)} {number(top)}v{number(cell)}")
            if r and owners[r - 1][c] != owner:
                lines.append(f"M{number(left)} {number(top)}h{number(cell)}")
    svg.path("".join(lines), "line", 1 if not held.owners else 2 if cell >= 10 else 1.2)
    if not held.owners:
        return
    regions = _regions(owners)
    if len(regions) > 64:
        return
    for r, c, width, height in regions:
        name = _owner_name(held, owners[r][c])
        size = 7 if 20 <= cell < 36 else 9
        room = len(name) * size * CHARACTER + 5
        if room > width * cell * 0.75 or height * cell < size + 3:
            continue
        svg.rect(at.x + c * cell, at.y + r * cell, room, size + 2, "ink")
        svg.text(at.x + c * cell + room / 2, at.y + r * cell + size - 0.5, size, name, "page")


def _owner_name(held: Held, owner: tuple[tuple[int, ...], ...]) -> str:
    """``w3``; ``b1 w3``; ``w0-3`` where four warps hold the same."""
    parts: list[str] = []
    for dim, values in zip(held.owners, owner, strict=True):
        span = ",".join(map(str, values))
        if len(values) > 2 and sorted(values) == list(range(min(values), max(values) + 1)):
            span = f"{min(values)}-{max(values)}"
        parts.append(f"{letter(dim)}{span}")
    return " ".join(parts)


def _regions(owners: list[list[tuple[tuple[int, ...], ...]]]) -> list[tuple[int, int, int, int]]:
    """Connected regions of one owner: row and column of the first cell, how far that row goes, how many rows."""
    seen: set[tuple[int, int]] = set()
    found: list[tuple[int, int, int, int]] = []
    for r, row in enumerate(owners):
        for c, owner in enumerate(row):
            if (r, c) in seen or not any(owner):
                continue
            waiting, members = [(r, c)], {(r, c)}
            while waiting:
                i, j = waiting.pop()
                for near in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
                    inside = 0 <= near[0] < len(owners) and 0 <= near[1] < len(row)
                    if inside and near not in members and owners[near[0]][near[1]] == owner:
                        members.add(near)
                        waiting.append(near)
            seen |= members
            width = next(n for n in range(1, len(row) + 1) if (r, c + n) not in members)
            found.append((r, c, width, max(i for i, _ in members) - r + 1))
    return found


def _detail(whole: Drawn) -> Drawn:
    """The first elements of a large panel, beside it."""
    rows, columns = min(_DETAIL, whole.panel.rows), min(_DETAIL, whole.panel.columns)
    part = Panel("", whole.panel.base, rows, columns, whole.panel.stride, whole.panel.row_step)
    return Drawn(part, whole.right + 80, whole.y, 36)


def _frame(svg: Svg, whole: Drawn, part: Drawn) -> None:
    """Which part of a panel another one has."""
    rows, columns = part.panel.rows, part.panel.columns
    for line, extra in (("halo", ""), ("line", ' stroke-dasharray="4 3"')):
        svg.rect(whole.x, whole.y, columns * whole.cell, rows * whole.cell, line, f' stroke-width="3"{extra}')
    svg.text(part.x, part.y - 32, 11, f"the first {rows}\N{MULTIPLICATION SIGN}{columns}", "start bold")


def draw_legend(svg: Svg, held: Held, by: str | None, x: float, y: float, right: float) -> float:
    """What the colours mean; returns where to go on."""
    if by is None:
        return y
    count = held.size(by)
    svg.text(x, y + 11, 11, by, "start bold")
    start = x + max(48, len(by) * 8)
    left = start
    wide = max(22.0, len(str(count - 1)) * 7 + 8)
    for index, colour in enumerate(palette(count)[:64]):
        if left + wide > right:
            left, y = start, y + 18
        svg.colours.add(colour)
        svg.rect(left, y, wide - 2, 16, colour.name)
        svg.text(left + wide / 2 - 1, y + 11.5, 9.5, str(index))
        left += wide
    if count > 64:
        svg.text(left + 6, y + 12, 10, f"... {count - 1}", "start faint")
    return y + 16

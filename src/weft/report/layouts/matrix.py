"""The matrix of a layout with labelled rows and columns, as the paper draws it: ones in the colour of their input dimension.

A zero column is darker: indices that differ in that bit hold copies.
"""

from __future__ import annotations

from typing import Final

from weft.layout import LinearLayout
from weft.report.layouts.colours import Colour
from weft.report.layouts.svg import CHARACTER, MARGIN, Svg, number, wrapped

_CELL: Final = 26.0
_GAP: Final = 10.0
_HUES: Final = {"register": 235, "lane": 30, "warp": 145, "block": 325, "offset": 190}


def dimension_colour(dim: str, position: int) -> Colour:
    """The colour of an input dimension."""
    return Colour(_HUES.get(dim, (90 + 75 * position) % 360), 3)


def matrix_svg(layout: LinearLayout, title: str | None = None) -> str:
    """The picture."""
    svg = Svg()
    shown = title or heading(layout)
    svg.text(MARGIN, MARGIN + 12, 15, shown, "start bold")
    draw_matrix(svg, layout, MARGIN, MARGIN + 40)
    return svg.document(shown)


def heading(layout: LinearLayout) -> str:
    """What the picture shows."""
    count = len(layout.all_columns)
    kind = "invertible" if layout.is_invertible else "surjective" if layout.is_surjective else f"rank {layout.rank}"
    return f"{layout.out_bits} \N{MULTIPLICATION SIGN} {count} over F2, {kind}"


def draw_matrix(svg: Svg, layout: LinearLayout, x: float, y: float) -> None:
    """Draws the matrix with its labels, the left upper corner at (x, y)."""
    view = layout.matrix()
    names = max((len(name) for name, _ in view.row_dims), default=0) * 12 * CHARACTER
    left, top = x + names + 34, y + 32
    columns = _places([(name, bits) for name, bits in view.column_dims], left, 12)
    rows = _places([(name, bits) for name, bits in view.row_dims], top, 0)
    for (name, bits), starts in zip(view.column_dims, columns, strict=True):
        middle = starts[0] + max(bits * _CELL, len(name) * 12 * CHARACTER) / 2
        svg.text(middle, top - 22, 12, name, "bold")
        for bit in range(bits):
            svg.text(starts[bit] + _CELL / 2, top - 6, 10, str(bit), "faint")
    for (name, bits), starts in zip(view.row_dims, rows, strict=True):
        svg.text(left - 28, starts[0] + (bits * _CELL if bits else 12) / 2 + 4, 12, name, "end bold")
        for bit in range(bits):
            svg.text(left - 8, starts[bit] + _CELL / 2 + 3.5, 10, str(bit), "end faint")
    flat_columns = [
        start for (_, bits), starts in zip(view.column_dims, columns, strict=True) for start in starts[:bits]
    ]
    flat_rows = [start for (_, bits), starts in zip(view.row_dims, rows, strict=True) for start in starts[:bits]]
    owners = [(name, i) for i, (name, bits) in enumerate(view.column_dims) for _ in range(bits)]
    for j, (start, owner) in enumerate(zip(flat_columns, owners, strict=True)):
        for i, row in enumerate(flat_rows):
            one = view.entries[i][j]
            colour = dimension_colour(*owner)
            if one:
                svg.colours.add(colour)
            zero = "zero" if view.columns[j] else "empty"
            svg.rect(start + 1, row + 1, _CELL - 2, _CELL - 2, colour.name if one else zero, ' rx="3"')
            svg.text(
                start + _CELL / 2,
                row + _CELL / 2 + 4.5,
                13,
                "1" if one else "\N{MIDDLE DOT}",
                "bold" if one else "faint",
            )
    right = max([start + _CELL for start in flat_columns], default=left)
    bottom = max([start + _CELL for start in flat_rows], default=top + 8)
    svg.path(
        f"M{number(left)} {number(top - 2)}h-4V{number(bottom + 2)}h4"
        f"M{number(right)} {number(top - 2)}h4V{number(bottom + 2)}h-4",
        "line",
        1.5,
    )
    svg.reach(right + 6, bottom + 4)
    end = bottom + 8
    for line in wrapped(str(layout), max(60, int((svg.width - x) / (10 * CHARACTER)))):
        end += 15
        svg.text(x, end, 10, line, "start faint")


def _places(dims: list[tuple[str, int]], start: float, size: float) -> list[list[float]]:
    """Where each dimension's bits begin; a dimension is at least as wide as its name in text of ``size``."""
    found: list[list[float]] = []
    for name, bits in dims:
        found.append([start + bit * _CELL for bit in range(max(bits, 1))])
        start += max(bits * _CELL, len(name) * size * CHARACTER, 14.0) + _GAP
    return found

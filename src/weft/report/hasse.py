"""The order of a system's types as a picture: a self-contained SVG, types to the left become those to the right.

`weft.report.layered` places the nodes, and this module draws boxes and curves. Graphviz is not needed for a promotion lattice
of some twenty nodes. The picture runs from left to right, since names are wide and layers many; it has no background and two
sets of colours, of which the viewer's scheme (light or dark) picks one. Weak types have a dashed outline.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Final, TypeVar

from weft.report.layered import Drawing, draw

N = TypeVar("N", bound=Hashable)

_CHARACTER: Final = 7.6
"""Pixels a character of 12.5 px monospace is at most wide."""
_HEIGHT: Final = 24
_ROW: Final = 36
_GAP: Final = 44
_MARGIN: Final = 16
_TITLE: Final = 34

COLOURS: Final[dict[str, tuple[str, str, str, str]]] = {
    "bool": ("#f3f4f6", "#6b7280", "#374151", "#9ca3af"),
    "unsigned": ("#dcfce7", "#16a34a", "#14532d", "#4ade80"),
    "signed": ("#dbeafe", "#2563eb", "#1e3a8a", "#60a5fa"),
    "narrow": ("#fce7f3", "#db2777", "#831843", "#f472b6"),
    "float": ("#ffedd5", "#ea580c", "#7c2d12", "#fb923c"),
    "complex": ("#ede9fe", "#7c3aed", "#4c1d95", "#a78bfa"),
    "other": ("#fef9c3", "#a16207", "#713f12", "#facc15"),
}
"""Each category's fill and outline on a light page, then on a dark one."""


def hasse_svg(
    title: str, edges: Mapping[N, Sequence[N]], *, category: Mapping[N, str], label: Mapping[N, str], weak: frozenset[N]
) -> str:
    """An SVG of the graph ``edges`` (node -> the nodes directly above it). ``category`` is one of `COLOURS`."""
    drawing = draw(edges)
    columns = max((layer for layer, _ in drawing.nodes.values()), default=0) + 1
    widths = [0.0] * columns
    for node, (layer, _) in drawing.nodes.items():
        widths[layer] = max(widths[layer], len(label[node]) * _CHARACTER + 16)
    lefts = [_MARGIN + sum(widths[:i]) + _GAP * i for i in range(columns)]
    height = max((y for route in _points(drawing) for y in route), default=0.0) * _ROW + _HEIGHT + _TITLE + 2 * _MARGIN
    width = max(lefts[-1] + widths[-1] + _MARGIN, len(title) * _CHARACTER * 1.1 + 2 * _MARGIN)

    def y_of(place: float) -> float:
        return _TITLE + _MARGIN + place * _ROW + _HEIGHT / 2

    def box(node: N) -> tuple[float, float]:
        """A node's left and right side."""
        layer = drawing.nodes[node][0]
        half, middle = len(label[node]) * _CHARACTER / 2 + 8, lefts[layer] + widths[layer] / 2
        return middle - half, middle + half

    body: list[str] = []
    for (a, b), route in drawing.routes.items():
        stops = [(lefts[layer], lefts[layer] + widths[layer], y_of(place)) for layer, place in route]
        body.append(_curve(stops, box(a)[1], box(b)[0]))
    for node, (_, place) in drawing.nodes.items():
        left, right = box(node)
        y = y_of(place)
        shape = f"{category[node]}{' weak' if node in weak else ''}"
        body.append(
            f'<rect class="{shape}" x="{left:.1f}" y="{y - _HEIGHT / 2:.1f}" width="{right - left:.1f}" '
            f'height="{_HEIGHT}" rx="5"/>'
            f'<text x="{(left + right) / 2:.1f}" y="{y + 4.5:.1f}">{escape(label[node])}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(title)}">\n'
        f"<style>{_style()}</style>\n{_ARROW}\n"
        f'<text class="title" x="{_MARGIN}" y="{_MARGIN + 12}">{escape(title)}</text>\n'
        + "\n".join(body)
        + "\n</svg>\n"
    )


_ARROW: Final = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path class="tip" d="M0,0.8 L7,4 L0,7.2 z"/></marker></defs>'
)


def _points(drawing: Drawing[N]) -> list[list[float]]:
    """The places that the picture must have room for."""
    return [[y for _, y in drawing.nodes.values()], *([y for _, y in route] for route in drawing.routes.values())]


def _curve(columns: Sequence[tuple[float, float, float]], start: float, end: float) -> str:
    """A path from ``start`` in the first of the columns (left, right, y) to ``end`` in the last: level inside columns, where
    other boxes may be near, and bent between them."""
    path = [f"M{start:.1f},{columns[0][2]:.1f}"]
    for (_, right, y0), (left, _, y1) in pairwise(columns):
        bend = (right + left) / 2
        path.append(f"L{right:.1f},{y0:.1f} C{bend:.1f},{y0:.1f} {bend:.1f},{y1:.1f} {left:.1f},{y1:.1f}")
    path.append(f"L{end:.1f},{columns[-1][2]:.1f}")
    return f'<path class="edge" d="{" ".join(path)}" marker-end="url(#tip)"/>'


def _style() -> str:
    light = "".join(f".{name}{{fill:{fill};stroke:{line}}}" for name, (fill, line, _, _) in COLOURS.items())
    dark = "".join(f".{name}{{fill:{fill};stroke:{line}}}" for name, (_, _, fill, line) in COLOURS.items())
    return (
        "text{font:12.5px ui-monospace,'DejaVu Sans Mono',Consolas,monospace;text-anchor:middle;fill:#111827}"
        ".title{font-size:14px;font-weight:bold;text-anchor:start}"
        ".edge{fill:none;stroke:#6b7280;stroke-width:1.3}.tip{fill:#6b7280}rect{stroke-width:1.4}"
        ".weak{stroke-dasharray:4 3}" + light + "@media (prefers-color-scheme:dark){"
        "text{fill:#f3f4f6}.edge{stroke:#9ca3af}.tip{fill:#9ca3af}" + dark + "}"
    )

"""SVG documents that stand alone: no scripts, no fonts, no references; colours for light and dark pages.

Everything is under the class ``weft``, so that a picture inside an HTML page leaves the page's own style alone.
"""

from __future__ import annotations

from functools import lru_cache
from html import escape
from typing import Final

from weft.report.layouts.colours import Colour, rules

MARGIN: Final = 16
CHARACTER: Final = 0.605
"""The width of a monospace character of size 1, at most."""

_BASE: Final = """\
.weft text{font-family:ui-monospace,'DejaVu Sans Mono',Consolas,monospace;fill:#111827;text-anchor:middle}
.weft .start{text-anchor:start}.weft .end{text-anchor:end}.weft .bold{font-weight:bold}.weft .faint{fill:#6b7280}
.weft .ink{fill:#111827}.weft text.page{fill:#fff}.weft .empty{fill:#e5e7eb}.weft .zero{fill:#f3f4f6}.weft .alert{fill:#b91c1c}
.weft .line,.weft .grid,.weft .halo,.weft .alarm,.weft .flow,.weft .still{fill:none}
.weft .line{stroke:#111827}.weft .grid{stroke:#fff;stroke-opacity:.75}.weft .halo{stroke:#fff}.weft .alarm{stroke:#dc2626}
.weft .flow,.weft .still{stroke:#6b7280}.weft .still{stroke-opacity:.35}
.weft .s0{stroke:#2563eb}.weft .s1{stroke:#dc2626}.weft .s2{stroke:#15803d}.weft .s3{stroke:#9333ea}
"""
_DARK: Final = """\
.weft text{fill:#f3f4f6}.weft .faint{fill:#9ca3af}.weft .ink{fill:#f9fafb}.weft text.page{fill:#111827}.weft .empty{fill:#3b4252}
.weft .zero{fill:#1f2430}.weft .alert{fill:#fca5a5}
.weft .line{stroke:#f9fafb}.weft .grid,.weft .halo{stroke:#111827}.weft .alarm{stroke:#f87171}
.weft .flow,.weft .still{stroke:#9ca3af}
.weft .s0{stroke:#60a5fa}.weft .s1{stroke:#f87171}.weft .s2{stroke:#4ade80}.weft .s3{stroke:#c084fc}
"""


@lru_cache(maxsize=1 << 16)
def number(value: float) -> str:
    """A coordinate without needless digits."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


class Svg:
    """A drawing that grows: shapes are added, the size follows."""

    def __init__(self) -> None:
        self.body: list[str] = []
        self.width = 0.0
        self.height = 0.0
        self.colours: set[Colour] = set()

    def reach(self, x: float, y: float) -> None:
        """The drawing has something at a point."""
        self.width, self.height = max(self.width, x), max(self.height, y)

    def add(self, markup: str) -> None:
        """Adds markup as it is."""
        self.body.append(markup)

    def rect(self, x: float, y: float, width: float, height: float, classes: str, extra: str = "") -> None:
        """A rectangle."""
        self.reach(x + width, y + height)
        self.body.append(
            f'<rect class="{classes}" x="{number(x)}" y="{number(y)}" width="{number(width)}" height="{number(height)}"{extra}/>'
        )

    def text(self, x: float, y: float, size: float, text: str, classes: str = "") -> None:
        """A line of text, its middle (or ``start``, ``end``) at x, its baseline at y."""
        room = len(text) * size * CHARACTER
        self.reach(x + (room if "start" in classes else 0 if "end" in classes else room / 2), y)
        attribute = f' class="{classes}"' if classes else ""
        self.body.append(
            f'<text{attribute} x="{number(x)}" y="{number(y)}" font-size="{number(size)}">{escape(text)}</text>'
        )

    def path(self, points: str, classes: str, width: float | None = None) -> None:
        """A path; ``width`` is the stroke's."""
        stroke = "" if width is None else f' stroke-width="{number(width)}"'
        self.body.append(f'<path class="{classes}" d="{points}"{stroke}/>')

    def style(self) -> str:
        """The style sheet of what is drawn."""
        dark = _DARK + rules(self.colours, dark=True)
        return f"{_BASE}{rules(self.colours, dark=False)}\n@media (prefers-color-scheme:dark){{{dark}}}"

    def document(self, title: str) -> str:
        """The whole file; ``title`` is for those who cannot see it."""
        width, height = number(self.width + MARGIN), number(self.height + MARGIN)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="weft" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="{escape(title)}">\n<style>{self.style()}</style>\n'
            + "\n".join(self.body)
            + "\n</svg>\n"
        )


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` characters, broken after spaces where there are any."""
    lines: list[str] = []
    while len(text) > width:
        cut = text.rfind(" ", 1, width + 1)
        cut = width if cut <= 0 else cut
        lines.append(text[:cut].rstrip())
        text = text[cut:].lstrip()
    return [*lines, text] if text else lines

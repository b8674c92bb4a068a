"""A report as text: what ``print`` shows of an object that rich would draw in colours.

The same rich object is printed to a console without colours, of a width that does not depend on the terminal.
"""

from __future__ import annotations

import io
from typing import Final

from rich.console import Console, RenderableType

WIDTH: Final = 120
"""Columns where nothing else is asked."""


def plain(drawing: RenderableType, width: int = WIDTH) -> str:
    """The drawing without colours, no line ending in blanks."""
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, emoji=False, markup=False, color_system=None).print(drawing)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())

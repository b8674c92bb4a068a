"""Two layouts of one tensor side by side, and in which sense they are the same.

equal          the same labelled map
permuted       up to a permutation of registers: the same threads hold the same elements
different      some thread holds something else; a conversion moves elements
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, Literal

from rich.console import Group, RenderableType
from rich.text import Text

from weft.layout import LinearLayout, register_permutation
from weft.report.layouts.grid import draw_grid
from weft.report.layouts.held import Held
from weft.report.layouts.page import grid_fragment
from weft.report.layouts.page import page as page_of
from weft.report.layouts.svg import MARGIN, Svg
from weft.report.layouts.terminal import PAGE, Page, grid_text

Sameness = Literal["equal", "permuted", "different"]


@dataclass(frozen=True)
class Comparison:
    """Two layouts; `ValueError` where they are of different tensors."""

    a: LinearLayout
    b: LinearLayout

    def __post_init__(self) -> None:
        if dict(self.a.outputs) != dict(self.b.outputs):
            raise ValueError(f"compare: the layouts are of different tensors, {self.a} and {self.b}")

    @cached_property
    def sameness(self) -> Sameness:
        """In which sense they are the same."""
        if self.a.equal(self.b):
            return "equal"
        same = "register" in self.a.in_dims and register_permutation(self.a, self.b) is not None
        return "permuted" if same else "different"

    @cached_property
    def moved(self) -> int | None:
        """How many elements have, somewhere, another holder; None where the layouts have different dimensions or too many
        elements to look at each."""
        if any(layout.out_bits > 16 for layout in (self.a, self.b)) or self._threads(self.a) != self._threads(self.b):
            return None
        first, second = Held(self.a), Held(self.b.transpose_outs(self.a.out_dims))
        keys = [name for name, _ in self._threads(self.a)]

        def holders(held: Held, element: int) -> set[tuple[int, ...]]:
            return {tuple(held.index(place, key) for key in keys) for place in held.places[element]}

        return sum(holders(first, e) != holders(second, e) for e in range(1 << self.a.out_bits))

    @staticmethod
    def _threads(layout: LinearLayout) -> list[tuple[str, int]]:
        return sorted((name, len(columns)) for name, columns in layout.inputs if name != "register")

    def sentence(self) -> str:
        """The answer in words."""
        if self.sameness == "equal":
            return "equal: the same map"
        if self.sameness == "permuted":
            return "equal up to registers: the same threads hold the same elements, in other registers"
        if self.moved is None:
            return "different"
        return f"different: {self.moved} of {1 << self.a.out_bits} elements are held by other threads"

    def data(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        return {"a": str(self.a), "b": str(self.b), "sameness": self.sameness, "moved": self.moved}


def compare_svg(found: Comparison, by: str | None = None, *, bits: int = 32, title: str | None = None) -> str:
    """Both grids, one beside the other."""
    svg = Svg()
    svg.text(MARGIN, MARGIN + 12, 15, title or found.sentence(), "start bold")
    x = float(MARGIN)
    for layout in (found.a, found.b):
        held = Held(layout, bits)
        draw_grid(svg, held, held.by(by), x, MARGIN + 30, detail=False)
        x = svg.width + 40
    return svg.document(title or found.sentence())


def compare_page(found: Comparison, by: str | None = None, *, bits: int = 32) -> str:
    """Both grids with pointers, on one page."""
    grids = "".join(grid_fragment(layout, by, bits=bits) for layout in (found.a, found.b))
    return page_of(found.sentence(), f'<h1 class="weft-layout">{escape(found.sentence())}</h1>\n{grids}')


def compare_text(found: Comparison, by: str | None = None, *, bits: int = 32, page: Page = PAGE) -> RenderableType:
    """The answer and both grids, one below the other."""
    grids = [grid_text(layout, by, bits=bits, page=page) for layout in (found.a, found.b)]
    return Group(Text(found.sentence(), "bold"), Text(), grids[0], Text(), grids[1])

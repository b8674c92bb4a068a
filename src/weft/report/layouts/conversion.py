"""A conversion as its steps (the paper's figure 3 for any): states one below the other, and what happens between them.

A state is a table, a column for each lane and a row for each register; a cell is an element, in the colour of the lane (or
warp, where warps exchange) that held it at first. So a step is seen as colours that move. Small tensors are drawn as the
paper does: a lane's registers side by side and a line for each element, pale where it stays in its lane.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Final

from weft.layout import ConversionPlan, LinearLayout
from weft.report.layouts.colours import Colour, palette
from weft.report.layouts.stages import Stage, cost_text, stages
from weft.report.layouts.svg import CHARACTER, MARGIN, Svg, number, wrapped

_MOST_ROWS: Final = 16
"""Tables with more registers are small: no text in their cells, up to four warps side by side rather than two."""


def conversion_svg(
    source: LinearLayout, destination: LinearLayout, plan: ConversionPlan, title: str | None = None
) -> str:
    """The picture."""
    svg = Svg()
    shown = title or f"conversion of {'x'.join(map(str, source.shape)) or 'a scalar'}: {KINDS[plan.kind]}"
    svg.text(MARGIN, MARGIN + 12, 15, shown, "start bold")
    draw_conversion(svg, source, destination, plan, MARGIN, MARGIN + 34)
    return svg.document(shown)


KINDS: Final = {
    "nothing": "nothing moves",
    "registers": "registers renamed",
    "warp": "lanes exchange",
    "halves": "half of it through memory",
    "memory": "through memory",
}
"""The kinds of plans in words."""


def plan_lines(plan: ConversionPlan) -> list[str]:
    """Why the plan is what it is, and what it costs."""
    bound = cost_text(plan.lower_bound)
    return [
        plan.reason,
        f"costs {cost_text(plan.cost)}" + (f"; no plan takes less than {bound}" if bound != "nothing" else ""),
    ]


def draw_conversion(
    svg: Svg, source: LinearLayout, destination: LinearLayout, plan: ConversionPlan, x: float, y: float
) -> None:
    """Draws all states, the left upper corner at (x, y)."""
    found = stages(source, destination, plan)
    first = found[0].state
    warps, lanes = len(first), len(first[0])
    by_warp = warps > 1 and plan.kind in ("memory", "halves")
    origin: dict[int, int] = {}
    for w, warp in enumerate(first):
        for lane, held in enumerate(warp):
            for element in held:
                origin.setdefault(element, w if by_warp else lane)
    registers = max(len(stage.state[0][0]) for stage in found)
    table = _Table(svg, source, palette(warps if by_warp else lanes), origin, registers)
    if warps == 1 and all(stage.moves for stage in found[1:]):
        y = table.draw_lines(found, x + 90, y)
    else:
        y = table.draw(found, x + 40, y)
    note = f"coloured by the {'warp' if by_warp else 'lane'} that held the element at first"
    if warps > table.warps:
        note += f"; the first {table.warps} of {warps} warps"
    y += 20
    for line in (note, *plan_lines(plan), f"from {source}", f"to   {destination}"):
        for part in wrapped(line, max(90, int((svg.width - x) / (10.5 * CHARACTER)))):
            svg.text(x, y, 10.5, part, "start faint")
            y += 15


class _Table:
    """Draws the states of one conversion, all cells alike."""

    def __init__(
        self, svg: Svg, layout: LinearLayout, colours: tuple[Colour, ...], origin: dict[int, int], registers: int
    ) -> None:
        self.svg, self.layout, self.colours, self.origin = svg, layout, colours, origin
        self.compact = registers > _MOST_ROWS
        self.warps = 4 if self.compact else 2
        longest = max(len(self.name(element)) for element in (0, (1 << layout.out_bits) - 1))
        self.cell = 10.0 if self.compact else max(26.0, longest * 8.5 * CHARACTER + 5)

    def name(self, element: int) -> str:
        """An element's coordinates."""
        return ",".join(map(str, self.layout.unflatten(element)))

    def box(self, x: float, y: float, height: float, element: int) -> None:
        """A register: the element it holds, or that it holds none yet."""
        colour = None if element < 0 else self.colours[self.origin[element]]
        if colour:
            self.svg.colours.add(colour)
        self.svg.rect(x + 0.75, y + 0.75, self.cell - 1.5, height - 1.5, colour.name if colour else "zero")
        if colour:
            self.svg.text(x + self.cell / 2, y + height * 0.66, 8.5, self.name(element))

    def draw(self, found: Sequence[Stage], x: float, y: float) -> float:
        """All states with arrows between them; returns where to go on."""
        for i, stage in enumerate(found):
            if i:
                tall = max(30.0, 15.0 * len(stage.done) + 12)
                self.svg.path(f"M{number(x + 12)} {number(y + 2)}v{number(tall - 8)}m-5 -7l5 7l5 -7", "flow", 2)
                for j, line in enumerate(stage.done):
                    middle = y + tall / 2 - 7.5 * (len(stage.done) - 1) + 4
                    self.svg.text(x + 30, middle + 15 * j, 11.5, line, "start bold")
                y += tall
            if i in (0, len(found) - 1):
                self.svg.text(x, y + 10, 11, "destination" if i else "source", "start bold")
                y += 28 if self.compact else 16
            elif self.compact:
                y += 12
            y = self._state(stage, x, y)
        return y

    def _state(self, stage: Stage, x: float, y: float) -> float:
        """The tables of the first warps, one below the other, or side by side where cells say nothing."""
        row = 4.0 if self.compact else 20.0
        bottom = y
        for w, warp in enumerate(stage.state[: self.warps]):
            bottom = self._warp(w, stage, x, y, row)
            if self.compact:
                x += len(warp) * self.cell + 60
            else:
                y = bottom
        return bottom

    def _warp(self, w: int, stage: Stage, x: float, y: float, row: float) -> float:
        """One warp's table: a column for each lane, a row for each register; returns where to go on."""
        svg, warp, step = self.svg, stage.state[w], 8 if self.compact else 1
        if len(stage.state) > 1:
            svg.text(x - 40, y + (9 if not self.compact else -4), 10, f"warp {w}", "start bold")
        for lane in range(0, len(warp), step):
            svg.text(x + (lane + 0.5) * self.cell, y + 9, 9.5, f"t{lane}", "faint")
        y += 13
        for lane, held in enumerate(warp):
            if self.compact:
                self._column(x + lane * self.cell, y, row, held)
                continue
            for register, element in enumerate(held):
                self.box(x + lane * self.cell, y + register * row, row, element)
        for register in range(0, len(warp[0]), step):
            svg.text(x - 6, y + register * row + (7 if self.compact else 13.6), 9.5, f"r{register}", "end faint")
        return y + row * len(warp[0]) + 6

    def _column(self, x: float, y: float, row: float, held: Sequence[int]) -> None:
        """All registers of a lane, without what they hold: a box for each run of one colour."""
        for origin, run in groupby(held, lambda element: self.origin.get(element, -1)):
            height = row * len(list(run))
            if origin >= 0:
                self.svg.colours.add(self.colours[origin])
            self.svg.rect(x, y, self.cell - 0.5, height, self.colours[origin].name if origin >= 0 else "zero")
            y += height

    # Small tables: a lane's registers side by side, and a line for each element that moves

    def place(self, stage: Stage, lane: int, register: int) -> float:
        """The middle of a register in a line of all registers."""
        return lane * (len(stage.state[0][0]) * self.cell + 12) + (register + 0.5) * self.cell

    def draw_lines(self, found: Sequence[Stage], x: float, y: float) -> float:
        """All states, each in a line, with a line for each element between them, a colour for each round."""
        svg = self.svg
        widest = max(self.place(stage, len(stage.state[0]) - 1, len(stage.state[0][0]) - 1) for stage in found)
        y += 26
        for i, stage in enumerate(found):
            if i:
                gap = max(70.0, 18.0 * len(stage.done) + 10)
                self._flows(found[i - 1], stage, x, y, y + gap)
                middle = y + gap / 2 - 8 * (len(stage.done) - 1) + 4
                for j, line in enumerate(stage.done):
                    left = x + widest + self.cell / 2 + 20
                    if len(stage.moves) > 1:
                        svg.path(f"M{number(left)} {number(middle + 16 * j - 4)}h18", f"flow s{j % 4}", 2.5)
                        left += 26
                    svg.text(left, middle + 16 * j, 11.5, line, "start bold")
                y += gap
            for lane, held in enumerate(stage.state[0]):
                left = x + self.place(stage, lane, 0) - self.cell / 2
                middle = left + len(held) * self.cell / 2
                for register, element in enumerate(held):
                    at = left + register * self.cell
                    self.box(at, y, 24, element)
                    if i in (0, len(found) - 1) and len(held) > 1:
                        svg.text(at + self.cell / 2, y - 4 if not i else y + 34, 8.5, f"r{register}", "faint")
                if i in (0, len(found) - 1):
                    far = 16 if len(held) > 1 else 5
                    svg.text(middle, y - far if not i else y + 32 + far - 3, 10.5, f"t{lane}", "bold")
                svg.rect(left, y, len(held) * self.cell, 24, "line", ' stroke-width="1.2"')
            if i in (0, len(found) - 1):
                svg.text(x - 10, y + 16, 11, "destination" if i else "source", "end bold")
            y += 24
        return y + 28

    def _flows(self, before: Stage, stage: Stage, x: float, top: float, bottom: float) -> None:
        for index, moves in enumerate(stage.moves):
            paths: dict[str, list[str]] = {"still": [], f"flow s{index % 4}": []}
            for (_, lane, register), (_, lane2, register2) in moves:
                x1, x2 = x + self.place(before, lane, register), x + self.place(stage, lane2, register2)
                bend = (bottom - top) * 0.45
                points = (x1, top + 2, x1, top + bend, x2, bottom - bend, x2, bottom - 2)
                a, b, c, d, e, f, g, h = map(number, points)
                paths["still" if lane == lane2 else f"flow s{index % 4}"].append(f"M{a} {b}C{c} {d} {e} {f} {g} {h}")
            for kind, curves in paths.items():
                if curves:
                    self.svg.path("".join(curves), kind, 2)

"""Shared memory as banks and rows: which words one access of a warp touches, and where lanes collide.

A column is a bank and a row is 128 bytes (all banks once), as in the hardware. Of the access, one instruction of one warp is
drawn: its first vector. Its lanes go in *phases* (`memory.banks`); the first phase is in the lanes' colours, later ones are
pale, since linear layouts make them alike. In the first phase two different words in one column are a conflict: the bank is
marked with how many wavefronts it takes, and each word with which one serves it.

Rows that the instruction does not touch are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from weft.layout import SHARED, BankConflicts, Banks, LinearLayout, access_map, bank_conflicts, vectors
from weft.report.layouts.colours import palette
from weft.report.layouts.svg import CHARACTER, MARGIN, Svg, number, wrapped

_CELL: Final = 34.0
_ROW: Final = 22.0
_MOST_ROWS: Final = 128


@dataclass(frozen=True)
class Touched:
    """What one instruction of a warp does to a word: the lanes that want it, the phase they are in."""

    bank: int
    row: int
    lanes: tuple[int, ...]
    phase: int


@dataclass(frozen=True)
class Access:
    """One access to a memory: each warp moves the elements of ``distributed`` (of ``bits``) to or from ``memory``."""

    distributed: LinearLayout
    memory: LinearLayout
    bits: int
    vector: int | None = None
    banks: Banks = SHARED

    @cached_property
    def cost(self) -> BankConflicts:
        """What it costs."""
        return bank_conflicts(self.distributed, self.memory, self.bits, self.vector, self.banks)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """Of the first instruction of warp 0, the offset (in elements) of each lane's vector."""
        found = access_map(self.distributed, self.memory)
        registers = next(iter(vectors(found, self.cost.vector).registers()))
        lanes = found.in_size("lane") if "lane" in found.in_dims else 1
        place = {"lane": 0} if "lane" in found.in_dims else {}
        start = {"register": registers[0]} if "register" in found.in_dims else {}
        return tuple(
            found.flat(**start, **({"lane": lane} if place else {})) // self.cost.vector * self.cost.vector
            for lane in range(lanes)
        )

    @cached_property
    def words(self) -> tuple[Touched, ...]:
        """The words of that instruction, phase by phase."""
        lanes_of: dict[tuple[int, int], list[int]] = {}
        width = self.banks.phase_lanes(self.cost.vector_bits)
        for lane, offset in enumerate(self.offsets):
            first = offset * self.bits // self.banks.bits
            last = ((offset + self.cost.vector) * self.bits - 1) // self.banks.bits
            for word in range(first, last + 1):
                lanes_of.setdefault((lane // width, word), []).append(lane)
        count = self.banks.count
        return tuple(
            Touched(word % count, word // count, tuple(lanes), phase) for (phase, word), lanes in lanes_of.items()
        )

    def conflicts(self, phase: int = 0) -> dict[int, tuple[Touched, ...]]:
        """The banks that serve several words in a phase, with these words in the order they are served."""
        by_bank: dict[int, list[Touched]] = {}
        for word in self.words:
            if word.phase == phase:
                by_bank.setdefault(word.bank, []).append(word)
        return {bank: tuple(words) for bank, words in by_bank.items() if len(words) > 1}

    def sentence(self) -> str:
        """What it costs, in words."""
        cost = self.cost
        per = f"{cost.vector} \N{MULTIPLICATION SIGN} {self.bits} bits per lane"
        worst = "no conflicts" if cost.degree == 1 else f"{cost.degree}-way conflicts"
        return (
            f"{per}: {cost.per_request} wavefront{'s' if cost.per_request > 1 else ''} per instruction "
            f"({cost.phases} without conflicts), {worst}"
        )

    def total(self) -> str:
        """What all instructions cost, in words."""
        cost = self.cost
        return (
            f"{cost.requests} instructions of all warps take {cost.wavefronts} wavefronts, {cost.excess} for conflicts"
        )


def banks_svg(*accesses: Access, title: str | None = None) -> str:
    """The picture of accesses to one memory, one below the other. `ValueError` where the layouts do not fit each other."""
    svg = Svg()
    shown = title or f"shared memory: {accesses[0].banks.count} banks, the first instruction of warp 0"
    svg.text(MARGIN, MARGIN + 12, 15, shown, "start bold")
    for access in accesses:
        y = svg.height + 22
        svg.text(MARGIN, y, 11.5, access.sentence(), "start" + (" alert" if access.cost.degree > 1 else ""))
        svg.text(MARGIN, y + 16, 11, access.total(), "start faint")
        draw_banks(svg, access, MARGIN + 52, y + 60)
        for line in wrapped(f"{access.distributed}", int((svg.width - MARGIN) / (10 * CHARACTER))):
            svg.text(MARGIN, svg.height + 16, 10, line, "start faint")
    for line in wrapped(f"memory {accesses[0].memory}", int((svg.width - MARGIN) / (10 * CHARACTER))):
        svg.text(MARGIN, svg.height + 16, 10, line, "start faint")
    return svg.document(shown)


def draw_banks(svg: Svg, access: Access, x: float, y: float) -> None:
    """Draws the banks and the rows that are touched, the left upper corner of the first row at (x, y)."""
    conflicts, rows = access.conflicts(), sorted({word.row for word in access.words})
    left_out = len(rows) - _MOST_ROWS
    rows = rows[:_MOST_ROWS]
    count = access.banks.count
    svg.text(x - 8, y - 24, 10, "bank", "end faint")
    svg.text(x - 8, y - 7, 10, "byte", "end faint")
    for bank in range(count):
        middle = x + (bank + 0.5) * _CELL
        served = len(conflicts.get(bank, (0,)))
        svg.text(middle, y - 24, 10, str(bank), "bold alert" if served > 1 else "faint")
        if served > 1:
            svg.text(middle, y - 7, 10, f"\N{MULTIPLICATION SIGN}{served}", "bold alert")
    tops: dict[int, float] = {}
    top = y
    for i, row in enumerate(rows):
        if i and row != rows[i - 1] + 1:
            svg.text(x - 8, top + 10, 10, "\N{VERTICAL ELLIPSIS}", "end faint")
            top += 14
        tops[row] = top
        svg.text(x - 8, top + _ROW * 0.66, 10, str(row * count * access.banks.bits // 8), "end faint")
        for bank in range(count):
            svg.rect(x + bank * _CELL + 1, top + 1, _CELL - 2, _ROW - 2, "zero")
        top += _ROW
    if left_out > 0:
        svg.text(x, top + 14, 11, f"and {left_out} more rows", "start faint")
    _words(svg, access, x, tops)
    notes: list[str] = []
    if conflicts:
        notes.append("red: words of one bank that one phase wants, with the number of the wavefront that serves each")
    if any(len(word.lanes) > 1 for word in access.words):
        notes.append("t0+: further lanes want the same word, which costs nothing")
    if any(word.phase for word in access.words):
        notes.append("pale: later phases of the instruction, which cost as much as the first")
    for note in notes:
        top += 16
        svg.text(x, top, 10.5, note, "start faint")
    draw_lanes(svg, len(access.offsets), x, top + 14)


def _words(svg: Svg, access: Access, x: float, tops: dict[int, float]) -> None:
    """The words that lanes want, and for those in conflict which wavefront has them."""
    colours = palette(max(1, len(access.offsets)))
    conflicts = access.conflicts()
    for word in access.words:
        if word.row not in tops:
            continue
        left, top = x + word.bank * _CELL, tops[word.row]
        pale = ' fill-opacity="0.3"' if word.phase else ""
        svg.colours.add(colours[word.lanes[0]])
        svg.rect(left + 1, top + 1, _CELL - 2, _ROW - 2, colours[word.lanes[0]].name, pale)
        collides = not word.phase and word.bank in conflicts
        text = f"t{word.lanes[0]}" + ("+" if len(word.lanes) > 1 else "")
        classes = "faint" if word.phase else "bold"
        svg.text(left + _CELL * (0.4 if collides else 0.5), top + _ROW * 0.66, 9, text, classes)
        if collides:
            order = conflicts[word.bank].index(word)
            box = (
                f"M{number(left + 1.5)} {number(top + 1.5)}h{number(_CELL - 3)}v{number(_ROW - 3)}h{number(3 - _CELL)}z"
            )
            svg.path(box, "alarm", 1.5)
            svg.text(left + _CELL - 3, top + _ROW * 0.48, 7.5, str(order + 1), "end")


def draw_lanes(svg: Svg, lanes: int, x: float, y: float) -> None:
    """The colours of the lanes."""
    svg.text(x - 8, y + 11, 11, "lane", "end bold")
    for lane, colour in enumerate(palette(lanes)):
        left, top = x + lane % 32 * _CELL, y + lane // 32 * 18
        svg.colours.add(colour)
        svg.rect(left + 1, top, _CELL - 2, 15, colour.name)
        svg.text(left + _CELL / 2, top + 11, 9.5, str(lane))

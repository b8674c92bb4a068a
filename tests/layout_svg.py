"""What the tests of pictures read out of an SVG: which colour is where, what texts there are."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html.parser import HTMLParser
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
_BOX = re.compile(r"M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z")


def parse(svg: str) -> ElementTree.Element:
    """The document; it has to be well formed, and inside its own bounds nothing may be negative."""
    root = ElementTree.fromstring(svg)
    assert root.tag == f"{SVG}svg"
    return root


def texts(root: ElementTree.Element) -> list[str]:
    """All texts in the order they are drawn."""
    return ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


@dataclass(frozen=True)
class Grid:
    """A grid that was drawn: ``colours[row][column]`` are the classes of the stripes from left to right."""

    colours: list[list[tuple[str, ...]]]
    x: float
    y: float
    cell: float


def grids(root: ElementTree.Element) -> list[Grid]:
    """The grids of a picture, from the paths in its groups ``cells``."""
    return [_grid(group) for group in root.iter(f"{SVG}g") if group.attrib.get("class") == "cells"]


def _grid(group: ElementTree.Element) -> Grid:
    boxes = [
        (*map(float, box), path.attrib["class"])
        for path in group.iter(f"{SVG}path")
        for box in _BOX.findall(path.attrib["d"])
    ]
    cell = float(boxes[0][3])
    x, y = min(float(box[0]) for box in boxes), min(float(box[1]) for box in boxes)
    rows = round((max(float(box[1]) for box in boxes) - y) / cell) + 1
    columns = round((max(float(box[0]) + float(box[2]) for box in boxes) - x) / cell)
    found: list[list[list[tuple[float, str]]]] = [[[] for _ in range(columns)] for _ in range(rows)]
    for left, top, width, height, name in boxes:
        assert height == cell
        first = (float(left) - x) / cell
        count = float(width) / cell
        for i in range(max(1, round(count))):
            found[round((float(top) - y) / cell)][int(first + 0.01) + i].append((float(left), str(name)))
    return Grid([[tuple(name for _, name in sorted(stripes)) for stripes in row] for row in found], x, y, cell)


def fills(style: str, dark: bool = False) -> dict[str, str]:
    """The colour of each colour class."""
    light, _, night = style.partition("@media (prefers-color-scheme:dark)")
    return dict(re.findall(r"\.weft \.(c\d+-\d)\{fill:(#[0-9a-f]{6})\}", night if dark else light))


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags(html: str) -> list[tuple[str, dict[str, str | None]]]:
    """All tags of a page with their attributes; each has to be closed in order."""
    reader = _Tags()
    reader.feed(html)
    reader.close()
    assert reader.open == []
    return reader.found


def loads_nothing(text: str) -> bool:
    """Whether a picture refers to nothing outside itself."""
    allowed: Iterable[str] = ("http://www.w3.org/2000/svg",)
    outside = [link for link in re.findall(r"https?://[^\s\"']+", text) if link not in allowed]
    return not outside and not re.search(r"\b(src|href|@import|url)\s*[=(]", text)

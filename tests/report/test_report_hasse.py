"""Pictures of orders: well-formed and self-contained, all types and edges there, nothing outside, no box on another."""

from __future__ import annotations

import re
from itertools import combinations
from xml.etree import ElementTree

import pytest

from weft import semantics
from weft.report.hasse import COLOURS, hasse_svg
from weft.report.types_graph import type_graph

SVG = "{http://www.w3.org/2000/svg}"

JAX_EDGES = """\
bool i*|i* uint8|i* int8|uint8 uint16|uint8 int16|uint16 uint32|uint16 int32|uint32 uint64|uint32 int64|uint64 f*|int8 int16
int16 int32|int32 int64|int64 f*|f* bfloat16|f* float16|f* c*|bfloat16 float32|float16 float32|float32 float64
float32 complex64|float64 complex128|c* complex64|complex64 complex128"""
"""The figure in JAX's documentation, "Type promotion semantics", read off by hand."""


def test_jax_is_drawn_as_its_documentation_draws_it() -> None:
    drawn = {(a, b) for a, above in type_graph("jax").edges.items() for b in above}
    documented = {tuple(edge.split()) for line in JAX_EDGES.splitlines() for edge in line.split("|")}
    assert documented <= drawn
    # The rest are the types the figure leaves out, which lead nowhere.
    assert {a for a, _ in drawn - documented} == {"i*", "f*"}
    assert all(re.match(r"u?int[24]$|float[48]_", b) for _, b in drawn - documented)


@pytest.mark.parametrize("name", semantics.SYSTEMS)
def test_every_system_has_a_picture(name: str) -> None:
    graph = type_graph(name)
    root = ElementTree.fromstring(graph.svg())
    boxes = [
        tuple(float(rect.attrib[key]) for key in ("x", "y", "width", "height")) for rect in root.iter(f"{SVG}rect")
    ]
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    title, *labels = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]
    edges = [path for path in root.iter(f"{SVG}path") if path.attrib["class"] == "edge"]
    assert title == graph.title
    assert title.startswith(f"{name}: ")
    assert sorted(labels) == sorted(graph.types)
    # The package of DALI has float16 but no arithmetic on it.
    assert {str(d) for d in semantics.get(name).dtypes} - set(labels) == ({"float16"} if name == "dali@2" else set())
    assert len(edges) == sum(map(len, graph.edges.values())) > 0
    assert all(min(x, y) >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
    for (x, y, w, h), (x2, y2, w2, h2) in combinations(boxes, 2):
        assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


def test_labels_fit_their_boxes() -> None:
    # A monospace character of 12.5 px is at most 0.61 em wide in the fonts named.
    root = ElementTree.fromstring(type_graph("jax").svg())
    widths = [float(rect.attrib["width"]) for rect in root.iter(f"{SVG}rect")]
    labels = ["".join(text.itertext()) for text in root.iter(f"{SVG}text")][1:]
    assert all(len(label) * 12.5 * 0.61 < width for label, width in zip(labels, widths, strict=True))


def test_edges_leave_and_reach_boxes() -> None:
    root = ElementTree.fromstring(type_graph("max").svg())
    rects = list(root.iter(f"{SVG}rect"))
    rights = {(round(float(r.attrib["x"]) + float(r.attrib["width"]), 1), float(r.attrib["y"]) + 12) for r in rects}
    lefts = {(float(r.attrib["x"]), float(r.attrib["y"]) + 12) for r in rects}
    for path in root.iter(f"{SVG}path"):
        if path.attrib["class"] == "edge":
            numbers = [float(n) for n in re.findall(r"-?\d+\.\d", path.attrib["d"])]
            assert any(abs(numbers[0] - x) < 0.2 and numbers[1] == y for x, y in rights)
            assert any(abs(numbers[-2] - x) < 0.2 and numbers[-1] == y for x, y in lefts)


def test_pictures_need_nothing_else_and_suit_both_schemes() -> None:
    svg = type_graph("jax").svg()
    assert svg.isascii()
    assert re.findall(r"https?://[^\"]+", svg) == ["http://www.w3.org/2000/svg"]
    assert "@media (prefers-color-scheme:dark)" in svg
    for fill, line, dark_fill, dark_line in COLOURS.values():
        assert f"fill:{fill};stroke:{line}" in svg
        assert f"fill:{dark_fill};stroke:{dark_line}" in svg


def _luminance(colour: str) -> float:
    """WCAG 2's relative luminance."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_text_is_readable() -> None:
    """Contrast of at least 7 (WCAG's AAA), in both schemes."""
    for fill, _, dark_fill, _ in COLOURS.values():
        for paper, ink in ((fill, "#111827"), (dark_fill, "#f3f4f6")):
            light, dark = sorted((_luminance(paper), _luminance(ink)), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 7, (paper, ink)


def test_labels_are_escaped() -> None:
    svg = hasse_svg("a < b", {"<x>": ()}, category={"<x>": "other"}, label={"<x>": "<x>"}, weak=frozenset())
    assert ["".join(t.itertext()) for t in ElementTree.fromstring(svg).iter(f"{SVG}text")] == ["a < b", "<x>"]


def test_weak_types_are_dashed() -> None:
    svg = type_graph("jax").svg()
    assert len(re.findall(r'<rect class="\w+ weak"', svg)) == 3


def test_data_has_what_the_picture_shows() -> None:
    data = type_graph("max").data()
    places = {node["type"]: (node["layer"], node["place"]) for node in data["nodes"]}
    assert len(places) == len(data["nodes"]) == len(semantics.max.dtypes)
    assert all(places[a][0] < places[b][0] for a, b in data["edges"])
    assert ["bool", "int8"] in data["edges"]

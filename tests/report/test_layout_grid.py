"""Pictures of tensors: the colour of each cell and what it says, against `LinearLayout.apply`; pages; degenerate tensors."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_svg import SVG, Grid, fills, grids, loads_nothing, parse, tags, texts
from weft.layout import LinearLayout, blocked, mma_swizzled, sliced
from weft.report.layouts import Held, grid_page, grid_svg, notebook_html
from weft.report.layouts.colours import palette

PAPER = LinearLayout.parse(
    "{register: [(0,1),(1,0)], lane: [(0,2),(0,4),(0,8),(2,0),(4,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 16]"
)
"""Layout A of the paper's figure 1."""


def holders(layout: LinearLayout, dim: str) -> dict[tuple[int, ...], list[int]]:
    """For each element the values of ``dim`` that hold it, by applying the layout to every index."""
    found: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for point in itertools.product(*(range(layout.in_size(d)) for d in reversed(layout.in_dims))):
        index = dict(zip(reversed(layout.in_dims), point, strict=True))
        element = tuple(layout.apply(index).values())
        if index[dim] not in found[element]:
            found[element].append(index[dim])
    return found


def assert_coloured(grid: Grid, layout: LinearLayout, dim: str) -> None:
    """Each cell has a colour for each holder, and two cells one colour iff one holder."""
    expected = holders(layout, dim)
    colour_of: dict[int, str] = {}
    for row, cells in enumerate(grid.colours):
        for column, colours in enumerate(cells):
            values = expected.get((row, column), [])
            most = max(1, int(grid.cell // 5))
            assert len(colours) == max(1, min(len(values), most))
            if not values:
                assert colours == ("empty",)
                continue
            for value, colour in zip(values, colours, strict=False):
                assert colour_of.setdefault(value, colour) == colour
    assert len(set(colour_of.values())) == len(colour_of)


@pytest.mark.parametrize("by", ["lane", "register", "warp"])
def test_the_papers_figure_1(by: str) -> None:
    root = parse(grid_svg(PAPER, by))
    [grid] = grids(root)
    assert (len(grid.colours), len(grid.colours[0]), grid.cell) == (16, 16, 40)
    assert_coloured(grid, PAPER, by)


def test_what_cells_say() -> None:
    found = texts(parse(grid_svg(PAPER)))
    # Each cell says its lane, then its register, row by row; they follow the title and the legend, before ticks and names.
    start = found.index("t0")
    cells = [(found[start + 2 * i], found[start + 2 * i + 1]) for i in range(256)]
    # The paper's own examples: (0,2), (2,3), (2,4).
    assert (cells[2], cells[2 * 16 + 3], cells[2 * 16 + 4]) == (("t1", "r0"), ("t9", "r1"), ("t10", "r0"))
    assert cells[15 * 16 + 15] == ("t31", "r3")
    assert found[start + 512 :].count("w0") == found[start + 512 :].count("w1") == 1


def test_warps_are_outlined() -> None:
    root = parse(grid_svg(PAPER))
    [grid] = grids(root)
    [outline] = [p.attrib["d"] for p in root.iter(f"{SVG}path") if p.attrib["class"] == "line"]
    inner = re.findall(r"M([\d.]+) ([\d.]+)(h|v)40(?!\d)", outline)
    # Warp 1 begins at row 8: sixteen pieces of one horizontal line.
    assert sorted((float(x), float(y), way) for x, y, way in inner) == [
        (grid.x + 40 * column, grid.y + 8 * 40, "h") for column in range(16)
    ]


@st.composite
def layouts(draw: st.DrawFn) -> LinearLayout:
    """Any linear map from registers and lanes to a matrix, injective or not, surjective or not."""
    sizes = [1 << draw(st.integers(0, 3)) for _ in range(2)]
    basis = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    bases = {dim: draw(st.lists(basis, max_size=most)) for dim, most in (("register", 2), ("lane", 4))}
    return LinearLayout(bases, {"dim0": sizes[0], "dim1": sizes[1]})


@given(layouts(), st.sampled_from(["lane", "register"]))
@settings(max_examples=60, deadline=None)
def test_cells_have_one_colour_iff_one_holder(layout: LinearLayout, by: str) -> None:
    svg = grid_svg(layout, by)
    root = parse(svg)
    [grid] = grids(root)
    assert_coloured(grid, layout, by)
    used = {colour for row in grid.colours for cell in row for colour in cell} - {"empty"}
    for dark in (False, True):
        known = fills(svg, dark)
        assert used <= known.keys()
        assert len({known[name] for name in used}) == len(used)


def test_duplicates_are_stripes_and_a_count() -> None:
    # Two lane bits of zeros: lanes 0, 4, 8, 12 hold element 0.
    layout = LinearLayout({"register": [], "lane": [[1], [2], [0], [0]]}, {"dim0": 4})
    root = parse(grid_svg(layout))
    [grid] = grids(root)
    assert [len(cell) for cell in grid.colours[0]] == [4, 4, 4, 4]
    assert len({name for cell in grid.colours[0] for name in cell}) == 16
    assert [text for text in texts(root) if "\N{MULTIPLICATION SIGN}4" in text] == ["r0 \N{MULTIPLICATION SIGN}4"] * 4


def test_many_holders_are_as_many_stripes_as_fit() -> None:
    layout = LinearLayout({"lane": [[0]] * 5}, {"dim0": 1})
    [grid] = grids(parse(grid_svg(layout)))
    assert [[len(cell) for cell in row] for row in grid.colours] == [[8]]


def test_elements_without_a_holder_are_grey() -> None:
    layout = LinearLayout({"register": [(0, 1)], "lane": [(1, 0)]}, {"dim0": 4, "dim1": 4})
    [grid] = grids(parse(grid_svg(layout)))
    assert [[cell == ("empty",) for cell in row] for row in grid.colours] == [
        [False, False, True, True],
        [False, False, True, True],
        [True] * 4,
        [True] * 4,
    ]


def test_128x128_has_colours_and_a_part_in_detail() -> None:
    layout = blocked((128, 128), (1, 8), (2, 16), (4, 1), (1, 0))
    svg = grid_svg(layout)
    whole, part = grids(parse(svg))
    assert (len(whole.colours), len(whole.colours[0]), whole.cell) == (128, 128, 7)
    assert_coloured(whole, layout, "lane")
    assert part.colours == [row[:16] for row in whole.colours[:16]]
    assert sum(bool(re.fullmatch(r"t\d+", text)) for text in texts(parse(svg))) == 256
    assert part.x > whole.x + 128 * 7
    assert len(svg) < 250_000


def test_cells_shrink_with_rows_too() -> None:
    for rows, cell in ((32, 40), (64, 28), (128, 14), (256, 7)):
        layout = blocked((rows, 4), (1, 4), (32, 1), (2, 1), (1, 0))
        assert grids(parse(grid_svg(layout)))[0].cell == cell


def test_a_memory_is_coloured_by_bank() -> None:
    # 16-bit elements: two to a word, so offset // 2 % 32 is the bank.
    layout = mma_swizzled((16, 64), 8, 1, 8)
    root = parse(grid_svg(layout, bits=16))
    whole = grids(root)[0]
    colour_of: dict[int, tuple[str, ...]] = {}
    for offset in range(1024):
        row, column = layout.unflatten(layout.flat(offset=offset))
        assert colour_of.setdefault(offset // 2 % 32, whole.colours[row][column]) == whole.colours[row][column]
    assert len(set(colour_of.values())) == 32


def test_three_dimensions_are_slices_side_by_side() -> None:
    layout = blocked((4, 8, 8), (1, 1, 2), (2, 4, 4), (2, 1, 1), (2, 1, 0))
    root = parse(grid_svg(layout))
    slices = grids(root)
    assert len(slices) == 4
    assert [text for text in texts(root) if text.startswith("dim0 =")] == [f"dim0 = {i}" for i in range(4)]
    assert [s.x for s in slices] == sorted(s.x for s in slices)
    assert len({s.y for s in slices}) == 1
    for i, grid in enumerate(slices):
        part = {e[1:]: lanes for e, lanes in holders(layout, "lane").items() if e[0] == i}
        assert len({cell for row in grid.colours for cell in row}) == len({tuple(v) for v in part.values()})


def test_a_vector_is_folded_into_rows() -> None:
    layout = blocked((128,), (4,), (32,), (1,), (0,))
    [grid] = grids(parse(grid_svg(layout)))
    assert (len(grid.colours), len(grid.colours[0])) == (4, 32)
    flat = [cell for row in grid.colours for cell in row]
    assert all((flat[i] == flat[j]) == (i // 4 == j // 4) for i in range(128) for j in range(128))
    # Rows are labelled with their first element.
    assert [text for text in texts(parse(grid_svg(layout))) if text in ("32", "64", "96")] == ["32", "64", "96"]


@pytest.mark.parametrize(
    ("layout", "cells", "says"),
    [
        (LinearLayout({}, {}), 1, []),
        (LinearLayout({"register": [], "lane": [], "warp": []}, {}), 1, ["t0", "r0"]),
        (blocked((1,), (1,), (32,), (4,), (0,)), 1, ["t0", "r0 \N{MULTIPLICATION SIGN}128", "w0-3"]),
        (LinearLayout({"register": [[1]]}, {"dim0": 2}), 2, ["r0", "r1"]),
        (LinearLayout({"lane": []}, {"dim0": 1, "dim1": 1}), 1, ["t0"]),
    ],
)
def test_degenerate_layouts_are_drawn(layout: LinearLayout, cells: int, says: list[str]) -> None:
    root = parse(grid_svg(layout))
    [grid] = grids(root)
    assert sum(map(len, grid.colours)) == cells
    assert [text for text in texts(root) if re.match(r"[trw]\d", text)] == says


def test_nothing_is_outside() -> None:
    for layout in (
        PAPER,
        sliced(PAPER, 0),
        LinearLayout({}, {}),
        blocked((4, 8, 8), (1, 1, 2), (2, 4, 4), (2, 1, 1), (2, 1, 0)),
    ):
        root = parse(grid_svg(layout))
        _, _, width, height = map(float, root.attrib["viewBox"].split())
        for text in root.iter(f"{SVG}text"):
            size, length = float(text.attrib["font-size"]), len("".join(text.itertext()))
            x, room = float(text.attrib["x"]), length * size * 0.605
            name = text.attrib.get("class", "")
            left = x if "start" in name else x - room if "end" in name else x - room / 2
            assert left >= 0
            assert left + room <= width
            assert float(text.attrib["y"]) <= height


def test_a_title_is_escaped() -> None:
    title = '<a & "b">'
    root = parse(grid_svg(PAPER, title=title))
    assert root.attrib["aria-label"] == title
    assert texts(root)[0] == title
    page = grid_page(PAPER, title=title)
    assert "<title>&lt;a &amp; &quot;b&quot;&gt;</title>" in page
    assert "<a &" not in page


# Colours


def luminance(colour: str) -> float:
    """WCAG's relative luminance."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("count", [1, 2, 4, 8, 16, 32, 64, 128, 256, 512])
def test_a_palette_has_as_many_colours_as_asked_for(count: int) -> None:
    colours = palette(count)
    for shades in ([c.light for c in colours], [c.dark for c in colours], [c.name for c in colours]):
        assert len(shades) == len(set(shades)) == count
    # Text is legible on each: WCAG asks for 4.5.
    assert min(contrast(c.light, "#111827") for c in colours) > 4.5
    assert min(contrast(c.dark, "#f3f4f6") for c in colours) > 4.5


def test_colours_of_a_warp_can_be_told_apart() -> None:
    # 20 of 255 in RGB is well above what is seen between areas that touch (about 4).
    for shade in ("light", "dark"):
        rgb = [[int(getattr(c, shade)[i : i + 2], 16) for i in (1, 3, 5)] for c in palette(32)]
        apart = [sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) ** 0.5 for p, q in itertools.combinations(rgb, 2)]
        assert min(apart) > 18


# Pages


def test_a_page_has_what_the_pointer_needs() -> None:
    page = grid_page(PAPER)
    found = tags(page)
    assert loads_nothing(page)
    buttons = [attributes["data-by"] for tag, attributes in found if tag == "button"]
    layers = [attributes["data-by"] for tag, attributes in found if tag == "g" and attributes.get("class") == "by"]
    hidden = [a["data-by"] for tag, a in found if tag == "g" and a.get("style") == "display:none"]
    assert buttons == layers == ["register", "lane", "warp"]
    assert hidden == ["register", "warp"]
    [data] = [json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script>', page)]
    assert data["inputs"] == [["register", [1, 16]], ["lane", [2, 4, 8, 32, 64]], ["warp", [128]]]
    assert data["thread"] == ["warp", "lane"]
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    drawn = grids(parse(svg))
    assert {(g.x, g.y, g.cell) for g in drawn} == {(p["x"], p["y"], p["cell"]) for p in data["panels"]}
    for grid, by in zip(drawn, layers, strict=True):
        assert_coloured(grid, PAPER, str(by))


def test_a_page_of_slices_says_where_each_is() -> None:
    page = grid_page(blocked((4, 8, 8), (1, 1, 2), (2, 4, 4), (2, 1, 1), (2, 1, 0)))
    [data] = [json.loads(text) for text in re.findall(r'<script type="application/json">(.*?)</script>', page)]
    assert [panel["base"] for panel in data["panels"]] == [0, 64, 128, 192]
    assert {(panel["rows"], panel["columns"], panel["stride"]) for panel in data["panels"]} == {(8, 8, 8)}


# Notebooks


def test_notebooks_draw_a_layout() -> None:
    html = PAPER._repr_html_()  # pyright: ignore[reportPrivateUsage]
    assert html == notebook_html(PAPER)
    assert html is not None
    assert html.startswith('<div class="weft-layout">')
    assert tags(html)[0] == ("div", {"class": "weft-layout"})
    # Styles of one output leave the rest of the notebook alone.
    for style in re.findall(r"<style>(.*?)</style>", html, re.DOTALL):
        rules = re.findall(r"([^{}@]+)\{[^{}]*\}", style.replace("@media (prefers-color-scheme:dark){", ""))
        assert all(".weft" in selector for rule in rules for selector in rule.split(",") if selector.strip())


def test_notebooks_print_what_is_too_large_or_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert blocked((256, 128), (1, 8), (2, 16), (4, 1), (1, 0))._repr_html_() is None  # pyright: ignore[reportPrivateUsage]
    assert LinearLayout.identity(1 << 24, "lane", "dim0")._repr_html_() is None  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setitem(sys.modules, "weft.report.layouts", None)
    assert PAPER._repr_html_() is None  # pyright: ignore[reportPrivateUsage]


def test_layouts_stand_alone() -> None:
    program = "import sys, weft.layout; print([m for m in sys.modules if m.startswith('weft.report')])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


# Errors


def test_errors_say_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"^cannot colour by 'column', the layout has \[register, lane, warp\]$"):
        grid_svg(PAPER, "column")
    with pytest.raises(ValueError, match=r"^cannot colour by 'bank', the layout has \[register, lane, warp\]$"):
        grid_svg(PAPER, "bank")
    with pytest.raises(ValueError, match=r"^a picture of 131072 elements, 512x256; expected at most 65536$"):
        Held(blocked((512, 256), (1, 8), (2, 16), (4, 1), (1, 0)))
    with pytest.raises(ValueError, match=r"^a picture of 2097152 registers or offsets; expected at most 1048576$"):
        Held(LinearLayout.zeros(1 << 21, "lane", "dim0"))

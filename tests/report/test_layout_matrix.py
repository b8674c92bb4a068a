"""Pictures of matrices: ones where the bases say, in the colour of their dimension, zero columns darker; side by side layouts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layout_svg import SVG, grids, loads_nothing, parse, texts
from weft.layout import LinearLayout, blocked
from weft.report.layouts import Comparison, compare_page, compare_svg, matrix_svg

PAPER = LinearLayout.parse(
    "{register: [(0,1),(1,0)], lane: [(0,2),(0,4),(0,8),(2,0),(4,0)], warp: [(8,0)]} -> [dim0: 16, dim1: 16]"
)


def cells(layout: LinearLayout) -> dict[tuple[float, float], str]:
    """The class of each cell by its place."""
    root = parse(matrix_svg(layout))
    return {(float(r.attrib["y"]), float(r.attrib["x"])): r.attrib["class"] for r in root.iter(f"{SVG}rect")}


def rows(layout: LinearLayout) -> list[list[str]]:
    """The classes row by row."""
    found = cells(layout)
    return [[name for (y2, _), name in sorted(found.items()) if y2 == y] for y in sorted({y for y, _ in found})]


def test_the_papers_matrix() -> None:
    # Column by column: register (j=1), (i=1); lane (j=2), (j=4), (j=8), (i=2), (i=4); warp (i=8).
    ones = [[name.startswith("c") for name in row] for row in rows(PAPER)]
    assert ones == [
        [bool(int(bit)) for bit in row]
        for row in ("01000000", "00000100", "00000010", "00000001", "10000000", "00100000", "00010000", "00001000")
    ]
    said = texts(parse(matrix_svg(PAPER)))
    assert said[0] == "8 \N{MULTIPLICATION SIGN} 8 over F2, invertible"
    assert [text for text in said if text.isalpha()] == ["register", "lane", "warp"]
    assert said.count("1") == 8 + 4  # the ones, and bit 1 of two inputs and two outputs
    assert said.count("\N{MIDDLE DOT}") == 56
    colours = {name for row in rows(PAPER) for name in row if name.startswith("c")}
    assert len(colours) == 3


@st.composite
def layouts(draw: st.DrawFn) -> LinearLayout:
    sizes = [1 << draw(st.integers(0, 3)) for _ in range(2)]
    basis = st.tuples(*(st.integers(0, size - 1) for size in sizes))
    bases = {dim: draw(st.lists(basis, max_size=3)) for dim in ("register", "lane")}
    return LinearLayout(bases, {"dim0": sizes[0], "dim1": sizes[1]})


@given(layouts())
@settings(max_examples=40, deadline=None)
def test_ones_are_where_the_bases_say(layout: LinearLayout) -> None:
    found = rows(layout)
    bases = [basis for dim in layout.in_dims for basis in layout.bases(dim)]
    bits = [(axis, bit) for axis, size in enumerate(layout.shape) for bit in range(size.bit_length() - 1)]
    if not bits or not bases:
        assert found == []
        return
    assert [[name.startswith("c") for name in row] for row in found] == [
        [bool(basis[axis] >> bit & 1) for basis in bases] for axis, bit in bits
    ]
    assert [[name == "empty" for name in row] for row in found] == [[not any(basis) for basis in bases]] * len(bits)


@pytest.mark.parametrize(
    "layout", [LinearLayout({}, {}), LinearLayout({"lane": [()]}, {}), LinearLayout({}, {"dim0": 4})]
)
def test_degenerate_matrices_are_drawn(layout: LinearLayout) -> None:
    assert cells(layout) == {}
    assert str(layout) in " ".join(texts(parse(matrix_svg(layout))))


def test_a_title_is_escaped() -> None:
    assert texts(parse(matrix_svg(PAPER, "<A> & B")))[0] == "<A> & B"
    assert loads_nothing(matrix_svg(PAPER))


# Comparisons

SWAPPED = PAPER.with_columns({"register": tuple(reversed(PAPER.columns("register")))})


def test_equal_layouts() -> None:
    assert Comparison(PAPER, PAPER).data() == {"a": str(PAPER), "b": str(PAPER), "sameness": "equal", "moved": 0}
    assert Comparison(PAPER, PAPER).sentence() == "equal: the same map"


def test_layouts_equal_up_to_registers() -> None:
    found = Comparison(PAPER, SWAPPED)
    assert (found.sameness, found.moved) == ("permuted", 0)
    assert found.sentence() == "equal up to registers: the same threads hold the same elements, in other registers"


def test_different_layouts() -> None:
    # Warp 0 has rows 0 to 7 of one layout and rows 0 to 3 and 8 to 11 of the other: half of the elements change their thread.
    other = LinearLayout.parse(
        "{register: [(0,1),(1,0)], lane: [(0,2),(0,4),(0,8),(2,0),(8,0)], warp: [(4,0)]} -> [dim0: 16, dim1: 16]"
    )
    found = Comparison(PAPER, other)
    assert (found.sameness, found.moved) == ("different", 128)
    assert found.sentence() == "different: 128 of 256 elements are held by other threads"
    svg = compare_svg(found)
    a, b = grids(parse(svg))
    assert a.x < b.x
    assert (len(a.colours), len(b.colours)) == (16, 16)
    assert compare_page(found).count('<div class="weft-layout">') == 2
    assert loads_nothing(compare_page(found))


def test_layouts_of_different_machines_are_different() -> None:
    other = blocked((16, 16), (1, 1), (2, 16), (8, 1), (1, 0))
    found = Comparison(PAPER, other)
    assert (found.sameness, found.moved, found.sentence()) == ("different", None, "different")


def test_comparing_different_tensors_is_an_error() -> None:
    other = blocked((8, 8), (1, 1), (4, 8), (1, 1), (1, 0))
    with pytest.raises(ValueError) as error:
        Comparison(PAPER, other)
    assert str(error.value) == f"compare: the layouts are of different tensors, {PAPER} and {other}"

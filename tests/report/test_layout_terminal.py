"""Layouts in the terminal: the text of cells, their colours, what is left out where there is no room."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType
from rich.segment import Segment

from weft.layout import LinearLayout, blocked, plan_conversion, unswizzled, vector, vector_machine
from weft.layout.planning.machine import HOPPER
from weft.report.layouts import Access, Page, banks_text, conversion_text, grid_text, matrix_text
from weft.report.layouts.colours import palette

SMALL = LinearLayout.parse("{register: [(0,1)], lane: [(0,2),(1,0)], warp: [(2,0)]} -> [dim0: 4, dim1: 4]")


def lines(shown: RenderableType, width: int = 120) -> list[str]:
    """What is printed, without colours and trailing blanks."""
    out = Console(file=io.StringIO(), width=width, color_system=None)
    out.print(shown, soft_wrap=True)
    assert isinstance(out.file, io.StringIO)
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def segments(shown: RenderableType, width: int = 160) -> list[Segment]:
    """What is printed, with styles."""
    out = Console(file=io.StringIO(), width=width, color_system="truecolor", force_terminal=True)
    return list(out.render(shown))


def backgrounds(found: list[Segment]) -> list[tuple[str, str]]:
    """(text, background) of what has one."""
    return [
        (s.text, s.style.bgcolor.get_truecolor().hex)
        for s in found
        if s.style is not None and s.style.bgcolor is not None and s.text.strip()
    ]


def test_cells_name_warp_lane_and_register() -> None:
    assert lines(grid_text(SMALL)) == [
        "4 x 4 by lane",
        "2 registers, 4 lanes, 2 warps; cells: warp.lane.register",
        "",
        "      0     1     2     3",
        "0 0.0.0 0.0.1 0.1.0 0.1.1",
        "1 0.2.0 0.2.1 0.3.0 0.3.1",
        "2 1.0.0 1.0.1 1.1.0 1.1.1",
        "3 1.2.0 1.2.1 1.3.0 1.3.1",
        "{register: [(0,1)], lane: [(0,2),(1,0)], warp: [(2,0)]} -> [dim0: 4, dim1: 4]",
    ]


@pytest.mark.parametrize(("by", "at"), [("warp", 0), ("lane", 1), ("register", 2)])
def test_colours_are_equal_iff_what_they_stand_for_is(by: str, at: int) -> None:
    cells = backgrounds(segments(grid_text(SMALL, by)))
    assert len(cells) == 16
    values = [int(text.strip().split(".")[at]) for text, _ in cells]
    light = [colour.light for colour in palette(SMALL.in_size(by))]
    assert [colour for _, colour in cells] == [light[value] for value in values]


def test_lanes_alone_where_there_is_less_room() -> None:
    assert lines(grid_text(SMALL, page=Page(12)), 12)[1].endswith("cells: lane")
    assert lines(grid_text(SMALL, page=Page(12)), 12)[3:8] == [
        "  0 1 2 3",
        "0 0 0 1 1",
        "1 2 2 3 3",
        "2 0 0 1 1",
        "3 2 2 3 3",
    ]


def test_a_large_grid_is_half_blocks() -> None:
    layout = blocked((128, 128), (1, 8), (2, 16), (4, 1), (1, 0))
    found = segments(grid_text(layout, page=Page(160)))
    blocks = [s for s in found if "\N{UPPER HALF BLOCK}" in s.text]
    light = [colour.light for colour in palette(32)]
    pairs: list[tuple[str, str]] = []
    for block in blocks:
        assert block.style
        assert block.style.color
        assert block.style.bgcolor
        pair = (block.style.color.get_truecolor().hex, block.style.bgcolor.get_truecolor().hex)
        pairs += [pair] * len(block.text)
    assert len(pairs) == 64 * 128
    # Lane bits: 8, 16, 32, 64 of columns, 1 of rows.
    for row in range(64):
        for column in range(128):
            assert pairs[row * 128 + column] == (light[column // 8], light[column // 8 + 16])
    assert [s.text for s in found if s.text.strip() == "31"] == [" 31 "]


def test_what_does_not_fit_is_left_out_and_said() -> None:
    layout = blocked((4, 128), (1, 8), (2, 16), (4, 1), (1, 0))
    found = lines(grid_text(layout, page=Page(120, colour=False)))
    assert found[1] == "8 registers, 32 lanes, 4 warps; cells: lane"
    assert found[4].split() == ["0", *[str(column // 8) for column in range(32)]]
    assert found[8] == "columns 32 to 127 need a terminal of 386 columns; --svg and --html show all"


def test_duplicates_and_gaps_are_said() -> None:
    layout = LinearLayout({"register": [], "lane": [(1,), (0,)]}, {"dim0": 4})
    assert lines(grid_text(layout)) == [
        "4 by lane",
        "1 register, 4 lanes; cells: lane",
        "",
        "  0 1 2 3",
        "0 0 1 - -",
        "held up to 2 times; cells name the first holder",
        "{register: [], lane: [1,0]} -> [dim0: 4]",
    ]


def test_slices_are_side_by_side() -> None:
    layout = vector((2, 2, 4), 4)
    assert lines(grid_text(layout))[3:7] == [
        "dim0 = 0             dim0 = 1",
        "    0   1   2   3        0   1   2   3",
        "0 0.0 1.0 2.0 3.0    0 0.2 1.2 2.2 3.2",
        "1 0.1 1.1 2.1 3.1    1 0.3 1.3 2.3 3.3",
    ]


@pytest.mark.parametrize(
    ("layout", "cell"),
    [(LinearLayout({}, {}), "."), (vector((), 4), "0"), (blocked((1,), (1,), (32,), (4,), (0,)), "0.0")],
)
def test_degenerate_grids(layout: LinearLayout, cell: str) -> None:
    assert any(line.split() == ["0", cell] for line in lines(grid_text(layout)))


def test_banks_are_columns() -> None:
    # 32 lanes read a column of a 32x32 float32 matrix: row by row the same bank.
    column = LinearLayout(
        {"lane": [(1 << bit, 0) for bit in range(5)], "register": [(0, 1 << bit) for bit in range(5)]},
        {"dim0": 32, "dim1": 32},
    )
    found = lines(banks_text(Access(column, unswizzled((32, 32)), 32, 1), page=Page(140)), 140)
    assert found[0] == "shared memory: 32 banks, the first instruction of warp 0"
    assert found[1] == "1 x 32 bits per lane: 32 wavefronts per instruction (1 without conflicts), 32-way conflicts"
    table = [line.split() for line in found if line.rstrip().endswith(".")]
    assert table == [[str(128 * lane), f"{lane}!", *["."] * 31] for lane in range(32)]
    assert next(line for line in found if line.startswith("byte")).split() == ["byte", "x32"]


def test_banks_without_conflicts() -> None:
    row = LinearLayout(
        {"lane": [(0, 1 << bit) for bit in range(5)], "register": [(1 << bit, 0) for bit in range(5)]},
        {"dim0": 32, "dim1": 32},
    )
    found = lines(banks_text(Access(row, unswizzled((32, 32)), 32), page=Page(140)), 140)
    assert next(line for line in found if line.startswith("   0 ")).split() == ["0", *map(str, range(32))]
    assert not any("!" in line for line in found)


def test_the_matrix_is_coloured() -> None:
    found = segments(matrix_text(SMALL))
    plain = lines(matrix_text(SMALL, page=Page(colour=False)))
    assert plain[2:8] == [
        "          register  lane  warp",
        "          0         0  1  0",
        "dim0  0   .         .  1  .",
        "      1   .         .  .  1",
        "dim1  0   1         .  .  .",
        "      1   .         1  .  .",
    ]
    ones = backgrounds(found)
    assert [text for text, _ in ones] == ["1", "1", "1", "1"]
    lane, warp, register, other = [colour for _, colour in ones]
    assert lane == other
    assert len({lane, warp, register}) == 3


def test_conversions_list_their_steps() -> None:
    a, b = vector((2, 4), 4), vector((2, 4), 4, (0, 1))
    found = lines(conversion_text(a, b, plan_conversion(a, b, 32, vector_machine(4)), page=Page(120, colour=False)))
    assert found[:6] == ["2x4: lanes exchange", f"from {a}", f"to   {b}", "", "  1  2 shuffles", ""]
    assert found[-9:] == [
        "before",
        "       t0  t1  t2  t3",
        "   r0 0,0 0,1 0,2 0,3",
        "   r1 1,0 1,1 1,2 1,3",
        "",
        "after",
        "       t0  t1  t2  t3",
        "   r0 0,0 1,0 0,1 1,1",
        "   r1 0,2 1,2 0,3 1,3",
    ]


def test_conversions_through_memory_list_their_parts() -> None:
    a, b = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0)), blocked((64, 64), (8, 1), (8, 4), (1, 4), (0, 1))
    plan = plan_conversion(a, b, 16, HOPPER)
    found = lines(conversion_text(a, b, plan))
    assert found[0] == "64x64: through memory"
    assert found[4] == f"  1  {plan.steps[0]}"
    assert plan.reason in found


def test_nothing_to_do_is_said() -> None:
    a = vector((2, 4), 4)
    assert "     nothing to do" in lines(conversion_text(a, a, plan_conversion(a, a, 32, vector_machine(4))))

"""Pictures of conversions: states follow the plan and end where the destination says, moves are moves, figure 3 is figure 3."""

from __future__ import annotations

import random
import re

import pytest

from layout_svg import SVG, loads_nothing, parse, texts
from weft.layout import ConversionPlan, LinearLayout, blocked, nvidia_mma, plan_conversion, vector, vector_machine
from weft.layout.planning.machine import CDNA, HOPPER, MachineModel
from weft.layout.planning.steps import Cost
from weft.report.layouts import conversion_svg, cost_text, stages

FOUR = MachineModel("four", lanes=4)
# Figure 3: four threads of two registers, no thread keeps both of its elements.
FROM = LinearLayout.parse("{register: [(0,1)], lane: [(0,2),(1,0)]} -> [dim0: 2, dim1: 4]")
TO = LinearLayout.parse("{register: [(1,0)], lane: [(0,1),(0,2)]} -> [dim0: 2, dim1: 4]")


def pairs() -> list[tuple[LinearLayout, LinearLayout, ConversionPlan]]:
    rows, columns = blocked((16, 16), (1, 2), (4, 8), (1, 1), (1, 0)), blocked((16, 16), (2, 1), (8, 4), (1, 1), (0, 1))
    wide, tall = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0)), blocked((64, 64), (8, 1), (8, 4), (1, 4), (0, 1))
    mma = nvidia_mma((64, 64), 2, (2, 2), (16, 8))
    cdna = blocked((32, 32), (1, 4), (8, 8), (2, 1), (1, 0)), blocked((32, 32), (4, 1), (8, 8), (2, 1), (0, 1))
    cpu = vector((8, 16), 8), vector((8, 16), 8, (0, 1))
    found: list[tuple[LinearLayout, LinearLayout, ConversionPlan]] = [
        (FROM, TO, plan_conversion(FROM, TO, 32, FOUR)),
        (TO, FROM, plan_conversion(TO, FROM, 16, FOUR)),
        (*cpu, plan_conversion(*cpu, 32, vector_machine(8))),
        (*cdna, plan_conversion(*cdna, 16, CDNA)),
    ]
    found += [(a, b, plan_conversion(a, b, 16, HOPPER)) for a, b in ((rows, columns), (columns, rows), (rows, rows))]
    found += [(a, b, plan_conversion(a, b, 16, HOPPER)) for a, b in ((wide, tall), (wide, mma), (mma, wide))]
    return found


@pytest.mark.parametrize(("source", "destination", "plan"), pairs(), ids=str)
def test_states_begin_and_end_as_the_layouts_say(
    source: LinearLayout, destination: LinearLayout, plan: ConversionPlan
) -> None:
    found = stages(source, destination, plan)
    for layout, stage in ((source, found[0]), (destination, found[-1])):
        for w, warp in enumerate(stage.state):
            for t, lane in enumerate(warp):
                for r, element in enumerate(lane):
                    index = {"warp": w, "lane": t, "register": r}
                    assert element == layout.flat(**{d: i for d, i in index.items() if d in layout.in_dims})
    for before, after in zip(found, found[1:], strict=False):
        for move in (m for round_ in after.moves for m in round_):
            (w, t, r), (w2, t2, r2) = move
            assert before.state[w][t][r] == after.state[w2][t2][r2]
    root = parse(conversion_svg(source, destination, plan))
    assert loads_nothing(conversion_svg(source, destination, plan))
    # Two warps with what their cells say, or four where there are too many registers for that.
    shown = 2 if max(len(stage.state[0][0]) for stage in found) <= 16 else 4
    cells = sum(len(warp) * len(warp[0]) for stage in found for warp in stage.state[:shown])
    boxes = [rect for rect in root.iter(f"{SVG}rect") if re.match(r"c\d|zero", rect.attrib["class"])]
    # A register has a box; where they are too many, a run of one colour has one, 4 high for each.
    assert sum(float(box.attrib["height"]) / 4 if shown == 4 else 1 for box in boxes) == cells


def test_figure_3() -> None:
    plan = plan_conversion(FROM, TO, 32, FOUR)
    source, destination = stages(FROM, TO, plan)
    # R(0) = 0 and R(1) = (0,1,0): two rounds of shuffles, in each of which every thread sends and receives one element.
    assert destination.done == ("round 1 of 2: shfl.idx", "round 2 of 2: shfl.idx")
    for moves in destination.moves:
        assert sorted(source[1] for source, _ in moves) == [0, 1, 2, 3]
        assert sorted(target[1] for _, target in moves) == [0, 1, 2, 3]
    assert len({target for moves in destination.moves for _, target in moves}) == 8
    assert source.state == (((0, 1), (2, 3), (4, 5), (6, 7)),)
    assert destination.state == (((0, 4), (1, 5), (2, 6), (3, 7)),)
    root = parse(conversion_svg(FROM, TO, plan))
    said = texts(root)
    assert [text for text in said if re.fullmatch(r"\d,\d", text)] == [
        *("0,0", "0,1", "0,2", "0,3", "1,0", "1,1", "1,2", "1,3"),
        *("0,0", "1,0", "0,1", "1,1", "0,2", "1,2", "0,3", "1,3"),
    ]
    curves = [p.attrib for p in root.iter(f"{SVG}path") if "C" in p.attrib["d"]]
    drawn = sum(p["d"].count("C") for p in curves)
    assert drawn == 8
    # A line is pale iff its element stays in its lane: (0,0) in lane 0, (1,3) in lane 3.
    assert sum(p["d"].count("C") for p in curves if p["class"] == "still") == 2


def test_rounds_of_larger_exchanges_fill_the_registers() -> None:
    # One bit of registers with one of lanes, 32-bit elements: two rounds, of which one stays in its lanes.
    source = blocked((64,), (2,), (32,), (1,), (0,))
    destination = LinearLayout({"register": [[2]], "lane": [[1], [4], [8], [16], [32]], "warp": []}, {"dim0": 64})
    found = stages(source, destination, plan_conversion(source, destination, 32, HOPPER))
    assert [stage.done for stage in found] == [
        ("source",),
        ("round 1 of 2: own lane, no shuffle",),
        ("round 2 of 2: shfl.bfly",),
    ]
    assert [sum(e < 0 for lane in stage.state[0] for e in lane) for stage in found] == [0, 32, 0]


def test_colours_follow_the_elements() -> None:
    """An element keeps the colour of the lane that had it."""
    cpu = vector((4, 8), 8), vector((4, 8), 8, (0, 1))
    root = parse(conversion_svg(*cpu, plan_conversion(*cpu, 32, vector_machine(8))))
    shapes = list(root)
    named: dict[str, set[str]] = {}
    for box, text in zip(shapes, shapes[1:], strict=False):
        if box.tag == f"{SVG}rect" and text.tag == f"{SVG}text" and "," in (text.text or ""):
            named.setdefault(str(text.text), set()).add(box.attrib["class"])
    assert len(named) == 32
    assert all(len(colours) == 1 for colours in named.values())
    # vector() holds (i, j) in lane j.
    assert len({next(iter(colours)) for colours in named.values()}) == 8
    assert all(named[f"{i},{j}"] == named[f"0,{j}"] for i in range(4) for j in range(8))


def test_random_conversions_of_a_cpu_are_drawn() -> None:
    draw = random.Random(3)
    for _ in range(30):
        units = [1 << bit for bit in range(5)]
        found: list[LinearLayout] = []
        for _ in range(2):
            draw.shuffle(units)
            columns = {"register": tuple(units[:2]), "lane": tuple(units[2:])}
            found.append(LinearLayout.from_columns(columns, (("dim0", 2), ("dim1", 3))))
        parse(conversion_svg(found[0], found[1], plan_conversion(found[0], found[1], 32, vector_machine(8))))


@pytest.mark.parametrize(
    "layout",
    [
        LinearLayout({"register": [], "lane": []}, {}),
        LinearLayout({"register": [], "lane": []}, {"dim0": 1}),
        LinearLayout({"register": [[0]], "lane": [[0]]}, {"dim0": 1}),
    ],
)
def test_degenerate_conversions_are_drawn(layout: LinearLayout) -> None:
    machine = vector_machine(layout.in_size("lane"))
    found = stages(layout, layout, plan_conversion(layout, layout, 32, machine))
    assert [stage.done for stage in found] == [("source",), ("nothing moves",)]
    parse(conversion_svg(layout, layout, plan_conversion(layout, layout, 32, machine)))


def test_costs_in_words() -> None:
    assert cost_text(Cost()) == "nothing"
    assert cost_text(Cost(shuffles=1, stores=2, barriers=1, scratch=2048)) == (
        "1 shuffle, 2 stores, 1 barrier, 2048 bytes of scratch"
    )


def test_a_wrong_plan_is_an_error() -> None:
    wrong = ConversionPlan("nothing", (), Cost(), "no data moves")
    with pytest.raises(RuntimeError) as error:
        conversion_svg(FROM, TO, wrong)
    assert str(error.value) == f"the plan from {FROM} to {TO} arrives elsewhere: nothing"


def test_blocks_are_refused() -> None:
    layout = blocked((64,), (2,), (32,), (1,), (0,), [(1,)])
    with pytest.raises(ValueError, match=r"^a picture of 2 blocks, expected one: each converts its own part alike$"):
        stages(layout, layout, plan_conversion(layout, layout, 32, HOPPER))

"""Pictures of shared memory: the words of an access by brute force, conflicts as `bank_conflicts` counts them, what is drawn."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest

from layout_svg import SVG, loads_nothing, parse, texts
from weft.layout import LinearLayout, bank_conflicts, blocked, mma_swizzled, optimal_swizzle, unswizzled
from weft.report.layouts import Access, banks_svg

ROWS = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0))
COLUMNS = blocked((64, 64), (8, 1), (8, 4), (1, 4), (0, 1))


def accesses() -> list[Access]:
    """Rows and columns, straight and swizzled memory, widths."""
    memories = [unswizzled((64, 64)), unswizzled((64, 64), (0, 1)), mma_swizzled((64, 64), 8, 1, 8)]
    memories.append(optimal_swizzle(ROWS, COLUMNS, bits=16).memory)
    return [Access(layout, memory, bits) for layout in (ROWS, COLUMNS) for memory in memories for bits in (8, 16, 32)]


@pytest.mark.parametrize("access", accesses(), ids=str)
def test_the_words_are_those_of_the_first_instruction(access: Access) -> None:
    element_at = [access.memory.flat(offset=offset) for offset in range(4096)]
    vector = access.cost.vector
    wanted: dict[tuple[int, int], set[int]] = defaultdict(set)
    width = 32 * 32 // max(32, vector * access.bits)
    for lane in range(32):
        # Of the lane's registers, those whose offsets share an aligned vector with register 0.
        offsets = [
            element_at.index(access.distributed.flat(register=register, lane=lane))
            for register in range(access.distributed.in_size("register"))
        ]
        mine = [offset for offset in offsets if offset // vector == offsets[0] // vector]
        assert len(mine) == vector
        for offset in mine:
            wanted[lane // width, offset * access.bits // 32].add(lane)
    assert {(w.phase, w.row * 32 + w.bank): set(w.lanes) for w in access.words} == wanted


@pytest.mark.parametrize("access", accesses(), ids=str)
def test_conflicts_are_those_that_are_counted(access: Access) -> None:
    cost = bank_conflicts(access.distributed, access.memory, access.bits)
    for phase in range(cost.phases):
        conflicts = access.conflicts(phase)
        assert max((len(words) for words in conflicts.values()), default=1) == cost.degree


def test_a_column_of_rows_conflicts() -> None:
    # 16 bits: a row of 64 is 128 bytes, all 32 banks once. COLUMNS has lane bits 8, 16, 32 of dim0, 1, 2 of dim1: a phase of all
    # 32 lanes wants 8 rows of the words 0 and 1, two lanes each.
    access = Access(COLUMNS, unswizzled((64, 64)), 16)
    assert {bank: len(words) for bank, words in access.conflicts().items()} == {0: 8, 1: 8}
    assert access.sentence() == (
        "1 \N{MULTIPLICATION SIGN} 16 bits per lane: 8 wavefronts per instruction (1 without conflicts), 8-way conflicts"
    )
    assert access.total() == "128 instructions of all warps take 1024 wavefronts, 896 for conflicts"
    root = parse(banks_svg(access))
    said = texts(root)
    assert said.count("\N{MULTIPLICATION SIGN}8") == 2
    assert [text for text in said if text.startswith("t") and text.endswith("+")] == [
        f"t{lane}+" for lane in (*range(8), *range(16, 24))
    ]
    assert sum(path.attrib["class"] == "alarm" for path in root.iter(f"{SVG}path")) == 16
    # Rows 0, 8, .. 56 of 128 bytes, the others are left out.
    assert [text for text in said if text in {str(128 * row) for row in range(8, 64)}] == [
        str(1024 * i) for i in range(1, 8)
    ]


def test_a_swizzle_has_nothing_to_mark() -> None:
    best = optimal_swizzle(ROWS, COLUMNS, bits=16).memory
    root = parse(banks_svg(Access(ROWS, best, 16), Access(COLUMNS, best, 16)))
    assert not any(path.attrib["class"] == "alarm" for path in root.iter(f"{SVG}path"))
    assert sum("no conflicts" in text for text in texts(root)) == 2
    assert f"memory {best}"[:60] in " ".join(texts(root))


def test_a_picture_loads_nothing() -> None:
    assert loads_nothing(banks_svg(Access(COLUMNS, unswizzled((64, 64)), 16)))


@pytest.mark.parametrize(
    "layout",
    [
        LinearLayout({"lane": []}, {"dim0": 1}),
        LinearLayout({"register": [[1]]}, {"dim0": 2}),
        LinearLayout({"lane": [[0]] * 5}, {"dim0": 1}),
        LinearLayout({"register": [], "lane": []}, {}),
    ],
)
def test_degenerate_accesses_are_drawn(layout: LinearLayout) -> None:
    memory = unswizzled(layout.shape)
    access = Access(layout, memory, 32)
    assert access.conflicts() == {}
    assert {word.bank for word in access.words} == set(
        range(layout.in_size("register") if "register" in layout.in_dims else 1)
    )
    parse(banks_svg(access))


def test_random_accesses_are_drawn_with_their_conflicts() -> None:
    draw = random.Random(0)
    for _ in range(20):
        units = [1 << bit for bit in range(10)]
        draw.shuffle(units)
        columns = {"register": tuple(units[:4]), "lane": tuple(units[4:9]), "warp": tuple(units[9:])}
        layout = LinearLayout.from_columns(columns, (("dim0", 5), ("dim1", 5)))
        access = Access(layout, unswizzled((32, 32)), 8 << draw.randrange(3))
        marked = sum(path.attrib["class"] == "alarm" for path in parse(banks_svg(access)).iter(f"{SVG}path"))
        assert marked == sum(map(len, access.conflicts().values()))
        assert (marked == 0) == (access.cost.excess == 0)


def test_errors_are_those_of_the_access() -> None:
    with pytest.raises(ValueError, match=r"^access_map: the layouts are of different tensors, "):
        banks_svg(Access(ROWS, unswizzled((32, 32)), 16))
    with pytest.raises(
        ValueError, match=r"^bank_conflicts: vector is 16, expected a power of two up to 8 for these layouts$"
    ):
        banks_svg(Access(ROWS, unswizzled((64, 64)), 16, 16))

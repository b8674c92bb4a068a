"""Plans beside Triton 3.9's code for 564 conversions: the layouts are the ones that were compiled, weft is nowhere worse, and
docs/layouts/plans.md is what the code says."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from weft.layout.planning.choose import plan_memory
from weft.layout.planning.needs import Places, needs, received_words

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def table() -> Any:
    """tools/layout_plans_table.py, which is no package."""
    spec = importlib.util.spec_from_file_location("layout_plans_table", ROOT / "tools" / "layout_plans_table.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_layouts_are_the_ones_that_were_compiled(table: Any) -> None:
    """What the summary says of each conversion, computed anew: 564 of what it needs, 564 of the words a thread receives."""
    words = {"nothing": "id", "registers": "reg", "lanes": "warp", "warps": "cta"}
    agree: Counter[str] = Counter()
    for case in table.cases():
        source, destination = map(Places.of, case.layouts)
        assert words[needs(source, destination)] == case.needs, case
        assert received_words(source, destination, case.bits, 32) == case.words, case
        agree["needs"] += 1
        agree["words"] += 1
    assert agree == {"needs": 564, "words": 564}


def test_never_worse(table: Any) -> None:
    """Shared memory instructions, barriers and wavefronts: each at most Triton's, in all 564. Shuffles: at most Triton's too,
    except where they take the place of shared memory: then shuffles and wavefronts together are no more."""
    better: Counter[str] = Counter()
    for case in table.cases():
        ours, theirs = table.counts(case.plan), case.counts
        for count in ("shared", "barriers", "wavefronts"):
            assert ours[count] <= theirs[count], (case, ours)
            better[count] += ours[count] < theirs[count]
        if ours["shuffles"] > theirs["shuffles"]:
            moved = [found["shuffles"] + found["wavefronts"] for found in (ours, theirs)]
            assert moved[0] <= moved[1], (case, ours)
            assert ours["shared"] < theirs["shared"], (case, ours)
            better["shuffles for memory"] += 1
            # By the price a plan through memory alone is no cheaper, and it takes more wavefronts.
            source, destination = case.layouts
            assert case.plan.price <= plan_memory(source, destination, case.bits, case.machine).price, case
            better["by halves"] += case.plan.kind == "halves"
    assert better["shared"] >= 200
    assert better["barriers"] >= 170
    assert better["wavefronts"] >= 160
    # Whole conversions; and halves, of which the one that stays in its warp is shuffled while the other is in memory.
    assert better["shuffles for memory"] - better["by halves"] < 50
    assert better["shuffles for memory"] < 70


def test_never_worse_on_sm_80(table: Any, held: Any) -> None:
    """30 conversions of 64x64 float16 on a machine without stmatrix; the summary has no wavefronts of these."""
    cases = table.older_cases()
    assert len(cases) == 30
    for case in cases:
        ours, theirs = table.counts(case.plan), case.counts
        assert ours["shared"] <= theirs["shared"], (case, ours)
        assert ours["barriers"] <= theirs["barriers"], (case, ours)
        if ours["shuffles"] > theirs["shuffles"]:
            assert ours["shared"] < theirs["shared"], (case, ours)
        source, destination = case.layouts
        assert np.array_equal(case.plan.simulate(held(source)), held(destination)), case


@pytest.mark.parametrize(
    ("name", "dtype", "size", "triton", "most"),
    [
        # One barrier where scratch allows.
        ("blk_row->blk_2x2", "f16", 128, (32, 0, 31, 128), (32, 0, 1, 128)),
        ("blk_row->blk_row1", "f32", 128, (64, 0, 63, 256), (64, 0, 1, 256)),
        ("lin:warp_swap", "f64", 128, (128, 0, 127, 512), (128, 0, 1, 512)),
        # Exchanges of two bits inside a warp by shuffles.
        ("lin:swap2_lo", "f16", 128, (32, 0, 31, 128), (0, 64, 0, 0)),
        ("lin:swap2_hi", "f32", 128, (64, 0, 63, 256), (0, 128, 0, 0)),
        # Each copy stored once.
        ("slice1_blk->blk1d", "f32", 512, (20, 0, 1, 68), (20, 0, 1, 20)),
        ("slice1_blk->blk1d", "f8", 256, (34, 0, 1, 34), (2, 0, 1, 4)),
        # Bytes transposed through pairs.
        ("blk_row->blk_col", "f8", 64, (48, 0, 1, 48), (6, 0, 1, 24)),
        ("blk_row->blk_col", "f8", 128, (160, 0, 1, 160), (24, 0, 1, 96)),
        ("blk_row->dot1", "f8", 64, (32, 0, 1, 32), (6, 0, 1, 24)),
        # Inside a warp once copies are used.
        ("mma3->blk_row", "f16", 16, (2, 0, 1, 5), (0, 2, 0, 0)),
    ],
)
def test_where_there_was_room(
    table: Any, name: str, dtype: str, size: int, triton: tuple[int, ...], most: tuple[int, ...]
) -> None:
    (case,) = (c for c in table.cases() if (c.name, c.dtype, c.size) == (name, dtype, size))
    assert tuple(case.counts.values()) == triton
    assert all(ours <= bound for ours, bound in zip(table.counts(case.plan).values(), most, strict=True))


def test_no_plan_loses_to_memory(table: Any) -> None:
    """Of 112 plans by shuffles none is dearer than memory. Ranked without the latency of shuffles and with one price for all
    barriers, some were."""
    by_shuffles = [case for case in table.cases() if case.plan.kind == "warp"]
    assert len(by_shuffles) == 112
    for case in by_shuffles:
        source, destination = case.layouts
        assert case.plan.price <= plan_memory(source, destination, case.bits, case.machine).price, case


def test_the_plans_do_what_the_layouts_say(table: Any, held: Any) -> None:
    """On labels, for the smaller half of the sizes; the others are planned alike, and larger ones are in test_exchange."""
    for case in table.cases():
        if case.column < 2:
            source, destination = case.layouts
            assert np.array_equal(case.plan.simulate(held(source)), held(destination)), case


def test_the_summarys_words_are_counted(table: Any) -> None:
    """st1x64 and ldm2.x4.trans are 3 accesses, shf2.idx 2 shuffles, wbar3 3 barriers; [9] all instructions, not kept."""
    summary = """
## 1. convert_layout
### f16
| case | 16x16 |
|---|---|
| a->b | warp lb2: st1x64 ldm2.x4.trans shf2.idx wbar3 wf5 [9] |  | id lb0: - [2] |
### sm_80, f16
| case | sm_80 | sm_90 |
|---|---|---|
| mma2->blk_row | st8x64 ld8x64 bar1 [51] | ld4x128 stm4.x4 bar3 [39] |
### Compile time
"""
    assert list(table.parse(summary)) == [
        ["a->b", "f16", 0, "warp", 2, [3, 2, 3, 5], "st1x64 ldm2.x4.trans shf2.idx wbar3 wf5"],
        ["a->b", "f16", 2, "id", 0, [0, 0, 0, 0], "-"],
    ]
    assert list(table.parse_older(summary)) == [["mma2->blk_row", [16, 0, 1], "st8x64 ld8x64 bar1"]]


@pytest.mark.pages
def test_the_page_is_fresh(table: Any) -> None:
    """If this fails after a change of plans: make docs"""
    assert table.PAGE.read_text() == table.page()

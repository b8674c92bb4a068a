"""Weft's conversion plans beside the code that Triton 3.9.0 generates for the same conversions: docs/layouts/plans.md.

    python tools/layout_plans_table.py                    write the page
    python tools/layout_plans_table.py --golden SUMMARY   read Triton's counts off a summary of its code, write the golden file

The golden file, tests/golden/layout_conversions.json, has for each of 564 conversions on sm_90 with 4 warps what Triton 3.9.0
emits (counted in its PTX; each was executed in an emulator and gave the right values): shared memory instructions, shuffles,
barriers, wavefronts of the worst warp. It also has 30 conversions of 64x64 float16 on sm_80, without wavefronts.

The summary names layouts and does not spell them out. They are reconstructed here; that these are the ones is checked by what
the summary says of each conversion, computed anew: whether it is within a register, a warp or a block, and the least words that
a thread has to receive (``needs`` and ``words`` in the golden file).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.distributed import blocked, sliced
from weft.layout.families.nvidia import nvidia_mma, nvidia_mma_operand
from weft.layout.families.transfer import trans
from weft.layout.planning.accesses import Access
from weft.layout.planning.choose import plan_conversion
from weft.layout.planning.machine import AMPERE, HOPPER, MachineModel
from weft.layout.planning.plan import ConversionPlan

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "tests" / "golden" / "layout_conversions.json"
PAGE = ROOT / "docs" / "layouts" / "plans.md"

WARPS = 4
DTYPES = {"f8": 8, "f16": 16, "f32": 32, "f64": 64}
SIZES = (16, 32, 64, 128)
"""Of square tensors; tensors of one dimension have `LENGTHS`."""
LENGTHS = (128, 256, 512, 1024)
COUNTS = ("shared", "shuffles", "barriers", "wavefronts")

Make = Callable[[int, int], LinearLayout]
"""(size, bits of an element) -> layout."""


# The layouts


def _coalesced(size: int, per_thread: tuple[int, int], order: tuple[int, int]) -> LinearLayout:
    """Blocked, threads and then warps along the fastest dimension as far as it goes."""
    fast, slow = order
    threads, warps = [1, 1], [1, 1]
    threads[fast] = min(32, size // per_thread[fast])
    warps[fast] = max(1, min(WARPS, size // (per_thread[fast] * threads[fast])))
    threads[slow], warps[slow] = 32 // threads[fast], WARPS // warps[fast]
    return blocked((size, size), per_thread, threads, warps, order)


def _vector(size: int, bits: int) -> int:
    """Elements of 16 bytes, or of a thread where that is fewer."""
    return min(128 // bits, size * size // (32 * WARPS))


def _row(size: int, bits: int) -> LinearLayout:
    return _coalesced(size, (1, _vector(size, bits)), (1, 0))


def _column(size: int, bits: int) -> LinearLayout:
    return _coalesced(size, (_vector(size, bits), 1), (0, 1))


def _mma2(*warps: int) -> Make:
    return lambda size, bits: nvidia_mma((size, size), 2, warps, (16, 8))


def _dot2(operand: int, *warps: int) -> Make:
    return lambda size, bits: nvidia_mma_operand((size, size), operand, max(1, 32 // bits), 2, warps, (16, 8))


def _mma3(size: int, bits: int) -> LinearLayout:
    return nvidia_mma((size, size), 3, (WARPS, 1), (16, size, 256 // bits))


def _dot3(width: int | None = None) -> Make:
    def make(size: int, bits: int) -> LinearLayout:
        instruction = (16, size, 256 // bits)
        return nvidia_mma_operand((size, size), 0, width or max(1, 32 // bits), 3, (WARPS, 1), instruction)

    return make


def _line(length: int, bits: int) -> LinearLayout:
    return blocked((length,), (min(4, 128 // bits, length // 64),), (32,), (WARPS,), (0,))


def _slice(parent: Callable[[tuple[int, int], int], LinearLayout], dim: int) -> Make:
    """The slice, of the length asked for, of a parent whose dimension ``dim`` is 64."""
    return lambda length, bits: sliced(parent((length, 64) if dim else (64, length), bits), dim)


_SLICE_ROWS = _slice(lambda shape, bits: blocked(shape, (1, 4), (2, 16), (4, 1), (1, 0)), 1)
_SLICE_COLUMNS = _slice(lambda shape, bits: blocked(shape, (1, 4), (1, 32), (1, 4), (1, 0)), 0)
_SLICE_MMA3 = _slice(lambda shape, bits: nvidia_mma(shape, 3, (4, 1), (16, 64, 256 // bits)), 1)


def _slice_mma2(dim: int) -> Make:
    return _slice(lambda shape, bits: nvidia_mma(shape, 2, (2, 2), (16, 8)), dim)


@dataclass(frozen=True)
class _Columns:
    """The columns of a layout, to be changed in place."""

    register: list[int]
    lane: list[int]
    warp: list[int]

    def swap(self, first: str, i: int, second: str, j: int) -> None:
        """Exchange a column of one dimension with one of another."""
        a: list[int] = getattr(self, first)
        b: list[int] = getattr(self, second)
        a[i], b[j] = b[j], a[i]


def _changed(change: Callable[[_Columns], None]) -> Make:
    """The row layout with its columns changed."""

    def make(size: int, bits: int) -> LinearLayout:
        row = _row(size, bits)
        columns = _Columns(*(list(row.columns(dim)) for dim in ("register", "lane", "warp")))
        change(columns)
        return row.with_columns(
            {
                "register": tuple(columns.register),
                "lane": tuple(columns.lane),
                "warp": tuple(columns.warp),
            }
        )

    return make


def _swapped(*at: int) -> Make:
    """Register columns exchanged with the lane columns of the same places."""

    def change(columns: _Columns) -> None:
        for i in at:
            columns.swap("register", i, "lane", i)

    return _changed(change)


def _transposed_warps(size: int, bits: int) -> LinearLayout:
    """Each warp has what it has in the row layout, down the columns: vectors, then lanes, then the other registers."""
    row = _row(size, bits)
    held = [*row.columns("register"), *row.columns("lane")]
    down = sorted(bit for bit in held if bit >= size) + sorted(bit for bit in held if bit < size)
    inside = _vector(size, bits).bit_length() - 1
    return row.with_columns(
        {
            "register": (*down[:inside], *down[inside + 5 :]),
            "lane": tuple(down[inside : inside + 5]),
        }
    )


CONVERSIONS: dict[str, tuple[Make, Make]] = {
    "blk_row->blk_col": (_row, _column),
    "blk_col->blk_row": (_column, _row),
    "blk_row->blk_row1": (_row, lambda size, bits: _coalesced(size, (1, 1), (1, 0))),
    "blk_row->blk_2x2": (_row, lambda size, bits: _coalesced(size, (2, 2), (1, 0))),
    "blk_row->mma2": (_row, _mma2(2, 2)),
    "mma2->blk_row": (_mma2(2, 2), _row),
    "mma2->blk_row1": (_mma2(2, 2), lambda size, bits: _coalesced(size, (1, 1), (1, 0))),
    "mma2_4x1->dot0": (_mma2(4, 1), _dot2(0, 4, 1)),
    "mma2_2x2->dot0": (_mma2(2, 2), _dot2(0, 2, 2)),
    "mma2_2x2->dot1": (_mma2(2, 2), _dot2(1, 2, 2)),
    "blk_row->dot0": (_row, _dot2(0, 2, 2)),
    "blk_row->dot1": (_row, _dot2(1, 2, 2)),
    "blk_col->dot1": (_column, _dot2(1, 2, 2)),
    "mma3->blk_row": (_mma3, _row),
    "blk_row->mma3": (_row, _mma3),
    "mma3->dot3": (_mma3, _dot3()),
    "blk_row->dot3": (_row, _dot3()),
    "mma3->dot3_kw2": (_mma3, _dot3(2)),
    "lin:reg_perm": (_row, _changed(lambda c: c.register.reverse())),
    "lin:lane_perm": (_row, _changed(lambda c: c.lane.append(c.lane.pop(0)))),
    "lin:swap1_hi": (_row, _swapped(-1)),
    "lin:swap1_lo": (_row, _swapped(0)),
    "lin:swap2_hi": (_row, _swapped(-1, -2)),
    "lin:swap2_lo": (_row, _swapped(0, 1)),
    "lin:warp_transpose": (_row, _transposed_warps),
    "lin:warp_swap": (_row, _changed(lambda c: c.warp.reverse())),
    "lin:warp_reg_swap": (_row, _changed(lambda c: c.swap("register", -1, "warp", -1))),
    "mma2->mma2T": (_mma2(2, 2), lambda size, bits: trans(_mma2(2, 2)(size, bits), (1, 0))),
    "blk1d->slice1_blk": (_line, _SLICE_ROWS),
    "slice1_blk->blk1d": (_SLICE_ROWS, _line),
    "blk1d->slice0_blk": (_line, _SLICE_COLUMNS),
    "slice0_blk->blk1d": (_SLICE_COLUMNS, _line),
    "slice0->slice1(transpose)": (_SLICE_COLUMNS, _SLICE_ROWS),
    "slice1_mma3->blk1d": (_SLICE_MMA3, _line),
    "slice1_mma2->slice0_mma2": (_slice_mma2(1), _slice_mma2(0)),
    "slice1_mma3->slice1_blk": (_SLICE_MMA3, _SLICE_ROWS),
    "equiv:slice0->blk1d": (
        _slice(lambda shape, bits: blocked(shape, (1, 1), (1, 32), (1, WARPS), (1, 0)), 0),
        lambda length, bits: blocked((length,), (1,), (32,), (WARPS,), (0,)),
    ),
}
"""Source and destination by the summary's name."""


# The counts


@dataclass(frozen=True)
class Case:
    """A conversion with Triton's counts."""

    name: str
    dtype: str
    column: int
    needs: str
    words: int
    counts: dict[str, int]
    """By `COUNTS`; wavefronts are the worst warp's, and absent for sm_80."""
    text: str
    """The instructions as the summary writes them."""
    machine: MachineModel = HOPPER

    @property
    def bits(self) -> int:
        """Of an element."""
        return DTYPES[self.dtype]

    @property
    def size(self) -> int:
        """Of each dimension."""
        flat = "1d" in self.name or "slice" in self.name
        return (LENGTHS if flat else SIZES)[self.column]

    @property
    def layouts(self) -> tuple[LinearLayout, LinearLayout]:
        """Source and destination."""
        source, destination = CONVERSIONS[self.name]
        return source(self.size, self.bits), destination(self.size, self.bits)

    @property
    def plan(self) -> ConversionPlan:
        """Weft's plan."""
        return plan_conversion(*self.layouts, self.bits, self.machine)


def cases() -> list[Case]:
    """What the golden file has."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return [
        Case(name, dtype, column, needs, words, dict(zip(COUNTS, found, strict=True)), text)
        for name, dtype, column, needs, words, found, text in golden["cases"]
    ]


def older_cases() -> list[Case]:
    """What the golden file has of sm_80."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return [
        Case(name, "f16", 2, "", 0, dict(zip(COUNTS[:3], found, strict=True)), text, AMPERE)
        for name, found, text in golden["sm_80"]
    ]


def counts(plan: ConversionPlan) -> dict[str, int]:
    """A plan's counts as the summary counts."""
    cost = plan.cost
    worst = -(-cost.wavefronts // WARPS)
    if plan.kind == "memory":
        by_warp = [step.wavefronts_by_warp() for step in plan.steps if isinstance(step, Access)]
        worst = max(map(sum, zip(*by_warp, strict=True)))
    return {
        "shared": cost.stores + cost.loads,
        "shuffles": cost.shuffles,
        "barriers": cost.barriers,
        "wavefronts": worst,
    }


_COLUMN_OF = {"shf": "shuffles", "bar": "barriers", "wbar": "barriers", "wf": "wavefronts"}
"""What the summary's words count; the others are accesses of shared memory."""


def parse(summary: str) -> Iterator[list[Any]]:
    """The rows of the golden file, of a summary's first section."""
    dtype = ""
    for line in summary[summary.index("## 1.") : summary.index("### sm_80")].splitlines():
        if heading := re.match(r"### (f\d+)$", line):
            dtype = heading[1]
            continue
        name, *cells = (cell.strip() for cell in line.strip().strip("|").split("|"))
        for column, cell in enumerate(cells):
            if not (match := re.match(r"(id|reg|warp|cta) lb(\d+): (.*) \[\d+\]$", cell)):
                continue
            needs, words, text = match.groups()
            yield [name, dtype, column, needs, int(words), _counted(text), text]


def parse_older(summary: str) -> Iterator[list[Any]]:
    """The rows of the golden file for sm_80."""
    section = summary[summary.index("### sm_80") :]
    for line in section[: section.index("### Compile time")].splitlines():
        name, *cells = (cell.strip() for cell in line.strip().strip("|").split("|"))
        if name in CONVERSIONS and (match := re.match(r"(.*) \[\d+\]$", cells[0])):
            yield [name, _counted(match[1])[:3], match[1]]


def _counted(text: str) -> list[int]:
    """By `COUNTS`."""
    found: dict[str, int] = dict.fromkeys(COUNTS, 0)
    for item in text.split():
        if counted := re.match(r"([a-z]+)(\d+)", item):
            found[_COLUMN_OF.get(counted[1], "shared")] += int(counted[2])
    return [found[key] for key in COUNTS]


def write_golden(path: Path) -> None:
    """Write the golden file."""
    summary = path.read_text(encoding="utf-8")
    rows, older = (",\n  ".join(map(json.dumps, found)) for found in (parse(summary), parse_older(summary)))
    origin = (
        "Triton 3.9.0, ttg.convert_layout compiled for sm_90 with 4 warps and no GPU; counted in the PTX of the operation alone. "
        f"Columns: name, dtype, column (sizes {SIZES}, in one dimension {LENGTHS}), needs, words, {COUNTS}, instructions. "
        "sm_80: 64x64 float16, the first three counts"
    )
    text = f'{{"origin": {json.dumps(origin)},\n "cases": [\n  {rows}\n],\n "sm_80": [\n  {older}\n]}}\n'
    GOLDEN.write_text(text, encoding="utf-8")


# The page

INTRODUCTION = """# Conversion plans beside Triton's code

<!-- Written by tools/layout_plans_table.py; do not edit. -->

Every conversion below was compiled by Triton 3.9.0 for sm_90 with 4 warps, and planned by `weft.layout.plan_conversion`. No GPU
was involved on either side: these are counts, not times. Each cell has Triton's counts, then weft's:

**shared** memory instructions of a thread, **shuffles** of a thread, **barriers**, **wavefronts** of shared memory of the worst
warp.
A single entry means both are equal. Weft's byte permutes and selects are not in the table (Triton's summary does not count them
alone); `plan.cost.permutes` has them.
"""


def _cell(case: Case) -> str:
    theirs, ours = case.counts, counts(case.plan)
    left, right = ("/".join(str(found[key]) for key in theirs) for found in (theirs, ours))
    return left if left == right else f"{left} → {right}"


def page() -> str:
    """The page."""
    found = cases()
    better: dict[str, int] = dict.fromkeys(COUNTS, 0)
    totals = {key: [0, 0] for key in COUNTS}
    cells: dict[tuple[str, str, int], str] = {}
    for case in found:
        ours = counts(case.plan)
        cells[case.name, case.dtype, case.column] = _cell(case)
        for key in COUNTS:
            better[key] += ours[key] < case.counts[key]
            totals[key][0] += case.counts[key]
            totals[key][1] += ours[key]
    lines = [INTRODUCTION, "| | Triton, all together | weft | conversions with fewer |", "|---|---|---|---|"]
    lines += [f"| {key} | {totals[key][0]} | {totals[key][1]} | {better[key]} of {len(found)} |" for key in COUNTS]
    for dtype in DTYPES:
        titles = [f"{s}x{s} (1-d: {n})" for s, n in zip(SIZES, LENGTHS, strict=True)]
        lines += ["", f"## {dtype}: {'/'.join(COUNTS)}", "", f"| conversion | {' | '.join(titles)} |", "|---" * 5 + "|"]
        for name in CONVERSIONS:
            row = [cells.get((name, dtype, column), "") for column in range(4)]
            if any(row):
                lines.append(f"| {name} | {' | '.join(row)} |")
    lines += ["", f"## sm_80, f16, 64x64: {'/'.join(COUNTS[:3])}", "", "| conversion | |", "|---|---|"]
    lines += [f"| {case.name} | {_cell(case)} |" for case in older_cases()]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    """Write the page, or the golden file."""
    if arguments[:1] == ["--golden"]:
        write_golden(Path(arguments[1]))
        return
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Writes the table of metrics of docs/emulator.md.

    python tools/emulator_docs.py

The pictures beside it are taken of the page of ``weft profile`` in a browser, by hand:

    weft profile tests/emulator/programs/transpose.ptx --kernel transpose_conflicts --grid 4,4 --block 32,8 \\
        --arg f32[128,128]=random --arg f32[128,128]=empty --arg i32=128 --arg i32=128 \\
        --source tests/emulator/programs --html page.html
"""

from __future__ import annotations

import re
from pathlib import Path

from weft.emulator.profile import METRICS, Metric

PAGE = Path(__file__).parents[1] / "docs" / "emulator.md"

_PART = re.compile(r"(<!-- metrics: .*? -->\n).*?(<!-- /metrics -->)", re.DOTALL)


def table() -> str:
    """The metrics as Markdown."""
    head = "| metric | unit | meaning | Nsight Compute |\n|---|---|---|---|\n"
    return head + "".join(map(_row, METRICS.values()))


def _row(metric: Metric) -> str:
    meaning = metric.meaning
    if metric.derived and not metric.minus:
        meaning += f" (the sum of {', '.join(f'`{part}`' for part in metric.plus)})"
    elif metric.derived:
        meaning += f" (`{metric.plus[0]}` less `{metric.minus[0]}`)"
    ncu = " + ".join(f"`{name}`" for name in metric.ncu.split(" + ")) if metric.ncu else ""
    return f"| `{metric.name}` | {metric.unit} | {meaning} | {ncu} |\n"


def written(page: str) -> str:
    """The page with its table."""
    return _PART.sub(lambda match: match[1] + table() + match[2], page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

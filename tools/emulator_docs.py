"""Writes the tables of instructions and of metrics of docs/emulator.md.

    python tools/emulator_docs.py

The pictures beside it are taken of the page of ``weft profile`` in a browser, by hand:

    weft profile tests/emulator/programs/transpose.ptx --kernel transpose_conflicts --grid 4,4 --block 32,8 \\
        --arg f32[128,128]=random --arg f32[128,128]=empty --arg i32=128 --arg i32=128 \\
        --source tests/emulator/programs --html page.html
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

from weft.emulator.profile import METRICS, Metric

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "emulator.md"

sys.path.insert(0, str(ROOT / "tests"))

from emulator_isa_forms import Pattern, recorded  # noqa: E402

_PART = re.compile(r"(<!-- metrics: .*? -->\n).*?(<!-- /metrics -->)", re.DOTALL)
_INSTRUCTIONS = re.compile(r"(<!-- instructions: .*? -->\n).*?(<!-- /instructions -->)", re.DOTALL)


def table() -> str:
    """The metrics as Markdown. Those of one kind of access are not rows of their own, but named in the row of their sum."""
    parts = {part for metric in METRICS.values() if _is_sum(metric) for part in metric.plus}
    head = "| metric | kinds | unit | meaning | Nsight Compute |\n|---|---|---|---|---|\n"
    return head + "".join(_row(metric) for metric in METRICS.values() if metric.name not in parts)


def instructions() -> str:
    """What is executed of each instruction, as it is recorded: those of which all is, and a table of the others."""
    taken: Counter[str] = Counter()
    executed: Counter[str] = Counter()
    refused: dict[str, list[str]] = {}
    for pattern in recorded().patterns:
        taken[pattern.instruction] += pattern.taken.bit_count()
        executed[pattern.instruction] += (pattern.taken & pattern.bound).bit_count()
        refused.setdefault(pattern.instruction, []).extend(_refused(pattern))
    whole = [f"`{name}`" for name in taken if taken[name] and taken[name] == executed[name]]
    total = f"Of {taken.total():,} forms of {sum(map(bool, taken.values()))} instructions {executed.total():,} are executed."
    rows = [
        f"| `{name}` | {taken[name]} | {executed[name]} | {', '.join(list(dict.fromkeys(refused[name]))[:4])} |\n"
        for name in taken
        if taken[name] != executed[name]
    ]
    head = "| instruction | forms | executed | refused, for example |\n|---|---|---|---|\n"
    return f"{total}\n\n{head}{''.join(rows)}\nAll forms are executed of {', '.join(whole)}.\n"


def _refused(pattern: Pattern) -> list[str]:
    """The name of the first form of a pattern that is refused."""
    missing = pattern.taken & ~pattern.bound
    names = [f"`{form.split(' ')[0]}`" for i, form in enumerate(pattern.forms) if missing >> i & 1]
    return names[:1]


def _is_sum(metric: Metric) -> bool:
    """Whether it is the sum over the kinds of access to a space: its parts are called ``space_kind_quantity``."""
    space, _, quantity = metric.name.partition("_")
    return bool(metric.plus) and all(p.startswith(f"{space}_") and p.endswith(f"_{quantity}") for p in metric.plus)


def _row(metric: Metric) -> str:
    meaning, kinds, ncu = metric.meaning, "", [metric.ncu]
    if _is_sum(metric):
        kinds = ", ".join(part.split("_")[1] for part in metric.plus)
        ncu += [METRICS[part].ncu for part in metric.plus]
    elif metric.minus:
        meaning += f": `{metric.plus[0]}` less `{metric.minus[0]}`"
    elif metric.plus:
        meaning += f": {' and '.join(f'`{part}`' for part in metric.plus)}"
    counters = ", ".join(f"`{name}`" for names in ncu for name in names.split(" + ") if name)
    return f"| `{metric.name}` | {kinds} | {metric.unit} | {meaning} | {counters} |\n"


def written(page: str) -> str:
    """The page with its tables."""
    page = _INSTRUCTIONS.sub(lambda match: match[1] + instructions() + match[2], page)
    return _PART.sub(lambda match: match[1] + table() + match[2], page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

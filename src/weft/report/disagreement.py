"""Where two systems disagree, as tables: the groups of a `weft.semantics.difference.Diff`, by kind."""

from __future__ import annotations

from typing import Final

from rich import box
from rich.console import Group as Lines
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from weft.report.plain import WIDTH, plain
from weft.report.types import STYLES
from weft.semantics.difference import Diff, Group, Kind

EXPLAINED: Final[dict[Kind, str]] = {
    Kind.REFUSED: "refused by one",
    Kind.DTYPE: "another type",
    Kind.WEAK: "the same type, weak in one",
    Kind.MEANING: "the same type, other values: another operation",
    Kind.OPERANDS: "the same type and operation, operands converted otherwise",
}
"""What each kind of difference is."""


def summary(diff: Diff) -> list[str]:
    """The sentences below the tables: what only one side has, what agrees."""
    lines: list[str] = []
    both = (("types", diff.only_a, diff.only_b), ("operations", diff.ops_only_a, diff.ops_only_b))
    for what, only_a, only_b in both:
        for system, only in ((diff.a, only_a), (diff.b, only_b)):
            if only:
                lines.append(f"{what} only {system.name} has: {', '.join(map(str, only))}")
    if diff.agreeing_ops:
        lines.append(f"operations that agree everywhere: {' '.join(diff.agreeing_ops)}")
    if diff.differences and diff.agreeing_pairs:
        lines.append(f"pairs that agree in every operation: {'; '.join(diff.agreeing_pairs)}")
    return lines


def diff_tables(diff: Diff) -> RenderableType:
    """The differences in one table a kind, and the summary."""
    head = Text(f"{diff.a.name} ({diff.a.title}) and {diff.b.name} ({diff.b.title})", "bold")
    total = f"{len(diff.differences)} of {diff.cases} cases differ"
    parts: list[RenderableType] = [head, Text(total)]
    parts += [Text(f"{n:>6} {EXPLAINED[kind]}") for kind, n in diff.counts.items() if n]
    for kind in Kind:
        if groups := [g for g in diff.groups if g.kind is kind]:
            parts += [Text(), _table(diff, kind, groups)]
    if below := summary(diff):
        parts.append(Text())
    return Lines(*parts, *(Text(line) for line in below))


def text(diff: Diff, width: int = WIDTH) -> str:
    """`diff_tables` without colours."""
    return plain(diff_tables(diff), width)


def _table(diff: Diff, kind: Kind, groups: list[Group]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=EXPLAINED[kind], title_justify="left", title_style="bold", show_edge=False)
    table.add_column("operations", overflow="fold", max_width=26)
    table.add_column("operands", overflow="fold", ratio=1)
    table.add_column(diff.a.name, overflow="fold", max_width=28)
    table.add_column(diff.b.name, overflow="fold", max_width=28)
    for group in groups:
        cells = [Text(side, STYLES["refused"] if side == "refused" else "") for side in (group.a, group.b)]
        table.add_row(Text(" ".join(group.ops)), Text("\n".join(group.operands)), *cells)
    return table

"""One expression in many systems, and why: what ``weft promote uint8 int8`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from weft import semantics
from weft.report.types import STYLES, category
from weft.semantics.core import Operand, PromotionError, Semantics, Type
from weft.semantics.difference import has, weak_types
from weft.semantics.explanation import PROMOTE, Explanation, Outcome, expression, outcome, outcome_data

_FACTS: Final[dict[str, str]] = {
    "result": "bold",
    "refused": "bold red",
    "instead": "red",
    "DIFFERS": "bold yellow",
    "same": "bright_black",
}
"""How the facts of an explanation stand out."""


@dataclass(frozen=True)
class Answer:
    """What one system says of the expression; ``lacks`` says which dtype, operation or concept it does not have."""

    system: Semantics
    outcome: Outcome | None
    lacks: str = ""

    def data(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        found = {"lacks": self.lacks} if self.outcome is None else outcome_data(self.outcome)
        return {"system": self.system.name, "title": self.system.title, **found}


def answer(name: str, op: str, operands: Sequence[Operand]) -> Answer:
    """What the system of that name says of ``op`` (or `PROMOTE`) on the operands. `ValueError` where the expression is wrong
    in every system (an unknown operation, a wrong number of operands)."""
    system = semantics.get(name)
    if missing := lacks(system, op, operands):
        return Answer(system, None, missing)
    return Answer(system, outcome(system, op, *operands))


def lacks(system: Semantics, op: str, operands: Sequence[Operand]) -> str:
    """What of the question the system does not have; empty if it has all of it."""
    for operand in operands:
        if isinstance(operand, Type) and operand.weak and not weak_types(system):
            return "has no weak types"
        try:
            system.operand(operand)
        except ValueError as error:
            return str(error).partition(";")[0].removeprefix(f"{system.name} ")
    if op != PROMOTE and not has(system, op):
        return f"has no operation '{op}'"
    return ""


def answers_table(op: str, operands: Sequence[Operand], answers: Sequence[Answer]) -> RenderableType:
    """All systems' answers; neighbours with the same answer share a row."""
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("system", max_width=20)
    table.add_column("result", no_wrap=True)
    table.add_column("computed in", no_wrap=True)
    table.add_column("operation", overflow="fold")
    table.add_column("why", overflow="fold")
    for row, names in _merged(answers):
        table.add_row(Text(", ".join(names)), *row)
    return Group(Text(expression(op, tuple(operands)), "bold"), table)


def _merged(answers: Sequence[Answer]) -> list[tuple[list[Text], list[str]]]:
    """The rows, and the names of the neighbours that share each."""
    rows: list[tuple[list[Text], list[str]]] = []
    for found in answers:
        row = _row(found)
        if rows and rows[-1][0] == row:
            rows[-1][1].append(found.system.name)
        else:
            rows.append((row, [found.system.name]))
    return rows


def _row(found: Answer) -> list[Text]:
    match found.outcome:
        case None:
            return [Text("-", STYLES["absent"]), Text(), Text(), Text(found.lacks, STYLES["absent"])]
        case PromotionError() as error:
            return [Text("refused", STYLES["refused"]), Text(), Text(), Text(str(error))]
        case promotion:
            place = Text("as it is") if promotion.keeps else Text(str(promotion.operands), style_of(promotion.operands))
            steps = "; ".join(map(str, promotion.steps))
            return [Text(str(promotion.type), style_of(promotion.result)), place, Text(promotion.meaning), Text(steps)]


def style_of(node: Operand) -> str:
    """The colour of a type."""
    return STYLES[category(node)]


def explanation_text(found: Explanation) -> Text:
    """An explanation with its facts coloured; its plain text is ``str(found)``."""
    text = Text.assemble((f"{found.expression} in {found.system.name}", "bold"), f" ({found.system.title})")
    for kind, fact in found.lines():
        style = _FACTS.get(kind, "")
        text.append(f"\n  {kind:<8} ", style or "bright_black")
        text.append(fact, style)
    return text

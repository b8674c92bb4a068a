"""A system's whole table of one operation: every type with every other, coloured by category.

The table is as wide as the terminal allows; where the system has more types, it goes on in further blocks of columns with
the same rows; the types below 8 bits and the narrow floats are last, in blocks of their own. ``-`` is a refusal. An operation
of one operand is a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from weft import semantics
from weft.report.types import STYLES, category, code
from weft.semantics import ops
from weft.semantics.core import Operand, PromotionError, Semantics
from weft.semantics.difference import dtype_of, has, nodes
from weft.semantics.explanation import Outcome, outcome, outcome_data, symbol, write


@dataclass(frozen=True)
class Matrix:
    """The outcomes of ``op``: ``cells[row][column]``; one column where the operation has one operand."""

    system: Semantics
    op: str
    nodes: tuple[Operand, ...]
    cells: tuple[tuple[Outcome, ...], ...]

    @property
    def unary(self) -> bool:
        """Whether the operation has one operand."""
        return ops.arity(self.op) == 1

    def data(self) -> dict[str, Any]:
        """The same as JSON takes it."""
        cells = [[outcome_data(cell) for cell in row] for row in self.cells]
        names = [symbol(n) for n in self.nodes]
        return {"system": self.system.name, "title": self.system.title, "op": self.op, "types": names, "cells": cells}


def matrix(system: str | Semantics, op: str) -> Matrix:
    """The table of ``op`` in ``system``; `ValueError` for one that is unknown, missing there, or has three operands."""
    chosen, op = semantics.get(system), ops.canonical(op)
    if ops.arity(op) > 2:
        raise ValueError(f"'{op}' has {ops.arity(op)} operands; a table shows operations of one or two")
    if not has(chosen, op):
        raise ValueError(f"{chosen.name} has no operation '{op}'")
    types = tuple(sorted(nodes(chosen), key=_is_narrow))
    columns: list[tuple[Operand, ...]] = [()] if ops.arity(op) == 1 else [(t,) for t in types]
    cells = tuple(tuple(outcome(chosen, op, row, *column) for column in columns) for row in types)
    return Matrix(chosen, op, types, cells)


def matrix_tables(found: Matrix, width: int = 120) -> RenderableType:
    """The table in blocks of columns that fit ``width``."""
    question = write(found.op, ["row"] if found.unary else ["row", "column"])
    head = Text(f"{question} in {found.system.name} ({found.system.title})", "bold")
    names = max(len(symbol(n)) for n in found.nodes) + max(len(code(n)) for n in found.nodes) + 2
    if found.unary:
        return Group(head, Text(), _block(found, range(1)))
    widest = max(len(_shown(cell)) for row in found.cells for cell in row)
    cell = max(widest, *(len(code(n)) for n in found.nodes)) + 1
    each = max(1, (width - names) // cell)
    count, wide = len(found.nodes), sum(not _is_narrow(n) for n in found.nodes)
    parts = [range(count)] if count <= each else [range(wide), range(wide, count)]
    blocks = [part[start : start + each] for part in parts for start in range(0, len(part), each)]
    return Group(head, *(line for block in blocks for line in (Text(), _block(found, block))))


def _is_narrow(node: Operand) -> bool:
    return category(node) == "narrow" or dtype_of(node).bits in (2, 4)


def _block(found: Matrix, columns: range) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=0, show_edge=False)  # columns are a space apart
    table.add_column("", no_wrap=True)
    table.add_column("", no_wrap=True)
    for i in columns:
        node = found.nodes[i]
        head = Text("result") if found.unary else Text(code(node), STYLES[category(node)])
        table.add_column(head, no_wrap=True)
    for node, row in zip(found.nodes, found.cells, strict=True):
        style = STYLES[category(node)]
        table.add_row(Text(symbol(node), style), Text(code(node), style), *(_cell(row[i]) for i in columns))
    return table


def _cell(found: Outcome) -> Text:
    if isinstance(found, PromotionError):
        return Text("-", STYLES["refused"])
    return Text(_shown(found), STYLES[category(found.result)])


def _shown(found: Outcome) -> str:
    return "-" if isinstance(found, PromotionError) else code(found.type)

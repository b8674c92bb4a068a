"""The text form of recorded promotion tables: small enough to keep, plain enough to read and to diff.

A file opens with ``# rows: ...; columns: a b c``. Blocks follow: ``[op op]``, the operations that agree in every cell of the
block, then one line for each row, ``row cell cell cell``. A cell is a dtype, or ``!class`` for a refusal; an absent
cell is ``.``; none holds a space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple


class Cell(NamedTuple):
    """One recorded outcome."""

    op: str
    row: str
    column: str
    value: str


def write(
    path: Path,
    rows: str,
    columns: Sequence[str],
    blocks: Iterable[tuple[Iterable[str], Iterable[str]]],
    look_up: Callable[[str, str, str], str],
) -> None:
    """Writes a table: ``rows`` says what a row is; each block is (ops, row names); ``look_up(op, row, column)`` gives the
    cell."""
    text = [f"# rows: {rows}; columns: {' '.join(columns)}"]
    for ops, names in blocks:
        grouped: dict[str, list[str]] = {}
        listed = list(names)
        for op in ops:
            body = "\n".join(f"{row} {' '.join(look_up(op, row, column) for column in columns)}" for row in listed)
            grouped.setdefault(body, []).append(op)
        text += [f"[{' '.join(group)}]\n{body}\n" for body, group in grouped.items()]
    path.write_text("\n".join(text), encoding="utf-8")


def read(path: Path) -> Iterator[Cell]:
    """Every cell of a table, absent ones left out."""
    columns: list[str] = []
    ops: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# rows: "):
            columns = line.partition("columns: ")[2].split()
        elif line.startswith("["):
            ops = line.strip("[]").split()
        elif line:
            row, *cells = line.split()
            for op in ops:
                yield from (Cell(op, row, c, v) for c, v in zip(columns, cells, strict=True) if v != ".")

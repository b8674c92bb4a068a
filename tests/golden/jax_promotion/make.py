"""Makes the tables of this directory that come of CSV tables read off jax 0.10.2 (README.md says how those were made).

Usage: PYTHONPATH=tests python make.py TABLES, where TABLES holds jax_table.csv, jax_ops.csv, jax_values.csv, their versions
without 64-bit types (``_nox64``), and jax_lowp.csv.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from golden_tables import write

HERE = Path(__file__).parent

ERRORS = {
    "TypePromotionError": "!promotion",
    "does not accept dtype": "!dtype",
    "does not support complex-valued inputs": "!dtype",
    "must not be narrower than the original type": "!narrower",
}
"""A refusal's class by what its message says."""

UNARY = [
    *("neg", "pos", "invert", "abs", "sqrt", "exp", "floor", "sign", "real", "square"),
    *("sum", "prod", "mean", "cumsum", "argmax"),
]


def cell(value: str) -> str:
    """A recorded outcome as the tables spell it."""
    if not value.startswith("ERR"):
        return value or "."
    return next(short for text, short in ERRORS.items() if text in value)


def rows(source: Path) -> list[dict[str, str]]:
    """A CSV table."""
    with source.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def joins(sources: Sequence[Path], target: Path) -> None:
    """The tables of joins: a block for each way to ask."""
    found = {(r["a"], r["b"]): r for source in sources for r in rows(source)}
    types = list(dict.fromkeys(a for a, _ in found))
    asked = [c for c in next(iter(found.values())) if c not in ("a", "b")]
    write(target, "left operand", types, [(asked, types)], lambda op, row, column: cell(found[row, column][op]))


def operations(source: Path, binary: Path) -> dict[tuple[str, str], str]:
    """The table of the operators of two operands; gives back the cells of the others."""
    found = {(r["op"], r["a"], r["b"]): r["result"] for r in rows(source)}
    ops = [op for op in dict.fromkeys(op for op, _, _ in found) if op not in UNARY]
    types = list(dict.fromkeys(a for _, a, _ in found))
    write(binary, "left operand", types, [(ops, types)], lambda op, r, c: cell(found[op, r, c]))
    return {(op, a): cell(result) for (op, a, _), result in found.items() if op in UNARY}


def values(sources: dict[str, Path], target: Path) -> None:
    """The expressions: type, weakness and value, with 64-bit types and without."""
    found = {bits: {r["expr"]: r for r in rows(source)} for bits, source in sources.items()}
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["expression", *(f"{c}{bits}" for bits in found for c in ("dtype", "weak", "value"))])
        for expression in found["64"]:
            recorded = [found[bits][expression] for bits in found]
            writer.writerow([expression, *(r[c] for r in recorded for c in ("dtype", "weak", "value_or_error"))])


def main(directory: Path) -> None:
    """Writes every table."""
    joins([directory / "jax_table.csv", directory / "jax_lowp.csv"], HERE / "joins.txt")
    joins([directory / "jax_table_nox64.csv"], HERE / "joins_x32.txt")
    unary = {
        "x64": operations(directory / "jax_ops.csv", HERE / "operators.txt"),
        "x32": operations(directory / "jax_ops_nox64.csv", HERE / "operators_x32.txt"),
    }
    types = list(dict.fromkeys(a for _, a in unary["x64"]))
    blocks = [([bits], UNARY) for bits in unary]
    write(HERE / "unary.txt", "operation", types, blocks, lambda bits, op, a: unary[bits][op, a])
    values({"64": directory / "jax_values.csv", "32": directory / "jax_values_nox64.csv"}, HERE / "values.csv")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

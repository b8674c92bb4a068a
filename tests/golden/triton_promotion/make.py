"""Makes the goldens of this directory from tables read off triton 3.9.0 (README.md says how those were made).

Usage: python make.py TABLES, where TABLES holds triton_table.csv, triton_scalar.csv and triton_misc.csv.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

INTEGERS = ["int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
TYPES = [*INTEGERS, "float8e4nv", "float8e5", "float16", "bfloat16", "float32", "float64"]
SYMBOLS = ["+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>", "<", "<=", ">", ">=", "==", "!="]
OPS = [*SYMBOLS, "where", "minimum", "maximum"]
ERRORS = {
    "Nonrepresentable integer": "!integer",
    "Cannot perform a binary operation between an unsigned tensor and a negative scalar": "!negative",
    "Scalar ": "!range",
    "Cannot use /, #, or %": "!signedness",
    "invalid operands of type": "!float",
    r"unexpected type \w+ and": "!fp8",
    "unexpected type fp": "!float",
    "Expected dtype": "!type",
    "wrong type argument": "!type",
    "Cannot bitcast": "!type",
    "AST unary operator": "!type",
}
"""How a message is abbreviated; the first pattern found decides."""


def cell(text: str) -> str:
    """A dtype as it is, an error as its abbreviation."""
    if not text.startswith("ERR:"):
        return text
    for pattern, short in ERRORS.items():
        if re.search(pattern, text):
            return short
    raise ValueError(f"no abbreviation for {text!r}")


def grouped(ops: Iterable[str], rows: Iterable[str], look_up: Callable[[str, str, str], str]) -> str:
    """One block of lines for each set of operators that agree in every cell: ``row cell cell ...``, a column for each type."""
    blocks: dict[str, list[str]] = {}
    names = list(rows)
    for op in ops:
        body = "\n".join(f"{row} {' '.join(look_up(op, row, column) for column in TYPES)}" for row in names)
        blocks.setdefault(body, []).append(op)
    return "\n".join(f"[{' '.join(group)}]\n{body}\n" for body, group in blocks.items())


def main(tables: Path) -> None:
    here = Path(__file__).parent
    with (tables / "triton_table.csv").open() as file:
        rows = [r for r in csv.DictReader(file) if r["op"] in OPS and {r["a"], r["b"]} <= {*TYPES}]
    pairs = {(r["op"], r["a"], r["b"]): cell(r["result"]) for r in rows}
    head = f"# rows: left operand; columns: {' '.join(TYPES)}\n"
    (here / "tensors.txt").write_text(head + grouped(OPS, TYPES, lambda op, a, b: pairs[op, a, b]))

    scalars: dict[tuple[str, str, str], str] = {}
    with (tables / "triton_scalar.csv").open() as file:
        for r in csv.DictReader(file):
            if r["dtype"] in TYPES:
                left, right = cell(r["tensor_op_lit"]), cell(r["lit_op_tensor"])
                if left != right:
                    raise ValueError(f"the sides of {r} differ; the golden has one cell for both")
                scalars[r["op"], r["literal"], r["dtype"]] = left
    head = f"# rows: literal, on either side; columns: {' '.join(TYPES)}\n"
    blocks: list[str] = []
    for count in sorted({sum(k[0] == op for k in scalars) for op, _, _ in scalars}):
        ops = [op for op in OPS if sum(k[0] == op for k in scalars) == count]
        literals = dict.fromkeys(literal for op, literal, _ in scalars if op in ops)
        blocks.append(grouped(ops, literals, lambda op, literal, dtype: scalars[op, literal, dtype]))
    (here / "scalars.txt").write_text(head + "\n".join(blocks))

    with (tables / "triton_misc.csv").open() as file:
        misc = {(r["what"].removeprefix("unary/reduce "), r["case"]): r["result"] for r in csv.DictReader(file)}
    head = f"# rows: operator or reduction; columns: {' '.join(TYPES)}\n"
    names = ("neg", "pos", "invert", "not", "sum", "cumsum", "max")
    body = "\n".join(f"{name} {' '.join(cell(misc[name, dtype]) for dtype in TYPES)}" for name in names)
    (here / "unary.txt").write_text(f"{head}{body}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

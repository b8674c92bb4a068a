"""Makes the goldens of this directory from tables read off triton 3.9.0 (README.md says how those were made).

Usage: PYTHONPATH=tests python make.py TABLES, where TABLES holds triton_table.csv, triton_scalar.csv,
triton_misc.csv and triton_values.csv.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from golden_tables import write

INTEGERS = ["int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOAT8 = ["float8e4nv", "float8e5", "float8e4b8", "float8e5b16", "float8e4b15"]
TYPES = [*INTEGERS, *FLOAT8, "float16", "bfloat16", "float32", "float64"]
UNARY = ["neg", "pos", "invert", "not", "abs", "exp", "sqrt", "floor", "sigmoid", "sum", "cumsum", "max", "dot"]
CLASSES = {
    "error encountered during parsing": "!verifier",
    "Nonrepresentable integer": "!integer",
    "Cannot perform a binary operation between an unsigned tensor and a negative scalar": "!negative",
    "Scalar ": "!range",
    "Cannot use /, #, or %": "!signedness",
    "fdiv requires floating-point": "!type",
    "invalid operands of type": "!float",
    r"unexpected type \w+ and": "!fp8",
    "unexpected type fp": "!float",
    "Expected dtype": "!type",
    "wrong type argument": "!type",
    "Cannot bitcast": "!type",
    "AST unary operator": "!type",
    "Unsupported lhs dtype": "!type",
    "Input shapes should have": ".",  # tl.dot accepted the type and refused the recorder's tile
}
"""How a message is abbreviated; the first pattern found decides."""


def cell(text: str) -> str:
    """A dtype as it is, an error as its class."""
    if not text.startswith("ERR:"):
        return text
    for pattern, short in CLASSES.items():
        if re.search(pattern, text):
            return short
    raise ValueError(f"no class for {text!r}")


def shift(ir: str) -> str:
    """Which shift the IR holds: ``shrsi`` copies the sign, ``shrui`` does not; ``.`` where there is none."""
    found = re.findall("arith.(shr[su]i)", ir)
    return found[0] if found else "."


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main(tables: Path) -> None:
    here = Path(__file__).parent
    table = rows(tables / "triton_table.csv")
    pairs = {(r["op"], r["a"], r["b"]): cell(r["result"]) for r in table}
    ops = list(dict.fromkeys(r["op"] for r in table))
    write(here / "tensors.txt", "left operand", TYPES, [(ops, TYPES)], lambda op, a, b: pairs[op, a, b])

    scalars: dict[tuple[str, str, str], str] = {}
    shifts = {(">>", r["a"], r["b"]): shift(r["ir_ops"]) for r in table if r["op"] == ">>"}
    literals: dict[str, list[str]] = {}
    for r in rows(tables / "triton_scalar.csv"):
        left, right = cell(r["tensor_op_lit"]), cell(r["lit_op_tensor"])
        if left != right:
            raise ValueError(f"the sides of {r} differ; the golden has one cell for both")
        scalars[r["op"], r["literal"], r["dtype"]] = left
        literals.setdefault(r["op"], []).append(r["literal"])
        if r["op"] == ">>":
            shifts["tensor>>literal", r["literal"], r["dtype"]] = shift(r["ir_ops"])
            shifts["literal>>tensor", r["literal"], r["dtype"]] = shift(r["ir_ops_left"])
    alike: dict[tuple[str, ...], list[str]] = {}  # the ops that were asked about the same literals
    for op, asked in literals.items():
        alike.setdefault(tuple(dict.fromkeys(asked)), []).append(op)
    blocks = [(group, asked) for asked, group in alike.items()]
    write(
        here / "scalars.txt", "literal, on either side", TYPES, blocks, lambda op, row, dtype: scalars[op, row, dtype]
    )
    asked = list(dict.fromkeys(literals[">>"]))
    sides = ([">>"], INTEGERS), (["tensor>>literal", "literal>>tensor"], asked)
    write(
        here / "shifts.txt", "left operand, or literal", INTEGERS, sides, lambda op, row, dtype: shifts[op, row, dtype]
    )

    # A walrus makes a run-time local of a number, which Python's eval cannot see.
    recorded = [r for r in rows(tables / "triton_values.csv") if r["value(compiled)"] and ":=" not in r["expr"]]
    with (here / "values.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["expression", "dtype", "value"])
        writer.writerows([r["expr"], r["dtype_or_error"], r["value(compiled)"]] for r in recorded)

    misc = {(r["what"].removeprefix("unary/reduce "), r["case"]): r["result"] for r in rows(tables / "triton_misc.csv")}
    write(here / "unary.txt", "operand", TYPES, [(UNARY, ["result"])], lambda op, _, dtype: cell(misc[op, dtype]))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Makes the goldens of this directory from tables read off NumPy 2.4.6 (README.md says how those were made).

Usage: PYTHONPATH=tests python make.py TABLES, where TABLES holds numpy_table.csv, numpy_ops.csv and numpy_scalar.csv.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from golden_tables import write

CLASSES = {
    r"Python integer \S+ out of bounds|int too large|expected number, got int": "!range",
    "Integers to negative integer powers": "!power",
    "boolean subtract|boolean negative|'positive' did not contain a loop": "!bool",
    "not supported for the input types|unsupported operand": "!loop",
    "do not have a common DType|could not be promoted": "!common",
}
"""How a message is abbreviated; the first pattern found decides."""
WRITTEN = {"array_op_py": "array{}py", "py_op_array": "py{}array", "npscalar_op_py": "scalar{}py"}


def cell(text: str) -> str:
    """A dtype as it is, an error as its class."""
    if not text.startswith("ERR:"):
        return text
    for pattern, short in CLASSES.items():
        if re.search(pattern, text):
            return short
    raise ValueError(f"no class for {text!r}")


def rows(path: Path) -> list[dict[str, str]]:
    """The rows about weft's types: `longdouble` is none."""
    with path.open(encoding="utf-8") as file:
        return [r for r in csv.DictReader(file) if "longdouble" not in r.values()]


def main(tables: Path) -> None:
    here = Path(__file__).parent
    table = rows(tables / "numpy_table.csv")
    types = list(dict.fromkeys(r["a"] for r in table))
    spelled = ["promote_types", "array+array", "array+0d", "array+npscalar", "0d+0d"]
    common = {(op, r["a"], r["b"]): cell(r[op]) for r in table for op in spelled}
    write(here / "common.txt", "left operand", types, [(spelled, types)], lambda op, a, b: common[op, a, b])

    recorded = rows(tables / "numpy_ops.csv")
    ops = {(r["op"], r["a"], r["b"]): cell(r["result"]) for r in recorded}
    types = list(dict.fromkeys(r["a"] for r in recorded))
    binary = list(dict.fromkeys(r["op"] for r in recorded if r["b"]))
    write(here / "arrays.txt", "left operand", types, [(binary, types)], lambda op, a, b: ops[op, a, b])
    unary = list(dict.fromkeys(r["op"] for r in recorded if not r["b"]))
    write(here / "unary.txt", "the result", types, [(unary, ["result"])], lambda op, _, a: ops[op, a, ""])

    scalars: dict[tuple[str, str, str], str] = {}
    literals: dict[str, None] = {}
    for r in rows(tables / "numpy_scalar.csv"):
        literals[r["pyscalar"]] = None
        for column, form in WRITTEN.items():
            scalars[form.format(r["op"]), r["pyscalar"], r["dtype"]] = cell(r[column])
    forms = list(dict.fromkeys(op for op, _, _ in scalars))
    types = list(dict.fromkeys(dtype for _, _, dtype in scalars))
    write(here / "numbers.txt", "Python number", types, [(forms, literals)], lambda op, v, t: scalars[op, v, t])


if __name__ == "__main__":
    main(Path(sys.argv[1]))

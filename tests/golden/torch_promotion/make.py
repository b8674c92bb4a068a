"""Makes the goldens of this directory from tables read off PyTorch 2.13.0 (README.md says how those were made).

Usage: PYTHONPATH=tests python make.py TABLES, where TABLES holds torch_table.csv and torch_ops.csv.
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

from golden_tables import write

CLASSES = {
    "Promotion for Float8 Types": "!float8",
    "Promotion for uint16, uint32, uint64 types": "!unsigned",
    "Unknown Complex ScalarType": "!counterpart",
    "int too big to convert": "!range",
    "Subtraction, the `-` operator, with": "!bool",
    "maximum not implemented for complex tensors": "!complex",
    r"(maximum|atan2)\(\): argument": "!number",
    r"mean\(\): could not infer": "!mean",
    "not implemented for|only implemented on|not supported for complex inputs|on a bool tensor": "!kernel",
}
"""How a message is abbreviated; the first pattern found decides."""


def cell(text: str) -> str:
    """A dtype as it is, an error as its class, nothing as absent."""
    if not text.startswith("ERR:"):
        return text or "."
    for pattern, short in CLASSES.items():
        if re.search(pattern, text):
            return short
    raise ValueError(f"no class for {text!r}")


def rows(path: Path) -> list[dict[str, str]]:
    """The rows about weft's types: `float4_e2m1fn_x2`, two numbers in a byte, is none."""
    with path.open(encoding="utf-8") as file:
        return [r for r in csv.DictReader(file) if "float4_e2m1fn_x2" not in (r["a"], r["b"])]


def operand(name: str, kind: str) -> str:
    """A tensor by its dtype, one without dimensions with brackets, a Python number as it is."""
    return f"{name}[]" if kind == "0d" else name


def main(tables: Path) -> None:
    here = Path(__file__).parent
    recorded = rows(tables / "torch_ops.csv")
    types = list(dict.fromkeys(r["a"] for r in recorded))
    ops = {(r["op"], r["a"], r["b"]): cell(r["result"]) for r in recorded}
    binary = list(dict.fromkeys(r["op"] for r in recorded if r["b"]))
    unary = list(dict.fromkeys(r["op"] for r in recorded if not r["b"]))
    write(here / "tensors.txt", "left operand", types, [(binary, types)], lambda op, a, b: ops[op, a, b])
    write(here / "unary.txt", "the result", types, [(unary, ["result"])], lambda op, _, a: ops[op, a, ""])
    numbers = {
        (r["op"], kind, r["a"]): cell(r[f"result_py_{kind}"])
        for r in recorded
        if r["b"] == "<py>"
        for kind in ("int", "float")
    }
    kinds = ["int", "float"]
    write(here / "numbers.txt", "a Python number", types, [(binary, kinds)], lambda op, k, t: numbers[op, k, t])

    classes: dict[tuple[str, str, str], str] = {}
    for r in rows(tables / "torch_table.csv"):
        left, right = operand(r["a"], r["a_kind"]), operand(r["b"], r["b_kind"])
        for op in ("promote_types", "result_type", "add_dtype"):
            classes[op, left, right] = cell(r[op])
    left = list(dict.fromkeys(a for _, a, _ in classes))
    right = list(dict.fromkeys(b for _, _, b in classes))
    asked = ["promote_types", "result_type", "add_dtype"]
    write(here / "classes.txt", "left", right, [(asked, left)], lambda op, a, b: classes.get((op, a, b), "."))


if __name__ == "__main__":
    main(Path(sys.argv[1]))

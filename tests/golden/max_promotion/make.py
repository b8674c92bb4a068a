"""Makes the goldens of this directory from tables read off MAX (README.md says how those were made).

Usage: python make.py TABLES, where TABLES holds max_matrix.csv, max26_table.csv and max26_values.csv.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import golden_tables

Key = tuple[str, str, str]

ERRORS = {
    r"Unsafe cast from (\w+) to (\w+)": r"!\1->\2",
    "Inputs must be bools|MoNotOp": "!bools",
    r"unsupported operand type\(s\) for (<<|>>)": "!shift",
    "Operation creation failed": "!equal",
    "bad operand type for abs": "!python",
    "Can't promote python int|with precision loss": "!int",
    "Can't promote python float|promote float array|bad_cast": "!float",
    "'complex'": "!complex",
    "'bool'": "!np.bool_",
    "'list'": "!list",
    "Binary ops require at least one": "!weak",
    "Literal constants must": "!dtype",
    "out of range": "!range",
}
"""How a message is abbreviated; the first pattern found decides."""


LIST = "list((1,2))"
"""How the list is written: a bracket would open a block."""


def cell(text: str) -> str:
    """A dtype as it is, an error as its abbreviation."""
    if not text.startswith("ERR:"):
        return text
    for pattern, short in ERRORS.items():
        if (found := re.search(pattern, text)) is not None:
            return found.expand(short)
    raise ValueError(f"no abbreviation for {text!r}")


def look_up(cells: dict[Key, str]) -> Callable[[str, str, str], str]:
    return lambda op, row, column: cells.get((op, row, column), ".")


def write(name: str, rows: str, cells: dict[Key, str]) -> None:
    """One file; operators recorded for the same rows share their blocks."""
    columns = list(dict.fromkeys(column for _, _, column in cells))
    listed: dict[str, tuple[str, ...]] = {}
    for op in dict.fromkeys(op for op, _, _ in cells):
        listed[op] = tuple(dict.fromkeys(row for o, row, _ in cells if o == op))
    blocks = [([op for op in listed if listed[op] == names], names) for names in dict.fromkeys(listed.values())]
    golden_tables.write(Path(__file__).parent / name, rows, columns, blocks, look_up(cells))


def main(tables: Path) -> None:
    with (tables / "max_matrix.csv").open() as file:
        matrix = list(csv.DictReader(file))
    document = {("implicit_cast_type", r["a\\b"], c): v for r in matrix for c, v in r.items() if c != "a\\b"}
    write("document.txt", "lhs", document)

    files: dict[str, dict[Key, str]] = {}
    with (tables / "max26_table.csv").open() as file:
        for r in csv.DictReader(file):
            value, op = cell(r["result"]), r["op"]
            a, b = (LIST if side == "[1,2]" else side for side in (r["a"], r["b"]))
            name, key = {
                ("tensor", "tensor"): ("tensors.txt", (op, a, b)),
                ("0d", "tensor"): ("scalars.txt", ("0d" + op, a, b)),
                ("tensor", "0d"): ("scalars.txt", (op + "0d", a, b)),
                ("tensor", "py"): ("weak_right.txt", (op, b, a)),
                ("py", "tensor"): ("weak_left.txt", (op, a, b)),
                ("tensor", ""): ("unary.txt", ("unary", op, a)),
                ("py,py", ""): ("calls.txt", ("calls", f"{op}({a})", "result")),
                ("", ""): ("calls.txt", ("calls", op, "result")),
            }[r["a_kind"], r["b_kind"]]
            if files.setdefault(name, {}).setdefault(key, value) != value:
                raise ValueError(f"two different cells for {key}")
    what = {
        "tensors.txt": "left operand",
        "scalars.txt": "left operand, the 0d side a tensor without dimensions",
        "weak_right.txt": "right operand, a value of Python or NumPy, the left one a tensor",
        "weak_left.txt": "left operand, a value of Python or NumPy, the right one a tensor",
        "unary.txt": "operator",
        "calls.txt": "call",
    }
    for name, cells in files.items():
        write(name, what[name], cells)
    (Path(__file__).parent / "values.csv").write_text((tables / "max26_values.csv").read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))

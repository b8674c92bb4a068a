"""Makes the goldens of this directory from tables read off nvidia-dali 2.4.0 (README.md says how those were made).

Usage: python make.py TABLES, where TABLES holds dali_table.csv, dali_values.csv and dali_dynamic.csv.
"""

from __future__ import annotations

import csv
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
from golden_tables import write

TYPES = [
    "bool",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
]
KINDS = {
    "tensor": "tensor",
    "0d": "0d",
    "1elem": "1elem",
    "py": "py",
    "Constant(9,T)": "constant",
    "np.T(9) scalar": "numpy-scalar",
    "np 0-d array": "numpy-0d",
    "np 1-d array const": "numpy-1d",
}
"""What a side was, and its name in the tables."""

ERRORS = {
    "Left operand data type not supported, DALIDataType: float16": "!left-float16",
    "Right operand data type not supported, DALIDataType: float16": "!right-float16",
    "Invalid type (left operand): float16": "!left-float16",
    "Invalid type (right operand): float16": "!right-float16",
    "Unsupported type: float16": "!float16",
    "!inputs_are_bool": "!bool",
    "must be of integral type": "!bitwise",
    "out of range for": "!range",
    'Invalid type of argument "integer_constants"': "!int64",
    "Got <class 'numpy.float64'>": "!numpy",
}
"""How a message is abbreviated; the first text found decides."""


def cell(text: str) -> str:
    """A dtype as it is, an error as its abbreviation."""
    if not text.startswith("ERR:"):
        return text
    for part, short in ERRORS.items():
        if part in text:
            return short
    raise ValueError(f"no abbreviation for {text!r}")


def blocks(cells: dict[tuple[str, str, str], str]) -> Iterable[tuple[list[str], list[str]]]:
    """The operations of a table, in groups with the same rows."""
    rows: dict[str, dict[str, None]] = {}
    for op, row, _ in cells:
        rows.setdefault(op, {})[row] = None
    groups: dict[tuple[str, ...], list[str]] = {}
    for op, names in rows.items():
        groups.setdefault(tuple(names), []).append(op)
    return [(ops, list(names)) for names, ops in groups.items()]


def save(path: Path, rows: str, columns: list[str], cells: dict[tuple[str, str, str], str]) -> None:
    write(path, rows, columns, blocks(cells), lambda op, row, column: cells.get((op, row, column), "."))


def main(tables: Path) -> None:
    here = Path(__file__).parent
    pairs: dict[tuple[str, str, str], str] = {}
    literals: dict[tuple[str, str, str], str] = {}
    unary: dict[tuple[str, str, str], str] = {}
    clamp: dict[tuple[str, str, str], str] = {}
    with (tables / "dali_table.csv").open() as file:
        for r in csv.DictReader(file):
            op, value = r["op"], cell(r["result"])
            if op.startswith("clamp"):
                low, high = r["b"].split(";")
                into, key = clamp, ("clamp", f"{r['a']},{low}", high)
            elif not r["b"]:
                into, key = unary, ("unary", op, r["a"])
            else:
                name = f"{op}:{KINDS[r['a_kind']]}:{KINDS[r['b_kind']]}"
                if r["a_kind"] == "py":
                    into, key = literals, (name, r["a"], r["b"])
                elif r["b_kind"] == "py":
                    into, key = literals, (name, r["b"], r["a"])
                else:
                    into, key = pairs, (name, r["a"], r["b"])
            if into.setdefault(key, value) != value:
                raise ValueError(f"two outcomes for {key}")
    save(here / "pairs.txt", "type of the left side; an operation is op:left:right", TYPES, pairs)
    save(here / "literals.txt", "literal, on the py side", TYPES, literals)
    save(here / "unary.txt", "operation", TYPES, unary)
    save(here / "clamp.txt", "value,low, high the column", list(dict.fromkeys(key[2] for key in clamp)), clamp)
    shutil.copyfile(tables / "dali_values.csv", here / "values.csv")
    shutil.copyfile(tables / "dali_dynamic.csv", here / "dynamic.csv")
    for name in ("values.csv", "dynamic.csv"):
        (here / name).chmod(0o644)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

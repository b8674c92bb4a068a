"""Every recorded cell of triton 3.9.0 against `triton_3_9`: results, and for refusals their class."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Promotion, PromotionError, triton_3_9

GOLDEN = Path(__file__).parents[1] / "golden" / "triton_promotion"

# The tables spell some types like ml_dtypes, the fp8 types neither so nor like `DType.triton`'s first spelling.
TYPES: dict[str, DType] = {
    **{d.name: d for d in dtypes.ALL},
    "int1": dtypes.bool_,
    "float8e4nv": dtypes.float8_e4m3fn,
    "float8e5": dtypes.float8_e5m2,
}

CLASSES = {
    "Nonrepresentable integer": "!integer",
    r"Scalar \S+ is negative": "!negative",
    r"Scalar \S+ is out of range": "!range",
    "one is signed": "!signedness",
    "have no common type": "!fp8",
    "^unary": "!type",
    "does not take float|does not take bfloat": "!float",
}


def outcome(compute: Callable[[], DType | Promotion]) -> str:
    """The result's name, or the class of the refusal."""
    try:
        result = compute()
    except PromotionError as error:
        found = [short for pattern, short in CLASSES.items() if re.search(pattern, str(error))]
        assert found, f"a refusal of no known class: {error}"
        return found[0]
    return str(result.result if isinstance(result, Promotion) else result)


def expected(cell: str) -> str:
    return cell if cell.startswith("!") else str(TYPES[cell])


def blocks(name: str) -> Iterator[tuple[list[str], str, dict[str, str]]]:
    """(operators of the block, name of the row, type -> cell) for each row of a golden file."""
    lines = (GOLDEN / name).read_text().splitlines()
    columns = lines[0].partition("columns: ")[2].split()
    operators: list[str] = []
    for line in lines[1:]:
        if line.startswith("["):
            operators = line[1:-1].split()
        elif line:
            row, *cells = line.split()
            yield operators, row, dict(zip(columns, cells, strict=True))


def test_pairs_of_tensors() -> None:
    wrong: list[str] = []
    cells = 0
    for operators, left, row in blocks("tensors.txt"):
        for op in operators:
            for right, cell in row.items():
                cells += 1
                got = outcome(lambda op=op, a=left, b=right: triton_3_9.binary(op, TYPES[a], TYPES[b]))
                if got != expected(cell):
                    wrong.append(f"{left} {op} {right}: {got}, the package {cell}")
    assert not wrong
    assert cells == 20 * 15 * 15


def test_tensors_with_literals_on_both_sides() -> None:
    wrong: list[str] = []
    cells = 0
    for operators, literal, row in blocks("scalars.txt"):
        value = eval(literal, {"float": float})  # literals as Python spells them: 2**31, float('nan')
        for op in operators:
            for name, cell in row.items():
                cells += 2
                sides = (
                    outcome(lambda op=op, v=value, t=name: triton_3_9.binary(op, TYPES[t], v)),
                    outcome(lambda op=op, v=value, t=name: triton_3_9.binary(op, v, TYPES[t])),
                )
                if sides != (expected(cell),) * 2:
                    wrong.append(f"{name} {op} {literal}: {sides}, the package {cell}")
    assert not wrong
    assert cells == 2 * 15 * (4 * 48 + 9 * 22)


@pytest.mark.parametrize(("row", "op"), [("neg", "neg"), ("pos", "pos"), ("invert", "~"), ("not", "not")])
def test_unary(row: str, op: str) -> None:
    table = {name: cells for _, name, cells in blocks("unary.txt")}
    got = {name: outcome(lambda t=name: triton_3_9.unary(op, TYPES[t]).result) for name in table[row]}
    assert got == {name: expected(cell) for name, cell in table[row].items()}


@pytest.mark.parametrize("op", ["sum", "cumsum", "max"])
def test_reductions(op: str) -> None:
    table = {name: cells for _, name, cells in blocks("unary.txt")}
    got = {name: outcome(lambda t=name: triton_3_9.reduction(op, TYPES[t]).operands) for name in table[op]}
    assert got == {name: expected(cell) for name, cell in table[op].items()}

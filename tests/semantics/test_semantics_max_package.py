"""Every recorded cell of max 26.7.0 against `max_26`: types, and for refusals their class."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import golden_tables
from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Constant, Promotion, PromotionError, Type
from weft.semantics.systems.max import max_26
from weft.semantics.systems.max_weak import External

GOLDEN = Path(__file__).parents[1] / "golden" / "max_promotion"

OPS = {"max": "maximum", "pow": "**", "invert": "~", "logical_not": "not"}
"""The tables' names that weft spells otherwise: their max is the elementwise one."""

MLIR = {
    **{f"{'s' if d.signed else 'u'}i{d.bits}": d.name for d in dtypes.ALL if d.is_integer},
    **{"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"},
}
"""The types as the package's errors spell them."""

CLASSES = {
    r"^Unsafe cast: \w+ does not hold": "!int",
    r"^Unsafe cast: \w+ does not take": "!float",
    "a float is no value of": "!float",
    "takes bools": "!bools",
    "^MAX has no '(<<|>>)'": "!shift",
    "takes equal types": "!equal",
    "no complex numbers": "!complex",
    "takes no NumPy scalar of bool": "!np.bool_",
    "one side must be a tensor": "!weak",
    "has no dtype": "!dtype",
    "the value is out of range": "!range",
    "^an operand is a dtype": "!list",
}


def outcome(compute: Callable[[], Promotion | Type]) -> str:
    """The result's name, or the class of the refusal; an unsafe cast with its types."""
    try:
        result = compute()
    except (PromotionError, ValueError) as error:
        if cast := re.match(r"Unsafe cast from (\w+) to (\w+); ", str(error)):
            return f"!{cast[1]}->{cast[2]}"
        found = [short for pattern, short in CLASSES.items() if re.search(pattern, str(error))]
        assert len(found) == 1, f"a refusal of no known class: {error}"
        return found[0]
    return str(result.type if isinstance(result, Promotion) else result)


def expected(cell: str) -> str:
    """A cell, with the types of an unsafe cast in weft's spelling."""
    if "->" not in cell:
        return cell
    return "!{}->{}".format(*(MLIR[name] for name in cell[1:].split("->")))


def check(name: str, cells: int, compute: Callable[[str, str, str], Promotion | Type]) -> None:
    """Compares a file, cell by cell; ``cells``: how many it holds."""
    table = list(golden_tables.read(GOLDEN / name))
    wrong = [
        f"{cell}: {got}"
        for cell in table
        if (got := outcome(lambda c=cell: compute(OPS.get(c.op, c.op), c.row, c.column))) != expected(cell.value)
    ]
    assert not wrong
    assert len(table) == cells


def value(text: str) -> Any:
    """A value as the tables write it."""
    return eval(text, {"np": np, "nan": float("nan"), "inf": float("inf")})


def test_pairs_of_tensors() -> None:
    check("tensors.txt", 3 * 21 * 21 + 17 * 13 * 13, lambda op, a, b: max_26.resolve(op, a, b))


def test_a_tensor_without_dimensions_is_like_any_other() -> None:
    def compute(op: str, a: str, b: str) -> Promotion:
        sides = (f"{a}[]", b) if op.startswith("0d") else (a, f"{b}[]")
        return max_26.resolve("+", *sides)

    check("scalars.txt", 2 * 13 * 13, compute)


def test_a_value_on_the_right() -> None:
    check("weak_right.txt", 9 * 45 * 15, lambda op, row, dtype: max_26.resolve(op, dtype, value(row)))


def test_a_value_on_the_left() -> None:
    check("weak_left.txt", 3 * 39 * 15, lambda op, row, dtype: max_26.resolve(op, value(row), dtype))


def test_unary() -> None:
    """``abs`` is left out: the package's tensors lack Python's ``abs()``, but have ``ops.abs``, which keeps the type (`more`)."""
    table = [c for c in golden_tables.read(GOLDEN / "unary.txt") if c.row != "abs"]
    got = [outcome(lambda c=c: max_26.resolve(OPS.get(c.row, c.row), c.column)) for c in table]
    assert got == [c.value for c in table]
    assert len(table) == 6 * 13


def test_python_abs_is_the_only_class_left_out() -> None:
    cells = Counter(c.value for c in golden_tables.read(GOLDEN / "unary.txt") if c.row == "abs")
    assert cells == {"!python": 13}
    assert all(str(max_26.result("abs", d)) == str(d) for d in max_26.dtypes)


CALLS: dict[str, Callable[[], Promotion | Type]] = {
    "ops.add(1,2)": lambda: max_26.resolve("+", 1, 2),
    "ops.add(1,2.0)": lambda: max_26.resolve("+", 1, 2.0),
    "ops.add(np.array([1]),2)": lambda: max_26.resolve("+", np.array([1]), 2),
    "ops.constant(1)": lambda: max_26.literal(1),
    "ops.constant(1.5)": lambda: max_26.literal(1.5),
    "ops.constant(True)": lambda: max_26.literal(True),
    # A constant made of an array keeps its type.
    "ops.constant(np.array([1,2]))": lambda: Type(External.of(np.array([1, 2])).dtype),
    "ops.constant(np.array([1.5],'f2'))": lambda: Type(External.of(np.array([1.5], "f2")).dtype),
    "ops.constant(300,DType.uint8,CPU)": lambda: max_26.promote(Constant(300, dtypes.uint8)),
    "ops.constant(-1,DType.uint8,CPU)": lambda: max_26.promote(Constant(-1, dtypes.uint8)),
    "ops.constant(1.5,DType.int32,CPU)": lambda: max_26.promote(Constant(1.5, dtypes.int32)),
    "ops.constant(1e300,DType.float32,CPU)": lambda: max_26.promote(Constant(1e300, dtypes.float32)),
    "ops.constant(2**24+1,DType.float32,CPU)": lambda: max_26.promote(Constant(2**24 + 1, dtypes.float32)),
    "ops.constant(0.1,DType.float16,CPU)": lambda: max_26.promote(Constant(0.1, dtypes.float16)),
}


def test_calls() -> None:
    table = {c.row: c.value for c in golden_tables.read(GOLDEN / "calls.txt")}
    assert {call: outcome(compute) for call, compute in CALLS.items()} == table


def test_the_goldens_hold_every_recorded_cell() -> None:
    """12469 were recorded: the sum of these."""
    names = ("tensors.txt", "scalars.txt", "weak_right.txt", "weak_left.txt", "unary.txt", "calls.txt")
    counts = {name: sum(1 for _ in golden_tables.read(GOLDEN / name)) for name in names}
    assert counts == {
        "tensors.txt": 4196,
        "scalars.txt": 338,
        "weak_right.txt": 6075,
        "weak_left.txt": 1755,
        "unary.txt": 91,
        "calls.txt": 14,
    }


def both(op: str, a: DType, b: DType) -> tuple[str, str]:
    return outcome(lambda: max_26.binary(op, a, b)), outcome(lambda: max_26.binary(op, b, a))


@pytest.mark.parametrize("op", ["+", "where", "maximum", "/", "//", "%", "<", "&"])
def test_commutes(op: str) -> None:
    for a, b in product(max_26.dtypes, repeat=2):
        left, right = both(op, a, b)
        assert left == right


def test_idempotent() -> None:
    assert all(max_26.promote(d, d) == Type(d) for d in max_26.dtypes)


def test_associative_but_for_refusals() -> None:
    """Where both orders have a type it is one; where only one has, the other refuses: it depends on the order."""
    refused = 0
    for a, b, c in product(max_26.dtypes, repeat=3):
        left = outcome(lambda a=a, b=b, c=c: max_26.promote(max_26.promote(a, b), c))
        right = outcome(lambda a=a, b=b, c=c: max_26.promote(a, max_26.promote(b, c)))
        if left.startswith("!") or right.startswith("!"):
            refused += left.startswith("!") != right.startswith("!")
        else:
            assert left == right
    assert refused > 0
    # By hand: bool yields and float32 takes int16; (int16, float16) is refused, yet float16, float32 first is float32.
    assert outcome(lambda: max_26.promote(max_26.promote("int16", "float16"), "float32")) == "!int16->float16"
    assert max_26.promote("int16", max_26.promote("float16", "float32")) == Type(dtypes.float32)

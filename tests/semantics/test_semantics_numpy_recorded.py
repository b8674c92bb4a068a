"""Every recorded cell of NumPy 2.4.6 against `numpy`: results, and for refusals their class."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from golden_tables import read
from weft import dtypes, semantics
from weft.semantics import Constant, Operand, Promotion, PromotionError, Type

GOLDEN = Path(__file__).parents[1] / "golden" / "numpy_promotion"
NUMPY = semantics.get("numpy")
UNARY = {"neg": "neg", "pos": "pos", "invert": "~", "abs": "abs", "sqrt": "sqrt", "exp": "exp", "floor": "floor"}
FORMS: dict[str, tuple[Callable[[str], Operand], Callable[[str], Operand]]] = {
    "array+array": (dtypes.named, dtypes.named),
    "array+0d": (dtypes.named, lambda name: Type(dtypes.named(name), scalar=True)),
    "array+npscalar": (dtypes.named, lambda name: Constant(1, dtypes.named(name))),
    "0d+0d": (lambda name: Type(dtypes.named(name), scalar=True), lambda name: Type(dtypes.named(name), scalar=True)),
}

CLASSES = {
    "out of bounds|fits neither int64 nor uint64|Python integers of 64 bits": "!range",
    "Integers to negative integer powers": "!power",
    r"does not take bool\b": "!bool",
    "has no loop for": "!loop",
    "have no common type": "!common",
}


def outcome(compute: Callable[[], Promotion]) -> str:
    """The result's name, or the class of the refusal."""
    try:
        return str(compute().result)
    except PromotionError as error:
        found = [short for pattern, short in CLASSES.items() if re.search(pattern, str(error))]
        assert found, f"a refusal of no known class: {error}"
        return found[0]


def number(text: str) -> bool | int | float | complex:
    """A Python number of the tables: 1e+300, nan, 1j, True."""
    return eval(text, {"nan": float("nan"), "inf": float("inf")})


def test_common_types() -> None:
    wrong: list[str] = []
    cells = 0
    for op, left, right, value in read(GOLDEN / "common.txt"):
        cells += 1
        if op == "promote_types":
            got = outcome(lambda a=left, b=right: NUMPY.common(dtypes.named(a), dtypes.named(b)))
        else:
            first, second = (form(name) for form, name in zip(FORMS[op], (left, right), strict=True))
            got = outcome(lambda a=first, b=second: NUMPY.binary("+", a, b))
        if got != value:
            wrong.append(f"{op} {left} {right}: {got}, NumPy {value}")
    assert not wrong
    assert cells == 5 * 30 * 30


def test_pairs_of_arrays() -> None:
    wrong: list[str] = []
    cells = 0
    for op, left, right, value in read(GOLDEN / "arrays.txt"):
        cells += 1
        got = outcome(lambda op=op, a=left, b=right: NUMPY.resolve(op, dtypes.named(a), dtypes.named(b)))
        if got != value:
            wrong.append(f"{left} {op} {right}: {got}, NumPy {value}")
    assert not wrong
    assert cells == 18 * 17 * 17


def test_python_numbers_with_arrays_and_scalars() -> None:
    wrong: list[str] = []
    cells = 0
    for op, row, name, value in read(GOLDEN / "numbers.txt"):
        cells += 1
        dtype, literal = dtypes.named(name), number(row)
        if op.startswith("py"):
            operands: tuple[Operand, Operand] = (literal, dtype)
        else:
            operands = (Constant(1, dtype) if op.startswith("scalar") else dtype, literal)
        symbol = op.replace("scalar", "").replace("array", "").replace("py", "")
        got = outcome(lambda op=symbol, ab=operands: NUMPY.binary(op, *ab))
        if got != value:
            wrong.append(f"{op} {literal} {name}: {got}, NumPy {value}")
    assert not wrong
    assert cells == 3 * 12 * 31 * 17


def test_unary_operators_and_reductions() -> None:
    wrong: list[str] = []
    cells = 0
    for op, _, name, value in read(GOLDEN / "unary.txt"):
        cells += 1
        got = outcome(lambda op=op, name=name: NUMPY.resolve(op, dtypes.named(name)))
        if got != value:
            wrong.append(f"{op} {name}: {got}, NumPy {value}")
    assert not wrong
    assert cells == 12 * 17

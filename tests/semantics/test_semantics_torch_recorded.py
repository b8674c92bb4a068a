"""Every recorded cell of PyTorch 2.13.0 against `torch`: results, and for refusals their class."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from golden_tables import read
from weft import dtypes, semantics
from weft.dtypes import DType
from weft.semantics import Operand, Promotion, PromotionError, Type

GOLDEN = Path(__file__).parents[1] / "golden" / "torch_promotion"
TORCH = semantics.get("torch")

CLASSES = {
    "float8 types meet only themselves": "!float8",
    "uint16, uint32 and uint64 meet only": "!unsigned",
    "has no complex counterpart": "!counterpart",
    "fits neither int64 nor uint64": "!range",
    r"torch.sub does not take bool\b": "!bool",
    "does not take complex numbers": "!complex",
    "takes tensors, found": "!number",
    "^mean takes floats": "!mean",
    "is not implemented": "!kernel",
}


def outcome(compute: Callable[[], Promotion]) -> str:
    """The result's name, or the class of the refusal."""
    try:
        return str(compute().result)
    except PromotionError as error:
        found = [short for pattern, short in CLASSES.items() if re.search(pattern, str(error))]
        assert found, f"a refusal of no known class: {error}"
        return found[0]


def operand(text: str) -> Operand:
    """``uint8``, ``uint8[]`` or a Python number."""
    if text.endswith("[]"):
        return Type(dtypes.named(text[:-2]), scalar=True)
    try:
        return dtypes.named(text)
    except ValueError:
        return eval(text, {"nan": float("nan")})


def test_pairs_of_tensors() -> None:
    wrong: list[str] = []
    cells = 0
    for op, left, right, value in read(GOLDEN / "tensors.txt"):
        cells += 1
        got = outcome(lambda op=op, a=left, b=right: TORCH.resolve(op, dtypes.named(a), dtypes.named(b)))
        if got != value:
            wrong.append(f"{left} {op} {right}: {got}, PyTorch {value}")
    assert not wrong
    assert cells == 18 * 21 * 21


def test_the_three_classes_of_operands() -> None:
    wrong: list[str] = []
    cells = 0
    for op, left, right, value in read(GOLDEN / "classes.txt"):
        cells += 1
        a, b = operand(left), operand(right)
        if op == "promote_types":
            a, b = (x.dtype if isinstance(x, Type) else x for x in (a, b))
            assert isinstance(a, DType)
        if op == "add_dtype":
            got = outcome(lambda a=a, b=b: TORCH.binary("+", a, b))
        else:
            got = outcome(lambda a=a, b=b: TORCH.common(a, b))
        if got != value:
            wrong.append(f"{op} {left} {right}: {got}, PyTorch {value}")
    assert not wrong
    assert cells == 3 * 42 * 42 + 2 * 42 * 12 + 4 * 4  # promote_types knows no numbers, nor `+` two of them


def test_python_numbers() -> None:
    wrong: list[str] = []
    cells = 0
    for op, kind, name, value in read(GOLDEN / "numbers.txt"):
        cells += 1
        number = {"int": 2, "float": 1.5}[kind]
        got = outcome(lambda op=op, name=name, number=number: TORCH.binary(op, dtypes.named(name), number))
        if got != value:
            wrong.append(f"{name} {op} {number}: {got}, PyTorch {value}")
    assert not wrong
    assert cells == 18 * 21 * 2


def test_unary_operators_and_reductions() -> None:
    wrong: list[str] = []
    cells = 0
    for op, _, name, value in read(GOLDEN / "unary.txt"):
        cells += 1
        got = outcome(lambda op=op, name=name: TORCH.resolve(op, dtypes.named(name)))
        if got != value:
            wrong.append(f"{op} {name}: {got}, PyTorch {value}")
    assert not wrong
    assert cells == 12 * 21

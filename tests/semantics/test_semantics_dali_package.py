"""Every recorded cell of nvidia-dali 2.4.0 against `dali_2`: results, and for refusals their class."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from golden_tables import read
from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Constant, PromotionError, Type
from weft.semantics.systems.dali import constant, dali_2

GOLDEN = Path(__file__).parents[1] / "golden" / "dali_promotion"

CLASSES = {
    r"the left operand of '\S+' is float16": "!left-float16",
    r"the right operand of '\S+' is float16": "!right-float16",
    r"the operand of '\S+' is float16": "!float16",
    "cannot be bool": "!bool",
    "^bitwise": "!bitwise",
    "out of range for int64": "!int64",
    "out of range for": "!range",
    "does not take numpy.float64": "!numpy",
    r"^fn\.reductions": "!type",
}

OPS = {
    "min": "minimum",
    "max": "maximum",
    "reduce min": "min",
    "reduce max": "max",
    "reduce sum": "sum",
    "reduce mean": "mean",
}
"""``nvidia.dali.math`` calls minimum and maximum what weft calls the reductions."""


def outcome(op: str, *operands: object) -> str:
    """The name of the result's type, or the class of the refusal."""
    try:
        return str(dali_2.resolve(OPS.get(op, op), *operands).result)
    except PromotionError as error:
        found = [short for pattern, short in CLASSES.items() if re.search(pattern, str(error))]
        assert found, f"a refusal of no known class: {error}"
        return found[0]


def side(kind: str, name: str) -> object:
    """What stood on one side, as an operand of weft."""
    dtype = dtypes.named(name)
    match kind:
        case "tensor" | "1elem":
            return dtype
        case "0d":
            return Type(dtype, scalar=True)
        case "constant":
            return constant(9, dtype)
        case "numpy-scalar":
            return dtype.numpy.type(9)
        case "numpy-0d":
            return np.array(9, dtype.numpy)
        case "numpy-1d":
            return np.array([9, 2], dtype.numpy)
        case _:
            raise ValueError(kind)


def ordered(op: str, left: object, right: object) -> tuple[object, object]:
    """The sides as DALI sees them: Python asks the tensor, so ``constant < tensor`` arrives as ``tensor > constant``. A refusal
    then names the tensor the left operand; nothing else depends on it."""
    return (right, left) if op in ("<:constant:tensor", "<:py:tensor") else (left, right)


def test_pairs() -> None:
    wrong: list[str] = []
    cells = 0
    for op, row, column, value in read(GOLDEN / "pairs.txt"):
        cells += 1
        symbol, left, right = op.split(":")
        sides = ordered(op, side(left, row), side(right, column))
        got = outcome(symbol, *sides)
        if got != value:
            wrong.append(f"{row} {op} {column}: {got}, the package {value}")
    assert not wrong
    assert cells == 12306 - 192 - 392 - 3156


def literal(text: str) -> Any:
    return eval(text, {"nan": math.nan, "inf": math.inf})  # literals as Python spells them


def test_tensors_with_literals_on_both_sides() -> None:
    wrong: list[str] = []
    cells = 0
    for op, row, column, value in read(GOLDEN / "literals.txt"):
        cells += 1
        symbol, left, _ = op.split(":")
        sides = ordered(op, literal(row), column) if left == "py" else (column, literal(row))
        got = outcome(symbol, *sides)
        if got != value:
            wrong.append(f"{row} {op} {column}: {got}, the package {value}")
    assert not wrong
    assert cells == 3156


def test_unary() -> None:
    cells = list(read(GOLDEN / "unary.txt"))
    got = [outcome(c.row, c.column) for c in cells]
    assert got == [c.value for c in cells]
    assert len(cells) == 192


def test_clamp() -> None:
    cells = list(read(GOLDEN / "clamp.txt"))
    got = [outcome("clamp", *c.row.split(","), c.column) for c in cells]
    assert got == [c.value for c in cells]
    assert len(cells) == 392


def test_reductions() -> None:
    cells = list(read(GOLDEN / "reductions.txt"))
    got = [outcome(f"reduce {c.row}", c.column) for c in cells]
    assert got == [c.value for c in cells]
    assert len(cells) == 4 * 12


@dataclass(frozen=True)
class Traced:
    """Stands for a tensor in the recorded expressions: each operator asks `dali_2` and keeps the type."""

    dtype: DType

    def __array_ufunc__(self, *_: object, **__: object) -> Any:
        raise AssertionError("NumPy takes over; the expressions have the tensor on the left of arrays")


def _forward(op: str) -> Callable[..., Traced]:
    return lambda *operands: apply(op, *operands)


def _reflected(op: str) -> Callable[[Traced, object], Traced]:
    return lambda self, other: apply(op, other, self)


def apply(op: str, *operands: object) -> Traced:
    types = [o.dtype if isinstance(o, Traced) else o for o in operands]
    if not all(isinstance(o, (DType, bool, int, float, Constant, np.generic, np.ndarray, list)) for o in types):
        dali_2.literal(types[1])  # type: ignore[arg-type]  # complex and None: refused
    return Traced(dali_2.result(op, *types).dtype)


_METHODS = {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"},
    **{"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"},
}
for _method, _op in _METHODS.items():
    setattr(Traced, f"__{_method}__", _forward(_op))
    setattr(Traced, f"__r{_method}__", _reflected(_op))
for _method, _op in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(Traced, f"__{_method}__", _forward(_op))
for _method, _op in {"neg": "neg", "pos": "pos", "invert": "~", "abs": "abs"}.items():
    setattr(Traced, f"__{_method}__", _forward(_op))


def cast_to(x: Traced, dtype: DType) -> Traced:
    return Traced(dali_2.cast(x.dtype, dtype).result)


MATH = ("floor", "sqrt", "tan", "clamp", "fpow")
NAMES: dict[str, Any] = {
    "np": np,
    "nan": math.nan,
    "DT": SimpleNamespace(**{d.name.upper(): d for d in dali_2.dtypes}, FLOAT=dtypes.float32),
    "dm": SimpleNamespace(**{name: _forward(name) for name in MATH}, min=_forward("minimum"), max=_forward("maximum")),
    "fn": SimpleNamespace(
        cast=cast_to,
        cat=_forward("concat"),
        reductions=SimpleNamespace(**{name: _forward(name) for name in ("sum", "mean", "max", "min")}),
    ),
    "Constant": constant,
}

RUN_TIME = {
    "ERR:ValueError: Integer division by zero.": "a zero divisor is a value",
    "ERR:RuntimeError: Can't broadcast shapes:": "shapes are not promotion",
    "CRASH:": "MIN // -1 is a value",
}
"""Outcomes that are no matter of types: what must hold instead is that promotion accepts, with a checked meaning or none."""

EDGES = {
    "list out of range": "an element beyond int32 saturates in DALI; weft refuses it, as DALI does in an array",
}

REFUSALS = {
    r"Integer constant (-?\d+) out of range for (\w+)": "Integer constant {0} is out of range for {1};",
    'Invalid type of argument "integer_constants"': "is out of range for int64, in which DALI passes constants;",
    r"Integer (\d+) out of range for (\w+)": "Integer {0} is out of range for {1}, the type of constant tensors",
    "Right operand data type not supported, DALIDataType: float16": "the right operand of",
    r"Invalid type \(left operand\): float16": "is float16, with which DALI does not compute;",
    r"Inputs to arithmetic operator `(\S+)` cannot be booleans": "the inputs of '{0}' cannot be bool;",
    r"Input to arithmetic operator `(-|abs)` cannot be a boolean": "the input of '{0}' cannot be bool;",
    "numpy.float64": "DALI's arithmetic does not take numpy.float64;",
    "got <class 'complex'>": "DALI has no complex numbers, found 1j;",
    "cannot convert float NaN to integer": "nan is no integer, so no constant of type uint8;",
    "All inputs must have the same type": "fn.cat takes inputs of one type, found int32 and float32;",
}
"""The package's refusals and a part of weft's, which may quote groups of the first."""


def recorded(name: str) -> list[Any]:
    with (GOLDEN / name).open() as file:
        return [pytest.param(row, id=row["name"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize("row", [*recorded("values.csv"), *recorded("edges.csv")])
def test_types_of_the_recorded_expressions(row: dict[str, str]) -> None:
    inputs = [Traced(dtypes.named(text.rsplit(":", 1)[1])) for text in row["inputs"].split("; ")]

    def compute() -> Traced:
        return eval(row["expr"], dict(NAMES))(*inputs)

    expected = row["dtype_or_error"]
    if row["name"] == "None const":
        with pytest.raises(
            ValueError, match="^an operand is a dtype, a number, a weak type or a typed constant, found None$"
        ):
            compute()
    elif row["name"] in EDGES:
        with pytest.raises(
            PromotionError, match="^Integer 1099511627776 is out of range for int32, the type of constant tensors"
        ):
            compute()
    elif any(expected.startswith(text) for text in RUN_TIME):
        assert compute().dtype in dali_2.dtypes
    elif expected.startswith("ERR:"):
        quoted = [
            ours.format(*found.groups()) for known, ours in REFUSALS.items() if (found := re.search(known, expected))
        ]
        assert quoted, f"a refusal of no known class: {expected}"
        with pytest.raises(PromotionError, match=re.escape(quoted[0])):
            compute()
    else:
        assert str(compute().dtype) == expected


@pytest.mark.parametrize(
    ("op", "left", "right", "result"),
    [
        ("+", np.uint8(9), dtypes.bool_, "int32"),  # int(9), which is int32
        ("//", np.int64(9), dtypes.uint8, "int32"),
        ("+", np.float16(9), dtypes.uint8, "float32"),
        ("<", np.float64(9), dtypes.uint8, "bool"),
        ("minimum", np.uint8(9), dtypes.uint8, "uint8"),  # a function of DALI's, which sees the scalar
    ],
)
def test_numpy_scalars_on_the_left_of_an_operator_are_numbers(op: str, left: Any, right: DType, result: str) -> None:
    """Read off the package: NumPy's scalar is asked first, and hands on a number of Python."""
    assert str(dali_2.result(op, left, right)) == result

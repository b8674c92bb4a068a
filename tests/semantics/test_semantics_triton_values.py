"""Recorded values of triton 3.9.0: each expression promoted by `triton_3_9`, its meanings evaluated in NumPy.

The record's text is run as Python, with names that build `Scalar`s: their operators ask the system and do what it says.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Promotion, triton_3_9
from weft.semantics.evaluate import convert, evaluate

GOLDEN = Path(__file__).parents[1] / "golden" / "triton_promotion" / "values.csv"


@dataclass(frozen=True, eq=False)
class Scalar:
    """A run-time value without dimensions."""

    array: Any

    @property
    def dtype(self) -> DType:
        return dtypes.from_numpy(self.array.dtype)

    def to(self, dtype: DType) -> Scalar:
        return Scalar(convert(triton_3_9.cast(self.dtype, dtype).meaning, self.array, dtype))


def scalar(dtype: DType) -> Callable[[float], Scalar]:
    """What `i32(-7)` is in the record: a number made in the type; what is too large for a float is infinite."""

    def make(value: float) -> Scalar:
        with np.errstate(over="ignore"):
            return Scalar(np.asarray(triton_3_9.number(value, dtype)).astype(dtype.numpy))

    return make


def operation(op: str, swapped: bool = False) -> Callable[..., Scalar]:
    def apply(*operands: Any) -> Scalar:
        operands = operands[::-1] if swapped else operands
        promotion = triton_3_9.resolve(op, *(o.dtype if isinstance(o, Scalar) else o for o in operands))
        result = Scalar(evaluate(promotion.meaning, *(converted(o, promotion) for o in operands)))
        assert result.dtype == promotion.result
        return result

    return apply


def converted(value: Any, promotion: Promotion) -> Any:
    if isinstance(value, Scalar):
        return value.to(promotion.operands).array
    return scalar(promotion.operands)(value).array


for name, op in {
    **{"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%"},
    **{"and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>"},
}.items():
    setattr(Scalar, f"__{name}__", operation(op))
    setattr(Scalar, f"__r{name}__", operation(op, swapped=True))
for name, op in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}.items():
    setattr(Scalar, f"__{name}__", operation(op))
setattr(Scalar, "__neg__", operation("neg"))  # noqa: B010 -- the class has no such attribute to a type checker
setattr(Scalar, "__invert__", operation("~"))  # noqa: B010


def where(condition: Scalar, x: Any, y: Any) -> Scalar:
    promotion = triton_3_9.resolve("where", condition.dtype, *(o.dtype if isinstance(o, Scalar) else o for o in (x, y)))
    return Scalar(evaluate("select", condition.array, converted(x, promotion), converted(y, promotion)))


def full(shape: tuple[()], value: float, dtype: DType) -> Scalar:
    assert shape == ()
    return scalar(dtype)(value)


LANGUAGE = SimpleNamespace(
    **{("int1" if d.is_bool else d.name): d for d in dtypes.ALL},
    float8e4nv=dtypes.float8_e4m3fn,
    float8e5=dtypes.float8_e5m2,
    where=where,
    minimum=operation("minimum"),
    maximum=operation("maximum"),
    cdiv=operation("cdiv"),
    full=full,
)
NAMES: dict[str, Any] = {
    **{f"i{d.bits}": scalar(d) for d in dtypes.ALL if not d.is_float and d.signed},
    **{f"u{d.bits}": scalar(d) for d in dtypes.ALL if d.is_integer and not d.signed},
    **{f"f{d.bits}": scalar(d) for d in (dtypes.float16, dtypes.float32, dtypes.float64)},
    "i1": scalar(dtypes.bool_),
    "bf16": scalar(dtypes.bfloat16),
    "tl": LANGUAGE,
    "float": float,
}
RECORDED = [tuple(row) for row in csv.reader(GOLDEN.read_text().splitlines())][1:]


def test_the_record_is_read() -> None:
    assert len(RECORDED) == 176


@pytest.mark.parametrize(("expression", "dtype", "value"), RECORDED, ids=[row[0] for row in RECORDED])
def test_values(expression: str, dtype: str, value: str) -> None:
    got = eval(expression, NAMES)
    assert got.dtype == dtypes.named(dtype)
    number, expected = got.array.item(), eval(value, {"inf": math.inf, "nan": math.nan})
    if isinstance(expected, float):
        assert number == expected or (math.isnan(number) and math.isnan(expected))
    else:
        assert (type(number), number) == (type(expected), expected)

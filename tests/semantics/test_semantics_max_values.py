"""The meanings `max_26` chooses, against values that max 26.7.0 computed."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from weft import dtypes
from weft.semantics import Promotion
from weft.semantics.meanings import MEANINGS
from weft.semantics.systems.max import BINARY, REDUCTIONS, UNARY, max_26

GOLDEN = Path(__file__).parents[1] / "golden" / "max_promotion"

Array = NDArray[Any]


def rows() -> list[dict[str, str]]:
    """The recorded values: the expression, its inputs, the type or error, the values."""
    found: list[dict[str, str]] = []
    for name in ("values.csv", "more.csv"):
        with (GOLDEN / name).open() as file:
            found += csv.DictReader(file)
    return found


def promoted(expression: str, types: dict[str, str]) -> Promotion:
    """What weft makes of an expression of the tables: ``x//y``, ``x+0.1``, ``-x``, ``ops.max(x,y)``."""
    text = expression
    if text.startswith("ops.cast"):
        return max_26.cast(dtypes.named(types["x"]), dtypes.named(text.partition("DType.")[2].rstrip(")")))
    if text.startswith("ops."):
        name = text[4:].partition("(")[0]
        op = {"max": "maximum", "min": "minimum"}.get(name, name)
        return max_26.resolve(op, *types.values())
    if text[0] in "-~":
        return max_26.resolve(text[0], types["x"])
    op = text[1:3] if text[1:3] in BINARY else text[1]
    right = text[1 + len(op) :]
    return max_26.resolve(op, types["x"], types["y"] if right == "y" else right)


def floor_divide(x: Array, y: Array) -> Array:
    """Of floats the floor of their quotient."""
    return np.floor(x / y) if x.dtype.kind == "f" else np.floor_divide(x, y)


def select(x: Array, y: Array) -> Array:
    """With the recorded condition."""
    return np.where(np.array([True, False]), x, y)


def floor_remainder(x: Array, y: Array) -> Array:
    """By the definition in `MEANINGS`: x - y * floor(x / y), 0 for a zero divisor of integers."""
    return x - y * np.floor(x / y) if x.dtype.kind == "f" else np.where(y == 0, 0, np.mod(x, y))


def power(x: Array, y: Array) -> Array:
    """Integers wrap, a negative exponent gives the truncated reciprocal."""
    if x.dtype.kind == "f":
        return np.power(x, y)
    exact = [int(a) ** int(b) if b >= 0 else math.trunc(float(int(a)) ** int(b)) for a, b in zip(x, y, strict=True)]
    low, span = np.iinfo(x.dtype).min, 1 << (8 * x.dtype.itemsize)
    return np.array([(v - low) % span + low for v in exact]).astype(x.dtype)


def floor_remainder_fused(x: Array, y: Array) -> Array:
    """In float64: what was recorded rounds nothing in float32."""
    a, b = x.astype(np.float64), y.astype(np.float64)
    rest = a - np.trunc(a / b) * b
    return np.where((rest != 0) & ((a < 0) != (b < 0)), rest + b, rest).astype(x.dtype)


NUMPY: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "divide": np.divide,
    "floor_divide_checked": floor_divide,
    "truncate_divide_checked": lambda *sides: np.trunc(np.divide(*sides)),
    "floor_divide_quotient": lambda *sides: np.floor(np.divide(*sides)),
    "floor_remainder": floor_remainder,
    "floor_remainder_fused": floor_remainder_fused,
    "power": power,
    "and": np.logical_and,
    "less": np.less,
    "less_unordered": lambda *sides: np.logical_not(np.greater_equal(*sides)),
    "equal": np.equal,
    "not": np.logical_not,
    "maximum": np.fmax,
    "minimum": np.fmin,
    "select": select,
    "abs": np.abs,
    "floor": np.floor,
    "sqrt": np.sqrt,
}
"""Each meaning that values were recorded for, by its definition."""


def inputs(text: str) -> list[Array]:
    arrays: list[Array] = []
    for part in text.split("; "):
        values, dtype = part.rsplit(":", 1)
        read: list[Any] = eval(values, {"nan": math.nan, "inf": math.inf})
        arrays.append(np.array(read).astype(dtypes.named(dtype).numpy))
    return arrays


ERRORS = [r for r in rows() if r["dtype_or_error"].startswith("ERR")]
CASTS = [r for r in rows() if r["expr"].startswith("ops.cast")]
COMPUTED = [r for r in rows() if r not in ERRORS and r not in CASTS]


def types_of(row: dict[str, str]) -> dict[str, str]:
    return dict(zip("xy", (part.rsplit(":", 1)[1] for part in row["inputs"].split("; ")), strict=False))


@pytest.mark.parametrize("row", COMPUTED, ids=lambda r: f"{r['expr']} {r['inputs']}")
def test_values(row: dict[str, str]) -> None:
    expression = row["expr"]
    if expression.startswith("ops.where"):
        expression = "ops.where(x,y)"
    promotion = promoted(expression, types_of(row))
    assert str(promotion.result) == row["dtype_or_error"]
    compute = promotion.operands.numpy
    arrays = [a.astype(compute) for a in inputs(row["inputs"])]
    if len(arrays) == 1 and promotion.meaning.removesuffix("_flushed") in {*(BINARY[op].meaning for op in BINARY)}:
        literal = float(expression.lstrip("x+-*/%<>="))
        with np.errstate(over="ignore"):
            arrays.append(np.full_like(arrays[0], literal if compute.kind == "f" else int(literal)))
    with np.errstate(all="ignore"):
        got = NUMPY[promotion.meaning.removesuffix("_flushed")](*arrays).astype(promotion.result.numpy)
    want = np.array(eval(row["value"], {"nan": math.nan, "inf": math.inf}), dtype=promotion.result.numpy)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("row", CASTS, ids=lambda r: f"{r['expr']} {r['inputs']}")
def test_casts(row: dict[str, str]) -> None:
    """All wrap as ``convert_wrap`` says, but for NaN to bool (``convert_truth``) and floats out of range of 32 and 64 bits."""
    promotion = promoted(row["expr"], types_of(row))
    target = promotion.result
    (source,) = inputs(row["inputs"])
    meaning = "convert_truth" if target.is_bool and source.dtype.kind == "f" else "convert_wrap"
    assert (str(promotion.result), promotion.meaning) == (row["dtype_or_error"], meaning)
    want: list[Any] = eval(row["value"], {"inf": math.inf})
    for value, found in zip(source.tolist(), want, strict=True):
        if target.is_bool and math.isnan(value):
            assert found is False  # x != 0 would be True
        elif target in (dtypes.uint32, dtypes.uint64) and not 0 <= value <= target.max:
            assert found == target.max  # x86's AVX-512 instruction; the meaning leaves MIN = 0 or the wrapped value
        else:
            assert found == converted(value, target)


def converted(value: float, target: dtypes.DType) -> Any:
    """``convert_wrap`` in exact arithmetic: toward zero; outside int32 (int64 for 64 bits) its MIN, and then wrapped."""
    if target.is_bool:
        return value != 0
    if target.is_float:
        return np.float64(value).astype(target.numpy).item() if abs(value) < 65520 else math.copysign(math.inf, value)
    wide = dtypes.int64 if target.bits == 64 else dtypes.uint32 if target == dtypes.uint32 else dtypes.int32
    inside = math.isfinite(value) and wide.min <= math.trunc(value) <= wide.max
    whole = math.trunc(value) if inside else wide.min
    return (whole - target.min) % (1 << target.bits) + target.min


def test_what_the_package_fails_to_compile_is_noted() -> None:
    """Each recorded failure has the step, and no recorded success."""
    for row in rows():
        if row["expr"].startswith(("ops.cast", "ops.where")) or row["dtype_or_error"] == "ERR:SIGFPE":
            continue
        noted = "not compiled" in [s.rule for s in promoted(row["expr"], types_of(row)).steps]
        assert noted == row["dtype_or_error"].startswith("ERR"), row


def test_an_integer_division_by_zero_ends_the_package_and_is_an_error_here() -> None:
    ended = [r for r in rows() if r["dtype_or_error"] == "ERR:SIGFPE"]
    assert len(ended) == 2
    for row in ended:
        assert promoted(row["expr"], types_of(row)).meaning == "floor_divide_checked"


def test_every_meaning_is_defined() -> None:
    used = {rule.meaning for rule in BINARY.values()} | {*UNARY.values()} | {*REDUCTIONS}
    assert used <= {*MEANINGS}

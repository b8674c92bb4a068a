"""`weft.semantics.evaluate` against exact arithmetic, and against values recorded from the packages themselves.

Integers of 8 bits exhaustively, against Python's own operators in other words than the module's; floats against fractions; the
edge cases by hand. The recorded values (`tests/golden/semantics_values`) say what each system's operation gives once its operands
have one type; which meaning that is, stands beside them.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from weft import dtypes
from weft.dtypes import DType
from weft.semantics.evaluate import convert, evaluate
from weft.semantics.meanings import MEANINGS

GOLDEN = Path(__file__).parents[1] / "golden" / "semantics_values" / "values.csv"
Array = NDArray[Any]


def pairs(dtype: DType) -> tuple[Array, Array]:
    """All pairs of values of 8 bits."""
    values = np.arange(256, dtype=np.uint8).view(dtype.numpy)
    x, y = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
    return values[x.ravel()], values[y.ravel()]


# C's quotient is the fraction truncated, Python's is floored; x86 shifts by the amount modulo the width of a register.
EXACT: dict[str, Callable[[int, int], int]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "truncate_divide": lambda x, y: math.trunc(Fraction(x, y)) if y else 0,
    "floor_divide": lambda x, y: math.floor(Fraction(x, y)) if y else 0,
    "floor_divide_checked": lambda x, y: math.floor(Fraction(x, y)),
    "truncate_remainder": lambda x, y: int(math.fmod(x, y)) if y else x,
    "truncate_remainder_zero": lambda x, y: int(math.fmod(x, y)) if y else 0,
    "floor_remainder": lambda x, y: divmod(x, y)[1] if y else 0,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "shift_left": lambda x, y: x * 2 ** (y % 256) if y % 256 < 8 else 0,
    "shift_right": lambda x, y: x // 2 ** (y % 256),
    "shift_right_logical": lambda x, y: x % 256 // 2 ** (y % 256),
    "shift_left_masked": lambda x, y: x * 2 ** (y % 32),
    "shift_right_masked": lambda x, y: x // 2 ** (y % 32),
    "minimum": min,
    "maximum": max,
}


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=str)
@pytest.mark.parametrize("meaning", EXACT)
def test_integers_of_8_bits_are_exact(meaning: str, dtype: DType) -> None:
    x, y = pairs(dtype)
    if meaning.endswith("checked"):
        x, y = x[y != 0], y[y != 0]
    exact = list(map(EXACT[meaning], x.tolist(), y.tolist()))
    want = np.array([v % 256 for v in exact], np.uint8).view(dtype.numpy)
    got = evaluate(meaning, x, y)
    assert got.dtype == dtype.numpy
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8], ids=str)
def test_powers_of_8_bits_are_repeated_products(dtype: DType) -> None:
    x, y = pairs(dtype)
    power = np.ones(x.size, np.uint8)
    for step in range(256):
        with np.errstate(over="ignore"):
            power = np.where(y.view(np.uint8) > step, power * x.view(np.uint8), power)
    want = np.where(y < 0, 0, power).astype(np.uint8).view(dtype.numpy)
    assert evaluate("power", x, y).tolist() == want.tolist()


# Bools, all four pairs (0 0, 0 1, 1 0, 1 1), by hand: the integers modulo 2.
BOOLS = {
    "add": "0110", "sub": "0110", "mul": "0001", "truncate_divide": "0001", "floor_divide": "0001", "ceil_divide": "0001",
    "floor_divide_xla": "1011", "truncate_remainder": "0010", "floor_remainder": "0000", "power": "1011", "and": "0001",
    "or": "0111", "xor": "0110", "shift_left": "0010", "shift_right": "0010", "shift_right_arithmetic": "0011",
    "shift_left_masked": "0011", "shift_right_masked": "0010", "minimum": "0001", "maximum": "0111", "less": "0100",
}  # fmt: skip


@pytest.mark.parametrize("meaning", BOOLS)
def test_bools_are_the_integers_modulo_2(meaning: str) -> None:
    x, y = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    got = evaluate(meaning, x, y)
    assert got.dtype == np.bool_
    assert "".join(str(int(v)) for v in got) == BOOLS[meaning]


def i32(*values: int) -> Array:
    return np.array(values, np.int32)


LEAST = -(2**31)
EDGES = [
    ("truncate_divide", [LEAST, 7, -7], [-1, 0, 2], [LEAST, 0, -3]),
    ("floor_divide", [LEAST, 7, -7], [-1, 0, 2], [LEAST, 0, -4]),
    ("floor_divide_xla", [7, -7, 0, -7], [0, 0, 0, 2], [-2, -2, -1, -4]),
    ("ceil_divide", [7, -7, LEAST, 5], [2, 2, 1, 0], [4, -3, LEAST, 0]),
    ("truncate_remainder", [LEAST, 7, -7], [-1, 0, 2], [0, 7, -1]),
    ("floor_remainder", [LEAST, 7, -7, 7], [-1, 0, 2, -2], [0, 0, 1, -1]),
    ("power", [2, 3, -1, 0, 2], [31, -1, -1, 0, 32], [LEAST, 0, 0, 1, 0]),
    ("power_xla", [3, 0, 2, 5], [64, 64, -63, 65], [1, 0, 2, 5]),  # modulo 64: 0, 0, 1, 1
    ("shift_left", [1, 1, 1], [31, 32, -1], [LEAST, 0, 0]),
    ("shift_right", [-8, -8, 8], [1, 32, -1], [-4, -1, 0]),
    ("shift_right_logical", [-8, -8], [1, 32], [2147483644, 0]),
    ("shift_left_masked", [1, 1, 1], [31, 32, -1], [LEAST, 1, LEAST]),
    ("shift_right_masked", [-8, -8], [33, -31], [-4, -4]),
]


@pytest.mark.parametrize(("meaning", "x", "y", "expected"), EDGES)
def test_edges_of_int32(meaning: str, x: list[int], y: list[int], expected: list[int]) -> None:
    assert evaluate(meaning, i32(*x), i32(*y)).tolist() == expected


def test_the_arithmetic_shift_of_an_unsigned_type_copies_the_top_bit() -> None:
    x = np.array([0xF0000000, 8], np.uint32)
    assert evaluate("shift_right_arithmetic", x, np.array([4, 1], np.uint32)).tolist() == [0xFF000000, 4]


def test_unary_meanings_of_integers() -> None:
    x = np.array([-128, -1, 0, 5], np.int8)
    expected = {"neg": [-128, 1, 0, -5], "not": [127, 0, -1, -6], "abs": [-128, 1, 0, 5], "sign": [-1, -1, 0, 1]}
    expected |= {"square": [0, 1, 0, 25], "floor": [-128, -1, 0, 5]}  # 16384 is 64 * 256
    for meaning, want in expected.items():
        assert evaluate(meaning, x).tolist() == want, meaning
    unsigned = np.array([0, 1, 255], np.uint8)
    assert evaluate("neg", unsigned).tolist() == [0, 255, 1]
    assert evaluate("sign", unsigned).tolist() == [0, 1, 1]


NAN, INF = math.nan, math.inf
FLOAT_EDGES = [
    (
        "floor_divide",
        [1.0, -7.0, 7.0, 0.0, 1.0, -1.0],
        [0.1, 2.0, 0.0, 0.0, INF, INF],
        [9.0, -4.0, INF, NAN, 0.0, -1.0],
    ),
    ("floor_remainder", [-7.0, 7.0, 1.0, -1.0], [2.0, -2.0, 0.0, INF], [1.0, -1.0, NAN, INF]),
    ("truncate_remainder", [-7.0, 7.0, 1.0, -1.0], [2.0, -2.0, 0.0, INF], [-1.0, 1.0, NAN, -1.0]),
    ("divide", [1.0, 0.0, -1.0], [0.0, 0.0, 0.0], [INF, NAN, -INF]),
    ("minimum", [NAN, 1.0, 2.0], [1.0, NAN, 1.0], [1.0, 1.0, 1.0]),
    ("minimum_nan", [NAN, 1.0, 2.0], [1.0, NAN, 1.0], [NAN, NAN, 1.0]),
    ("minimum_less", [NAN, 1.0, 2.0], [1.0, NAN, 1.0], [1.0, NAN, 1.0]),
    ("maximum", [NAN, 1.0, 2.0], [1.0, NAN, 1.0], [1.0, 1.0, 2.0]),
    ("maximum_greater", [NAN, 1.0, 2.0], [1.0, NAN, 1.0], [1.0, NAN, 2.0]),
    ("logaddexp", [INF, -INF, INF, 1000.0], [INF, -INF, -INF, 1000.0], [INF, -INF, INF, 1000.0 + math.log(2)]),
    ("atan2", [0.0, 1.0, -1.0], [-1.0, 0.0, 0.0], [math.pi, math.pi / 2, -math.pi / 2]),
    ("power", [0.0, 1.0, -8.0, 2.0], [0.0, NAN, 1 / 3, -1.0], [1.0, 1.0, NAN, 0.5]),
]


@pytest.mark.parametrize(("meaning", "x", "y", "expected"), FLOAT_EDGES)
def test_edges_of_float64(meaning: str, x: list[float], y: list[float], expected: list[float]) -> None:
    got = evaluate(meaning, np.array(x), np.array(y))
    np.testing.assert_allclose(got, expected, rtol=1e-15)


def test_clamps() -> None:
    x, low, high = np.array([-2.0, 0.5, 3.0, NAN]), np.array([0.0]), np.array([1.0])
    np.testing.assert_array_equal(evaluate("clamp", x, low, high), [0.0, 0.5, 1.0, NAN])
    np.testing.assert_array_equal(evaluate("clamp_compare", x, np.array([NAN]), high), [-2.0, 0.5, 1.0, NAN])
    assert evaluate("clamp", i32(-5, 5), i32(0), i32(3)).tolist() == [0, 3]


def test_narrow_floats_are_rounded_once_from_float32() -> None:
    """1 + 2**-8 of bfloat16 (ulp 2**-7) is a tie to 1; 3 * 85 = 255 of e4m3fn is 256, beyond 464 is NaN."""
    bf16 = ml_dtypes.bfloat16
    assert evaluate("add", np.array([1], bf16), np.array([2**-8], bf16)).astype(float).tolist() == [1.0]
    e4 = dtypes.float8_e4m3fn.numpy
    got = evaluate("mul", np.array([3.0, 448.0]).astype(e4), np.array([88.0, 2.0]).astype(e4)).astype(float)
    assert got[0] == 256.0  # 264 lies between 256 and 288
    assert math.isnan(got[1])


def test_comparisons_of_two_integer_types_are_exact() -> None:
    x, y = np.array([2**64 - 1, 5], np.uint64), np.array([-1, 6], np.int64)
    assert evaluate("less", x, y).tolist() == [False, True]
    assert evaluate("equal", x, y).tolist() == [False, False]
    assert evaluate("greater", np.array([255], np.uint8), np.array([-1], np.int8)).tolist() == [True]
    assert evaluate("not_equal", np.array([NAN]), np.array([NAN])).tolist() == [True]


def test_select_takes_its_condition_first() -> None:
    assert evaluate("select", np.array([True, False]), i32(1), i32(2)).tolist() == [1, 2]


def test_reductions_compute_in_the_type() -> None:
    x = np.array([100, 100, 100], np.int8)
    assert evaluate("sum", x).tolist() == 44  # 300 - 256
    assert evaluate("prod", x).tolist() == 1_000_000 % 256
    assert evaluate("cumsum", x).tolist() == [100, -56, 44]
    assert evaluate("sum", np.ones((2, 3), np.int32), axis=0).tolist() == [2, 2, 2]
    values = np.array([1.0, NAN, 3.0], np.float32)
    assert math.isnan(evaluate("max", values))
    assert evaluate("max", values, propagate_nan=False) == 3.0
    assert evaluate("argmax", values) == 1
    assert evaluate("argmax", values, propagate_nan=False) == 2
    assert evaluate("any", np.array([0, 2])).tolist() is True
    assert evaluate("all", np.array([0, 2])).tolist() is False
    assert evaluate("mean", np.array([1.0, 2.0])) == 1.5
    assert evaluate("matmul", np.full((1, 4), 100, np.int8), np.full((4, 1), 2, np.int8)).tolist() == [
        [32]
    ]  # 800 - 768
    assert evaluate("concat", i32(1), i32(2)).tolist() == [1, 2]


CHECKED: list[tuple[str, Any, Any, type[Exception], str]] = [
    ("truncate_divide_checked", i32(1), i32(0), ZeroDivisionError, "division by zero of int32"),
    ("floor_divide_checked", i32(1), i32(0), ZeroDivisionError, "division by zero of int32"),
    ("floor_remainder_checked", i32(1), i32(0), ZeroDivisionError, "division by zero of int32"),
    ("truncate_divide_checked", i32(LEAST), i32(-1), OverflowError, f"{LEAST} divided by -1 is out of range for int32"),
    (
        "truncate_remainder_checked",
        i32(LEAST),
        i32(-1),
        OverflowError,
        f"{LEAST} divided by -1 is out of range for int32",
    ),
    ("power_checked", i32(2), i32(-1), ArithmeticError, "integers to negative powers are no integers"),
]


@pytest.mark.parametrize(("meaning", "x", "y", "kind", "message"), CHECKED)
def test_checked_meanings_raise(meaning: str, x: Array, y: Array, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as error:
        evaluate(meaning, x, y)
    assert str(error.value) == message


def test_checked_meanings_let_pass_what_is_defined() -> None:
    """MIN / -1 of 8 bits is computed in 32; floats divide by zero."""
    least = np.array([-128], np.int8)
    assert evaluate("truncate_divide_checked", least, np.array([-1], np.int8)).tolist() == [-128]
    assert evaluate("floor_divide_checked", i32(LEAST), i32(-1)).tolist() == [LEAST]
    assert math.isnan(evaluate("floor_remainder_checked", np.array([1.0]), np.array([0.0]))[0])


def test_errors() -> None:
    with pytest.raises(ValueError) as unknown:
        evaluate("plus", i32(1), i32(2))
    assert str(unknown.value) == f"there is no meaning 'plus'; weft knows {', '.join(MEANINGS)}"
    with pytest.raises(TypeError) as mixed:
        evaluate("add", i32(1), np.array([1], np.int8))
    assert str(mixed.value) == "'add' takes arrays of one dtype, found int32 and int8"
    with pytest.raises(TypeError) as wrong:
        evaluate("and", np.array([1.0]), np.array([1.0]))
    assert str(wrong.value) == "'and' does not take float64"
    with pytest.raises(ValueError) as conversion:
        convert("cast", i32(1), dtypes.int8)
    names = "convert, convert_by_float32, convert_flushed, convert_truth, convert_wrap, convert_wrap_saturated, convert_round"
    assert str(conversion.value) == f"'cast' is no conversion; they are {names}"


# Conversions

FLOATS = np.array([1.5, -1.5, 2.5, 0.49999997, 300.7, -5.0, 3e9, -3e9, 1e20, NAN, INF, -INF], np.float32)
TO: list[tuple[str, DType, list[int]]] = [
    ("convert", dtypes.int32, [1, -1, 2, 0, 300, -5, 2**31 - 1, LEAST, 2**31 - 1, 0, 2**31 - 1, LEAST]),
    ("convert", dtypes.uint8, [1, 0, 2, 0, 255, 0, 255, 0, 255, 0, 255, 0]),
    ("convert_wrap", dtypes.int32, [1, -1, 2, 0, 300, -5, LEAST, LEAST, LEAST, LEAST, LEAST, LEAST]),
    ("convert_wrap", dtypes.uint8, [1, 255, 2, 0, 44, 251, 0, 0, 0, 0, 0, 0]),
    # 3e9 fits int64, of which uint32 keeps the low half: -3e9 + 2**32 = 1294967296
    ("convert_wrap", dtypes.uint32, [1, 2**32 - 1, 2, 0, 300, 2**32 - 5, 3 * 10**9, 1294967296, 0, 0, 0, 0]),
    (
        "convert_wrap",
        dtypes.uint64,
        [1, 2**64 - 1, 2, 0, 300, 2**64 - 5, 3 * 10**9, 2**64 - 3 * 10**9, 0, 2**63, 0, 2**63],
    ),
    ("convert_round", dtypes.uint64, [2, 0, 3, 0, 301, 0, 3 * 10**9, 0, 2**64 - 1, 2**63, 2**64 - 1, 0]),
    ("convert_round", dtypes.int8, [2, -2, 3, 0, 127, -5, 127, -128, 127, 0, 127, -128]),
    ("convert_round", dtypes.int32, [2, -2, 3, 0, 301, -5, 2**31 - 1, LEAST, 2**31 - 1, LEAST, 2**31 - 1, LEAST]),
]


@pytest.mark.parametrize(("meaning", "target", "expected"), TO)
def test_floats_to_integers(meaning: str, target: DType, expected: list[int]) -> None:
    assert convert(meaning, FLOATS, target).tolist() == expected


def test_integers_to_integers() -> None:
    x = i32(300, -5, 7)
    assert convert("convert", x, dtypes.uint8).tolist() == [44, 251, 7]
    assert convert("convert_wrap", x, dtypes.int8).tolist() == [44, -5, 7]
    assert convert("convert_round", x, dtypes.uint8).tolist() == [255, 0, 7]


def test_to_bool() -> None:
    x = np.array([0.0, 0.3, -0.5, NAN], np.float32)
    assert convert("convert", x, dtypes.bool_).tolist() == [False, True, True, True]
    assert convert("convert_round", x, dtypes.bool_).tolist() == [False, False, True, True]
    assert convert("convert_round", i32(0, 256, -1), dtypes.bool_).tolist() == [False, True, True]


def test_complex_numbers_convert_as_their_real_part_and_to_bool_as_a_whole() -> None:
    x = np.array([-1.5 + 2j, 300 + 0j, 0 + 1j, 0], "complex64")
    assert convert("convert", x, dtypes.uint8).tolist() == [0, 255, 0, 0]
    assert convert("convert_wrap", x, dtypes.uint8).tolist() == [255, 44, 0, 0]
    assert convert("convert_round", x, dtypes.int16).tolist() == [-2, 300, 0, 0]
    assert convert("convert", x, dtypes.bool_).tolist() == [True, True, True, False]
    assert convert("convert", x, dtypes.float16).tolist() == [-1.5, 300.0, 0.0, 0.0]


def test_to_floats_rounds_once() -> None:
    """2**30 + 2**22 + 1 is just above a tie of bfloat16 (ulp 2**23 there), which float32 would make the tie."""
    assert float(convert("convert", i32(2**30 + 2**22 + 1), dtypes.bfloat16)[0]) == 2**30 + 2**23
    assert convert("convert", np.array([1 + 2**-8 + 2**-40]), dtypes.bfloat16).astype(float).tolist() == [1 + 2**-7]
    assert math.isinf(float(convert("convert", i32(70000), dtypes.float16)[0]))
    assert math.isnan(float(convert("convert", np.array([500.0]), dtypes.float8_e4m3fn)[0]))
    assert convert("convert", np.array([-0.0]), dtypes.float16).view(np.uint16).tolist() == [0x8000]


@pytest.mark.parametrize("target", [dtypes.float16, dtypes.bfloat16, dtypes.float8_e4m3fn, dtypes.float8_e5m2], ids=str)
def test_float32_to_narrow_floats_is_what_ml_dtypes_does(target: DType) -> None:
    x = np.random.default_rng(3).standard_normal(500).astype(np.float32) * np.float32(100)
    got, want = convert("convert", x, target), x.astype(target.numpy)
    assert got.tobytes() == want.tobytes()


# What the packages gave


def recorded() -> list[dict[str, str]]:
    with GOLDEN.open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def parsed(text: str, dtype: DType) -> Array:
    numbers = [
        (v == "True") if v in ("True", "False") else float(v) if dtype.is_float else int(v) for v in text.split()
    ]
    return np.array(numbers, np.float64 if dtype.is_float else None).astype(dtype.numpy)


@pytest.mark.parametrize("row", recorded(), ids=lambda r: f"{r['package']}: {r['expression']}")
def test_recorded_values(row: dict[str, str]) -> None:
    dtype, result = dtypes.named(row["dtype"]), dtypes.named(row["result"])
    operands = [parsed(row[name], dtype) for name in ("x", "y") if row[name]]
    if row["meaning"].startswith("convert"):
        got = convert(row["meaning"], operands[0], result)
    else:
        got = evaluate(row["meaning"], *operands)
    assert got.dtype == result.numpy
    want = parsed(row["value"], result)
    if result.is_float:
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=2**-22)
    else:
        assert got.tolist() == want.tolist()

"""Operands of `max_26` beyond the recorded cells: errors and steps word for word, advice that works, values of NumPy."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from weft import dtypes
from weft.semantics import Constant, PromotionError, Type
from weft.semantics.systems.max import max_26
from weft.semantics.systems.max_rules import converts_safely
from weft.semantics.systems.max_weak import External

ERRORS: list[tuple[str, tuple[Any, ...], str]] = [
    # An unsafe cast, and the least type that holds what is refused.
    (
        "+",
        ("int8", "uint8"),
        "Unsafe cast from uint8 to int8; cast the uint8 side: ops.cast(x, DType.int16), or to int8 if wrapping is fine",
    ),
    (
        "+",
        ("int32", "float32"),
        "Unsafe cast from int32 to float32; cast the int32 side: ops.cast(x, DType.float64), or to float32 if rounding is fine",
    ),
    (
        "*",
        ("bfloat16", "float16"),
        "Unsafe cast from float16 to bfloat16; cast the float16 side: ops.cast(x, DType.float32), "
        "or to bfloat16 if rounding is fine",
    ),
    (
        "<",
        ("uint64", "int64"),
        "Unsafe cast from uint64 to int64; cast the uint64 side, if wrapping is fine: ops.cast(x, DType.int64)",
    ),
    (
        "/",
        ("uint64", "float64"),
        "Unsafe cast from uint64 to float64; cast the uint64 side, if rounding is fine: ops.cast(x, DType.float64)",
    ),
    # Values.
    (
        "+",
        ("uint8", 256),
        "Unsafe cast: uint8 does not hold 256 exactly; cast the other side: ops.cast(x, DType.uint16)",
    ),
    ("+", ("uint8", -1), "Unsafe cast: uint8 does not hold -1 exactly; cast the other side: ops.cast(x, DType.int16)"),
    (
        "+",
        ("uint64", -1),
        "Unsafe cast: uint64 does not hold -1 exactly; cast the other side: ops.cast(x, DType.int64)",
    ),
    ("+", (2, "bool"), "Unsafe cast: bool does not hold 2 exactly; cast the other side: ops.cast(x, DType.uint8)"),
    (
        "+",
        ("float16", 2049),
        "Unsafe cast: float16 does not hold 2049 exactly; cast the other side: ops.cast(x, DType.float32)",
    ),
    ("+", ("float64", 2**53 + 1), "Unsafe cast: float64 does not hold 9007199254740993 exactly; write it as a float"),
    (
        "+",
        ("int8", 2**64),
        "Unsafe cast: int8 does not hold 18446744073709551616 exactly; write it as a float and cast the other side: "
        "ops.cast(x, DType.float64)",
    ),
    (
        "/",
        ("int32", 1.0),
        "Unsafe cast: int32 does not take the float 1.0; cast the other side: ops.cast(x, DType.float64)",
    ),
    (
        "+",
        ("bool", 1.5),
        "Unsafe cast: bool does not take the float 1.5; cast the other side: ops.cast(x, DType.float32)",
    ),
    (
        "+",
        ("uint8", np.array([300, 2])),
        "Unsafe cast: uint8 does not hold the array of int64, from 2 to 300, exactly; "
        "cast the other side: ops.cast(x, DType.uint16)",
    ),
    (
        "+",
        ("uint8", np.array([1.5])),
        "Unsafe cast: uint8 does not take the array of float64; cast the other side: ops.cast(x, DType.float32)",
    ),
    (
        "+",
        ("float4_e2m1fn", 1),
        "MAX makes no constant of float4_e2m1fn, a type below a byte; cast the other side: ops.cast(x, DType.float16)",
    ),
    # Operands that MAX does not take.
    ("+", ("float32", 1j), "MAX has no complex numbers, found 1j; keep two floats"),
    ("+", ("bool", np.bool_(True)), "MAX takes no NumPy scalar of bool; write it as a number of Python"),
    (
        "+",
        ("float32", ml_dtypes.bfloat16(1.5)),
        "MAX takes no NumPy scalar of bfloat16; write it as a number of Python",
    ),
    ("+", ("float32", np.array([1j])), "MAX takes no array of complex128; convert it to numbers that MAX has"),
    ("where", (np.bool_(True), "int8"), "MAX takes no NumPy scalar of bool; write it as a number of Python"),
    (
        "+",
        (1, 2.0),
        "'+' of 1 and 2.0: one side must be a tensor or a typed constant; write ops.constant(1, DType.int64, device)",
    ),
    (
        "where",
        (True, 2),
        "'where' of True and 2: one side must be a tensor or a typed constant; write ops.constant(True, DType.bool, device)",
    ),
    (
        "sqrt",
        (2.0,),
        "'sqrt' of 2.0: one side must be a tensor or a typed constant; write ops.constant(2.0, DType.float64, device)",
    ),
    (
        "sum",
        (np.array([1, 2]),),
        "'sum' of array of int64: one side must be a tensor or a typed constant; write ops.constant(array, DType.int64, device)",
    ),
    ("matmul", ("float32", 2), "'matmul' takes no number, found 2; write ops.constant(2, DType.float32, device)"),
    # Operations.
    ("&", ("int8", "uint8"), "'&' takes bools, found int8 and uint8; cast both sides: ops.cast(x, DType.bool)"),
    ("~", ("int8",), "'~' takes bools, found int8; cast it: ops.cast(x, DType.bool)"),
    ("not", ("float32",), "'not' takes bools, found float32; cast it: ops.cast(x, DType.bool)"),
    ("<<", ("int8", 1), "MAX has no '<<'; multiply by 2**n"),
    (">>", ("int8", 1), "MAX has no '>>'; divide with // by 2**n"),
    ("pos", ("int8",), "MAX has no unary '+'; leave it out"),
    (
        "concat",
        ("bool", "int8"),
        "'concat' takes equal types, found bool and int8; cast the bool side: ops.cast(x, DType.int8)",
    ),
    # Constants.
    (
        "+",
        ("int32", "300:uint8"),
        "Constant(300, uint8): the value is out of range; write ops.constant(300, DType.uint16, device)",
    ),
    (
        "+",
        ("int32", "18446744073709551616:uint8"),
        "Constant(18446744073709551616, uint8): the value is out of range; "
        "write ops.constant(18446744073709551616, DType.float64, device)",
    ),
    (
        "+",
        ("int32", "1.5:int32"),
        "Constant(1.5, int32): a float is no value of int32; choose a float type, or convert it first",
    ),
    (
        "+",
        ("int32", "1:float4_e2m1fn"),
        "MAX makes no constant of float4_e2m1fn, a type below a byte; choose float16",
    ),
    ("+", ("int32", "1j:float32"), "MAX has no complex numbers, found 1j; keep two floats"),
]


@pytest.mark.parametrize(("op", "operands", "message"), ERRORS, ids=[f"{op} {operands}" for op, operands, _ in ERRORS])
def test_errors(op: str, operands: tuple[Any, ...], message: str) -> None:
    with pytest.raises(PromotionError) as error:
        max_26.resolve(op, *operands)
    assert str(error.value) == message


def test_a_literal_needs_a_type() -> None:
    with pytest.raises(PromotionError) as error:
        max_26.literal(1.5)
    assert str(error.value) == "the constant 1.5 has no dtype; write ops.constant(1.5, DType.float64, device)"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: max_26.resolve("+", "i*", "int8"),
            "max@26 has no weak type: it looks at the value, pass the number itself, found int64 (weak)",
        ),
        (lambda: max_26.resolve("+", "tensor_float32", "int8"), "max@26 has no dtype tensor_float32; it has "),
        (lambda: max_26.resolve("atan2", "int8", "int8"), "unknown binary operator 'atan2'; max@26 knows + - * /"),
        (lambda: max_26.resolve("sign", "int8"), "unknown unary operator 'sign'; max@26 knows neg abs sqrt"),
        (lambda: max_26.resolve("any", "int8"), "unknown reduction 'any'; max@26 knows sum mean max min"),
        (lambda: max_26.resolve("clamp", "int8", 0, 1), "max@26 has no operation 'clamp'"),
    ],
)
def test_what_max_does_not_have(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value).startswith(message)


def test_the_advised_cast_makes_it_legal() -> None:
    """Over every pair of types, and every type with values: what the message says to cast is taken."""
    refused = 0
    for a, b in product(max_26.dtypes, repeat=2):
        try:
            max_26.binary("+", a, b)
        except PromotionError as error:
            refused += 1
            side = re.findall(r"cast the (\w+) side", error.cast)[0]
            for target in re.findall(r"DType\.(\w+)|or to (\w+)", error.cast):
                other = b if a.name == side else a
                max_26.resolve("+", "".join(target), other)
    # By hand: signed with unsigned of no fewer bits, 4 + 3 + 2 + 1; each of the 10 floats below 32 bits with integers of 16, 32
    # and 64 bits of both signs, 60; float32 with the last four; float64 with the last two; float16 with bfloat16.
    assert refused == 2 * (10 + 60 + 4 + 2 + 1)
    for dtype, value in product(max_26.dtypes, (2, 256, -1, -129, 449, 2049, 2**24 + 1, 2**31, 2**63, 2**64, 0.5)):
        try:
            max_26.binary("+", dtype, value)
        except PromotionError as error:
            (target,) = re.findall(r"DType\.(\w+)", error.cast) or [dtype.name]
            written = float(value) if "as a float" in error.cast else value
            max_26.resolve("+", target, written)


def test_a_safe_conversion_of_integers_and_floats_loses_nothing() -> None:
    """Against the definition: every integer of the source has a place in the target (the extremes and what is next to powers of
    two decide)."""
    integers = [d for d in dtypes.ALL if d.is_integer]
    floats = [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64]
    for source, target in product(integers, (*integers, *floats)):
        candidates = {source.min, source.max, *(2**n - 1 for n in range(source.bits - source.signed + 1))}
        held = all(
            target.min <= v <= target.max if target.is_integer else v == int(float(v)) and target.represents(float(v))
            for v in candidates
        )
        assert converts_safely(source, target) == held, (source, target)


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.int8(1), "uint8"),
        (np.uint64(2**64 - 1), "uint64"),
        (np.float16(1.5), "bfloat16"),
        (np.float64(1e300), "float32"),
        (np.array(255), "uint8"),
        (np.array([True]), "int8"),
        (np.array([], np.int64), "float8_e8m0fnu"),
        (np.array([1.5]), "bool"),
    ],
)
def test_values_of_numpy_take_the_type_of_the_other_side(value: Any, dtype: str) -> None:
    assert max_26.resolve("+", dtype, value).type == Type(dtypes.named(dtype))
    assert max_26.resolve("+", value, dtype).type == Type(dtypes.named(dtype))


def test_external_operands() -> None:
    assert External.of(np.array([[3, -4], [7, 0]], np.int16)) == External(dtypes.int16, weak=True, low=-4, high=7)
    assert External.of(np.array([False, False])) == External(dtypes.bool_, weak=True, low=0, high=0)
    assert str(External.of(np.array([1.5], "f4"))) == "array of float32"


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        # Read off the package: the extremes are taken, their neighbours refused.
        ("float8_e4m3fn", -448, 448),
        ("float8_e4m3fnuz", -240, 240),
        ("float8_e5m2", -72089, 72089),
        ("float8_e5m2fnuz", -57344, 57344),
        ("float16", -2048, 2048),
        ("bfloat16", -256, 256),
        ("float32", -(2**24), 2**24),
        ("float64", -(2**53), 2**53),
        ("bool", 0, 1),
        ("int8", -128, 127),
        ("uint64", 0, 2**64 - 1),
    ],
)
def test_the_range_of_weak_integers(dtype: str, low: int, high: int) -> None:
    for inside, outside in ((low, low - 1), (high, high + 1)):
        assert str(max_26.result("+", dtype, inside)) == dtype
        with pytest.raises(PromotionError):
            max_26.result("+", dtype, outside)


def test_float8_e8m0fnu_takes_positive_integers() -> None:
    assert str(max_26.result("+", "float8_e8m0fnu", 3)) == "float8_e8m0fnu"
    for value in (0, -1):
        with pytest.raises(PromotionError, match="does not hold"):
            max_26.result("+", "float8_e8m0fnu", value)


def test_a_typed_constant_is_strong() -> None:
    assert max_26.resolve("+", Constant(1, dtypes.int64), "int8").type == Type(dtypes.int64)
    assert max_26.resolve("+", "2049:float16", "float16").type == Type(dtypes.float16)  # a constant may round
    assert max_26.resolve("+", "1.5:bool", "bool").type == Type(dtypes.bool_)


@pytest.mark.parametrize(
    ("op", "operands", "steps"),
    [
        ("+", ("int8", "int16"), ["category and width: int8 and int16 meet in int16, a safe conversion of both"]),
        (
            "+",
            ("int8", "float8_e5m2"),
            ["category and width: int8 and float8_e5m2 meet in float16, a safe conversion of both"],
        ),
        ("+", ("bool", "float16"), ["bool: bool yields to float16"]),
        ("+", ("int8", "int8"), ["equal: both are int8"]),
        ("-", ("uint8", 255), ["weak operand: 255 takes the type of the other side, uint8", "equal: both are uint8"]),
        (
            "/",
            ("int8", "uint64"),
            ["division of integers: '/' converts int8 and uint64 to float64 first", "compiled: divide_flushed"],
        ),
        ("/", ("int8", "bool"), ["bool: bool yields to int8", "division with a bool: '/' stays in int8"]),
        ("neg", ("uint8",), ["not compiled: the graph accepts 'neg' of uint8, and MAX 26.7 fails to compile it"]),
    ],
)
def test_steps(op: str, operands: tuple[Any, ...], steps: list[str]) -> None:
    assert [str(s) for s in max_26.resolve(op, *operands).steps] == steps


def test_many_operands_and_a_number() -> None:
    promotion = max_26.common(dtypes.int8, 100, dtypes.int16, dtypes.float32)
    assert promotion.type == Type(dtypes.float32)
    assert [s.rule for s in promotion.steps] == ["category and width", "category and width", "weak operand"]
    with pytest.raises(PromotionError) as error:
        max_26.promote(1, 2.0)
    assert str(error.value) == (
        "promotion of 1 and 2.0: one side must be a tensor or a typed constant; write ops.constant(1, DType.int64, device)"
    )


@pytest.mark.parametrize("op", ["sum", "mean", "max", "min", "prod", "cumsum"])
def test_reductions_keep_the_type(op: str) -> None:
    assert all(max_26.result(op, d) == Type(d) for d in max_26.dtypes)


@pytest.mark.parametrize("op", ["argmax", "argmin"])
def test_indices_are_int64(op: str) -> None:
    for dtype in max_26.dtypes:
        promotion = max_26.resolve(op, dtype)
        assert (promotion.operands, promotion.result) == (dtype, dtypes.int64)

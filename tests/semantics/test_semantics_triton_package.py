"""Every recorded cell of triton 3.9.0 against `triton_3_9`: results, and for refusals their class."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from golden_tables import Cell, read
from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Promotion, PromotionError, triton, triton_3_9

GOLDEN = Path(__file__).parents[1] / "golden" / "triton_promotion"

CLASSES = {
    "Nonrepresentable integer": "!integer",
    r"Scalar \S+ is negative": "!negative",
    r"Scalar \S+ is out of range": "!range",
    "one is signed": "!signedness",
    "have no common type": "!fp8",
    "Triton's verifier": "!verifier",
    "^unary|^'and' does not|^'fdiv' does not|^tl.dot does not": "!type",
    "does not take float|does not take bfloat": "!float",
}


def outcome(compute: Callable[[], Promotion]) -> str:
    """The result's name, or the class of the refusal."""
    try:
        return str(compute().result)
    except PromotionError as error:
        found = [short for pattern, short in CLASSES.items() if re.search(pattern, str(error))]
        assert found, f"a refusal of no known class: {error}"
        return found[0]


def expected(cell: Cell) -> str:
    return cell.value if cell.value.startswith("!") else str(dtypes.named(cell.value))


def literal(text: str) -> bool | float:
    return eval(text, {"float": float})  # literals as Python spells them: 2**31, float('nan')


def test_pairs_of_tensors() -> None:
    wrong: list[str] = []
    cells = list(read(GOLDEN / "tensors.txt"))
    for cell in cells:
        a, b = dtypes.named(cell.row), dtypes.named(cell.column)
        operands = (a, b, b) if cell.op == "clamp" else (a, b)
        got = outcome(lambda op=cell.op, o=operands: triton_3_9.resolve(op, *o))
        if got != expected(cell):
            wrong.append(f"{a} {cell.op} {b}: {got}, the package {cell.value}")
    assert not wrong
    assert len(cells) == 24 * 18 * 18


def test_tensors_with_literals_on_both_sides() -> None:
    wrong: list[str] = []
    cells = list(read(GOLDEN / "scalars.txt"))
    for cell in cells:
        value, dtype = literal(cell.row), dtypes.named(cell.column)
        sides = (
            outcome(lambda op=cell.op, v=value, t=dtype: triton_3_9.binary(op, t, v)),
            outcome(lambda op=cell.op, v=value, t=dtype: triton_3_9.binary(op, v, t)),
        )
        if sides != (expected(cell),) * 2:
            wrong.append(f"{dtype} {cell.op} {cell.row}: {sides}, the package {cell.value}")
    assert not wrong
    assert 2 * len(cells) == 2 * 18 * (4 * 48 + 9 * 22) == 14040


def test_unary_operators_functions_and_reductions() -> None:
    wrong: list[str] = []
    cells = list(read(GOLDEN / "unary.txt"))
    for cell in cells:
        operands = [dtypes.named(cell.column)] * (2 if cell.op == "dot" else 1)
        got = outcome(lambda op=cell.op, o=operands: triton_3_9.resolve(op, *o))
        if got != expected(cell):
            wrong.append(f"{cell.op} {cell.column}: {got}, the package {cell.value}")
    assert not wrong
    assert len(cells) == 13 * 18 - 6  # tl.dot of six types was refused for the recorder's shapes


def shifts_in_copies(promotion: Promotion) -> bool:
    """Whether the shift that the meaning names copies the top bit."""
    kinds = {"shift_right_arithmetic": True, "shift_right_logical": False, "shift_right": promotion.operands.signed}
    return kinds[promotion.meaning]


def test_which_shift_right() -> None:
    """Where the left operand is an unsigned tensor and the shift is done in a wider signed type, it is not negative
    there, and both shifts give the same."""
    wrong: list[str] = []
    arithmetic = 0
    for cell in read(GOLDEN / "shifts.txt"):
        tensor = dtypes.named(cell.column)
        left, right = {
            ">>": lambda c=cell, t=tensor: (dtypes.named(c.row), t),
            "tensor>>literal": lambda c=cell, t=tensor: (t, literal(c.row)),
            "literal>>tensor": lambda c=cell, t=tensor: (literal(c.row), t),
        }[cell.op]()
        promotion = triton_3_9.binary(">>", left, right)
        extended = isinstance(left, DType) and not left.signed and promotion.operands.signed
        copies = shifts_in_copies(promotion)
        arithmetic += promotion.meaning == "shift_right_arithmetic"
        if not extended and copies != (cell.value == "shrsi"):
            wrong.append(
                f"{left} {cell.op} {right}: {promotion.meaning} in {promotion.operands}, the package {cell.value}"
            )
    assert not wrong
    # Signed left, unsigned common type: each of int8..int64 with the unsigned types at least as wide, 4 + 3 + 2 + 1.
    assert arithmetic == 10


def test_a_negative_literal_shifted_by_a_bool_is_shifted_logically() -> None:
    """The recorded IR of ``-1 >> int1`` is ``arith.shrui i32``."""
    assert triton_3_9.binary(">>", -1, dtypes.bool_).meaning == "shift_right_logical"
    assert triton_3_9.binary(">>", dtypes.bool_, -1).meaning == "shift_right"  # 0 or 1, whatever comes in


def test_the_document_shifts_by_the_promoted_type() -> None:
    assert triton.binary(">>", dtypes.int32, dtypes.uint32).meaning == "shift_right"
    assert triton_3_9.binary(">>", dtypes.int32, dtypes.uint32).meaning == "shift_right_arithmetic"
    assert triton_3_9.binary(">>", dtypes.uint32, dtypes.int32).meaning == "shift_right"


# The package's own types of numbers that become tensors: `x = 2**31` and the like in a kernel.
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (True, "bool"),
        (-7, "int32"),
        (2**31, "uint32"),
        (2**63, "uint64"),
        (1.5, "float32"),
        (1e300, "float64"),
        (1e-40, "float64"),
    ],
)
def test_types_of_locals_assigned_from_literals(value: bool | float, dtype: str) -> None:
    assert str(triton_3_9.literal(value).dtype) == dtype


# Recorded expressions with several literals. The first operand of `where` is its condition.
@pytest.mark.parametrize(
    ("op", "operands", "result"),
    [
        ("where", (1, 2), "int32"),
        ("where", (1, 2.5), "float32"),
        ("where", (True, 2), "int32"),
        ("where", (1, 2**40), "int64"),
        ("where", ("int8", 2.5), "float32"),
        ("where", ("float16", 1e300), "float16"),
        ("where", (2**31, 1), "uint32"),
        ("where", (2**31, -1), "!negative"),
        ("where", (2**63, -1), "!negative"),
        ("where", (1e300, 1.0), "float64"),
        ("where", (True, False), "bool"),
        ("where", (True, 1.5), "float32"),
        ("where", ("bool", 2), "int32"),
        ("maximum", (2**31, -1), "!negative"),
        ("maximum", (1, 2), "int32"),
        ("minimum", ("int32", 2.5), "float32"),
        ("cdiv", ("int32", 2), "int32"),
        ("clamp", ("int8", 0, 300), "!range"),
        ("clamp", ("float16", 0, 1), "float16"),
        ("clamp", ("int8", 0.0, 1.0), "float32"),
        # All tensors meet, all numbers meet, then those two: a number must fit the outcome, not what came before it.
        ("clamp", ("int8", 128, 2.5), "float32"),
        ("clamp", ("int8", 2.5, 2**31), "float32"),
        ("clamp", ("int8", 128, "int16"), "int16"),
        ("clamp", (300, "int8", "int16"), "int16"),
        ("clamp", (300, "int8", "int8"), "!range"),
        ("clamp", ("bool", 1, 2**31), "uint32"),
        ("clamp", ("bool", -1, 2**31), "!negative"),
        ("clamp", ("uint8", -1, 2.5), "float32"),
        ("//", ("int32", 4.0), "!float"),
        ("//", ("float16", 4), "!float"),
        ("%", ("bfloat16", 4), "float32"),
        ("/", ("uint8", -1), "!negative"),
        ("<", ("uint8", -1), "!negative"),
        ("==", ("uint8", 300), "!range"),
        ("+", ("int64", 2**63), "!range"),
        ("+", ("uint64", 2**63), "uint64"),
        ("+", ("bool", 2**31), "uint32"),
        ("+", ("bool", 2**63), "uint64"),
        ("//", ("bool", 2), "!signedness"),
        ("//", ("bool", "bool"), "bool"),
        ("<<", (2**31, "int32"), "!range"),
        (">>", (256, "uint8"), "!range"),
        (">>", (255, "uint8"), "uint8"),
        ("-", (2**31, "int64"), "int64"),
    ],
)
def test_recorded_expressions(op: str, operands: tuple[object, ...], result: str) -> None:
    assert outcome(lambda: triton_3_9.resolve(op, *operands)) == result


def test_float8_e4m3b15_is_refused_where_the_verifier_refuses_it() -> None:
    """The recorded cells are in the tables above; here the ops that have none, by the same two reasons."""
    e4b15, float64 = dtypes.float8_e4m3b15, dtypes.float64
    for op, operands, refused in [
        ("argmax", (e4b15,), True),
        ("argmin", (e4b15,), True),
        ("min", (e4b15,), False),  # carried out in float32
        ("clamp", (e4b15, 0.0, 1.0), True),
        ("clamp", (float64, e4b15, e4b15), True),
        ("where", (e4b15, e4b15), False),
        ("/", (e4b15, e4b15), False),
        ("abs", (e4b15,), False),
    ]:
        got = outcome(lambda op=op, o=operands: triton_3_9.resolve(op, *o))
        assert (got == "!verifier") == refused, f"{op} {operands}: {got}"
        assert outcome(lambda op=op, o=operands: triton.resolve(op, *o))[0] != "!"
    assert outcome(lambda: triton_3_9.cast(e4b15, float64)) == "!verifier"
    assert outcome(lambda: triton_3_9.cast(e4b15, e4b15)) == "float8_e4m3b15"
    assert outcome(lambda: triton_3_9.cast(e4b15, dtypes.float32)) == "float32"
    assert outcome(lambda: triton.cast(e4b15, float64)) == "float64"
    assert str(triton_3_9.promote(e4b15, e4b15)) == "float8_e4m3b15"  # the front end has the type


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        (
            "+",
            ("int8", "float8_e5m2"),
            "int8 and float8_e5m2 have no common type for '+'; cast both sides with .to(tl.float32)",
        ),
        (
            "//",
            ("uint32", "int64"),
            "'//' refuses uint32 with int64, one is signed; cast both sides with .to(tl.int64)",
        ),
        ("cdiv", ("bool", "bool"), "'//' refuses int32 with bool, one is signed; cast both sides with .to(tl.int32)"),
        (
            "+",
            ("float8_e4m3b15", "float8_e4m3b15"),
            ("'+' of float8_e4m3b15 does not pass Triton's verifier, which sees bytes; cast with .to(tl.float32)"),
        ),
        (
            "neg",
            ("float8_e4m3b15",),
            "unary '-' of float8_e4m3b15 does not pass Triton's verifier, which sees bytes; cast with .to(tl.float32)",
        ),
        (
            "where",
            ("float8_e4m3b15", "float64"),
            (
                "float8_e4m3b15 does not convert to float64: Triton's verifier sees bytes; "
                "cast float8_e4m3b15 with .to(tl.float32) first"
            ),
        ),
        ("pos", ("int32",), "unary '+' does not take int32; leave it out"),
    ],
)
def test_refusals(op: str, operands: tuple[object, ...], message: str) -> None:
    with pytest.raises(PromotionError) as error:
        triton_3_9.resolve(op, *operands)
    assert str(error.value) == message
    assert f"{error.value.reason}; {error.value.cast}" == message


@pytest.mark.parametrize(
    ("op", "operands", "steps"),
    [
        ("+", ("int8", "float64"), ["either is float64: int8 and float64 meet in float64"]),
        ("%", ("float16", "int8"), ["division of floats: '%' of float16 and int8 computes in float32"]),
        ("*", ("int8", "bfloat16"), ["bfloat16 with another type: int8 and bfloat16 meet in float32"]),
        ("*", ("bfloat16", "bfloat16"), ["equal: both are bfloat16"]),
        (
            "/",
            ("uint8", 3),
            [
                "scalar: 3 is an integer, of no higher kind than uint8, and takes its type",
                "equal: both are uint8",
                "division of integers: '/' computes in float32",
            ],
        ),
    ],
)
def test_steps(op: str, operands: tuple[object, ...], steps: list[str]) -> None:
    assert [str(step) for step in triton_3_9.resolve(op, *operands).steps] == steps

"""What DALI's semantics says: refusals word for word, advice that works, the rules of each promotion, meanings."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Constant, Number, PromotionError, Step
from weft.semantics.meanings import MEANINGS
from weft.semantics.ops import COMPARISONS, LOGICAL, REDUCTIONS, UNARY
from weft.semantics.systems.dali import DaliSemantics, constant, dali, dali_2
from weft.semantics.systems.dali_rules import BINARY

VERSIONS = [dali, dali_2]

BOTH: list[tuple[str, tuple[object, ...], str]] = [
    ("+", ("bool", "bool"), "the inputs of '+' cannot be bool; cast one with fn.cast(x, dtype=types.UINT8)"),
    ("/", ("bool", True), "the inputs of '/' cannot be bool; cast one with fn.cast(x, dtype=types.UINT8)"),
    ("minimum", (True, "bool"), "the inputs of 'minimum' cannot be bool; cast one with fn.cast(x, dtype=types.UINT8)"),
    ("clamp", ("bool",) * 3, "the inputs of 'clamp' cannot be bool; cast one with fn.cast(x, dtype=types.UINT8)"),
    ("neg", ("bool",), "the input of '-' cannot be bool; cast it with fn.cast(x, dtype=types.UINT8)"),
    ("sqrt", ("bool",), "the input of 'sqrt' cannot be bool; cast it with fn.cast(x, dtype=types.UINT8)"),
    ("&", ("float32", "int8"), "bitwise '&' takes integers, found float32; cast it with fn.cast(x, dtype=types.INT32)"),
    (
        "<<",
        ("int8", "float64"),
        "bitwise '<<' takes integers, found float64; cast it with fn.cast(x, dtype=types.INT64)",
    ),
    ("|", ("uint8", 1.5), "bitwise '|' takes integers, found float32; cast it with fn.cast(x, dtype=types.INT32)"),
    ("~", ("float16",), "bitwise '~' takes integers, found float16; cast it with fn.cast(x, dtype=types.INT32)"),
    ("+", ("uint8", 1j), "DALI has no complex numbers, found 1j; keep two floats"),
    ("sum", ("bool",), "fn.reductions.sum does not take bool; cast it with fn.cast(x, dtype=types.UINT8)"),
    ("max", ("float64",), "fn.reductions.max does not take float64; cast it with fn.cast(x, dtype=types.FLOAT)"),
    (
        "concat",
        ("float32", "int32"),
        "fn.cat takes inputs of one type, found float32 and int32; cast the second with fn.cast(x, dtype=types.FLOAT)",
    ),
    (
        "+",
        ("uint8", np.array([0, 2**40])),
        "Integer 1099511627776 is out of range for int32, the type of constant tensors of int64; pass it as an input of the "
        "pipeline",
    ),
]
DOCUMENT: list[tuple[str, tuple[object, ...], str]] = [
    (
        "+",
        ("uint64", "int8"),
        "uint64 and int8 need int128, int of twice the unsigned width, which DALI does not have; cast the uint64 side with "
        "fn.cast(x, dtype=types.INT64)",
    ),
    (
        "*",
        (10, "uint64"),
        "int32 and uint64 need int128, int of twice the unsigned width, which DALI does not have; cast the uint64 side with "
        "fn.cast(x, dtype=types.INT64)",
    ),
    ("<<", ("bool", "bool"), "the inputs of '<<' cannot be bool; cast one with fn.cast(x, dtype=types.UINT8)"),
]
PACKAGE: list[tuple[str, tuple[object, ...], str]] = [
    (
        "+",
        ("float16", "float32"),
        "the left operand of '+' is float16, with which DALI does not compute; cast it with fn.cast(x, dtype=types.FLOAT)",
    ),
    (
        "==",
        ("int8", "float16"),
        "the right operand of '==' is float16, with which DALI does not compute; cast it with fn.cast(x, dtype=types.FLOAT)",
    ),
    (
        "&",
        ("int8", "float16"),
        "the right operand of '&' is float16, with which DALI does not compute; cast it with fn.cast(x, dtype=types.INT32)",
    ),
    (
        "clamp",
        ("int8", "int8", "float16"),
        "the third operand of 'clamp' is float16, with which DALI does not compute; cast it with fn.cast(x, dtype=types.FLOAT)",
    ),
    (
        "exp",
        ("float16",),
        "the operand of 'exp' is float16, with which DALI does not compute; cast it with fn.cast(x, dtype=types.FLOAT)",
    ),
    (
        "+",
        ("float32", 2**31),
        "Integer constant 2147483648 is out of range for int32; write Constant(2147483648).int64()",
    ),
    (
        "+",
        ("uint8", constant(300).uint8()),
        "Integer constant 300 is out of range for uint8; write Constant(300).uint16()",
    ),
    ("+", ("uint8", "-1:uint8"), "Integer constant -1 is out of range for uint8; write Constant(-1).int8()"),
    (
        "+",
        ("uint8", constant(200).int8()),
        "Integer constant 200 is out of range for int8; write Constant(200).int16()",
    ),
    (
        "+",
        ("uint8", 2**63),
        "Integer constant 9223372036854775808 is out of range for int64, in which DALI passes constants; write a float",
    ),
    (
        "+",
        ("uint8", constant(2**63).uint64()),
        "Integer constant 9223372036854775808 is out of range for int64, in which DALI passes constants; write a float",
    ),
    (
        "+",
        ("uint8", np.float64(0.5)),
        "DALI's arithmetic does not take numpy.float64; pass float(x), or Constant(x).float64()",
    ),
]


@pytest.mark.parametrize(
    ("system", "op", "operands", "message"),
    [
        *((system, *case) for system in VERSIONS for case in BOTH),
        *((dali, *case) for case in DOCUMENT),
        *((dali_2, *case) for case in PACKAGE),
    ],
)
def test_refusals(system: DaliSemantics, op: str, operands: tuple[object, ...], message: str) -> None:
    with pytest.raises(PromotionError, match=f"^{re.escape(message)}$"):
        system.resolve(op, *operands)


def test_promote_refuses_float16_among_others() -> None:
    message = "the right operand of 'promotion' is float16, with which DALI does not compute; cast it with "
    with pytest.raises(PromotionError, match=f"^{re.escape(message)}"):
        dali_2.promote("int8", "float16")
    assert dali_2.promote("float16", "float16").dtype == dtypes.float16  # nothing is converted
    with pytest.raises(PromotionError, match="^Integer constant 2147483648 is out of range for int32; "):
        dali_2.promote(2**31)
    with pytest.raises(PromotionError, match="^Integer constant -2147483649 is out of range for int32; "):
        dali_2.literal(-(2**31) - 1)


# (value, dtype, message)
CONSTANTS: list[tuple[Number, DType | None, str]] = [
    (float("nan"), dtypes.uint8, "nan is no integer, so no constant of type uint8; use a constant of a float type"),
    (float("-inf"), dtypes.int64, "-inf is no integer, so no constant of type int64; use a constant of a float type"),
    (1j, None, "DALI has no complex numbers, found 1j; keep two floats"),
    (1j, dtypes.bool_, "DALI has no complex numbers, found 1j; keep two floats"),
    (1 << 1024, dtypes.float64, "float64 has no place for an integer of 1025 bits; write inf"),
]


@pytest.mark.parametrize(("value", "dtype", "message"), CONSTANTS)
def test_constants_that_cannot_be(value: Number, dtype: DType | None, message: str) -> None:
    with pytest.raises(PromotionError, match=f"^{re.escape(message)}$"):
        constant(value, dtype)


def test_a_constant_of_a_type_dali_lacks() -> None:
    message = (
        "DALI has no dtype bfloat16; it has bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, "
        "float32, float64"
    )
    with pytest.raises(ValueError, match=f"^{message}$"):
        constant(1.0, dtypes.bfloat16)


@pytest.mark.parametrize("system", VERSIONS, ids=str)
def test_types_and_operations_that_dali_lacks(system: DaliSemantics) -> None:
    types = "bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, float32, float64"
    for operand in ("bfloat16", np.zeros(1, np.complex64)):
        name = operand if isinstance(operand, str) else "complex64"
        with pytest.raises(ValueError, match=f"^{system} has no dtype {name}; it has {types}$"):
            system.resolve("+", "int8", operand)
        with pytest.raises(ValueError, match=f"^{system} has no dtype bfloat16; it has {types}$"):
            system.cast(dtypes.float32, dtypes.bfloat16)
        with pytest.raises(ValueError, match=f"^{system} has no dtype bfloat16; it has {types}$"):
            system.resolve("+", "int8", np.ones((), dtypes.bfloat16.numpy))
    binary = "+ - * / // % ** & | ^ << >> < <= > >= == != minimum maximum atan2 fpow fdiv concat"
    for op in ("where", "logaddexp", "fmod", "cdiv", "matmul", *LOGICAL):
        with pytest.raises(ValueError, match=f"^{re.escape(f'{system} has no operation {op!r}; it has {binary}')}$"):
            system.binary(op, dtypes.int8, dtypes.int8)
    unary = "pos neg ~ abs fabs sqrt rsqrt cbrt exp log log2 log10 sin cos tan tanh floor ceil "
    unary += "sinh cosh asin atan asinh acosh acos atanh"
    for op in {*UNARY} - {*unary.split()}:
        with pytest.raises(ValueError, match=f"^{re.escape(f'{system} has no operation {op!r}; it has {unary}')}$"):
            system.unary(op, dtypes.int8)
    for op in {*REDUCTIONS} - {"sum", "mean", "var", "std", "max", "min"}:
        with pytest.raises(ValueError, match=f"^{system} has no reduction '{op}'; it has sum mean var std max min$"):
            system.reduction(op, dtypes.int8)
    with pytest.raises(ValueError, match=f"^{system} has no operation 'fma'; it has clamp$"):
        system.ternary("fma", dtypes.int8, dtypes.int8, dtypes.int8)


@pytest.mark.parametrize("system", VERSIONS, ids=str)
def test_following_the_advice_makes_every_pair_legal(system: DaliSemantics) -> None:
    """The advice is followed on the operands that the message means; two sides of float16 need two rounds."""
    enums = {f"types.{d.name.upper()}": d for d in system.dtypes} | {"types.FLOAT": dtypes.float32}
    refused = 0
    for op, a, b in product(BINARY, system.dtypes, system.dtypes):
        sides = [a, b]
        for _ in range(3):
            try:
                system.binary(op, *sides)
                break
            except PromotionError as error:
                refused += 1
                target = enums[re.findall(r"fn\.cast\(x, dtype=(\S+)\)", error.cast)[0]]
                named = re.findall(r"(?:is|found|the) (bool|u?int\d+|float\d+)", str(error))
                which = [i for i, side in enumerate(sides) if str(side) in named] or [0]
                sides[which[0]] = target
        else:
            raise AssertionError(f"{a} {op} {b} is not legal after three casts, but {sides}")
    assert refused > 100


# ---- explanations ----------------------------------------------------------------------------------------------------

STEPS: list[tuple[str, tuple[object, ...], list[Step]]] = [
    ("+", ("uint8", "uint8"), [Step("same type", "uint8 on both sides stays uint8")]),
    (
        "+",
        ("int8", "uint8"),
        [Step("twice the unsigned width", "int8 and uint8: int of twice the unsigned width, int16")],
    ),
    ("+", ("uint8", "int16"), [Step("wider signed", "uint8 and int16: the signed side is wider, int16")]),
    ("-", ("uint8", "uint32"), [Step("wider integer", "uint8 and uint32: the wider integer, uint32")]),
    ("*", ("bool", "int8"), [Step("bool is uint1", "bool and int8: bool is uint1, narrower than any integer, int8")]),
    (
        "+",
        ("int64", "float32"),
        [Step("float wins", "int64 and float32: the float, however wide the other side, float32")],
    ),
    ("+", ("float64", "float32"), [Step("wider float", "float64 and float32: the wider float, float64")]),
    (
        "+",
        ("uint8", 10),
        [Step("int literal", "10 is int32"), Step("wider signed", "uint8 and int32: the signed side is wider, int32")],
    ),
    (
        "*",
        (True, 0.5),
        [
            Step("bool literal", "True is bool"),
            Step("float literal", "0.5 is float32"),
            Step("float wins", "bool and float32: the float, however wide the other side, float32"),
        ],
    ),
    ("/", ("uint8", "int8"), [Step("function of floats", "'/' of uint8 and int8 computes in float32")]),
    (
        "/",
        ("uint8", "float64"),
        [Step("float wins", "uint8 and float64: the float, however wide the other side, float64")],
    ),
    (
        "//",
        ("float32", "float32"),
        [
            Step("same type", "float32 on both sides stays float32"),
            Step("true division", "'//' of floats is the true quotient"),
        ],
    ),
    ("<", ("uint8", "int8"), [Step("exact comparison", "uint8 and int8 are compared as the numbers they are")]),
    (
        "<",
        ("uint8", "float32"),
        [
            Step("float wins", "uint8 and float32: the float, however wide the other side, float32"),
            Step("comparison", "'<' gives bool"),
        ],
    ),
    (
        "clamp",
        ("int8", "uint8", "float32"),
        [
            Step("twice the unsigned width", "int8 and uint8: int of twice the unsigned width, int16"),
            Step("float wins", "int16 and float32: the float, however wide the other side, float32"),
        ],
    ),
    ("sqrt", ("int8",), [Step("function of floats", "'sqrt' of int8 computes in float32")]),
    ("neg", ("int8",), [Step("type kept", "unary '-' of int8 is int8")]),
    ("sum", ("int8",), [Step("reduction", "sum of int8 computes in int64")]),
]


@pytest.mark.parametrize("system", VERSIONS, ids=str)
@pytest.mark.parametrize(("op", "operands", "steps"), STEPS)
def test_steps(system: DaliSemantics, op: str, operands: tuple[object, ...], steps: list[Step]) -> None:
    assert list(system.resolve(op, *operands).steps) == steps


def test_the_packages_cap_is_explained() -> None:
    steps = dali_2.resolve("+", "int8", "uint64").steps
    text = "int8 and uint64: int of twice the unsigned width, int128, is capped at int64"
    assert steps == (Step("cap", text),)
    for system in VERSIONS:
        (step,) = system.cast(dtypes.float32, dtypes.int8).steps
        assert str(step) == "cast: float32 to int8: halves round away from zero, what is out of range saturates"


# ---- meanings --------------------------------------------------------------------------------------------------------

# What the operation does on integers and on floats (- where it refuses them).
DOES = """
+        add                         add
-        sub                         sub
*        mul                         mul
/        divide                      divide
//       truncate_divide_checked     divide
%        truncate_remainder_checked  truncate_remainder_checked
**       power                       power
fpow     power                       power
fdiv     divide                      divide
&        and                         -
|        or                          -
^        xor                         -
<<       shift_left_masked           -
>>       shift_right_masked          -
<        less                        less
<=       less_equal                  less_equal
>        greater                     greater
>=       greater_equal               greater_equal
==       equal                       equal
!=       not_equal                   not_equal
minimum  minimum                     minimum_less
maximum  maximum                     maximum_greater
atan2    atan2                       atan2
"""


@pytest.mark.parametrize("system", VERSIONS, ids=str)
@pytest.mark.parametrize("line", DOES.strip().splitlines())
def test_meanings(system: DaliSemantics, line: str) -> None:
    op, integers, floats = line.split()
    assert system.resolve(op, "int8", "int16").meaning == integers
    if floats == "-":
        with pytest.raises(PromotionError):
            system.resolve(op, "float32", "int16")
    else:
        own = "_right_integer" if system.name == "dali@2" and op in COMPARISONS else ""
        assert system.resolve(op, "float32", "int16").meaning == floats + own
    assert {integers, floats} <= {*MEANINGS, "-"}


def test_every_operation_has_its_meaning_above() -> None:
    assert {line.split()[0] for line in DOES.strip().splitlines()} == {*BINARY}


def test_meanings_of_the_rest() -> None:
    for system in VERSIONS:
        assert system.resolve("clamp", "int8", 0, 1).meaning == "clamp"
        assert system.resolve("clamp", "float32", 0, 1).meaning == "clamp_compare"
        assert system.resolve("concat", "int8", "int8").meaning == "concat"
        assert system.cast(dtypes.float32, dtypes.int8).meaning == "convert_round"
        assert system.resolve("-", "int8").meaning == "neg"
        assert system.resolve("+", "int8").meaning == "identity"
        assert system.resolve("~", "bool").meaning == "not"
        fabs = system.resolve("fabs", "int8")
        assert (fabs.meaning, fabs.result) == ("abs", dtypes.float32)
        assert {system.resolve(op, "int8").meaning for op in ("sum", "mean", "max", "min", "exp", "floor")} <= {
            *MEANINGS
        }
        assert not system.common(Constant(1, dtypes.int8), dtypes.int8).meaning

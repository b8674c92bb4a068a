"""Triton's documentation, written out by hand, against `triton`; and where the package is known to differ."""

from __future__ import annotations

import math
from itertools import product

import pytest

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Promotion, PromotionError, get, triton, triton_3_9

NAMES = ["b", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "e4", "e5", "f16", "bf", "f32", "f64"]
SHORT: dict[str, DType] = dict(zip(NAMES, dtypes.ALL, strict=True))
LONG = {dtype: short for short, dtype in SHORT.items()}

# Derived from the document's text, row by row:
# - integers (top left): the wider type wins; at equal width the unsigned one; a bool is of a lower kind than all.
# - integers or bool against floats (top right, bottom left): the float, however narrow ("Kind").
# - floats (bottom right): the wider ("Width"), so every fp8 yields to f16 and bf alike; two different fp8 give f16
#   ("3.1"); f16 and bf, of one width, the next larger, f32 ("Supremum").
COMMON = """
.   b   i8  i16 i32 i64 u8  u16 u32 u64 e4  e5  f16 bf  f32 f64
b   b   i8  i16 i32 i64 u8  u16 u32 u64 e4  e5  f16 bf  f32 f64
i8  i8  i8  i16 i32 i64 u8  u16 u32 u64 e4  e5  f16 bf  f32 f64
i16 i16 i16 i16 i32 i64 i16 u16 u32 u64 e4  e5  f16 bf  f32 f64
i32 i32 i32 i32 i32 i64 i32 i32 u32 u64 e4  e5  f16 bf  f32 f64
i64 i64 i64 i64 i64 i64 i64 i64 i64 u64 e4  e5  f16 bf  f32 f64
u8  u8  u8  i16 i32 i64 u8  u16 u32 u64 e4  e5  f16 bf  f32 f64
u16 u16 u16 u16 i32 i64 u16 u16 u32 u64 e4  e5  f16 bf  f32 f64
u32 u32 u32 u32 u32 i64 u32 u32 u32 u64 e4  e5  f16 bf  f32 f64
u64 u64 u64 u64 u64 u64 u64 u64 u64 u64 e4  e5  f16 bf  f32 f64
e4  e4  e4  e4  e4  e4  e4  e4  e4  e4  e4  f16 f16 bf  f32 f64
e5  e5  e5  e5  e5  e5  e5  e5  e5  e5  f16 e5  f16 bf  f32 f64
f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64
bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  f32 bf  f32 f64
f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
"""


def matrix(text: str) -> dict[tuple[DType, DType], DType]:
    (_, *columns), *rows = (line.split() for line in text.strip().splitlines())
    return {
        (SHORT[row], SHORT[column]): SHORT[cell]
        for row, *cells in rows
        for column, cell in zip(columns, cells, strict=True)
    }


EXPECTED = matrix(COMMON)
INTEGERS = [d for d in dtypes.ALL if not d.is_float]


def test_the_matrix_is_complete() -> None:
    assert len(EXPECTED) == 15 * 15


@pytest.mark.parametrize("op", ["+", "-", "*", "%", "where", "minimum", "maximum"])
def test_arithmetic(op: str) -> None:
    assert {(a, b): triton.binary(op, a, b) for a, b in EXPECTED} == {
        pair: Promotion(common, common) for pair, common in EXPECTED.items()
    }


@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "==", "!="])
def test_comparisons_happen_in_the_common_type_and_give_bool(op: str) -> None:
    assert {(a, b): triton.binary(op, a, b) for a, b in EXPECTED} == {
        pair: Promotion(common, dtypes.bool_) for pair, common in EXPECTED.items()
    }


def test_division_of_integers_is_float32_of_floats_the_common_type() -> None:
    for (a, b), common in EXPECTED.items():
        true = dtypes.float32 if common in INTEGERS else common
        assert triton.binary("/", a, b) == Promotion(true, true), f"{a} / {b}"


@pytest.mark.parametrize("op", ["//", "&", "|", "^", "<<", ">>"])
def test_integer_operators_refuse_floats_and_keep_the_common_type(op: str) -> None:
    for (a, b), common in EXPECTED.items():
        if common in INTEGERS:
            assert triton.binary(op, a, b) == Promotion(common, common), f"{a} {op} {b}"
        else:
            with pytest.raises(PromotionError, match=f"does not take {common};"):
                triton.binary(op, a, b)


@pytest.mark.parametrize("op", ["+", "-", "*", "/", "%", "<", "where", "minimum"])
def test_promotion_is_commutative_and_idempotent(op: str) -> None:
    for a, b in product(dtypes.ALL, repeat=2):
        assert triton.binary(op, a, b) == triton.binary(op, b, a), f"{a} {op} {b}"
        assert triton_3_9_or_none(op, a, b) == triton_3_9_or_none(op, b, a), f"{a} {op} {b}"
    for dtype in dtypes.ALL:
        assert triton.binary("+", dtype, dtype) == Promotion(dtype, dtype)


def triton_3_9_or_none(op: str, a: DType, b: DType) -> Promotion | None:
    try:
        return triton_3_9.binary(op, a, b)
    except PromotionError:
        return None


def test_addition_is_not_associative() -> None:
    """Only for the two fp8 with bfloat16: by themselves they meet in float16, each alone yields to bfloat16."""

    def add(a: DType, b: DType) -> DType:
        return triton.binary("+", a, b).result

    broken = [t for t in product(dtypes.ALL, repeat=3) if add(add(t[0], t[1]), t[2]) != add(t[0], add(t[1], t[2]))]
    # (e4 + e5) + bf is f16 + bf = f32, e4 + (e5 + bf) is e4 + bf = bf; and its mirror images.
    assert {tuple(sorted(LONG[d] for d in t)) for t in broken} == {("bf", "e4", "e5")}
    assert len(broken) == 4


def test_where_document_and_package_differ_for_plus() -> None:
    """All cells; `weft.semantics.triton` and promotion/NOTES.md 1.4 name the same three groups."""
    differ = {
        (LONG[a], LONG[b]): (str(triton.binary("+", a, b).result), str(got.result) if got else "refused")
        for a, b in EXPECTED
        if (got := triton_3_9_or_none("+", a, b)) != triton.binary("+", a, b)
    }
    listed: dict[tuple[str, str], tuple[str, str]] = {("f16", "bf"): ("float32", "float16")}
    for other in NAMES[:11]:
        listed[other, "bf"] = ("bfloat16", "float32")
    for integer in NAMES[:9]:
        listed[integer, "e4"] = ("float8_e4m3fn", "refused")
        listed[integer, "e5"] = ("float8_e5m2", "refused")
    listed |= {(b, a): cell for (a, b), cell in listed.items()}
    assert differ == listed


@pytest.mark.parametrize(
    ("op", "a", "b", "document", "package"),
    [
        ("/", "f16", "f16", "float16", "float32"),
        ("%", "bf", "bf", "bfloat16", "float32"),
        ("/", "e4", "i32", "float8_e4m3fn", "float32"),
        ("//", "i32", "u32", "uint32", "refused"),
        ("%", "i8", "u8", "uint8", "refused"),
        ("/", "i64", "u64", "float32", "refused"),
        ("//", "b", "i32", "int32", "refused"),  # the package counts bool as unsigned
    ],
)
def test_where_document_and_package_differ_in_division(op: str, a: str, b: str, document: str, package: str) -> None:
    got = triton_3_9_or_none(op, SHORT[a], SHORT[b])
    assert str(triton.binary(op, SHORT[a], SHORT[b]).result) == document
    assert (str(got.result) if got else "refused") == package


# Kind of the scalar <= kind of the tensor: the tensor's type. Higher: the first type that holds the value.
@pytest.mark.parametrize(
    ("dtype", "literal", "result"),
    [
        ("u8", 3, "u8"),  # the document's example
        ("i16", 4.0, "f32"),  # the document's example
        ("b", True, "b"),
        ("i8", True, "i8"),
        ("f16", True, "f16"),
        ("f16", 7, "f16"),
        ("bf", 1e300, "bf"),  # becomes inf there
        ("e5", 2**40, "e5"),
        ("b", 300, "i32"),
        ("b", 2**31 - 1, "i32"),
        ("b", 2**31, "u32"),
        ("b", 2**32 - 1, "u32"),
        ("b", 2**32, "i64"),
        ("b", 2**63 - 1, "i64"),
        ("b", 2**63, "u64"),
        ("b", -(2**31), "i32"),
        ("b", -(2**31) - 1, "i64"),
        ("b", 0.5, "f32"),
        ("i64", 1e300, "f64"),
        ("i32", math.inf, "f32"),
        ("i32", math.nan, "f32"),
        ("i32", 3.4028234663852886e38, "f32"),  # float32's largest
        ("i32", 3.4028235677973366e38, "f64"),
        ("i32", 2.0**-126, "f32"),  # float32's smallest normal
        ("i32", 1e-38, "f64"),
        ("u8", 255, "u8"),
        ("i8", -128, "i8"),
    ],
)
def test_tensor_and_scalar(dtype: str, literal: bool | float, result: str) -> None:
    expected = Promotion(SHORT[result], SHORT[result])
    assert triton.binary("+", SHORT[dtype], literal) == expected
    assert triton.binary("+", literal, SHORT[dtype]) == expected


def test_two_scalars_promote_like_their_own_types() -> None:
    assert triton.binary("where", 1, 2**40).result == dtypes.int64
    assert triton.binary("where", 1, 2.5).result == dtypes.float32
    assert triton.binary("maximum", True, False).result == dtypes.bool_


@pytest.mark.parametrize(
    ("op", "a", "b", "message"),
    [
        ("+", "u8", 300, "Scalar 300 is out of range for type uint8; cast the other operand to tl.uint16"),
        ("+", "i8", 128, "Scalar 128 is out of range for type int8; cast the other operand to tl.int16"),
        ("==", "i32", 2**31, "Scalar 2147483648 is out of range for type int32; cast the other operand to tl.int64"),
        (
            "+",
            "i64",
            2**63,
            "Scalar 9223372036854775808 is out of range for type int64; cast the other operand to tl.float64",
        ),
        ("<", "u8", -1, "Scalar -1 is negative and type uint8 is unsigned; cast the other operand to tl.int16"),
        ("+", "u64", -1, "Scalar -1 is negative and type uint64 is unsigned; cast the other operand to tl.float64"),
        ("where", 2**31, -1, "Scalar -1 is negative and type uint32 is unsigned; cast the other operand to tl.int64"),
        (
            "+",
            "f32",
            2**64,
            (
                "Nonrepresentable integer 18446744073709551616: integers reach from -9223372036854775808 (int64) to "
                "18446744073709551615 (uint64); write it as a float"
            ),
        ),
        (
            "//",
            "f32",
            "i32",
            "'//' does not take float32; use tl.floor(a / b) or convert both sides with .to(tl.int32)",
        ),
        (
            "&",
            "f16",
            "i8",
            "'&' does not take float16; convert with .to(tl.int16) or reinterpret with .to(tl.int16, bitcast=True)",
        ),
    ],
)
def test_refusals(op: str, a: str | int, b: str | int, message: str) -> None:
    lhs, rhs = (SHORT[x] if isinstance(x, str) else x for x in (a, b))
    with pytest.raises(PromotionError) as error:
        triton.binary(op, lhs, rhs)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("op", "a", "b", "message"),
    [
        (
            "+",
            "i8",
            "e5",
            "int8 and float8_e5m2 have no common type for '+'; cast both sides with .to(tl.float32)",
        ),
        ("//", "u32", "i64", "'//' refuses uint32 with int64, one is signed; cast both sides with .to(tl.int64)"),
    ],
)
def test_refusals_of_the_package(op: str, a: str, b: str, message: str) -> None:
    with pytest.raises(PromotionError) as error:
        triton_3_9.binary(op, SHORT[a], SHORT[b])
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("op", "dtype", "message"),
    [
        ("~", "f32", "unary '~' does not take float32; reinterpret the bits with .to(tl.int32, bitcast=True)"),
        ("not", "i32", "unary 'not' does not take int32; compare with zero: x == 0"),
    ],
)
def test_unary_refusals(op: str, dtype: str, message: str) -> None:
    with pytest.raises(PromotionError) as error:
        triton.unary(op, SHORT[dtype])
    assert str(error.value) == message


def test_the_package_has_no_unary_plus() -> None:
    with pytest.raises(PromotionError) as error:
        triton_3_9.unary("pos", dtypes.int32)
    assert str(error.value) == "unary '+' does not take int32; leave it out"
    assert triton.unary("pos", dtypes.int32).result == dtypes.int32


def test_unary_operators_keep_the_type() -> None:
    assert [triton.unary("neg", d).result for d in dtypes.ALL] == list(dtypes.ALL)
    assert [triton.unary("~", d).result for d in INTEGERS] == INTEGERS
    assert triton.unary("not", dtypes.bool_).result == dtypes.bool_


def test_reductions() -> None:
    sums = {"b": "u32", "i8": "i32", "i16": "i32", "u8": "u32", "u16": "u32"}
    for short, dtype in SHORT.items():
        assert LONG[triton.reduction("sum", dtype).operands] == sums.get(short, short)
        narrow = dtype.bits < 32
        extreme = ("f32" if dtype.is_float else "i32") if narrow else short
        assert LONG[triton.reduction("max", dtype).operands] == LONG[triton.reduction("min", dtype).operands] == extreme
        assert (
            LONG[triton.reduction("argmax", dtype).operands]
            == LONG[triton.reduction("argmin", dtype).operands]
            == short
        )


def test_unknown_operators_and_reductions() -> None:
    for call, message in [
        (
            lambda: triton.binary("@", dtypes.int8, dtypes.int8),
            "unknown binary operator '@'; triton knows + - * % where minimum maximum / // & | ^ << >> < <= > >= == !=",
        ),
        (lambda: triton.unary("abs", dtypes.int8), "unknown unary operator 'abs'; triton knows neg pos ~ not"),
        (
            lambda: triton.reduction("prod", dtypes.int8),
            "unknown reduction 'prod'; triton knows sum cumsum max min argmax argmin",
        ),
    ]:
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value) == message


def test_get() -> None:
    assert get("triton") is triton
    assert get("triton@3.9") is triton_3_9
    with pytest.raises(ValueError) as near:
        get("trition")
    assert str(near.value) == "unknown semantics 'trition'; did you mean 'triton'?"
    with pytest.raises(ValueError) as far:
        get("cobol")
    assert str(far.value) == "unknown semantics 'cobol'; weft knows triton, triton@3.9"

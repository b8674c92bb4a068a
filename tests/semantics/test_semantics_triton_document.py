"""Triton's documentation, written out by hand, against `triton`; and where the package is known to differ."""

from __future__ import annotations

import math
from itertools import product

import pytest

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Promotion, PromotionError, triton, triton_3_9

NAMES = [
    *("b", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"),
    *("e4", "e5", "e4z", "e5z", "b15", "f16", "bf", "f32", "f64"),
]
DTYPES = [
    *(dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    *(dtypes.float8_e4m3fn, dtypes.float8_e5m2),
    *(dtypes.float8_e4m3fnuz, dtypes.float8_e5m2fnuz, dtypes.float8_e4m3b15),
    *(dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64),
]
SHORT: dict[str, DType] = dict(zip(NAMES, DTYPES, strict=True))
LONG = {dtype: short for short, dtype in SHORT.items()}
FLOAT8 = NAMES[9:14]

# Derived from the document's text, row by row:
# - integers (top left): the wider type wins; at equal width the unsigned one; a bool is of a lower kind than all.
# - integers or bool against floats (top right, bottom left): the float, however narrow ("Kind").
# - floats (bottom right): the wider ("Width"), so every fp8 yields to f16 and bf alike; two different fp8 give f16
#   ("3.1"); f16 and bf, of one width, the next larger, f32 ("Supremum").
COMMON = """
.   b   i8  i16 i32 i64 u8  u16 u32 u64 e4  e5  e4z e5z b15 f16 bf  f32 f64
b   b   i8  i16 i32 i64 u8  u16 u32 u64 e4  e5  e4z e5z b15 f16 bf  f32 f64
i8  i8  i8  i16 i32 i64 u8  u16 u32 u64 e4  e5  e4z e5z b15 f16 bf  f32 f64
i16 i16 i16 i16 i32 i64 i16 u16 u32 u64 e4  e5  e4z e5z b15 f16 bf  f32 f64
i32 i32 i32 i32 i32 i64 i32 i32 u32 u64 e4  e5  e4z e5z b15 f16 bf  f32 f64
i64 i64 i64 i64 i64 i64 i64 i64 i64 u64 e4  e5  e4z e5z b15 f16 bf  f32 f64
u8  u8  u8  i16 i32 i64 u8  u16 u32 u64 e4  e5  e4z e5z b15 f16 bf  f32 f64
u16 u16 u16 u16 i32 i64 u16 u16 u32 u64 e4  e5  e4z e5z b15 f16 bf  f32 f64
u32 u32 u32 u32 u32 i64 u32 u32 u32 u64 e4  e5  e4z e5z b15 f16 bf  f32 f64
u64 u64 u64 u64 u64 u64 u64 u64 u64 u64 e4  e5  e4z e5z b15 f16 bf  f32 f64
e4  e4  e4  e4  e4  e4  e4  e4  e4  e4  e4  f16 f16 f16 f16 f16 bf  f32 f64
e5  e5  e5  e5  e5  e5  e5  e5  e5  e5  f16 e5  f16 f16 f16 f16 bf  f32 f64
e4z e4z e4z e4z e4z e4z e4z e4z e4z e4z f16 f16 e4z f16 f16 f16 bf  f32 f64
e5z e5z e5z e5z e5z e5z e5z e5z e5z e5z f16 f16 f16 e5z f16 f16 bf  f32 f64
b15 b15 b15 b15 b15 b15 b15 b15 b15 b15 f16 f16 f16 f16 b15 f16 bf  f32 f64
f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f32 f64
bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  bf  f32 bf  f32 f64
f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
"""


def matrix(text: str) -> dict[tuple[DType, DType], DType]:
    (_, *columns), *rows = (line.split() for line in text.strip().splitlines())
    return {
        (SHORT[row], SHORT[column]): SHORT[cell]
        for row, *cells in rows
        for column, cell in zip(columns, cells, strict=True)
    }


EXPECTED = matrix(COMMON)
INTEGERS = [d for d in DTYPES if not d.is_float]


def test_the_matrix_is_complete() -> None:
    assert triton.dtypes == triton_3_9.dtypes == tuple(DTYPES)
    assert len(EXPECTED) == 18 * 18


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
    for a, b in product(DTYPES, repeat=2):
        assert triton.binary(op, a, b) == triton.binary(op, b, a), f"{a} {op} {b}"
        assert triton_3_9_or_none(op, a, b) == triton_3_9_or_none(op, b, a), f"{a} {op} {b}"
    for dtype in DTYPES:
        assert triton.binary("+", dtype, dtype) == Promotion(dtype, dtype)


def triton_3_9_or_none(op: str, a: DType, b: DType) -> Promotion | None:
    try:
        return triton_3_9.binary(op, a, b)
    except PromotionError:
        return None


def test_addition_is_not_associative() -> None:
    """Only for two fp8 with bfloat16: by themselves they meet in float16, each alone yields to bfloat16."""

    def add(a: DType, b: DType) -> DType:
        return triton.binary("+", a, b).result

    broken = [t for t in product(DTYPES, repeat=3) if add(add(t[0], t[1]), t[2]) != add(t[0], add(t[1], t[2]))]
    # (x + y) + bf is f16 + bf = f32, x + (y + bf) is x + bf = bf; and its mirror image: 5 * 4 ordered pairs, twice.
    pairs = [(SHORT[x], SHORT[y]) for x in FLOAT8 for y in FLOAT8 if x != y]
    bf = dtypes.bfloat16
    assert set(broken) == {(x, y, bf) for x, y in pairs} | {(bf, x, y) for x, y in pairs}
    assert len(broken) == 40


def test_where_document_and_package_differ_for_plus() -> None:
    """All cells, in four groups; the last is the verifier's, not promotion's."""
    differ = {
        (LONG[a], LONG[b]): (str(triton.binary("+", a, b).result), str(got.result) if got else "refused")
        for a, b in EXPECTED
        if (got := triton_3_9_or_none("+", a, b)) != triton.binary("+", a, b)
    }
    listed: dict[tuple[str, str], tuple[str, str]] = {("f16", "bf"): ("float32", "float16")}
    for other in NAMES[:14]:
        listed[other, "bf"] = ("bfloat16", "float32")
    for integer, short in product(NAMES[:9], FLOAT8):
        listed[integer, short] = (str(SHORT[short]), "refused")
    listed["b15", "b15"] = ("float8_e4m3b15", "refused")
    listed["b15", "f64"] = ("float64", "refused")
    listed |= {(b, a): cell for (a, b), cell in listed.items()}
    assert differ == listed
    assert len(differ) == 123  # 2 + 28 + 90 + 3, as counted in the record


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
    ("op", "dtype", "message"),
    [
        ("~", "f32", "unary '~' does not take float32; reinterpret the bits with .to(tl.int32, bitcast=True)"),
        ("not", "i32", "unary 'not' does not take int32; compare with zero: x == 0"),
        ("exp", "f16", "unary 'exp' does not take float16; convert with .to(tl.float32)"),
        ("floor", "i32", "unary 'floor' does not take int32; convert with .to(tl.float32)"),
    ],
)
def test_unary_refusals(op: str, dtype: str, message: str) -> None:
    with pytest.raises(PromotionError) as error:
        triton.unary(op, SHORT[dtype])
    assert str(error.value) == message


def test_unary_operators_keep_the_type() -> None:
    assert [triton.unary("neg", d).result for d in DTYPES] == DTYPES
    assert [triton.unary("~", d).result for d in INTEGERS] == INTEGERS
    assert triton.unary("not", dtypes.bool_).result == dtypes.bool_
    assert [triton.unary("pos", d).result for d in DTYPES] == DTYPES
    assert [triton.unary("abs", d).result for d in DTYPES] == DTYPES


def test_functions_take_float32_and_float64() -> None:
    taken = {"float32", "float64"}
    for op in ("exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt", "erf", "sigmoid", "floor", "ceil", "tanh"):
        for dtype in DTYPES:
            if dtype.name in taken:
                assert triton.unary(op, dtype) == Promotion(dtype, dtype)
                assert triton.unary(op, dtype).meaning == op
            else:
                with pytest.raises(PromotionError, match=f"unary '{op}' does not take {dtype};"):
                    triton.unary(op, dtype)


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


# What each op does in the common type: C's arithmetic, wrapping, truncating.
MEANINGS = """
+ add
- sub
* mul
/ divide
// truncate_divide
% truncate_remainder
& and
| or
^ xor
<< shift_left
>> shift_right
< less
<= less_equal
> greater
>= greater_equal
== equal
!= not_equal
where select
minimum minimum
maximum maximum
cdiv ceil_divide
"""


def test_meanings() -> None:
    for line in MEANINGS.strip().splitlines():
        op, meaning = line.split()
        assert triton.binary(op, dtypes.int32, dtypes.int32).meaning == meaning
        assert triton_3_9.binary(op, dtypes.int32, dtypes.int32).meaning == meaning
    assert triton.binary("fdiv", dtypes.float32, dtypes.float32).meaning == "divide"
    assert [triton.binary(op, True, dtypes.bool_).meaning for op in ("and", "or")] == ["and", "or"]
    assert [triton.unary(op, dtypes.bool_).meaning for op in ("pos", "neg", "~", "not", "abs")] == [
        *("identity", "neg", "not", "not", "abs")
    ]
    for op in ("sum", "cumsum", "max", "min", "argmax", "argmin"):
        assert triton.reduction(op, dtypes.int8).meaning == op
    assert triton.ternary("clamp", dtypes.float32, 0, 1).meaning == "clamp"
    assert triton.cast(dtypes.float32, dtypes.int8) == Promotion(dtypes.int8, dtypes.int8)
    assert triton.cast(dtypes.float32, dtypes.int8).meaning == "convert"
    assert triton.common(dtypes.int8, dtypes.int16).meaning == ""


@pytest.mark.parametrize(
    ("operands", "common"),
    [
        (("i8",), "i8"),
        ((3,), "i32"),
        ((2**31,), "u32"),
        (("i8", "f16"), "f16"),
        (("i8", 4.0), "f32"),
        (("i8", 4), "i8"),
        ((4, "i8"), "i8"),
        (("f16", "e4", "bf"), "f32"),
        ((1, 2.5), "f32"),
    ],
)
def test_promote(operands: tuple[str | float, ...], common: str) -> None:
    """Numbers beside numbers meet in their own types; what has been met is a run-time value from there on."""
    assert LONG[triton.promote(*(SHORT[o] if isinstance(o, str) else o for o in operands)).dtype] == common


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("i8", "i16", "i16"),
        ("u8", "i8", "u8"),
        ("b", "b", "i32"),  # y - 1 of a bool is int32, and so is all that follows
        ("i64", 8, "i64"),
        (8, "u16", "u16"),
        (7, 2, "i32"),
    ],
)
def test_ceiling_division(a: str | int, b: str | int, result: str) -> None:
    operands = [SHORT[o] if isinstance(o, str) else o for o in (a, b)]
    assert triton.resolve("cdiv", *operands) == Promotion(SHORT[result], SHORT[result])


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("f16", "f16", "f32"),
        ("bf", "bf", "f32"),
        ("f32", "f32", "f32"),
        ("f64", "f64", "f64"),
        ("e4", "e5", "f32"),
        ("i8", "i8", "i32"),
    ],
)
def test_matrix_products_accumulate_wide(a: str, b: str, result: str) -> None:
    for system in (triton, triton_3_9):
        got = system.resolve("@", SHORT[a], SHORT[b])
        assert (got, got.meaning) == (Promotion(SHORT[result], SHORT[result]), "matmul")


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        ("and", ("i8", "b"), "'and' does not take int8; compare with zero: x != 0"),
        ("or", ("b", 3), "'or' does not take int32; compare with zero: x != 0"),
        ("fdiv", ("i8", "i16"), "'fdiv' does not take int16; use a / b, which converts integers"),
        ("**", ("i8", 2), "'**' does not take values of the run time; write x * x, or tl.exp2(tl.log2(x) * y)"),
        ("matmul", ("i16", "i16"), "tl.dot does not take int16; cast both sides with .to(tl.float32)"),
        (
            "matmul",
            ("f16", "bf"),
            "tl.dot takes two tiles of one type, found float16 and bfloat16; cast one with .to(tl.float16)",
        ),
        ("+", ("f32", 1j), "Triton has no complex numbers, found 1j; keep two floats"),
        (
            "clamp",
            ("i8", 0, 300),
            "Scalar 300 is out of range for type int8; cast the other operand to tl.int16",
        ),
    ],
)
def test_refusals_of_other_ops(op: str, operands: tuple[str | int, ...], message: str) -> None:
    with pytest.raises(PromotionError) as error:
        triton.resolve(op, *(SHORT[o] if isinstance(o, str) else o for o in operands))
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("op", "operands", "steps"),
    [
        ("+", ("i8", "i8"), ["equal: both are int8"]),
        ("+", ("i8", "f16"), ["kind: float16 is a float, int8 an integer: float16"]),
        ("*", ("b", "u8"), ["kind: uint8 is an integer, bool a bool: uint8"]),
        ("-", ("i32", "u8"), ["width: int32 is wider than uint8: int32"]),
        ("+", ("e4", "e5"), ["fp8 pair: float8_e4m3fn and float8_e5m2 differ: float16"]),
        ("+", ("f16", "bf"), ["supremum: float16 and bfloat16 are equally wide, the next larger is float32"]),
        ("+", ("i32", "u32"), ["prefer unsigned: int32 and uint32 are equally wide, uint32 is the unsigned one"]),
        (
            "+",
            ("u8", 3),
            ["scalar: 3 is an integer, of no higher kind than uint8, and takes its type", "equal: both are uint8"],
        ),
        (
            "+",
            (4.0, "i16"),
            [
                "scalar: 4.0 is a float, of a higher kind than int16; it first fits float32",
                "kind: float32 is a float, int16 an integer: float32",
            ],
        ),
        (
            "where",
            (1, 2.5),
            [
                "scalar: 1 by itself is int32",
                "scalar: 2.5 by itself is float32",
                "kind: float32 is a float, int32 an integer: float32",
            ],
        ),
        ("/", ("i8", "i8"), ["equal: both are int8", "division of integers: '/' computes in float32"]),
        ("<", ("i8", "i8"), ["equal: both are int8", "comparison: '<' gives bool"]),
        ("neg", ("i8",), ["unary: 'neg' keeps int8"]),
        ("sum", ("i8",), ["reduction: 'sum' of int8 is carried out in int32"]),
        ("argmax", ("i8",), ["reduction: 'argmax' of int8 is carried out in int8", "index: 'argmax' gives int32"]),
        ("@", ("f16", "f16"), ["matrix product: float16 and float16 accumulate in float32"]),
        ("and", ("b", "b"), ["logical: 'and' of two bools is bool"]),
    ],
)
def test_steps(op: str, operands: tuple[str | float, ...], steps: list[str]) -> None:
    got = triton.resolve(op, *(SHORT[o] if isinstance(o, str) else o for o in operands))
    assert [str(step) for step in got.steps] == steps


def test_unknown_operators_and_reductions() -> None:
    for call, message in [
        (
            lambda: triton.binary("atan2", dtypes.int8, dtypes.int8),
            "unknown binary operator 'atan2'; triton knows + - * % where minimum maximum / fdiv // & | ^ << >> "
            "< <= > >= == != cdiv and or matmul **",
        ),
        (
            lambda: triton.unary("sign", dtypes.int8),
            "unknown unary operator 'sign'; triton knows neg pos abs ~ not sqrt rsqrt exp exp2 log log2 sin cos erf "
            "sigmoid floor ceil cbrt log10 tan tanh isnan isinf isfinite signbit log1p expm1 sinh cosh asin atan asinh acosh "
            "acos atanh erfc lgamma rint round trunc",
        ),
        (
            lambda: triton.ternary("fma", dtypes.int8, 1, 1),
            "unknown ternary operator 'fma'; triton knows clamp",
        ),
        (
            lambda: triton.reduction("prod", dtypes.int8),
            "unknown reduction 'prod'; triton knows sum cumsum cumprod max min argmax argmin",
        ),
    ]:
        with pytest.raises(ValueError) as error:
            call()
        assert str(error.value) == message

"""`torch`: the rules it names, its refusals word for word, its meanings, and its laws. Expected types are derived from
PyTorch's documentation of type promotion (categories and the three classes of operands) and its recorded values."""

from __future__ import annotations

import itertools

import pytest

from weft import dtypes as d
from weft import semantics
from weft.dtypes import DType
from weft.semantics import Constant, Operand, PromotionError, Type
from weft.semantics.meanings import MEANINGS
from weft.semantics.systems.torch import FLOAT8, LIMITED

TORCH = semantics.get("torch")
F8_0D = Type(d.float64, scalar=True)


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        (
            "+",
            (d.int32, d.uint32),
            "PyTorch does not promote int32 with uint32: uint16, uint32 and uint64 meet only themselves and floats; "
            "convert both sides with .to(torch.int64)",
        ),
        (
            "+",
            (d.float8_e4m3fn, d.float16),
            "PyTorch does not promote float8_e4m3fn with float16: float8 types meet only themselves; "
            "convert both sides with .to(torch.float32)",
        ),
        ("+", (d.uint32, d.uint32), "torch.add is not implemented for uint32; convert with .to(torch.int64)"),
        (
            "+",
            (d.float8_e5m2, 1),
            "torch.add is not implemented for float8_e5m2; convert with .to(torch.float32)",
        ),
        (
            "+",
            (d.float8_e5m2, 1j),
            "float8_e5m2 has no complex counterpart; convert it with .to(torch.float32)",
        ),
        (
            "*",
            (d.float8_e5m2, 2),
            "torch.mul of float8_e5m2 with a number or 0-d tensor is not implemented; convert with .to(torch.float32)",
        ),
        (
            "+",
            (d.int32, 2**64),
            f"Python integer {2**64} fits neither int64 nor uint64; write it as a float",
        ),
        (
            "-",
            (d.bool_, d.int8),
            "torch.sub does not take bool, found bool and int8; use ^ or torch.logical_xor, ~ to invert a mask, "
            "or convert with .to(torch.int64)",
        ),
        (
            "-",
            (d.int8, True),
            "torch.sub does not take bool, found int8 and Python's True; use ^ or torch.logical_xor, "
            "~ to invert a mask, or convert with .to(torch.int64)",
        ),
        ("//", (d.bool_, d.bool_), "torch.floor_divide is not implemented for bool; convert with .to(torch.uint8)"),
        ("&", (d.float16, 1), "torch.bitwise_and is not implemented for float16; convert with .to(torch.int16)"),
        ("<", (d.complex64, d.int8), "torch.lt is not implemented for complex64; use .real or .abs()"),
        ("/", (d.complex32, 1), "torch.div is not implemented for complex32; convert with .to(torch.complex64)"),
        (
            "maximum",
            (d.complex64, d.uint16),
            "torch.maximum does not take complex numbers, found complex64 and uint16; use .real or .abs()",
        ),
        (
            "maximum",
            (d.int8, 1),
            "torch.maximum takes tensors, found int8 and Python's 1; make a tensor with torch.tensor",
        ),
        (
            "matmul",
            (d.int8, d.float16),
            "torch.matmul takes two tensors of one type, found int8 and float16; convert both sides with .to(torch.float16)",
        ),
        (
            "concat",
            (Type(d.int8, scalar=True), d.int8),
            "torch.cat takes tensors with dimensions, found int8[] and int8; use .reshape(1)",
        ),
        ("**", (d.int32, -1), "Integers to negative integer powers are not allowed, found ** -1; write ** -1.0"),
        ("mean", (d.int8,), "mean takes floats and complex numbers, found int8; convert with .to(torch.float32)"),
        ("neg", (d.bool_,), "torch.neg is not implemented for bool; convert with .to(torch.uint8)"),
        ("~", (d.float32,), "torch.bitwise_not is not implemented for float32; convert with .to(torch.int32)"),
        ("argmax", (d.bool_,), "torch.argmax is not implemented for bool; convert with .to(torch.uint8)"),
        (
            "clamp",
            (d.complex64, d.float32, d.float32),
            "torch.clamp does not take complex numbers, found complex64 and float32 and float32; use .real or .abs()",
        ),
        ("+", (Type(d.int8, weak=True), d.int8), "PyTorch has no weakly typed tensors, found int8 (weak); use int8"),
    ],
)
def test_refusals(op: str, operands: tuple[Operand, ...], message: str) -> None:
    with pytest.raises(PromotionError) as caught:
        TORCH.resolve(op, *operands)
    assert str(caught.value) == message
    assert message == f"{caught.value.reason}; {caught.value.cast}"


def test_a_number_that_no_tensor_takes_by_itself() -> None:
    with pytest.raises(
        PromotionError, match=rf"^Python integer {2**63} is out of bounds for int64; give a dtype: torch.uint64$"
    ):
        TORCH.literal(2**63)
    assert [str(TORCH.literal(v)) for v in (True, 3, 2.5, 1j)] == ["bool", "int64", "float32", "complex64"]


@pytest.mark.parametrize("op", ["cbrt", "cdiv", "fdiv"])
def test_operations_it_does_not_have(op: str) -> None:
    operands = (d.float32,) * (2 if op.endswith("div") else 1)
    with pytest.raises(ValueError, match=f"^torch has no operation '{op}'$"):
        TORCH.resolve(op, *operands)


def test_types_it_does_not_have() -> None:
    with pytest.raises(ValueError, match=r"^torch has no dtype int4; it has bool, uint8, int8"):
        TORCH.resolve("+", d.int4, d.int8)


def test_refused_pairs_are_accepted_after_the_cast_they_propose() -> None:
    ops = ("+", "*", "/", "//", "**", "&", "<<", "<", "where", "maximum", "atan2", "matmul")
    for op, a, b in itertools.product(ops, TORCH.dtypes, TORCH.dtypes):
        try:
            TORCH.binary(op, a, b)
        except PromotionError as error:
            if "torch.float32)" in error.cast or ".to(torch." in error.cast:
                name = error.cast.partition(".to(torch.")[2].rstrip(")")
                try:
                    TORCH.binary(op, d.named(name), d.named(name))
                except PromotionError as second:  # promotion first, then the kernel: two casts
                    assert "is not implemented" in str(second)
            else:
                assert error.cast == "use .real or .abs()"
                assert a.is_complex or b.is_complex


def steps(op: str, *operands: Operand) -> list[str]:
    return [str(step) for step in TORCH.resolve(op, *operands).steps]


def test_steps() -> None:
    assert steps("+", d.int8, d.int8) == ["equal: '+' computes in int8"]
    assert steps("+", d.uint8, d.int8) == ["pair: uint8 and int8 meet in int16"]
    assert steps("+", d.float16, F8_0D) == [
        "priority: tensors of float16 keep their type beside float64 of lower priority"
    ]
    assert steps("+", d.int8, F8_0D) == ["category: float64 is of a higher category than int8 and raises it to float64"]
    assert steps("/", d.int64, 2) == [
        "Python number: Python's 2 enters as int64",
        "priority: tensors of int64 keep their type beside int64 of lower priority",
        "float result: '/' of int64 computes in float32",
    ]
    assert steps("*", d.float16, 1j) == [
        "Python number: Python's 1j enters as complex64",
        "complex: complex64 of lower priority makes float16 complex: complex32",
    ]
    assert steps("sum", d.uint8) == ["accumulator: 'sum' of uint8 accumulates in int64"]
    assert steps("any", d.uint8) == ["reduction: 'any' of uint8 gives uint8"]
    assert steps("square", d.bool_) == ["square: square is x ** 2, and the 2 raises bool to int64"]
    assert steps("fpow", d.int8, d.float16) == ["float power: float_power computes in float64"]


@pytest.mark.parametrize(
    ("operands", "expected"),
    [
        ((d.int8, Type(d.int32, scalar=True)), "int8"),
        ((d.int8, F8_0D), "float64"),
        ((d.int8, 1.5), "float32"),
        ((d.bool_, 1), "int64"),
        ((d.float16, Type(d.bfloat16, scalar=True)), "float16"),
        ((Type(d.float16, scalar=True), Type(d.bfloat16, scalar=True)), "float32"),
        ((d.bfloat16, 1j), "complex64"),
        ((d.bfloat16, d.complex32), "complex64"),
        ((d.float64, d.complex32), "complex128"),
        ((d.uint8, d.int16), "int16"),
        ((d.int64, d.float16), "float16"),
        ((d.uint16, d.bfloat16), "bfloat16"),
        # Three classes at once: the float number raises the int tensor to the default float. It does not raise the 0-d integer,
        # since the number below it makes the 0-d class float first.
        ((d.int8, Type(d.int64, scalar=True), 1.5), "float32"),
        ((d.int8, Type(d.float16, scalar=True), 1.5), "float16"),
        ((d.float16, d.int64, F8_0D, 1j), "complex32"),
        ((Constant(3, d.float64), d.float32), "float32"),
    ],
)
def test_common_types(operands: tuple[Operand, ...], expected: str) -> None:
    assert str(TORCH.common(*operands).result) == expected


@pytest.mark.parametrize(
    ("op", "operands", "meaning", "computes", "result"),
    [
        ("+", (d.bool_, d.bool_), "or", "bool", "bool"),
        ("*", (d.bool_, d.bool_), "and", "bool", "bool"),
        ("/", (d.int64, d.int64), "divide", "float32", "float32"),
        ("//", (d.int32, d.int32), "floor_divide_checked", "int32", "int32"),
        ("//", (d.float32, d.int32), "floor_divide", "float32", "float32"),
        ("%", (d.int32, 3), "floor_remainder_checked", "int32", "int32"),
        ("%", (d.float32, 3), "floor_remainder", "float32", "float32"),
        ("fmod", (d.int32, d.int32), "truncate_remainder_zero_checked", "int32", "int32"),
        ("fmod", (d.float32, d.int32), "truncate_remainder", "float32", "float32"),
        ("**", (d.int32, d.int32), "power_units", "int32", "int32"),
        ("maximum", (d.float32, d.float16), "maximum_nan", "float32", "float32"),
        ("==", (d.uint8, -1), "equal", "uint8", "bool"),
        ("exp", (d.int64,), "exp", "float32", "float32"),
        ("floor", (d.int8,), "identity", "int8", "int8"),
        ("abs", (d.complex32,), "abs", "complex32", "float16"),
        ("real", (d.complex64,), "real", "complex64", "float32"),
        ("real", (d.float8_e4m3fn,), "identity", "float8_e4m3fn", "float8_e4m3fn"),
        ("not", (d.int8,), "not", "bool", "bool"),
        ("argmin", (d.float16,), "argmin", "float16", "int64"),
        ("max", (d.int8,), "max", "int8", "int8"),
        ("all", (d.complex64,), "all", "complex64", "bool"),
        ("any", (d.uint8,), "any", "uint8", "uint8"),
        ("clamp", (d.int8, 0, 1.5), "clamp", "float32", "float32"),
        ("concat", (d.int8, d.uint8), "concat", "int16", "int16"),
    ],
)
def test_meanings(op: str, operands: tuple[Operand, ...], meaning: str, computes: str, result: str) -> None:
    found = TORCH.resolve(op, *operands)
    assert (found.meaning, str(found.operands), str(found.result)) == (meaning, computes, result)
    assert meaning in MEANINGS
    assert not found.keeps


@pytest.mark.parametrize(
    ("value", "dtype", "wrapped"),
    [(300, d.uint8, 44), (-1, d.uint8, 255), (2**31, d.int32, -(2**31)), (2**40, d.int32, 0), (2**63, d.int32, 0)],
)
def test_python_integers_wrap(value: int, dtype: DType, wrapped: int) -> None:
    """uint8(1) + 300 is 45, uint8(255) == -1, int32(1) + 2**31 is -2147483647, as recorded."""
    assert TORCH.binary("+", dtype, value).operands == dtype
    assert TORCH.number(value, dtype) == wrapped


def test_casts() -> None:
    found = TORCH.cast(d.float32, d.uint8)
    assert (found.result, found.meaning) == (d.uint8, "convert_wrap")
    assert [str(s) for s in found.steps] == ["to: .to(torch.uint8) converts float32 unchecked"]


# Laws.


def common(*types: DType) -> DType | None:
    try:
        return TORCH.common(*types).result
    except PromotionError:
        return None


def fold(a: DType, b: DType, c: DType) -> DType | None:
    first = common(a, b)
    return None if first is None else common(first, c)


def test_common_type_is_commutative_and_idempotent() -> None:
    for a in TORCH.dtypes:
        assert common(a, a) == a
        assert all(common(a, b) == common(b, a) for b in TORCH.dtypes)


def test_associative_where_both_sides_exist() -> None:
    one_sided: list[tuple[DType, ...]] = []
    for a, b, c in itertools.product(TORCH.dtypes, repeat=3):
        left, right = fold(a, b, c), fold(b, c, a)
        if left is None or right is None:
            one_sided += [(a, b, c)] if left != right else []
        else:
            assert left == right
    # A float absorbs one of the limited integers before the other arrives, which alone refuse each other.
    assert one_sided
    assert all({*triple} & {*LIMITED} and not {*triple} & {*FLOAT8} for triple in one_sided)


def test_the_limited_types_meet_only_themselves() -> None:
    for a in (*LIMITED, *FLOAT8):
        met = [b for b in TORCH.dtypes if common(a, b) is not None]
        floats = [d.float16, d.bfloat16, d.float32, d.float64] if a in LIMITED else []
        assert met == sorted([a, *floats], key=TORCH.dtypes.index)


def test_a_lower_class_of_the_same_category_changes_nothing() -> None:
    for a, b in itertools.product(TORCH.dtypes, repeat=2):
        if a.kind == b.kind and common(a, b) is not None:
            assert TORCH.common(a, Type(b, scalar=True)).result == a


# ---- what `make oracles` found: torch 2.13.0 on a CPU ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "operands", "expected"),
    [
        ("*", (Type(d.bool_, scalar=True), d.float8_e4m3fn), "float8_e4m3fn"),  # only the right side may not be 0-d
        ("*", (Type(d.float8_e5m2, scalar=True), d.float8_e5m2), "float8_e5m2"),
        ("fpow", (d.float8_e4m3fn, d.float8_e5m2), "float64"),  # each side is converted by itself
        ("fpow", (d.bool_, d.uint64), "float64"),
        ("fpow", (Type(d.complex32, scalar=True), d.float8_e4m3fn), "complex128"),
        ("where", (d.uint8, -255), "uint8"),
        ("where", (d.float16, 65520), "float16"),
        ("where", (d.float32, float("inf")), "float32"),
        ("where", (d.bool_, 2), "int64"),
        ("**", (d.float8_e4m3fn, 1), "float8_e4m3fn"),  # a power of 0 or 1, and of 1, needs no kernel
        ("**", (d.float8_e4m3fn, 0.0), "float8_e4m3fn"),
        ("**", (1, d.uint16), "uint16"),
        ("**", (d.bool_, True), "bool"),
        ("matmul", (d.float8_e4m3fnuz, d.float8_e4m3fnuz), "float8_e4m3fnuz"),
        ("*", (d.float16, Type(d.float8_e5m2, scalar=True)), "float16"),
        ("any", (d.uint16,), "bool"),
        ("any", (d.float8_e4m3fn,), "bool"),
        ("all", (d.complex32,), "bool"),
        ("/", (1j, d.float16), "complex32"),  # a number by a tensor is the number times the reciprocal
        ("/", (2**63, d.bool_), "float32"),
    ],
)
def test_what_takes_part_and_what_does_not(op: str, operands: tuple[Operand, ...], expected: str) -> None:
    assert str(TORCH.result(op, *operands)) == expected


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        ("fmod", (3, d.int8), "torch.fmod takes a tensor on the left, found Python's 3; make a tensor with torch.tensor"),
        ("*", (2, d.float8_e4m3fn), "torch.mul of float8_e4m3fn with a number or 0-d tensor is not implemented; "
         "convert with .to(torch.float32)"),
        ("clamp", (d.int8, 3, 128), "torch.clamp does not convert 128 to int8 without overflow; write torch.tensor(128)"),
        ("clamp", (d.float16, 1, 7e4),
         "torch.clamp does not convert 70000.0 to float16 without overflow; write torch.tensor(70000.0)"),
        ("where", (d.int8, 128), "torch.where does not convert 128 to int8 without overflow; write torch.tensor(128)"),
        ("where", (-256, d.uint8), "torch.where does not convert -256 to uint8 without overflow; write torch.tensor(-256)"),
        ("where", (d.float32, 1e39), "torch.where does not convert 1e+39 to float32 without overflow; write torch.tensor(1e+39)"),
        ("**", (d.int8, 300), "torch.pow does not convert 300 to int8 without overflow; write torch.tensor(300)"),
        ("**", (d.float16, -65536), "torch.pow does not convert -65536 to float16 without overflow; write torch.tensor(-65536)"),
        ("**", (d.int64, 2**63), f"torch.pow does not convert {2**63} to int64 without overflow; write torch.tensor({2**63})"),
        ("/", (1, d.complex32), "torch.reciprocal is not implemented for complex32; convert with .to(torch.complex64)"),
        ("matmul", (d.float8_e8m0fnu, d.float8_e8m0fnu),
         "torch.matmul is not implemented for float8_e8m0fnu; convert with .to(torch.float32)"),
    ],
)  # fmt: skip
def test_refusals_of_numbers(op: str, operands: tuple[Operand, ...], message: str) -> None:
    with pytest.raises(PromotionError) as refused:
        TORCH.result(op, *operands)
    assert str(refused.value) == message

"""`numpy`: the rules it names, its refusals word for word, its meanings against NumPy's values, and the laws it breaks."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from weft import dtypes as d
from weft import semantics
from weft.dtypes import DType
from weft.semantics import Constant, Number, Operand, PromotionError, Type
from weft.semantics.meanings import MEANINGS
from weft.semantics.systems import numpy_loops as loops

NUMPY = semantics.get("numpy")


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        (
            "+",
            (d.uint8, 300),
            "Python integer 300 out of bounds for uint8; convert the other side with .astype(np.int16)",
        ),
        (
            "+",
            (d.uint64, -1),
            "Python integer -1 out of bounds for uint64; convert the other side with .astype(np.float64)",
        ),
        ("+", (d.bfloat16, 2**63), f"bfloat16 takes Python integers of 64 bits, found {2**63}; write it as a float"),
        (
            "where",
            (d.int8, 2**64),
            f"Python integer {2**64} fits neither int64 nor uint64, from which it would be converted to int8; "
            "write it as a float",
        ),
        (
            "-",
            (d.bool_, True),
            "NumPy's subtract does not take bool; use ^ or np.logical_xor, or convert one side with .astype(np.int8)",
        ),
        (
            "neg",
            (d.bool_,),
            "NumPy's negative does not take bool; use ~ or np.logical_not, or convert with .astype(np.int8)",
        ),
        ("pos", (d.bool_,), "NumPy's positive does not take bool; leave it out, or convert with .astype(np.int8)"),
        (
            "**",
            (d.int32, -1),
            "Integers to negative integer powers are not allowed, found ** -1; write ** -1.0",
        ),
        (
            "&",
            (d.float32, d.int64),
            "np.bitwise_and has no loop for float32 and int64; convert both sides with .astype(np.int64)",
        ),
        (
            "|",
            (d.uint64, d.int64),
            "np.bitwise_or has no loop for uint64 and int64; convert both sides with .astype(np.uint64)",
        ),
        (
            "//",
            (d.complex64, d.float32),
            "np.floor_divide has no loop for complex64 and float32; take .real or np.abs first",
        ),
        (
            "where",
            (d.bfloat16, d.float16),
            "bfloat16 and float16 have no common type; convert them with .astype(np.float32)",
        ),
        (
            "concat",
            (d.int4, d.uint4),
            "int4 and uint4 have no common type; convert them with .astype(np.int8)",
        ),
        ("matmul", (d.int8, 2), "'matmul' takes arrays, found int8 and Python's 2; make an array with np.asarray"),
        ("+", (Type(d.int8, weak=True), d.int8), "NumPy has no weakly typed arrays, found int8 (weak); use int8"),
    ],
)
def test_refusals(op: str, operands: tuple[Operand, ...], message: str) -> None:
    with pytest.raises(PromotionError) as caught:
        NUMPY.resolve(op, *operands)
    assert str(caught.value) == message
    assert message == f"{caught.value.reason}; {caught.value.cast}"


@pytest.mark.parametrize("op", ["rsqrt", "erf", "sigmoid", "cdiv", "fdiv"])
def test_operations_it_does_not_have(op: str) -> None:
    operands = (d.float32,) * (2 if op.endswith("div") else 1)
    with pytest.raises(ValueError, match=f"^numpy has no operation '{op}'$"):
        NUMPY.resolve(op, *operands)


def test_types_it_does_not_have() -> None:
    with pytest.raises(ValueError, match=r"^numpy has no dtype complex32; it has bool, int8, uint8"):
        NUMPY.resolve("+", d.complex32, d.int8)


def test_refused_pairs_are_accepted_after_the_cast_they_propose() -> None:
    for op, a, b in itertools.product(("+", "&", "<<", "where", "atan2"), NUMPY.dtypes, NUMPY.dtypes):
        try:
            NUMPY.binary(op, a, b)
        except PromotionError as error:
            if ".astype(" in error.cast:
                name = error.cast.partition(".astype(")[2].rstrip(")").partition(".")[2]
                NUMPY.binary(op, d.named(name), d.named(name))
            else:
                assert error.cast == "take .real or np.abs first"
                assert a.is_complex or b.is_complex


def steps(op: str, *operands: Operand) -> list[str]:
    return [str(step) for step in NUMPY.resolve(op, *operands).steps]


def test_steps() -> None:
    assert steps("+", d.int8, d.uint8) == [
        "loop search: int16 is the first loop of np.add that takes int8 and uint8 safely"
    ]
    assert steps("/", d.int8, 2) == [
        "weak number: Python's 2 takes int8",
        "division of integers: '/' of int8 and int8 computes in float64",
    ]
    assert steps("*", d.int8, 1.5) == [
        "weak number: Python's 1.5 raises int8 to float64",
        "loop search: float64 is the first loop of np.multiply that takes int8 and float64 safely",
    ]
    assert steps("+", d.bfloat16, 1.0) == [
        "weak number: Python's 1.0 counts as float16 beside a type of ml_dtypes",
        "loop search: float32 is the first loop of np.add that takes bfloat16 and float16 safely",
    ]
    assert steps("==", d.uint8, 300)[-1] == "exact: Python's 300 is no uint8; the numbers themselves are compared"
    assert steps("<", d.uint64, d.int8) == [
        "exact: no integer type holds uint64 and int8; the numbers themselves are compared"
    ]
    assert steps("**", d.bool_, 2)[0] == "square: x ** 2 with the literal 2 is np.square(x)"
    assert steps("where", d.int8, d.uint8) == ["common type: int8 and uint8 meet in int16"]
    assert steps("mean", d.float16) == ["accumulator: 'mean' of float16 computes in float32 and gives float16"]
    assert steps("sum", d.uint8) == ["accumulator: 'sum' of uint8 accumulates in uint64"]
    assert [str(s) for s in NUMPY.common(1, 2.0).steps] == ["default: Python numbers alone make float64"]


@pytest.mark.parametrize(
    ("op", "operands", "meaning", "operand_type"),
    [
        ("+", (d.bool_, d.bool_), "or", "bool"),
        ("*", (d.bool_, d.bool_), "and", "bool"),
        ("+", (d.int8, d.int8), "add", "int8"),
        ("/", (d.int8, d.int8), "divide", "float64"),
        ("//", (d.int8, d.int8), "floor_divide", "int8"),
        ("//", (d.bool_, d.bool_), "floor_divide", "int8"),
        ("%", (d.float32, d.int8), "floor_remainder_signed", "float32"),
        ("fmod", (d.float32, d.float32), "truncate_remainder", "float32"),
        ("fmod", (d.int8, d.int8), "truncate_remainder_zero", "int8"),
        ("**", (d.int8, d.int8), "power_checked", "int8"),
        ("**", (d.float32, d.int8), "power", "float32"),
        ("**", (d.int8, 2), "square", "int8"),
        ("maximum", (d.float32, d.int8), "maximum_nan", "float32"),
        ("minimum", (d.float16, 3), "minimum_nan", "float16"),
        ("<<", (d.int8, d.uint8), "shift_left", "int16"),
        ("floor", (d.int8,), "identity", "int8"),
        ("floor", (d.float32,), "floor", "float32"),
        ("abs", (d.complex64,), "abs", "complex64"),
        ("not", (d.int8,), "not", "bool"),
        ("real", (d.float32,), "identity", "float32"),
        ("real", (d.complex64,), "real", "complex64"),
        ("where", (d.int8, 300), "select", "int8"),
    ],
)
def test_meanings(op: str, operands: tuple[Operand, ...], meaning: str, operand_type: str) -> None:
    found = NUMPY.resolve(op, *operands)
    assert (found.meaning, str(found.operands)) == (meaning, operand_type)
    assert meaning in MEANINGS


def test_casts() -> None:
    found = NUMPY.cast(d.float32, d.uint8)
    assert (found.result, found.meaning) == (d.uint8, "convert_wrap")
    assert [str(s) for s in found.steps] == ["astype: .astype(np.uint8) converts float32 unchecked"]
    assert NUMPY.cast(d.float32, d.bfloat16).steps[0].text.startswith(".astype(ml_dtypes.bfloat16)")


@pytest.mark.parametrize(("op", "operands"), [("<", (d.uint64, d.int64)), ("==", (d.uint8, -1)), (">=", (300, d.int8))])
def test_exact_comparisons_convert_neither_side(op: str, operands: tuple[Operand, ...]) -> None:
    found = NUMPY.resolve(op, *operands)
    assert found.keeps
    assert found.result == d.bool_


@pytest.mark.parametrize(
    ("op", "operands"), [("<", (d.uint32, d.int64)), ("==", (d.uint8, 255)), ("<", (d.float16, 2**80))]
)
def test_other_comparisons_convert(op: str, operands: tuple[Operand, ...]) -> None:
    assert not NUMPY.resolve(op, *operands).keeps


# What the meanings' definitions say of int8, in exact arithmetic, against what NumPy computes on all pairs.


def wrapped(x: int) -> int:
    return (x + 128) % 256 - 128


def truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


DEFINED: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: wrapped(x + y),
    "*": lambda x, y: wrapped(x * y),
    "//": lambda x, y: 0 if y == 0 else wrapped(x // y),
    "%": lambda x, y: 0 if y == 0 else x % y,
    "fmod": lambda x, y: 0 if y == 0 else x - y * truncated(x, y),
    "<<": lambda x, y: wrapped(x << y) if 0 <= y < 8 else 0,
    ">>": lambda x, y: x >> (y if 0 <= y < 8 else 7),
}


@pytest.mark.parametrize("op", DEFINED)
def test_definitions_of_integer_meanings_are_what_numpy_computes(op: str) -> None:
    ufuncs: dict[str, Any] = {
        "+": np.add,
        "*": np.multiply,
        "//": np.floor_divide,
        "%": np.remainder,
        "fmod": np.fmod,
        "<<": np.left_shift,
        ">>": np.right_shift,
    }
    values = range(-128, 128)
    x, y = np.meshgrid(np.arange(-128, 128, dtype=np.int8), np.arange(-128, 128, dtype=np.int8), indexing="ij")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got: list[list[int]] = ufuncs[op](x, y).tolist()
    define = DEFINED[op]
    assert got == [[define(a, b) for b in values] for a in values]


def test_wrapped_numbers_of_where() -> None:
    assert NUMPY.number(300, d.int8) == np.where([True], 300, np.int8(0))[0] == 44


def test_kept_comparisons_are_exact_in_numpy() -> None:
    # 2**64 - 1 against -1: equal after any conversion to 64 bits, and unequal as numbers.
    assert not np.equal(np.array([2**64 - 1], np.uint64), np.array([-1], np.int64))[0]
    # 2**53 + 1 and 2**53 meet in float64 as equals.
    assert not np.equal(np.array([2**53 + 1], np.uint64), np.array([2**53], np.int64))[0]


# Laws.


def common(*types: DType) -> DType | None:
    try:
        return NUMPY.common(*types).result
    except PromotionError:
        return None


def test_common_type_is_commutative_and_idempotent() -> None:
    for a in NUMPY.dtypes:
        assert common(a, a) == a
        assert all(common(a, b) == common(b, a) for b in NUMPY.dtypes)


def test_standard_types_meet_in_an_upper_bound() -> None:
    for a, b in itertools.product(loops.ORDER, repeat=2):
        met = common(a, b)
        assert met is not None
        assert loops.safe(a, met)
        assert loops.safe(b, met)


def fold(a: DType, b: DType, c: DType) -> DType | None:
    first = common(a, b)
    return None if first is None else common(first, c)


def test_associativity_fails_for_28_triples_of_standard_types() -> None:
    failures = [(a, b, c) for a, b, c in itertools.product(loops.ORDER, repeat=3) if fold(a, b, c) != fold(b, c, a)]
    assert len(failures) == 28
    assert (d.int8, d.uint8, d.float16) in failures
    # Two small integers of different sign first meet in a wider one, which then needs a wider float.
    assert all(any(t.is_integer and t.signed for t in f) and any(not t.signed for t in f) for f in failures)


def test_result_type_is_not_a_fold() -> None:
    assert common(d.int8, d.uint8, d.float16) == d.float16
    assert fold(d.int8, d.uint8, d.float16) == d.float32
    assert fold(d.uint8, d.float16, d.int8) == d.float16


def test_arithmetic_is_commutative_except_where_ml_dtypes_casts_both_ways() -> None:
    unequal = {
        (a, b)
        for a, b in itertools.product(NUMPY.dtypes, repeat=2)
        if NUMPY.binary("+", a, b).result != NUMPY.binary("+", b, a).result
    }
    both = {
        (a, b) for a, b in itertools.product(loops.CUSTOM, repeat=2) if a != b and loops.safe(a, b) and loops.safe(b, a)
    }
    assert unequal == both
    assert len(unequal) == 140
    assert NUMPY.binary("+", d.int4, d.float8_e4m3fn).result == d.int4
    assert NUMPY.binary("+", d.float8_e4m3fn, d.int4).result == d.float8_e4m3fn


def test_a_scalar_counts_as_an_array() -> None:
    for a, b in itertools.product(NUMPY.dtypes, repeat=2):
        whole = NUMPY.binary("+", a, b)
        assert NUMPY.binary("+", Type(a, scalar=True), Constant(1, b)) == whole


@pytest.mark.parametrize("value", [1, 1.5, 1j])
def test_python_numbers_never_change_a_standard_type_of_their_kind_or_a_higher_one(value: Number) -> None:
    kind = NUMPY.literal(value).dtype.kind
    for dtype in loops.ORDER:
        if dtype.kind >= kind:
            assert NUMPY.common(dtype, value).result == dtype

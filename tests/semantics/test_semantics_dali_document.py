"""The document "DALI Binary Arithmetic Operators - Type Promotions", written out by hand, against `dali`; its lattice and the
package's; and exactly where the two differ."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft import dtypes, semantics
from weft.dtypes import DType
from weft.semantics import Constant, Operand, Promotion, PromotionError
from weft.semantics.core import Semantics
from weft.semantics.ops import BINARY, COMPARISONS
from weft.semantics.systems.dali import DaliSemantics, constant, dali, dali_2

NAMES = ["b", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "f32", "f64"]
SHORT: dict[str, DType] = dict(zip(NAMES, dali.dtypes, strict=True))
INTEGERS = [d for d in dali.dtypes if not d.is_float]
FLOATS = [d for d in dali.dtypes if d.is_float]
VERSIONS = [dali, dali_2]

# Derived from the document's table, line by line:
# - "T T -> T": the diagonal.
# - "floatX T -> floatX", "floatX floatY -> the wider": the last three rows and columns.
# - "uintX uintY -> the wider", bool being uint1: the top left five by five.
# - "intX intY -> the wider": the four by four in the middle.
# - "intX uintY -> intX if X > Y, else int2Y": i8 is wider than b alone; i16 than b and u8; with u16 it gives i32, and so on;
#   a signed type with u64 gives int128, which DALI lacks (-).
COMMON = """
.   b   u8  u16 u32 u64 i8  i16 i32 i64 f16 f32 f64
b   b   u8  u16 u32 u64 i8  i16 i32 i64 f16 f32 f64
u8  u8  u8  u16 u32 u64 i16 i16 i32 i64 f16 f32 f64
u16 u16 u16 u16 u32 u64 i32 i32 i32 i64 f16 f32 f64
u32 u32 u32 u32 u32 u64 i64 i64 i64 i64 f16 f32 f64
u64 u64 u64 u64 u64 u64 -   -   -   -   f16 f32 f64
i8  i8  i16 i32 i64 -   i8  i16 i32 i64 f16 f32 f64
i16 i16 i16 i32 i64 -   i16 i16 i32 i64 f16 f32 f64
i32 i32 i32 i32 i64 -   i32 i32 i32 i64 f16 f32 f64
i64 i64 i64 i64 i64 -   i64 i64 i64 i64 f16 f32 f64
f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f64
f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64
f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64
"""


def matrix() -> dict[tuple[DType, DType], DType | None]:
    """The table; None where the document's type does not exist."""
    (_, *columns), *rows = (line.split() for line in COMMON.strip().splitlines())
    return {(SHORT[r], SHORT[c]): SHORT.get(cell) for r, *cells in rows for c, cell in zip(columns, cells, strict=True)}


def attempt(system: Semantics, op: str, *operands: Operand) -> Promotion | None:
    """None where the system refuses."""
    try:
        return system.resolve(op, *operands)
    except PromotionError:
        return None


def expected(op: str, a: DType, b: DType, common: DType | None) -> tuple[DType, DType] | None:
    """(operands, result) of an operation, from the document's sentences."""
    both_bool = a == b == dtypes.bool_
    if op in ("/", "fdiv", "fpow", "atan2"):
        # "The / always returns a float32 for integer inputs", whatever their common type; no division of two bools
        common = common if common is not None and common.is_float else dtypes.float32
        return None if both_bool else (common, common)
    if common is None:
        return None
    if op in ("&", "|", "^", "<<", ">>"):
        # "their inputs are restricted to integral types (bool included)"; the shifts are not among those of two bools
        return None if common.is_float or (both_bool and op in ("<<", ">>")) else (common, common)
    if op == "*":
        return common, common
    return None if both_bool else (common, common)


ARITHMETIC = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "minimum",
    "maximum",
    "atan2",
    "fpow",
    "fdiv",
)


@pytest.mark.parametrize("op", ARITHMETIC)
def test_every_pair_of_every_operation(op: str) -> None:
    for (a, b), common in matrix().items():
        found = attempt(dali, op, a, b)
        assert (found and (found.operands, found.result)) == expected(op, a, b, common), (a, b)


@pytest.mark.parametrize("op", COMPARISONS)
def test_every_pair_of_every_comparison(op: str) -> None:
    for (a, b), common in matrix().items():
        found = dali.binary(op, a, b)
        assert found.result == dtypes.bool_
        assert found.keeps == (a.is_integer and b.is_integer and a != b)
        if not found.keeps:
            assert found.operands == common, (a, b)


def test_promote_is_the_table() -> None:
    for (a, b), common in matrix().items():
        if common is None:
            with pytest.raises(PromotionError):
                dali.promote(a, b)
        else:
            assert dali.promote(a, b).dtype == common


# The document prints 31 results, as "with types LEFT OP RIGHT -> TYPE".
PRINTED = [
    "uint8 + uint8 -> uint8",
    "uint8 + uint8 -> uint8",
    "uint8 + int32 -> int32",
    "uint8 + float32 -> float32",
    "uint8 - uint8 -> uint8",
    "uint8 - int32 -> int32",
    "uint8 - float32 -> float32",
    "uint8 * uint8 -> uint8",
    "uint8 * int32 -> int32",
    "uint8 * float32 -> float32",
    "uint8 / uint8 -> float32",
    "uint8 / int32 -> float32",
    "uint8 / float32 -> float32",
    "uint8 // uint8 -> uint8",
    "uint8 // int32 -> int32",
    "uint8 // float32 -> float32",
    "uint8 | uint8 -> uint8",
    "uint8 | int32 -> int32",
    "uint8 & uint8 -> uint8",
    "uint8 & int32 -> int32",
    "uint8 ^ uint8 -> uint8",
    "uint8 ^ int32 -> int32",
    "uint8 + 10 -> int32",
    "float32 + 10 -> float32",
    "uint8 + 42.3 -> float32",
    "float32 + 42.3 -> float32",
]
CONSTANTS = [
    ("uint8", "*", constant(10), "int32"),
    (constant(10.0), "*", "uint8", "float32"),
    ("uint8", "*", constant(10, dtypes.uint8), "uint8"),
    (constant(10.0, dtypes.uint8), "*", "uint8", "uint8"),
    (constant(10).uint8(), "*", "uint8", "uint8"),
]


@pytest.mark.parametrize("system", VERSIONS, ids=str)
def test_the_printed_examples(system: DaliSemantics) -> None:
    assert len(PRINTED) + len(CONSTANTS) == 31
    for line in PRINTED:
        left, op, right, _, result = line.split()
        assert str(system.result(op, left, right)) == result, line
    for left, op, right, result in CONSTANTS:
        assert str(system.result(op, left, right)) == result


# ---- the lattices ----------------------------------------------------------------------------------------------------


def test_the_lattices_joins_are_the_table() -> None:
    for (a, b), common in matrix().items():
        assert str(dali.lattice.join(a, b)) == str(common or "int128")
        if dtypes.float16 not in (a, b):
            assert dali_2.lattice.join(a, b) == common or (common is None and dali_2.lattice.join(a, b) == dtypes.int64)


@pytest.mark.parametrize("system", VERSIONS, ids=str)
def test_every_pair_has_a_join_and_joins_are_associative(system: DaliSemantics) -> None:
    lattice = system.lattice
    assert not lattice.unjoinable
    for a, b, c in product(lattice.nodes, repeat=3):
        ab, bc = lattice.join(a, b), lattice.join(b, c)
        assert ab is not None and bc is not None
        assert ab == lattice.join(b, a)
        assert lattice.join(a, a) == a
        assert lattice.join(ab, c) == lattice.join(a, bc) == lattice.join(a, b, c)


def test_the_lattices_have_the_types_that_dali_computes_with() -> None:
    assert {*map(str, dali.lattice.nodes)} == {*map(str, dali.dtypes), "int128"}
    assert {*dali_2.lattice.nodes} == {*dali_2.dtypes} - {dtypes.float16}


def test_integers_meet_as_in_numpy_except_uint64_with_signed() -> None:
    for a, b in product(INTEGERS, repeat=2):
        if {a.bits * (not a.signed), b.bits * (not b.signed)} >= {64} and (a.signed or b.signed):
            assert dali_2.promote(a, b).dtype == dtypes.int64
        else:
            assert dali_2.promote(a, b).dtype.numpy == np.promote_types(a.numpy, b.numpy)


MANY = st.lists(st.sampled_from(dali_2.lattice.nodes), min_size=1, max_size=6)


@given(MANY.flatmap(lambda types: st.tuples(st.just(types), st.permutations(types))))
def test_the_common_type_of_many_does_not_depend_on_their_order(orders: tuple[list[DType], list[DType]]) -> None:
    first, second = orders
    assert dali_2.promote(*first) == dali_2.promote(*second)


# ---- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", VERSIONS, ids=str)
@pytest.mark.parametrize(
    ("value", "dtype"), [(True, "bool"), (10, "int32"), (-(2**31), "int32"), (0.5, "float32"), (1e300, "float32")]
)
def test_literals(system: DaliSemantics, value: float, dtype: str) -> None:
    assert str(system.literal(value)) == dtype


CONVERSIONS = [
    *((name, 10, 10) for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
    *((name, 10, 10.0) for name in ("float16", "float32", "float64")),
    ("bool", 10, True),
    ("bool", 0.0, False),
    ("uint8", 10.7, 10),
    ("int8", -10.7, -10),
    ("int8", True, 1),
]


@pytest.mark.parametrize(("name", "value", "converted"), CONVERSIONS)
def test_convenience_conversions(name: str, value: float, converted: float) -> None:
    made = getattr(constant(value), name)()
    assert isinstance(made, Constant)
    assert (made.value, type(made.value), str(made.dtype)) == (converted, type(converted), name)
    assert made == constant(value, dtypes.named(name))


# float32 has 24 bits of precision: 0.1 is 13421773 / 2**27 there, 16777217 is 2**24, and 1e300 is beyond.
@pytest.mark.parametrize("system", VERSIONS, ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_real_constants_travel_as_float32(system: DaliSemantics, dtype: DType) -> None:
    assert system.number(0.1, dtype) == 13421773 / 2**27
    assert system.number(1e300, dtype) == float("inf")
    assert system.number(-1e300, dtype) == float("-inf")
    assert system.number(0.5, dtype) == 0.5
    typed = system.operand(Constant(16777217, dtypes.float64))
    assert isinstance(typed, Constant)
    assert system.number(typed.value, dtypes.float64) == 16777216.0


def test_integer_constants_are_themselves_in_the_package_and_pass_through_int32_in_the_document() -> None:
    assert dali_2.number(2**40, dtypes.int64) == 2**40
    assert dali.number(2**40 + 7, dtypes.int64) == 7
    assert dali.number(2**31, dtypes.int64) == -(2**31)
    for system in VERSIONS:
        assert system.number(-1, dtypes.int64) == -1
        assert system.number(16777217, dtypes.float64) == 16777217
        assert system.number(10.7, dtypes.uint8) == 10
        assert system.number(3, dtypes.bool_) is True
        assert system.number(0.25, dtypes.bool_) is True
        assert system.number(True, dtypes.uint8) == 1


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**40, 2**63, 2**64])
def test_the_document_takes_any_integer_as_int32(value: int) -> None:
    assert dali.result("+", dtypes.uint8, value).dtype == dtypes.int32
    assert dali.literal(value).dtype == dtypes.int32


def test_numpys_scalars_and_arrays() -> None:
    assert dali.result("+", dtypes.uint8, np.float64(0.5)).dtype == dtypes.float64
    for system in VERSIONS:
        assert system.result("+", dtypes.uint8, np.int16(5)).dtype == dtypes.int16
        assert system.result("+", dtypes.uint8, np.array(0.5)).dtype == dtypes.float64
        assert system.result("+", dtypes.uint8, np.array([0.5])).dtype == dtypes.float32
        assert system.result("+", dtypes.uint8, [1, 2]).dtype == dtypes.int32
        assert system.result("+", dtypes.uint8, np.zeros(0, np.uint64)).dtype == dtypes.uint32


# ---- where the versions differ ---------------------------------------------------------------------------------------


def test_the_versions_differ_in_float16_uint64_and_shifts_of_bools_only() -> None:
    for op in BINARY:
        try:
            dali.binary(op, dtypes.int8, dtypes.int8)
        except ValueError:
            continue
        for a, b in product(dali.dtypes, repeat=2):
            document, package = attempt(dali, op, a, b), attempt(dali_2, op, a, b)
            unsigned64 = dtypes.uint64 in (a, b) and (a.signed or b.signed) and not (a.is_float or b.is_float)
            if op == "concat":
                assert document == package
            elif dtypes.float16 in (a, b):
                assert package is None
            elif op in ("<<", ">>") and a == b == dtypes.bool_:
                assert document is None and package is not None and package.result == dtypes.bool_
            elif unsigned64 and op not in (*COMPARISONS, "/", "fdiv", "fpow", "atan2"):
                assert document is None and package is not None and package.result == dtypes.int64
            elif op == "%" and a.is_float != b.is_float and document is not None and document.result == dtypes.float32:
                assert package == replace(document, operands=dtypes.float64)
            else:
                assert document == package, (op, a, b)


def test_both_are_found_by_name() -> None:
    assert semantics.get("dali") is dali
    assert semantics.get("dali@2") is dali_2
    assert (dali.title, dali_2.title) == (
        "DALI as its document on type promotions states it",
        "DALI as the package 2.4.0 computes it",
    )

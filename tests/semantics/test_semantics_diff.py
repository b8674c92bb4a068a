"""`diff`: each kind of difference, what is not one, compact words that lose nothing, meanings and conversions that coincide."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, product

import numpy as np
import pytest

from weft import dtypes, semantics
from weft.dtypes import DType
from weft.semantics import Operand
from weft.semantics.alike import exact, same_meaning
from weft.semantics.compact import compact, names, products
from weft.semantics.difference import LITERALS, OPS, Diff, Kind, diff, nodes
from weft.semantics.explanation import symbol

i8, u8, i16, u16, i32, i64, u64 = map(dtypes.named, ("int8", "uint8", "int16", "uint16", "int32", "int64", "uint64"))
f16, bf16, f32, f64 = dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64


@cache
def cached(a: str, b: str) -> Diff:
    return diff(a, b)


def kinds(found: Diff, op: str, *operands: Operand) -> list[Kind]:
    """The kinds of the differences of one case: none or one."""
    asked = [symbol(o) for o in operands]
    return [d.kind for d in found.differences if d.op == op and [symbol(o) for o in d.operands] == asked]


def test_each_kind_is_found_where_the_records_have_it() -> None:
    """By hand from the documents: the first kind that applies."""
    found = cached("triton", "jax")
    assert kinds(found, "+", u8, i8) == [Kind.DTYPE]  # prefer unsigned; int16
    assert kinds(found, "+", f32, i8) == []  # float32 in both
    assert kinds(found, "/", i8, i8) == []  # float32 in both
    assert kinds(found, "//", i32, i32) == [Kind.MEANING]  # toward zero; down
    assert kinds(found, "//", f32, f32) == [Kind.REFUSED]  # Triton has no // of floats
    assert kinds(found, "+", i8, 2.5) == [Kind.DTYPE]  # float32; weak float64
    assert kinds(found, "+", u8, 300) == [Kind.REFUSED]  # out of range; wraps
    assert kinds(found, "<", f16, bf16) == []  # bool, compared in float32 in both
    package = cached("triton", "triton@3.9")
    assert kinds(package, "<", f16, bf16) == [Kind.OPERANDS]  # in float32; in float16
    assert kinds(package, "<", i8, bf16) == []  # in bfloat16; in float32: both hold every int8
    assert kinds(package, "<", i16, bf16) == [Kind.OPERANDS]


def test_weakness_is_a_kind_of_its_own() -> None:
    found = diff("jax", "numpy", ops=["+"])
    assert kinds(found, "+", i64, 2.5) == [Kind.WEAK]  # weak float64; float64
    assert kinds(found, "+", f64, 2.5) == []


def test_literals_are_compared_as_the_type_holds_them() -> None:
    found = cached("jax", "dali")
    # DALI's constants travel as float32: 0.1 becomes 0.10000000149011612 in float64, and float32 holds the same in both.
    assert kinds(found, "+", f64, 0.1) == [Kind.OPERANDS]
    assert kinds(found, "+", f32, 0.1) == []
    assert kinds(found, "+", f64, 2.5) == []
    [case] = [d for d in found.differences if d.op == "+" and d.operands == (f64, 0.1)]
    assert case.numbers == (0.1, float(np.float32(0.1)))
    assert str(case) == "float64 + 0.1: literal kept | literal changed"


def test_a_system_does_not_differ_from_itself() -> None:
    found = diff("triton", "triton")
    assert found.differences == ()
    assert found.cases > 10_000
    assert found.agreeing_ops == found.ops
    assert found.groups == ()


def test_all_cases_are_asked() -> None:
    """Types, operations and literals, counted by hand: 18 types; an operation of two operands has 18 * 18 pairs and 9 literals
    on two sides of 18 types."""
    found = diff("triton", "triton@3.9", ops=["+", "neg"])
    assert len(found.common) == 18
    assert found.cases == 18 * 18 + 2 * 9 * 18 + 18
    assert len(diff("jax", "jax@0.10", ops=["neg"]).common) == len(semantics.jax.dtypes) + 3


@pytest.mark.parametrize("pair", list(pairwise(semantics.SYSTEMS)), ids=" ".join)
def test_any_two_systems_can_be_compared(pair: tuple[str, str]) -> None:
    found = diff(*pair, ops=["/", "<", "neg", "sum"])
    assert len(found.common) >= 9  # bool and the integers, at least
    assert found.cases > 2 * len(found.common) ** 2
    assert all(d.kind is Kind.REFUSED or str(d).count(" | ") == 1 for d in found.differences)
    assert sum(g.cases for g in found.groups) == len(found.differences)


def test_the_mirror_image_has_the_same_differences() -> None:
    one, other = cached("jax", "dali"), diff("dali", "jax")
    assert [(d.kind, d.op, d.operands) for d in one.differences] == [
        (d.kind, d.op, d.operands) for d in other.differences
    ]
    assert (one.only_a, one.only_b, one.ops_only_a) == (other.only_b, other.only_a, other.ops_only_b)


def test_what_one_side_lacks_is_listed() -> None:
    found = cached("jax", "dali")
    assert bf16 in found.only_a
    assert dtypes.complex64 in found.only_a
    assert found.only_b == ()
    assert "where" in found.ops_only_a  # DALI has no where
    assert {d.op for d in found.differences} <= set(found.ops)
    assert set(found.ops) | set(found.ops_only_a) | set(found.ops_only_b) <= set(OPS)


def test_groups_lose_nothing() -> None:
    found = cached("triton", "triton@3.9")
    assert sum(group.cases for group in found.groups) == len(found.differences)
    assert [g.kind for g in found.groups] == sorted((g.kind for g in found.groups), key=list(Kind).index)
    [line] = [g for g in found.groups if g.kind is Kind.DTYPE and (g.a, g.b) == ("float32", "float16")]
    assert line.ops == ("+", "-", "*", "where", "minimum", "maximum")
    assert line.operands == ("float16 with bfloat16",)
    assert sum(found.counts.values()) == len(found.differences)


def test_data_is_complete_and_plain() -> None:
    found = diff("triton", "triton@3.9", ops=["+"])
    data = found.data()
    assert len(data["differences"]) == len(found.differences)
    first = data["differences"][0]
    assert set(first) == {"kind", "op", "operands", "a", "b"}
    assert data["types"]["common"][:2] == ["bool", "int8"]


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("clamp", "'clamp' is not compared: weft compares operations of one and two operands"),
        ("pluss", "unknown operation 'pluss'; did you mean 'less'?"),
    ],
)
def test_operations_that_are_not_compared(op: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        diff("triton", "jax", ops=[op])


def test_weak_types_are_nodes_where_literals_are_weak() -> None:
    assert [symbol(n) for n in nodes(semantics.jax)][-3:] == ["i*", "f*", "c*"]
    assert list(nodes(semantics.triton)) == list(semantics.triton.dtypes)


# ---- compact words ------------------------------------------------------------------------------------------------------


def pairs_of(found: Iterable[tuple[list[Operand], list[Operand]]], *, symmetric: bool) -> set[tuple[Operand, Operand]]:
    pairs = {pair for x, y in found for pair in product(x, y)}
    return pairs | {(b, a) for a, b in pairs} if symmetric else pairs


@pytest.mark.parametrize("symmetric", [False, True])
def test_products_cover_exactly(symmetric: bool) -> None:
    rng = random.Random(7)
    for _ in range(200):
        types = rng.sample(dtypes.ALL, 6)
        pairs: set[tuple[Operand, Operand]] = {(a, b) for a in types for b in types if rng.random() < rng.random()}
        if symmetric:
            pairs |= {(b, a) for a, b in pairs}
        found = products(sorted(pairs, key=str), symmetric=symmetric)
        assert pairs_of(found, symmetric=symmetric) == pairs


def test_words() -> None:
    common = (*semantics.triton.dtypes, *LITERALS[:-1])
    integers = [d for d in common if isinstance(d, DType) and d.is_integer]
    assert names([i8, i16, i32], common) == "int8..int32"
    assert names([i8, i32], common) == "int8, int32"
    assert names([*integers, f32], common) == "integers, float32"
    assert names(semantics.triton.dtypes, common) == "every type"
    assert names([u8, 3, 2.5, 2**31], common) == "uint8, 3, 2.5, 2**31"
    assert compact([(i8, u8), (u8, i8)], common) == ("int8 with uint8",)
    assert compact([(i8, u8)], common) == ("int8 (left) with uint8 (right)",)
    assert compact([(i8,), (f32,)], common) == ("int8, float32",)
    assert compact([], common) == ()


# ---- meanings that coincide ---------------------------------------------------------------------------------------------


def _truncate(x: int, y: int) -> int:
    return int(Fraction(x, y)) if y else 0


# Each from its one-line definition in `weft.semantics.meanings`, in exact arithmetic; None stands for an error.
DEFINED: dict[str, Callable[[int, int], int | None]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "not_equal": lambda x, y: int(x != y),
    "minimum": min,
    "minimum_nan": min,
    "maximum": max,
    "maximum_nan": max,
    "truncate_divide": _truncate,
    "truncate_divide_checked": lambda x, y: _truncate(x, y) if y else None,
    "floor_divide": lambda x, y: math.floor(Fraction(x, y)) if y else 0,
    "floor_divide_checked": lambda x, y: math.floor(Fraction(x, y)) if y else None,
    "truncate_remainder": lambda x, y: x - y * _truncate(x, y) if y else x,
    "truncate_remainder_checked": lambda x, y: x - y * _truncate(x, y) if y else None,
    "floor_remainder": lambda x, y: x - y * math.floor(Fraction(x, y)) if y else 0,
    "floor_remainder_checked": lambda x, y: x - y * math.floor(Fraction(x, y)) if y else None,
    "power": lambda x, y: x**y if y >= 0 else 0,
    "power_checked": lambda x, y: x**y if y >= 0 else None,
}

SAMPLES: dict[DType, list[int]] = {
    dtypes.bool_: [0, 1],
    dtypes.uint8: [0, 1, 2, 3, 7, 100, 128, 254, 255],
    dtypes.int8: [-128, -127, -7, -2, -1, 0, 1, 2, 3, 7, 127],
}


def wrapped(value: int | None, dtype: DType) -> int | None:
    return None if value is None else (value - dtype.min) % (1 << dtype.bits) + dtype.min


@pytest.mark.parametrize("dtype", SAMPLES, ids=str)
def test_integer_meanings_are_the_same_exactly_where_their_values_are(dtype: DType) -> None:
    for a, b in combinations(DEFINED, 2):
        values = [
            (wrapped(DEFINED[a](x, y), dtype), wrapped(DEFINED[b](x, y), dtype))
            for x, y in product(SAMPLES[dtype], repeat=2)
        ]
        if same_meaning(a, b, dtype):
            assert all(x == y for x, y in values), (a, b)
        elif not dtype.is_bool:  # no system divides bools, so what coincides there need not be known
            assert any(x != y for x, y in values), (a, b)


def test_float_meanings_differ_in_nan_but_not_in_checks() -> None:
    assert not same_meaning("minimum", "minimum_nan", f32)
    assert same_meaning("floor_divide", "floor_divide_xla", f32)
    assert not same_meaning("floor_divide", "floor_divide_xla", f16)
    assert same_meaning("add", "add_flushed", f32)
    assert not same_meaning("floor_divide", "floor_divide_xla", i32)
    assert not same_meaning("floor_divide", "truncate_divide", f32)
    assert not same_meaning("add", "xor", u8)


def test_exact_agrees_with_numpy_conversions() -> None:
    """Against NumPy and ml_dtypes: all values of an 8-bit type (samples of wider ones) survive the way there and back."""
    small = [d for d in dtypes.ALL if d.bits <= 8]
    for source, target in product(small, dtypes.ALL):
        if source.is_bool or target.is_bool:
            continue
        values = np.arange(256, dtype=np.uint8).view(source.numpy)
        values = values[~np.isnan(values.astype(np.float64))]
        with np.errstate(all="ignore"):
            there = values.astype(target.numpy)
            back = there.astype(np.float64) == values.astype(np.float64)
        assert exact(source, target) == bool(back.all()), (source, target)


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (i16, f16, False),  # 11 bits of precision
        (i16, f32, True),
        (i32, f32, False),
        (i32, f64, True),
        (i64, f64, False),
        (u64, i64, False),
        (f16, bf16, False),
        (bf16, f32, True),
        (f32, dtypes.complex64, True),
        (f64, dtypes.complex64, False),
        (dtypes.complex64, f64, False),
        (dtypes.float8_e4m3fn, f16, True),
        (dtypes.tensor_float32, f32, True),
        (f32, dtypes.tensor_float32, False),
        (dtypes.bool_, i8, True),
        (u16, dtypes.index, True),
        (f32, i64, False),
    ],
)
def test_exact(source: DType, target: DType, expected: bool) -> None:
    assert exact(source, target) is expected

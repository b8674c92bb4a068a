"""JAX's rules one by one: the lattices' laws, what the operations then do, the steps, and each refusal word for word."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import Constant, Promotion, PromotionError, Type
from weft.semantics.lattice import Lattice
from weft.semantics.meanings import MEANINGS
from weft.semantics.ops import canonical
from weft.semantics.systems.jax import JaxSemantics, jax, jax_0_10, jax_strict, jax_x32, jax_x32_0_10
from weft.semantics.systems.jax_lattice import LATTICE, LATTICE_X32, STRICT_LATTICE, Node

SYSTEMS = (jax, jax_0_10, jax_x32, jax_x32_0_10, jax_strict)
LATTICES = pytest.mark.parametrize("lattice", [LATTICE, LATTICE_X32, STRICT_LATTICE], ids=["x64", "x32", "strict"])


@LATTICES
def test_joins_are_commutative_idempotent_and_associative(lattice: Lattice[Node]) -> None:
    nodes = lattice.nodes
    joins = {(a, b): lattice.join(a, b) for a, b in product(nodes, nodes)}
    assert all(joins[a, a] == a for a in nodes)
    assert all(joins[a, b] == joins[b, a] for a, b in product(nodes, nodes))

    def fold(a: Node | None, b: Node | None) -> Node | None:
        return None if a is None or b is None else joins[a, b]

    triples = list(product(nodes, nodes, nodes))
    assert len(triples) == 31**3
    # Where one order has a join and the other has not, the law says nothing; JAX has no such triple.
    assert all(fold(joins[a, b], c) == fold(a, joins[b, c]) for a, b, c in triples)


@LATTICES
def test_joins_are_monotone_and_bounds(lattice: Lattice[Node]) -> None:
    for a, b in product(lattice.nodes, lattice.nodes):
        join = lattice.join(a, b)
        if join is not None:
            assert lattice.below(a, join) and lattice.below(b, join)
        for c in lattice.nodes:
            other = lattice.join(b, c)
            lower = lattice.join(a, c)
            if lattice.below(a, b) and other is not None:
                assert lower is not None and lattice.below(lower, other)


def test_the_lattice_has_31_types_and_prints_weak_ones_as_the_document_does() -> None:
    assert len(LATTICE.nodes) == 31
    assert {str(n) for n in LATTICE.nodes if n.weak} == {"i*", "f*", "c*"}
    assert jax.lattice is LATTICE and jax_x32.lattice is LATTICE_X32 and jax_strict.lattice is STRICT_LATTICE
    assert {str(n) for n in LATTICE.edges[Node(dtypes.uint32)]} == {"int64", "uint64"}
    assert {str(n) for n in LATTICE_X32.edges[Node(dtypes.uint32)]} == {"int32", "uint64"}


def test_joins_of_many_operands() -> None:
    # The join is of all at once: uint64 and int8 meet in f*, which lies below bfloat16.
    assert jax.promote("uint64", "int8", "bfloat16") == Type(dtypes.bfloat16)
    assert jax.promote("uint64", "int8", 1.0) == Type(dtypes.float64, weak=True)
    assert jax_x32.promote("uint64", "int8", 1.0) == Type(dtypes.float32, weak=True)
    assert jax.promote(1, 2.5, "c*") == Type(dtypes.complex128, weak=True)
    # Weak operands keep their dtypes among themselves: weak int16 comes of weak int64 by a cast inside jax.
    assert jax.promote(Type(dtypes.int16, weak=True), Type(dtypes.int16, weak=True)) == Type(dtypes.int16, weak=True)
    assert jax.promote(Type(dtypes.bool_, weak=True), "i*") == Type(dtypes.int64, weak=True)


MEANING = {
    ("+", "bool"): "or",
    ("+", "int8"): "add",
    ("*", "bool"): "and",
    ("*", "float32"): "mul",
    ("-", "int8"): "sub",
    ("/", "int8"): "divide",
    ("//", "bool"): "floor_divide_xla",
    ("//", "float32"): "floor_divide_xla",
    ("%", "int8"): "floor_remainder",
    ("**", "int8"): "power_xla",
    ("**", "float16"): "power",
    ("&", "bool"): "and",
    ("<<", "bool"): "shift_left",
    (">>", "uint8"): "shift_right",
    ("maximum", "float32"): "maximum_nan",
    ("minimum", "bool"): "minimum_nan",
    ("<", "int8"): "less",
    ("where", "int8"): "select",
    ("matmul", "int8"): "matmul",
    ("neg", "uint8"): "neg",
    ("~", "bool"): "not",
    ("not", "float32"): "not",
    ("floor", "int8"): "identity",
    ("floor", "float32"): "floor",
    ("abs", "complex64"): "abs",
    ("fabs", "int8"): "abs",
    ("mean", "int8"): "mean",
    ("sum", "bool"): "sum",
}


@pytest.mark.parametrize("op, dtype", MEANING)
def test_meanings(op: str, dtype: str) -> None:
    count = 2 if op in ("+", "-", "*", "/", "//", "%", "**", "&", "<<", ">>", "maximum", "minimum", "<") else 1
    count = 2 if op in ("where", "matmul") else count
    for system in SYSTEMS:
        promotion = system.resolve(op, *[dtype] * count)
        assert promotion.meaning.removesuffix("_flushed") == MEANING[op, dtype]
        assert promotion.meaning in MEANINGS


@pytest.mark.parametrize(
    "op, operands, computed, result",
    [
        ("/", ("int8", "int8"), "float32", Type(dtypes.float32)),
        ("/", ("int64", "int8"), "float64", Type(dtypes.float64)),
        ("<", ("uint32", "int32"), "int64", Type(dtypes.bool_)),
        ("<", ("uint64", "int64"), "float64", Type(dtypes.bool_, weak=True)),
        ("not", ("complex64",), "bool", Type(dtypes.bool_)),
        ("any", ("f*",), "float64", Type(dtypes.bool_)),
        ("argmax", ("float16",), "float16", Type(dtypes.int64)),
        ("sum", ("uint8",), "uint64", Type(dtypes.uint64)),
        ("cumsum", ("uint8",), "uint8", Type(dtypes.uint8)),
        ("abs", ("complex128",), "complex128", Type(dtypes.float64)),
        ("clamp", ("uint8", -5, 300), "uint8", Type(dtypes.uint8)),
        ("**", ("int8", 300), "int32", Type(dtypes.int8)),
        ("**", ("int8", 2**40), "int64", Type(dtypes.int8)),
        ("**", ("int8", 3), "int8", Type(dtypes.int8)),
        ("**", ("float16", 2**70), "float16", Type(dtypes.float16)),
    ],
)
def test_computed_in(op: str, operands: tuple[object, ...], computed: str, result: Type) -> None:
    promotion = jax.resolve(op, *operands)
    assert (str(promotion.operands), promotion.type) == (computed, result)


# Derived from the recorded values: uint8(1) + 300 is 45 = 1 + 300 mod 256, int32(1) + 2**40 is 1, and so on.
@pytest.mark.parametrize(
    "value, dtype, expected",
    [
        (300, dtypes.uint8, 44),
        (-1, dtypes.uint8, 255),
        (1000, dtypes.int8, -24),
        (2**31, dtypes.int32, -(2**31)),
        (2**40, dtypes.int32, 0),
        (9, dtypes.int4, -7),
        (2, dtypes.bool_, True),
        (1e300, dtypes.float64, 1e300),
    ],
)
def test_literals_wrap(value: int | float, dtype: DType, expected: object) -> None:
    assert jax.number(value, dtype) == expected


def test_floats_on_their_way_to_16_bits_pass_through_float32() -> None:
    # 1 + 2**-11 lies between two float16 numbers; 2**-30 more would round up, but float32 drops it, and the tie goes to even.
    value = 1 + 2.0**-11 + 2.0**-30
    assert np.float16(np.float64(value)) == np.float16(1 + 2.0**-10)
    assert jax.number(value, dtypes.float16) == 1 + 2.0**-11
    assert jax.number(value, dtypes.float32) == value
    assert jax_x32.number(value, dtypes.float32) == 1 + 2.0**-11
    assert jax.number(2**30 + 2**22 + 1, dtypes.bfloat16) == 2.0**30 + 2**22
    assert jax.number(2**63 + 1, dtypes.bfloat16) == 2.0**63
    for dtype in (dtypes.bfloat16, dtypes.float32, dtypes.float64):  # a known exponent may be any integer
        assert jax.number(2**70, dtype) == 2.0**70
        assert jax.number(-(2**70), dtype) == -(2.0**70)
        assert jax.number(10**400, dtype) == float("inf")
        assert jax.number(-(10**400), dtype) == float("-inf")
    assert jax.number(True, dtypes.float16) == 1.0
    assert jax.number(1e300, dtypes.float16) == float("inf")
    assert jax_x32.number(0.1j, dtypes.complex64) == complex(0.0, float(np.float32(0.1)))
    assert jax.number(0.1j, dtypes.complex64) == 0.1j


def test_literals_by_themselves() -> None:
    assert jax.literal(2) == Type(dtypes.int64, weak=True)
    assert jax_x32.literal(2) == Type(dtypes.int32, weak=True)
    assert jax.literal(True) == Type(dtypes.bool_)
    assert jax.literal(2.0) == Type(dtypes.float64, weak=True)
    assert jax_x32.literal(1j) == Type(dtypes.complex64, weak=True)


def test_casts() -> None:
    assert jax.cast(dtypes.float64, dtypes.int8) == Promotion(dtypes.int8, dtypes.int8, "convert")
    assert jax.cast(dtypes.int8, dtypes.float64).meaning == "convert"
    found = jax_x32.cast(dtypes.int8, dtypes.float64)
    assert found.result == dtypes.float32
    assert [str(s) for s in found.steps] == ["x32: float64 is float32, 64-bit types are disabled"]


STEPS: dict[tuple[str, ...], list[str]] = {
    ("jax", "+", "int8", "uint8"): ["lattice: int8 -> int16; uint8 -> int16; the least upper bound is int16"],
    ("jax", "+", "uint64", "int32"): [
        "lattice: uint64 -> f*; int32 -> int64 -> f*; the least upper bound is f*, a weak float64"
    ],
    ("jax", "+", "uint8", "300"): [
        "literal: 300 is weak, i*",
        "lattice: uint8; i* -> uint8; the least upper bound is uint8",
    ],
    ("jax", "+", "1", "2.5"): [
        "literal: 1 is weak, i*",
        "literal: 2.5 is weak, f*",
        "all weak: no operand is strong: int64 and float64 meet in float64, and the result is weak",
    ],
    ("jax", "+", "int16", "1:int64"): [
        "literal: Constant(1, int64) chose its type: a strong int64",
        "lattice: int16 -> int32 -> int64; int64; the least upper bound is int64",
    ],
    ("jax-x32", "-", "uint64", "int8"): [
        "x32: uint64 is uint32, 64-bit types are disabled",
        "lattice: uint32 -> int32; int8 -> int16 -> int32; the least upper bound is int32",
    ],
    ("jax", "/", "int8", "int8"): ["lattice: all are int8", "inexact: '/' of int8 is computed in float32"],
    ("jax", "//", "bool", "bool"): ["lattice: all are bool", "bools: '//' of bools is computed in int32"],
    ("jax", "==", "int8", "int8"): ["lattice: all are int8", "result: '==' gives bool"],
    ("jax", "**", "int8", "3"): ["power: the exponent 3 is known, so it takes no part: int8"],
    ("jax", "sum", "int8"): ["widening: sum of int8 is computed in int64"],
    ("jax", "max", "i*"): ["result: 'max' gives a strong int64"],
    ("jax", "argmin", "f*"): ["result: argmin gives indices of type int64"],
    ("jax", "real", "complex64"): ["result: 'real' of complex64 is float32"],
}


@pytest.mark.parametrize("asked", STEPS, ids=" ".join)
def test_steps(asked: tuple[str, ...]) -> None:
    system = {"jax": jax, "jax-x32": jax_x32}[asked[0]]
    assert [str(s) for s in system.resolve(asked[1], *asked[2:]).steps] == STEPS[asked]


STRICT = "have no implicit promotion path: strict promotion converts weak types only, to types of no lower kind"
REFUSALS: list[tuple[JaxSemantics, tuple[object, ...], str]] = [
    (
        jax,
        ("+", "float8_e4m3fn", "float32"),
        "input dtypes (float8_e4m3fn, float32) have no implicit promotion path: float8_e4m3fn meets bool, integers and f* only; "
        "convert float8_e4m3fn with .astype(jnp.float32)",
    ),
    (
        jax,
        ("+", "float8_e4m3fn", "float8_e5m2"),
        "input dtypes (float8_e4m3fn, float8_e5m2) have no implicit promotion path: float8_e4m3fn meets bool, integers and f* "
        "only; convert float8_e4m3fn and float8_e5m2 with .astype(jnp.float32)",
    ),
    (
        jax,
        ("+", "float8_e4m3fn", 1j),
        "input dtypes (float8_e4m3fn, c*) have no implicit promotion path: float8_e4m3fn meets bool, integers and f* only; "
        "convert float8_e4m3fn with .astype(jnp.complex64)",
    ),
    (
        jax,
        ("+", "int4", "uint4"),
        "input dtypes (int4, uint4) have no implicit promotion path: int4 meets bool and i* only; "
        "convert int4 and uint4 with .astype(jnp.int8)",
    ),
    (
        jax_strict,
        ("+", "int8", "uint8"),
        f"input dtypes (int8, uint8) {STRICT}; convert int8 and uint8 with .astype(jnp.int16)",
    ),
    (jax_strict, ("+", "int8", 1.5), f"input dtypes (int8, f*) {STRICT}; convert int8 with .astype(jnp.float64)"),
    (
        jax,
        ("+", "float32", 2**63),
        "the Python int 9223372036854775808 overflows int64, the type it is parsed as; write jnp.uint64(9223372036854775808)",
    ),
    (
        jax,
        ("+", "float32", 2**64),
        "the Python int 18446744073709551616 overflows int64, the type it is parsed as; write it as a float",
    ),
    (
        jax_x32,
        ("+", "int32", 2**31),
        "the Python int 2147483648 overflows int32, the type it is parsed as; "
        "enable 64-bit types (jax_enable_x64), or write it as a float",
    ),
    (
        jax,
        ("-", "bool", "bool"),
        "sub does not accept dtype bool, it takes integers, floats, complex numbers; "
        "use ^ on bools, or convert with .astype(jnp.int32)",
    ),
    (
        jax,
        ("neg", "bool"),
        "neg does not accept dtype bool, it takes integers, floats, complex numbers; "
        "use ~ on bools, or convert with .astype(jnp.int32)",
    ),
    (
        jax,
        ("<<", "int8", 1.5),
        "shift_left does not accept dtype float64, it takes integers; convert with .astype(jnp.int32)",
    ),
    (
        jax,
        ("&", "int8", "float16"),
        "and does not accept dtype float16, it takes bool, integers; convert with .astype(jnp.int32)",
    ),
    (
        jax,
        ("//", "complex64", "int8"),
        "floor_divide does not accept dtype complex64, it takes bool, integers, floats; take the part you mean: .real or .imag",
    ),
    (
        jax,
        ("rsqrt", "int8"),
        "rsqrt does not accept dtype int8, it takes floats, complex numbers; convert with .astype(jnp.float32)",
    ),
    (jax, ("sum", "int4"), "sum does not compute with int4; convert with .astype(jnp.int8)"),
    (jax, ("/", "uint2", "uint2"), "div does not compute with uint2; convert with .astype(jnp.uint8)"),
    (
        jax,
        ("**", "int8", -1),
        "integers cannot be raised to negative powers, found int8 ** -1; convert the base with .astype(jnp.float32)",
    ),
    (
        jax,
        ("**", "int8", 2**64),
        "the exponent 18446744073709551616 overflows uint64; reduce it: powers of integers repeat",
    ),
    (
        jax,
        ("matmul", "int8", "i*"),
        "matmul of int8 with the weak int64 would accumulate in the narrower int8; convert the weak side with .astype(jnp.int8)",
    ),
    (jax, ("matmul", "int8", 2), "matmul takes arrays, found the number 2; make it an array"),
]


@pytest.mark.parametrize("system, asked, message", REFUSALS, ids=[f"{s} {a}" for s, a, _ in REFUSALS])
def test_refusals_word_for_word(system: JaxSemantics, asked: tuple[object, ...], message: str) -> None:
    op, *operands = asked
    with pytest.raises(PromotionError) as caught:
        system.resolve(canonical(str(op)), *operands)
    assert str(caught.value) == message
    assert caught.value.cast and message.endswith(caught.value.cast)


@pytest.mark.parametrize("system", SYSTEMS, ids=str)
def test_the_proposed_cast_makes_a_sum_legal(system: JaxSemantics) -> None:
    refused = 0
    for a, b in product(system.dtypes, system.dtypes):
        try:
            system.result("+", a, b)
        except PromotionError as error:
            refused += 1
            names, _, target = error.cast.removeprefix("convert ").removesuffix(")").partition(" with .astype(jnp.")
            cast = [dtypes.named(target) if str(d) in names.split(" and ") else d for d in (a, b)]
            assert system.result("+", *cast).dtype
    assert refused > 0


def test_operations_it_does_not_have() -> None:
    with pytest.raises(ValueError) as caught:
        jax.resolve("cdiv", "int8", "int8")
    assert str(caught.value).startswith("jax has no operation 'cdiv'; here it has + - * / // % **")
    with pytest.raises(ValueError) as caught:
        jax.resolve("+", "tensor_float32", "int8")
    assert str(caught.value).startswith("jax has no dtype tensor_float32; it has bool, uint8")


def test_typed_constants() -> None:
    assert jax.result("+", "int16", Constant(1, dtypes.int64)) == Type(dtypes.int64)
    assert jax.result("*", "bfloat16", np.float32(2)) == Type(dtypes.float32)
    assert jax_x32.result("+", "int16", np.int64(1)) == Type(dtypes.int32)
    # The exponent's own type takes no part where it is an integer; a float exponent promotes.
    assert jax.result("**", "int8", "3:int64") == Type(dtypes.int8)
    assert jax.result("**", "int8", "3:float32") == Type(dtypes.float32)


# ---- what `make oracles` found: jax 0.10.2, traced, on a CPU --------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "lhs", "rhs", "expected"),
    [
        ("fmod", "bool", "bool", "int32"),
        ("fmod", "uint8", "int8", "int16"),
        ("fmod", "i*", "f*", "float64 (weak)"),
        ("fmod", "bfloat16", "3", "bfloat16"),
        ("fpow", "bool", "bool", "float32"),
        ("fpow", "int64", "int8", "float64"),
        ("fpow", "float16", "3", "float16"),
        ("**", "i*", "True", "int64 (weak)"),  # a bool is an int to Python, and a known exponent to **
        ("**", "float8_e4m3fn", "True", "float8_e4m3fn"),
        ("**", "int4", "False", "int4"),
        ("logaddexp", "f*", "f*", "float64 (weak)"),
    ],
)
def test_results_read_off_the_package(op: str, lhs: str, rhs: str, expected: str) -> None:
    assert str(jax_0_10.result(op, lhs, rhs)) == expected


def test_a_known_exponent_is_no_operand_in_strict_mode_either() -> None:
    assert str(jax_strict.result("**", "uint8", "True")) == "uint8"


@pytest.mark.parametrize("base", ["float8_e4m3fn", "int8"])
def test_a_scalar_below_a_byte_is_no_known_exponent(base: str) -> None:
    with pytest.raises(PromotionError, match="have no implicit promotion path"):
        jax_0_10.result("**", base, "1:int4")


def test_fmod_truncates_and_is_zero_by_zero() -> None:
    """jnp.fmod(7, 0) is 0, unlike lax.rem."""
    assert jax_0_10.resolve("fmod", "int32", "int32").meaning == "truncate_remainder_zero"
    assert jax_0_10.resolve("fpow", "int32", "int32").meaning == "power_flushed"
    assert jax.resolve("fpow", "int32", "int32").meaning == "power"

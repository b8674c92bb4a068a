"""`max`, the document: its printed table, the four cells that are not joins, and the laws, computed from the table itself."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import pytest

import golden_tables
from weft import dtypes
from weft.semantics import Constant, PromotionError, Type, get
from weft.semantics.lattice import Lattice
from weft.semantics.systems.max import implicit_cast, implicit_cast_type, max_26
from weft.semantics.systems.max import max as document
from weft.semantics.systems.max_rules import DOCUMENT_EXCEPTIONS, LATTICE

TABLE = {
    (cell.row, cell.column): cell.value
    for cell in golden_tables.read(Path(__file__).parents[1] / "golden" / "max_promotion" / "document.txt")
}
"""The printed table: (row, column) -> type."""

NAMES = list(dict.fromkeys(row for row, _ in TABLE))


def test_the_printed_table_differs_from_the_joins_in_the_four_listed_cells_and_no_other() -> None:
    differing = {pair: cell for pair, cell in TABLE.items() if str(document.promote(*pair)) != cell}
    assert len(TABLE) == 16 * 16
    assert differing == {
        ("bool", "index"): "int64",
        ("bool", "address"): "int64",
        ("int8", "index"): "index",
        ("int8", "address"): "address",
    }
    assert {(a.name, b.name): c.name for (a, b), c in DOCUMENT_EXCEPTIONS.items()} == differing


def test_the_exceptions_are_where_the_printed_table_contradicts_its_mirror_and_the_mirror_is_the_join() -> None:
    asymmetric = {(a, b) for a, b in TABLE if TABLE[a, b] != TABLE[b, a]}
    listed = {(a.name, b.name) for a, b in DOCUMENT_EXCEPTIONS}
    assert asymmetric == listed | {(b, a) for a, b in listed}
    assert all(str(document.promote(a, b)) == TABLE[b, a] for a, b in listed)


def test_the_associativity_failures_of_the_printed_table() -> None:
    """68 ordered triples, all with index or address, and none of the other 14 types fails without those two."""
    failing = {(a, b, c) for a, b, c in product(NAMES, repeat=3) if TABLE[TABLE[a, b], c] != TABLE[a, TABLE[b, c]]}
    assert len(failing) == 68
    assert all({"index", "address"} & {*triple} for triple in failing)
    # By hand: (bool, int8), index = int8, index = index, but bool, (int8, index) = bool, index = int64; and two more.
    assert {("bool", "int8", "index"), ("bool", "index", "bool"), ("bool", "index", "uint64")} <= failing


def test_the_lattice_mends_every_one_of_them() -> None:
    for a, b, c in product(LATTICE.nodes, repeat=3):
        assert implicit_cast_type(implicit_cast_type(a, b), c) == implicit_cast_type(a, implicit_cast_type(b, c))


def test_laws_of_the_lattice() -> None:
    assert not LATTICE.unjoinable
    for a, b in product(LATTICE.nodes, repeat=2):
        join = implicit_cast_type(a, b)
        assert join == implicit_cast_type(b, a)
        assert LATTICE.below(a, join)
        assert LATTICE.below(b, join)
        assert (join == b) == LATTICE.below(a, b)
    assert all(implicit_cast_type(a, a) == a for a in LATTICE.nodes)


def test_any_order_of_many_operands_gives_one_type() -> None:
    for order in permutations(("int8", "uint8", "index", "bool")):
        assert document.promote(*order) == Type(dtypes.float16)


def test_the_prose_about_index_and_address_holds() -> None:
    """Nothing else promotes to them, and with any other type they are uint64."""
    for special, other in product((dtypes.index, dtypes.address), LATTICE.nodes):
        if special != other:
            as_uint64 = dtypes.uint64 if other in (dtypes.index, dtypes.address) else other
            assert implicit_cast_type(special, other) == implicit_cast_type(dtypes.uint64, as_uint64)


def test_the_system_and_its_lattice_are_found_by_name() -> None:
    assert get("max") is document
    assert get("max@26") is max_26
    assert document.lattice is LATTICE
    assert isinstance(document.lattice, Lattice)
    assert max_26.lattice is None
    assert [str(d) for d in document.dtypes] == NAMES


@pytest.mark.parametrize(
    ("lhs", "rhs", "left", "right"),
    [
        ("int16", "float32", ("int16", "float32", "convert_wrap"), ("float32", "float32", "identity")),
        ("int8", "uint8", ("int8", "int16", "convert_wrap"), ("uint8", "int16", "convert_wrap")),
        ("index", "index", ("index", "index", "identity"), ("index", "index", "identity")),
        ("1:int16", "bool", ("int16", "int16", "identity"), ("bool", "int16", "convert_wrap")),
    ],
)
def test_implicit_cast(lhs: str, rhs: str, left: tuple[str, str, str], right: tuple[str, str, str]) -> None:
    got = [(str(c.source), str(c.target), c.meaning) for c in implicit_cast(lhs, rhs)]
    assert got == [left, right]


def test_the_graph_of_the_document() -> None:
    """``x = g.scalar[DType.int16](1); y = g.scalar[DType.float32](1.); x + y``."""
    promotion = document.resolve("+", Constant(1, dtypes.int16), Constant(1.0, dtypes.float32))
    assert (promotion.operands, promotion.result, promotion.meaning) == (dtypes.float32, dtypes.float32, "add")
    assert [str(s) for s in promotion.steps] == [
        "lattice: int16 and float32 meet in float32: int16 -> int32 -> int64 -> float16 -> bfloat16 -> float32"
    ]


def test_steps_of_a_join_above_both() -> None:
    assert [str(s) for s in document.resolve("*", "uint32", "int8").steps] == [
        "lattice: uint32 and int8 meet in int64: uint32 -> int64, int8 -> int16 -> int32 -> int64"
    ]
    assert [str(s) for s in document.resolve("*", "int8", "int8").steps] == ["equal: both are int8"]


@pytest.mark.parametrize(
    ("op", "lhs", "rhs", "result"),
    [
        ("+", "int32", "float16", "float16"),  # the lattice decides
        ("-", "int64", "uint64", "float16"),
        ("**", "bfloat16", "float16", "bfloat16"),  # the example of the document's prose
        ("where", "float32", "tensor_float32", "tensor_float32"),
        ("/", "int8", "int8", "float64"),  # the document is silent: as the package
        ("/", "index", "int8", "float64"),
        ("/", "int8", "float16", "float16"),
        ("/", "bool", "int8", "int8"),
        ("<", "int64", "uint64", "bool"),
        ("&", "bool", "bool", "bool"),
        ("+", "uint8", "255", "uint8"),
        ("+", "tensor_float32", "2048", "tensor_float32"),
        ("+", "index", "18446744073709551615", "index"),
        ("+", "float16", "0.1", "float16"),
    ],
)
def test_operations(op: str, lhs: str, rhs: str, result: str) -> None:
    assert str(document.result(op, lhs, rhs)) == result


def test_no_note_about_the_package() -> None:
    assert [s.rule for s in document.resolve("+", "bool", "bool").steps] == ["equal"]


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        (
            "+",
            ("uint8", "256"),
            "Unsafe cast: uint8 does not hold 256 exactly; cast the other side: ops.cast(x, DType.uint16)",
        ),
        (
            "+",
            ("tensor_float32", "2049"),
            "Unsafe cast: tensor_float32 does not hold 2049 exactly; cast the other side: ops.cast(x, DType.float64)",
        ),
        (
            "+",
            ("index", "-1"),
            "Unsafe cast: index does not hold -1 exactly; cast the other side: ops.cast(x, DType.int64)",
        ),
        ("&", ("int8", "bool"), "'&' takes bools, found int8 and bool; cast both sides: ops.cast(x, DType.bool)"),
        ("<<", ("int8", "int8"), "MAX has no '<<'; multiply by 2**n"),
    ],
)
def test_refusals(op: str, operands: tuple[str, ...], message: str) -> None:
    with pytest.raises(PromotionError) as error:
        document.resolve(op, *operands)
    assert str(error.value) == message


def test_a_type_outside_the_lattice() -> None:
    with pytest.raises(ValueError) as error:
        implicit_cast_type("int8", "float8_e5m2")
    assert str(error.value) == f"max has no dtype float8_e5m2; it has {', '.join(NAMES)}"


def test_implicit_cast_refuses_a_number() -> None:
    with pytest.raises(PromotionError) as error:
        implicit_cast("int8", 3)
    assert (
        str(error.value)
        == "implicit_cast takes operands with a type, found 3; write ops.constant(3, DType.int64, device)"
    )

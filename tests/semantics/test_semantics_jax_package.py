"""Every recorded cell of jax 0.10.2 against the systems of `weft.semantics.systems.jax`: types, weakness, classes of refusals."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden_tables import Cell, read
from weft import dtypes
from weft.semantics import Number, PromotionError, Semantics, Type, get
from weft.semantics.systems.jax import JaxSemantics, jax, jax_0_10, jax_strict, jax_x32, jax_x32_0_10

GOLDEN = Path(__file__).parents[1] / "golden" / "jax_promotion"
SPELLINGS = {"int*": "i*", "float*": "f*", "complex*": "c*"}
BOTH = {"x64": (jax, jax_0_10), "x32": (jax_x32, jax_x32_0_10)}
jax_strict_x32 = JaxSemantics("jax-strict-x32", "for these tests", x64=False, strict=True)

CLASSES = {
    "have no implicit promotion path": "!promotion",
    "does not accept dtype": "!dtype",
    "would accumulate in the narrower": "!narrower",
    "does not compute with": "!narrow",
    "raised to negative powers": "!negative",
    "the type it is parsed as": "!overflow",
}


def outcome(compute: Callable[[], Type], marks: bool = True) -> str:
    """A type as the tables spell it (a weak one by its kind, or marked by a star), or the class of a refusal."""
    try:
        found = compute()
    except PromotionError as error:
        return next(short for text, short in CLASSES.items() if text in str(error))
    if not found.weak:
        return str(found.dtype)
    if marks:
        return f"{found.dtype}*"
    return {"int": "int*", "uint": "int*", "float": "float*", "complex": "complex*", "bool": "bool"}[
        found.dtype.name.rstrip("0123456789")
    ]


def spelled(name: str) -> str:
    return SPELLINGS.get(name, name)


def disagreements(
    cells: Iterator[Cell], compute: Callable[[Cell], Type], count: int, marks: bool = False
) -> list[tuple[Cell, str]]:
    """The cells that came out differently, of ``count`` cells."""
    listed = list(cells)
    assert len(listed) == count
    return [(c, got) for c in listed if (got := outcome(lambda c=c: compute(c), marks)) != c.value]


JOINS = ("lattice_join", "result_type_arrays", "array_add", "array_add_pyscalar")


@pytest.mark.parametrize(
    "file, bits, count", [("joins.txt", "x64", 4 * 961 - 9), ("joins_x32.txt", "x32", 4 * 324 - 9)]
)
def test_joins(file: str, bits: str, count: int) -> None:
    for system in BOTH[bits]:
        cells = (c for c in read(GOLDEN / file) if c.op in JOINS)
        assert not disagreements(cells, lambda c, s=system: s.promote(spelled(c.row), spelled(c.column)), count)
        cells = (c for c in read(GOLDEN / file) if c.op in JOINS)
        assert not disagreements(cells, lambda c, s=system: s.result("+", spelled(c.row), spelled(c.column)), count)


@pytest.mark.parametrize(
    "file, system, count",
    [("joins.txt", jax_strict, 961), ("joins_x32.txt", jax_strict_x32, 324)],
    ids=["x64", "x32"],
)
def test_joins_of_the_strict_mode(file: str, system: JaxSemantics, count: int) -> None:
    cells = (c for c in read(GOLDEN / file) if c.op == "strict_mode_join")
    assert not disagreements(cells, lambda c: system.promote(spelled(c.row), spelled(c.column)), count)


@pytest.mark.parametrize(
    "file, system, count", [("joins.txt", jax_0_10, 961), ("joins_x32.txt", jax_x32_0_10, 324)], ids=["x64", "x32"]
)
def test_promote_types_of_the_package(file: str, system: JaxSemantics, count: int) -> None:
    def compute(cell: Cell) -> Type:
        return system.promote_types(system.operand(spelled(cell.row)), system.operand(spelled(cell.column)))

    cells = (c for c in read(GOLDEN / file) if c.op == "jnp.promote_types")
    narrow_rows_name_weak_types = {c for c in read(GOLDEN / file) if c.op == "jnp.promote_types" and "*" in c.value}
    assert not narrow_rows_name_weak_types
    assert not disagreements(cells, compute, count)


def test_promote_types_of_the_document_differs_in_55_cells_and_only_in_weakness() -> None:
    document = {(c.row, c.column) for c in read(GOLDEN / "joins.txt") if c.op == "lattice_join" and "*" in c.value}
    differing = {
        (a, b)
        for a in document_types()
        for b in document_types()
        if jax.promote_types(jax.operand(spelled(a)), jax.operand(spelled(b)))
        != jax_0_10.promote_types(jax.operand(spelled(a)), jax.operand(spelled(b)))
    }
    assert differing == document
    assert len(differing) == 55


def document_types() -> list[str]:
    return [*(str(d) for d in jax.dtypes if not is_narrow(str(d))), *SPELLINGS]


def is_narrow(name: str) -> bool:
    return name.startswith("float8") or name in ("float4_e2m1fn", "int2", "uint2", "int4", "uint4")


@pytest.mark.parametrize("file, bits", [("operators.txt", "x64"), ("operators_x32.txt", "x32")])
def test_operators(file: str, bits: str) -> None:
    for system in BOTH[bits]:

        def compute(cell: Cell, system: Semantics = system) -> Type:
            found = system.result(cell.op, spelled(cell.row), spelled(cell.column))
            return Type(found.dtype, found.weak and not found.dtype.is_bool)

        assert not disagreements(read(GOLDEN / file), compute, 19 * 18 * 18)


def test_operations_of_one_operand() -> None:
    for bits, systems in BOTH.items():
        for system in systems:
            cells = (c for c in read(GOLDEN / "unary.txt") if c.op == bits)
            assert not disagreements(cells, lambda c, s=system: s.result(c.row, spelled(c.column)), 15 * 18)


def refused(cell: Cell, operation: str) -> bool:
    """What the package computes although it is not the operation, or fails in: weft refuses it."""
    tiniest = {cell.row, cell.column} & {"int2", "uint2"}
    return cell.value == "!fails" or (operation in ("divide", "mean") and cell.value in tiniest)


def test_more_operations_of_one_operand() -> None:
    wrong: list[tuple[Cell, str]] = []
    cells = list(read(GOLDEN / "more_unary.txt"))
    assert len(cells) == 2 * 35 * 31
    for cell in cells:
        for system in BOTH[cell.op]:
            got = outcome(lambda c=cell, s=system: s.result(c.row, spelled(c.column)))
            narrow = got == "!narrow" and (
                refused(cell, cell.row) or (cell.value == "!dtype" and is_narrow(cell.column))
            )
            if got != cell.value and not narrow:
                wrong.append((cell, got))
    assert not wrong


def test_more_operators() -> None:
    wrong: list[tuple[Cell, str]] = []
    cells = list(read(GOLDEN / "more_operators.txt"))
    # 637 pairs have a narrow type; of six operators all 961 pairs were recorded.
    assert len(cells) == 19 * 637 + 6 * 961
    for cell in cells:
        got = outcome(lambda c=cell: jax_0_10.result(spelling(c.op), spelled(c.row), spelled(c.column)))
        narrow = got == "!narrow" and (refused(cell, cell.op) or cell.value == "!dtype")
        if got != cell.value and not narrow:
            wrong.append((cell, got))
    assert not wrong


def spelling(operation: str) -> str:
    return {"concatenate": "concat"}.get(operation, operation)


def test_refusals_that_the_package_lacks_are_these() -> None:
    more: set[tuple[str, str, str]] = set()
    for cell in read(GOLDEN / "more_operators.txt"):
        if not cell.value.startswith("!"):
            got = outcome(lambda c=cell: jax_0_10.result(spelling(c.op), spelled(c.row), spelled(c.column)))
            if got.startswith("!"):
                more.add((cell.op, cell.row, cell.column))
    # int2 with bool, i* and itself, on both sides; uint2 the same.
    partners = [("bool", t) for t in ("int2", "uint2")] + [("int*", t) for t in ("int2", "uint2")]
    both = {*partners, *((b, a) for a, b in partners), ("int2", "int2"), ("uint2", "uint2")}
    assert more == {("divide", a, b) for a, b in both}


class Array:
    """A type that answers Python's operators by a system; ``np`` and ``jnp`` below make it of what the expressions name."""

    __array_ufunc__ = None  # so that a NumPy scalar on the left leaves the operator to this class

    def __init__(self, system: Semantics, operand: object) -> None:
        self.system, self.operand = system, operand

    def apply(self, op: str, *others: object) -> Array:
        return call(self.system, op, self, *others)


def call(system: Semantics, op: str, *operands: object) -> Array:
    return Array(system, system.result(op, *map(_type, operands)))


def _type(operand: Any) -> object:
    if isinstance(operand, Array):
        return operand.operand
    numpy_array = type(operand).__name__ == "ndarray"
    return np.asarray(operand).dtype if numpy_array else operand


def _binary(op: str) -> Callable[[Array, object], Array]:
    return lambda x, y: x.apply(op, y)


def _reflected(op: str) -> Callable[[Array, object], Array]:
    return lambda x, y: call(x.system, op, y, x)


def _unary(op: str) -> Callable[[Array], Array]:
    return lambda x: x.apply(op)


def _install() -> None:
    names = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "and": "&"}
    names |= {"or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "matmul": "matmul"}
    for name, op in names.items():
        setattr(Array, f"__{name}__", _binary(op))
        setattr(Array, f"__r{name}__", _reflected(op))
    for name, op in {"lt": "<", "gt": ">", "le": "<=", "ge": ">=", "eq": "==", "ne": "!="}.items():
        setattr(Array, f"__{name}__", _binary(op))
    for name, op in {"neg": "neg", "invert": "~"}.items():
        setattr(Array, f"__{name}__", _unary(op))


_install()


class Jnp:
    """``jax.numpy`` as far as the expressions use it: constructors that name a dtype, and operations."""

    def __init__(self, system: Semantics) -> None:
        self.system = system

    def __getattr__(self, name: str) -> Callable[..., Array]:
        name = name.rstrip("_")

        def construct(*_: object) -> Array:
            return Array(self.system, name)

        def convert(value: Number) -> Array:
            return Array(self.system, self.system.literal(value))

        def operation(*operands: object) -> Array:
            return call(self.system, name, *operands)

        if name in {d.name for d in dtypes.KNOWN}:
            return construct
        return convert if name in ("array", "asarray") else operation


def rows(name: str) -> list[dict[str, str]]:
    with (GOLDEN / name).open() as file:
        return list(csv.DictReader(file))


def evaluate(system: Semantics, expression: str, names: dict[str, Array]) -> str:
    """The type of an expression, ``*`` marking a weak one, or the class of its refusal."""

    def compute() -> Type:
        found = eval(expression, {"jnp": Jnp(system), "np": np, **names})
        return system.promote(found.operand)

    return outcome(compute)


def compared(rows: list[dict[str, str]], pick: Callable[[str], bool], refusals: Callable[[str], str]) -> list[str]:
    """The expressions whose type or weakness differs, over both settings and both versions."""
    wrong: list[str] = []
    weak = {"i": "i*", "f": "f*", "c": "c*"}
    strong = {"x8": "int8", "u8": "uint8", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "c64": "complex64"}
    strong |= {"b": "bool", "f8": "float8_e4m3fn", "i4": "int4", "m": "bool", "z16": "float16", "zb": "bfloat16"}
    strong |= {"z8": "float8_e4m3fn", "z32": "float32", "z64": "float64", "zc": "complex64"}
    for row in rows:
        if not pick(row["expression"]):
            continue
        for bits, systems in BOTH.items():
            number = bits.removeprefix("x")
            recorded = row[f"dtype{number}"] or refusals(row[f"value{number}"])
            recorded += "*" * (row[f"weak{number}"] == "True")
            for system in systems:
                names = {n: Array(system, t) for n, t in {**weak, **strong}.items()}
                got = evaluate(system, row["expression"], names)
                if got != recorded.replace("bool*", "bool") and got != recorded:
                    wrong.append(f"{system}: {row['expression']} is {got}, recorded {recorded}")
    return wrong


def plain(expression: str) -> bool:
    """Whether an expression needs no more than operators, constructors of one number, and the operations of `ops`."""
    calls = set(re.findall(r"(?:jnp|np|jax)\.([a-z_.]+)", expression))
    numbered = {d.name.rstrip("0123456789") for d in dtypes.KNOWN if not d.name.startswith(("float8", "float4"))}
    known = {*numbered, "bool_", "asarray", "array", "where", "add", "exp", "sqrt", "maximum", "clip"}
    listed = "[" in expression or "jnp.nan" in expression or "dtype" in expression or "astype" in expression
    starts_with_numpy = expression.startswith("np.int16(1)+1")
    return calls <= known and not listed and not starts_with_numpy and not re.search(r"jnp\.int32\(jnp", expression)


def recorded_class(value: str) -> str:
    """The class of an error as `values.csv` has it."""
    patterns = {
        "TypePromotionError": "!promotion",
        "does not accept dtype": "!dtype",
        "negative powers": "!negative",
        "OverflowError": "!overflow",
    }
    return next(short for text, short in patterns.items() if text in value)


def test_values_have_the_recorded_types_and_weakness() -> None:
    listed = rows("values.csv")
    # The power of two arrays without dimensions is decided by the value in eager mode; uint64(2**63) does not exist in x32.
    eager = {"jnp.int32(2)**jnp.int32(-1)"}
    overflowing = {"jnp.uint64(2**63)+jnp.int64(1)", "jnp.uint64(2**63)==jnp.int64(-2**63)"}
    assert sum(plain(r["expression"]) for r in listed) >= 130
    wrong = compared(listed, lambda e: plain(e) and e not in eager | overflowing, recorded_class)
    assert not wrong


def test_more_values_have_the_recorded_types_and_weakness() -> None:
    listed = rows("more_values.csv")
    assert len(listed) == 136
    wrong = compared(listed, lambda e: True, lambda value: value)
    assert not wrong


def test_registry() -> None:
    systems = [get(n) for n in ("jax", "jax@0.10", "jax-x32", "jax-x32@0.10", "jax-strict")]
    assert systems == [jax, jax_0_10, jax_x32, jax_x32_0_10, jax_strict]
    assert [s.name for s in systems] == ["jax", "jax@0.10", "jax-x32", "jax-x32@0.10", "jax-strict"]

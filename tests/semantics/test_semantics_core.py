"""What every system shares: operands in all their spellings, how an operation is resolved, names of ops, meanings, systems."""

from __future__ import annotations

import copy
import math
import pickle
import subprocess
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft.semantics
from weft import dtypes
from weft.dtypes import DType
from weft.semantics import (
    SYSTEMS,
    Constant,
    Number,
    Operand,
    Promotion,
    PromotionError,
    Semantics,
    Step,
    Type,
    get,
    ops,
    triton,
)
from weft.semantics.core import operand, show
from weft.semantics.meanings import MEANINGS
from weft.semantics.systems.jax import jax

# ---- operands -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (dtypes.int8, dtypes.int8),
        (Type(dtypes.int8, weak=True), Type(dtypes.int8, weak=True)),
        (Constant(3, dtypes.uint8), Constant(3, dtypes.uint8)),
        (True, True),
        (3, 3),
        (2.5, 2.5),
        (1j, 1j),
        (np.dtype("int16"), dtypes.int16),
        (np.dtype("bool"), dtypes.bool_),
        (np.dtype(ml_dtypes.bfloat16), dtypes.bfloat16),
        (np.dtype(ml_dtypes.float8_e4m3fn), dtypes.float8_e4m3fn),
        (np.dtype(">f4"), dtypes.float32),
        (np.int8, dtypes.int8),
        (np.bool_, dtypes.bool_),
        (ml_dtypes.bfloat16, dtypes.bfloat16),
        (Type("int8", weak=True), Type(dtypes.int8, weak=True)),  # pyright: ignore[reportArgumentType]
        (Constant(3, "uint8"), Constant(3, dtypes.uint8)),  # pyright: ignore[reportArgumentType]
        (np.int8(-3), Constant(-3, dtypes.int8)),
        (np.float64(2.5), Constant(2.5, dtypes.float64)),
        (np.bool_(True), Constant(True, dtypes.bool_)),
        (np.complex64(1 + 2j), Constant(1 + 2j, dtypes.complex64)),
        (ml_dtypes.bfloat16(1.5), Constant(1.5, dtypes.bfloat16)),
        (ml_dtypes.int4(-2), Constant(-2, dtypes.int4)),
        ("int8", dtypes.int8),
        ("  int8 ", dtypes.int8),
        ("bf16", dtypes.bfloat16),
        ("fp8e4b15", dtypes.float8_e4m3b15),
        ("index", dtypes.index),
        ("int8[]", Type(dtypes.int8, scalar=True)),
        ("bf16[]", Type(dtypes.bfloat16, scalar=True)),
        ("i*", Type(dtypes.int64, weak=True)),
        ("int*", Type(dtypes.int64, weak=True)),
        ("f*", Type(dtypes.float64, weak=True)),
        ("float*", Type(dtypes.float64, weak=True)),
        ("c*", Type(dtypes.complex128, weak=True)),
        ("complex*", Type(dtypes.complex128, weak=True)),
        ("True", True),
        ("False", False),
        ("3", 3),
        ("-3", -3),
        ("007", 7),
        ("0x10", 16),
        ("2.5", 2.5),
        ("1e3", 1e3),
        ("inf", math.inf),
        ("2j", 2j),
        ("1+2j", 1 + 2j),
        ("9:uint8", Constant(9, dtypes.uint8)),
        ("-1.5:half", Constant(-1.5, dtypes.float16)),
        ("True:bool", Constant(True, dtypes.bool_)),
    ],
)
def test_operands(value: object, expected: Operand) -> None:
    got = operand(value)
    assert got == expected
    assert type(got) is type(expected)
    if isinstance(got, Constant) and isinstance(expected, Constant):
        assert type(got.value) is type(expected.value)


def test_nan_is_a_number() -> None:
    got = operand("nan")
    assert isinstance(got, float)
    assert math.isnan(got)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("int9", "unknown dtype 'int9'; did you mean 'int8'?"),
        ("flaot32", "unknown dtype 'flaot32'; did you mean 'float32'?"),
        ("bfloat[]", "unknown dtype 'bfloat'; did you mean 'bfloat16'?"),
        ("9:uint9", "unknown dtype 'uint9'; did you mean 'uint8'?"),
        ("x:uint8", "'x:uint8' is no typed constant; write it like 9:uint8"),
        (":", "':' is no typed constant; write it like 9:uint8"),
        (None, "an operand is a dtype, a number, a weak type or a typed constant, found None"),
        (int, "an operand is a dtype, a number, a weak type or a typed constant, found <class 'int'>"),
        (
            np.ones(2),
            "an operand is a dtype, a number, a weak type or a typed constant, found an array: pass its dtype, float64",
        ),
        (Constant(3, "uint9"), "unknown dtype 'uint9'; did you mean 'uint8'?"),  # pyright: ignore[reportArgumentType]
        ([1, 2], "an operand is a dtype, a number, a weak type or a typed constant, found [1, 2]"),
        (
            "??",
            "unknown dtype '??'; weft knows " + ", ".join(d.name for d in dtypes.KNOWN),
        ),
    ],
)
def test_what_is_no_operand(value: object, message: str) -> None:
    with pytest.raises(ValueError) as error:
        operand(value)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (dtypes.bfloat16, "bfloat16"),
        (Type(dtypes.int8), "int8"),
        (Type(dtypes.int64, weak=True), "int64 (weak)"),
        (Type(dtypes.int8, scalar=True), "int8[]"),
        (Type(dtypes.int8, weak=True, scalar=True), "int8[] (weak)"),
        (Constant(9, dtypes.uint8), "Constant(9, uint8)"),
        (True, "True"),
        (3, "3"),
        (2.0, "2.0"),
        (1j, "1j"),
    ],
)
def test_how_operands_are_shown(value: Operand, text: str) -> None:
    assert show(value) == text


# ---- resolving ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recorder(Semantics):
    """A system of two types that answers int8 and remembers what it was asked."""

    name: str = "recorder"
    title: str = "for tests"
    asked: list[tuple[object, ...]] = field(default_factory=lambda: [], compare=False)

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return (dtypes.int8, dtypes.float32)

    def _answer(self, *question: object) -> Promotion:
        self.asked.append(question)
        return Promotion(dtypes.int8, dtypes.float32, "add", weak=True)

    def common(self, *operands: Operand) -> Promotion:
        return self._answer("common", *operands)

    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        return self._answer("binary", op, lhs, rhs)

    def unary(self, op: str, operand: Operand) -> Promotion:
        return self._answer("unary", op, operand)

    def reduction(self, op: str, operand: Operand) -> Promotion:
        return self._answer("reduction", op, operand)

    def literal(self, value: Number) -> Type:
        return Type(dtypes.int8)

    def cast(self, source: DType, target: DType) -> Promotion:
        return self._answer("cast", source, target)


I8 = dtypes.int8


@pytest.mark.parametrize(
    ("op", "operands", "asked"),
    [
        ("+", ("int8", 3), ("binary", "+", I8, 3)),
        ("add", ("int8", 3), ("binary", "+", I8, 3)),
        ("true_divide", (3, "int8"), ("binary", "/", 3, I8)),
        ("-", ("int8",), ("unary", "neg", I8)),
        ("+", ("int8",), ("unary", "pos", I8)),
        ("sub", ("int8",), ("unary", "neg", I8)),
        ("-", ("int8", "int8"), ("binary", "-", I8, I8)),
        ("where", ("int8", 3), ("binary", "where", I8, 3)),
        ("select", ("float32", "int8", 3), ("binary", "where", I8, 3)),
        ("and", ("int8", "int8"), ("binary", "and", I8, I8)),
        ("sqrt", ("float32",), ("unary", "sqrt", dtypes.float32)),
        ("amax", ("int8",), ("reduction", "max", I8)),
        ("cumsum", ("int8",), ("reduction", "cumsum", I8)),
    ],
)
def test_resolve_asks_the_right_method(op: str, operands: tuple[object, ...], asked: tuple[object, ...]) -> None:
    system = Recorder()
    assert system.resolve(op, *operands) == Promotion(dtypes.int8, dtypes.float32, weak=True)
    assert system.result(op, *operands) == Type(dtypes.float32, weak=True)
    assert system.asked == [asked, asked]


def test_promote_asks_for_the_common_type() -> None:
    system = Recorder()
    assert system.promote("int8", 3, "float32[]") == Type(dtypes.float32, weak=True)
    assert system.asked == [("common", I8, 3, Type(dtypes.float32, scalar=True))]


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        ("+", ("int8", "int8", "int8"), "'+' takes 2 operands, found 3"),
        ("*", ("int8",), "'*' takes 2 operands, found 1"),
        ("where", ("int8",), "'where' takes 2 operands, found 1"),
        ("where", ("int8",) * 4, "'where' takes 2 operands, found 4"),
        ("sqrt", (), "'sqrt' takes 1 operand, found 0"),
        ("sum", ("int8", "int8"), "'sum' takes 1 operand, found 2"),
        ("clip", ("int8", 1), "'clamp' takes 3 operands, found 2"),
        ("clamp", ("int8", 1, 2), "recorder has no operation 'clamp'"),
        ("+", ("int8", "bfloat16"), "recorder has no dtype bfloat16; it has int8, float32"),
        ("+", ("int16[]", 3), "recorder has no dtype int16; it has int8, float32"),
        ("where", ("bool", 1, 2), "recorder has no dtype bool; it has int8, float32"),
        ("+", ("1:int16", 3), "recorder has no dtype int16; it has int8, float32"),
        ("addd", ("int8", "int8"), "unknown operation 'addd'; did you mean 'add'?"),
    ],
)
def test_what_cannot_be_resolved(op: str, operands: tuple[object, ...], message: str) -> None:
    system = Recorder()
    with pytest.raises(ValueError) as error:
        system.resolve(op, *operands)
    assert str(error.value) == message
    assert system.asked == []


def test_promote_refuses_a_dtype_the_system_lacks() -> None:
    with pytest.raises(ValueError) as error:
        Recorder().promote("int8", "complex64")
    assert str(error.value) == "recorder has no dtype complex64; it has int8, float32"


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (300, dtypes.uint8, 44),
        (-1, dtypes.uint8, 255),
        (128, dtypes.int8, -128),
        (-129, dtypes.int8, 127),
        (2**64 + 5, dtypes.uint64, 5),
        (True, dtypes.int8, 1),
        (7, dtypes.int4, 7),
        (8, dtypes.int4, -8),
        (5, dtypes.bool_, True),
        (0.0, dtypes.bool_, False),
        (2.5, dtypes.int8, 2.5),
        (3, dtypes.float32, 3),
        (1e300, dtypes.float16, 1e300),
        (1j, dtypes.complex64, 1j),
    ],
)
def test_what_a_literal_becomes(value: Number, dtype: DType, expected: Number) -> None:
    assert Recorder().number(value, dtype) == expected


def test_promotions() -> None:
    first, second = Step("kind", "a float wins"), Step("width", "the wider")
    promotion = Promotion(dtypes.int8, dtypes.float32, "add", weak=True, steps=(second,))
    assert promotion.type == Type(dtypes.float32, weak=True)
    assert promotion.after(first).steps == (first, second)
    assert promotion.after(first) == promotion == Promotion(dtypes.int8, dtypes.float32, "sub", weak=True)
    assert promotion != Promotion(dtypes.int8, dtypes.float32)
    assert str(first) == "kind: a float wins"
    assert str(Recorder()) == "recorder"


def test_promotion_errors() -> None:
    error = PromotionError("uint8 and int8 do not mix", "cast with .astype('int16')")
    assert str(error) == "uint8 and int8 do not mix; cast with .astype('int16')"
    assert (error.reason, error.cast) == ("uint8 and int8 do not mix", "cast with .astype('int16')")
    assert str(PromotionError("never")) == "never"
    assert isinstance(error, TypeError)


# ---- names of operations --------------------------------------------------------------------------------------------

# Every spelling that NumPy, JAX, PyTorch, Triton or the operator module has for an operation with a symbol.
SPELLINGS = """
+ add
- sub subtract
* mul multiply
/ div divide truediv true_divide
// floordiv floor_divide
% mod rem remainder
** pow power
& bitwise_and
| bitwise_or
^ xor bitwise_xor
<< lshift shl left_shift
>> rshift shr right_shift
< lt less
<= le less_equal
> gt greater
>= ge greater_equal
== eq equal
!= ne not_equal
~ invert bitwise_not
where select
atan2 arctan2
pos positive
neg negative
not logical_not
abs absolute
clamp clip
matmul dot @
max amax
min amin
"""


def test_spellings() -> None:
    for line in SPELLINGS.strip().splitlines():
        canonical, *others = line.split()
        assert [ops.canonical(spelling) for spelling in (canonical, *others)] == [canonical] * (1 + len(others))
    assert [ops.canonical(op) for op in ops.ALL] == list(ops.ALL)


def test_spellings_of_numpy_are_known() -> None:
    """Every binary and unary ufunc whose operation weft has at all is found by the ufunc's own name."""
    for name in (
        *(
            "add",
            "subtract",
            "multiply",
            "true_divide",
            "floor_divide",
            "remainder",
            "power",
            "bitwise_and",
            "bitwise_or",
        ),
        *("bitwise_xor", "left_shift", "right_shift", "less", "less_equal", "greater", "greater_equal", "equal"),
        *(
            "not_equal",
            "minimum",
            "maximum",
            "arctan2",
            "logaddexp",
            "fmod",
            "matmul",
            "positive",
            "negative",
            "invert",
        ),
        *("logical_not", "absolute", "fabs", "sign", "square", "sqrt", "cbrt", "exp", "exp2", "log", "log2", "log10"),
        *("sin", "cos", "tan", "tanh", "floor", "ceil"),
    ):
        assert isinstance(getattr(np, name), np.ufunc)
        assert ops.canonical(name) in ops.ALL


def test_operations_are_of_one_class_each() -> None:
    family = (ops.FAMILY_UNARY, ops.FAMILY_BINARY, ops.FAMILY_REDUCTIONS)
    classes = (ops.BINARY, ops.LOGICAL, ops.UNARY, ops.TERNARY, ops.REDUCTIONS, *family)
    assert sum(map(len, classes)) == len(set(ops.ALL)) == len(ops.ALL)
    arities = {
        1: {*ops.UNARY, *ops.REDUCTIONS, *ops.FAMILY_UNARY, *ops.FAMILY_REDUCTIONS},
        2: {*ops.BINARY, *ops.LOGICAL, *ops.FAMILY_BINARY},
        3: {*ops.TERNARY},
    }
    assert all(ops.arity(op) == count for count, listed in arities.items() for op in listed)
    for group in (ops.ARITHMETIC, ops.BITWISE, ops.SHIFTS, ops.COMPARISONS, ops.DIVISIONS):
        assert {*group} <= {*ops.BINARY}


@pytest.mark.parametrize(
    ("op", "message"),
    [
        ("addd", "unknown operation 'addd'; did you mean 'add'?"),
        ("floor_div", "unknown operation 'floor_div'; did you mean 'floordiv'?"),
        (3, "an operation is a name or a symbol, found 3"),
        ("ADD", "unknown operation 'ADD'; did you mean 'add'?"),
        ("sqrtt", "unknown operation 'sqrtt'; did you mean 'sqrt'?"),
        ("???", f"unknown operation '???'; weft knows {' '.join(ops.ALL)}"),
    ],
)
def test_unknown_operations(op: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        ops.canonical(op)
    assert str(error.value) == message


# ---- meanings -------------------------------------------------------------------------------------------------------


def test_meanings_are_defined() -> None:
    assert all(text.strip() == text != "" for text in MEANINGS.values())
    names = list(MEANINGS)
    for name, text in MEANINGS.items():  # "the same" needs something before it, of which it is a variant
        if text.startswith("the same"):
            before = names[: names.index(name)]
            assert any(name.startswith(f"{base}_") for base in before), name


def answers(system: Semantics, op: str) -> list[tuple[list[object], Promotion]]:
    """Whatever the system answers about an op on each dtype, alone, with itself, and with literals."""
    found: list[tuple[list[object], Promotion]] = []
    for dtype, other in product(system.dtypes, (None, True, 1, 2.5)):
        rest = dtype if other is None else other
        for asked in ([dtype, rest, rest], [rest, dtype, dtype]):
            operands = list[object](asked[: ops.arity(op)])
            try:
                found.append((operands, system.resolve(op, *operands)))
            except (PromotionError, ValueError):
                continue
    return found


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_answer_is_well_formed(name: str) -> None:
    """Meanings of the vocabulary, types of the system, and steps that say how two operands met."""
    system = get(name)
    answered: set[str] = set()
    for op in ops.ALL:
        for operands, promotion in answers(system, op):
            asked = (op, operands, promotion)
            answered.add(op)
            assert promotion.meaning in MEANINGS, asked
            assert {promotion.operands, promotion.result} <= {*system.dtypes}, asked
            assert promotion.steps or len(operands) == 1, asked
            assert all(step.rule and step.text for step in promotion.steps), asked
    assert {"+", "-", "*", "/", "//", "&", "|", "^", "<", "==", "!=", "neg", "sum"} <= answered


NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


@pytest.mark.parametrize("name", SYSTEMS)
def test_casts_are_well_formed(name: str) -> None:
    """A cast gives the type it was asked for; without 64-bit types JAX gives the 32-bit one of that kind."""
    system = get(name)
    for source, target in product(system.dtypes, repeat=2):
        try:
            promotion = system.cast(source, target)
        except PromotionError:
            continue
        narrow = NARROW.get(target.name) if name.startswith("jax-x32") else None
        expected = target if narrow is None else dtypes.named(narrow)
        assert (promotion.operands, promotion.result) == (expected, expected)
        assert promotion.meaning in MEANINGS


# ---- systems --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_is_found_by_its_name(name: str) -> None:
    system = get(name)
    assert isinstance(system, Semantics)
    assert system.name == str(system) == name
    assert get(name) is system
    assert get(system) is system
    assert system.title
    assert len(set(system.dtypes)) == len(system.dtypes) > 0
    attribute = name.replace("-", "_").replace("@", "_").replace(".", "_")
    assert getattr(weft.semantics, attribute) is system


def test_versions_come_with_their_documents() -> None:
    assert {"triton", "triton@3.9", "jax", "jax@0.10", "max", "max@26", "dali", "dali@2", "numpy", "torch"} <= {
        *SYSTEMS
    }
    assert get("triton") is triton


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("trition", "unknown semantics 'trition'; did you mean 'triton'?"),
        ("jax@0.9", "unknown semantics 'jax@0.9'; did you mean 'jax@0.10'?"),
        ("pytorch", "unknown semantics 'pytorch'; did you mean 'torch'?"),
        ("JAX", "unknown semantics 'JAX'; did you mean 'jax'?"),
        ("NumPy", "unknown semantics 'NumPy'; did you mean 'numpy'?"),
        ("cobol", f"unknown semantics 'cobol'; weft knows {', '.join(SYSTEMS)}"),
        (3, "a system is a name or an object of weft.semantics, found 3"),
        (None, "a system is a name or an object of weft.semantics, found None"),
    ],
)
def test_unknown_systems(name: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        get(name)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cobol", ""),
        ("jaxx", "; did you mean 'jax'?"),
        ("jax_0_9", "; did you mean 'jax_0_10'?"),
        ("explian", "; did you mean 'explain'?"),
    ],
)
def test_unknown_attributes(name: str, hint: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(weft.semantics, name)
    assert str(error.value) == f"module 'weft.semantics' has no attribute '{name}'{hint}"


def test_the_systems_are_listed_before_they_are_loaded() -> None:
    listed = subprocess.run(
        [sys.executable, "-c", "import weft.semantics as s; print(*dir(s))"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert {"triton_3_9", "jax", "jax_x32_0_10", "max_26", "dali_2", "compare", "diff", "explain", "use"} <= {*listed}


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_copied_system_is_the_system(name: str) -> None:
    system = get(name)
    assert copy.copy(system) is system
    assert copy.deepcopy(system) is system
    assert pickle.loads(pickle.dumps(system)) is system


def test_a_system_of_ones_own_is_copied_as_it_is() -> None:
    mine = replace(jax, x64=False)
    assert copy.deepcopy(mine) == mine != jax
    assert pickle.loads(pickle.dumps(mine)) == mine


@pytest.mark.parametrize("name", [n for n in SYSTEMS if not n.startswith("jax")])
def test_weak_types_are_jax_s(name: str) -> None:
    for ask in (get(name).promote, partial(get(name).result, "+")):
        with pytest.raises((PromotionError, ValueError), match=r"has no weak.*found int64 \(weak\)"):
            ask("i*", "int32")


def test_everything_exported_exists() -> None:
    assert all(getattr(weft.semantics, name) is not None for name in weft.semantics.__all__)


def test_systems_are_loaded_when_they_are_asked_for() -> None:
    program = (
        "import sys, weft.semantics as s\n"
        "assert not [m for m in sys.modules if m.startswith('weft.semantics.systems.')]\n"
        "s.get('triton')\n"
        "assert 'weft.semantics.systems.triton' in sys.modules\n"
        "assert 'weft.semantics.systems.jax' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

"""`explain`: the facts in order, literals and their conversion, refusals with their cast, where the versions disagree."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from weft import dtypes, semantics
from weft.semantics import Constant, PromotionError, Type, explain, explanation
from weft.semantics.explanation import PROMOTE, definition, describe, expression, outcome, symbol, versions
from weft.semantics.meanings import MEANINGS


def facts(text: str) -> list[str]:
    """The kind of each line below the head."""
    return [line.split()[0] for line in text.splitlines()[1:]]


def test_a_result_is_explained_from_rule_to_version() -> None:
    # The document's supremum rule: two 16-bit floats meet in the next larger type. The package says float16 (NOTES: recorded).
    text = str(explain("triton", "add", "float16", "bfloat16"))
    assert text == (
        "float16 + bfloat16 in triton (Triton as its documentation states it)\n"
        "  rule     supremum: float16 and bfloat16 are equally wide, the next larger is float32\n"
        "  convert  float16 -> float32, bfloat16 -> float32\n"
        "  compute  add in float32: x + y; integers wrap, bools add modulo 2\n"
        "  result   float32\n"
        "  DIFFERS  triton@3.9: float16, add in float16"
    )


def test_a_refusal_has_a_reason_and_a_cast() -> None:
    found = explain("triton", "+", "uint8", 300)
    assert isinstance(found.outcome, PromotionError)
    assert str(found).splitlines()[1:] == [
        "  refused  Scalar 300 is out of range for type uint8",
        "  instead  cast the other operand to tl.uint16",
        "  same     triton@3.9 agrees",
    ]


def test_a_refusal_by_the_package_alone_is_a_difference() -> None:
    # NOTES 1.4: the package refuses // of mixed signedness, the document prefers unsigned.
    last = str(explain("triton", "//", "int32", "uint32")).splitlines()[-1]
    assert last == (
        "  DIFFERS  triton@3.9: refused: '//' refuses int32 with uint32, one is signed; cast both sides with .to(tl.int32)"
    )


def test_a_literal_shows_what_it_becomes() -> None:
    # 300 = 256 + 44
    lines = explain("jax", "+", "uint8", 300).lines()
    assert ("convert", "300 -> uint8 as 44") in lines
    assert ("result", "uint8") in lines


def test_comparisons_of_the_numbers_themselves_convert_nothing() -> None:
    lines = dict(explain("dali", "<", "uint64", "int64").lines())
    assert lines["convert"] == "nothing: the numbers themselves are compared"
    assert lines["compute"] == "less: x < y"


def test_operands_that_have_the_type_are_not_converted() -> None:
    assert ("convert", "nothing: the operands have that type") in explain("jax", "*", "int8", "int8").lines()


def test_weak_results_say_so() -> None:
    assert ("result", "float64 (weak)") in explain("jax", "+", "uint64", "int64").lines()


def test_the_common_type_of_many_operands() -> None:
    found = explain("jax", PROMOTE, "uint8", "int8", "float16")
    assert found.expression == "promote(uint8, int8, float16)"
    assert "compute" not in facts(str(found))
    assert ("result", "float16") in found.lines()


def test_signs_are_unary_with_one_operand() -> None:
    assert explain("triton", "-", "int8").expression == "-int8"
    assert explain("triton", "not", "bool").expression == "not bool"


@pytest.mark.parametrize("name", semantics.SYSTEMS)
def test_every_system_explains_a_sum(name: str) -> None:
    found = explain(name, "+", "int32", "float32")
    kinds = facts(str(found))
    if isinstance(found.outcome, PromotionError):
        assert kinds[0] == "refused"
    else:
        assert kinds[0] == "rule"
        assert [k for k in kinds if k not in ("rule", "same", "DIFFERS")] == ["convert", "compute", "result"]
    assert len([k for k in kinds if k in ("same", "DIFFERS")]) == len(versions(name))


@pytest.mark.parametrize("name", semantics.SYSTEMS)
@pytest.mark.parametrize("value", [True, 3, -1, 2**40, 2.5, 1e300, 2.5j])
def test_every_system_types_or_refuses_every_literal(name: str, value: complex) -> None:
    try:
        found = semantics.get(name).literal(value)
    except PromotionError as error:
        assert error.reason
    else:
        assert isinstance(found, Type)


def test_versions_are_those_of_the_same_system() -> None:
    assert versions("triton") == ("triton@3.9",)
    assert versions("triton@3.9") == ("triton",)
    assert versions("jax-x32") == ("jax-x32@0.10",)
    assert versions("numpy") == ()


def test_expressions_are_written_as_in_python() -> None:
    i, f = dtypes.int8, dtypes.float32
    assert expression("//", (i, 3)) == "int8 // 3"
    assert expression("and", (i, f)) == "int8 and float32"
    assert expression("where", (i, f)) == "where(condition, int8, float32)"
    assert expression("minimum", (i, f)) == "minimum(int8, float32)"
    assert expression("neg", (i,)) == "-int8"
    assert expression("~", (i,)) == "~int8"
    assert expression("sqrt", (f,)) == "sqrt(float32)"


def test_symbols_are_what_users_type() -> None:
    weak = Type(dtypes.complex128, weak=True)
    written = [weak, Type(dtypes.int8, scalar=True), Constant(9, dtypes.uint8), 2.5, True, dtypes.bfloat16]
    assert [symbol(o) for o in written] == ["c*", "int8[]", "9:uint8", "2.5", "True", "bfloat16"]


def test_refusals_are_values() -> None:
    found = outcome(semantics.triton, "~", "float32")
    assert describe(found).startswith("refused: unary '~' does not take float32; ")
    assert describe(outcome(semantics.jax, PROMOTE, "i*", "i*")) == "int64 (weak)"


def test_the_condition_of_where_is_not_converted() -> None:
    found = explain("jax", "where", "bool", "int8", "int16")
    assert found.expression == "where(condition, int8, int16)"
    assert ("convert", "int8 -> int16") in found.lines()


def test_the_modules_example_is_real() -> None:
    shown = re.sub(r"^    ", "", (explanation.__doc__ or "").partition('"uint8"))\n')[2], flags=re.MULTILINE)
    assert shown.rstrip() == str(explain("triton", "/", "int8", "uint8"))


def test_every_definition_stands_alone() -> None:
    # "the same, but ..." says nothing without what it varies.
    for meaning in MEANINGS:
        text = definition(meaning)
        assert not text.startswith("the same"), meaning
        assert text.endswith(MEANINGS[meaning].removeprefix("the same, ")), meaning
    assert definition("floor_divide_checked") == (
        "the quotient rounded toward minus infinity; but a zero divisor of integers is an error"
    )


def test_the_data_holds_the_same_facts() -> None:
    found = explain("triton", "/", "int8", "uint8")
    data = found.data()
    assert (data["system"], data["expression"], data["result"], data["weak"]) == (
        "triton",
        "int8 / uint8",
        "float32",
        False,
    )
    assert data["steps"][-1]["rule"] == "division of integers"
    assert [(f["fact"], f["text"]) for f in data["explanation"]] == list(found.lines())
    refused = explain("triton", "+", "uint8", 300).data()
    assert refused["refused"] == "Scalar 300 is out of range for type uint8"
    assert refused["cast"] == "cast the other operand to tl.uint16"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (("jx", "+", "int8", "int8"), "unknown semantics 'jx'; did you mean 'jax'?"),
        (("jax", "adde", "int8", "int8"), "unknown operation 'adde'; did you mean 'add'?"),
        (("jax", "+", "unt8", "int8"), "unknown dtype 'unt8'; did you mean 'uint8'?"),
        (("jax", "%", "int8"), "'%' takes 2 operands, found 1"),
    ],
)
def test_errors(call: tuple[str, ...], message: str) -> None:
    system, op, *operands = call
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        explain(system, op, *operands)


def test_semantics_stays_light() -> None:
    """Neither the functions nor rich are loaded before they are asked for."""
    code = (
        "import sys, weft.semantics;"
        "heavy = ['rich', 'xdsl', 'llvmlite', 'weft.semantics.explanation', 'weft.semantics.difference'];"
        "print([m for m in heavy if m in sys.modules]);"
        "weft.semantics.explain, weft.semantics.diff;"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nFalse\n"

"""The differences of two systems in words, as ``print`` shows them."""

from __future__ import annotations

import io

from rich.console import Console

from weft import semantics
from weft.report.disagreement import text


def test_a_diff_is_printed_as_the_command_prints_it() -> None:
    found = semantics.diff("jax", "dali", ops=["+"])
    lines = str(found).splitlines()
    assert lines[:5] == [
        "jax (JAX as its documentation states it) and dali (DALI as its document on type promotions states it)",
        "161 of 360 cases differ",
        "    21 refused by one",
        "   120 another type",
        "    20 the same type and operation, operands converted otherwise",
    ]
    assert [" ".join(line.split()) for line in lines if "int8 with integer literals" in line] == [
        "+ uint8 with integer literals uint8 int32",
        "+ int8 with integer literals int8 int32",
    ]
    assert any(line.startswith("pairs that agree in every operation: ") for line in lines)
    assert all(line == line.rstrip() and len(line) <= 120 for line in lines)


def test_the_width_is_chosen_and_rich_prints_it_too() -> None:
    found = semantics.diff("max", "max@26", ops=["+", "-"])
    assert max(map(len, text(found, 80).splitlines())) <= 80
    out = io.StringIO()
    Console(file=out, width=120, color_system=None).print(found)
    assert [line.rstrip() for line in out.getvalue().splitlines()] == str(found).splitlines()


def test_in_one_line_a_diff_says_how_much_differs() -> None:
    assert repr(semantics.diff("jax", "dali", ops=["+"])) == "Diff(jax, dali: 161 of 360 cases differ)"
    assert repr(semantics.diff("jax", "jax", ops=["+"])).startswith("Diff(jax, jax: 0 of ")

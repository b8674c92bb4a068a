"""Two numbers of the compile time among themselves are Python's in Triton: the oracles are Python and a kernel."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.array as wa
import weft.language as tl
from weft.cli import main
from weft.semantics import PromotionError, Semantics, get
from weft.semantics.evaluate import evaluate

VERSIONS = [get("triton"), get("triton@3.9")]
NUMBERS: list[float] = [-7, 7, 2, -2, True, 2**31, -(2**31), 3, -7.5, 0.25, 2.5]
OF_ZERO = "zero to a negative power" if sys.version_info >= (3, 14) else "0.0 cannot be raised to a negative power"
"""Python's words."""
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "//": lambda x, y: x // y,
    "%": operator.mod,
    "cdiv": lambda x, y: (x + (y - 1)) // y,  # Triton 3.9 at compile time: cdiv(-7, 3) is -2, cdiv(7.5, 2) is 4.0
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@pytest.mark.parametrize("system", VERSIONS, ids=str)
@pytest.mark.parametrize("op", OPERATORS)
def test_two_numbers_are_pythons(system: Semantics, op: str) -> None:
    with wa.use_backend("reference"):
        for x in NUMBERS:
            for y in NUMBERS:
                expected = OPERATORS[op](x, y)
                expected = np.float32(expected) if isinstance(expected, float) else expected  # the type of a float
                assert wa.apply(op, x, y, semantics=system).item() == expected, f"{x} {op} {y}"


@pytest.mark.parametrize("system", VERSIONS, ids=str)
def test_powers_of_two_numbers_are_pythons(system: Semantics) -> None:
    with wa.use_backend("reference"):
        for x, y in (
            (2, 3),
            (-7, 3),
            (2, 40),
            (2, 63),
            (-3, 0),
            (True, True),
            (2, -1),
            (2.5, 2),
            (4, 0.5),
            (0, 2),
            (-2, -3),
        ):
            expected = x**y
            expected = np.float32(expected) if isinstance(expected, float) else expected
            assert wa.apply("**", x, y, semantics=system).item() == expected, f"{x} ** {y}"
    for x, y, message in (
        (2, 64, "Nonrepresentable integer 18446744073709551616: integers reach from"),
        (0, -1, f"0 ** -1: {OF_ZERO}; write the number"),
        (-1, 0.5, "-1 ** 0.5 is complex, and Triton has no complex numbers; keep two floats"),
        ("int32", 2, "'**' does not take values of the run time; write x * x"),
    ):
        with pytest.raises(PromotionError) as raised:
            system.resolve("**", x, y)
        assert str(raised.value).startswith(message)


@pytest.mark.parametrize("system", VERSIONS, ids=str)
def test_a_run_time_value_beside_a_number_is_still_truncated(system: Semantics) -> None:
    assert system.resolve("//", -7, 2).meaning == "floor_divide"
    assert system.resolve("%", -7, 2).meaning == "floor_remainder"
    for sides in (("int32", 2), (-7, "int32"), ("int32", "int32")):
        assert system.resolve("//", *sides).meaning == "truncate_divide"
        assert system.resolve("%", *sides).meaning == "truncate_remainder"
    with pytest.raises(PromotionError, match=r"^'//' does not take float32; "):
        system.resolve("//", "int32", 2.5)


@pytest.mark.parametrize("system", VERSIONS, ids=str)
@pytest.mark.parametrize("op", ["/", "//", "%"])
def test_two_numbers_do_not_divide_by_zero(system: Semantics, op: str) -> None:
    for x, zero in ((1, 0), (1.5, 0.0), (1, False)):
        with pytest.raises(PromotionError) as raised:
            system.resolve(op, x, zero)
        assert str(raised.value) == (
            f"{x!r} {op} {zero!r}: Python divides two numbers of the compile time, and refuses a divisor of zero; "
            "divide by another number, or by a run-time value"
        )


def test_a_kernel_says_the_same() -> None:
    @weft.jit
    def kernel(out: Any, x: tl.constexpr, y: tl.constexpr):
        tl.store(out, x // y)
        tl.store(out + 1, x % y)

    out = np.zeros(2, np.int32)
    kernel[(1,)](out, -7, 2)
    assert out.tolist() == [-4, 1]
    promotion = get("triton").resolve("//", -7, 2)
    assert evaluate(promotion.meaning, np.array([-7], np.int32), np.array([2], np.int32)).tolist() == [-4]


def test_the_command_says_floor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["promote", "--op", "//", "--system", "triton", "--explain", "--", "-7", "2"]) == 0
    assert "two numbers: Python computes '//' of numbers of the compile time, rounded down" in capsys.readouterr().out

"""Branches and loops that have no structured meaning, and variables they leave half-defined.

See `assert_refused` in conftest for how a case is checked.
"""

# The kernels are wrong on purpose, so lint is not asked about them, and types only for the rest.
# ruff: noqa
# pyright: basic, reportOperatorIssue=false, reportCallIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportUndefinedVariable=false, reportIndexIssue=false, reportAssignmentType=false
# pyright: reportUnboundVariable=false, reportGeneralTypeIssues=false, reportOptionalOperand=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import weft.language as tl
from weft.dtypes import float32, int32, uint8
from weft.frontend import KernelFunction, PointerArgument

jit = KernelFunction
PTR = PointerArgument(float32)
CASES: list[tuple[KernelFunction, dict[str, Any]]] = []


def refused(message: str, **expected: Any) -> Callable[[Callable[..., Any]], None]:
    """The decorated kernel does not compile."""
    return lambda kernel: CASES.append((KernelFunction(kernel), {"message": message, **expected}))


@refused(
    "'total' changes its type in the loop: int32 scalar before, float32 scalar after an iteration",
    at="total += 1.5",
    n=int32,
    hint="start 'total' as float32, or convert what the loop assigns with .to(tl.int32)",
    notes=(("int32 scalar since here", "total = 0"),),
)
def loop_dtype(n):
    total = 0
    for i in range(n):
        total += 1.5
    x = total


@refused(
    "'x' changes its type in the loop: int32 scalar before, int32[16] after an iteration",
    at="x = x + tl.arange(0, 16)",
    n=int32,
    hint="start 'x' in the shape it has in the loop, for example with tl.zeros((16,), tl.int32)",
    notes=(("int32 scalar since here", "x = 0"),),
)
def loop_shape(n):
    x = 0
    while n > tl.max(x + tl.arange(0, 16)):
        x = x + tl.arange(0, 16)


@refused(
    "'x' changes its type in the loop: None before, int32 scalar after an iteration",
    at="x = i",
    n=int32,
    hint="give 'x' the same type before and in the loop, or use two names",
    notes=(("None since here", "x = None"),),
)
def loop_none(n):
    x = None
    for i in range(n):
        x = i
    y = x


@refused(
    "this condition is always true, so the loop never ends",
    at="True",
    hint="let the condition depend on a variable that the loop changes, or leave the loop with 'break'",
)
def endless():
    while True:
        pass


@refused(
    "'x' is assigned inside a loop, which may run zero times",
    at="«x» + 1",
    n=int32,
    notes=(("assigned here", "x = i"),),
    hint="assign 'x' before the loop",
)
def defined_before_break(n):
    for i in range(n):
        x = i
        if i == 3:
            break
    y = x + 1


@refused(
    "'for' takes range, tl.range or tl.static_range, found (1, 2)",
    at="(1, 2)",
    hint="iterate over indices, for example with tl.static_range(len(...))",
)
def loop_over_tuple():
    for i in (1, 2):
        pass


@refused(
    "the stop of a range is an integer, found float32 scalar",
    at="range(x)",
    x=float32,
    hint="convert it with .to(tl.int32)",
)
def loop_float(x):
    for i in range(x):
        pass


@refused("the step of a range is not 0", at="range(0, n, 0)", n=int32, hint="use a positive or a negative step")
def loop_zero(n):
    for i in range(0, n, 0):
        pass


@refused(
    "a condition is one bool, found a tile, bool[16]",
    at="x > 3",
    hint="select elements with tl.where, or reduce the tile first, for example with tl.max",
)
def tile_condition():
    x = tl.arange(0, 16)
    if x > 3:
        pass


@refused(
    "a condition is one bool, found a tile, bool[16]",
    at="x > 3",
    hint="select elements with tl.where, or reduce the tile first, for example with tl.max",
)
def tile_conditional():
    x = tl.arange(0, 16)
    y = 1 if x > 3 else 0


@refused(
    "the sides of a conditional expression have different types: int32 scalar and 1.5",
    at="n if n > 0 else 1.5",
    n=int32,
    hint="convert one side with .to(...), or broadcast it",
)
def conditional_types(n):
    y = n if n > 0 else 1.5


@refused(
    "the sides of a conditional expression have different types: None and 0",
    at="tl.store(p, 1) if n > 0 else 0",
    p=PTR,
    n=int32,
    hint="convert one side with .to(...), or broadcast it",
)
def conditional_without_value(p, n):
    y = tl.store(p, 1) if n > 0 else 0


@refused(
    "':=' cannot be used in a side of a conditional expression",
    at="x := n",
    n=int32,
    hint="assign before it, or write 'if'",
)
def conditional_assignment(n):
    y = (x := n) if n > 0 else 0


@refused(
    "':=' cannot be used in the right side of 'and', which touches memory",
    at="x := tl.load(p)",
    p=PTR,
    n=int32,
    hint="assign before it, or write 'if'",
)
def guarded_assignment(p, n):
    y = n > 0 and (x := tl.load(p)) > 1


@refused(
    "the right side of 'or' writes memory, but its left side, bool[16], does not decide whether it should",
    at="tl.arange(0, 16) > 3 or tl.atomic_add(p, 1) > 0",
    p=PTR,
    hint="use a scalar condition, or store with a mask",
)
def tile_guards_write(p):
    y = tl.arange(0, 16) > 3 or tl.atomic_add(p, 1) > 0


@refused(
    "'and' takes bools, found None",
    at="n > 0 and tl.store(p, 1)",
    p=PTR,
    n=int32,
    hint="compare with zero (x != 0), or use & and | on integers",
)
def and_without_value(p, n):
    y = n > 0 and tl.store(p, 1)


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_refused(kernel: KernelFunction, expected: dict[str, Any], assert_refused: Callable[..., None]) -> None:
    assert_refused(kernel, **expected)

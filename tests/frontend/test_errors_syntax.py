"""Python that kernels are not written in.

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


@refused("'msg' is a string, found int32 scalar", at="assert n > 0, n", n=int32)
def asserts(n):
    assert n > 0, n


@refused("a class cannot be used in a kernel", at="class A:", hint="pass tuples, or separate arguments")
def classes():
    class A:
        pass


@refused("'del' cannot be used in a kernel", at="del x", hint="variables need no deleting; leave it out")
def deletes():
    x = 1
    del x


@refused("a dict cannot be used in a kernel", at="{1: 2}", hint="use a tuple, or separate variables")
def dicts():
    x = {1: 2}


@refused("a set cannot be used in a kernel", at="{1, 2}", hint="use a tuple")
def sets():
    x = {1, 2}


@refused(
    "a comprehension cannot be used in a kernel",
    at="{i for i in (1, 2)}",
    hint="write a 'for' loop over tl.static_range, or compute with whole tiles",
)
def comprehensions():
    x = {i for i in (1, 2)}


@refused(
    "nested comprehensions are not supported",
    at="[i + j for i in (1, 2) for j in (1, 2)]",
    hint="write a loop over tl.static_range",
)
def nested_comprehensions():
    x = [i + j for i in (1, 2) for j in (1, 2)]


@refused("only tuple comprehensions are supported, found int32 scalar", at="[i for i in «n»]", n=int32)
def comprehension_of_a_number(n):
    x = [i for i in n]


@refused(
    "the 'if' of a comprehension is known at compile time, found bool scalar",
    at="n > i",
    n=int32,
    hint="mark the parameter as 'n: tl.constexpr'",
)
def comprehension_under_a_condition(n):
    x = [i for i in (1, 2) if n > i]


@refused(
    "a lambda cannot be used in a kernel",
    at="lambda a: a",
    hint="define a function beside the kernel and decorate it with @weft.jit",
)
def lambdas():
    f = lambda a: a


@refused(
    "a nested function cannot be used in a kernel",
    at="def inner():",
    hint="define it beside the kernel and decorate it with @weft.jit",
)
def nested():
    def inner():
        pass


@refused("'import' cannot be used in a kernel", at="import math", hint="import at the top of the file")
def imports():
    import math


@refused(
    "'global' cannot be used in a kernel",
    at="global PLAIN",
    hint="pass the value as an argument, and store results through pointers",
)
def globals_():
    global PLAIN


@refused(
    "'raise' cannot be used in a kernel",
    at="raise ValueError",
    hint="use tl.static_assert for what is known at compile time; nothing can be raised at run time",
)
def raises():
    raise ValueError


@refused("'try' cannot be used in a kernel", at="try:", hint="nothing can be raised at run time; check with 'if'")
def tries():
    try:
        pass
    finally:
        pass


@refused("'with' cannot be used in a kernel", at="with x:", hint="leave it out")
def withs():
    x = 1
    with x:
        pass


@refused("'match' cannot be used in a kernel", at="match 1:", hint="use 'if' and 'elif'")
def matches():
    match 1:
        case _:
            pass


@refused("'yield' cannot be used in a kernel", at="yield 1", hint="store results through pointers")
def yields():
    yield 1


@refused("'for' with 'else' cannot be used in a kernel", at="x = 1", n=int32)
def for_else(n):
    for i in range(n):
        pass
    else:
        x = 1


@refused("'while' with 'else' cannot be used in a kernel", at="x = 1", n=int32)
def while_else(n):
    while n > 0:
        pass
    else:
        x = 1


@refused("a literal of type complex cannot be used in a kernel", at="2j")
def complex_literal():
    x = 2j


@refused("arguments cannot be unpacked with '**' in a kernel", at="tl.arange(**x)", hint="pass them by name")
def keyword_unpacking():
    x = (0, 16)
    tl.arange(**x)


@refused("only variables can be assigned in place", at="x[0] += 1", hint="write to memory with tl.store")
def augmented_element():
    x = tl.arange(0, 16)
    x[0] += 1


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_refused(kernel: KernelFunction, expected: dict[str, Any], assert_refused: Callable[..., None]) -> None:
    assert_refused(kernel, **expected)

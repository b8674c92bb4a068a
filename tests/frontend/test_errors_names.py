"""Names that mean nothing, and values needed earlier than they are known.

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
PLAIN = 5
CASES: list[tuple[KernelFunction, dict[str, Any]]] = []


def refused(message: str, **expected: Any) -> Callable[[Callable[..., Any]], None]:
    """The decorated kernel does not compile."""
    return lambda kernel: CASES.append((KernelFunction(kernel), {"message": message, **expected}))


@refused(
    "'end' must be known at compile time, found int32 scalar",
    at="tl.arange(0, «n»)",
    n=int32,
    hint="mark the parameter as 'n: tl.constexpr'",
)
def arange_parameter(n):
    x = tl.arange(0, n)


@refused(
    "'end' must be known at compile time, found int32 scalar",
    at="half * 2",
    N=16,
    hint="mark the variable as 'half: tl.constexpr = ...'",
)
def arange_local(N: tl.constexpr):
    half = N // 2
    x = tl.arange(0, half * 2)


@refused(
    "'end' must be known at compile time, found int32 scalar",
    at="arange(0, «i»)",
    hint="loop with tl.static_range, whose variable is known at compile time",
)
def arange_loop_variable():
    for i in range(16):
        x = tl.arange(0, i)


@refused(
    "'shape' must be known at compile time, found int32 scalar",
    at="(16, tl.program_id(0))",
    hint="compute it from literals and tl.constexpr values only",
)
def zeros_program():
    x = tl.zeros((16, tl.program_id(0)), tl.float32)


@refused(
    "a constexpr is known at compile time, found int32 scalar",
    at="n + 1",
    n=int32,
    hint="mark the parameter as 'n: tl.constexpr'",
)
def annotated_run_time(n):
    m: tl.constexpr = n + 1


@refused(
    "'arg1' must be known at compile time, found int32 scalar",
    at="static_range(«n»)",
    n=int32,
    hint="mark the parameter as 'n: tl.constexpr'",
)
def unrolled_run_time(n):
    for i in tl.static_range(n):
        pass


@refused(
    "an index into (1, 2) must be known at compile time, found int32 scalar",
    at="pair[n]",
    n=int32,
    hint="mark the parameter as 'n: tl.constexpr'",
)
def tuple_index(n):
    pair: tl.constexpr = (1, 2)
    x = pair[n]


@refused("the name 'offsett' is not defined", at="offsett", hint="did you mean 'offset'?")
def misspelled():
    offset = tl.arange(0, 16)
    x = offsett + 1


@refused("the name 'zzz' is not defined", at="zzz")
def unknown():
    x = zzz


@refused("'later' is used before it is assigned", at="x = «later» + 1")
def too_early():
    x = later + 1
    later = 2


@refused("'PLAIN' is used before it is assigned", at="x = «PLAIN»")
def local_hides_global():
    x = PLAIN
    PLAIN = 3


@refused("the module weft.language has no 'aranje'", at="tl.aranje", hint="did you mean 'arange'?")
def misspelled_op():
    x = tl.aranje(0, 16)


@refused("tiles have no attribute 'summ'", at="x.summ", hint="did you mean 'sum'?")
def misspelled_method():
    x = tl.arange(0, 16)
    y = x.summ()


@refused("the dtype int32 has no attribute 'is_floatin'", at="x.dtype.is_floatin", hint="did you mean 'is_floating'?")
def misspelled_dtype_attribute():
    x = tl.arange(0, 16)
    tl.static_assert(not x.dtype.is_floatin())


@refused(
    "'x' is assigned in one branch of an 'if' only",
    at="y = «x» + 1",
    n=int32,
    hint="assign 'x' before the 'if', or in both branches",
    notes=(("assigned here, under a condition known only at run time", "x = 1"),),
)
def one_branch(n):
    if n > 0:
        x = 1
    y = x + 1


@refused(
    "'x' has different types after an 'if': int32 scalar and float32 scalar",
    at="y = «x» + 1",
    n=int32,
    hint="give it the same dtype and shape in both branches, or use two names",
    notes=(("int32 scalar here", "x = 1"), ("float32 scalar here", "x = 1.5")),
)
def two_types(n):
    if n > 0:
        x = 1
    else:
        x = 1.5
    y = x + 1


@refused(
    "'x' is assigned inside a loop, which may run zero times",
    at="y = «x»",
    n=int32,
    hint="assign 'x' before the loop",
    notes=(("assigned here", "x = i"),),
)
def only_in_loop(n):
    for i in range(n):
        x = i
    y = x


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_refused(kernel: KernelFunction, expected: dict[str, Any], assert_refused: Callable[..., None]) -> None:
    assert_refused(kernel, **expected)

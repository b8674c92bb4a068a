"""What ``tl.meaning`` refuses, and what a kernel under another system's semantics refuses.

See `assert_refused` in conftest for how a case is checked.
"""

# The kernels are wrong on purpose, so lint is not asked about them, and types only for the rest.
# ruff: noqa
# pyright: basic, reportOperatorIssue=false, reportCallIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import weft.language as tl
from weft import dtypes, semantics
from weft.dtypes import bfloat16, float32, int8, int32, uint8
from weft.frontend import KernelFunction
from weft.semantics.core import Promotion
from weft.semantics.systems.triton import TritonSemantics

CASES: list[tuple[KernelFunction, dict[str, Any]]] = []


def refused(message: str, under: str | None = None, **expected: Any) -> Callable[[Callable[..., Any]], None]:
    """The decorated kernel does not compile under a semantics."""
    system = None if under is None else semantics.get(under)
    return lambda kernel: CASES.append((KernelFunction(kernel, system), {"message": message, **expected}))


@refused("there is no meaning 'floor_divid'", at='"floor_divid"', x=int32, hint="did you mean 'floor_divide'?")
def unknown_meaning(x):
    tl.meaning("floor_divid", x, x)


@refused("'name' is the name of a meaning, found int32 scalar", at="«x», x)", x=int32)
def no_name(x):
    tl.meaning(x, x)


@refused("'sum' is no function of single elements", at='"sum"', x=int32, hint="use tl.sum")
def no_elementwise_meaning(x):
    tl.meaning("sum", x)


@refused("'matmul' is no function of single elements", at='"matmul"', x=int32, hint="use tl.dot")
def no_matmul(x):
    tl.meaning("matmul", x, x)


@refused("'add' takes 2 operands, found 3", at='"add", «x», x, x', x=int32)
def too_many_operands(x):
    tl.meaning("add", x, x, x)


@refused("'neg' takes 1 operand, found 0", at='tl.meaning("neg")')
def no_operands():
    tl.meaning("neg")


@refused(
    "'add' takes operands of one dtype, found int32 scalar and int8 scalar",
    at="«x», y)",
    x=int32,
    y=int8,
    hint='convert one, for example with tl.meaning("convert", x, tl.int8)',
)
def two_dtypes(x, y):
    tl.meaning("add", x, y)


@refused(
    "'less' takes operands of one dtype, found int32 scalar and float32 scalar",
    at="«x», y)",
    x=int32,
    y=float32,
    hint='convert one, for example with tl.meaning("convert", x, tl.float32)',
)
def compared_with_a_float(x, y):
    tl.meaning("less", x, y)


@refused(
    "'and' takes integers and bools, found float32",
    at='tl.meaning("and", x, x)',
    x=float32,
    hint="convert the operands",
)
def bits_of_floats(x):
    tl.meaning("and", x, x)


@refused("'atan2' takes floats, found int32", at='tl.meaning("atan2", x, x)', x=int32, hint="convert the operands")
def angle_of_integers(x):
    tl.meaning("atan2", x, x)


@refused("300 is no number of uint8", at="«x», 300", x=uint8)
def number_out_of_range(x):
    tl.meaning("add", x, 300)


@refused("'add' needs a tile, found (1, 2)", at="«1», 2", hint="make one with tl.full")
def only_numbers():
    tl.meaning("add", 1, 2)


@refused("'convert' takes a tile and a dtype, found (int32 scalar,)", at="«x»)", x=int32)
def conversion_to_nothing(x):
    tl.meaning("convert", x)


@refused("'operands' is a dtype such as tl.float32, found 8", at="«x», 8", x=int32)
def conversion_to_a_number(x):
    tl.meaning("convert", x, 8)


@refused(
    "dali has no dtype bfloat16",
    under="dali",
    at="x + x",
    x=bfloat16,
    hint="convert it to one of " + ", ".join(map(str, semantics.get("dali").dtypes)),
)
def dtype_of_another_system(x):
    y = x + x


@refused(
    "the Python int 9223372036854775808 overflows int64, the type it is parsed as",
    under="jax",
    at="x + 2**63",
    x=int32,
    hint="write jnp.uint64(9223372036854775808)",
)
def literal_beyond_int64(x):
    y = x + 2**63


@refused(
    "MAX has no '<<'",
    under="max",
    at="x << x",
    x=int32,
    hint="multiply by 2**n",
)
def operator_that_max_lacks(x):
    y = x << x


@refused("max has no operation 'clamp'", under="max", at="tl.clamp(x, x, x)", x=float32)
def function_that_max_lacks(x):
    y = tl.clamp(x, x, x)


@refused(
    "'**' takes tiles and numbers, found None", under="jax", at="x**None", x=int32, hint="test for None with 'is None'"
)
def power_of_none(x):
    y = x**None


@refused(
    "'**' does not take values of the run time, found int32 scalar and 2",
    at="x**2",
    x=int32,
    hint="write x * x, or tl.exp2(tl.log2(x) * y)",
)
def power_in_triton(x):
    y = x**2


@refused(
    "'a' changes its type in the loop: int64 scalar (weak) before, int64 scalar after an iteration",
    under="jax",
    at="a = a + x.to(tl.int64)",
    x=int8,
    notes=[("int64 scalar (weak) since here", "a = 0")],
    hint="start 'a' in a dtype that is chosen, for example with tl.full((), ..., tl.int64)",
)
def weak_becomes_strong(x):
    a = 0
    for i in range(4):
        a = a + x.to(tl.int64)
    y = a


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=[kernel.name for kernel, _ in CASES])
def test_refused(kernel: KernelFunction, expected: dict[str, Any], assert_refused: Callable[..., None]) -> None:
    assert_refused(kernel, **expected)


class Complex(TritonSemantics):
    """Gives what kernels do not have."""

    def binary(self, op: str, lhs: Any, rhs: Any) -> Promotion:
        return replace(super().binary(op, lhs, rhs), operands=dtypes.complex64, result=dtypes.complex64)


def test_a_promotion_to_what_kernels_lack(assert_refused: Callable[..., None]) -> None:
    def kernel(x):
        y = x + x

    known = semantics.triton
    own = KernelFunction(kernel, Complex("complex", known.title, known.rules))
    message = "complex computes '+' in complex64, which kernels do not have"
    assert_refused(own, message=message, at="x + x", x=float32)

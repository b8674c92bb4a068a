"""Operations that dtypes or pointers do not have.

See `assert_refused` in conftest for how a case is checked.
"""

# The kernels are wrong on purpose, so lint is not asked about them, and types only for the rest.
# ruff: noqa
# pyright: basic, reportOperatorIssue=false, reportCallIssue=false, reportAttributeAccessIssue=false, reportArgumentType=false
# pyright: reportUndefinedVariable=false, reportIndexIssue=false, reportAssignmentType=false
# pyright: reportUnboundVariable=false, reportGeneralTypeIssues=false, reportOptionalOperand=false

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

import weft.language as tl
from weft.dtypes import float32, int32, uint8
from weft.frontend import KernelFunction, PointerArgument

jit = KernelFunction
PTR = PointerArgument(float32)
CASES: list[tuple[KernelFunction, dict[str, Any]]] = []
BY_ZERO = "division by zero" if sys.version_info >= (3, 14) else "integer division or modulo by zero"
"""Python's words."""


def refused(message: str, **expected: Any) -> Callable[[Callable[..., Any]], None]:
    """The decorated kernel does not compile."""
    return lambda kernel: CASES.append((KernelFunction(kernel), {"message": message, **expected}))


@refused(
    "'&' does not take float32",
    at="x & x",
    x=float32,
    hint="convert with .to(tl.int32) or reinterpret with .to(tl.int32, bitcast=True)",
)
def bits_of_float(x):
    y = x & x


@refused("Scalar 300 is out of range for type uint8", at="x + 300", x=uint8, hint="cast the other operand to tl.uint16")
def literal_range(x):
    y = x + 300


@refused("'x' is a tile of floats, found int32[16]", at="tl.arange(0, 16)", hint="convert it with .to(tl.float32)")
def exp_of_int():
    x = tl.exp(tl.arange(0, 16))


@refused(
    "'x' is a tile of floats, found int32 scalar",
    at="return «n».sqrt()",
    n=int32,
    hint="convert it with .to(tl.float32)",
)
def method_of_int(n):
    return n.sqrt()


@refused(
    "'and' takes bools, found int32 scalar",
    at="n and m",
    n=int32,
    m=int32,
    hint="compare with zero (x != 0), or use & and | on integers",
)
def and_of_int(n, m):
    if n and m:
        pass


@refused("unary 'not' does not take int32", at="not n", n=int32, hint="compare with zero: x == 0")
def not_of_int(n):
    x = not n


@refused(
    "bitcast keeps the number of bits, but float32 has 32 and int64 has 64",
    at="tl.int64",
    x=float32,
    hint="convert the value instead, without bitcast=True",
)
def bitcast_width(x):
    y = x.to(tl.int64, bitcast=True)


@refused("'dtype' is a dtype such as tl.float32, found 32", at="32", x=float32)
def cast_to_number(x):
    y = x.to(32)


@refused("'fp_downcast_rounding' is one of 'rtne', 'rtz', found 'rtu'", at='"rtu"', x=float32)
def rounding_mode(x):
    y = x.to(tl.float16, fp_downcast_rounding="rtu")


@refused("256 is out of range for uint8, 0 to 255", at="256")
def full_range():
    x = tl.full((16,), 256, tl.uint8)


@refused(
    "tl.dot multiplies matrices of one dtype, found float16 and bfloat16",
    at="tl.dot(a, b)",
    hint="convert one with .to(tl.float16)",
)
def dot_dtypes():
    a = tl.zeros((16, 16), tl.float16)
    b = tl.zeros((16, 16), tl.bfloat16)
    c = tl.dot(a, b)


@refused("products of float16 are summed in float32, which does not give int32", at="tl.int32")
def dot_result():
    a = tl.zeros((16, 16), tl.float16)
    c = tl.dot(a, a, out_dtype=tl.int32)


@refused(
    "'**' does not take values of the run time, found float32 scalar and 2",
    at="x**2",
    x=float32,
    hint="write x * x, or tl.exp2(tl.log2(x) * y)",
)
def power(x):
    y = x**2


@refused(f"'//' of the compile-time values 1 and 0: {BY_ZERO}", at="1 // 0")
def compile_time_division():
    x: tl.constexpr = 1 // 0


@refused("'@' cannot be used in a kernel", at="a @ a", hint="use tl.dot")
def matmul_operator():
    a = tl.zeros((16, 16), tl.float16)
    b = a @ a


@refused("'==' takes tiles and numbers, found None", at="x == None", x=float32, hint="test for None with 'is None'")
def equals_none(x):
    y = x == None


@refused(
    "'pointer' is a pointer or a tile of pointers, found int32[16]",
    at="tl.arange(0, 16)",
    hint="add offsets to a pointer argument: ptr + offsets",
)
def load_number():
    x = tl.load(tl.arange(0, 16))


@refused(
    "'mask' is a tile of bools, found int32[16]",
    at="mask=«i»",
    p=PTR,
    hint="compare to get bools, for example offsets < n",
)
def mask_of_int(p):
    i = tl.arange(0, 16)
    x = tl.load(p + i, mask=i)


@refused("'other' is what masked-off elements get, so it needs a mask", at="0.0", p=PTR, hint="pass mask=")
def other_without_mask(p):
    x = tl.load(p, other=0.0)


@refused(
    "'*' of pointer<float32> scalar and 4: a pointer takes + or - an integer, which counts elements", at="p * 4", p=PTR
)
def pointer_times(p):
    x = tl.load(p * 4)


@refused(
    "a pointer is moved by whole elements, found an offset of dtype float32",
    at="p + x",
    p=PTR,
    x=float32,
    hint="convert the offset with .to(tl.int32) or .to(tl.int64)",
)
def pointer_plus_float(p, x):
    y = tl.load(p + x)


@refused(
    "a pointer cannot become float32 by conversion",
    at="p.to(tl.float32)",
    p=PTR,
    hint="convert with bitcast: .to(tl.int64, bitcast=True), or load what it points to first",
)
def pointer_to_float(p):
    x = p.to(tl.float32)


@refused(
    "elements of tiles cannot be assigned",
    at="x[0] = 1",
    hint="make a new tile with tl.where, or write to memory with tl.store",
)
def assign_element():
    x = tl.arange(0, 16)
    x[0] = 1


@refused(
    "a kernel returns nothing, found 1",
    at="return 1",
    hint="pass a pointer as an argument and write the result with tl.store",
)
def kernel_returns():
    return 1


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_refused(kernel: KernelFunction, expected: dict[str, Any], assert_refused: Callable[..., None]) -> None:
    assert_refused(kernel, **expected)

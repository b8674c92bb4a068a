"""What block pointers refuse.

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
from weft.dtypes import float32, int32, int64
from weft.frontend import KernelFunction, PointerArgument

PTR = PointerArgument(float32)
INTS = PointerArgument(int32)
CASES: list[tuple[KernelFunction, dict[str, Any]]] = []


def refused(message: str, **expected: Any) -> Callable[[Callable[..., Any]], None]:
    """The decorated kernel does not compile."""
    return lambda kernel: CASES.append((KernelFunction(kernel), {"message": message, **expected}))


@refused(
    "'base' is one pointer, found pointer<float32>[8]",
    at="«p + tl.arange(0, 8)», (8,)",
    hint="move a block pointer with tl.advance",
    p=PTR,
)
def base_is_a_tile(p):
    a = tl.make_block_ptr(p + tl.arange(0, 8), (8,), (1,), (0,), (8,), (0,))


@refused(
    "'base' is one pointer, found block pointer to float32[8]",
    at="tl.make_block_ptr(«a», (8,)",
    hint="move a block pointer with tl.advance",
    p=PTR,
)
def base_is_a_block(p):
    a = tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,))
    b = tl.make_block_ptr(a, (8,), (1,), (0,), (8,), (0,))


@refused("'shape' has 1 entries, but 'block_shape' has 2 dimensions", at="«(n,)», (n, 1)", p=PTR, n=int32)
def short_shape(p, n):
    a = tl.make_block_ptr(p, (n,), (n, 1), (0, 0), (8, 8), (1, 0))


@refused("'order' lists each dimension once, found (1, 1)", at="«(1, 1)»)", hint="for example (1, 0)", p=PTR)
def order_twice(p):
    a = tl.make_block_ptr(p, (8, 8), (8, 1), (0, 0), (8, 8), (1, 1))


@refused(
    "'offsets' holds integers of 32 bits, found int64 scalar",
    at="«(n,)», (8,)",
    hint="add a .to(tl.int32), or move the base pointer instead",
    p=PTR,
    n=int64,
)
def wide_offsets(p, n):
    a = tl.make_block_ptr(p, (8,), (1,), (n,), (8,), (0,))


@refused("'offsets' holds 2147483648, which int32 does not hold", at="«(1 << 31,)»", p=PTR)
def far_offsets(p):
    a = tl.make_block_ptr(p, (8,), (1,), (1 << 31,), (8,), (0,))


@refused("'strides' holds integers, one for each dimension, found 1.0", at="«(1.0,)»", p=PTR)
def float_strides(p):
    a = tl.make_block_ptr(p, (8,), (1.0,), (0,), (8,), (0,))


@refused(
    "sizes of tiles are powers of two, but a tile has 6 elements",
    at="tl.make_block_ptr(p, (8,), (1,), (0,), (6,), (0,))",
    hint="use 8 and mask the elements beyond 6",
    p=PTR,
)
def odd_block(p):
    a = tl.make_block_ptr(p, (8,), (1,), (0,), (6,), (0,))


@refused(
    "'base' is a block pointer, found pointer<float32> scalar",
    at="«p», (1,)",
    hint="add offsets to other pointers",
    p=PTR,
)
def advance_a_pointer(p):
    a = tl.advance(p, (1,))


@refused("'offsets' has 2 entries, but the block has 1 dimensions", at="«(1, 0)»)", p=PTR)
def advance_two(p):
    a = tl.advance(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), (1, 0))


@refused(
    "'mask' cannot be given for a block pointer",
    at="mask=«b»",
    hint="name the dimensions to check with boundary_check=",
    p=PTR,
    b=tl.int1,
)
def masked(p, b):
    x = tl.load(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), mask=b)


@refused("'boundary_check' lists dimensions of the block, 0 to 0, found 1", at="boundary_check=«(1,)»", p=PTR)
def check_beyond(p):
    x = tl.load(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), boundary_check=(1,))


@refused("'boundary_check' lists a dimension twice, found (0, 0)", at="boundary_check=«(0, 0)»", p=PTR)
def check_twice(p):
    x = tl.load(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), boundary_check=(0, 0))


@refused(
    "padding with NaN needs a block of floats, found block pointer to int32[8]",
    at='padding_option=«"nan"»',
    hint="pad with 'zero'",
    p=INTS,
)
def nan_of_integers(p):
    x = tl.load(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), boundary_check=(0,), padding_option="nan")


@refused("'padding_option' is one of 'zero', 'nan', found 'inf'", at='padding_option=«"inf"»', p=PTR)
def other_padding(p):
    x = tl.load(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), boundary_check=(0,), padding_option="inf")


@refused("'value' has shape (4,), but the block has (8,)", at="«tl.arange(0, 4)»", p=INTS)
def store_of_another_shape(p):
    tl.store(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), tl.arange(0, 4))


@refused(
    "'value' is of int32, but the block is of float32",
    at="«tl.arange(0, 8)»",
    hint="convert it with .to(tl.float32)",
    p=PTR,
)
def store_of_another_dtype(p):
    tl.store(tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)), tl.arange(0, 8))


@refused(
    "'boundary_check' is for block pointers, which know the shape of their array",
    at="boundary_check=«(0,)»",
    hint="pass mask=, or make a block pointer with tl.make_block_ptr",
    p=PTR,
)
def check_of_a_pointer(p):
    x = tl.load(p, boundary_check=(0,))


@refused(
    "block pointer to float32[8] has no attribute 'shap'",
    at="tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)).shap",
    p=PTR,
)
def unknown_attribute(p):
    x = tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)).shap


@refused(
    "'+' takes tiles and numbers, found block pointer to float32[8]",
    at="tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)) + 1",
    p=PTR,
)
def sum_of_a_block(p):
    x = tl.make_block_ptr(p, (8,), (1,), (0,), (8,), (0,)) + 1


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_refused(kernel: KernelFunction, expected: dict[str, Any], assert_refused: Callable[..., None]) -> None:
    assert_refused(kernel, **expected)

"""What tensor descriptors refuse.

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


@refused("'base' is one pointer, found pointer<float32>[8]", at="«p + tl.arange(0, 8)», [8]", p=PTR)
def base_is_a_tile(p):
    d = tl.make_tensor_descriptor(p + tl.arange(0, 8), [8], [1], [8])


@refused("a descriptor has 1 to 5 dimensions, found 6", at="«(8, 8, 8, 8, 8, 8)», (8, 8, 8, 8, 8, 1)", p=PTR)
def six_dimensions(p):
    d = tl.make_tensor_descriptor(p, (8, 8, 8, 8, 8, 8), (8, 8, 8, 8, 8, 1), (8, 8, 8, 8, 8, 8))


@refused("'strides' has 1 entries, but 'shape' has 2 dimensions", at="«[1]», [8, 8]", p=PTR)
def short_strides(p):
    d = tl.make_tensor_descriptor(p, [8, 8], [1], [8, 8])


@refused(
    "a descriptor's block has at least 16 bytes in its last dimension, found 2 * 4 = 8 bytes", at="«[8, 2]»)", p=PTR
)
def narrow_block(p):
    d = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [8, 2])


@refused(
    "the last stride of a descriptor is 1 at compile time, found int32 scalar",
    at="«[8, n]», [8, 8]",
    hint="exchange the dimensions, or use pointers",
    p=PTR,
    n=int32,
)
def last_stride(p, n):
    d = tl.make_tensor_descriptor(p, [8, 8], [8, n], [8, 8])


@refused("the strides of a descriptor are multiples of 16 bytes, found 6 * 4 = 24 bytes", at="«[6, 1]», [8, 8]", p=PTR)
def odd_stride(p):
    d = tl.make_tensor_descriptor(p, [8, 8], [6, 1], [8, 8])


@refused(
    "padding with NaN needs an array of floats, found pointer<int32> scalar",
    at='padding_option=«"nan"»',
    hint="pad with 'zero'",
    p=INTS,
)
def nan_of_integers(p):
    d = tl.make_tensor_descriptor(p, [8], [1], [8], padding_option="nan")


@refused(
    "'offsets' holds integers of 32 bits, found int64 scalar",
    at="load(«[n]»)",
    hint="add a .to(tl.int32), or move the base pointer instead",
    p=PTR,
    n=int64,
)
def wide_offset(p, n):
    x = tl.make_tensor_descriptor(p, [8], [1], [8]).load([n])


@refused("'offsets' has 2 entries, but the descriptor has 1 dimensions", at="load(«[0, 0]»)", p=PTR)
def two_offsets(p):
    x = tl.make_tensor_descriptor(p, [8], [1], [8]).load([0, 0])


@refused(
    "'desc' is a tensor descriptor, found pointer<float32> scalar",
    at="«p», [0]",
    hint="make it with tl.make_tensor_descriptor, or pass a weft.TensorDescriptor",
    p=PTR,
)
def load_of_a_pointer(p):
    x = tl.load_tensor_descriptor(p, [0])


@refused(
    "'value' has the shape (8,) for tensor descriptor of float32[8], found int32[4]", at="[0], «tl.arange(0, 4)»", p=PTR
)
def store_of_another_shape(p):
    tl.make_tensor_descriptor(p, [8], [1], [8]).store([0], tl.arange(0, 4))


@refused(
    "tl.tensor_descriptor.atomic_xor does not take float32",
    at="«tl.make_tensor_descriptor(p, [8], [1], [8])».atomic_xor",
    hint="it takes int32, uint32, int64, uint64",
    p=PTR,
)
def xor_of_floats(p):
    tl.make_tensor_descriptor(p, [8], [1], [8]).atomic_xor([0], tl.arange(0, 8))


@refused(
    "'value' is of float32, but the descriptor is of int32",
    at="[0], «tl.zeros((8,), tl.float32)»",
    hint="convert it with .to(tl.int32)",
    p=INTS,
)
def sum_of_another_dtype(p):
    tl.make_tensor_descriptor(p, [8], [1], [8]).atomic_add([0], tl.zeros((8,), tl.float32))


@refused(
    "rows are taken through a descriptor of one row, found tensor descriptor of float32[2, 8]",
    at="«tl.make_tensor_descriptor(p, [8, 8], [8, 1], [2, 8])».gather",
    p=PTR,
)
def rows_of_two(p):
    x = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [2, 8]).gather(tl.arange(0, 8), 0)


@refused(
    "rows of float32 are taken at least 8 at a time and 8 columns wide, found 4 rows of 8",
    at="gather(«tl.arange(0, 4)»",
    p=PTR,
)
def few_rows(p):
    x = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 8]).gather(tl.arange(0, 4), 0)


@refused(
    "'x_offsets' is a tile of one dimension of int16 or int32, found int64[8]",
    at="gather(«tl.arange(0, 8).to(tl.int64)»",
    p=PTR,
)
def wide_rows(p):
    x = tl.make_tensor_descriptor(p, [8, 8], [8, 1], [1, 8]).gather(tl.arange(0, 8).to(tl.int64), 0)


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_refused(kernel: KernelFunction, expected: dict[str, Any], assert_refused: Callable[..., None]) -> None:
    assert_refused(kernel, **expected)

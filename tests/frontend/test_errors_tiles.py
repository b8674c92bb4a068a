"""Tiles of sizes and shapes that the language refuses.

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
    "sizes of tiles are powers of two, but a tile has 100 elements",
    at="tl.arange(0, 100)",
    hint="use 128 and mask the elements beyond 100",
)
def arange_size():
    x = tl.arange(0, 100)


@refused("tl.arange needs an end beyond its start, found 8 to 8", at="8", n=8)
def arange_empty(n: tl.constexpr):
    x = tl.arange(n, 8)


@refused(
    "sizes of tiles are powers of two, but dimension 1 of shape (16, 12) has 12 elements",
    at="tl.zeros((16, 12), tl.float32)",
    hint="use 16 and mask the elements beyond 12",
)
def zeros_size():
    x = tl.zeros((16, 12), tl.float32)


@refused(
    "sizes of tiles are powers of two, but a tile has 0 elements",
    at="tl.full((0,), 1, tl.int32)",
    hint="the smallest size is 1",
)
def full_size():
    x = tl.full((0,), 1, tl.int32)


@refused(
    "sizes of tiles are powers of two, but dimension 0 of shape (3, 4) has 3 elements",
    at="tl.reshape(tl.arange(0, 16), (3, 4))",
    hint="use 4 and mask the elements beyond 3",
)
def reshape_size():
    x = tl.reshape(tl.arange(0, 16), (3, 4))


@refused(
    "a tile of shape (2048, 1024) has 2097152 elements, more than the 1048576 that tiles may have",
    at="tl.zeros((2048, 1024), tl.float32)",
    hint="let each program take a smaller tile, or loop over parts of it",
)
def too_large():
    x = tl.zeros((2048, 1024), tl.float32)


@refused(
    "a tile of shape (2048, 1024) has 2097152 elements, more than the 1048576 that tiles may have",
    at="tl.arange(0, 2048)[:, None] + tl.arange(0, 1024)[None, :]",
    hint="let each program take a smaller tile, or loop over parts of it",
)
def too_large_broadcast():
    x = tl.arange(0, 2048)[:, None] + tl.arange(0, 1024)[None, :]


@refused(
    "shapes (64,) and (128,) do not broadcast: dimension 0 has 64 and 128 elements",
    at="a + b",
    hint="make the sizes equal, or 1 where the tile should be repeated",
)
def broadcast_sizes():
    a = tl.arange(0, 64)
    b = tl.arange(0, 128)
    c = a + b


@refused(
    "shapes (8, 4) and (8,) do not broadcast: dimension 1 has 4 and 8 elements",
    at="tl.where(a > 0, a, b)",
    hint="shapes are aligned at the last dimension: add one with [:, None] or [None, :] where it belongs",
)
def where_shapes():
    a = tl.zeros((8, 4), tl.float32)
    b = tl.arange(0, 8)
    c = tl.where(a > 0, a, b)


@refused(
    "tl.dot of shapes (16, 32) and (16, 32): the inner sizes 32 and 16 differ",
    at="tl.dot(a, a)",
    hint="transpose an operand with tl.trans, or load it the other way round",
)
def dot_shapes():
    a = tl.zeros((16, 32), tl.float16)
    c = tl.dot(a, a)


@refused("'acc' has shape (16, 32), but the product has (16, 16)", at="#2 total")
def dot_accumulator_shape():
    a = tl.zeros((16, 16), tl.float16)
    total = tl.zeros((16, 32), tl.float32)
    c = tl.dot(a, a, total)


@refused(
    "'value' has shape (16,), which does not broadcast to the pointers' (32,)",
    at="tl.arange(0, 16)",
    p=PTR,
    hint="give pointers and values the same shape",
)
def store_shape(p):
    tl.store(p + tl.arange(0, 32), tl.arange(0, 16))


@refused(
    "'value' has shape (16,), which does not broadcast to the pointers' (4, 16)",
    at="tl.full((16,), 3, tl.int32)",
    p=PTR,
    hint="give it 2 dimensions: insert them with [:, None] or [None, :] where they belong",
)
def store_rank(p):
    q = p + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(q, tl.full((16,), 3, tl.int32))


@refused(
    "'mask' has shape (16,), which does not broadcast to the pointers' (4, 16)",
    at="tl.arange(0, 16) < 5",
    p=PTR,
    hint="give it 2 dimensions: insert them with [:, None] or [None, :] where they belong",
)
def store_mask_rank(p):
    q = p + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(q, 0, mask=tl.arange(0, 16) < 5)


@refused(
    "'mask' has shape (4, 16), which does not broadcast to the pointers' (4, 1)",
    at="tl.arange(0, 16)[None, :] < tl.arange(0, 4)[:, None]",
    p=PTR,
    hint="give pointers and values the same shape",
)
def store_mask_grows(p):
    q = p + tl.arange(0, 4)[:, None]
    tl.store(q, 0, mask=tl.arange(0, 16)[None, :] < tl.arange(0, 4)[:, None])


@refused(
    "'val' has shape (16,), which does not broadcast to the pointers' (4, 16)",
    at="tl.full((16,), 1.0, tl.float32)",
    p=PTR,
    hint="give it 2 dimensions: insert them with [:, None] or [None, :] where they belong",
)
def atomic_rank(p):
    q = p + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.atomic_add(q, tl.full((16,), 1.0, tl.float32))


@refused(
    "'val' has shape (4, 4, 16), which does not broadcast to the pointers' (4, 16)",
    at="tl.zeros((4, 4, 16), tl.float32)",
    p=PTR,
    hint="give pointers and values the same shape",
)
def atomic_more_dimensions(p):
    q = p + tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.atomic_add(q, tl.zeros((4, 4, 16), tl.float32))


@refused(
    "'other' has shape (16,), which does not broadcast to the pointers' (4, 8)",
    at="tl.zeros((16,), tl.float32)",
    p=PTR,
    hint="give pointers and values the same shape",
)
def other_shape(p):
    q = p + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
    x = tl.load(q, mask=q != p, other=tl.zeros((16,), tl.float32))


@refused(
    "'mask' has shape (32,), but 'pointer' is one pointer",
    at="tl.arange(0, 32) < 5",
    p=PTR,
    hint="add offsets to the pointer, or use a scalar mask",
)
def mask_shape(p):
    x = tl.load(p, mask=tl.arange(0, 32) < 5)


@refused(
    "shape (16,) has 16 elements, shape (4, 8) has 32",
    at="(4, 8)",
    hint="a reshape keeps the number of elements; use tl.broadcast_to to repeat them",
)
def reshape_elements():
    x = tl.reshape(tl.arange(0, 16), (4, 8))


@refused(
    "a tile of shape (16, 1) does not broadcast to (16,)",
    at="(16,)",
    hint="only sizes of 1 grow, and new dimensions come first",
)
def broadcast_to_lower():
    x = tl.arange(0, 16)[:, None]
    y = tl.broadcast_to(x, (16,))


@refused("'dims' names each of the 2 dimensions of int32[1, 16] once, found (0, 0)", at="(0, 0)")
def permute_twice():
    x = tl.permute(tl.arange(0, 16)[None, :], (0, 0))


@refused("there are no two dimensions to exchange in int32[16]", at="tl.arange(0, 16)")
def trans_vector():
    x = tl.trans(tl.arange(0, 16))


@refused("'axis' is 1, but the tile's dimensions are 0 to 0", at="axis=«1»")
def reduce_axis():
    x = tl.zeros((16,), tl.float32)
    y = tl.sum(x, axis=1)


@refused("only tiles are reduced, found float32 scalar", at="tl.max(«x»)", x=float32)
def reduce_scalar(x):
    tl.max(x)


@refused("'input' of tl.dot is a matrix, found float32[16]", at="tl.dot(«v», v)", a=1)
def dot_vector(a: tl.constexpr):
    v = tl.zeros((16,), tl.float32)
    tl.dot(v, v)


@refused(
    "the index has 1 ':' for a tile of 2 dimensions, int32[1, 16]",
    at="x[:, None]",
    hint="write one ':' for each dimension and None for each new one",
)
def index_rank():
    x = tl.arange(0, 16)[None, :]
    y = x[:, None]


@refused(
    "a tile is indexed with ':' and None only, found 3",
    at="x[3]",
    hint="load the elements you need through pointers, or select one with tl.sum(tl.where(i == index, x, 0), 0)",
)
def index_element():
    x = tl.arange(0, 16)
    y = x[3]


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_refused(kernel: KernelFunction, expected: dict[str, Any], assert_refused: Callable[..., None]) -> None:
    assert_refused(kernel, **expected)

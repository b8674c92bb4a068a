"""Calls that do not fit what is called.

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


def plain(x):
    return x


@jit
def add_three(a, b):
    return a + b + 3.0


@jit
def add_four(a, b, c, d):
    return a + b + c + d


@refused("tl.arange takes 2 arguments, found 3", at="tl.arange(0, 1, 2)", hint="its parameters are (start, end)")
def too_many():
    x = tl.arange(0, 1, 2)


@refused("tl.arange needs the argument 'end'", at="tl.arange(16)", hint="its parameters are (start, end)")
def too_few():
    x = tl.arange(16)


@refused("tl.load has no parameter 'maks'", at="tl.load(p, maks=True)", hint="did you mean 'mask'?", p=PTR)
def misspelled_keyword(p):
    x = tl.load(p, maks=True)


@refused("tl.load got two values for 'mask'", at="tl.load(p, True, mask=True)", p=PTR)
def twice(p):
    x = tl.load(p, True, mask=True)


@refused(
    "the function plain cannot be called in a kernel",
    at="plain(1)",
    hint="decorate plain with @weft.jit to inline it, or with tl.constexpr_function to call it at compile time",
)
def calls_plain():
    x = plain(1)


@refused("1 is not string", at="1")
def prints():
    print(1)


@refused("pointer<float32> scalar is not string", at="there", there=PTR)
def prints_memory(there):
    print(there, 1)


@refused("\u00e4 is not an ascii string", at=r'"\u00e4"')
def prints_letters():
    tl.device_print("\u00e4", 1)


@refused("expected a tile or a number, found 'a'", at='"a"')
def prints_text():
    print("x", "a")


@refused(
    "tl.device_print has no parameter 'sep'",
    at='print("x", sep=" ")',
    hint="its parameters are (prefix, *args, hex=False)",
)
def prints_apart():
    print("x", sep=" ")


@refused(
    "'hex' must be known at compile time, found int32 scalar",
    at="wide",
    hint="mark the parameter as 'wide: tl.constexpr'",
    wide=int32,
)
def prints_hex(wide):
    tl.device_print("x", 1, hex=wide)


@refused("the dtype float32 cannot be called", at="tl.float32(1)")
def calls_dtype():
    x = tl.float32(1)


@refused(
    "int takes compile-time values, found float32 scalar",
    at="int(x)",
    x=float32,
    hint="mark the parameter as 'x: tl.constexpr'",
)
def int_of_run_time(x):
    y = int(x)


@tl.constexpr_function
def raises_key_error(n):
    return {}[n]


@refused("raises_key_error(3): KeyError: 3", at="raises_key_error(3)")
def function_of_constants_raises():
    x = raises_key_error(3)


@refused(
    "raises_key_error takes compile-time values, found int32 scalar",
    at="raises_key_error(n)",
    n=int32,
    hint="mark the parameter as 'n: tl.constexpr'",
)
def function_of_constants_at_run_time(n):
    x = raises_key_error(n)


@refused("too many values to unpack (expected 2)", at="a, b")
def unpack_count():
    a, b = 1, 2, 3


@refused("cannot unpack non-iterable value: only tuples can be unpacked, found int32[16]", at="a, b")
def unpack_tile():
    a, b = tl.arange(0, 16)


@refused("grids have the axes 0, 1 and 2, found 3", at="3")
def grid_axis():
    x = tl.program_id(3)


@refused("static assertion failed: BLOCK is 16, not 32", at="BLOCK == 32", BLOCK=16)
def static_assertion(BLOCK: tl.constexpr):
    tl.static_assert(BLOCK == 32, f"BLOCK is {BLOCK}, not 32")


@refused("'values' has one number for each dimension of int32[16], found 2", at="[8, 8]")
def hint_rank():
    x = tl.multiple_of(tl.arange(0, 16), [8, 8])


@refused("'combine_fn' is a function decorated with @weft.jit, found the function plain", at="plain")
def reduce_plain():
    x = tl.reduce(tl.arange(0, 16), 0, plain)


@refused(
    "add_three combines int32, but returns float32",
    at="add_three",
    hint="return one scalar for each tile, of its dtype: convert with .to(...)",
)
def reduce_type():
    x = tl.reduce(tl.arange(0, 16), 0, add_three)


@refused(
    "to reduce 2 tiles, add_three takes 4 arguments, found 2",
    at="add_three",
    hint="first the accumulators, then the elements",
)
def reduce_arity():
    i = tl.arange(0, 16)
    x = tl.reduce((i, i), 0, add_three)


@refused("tiles that are reduced together have one shape, found (16,) and (8,)", at="(i, tl.arange(0, 8))")
def reduce_shapes():
    i = tl.arange(0, 16)
    x = tl.reduce((i, tl.arange(0, 8)), 0, add_three)


@refused("tiles are reduced, found an empty tuple", at="()")
def reduce_nothing():
    x = tl.reduce((), 0, add_three)


@refused(
    "to scan 1 tile, add_four takes 2 arguments, found 4",
    at="add_four",
    hint="first the accumulators, then the elements",
)
def scan_arity():
    x = tl.associative_scan(tl.arange(0, 16), 0, add_four)


@refused("tiles that are scanned together have one shape, found (16,) and (8,)", at="(i, tl.arange(0, 8))")
def scan_shapes():
    i = tl.arange(0, 16)
    x = tl.associative_scan((i, tl.arange(0, 8)), 0, add_four)


@refused("only tiles are scanned, found int32 scalar", at="tl.program_id(0)")
def scan_scalar():
    x = tl.cumsum(tl.program_id(0))


@refused("'axis' is 2, but the tile's dimensions are 0 to 0", at="2")
def scan_axis():
    x = tl.cumsum(tl.arange(0, 16), 2)


@refused(
    "index must be an integer tensor, found float32[16]",
    at="tl.zeros((16,), tl.float32)",
    hint="convert it with .to(tl.int32)",
)
def gather_float():
    x = tl.gather(tl.arange(0, 16), tl.zeros((16,), tl.float32), 0)


@refused(
    "source and index tensors must have the same rank, found int32[16] and int32[16, 1]",
    at="tl.zeros((16, 1), tl.int32)",
    hint="insert dimensions with tl.expand_dims, or repeat with tl.broadcast_to",
)
def gather_rank():
    x = tl.gather(tl.arange(0, 16), tl.zeros((16, 1), tl.int32), 0)


@refused(
    "index dims outside of axis 1 must match the corresponding source dims, found int32[4, 16] and int32[8, 32]",
    at="tl.zeros((8, 32), tl.int32)",
    hint="give the index the shape (4, 32)",
)
def gather_shape():
    x = tl.gather(tl.zeros((4, 16), tl.int32), tl.zeros((8, 32), tl.int32), 1)


@refused(
    "histogram only supports 1D input, found int32[4, 4]",
    at="tl.zeros((4, 4), tl.int32)",
    hint="make it one with tl.ravel",
)
def histogram_rank():
    x = tl.histogram(tl.zeros((4, 4), tl.int32), 4)


@refused(
    "histogram only supports 32-bit integer input, but got int64",
    at="tl.zeros((4,), tl.int64)",
    hint="convert it with .to(tl.int32)",
)
def histogram_type():
    x = tl.histogram(tl.zeros((4,), tl.int64), 4)


@refused("Mask must have boolean scalar type, found int32[4]", at="tl.arange(0, 4)")
def histogram_mask():
    i = tl.zeros((4,), tl.int32)
    x = tl.histogram(i, 4, tl.arange(0, 4))


@refused("a mask of shape (8,) does not broadcast to (1,)", at="tl.arange(0, 8) > 1")
def histogram_mask_shape():
    i = tl.zeros((1,), tl.int32)
    x = tl.histogram(i, 4, tl.arange(0, 8) > 1)


@refused(
    "sizes of tiles are powers of two, but a tile has 5 elements",
    at="tl.histogram(i, 5)",
    hint="use 8 and mask the elements beyond 5",
)
def histogram_bins():
    i = tl.zeros((4,), tl.int32)
    x = tl.histogram(i, 5)


@pytest.mark.parametrize(("kernel", "expected"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_refused(kernel: KernelFunction, expected: dict[str, Any], assert_refused: Callable[..., None]) -> None:
    assert_refused(kernel, **expected)

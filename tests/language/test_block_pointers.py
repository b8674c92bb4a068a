"""Block pointers against NumPy, element by element, and what the IR of a loop carries for one."""

# What a kernel returns is None to type checkers.
# pyright: reportOptionalMemberAccess=false

from __future__ import annotations

import itertools
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import scf

import weft
import weft.language as tl
from machines import on
from sampling import grid
from weft import dtypes
from weft import target as targets
from weft.codegen import lay_out
from weft.frontend import Argument, ConstantArgument, PointerArgument, ScalarArgument, build_module

pytestmark = pytest.mark.jit

TARGETS: Final = (None, "sm_80", "sm_90")


@weft.jit
def copy_block(
    x: Any, y: Any, m: Any, n: Any, sm: Any, sn: Any, i: Any, j: Any, om: Any, on: Any,
    BM: tl.constexpr, BN: tl.constexpr, CHECK: tl.constexpr, PAD: tl.constexpr,
) -> None:  # fmt: skip
    """The block at (i, j) of x, which is m by n, into the block at (om, on) of y, which is m by n and row-major."""
    source = tl.make_block_ptr(x, (m, n), (sm, sn), (i, j), (BM, BN), (1, 0))
    target = tl.make_block_ptr(y, shape=(m, n), strides=(n, 1), offsets=(om, on), block_shape=(BM, BN), order=(1, 0))
    tl.store(target, tl.load(source, boundary_check=CHECK, padding_option=PAD), boundary_check=(1, 0))


def expected_copy(
    x: NDArray[Any], y: NDArray[Any], at: tuple[int, int], to: tuple[int, int], block: Any, pad: Any
) -> None:
    """`copy_block` by its definition, one element at a time; ``x`` is what NumPy indexes as m by n."""
    m, n = x.shape
    for a, b in itertools.product(range(block[0]), range(block[1])):
        row, column = at[0] + a, at[1] + b
        value = x[row, column] if 0 <= row < m and 0 <= column < n else pad
        row, column = to[0] + a, to[1] + b
        if 0 <= row < m and 0 <= column < n:
            y[row, column] = value


PLACES: Final = [
    ((0, 0), (0, 0)),
    ((3, 5), (1, 1)),
    ((-3, 7), (0, -5)),
    ((9, 9), (-1, 2)),
    ((-40, 0), (0, 0)),
    ((2, 40), (0, 0)),
]


@pytest.mark.parametrize(("target", "places"), grid(3, TARGETS, PLACES))
def test_copies_with_both_bounds_checked(target: str | None, places: Any) -> None:
    """An array of 11 by 13, read transposed too, at offsets on all sides of it."""
    at, to = places
    for transposed, dtype, pad in ((False, np.float32, "nan"), (True, np.int16, "zero")):
        x = np.arange(1, 11 * 13 + 1).astype(dtype).reshape((13, 11) if transposed else (11, 13))
        view = x.T if transposed else x
        strides = (1, 11) if transposed else (13, 1)
        y = np.full((11, 13), 7, dtype)
        expected = y.copy()
        expected_copy(view, expected, at, to, (8, 16), np.nan if pad == "nan" else 0)
        on(copy_block, target)[(1,)](x, y, 11, 13, *strides, *at, *to, BM=8, BN=16, CHECK=(0, 1), PAD=pad)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("target", TARGETS)
def test_a_dimension_that_is_not_checked_goes_on(target: str | None) -> None:
    """Rows 1 to 4 of an array of 3 rows inside a larger one: row 3 exists in memory, and columns beyond 5 do not count."""
    memory = np.arange(64, dtype=np.int32).reshape(8, 8)
    y = np.zeros((3, 5), np.int32)
    on(copy_block, target)[(1,)](memory, y, 3, 5, 8, 1, 1, 0, 0, 0, BM=4, BN=8, CHECK=(1,), PAD="zero")
    np.testing.assert_array_equal(y, memory[1:4, :5])


class Pair(NamedTuple):
    left: Any
    right: Any


@weft.jit
def moved(pair: Any, step: Any) -> Any:
    return Pair(tl.advance(pair.left, (0, step)), pair.right.advance((step, 0)))


@weft.jit
def product(a: Any, b: Any, c: Any, M: Any, N: Any, K: Any, B: tl.constexpr, BK: tl.constexpr) -> None:
    left = tl.make_block_ptr(a, (M, K), (K, 1), (tl.program_id(0) * B, 0), (B, BK), (1, 0))
    right = tl.make_block_ptr(b, (K, N), (N, 1), (0, tl.program_id(1) * B), (BK, B), (1, 0))
    pair = Pair(left, right)
    total = tl.zeros((B, B), tl.float32)
    for _ in range(0, K, BK):
        x = tl.load(pair.left, boundary_check=(0, 1), padding_option="zero")
        total += tl.dot(x, tl.load(pair.right, boundary_check=(0, 1), padding_option="zero"))
        pair = moved(pair, BK)
    at = (tl.program_id(0) * B, tl.program_id(1) * B)
    out = tl.make_block_ptr(c, (M, N), (N, 1), at, (B, B), (1, 0))
    out.store(total.to(out.dtype.element_ty), boundary_check=(0, 1))


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_carries_a_tuple_of_blocks_through_a_helper(target: str | None) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, size).astype(np.float32) for size in ((19, 21), (21, 18)))
    c = np.zeros((19, 18), np.float16)
    on(product, target)[(2, 2)](a, b, c, 19, 18, 21, B=16, BK=8)
    np.testing.assert_array_equal(c, (a @ b).astype(np.float16))


@weft.jit
def chosen(x: Any, y: Any, out: Any, n: Any, which: Any, B: tl.constexpr) -> None:
    if which > 0:  # noqa: SIM108 - an 'if' that joins block pointers is what this tests
        block = tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,))
    else:
        block = tl.make_block_ptr(y, n, 2, 0, B, 0)
    while which > 1:
        block = tl.advance(block, 1)
        which -= 1
    tl.store(out + tl.arange(0, B), tl.load(block, boundary_check=0, padding_option="zero"))


@pytest.mark.parametrize("target", TARGETS)
def test_branches_and_whiles_join_blocks(target: str | None) -> None:
    x, y = np.arange(8, dtype=np.int32), np.arange(100, 120, dtype=np.int32)
    for which, expected in ((0, y[::2][:6]), (1, x[:6]), (4, x[3:6])):
        out = np.zeros(8, np.int32)
        on(chosen, target)[(1,)](x, y, out, 6, which, B=8)
        np.testing.assert_array_equal(out, np.pad(expected, (0, 8 - len(expected))))


@weft.jit
def bools(x: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    value = tl.load(tl.make_block_ptr(x, (n,), (1,), (0,), (B,), (0,)), boundary_check=(0,), padding_option="zero")
    tl.static_assert(value.dtype == tl.int8)
    tl.store(tl.make_block_ptr(out, (n,), (1,), (0,), (B,), (0,)), value, boundary_check=(0,))


def test_bools_are_bytes() -> None:
    """As in Triton, a block of bools is one of int8."""
    x, out = np.array([True, False, True]), np.zeros(3, np.bool_)
    bools[(1,)](x, out, 3, B=4)
    np.testing.assert_array_equal(out, x)


@weft.jit
def far(x: Any, out: Any, stride: Any, B: tl.constexpr) -> None:
    block = tl.make_block_ptr(x - stride.to(tl.int64) * 4, (8, 4), (stride, 1), (4, 0), (1, B), (1, 0))
    tl.store(out + tl.arange(0, B)[None, :], tl.load(block, boundary_check=(0, 1)))


@pytest.mark.parametrize("target", TARGETS)
def test_addresses_are_computed_in_64_bits(target: str | None) -> None:
    """4 * 2**30 is 0 in 32 bits."""
    x, out = np.arange(4, dtype=np.int8), np.zeros(4, np.int8)
    on(far, target)[(1,)](x, out, 1 << 30, B=4)
    np.testing.assert_array_equal(out, x)


def test_a_loop_carries_one_offset_of_each_block() -> None:
    """Beside the sum: base, shape, strides and the offset along which a block does not move are the same in each iteration."""
    arrays = {"a": dtypes.float32, "b": dtypes.float32, "c": dtypes.float16}
    signature: dict[str, Argument] = {name: PointerArgument(dtype) for name, dtype in arrays.items()}
    signature |= {name: ScalarArgument(dtypes.int32) for name in "MNK"} | {
        "B": ConstantArgument(16),
        "BK": ConstantArgument(8),
    }
    module = build_module(product, signature)
    lay_out(module, targets.host())
    (loop,) = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    assert [str(value.type).partition("<")[0] for value in loop.iter_args] == ["i32", "i32", "tensor"]

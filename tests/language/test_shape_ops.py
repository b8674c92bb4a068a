"""Join, split, interleave, cat and flip against NumPy, natively and as PTX; and what they refuse."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from machines import on
from weft.frontend.errors import CompilationError

pytestmark = pytest.mark.jit

TARGETS: Final = (None, "sm_90")
DTYPES: Final = (np.bool_, np.int8, ml_dtypes.bfloat16, np.float32, np.int64)

Array = NDArray[Any]


def drawn(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    return (np.random.default_rng(seed).standard_normal(shape) * 40).astype(dtype)


@weft.jit
def rows_of(M: tl.constexpr, N: tl.constexpr) -> Any:
    return tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@weft.jit
def pairs(
    x: Any, y: Any, mixed: Any, joined: Any, turns: Any, first: Any, second: Any, M: tl.constexpr, N: tl.constexpr
) -> None:
    at: Any = rows_of(M, N)
    a, b = tl.load(x + at), tl.load(y + at)
    both = tl.join(a, b)
    tl.static_assert(both.shape == (M, N, 2))
    tl.store(joined + at[:, :, None] * 2 + tl.arange(0, 2)[None, None, :], both)
    tl.store(turns + rows_of(M, 2 * N), tl.interleave(a, b))
    c, d = tl.load(mixed + rows_of(M, 2 * N)).reshape(M, N, 2).split()
    tl.store(first + at, c)
    tl.store(second + at, d)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "dtype"), [((1, 1), np.float32), ((4, 16), np.bool_), ((2, 128), np.int8),
                                              ((64, 2), ml_dtypes.bfloat16), ((8, 64), np.int64)])  # fmt: skip
def test_pairs(target: str | None, shape: tuple[int, int], dtype: Any) -> None:
    x, y = drawn(shape, dtype, 1), drawn(shape, dtype, 2)
    both, turns = np.zeros((*shape, 2), dtype), np.zeros((shape[0], 2 * shape[1]), dtype)
    first, second = np.zeros_like(x), np.zeros_like(x)
    mixed = np.stack([y, x], -1)
    on(pairs, target)[(1,)](x, y, mixed, both, turns, first, second, *shape)
    assert np.array_equal(both, np.stack([x, y], -1))
    assert np.array_equal(first, y)
    assert np.array_equal(second, x)
    assert np.array_equal(turns, np.stack([x, y], -1).reshape(turns.shape))


@pytest.mark.parametrize("target", TARGETS)
def test_split_of_loaded_pairs(target: str | None) -> None:
    """Pairs that memory has side by side are in one thread, or in neighbouring lanes of a CPU's vector."""
    x = drawn((64, 2), np.float32)
    first, second = np.zeros((2, 64), np.float32)
    on(halves, target)[(1,)](x, first, second, 64)
    assert np.array_equal(np.stack([first, second], -1), x)


@weft.jit
def halves(x: Any, first: Any, second: Any, N: tl.constexpr) -> None:
    a, b = tl.split(tl.load(x + rows_of(N, 2)))
    tl.store(first + tl.arange(0, N), a)
    tl.store(second + tl.arange(0, N), b)


@weft.jit
def two_matrices(x: Any, out: Any, N: tl.constexpr) -> None:
    at = tl.arange(0, 2)[:, None, None] * N * 4 + tl.arange(0, N)[None, :, None] * 4 + tl.arange(0, 4)[None, None, :]
    a, b = tl.split(tl.permute(tl.load(x + at), 1, 2, 0))
    tl.store(out + tl.arange(0, N)[:, None] * 4 + tl.arange(0, 4)[None, :], a)
    tl.store(out + N * 4 + tl.arange(0, N)[:, None] * 4 + tl.arange(0, 4)[None, :], b)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [4, 64])
def test_split_along_the_highest_registers(target: str | None, size: int) -> None:
    """A CPU's loop over one half of the registers is no place to keep both."""
    x = drawn((2, size, 4), np.float32)
    out = np.zeros_like(x)
    on(two_matrices, target)[(1,)](x, out, size)
    assert np.array_equal(out, x)


@weft.jit
def scalars(x: Any, out: Any) -> None:
    a, b = tl.load(x), tl.load(x + 1)
    two = tl.join(a, b)
    tl.static_assert(two.shape == (2,))
    tl.store(out + tl.arange(0, 2), tl.interleave(b, a))
    c, d = tl.split(two)
    tl.static_assert(c.shape == ())
    tl.store(out + 2, d)
    tl.store(out + 3, c)


@pytest.mark.parametrize("target", TARGETS)
def test_scalars(target: str | None) -> None:
    x, out = np.array([3, -5], np.float32), np.zeros(4, np.float32)
    on(scalars, target)[(1,)](x, out)
    assert out.tolist() == [-5, 3, -5, 3]


@weft.jit
def broadcasting(out: Any, N: tl.constexpr) -> None:
    tl.store(out + rows_of(N, 2), tl.join(tl.arange(0, N), tl.full((1,), 7, tl.int32)))


def test_join_broadcasts() -> None:
    out = np.zeros((8, 2), np.int32)
    broadcasting[(1,)](out, 8)
    assert np.array_equal(out, np.stack([np.arange(8), np.full(8, 7)], -1))


@weft.jit
def pointers(x: Any, y: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a, b = tl.split(tl.join(x + i, y + tl.flip(i)))
    tl.store(tl.join(out + i, out + N + i), tl.join(tl.load(a), tl.load(b)))


@pytest.mark.parametrize("target", TARGETS)
def test_pointers(target: str | None) -> None:
    """Halves of joined pointers go to their arrays."""
    x, y, out = drawn((16,), np.float32, 1), drawn((16,), np.float32, 2), np.zeros(32, np.float32)
    on(pointers, target)[(1,)](x, y, out, 16)
    assert np.array_equal(out, np.concatenate([x, y[::-1]]))


@weft.jit
def flipping(x: Any, out: Any, M: tl.constexpr, N: tl.constexpr, DIM: tl.constexpr) -> None:
    tl.store(out + rows_of(M, N), tl.flip(tl.load(x + rows_of(M, N)), DIM))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("shape", "dim"), [((1, 1), None), ((2, 512), None), ((2, 512), 0), ((64, 32), -2),
                                            ((1, 2048), 1), ((16, 4), 0)])  # fmt: skip
def test_flip(target: str | None, shape: tuple[int, int], dim: int | None) -> None:
    for dtype in DTYPES if shape == (2, 512) else DTYPES[2:4]:
        x = drawn(shape, dtype)
        out = np.zeros_like(x)
        on(flipping, target)[(1,)](x, out, *shape, dim)
        assert np.array_equal(out, np.flip(x, -1 if dim is None else dim)), dtype


@weft.jit
def sums_with_mirror(x: Any, out: Any, N: tl.constexpr, COUNT: tl.constexpr) -> None:
    i = tl.arange(0, N)
    total = tl.load(x + i)
    for step in range(COUNT):
        total = total + tl.flip(total) * (step + 1)
    tl.store(out + i, total)


@pytest.mark.parametrize("target", TARGETS)
def test_a_loop_carries_what_is_flipped(target: str | None) -> None:
    """The old value is still read at other registers when the new one is written."""
    x, out = np.arange(256.0, dtype=np.float32), np.zeros(256, np.float32)
    on(sums_with_mirror, target)[(1,)](x, out, 256, 3)
    total = x
    for step in range(3):
        total = total + total[::-1] * (step + 1)
    assert np.array_equal(out, total)


@weft.jit
def around_a_flip(x: Any, plain: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    value = -tl.load(x + i)
    tl.store(x + i, value)
    tl.store(plain + i, value)
    tl.store(out + i, tl.flip(tl.flip(value) * 2 + value) - value)


@pytest.mark.parametrize("target", TARGETS)
def test_what_is_flipped_is_complete_before_it_is_read(target: str | None) -> None:
    """Load, flip and store have the same registers, but cannot be one loop on a CPU."""
    x, plain, out = drawn((512,), np.float32), *np.zeros((2, 512), np.float32)
    on(around_a_flip, target)[(1,)](changed := x.copy(), plain, out, 512)
    assert np.array_equal(plain, -x)
    assert np.array_equal(changed, -x)
    assert np.array_equal(out, (-x[::-1] * 2 - x)[::-1] + x)


@weft.jit
def concatenated(x: Any, y: Any, out: Any, M: tl.constexpr, N: tl.constexpr, DIM: tl.constexpr) -> None:
    both = tl.cat(tl.load(x + rows_of(M, N)), tl.load(y + rows_of(M, N)), dim=DIM)
    tl.store(out + rows_of(both.shape[0], both.shape[1]), both)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_cat(target: str | None, dim: int) -> None:
    x, y = drawn((4, 32), np.float16, 1), drawn((4, 32), np.float16, 2)
    expected = np.concatenate([x, y], dim)
    out = np.zeros_like(expected)
    on(concatenated, target)[(1,)](x, y, out, 4, 32, dim)
    assert np.array_equal(out, expected)


@weft.jit
def reordered(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out, tl.sum(tl.cat(tl.load(x + i), tl.load(x + N + i), can_reorder=True)))
    tl.store(out + 1, tl.load(x + i).sum().reshape(1).reshape())


def test_cat_that_may_reorder_and_scalars_from_tiles() -> None:
    x, out = np.arange(16, dtype=np.int32), np.zeros(2, np.int32)
    reordered[(1,)](x, out, 8)
    assert out.tolist() == [120, 28]


@weft.jit
def forms(out: Any) -> None:
    x = tl.arange(0, 32).reshape((2, 4, 4))
    tl.static_assert(x.shape == tl.reshape(x, 2, 4, 4).shape == tl.reshape(x, [2, 4, 4]).shape)
    tl.static_assert(x.trans().shape == tl.permute(x, (0, 2, 1)).shape)
    a = tl.permute(x, 2, 0, 1) + tl.trans(x, (2, 0, 1)) + tl.trans(x, 2, 0, 1) + x.permute([2, 0, 1])
    tl.store(out + tl.arange(0, 32), a.ravel() // 4)


def test_call_forms() -> None:
    out = np.zeros(32, np.int32)
    forms[(1,)](out)
    assert np.array_equal(out, np.arange(32).reshape(2, 4, 4).transpose(2, 0, 1).ravel())


@weft.jit
def refused(out: Any, CASE: tl.constexpr) -> None:
    x, y = tl.arange(0, 8), tl.arange(0, 8).to(tl.float32)
    if CASE == 0:
        tl.join(x, y)
    elif CASE == 1:
        tl.split(x)
    elif CASE == 2:
        tl.split(tl.load(out))
    elif CASE == 3:
        tl.flip(x, 1)
    elif CASE == 4:
        tl.cat(x, tl.arange(0, 4))
    elif CASE == 5:
        tl.cat(x, x[:, None])
    elif CASE == 6:
        tl.cat(x, x, dim=1)
    elif CASE == 7:
        tl.expand_dims(x, (0, -3))


REFUSED: Final = (
    "tl.join takes tiles of one dtype, found int32 and float32",
    "expected last dimension to be 2 for split, got 8",
    "split requires a non-scalar tensor",
    "'dim' is 1, but the tile's dimensions are 0 to 0",
    "tl.cat requires tensors of the same shape",
    "tensors must have the same rank",
    "tl.cat: the tiles have no such dimension",
    "expand_dims received duplicate axes, normalized axes = [0, 0]",
)


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals(case: int) -> None:
    with pytest.raises(CompilationError) as caught:
        refused[(1,)](np.zeros(1, np.int32), case)
    assert REFUSED[case] in str(caught.value)


@weft.jit
def summed(x: Any, out: Any, N: tl.constexpr) -> None:
    v = tl.load(x + tl.arange(0, N))
    tl.store(out + rows_of(N, 2), tl.cumsum(tl.join(v, v % 7), 0) + 1)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("size", [1, 8, 1024])
def test_a_join_of_few_registers_is_used_with_others(target: str | None, size: int) -> None:
    """A thread of a small tile has one register of each operand, and a pair in one vector afterwards."""
    x = np.arange(size, dtype=np.int32) * 5
    out = np.zeros((size, 2), np.int32)
    on(summed, target)[(1,)](x, out, size)
    np.testing.assert_array_equal(out, np.cumsum(np.stack([x, x % 7], 1), 0) + 1)

"""Tensor descriptors against NumPy, made in kernels and passed to them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from machines import on
from sampling import grid

pytestmark = pytest.mark.jit

TARGETS: Final = (None, "sm_80", "sm_90")


def block_of(x: NDArray[Any], at: tuple[int, ...], block: tuple[int, ...], pad: Any) -> NDArray[Any]:
    """The block at ``at``, padded outside of the array: one element at a time."""
    out = np.full(block, pad, x.dtype)
    for index in np.ndindex(*block):
        place = tuple(np.add(index, at))
        if all(0 <= i < n for i, n in zip(place, x.shape, strict=True)):
            out[index] = x[place]
    return out


@weft.jit
def through(source: Any, target: Any, i: Any, j: Any, k: Any, last: Any) -> None:
    tl.static_assert(source.block_shape == target.block_shape)
    tl.static_assert(source.dtype == source.block_type.element_ty)
    value = source.load([i, j])
    tl.store_tensor_descriptor(target, (k, last), value + (source.shape[0] * 0).to(value.dtype))


@weft.jit
def made(
    x: Any, y: Any, m: Any, n: Any, i: Any, j: Any, k: Any, last: Any,
    BM: tl.constexpr, BN: tl.constexpr, PAD: tl.constexpr,
) -> None:  # fmt: skip
    source = tl.make_tensor_descriptor(x, shape=[m, n], strides=[n, 1], block_shape=[BM, BN], padding_option=PAD)
    through(source, tl.make_tensor_descriptor(y, [m, n], [n, 1], [BM, BN]), i, j, k, last)


PLACES: Final = [(0, 0, 0, 0), (2, 5, 1, -3), (-4, -9, 0, 0), (9, 1, -2, 16), (100, 0, 0, 0)]


@pytest.mark.parametrize(("target", "at"), grid(3, TARGETS, PLACES))
@pytest.mark.parametrize("host", [False, True])
def test_blocks_are_loaded_and_stored(target: str | None, at: tuple[int, int, int, int], host: bool) -> None:
    for dtype, pad in ((np.float32, "nan"), (np.int16, "zero")):
        x = np.arange(1, 11 * 24 + 1).astype(dtype).reshape(11, 24)
        y, expected = np.zeros_like(x), np.zeros_like(x)
        value = block_of(x, at[:2], (4, 16), np.nan if pad == "nan" else 0)
        for a, b in np.ndindex(4, 16):
            if 0 <= a + at[2] < 11 and 0 <= b + at[3] < 24:
                expected[a + at[2], b + at[3]] = value[a, b]
        if host:
            source = weft.TensorDescriptor.from_tensor(x, [4, 16], padding=pad)
            on(through, target)[(1,)](source, weft.TensorDescriptor(y, (11, 24), (24, 1), (4, 16)), *at)
        else:
            on(made, target)[(1,)](x, y, 11, 24, *at, BM=4, BN=16, PAD=pad)
        np.testing.assert_array_equal(y, expected)


@weft.jit
def rows(x: Any, y: Any, index: Any, m: Any, n: Any, column: Any, R: tl.constexpr, C: tl.constexpr) -> None:
    source = tl.make_tensor_descriptor(x, [m, n], [n, 1], [1, C])
    target = tl.make_tensor_descriptor(y, [m, n], [n, 1], [1, C])
    taken = tl.load(index + tl.arange(0, R))
    target.scatter(source.gather(taken, column) * 2, tl.arange(0, R), column)


@pytest.mark.parametrize("target", TARGETS)
def test_rows_are_gathered_and_scattered(target: str | None) -> None:
    """Rows outside of the array are 0 and are not written; so are columns."""
    x = np.arange(1, 6 * 12 + 1, dtype=np.float32).reshape(6, 12)
    index, y = np.array([5, 0, -1, 3, 3, 6, 1, 2], np.int32), np.zeros_like(x)
    on(rows, target)[(1,)](x, y, index, 6, 12, 4, R=8, C=16)
    expected = np.zeros_like(x)
    for row in range(6):
        if 0 <= index[row] < 6:
            expected[row, 4:] = 2 * x[index[row], 4:]
    np.testing.assert_array_equal(y, expected)


@weft.jit
def reduced(x: Any, value: Any, m: Any, n: Any, i: Any, j: Any, KIND: tl.constexpr) -> None:
    desc = tl.make_tensor_descriptor(x, [m, n], [n, 1], [4, 8])
    v = tl.load(value + tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :])
    if KIND == "add":
        desc.atomic_add([i, j], v)
    elif KIND == "min":
        desc.atomic_min([i, j], v)
    elif KIND == "max":
        desc.atomic_max([i, j], v)
    elif KIND == "and":
        desc.atomic_and([i, j], v)
    elif KIND == "or":
        desc.atomic_or([i, j], v)
    else:
        desc.atomic_xor([i, j], v)


KINDS: Final[dict[str, Any]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.parametrize(("target", "kind"), grid(3, TARGETS, list(KINDS)))
def test_blocks_are_reduced_into_memory(target: str | None, kind: str) -> None:
    """Four programs reduce the same block, which reaches beyond the last row and column."""
    rng = np.random.default_rng(0)
    x, value = (rng.integers(-100, 100, size).astype(np.int32) for size in ((5, 12), (4, 8)))
    expected = x.copy()
    for _ in range(4):
        expected[3:, 6:] = KINDS[kind](expected[3:, 6:], value[:2, :6])
    on(reduced, target)[(4,)](x, value, 5, 12, 3, 6, KIND=kind)
    np.testing.assert_array_equal(x, expected)


@weft.jit
def carried(desc: Any, out: Any, n: Any) -> None:
    total = tl.zeros((8, 16), tl.float32)
    for i in range(n):
        if i % 2 == 0:
            total += desc.load([0, i * 16])
        else:
            total -= tl.load_tensor_descriptor(desc, [i, 0])
    out.store([0, 0], total)


@pytest.mark.parametrize("target", TARGETS)
def test_descriptors_of_launches_are_specialised_and_kept(target: str | None) -> None:
    """The same kernel for another shape of array and of block of the result, and a result that is converted."""
    rng = np.random.default_rng(1)
    for columns, dtype in ((40, np.float32), (48, np.float64)):
        x, out = rng.integers(-9, 9, (12, columns)).astype(np.float32), np.zeros((8, 16), dtype)
        descriptors = weft.TensorDescriptor.from_tensor(x, [8, 16]), weft.TensorDescriptor.from_tensor(out, [8, 16])
        on(carried, target)[(1,)](*descriptors, 3)
        loads = [block_of(x, at, (8, 16), 0) for at in ((0, 0), (1, 0), (0, 32))]
        np.testing.assert_array_equal(out, loads[0] - loads[1] + loads[2])


def test_a_read_only_array_is_not_written() -> None:
    x, out = np.zeros((8, 16), np.float32), np.zeros((8, 16), np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError) as caught:
        carried[(1,)](weft.TensorDescriptor.from_tensor(x, [8, 16]), weft.TensorDescriptor.from_tensor(out, [8, 16]), 1)
    assert "'out.base'" in str(caught.value)


X: Final = np.zeros((8, 16), np.float32)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, (1,), (1,), (8,)), "a descriptor's base is an array, found int"),
        ((X, (), (), ()), "a descriptor has 1 to 5 dimensions, found 0"),
        ((X, (8, 16), (16,), (8, 8)), "a descriptor of 2 dimensions has 2 strides, found 1"),
        ((X, (8, 16), (16, 1), (8,)), "a descriptor of 2 dimensions has 2 block_shape, found 1"),
        (
            (X, (8, 16), (16, 1), (8, 12)),
            "the sizes of a block are powers of two with a product up to 2**20, found (8, 12)",
        ),
        ((X, (8, 15), (15, 1), (8, 8)), "the strides of a descriptor are 16-byte aligned, found (15, 1) of 4 bytes"),
        ((X, (16, 8), (4, 16), (8, 8)), "the last dimension of a descriptor is contiguous, found a stride of 16"),
        ((X, (0, 16), (16, 1), (8, 8)), "the sizes of a descriptor are positive, found (0, 16)"),
        ((X, (8, 16), (16, 1), (8, 8), "inf"), "a descriptor pads with 'zero' or 'nan', found 'inf'"),
        ((X.view(np.int32), (8, 16), (16, 1), (8, 8), "nan"), "padding with NaN needs an array of floats, found int32"),
        (
            (X.view(np.int32), (8, 16), (16, 1), (8, 8), "zero", True),
            "round_f32_to_tf32 needs an array of float32, found int32",
        ),
    ],
)
def test_the_hosts_descriptor_refuses(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        weft.TensorDescriptor(*arguments)
    assert str(caught.value) == message


def test_the_hosts_descriptor_refuses_a_base_that_is_not_aligned() -> None:
    with pytest.raises(ValueError, match=r"^the base of a descriptor is 16-byte aligned, found address 0x[0-9a-f]*4$"):
        weft.TensorDescriptor(X.reshape(-1)[1:], (16,), (1,), (8,))

"""Masks that are known when the kernel runs: of every kind of access, through one pointer and of tiles, on both machines.

Where a mask is false memory stays as it is, and a load gives ``other``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import dtypes

pytestmark = pytest.mark.jit


@weft.jit
def plain(x: Any, out: Any, active: Any, other: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out, tl.load(x, mask=active > 0, other=other))
    tl.store(out + 1, 7, mask=active > 1)
    tl.store(out + 2 + i, tl.load(x + i, mask=i < active, other=other))
    tl.store(out + 2 + N + i, 7, mask=i < active)


@weft.jit
def synchronised(x: Any, counts: Any, out: Any, active: Any, other: Any, N: tl.constexpr) -> None:
    """In a kernel with volatile loads a store through one pointer releases."""
    i = tl.arange(0, N)
    one = tl.load(x, mask=active > 0, other=other, volatile=True)
    tile = tl.load(x + i, mask=i < active, other=other, volatile=True)
    tl.atomic_add(counts, 5, mask=active > 0)
    tl.atomic_xchg(counts + 1, 7, mask=active > 1)
    tl.atomic_add(counts + 2 + i, 5, mask=i < active)
    tl.store(out + 2 + i, tile)
    tl.store(out, one)
    tl.store(out + 1, 7, mask=active > 1)


@pytest.mark.parametrize("machine", ["native", "sm_90"])
@pytest.mark.parametrize(("size", "active"), [(8, 0), (8, 1), (8, 3), (1, 0), (1, 1)])
def test_what_is_masked_off_is_not_accessed(machine: str, size: int, active: int) -> None:
    """Of tiles of several elements, and of one element."""
    x = np.arange(10, 10 + size, dtype=np.int32)
    inside = np.arange(size) < active
    loaded = np.where(inside, x, -3)
    launches = [kernel[(1,)] if machine == "native" else kernel.on(machine)[(1,)] for kernel in (plain, synchronised)]

    out = np.zeros(2 + 2 * size, np.int32)
    launches[0](x, out, active, -3, N=size)
    assert out.tolist() == [loaded[0], 7 * (active > 1), *loaded, *7 * inside]

    counts, out = np.ones(2 + size, np.int32), np.zeros(2 + size, np.int32)
    launches[1](x, counts, out, active, -3, N=size)
    assert counts.tolist() == [1 + 5 * inside[0], 7 if active > 1 else 1, *1 + 5 * inside]
    assert out.tolist() == [loaded[0], 7 * (active > 1), *loaded]


@weft.jit
def padded(x: Any, out: Any, loaded: Any, stored: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    values = tl.load(x + i, mask=i < loaded, other=3)
    again = tl.load(x + i, mask=i < loaded)
    tl.store(out + i, tl.where(i < loaded, again, values), mask=i < stored)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize(("loaded", "stored"), [(512, 768), (501, 703)], ids=["wide", "single"])
def test_masks_of_elements_of_every_width_on_gpus(dtype: Any, loaded: int, stored: int) -> None:
    """By groups of elements where the mask changes at multiples of 16, else one by one."""
    x, out = np.arange(1024).astype(dtype), np.full(1024, 9, dtype)
    padded.on("sm_90")[(1,)](x, out, loaded, stored, N=1024)
    i = np.arange(1024)
    np.testing.assert_array_equal(out, np.where(i < stored, np.where(i < loaded, x, 3), 9))


@weft.jit
def known_in_part(x: Any, out: Any, active: Any, KEPT: tl.constexpr, OTHER: tl.constexpr, N: tl.constexpr) -> None:
    """Which columns are kept is known to the compiler, whether a row is read is not."""
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=(i < KEPT) & (active > 0), other=OTHER))


@pytest.mark.parametrize("dtype", [np.int16, np.float32, np.float64])
@pytest.mark.parametrize("kept", [2, 9])
@pytest.mark.parametrize("active", [0, 2])
def test_a_mask_that_the_compiler_knows_in_part(dtype: Any, kept: int, active: int) -> None:
    """LLVM 22 reads the false half of such a mask as if it were true, where the access takes two registers of AVX2."""
    x, out = np.arange(1, 17).astype(dtype), np.zeros(16, dtype)
    known_in_part[(1,)](x, out, active, KEPT=kept, OTHER=-3, N=16)
    np.testing.assert_array_equal(out, np.where((np.arange(16) < kept) & (active > 0), x, np.array(-3, dtype)))


@pytest.mark.parametrize("length", [1, 2, 8, 16, 64, 128])
@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("float32", "bfloat16"),
        ("bfloat16", "bfloat16"),
        ("float8_e5m2", "float8_e5m2"),
        ("int64", "int32"),
        ("int32", "int8"),
        ("float32", "float16"),
    ],
)
def test_one_lane_that_is_known_stores_one_element(read: str, written: str, length: int) -> None:
    """A length of 1 is a constant. LLVM's backend for AVX-512 stored the element as it was before it was truncated."""

    @weft.jit
    def add_one(x: Any, out: Any, n: Any, length: tl.constexpr) -> None:
        i = tl.arange(0, length)
        tl.store(out + i, (tl.load(x + i, mask=i < n) + 1).to(out.dtype.element_ty), mask=i < n)

    x, out = np.ones(1, dtypes.named(read).numpy), np.full(length + 8, 7, dtypes.named(written).numpy)
    add_one[(1,)](x, out, 1, length)
    assert out.astype(np.float64).tolist() == [2.0] + [7.0] * (length + 7)

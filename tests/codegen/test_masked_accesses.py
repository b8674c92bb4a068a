"""Masks that are known when the kernel runs: of every kind of access, through one pointer and of tiles, on both machines.

Where a mask is false memory stays as it is, and a load gives ``other``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

pytestmark = pytest.mark.jit
N = 8


@weft.jit
def plain(x: Any, out: Any, active: Any, other: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out, tl.load(x, mask=active > 0, other=other))
    tl.store(out + 1, 7, mask=active > 1)
    tl.store(out + N + i, tl.load(x + i, mask=i < active, other=other))
    tl.store(out + 2 * N + i, 7, mask=i < active)


@weft.jit
def synchronised(x: Any, counts: Any, out: Any, active: Any, other: Any, N: tl.constexpr) -> None:
    """In a kernel with volatile loads a store through one pointer releases."""
    i = tl.arange(0, N)
    one = tl.load(x, mask=active > 0, other=other, volatile=True)
    tile = tl.load(x + i, mask=i < active, other=other, volatile=True)
    tl.atomic_add(counts, 5, mask=active > 0)
    tl.atomic_xchg(counts + 1, 7, mask=active > 1)
    tl.atomic_add(counts + N + i, 5, mask=i < active)
    tl.store(out + N + i, tile)
    tl.store(out, one)
    tl.store(out + 1, 7, mask=active > 1)


@pytest.mark.parametrize("machine", ["native", "sm_90"])
@pytest.mark.parametrize("active", [0, 1, 3])
def test_what_is_masked_off_is_not_accessed(machine: str, active: int) -> None:
    x = np.arange(10, 10 + N, dtype=np.int32)
    inside = np.arange(N) < active
    loaded = np.where(inside, x, -3)
    launches = [kernel[(1,)] if machine == "native" else kernel.on(machine)[(1,)] for kernel in (plain, synchronised)]

    out = np.zeros(3 * N, np.int32)
    launches[0](x, out, active, -3, N=N)
    assert out[:2].tolist() == [loaded[0], 7 * inside[1]]
    assert out[N:].tolist() == [*loaded, *7 * inside]

    counts, out = np.ones(2 * N, np.int32), np.zeros(2 * N, np.int32)
    launches[1](x, counts, out, active, -3, N=N)
    assert counts[:2].tolist() == [1 + 5 * inside[0], 7 if inside[1] else 1]
    assert counts[N:].tolist() == [*1 + 5 * inside]
    assert out[:2].tolist() == [loaded[0], 7 * inside[1]]
    assert out[N:].tolist() == [*loaded]

"""Atomics under masks that follow from data, by a thread that has all atomics to itself, against loops over the elements."""

# pyright: reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from sampling import at_night

pytestmark = pytest.mark.jit
Array = NDArray[Any]


@weft.jit
def update(
    index: Any,
    values: Any,
    allowed: Any,
    out: Any,
    old: Any,
    n: Any,
    KIND: tl.constexpr,
    OLD: tl.constexpr,
    N: tl.constexpr,
) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    at, value = tl.load(index + i, mask=i < n), tl.load(values + i, mask=i < n)
    mask = (i < n) & (tl.load(allowed + i, mask=i < n, other=0) > 0)
    if KIND == "add":
        found = tl.atomic_add(out + at, value, mask=mask, sem="relaxed")
    elif KIND == "max":
        found = tl.atomic_max(out + at, value, mask=mask, sem="relaxed")
    else:
        found = tl.atomic_xchg(out + at, value, mask=mask, sem="relaxed")
    if OLD:
        tl.store(old + i, found, mask=i < n)


def second(_: Any, value: Any) -> Any:
    return value


MEANINGS: dict[str, Any] = {"add": np.add, "max": np.maximum, "xchg": second}


TYPES = (np.int32, np.int64, np.float32)


@pytest.mark.parametrize("kind", MEANINGS)
@pytest.mark.parametrize("dtype", TYPES)
def test_masked_lanes_change_nothing(kind: str, dtype: Any) -> None:
    """Where no, few, some, most and all lanes are active; with old values, which are 0 where the mask is false, and without. By
    day each type of each kind has every tile, with or without old values in turns."""
    turn = [*MEANINGS].index(kind) + TYPES.index(dtype)
    for share in (0.0, 0.1, 0.5, 0.9, 1.0):
        rng, n = np.random.default_rng(3), 250
        index, values = rng.integers(0, 20, n).astype(np.int32), rng.integers(-50, 50, n).astype(dtype)
        allowed = (rng.random(n) < share).astype(np.int8)
        expected, old = rng.integers(-5, 5, 21).astype(dtype), np.full(n, -1, dtype)
        start = expected.copy()
        for i in range(n):
            old[i] = expected[index[i]] if allowed[i] else 0
            if allowed[i]:
                expected[index[i]] = MEANINGS[kind](expected[index[i]], values[i])
        for place, tile in enumerate((1, 16, 1024)):  # programs of 16 run together
            for wanted in (False, True) if at_night() else (bool((turn + place) % 2),):
                out, found = start.copy(), np.full(n, -1, dtype)
                # programs run in order, since one thread has the atomics
                update[(weft.cdiv(n, tile),)](index, values, allowed, out, found, n, KIND=kind, OLD=wanted, N=tile)
                np.testing.assert_array_equal(out, expected, err_msg=f"{share}, {tile}")
                if wanted:
                    np.testing.assert_array_equal(found, old, err_msg=f"{share}, {tile}")


@weft.jit
def repeated(index: Any, allowed: Any, out: Any, N: tl.constexpr) -> None:
    """A tile of fewer elements than a register has lanes: several lanes hold an element."""
    i = tl.arange(0, N)
    at = tl.load(index + i)
    tl.atomic_add(out + at, 1, mask=tl.load(allowed + i) > 0)


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_tiles_smaller_than_a_register(size: int) -> None:
    index, allowed = np.zeros(size, np.int32), np.arange(size, dtype=np.int8) % 2
    out = np.zeros(1, np.int32)
    repeated[(1,)](index, allowed, out, N=size)
    assert out[0] == size // 2

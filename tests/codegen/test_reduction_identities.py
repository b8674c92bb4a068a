"""Reductions of one operation over many registers: accumulators begin with its identity, in which nothing of it is seen."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft.language as tl
from weft.frontend import KernelFunction

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit
jit = KernelFunction


@jit
def added(a: Any, b: Any) -> Any:
    return a + b


@jit
def multiplied(a: Any, b: Any) -> Any:
    return a * b


@jit
def both(a: Any, b: Any) -> Any:
    return a & b


@jit
def either(a: Any, b: Any) -> Any:
    return a | b


@jit
def one_of(a: Any, b: Any) -> Any:
    return a ^ b


@jit
def reduced(x: Any, rows: Any, columns: Any, COMBINE: tl.constexpr, M: tl.constexpr, N: tl.constexpr) -> None:
    m, n = tl.arange(0, M), tl.arange(0, N)
    tile = tl.load(x + m[:, None] * N + n[None, :])
    tl.store(rows + m, tl.reduce(tile, 1, COMBINE))
    tl.store(columns + n, tl.reduce(tile, 0, COMBINE))


MEANING: Mapping[Any, Callable[[Any, Any], Any]] = {
    added: lambda a, b: a + b,
    multiplied: lambda a, b: a * b,
    both: lambda a, b: a & b,
    either: lambda a, b: a | b,
    one_of: lambda a, b: a ^ b,
}
CASES = [
    *((f, dtype) for f in (both, either, one_of) for dtype in ("int8", "uint32", "int64", "bool")),
    *((f, dtype) for f in (added, multiplied) for dtype in ("int16", "uint64", "float32", "float64", "float16")),
]


@pytest.mark.parametrize(("combine", "dtype"), CASES, ids=lambda v: getattr(v, "__name__", v))
@pytest.mark.parametrize(("m", "n"), [(1, 1024), (4, 512), (64, 64)])
def test_reductions(differ: Differential, combine: Any, dtype: str, m: int, n: int) -> None:
    random = np.random.default_rng(m)
    if dtype.startswith("float"):
        # products and sums of these are exact in any order
        x = random.choice([-1.0, 1.0], (m, n)).astype(dtype)
    else:
        top = np.iinfo(dtype).max if dtype != "bool" else 1
        x = random.integers(0, top, (m, n), dtype=np.uint64, endpoint=True).astype(dtype)
        if combine is both:
            x |= np.array(top // 2 + 1, dtype)  # a bit that stays
        if combine is either:
            x &= np.array(top - 1, dtype)  # a bit that no element has
    after = differ(
        reduced,
        promises=[True],
        x=x,
        rows=np.zeros(m, dtype),
        columns=np.zeros(n, dtype),
        COMBINE=combine,
        M=m,
        N=n,
    )
    meaning = MEANING[combine]
    assert after["rows"].tolist() == functools.reduce(meaning, x.T).tolist()
    assert after["columns"].tolist() == functools.reduce(meaning, x).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_a_sum_of_negative_zeros(differ: Differential, dtype: str) -> None:
    m, n = 4, 512
    x = np.full((m, n), -0.0, dtype)
    out: dict[str, Any] = {"rows": np.ones(m, dtype), "columns": np.ones(n, dtype)}
    after = differ(reduced, promises=[True], x=x, **out, COMBINE=added, M=m, N=n)
    for name in out:
        assert np.signbit(after[name]).all()
        assert not after[name].any()

"""Checked launches of atomics, volatile loads and barriers: each access in bounds is as without checks, and the first
one that is not touches no memory."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

pytestmark = pytest.mark.jit


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEFT_CACHE_DIR", str(tmp_path / "cache"))


@weft.jit(checked=True)
def access(x: Any, out: Any, first: Any, KIND: tl.constexpr, N: tl.constexpr) -> None:
    """On a tile of N elements from ``first``, or through one pointer where N is 0."""
    i = tl.arange(0, N) if N else 0
    p = x + first + i
    if KIND == "cas":
        tl.atomic_cas(p, 6, 3)
    elif KIND == "xchg":
        tl.atomic_xchg(p, 3)
    elif KIND == "max":
        tl.atomic_max(p, 9)
    elif KIND == "min":
        tl.atomic_min(p, 3)
    elif KIND == "and":
        tl.atomic_and(p, 3)
    elif KIND == "or":
        tl.atomic_or(p, 3)
    elif KIND == "xor":
        tl.atomic_xor(p, 3)
    else:
        tl.store(out + i, tl.load(p, volatile=True))


AFTER = {"cas": 3, "xchg": 3, "max": 9, "min": 3, "and": 6 & 3, "or": 6 | 3, "xor": 6 ^ 3, "volatile": 6}
"""What each leaves of a 6."""


def line_of(kernel: Any, text: str) -> tuple[int, str]:
    lines, first = inspect.getsourcelines(kernel.fn)
    return next((first + i, line.rstrip()) for i, line in enumerate(lines) if text in line)


@pytest.mark.parametrize("n", [0, 4], ids=["scalar", "tile"])
@pytest.mark.parametrize("kind", AFTER)
def test_the_first_access_outside_touches_nothing(kind: str, n: int) -> None:
    size = max(n, 1)
    inside = np.full(8, 6, np.int32)
    out = np.zeros(4, np.int32)
    access[(1,)](inside, out, 8 - size, kind, n)
    assert inside.tolist() == [6] * (8 - size) + [AFTER[kind]] * size
    assert out.tolist() == ([6] * size + [0] * (4 - size) if kind == "volatile" else [0] * 4)

    buffer = np.full(16, 6, np.int32)  # memory behind the view, which a missing check would change
    out[:] = 0
    with pytest.raises(weft.OutOfBoundsError) as raised:
        access[(1,)](buffer[:8], out, 9 - size, kind, n)
    operation = "load" if kind == "volatile" else f"atomic_{kind}"
    line, text = line_of(access, "volatile=True" if kind == "volatile" else f"tl.atomic_{kind}")
    assert str(raised.value).splitlines()[:3] == [
        f"kernel 'access', program (0, 0, 0): {operation} accesses element 8 of 'x', which has 8",
        f"  at {__file__}:{line}, in access",
        f"    {text}",
    ]
    assert buffer.tolist() == [6] * 16
    assert out.tolist() == [0] * 4


@weft.jit(checked=True)
def stops(x: Any, out: Any, at: Any) -> None:
    i = tl.arange(0, 4)
    tl.store(out + i, 1)
    tl.debug_barrier()
    value = tl.load(x + at + i)
    tl.debug_barrier()
    tl.store(out + i, value)


def test_a_barrier_keeps_what_stands_before_a_failed_access() -> None:
    x, out = np.full(8, 6, np.int32), np.zeros(4, np.int32)
    stops[(1,)](x, out, 4)
    assert out.tolist() == [6] * 4
    out[:] = 0
    with pytest.raises(weft.OutOfBoundsError, match="load accesses element 8 of 'x', which has 8"):
        stops[(1,)](x, out, 5)
    assert out.tolist() == [1] * 4


@weft.jit(checked=True)
def masked_off(active: Any, far: Any, x: Any, out: Any, KIND: tl.constexpr, N: tl.constexpr) -> None:
    """``far`` behind the start, of a tile of N elements or through one pointer where N is 0; ``active`` of its elements."""
    i = tl.arange(0, N) if N else 0
    mask = i < active
    if KIND == "load":
        tl.store(out + i, tl.load(x + far + i, mask=mask, other=7))
    elif KIND == "volatile":
        tl.store(out + i, tl.load(x + far + i, mask=mask, other=7, volatile=True))
    elif KIND == "store":
        tl.store(x + far + i, 7, mask=mask)
    else:
        tl.atomic_add(x + far + i, 7, mask=mask)


@pytest.mark.parametrize("n", [0, 1, 4], ids=["scalar", "one", "tile"])
@pytest.mark.parametrize("kind", ["load", "volatile", "store", "atomic_add"])
def test_what_is_masked_off_may_lie_anywhere(kind: str, n: int) -> None:
    """And where one element is not, its address is reported. The bounds of arrays are found behind numbers, too."""
    x, out = np.full(8, 6, np.int32), np.zeros(4, np.int32)
    masked_off[(1,)](-3, 1000, x, out, kind, n)
    size = max(n, 1)
    assert x.tolist() == [6] * 8
    assert out.tolist() == ([7] * size + [0] * (4 - size) if kind in ("load", "volatile") else [0] * 4)
    operation = "load" if kind == "volatile" else kind
    with pytest.raises(weft.OutOfBoundsError, match=f"{operation} accesses element 1000 of 'x', which has 8"):
        masked_off[(1,)](3, 1000, x, out, kind, n)
    masked_off[(1,)](3, 5, x, out, kind, n)  # behind the end of ``out``, not of ``x``

"""Parameters annotated with tl.const: writes through pointers that come from them are refused, on whatever way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.frontend import CompilationError

pytestmark = pytest.mark.jit


@weft.jit
def copied(x: tl.const, out: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i))


def test_reading_is_allowed() -> None:
    x, out = np.arange(8, dtype=np.int32), np.zeros(8, np.int32)
    copied[(1,)](x, out, B=8)
    np.testing.assert_array_equal(out, x)


@weft.jit
def written_by(p: Any, i: Any) -> None:
    tl.store(p + i, 1)


@weft.jit
def writes(x: tl.const, out: Any, n: Any, CASE: tl.constexpr, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    if CASE == "store":
        tl.store(x + i, 1)
    elif CASE == "helper":
        written_by(x, i)
    elif CASE == "loop":
        p = x + i
        for _ in range(n):
            tl.store(p, 1)
            p += B
    elif CASE == "after a loop":
        p = x + i
        for _ in range(n):
            p += B
        tl.store(p, 1)
    elif CASE == "while":
        p = x + i
        while n > 0:
            p += B
            n -= 1
        tl.store(p, 1)
    elif CASE == "where":
        tl.store(tl.where(i < n, x + i, out + i), 1)
    elif CASE == "bitcast":
        tl.store(x.to(tl.pointer_type(tl.float32), bitcast=True), 1.0)
    elif CASE == "atomic":
        tl.atomic_add(x + i, 1)
    elif CASE == "swap":
        tl.atomic_cas(x, 0, 1)
    elif CASE == "atomic store":
        tl.atomic_store(x, 1)
    elif CASE == "block":
        tl.store(tl.make_block_ptr(x, (B,), (1,), (0,), (B,), (0,)), 1)
    else:
        tl.make_tensor_descriptor(x, [B], [1], [B]).store([0], i)


CASES = [
    "store", "helper", "loop", "after a loop", "while", "where", "bitcast", "atomic", "swap", "atomic store", "block",
    "descriptor",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_writing_is_refused(case: str) -> None:
    with pytest.raises(CompilationError) as caught:
        writes[(1,)](np.zeros(8, np.int32), np.zeros(8, np.int32), 2, CASE=case, B=8)
    assert caught.value.message == "Cannot store to a constant pointer"


@weft.jit
def both(x: tl.const, out: Any, n: Any, B: tl.constexpr) -> None:
    """The loop carries a pointer of each kind; only the other is written through."""
    p, q = x + tl.arange(0, B), out + tl.arange(0, B)
    for _ in range(n):
        tl.store(q, tl.load(p))
        p += B
        q += B
    while n > 0:
        p -= B
        q -= B
        n -= 1
    tl.store(q, tl.load(p))


def test_pointers_beside_are_written() -> None:
    x, out = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    both[(1,)](x, out, 2, B=8)
    np.testing.assert_array_equal(out, x)


@weft.jit
def either(x: Any, out: Any, n: Any) -> Any:
    if n > 0:
        return x
    return out


@weft.jit
def joins(x: tl.const, out: Any, n: Any, CASE: tl.constexpr) -> None:
    if CASE == "if":
        p = out
        if n > 0:
            p = x
        tl.load(p)
    elif CASE == "conditional expression":
        p = x if n > 0 else out
    elif CASE == "loop":
        p = out
        for _ in range(n):
            p = x
        tl.load(p)
    elif CASE == "tuple":
        p = (x, n) if n > 0 else (out, n)
    else:
        p = either(x, out, n)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("if", "'p' has different types after an 'if': const pointer<int32> scalar and pointer<int32> scalar"),
        (
            "conditional expression",
            "the sides of a conditional expression have different types: "
            "const pointer<int32> scalar and pointer<int32> scalar",
        ),
        (
            "loop",
            "'p' changes its type in the loop: pointer<int32> scalar before, "
            "const pointer<int32> scalar after an iteration",
        ),
        (
            "tuple",
            "the sides of a conditional expression have different types: "
            "(const pointer<int32> scalar, int32 scalar) and (pointer<int32> scalar, int32 scalar)",
        ),
        ("return", "one path returns const pointer<int32> scalar, another pointer<int32> scalar"),
    ],
)
def test_paths_with_and_without_const_do_not_meet(case: str, message: str) -> None:
    """As in Triton, where `tl.const` is part of the pointer's type."""
    with pytest.raises(CompilationError) as caught:
        joins[(1,)](np.zeros(8, np.int32), np.zeros(8, np.int32), 2, CASE=case)
    assert caught.value.message == message


@weft.jit
def sometimes(x: tl.const, out: Any, n: Any) -> None:
    """Iterations that leave early do not define what the others read."""
    for i in range(4):
        if i == n:
            continue
        p = x + i
        tl.store(out + i, tl.load(p))


def test_a_path_that_has_left_has_any_pointer() -> None:
    x, out = np.arange(1, 5, dtype=np.int32), np.zeros(4, np.int32)
    sometimes[(1,)](x, out, 2)
    assert out.tolist() == [1, 2, 0, 4]

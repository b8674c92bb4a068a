"""Kernels with assertions check that integers do not overflow, as Triton's do."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from sampling import some
from weft.emulator.errors import Trap

pytestmark = pytest.mark.jit


OPERATIONS: dict[str, Callable[[int, int], int]] = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


@weft.jit
def computed(x: Any, y: Any, out: Any, N: tl.constexpr, NAME: tl.constexpr) -> None:
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    if NAME == "add":
        r = a + b
    elif NAME == "sub":
        r = a - b
    else:
        r = a * b
    tl.store(out + i, r)


TYPES = ["int8", "int16", "int32", "uint8", "uint16", "uint32"]
EDGES: list[tuple[str, int, int]] = [
    (name, x, y)
    for name in OPERATIONS
    for x in (-(2**31), -(2**15), -129, -128, -1, 0, 1, 2, 127, 128, 255, 2**15 - 1, 2**16 - 1, 2**31 - 1, 2**32 - 1)
    for y in (-(2**31), -(2**15), -128, -1, 0, 1, 2, 127, 255, 2**15, 2**16 - 1, 2**31 - 1, 2**32 - 1)
]


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", some(TYPES, "int16", "uint16"))
def test_overflow(dtype: str, name: str) -> None:
    """All pairs of edges that the type has; Python's integers say whether the result is one of the type."""
    info = np.iinfo(dtype)
    pairs = [(x, y) for n, x, y in EDGES if n == name and all(info.min <= v <= info.max for v in (x, y))]
    launch: Any = computed[(1,)]
    for x, y in pairs:
        exact = OPERATIONS[name](x, y)
        arrays = np.array([1, x], dtype), np.array([1, y], dtype), np.zeros(2, dtype)
        if info.min <= exact <= info.max:
            launch(*arrays, N=2, NAME=name, debug=True)
        else:
            with pytest.raises(weft.DeviceAssertionError) as caught:
                launch(*arrays, N=2, NAME=name, debug=True)
            assert caught.value.message == f"int{info.bits} overflow detected for operation {name}"
            launch(*arrays, N=2, NAME=name, debug=True, sanitize_overflow=False)
            launch(*arrays, N=2, NAME=name)
        assert int(arrays[2][1]) == (exact - info.min) % 2**info.bits + info.min


@pytest.mark.parametrize("dtype", ["int64", "uint64"])
def test_integers_of_64_bits_wrap(dtype: str) -> None:
    info, x = np.iinfo(dtype), np.array([1, np.iinfo(dtype).max], dtype)
    for name, operation in OPERATIONS.items():
        launch: Any = computed[(1,)]
        launch(x, x, out := np.zeros(2, dtype), N=2, NAME=name, debug=True)
        assert int(out[1]) == (operation(info.max, info.max) - info.min) % 2**64 + info.min


@weft.jit(debug=True)
def sums_of(x: Any, out: Any, N: tl.constexpr, KIND: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if KIND == "sum":
        tl.store(out, tl.sum(v, 0))
    elif KIND == "cumsum":
        tl.store(out + i, tl.cumsum(v, 0))
    elif KIND == "negative":
        tl.store(out + i, -v)
    elif KIND == "wraps":
        tl.store(
            out + i,
            tl.mul(tl.add(v, v, sanitize_overflow=False), 3, sanitize_overflow=False) + tl.rand(7, v).to(tl.int32),
        )
    elif KIND == "wide":
        tl.store(out + i, ((v.to(tl.int64) * 2**40 * 2**40) >> 62).to(tl.int32))
    elif KIND == "address":
        tl.store(out + (i + (v > 1) * 0), (v > 0) & (v * 1.5 > 0))
    else:
        for _ in range(3):
            v = v + v if KIND == "loop" else v
        tl.store(out + i, v)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("sum", "int32 overflow detected for operation add"),
        ("cumsum", "int32 overflow detected for operation add"),
        ("negative", "int32 overflow detected for operation sub"),
        ("loop", "int32 overflow detected for operation add"),
        ("wraps", None),
        ("wide", None),
        ("address", None),
    ],
)
@pytest.mark.parametrize("target", [None, "sm_90"])
def test_what_is_checked_for_overflow(kind: str, message: str | None, target: str | None) -> None:
    kernel: Any = sums_of if target is None else sums_of.on(target)
    out = np.zeros(8, np.int32)
    kernel[(1,)](np.arange(8, dtype=np.int32), out, N=8, KIND=kind)
    large = np.array([-(2**31), *[-1] * 7], np.int32)
    if message is None:
        kernel[(1,)](large, out, N=8, KIND=kind)
    else:
        with pytest.raises(weft.DeviceAssertionError if target is None else Trap, match=message):
            kernel[(1,)](large, out, N=8, KIND=kind)


def test_other_semantics_wrap() -> None:
    kernel = weft.jit(debug=True, semantics="numpy")(computed.fn)
    out = np.zeros(2, np.int32)
    kernel[(1,)](np.full(2, 2**31 - 1, np.int32), np.ones(2, np.int32), out, N=2, NAME="add")
    assert out.tolist() == [-(2**31)] * 2

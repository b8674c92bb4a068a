"""Kernels in a package's semantics compute its values: those that were printed by JAX 0.10.2 on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

X = np.array([5, 41, 49, 7], np.float32)
EXACT = [0.10204081982374191, 0.8367347121238708, 1.0, 0.1428571492433548]
INVERTED = [0.10204081237316132, 0.8367346525192261, 1.0, 0.1428571343421936]
"""``X / 49`` rounded once, and by a multiplication with 1 / 49, as JAX divides by what is repeated."""


@weft.jit
def divide(X: Any, Y: Any, OUT: Any, ACROSS: tl.constexpr) -> None:
    i, j = tl.arange(0, 4)[:, None], tl.arange(0, 4)[None, :]
    x = tl.load(X + i * 4 + j)
    y = tl.load(Y + (j if ACROSS == "row" else i)) if ACROSS != "tile" else tl.load(Y + i * 0 + j)
    tl.store(OUT + i * 4 + j, x / y)


@weft.jit
def divide_one_row(X: Any, Y: Any, OUT: Any) -> None:
    i, j = tl.arange(0, 4)[:, None], tl.arange(0, 4)[None, :]
    tl.store(OUT + i * 4 + j, tl.load(X + j) / tl.load(Y + i))


@pytest.mark.parametrize(
    ("semantics", "across", "expected"),
    [
        *(("jax@0.10", "row", INVERTED), ("jax@0.10", "column", INVERTED), ("jax@0.10", "tile", EXACT)),
        *(("jax", "row", EXACT), ("torch", "row", EXACT), ("triton", "row", EXACT)),
    ],
)
def test_divisors_that_broadcasting_repeats(semantics: str, across: str, expected: list[float]) -> None:
    out = np.zeros((4, 4), np.float32)
    kernel = weft.jit(semantics=semantics)(divide.fn)
    kernel[(1,)](np.tile(X, (4, 1)), np.full(4, 49, np.float32), out, across)
    assert out.tolist() == [expected] * 4


def test_both_sides_are_repeated() -> None:
    out = np.zeros((4, 4), np.float32)
    weft.jit(semantics="jax@0.10")(divide_one_row.fn)[(1,)](X, np.full(4, 49, np.float32), out)
    assert out.tolist() == [INVERTED] * 4


@weft.jit(semantics="jax@0.10")
def convert(X: Any, Y: Any, OUT: Any) -> None:
    i = tl.arange(0, 4)
    tl.store(OUT + i, tl.load(X + i) + tl.load(Y + i))


def test_operands_of_two_types_lose_subnormal_numbers() -> None:
    tiny = np.float32(2.0**-126)
    x = np.array([tiny / 2, -tiny / 2, tiny, 1], np.float32)
    out = np.zeros(4)
    convert[(1,)](x, np.array([1e-300, 1e-300, 0.0, 0.0]), out)
    assert out.tolist() == [1e-300, 1e-300, float(tiny), 1.0]

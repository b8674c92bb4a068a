"""Attributes of classes, dataclasses, named tuples and enums, as compile-time values; advice for names of other libraries.

Each kernel stores what Python computes from the same objects.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: basic, reportAssignmentType=false, reportArgumentType=false, reportAttributeAccessIssue=false
# pyright: reportUndefinedVariable=false, reportCallIssue=false, reportOperatorIssue=false

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft.language as tl
from weft.frontend import CompilationError, KernelFunction

jit = KernelFunction
Execute = Callable[..., None]


class Config:
    BLOCK = 16
    WIDE = tl.constexpr(4)


@dataclass(frozen=True)
class Tiling:
    rows: int = 8
    columns: int = 2

    @property
    def size(self) -> int:
        return self.rows * self.columns


class Pair(NamedTuple):
    first: Any
    second: Any


class Mode(enum.Enum):
    SUM = 1
    PRODUCT = 2


class Level(enum.IntEnum):
    HIGH = 3


class Plain:
    b = 5

    def __repr__(self) -> str:
        return "Plain()"


TILING = tl.constexpr(Tiling(4, 4))


@jit
def swapped(pair: Any) -> Any:
    return Pair(pair.second, first_of(pair))


@jit
def first_of(pair: Any) -> Any:
    return pair.first


@jit
def reads(out: Any, n: Any, t: tl.constexpr, p: tl.constexpr, m: tl.constexpr) -> None:
    tl.store(out, Config.BLOCK + Config.WIDE)
    tl.store(out + 1, t.rows + TILING.size)
    tl.store(out + 2, p.second)
    tl.store(out + 3, 1 if m is Mode.SUM else 0)
    tl.store(out + 4, m.value)
    tl.store(out + 5, Level.HIGH + 1)
    both = swapped(Pair(n, 2 * n))
    tl.store(out + 6, both.first - both.second)
    chosen = Pair(n, 1) if n > 0 else Pair(1, n)
    tl.store(out + 7, chosen.first)


def test_records_are_read(execute: Execute) -> None:
    out = np.zeros(8, np.int32)
    execute(reads, out=out, n=np.int32(7), t=Tiling(), p=Pair(1, 9), m=Mode.SUM)
    assert out.tolist() == [20, 8 + 16, 9, 1, 1, 4, 7, 7]


@jit
def reads_global(out: Any) -> None:
    tl.store(out, TILING.rows)


def test_a_kernel_depends_on_the_fields_it_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    before = reads_global.dependencies()
    monkeypatch.setitem(reads_global.fn.__globals__, "TILING", tl.constexpr(Tiling(5, 4)))
    assert reads_global.dependencies() != before


workspace_bytes = 3
"""A variable of the host program, which no advice may name."""


@jit
def plain(out: Any, c: tl.constexpr) -> None:
    tl.store(out, c.b)


@jit
def misspelled_field(out: Any, c: tl.constexpr) -> None:
    tl.store(out, c.row)


@jit
def numpy_function(out: Any) -> None:
    tl.store(out, np.sqrt(tl.load(out)))


@jit
def math_function(out: Any) -> None:
    tl.store(out, math.fabs(tl.load(out)))


@jit
def numpy_type(out: Any) -> None:
    tl.store(out, tl.zeros((1,), np.float32))


@jit
def numpy_conversion(out: Any) -> None:
    tl.store(out, np.float32(tl.load(out)))


@jit
def host_variable(out: Any) -> None:
    tl.store(out, workspace_byte)  # noqa: F821 - the misspelt name is the test


@jit
def misspelled_helper(out: Any) -> None:
    tl.store(out, swaped)  # noqa: F821 - the same


@jit
def too_large(out: Any) -> None:
    tl.store(out, tl.load(out) + 1e300)


@jit
def too_small(out: Any) -> None:
    tl.store(out, -(2**200))


RANGE = "use float('inf') where infinity is meant, or a wider dtype, for example tl.full(..., tl.float64)"


@pytest.mark.parametrize(
    ("kernel", "constants", "message", "hint"),
    [
        (
            plain,
            {"c": Plain()},
            "kernels do not read attributes of Plain(), an object of the class Plain",
            "use a frozen dataclass, a NamedTuple or an enum, or pass the attribute as an argument",
        ),
        (
            misspelled_field,
            {"c": Tiling()},
            "Tiling(rows=8, columns=2) has no attribute 'row'",
            "did you mean 'rows'?",
        ),
        (numpy_function, {}, "<ufunc 'sqrt'> cannot be called in a kernel", "use tl.sqrt"),
        (math_function, {}, "math.fabs takes compile-time values, found float32 scalar", "use tl.abs"),
        (numpy_type, {}, "'dtype' is a dtype such as tl.float32, found the type float32", "use tl.float32"),
        (
            numpy_conversion,
            {},
            "the type float32 cannot be called in a kernel",
            "convert with .to(tl.float32), or make a tile with tl.full",
        ),
        (host_variable, {}, "the name 'workspace_byte' is not defined", None),
        (misspelled_helper, {}, "the name 'swaped' is not defined", "did you mean 'swapped'?"),
        (too_large, {}, "1e+300 is beyond the range of float32, whose largest number is 3.40282e+38", RANGE),
        (too_small, {}, f"{-(2**200)} is beyond the range of float32, whose largest number is 3.40282e+38", RANGE),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_refused(
    execute: Execute, kernel: KernelFunction, constants: dict[str, Any], message: str, hint: str | None
) -> None:
    with pytest.raises(CompilationError) as caught:
        execute(kernel, out=np.zeros(1, np.float32), **constants)
    assert (caught.value.message, caught.value.hint) == (message, hint)
    assert caught.value.spans


@jit
def infinities(out: Any) -> None:
    tl.store(out, float("inf"))
    tl.store(out + 1, tl.load(out + 1) - float("inf"))


def test_infinity_is_no_overflow(execute: Execute) -> None:
    out = np.zeros(2, np.float32)
    execute(infinities, out=out)
    assert out.tolist() == [math.inf, -math.inf]

"""Integer instructions against Python's integers: values worth trying, and one check of an instruction on all of them.

The models are functions of Python ints, given the operands as their types read them; results are compared modulo 2**n.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from emulator_harness import execute
from sampling import at_night
from weft.emulator.ptx.types import TYPES

Model: TypeAlias = (
    Callable[[int], int]
    | Callable[[int, int], int]
    | Callable[[int, int, int], int]
    | Callable[[int, int, int, int], int]
)
"""What an instruction gives for operands."""

COUNT = 1024 if at_night() else 256
"""Random rows of a check."""
FIXED = 256
"""Rows of a check with a constant operand by day, at most; nightly it has all rows."""


def bits_of(kind: str) -> int:
    """The width of a type."""
    return TYPES[kind].bits


def wrap(value: int, kind: str) -> int:
    """The number of a type that is the same modulo 2**n."""
    n = bits_of(kind)
    value &= (1 << n) - 1
    return value - (1 << n) if kind.startswith("s") and value >> (n - 1) else value


def edges(kind: str) -> list[int]:
    """Numbers near which something happens: 0, the ends, powers of two, patterns."""
    n = bits_of(kind)
    near = [0, 1, 2, 3, 5, 7, 31, 32, 33, 63, 64, 65, 100, 255, 256]
    tops = [1 << (n - 1), 1 << (n // 2), (1 << n) // 3, (1 << n) // 5, (1 << 23), (1 << 24) - 1]
    around = [top + d for top in tops for d in (-1, 0, 1)]
    return sorted({wrap(sign * v, kind) for v in (*near, *around) for sign in (1, -1)})


def samples(*kinds: str, seed: int = 0, count: int = COUNT) -> list[NDArray[Any]]:
    """Operands: combinations of edges (all pairs of two operands, some of more) and random ones of random lengths."""
    return [column.copy() for column in _samples(kinds, seed, count)]


@cache
def _samples(kinds: tuple[str, ...], seed: int, count: int) -> list[NDArray[Any]]:
    rng = np.random.default_rng([seed, *map(ord, "".join(kinds))])
    lists = [edges(kind) for kind in kinds]
    if len(kinds) <= 2:
        rows = list(itertools.product(*lists))
    else:
        rows = [tuple(values[int(rng.integers(len(values)))] for values in lists) for _ in range(count)]
    total = -(-(len(rows) + count) // 256) * 256
    columns: list[NDArray[Any]] = []
    for i, kind in enumerate(kinds):
        n = bits_of(kind)
        words = rng.integers(0, 1 << 63, total, dtype=np.uint64) * np.uint64(2) + rng.integers(
            0, 2, total, dtype=np.uint64
        )
        short = words >> rng.integers(64 - n, 64, total, dtype=np.uint64)
        values = [row[i] for row in rows] + [int(v) for v in short[len(rows) :]]
        columns.append(array([wrap(v, kind) for v in values], kind))
    return columns


def array(values: Sequence[int], kind: str) -> NDArray[Any]:
    """Python ints as an array of a type."""
    n = bits_of(kind)
    return np.array([v & ((1 << n) - 1) for v in values], f"u{n // 8}").view(TYPES[kind].numpy)


def expected(model: Model, columns: Sequence[NDArray[Any]], kind: str) -> NDArray[Any]:
    """The model of every row."""
    call: Callable[..., int] = model
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return array([int(call(*row)) for row in rows], kind)


def check(
    text: str,
    kinds: Sequence[str],
    result: str,
    model: Model,
    columns: Sequence[NDArray[Any]] | None = None,
    thorough: bool = True,
) -> None:
    """``text`` is an instruction from %a, %b, %c, %e (of these kinds) to %d. It is tried on some of the threads (the others keep
    what they had), and if ``thorough`` on all of them and with each operand in turn a constant (unless it is negated, or only a
    part of it is meant)."""
    columns = samples(*kinds) if columns is None else columns
    names = "abce"[: len(kinds)]
    inputs = {name: (kind, column) for name, kind, column in zip(names, kinds, columns, strict=True)}
    want = expected(model, columns, result)
    some = np.random.default_rng(1).random(len(want)) < 0.6
    got = execute(text, dict(inputs), {"d": result}, active=some)["d"]
    assert_rows(text, columns, got, np.where(some, want, np.zeros_like(want)))
    if not thorough:
        return

    got = execute(text, dict(inputs), {"d": result})["d"]
    assert_rows(text, columns, got, want)

    for i, name in enumerate(names):
        place = len(want) // 3 + 7 * i
        value = columns[i][place].item()
        constant = re.sub(rf"(?<!-)%{name}\b(?!\.)", str(value), text)
        few = columns if at_night() else [c[:: max(1, c.size // FIXED)][:FIXED] for c in columns]
        fixed = [np.full_like(c, value) if j == i else c for j, c in enumerate(few)]
        rest = {n: (kind, c) for n, kind, c in zip(names, kinds, fixed, strict=True) if n != name}
        if rest and constant != text:
            got = execute(constant, rest, {"d": result})["d"]
            assert_rows(constant, fixed, got, expected(model, fixed, result))


def assert_rows(text: str, columns: Sequence[NDArray[Any]], got: NDArray[Any], want: NDArray[Any]) -> None:
    """Fails with the first operands that give something else."""
    wrong = (got != want).nonzero()[0]
    if wrong.size:
        i = int(wrong[0])
        operands = ", ".join(hex(int(column[i])) for column in columns)
        raise AssertionError(
            f"{text}: of ({operands}) gives {hex(int(got[i]))}, expected {hex(int(want[i]))}; {wrong.size} of {len(got)} differ"
        )

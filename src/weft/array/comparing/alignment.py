"""Finds which operations of several executions correspond to each other.

Executions are sequences of program points, aligned as a text comparison aligns lines: what both have in the same order is the
same operation, the rest belongs to one side. Pairing the n-th with the n-th would report every operation after the first branch
that differs. Where no branch differs, both give the same pairs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher

Row = list[int | None]
"""For each execution, which of its operations this is; None where it has none."""


def align(executions: Sequence[Sequence[Hashable]]) -> list[Row]:
    """The operations of all executions in one order that contains the order of each."""
    merged: list[Hashable] = list(executions[0])
    rows: list[Row] = [[i] for i in range(len(merged))]
    for count, execution in enumerate(executions[1:], 1):
        keys: list[Hashable] = []
        joined: list[Row] = []
        for i, j in pairs(merged, execution):
            keys.append(merged[i] if i is not None else execution[j or 0])
            joined.append([*(rows[i] if i is not None else [None] * count), j])
        merged, rows = keys, joined
    return rows


def pairs(a: Sequence[Hashable], b: Sequence[Hashable]) -> Iterator[tuple[int | None, int | None]]:
    """The indices of equal elements together, the others alone, in the order of both."""
    head = _shared(a, b)
    tail = _shared(a[head:][::-1], b[head:][::-1])
    yield from ((i, i) for i in range(head))
    middle = SequenceMatcher(None, a[head : len(a) - tail], b[head : len(b) - tail], autojunk=False)
    for tag, a0, a1, b0, b1 in middle.get_opcodes():
        if tag == "equal":
            yield from ((head + i, head + i - a0 + b0) for i in range(a0, a1))
        else:
            yield from ((head + i, None) for i in range(a0, a1))
            yield from ((None, head + j) for j in range(b0, b1))
    yield from ((len(a) - tail + i, len(b) - tail + i) for i in range(tail))


def _shared(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """How many elements both begin with."""
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))

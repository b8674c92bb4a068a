"""Short descriptions of sets of operands: ``int8..int64 with uint8, uint16``.

Rules apply to families of types, so the pairs on which two systems differ are mostly products of sets. `compact`
covers the set of pairs by products, greedily: take the operand with the most partners left, and with it every other that
has all of those partners. A pair and its mirror image are one where the whole set is symmetric; else the sides are named.
The cover is exact (the products' union is the set) but not always the smallest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from weft import dtypes
from weft.dtypes import DType
from weft.semantics.core import Operand, Type
from weft.semantics.explanation import symbol

_RUNS: Final[tuple[tuple[DType, ...], ...]] = (
    (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
)
"""Runs of types that ``..`` abbreviates where three or more neighbours occur."""

_FAMILIES: Final[tuple[tuple[str, Callable[[Operand], bool]], ...]] = (
    ("every type", lambda o: isinstance(o, (DType, Type))),
    ("integers", lambda o: isinstance(o, DType) and o.is_integer),
    ("floats", lambda o: isinstance(o, DType) and o.is_float),
    ("float8 types", lambda o: isinstance(o, DType) and o.is_float8),
    ("complex types", lambda o: isinstance(o, DType) and o.is_complex),
    ("literals", lambda o: isinstance(o, (bool, int, float, complex))),
    ("integer literals", lambda o: isinstance(o, int) and not isinstance(o, bool)),
    ("float literals", lambda o: isinstance(o, float)),
)
"""Words for all the members of a family that exist in a comparison, where there are three or more; the widest first."""


def compact(cases: Sequence[tuple[Operand, ...]], common: Sequence[Operand]) -> tuple[str, ...]:
    """Lines that name exactly the operand tuples ``cases`` (all of one length, 1 or 2); ``common`` are all the
    operands that could occur."""
    if not cases:
        return ()
    if len(cases[0]) == 1:
        return (names([case[0] for case in cases], common),)
    pairs = [(a, b) for a, b in cases]
    known = set(map(_key, pairs))
    if all(_key((b, a)) in known for a, b in pairs):
        return tuple(f"{names(x, common)} with {names(y, common)}" for x, y in products(pairs, symmetric=True))
    return tuple(
        f"{names(x, common)} (left) with {names(y, common)} (right)" for x, y in products(pairs, symmetric=False)
    )


def products(pairs: Iterable[tuple[Operand, Operand]], *, symmetric: bool) -> list[tuple[list[Operand], list[Operand]]]:
    """Products of sets whose union is ``pairs``, with the mirror images where ``symmetric``; no pair is in two of them
    (but for the mirror images)."""
    partners: dict[str, dict[str, None]] = {}
    operands: dict[str, Operand] = {}
    for a, b in pairs:
        left, right = _key((a,))[0], _key((b,))[0]
        operands |= {left: a, right: b}
        partners.setdefault(left, {})[right] = None
    found: list[tuple[list[Operand], list[Operand]]] = []
    while any(partners.values()):
        most = max(partners, key=lambda key: len(partners[key]))
        right = list(partners[most])
        left = [key for key in partners if partners[key] and all(r in partners[key] for r in right)]
        for key in left:
            for r in right:
                partners[key].pop(r, None)
                if symmetric:
                    partners[r].pop(key, None)
        found.append(([operands[key] for key in left], [operands[key] for key in right]))
    return found


def names(operands: Sequence[Operand], common: Sequence[Operand]) -> str:
    """The operands' names; families of which ``common`` has no more, and runs, abbreviated."""
    listed = {symbol(o): o for o in operands}
    words: list[str] = []
    for word, belongs in _FAMILIES:
        family = {symbol(o) for o in common if belongs(o)}
        if len(family) >= 3 and family <= listed.keys():
            words.append(word)
            listed = {name: o for name, o in listed.items() if name not in family}
    rest = list(listed)
    for run in _RUNS:
        places = [i for i, d in enumerate(run) if d.name in rest]
        if len(places) >= 3 and places == list(range(places[0], places[-1] + 1)):
            inside = [run[i].name for i in places]
            rest[rest.index(inside[0])] = f"{inside[0]}..{inside[-1]}"
            rest = [name for name in rest if name not in inside]
    return ", ".join([*words, *(_POWERS.get(name, name) for name in rest)])


_POWERS: Final = {str(2**k): f"2**{k}" for k in (31, 32, 40, 63, 64)}


def _key(pair: tuple[Operand, ...]) -> tuple[str, ...]:
    """Operands by their spelling: ``True == 1`` in Python, but they are two literals."""
    return tuple(map(symbol, pair))

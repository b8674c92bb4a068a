"""The laws a promotion obeys, and every exception to each.

A system's table is a partial operation on types: a·b is a type, or is refused. Each law is computed for each system, as a
list of its counterexamples, which is empty where the law holds:

    commutative    a·b = b·a
    idempotent     a·a = a
    associative    (a·b)·c = a·(b·c)
    monotone       a <= b implies a·c <= b·c and c·a <= c·b, where all are defined

with the order that the operation itself induces, ``a <= b`` where a·b = b·a = b. A refusal equals a refusal and nothing
else; what fails only because one side is refused is told apart (`Triple.through_refusal`).

Worked on NumPy's uint8, int8, int16, float16, float32::

    uint8·int8 = int16    int8·float16 = float16    uint8·float16 = float16    int16·float16 = float32

    associative    no: (uint8·int8)·float16 = float32, uint8·(int8·float16) = float16
    order          uint8 <= int16, int8 <= int16, uint8 <= float16, int8 <= float16, all <= float32
    bounds         int16 and float16 are both minimal above uint8 and int8: int16 is no least upper bound

Law: an operation without refusals is commutative, idempotent and associative exactly where it is commutative, its order is
transitive, and each a·b is the least upper bound of a and b; it is then monotone as well.

The order is antisymmetric by definition, transitive not always. Where it is not (`Order.intransitive`), `Order.covers` are
the pairs with nothing between them, and a path of covers need not mean ``<=``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from weft.semantics import PromotionError, Semantics, Type, get

N = TypeVar("N", bound=Hashable)

Combine: TypeAlias = Callable[[N, N], N | None]
"""The operation; None for a refusal."""


@dataclass(frozen=True)
class Pair(Generic[N]):
    """A pair whose two orders give different results."""

    a: N
    b: N
    result: N | None
    swapped: N | None

    def __str__(self) -> str:
        return f"{self.a}·{self.b} = {_show(self.result)}, {self.b}·{self.a} = {_show(self.swapped)}"


@dataclass(frozen=True)
class Triple(Generic[N]):
    """A triple that is not associative: ``left`` is (a·b)·c, ``right`` a·(b·c)."""

    a: N
    b: N
    c: N
    left: N | None
    right: N | None

    @property
    def through_refusal(self) -> bool:
        """Whether one side is refused, the other defined."""
        return self.left is None or self.right is None

    def __str__(self) -> str:
        a, b, c = self.a, self.b, self.c
        return f"({a}·{b})·{c} = {_show(self.left)}, {a}·({b}·{c}) = {_show(self.right)}"


@dataclass(frozen=True)
class Fall(Generic[N]):
    """A case that is not monotone: ``a <= b``, yet ``lower``, of a with c, is not <= ``upper``, of b with c."""

    a: N
    b: N
    c: N
    lower: N
    upper: N

    def __str__(self) -> str:
        return f"{self.a} <= {self.b}, but with {self.c} they give {self.lower} and {self.upper}"


class Bound(NamedTuple, Generic[N]):
    """A pair whose result is not its least upper bound: ``minimal`` are the upper bounds with none below them."""

    a: N
    b: N
    result: N
    minimal: tuple[N, ...]

    def __str__(self) -> str:
        minimal = " and ".join(map(str, self.minimal)) or "none"
        return f"{self.a}·{self.b} = {self.result}, minimal upper bounds: {minimal}"


@dataclass(frozen=True)
class Order(Generic[N]):
    """The order an operation induces on ``elements``."""

    elements: tuple[N, ...]
    pairs: frozenset[tuple[N, N]]
    """Every (a, b) with ``a <= b``; (a, a) where a·a = a."""
    bounds: tuple[Bound[N], ...]
    """The unordered pairs, elements first as in ``elements``, whose result is not their least upper bound."""

    def below(self, a: N, b: N) -> bool:
        """Whether ``a <= b``."""
        return (a, b) in self.pairs

    @property
    def covers(self) -> tuple[tuple[N, N], ...]:
        """The edges of the Hasse diagram, lower end first: ``a < b`` with nothing between (the transitive reduction)."""
        strict = {(a, b) for a, b in self.pairs if a != b}
        return tuple(
            (a, b)
            for a, b in product(self.elements, repeat=2)
            if (a, b) in strict and not any((a, c) in strict and (c, b) in strict for c in self.elements)
        )

    @property
    def intransitive(self) -> tuple[tuple[N, N, N], ...]:
        """The triples with ``a <= b <= c`` but not ``a <= c``."""
        return tuple(
            (a, b, c)
            for a, b in sorted(self.pairs, key=lambda p: tuple(map(self.elements.index, p)))
            for c in self.elements
            if (b, c) in self.pairs and (a, c) not in self.pairs
        )


@dataclass(frozen=True)
class Algebra(Generic[N]):
    """The exceptions to each law, in the order of ``elements``; an empty tuple says that the law holds."""

    name: str
    elements: tuple[N, ...]
    refused: tuple[tuple[N, N], ...]
    """The ordered pairs without a result."""
    noncommutative: tuple[Pair[N], ...]
    """Each unordered pair once."""
    nonidempotent: tuple[tuple[N, N | None], ...]
    """(a, a·a)."""
    nonassociative: tuple[Triple[N], ...]
    nonmonotone: tuple[Fall[N], ...]
    order: Order[N]

    @property
    def nonassociative_defined(self) -> tuple[Triple[N], ...]:
        """The triples with both sides defined."""
        return tuple(t for t in self.nonassociative if not t.through_refusal)

    def report(self, examples: int = 4) -> str:
        """The laws, one a line, each exception counted and the first few shown."""
        count = len(self.elements)
        lines = [f"{self.name}: {count} types, {len(self.refused)} of {count**2} pairs refused"]
        defined = len(self.nonassociative_defined)
        idempotent = [f"{a}·{a} = {_show(result)}" for a, result in self.nonidempotent]
        associative = self.nonassociative_defined or self.nonassociative
        laws: list[tuple[str, Sequence[object], str]] = [
            ("commutative", self.noncommutative, f"{len(self.noncommutative)} pairs"),
            ("idempotent", idempotent, f"{len(idempotent)} types"),
            (
                "associative",
                associative,
                f"{len(self.nonassociative)} of {count**3} triples, {defined} without refusals",
            ),
            ("monotone", self.nonmonotone, f"{len(self.nonmonotone)} cases"),
            ("a least upper bound", self.order.bounds, f"{len(self.order.bounds)} pairs"),
        ]
        for law, exceptions, text in laws:
            lines.append(f"  {law}: {f'no, {text}' if exceptions else 'yes'}")
            lines += [f"    {exception}" for exception in exceptions[:examples]]
        return "\n".join(lines)


def algebra(system: str | Semantics, op: str | None = "+", elements: Sequence[Type] | None = None) -> Algebra[Type]:
    """The laws of ``op`` (None: of promotion itself) in a system, over its dtypes, or over ``elements`` (JAX's weak types,
    PyTorch's arrays without dimensions)."""
    system = get(system)
    return laws(f"{system.name} {op or 'promote'}", _elements(system, elements), _operation(system, op))


def order(system: str | Semantics, op: str | None = None, elements: Sequence[Type] | None = None) -> Order[Type]:
    """The order a system's promotion induces: ``a <= b`` where promote(a, b) = promote(b, a) = b; of an op's results if
    ``op`` is given."""
    system = get(system)
    return induced(_elements(system, elements), _operation(system, op))


def laws(name: str, elements: Sequence[N], combine: Combine[N]) -> Algebra[N]:
    """The laws of any operation on ``elements``. Its results need not be among them, if it takes them as operands."""
    of = _remembered(combine)
    nonidempotent = tuple((a, of(a, a)) for a in elements if of(a, a) != a)
    ranked = induced(elements, of)
    return Algebra(
        name,
        tuple(elements),
        refused=tuple((a, b) for a, b in product(elements, repeat=2) if of(a, b) is None),
        noncommutative=tuple(
            Pair(a, b, of(a, b), of(b, a)) for a, b in combinations(elements, 2) if of(a, b) != of(b, a)
        ),
        nonidempotent=nonidempotent,
        nonassociative=tuple(_nonassociative(elements, of)),
        nonmonotone=tuple(_nonmonotone(elements, of, ranked)),
        order=ranked,
    )


def induced(elements: Sequence[N], combine: Combine[N]) -> Order[N]:
    """The order that any operation induces on ``elements``."""
    of = _remembered(combine)
    pairs = frozenset((a, b) for a, b in product(elements, repeat=2) if of(a, b) == b == of(b, a))
    bounds: list[Bound[N]] = []
    for a, b in combinations(elements, 2):
        upper = [u for u in elements if (a, u) in pairs and (b, u) in pairs]
        least = [u for u in upper if all(u == v or (u, v) in pairs for v in upper)]
        result = of(a, b)
        if result is not None and [result] != least:
            minimal = tuple(u for u in upper if not any(v != u and (v, u) in pairs for v in upper))
            bounds.append(Bound(a, b, result, minimal))
    return Order(tuple(elements), pairs, tuple(bounds))


def _nonassociative(elements: Sequence[N], of: Combine[N]) -> list[Triple[N]]:
    found: list[Triple[N]] = []
    for a, b in product(elements, repeat=2):
        ab = of(a, b)
        for c in elements:
            bc = of(b, c)
            left = None if ab is None else of(ab, c)
            right = None if bc is None else of(a, bc)
            if left != right:
                found.append(Triple(a, b, c, left, right))
    return found


def _nonmonotone(elements: Sequence[N], of: Combine[N], ranked: Order[N]) -> list[Fall[N]]:
    found: list[Fall[N]] = []
    for a, b, c in product(elements, repeat=3):
        if a == b or not ranked.below(a, b):
            continue
        sides = dict.fromkeys([(of(a, c), of(b, c)), (of(c, a), of(c, b))])  # one, where the operation commutes
        found += [
            Fall(a, b, c, lower, upper)
            for lower, upper in sides
            if lower is not None and upper is not None and not (of(lower, upper) == upper == of(upper, lower))
        ]
    return found


def _elements(system: Semantics, elements: Sequence[Type] | None) -> tuple[Type, ...]:
    return tuple(Type(dtype) for dtype in system.dtypes) if elements is None else tuple(elements)


def _operation(system: Semantics, op: str | None) -> Combine[Type]:
    def combine(a: Type, b: Type) -> Type | None:
        try:
            return system.promote(a, b) if op is None else system.result(op, a, b)
        except PromotionError:
            return None

    return combine


def _remembered(combine: Combine[N]) -> Combine[N]:
    table: dict[tuple[N, N], N | None] = {}

    def of(a: N, b: N) -> N | None:
        if (a, b) not in table:
            table[a, b] = combine(a, b)
        return table[a, b]

    return of


def _show(result: object) -> str:
    return "refused" if result is None else str(result)

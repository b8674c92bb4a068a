"""A promotion lattice: a directed graph of types in which two types meet in their least upper bound.

An edge ``a -> b`` says that a value of type ``a`` may become one of type ``b``; ``a <= b`` where a path leads from a to b.
The join of a set of types N is the one common upper bound that lies below all others:

    U(N) = {u : n <= u for all n in N},    join(N) = the u in U(N) with u <= v for all v in U(N).

Worked on four types, ``bool -> int8 -> int16`` and ``bool -> uint8 -> int16``::

    join(int8, uint8)   U = {int16}                 int16
    join(bool, int8)    U = {int8, int16}           int8
    join(int8, int16)   U = {int16}                 int16

Law: join is commutative, idempotent, monotone and associative, also where joins do not exist: join(a, b) is None only if
nothing is above both, and then nothing is above a, b and any c.

The graph is the definition, not a table of all pairs, in which a mistake could not be told from a rule. The constructor checks
that the graph is acyclic, and that each pair has one join, or no common upper bound at all (the pair is listed in
`Lattice.unjoinable`). A pair with several minimal upper bounds is refused, because its promotion would be ambiguous.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from itertools import combinations
from typing import Generic, TypeVar

N = TypeVar("N", bound=Hashable)


class Lattice(Generic[N]):
    """The graph ``edges`` (node -> the nodes directly above it), proved. Nodes need hashing and a readable ``str``.

    Raises `ValueError` for a cycle and for a pair with several minimal upper bounds.
    """

    def __init__(self, edges: Mapping[N, Iterable[N]]) -> None:
        covers = {node: tuple(dict.fromkeys(above)) for node, above in edges.items()}
        for above in tuple(covers.values()):
            for node in above:
                covers.setdefault(node, ())
        self.edges: dict[N, tuple[N, ...]] = covers
        """Each node and the nodes directly above it, in the order given."""
        try:
            order = list(TopologicalSorter(covers).static_order())
        except CycleError as error:
            raise ValueError(f"the lattice has a cycle: {' -> '.join(map(str, reversed(error.args[1])))}") from None
        self._above: dict[N, frozenset[N]] = {}
        for node in order:  # what is above comes first
            self._above[node] = frozenset({node}).union(*(self._above[n] for n in covers[node]))
        self._joins: dict[tuple[N, ...], N | None] = {}
        self._paths: dict[tuple[N, N], tuple[N, ...] | None] = {}
        self.unjoinable: frozenset[frozenset[N]] = frozenset(self._prove())
        """The pairs without a common upper bound."""

    def _prove(self) -> Iterable[frozenset[N]]:
        for a, b in combinations(self.edges, 2):
            if self.join(a, b) is not None:
                continue
            minimal = self.minimal_upper_bounds(a, b)
            if len(minimal) > 1:
                raise ValueError(
                    f"{a} and {b} have no least upper bound: {' and '.join(map(str, minimal))} are minimal"
                )
            if not minimal:
                yield frozenset({a, b})

    def __repr__(self) -> str:
        edges = sum(map(len, self.edges.values()))
        return f"Lattice({len(self.edges)} types, {edges} edges, {len(self.unjoinable)} pairs without an upper bound)"

    @property
    def nodes(self) -> tuple[N, ...]:
        """The types, in the order of definition."""
        return tuple(self.edges)

    def below(self, a: N, b: N) -> bool:
        """Whether ``a <= b``."""
        return b in self._above[a]

    def upper_bounds(self, *nodes: N) -> frozenset[N]:
        """U(nodes); `ValueError` for no nodes."""
        if not nodes:
            raise ValueError("upper bounds of no types; name at least one")
        first, *rest = nodes
        return self._above[first].intersection(*(self._above[n] for n in rest))

    def minimal_upper_bounds(self, *nodes: N) -> tuple[N, ...]:
        """The upper bounds with no other upper bound below them: exactly one where the join exists."""
        bounds = self.upper_bounds(*nodes)
        return tuple(n for n in self.edges if n in bounds and not any(m != n and n in self._above[m] for m in bounds))

    def join(self, *nodes: N) -> N | None:
        """The least upper bound; None where there is no common upper bound. `KeyError` for a node it does not have."""
        if nodes not in self._joins:
            bounds = self.upper_bounds(*nodes)
            # The least element has the most elements above it, all of them bounds.
            self._joins[nodes] = next((n for n in bounds if len(self._above[n]) == len(bounds)), None)
        return self._joins[nodes]

    def path(self, a: N, b: N) -> tuple[N, ...] | None:
        """A shortest path from ``a`` up to ``b``; None where there is none. Among equals, the edges given first."""
        if (a, b) not in self._paths:
            self._paths[a, b] = self._search(a, b) if self.below(a, b) else None
        return self._paths[a, b]

    def _search(self, a: N, b: N) -> tuple[N, ...]:
        paths: dict[N, tuple[N, ...]] = {a: (a,)}
        frontier = [a]
        for node in frontier:  # breadth first: the list grows while we walk it
            if node == b:
                return paths[b]
            for above in self.edges[node]:
                if above not in paths and self.below(above, b):
                    paths[above] = (*paths[node], above)
                    frontier.append(above)
        raise AssertionError(f"{b} is above {a}, but no path leads there")

    def reduced(self) -> dict[N, tuple[N, ...]]:
        """The edges without those implied by others (a Hasse diagram's)."""
        return {
            node: tuple(n for n in above if not any(m != n and n in self._above[m] for m in above))
            for node, above in self.edges.items()
        }

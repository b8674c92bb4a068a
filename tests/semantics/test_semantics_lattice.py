"""Promotion lattices: the worked example, what the constructor refuses, and the laws on random graphs by brute force."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.semantics.lattice import Lattice

# The module's example: bool -> int8 -> int16, bool -> uint8 -> int16.
WORKED = {"bool": ["int8", "uint8"], "int8": ["int16"], "uint8": ["int16"]}


def test_the_worked_example() -> None:
    lattice = Lattice(WORKED)
    assert lattice.nodes == ("bool", "int8", "uint8", "int16")
    assert lattice.edges == {"bool": ("int8", "uint8"), "int8": ("int16",), "uint8": ("int16",), "int16": ()}
    assert lattice.join("int8", "uint8") == "int16"
    assert lattice.join("bool", "int8") == "int8"
    assert lattice.join("int8", "int16") == "int16"
    assert lattice.join("int8", "uint8", "bool") == "int16"
    assert lattice.join("uint8") == "uint8"
    assert lattice.upper_bounds("int8", "uint8") == {"int16"}
    assert lattice.upper_bounds("bool") == {"bool", "int8", "uint8", "int16"}
    assert lattice.minimal_upper_bounds("bool", "int8") == ("int8",)
    assert lattice.below("bool", "int16")
    assert lattice.below("int8", "int8")
    assert not lattice.below("int8", "uint8")
    assert not lattice.below("int16", "int8")
    assert lattice.unjoinable == frozenset()


def test_paths() -> None:
    lattice = Lattice({"a": ["c", "b"], "b": ["d"], "c": ["d"], "d": ["e"], "e": [], "z": []})
    assert lattice.path("a", "e") == ("a", "c", "d", "e")  # through c, which was given first
    assert lattice.path("b", "b") == ("b",)
    assert lattice.path("d", "a") is None
    assert lattice.path("a", "z") is None
    assert Lattice({"a": ["b", "c"], "b": ["c"]}).path("a", "c") == ("a", "c")  # a shorter one, given later


def test_paths_through_many_diamonds_are_found_at_once() -> None:
    """Sixty diamonds in a row have 2**60 paths of the same length."""
    edges: dict[str, list[str]] = {}
    for i in range(60):
        edges[f"s{i}"] = [f"l{i}", f"r{i}"]
        edges[f"l{i}"] = edges[f"r{i}"] = [f"s{i + 1}"]
    path = Lattice(edges).path("s0", "s60")
    assert path == tuple(node for i in range(60) for node in (f"s{i}", f"l{i}")) + ("s60",)


def test_reduced_drops_what_other_edges_imply() -> None:
    lattice = Lattice({"a": ["b", "c", "d"], "b": ["c"], "c": ["d"]})
    assert lattice.reduced() == {"a": ("b",), "b": ("c",), "c": ("d",), "d": ()}
    assert Lattice(WORKED).reduced() == Lattice(WORKED).edges


def test_an_edge_given_twice_is_one_edge() -> None:
    assert Lattice({"a": ["b", "b"]}).edges == {"a": ("b",), "b": ()}


def test_pairs_without_an_upper_bound() -> None:
    lattice = Lattice({"int": ["float"], "float": [], "other": []})
    assert lattice.unjoinable == {frozenset({"int", "other"}), frozenset({"float", "other"})}
    assert lattice.join("int", "other") is None
    assert lattice.minimal_upper_bounds("int", "other") == ()
    assert lattice.join("int", "float", "other") is None
    assert repr(lattice) == "Lattice(3 types, 1 edges, 2 pairs without an upper bound)"


@pytest.mark.parametrize(
    ("edges", "messages"),
    [
        ({"a": ["a"]}, {"the lattice has a cycle: a -> a"}),
        ({"a": ["b"], "b": ["a"]}, {"the lattice has a cycle: a -> b -> a", "the lattice has a cycle: b -> a -> b"}),
        (
            {"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]},
            {f"the lattice has a cycle: {' -> '.join(c)}" for c in ("abca", "bcab", "cabc")},
        ),
    ],
)
def test_cycles(edges: dict[str, list[str]], messages: set[str]) -> None:
    """The cycle along its edges, from any of its nodes."""
    with pytest.raises(ValueError) as error:
        Lattice(edges)
    assert str(error.value) in messages


def test_two_minimal_upper_bounds() -> None:
    with pytest.raises(ValueError) as error:
        Lattice({"int8": ["float16", "bfloat16"], "uint8": ["float16", "bfloat16"], "float16": [], "bfloat16": []})
    assert str(error.value) == "int8 and uint8 have no least upper bound: float16 and bfloat16 are minimal"


def test_nodes_it_does_not_have() -> None:
    lattice = Lattice(WORKED)
    with pytest.raises(KeyError):
        lattice.join("int8", "int4")
    with pytest.raises(KeyError):
        lattice.below("int4", "int8")


def test_a_join_of_nothing() -> None:
    with pytest.raises(ValueError) as error:
        Lattice(WORKED).join()
    assert str(error.value) == "upper bounds of no types; name at least one"


Graph = dict[int, list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any directed acyclic graph: edges lead to greater numbers."""
    size = draw(st.integers(1, 6))
    return {a: [b for b in range(a + 1, size) if draw(st.booleans())] for a in range(size)}


def reachable(graph: Graph) -> set[tuple[int, int]]:
    """The reflexive, transitive closure, by Warshall's algorithm."""
    closure = {(a, a) for a in graph} | {(a, b) for a in graph for b in graph[a]}
    for k, a, b in product(graph, repeat=3):
        if (a, k) in closure and (k, b) in closure:
            closure.add((a, b))
    return closure


def minimal(graph: Graph, closure: set[tuple[int, int]], *nodes: int) -> list[int]:
    upper = [u for u in graph if all((n, u) in closure for n in nodes)]
    return [u for u in upper if not any(v != u and (v, u) in closure for v in upper)]


@given(graphs())
def test_random_graphs(graph: Graph) -> None:
    closure = reachable(graph)
    minima = {pair: minimal(graph, closure, *pair) for pair in combinations(graph, 2)}
    if any(len(found) > 1 for found in minima.values()):
        with pytest.raises(ValueError, match="no least upper bound"):
            Lattice(graph)
        return
    lattice = Lattice(graph)
    assert lattice.unjoinable == {frozenset(pair) for pair, found in minima.items() if not found}
    for a, b in product(graph, repeat=2):
        assert lattice.below(a, b) == ((a, b) in closure)
        found = minimal(graph, closure, a, b)
        assert lattice.join(a, b) == (found[0] if found else None)
        assert list(lattice.minimal_upper_bounds(a, b)) == found
        path = lattice.path(a, b)
        assert (path is not None) == ((a, b) in closure)
        if path is not None:
            assert (path[0], path[-1]) == (a, b)
            assert all(y in graph[x] for x, y in zip(path, path[1:], strict=False))
            assert len(path) - 1 == distance(graph, a, b)
    for a, b, c in product(graph, repeat=3):
        found = minimal(graph, closure, a, b, c)
        assert lattice.join(a, b, c) == (found[0] if found else None)


def distance(graph: Graph, a: int, b: int) -> int:
    """The number of edges of a shortest path: how many times the frontier grows until it holds b."""
    frontier, steps = {a}, 0
    while b not in frontier:
        frontier, steps = {y for x in frontier for y in graph[x]}, steps + 1
    return steps


@given(graphs())
def test_reduced_is_the_least_graph_with_the_same_paths(graph: Graph) -> None:
    closure = reachable(graph)
    try:
        reduced = {node: list(above) for node, above in Lattice(graph).reduced().items()}
    except ValueError:
        return
    assert reachable(reduced) == closure
    for a in graph:
        for b in reduced[a]:
            fewer = {**reduced, a: [n for n in reduced[a] if n != b]}
            assert reachable(fewer) != closure


@given(graphs())
def test_laws(graph: Graph) -> None:
    try:
        lattice = Lattice(graph)
    except ValueError:
        return
    for a, b in product(graph, repeat=2):
        assert lattice.join(a, b) == lattice.join(b, a)
        assert lattice.join(a, a) == a
        assert lattice.below(a, b) == (lattice.join(a, b) == b)
    for a, b, c in product(graph, repeat=3):
        ab, bc, ac = lattice.join(a, b), lattice.join(b, c), lattice.join(a, c)
        left = None if ab is None else lattice.join(ab, c)
        right = None if bc is None else lattice.join(a, bc)
        assert left == right == lattice.join(a, b, c)  # associative, through refusals too
        if lattice.below(a, b) and None not in (ac, bc):
            assert lattice.below(ac or 0, bc or 0)

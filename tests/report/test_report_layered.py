"""Layered drawings: every edge leads on, nothing overlaps, few crossings, straight chains; against brute force where small."""

from __future__ import annotations

import random
from graphlib import CycleError
from itertools import pairwise, permutations, product

import pytest

from weft.report.layered import Drawing, draw, spread


def graph(*edges: str) -> dict[str, tuple[str, ...]]:
    """``graph("ab", "bc")``: the edges a -> b -> c."""
    nodes = sorted(set("".join(edges)))
    return {n: tuple(e[1] for e in edges if e[0] == n) for n in nodes}


def check(edges: dict[str, tuple[str, ...]], drawing: Drawing[str]) -> None:
    """What every drawing has to be."""
    assert set(drawing.nodes) == set(edges)
    assert set(drawing.routes) == {(a, b) for a, above in edges.items() for b in above}
    for (a, b), route in drawing.routes.items():
        assert (route[0], route[-1]) == (drawing.nodes[a], drawing.nodes[b])
        assert all(y[0] == x[0] + 1 for x, y in pairwise(route))
    points = list(drawing.nodes.values()) + [p for route in drawing.routes.values() for p in route[1:-1]]
    for (layer, place), (other, there) in product(points, repeat=2):
        if layer == other and (layer, place) != (other, there):
            assert abs(place - there) >= 1
    assert len(set(points)) == len(points)
    assert min((p[1] for p in points), default=0) == 0


def test_a_diamond() -> None:
    # a in layer 0, b and c in 1, one apart, d in 2; a and d half way between b and c
    drawing = draw(graph("ab", "ac", "bd", "cd"))
    assert drawing.nodes == {"a": (0, 0.5), "b": (1, 0.0), "c": (1, 1.0), "d": (2, 0.5)}
    assert drawing.crossings() == 0


def test_a_long_edge_bends_round_what_lies_between() -> None:
    drawing = draw(graph("ab", "bc", "ac"))
    route = drawing.routes["a", "c"]
    assert len(route) == 3
    assert abs(route[1][1] - drawing.nodes["b"][1]) >= 1


def test_a_node_nothing_leads_to_stands_before_its_successor() -> None:
    drawing = draw(graph("ab", "bc", "cd", "xd"))
    assert drawing.nodes["x"][0] == 2


def test_chains_are_straight() -> None:
    drawing = draw(graph("ab", "bc", "cd", "de"))
    assert [drawing.nodes[n] for n in "abcde"] == [(i, 0.0) for i in range(5)]


def test_empty_and_single() -> None:
    empty: dict[str, tuple[str, ...]] = {}
    assert draw(empty).nodes == {}
    assert draw({"a": ()}).nodes == {"a": (0, 0.0)}


def test_crossings_are_counted() -> None:
    crossed = Drawing(
        {"a": (0, 0.0), "b": (0, 1.0), "c": (1, 0.0), "d": (1, 1.0)},
        {("a", "d"): ((0, 0.0), (1, 1.0)), ("b", "c"): ((0, 1.0), (1, 0.0))},
    )
    assert crossed.crossings() == 1
    assert draw(graph("ad", "bc")).crossings() == 0


def test_few_crossings() -> None:
    """Random graphs of two layers, three nodes each, against the best of all orders."""
    rng = random.Random(5)
    for _ in range(60):
        edges = [a + b for a in "abc" for b in "xyz" if rng.random() < 0.5]
        if not edges:
            continue
        drawing = draw(graph(*edges))
        check(graph(*edges), drawing)
        best = min(
            sum(
                up.index(e[0]) < up.index(f[0]) and down.index(e[1]) > down.index(f[1])
                for e, f in product(edges, repeat=2)
            )
            for up, down in product(permutations("abc"), permutations("xyz"))
        )
        assert drawing.crossings() == best


def test_random_graphs_are_drawn_properly_and_always_alike() -> None:
    rng = random.Random(11)
    for _ in range(40):
        names = "abcdefghij"
        edges = [a + b for i, a in enumerate(names) for b in names[i + 1 :] if rng.random() < 0.2]
        if edges:
            check(graph(*edges), draw(graph(*edges)))
            assert draw(graph(*edges)) == draw(graph(*edges))


def test_a_cycle_is_an_error() -> None:
    with pytest.raises(CycleError):
        draw(graph("ab", "ba"))


def test_spread_is_the_closest_in_least_squares() -> None:
    # Both want 0: the closest places 1 apart are symmetric about it.
    assert spread([0.0, 0.0]) == [-0.5, 0.5]
    assert spread([0.0, 3.0]) == [0.0, 3.0]
    assert spread([2.0, 0.0, 5.0]) == [0.5, 1.5, 5.0]
    assert spread([]) == []
    rng = random.Random(3)
    for _ in range(20):
        wanted = [rng.randrange(8) / 2 for _ in range(3)]
        found = spread(wanted)
        grid = [i / 4 for i in range(-8, 28)]
        best = min(
            sum((x - w) ** 2 for x, w in zip((a, a + 1 + d, a + 2 + d + e), wanted, strict=True))
            for a in grid
            for d in (i / 4 for i in range(14))
            for e in (i / 4 for i in range(14))
        )
        assert all(y - x >= 1 - 1e-12 for x, y in pairwise(found))
        assert sum((x - w) ** 2 for x, w in zip(found, wanted, strict=True)) <= best + 1e-9

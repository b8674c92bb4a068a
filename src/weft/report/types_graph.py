"""The graph that ``weft promote --hasse`` draws of a system: its lattice, or the order that its promotion has."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

from weft import semantics
from weft.dtypes import DType
from weft.report.hasse import hasse_svg
from weft.report.layered import draw
from weft.report.types import category
from weft.semantics.algebra import order
from weft.semantics.core import Operand, Semantics, Type
from weft.semantics.difference import dtype_of, nodes
from weft.semantics.explanation import symbol
from weft.semantics.lattice import Lattice


@dataclass(frozen=True)
class TypeGraph:
    """``edges``: each type (by name) and those directly above it; ``title`` says what "above" is."""

    system: Semantics
    title: str
    types: dict[str, Type]
    edges: dict[str, tuple[str, ...]]

    def svg(self) -> str:
        """The picture."""
        return hasse_svg(
            self.title,
            self.edges,
            category={name: category(found) for name, found in self.types.items()},
            label={name: name for name in self.types},
            weak=frozenset(name for name, found in self.types.items() if found.weak),
        )

    def data(self) -> dict[str, Any]:
        """The same as JSON takes it, with the places of the drawing: (layer, place in it)."""
        places = draw(self.edges).nodes
        nodes = [
            {
                "type": name,
                "weak": found.weak,
                "category": category(found),
                "layer": places[name][0],
                "place": places[name][1],
            }
            for name, found in self.types.items()
        ]
        edges = [[a, b] for a, above in self.edges.items() for b in above]
        return {"system": self.system.name, "title": self.title, "nodes": nodes, "edges": edges}


def type_graph(system: str | Semantics) -> TypeGraph:
    """The graph of ``system``, without the edges that others imply. `ValueError` where its types have no order to draw."""
    chosen = semantics.get(system)
    lattice = cast(Lattice[Hashable] | None, getattr(chosen, "lattice", None))
    if lattice is not None:
        reduced = lattice.reduced()
        types = {str(node): _type(node) for node in reduced}
        edges = {str(node): tuple(map(str, above)) for node, above in reduced.items()}
        return TypeGraph(chosen, f"{chosen.name}: two types meet in the first type that both lead to", types, edges)
    found = order(chosen, elements=[t if isinstance(t, Type) else Type(dtype_of(t)) for t in nodes(chosen)])
    covers = [(symbol(_operand(a)), symbol(_operand(b))) for a, b in found.covers]
    types = {symbol(_operand(t)): t for t in found.elements}
    edges = {name: tuple(b for a, b in covers if a == name) for name in types}
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        raise ValueError(f"{chosen.name} has no order to draw: {' -> '.join(error.args[1])}") from None
    warning = "; not transitive, so a path may not" if found.intransitive else ""
    title = f"{chosen.name}: an arrow leads from a type to one that absorbs it{warning}"
    return TypeGraph(chosen, title, types, edges)


def _operand(found: Type) -> Operand:
    return found if found.weak else found.dtype


def _type(node: Any) -> Type:
    """A node of a lattice: a dtype, or what has a dtype and may be weak."""
    return Type(node) if isinstance(node, DType) else Type(node.dtype, bool(node.weak))

"""Builds what orders elements. Equal elements keep their order in every system, also where its own sort may exchange them.

NaN is greater than every number. The two zeros are equal, but for JAX's ``top_k``, which puts 0 before -0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import SupportsIndex, TypeAlias

from weft import dtypes
from weft.array.building.arranging import cut
from weft.array.building.operations import Value
from weft.array.building.picking import pick
from weft.array.building.whole import call, noted
from weft.array.expression import views
from weft.array.expression.conversion import convert
from weft.array.expression.nodes import Node
from weft.semantics import Semantics
from weft.semantics import arrangement as rules

Builder: TypeAlias = Callable[[Node, int], Node]
"""Builds the result from a node and the axis along which it is ordered."""


def argsort(system: Semantics, value: Value, axis: SupportsIndex | None, descending: bool) -> Value:
    """The indices that sort along ``axis``; equal elements keep their order."""

    def build(node: Node, along: int) -> Node:
        if rules.family(system) == "max" and len(node.shape) != 1:
            raise ValueError(f"ops.argsort takes arrays of one dimension, found {len(node.shape)}")
        order = _order(node, along, descending, total=False)
        return convert(order, rules.index_type(system, "argsort"))

    return _ordered(system, "argsort", value, axis, build)


def sort(system: Semantics, value: Value, axis: SupportsIndex | None, descending: bool) -> Value:
    """The elements in order; JAX's descending order is its ascending one reversed."""

    def build(node: Node, along: int) -> Node:
        reverse = descending and rules.family(system) == "jax"
        if node.dtype.is_complex:
            found = pick(node, _order(node, along, descending and not reverse, total=False), along)
        else:
            ways = {"axis": along, "descending": descending and not reverse}
            found = call("sort", node.shape, node.dtype, node, **ways)
        return views.index(found, (slice(None),) * along + (slice(None, None, -1),)) if reverse else found

    return _ordered(system, "sort", value, axis, build)


def topk(system: Semantics, value: Value, k: int, axis: SupportsIndex, largest: bool) -> tuple[Value, Value]:
    """The ``k`` greatest (or least) elements along ``axis`` in order, and their indices."""
    base = rules.family(system)
    indices: list[Node] = []

    def build(node: Node, along: int) -> Node:
        if base == "jax" and not largest:
            raise ValueError("jax.lax.top_k gives the greatest; negate for the least")
        if not 0 <= k <= node.shape[along]:
            raise ValueError(f"'topk' takes at most the {node.shape[along]} elements along axis {along}, found k={k}")
        order = cut(_order(node, along, largest, total=base == "jax"), along, 0, k)
        indices.append(convert(order, rules.index_type(system, "topk")))
        return pick(node, order, along)

    values = _ordered(system, "topk", value, axis, build)
    return values, Value(indices[0], values.weak)


def _ordered(system: Semantics, op: str, value: Value, axis: SupportsIndex | None, build: Builder) -> Value:
    def made(_: object) -> Node:
        node = views.reshape(value.node, (value.node.size,)) if axis is None else value.node
        if not node.shape and rules.family(system) == "torch":
            node = views.reshape(node, (1,))
        along = views.axis_of(0 if axis is None else axis, len(node.shape), op)
        return views.reshape(build(node, along), ()) if not value.node.shape else build(node, along)

    return noted(system, op, (value.type,), lambda: rules.order(system, op, value.type), made)


def _order(node: Node, axis: int, descending: bool, total: bool) -> Node:
    return call("argsort", node.shape, dtypes.int64, node, axis=axis, descending=descending, total=total)

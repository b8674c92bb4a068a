"""One node in another type: the only place where a `Convert` is made."""

from __future__ import annotations

from weft.array.expression.nodes import Convert, Node
from weft.dtypes import DType
from weft.semantics import Semantics


def convert(node: Node, dtype: DType, meaning: str = "convert") -> Node:
    """``node`` in another type, itself in its own."""
    return node if node.dtype == dtype else Convert(node.shape, dtype, source=node, meaning=meaning)


def in_type(system: Semantics, node: Node, dtype: DType) -> Node:
    """``node`` in the type that it is computed in, or that the result has, by the system's own conversion."""
    return convert(node, dtype, system.conversion(node.dtype, dtype))

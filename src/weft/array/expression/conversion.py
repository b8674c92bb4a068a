"""One node in another type: the only place where a `Convert` is made."""

from __future__ import annotations

from weft.array.expression.nodes import Convert, Node
from weft.dtypes import DType


def convert(node: Node, dtype: DType, meaning: str = "convert") -> Node:
    """``node`` in another type, itself in its own."""
    return node if node.dtype == dtype else Convert(node.shape, dtype, source=node, meaning=meaning)

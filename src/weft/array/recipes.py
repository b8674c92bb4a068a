"""Operators on arrays of known types and shapes, built again without asking.

What `weft.array.building` makes of operands depends on their types and shapes, and on the system. The first time the nodes that
it made are kept as a *recipe*: which conversions and operations, of which of the nodes before. The next time the recipe makes the
same nodes of other operands, in a tenth of the time. While operations are recorded, recipes are not used, and what is built of
other nodes than these two kinds is no recipe.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from weft.array import building, tracing
from weft.array.building import Value
from weft.array.nodes import Apply, Convert, Node
from weft.dtypes import DType
from weft.semantics import Semantics

_KEPT: Final = 4096
"""Recipes after which all are forgotten."""

_LONGEST: Final = 32
"""Nodes of a recipe, at most."""

_Step: TypeAlias = tuple[tuple[int, ...], DType, str, tuple[int, ...], bool]
"""Shape, dtype, meaning, the operands' places, and whether it is an `Apply`."""


@dataclass(frozen=True, slots=True)
class _Recipe:
    """``steps`` over the operands and the nodes before; the last one is the result, which is ``weak`` or not. ``system`` is kept,
    so that nothing else gets its identity."""

    steps: tuple[_Step, ...]
    weak: bool
    system: Semantics

    def make(self, *operands: Node) -> Value:
        """The value for these operands."""
        nodes = list(operands)
        for shape, dtype, meaning, places, applies in self.steps:
            if applies:
                nodes.append(Apply(shape, dtype, meaning, tuple([nodes[place] for place in places])))
            else:
                nodes.append(Convert(shape, dtype, source=nodes[places[0]], meaning=meaning))
        return Value(nodes[-1], self.weak)


_recipes: Final[dict[Hashable, _Recipe]] = {}


def binary(system: Semantics, op: str, lhs: Value, rhs: Value) -> Value:
    """`weft.array.building.binary` of two arrays."""
    x, y = lhs.node, rhs.node
    key = (id(system), op, x.dtype, lhs.weak, lhs.counts, x.shape, y.dtype, rhs.weak, rhs.counts, y.shape)
    if (known := _recipes.get(key)) is not None and not tracing.listening():
        return known.make(x, y)
    return _made(key, system, (x, y), lambda: building.binary(system, op, lhs, rhs))


def unary(system: Semantics, op: str, argument: Value) -> Value:
    """`weft.array.building.unary`."""
    node = argument.node
    key = (id(system), op, node.dtype, argument.weak, argument.counts, node.shape)
    if (known := _recipes.get(key)) is not None and not tracing.listening():
        return known.make(node)
    return _made(key, system, (node,), lambda: building.unary(system, op, argument))


def _made(key: Hashable, system: Semantics, operands: Sequence[Node], build: Callable[[], Value]) -> Value:
    value = build()
    if (steps := _steps(value.node, operands)) is not None and value.counts is None:
        if len(_recipes) >= _KEPT:
            _recipes.clear()
        _recipes[key] = _Recipe(steps, value.weak, system)
    return value


def _steps(result: Node, operands: Sequence[Node]) -> tuple[_Step, ...] | None:
    """The nodes between the operands and the result; None where there are others than a recipe has, or many."""
    places = {id(node): place for place, node in enumerate(operands)}
    if len(places) < len(operands):
        return None  # which of the two is meant cannot be told
    steps: list[_Step] = []
    stack = [result]
    while stack:
        node = stack[-1]
        if id(node) in places:
            stack.pop()
            continue
        if not isinstance(node, (Apply, Convert)) or len(stack) + len(steps) > _LONGEST:
            return None
        if missing := [o for o in node.operands if id(o) not in places]:
            stack += missing
            continue
        sources = tuple(places[id(o)] for o in node.operands)
        places[id(node)] = len(operands) + len(steps)
        steps.append((node.shape, node.dtype, node.meaning, sources, isinstance(node, Apply)))
    return tuple(steps) if steps else None

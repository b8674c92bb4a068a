"""Operators on arrays of known types and shapes, built again without asking.

What `operations` makes of operands depends on their types and shapes, and on the system. The first time, the nodes that
it made are kept as a *recipe*: which conversions and operations, of which of the nodes before. The next time the recipe makes the
same nodes of other operands, in a tenth of the time. Of a number only its class matters (`class_of`): numbers of one class are
the same to every system, whatever its rules. A recipe holds for one value of its numbers in the operations in `BY_VALUE`, and
where there may be two numbers (`where`, `clamp`), so that nobody has to tell which of them a node is.

While operations are recorded, recipes are not used. What is built of other nodes than these kinds is no recipe.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import copysign, isfinite, isinf, isnan
from typing import Final, TypeAlias

from weft import dtypes
from weft.array.building import operations
from weft.array.building.operations import Argument, Value
from weft.array.expression import tracing
from weft.array.expression.nodes import Apply, Convert, Node, Scalar
from weft.dtypes import DType
from weft.semantics import Number, Semantics

_KEPT: Final = 4096
"""Recipes after which all are forgotten."""

_LONGEST: Final = 32
"""Nodes of a recipe, at most."""

_Step: TypeAlias = tuple[tuple[int, ...], DType, str, tuple[int, ...], type[Node] | Scalar]
"""Shape, dtype, meaning, the operands' places, and what it is: an `Apply`, a `Convert`, the number as a `Scalar`, or a number of
the recipe's own."""

BY_VALUE: Final = frozenset({"**", "fpow", "<<", ">>"})
"""The operations whose rules look at a number's value."""

_INTEGERS: Final = sorted({b for d in dtypes.KNOWN if d.is_integer for b in (d.min, d.max + 1)} | {0, 1})
_FLOATS: Final = sorted({float(d.largest) for d in dtypes.KNOWN if d.is_float})
_DIGITS: Final = sorted({d.mantissa + 1 for d in dtypes.KNOWN if d.is_float})


@dataclass(frozen=True, slots=True)
class _Recipe:
    """``steps`` over the operands and the nodes before; the last one is the result, which is ``weak`` or not. ``system`` is kept,
    so that nothing else gets its identity. ``direct``: it is one operation on all operands, in their order."""

    steps: tuple[_Step, ...]
    weak: bool
    system: Semantics
    direct: bool

    def make(self, *operands: Node, number: Number = 0) -> Value:
        """The value for these operands."""
        if self.direct:
            shape, dtype, meaning, _, _ = self.steps[0]
            return Value(Apply(shape, dtype, meaning, operands), self.weak)
        nodes = list(operands)
        for shape, dtype, meaning, places, kind in self.steps:
            if kind is Scalar:
                nodes.append(operations.scalar(self.system, number, dtype))
            elif kind is Apply:
                nodes.append(Apply(shape, dtype, meaning, tuple([nodes[place] for place in places])))
            elif isinstance(kind, Scalar):
                nodes.append(kind)
            else:
                nodes.append(Convert(shape, dtype, source=nodes[places[0]], meaning=meaning))
        return Value(nodes[-1], self.weak)


_recipes: Final[dict[Hashable, _Recipe]] = {}


def binary(system: Semantics, op: str, lhs: Value, rhs: Value) -> Value:
    """`operations.binary` of two arrays."""
    x, y = lhs.node, rhs.node
    key = (id(system), op, x.dtype, lhs.weak, lhs.counts, x.shape, y.dtype, rhs.weak, rhs.counts, y.shape)
    if (known := _recipes.get(key)) is not None and not tracing.listening():
        return known.make(x, y)
    return _made(key, system, (x, y), lambda: operations.binary(system, op, lhs, rhs))


def unary(system: Semantics, op: str, argument: Value) -> Value:
    """`operations.unary`."""
    node = argument.node
    key = (id(system), op, node.dtype, argument.weak, argument.counts, node.shape)
    if (known := _recipes.get(key)) is not None and not tracing.listening():
        return known.make(node)
    return _made(key, system, (node,), lambda: operations.unary(system, op, argument))


def with_number(system: Semantics, op: str, argument: Value, number: int | float, reflected: bool) -> Value:
    """`operations.binary` of an array and a Python number that is no bool; the number comes first if ``reflected``."""
    sides = (number, argument) if reflected else (argument, number)
    if op in BY_VALUE:
        return applied(system, op, sides, lambda: operations.binary(system, op, *sides))
    node = argument.node
    key = (id(system), op, node.dtype, argument.weak, argument.counts, node.shape, reflected, class_of(number))
    if (known := _recipes.get(key)) is not None and not tracing.listening():
        return known.make(node, number=number)
    return _made(key, system, (node,), lambda: operations.binary(system, op, *sides), number)


def applied(system: Semantics, op: str, sides: Sequence[Argument], build: Callable[[], Value]) -> Value:
    """``build()``, which applies the operation to all sides."""
    if (known := known_of(system, op, sides)) is not None:
        return known
    if (found := _sides(system, op, sides)) is None:
        return build()
    key, nodes, number = found
    return _made(key, system, nodes, build, number, exact=_is_exact(op, sides))


def known_of(system: Semantics, op: str, sides: Sequence[Argument]) -> Value | None:
    """`applied` where its recipe is known."""
    found = None if tracing.listening() else _sides(system, op, sides)
    if found is None or (known := _recipes.get(found[0])) is None:
        return None
    return known.make(*found[1], number=0 if found[2] is None else found[2])


def _is_exact(op: str, sides: Sequence[Argument]) -> bool:
    """Whether a recipe is for the values of its numbers."""
    return len(sides) > 2 or op in BY_VALUE


def _sides(
    system: Semantics, op: str, sides: Sequence[Argument]
) -> tuple[tuple[Hashable, ...], list[Node], int | float | None] | None:
    """The key for these sides, the arrays' nodes, and the number, if it is in the key by its class; None where a side is neither
    an array nor a plain number."""
    key: list[Hashable] = [id(system), op]
    nodes: list[Node] = []
    number = None
    for side in sides:
        if isinstance(side, Value):
            node = side.node
            key += (node.dtype, side.weak, side.counts, node.shape)
            nodes.append(node)
        elif type(side) is not int and type(side) is not float:
            return None
        elif _is_exact(op, sides):
            key += (type(side), repr(side))
        else:
            key.append(class_of(side))
            number = side
    return (tuple(key), nodes, number) if nodes else None


def with_parameter(
    system: Semantics, op: str, argument: Value, number: int | float, reflected: bool
) -> tuple[Value, list[Scalar] | None]:
    """`with_number`, and the nodes that are the number: with another number of its class they alone would differ. None where
    another would make other nodes."""
    made = with_number(system, op, argument, number, reflected)
    steps = None if op in BY_VALUE else _steps(system, made.node, (argument.node,), number)
    if steps is None or made.counts is not None:
        return made, None
    inside: list[Node] = []
    stack = [made.node]
    while stack:
        node = stack.pop()
        if node is not argument.node:
            inside.append(node)
            stack += node.operands
    return made, [node for node in inside if isinstance(node, Scalar)]


def class_of(number: int | float) -> Hashable:
    """Equal for numbers that no system's types, refusals or meanings tell apart."""
    if isinstance(number, int):
        size = abs(number)
        digits = (size // (number & -number)).bit_length() if number else 0  # an exact float needs as many
        large = bisect_left(_FLOATS, size)
        return "int", bisect_right(_INTEGERS, number), bisect_left(_DIGITS, digits), large
    size = abs(number)
    whole = number.is_integer() if isfinite(number) else isinf(number)
    small = size < 2.0**-126, size < 2.0**-1022, size == 0
    return "float", isnan(number), copysign(1, number) < 0, whole, bisect_left(_FLOATS, size), small


def _made(
    key: Hashable,
    system: Semantics,
    operands: Sequence[Node],
    build: Callable[[], Value],
    number: Number | None = None,
    exact: bool = False,
) -> Value:
    value = build()
    if (steps := _steps(system, value.node, operands, number, exact)) is not None and value.counts is None:
        if len(_recipes) >= _KEPT:
            _recipes.clear()
        _, _, _, places, kind = steps[0]
        direct = len(steps) == 1 and kind is Apply and places == tuple(range(len(operands)))
        _recipes[key] = _Recipe(steps, value.weak, system, direct)
    return value


def _steps(
    system: Semantics, result: Node, operands: Sequence[Node], number: Number | None, exact: bool = False
) -> tuple[_Step, ...] | None:
    """The nodes between the operands and the result; None where there are others than a recipe has, or many. ``exact``: numbers
    are the recipe's own."""
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
        if isinstance(node, Scalar) and exact:
            places[id(node)] = len(operands) + len(steps)
            steps.append((node.shape, node.dtype, "", (), node))
            continue
        if isinstance(node, Scalar) and number is not None:
            if repr(node.value) != repr(operations.scalar(system, number, node.dtype).value):
                return None  # a number of the rule's own
            places[id(node)] = len(operands) + len(steps)
            steps.append((node.shape, node.dtype, "", (), Scalar))
            continue
        if not isinstance(node, (Apply, Convert)) or len(stack) + len(steps) > _LONGEST:
            return None
        if missing := [o for o in node.operands if id(o) not in places]:
            stack += missing
            continue
        sources = tuple(places[id(o)] for o in node.operands)
        places[id(node)] = len(operands) + len(steps)
        steps.append((node.shape, node.dtype, node.meaning, sources, type(node)))
    return tuple(steps) if steps else None

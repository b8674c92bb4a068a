"""What kernels for an expression depend on: all of it but its data and its numbers.

`gather` goes over an expression once and returns the key under which its plan is kept, with the inputs and the numbers in the
order in which the plan takes them. A number (`Scalar`) is in the key by its dtype alone: kernels take numbers as arguments. Where
a rule depends on a number's value, the expression was built by that rule and has other nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from weft.array.expression.nodes import Apply, Input, Node, Scalar
from weft.array.expression.support import NARROW


class Gathered(NamedTuple):
    """``key``: equal for expressions that one plan computes. ``inputs`` and ``numbers``: each once, operands first."""

    key: Hashable
    inputs: list[Input]
    numbers: list[Scalar]


def gather(outputs: Sequence[Node]) -> Gathered:
    """The key, inputs and numbers of an expression."""
    return (_of_one(outputs[0]) if len(outputs) == 1 else None) or _of_any(outputs)


def _of_one(node: Node) -> Gathered | None:
    """`gather` for one operation on an input, two different inputs, or an input and a number: what is computed eagerly. None for
    others."""
    if type(node) is not Apply:
        return None
    count = len(node.arguments)
    if count in (1, 2) and isinstance(x := node.arguments[0], Input):
        if count == 1:
            return Gathered((node.shape, node.dtype, node.meaning, likeness_of(x)), [x], [])
        y = node.arguments[1]
        if isinstance(y, Input) and x is not y:
            return Gathered((node.shape, node.dtype, node.meaning, likeness_of(x), likeness_of(y)), [x, y], [])
        if isinstance(y, Scalar):
            return Gathered((node.shape, node.dtype, node.meaning, likeness_of(x), _number(y)), [x], [y])
    return None


def _of_any(outputs: Sequence[Node]) -> Gathered:
    places: dict[int, int] = {}
    rows: list[Hashable] = []
    inputs: list[Input] = []
    numbers: list[Scalar] = []
    stack = list(outputs[::-1])
    while stack:
        node = stack.pop()
        if id(node) in places:
            continue
        if isinstance(node, Input):
            row: Hashable = likeness_of(node)
            inputs.append(node)
        elif isinstance(node, Scalar):
            row = _number(node)
            numbers.append(node)
        else:
            operands = node.operands
            missing = [operand for operand in operands if id(operand) not in places]
            if missing:
                stack.append(node)
                stack += missing[::-1]
                continue
            row = (type(node), form_of(node), *[places[id(operand)] for operand in operands])
        places[id(node)] = len(rows)
        rows.append(row)
    return Gathered((*rows, tuple([places[id(node)] for node in outputs])), inputs, numbers)


_KEPT: Final = 4096
"""Kinds of inputs after which all are forgotten."""

_LIKENESSES: Final[dict[Hashable, int]] = {}
_NUMBERS: Final = itertools.count(1)


def likeness_of(node: Input) -> int:
    """A number that stands for an input's shape, dtype, strides and whether its elements are aligned: inputs of one number can
    take each other's place in a plan. No number ever stands for another kind."""
    if known := node.likeness:
        return known
    array = node.array
    strides = None if array is None else array.strides if array.flags.aligned else ()
    row = (node.shape, node.dtype, strides)
    if (found := _LIKENESSES.get(row)) is None:
        if len(_LIKENESSES) >= _KEPT:
            _LIKENESSES.clear()
        found = _LIKENESSES.setdefault(row, next(_NUMBERS))
    object.__setattr__(node, "likeness", found)
    return found


def _number(node: Scalar) -> Hashable:
    if node.dtype.is_complex or node.dtype in NARROW:  # rewritten before kernels are planned
        return node.dtype, repr(node.value)
    return node.dtype


_FORMS: Final[dict[type[Node], Callable[[Any], Hashable]]] = {}
"""For each kind of node all its fields that are no nodes, as one value."""


def form_of(node: Node) -> Hashable:
    """All that a node is but its operands."""
    kind = type(node)
    if (form := _FORMS.get(kind)) is None:
        names = [f.name for f in kind.__dataclass_fields__.values() if "Node" not in str(f.type)]
        form = _FORMS.setdefault(kind, attrgetter(*names))
    return form(node)

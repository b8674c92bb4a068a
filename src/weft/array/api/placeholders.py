"""The numbers of a fused call, while its function is traced.

A function could be traced with the numbers that it was called with, once for each value. But in ``x - rate * step`` the rate only
becomes an argument of a kernel. So the function gets a `Placeholder` of each int and float. An operator between one and an array
makes nodes whose numbers are given at each call; they are the same nodes for all numbers of one class (`recipes.class_of`).
Anything else that the function does with it *reads* its value: branches, Python's arithmetic, sizes, functions of ``math``. A
trace holds for all numbers of the class if no value was read, else for the values that were read.

A placeholder is an instance of int or float to ``isinstance``. ``type(number) is float`` is False, and nobody sees it asked.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from weft.array.api.operators import Operators
from weft.array.building import operations, recipes
from weft.array.building.operations import Value
from weft.array.expression.nodes import Node, Scalar, walk
from weft.array.expression.support import NARROW
from weft.semantics import Number, Semantics

Changing: TypeAlias = tuple[Semantics, Scalar]


class Placeholder:
    """Stands for ``value``, the number of the call that is traced. ``was_read``: the trace depends on it. ``changing`` are the
    nodes that have another value at another call, with the systems that make the number theirs."""

    __slots__ = ("value", "was_read", "changing")
    __array_ufunc__ = None
    """NumPy's scalars leave operators to it."""

    def __init__(self, value: int | float) -> None:
        self.value = value
        self.was_read = False
        self.changing: list[Changing] = []

    @property
    def __class__(self) -> type:  # pyright: ignore[reportIncompatibleMethodOverride]
        return type(self.value)

    def read(self) -> int | float:
        """The value, which the trace depends on from now on."""
        self.was_read = True
        return self.value

    def beside(self, system: Semantics, op: str, argument: Value, reflected: bool) -> Value:
        """``argument op number``, or ``number op argument``."""
        made, scalars = recipes.with_parameter(system, op, argument, self.value, reflected)
        if scalars is None or any(node.dtype.is_complex or node.dtype in NARROW for node in scalars):
            self.was_read = True
        else:
            self.changing += [(system, node) for node in scalars]
        return made

    def __reduce_ex__(self, protocol: object) -> tuple[type, tuple[int | float]]:
        """Copies are numbers: nobody would see them read."""
        return type(self.value), (self.read(),)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.read(), name)


def read(value: object) -> object:
    """A value, which is read if it is a placeholder."""
    return value.read() if type(value) is Placeholder else value


def computed_from(placeholders: Sequence[Placeholder]) -> Callable[[Sequence[Node]], None]:
    """A function that is told what is computed while the placeholders are traced: their values are read where they are needed."""

    def listen(outputs: Sequence[Node]) -> None:
        needed = {id(node) for node in walk(outputs)}
        for placeholder in placeholders:
            placeholder.was_read |= any(id(node) in needed for _, node in placeholder.changing)

    return listen


def _unary(name: str, function: Callable[[Any], Any]) -> None:
    def call(self: Placeholder) -> Any:
        return function(self.read())

    setattr(Placeholder, name, call)


def _binary(name: str, function: Callable[[Any, Any], Any], reflected: bool = False) -> None:
    def call(self: Placeholder, other: object, *rest: object) -> Any:
        if isinstance(other, Operators):
            return NotImplemented  # the array's own operator takes the placeholder as it is
        sides = (read(other), self.read()) if reflected else (self.read(), read(other))
        return function(*sides, *map(read, rest))

    setattr(Placeholder, name, call)


_UNARY: Final[dict[str, Callable[[Any], Any]]] = {
    **{name: getattr(operator, name) for name in ("abs", "neg", "pos", "invert", "index")},
    **{kind.__name__: kind for kind in (int, float, complex, bool, str, repr, hash, round)},
    **{name: lambda value, name=name: getattr(value, f"__{name}__")() for name in ("trunc", "floor", "ceil")},
}
_ARITHMETIC: Final[dict[str, Callable[..., Any]]] = {
    **{
        name: getattr(operator, name)
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "lshift", "rshift")
    },
    **{name: getattr(operator, f"__{name}__") for name in ("and", "or", "xor")},
    "pow": pow,
    "divmod": divmod,
}
for _name, _function in _UNARY.items():
    _unary(f"__{_name}__", _function)
for _name, _function in _ARITHMETIC.items():
    _binary(f"__{_name}__", _function)
    _binary(f"__r{_name}__", _function, True)
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    _binary(f"__{_name}__", getattr(operator, _name))
_binary("__format__", format)
_binary("__round__", round)


def values(numbers: Sequence[tuple[int, Changing]], leaves: Sequence[Any]) -> list[Number]:
    """For each node what the number at its place among the call's leaves is in the node's type."""
    return [operations.scalar(system, leaves[place], node.dtype).value for place, (system, node) in numbers]

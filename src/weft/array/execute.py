"""Runs expressions by their plans.

Planning costs a millisecond or so and compiling more, so plans are kept by structure (`weft.array.keys`): shapes, dtypes,
strides, meanings. The same expression over other arrays and with other numbers runs the plan it ran before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, TypeAlias, cast

from numpy.typing import NDArray

from weft.array.backends import TracedValue
from weft.array.canonical import in_place
from weft.array.keys import gather
from weft.array.memory import address_of
from weft.array.nodes import Input, Node, Scalar, walk
from weft.array.parts import Parts, has_complex
from weft.array.plans import Plan
from weft.semantics import Number

_KEPT: Final = 256
"""Plans used most recently that are kept; up to as many more that were used before."""

Function: TypeAlias = Callable[[Sequence[NDArray[Any]], list[Number]], list[NDArray[Any]]]
Runner: TypeAlias = Callable[[Sequence[Input], Sequence[Scalar]], list[NDArray[Any]]]


class _Plans:
    """Plans by structure. Two tables make the least recently used plans go without a note at each use: what was found in the
    older table moves to the younger one, and a full younger one replaces the older one."""

    def __init__(self) -> None:
        self.young: dict[Hashable, Runner] = {}
        self._old: dict[Hashable, Runner] = {}

    def __len__(self) -> int:
        return len(self.young.keys() | self._old.keys())

    def clear(self) -> None:
        """Forgets all plans."""
        self.young, self._old = {}, {}

    def older(self, key: Hashable) -> Runner | None:
        """The plan for a key that the younger table has not."""
        if (found := self._old.get(key)) is not None:
            self.add(key, found)
        return found

    def add(self, key: Hashable, made: Runner) -> None:
        """Keeps a plan."""
        if len(self.young) >= _KEPT:
            self.young, self._old = {}, self.young
        self.young[key] = made


_plans: Final = _Plans()


def plan(outputs: Sequence[Node], inputs: Sequence[Input]) -> Callable[..., list[NDArray[Any]]]:
    """The plan for outputs as a function of inputs, which must include every `Input` the outputs need."""
    missing = [node for node in walk(outputs) if isinstance(node, Input) and all(node is not i for i in inputs)]
    if missing:
        names = ", ".join(node.name or "an array" for node in missing)
        raise ValueError(f"the outputs need {names}, which is not among the inputs")
    function = _function(outputs, inputs, ())
    return lambda *arrays: function(arrays, [])


def _function(outputs: Sequence[Node], inputs: Sequence[Input], numbers: Sequence[Scalar]) -> Function:
    """The plan for outputs as a function of the inputs' data and the numbers' values. It keeps no data alive."""
    if has_complex(outputs):
        parts = Parts(outputs, inputs)
        taken, joined = parts.split.taken, parts.split.joined
        real = _function(parts.outputs, parts.inputs, numbers)
        return lambda arrays, values: joined(real(taken(arrays), values))
    made = Plan(outputs, inputs, numbers)

    def call(arrays: Sequence[NDArray[Any]], values: list[Number]) -> list[NDArray[Any]]:
        fitting = made.fitting(arrays)
        return made(fitting, [address_of(array) for array in fitting], values)

    return call


def kernels(outputs: Sequence[Node]) -> tuple[str, ...]:
    """The text of each kernel that computes the nodes, in the order they run."""
    if has_complex(outputs):
        return kernels(Parts(outputs, ()).outputs)
    return tuple(p.text for p in Plan(outputs, [n for n in walk(outputs) if isinstance(n, Input)]).programs)


def run(outputs: Sequence[Node]) -> list[NDArray[Any]]:
    """The values of nodes whose inputs all have data; `TracedValue` where an input has none."""
    key, inputs, numbers = gather(outputs)
    found = _plans.young.get(key) or _plans.older(key)
    if found is None:
        if any(node.array is None for node in inputs):
            raise TracedValue
        found = _runner(outputs, inputs, numbers)
        _plans.add(key, found)
    return found(inputs, numbers)


def _runner(outputs: Sequence[Node], inputs: Sequence[Input], numbers: Sequence[Scalar]) -> Runner:
    if has_complex(outputs) or not all(in_place(array) for array in _arrays(inputs)):
        function = _function(outputs, inputs, numbers)
        return lambda inputs, numbers: function(_arrays(inputs), [number.value for number in numbers])
    made = Plan(outputs, inputs, numbers)

    def call(inputs: Sequence[Input], numbers: Sequence[Scalar]) -> list[NDArray[Any]]:
        addresses = [node.address or _address(node) for node in inputs]
        return made(_arrays(inputs), addresses, [number.value for number in numbers])

    return call


def _arrays(inputs: Sequence[Input]) -> list[NDArray[Any]]:
    return [cast("NDArray[Any]", node.array) for node in inputs]


def _address(node: Input) -> int:
    """The address of an input's data, which the node keeps from now on."""
    address = address_of(cast("NDArray[Any]", node.array))
    object.__setattr__(node, "address", address)
    return address

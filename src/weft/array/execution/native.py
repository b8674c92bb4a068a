"""Runs expressions by their plans.

Planning costs a millisecond or so and compiling more, so plans are kept by structure (`keys`): shapes, dtypes,
strides, meanings. The same expression over other arrays and with other numbers runs the plan it ran before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar, cast

from numpy.typing import NDArray

from weft.array.execution.backends import Compiled, Run, TracedValue
from weft.array.execution.memory import located
from weft.array.execution.plans import Plan
from weft.array.expression.keys import gather
from weft.array.expression.nodes import Input, Node, Scalar, walk
from weft.array.programs.canonical import in_place
from weft.array.programs.narrow import Widened, has_narrow
from weft.array.programs.parts import Parts, has_complex
from weft.runtime.place import CURRENT as EMULATED
from weft.semantics import Number

_KEPT: Final = 256
"""Plans used most recently that are kept; up to as many more that were used before."""

Call: TypeAlias = Callable[[Sequence[NDArray[Any]], Sequence[int], list[Number]], list[NDArray[Any]]]
Runner: TypeAlias = Callable[[Sequence[Input], Sequence[Scalar]], list[NDArray[Any]]]


@dataclass(frozen=True)
class _Function:
    """A function of arrays, addresses and numbers; ``plan`` where the plan is all there is to it."""

    call: Call
    plan: Plan | None = None


Kept = TypeVar("Kept")


class _Plans(Generic[Kept]):
    """Plans by structure. Two tables make the least recently used plans go without a note at each use: what was found in the
    older table moves to the younger one, and a full younger one replaces the older one."""

    def __init__(self) -> None:
        self.young: dict[Hashable, Kept] = {}
        self._old: dict[Hashable, Kept] = {}

    def __len__(self) -> int:
        return len(self.young.keys() | self._old.keys())

    def clear(self) -> None:
        """Forgets all plans."""
        self.young, self._old = {}, {}

    def older(self, key: Hashable) -> Kept | None:
        """The plan for a key that the younger table has not."""
        if (found := self._old.get(key)) is not None:
            self.add(key, found)
        return found

    def add(self, key: Hashable, made: Kept) -> None:
        """Keeps a plan."""
        if len(self.young) >= _KEPT:
            self.young, self._old = {}, self.young
        self.young[key] = made


_plans: Final[_Plans[Runner]] = _Plans()
_functions: Final[_Plans[_Function]] = _Plans()
"""Plans of functions: for data of any strides."""


def plan(outputs: Sequence[Node], inputs: Sequence[Input], numbers: Sequence[Scalar] = ()) -> Compiled:
    """The plan for outputs as a function of numbers, and of inputs, which must include every `Input` the outputs need."""
    key, needed, found = gather(outputs)
    places = {id(node): place for place, node in enumerate(inputs)}
    missing = [node for node in needed if id(node) not in places]
    if missing:
        names = ", ".join(node.name or "an array" for node in missing)
        raise ValueError(f"the outputs need {names}, which is not among the inputs")
    order = [places[id(node)] for node in needed]
    values_of = _chosen(found, numbers)
    function = _functions.young.get(key) or _functions.older(key)
    if function is None:
        function = _function(outputs, needed, found)
        _functions.add(key, function)
    call, made = function.call, function.plan
    taken = _all if order == list(range(len(inputs))) else partial(_picked, order)

    def known(arrays: Sequence[NDArray[Any]]) -> Run | None:
        if made is None or not made.fits(taken(arrays)):
            return None
        plan = made
        if not plan.is_brief:
            return lambda arrays, addresses, given: plan(taken(arrays), taken(addresses), values_of(given))

        def brief(
            arrays: Sequence[NDArray[Any]], addresses: Sequence[int], given: Sequence[Number]
        ) -> list[NDArray[Any]]:
            if EMULATED.get() is None:
                return plan.brief(taken(addresses), values_of(given))
            return plan(taken(arrays), taken(addresses), values_of(given))

        return brief

    return Compiled(lambda arrays, addresses, given: call(taken(arrays), taken(addresses), values_of(given)), known)


def _all(given: Sequence[Any]) -> Sequence[Any]:
    return given


def _picked(places: Sequence[int], given: Sequence[Any]) -> Sequence[Any]:
    return [given[place] for place in places]


def _chosen(found: Sequence[Scalar], numbers: Sequence[Scalar]) -> Callable[[Sequence[Number]], list[Number]]:
    """From values for ``numbers`` to one for each number that was found; the others keep theirs."""
    places = {id(node): place for place, node in enumerate(numbers)}
    values = [node.value for node in found]
    changing = [(i, places[id(node)]) for i, node in enumerate(found) if id(node) in places]
    if not changing:
        return lambda given: values

    def chosen(given: Sequence[Number]) -> list[Number]:
        result = values.copy()
        for i, place in changing:
            result[i] = given[place]
        return result

    return chosen


def _function(outputs: Sequence[Node], inputs: Sequence[Input], numbers: Sequence[Scalar]) -> _Function:
    """The plan for outputs as a function of the inputs' data, their addresses, and numbers' values. It keeps no data alive."""
    if has_narrow(outputs):
        widened = Widened(outputs, inputs)
        run_wide = _function(widened.outputs, widened.inputs, numbers).call
        unknown = [0] * len(widened.inputs)
        return _Function(lambda arrays, _, values: widened.given(run_wide(widened.taken(arrays), unknown, values)))
    if has_complex(outputs):
        parts = Parts(outputs, inputs)
        taken, joined = parts.split.taken, parts.split.joined
        real = _function(parts.outputs, parts.inputs, numbers).call
        unknown = [0] * len(parts.inputs)
        return _Function(lambda arrays, _, values: joined(real(taken(arrays), unknown, values)))
    made = Plan(outputs, inputs, numbers)
    fitting = made.fitting
    return _Function(lambda arrays, addresses, values: made(*fitting(arrays, addresses), values), made)


def kernels(outputs: Sequence[Node]) -> tuple[str, ...]:
    """The text of each kernel that computes the nodes, in the order they run."""
    if has_narrow(outputs):
        return kernels(Widened(outputs, ()).outputs)
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
    if has_complex(outputs) or has_narrow(outputs) or not all(in_place(array) for array in _arrays(inputs)):
        function = _function(outputs, inputs, numbers).call
        return lambda inputs, numbers: function(
            _arrays(inputs), [node.address for node in inputs], [number.value for number in numbers]
        )
    made = Plan(outputs, inputs, numbers)
    is_brief = made.is_brief

    def call(inputs: Sequence[Input], numbers: Sequence[Scalar]) -> list[NDArray[Any]]:
        addresses = [node.address or located(node) for node in inputs]
        values = [number.value for number in numbers]
        if is_brief and EMULATED.get() is None:
            return made.brief(addresses, values)
        return made(_arrays(inputs), addresses, values)

    return call


def _arrays(inputs: Sequence[Input]) -> list[NDArray[Any]]:
    return [cast("NDArray[Any]", node.array) for node in inputs]

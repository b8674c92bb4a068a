"""A graph built ahead of its data, compiled once and called many times: MAX's way of working, under any system.

Inputs are declared by name, dtype and shape and numbers by dtype, so every type in the graph is known, and every refusal
raised, before any data exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex

from numpy.typing import NDArray

from weft.array.api.lazy import Array, asarray, compute, computed, system_of
from weft.array.building import operations
from weft.array.building.operations import Value
from weft.array.execution import backends
from weft.array.expression import views
from weft.array.expression.nodes import Input, walk
from weft.array.expression.support import read_dtype, require
from weft.dtypes import DType
from weft.semantics import Constant, Number, Semantics, get


class Graph:
    """Inputs, typed scalars and outputs; the operations between them are those of `Array`."""

    def __init__(self, semantics: str | Semantics = "max") -> None:
        self.semantics = get(semantics)
        self._inputs: dict[str, Input] = {}
        self._outputs: list[Array] = []

    def input(self, name: str, dtype: object, shape: Sequence[SupportsIndex] | SupportsIndex = ()) -> Array:
        """A parameter; `ValueError` for a name already taken."""
        if name in self._inputs:
            raise ValueError(f"the graph has an input '{name}' already")
        element = read_dtype(dtype, self.semantics)
        self.semantics.operand(element)
        require(element, f"input '{name}' is")
        node = Input(views.shape_of(shape), element, name=name)
        self._inputs[name] = node
        return Array(Value(node), self.semantics)

    def scalar(self, value: Number, dtype: object) -> Array:
        """A number of a chosen dtype."""
        return Array(
            operations.constant(self.semantics, Constant(value, read_dtype(dtype, self.semantics))), self.semantics
        )

    def output(self, *arrays: Array) -> None:
        """Adds results, in order."""
        system_of("output", arrays, self.semantics)
        self._outputs += arrays

    def compile(self, backend: str | None = None) -> CompiledGraph:
        """The graph as a function of its inputs; `ValueError` without outputs, or with another graph's inputs."""
        if not self._outputs:
            raise ValueError("the graph has no outputs; name them with graph.output(array)")
        inputs = list(self._inputs.values())
        for node in walk([array.node for array in self._outputs]):
            if isinstance(node, Input) and node.array is None and node not in inputs:
                raise ValueError(f"an output depends on '{node.name}', which is no input of this graph")
        run = backends.plan([array.node for array in self._outputs], inputs, backend)
        return CompiledGraph(inputs, run, [(array.dtype, array.weak) for array in self._outputs], self.semantics)


class CompiledGraph:
    """A compiled `Graph`: called with data for each input, by position or name, gives its outputs (one alone, else a
    tuple). Dtypes and shapes must be those declared; nothing is converted."""

    def __init__(
        self, inputs: Sequence[Input], run: backends.Compiled, types: Sequence[tuple[DType, bool]], system: Semantics
    ) -> None:
        self._inputs = {node.name: node for node in inputs}
        self._run = run
        self._types = types
        self._system = system

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs, in order."""
        return tuple(self._inputs)

    def __call__(self, *arguments: object, **named: object) -> Any:
        """Runs the graph."""
        given = dict(zip(self._inputs, arguments, strict=False))
        twice = sorted(given.keys() & named.keys())
        unknown = sorted(named.keys() - self._inputs.keys())
        missing = [name for name in self._inputs if name not in given and name not in named]
        if len(arguments) > len(self._inputs) or twice or unknown or missing:
            raise TypeError(_arity(self.inputs, len(arguments), twice, unknown, missing))
        data = [self._data(node, {**given, **named}[name]) for name, node in self._inputs.items()]
        results = [
            Array(computed(result, dtype, weak), self._system)
            for result, (dtype, weak) in zip(self._run(*data), self._types, strict=True)
        ]
        return results[0] if len(results) == 1 else tuple(results)

    def _data(self, node: Input, value: object) -> NDArray[Any]:
        array = asarray(value, None if isinstance(value, Array) else self._system)
        if (array.dtype, array.shape) != (node.dtype, node.shape):
            raise TypeError(
                f"graph input '{node.name}' is {node.dtype} of shape {node.shape}, found {array.dtype} of shape {array.shape}"
            )
        return compute(array)[0]


def _arity(inputs: Sequence[str], count: int, twice: list[str], unknown: list[str], missing: list[str]) -> str:
    names = f"the graph takes ({', '.join(inputs)})"
    if twice:
        return f"{names}, found '{twice[0]}' twice"
    if unknown:
        return f"{names}, found '{unknown[0]}'"
    if missing:
        return f"{names}, found no '{missing[0]}'"
    return f"{names}, found {count} arguments"

"""A function of arrays, traced and compiled once for each kind of arguments.

Evaluating lazily already fuses, but builds the expression and looks for its kernels at each evaluation. `fuse` does both
once per signature: the system, and each array's dtype, weakness and shape. Strings, None and other hashable arguments are part of
the signature by value. So is a number whose value the function has read; another one is part of it by its class
(`placeholders`). A literal stays a literal to promotion either way.

What else the function reads (globals, attributes of its arguments) it reads once per signature.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast, overload

import numpy as np
from numpy.typing import NDArray

from weft.array.api.lazy import Array, asarray, computed, settle, system_of
from weft.array.api.placeholders import Changing, Placeholder, computed_from, values
from weft.array.api.placeholders import read as stripped
from weft.array.building.coercion import is_number, is_scalar
from weft.array.building.interop import is_array
from weft.array.building.operations import Value
from weft.array.building.recipes import class_of
from weft.array.execution import backends
from weft.array.execution.memory import located
from weft.array.expression import tracing
from weft.array.expression.keys import likeness_of
from weft.array.expression.nodes import Input, walk
from weft.array.expression.structure import leaves, rebuild, shape_of
from weft.dtypes import DType
from weft.runtime.addresses import address_of
from weft.semantics import Semantics, get
from weft.semantics.context import current, use

_PLAIN: Final = frozenset({bool, str, type(None)})
"""Types of arguments that are the same where they are equal."""

_NUMBERS: Final = frozenset({int, float})

_KEPT: Final = 4096
"""Signatures after which all are forgotten."""

_Quick: TypeAlias = tuple[tuple[Hashable, ...], list[NDArray[Any]], list[int], Semantics]
"""Of a call whose signature is found without reading its arguments as arrays: key, data, their addresses, system. The key says
all that a plan depends on: strides and alignment too."""

_Ready: TypeAlias = Callable[[list[NDArray[Any]], list[int], Sequence[Any], Semantics], Any]
"""A call whose arguments nobody needs to look at: of their data and addresses, all of them, and the system."""


@dataclass(frozen=True)
class _Trace:
    """One compiled signature: ``nest`` is what the function returned, its leaves the outputs of ``run`` in order."""

    system: Semantics
    """Kept, so that nothing else gets its identity, which is part of the key."""
    run: backends.Compiled
    numbers: tuple[tuple[int, Changing], ...]
    """The numbers that change, each with its place among the leaves of the arguments."""
    read: frozenset[int]
    """The places of the numbers that it holds for alone."""
    nest: object
    types: tuple[tuple[DType, bool], ...]
    """The dtype of each output, and whether it is weak."""

    def results(self, data: list[NDArray[Any]], addresses: list[int], given: Sequence[Any], system: Semantics) -> Any:
        """What the function returns for these arrays and numbers."""
        return self._nested(self.run.run(data, addresses, values(self.numbers, given)), system)

    def ready(self, data: Sequence[NDArray[Any]], results: Any) -> _Ready:
        """`results` for arrays of the same form as these, of which it gave ``results``."""
        run, numbers = self.run.known(data) or self.run.run, self.numbers
        if self.nest is not None or run is self.run.run:
            return lambda data, addresses, given, system: self._nested(
                run(data, addresses, values(numbers, given)), system
            )
        (dtype, weak), node = self.types[0], cast(Input, cast(Array, results).node)
        shape, likeness = node.shape, likeness_of(node)

        def call(data: list[NDArray[Any]], addresses: list[int], given: Sequence[Any], system: Semantics) -> Array:
            made = run(data, addresses, values(numbers, given) if numbers else ())[0]
            made.setflags(write=False)
            return Array(Value(Input(shape, dtype, made, "", likeness), weak), system)

        return call

    def _nested(self, found: Sequence[NDArray[Any]], system: Semantics) -> Any:
        if self.nest is None:
            return Array(computed(found[0], *self.types[0]), system)
        made = [Array(computed(v, *kind), system) for v, kind in zip(found, self.types, strict=True)]
        rest = iter(made)
        return rebuild(self.nest, lambda _: next(rest))


class Fused:
    """A function that `fuse` has wrapped. Results are computed when it returns."""

    __name__: str

    def __init__(self, function: Callable[..., Any], semantics: str | Semantics | None, backend: str | None) -> None:
        self._function = function
        self._system = None if semantics is None else get(semantics)
        self._backend = backend
        self._traces: dict[Hashable, _Trace] = {}
        self._quick: dict[Hashable, _Ready] = {}
        self._read: frozenset[int] = frozenset()
        """The places, among the leaves of the arguments, of numbers whose values the function has read."""
        functools.update_wrapper(self, function)

    @property
    def signatures(self) -> int:
        """How many signatures have been compiled."""
        return len(self._traces)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """The function's result, its leaves computed arrays."""
        read = self._read
        quick = None if named or tracing.listening() else self._quick_call(arguments, read)
        if quick is not None and (ready := self._quick.get(quick[0])) is not None:
            return ready(quick[1], quick[2], arguments, quick[3])
        return self._general(arguments, named, quick, read)

    def _quick_call(self, arguments: tuple[Any, ...], by_value: frozenset[int]) -> _Quick | None:
        """The arguments, where they are NumPy's arrays, computed arrays of one system, and plain values."""
        system = self._system
        key: list[Hashable] = [backends.chosen(self._backend)]
        data: list[NDArray[Any]] = []
        addresses: list[int] = []
        for place, leaf in enumerate(arguments):
            kind = type(cast(object, leaf))
            if kind is Array:
                value = leaf.value
                node = value.node
                if type(node) is not Input or node.array is None or value.counts:
                    return None
                if system is not leaf.semantics:
                    if system is not None:
                        return None
                    system = leaf.semantics
                key += (node.likeness or likeness_of(node), value.weak)
                data.append(node.array)
                addresses.append(node.address or located(node))
            elif kind is np.ndarray:
                key += (leaf.dtype, leaf.shape, leaf.strides, leaf.flags.aligned)
                data.append(leaf)
                addresses.append(address_of(leaf))
            elif kind in _NUMBERS:
                key += (kind, repr(leaf)) if place in by_value else (class_of(leaf),)
            elif kind in _PLAIN:
                key += (kind, leaf)
            else:
                return None
        if system is None:
            system = current()
        key.append(id(system))
        return tuple(key), data, addresses, system

    def _general(
        self, arguments: tuple[Any, ...], named: dict[str, Any], quick: _Quick | None, by_value: frozenset[int]
    ) -> Any:
        """The same for any arguments; afterwards ``quick`` finds the trace, if NumPy's arrays were taken as they are. The numbers
        at the places ``by_value`` are part of the key, of others their classes."""
        nest = (arguments, named)
        found = list(leaves(nest))
        chosen = self._system
        system = system_of(self._name, found, chosen) if chosen or _arrays(found) else current()
        read = [asarray(leaf, system) if _is_data(leaf) else leaf for leaf in found]
        arrays = _arrays(read)
        if tracing.listening() or any(_traced(array) for array in arrays):  # each operation is observed
            return self._call(system, nest, read)
        read = [stripped(leaf) for leaf in read]
        settle(arrays, self._backend)
        if (trace := self._traces.get(self._key(system, nest, read, by_value))) is None:
            if len(self._traces) >= _KEPT:
                self._traces.clear()
                self._quick.clear()
            trace = self._attempt(system, nest, read, by_value)
            self._traces[self._key(system, nest, read, trace.read)] = trace
            self._read |= trace.read  # where two threads do this at once, one trace is not found and is made again
            if trace.read != by_value:
                quick = None  # its key has the class of a number that was read
        nodes = [cast(Input, array.node) for array in arrays]
        data = [cast(NDArray[Any], node.array) for node in nodes]
        results = trace.results(data, [node.address for node in nodes], read, system)
        if quick is not None and quick[2] == [located(node) for node in nodes]:
            self._remember(quick[0], trace.ready(data, results))
        return results

    def _remember(self, key: Hashable, ready: _Ready) -> None:
        if len(self._quick) >= _KEPT:
            self._quick.clear()
        self._quick[key] = ready

    @property
    def _name(self) -> str:
        return str(getattr(self._function, "__name__", "fuse"))

    def _call(self, system: Semantics, nest: object, leaf_values: list[object]) -> Any:
        values = iter(leaf_values)
        arguments, named = rebuild(nest, lambda _: next(values))
        with use(system):
            return self._function(*arguments, **named)

    def _key(self, system: Semantics, nest: object, read: Sequence[object], by_value: frozenset[int]) -> Hashable:
        tokens = tuple(self._token(leaf, place in by_value) for place, leaf in enumerate(read))
        return id(system), backends.chosen(self._backend), shape_of(nest), tokens

    def _attempt(self, system: Semantics, nest: object, read: Sequence[object], by_value: frozenset[int]) -> _Trace:
        """A trace with placeholders for numbers but those ``by_value``; where that fails, one with all numbers as they are, whose
        error is the user's."""
        numbers = frozenset(place for place, leaf in enumerate(read) if type(leaf) in _NUMBERS)
        if not numbers <= by_value:
            with suppress(Exception):
                return self._trace(system, nest, read, numbers - by_value, by_value)
        return self._trace(system, nest, read, frozenset(), by_value | numbers)

    def _trace(
        self,
        system: Semantics,
        nest: object,
        read: Sequence[object],
        places: frozenset[int],
        by_value: frozenset[int],
    ) -> _Trace:
        """A trace with placeholders at some places, and numbers at the places ``by_value``."""
        inputs: list[Input] = []
        parameters: list[object] = []
        held = {place: Placeholder(cast(float, read[place])) for place in sorted(places)}
        for place, leaf in enumerate(read):
            if isinstance(leaf, Array):
                inputs.append(Input(leaf.shape, leaf.dtype, name=f"{self._name}:{len(inputs)}"))
                parameters.append(Array(Value(inputs[-1], leaf.weak), system))
            else:
                parameters.append(held.get(place, leaf))
        with backends.listening(computed_from(list(held.values()))):
            result = rebuild(self._call(system, nest, parameters), stripped)
        outputs = [asarray(leaf, None if isinstance(leaf, Array) else system) for leaf in leaves(result)]
        system_of(self._name, outputs, system)
        numbers = tuple((place, at) for place, p in held.items() if not p.was_read for at in p.changing)
        nodes = [array.node for array in outputs]
        run = backends.plan(nodes, inputs, self._backend, [node for _, (_, node) in numbers])
        types = tuple((array.dtype, array.weak) for array in outputs)
        found = by_value | {place for place, p in held.items() if p.was_read}
        return _Trace(system, run, numbers, found, rebuild(result, lambda _: None), types)

    def _token(self, leaf: object, by_value: bool) -> Hashable:
        if isinstance(leaf, Array):
            return (leaf.dtype, leaf.weak, leaf.shape)
        if (type(leaf) is int or type(leaf) is float) and not by_value:
            return class_of(leaf)
        try:
            hash(leaf)
        except TypeError:
            raise TypeError(
                f"{self._name}() takes arrays, numbers and hashable values, found {type(leaf).__name__}"
            ) from None
        written = "" if type(leaf).__repr__ is object.__repr__ else repr(leaf)  # 0.0 equals -0.0, and 1 equals 1.0
        return (type(leaf), written if isinstance(leaf, (float, complex)) else (leaf, written))


@overload
def fuse(
    function: Callable[..., Any], *, semantics: str | Semantics | None = None, backend: str | None = None
) -> Fused: ...
@overload
def fuse(
    function: None = None, *, semantics: str | Semantics | None = None, backend: str | None = None
) -> Callable[[Callable[..., Any]], Fused]: ...
def fuse(
    function: Callable[..., Any] | None = None,
    *,
    semantics: str | Semantics | None = None,
    backend: str | None = None,
) -> Fused | Callable[[Callable[..., Any]], Fused]:
    """Wraps a function of arrays (``@fuse`` or ``@fuse(semantics="jax")``) so that it is traced and compiled once for each
    signature. Its arguments and results may nest in tuples, lists and dicts. It must not ask for values
    (`backends.TracedValue`)."""

    def wrap(wrapped: Callable[..., Any]) -> Fused:
        return Fused(wrapped, semantics, backend)

    return wrap if function is None else wrap(function)


def _is_data(leaf: object) -> bool:
    return isinstance(leaf, Array) or (not is_number(leaf) and (is_scalar(leaf) or is_array(leaf)))


def _arrays(found: list[object]) -> list[Array]:
    return [leaf for leaf in found if isinstance(leaf, Array)]


def _traced(array: Array) -> bool:
    return any(isinstance(node, Input) and node.array is None for node in walk([array.node]))

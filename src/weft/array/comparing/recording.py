"""One execution of a function under one system: what went in, every operation, what came out, where it stopped.

The function is called with data, so that branches which ask for values are taken. It is called once; where the system refuses
an operation, a second time under `lenient`, which continues as if the cast were there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any, Final, TypeAlias, cast

import numpy as np

from weft.array.api.lazy import Array, MixedSemantics, asarray
from weft.array.building.coercion import is_number, is_scalar
from weft.array.building.interop import is_array
from weft.array.comparing.lenient import lenient
from weft.array.expression import tracing
from weft.array.expression.nodes import Input, Node
from weft.array.expression.structure import rebuild
from weft.array.expression.support import dtype_of
from weft.semantics import Operand, Promotion, Semantics
from weft.semantics.context import use

Key: TypeAlias = tuple[str, int, str]
"""A program point: file, line, operation. Inputs and outputs have no file."""

NUMBER: Final = "a number"
"""The name of an input that was a number of Python's, whose type says nothing of where it came from."""

_WEFT: Final = str(Path(__file__).parents[2])
_ONLY: Final = inspect.Parameter.POSITIONAL_ONLY
_EITHER: Final = inspect.Parameter.POSITIONAL_OR_KEYWORD


@dataclass(frozen=True)
class Event:
    """An input, an operation or an output: its operands and the system's answer (None for inputs and outputs), its node (None
    where the system refused)."""

    key: Key
    operands: tuple[Operand, ...]
    outcome: Promotion | Exception | None
    node: Node | None
    weak: bool


@dataclass(frozen=True)
class Recording:
    """An execution under ``system``. ``error`` ended it at ``location``; ``result`` is what the function returned otherwise.
    ``departures`` are the values that left the system on the way."""

    system: Semantics
    events: tuple[Event, ...]
    result: object = None
    error: Exception | None = None
    location: str = ""
    departures: tuple[tracing.Departure, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether an operation that the system refused ended it."""
        return self.error is not None and any(event.outcome is self.error for event in self.events)


@dataclass(frozen=True)
class Call:
    """A function and its arguments; ``names`` say what each leaf of the arguments is called."""

    function: Callable[..., object]
    name: str
    arguments: Sequence[object]
    named: Mapping[str, object]
    names: Sequence[str]

    def record(self, system: Semantics, others: Sequence[Semantics]) -> Recording:
        """An execution under ``system``, continued as ``others`` would where it refuses."""
        strict = self._attempt(system)
        if not strict.refused:
            return strict
        relaxed = self._attempt(lenient(system, tuple(others)))
        return strict if isinstance(relaxed.error, MixedSemantics) else relaxed

    def _attempt(self, system: Semantics) -> Recording:
        names = iter(self.names)
        inputs: list[Event] = []

        def read(leaf: object) -> object:
            name = next(names)
            if not is_data(leaf):
                return leaf
            array = _input(name, leaf, system)
            inputs.append(Event(("", 0, name), (), None, array.node, array.weak))
            return array

        arguments, named = rebuild((list(self.arguments), dict(self.named)), read)
        with tracing.record() as heard, tracing.departures() as left:
            try:
                with use(system):
                    result = self.function(*arguments, **named)
            except Exception as error:
                place = _place(error.__traceback__, self.name)
                return Recording(system, (*inputs, *map(_event, heard)), None, error, place, tuple(left))
        returned = [(path, leaf) for path, leaf in paths(result) if is_data(leaf) or is_number(leaf)]
        outputs = [_output(f"return{path}", leaf) for path, leaf in returned]
        left += self._foreign(system, [leaf for _, leaf in returned])
        return Recording(system, (*inputs, *map(_event, heard), *outputs), result, departures=tuple(left))

    def _foreign(self, system: Semantics, returned: Sequence[object]) -> Iterator[tracing.Departure]:
        """The returned arrays that another system computed."""
        code = getattr(self.function, "__code__", None)
        place = (code.co_filename, code.co_firstlineno) if isinstance(code, CodeType) else (self.name, 0)
        for leaf in returned:
            if isinstance(leaf, Array) and leaf.semantics.name != system.name:
                yield tracing.Departure(f"an array of {leaf.semantics.name} is returned", *place)


def is_data(leaf: object) -> bool:
    """Whether a leaf is an array or one of NumPy's scalars, which become arrays; numbers stay literals."""
    return isinstance(leaf, Array) or (not is_number(leaf) and (is_scalar(leaf) or is_array(leaf)))


def paths(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of a nest in `structure.leaves`'s order, with how to get there: ``[0]['weight']``."""
    if isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            yield from paths(item, f"{path}[{key!r}]")
    elif isinstance(value, (tuple, list)):
        for i, item in enumerate(cast("Sequence[object]", value)):
            yield from paths(item, f"{path}[{i}]")
    else:
        yield path, value


def parameters(function: Callable[..., object], arguments: Sequence[object], named: Mapping[str, object]) -> list[str]:
    """The names of the arguments' leaves, from the function's parameters: ``x``, ``weights['w'][0]``. `TypeError` where the
    function does not take them."""
    try:
        signature = inspect.signature(function)
    except ValueError:  # some builtin functions do not say
        tops = [f"argument {i}" for i in range(len(arguments))]
    else:
        signature.bind(*arguments, **named)
        tops = _positional(signature, len(arguments))
    each = [*zip(tops, arguments, strict=True), *named.items()]
    return [top + path for top, value in each for path, _ in paths(value)]


def _positional(signature: inspect.Signature, count: int) -> list[str]:
    kinds = {p.name: p.kind for p in signature.parameters.values()}
    plain = [name for name, kind in kinds.items() if kind in (_ONLY, _EITHER)]
    rest = next((name for name, kind in kinds.items() if kind is inspect.Parameter.VAR_POSITIONAL), "")
    return [*plain[:count], *(f"{rest}[{i}]" for i in range(count - len(plain)))]


def _input(name: str, leaf: object, system: Semantics) -> Array:
    try:
        return asarray(leaf, system)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"input '{name}' in {system.name}: {error}") from error


def _event(heard: tracing.Event) -> Event:
    weak = isinstance(heard.outcome, Promotion) and heard.outcome.weak
    operands, op = heard.operands, heard.op
    if op == "cast" and isinstance(heard.outcome, Promotion):
        operands, op = (*operands, heard.outcome.result), "astype"
    return Event((heard.file, heard.line, op), operands, heard.outcome, heard.node, weak)


def _output(name: str, leaf: object) -> Event:
    if isinstance(leaf, Array):
        return Event(("", -1, name), (), None, leaf.node, leaf.weak)
    array = np.asarray(cast(Any, leaf))
    kind = NUMBER if is_number(leaf) else ""
    return Event(("", -1, name), (), None, Input(array.shape, dtype_of(array.dtype), array=array, name=kind), False)


def _place(traceback: TracebackType | None, name: str) -> str:
    """The innermost line outside weft."""
    place = name
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith(_WEFT):
            place = f"{file}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place

"""The backends that compute values: generated kernels, or NumPy.

``native`` compiles; ``reference`` interprets the same nodes with NumPy through `weft.semantics.evaluate`, and says what each
node means. Neither knows a promotion rule, so they must agree, and tests run both.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from weft.array.expression.nodes import Input, Node, Scalar, walk
from weft.runtime.addresses import address_of
from weft.semantics import Number

Run: TypeAlias = Callable[[Sequence[NDArray[Any]], Sequence[int], Sequence[Number]], list[NDArray[Any]]]
"""From an array for each input, its address (0 where it is not known), and the numbers, to an array for each output."""


def _never(arrays: Sequence[NDArray[Any]]) -> None:
    """No arrays are known."""


@dataclass(frozen=True)
class Compiled:
    """A graph compiled: called with one array for each input, gives one for each output. Only `run` takes numbers.

    ``known`` gives a faster `run` for arrays of the same shapes, dtypes, strides and alignment as those that it is asked about,
    at which it does not look again, and whose addresses it has to be told; None where there is none.
    """

    run: Run
    known: Callable[[Sequence[NDArray[Any]]], Run | None] = _never

    def __call__(self, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
        return self.run(arrays, [0] * len(arrays), ())


BACKENDS: Final[dict[str, str]] = {
    "native": "weft.array.execution.native",
    "reference": "weft.array.execution.reference",
}
"""Each backend's module. It has ``run(outputs)``, which raises `TracedValue` where data are missing, and
``plan(outputs, inputs, numbers)``, which gives `Compiled`."""

_LOADED: Final[dict[str, Any]] = {}
"""The modules that were asked for."""

_LISTENERS: Final[ContextVar[tuple[Callable[[Sequence[Node]], None], ...]]] = ContextVar(
    "weft.array.execution.backends.listeners", default=()
)

_CHOSEN: Final[ContextVar[str]] = ContextVar("weft.array.execution.backends", default="native")


class TracedValue(TypeError):
    """A value was asked of an array that stands for the parameter of a function or a graph."""

    def __init__(self) -> None:
        super().__init__(
            "this array stands for a parameter while a function or graph is traced, and has no values yet; "
            "choose between values with weft.array.where, not with Python's if, while or bool"
        )


@contextmanager
def use_backend(name: str) -> Generator[str]:
    """Arrays in the ``with`` block are computed by this backend; `ValueError` for an unknown one."""
    token = _CHOSEN.set(_known(name))
    try:
        yield name
    finally:
        _CHOSEN.reset(token)


def run(outputs: Sequence[Node], backend: str | None = None) -> list[NDArray[Any]]:
    """The values of the nodes."""
    for listener in _LISTENERS.get():
        listener(outputs)
    return _module(backend).run(outputs)


def plan(
    outputs: Sequence[Node], inputs: Sequence[Input], backend: str | None = None, numbers: Sequence[Scalar] = ()
) -> Compiled:
    """The nodes compiled as a function of ``inputs`` and of the values of ``numbers``, which must be real and of at least 8 bits;
    other numbers and data in the graph come along."""
    for listener in _LISTENERS.get():
        listener(outputs)
    constants = [n for n in walk(outputs) if isinstance(n, Input) and n not in inputs and n.array is not None]
    compiled: Compiled = _module(backend).plan(outputs, [*inputs, *constants], numbers)
    if not constants:
        return compiled
    run, data = compiled.run, [node.array for node in constants if node.array is not None]
    places = [address_of(array) for array in data]

    def known(arrays: Sequence[NDArray[Any]]) -> Run | None:
        if (inner := compiled.known([*arrays, *data])) is None:
            return None
        return lambda arrays, addresses, given: inner([*arrays, *data], [*addresses, *places], given)

    return Compiled(lambda arrays, addresses, given: run([*arrays, *data], [*addresses, *places], given), known)


@contextmanager
def listening(listener: Callable[[Sequence[Node]], None]) -> Generator[None]:
    """In the ``with`` block ``listener`` is told of all nodes that are computed or compiled; those of outer blocks are too."""
    token = _LISTENERS.set((*_LISTENERS.get(), listener))
    try:
        yield
    finally:
        _LISTENERS.reset(token)


def chosen(backend: str | None = None) -> str:
    """The backend's name: ``backend``, else the one of `use_backend`."""
    return backend or _CHOSEN.get()


def _module(backend: str | None) -> Any:
    name = chosen(backend)
    if (module := _LOADED.get(name)) is None:
        module = _LOADED[name] = importlib.import_module(BACKENDS[_known(name)])
    return module


def _known(name: str) -> str:
    if name not in BACKENDS:
        raise ValueError(f"unknown backend '{name}'; weft.array has {', '.join(BACKENDS)}")
    return name

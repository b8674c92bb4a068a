"""The backends that compute values: generated kernels, or NumPy.

``native`` compiles; ``reference`` interprets the same nodes with NumPy through `weft.semantics.evaluate`, and says what each
node means. Neither knows a promotion rule, so they must agree, and tests run both.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from weft.array.nodes import Input, Node, walk

Compiled: TypeAlias = Callable[..., list[NDArray[Any]]]
"""A graph compiled: called with one array for each input, gives one for each output."""

BACKENDS: Final[dict[str, str]] = {"native": "weft.array.execute", "reference": "weft.array.reference"}
"""Each backend's module, which has ``run(outputs)`` (`TracedValue` where an input has no data) and ``plan(outputs, inputs)``."""

_LOADED: Final[dict[str, Any]] = {}
"""The modules that were asked for."""

_CHOSEN: Final[ContextVar[str]] = ContextVar("weft.array.backends", default="native")


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
    return _module(backend).run(outputs)


def plan(outputs: Sequence[Node], inputs: Sequence[Input], backend: str | None = None) -> Compiled:
    """The nodes compiled as a function of ``inputs``; data elsewhere in the graph comes along."""
    constants = [n for n in walk(outputs) if isinstance(n, Input) and n not in inputs and n.array is not None]
    compiled = _module(backend).plan(outputs, [*inputs, *constants])
    if not constants:
        return compiled
    data = [node.array for node in constants]
    return lambda *arrays: compiled(*arrays, *data)


def _module(backend: str | None) -> Any:
    name = backend or _CHOSEN.get()
    if (module := _LOADED.get(name)) is None:
        module = _LOADED[name] = importlib.import_module(BACKENDS[_known(name)])
    return module


def _known(name: str) -> str:
    if name not in BACKENDS:
        raise ValueError(f"unknown backend '{name}'; weft.array has {', '.join(BACKENDS)}")
    return name

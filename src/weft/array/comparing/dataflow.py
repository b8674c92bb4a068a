"""From which earlier operations each operation of a recording was computed, what it adds, and all the values.

An event's node reaches the nodes of earlier events through conversions, views and the parts its meaning was built of. An array
that was computed while the function ran (a branch asked for its values) is data by then, without operands; the last event with
the same type, shape and bytes is taken for its origin (of a Python number: with that value).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray

from weft.array.comparing.recording import NUMBER, Event, Recording
from weft.array.execution import backends
from weft.array.expression.nodes import Apply, Convert, Input, Matmul, Node, Reduce, Scalar, walk
from weft.semantics import Number

Outcome = NDArray[Any] | Exception | None
"""An event's values; what computing them raised; None where there is no node."""


FAILURES: Final = (ArithmeticError, IndexError)
"""What operations raise for the values they find: a zero divisor, an index out of bounds."""

_FEW: Final = 1 << 17
"""How many values the reference computes unless it was asked for: a fraction of a second."""


@dataclass(frozen=True)
class Flow:
    """An event's place in the data flow: its ``parents``, the numbers it holds, the bytes of its conversions, and whether
    each of its elements comes of those of the parents at the same place (broadcast)."""

    parents: tuple[int, ...]
    scalars: tuple[Number, ...]
    converted: int
    elementwise: bool


def evaluate(recording: Recording, backend: str | None) -> list[Outcome]:
    """Every event's values, in one run; one by one where an operation fails, to know which. Few values are computed by the
    reference, since compiling takes longer."""
    nodes = [event.node for event in recording.events]
    known = [node for node in nodes if node is not None]
    needed = list(walk(known))
    if any(map(_parameter, needed)):
        for event in recording.events:
            _require_data(event)
    if backend is None:
        backend = "reference" if sum(node.size for node in needed) <= _FEW else "native"
    try:
        results = iter(backends.run(known, backend))
    except FAILURES:
        return [None if node is None else _attempt(node, backend) for node in nodes]
    return [None if node is None else next(results) for node in nodes]


def _attempt(node: Node, backend: str | None) -> Outcome:
    try:
        return backends.run([node], backend)[0]
    except FAILURES as error:
        return error


def _parameter(node: Node) -> bool:
    return isinstance(node, Input) and node.array is None


def _require_data(event: Event) -> None:
    if event.node is not None and any(_parameter(node) for node in walk([event.node])):
        file, line, _ = event.key
        raise TypeError(f"{file}:{line} builds a graph, whose arrays have no values; compare a function that computes")


def flows(events: Sequence[Event], values: Sequence[Outcome]) -> list[Flow]:
    """Each event's place."""
    homes: dict[int, int | None] = {}
    found: list[Flow] = []
    inner = sum(event.key[:2] != ("", -1) for event in events)
    for i, event in enumerate(events):
        before: Sequence[Outcome] = values[: min(i, inner)] if event.key[:2] != ("", 0) else []
        found.append(_flow(event, before, homes))
        if event.node is not None and homes.get(id(event.node)) is None:
            homes[id(event.node)] = i
    return found


def _flow(event: Event, before: Sequence[Outcome], homes: dict[int, int | None]) -> Flow:
    """One event's; ``homes`` are the events of the nodes seen so far, None for data made in the function."""
    parents: set[int] = set()
    own: dict[int, Node] = {}
    stack = [event.node] if event.node is not None else []
    while stack:
        node = stack.pop()
        if isinstance(node, Input) and id(node) not in homes:
            homes[id(node)] = _origin(node, before)
        home = homes.get(id(node))
        if home is not None:
            parents.add(home)
        elif id(node) not in own:
            own[id(node)] = node
            stack += node.operands
    scalars = tuple(node.value for node in own.values() if isinstance(node, Scalar))
    elementwise = all(isinstance(node, (Apply, Convert, Scalar, Input)) for node in own.values())
    return Flow(tuple(sorted(parents)), scalars, _converted(event.node, own), elementwise)


def _origin(node: Input, before: Sequence[Outcome]) -> int | None:
    data = node.array
    for i, value in reversed(list(enumerate(before))):
        if data is None or value is None or isinstance(value, Exception):
            continue
        if node.name == NUMBER and value.size == 1 and value.item() == data.item():
            return i
        if (value.dtype, value.shape) == (data.dtype, data.shape) and value.tobytes() == data.tobytes():
            return i
    return None


def _converted(result: Node | None, own: dict[int, Node]) -> int:
    """The bytes of the values converted on the way to ``result``, a value converted twice to the same type once. What becomes
    the result itself counts as it was before."""
    sizes: dict[object, int] = {}
    for node in own.values():
        if not isinstance(node, Convert):
            continue
        if node is not result:
            sizes[id(node.source), node.dtype] = nbytes(node)
        elif isinstance(node.source, (Apply, Reduce, Matmul)) and id(node.source) in own:
            sizes[id(node)] = nbytes(node.source)
    return sum(sizes.values())


def nbytes(node: Node) -> int:
    """The memory of a node's elements."""
    return node.size * node.dtype.itemsize

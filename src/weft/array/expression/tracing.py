"""Records each operation: its operands, the system's answer, and the user's line.

Recording costs a walk up the stack, so nothing is recorded by default: `record` opens a block and gives a
list, to which every operation on arrays adds an `Event`. Refusals are events too.

`departures` opens another block, for values that leave the system: no operation on them is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from weft.array.expression.nodes import Node
from weft.semantics import Operand, Promotion


@dataclass(frozen=True)
class Event:
    """One operation: its canonical name, its operands as the system saw them, its outcome (the exception where it was
    refused), the node it gave (None where it was refused), and the user's ``file`` and ``line``."""

    op: str
    operands: tuple[Operand, ...]
    outcome: Promotion | Exception
    node: Node | None
    file: str
    line: int

    @property
    def location(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Departure:
    """Values of an array that left the system: which ``way`` (``.numpy()``, ``float()``), in the user's ``file`` and ``line``."""

    way: str
    file: str
    line: int


BRANCH: Final = "bool()"
"""The way of a value that decides a branch."""

_HERE: Final = str(Path(__file__).parents[1])
_NUMPY: Final = str(Path(np.__file__).parent)
_DEPARTURES: Final[ContextVar[list[Departure] | None]] = ContextVar(
    "weft.array.expression.tracing.departures", default=None
)
_EVENTS: Final[ContextVar[list[Event] | None]] = ContextVar("weft.array.expression.tracing", default=None)


@contextmanager
def record() -> Generator[list[Event]]:
    """The operations of the ``with`` block, in order; of nested blocks, the inner one listens."""
    events: list[Event] = []
    token = _EVENTS.set(events)
    try:
        yield events
    finally:
        _EVENTS.reset(token)


def listening() -> bool:
    """Whether a `record` block is open here."""
    return _EVENTS.get() is not None


def note(op: str, operands: Sequence[Operand], outcome: Promotion | Exception, node: Node | None = None) -> None:
    """Adds an event where a `record` block is open."""
    if (events := _EVENTS.get()) is not None:
        events.append(Event(op, tuple(operands), outcome, node, *caller()))


@contextmanager
def departures() -> Generator[list[Departure]]:
    """The values that leave the system in the ``with`` block, in order."""
    found: list[Departure] = []
    token = _DEPARTURES.set(found)
    try:
        yield found
    finally:
        _DEPARTURES.reset(token)


def left(way: str) -> None:
    """Adds a departure where a `departures` block is open."""
    if (found := _DEPARTURES.get()) is not None:
        found.append(Departure(way, *caller()))


def caller() -> tuple[str, int]:
    """File and line of the innermost frame outside this package and NumPy."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_filename.startswith((_HERE, _NUMPY)) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno

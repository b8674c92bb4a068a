"""Records each operation: its operands, the system's answer, and the user's line.

Recording costs a walk up the stack, so nothing is recorded by default: `record` opens a block and gives a
list, to which every operation on arrays adds an `Event`. Refusals are events too.

`departures` opens another block, for values that leave the system: no operation on them is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import numpy as np

from weft.array.expression.nodes import Node
from weft.semantics import Operand, Promotion


class Located:
    """What stands at a ``line`` of a ``file``."""

    file: str
    line: int

    @property
    def location(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Event(Located):
    """One operation: its canonical name, its operands as the system saw them, its outcome (the exception where it was
    refused), the node it gave (None where it was refused), and the user's ``file`` and ``line``."""

    op: str
    operands: tuple[Operand, ...]
    outcome: Promotion | Exception
    node: Node | None
    file: str
    line: int


@dataclass(frozen=True)
class Departure(Located):
    """Values of an array that left the system: which ``way`` (``.numpy()``, ``float()``), in the user's ``file`` and ``line``."""

    way: str
    file: str
    line: int


BRANCH: Final = "bool()"
"""The way of a value that decides a branch."""

Found = TypeVar("Found")

_HERE: Final = str(Path(__file__).parents[1])
_NUMPY: Final = str(Path(np.__file__).parent)
_DEPARTURES: Final[ContextVar[list[Departure] | None]] = ContextVar(
    "weft.array.expression.tracing.departures", default=None
)
_EVENTS: Final[ContextVar[list[Event] | None]] = ContextVar("weft.array.expression.tracing", default=None)


@contextmanager
def _listed(variable: ContextVar[list[Found] | None]) -> Generator[list[Found]]:
    """A list to which others add in the ``with`` block; of nested blocks, the inner one's."""
    found: list[Found] = []
    token = variable.set(found)
    try:
        yield found
    finally:
        variable.reset(token)


def record() -> AbstractContextManager[list[Event]]:
    """The operations of the ``with`` block, in order; of nested blocks, the inner one listens."""
    return _listed(_EVENTS)


def listening() -> bool:
    """Whether a `record` block is open here."""
    return _EVENTS.get() is not None


def note(op: str, operands: Sequence[Operand], outcome: Promotion | Exception, node: Node | None = None) -> None:
    """Adds an event where a `record` block is open."""
    if (events := _EVENTS.get()) is not None:
        events.append(Event(op, tuple(operands), outcome, node, *caller()))


def departures() -> AbstractContextManager[list[Departure]]:
    """The values that leave the system in the ``with`` block, in order."""
    return _listed(_DEPARTURES)


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

"""Records each operation: its operands, the system's answer, and the user's line.

Recording costs a walk up the stack, so nothing is recorded by default: `record` opens a block and gives a
list, to which every operation on arrays adds an `Event`. Refusals are events too.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weft.array.nodes import Node
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


_HERE: Final = str(Path(__file__).parent)
_EVENTS: Final[ContextVar[list[Event] | None]] = ContextVar("weft.array.tracing", default=None)


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


def caller() -> tuple[str, int]:
    """File and line of the innermost frame outside this package."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_filename.startswith(_HERE) and frame.f_back is not None:
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno

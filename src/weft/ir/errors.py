"""What users read when a kernel does not compile.

The code that knows a rule raises a `CompilationError` that says *what* (found, expected, advice). The frontend, at one
boundary, adds *where*: the expression, and the calls that led there. A pass or a code generator that does not support an
op raises `weft.ir.unsupported.UnsupportedOpError`, which takes the place from the op.

A rendered error::

    shapes (64,) and (128,) do not broadcast: dimension 0 has 64 and 128 elements
      kernels.py:12:11, in scale
            return x * y
                   ^^^^^
      kernels.py:20:9, in kernel
            z = scale(a, b)
                ^^^^^^^^^^^
    help: make the sizes equal, or 1 where one should be repeated

This module loads no xDSL: a launch of a cached kernel needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from weft.ir.position import Position


class Note(NamedTuple):
    """A second place that matters, and why."""

    message: str
    span: Position


class CompilationError(Exception):
    """A kernel breaks a rule of the language, or needs what weft does not support.

    ``message`` says what was found and what was expected, ``spans`` where, innermost first, ``hint`` what to do.
    ``argument`` names the parameter of the failing call that is to blame, if one is; ``call`` is then the place of the call.
    """

    call: Position | None = None

    def __init__(
        self,
        message: str,
        spans: Sequence[Position] = (),
        *,
        hint: str | None = None,
        notes: Sequence[Note] = (),
        argument: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.spans = tuple(spans)
        self.hint = hint
        self.notes = tuple(notes)
        self.argument = argument

    def stamp(self, spans: Sequence[Position]) -> Self:
        """The error itself, with its place."""
        self.spans = tuple(spans)
        return self

    def __str__(self) -> str:
        lines = [self.message, *(span.render() for span in self.spans)]
        for note in self.notes:
            lines += [f"note: {note.message}", note.span.render()]
        if self.hint:
            lines.append(f"help: {self.hint}")
        return "\n".join(lines)

    def on_one_line(self) -> str:
        """The innermost place, the message and the hint, for command lines."""
        place = f"{self.spans[0].file}:{self.spans[0].line}: " if self.spans else ""
        hint = f"; {self.hint}" if self.hint else ""
        return f"{place}{self.message}{hint}"

    def __reduce__(self) -> tuple[object, ...]:
        # The default would call the class with the message only and lose the rest.
        state = {"spans": self.spans, "hint": self.hint, "notes": self.notes, "argument": self.argument}
        return (type(self), (self.message,), state)

"""What users read when a kernel does not compile.

The code that knows a rule raises a `CompilationError` that says *what* (found, expected, advice). The generator, at one
boundary, adds *where*: the expression, and the calls that led there. A message about one argument of a call names it, and
the caret goes under that argument.

A rendered error::

    shapes (64,) and (128,) do not broadcast: dimension 0 has 64 and 128 elements
      kernels.py:12:11, in scale
            return x * y
                   ^^^^^
      kernels.py:20:9, in kernel
            z = scale(a, b)
                ^^^^^^^^^^^
    help: make the sizes equal, or 1 where one should be repeated
"""

from __future__ import annotations

import difflib
import linecache
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.ir.position import Position


@dataclass(frozen=True)
class Span:
    """Some source text: 1-based lines, 0-based columns in characters, end exclusive; ``text`` is the whole first line
    where it is known. ``end_column`` is None where only the start is known."""

    file: str
    line: int
    column: int
    function: str
    end_line: int = 0
    end_column: int | None = None
    text: str | None = None

    @staticmethod
    def of(position: Position) -> Span:
        """The span of an op's position, whose end is not known."""
        return Span(position.file, position.line, position.column, position.function)

    def render(self) -> str:
        """Place, source line and caret underline (to the end of the first line of what spans several)."""
        place = f"  {self.file}:{self.line}:{self.column + 1}, in {self.function}"
        text = (self.text if self.text is not None else linecache.getline(self.file, self.line)).rstrip()
        if not text:
            return place
        end = (
            self.column + 1 if self.end_column is None else self.end_column if self.end_line == self.line else len(text)
        )
        # The underline copies tabs, so that it stays below what it underlines.
        margin = "".join("\t" if c == "\t" else " " for c in text[: self.column])
        return f"{place}\n    {text}\n    {margin}{'^' * max(end - self.column, 1)}"


@dataclass(frozen=True)
class Note:
    """A second place that matters, and why."""

    message: str
    span: Span


class CompilationError(Exception):
    """A kernel breaks a rule of the language.

    ``message`` says what was found and what was expected, ``spans`` where, innermost first, ``hint`` what to do.
    ``argument`` names the parameter of the failing call that is to blame, if one is.
    """

    def __init__(
        self,
        message: str,
        spans: Sequence[Span | Position] = (),
        *,
        hint: str | None = None,
        notes: Sequence[Note] = (),
        argument: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.spans = tuple(s if isinstance(s, Span) else Span.of(s) for s in spans)
        self.hint = hint
        self.notes = tuple(notes)
        self.argument = argument

    def stamp(self, spans: Sequence[Span]) -> CompilationError:
        """The error itself, with its place."""
        self.spans = tuple(spans)
        return self

    @property
    def positions(self) -> tuple[Position, ...]:
        """Where, as the positions that ops carry, innermost first."""
        from weft.ir.position import Position

        return tuple(Position(s.file, s.line, s.column, s.function) for s in self.spans)

    def __str__(self) -> str:
        lines = [self.message, *(span.render() for span in self.spans)]
        for note in self.notes:
            lines += [f"note: {note.message}", note.span.render()]
        if self.hint:
            lines.append(f"help: {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        # The default would call the class with the message only and lose the rest.
        state = {"spans": self.spans, "hint": self.hint, "notes": self.notes, "argument": self.argument}
        return (type(self), (self.message,), state)


class NotConstexpr(CompilationError):
    """Something known only at run time stands where compilation needs the value. The generator, which knows the
    variables, adds which of them to mark as constexpr."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """A hint naming the most similar of ``names``, or None where nothing is near."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else None

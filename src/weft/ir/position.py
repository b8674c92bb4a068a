"""A place in a source file, as plain data: loads no xDSL, so that a launch of a cached kernel can name places."""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True)
class Position:
    """A place in a source file: 1-based line, 0-based column in characters, the function it stands in."""

    file: str
    line: int
    column: int
    function: str

    def render(self) -> str:
        """Place, source line and caret, as error messages show them; the place alone where the line cannot be read."""
        return self._rendered(linecache.getline(self.file, self.line), self.column + 1)

    def _rendered(self, text: str, end: int) -> str:
        """The same for the text of the line, underlined up to the column ``end``."""
        place = f"  {self.file}:{self.line}:{self.column + 1}, in {self.function}"
        text = text.rstrip()
        if not text:
            return place
        # The underline copies tabs, so that it stays below what it underlines.
        margin = "".join("\t" if c == "\t" else " " for c in text[: self.column])
        return f"{place}\n    {text}\n    {margin}{'^' * max(end - self.column, 1)}"


@dataclass(frozen=True)
class Span(Position):
    """A place with its end, exclusive. ``text`` is the whole first line, as it was when the kernel was decorated; where it is
    None, it is read from the file. ``end_column`` is None where only the start is known."""

    end_line: int = 0
    end_column: int | None = None
    text: str | None = None

    def render(self) -> str:
        """Place, source line and caret underline (to the end of the first line of what spans several)."""
        text = (linecache.getline(self.file, self.line) if self.text is None else self.text).rstrip()
        last = self.column + 1 if self.end_column is None else self.end_column
        several_lines = self.end_column is not None and self.end_line != self.line
        return self._rendered(text, len(text) if several_lines else last)

"""A place in a source file, as plain data: loads no xDSL, so that a launch of a cached kernel can name places."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Position:
    """A place in a source file: 1-based line, 0-based column, the function it stands in."""

    file: str
    line: int
    column: int
    function: str

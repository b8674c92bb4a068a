"""The errors of the frontend: those of `weft.ir.errors`, and what its messages are made of."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from weft.ir.errors import CompilationError, Note
from weft.ir.position import Span

__all__ = ["CompilationError", "NotConstexpr", "Note", "Span", "nearest"]


class NotConstexpr(CompilationError):
    """Something known only at run time stands where compilation needs the value. The generator, which knows the
    variables, adds which of them to mark as constexpr."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """A hint naming the most similar of ``names``, or None where nothing is near."""
    close = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else None

"""The errors of the frontend: those of `weft.ir.errors`, and what its messages are made of."""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.errors import CompilationError, Note
from weft.ir.position import Span
from weft.nearest import did_you_mean

__all__ = ["CompilationError", "NotConstexpr", "Note", "Span", "nearest"]


class NotConstexpr(CompilationError):
    """Something known only at run time stands where compilation needs the value. The generator, which knows the
    variables, adds which of them to mark as constexpr."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """A hint naming the most similar of ``names``, or None where nothing is near."""
    return did_you_mean(name, names) or None

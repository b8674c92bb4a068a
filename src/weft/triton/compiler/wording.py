"""The words in which Triton refuses what weft refuses in its own.

Programs and tests match some of Triton's messages. A rule is weft's message as a pattern, and Triton's text in which groups of
the pattern may stand. Where no rule applies, weft's message is the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from weft.ir.errors import CompilationError


@dataclass(frozen=True)
class Wording:
    """The text of an error, the exception that caused it in Triton (None: it has no cause), and its ``kind``."""

    text: str
    cause: Callable[[str], Exception] | None = ValueError
    kind: str = ""


@dataclass(frozen=True)
class Rule:
    """Triton's ``text`` for weft's messages that match ``pattern``; the other fields as in `Wording`. An empty text stands for
    weft's message."""

    pattern: str
    text: str | Callable[[re.Match[str]], str] = ""
    cause: Callable[[str], Exception] | None = ValueError
    kind: str = ""


RULES: Final[tuple[Rule, ...]] = (
    Rule(r"^static assertion failed", cause=None, kind="assertion"),
    Rule(r" cannot be used in a kernel$", cause=None, kind="construct"),
)
"""The first rule that matches decides."""


def wording_of(error: CompilationError) -> Wording:
    """Triton's words for an error."""
    for rule in RULES:
        if (match := re.search(rule.pattern, error.message)) is not None:
            text = rule.text(match) if callable(rule.text) else match.expand(rule.text) if rule.text else error.message
            return Wording(text, rule.cause, rule.kind)
    return Wording(error.message)

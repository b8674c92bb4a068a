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
from weft.ir.position import Span
from weft.triton.names import CANONICAL


@dataclass(frozen=True)
class Wording:
    """The text of an error, the exception that caused it in Triton (None: it has no cause), and its ``kind``.

    ``whole``: the error is at the function's definition. ``last``: the text ends the error, behind weft's message.
    """

    text: str
    cause: Callable[[str], Exception] | None = ValueError
    kind: str = ""
    whole: bool = False
    last: bool = False


@dataclass(frozen=True)
class Rule:
    """Triton's ``text`` for weft's messages that match ``pattern``, at a line that matches ``source``; the other fields as in
    `Wording`. An empty text stands for weft's message."""

    pattern: str
    text: str | Callable[[re.Match[str]], str] = ""
    cause: Callable[[str], Exception] | None = ValueError
    kind: str = ""
    source: str = ""
    whole: bool = False
    last: bool = False


def _short(match: re.Match[str]) -> str:
    """The type of a message, as Triton spells it."""
    return CANONICAL.get(match[1], match[1])


RULES: Final[tuple[Rule, ...]] = (
    Rule(r"^static assertion failed", cause=None, kind="assertion"),
    Rule(r" cannot be used in a kernel$", cause=None, kind="construct"),
    Rule(r"^the name '(\w+)' is not defined", r"NameError('\1 is not defined')"),
    Rule(r"^'(\w+)' is used before it is assigned", r"NameError('\1 is not defined')"),
    Rule(r"^The result of .* is not being used\.", cause=None, last=True),
    Rule(r" marked as constexpr and listed in do_not_specialize", cause=None),
    Rule(r"^one path returns (.*), another (.*)$", r"Return type mismatch: \1 and \2", cause=TypeError, whole=True),
    Rule(
        r"^the sides of a conditional expression have different types: (.*) and (.*)$",
        r"Ternary expression with dynamic condition has inconsistent types \1 and \2",
        cause=AssertionError,
    ),
    Rule(
        r"^'(\w+)' has different types after an 'if': (.*) and (.*)$",
        r"Mismatched type for \1 between then block (\2) and else block (\3)",
        cause=AssertionError,
    ),
    Rule(
        r"^tl\.(?:topk|sort|bitonic_merge|flip|interleave): (.*)$", r"\1", cause=None, kind="assertion"
    ),  # of its library
    Rule(r"^tl\.\w+: (.*)$", r"\1", cause=AssertionError),
    Rule(
        r"^the global '(\w+)' is ",
        r"Cannot access global variable \1 from within @jit'ed function. Triton kernels can only access global variables that "
        r"are instantiated as constexpr (`x = triton.language.constexpr(42)`)",
    ),
    Rule(r"^'[-+~]' of the compile-time values", cause=None),
    Rule(r"^'(?:[&|^]|<<|>>)' does not take (\w+)", lambda m: f"invalid operands of type {m[1]}", cause=TypeError),
    Rule(
        r"^'(//?|%)' refuses (u?int\d+) with (u?int\d+), one is signed",
        lambda m: (
            f"Cannot use {m[1]} with {CANONICAL[m[2]]} and {CANONICAL[m[3]]} because they have different signedness;"
            "this is unlikely to result in a useful answer. Cast them to the same signedness."
        ),
        cause=TypeError,
    ),
    Rule(
        r"^tl\.\w+ takes float32 and float64, found (\w+)",
        lambda m: f"Expected dtype ['fp32', 'fp64'] but got {_short(m)}",
    ),
    Rule(r"tile.* has (\d+) elements$", "arange's range must be a power of 2", source=r"tl\.arange\("),
    Rule(r"^sizes of tiles are powers of two, but dimension (\d+) ", r"Shape element \1 must be a power of 2"),
    Rule(r"^sizes of tiles are powers of two, but a tile ", "Shape element 0 must be a power of 2"),
    Rule(r"^'axis' is (-?\d+), but the tile's dimensions are 0 to", r"invalid axis \1", source=r"expand_dims"),
    Rule(r"^grids have the axes 0, 1 and 2, found (-?\d+)", r"program_id axis must be 0, 1, or 2 but got \1"),
    Rule(
        r"^a descriptor's block has at least 16 bytes in its last dimension, found (\d+ \* \d+ = \d+) bytes",
        r"Descriptor block shape must have at least 16 bytes in the last dimension, but got \1 bytes",
    ),
    Rule(r"^a tile is indexed with ':' and None only", "unsupported tensor index"),
    Rule(
        r"^'max_num_imprecise_acc' is at most the inner size (\d+), found (\d+)",
        r"max_num_imprecise_acc (\2) must be <= K (\1)",
    ),
)
"""The first rule that matches decides."""


def wording_of(error: CompilationError) -> Wording:
    """Triton's words for an error."""
    span = error.spans[0] if error.spans else None
    line = (span.text if isinstance(span, Span) else None) or ""
    for rule in RULES:
        if (match := re.search(rule.pattern, error.message)) is not None and re.search(rule.source, line):
            text = rule.text(match) if callable(rule.text) else match.expand(rule.text) if rule.text else error.message
            return Wording(text, rule.cause, rule.kind, rule.whole, rule.last)
    return Wording(error.message)

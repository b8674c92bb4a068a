"""The lines of a function in its file.

`inspect.getsourcelines` looks for the function's end with Python's tokenizer, which is written in Python. Preparing it takes
4 ms, as long as all else that a process does for one cached kernel. Here the end is guessed by indentation. The parser, which is
written in C, judges the guess:

- *Guess*: the function ends before the first line that is indented no deeper than its ``def``, is not empty, and begins with
  neither ``#`` nor a closing bracket. That is too early if the line is part of a string, is in brackets or follows a backslash.
- *Judgement*: what is cut too early does not parse, since the string, the bracket or the line stays open. What is cut too late,
  behind a form feed, is more than one statement. Only comments behind the function may be others than those `inspect` takes.

Where there is no ``def``, no such file, or the judgement is no, `inspect` is asked.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import warnings
from collections.abc import Sequence
from types import FunctionType
from typing import Any

_DEFINITIONS = ("def ", "async def ")
_INSIDE = ("#", ")", "]", "}")
"""How lines begin that end no block, however far they are indented."""


def lines_of(function: Any) -> tuple[list[str], int]:
    """The source lines of a function with its decorators, as they stand in the file, and the number of the first. Raises:
    `OSError` or `TypeError` where they cannot be read."""
    if isinstance(function, FunctionType) and not hasattr(function, "__wrapped__"):
        code = function.__code__
        linecache.checkcache(code.co_filename)
        rest = linecache.getlines(code.co_filename, function.__globals__)[code.co_firstlineno - 1 :]
        end = _end(rest)
        if end is not None and _parses(rest[:end]):
            return rest[:end], code.co_firstlineno
    return inspect.getsourcelines(function)


def _end(lines: Sequence[str]) -> int | None:
    """How many lines the function has that begins in the first one, by the guess; None where none begins there."""
    if not lines or not lines[0].lstrip().startswith(("@", *_DEFINITIONS)):
        return None
    depth = _depth(lines[0])
    defined = False
    last = 0
    for number, line in enumerate(lines):
        text = line.lstrip()
        if not text:
            continue
        if _depth(line) <= depth:
            if defined and not text.startswith(_INSIDE):
                break
            defined = defined or text.startswith(_DEFINITIONS)
            if defined and text[0] == "#":
                continue
        last = number + 1
    return last if defined else None


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def _parses(lines: Sequence[str]) -> bool:
    """Whether the lines are one statement; those of a nested function are parsed in a block. Python has warned of them before."""
    nested = lines[0][:1].isspace()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            body = ast.parse("".join(["if True:\n", *lines] if nested else lines)).body
    except (SyntaxError, ValueError):
        return False
    block = body[0].body if nested and isinstance(body[0], ast.If) else body
    return len(body) == len(block) == 1

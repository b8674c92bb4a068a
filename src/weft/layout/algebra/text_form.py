"""A layout as one line of text, the form it has as a tensor's encoding in the IR.

    {register: [(0,1),(1,0)], lane: [(0,2)]} -> [dim0: 2, dim1: 4]     bases, then output sizes
    {register: [4], lane: [1,2]} -> [dim0: 8]                          one output dimension: plain numbers
    {lane: [()]} -> []                                                 rank 0: a basis has no coordinates

Reading ignores spaces. Whether what was read is a layout is for `LinearLayout` to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Basis: TypeAlias = tuple[int, ...]

_TOKEN = re.compile(r"\s*([A-Za-z_]\w*|\d+|->|[][{}():,])", re.ASCII)


class _Reader:
    """Tokens of a layout's text, consumed left to right."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def peek(self) -> str:
        """The next token; empty at the end and before what is no token."""
        match = _TOKEN.match(self.text, self.at)
        return match[1] if match else ""

    def take(self, accepts: Callable[[str], bool], expected: str) -> str:
        """Consume the next token, which has to be an ``expected`` one."""
        token = self.peek()
        if not accepts(token):
            rest = self.text[self.at :].lstrip()
            raise ValueError(f"expected {expected} at column {len(self.text) - len(rest)}, found {rest[:20]!r}")
        self.at = self.text.index(token, self.at) + len(token)
        return token

    def expect(self, token: str) -> None:
        self.take(token.__eq__, repr(token))

    def name(self) -> str:
        return self.take(is_name, "a dimension name")

    def number(self) -> int:
        return int(self.take(str.isdigit, "a number"))

    def sequence(self, begin: str, item: Callable[[], T], end: str) -> list[T]:
        """``begin item, item, ... end``."""
        self.expect(begin)
        items: list[T] = []
        while self.peek() != end:
            if items:
                self.expect(",")
            items.append(item())
        self.expect(end)
        return items

    def basis(self) -> tuple[int, ...]:
        return tuple(self.sequence("(", self.number, ")")) if self.peek() == "(" else (self.number(),)

    def input(self) -> tuple[str, list[tuple[int, ...]]]:
        name = self.name()
        self.expect(":")
        return name, self.sequence("[", self.basis, "]")

    def output(self) -> tuple[str, int]:
        name = self.name()
        self.expect(":")
        return name, self.number()


def is_name(text: str) -> bool:
    """Whether a dimension may have this name: an ASCII identifier."""
    return text.isidentifier() and text.isascii()


def _spell_basis(basis: Sequence[int]) -> str:
    return str(basis[0]) if len(basis) == 1 else f"({','.join(map(str, basis))})"


def spell(bases: Mapping[str, Sequence[Sequence[int]]], out_dims: Mapping[str, int]) -> str:
    """The text of these bases and output sizes."""
    inputs = ", ".join(f"{dim}: [{','.join(map(_spell_basis, vectors))}]" for dim, vectors in bases.items())
    outputs = ", ".join(f"{name}: {size}" for name, size in out_dims.items())
    return f"{{{inputs}}} -> [{outputs}]"


def _unique(kind: str, entries: Sequence[tuple[str, T]]) -> dict[str, T]:
    names = [name for name, _ in entries]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{kind} dimension {name} appears twice")
    return dict(entries)


def read(text: str) -> tuple[dict[str, list[Basis]], dict[str, int]]:
    """The bases and output sizes that a text spells; `ValueError` with the column where it cannot be read."""
    reader = _Reader(text)
    inputs = reader.sequence("{", reader.input, "}")
    reader.expect("->")
    outputs = reader.sequence("[", reader.output, "]")
    if rest := text[reader.at :].strip():
        raise ValueError(f"expected nothing after the output dimensions, found {rest[:20]!r}")
    return _unique("input", inputs), _unique("output", outputs)

"""Declarations of variables and registers (PTX ISA 5): ``.shared .align 16 .b8 tile[32][33];``, parameters, initialisers.

A declaration is read into `Variable`s; whose they are, and under which name, is for the caller to say. Registers are read apart:
there are more of them than of anything else, ``%r<2000>`` is two thousand, and all that is said of them is their type.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from weft.emulator.ptx.expressions import constant, integer, is_number, number
from weft.emulator.ptx.lexer import Words, is_name
from weft.emulator.ptx.syntax import Immediate, Symbol, Variable
from weft.emulator.ptx.types import TYPES

SPACES: Final = {f".{space}": space for space in ("reg", "global", "const", "shared", "local", "param")}

OPAQUE: Final = {"texref": 8, "samplerref": 8, "surfref": 8}
"""Types that are handles: their bytes."""

_SCALARS: Final = (
    *(f"{kind}{bits}" for kind in "usb" for bits in (8, 16, 32, 64)),
    *("f16", "f16x2", "f32", "f64", "bf16", "bf16x2", "tf32", "e4m3", "e5m2", "b128", "pred"),
)

TYPE_BYTES: Final[dict[str, int]] = {
    **{name: TYPES[name].bytes for name in _SCALARS},
    **OPAQUE,
}
"""Bytes of an element of each type a variable may have."""

_VECTORS: Final = {".v2": 2, ".v4": 4, ".v8": 8}

_ATTRIBUTES: Final = frozenset({".managed", ".unified"})
"""Attributes that say where the driver puts a variable, not what a program sees of it."""


class _Head:
    """What stands before the names of a declaration."""

    def __init__(self, words: Words, space: str) -> None:
        self.space = space
        self.type = ""
        self.align = 0
        self.vector = 1
        self.pointer = False
        while words.word.startswith("."):
            word = words.word
            words.at += 1
            if word == ".align":
                start = words.at
                align = integer(words)
                if align < 1 or align & align - 1:
                    words.fail(f"an alignment is a power of two, not {align}", start)
                self.align = self.align if self.pointer else align  # a pointer's is of what it points to
            elif word in _VECTORS:
                self.vector = _VECTORS[word]
            elif word == ".attribute":
                attribute(words)
            elif word == ".ptr" and space == "param":
                self.pointer = True
            elif word[1:] in TYPE_BYTES and not self.type:
                self.type = word[1:]
            elif not (self.pointer and word in SPACES):
                words.fail(f"unknown directive '{word}' in a declaration", words.at - 1)
        if not self.type:
            words.unexpected("a type")
        self.bytes = TYPE_BYTES[self.type] * self.vector

    def variable(
        self,
        name: str,
        line: int,
        dimensions: list[int | None],
        initial: tuple[Symbol | Immediate, ...] = (),
        external: bool = False,
    ) -> Variable:
        """A variable of this kind."""
        known = [size for size in dimensions if size is not None]
        count = math.prod(known) if len(known) == len(dimensions) else None
        if count is None and initial:  # the initialiser says how many
            row = math.prod(known)
            count = -(-len(initial) // (row * self.vector)) * row
        return Variable(
            name,
            self.space,
            self.type,
            count,
            self.align or self.bytes,
            self.vector,
            initial,
            external,
            self.pointer,
            array=bool(dimensions),
            line=line,
        )


def attribute(words: Words) -> None:
    """``.attribute(.managed, .unified(1, 2))``, behind its first word."""
    words.take("(")
    while True:
        if words.word not in _ATTRIBUTES:
            words.fail(f"unknown attribute '{words.word}'")
        words.at += 1
        if words.accept("("):
            while not words.accept(")"):
                words.at += 1
        if words.accept(")"):
            return
        words.take(",")


def element_bytes(variable: Variable) -> int:
    """Bytes that ``name[1]`` is behind ``name[0]``: those of the type, also of vectors (so does ptxas)."""
    return TYPE_BYTES[variable.type]


def declaration(words: Words, space: str, external: bool = False) -> Iterator[Variable]:
    """Reads variables, from behind the state space to the semicolon."""
    head = _Head(words, space)
    while True:
        line = words.line()
        name = words.name("a name")
        dimensions = _dimensions(words)
        initial: tuple[Symbol | Immediate, ...] = ()
        if words.accept("="):
            if head.type in OPAQUE:
                _properties(words)
            else:
                initial = _initial(words, [*dimensions, head.vector] if head.vector > 1 else dimensions)
        yield head.variable(name, line, dimensions, initial, external)
        if words.accept(";"):
            return
        words.take(",")


def registers(words: Words) -> Iterator[tuple[str, str, int]]:
    """Reads registers, from behind ``.reg`` to the semicolon: name, type, and elements of its vector."""
    head = _Head(words, "reg")
    while True:
        name = words.name("a name")
        if words.accept("<"):
            count = number(words)
            words.take(">")
            for index in range(count):
                yield f"{name}{index}", head.type, head.vector
        else:
            yield name, head.type, head.vector
        if words.accept(";"):
            return
        words.take(",")


def parameters(words: Words) -> tuple[Variable, ...]:
    """Reads ``(.param .b32 a, .reg .u32 b)``, of a function or a prototype."""
    words.take("(")
    result: list[Variable] = []
    while not words.accept(")"):
        if result:
            words.take(",")
        space = SPACES.get(words.word)
        if space not in ("param", "reg"):
            words.unexpected("'.param'")
        words.at += 1
        head = _Head(words, space)
        line = words.line()
        name = words.name("a parameter's name")
        result.append(head.variable(name, line, _dimensions(words)))
    return tuple(result)


def _dimensions(words: Words) -> list[int | None]:
    """``[4][8]``; None for ``[]``, which may stand first."""
    sizes: list[int | None] = []
    while words.accept("["):
        if words.word == "]" and not sizes:
            sizes.append(None)
        else:
            sizes.append(integer(words))
        words.take("]")
    return sizes


def _initial(words: Words, dimensions: list[int | None]) -> tuple[Symbol | Immediate, ...]:
    """The elements an initialiser gives, in memory's order."""
    if words.word != "{":
        return (_element(words),)
    if not dimensions:
        words.fail("a list of initialisers for a variable that is no array")
    return tuple(_braces(words, dimensions))


def _braces(words: Words, dimensions: list[int | None]) -> list[Symbol | Immediate]:
    start = words.at
    words.take("{")
    row = math.prod(size or 1 for size in dimensions[1:])
    elements: list[Symbol | Immediate] = []
    given = 0
    while not words.accept("}"):
        if given:
            words.take(",")
        given += 1
        if words.word == "{":
            if not dimensions[1:]:
                words.fail("an initialiser has more levels than its variable has dimensions")
            inner = _braces(words, dimensions[1:])
            elements += inner + [Immediate(0)] * (row - len(inner))
        else:
            elements.append(_element(words))
    size = dimensions[0]
    if size is not None and len(elements) > size * row:
        words.fail(f"{len(elements)} initialisers for {size * row} elements", start)
    return elements


def _properties(words: Words) -> None:
    """``{ width = 4, addr_mode_0 = wrap }`` of a texture, sampler or surface: what it is set to at launch decides."""
    words.take("{")
    while True:
        words.name("a property's name")
        words.take("=")
        if is_name(words.word):
            words.at += 1
        else:
            integer(words)
        if words.accept("}"):
            return
        words.take(",")


def _element(words: Words) -> Symbol | Immediate:
    """A constant, or an address: ``x``, ``x+8``, ``generic(x)``, ``generic(x)+8``; a part of one, ``0xFF00(x+8)``."""
    if is_number(words.word) and words.words[words.at + 1] == "(":
        at = words.at
        mask = number(words)
        words.take("(")
        part = _element(words)
        words.take(")")
        if not isinstance(part, Symbol) or not mask:
            words.fail("a mask is not 0, and of an address", at)
        return replace(part, mask=mask)
    if not is_name(words.word) or words.word == "WARP_SZ":
        return constant(words)
    generic = words.word == "generic" and words.words[words.at + 1] == "("
    if generic:
        words.at += 2
    name = words.name("a variable")
    if generic:
        words.take(")")
    offset = 0
    while words.word in ("+", "-"):
        sign = 1 if words.word == "+" else -1
        words.at += 1
        offset += sign * integer(words)
    return Symbol(name, offset, generic)

"""Modules: directives, variables, functions (PTX ISA 4.3.1, 5, 11).

A directive that is not known is an error. Those that say nothing to an emulator are in a table as such, debugging sections among
them; performance directives are kept with their numbers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from weft.emulator.ptx.body import Body, Opcodes, pragma
from weft.emulator.ptx.declarations import SPACES, attribute, declaration, element_bytes, parameters
from weft.emulator.ptx.expressions import integer
from weft.emulator.ptx.lexer import Words
from weft.emulator.ptx.lines import Lines
from weft.emulator.ptx.syntax import Function, Module, Operand, Symbol, Variable

_LINKAGE: Final = frozenset({".visible", ".extern", ".weak", ".common"})

NUMBERS: Final[dict[str, tuple[int, int]]] = {
    ".maxntid": (1, 3),
    ".reqntid": (1, 3),
    ".minnctapersm": (1, 1),
    ".maxnctapersm": (1, 1),
    ".maxnreg": (1, 1),
    ".reqnctapercluster": (1, 3),
    ".maxclusterrank": (1, 1),
    ".explicitcluster": (0, 0),
    ".blocksareclusters": (0, 0),
    ".noreturn": (0, 0),
    ".abi_preserve": (1, 1),
    ".abi_preserve_control": (1, 1),
}
"""Directives of a function's head, and how many numbers each has at least and at most."""


def parse(text: str) -> Module:
    """Reads a PTX module; raises `PTXError` with the line where it is none. NULs at its end, which NVRTC's and the driver's
    buffers have, are no part of it."""
    return _Parser(text.rstrip("\0")).module()


class _Parser:
    def __init__(self, text: str) -> None:
        self.words = Words(text)
        self.lines = Lines(self.words)
        self.version = (0, 0)
        self.target: tuple[str, ...] = ()
        self.address_size = 32
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Function] = {}
        self.aliases: list[tuple[str, str, int]] = []
        self.names: dict[str, Operand] = {}
        self.elements: dict[str, int] = {}
        """Bytes of an element of each variable of the module."""
        self.opcodes: Opcodes = {}

    def module(self) -> Module:
        words = self.words
        if words.word != ".version":
            words.unexpected("'.version'")
        while not words.done:
            self._statement()
        for alias, function, at in self.aliases:
            if function not in self.functions:
                words.fail(f"'{function}' is not declared", at)
            self.functions[alias] = replace(self.functions[function], name=alias)
        return Module(
            self.version,
            self.target,
            self.address_size,
            self.variables,
            self.functions,
            words.text,
            self.lines.files,
        )

    def _statement(self) -> None:
        words = self.words
        word = words.word
        if word == ".version":
            self._version()
        elif word == ".target":
            words.at += 1
            names = [words.name("a target")]
            while words.accept(","):
                names.append(words.name("a target"))
            self.target = tuple(names)
        elif word == ".address_size":
            words.at += 1
            self.address_size = integer(words)
        elif word == ".file":
            self.lines.file(words)
        elif word == ".loc":
            self.lines.location(words)
        elif word == ".section":
            self._section()
        elif word == ".pragma":
            pragma(words)
        elif word == ".alias":
            self._alias()
        elif word == "@":
            self._dwarf()
        else:
            self._definition()

    def _version(self) -> None:
        words = self.words
        words.at += 1
        major, point, minor = words.word.partition(".")
        if not (point and major.isdigit() and minor.isdigit()):
            words.unexpected("a version")
        self.version = (int(major), int(minor))
        words.at += 1

    def _section(self) -> None:
        """DWARF data: skipped."""
        words = self.words
        start = words.at
        words.at += 1
        if not words.word.startswith("."):
            words.name("a section's name")
        while words.word.startswith("."):
            words.at += 1
        words.take("{")
        while not words.accept("}"):
            if words.done:
                words.fail("a section has no end", start)
            words.at += 1

    def _dwarf(self) -> None:
        """``@@DWARF .byte 0x2b, 0x00``: data of a debugger as old versions wrote it, a line each. Skipped."""
        words = self.words
        line = words.line()
        words.take("@")
        words.take("@")
        words.take("DWARF")
        while not words.done and words.line() == line:
            words.at += 1

    def _alias(self) -> None:
        words = self.words
        words.at += 1
        alias = words.name("a function")
        words.take(",")
        at = words.at
        self.aliases.append((alias, words.name("a function"), at))
        words.take(";")

    def _definition(self) -> None:
        """A variable or function, with its linkage before it."""
        words = self.words
        external = False
        while words.word in _LINKAGE:
            external = external or words.word == ".extern"
            words.at += 1
        word = words.word
        if word in (".entry", ".func"):
            words.at += 1
            self._function(entry=word == ".entry")
        elif word in SPACES and word not in (".reg", ".param", ".local"):
            words.at += 1
            for variable in declaration(words, SPACES[word], external):
                self.variables[variable.name] = variable
                self.elements[variable.name] = element_bytes(variable)
                self.names[variable.name] = Symbol(variable.name)
        elif word.startswith("."):
            words.fail(f"unknown directive '{word}'")
        else:
            words.unexpected("a directive")

    def _function(self, entry: bool) -> None:
        words = self.words
        line = words.line()
        directives: dict[str, tuple[int, ...]] = {}
        self._attributes(directives)
        results = parameters(words) if words.word == "(" else ()
        name = words.name("a function's name")
        arguments = parameters(words) if words.word == "(" else ()
        self.lines.enter()
        self._attributes(directives)
        self.names[name] = Symbol(name)
        if words.accept(";"):
            if name not in self.functions:
                self.functions[name] = Function(
                    name, entry, arguments, results, {}, (), (), {}, directives=directives, declared=True, line=line
                )
            return
        if words.word != "{":
            words.unexpected("a function's body")
        body = Body(words, self.lines, self.names, self.elements, (*results, *arguments), self.opcodes)
        body.read()
        self.functions[name] = Function(
            name,
            entry,
            arguments,
            results,
            body.registers,
            tuple(body.variables),
            tuple(body.instructions),
            body.labels,
            body.tables,
            body.prototypes,
            directives,
            line=line,
        )

    def _attributes(self, directives: dict[str, tuple[int, ...]]) -> None:
        """The directives of a function's head."""
        words = self.words
        while words.word.startswith("."):
            word = words.word
            if word == ".pragma":
                pragma(words)
            elif word == ".loc":
                self.lines.location(words)
            elif word == ".attribute":
                words.at += 1
                attribute(words)
            elif word in NUMBERS:
                words.at += 1
                least, most = NUMBERS[word]
                numbers: list[int] = []
                while len(numbers) < least or (len(numbers) < most and words.accept(",")):
                    numbers.append(integer(words))
                directives[word[1:]] = tuple(numbers)
            else:
                words.fail(f"unknown directive '{word}'")

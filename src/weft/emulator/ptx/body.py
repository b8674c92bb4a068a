"""Function bodies: scopes, labels, instructions and their operands (PTX ISA 4.3, 6).

Scopes nest and hide names, labels may stand behind the branch that goes there, and inline assembly declares the same ``p`` and
``LOOP`` in every copy of its braces. Names are resolved in the pass that reads the body. Before it, each pair of braces is
searched once for its labels. The operand of every name is therefore known, and made once, when an instruction uses the name.
Reading an operand is a lookup in one dictionary; closing a scope undoes what it declared.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from typing import Final

from weft.emulator.ptx.declarations import SPACES, declaration, element_bytes, parameters, registers
from weft.emulator.ptx.expressions import constant, integer, is_number
from weft.emulator.ptx.lexer import END, Words, is_label, is_name
from weft.emulator.ptx.lines import Lines
from weft.emulator.ptx.spelling import spelled
from weft.emulator.ptx.syntax import (
    Address,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Minus,
    Not,
    Operand,
    Pair,
    Part,
    Register,
    Sink,
    Symbol,
    Variable,
    Vector,
)

SPECIAL: Final[dict[str, Operand]] = {
    name: Register(name)
    for name in (
        *(
            f"%{name}{axis}"
            for name in (
                *("tid", "ntid", "ctaid", "nctaid"),
                *("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid"),
            )
            for axis in ("", ".x", ".y", ".z", ".w")
        ),
        *("%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%gridid", "%is_explicit_cluster"),
        *("%cluster_ctarank", "%cluster_nctarank"),
        *(f"%lanemask_{which}" for which in ("eq", "le", "lt", "ge", "gt")),
        *("%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"),
        *("%total_smem_size", "%aggr_smem_size", "%dynamic_smem_size", "%current_graph_exec"),
        *(f"%reserved_smem_offset_{which}" for which in ("begin", "end", "cap", "0", "1")),
        *(f"%pm{number}{width}" for number in range(8) for width in ("", "_64")),
        *(f"%envreg{number}" for number in range(32)),
    )
}
"""The special registers (PTX ISA 10)."""

_PARTS: Final = re.compile("[bh][0-9]{1,4}")
"""What names parts of a register: ``b0``, ``h10``, ``b7654``."""

Opcodes = dict[str, tuple[str, tuple[str, ...]]]
"""Dotted names already taken apart."""

_AXES: Final = ("x", "y", "z", "w")
_COLOURS: Final = ("r", "g", "b", "a")
_SINK: Final = Sink()
_BEGINS: Final = frozenset({"+", "-", "!", "~", "(", "WARP_SZ"})
"""Words a constant expression may begin with, beside numbers."""
_OF_ADDRESSES: Final = frozenset({"mov", "cvta"})
"""Opcodes whose operand ``name[2]`` is an address."""
_TABLES: Final = frozenset({".branchtargets", ".calltargets"})


class Body:
    """Reads one function's body; what it has read so far."""

    def __init__(
        self,
        words: Words,
        lines: Lines,
        known: dict[str, Operand],
        elements: dict[str, int],
        signature: tuple[Variable, ...],
        opcodes: Opcodes,
    ) -> None:
        """``known`` are the module's names and ``elements`` its variables' (`element_bytes`). ``signature`` are the function's
        results and parameters: these keep their names, and hide the module's."""
        self.words = words
        self.lines = lines
        self.opcodes = opcodes
        self.names: dict[str, Operand] = {**SPECIAL, **known, "_": _SINK, "WARP_SZ": Immediate(32)}
        self.elements = dict(elements)
        """Bytes of an element of each variable, by its name in the function."""
        self.used: set[str] = set(known) - {variable.name for variable in signature}
        """Names taken, in any scope."""
        self.undo: list[tuple[str, Operand | None]] = []
        """What each name bound in an open scope meant before."""
        self.declared: list[set[str]] = [set()]
        """Names each open scope has declared."""
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self.instructions: list[Instruction] = []
        self.labels: dict[str, int] = {}
        self.tables: dict[str, tuple[str, ...]] = {}
        self.prototypes: dict[str, Function] = {}
        for variable in signature:
            if variable.name != "_":
                self.declare(variable)

    # ---- names ------------------------------------------------------------------------------------------------------

    def unique(self, name: str) -> str:
        """The name, or one like it that is not used in this function."""
        if name in self.used:
            base, number = name, 1
            while (name := f"{base}${number}") in self.used:
                number += 1
        self.used.add(name)
        return name

    def bind(self, name: str, operand: Operand) -> None:
        """Lets a name mean an operand until the scope ends."""
        self.undo.append((name, self.names.get(name)))
        self.names[name] = operand

    def declare(self, variable: Variable) -> str:
        """Enters a variable; returns the name it has in the function."""
        if variable.space == "reg":
            self.declare_register(variable.name, variable.type, variable.vector)
            return variable.name
        self._first(variable.name)
        name = self.unique(variable.name)
        self.bind(variable.name, Symbol(name))
        self.elements[name] = element_bytes(variable)
        return name

    def declare_register(self, written: str, type: str, vector: int = 1) -> None:
        """Enters a register."""
        self._first(written)
        name = self.unique(written)
        if vector == 1:
            self.registers[name] = type
            self.bind(written, Register(name))
            return
        elements = tuple(Register(f"{name}.{axis}") for axis in _AXES[:vector])
        for element, axis, colour in zip(elements, _AXES, _COLOURS, strict=False):
            self.registers[element.name] = type
            self.bind(f"{written}.{axis}", element)
            self.bind(f"{written}.{colour}", element)
        self.bind(written, Vector(elements))

    def _first(self, name: str) -> None:
        """Raises where a name is declared a second time in a scope."""
        declared = self.declared[-1]
        if name in declared:
            self.words.fail(f"'{name}' is declared twice", self.words.at - 1)
        declared.add(name)

    # ---- statements -------------------------------------------------------------------------------------------------

    def read(self) -> None:
        """Reads from the opening brace past the closing one."""
        words = self.words
        scopes = self._labels_of_scopes()
        marks: list[int] = []
        texts = words.words
        while True:
            word = texts[words.at]
            first = word[:1]
            if first == "{":
                marks.append(len(self.undo))
                labels = scopes.get(words.at, ())
                self.declared.append(set(labels))
                for label in labels:
                    self.bind(label, Symbol(self.unique(label)))
                words.at += 1
            elif first == "}":
                words.at += 1
                self._leave(marks.pop())
                if not marks:
                    return
            elif first == ".":
                self._directive(word)
            elif first == ";":
                words.at += 1
            elif first == "@":
                self._instruction(self._guard())
            elif is_label(word):
                self._label(word[:-1].rstrip())
            elif is_name(word):
                self._instruction(None)
            else:
                words.unexpected("an instruction")

    def _leave(self, mark: int) -> None:
        self.declared.pop()
        while len(self.undo) > mark:
            name, before = self.undo.pop()
            if before is None:
                del self.names[name]
            else:
                self.names[name] = before

    def _labels_of_scopes(self) -> dict[int, list[str]]:
        """Which labels stand directly within the braces at an index, for this body's braces."""
        words = self.words
        scopes: dict[int, list[str]] = {}
        opened: list[int] = []
        for at in words.structure[bisect_left(words.structure, words.at) :]:
            word = words.words[at]
            if word == "{":
                opened.append(at)
            elif word == "}":
                opened.pop()
                if not opened:
                    break
            elif len(word) > 1:
                name = word[:-1].rstrip()
                labels = scopes.setdefault(opened[-1], [])
                if name in labels:
                    words.fail(f"label '{name}' is defined twice", at)
                labels.append(name)
            elif word == END:
                words.fail("a function's body has no end")
        return scopes

    def _label(self, name: str) -> None:
        words = self.words
        words.at += 1
        symbol = self.names[name]
        assert isinstance(symbol, Symbol)  # bound when its scope was opened
        following = words.word
        if following in _TABLES:
            words.at += 1
            self.tables[symbol.name] = self._targets()
        elif following == ".callprototype":
            words.at += 1
            self.prototypes[symbol.name] = self._prototype(symbol.name)
        else:
            self.labels[symbol.name] = len(self.instructions)

    def _targets(self) -> tuple[str, ...]:
        words = self.words
        targets: list[str] = []
        while True:
            target = self._named(words.name("a label or a function"), words.at - 1)
            if not isinstance(target, Symbol):
                words.fail("a label or a function is expected", words.at - 1)
            targets.append(target.name)
            if words.accept(";"):
                return tuple(targets)
            words.take(",")

    def _prototype(self, name: str) -> Function:
        words = self.words
        line = words.line()
        results = parameters(words) if words.word == "(" else ()
        words.take("_")
        arguments = parameters(words) if words.word == "(" else ()
        directives: dict[str, tuple[int, ...]] = {}
        while not words.accept(";"):
            if words.accept(".noreturn"):
                directives["noreturn"] = ()
            elif words.word in (".abi_preserve", ".abi_preserve_control"):
                kind = words.word[1:]
                words.at += 1
                directives[kind] = (integer(words),)
            else:
                words.unexpected("';'")
        return Function(
            name, False, arguments, results, {}, (), (), {}, directives=directives, declared=True, line=line
        )

    def _directive(self, word: str) -> None:
        words = self.words
        if word == ".loc":
            self.lines.location(words)
        elif word == ".reg":
            words.at += 1
            for name, type, vector in registers(words):
                self.declare_register(name, type, vector)
        elif (space := SPACES.get(word)) is not None:
            words.at += 1
            for variable in declaration(words, space):
                name = self.declare(variable)
                self.variables.append(variable if name == variable.name else replace(variable, name=name))
        elif word == ".pragma":
            pragma(words)
        else:
            words.fail(f"unknown directive '{word}'")

    # ---- instructions -----------------------------------------------------------------------------------------------

    def _guard(self) -> Guard:
        words = self.words
        words.at += 1
        negated = words.accept("!")
        register = self.names.get(words.word)
        if not isinstance(register, Register):
            words.unexpected("a predicate register")
        words.at += 1
        return Guard(register.name, negated)

    def _instruction(self, guard: Guard | None) -> None:
        words = self.words
        texts, names = words.words, self.names
        start = words.at if guard is None else words.at - 2 - guard.negated
        name = texts[words.at]
        words.at += 1
        while texts[words.at].startswith("."):  # modifiers written apart
            name += texts[words.at]
            words.at += 1
        split = self.opcodes.get(name)
        if split is None:
            opcode, *modifiers = name.split(".")
            split = self.opcodes[name] = (opcode, spelled(opcode, tuple(modifiers)))
        opcode = split[0]
        operands: list[Operand] = []
        if opcode == "call":
            operands += self._call()
        elif texts[words.at] != ";":
            while True:
                operand = names.get(texts[words.at])
                if operand is not None and texts[words.at + 1] in ",;":
                    words.at += 1
                else:
                    operand = self._operand(opcode in _OF_ADDRESSES) if opcode != "vmad" else self._perhaps_negated()
                operands.append(operand)
                if texts[words.at] == ",":
                    words.at += 1
                elif texts[words.at] == ";":
                    break
                else:
                    words.unexpected("',' or ';'")
        text = words.between(start, words.at)
        words.at += 1
        self.instructions.append(
            Instruction(
                opcode, split[1], tuple(operands), guard, words.line(start), self.lines.at(words.starts[start]), text
            )
        )

    def _call(self) -> list[Operand]:
        """``(results), target, (arguments), prototype``: each but the target may be missing."""
        words = self.words
        results = Group(())
        if words.word == "(":
            results = self._group()
            words.take(",")
        operands: list[Operand] = [results, self._operand(), Group(())]
        if words.accept(","):
            if words.word == "(":
                operands[2] = self._group()
                if words.accept(","):
                    operands.append(self._operand())
            else:
                operands.append(self._operand())
        if words.word != ";":
            words.unexpected("';'")
        return operands

    def _group(self) -> Group:
        self.words.take("(")
        return Group(self._operands_until(")"))

    def _operands_until(self, end: str) -> tuple[Operand, ...]:
        words = self.words
        operands: list[Operand] = []
        while not words.accept(end):
            if operands:
                words.take(",")
            operands.append(self._operand())
        return tuple(operands)

    def _perhaps_negated(self) -> Operand:
        """An operand of vmad: ``-%r``, ``-%r.h0`` or whatever else an operand may be."""
        words = self.words
        if words.word == "-" and is_name(words.words[words.at + 1]):
            words.at += 1
            operand = self._name()
            if not isinstance(operand, Register | Part):
                words.fail("only a register can be negated", words.at - 1)
            return Minus(operand)
        return self._operand()

    def _operand(self, address: bool = False) -> Operand:
        """An operand; ``address``: of an instruction for which ``name[2]`` is the address and not what is there."""
        words = self.words
        word = words.word
        if word == "[":
            return self._address()
        if word == "{":
            words.at += 1
            vector = Vector(self._operands_until("}"))
            return Pair(vector, self._name()) if words.accept("|") else vector
        if word == "!" and is_name(words.words[words.at + 1]):
            words.at += 1
            register = self._name()
            if not isinstance(register, Register):
                words.fail("only a predicate can be negated", words.at - 1)
            return Not(register)
        if (not is_name(word) or word == "WARP_SZ") and word != "_":
            if not (is_number(word) or word in _BEGINS):
                words.unexpected("an operand")
            return constant(words)
        operand = self._name()
        if words.accept("|"):
            return Pair(operand, self._name())
        if isinstance(operand, Symbol) and words.word in ("+", "-"):
            return Symbol(operand.name, self._offset())
        if isinstance(operand, Symbol) and words.word == "[" and operand.name in self.elements:
            element = self._element(operand)
            return Symbol(operand.name, element.offset) if address and element.index is None else element
        return operand

    def _element(self, variable: Symbol) -> Address:
        """``name[2]``, ``name[i]``, ``name[i+1]``."""
        words = self.words
        words.take("[")
        index: Register | None = None
        if is_name(words.word) and words.word != "WARP_SZ":
            at = words.at
            found = self._name()
            if not isinstance(found, Register):
                words.fail("the index of an element is a register or a number", at)
            index, number = found, self._offset()
        else:
            number = integer(words)
        words.take("]")
        return Address(variable, number * self.elements[variable.name], index=index)

    def _name(self) -> Operand:
        words = self.words
        name = words.name("a name")
        return self._named(name, words.at - 1)

    def _named(self, name: str, at: int) -> Operand:
        operand = self.names.get(name)
        if operand is None:
            base, _, part = name.rpartition(".")
            register = self.names.get(base)
            if not isinstance(register, Register) or not _PARTS.fullmatch(part):
                self.words.fail(f"'{name}' is not declared", at)
            return Part(register, part)
        return operand

    def _offset(self) -> int:
        """``+4``, ``-4``, ``+-4``, ``+4+8``."""
        words = self.words
        offset = 0
        while words.word in ("+", "-"):
            words.at += words.word == "+"
            offset += integer(words)
        return offset

    def _address(self) -> Address:
        """``[register+4]``, ``[variable]``, ``[16]``, ``[map, {x, y}]``, ``[texture, sampler, {x, y}]``"""
        words = self.words
        words.take("[")
        start = words.at
        base: Operand
        if is_name(words.word) and words.word != "WARP_SZ":
            base = self._name()
            offset = self._offset()
        else:
            base, offset = Immediate(integer(words)), 0
        if not isinstance(base, Register | Symbol | Immediate):
            words.fail("an address is a register, a variable or a number", start)
        coordinates: tuple[Operand, ...] = ()
        sampler: Register | Symbol | None = None
        if words.accept(","):
            if is_name(words.word):
                named = words.at
                found = self._name()
                if not isinstance(found, Register | Symbol):
                    words.fail("a sampler is a register or a variable", named)
                sampler = found
                words.take(",")
            words.take("{")
            coordinates = self._operands_until("}")
        words.take("]")
        return Address(base, offset, coordinates, sampler)


def pragma(words: Words) -> None:
    """``.pragma "nounroll";``: advice to the compiler."""
    words.at += 1
    words.string()
    while words.accept(","):
        words.string()
    words.take(";")

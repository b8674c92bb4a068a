"""What follows from a kernel's text alone, and is the same in all its launches: found once a program.

A launch of few instructions would spend a tenth of its time on finding it again.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from weft.emulator.machine.program import Program
from weft.emulator.machine.special import CLOCKS, CLOCKS_GLOBAL
from weft.emulator.ptx.syntax import Address, Group, Instruction, Register, Symbol, Vector
from weft.emulator.ptx.types import TYPES

_ELSEWHERE: Final = frozenset({"global", "const", "param", "local"})


class Reached:
    """A kernel and the functions that it may call, directly or not."""

    def __init__(self, program: Program, kernel: str) -> None:
        seen: dict[str, None] = {}
        todo = [kernel]
        while todo:
            if (name := todo.pop()) not in seen:
                seen[name] = None
                todo += sorted(program.callees[name])
        self.functions = [program.module.functions[name] for name in seen]
        """The functions that may run."""
        instructions = [i for function in self.functions for i in function.instructions]
        self._instructions = instructions
        self.names = frozenset(name for i in instructions for name in names_in(i.operands))
        """The variables and functions that they mention."""
        self.calls = frozenset(n for n in self.names if n not in program.start and n in program.module.functions)
        """Functions without a body that they call."""
        self.opcodes = frozenset(i.opcode for i in instructions)
        self.registers = frozenset(o.name for i in instructions for o in i.operands if isinstance(o, Register))
        """Operands that are registers, special ones too."""
        starts = [(program.start[f.name], len(f.instructions) + 1) for f in self.functions]
        self.sites = [site for first, count in starts for site in range(first, first + count)]
        """All instructions that may run."""

    @cached_property
    def timed(self) -> bool:
        """Whether clocks are read."""
        return any(_reads_clock(instruction) for instruction in self._instructions)

    @cached_property
    def granule(self) -> int:
        """The smallest access to shared memory that there may be: 1, 2 or 4 bytes."""
        smallest = 4
        for i in self._instructions:
            if i.opcode in ("ld", "st", "atom", "red", "wmma") and _ELSEWHERE.isdisjoint(i.modifiers):
                smallest = min(smallest, *(TYPES[m].bytes for m in i.modifiers if m in TYPES), 4)
        return smallest


def reached(program: Program, kernel: str) -> Reached:
    """What a kernel of the program may reach."""
    found = program.reached.get(kernel)
    if found is None:
        found = program.reached[kernel] = Reached(program, kernel)
    return found


def names_in(operands: tuple[object, ...]) -> set[str]:
    """The names that operands mention."""
    found: set[str] = set()
    for operand in operands:
        match operand:
            case Symbol():
                found.add(operand.name)
            case Address():
                found |= names_in((operand.base, *operand.coordinates, operand.sampler))
            case Vector() | Group():
                found |= names_in(operand.elements)
            case _:
                pass
    return found


def _reads_clock(instruction: Instruction) -> bool:
    """Only mov reads clocks."""
    source = instruction.operands[-1] if instruction.opcode == "mov" else None
    return isinstance(source, Register) and (source.name in CLOCKS or source.name in CLOCKS_GLOBAL)

"""Where a launch puts the module's variables, and what their addresses are."""

from __future__ import annotations

import math
from typing import Final

from weft.emulator.errors import PTXError
from weft.emulator.machine.program import Program
from weft.emulator.machine.reached import reached
from weft.emulator.machine.symbols import FUNCTIONS, Symbols, size_of
from weft.emulator.memory.access_batch import Space
from weft.emulator.memory.memory import WINDOW
from weft.emulator.ptx.syntax import Function, Instruction, Symbol, Variable
from weft.emulator.ptx.types import TYPES

RECURSION: Final = 256
"""How deep a thread may call, where functions call themselves."""


STACK: Final = 1 << 14
"""Bytes of local memory that a thread has for alloca, where the program uses it."""

STACK_OPCODES: Final = frozenset({"alloca", "stacksave", "stackrestore"})


class VariableMap:
    """Addresses of the variables that ``kernel`` and what it calls use. ``symbols`` are the module's variables in global and
    constant memory; ``dynamic_shared`` bytes. Of shared memory ``reserved`` bytes come first, in a program that asks where they
    are."""

    def __init__(self, program: Program, kernel: str, symbols: Symbols, dynamic_shared: int, reserved: int = 0) -> None:
        self.program = program
        self.kernel = program.module.functions[kernel]
        self.reached = reached(program, kernel)
        """What the kernel's text says."""
        self.functions = self.reached.functions
        used = self.reached.names
        module = list(program.module.variables.values())
        self.addresses: dict[tuple[str, str], int] = {}
        """By (function, or "" for a module's, and name): the address within the variable's space."""
        self.spaces: dict[tuple[str, str], Space] = {}
        for name, (space, address) in symbols.addresses.items():
            self._place("", name, space, address)
        self.reserved_shared = reserved if self.reads("%reserved_smem_offset") else 0
        self.static_shared = self.reserved_shared
        shared = [("", v) for v in module if v.space == "shared" and v.name in used]
        shared += [(f.name, v) for f in self.functions for v in f.variables if v.space == "shared"]
        dynamic: list[tuple[str, Variable]] = []
        for owner, v in shared:
            if v.count is None:
                dynamic.append((owner, v))
            else:
                self.static_shared = _up(self.static_shared, v.align)
                self._place(owner, v.name, Space.SHARED, self.static_shared)
                self.static_shared += size_of(v)
        start = _up(self.static_shared, max((v.align for _, v in dynamic), default=1))
        for owner, v in dynamic:
            self._place(owner, v.name, Space.SHARED, start)
        self.shared_bytes = start + dynamic_shared
        self.static_shared -= self.reserved_shared
        self.dynamic_shared = dynamic_shared
        self.local_frame = 0
        for f in self.functions:
            for v in f.variables:
                if v.space == "local":
                    self.local_frame = _up(self.local_frame, v.align)
                    self._place(f.name, v.name, Space.LOCAL, self.local_frame)
                    self.local_frame += size_of(v)
        for v in module:
            if v.space == "local" and v.name in used:
                self.local_frame = _up(self.local_frame, v.align)
                self._place("", v.name, Space.LOCAL, self.local_frame)
                self.local_frame += size_of(v)
        self.local_frame = _up(self.local_frame, 16)
        self.recursive = bool(program.recursive & {f.name for f in self.functions})
        self.local_bytes = self.local_frame * (RECURSION if self.recursive else 1)
        self.stack_start = self.local_bytes
        """Where in local memory alloca's begins, up to ``local_bytes``."""
        if not STACK_OPCODES.isdisjoint(self.reached.opcodes):
            self.local_bytes += STACK
        self.parameter_bytes = 0
        for v in self.kernel.parameters:
            self.parameter_bytes = _up(
                self.parameter_bytes, max(v.align, TYPES[v.type].bytes if v.type in TYPES else 1)
            )
            self._place(kernel, v.name, Space.PARAM, self.parameter_bytes)
            self.parameter_bytes += size_of(v)

    def reads(self, special: str) -> bool:
        """Whether the functions that may run read a special register whose name begins so."""
        return any(name.startswith(special) for name in self.reached.registers)

    def space(self, function: Function, name: str) -> Space | None:
        """The state space of a variable that a function sees under a name; None if it sees none."""
        return self.spaces.get((function.name, name)) or self.spaces.get(("", name))

    def window(self, function: Function, name: str) -> int:
        """What to add to a variable's address within its space for a generic one."""
        space = self.space(function, name)
        return 0 if space is None or space is Space.GLOBAL else WINDOW[space]

    def address(self, function: Function, symbol: Symbol, instruction: Instruction) -> int:
        """The address, within its space, of what a function sees under a name; a function's is a number of its own."""
        for owner in (function.name, ""):
            if (found := self.addresses.get((owner, symbol.name))) is not None:
                return found + symbol.offset
        if symbol.name in self.program.start:
            return FUNCTIONS + 16 * self.program.start[symbol.name]
        message = f"'{symbol.name}' is neither a variable nor a function that '{function.name}' can use"
        raise PTXError(message, instruction.line, instruction.text)

    def is_dynamic(self, function: Function, name: str) -> bool:
        """Whether a variable has an address that depends on how deep calls are: a recursive program's local variables."""
        return self.recursive and self.spaces.get((function.name, name)) is Space.LOCAL

    def _place(self, owner: str, name: str, space: Space, address: int) -> None:
        self.addresses[owner, name] = address
        self.spaces[owner, name] = space


def _up(value: int, multiple: int) -> int:
    return math.ceil(value / max(multiple, 1)) * max(multiple, 1)

"""Which shared variable an access is of: the one that its address was computed from.

All shared variables of a block lie in one window, side by side. An index beyond the end of one reaches the next, and a check of
the window sees nothing. Which variable the program means follows from where its address comes from:

    mov.u32 %r1, tile;  mad.lo.u32 %r2, %tid, 4, %r1;  st.shared.u32 [%r2], %r3        %r2 is in tile

Each register has the set of the variables that flow into it, over all instructions of the function that write it. An access whose
register has one of them is of that variable. With several (a choice of two buffers) nothing is known. Nor is it where addresses
are combined in ways that leave none (`_KEEP` says which do). Numbers from memory and parameters count as indices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.emulator.machine.variable_map import VariableMap, size_of
from weft.emulator.memory.access_batch import Space
from weft.emulator.ptx.syntax import Address, Function, Group, Instruction, Operand, Pair, Register, Symbol, Vector

_KEEP: Final[dict[str, tuple[int, ...]]] = {
    "mov": (1,), "cvta": (1,), "cvt": (1,), "add": (1, 2), "addc": (1, 2), "sub": (1,), "subc": (1,), "mad": (3,), "or": (1, 2),
    "and": (1, 2), "xor": (1, 2), "lop3": (1, 2, 3), "selp": (1, 2), "min": (1, 2), "max": (1, 2), "shfl": (1,), "mapa": (1,),
}  # fmt: skip
"""Instructions that give an address in the variable of these operands; others that are given an address leave none."""

_FORGET: Final = frozenset({"ld", "ldu", "atom", "call", "ldmatrix", "cp", "mbarrier", "setp", "isspacep", "wmma"})
"""Instructions whose results are no addresses computed from their operands."""

_ACCESSES: Final = frozenset({"ld", "ldu", "st", "atom", "red", "ldmatrix", "stmatrix"})
"""Instructions of one access to memory."""

Variables = frozenset[str]
_NONE: Final[Variables] = frozenset()
_ANY: Final[Variables] = frozenset({"", "?"})
"""Two variables that there are not: nothing is known."""


@dataclass(frozen=True)
class SharedVariable:
    """A shared variable: the bytes from ``start`` to ``end`` of the block's shared memory."""

    name: str
    start: int
    end: int

    def describe(self, address: int) -> str:
        """Words for an address outside."""
        size = self.end - self.start
        if address < self.start:
            return f"{self.start - address} bytes before '{self.name}' ({size} bytes)"
        if address < self.end:
            return f"byte {address - self.start} of '{self.name}' ({size} bytes)"
        return f"{address - self.end} bytes past the end of '{self.name}' ({size} bytes)"


def shared_variables(variable_map: VariableMap) -> dict[int, SharedVariable]:
    """For each instruction whose one access is of a known shared variable: which."""
    shared = [key for key, space in variable_map.spaces.items() if space is Space.SHARED]
    if len(shared) < 2:
        return {}
    found: dict[int, SharedVariable] = {}
    program = variable_map.program
    for function in variable_map.functions:
        bounds = {name: _bounds(variable_map, owner, name) for owner, name in shared if owner in ("", function.name)}
        names = frozenset(bounds)
        key = function.name, names
        if key not in program.accesses:
            program.accesses[key] = _accesses(function, names) if names else {}
        first = program.start[function.name]
        for place, name in program.accesses[key].items():
            if (variable := bounds[name]) is not None:
                found[first + place] = variable
    return found


def _accesses(function: Function, shared: Variables) -> dict[int, str]:
    """The shared variable that each access of a function is of, as far as it is known; by the instruction's place."""
    origins = _origins(function, shared)
    found: dict[int, str] = {}
    for place, instruction in enumerate(function.instructions):
        if instruction.opcode in _ACCESSES:
            variables = _of_access(instruction, origins, shared)
            if len(variables) == 1:
                (found[place],) = variables
    return found


def _bounds(variable_map: VariableMap, owner: str, name: str) -> SharedVariable | None:
    """Where a variable is; dynamic shared memory reaches to the end of the window."""
    module = variable_map.program.module
    declared = module.variables.get(name) if not owner else None
    if owner:
        declared = next((v for v in module.functions[owner].variables if v.name == name), None)
    if declared is None:
        return None
    start = variable_map.addresses[owner, name]
    end = variable_map.shared_bytes if declared.count is None else start + size_of(declared)
    return SharedVariable(name, start, end)


def _of_access(instruction: Instruction, origins: dict[str, Variables], shared: Variables) -> Variables:
    """The variables that an access may be of."""
    places = [operand for operand in instruction.operands if isinstance(operand, Address)]
    return _variables(places[0].base, origins, shared) if len(places) == 1 else _ANY


def _origins(function: Function, shared: Variables) -> dict[str, Variables]:
    """By register: the variables that flow into it."""
    origins: dict[str, Variables] = {}
    changed = True
    while changed:
        changed = False
        for instruction in function.instructions:
            flows = _flows(instruction, origins, shared)
            if not flows:
                continue
            for name in _registers(instruction.operands[0]):
                old = origins.get(name, _NONE)
                if not flows <= old:
                    origins[name] = old | flows
                    changed = True
    return origins


def _flows(instruction: Instruction, origins: dict[str, Variables], shared: Variables) -> Variables:
    """The variables that flow into an instruction's result."""
    if instruction.opcode in _FORGET or not instruction.operands:
        return _NONE
    given = [_variables(operand, origins, shared) for operand in instruction.operands[1:]]
    kept = _KEEP.get(instruction.opcode, ())
    if any(variables and place not in kept for place, variables in enumerate(given, 1)):
        return _ANY
    return _NONE.union(*given)


def _variables(operand: Operand, origins: dict[str, Variables], shared: Variables) -> Variables:
    if isinstance(operand, Symbol):
        return frozenset({operand.name}) if operand.name in shared else _NONE
    return _NONE.union(*(origins.get(name, _NONE) for name in _registers(operand)))


def _registers(operand: Operand) -> Iterator[str]:
    match operand:
        case Register():
            yield operand.name
        case Vector() | Group():
            for element in operand.elements:
                yield from _registers(element)
        case Pair():
            yield from _registers(operand.first)
        case _:
            pass

"""A launch's instructions as rows of the native interpreter, as far as they have handlers.

An operand that is not what its form says (a register of another width, an address, a discarded result) leaves the instruction to
its binder, and so do errors: binders raise them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.machine.active import WARP
from weft.emulator.machine.binding import constant
from weft.emulator.memory.access_batch import Space
from weft.emulator.memory.memory import WINDOW
from weft.emulator.native.arrays import address_of
from weft.emulator.native.forms import FORMS, WIDER, Form
from weft.emulator.native.handlers import NUMBERS
from weft.emulator.native.running import ROW_WORDS
from weft.emulator.ptx.syntax import Address, Function, Immediate, Instruction, Operand, Register, Sink, Symbol, Vector
from weft.emulator.ptx.types import TYPES, Type

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Execution
    from weft.emulator.machine.variable_map import VariableMap

_MASK64: Final = (1 << 64) - 1
_FREE: Final = [0, 0, 0]
"""No guard: the last words of a row."""

_CONVERTED: Final = {Space.GLOBAL: 0, Space.SHARED: WINDOW[Space.SHARED], Space.LOCAL: WINDOW[Space.LOCAL]}
_SPACES: Final = {"global": Space.GLOBAL, "shared": Space.SHARED, "local": Space.LOCAL}
_MOV64: Final = NUMBERS["mov.64"]
_ADD64: Final = NUMBERS["add.64"]


class Rows:
    """The rows of a launch, in the order of the program."""

    def __init__(self, execution: Execution, variable_map: VariableMap, handlers: NDArray[np.int64]) -> None:
        """``handlers`` are the addresses of the interpreter's handlers."""
        self.execution = execution
        self.variable_map = variable_map
        self._handlers: list[int] = handlers.tolist()
        self._words: list[int] = []
        self._places: dict[tuple[str, str], tuple[int, int]] = {}
        """By function and register: where it begins, and its bits."""
        self._constants: dict[bytes, int] = {}
        self._held: list[NDArray[Any]] = []
        self.count = 0
        self.ranges: dict[int, tuple[int, int]] = {}
        """The rows of each instruction that has any: the first, and the one behind the last."""

    def finish(self) -> NDArray[np.int64]:
        """All rows, (rows, words)."""
        return np.array(self._words, np.int64).reshape(-1, ROW_WORDS)

    def add(self, site: int, instruction: Instruction, function: Function) -> bool:
        """Enters an instruction, if it has a handler for operands such as these; else there are no rows of it."""
        rows = self._rows(instruction, function)
        if rows is None:
            return False
        guard = _FREE
        if instruction.guard is not None:
            place = self.place(function, instruction.guard.register, 1)
            if place is None:
                return False
            guard = [place, int(instruction.guard.negated), 0]
        self.ranges[site] = self.count, self.count + len(rows)
        self.count += len(rows)
        for row in rows:
            words = row[:8]
            words += guard
            words.append(row[8] if len(row) > 8 else 0)
            self._words += words
        return True

    def place(self, function: Function, name: str, bits: int) -> int | None:
        """Where a declared register of so many bits begins; None if it is not declared so."""
        found = self._places.get((function.name, name))
        if found is None:
            declared = function.registers.get(name)
            if declared is None:
                return None
            array = self.execution.register(function.name, name, declared)
            found = self._places[function.name, name] = address_of(array), TYPES[declared].bits
        return found[0] if found[1] == bits else None

    # ---- instructions -----------------------------------------------------------------------------------------------

    def _rows(self, instruction: Instruction, function: Function) -> list[list[int]] | None:
        operands = instruction.operands
        opcode = instruction.opcode
        if opcode == "cvta":
            return self._cvta(instruction, function)
        if opcode == "ld":
            return self._parameter(instruction, function)
        form = FORMS.get(instruction.name)
        if form is None:
            return self._wider(instruction, function) if opcode == "cvt" else None
        if opcode == "mov" and len(operands) == 2:
            if isinstance(operands[1], Vector):
                return self._pack(instruction, operands[1].elements, function)
            if isinstance(operands[0], Vector):
                return self._unpack(instruction, operands[0].elements, function)
        row = self._row(form, operands, function)
        if row is None and opcode == "cvt":
            return self._wider(instruction, function)
        return None if row is None else [row]

    def _wider(self, instruction: Instruction, function: Function) -> list[list[int]] | None:
        """A conversion from the low part of a wider register."""
        if len(instruction.operands) != 2 or not isinstance(source := instruction.operands[1], Register):
            return None
        declared = function.registers.get(source.name)
        if declared is None or (handler := WIDER.get((instruction.name, TYPES[declared].bits))) is None:
            return None
        form = Form(handler, (instruction.modifiers[0], f"b{TYPES[declared].bits}"))
        row = self._row(form, instruction.operands, function)
        return None if row is None else [row]

    def _row(self, form: Form, operands: tuple[Operand, ...], function: Function) -> list[int] | None:
        kinds = form.operands
        if len(operands) != len(kinds) + form.immediate:
            return None
        result = operands[0]
        if not isinstance(result, Register):
            return None
        place = self.place(function, result.name, TYPES[kinds[0]].bits)
        if place is None:
            return None
        row = [self._handlers[form.handler], place]
        for operand, kind in zip(operands[1:], kinds[1:], strict=False):
            if not self._operand(row, operand, TYPES[kind], function):
                return None
        row += [0] * (8 - len(row))
        if form.immediate:
            last = operands[-1]
            if not isinstance(last, Immediate) or not isinstance(last.value, int) or not 0 <= last.value <= 255:
                return None
            row.append(last.value)
        return row

    def _operand(self, row: list[int], operand: Operand, kind: Type, function: Function) -> bool:
        """Adds the words of an operand; whether there are any."""
        if isinstance(operand, Register):
            place = self.place(function, operand.name, kind.bits)
            if place is not None:
                row += (place, 32 * kind.bytes)
                return True
            if operand.name in function.registers:
                return False
            values = self.execution.special.values.get(operand.name)
            if values is None or values.dtype.itemsize * 8 != kind.bits:
                return False
            if values.ndim:
                row += (address_of(np.asarray(values)), 32 * kind.bytes)
                return True
            self._constant(row, np.asarray(values))
            return True
        if isinstance(operand, Immediate):
            if kind.bits == 16 and kind.kind in "fx":
                return False  # an integer is the number's bits there
            self._constant(row, constant(operand, kind))
            return True
        if isinstance(operand, Symbol) and kind.kind != "pred":
            return self._symbol(row, operand, kind, function)
        return False

    def _symbol(self, row: list[int], symbol: Symbol, kind: Type, function: Function) -> bool:
        known = self.variable_map.addresses
        owner = next((name for name in (function.name, "") if (name, symbol.name) in known), None)
        if owner is None or self.variable_map.is_dynamic(function, symbol.name):
            return False
        address = (known[owner, symbol.name] + symbol.offset) & _MASK64
        clusters = self.execution.memory.clusters
        if clusters is not None and self.variable_map.spaces[owner, symbol.name] is Space.SHARED:
            array = (clusters.base + np.uint64(address)).astype(f"u{kind.bytes}")
            self._held.append(array)
            row += (address_of(array), 32 * kind.bytes)
            return True
        self._constant(row, np.array(address, np.uint64).astype(f"u{kind.bytes}"))
        return True

    def _constant(self, row: list[int], value: NDArray[Any]) -> None:
        """The words of an operand that is the same for all lanes."""
        data = value.tobytes()
        place = self._constants.get(data)
        if place is None:
            array = np.full(WARP, value)
            self._held.append(array)
            place = self._constants[data] = address_of(array)
        row += (place, 0)

    def _cvta(self, instruction: Instruction, function: Function) -> list[list[int]] | None:
        """An addition of where the space's window begins."""
        *head, kind = instruction.modifiers
        to = head[:1] == ["to"]
        if kind != "u64" or len(head) != 1 + to or len(instruction.operands) != 2 or head[-1] not in _SPACES:
            return None
        offset = _CONVERTED[_SPACES[head[-1]]]
        row = self._row(Form(_ADD64 if offset else _MOV64, ("u64", "u64")), instruction.operands, function)
        if row is None:
            return None
        if offset:
            words: list[int] = []
            self._constant(words, np.array((-offset if to else offset) & _MASK64, np.uint64))
            row[4:6] = words
        return [row]

    def _parameter(self, instruction: Instruction, function: Function) -> list[list[int]] | None:
        """A kernel's parameter is a constant of the launch."""
        modifiers, operands = instruction.modifiers, instruction.operands
        if len(modifiers) != 2 or modifiers[0] != "param" or len(operands) != 2 or not function.entry:
            return None
        address, result, kind = operands[1], operands[0], TYPES.get(modifiers[1])
        if kind is None or kind.bits not in (16, 32, 64) or not isinstance(result, Register):
            return None
        if not isinstance(address, Address) or not isinstance(address.base, Symbol):
            return None
        offset = address.base.offset + address.offset
        variable = next((v for v in function.parameters if v.name == address.base.name), None)
        start = self.variable_map.addresses.get((function.name, address.base.name))
        place = self.place(function, result.name, kind.bits)
        if variable is None or start is None or place is None or variable.count is None:
            return None
        size = TYPES[variable.type].bytes * variable.vector * variable.count if variable.type in TYPES else 0
        if not 0 <= offset <= size - kind.bytes or (start + offset) % kind.bytes:
            return None
        data = self.execution.memory.heaps[Space.PARAM].bytes[start + offset : start + offset + kind.bytes]
        row = [self._handlers[NUMBERS[f"mov.{kind.bits}"]], place]
        self._constant(row, data.view(f"u{kind.bytes}").reshape(()))
        return [row + [0] * 4]

    def _pack(self, instruction: Instruction, parts: tuple[Operand, ...], function: Function) -> list[list[int]] | None:
        bits = TYPES[instruction.modifiers[0]].bits
        if len(parts) != 2 or bits not in (32, 64):
            return None
        form = Form(NUMBERS[f"pack.{bits}"], (f"b{bits}", f"b{bits // 2}", f"b{bits // 2}"))
        row = self._row(form, (instruction.operands[0], *parts), function)
        return None if row is None else [row]

    def _unpack(
        self, instruction: Instruction, parts: tuple[Operand, ...], function: Function
    ) -> list[list[int]] | None:
        bits = TYPES[instruction.modifiers[0]].bits
        source = instruction.operands[1]
        if len(parts) != 2 or bits not in (32, 64) or all(isinstance(part, Sink) for part in parts):
            return None
        rows: list[list[int]] = []
        for name, part in zip(("low", "high"), parts, strict=True):
            if isinstance(part, Sink):
                continue
            row = self._row(Form(NUMBERS[f"{name}.{bits}"], (f"b{bits // 2}", f"b{bits}")), (part, source), function)
            if row is None:
                return None
            rows.append(row)
        return rows

"""What a binder sees of an instruction: its operands as arrays.

A register is one array for the whole launch, so an operand is a view of it made once; an immediate is a NumPy scalar of the
instruction's type. Views are of the register's own memory: a step reads what is there when it runs. PTX lets ld, st and cvt name
registers wider than their type (ISA 9.4.1): a view then is of the low bytes, every other element of the narrower type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import PTXError
from weft.emulator.machine.active import Active, Mask
from weft.emulator.machine.special import CLOCKS, CLOCKS_GLOBAL
from weft.emulator.memory.access_batch import Space
from weft.emulator.ops.registry import masked
from weft.emulator.ptx.syntax import (
    Address,
    Function,
    Immediate,
    Not,
    Operand,
    Register,
    Sink,
    Symbol,
    Vector,
)
from weft.emulator.ptx.types import STORAGE, TYPES, Type

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Execution
    from weft.emulator.machine.variable_map import VariableMap

Values: TypeAlias = NDArray[Any]
Addresses: TypeAlias = Callable[[], NDArray[np.uint64]]


class Binding:
    """One instruction, about to be bound."""

    def __init__(self, execution: Execution, variable_map: VariableMap, site: int) -> None:
        self.execution = execution
        self.variable_map = variable_map
        self.site = site
        """The instruction's index in the program."""
        self.next = site + 1
        self.instruction = execution.program.instructions[site]
        self.function: Function = execution.program.function_of[site]
        self.modifiers: Final = self.instruction.modifiers
        self.operands: Final = self.instruction.operands
        self.types: Final[tuple[Type, ...]] = tuple(TYPES[m] for m in self.modifiers if m in TYPES)
        """The modifiers that are types, in order."""

    # ---- refusals -----------------------------------------------------------------------------------------------------

    def unknown(self, what: str) -> NoReturn:
        """Refuses the instruction: ``what`` the emulator does not know."""
        raise PTXError(f"the emulator does not know {what}", self.instruction.line, self.instruction.text)

    def wrong(self, what: str) -> NoReturn:
        """Refuses the instruction: ``what`` is wrong with it."""
        raise PTXError(what, self.instruction.line, self.instruction.text)

    def require(self, condition: object, what: str) -> None:
        """Refuses the instruction unless a condition holds."""
        if not condition:
            self.wrong(what)

    def only(self, *allowed: str) -> None:
        """Refuses modifiers that are neither types nor in the list."""
        for modifier in self.modifiers:
            if modifier not in TYPES and modifier not in allowed:
                self.unknown(f"'.{modifier}' of {self.instruction.opcode}")

    def count(self, *allowed: int) -> int:
        """The number of operands, which must be one of these."""
        if len(self.operands) not in allowed:
            expected = " or ".join(map(str, allowed))
            self.wrong(f"{self.instruction.opcode} has {len(self.operands)} operands, expected {expected}")
        return len(self.operands)

    # ---- types --------------------------------------------------------------------------------------------------------

    def type(self, which: int = -1) -> Type:
        """One of the types among the modifiers, the last unless said otherwise."""
        if not self.types:
            self.wrong(f"{self.instruction.name} has no type")
        return self.types[which]

    def operand(self, operand: int | Operand) -> Operand:
        """An operand, by its place or itself."""
        if isinstance(operand, int):
            if operand >= len(self.operands):
                self.wrong(f"{self.instruction.opcode} has {len(self.operands)} operands, expected more")
            return self.operands[operand]
        return operand

    def register_type(self, operand: int | Operand) -> Type | None:
        """The declared type of a register operand; None for anything else."""
        found = self.operand(operand)
        name = found.name if isinstance(found, Register) else found.register.name if isinstance(found, Not) else None
        return TYPES.get(self.function.registers.get(name, "")) if name else None

    # ---- values -------------------------------------------------------------------------------------------------------

    def read(self, operand: int | Operand, kind: Type) -> Values:
        """The operand as values of a type: a (T,) view of a register ((T, 2) of 128 bits), or a 0-d array."""
        found = self.operand(operand)
        match found:
            case Register():
                return self._view(found, kind)
            case Immediate():
                return constant(found, kind)
            case Symbol():
                return self._symbol(found, kind)
            case Address(index=Register()):
                return self.unknown(_INDEXED)
            case _:
                return self.wrong(f"an operand of {self.instruction.opcode} is no value")

    def reader(self, operand: int | Operand, kind: Type) -> Callable[[], Values]:
        """As `read`, for operands whose value has to be looked up each time: clocks, and what else `read` refuses."""
        found = self.operand(operand)
        if isinstance(found, Register) and (found.name in CLOCKS or found.name in CLOCKS_GLOBAL):
            special, name = self.execution.special, found.name

            def clock() -> Values:
                values = special.clock(name)
                assert values is not None
                return values

            return clock
        if isinstance(found, Symbol) and self._is_dynamic(found):
            start = self.variable_map.address(self.function, found, self.instruction)
            stride = np.uint64(self.variable_map.local_frame)
            depth = self.execution.depth
            return lambda: (np.uint64(start) + depth.astype(np.uint64) * stride).astype(kind.numpy)
        values = self.read(found, kind)
        return lambda: values

    def write(self, operand: int | Operand, kind: Type) -> Values:
        """Where results of a type go: a (T,) view of the register, or for ``_`` an array that is never read."""
        found = self.operand(operand)
        if isinstance(found, Sink):
            shape = (self.execution.threads, 2) if kind.bits == 128 else (self.execution.threads,)
            return np.zeros(shape, STORAGE[kind.bits]).view(kind.numpy)
        if not isinstance(found, Register) or found.name not in self.function.registers:
            self.wrong(f"the result of {self.instruction.opcode} must be a register")
        return self._view(found, kind)

    def extend(self, operand: int | Operand, kind: Type) -> Callable[[Values, Active], None]:
        """How results of a type get into a register that may be wider: sign-extended, zero-extended, as ld and cvt do."""
        found = self.operand(operand)
        declared = self.register_type(found)
        if declared is None or declared.bits <= kind.bits or declared.bits == 128:
            target = self.write(found, kind)
            return lambda values, active: masked(target, values.view(target.dtype), active)
        wide = TYPES[("s" if kind.signed else "u") + str(declared.bits)]
        target = self.write(found, wide)
        storage = kind.numpy if kind.kind in "us" else STORAGE[kind.bits]

        def put(values: Values, active: Active) -> None:
            masked(target, values.view(storage).astype(wide.numpy), active)

        return put

    def predicate(self, operand: int | Operand) -> Callable[[], Mask]:
        """A predicate operand, ``p`` or ``!p``, or a constant one: its (T,) value when asked."""
        found = self.operand(operand)
        if isinstance(found, Immediate):
            value = np.full(self.execution.threads, bool(found.value))
            return lambda: value
        negated = isinstance(found, Not)
        register = found.register if negated else found
        if not isinstance(register, Register):
            self.wrong(f"an operand of {self.instruction.opcode} is no predicate")
        values = self._view(register, TYPES["pred"])
        if values.ndim == 0:
            values = np.full(self.execution.threads, bool(values))
        return (lambda: ~values) if negated else (lambda: values)

    def elements(self, operand: int | Operand) -> tuple[Operand, ...]:
        """The elements of a vector operand; an operand that is none alone."""
        found = self.operand(operand)
        return found.elements if isinstance(found, Vector) else (found,)

    def constant(self, operand: int | Operand) -> int:
        """An operand that must be an integer constant."""
        found = self.operand(operand)
        if isinstance(found, Immediate) and isinstance(found.value, int):
            return found.value
        return self.wrong(f"an operand of {self.instruction.opcode} must be an integer constant")

    # ---- addresses ----------------------------------------------------------------------------------------------------

    def address(self, operand: int | Operand, space: Space | None = None) -> Addresses:
        """``[base + offset]`` as (T,) addresses in ``space``; generic addresses (a window's base included) if None."""
        found = self.operand(operand)
        if not isinstance(found, Address):
            self.wrong(f"an operand of {self.instruction.opcode} must be an address in brackets")
        if found.index is not None:
            self.unknown(_INDEXED)
        threads = self.execution.threads
        base = found.base
        if isinstance(base, Immediate):
            fixed = np.full(threads, np.uint64((int(base.value) + found.offset) & _MASK64))
            if space is Space.SHARED:
                fixed = self._ranked(fixed)
            return lambda: fixed
        if isinstance(base, Symbol):
            symbol = Symbol(base.name, base.offset + found.offset)
            start = self.variable_map.address(self.function, symbol, self.instruction)
            if space is None:
                start += self.variable_map.window(self.function, base.name)
            if not self._is_dynamic(base):
                fixed = np.full(threads, np.uint64(start & _MASK64))
                if self.variable_map.space(self.function, base.name) is Space.SHARED:
                    fixed = self._ranked(fixed)
                return lambda: fixed
            stride, depth = np.uint64(self.variable_map.local_frame), self.execution.depth
            return lambda: np.uint64(start) + depth.astype(np.uint64) * stride
        declared = self.register_type(base)
        bits = declared.bits if declared is not None else 64
        if bits not in (32, 64):
            self.wrong(f"the address register {base.name} has {bits} bits, expected 32 or 64")
        register = self._view(base, TYPES[f"u{bits}"])
        if register.ndim == 0:
            register = np.full(threads, register)
        if bits == 64:
            step = np.uint64(found.offset & _MASK64)
            return (lambda: register + step) if found.offset else (lambda: register.copy())
        narrow = np.uint32(found.offset & 0xFFFF_FFFF)
        return lambda: (register + narrow).astype(np.uint64)

    # ---- inside -------------------------------------------------------------------------------------------------------

    def _view(self, register: Register, kind: Type) -> Values:
        name = register.name
        declared = self.function.registers.get(name)
        if declared is None:
            return self._special(name, kind)
        return self._view_as(register, TYPES[declared], kind)

    def _view_as(self, register: Register, declared: Type, kind: Type) -> Values:
        array = self.execution.register(self.function.name, register.name, declared.name)
        if (kind.kind == "pred") != (declared.kind == "pred"):
            self.wrong(f"register {register.name} is .{declared.name}, expected .{kind.name}")
        if declared.bits == kind.bits:
            return array.view(kind.numpy)
        if declared.bits < kind.bits:
            self.wrong(
                f"register {register.name} has {declared.bits} bits, expected at least {kind.bits} for .{kind.name}"
            )
        if declared.bits == 128:
            array = np.ascontiguousarray(array).reshape(-1)
        return array.view(kind.numpy)[:: declared.bits // kind.bits]

    def _special(self, name: str, kind: Type) -> Values:
        if name in CLOCKS or name in CLOCKS_GLOBAL:
            self.unknown(f"a clock as an operand of {self.instruction.opcode}; only mov reads clocks")
        value = self.execution.special.values.get(name)
        if value is None:
            if name.startswith("%") and any(known.partition(".")[0] == name for known in self.execution.special.values):
                self.wrong(f"{name} has components .x, .y and .z")
            self.wrong(f"there is no register '{name}' in function '{self.function.name}'")
        array = np.asarray(value)
        return array.view(kind.numpy) if array.dtype.itemsize * 8 == kind.bits else array.astype(kind.numpy)

    def _symbol(self, symbol: Symbol, kind: Type) -> Values:
        if self._is_dynamic(symbol):
            self.unknown(
                f"the address of a recursive function's local variable as an operand of {self.instruction.opcode}"
            )
        address = np.array(self.variable_map.address(self.function, symbol, self.instruction) & _MASK64, np.uint64)
        if self.variable_map.space(self.function, symbol.name) is Space.SHARED:
            address = self._ranked(address)
        return address.astype(STORAGE[kind.bits]).view(kind.numpy)

    def _ranked(self, addresses: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Addresses of bytes of shared memory, as those of each thread's own block of a cluster."""
        clusters = self.execution.memory.clusters
        return addresses if clusters is None else addresses + clusters.base

    def _is_dynamic(self, symbol: Symbol) -> bool:
        return self.variable_map.is_dynamic(self.function, symbol.name)


_INDEXED: Final = "elements by an index in a register (name[i]): compute the address, and load from [address]"

_MASK64: Final = (1 << 64) - 1


def constant(immediate: Immediate, kind: Type) -> Values:
    """An immediate as a 0-d array of a type: integers modulo its width, floats rounded to nearest; bits as they are."""
    value, bits = immediate.value, immediate.bits
    if kind.kind == "pred":
        return np.array(bool(value))
    if bits:  # written by its bits
        pattern = np.array(value, f"u{bits // 8}")
        if kind.bits == bits:
            return pattern.view(kind.numpy) if kind.kind != "pred" else pattern
        number = pattern.view(f"f{bits // 8}")
        if kind.kind == "f":
            return number.astype(kind.numpy)
        return np.array(int(pattern) & ((1 << kind.bits) - 1), STORAGE[kind.bits]).view(kind.numpy)
    if kind.kind == "f":
        with np.errstate(all="ignore"):
            return np.array(value).astype(kind.numpy)
    if isinstance(value, float):
        if kind.name in ("bf16", "tf32") or kind.bits in (32, 64):
            number = np.array(value, np.float64 if kind.bits == 64 else np.float32)
            pattern = number.view(f"u{number.dtype.itemsize}")
            return (pattern >> 16).astype(np.uint16) if kind.bits == 16 else pattern.view(kind.numpy)
        value = int(value)
    if kind.bits == 128:
        return np.array([value & _MASK64, value >> 64 & _MASK64], np.uint64)
    return np.array(value & ((1 << kind.bits) - 1), STORAGE[kind.bits]).view(kind.numpy)

"""Where threads go: branches, calls, returns, exit (PTX ISA 9.7.12).

A thread's calls are a stack of return addresses of its own. A function's registers are one array per register, so a thread that
enters a function it is inside already (recursion) would overwrite them: in programs with recursive functions a call saves its
function's registers and parameters, a return brings them back.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Undefined
from weft.emulator.machine.active import Active
from weft.emulator.machine.binding import Binding
from weft.emulator.machine.execution import Execution
from weft.emulator.machine.variable_map import FUNCTIONS, RECURSION, size_of
from weft.emulator.ops.externals import EXTERNALS
from weft.emulator.ops.registry import Destinations, Transfer, instruction, masked
from weft.emulator.ptx.syntax import Function, Group, Immediate, Operand, Register, Sink, Symbol, Variable
from weft.emulator.ptx.types import TYPES

_NO_MEANING: Final = ("uni",)
"""Promises to the compiler."""


@instruction("bra", transfer=True)
def bra(b: Binding) -> Transfer:
    b.only(*_NO_MEANING)
    b.count(1)
    (target,) = b.execution.program.targets(b.site)
    return lambda active: [(target, active)]


@instruction("brx", transfer=True)
def brx(b: Binding) -> Transfer:
    """``brx.idx index, table``: an index beyond the table is undefined, and a fault."""
    b.only("idx", *_NO_MEANING)
    b.count(2)
    index = b.read(0, TYPES["u32"])
    targets = b.execution.program.targets(b.site)
    execution, site = b.execution, b.site

    def run(active: Active) -> Destinations:
        values = np.broadcast_to(index, execution.threads)[active.index]
        if (wild := values >= len(targets)).any():
            thread = int(active.index[int(wild.nonzero()[0][0])])
            message = f"index {int(values[wild][0])} into a table of {len(targets)} labels"
            raise execution.fault(Undefined, message, site, thread)
        parted: dict[int, list[int]] = {}
        distinct: list[int] = np.unique(values).tolist()
        for value in distinct:
            parted.setdefault(targets[value], []).append(value)
        return [(pc, active.narrow(np.isin(index, chosen))) for pc, chosen in parted.items()]

    return run


@instruction("exit", transfer=True)
def exit_(b: Binding) -> Transfer:
    b.count(0)
    return _exit(b.execution)


def _exit(execution: Execution) -> Transfer:
    def run(active: Active) -> Destinations:
        execution.exited |= active.mask
        execution.stir()
        return []

    return run


@instruction("ret", transfer=True)
def ret(b: Binding) -> Transfer:
    """Back to the caller; from a kernel it is ``exit``."""
    b.only(*_NO_MEANING)
    b.count(0)
    execution = b.execution
    if b.function.entry:
        return _exit(execution)

    def run(active: Active) -> Destinations:
        stack = execution.extra("return addresses", lambda: _Stack(execution))
        return stack.pop(active, b.function.name)

    return run


@instruction("call", transfer=True)
def call(b: Binding) -> Transfer:
    """``call (results), function, (arguments)`` or, through a register, ``call (results), %rd, (arguments), prototype``."""
    b.only(*_NO_MEANING)
    operands = list(b.operands)
    results: tuple[Operand, ...] = ()
    if isinstance(first := operands[0], Group):
        results = first.elements
        del operands[0]
    target, *rest = operands
    arguments = rest[0].elements if rest and isinstance(rest[0], Group) else ()
    if isinstance(target, Symbol):
        return _direct(b, target.name, arguments, results)
    if isinstance(target, Register):
        return _indirect(b, target, arguments, results)
    return b.wrong("call needs the name of a function, or a register with its address")


def _direct(b: Binding, name: str, arguments: tuple[Operand, ...], results: tuple[Operand, ...]) -> Transfer:
    execution, following = b.execution, b.next
    if name not in execution.program.start:
        return _external(b, name, arguments, results)
    function = execution.program.module.functions[name]
    enter = _copies(b, function, arguments, results)
    start = execution.program.start[name]

    def run(active: Active) -> Destinations:
        stack = execution.extra("return addresses", lambda: _Stack(execution))
        stack.leaving[following, name] = enter[1]
        stack.push(active, following, b.site)
        for copy in enter[0]:
            copy(active)
        return [(start, active)]

    return run


def _indirect(b: Binding, target: Register, arguments: tuple[Operand, ...], results: tuple[Operand, ...]) -> Transfer:
    execution = b.execution
    address = b.read(target, TYPES["u64"])
    direct: dict[int, Transfer] = {}

    def run(active: Active) -> Destinations:
        values = np.broadcast_to(address, execution.threads)
        destinations: list[tuple[int, Active]] = []
        for value in np.unique(values[active.index]).tolist():
            names = [n for n, pc in execution.program.start.items() if FUNCTIONS + 16 * pc == value]
            if not names:
                thread = int(active.index[int((values[active.index] == value).nonzero()[0][0])])
                raise execution.fault(
                    Undefined, f"a call of 0x{value:x}, which is no function's address", b.site, thread
                )
            if value not in direct:
                direct[value] = _direct(b, names[0], arguments, results)
            destinations += direct[value](active.narrow(values == value))
        return destinations

    return run


def _external(b: Binding, name: str, arguments: tuple[Operand, ...], results: tuple[Operand, ...]) -> Transfer:
    if name not in EXTERNALS:
        b.wrong(f"function '{name}' has no body in this module")
    external, execution, following = EXTERNALS[name], b.execution, b.next
    given = [_parameter_bytes(b, a) for a in arguments]
    wanted = [_parameter_bytes(b, r) for r in results]

    site = b.site

    def run(active: Active) -> Destinations:
        execution.calling = site
        external(execution, active, given, wanted)
        going_on = active.narrow(~execution.exited)
        return [(following, going_on)] if going_on else []

    return run


def _variable(function: Function, name: str) -> Variable | None:
    declared = (*function.variables, *function.parameters, *function.results)
    return next((v for v in declared if v.name == name), None)


def _parameter_bytes(b: Binding, operand: Operand) -> NDArray[np.uint8]:
    """The (T, bytes) array of an argument or result that is a variable in the param space."""
    name = operand.name if isinstance(operand, Symbol) else ""
    variable = _variable(b.function, name)
    if variable is None or variable.space != "param":
        b.unknown("arguments of external functions that are no variables in the param space")
    return b.execution.parameter(b.function.name, name, size_of(variable))


class _Copy:
    """An argument or a result on its way: the values of ``source`` go to ``target``."""

    def __init__(self, target: NDArray[Any], source: NDArray[Any]) -> None:
        self.target = target
        self.source = source

    def __call__(self, active: Active) -> None:
        masked(self.target, self.source, active)


def _copies(
    b: Binding, function: Function, arguments: tuple[Operand, ...], results: tuple[Operand, ...]
) -> tuple[list[_Copy], list[_Copy]]:
    """How arguments get into a function, and its results out of it."""
    if len(arguments) != len(function.parameters) or len(results) != len(function.results):
        b.wrong(
            f"'{function.name}' has {len(function.parameters)} parameters and {len(function.results)} results, "
            f"the call {len(arguments)} and {len(results)}"
        )
    into = [_copy(b, a, function, v, True) for a, v in zip(arguments, function.parameters, strict=True)]
    out = [_copy(b, r, function, v, False) for r, v in zip(results, function.results, strict=True)]
    return into, out


def _copy(b: Binding, operand: Operand, function: Function, formal: Variable, entering: bool) -> _Copy:
    execution = b.execution
    size = size_of(formal)
    kind = TYPES[formal.type]
    if formal.space == "reg":
        inner = execution.register(function.name, formal.name, formal.type).view(kind.numpy)
    else:
        inner = execution.parameter(function.name, formal.name, size)
    if isinstance(operand, Symbol):
        outer = _parameter_bytes(b, operand)
        if outer.shape != inner.shape:
            b.wrong(
                f"'{formal.name}' of '{function.name}' has {size} bytes, what the call passes has {outer.shape[-1]}"
            )
    elif isinstance(operand, Register | Immediate | Sink):
        outer = b.read(operand, kind) if entering else b.write(operand, kind)
        if formal.space != "reg":
            inner = inner.view(kind.numpy)[:, 0]
    else:
        b.wrong("an argument of a call is a variable in the param space, a register or a number")
    return _Copy(inner, outer) if entering else _Copy(outer, inner)


class _Stack:
    """Return addresses, and what recursion would overwrite."""

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self.levels: list[NDArray[np.int64]] = []
        """For each depth, the pc each thread returns to."""
        self.leaving: dict[tuple[int, str], list[_Copy]] = {}
        """For each pc returned to and function returned from, how results get out."""
        self.saved: list[dict[tuple[str, str], NDArray[Any]]] = []
        self.used: list[NDArray[np.int64]] = []
        """For each depth, what alloca had given before the call."""

    def push(self, active: Active, pc: int, site: int) -> None:
        execution = self.execution
        for level, chosen in self._by_depth(active):
            if level >= RECURSION:
                message = f"calls are more than {RECURSION} deep"
                raise execution.fault(Undefined, message, site, int(chosen.index[0]))
            while len(self.levels) <= level:
                self.levels.append(np.zeros(execution.threads, np.int64))
                self.saved.append({})
                self.used.append(np.zeros(execution.threads, np.int64))
            masked(self.levels[level], np.full(execution.threads, pc), chosen)
            masked(self.used[level], execution.stack_used, chosen)
            caller = execution.program.function_of[site].name
            if caller in execution.program.recursive:
                saved = self.saved[level]
                for key, array in execution.own(caller):
                    if key not in saved:
                        saved[key] = np.zeros_like(array)
                    masked(saved[key], array, chosen)
        execution.depth[active.mask] += 1

    def pop(self, active: Active, function: str) -> Destinations:
        execution = self.execution
        destinations: list[tuple[int, Active]] = []
        execution.depth[active.mask] -= 1
        for level, chosen in self._by_depth(active):
            masked(execution.stack_used, self.used[level], chosen)
            pcs = self.levels[level]
            places: list[int] = np.unique(pcs[chosen.index]).tolist()
            for pc in places:
                returning = chosen.narrow(pcs == pc)
                caller = execution.program.function_of[pc - 1].name
                results = self.leaving[pc, function]
                if caller in execution.program.recursive:
                    self._restore(level, caller, returning, results)
                else:
                    for copy in results:
                        copy(returning)
                destinations.append((pc, returning))
        return destinations

    def _restore(self, level: int, caller: str, returning: Active, results: list[_Copy]) -> None:
        """The results, then the caller's state as it was, without the variables that took the results."""
        for copy in results:
            copy(returning)
        saved = self.saved[level]
        for key, array in self.execution.own(caller):
            if key in saved and not any(np.may_share_memory(array, copy.target) for copy in results):
                masked(array, saved[key], returning)

    def _by_depth(self, active: Active) -> list[tuple[int, Active]]:
        depth = self.execution.depth
        found = depth[active.index]
        first = int(found[0])
        if (found == first).all():
            return [(first, active)]
        return [(level, active.narrow(depth == level)) for level in np.unique(found).tolist()]

"""All functions of a module as one list of instructions, and the order in which waiting threads are served.

Divergence. Threads of a warp that part at a branch should meet again where the hardware's would: at the branch's
post-dominator. Every thread has a place in the program. Threads at the same place execute together, and of several places
the one that comes *first* is executed next. Threads that are behind catch up with those ahead, so all meet at the earliest
place that all of them reach; no stack of post-dominators is kept. "First" is a weak topological order of the control-flow
graph (Bourdoncle, Efficient chaotic iteration strategies with widenings, 1993): a topological order in which every loop is
contiguous, so that lanes still in a loop come before those that have left it.

    head: ...; @p bra body; bra done;      order: head, body, done, wherever they stand in the text
    done: ...; exit;
    body: ...; bra head;

Called functions come before their callers, so a caller's other lanes wait for the return.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeVar

from weft.emulator.errors import PTXError
from weft.emulator.ptx.syntax import Function, Instruction, Module, Register, Symbol

if TYPE_CHECKING:
    from weft.emulator.machine.reached import Reached

N = TypeVar("N")

ENDS: Final = frozenset({"exit", "ret", "trap"})
"""Opcodes after which nothing follows, unless guarded."""


class Program:
    """A module's functions one after the other; an instruction's index here is its *pc*, or *site*."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.instructions: list[Instruction] = []
        self.function_of: list[Function] = []
        self.start: dict[str, int] = {}
        self.accesses: dict[tuple[str, frozenset[str]], dict[int, str]] = {}
        """Of functions, given the shared variables that they see: which of them accesses are of
        (`weft.emulator.machine.provenance`)."""
        self.reached: dict[str, Reached] = {}
        """By kernel: what `weft.emulator.machine.reached` found."""
        for function in module.functions.values():
            if function.declared:
                continue
            self.start[function.name] = len(self.instructions)
            body = [*function.instructions, _the_end(function)]
            self.instructions += body
            self.function_of += [function] * len(body)

    def label(self, function: Function, name: str) -> int:
        """The pc a label of a function stands for; `KeyError` where there is no such label."""
        return self.start[function.name] + function.labels[name]

    def targets(self, pc: int) -> list[int]:
        """Where the branch at ``pc`` may go, beyond falling through; [] if it is none."""
        instruction = self.instructions[pc]
        function = self.function_of[pc]
        if instruction.opcode == "bra":
            names = [o.name for o in instruction.operands if isinstance(o, Symbol)]
        elif instruction.opcode == "brx":
            tables = [o.name for o in instruction.operands if isinstance(o, Symbol)]
            names = [label for table in tables for label in function.tables.get(table, ())]
        else:
            return []
        for name in names:
            if name not in function.labels:
                raise PTXError(
                    f"there is no label '{name}' in function '{function.name}'", instruction.line, instruction.text
                )
        return [self.label(function, name) for name in names]

    def falls_through(self, pc: int) -> bool:
        """Whether the instruction after ``pc`` may be next."""
        instruction = self.instructions[pc]
        return instruction.guard is not None or (
            instruction.opcode not in ENDS and instruction.opcode not in ("bra", "brx")
        )

    @cached_property
    def leaders(self) -> frozenset[int]:
        """Where threads may arrive from elsewhere: functions' starts, labels branched to, and what follows a branch or call."""
        found = set(self.start.values())
        for pc, instruction in enumerate(self.instructions):
            found.update(self.targets(pc))
            if instruction.opcode in ("bra", "brx", "call"):
                found.add(pc + 1)
        return frozenset(found)

    @cached_property
    def callees(self) -> dict[str, set[str]]:
        """The functions each function may call; an indirect call may call every one whose address is taken."""
        taken = {
            operand.name
            for instruction in self.instructions
            if instruction.opcode != "call"
            for operand in instruction.operands
            if isinstance(operand, Symbol) and operand.name in self.start
        } | {
            name
            for variable in self.module.variables.values()
            for item in variable.initial
            if isinstance(item, Symbol) and (name := item.name) in self.start
        }
        found: dict[str, set[str]] = {name: set() for name in self.start}
        for instruction, function in zip(self.instructions, self.function_of, strict=True):
            if instruction.opcode == "call":
                names = {o.name for o in instruction.operands if isinstance(o, Symbol)} & self.start.keys()
                indirect = any(isinstance(o, Register) for o in instruction.operands)
                found[function.name] |= names | (taken if indirect else set())
        return found

    @cached_property
    def recursive(self) -> frozenset[str]:
        """Functions that may be active twice in one thread."""

        def reaches(start: str) -> set[str]:
            seen: set[str] = set()
            todo = list(self.callees[start])
            while todo:
                if (name := todo.pop()) not in seen:
                    seen.add(name)
                    todo += self.callees[name]
            return seen

        return frozenset(name for name in self.start if name in reaches(name))

    @cached_property
    def priority(self) -> list[int]:
        """A rank for each pc: of several groups of threads the one with the lowest rank runs first."""
        order: list[str] = []  # callees before callers
        weak_order("", lambda name: self.callees[name] if name else self.start, order.append)
        ranks = [0] * len(self.instructions)
        rank = 0
        for name in reversed([n for n in order if n]):
            body: list[int] = []
            weak_order(self.start[name], self._successors, body.append)
            for pc in body:
                ranks[pc] = (rank := rank + 1)
        return ranks

    def _successors(self, pc: int) -> list[int]:
        return [*self.targets(pc), *([pc + 1] if self.falls_through(pc) else [])]


def _the_end(function: Function) -> Instruction:
    return Instruction("ret", (), (), None, function.line, None, "(the end of the function)")


def weak_order(root: N, successors: Callable[[N], Iterable[N]], emit: Callable[[N], None]) -> None:
    """Emits the nodes reachable from ``root`` in a weak topological order: loops contiguous, otherwise topological.

    Bourdoncle's recursive algorithm over strongly connected components, with explicit stacks: straight code is thousands of nodes
    deep.
    """
    for node in reversed(_components(root, successors, frozenset())):
        emit(node)


def _components(root: N, successors: Callable[[N], Iterable[N]], without: frozenset[N]) -> list[N]:
    """The order reversed, ignoring edges into ``without`` (the heads of the loops around)."""
    number: dict[N, int] = {}
    low: dict[N, int] = {}
    done: set[N] = set()
    open_nodes: list[N] = []
    result: list[N] = []
    stack: list[tuple[N, list[N]]] = []

    def enter(node: N) -> None:
        number[node] = low[node] = len(number)
        open_nodes.append(node)
        stack.append((node, [s for s in successors(node) if s not in without]))

    enter(root)
    while stack:
        node, pending = stack[-1]
        if pending:
            following = pending.pop(0)
            if following not in number:
                enter(following)
            elif following not in done:
                low[node] = min(low[node], number[following])
            continue
        stack.pop()
        if stack:
            parent = stack[-1][0]
            low[parent] = min(low[parent], low[node])
        if low[node] != number[node]:
            continue
        component: list[N] = []
        while not component or component[-1] != node:
            component.append(open_nodes.pop())
        done.update(component)
        if len(component) == 1:
            result.append(node)
            continue
        result += _components(node, _within(successors, set(component)), without | {node})
    return result


def _within(successors: Callable[[N], Iterable[N]], inside: set[N]) -> Callable[[N], Iterable[N]]:
    return lambda node: [s for s in successors(node) if s in inside]

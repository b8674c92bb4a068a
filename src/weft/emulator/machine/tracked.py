"""Reads of memory that has not been written are faults where their values matter, not where they are read.

Compilers read ahead: a loop's next element before the test whether there is one, both sides of a selection. Such a value is
*poison*. It may be computed with, moved, stored to the block's own memory, which then counts as unwritten again, and dropped.
Where it decides something, the read was a fault:

    ld.shared.u32 %r1, [%r9]            poison, if nothing was written there
    add.u32 %r2, %r1, 1                 poison
    selp.u32 %r3, %r2, 0, %p1           poison where %p1 is true
    st.global.u32 [%rd1], %r3           a use; so are addresses, conditions, and operands of all that is no arithmetic

A launch does not track poison until it has met a read of unwritten memory. Then it begins anew, with this scheduler, which
executes instruction by instruction on NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.shuffle import MODES, sources
from weft.emulator.errors import Fault, Uninitialised
from weft.emulator.machine.active import WARP, Active, Mask
from weft.emulator.machine.binding import Addresses, Binding
from weft.emulator.machine.execution import Execution
from weft.emulator.machine.scheduler import Scheduler, Segment
from weft.emulator.machine.variable_map import VariableMap
from weft.emulator.memory.access_batch import AccessBatch, Space
from weft.emulator.ops.data import SPACES
from weft.emulator.ops.registry import Destinations
from weft.emulator.ptx.syntax import Address, Group, Instruction, Minus, Not, Operand, Pair, Part, Register, Vector
from weft.emulator.ptx.types import TYPES

LOADS: Final = frozenset({"ld", "ldu"})
"""Instructions whose reads may be poison."""

_COMPUTES: Final = frozenset(
    {
        "add", "addc", "sub", "subc", "mul", "mul24", "mad", "madc", "mad24", "fma", "sad", "div", "rem", "abs", "neg", "min",
        "max", "popc", "clz", "bfind", "fns", "brev", "bfe", "bfi", "bmsk", "szext", "dp4a", "dp2a", "testp", "copysign", "rcp",
        "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "and", "or", "xor", "not", "cnot", "lop3", "shf", "shl", "shr",
        "prmt", "mov", "cvt", "cvta", "set", "setp", "selp", "slct", "isspacep", "mapa", "getctarank", "shfl",
        "vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset",
        "vadd2", "vsub2", "vavrg2", "vabsdiff2", "vmin2", "vmax2", "vset2", "vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4",
        "vmax4", "vset4",
    }
)  # fmt: skip
"""Instructions that make poison of poison."""

_READ_FIRST: Final = ("bar", "brx", "call", "nanosleep", "tcgen05.dealloc", "wgmma")
"""How instructions begin whose first operand is read. That of others is an address, or a result: what it held is lost."""

Poison = NDArray[np.int32]
"""For each thread the number of the read that a value comes from, or 0."""


class Tracked(Scheduler):
    """Executes with a look at where each value comes from."""

    def __init__(self, execution: Execution, variable_map: VariableMap) -> None:
        super().__init__(execution, variable_map, native=False)
        self._poison: dict[tuple[str, str], Poison] = {}
        self._reads: list[AccessBatch] = []
        self._places: dict[int, Addresses] = {}
        self._from = np.arange(execution.threads)
        """The threads that the shuffle under way reads from."""
        execution.memory.deferred = []
        execution.memory.may_defer = lambda site: execution.program.instructions[site].opcode in LOADS

    def run(self, starting: Active) -> None:
        self._poison.clear()
        self._reads.clear()
        super().run(starting)

    def _execute(self, segment: Segment, active: Active) -> Destinations:
        segment.warps += active.warp_count
        segment.threads += active.count
        site = segment.first
        try:
            for site, step in zip(segment.sites, segment.steps, strict=False):
                chosen = self._check(site, active)
                step(active)
                self._follow(site, chosen)
                self.execution.issued[active.warps] += 1
            if segment.transfer is None:
                return [(segment.following, active)]
            site = segment.sites[-1]
            chosen = self._check(site, active)
            self.execution.issued[active.warps] += 1
            destinations = segment.transfer(active)
            self._follow(site, chosen)
            return destinations
        except Exception as error:
            instruction = self.program.instructions[site]
            if isinstance(error, Fault):
                error.at(kernel=self.execution.kernel, instruction=instruction)
            else:
                error.add_note(f"while emulating PTX line {instruction.line}: {instruction.text}")
            raise

    # ---- before an instruction --------------------------------------------------------------------------------------

    def _check(self, site: int, active: Active) -> Active:
        """The threads that a guard lets through. Raises: Uninitialised, where poison is used."""
        instruction = self.program.instructions[site]
        chosen, computes = active, instruction.opcode in _COMPUTES
        if instruction.guard is not None:
            name = instruction.guard.register
            if not computes:
                self._use(site, name, active, "the condition of")
            kind = self.program.function_of[site].registers[name]
            values = self.execution.register(self.program.function_of[site].name, name, kind)
            chosen = active.narrow(~values if instruction.guard.negated else values)
        if not self._poison or not chosen:
            return chosen
        if instruction.opcode == "shfl":  # its result may be written over what says the lane
            self._from = self._sources(site, instruction)
        for operand in instruction.operands:
            if isinstance(operand, Address):
                for name in _registers(operand):
                    self._use(site, name, chosen, "an address in")
        if instruction.opcode in LOADS or computes:
            return chosen
        if instruction.opcode == "st" and self._space(site, chosen) in (Space.SHARED, Space.LOCAL):
            return chosen
        for operand in instruction.operands[not instruction.name.startswith(_READ_FIRST) :]:
            for name in _registers(operand):
                self._use(site, name, chosen, "an operand of")
        return chosen

    def _use(self, site: int, name: str, chosen: Active, how: str) -> None:
        poison = self._poison.get((self.program.function_of[site].name, name))
        if poison is None or not (used := chosen.mask & (poison != 0)).any():
            return
        thread = int(used.nonzero()[0][0])
        read = self._reads[int(poison[thread]) - 1]
        use = self.program.instructions[site]
        source = f" (source {use.source})" if use.source is not None else ""
        text = f"read of {read.size} bytes of {read.space.value} memory that has not been written"
        text += f"\n    its value is {how} PTX line {use.line}"
        own = (read.threads == thread).nonzero()[0]  # none, where another lane has read it, and a shuffle brought it
        which = int(own[0]) if own.size else 0
        thread = int(read.threads[which])
        memory = self.execution.memory
        address = memory.describe(read.space, int(read.addresses[which]))
        raise self.execution.fault(Uninitialised, f"{text}{source}: {use.text}", read.site, thread, address)

    def _space(self, site: int, chosen: Active) -> Space | None:
        """The space that a store reaches; None for several."""
        instruction = self.program.instructions[site]
        named = next((SPACES[m] for m in instruction.modifiers if m in SPACES), None)
        if named is not None:
            return named
        found = self.execution.memory.resolve(self._addresses(site)[chosen.index])
        return found[0][0] if len(found) == 1 else None

    def _addresses(self, site: int) -> NDArray[np.uint64]:
        """The addresses of a store, (T,): within the space that it names, or generic."""
        if site not in self._places:
            binding = Binding(self.execution, self.variable_map, site)
            space = next((SPACES[m] for m in binding.modifiers if m in SPACES), None)
            self._places[site] = binding.address(0, space)
        return self._places[site]()

    # ---- behind it ----------------------------------------------------------------------------------------------------

    def _follow(self, site: int, chosen: Active) -> None:
        """What the results are: poison, if an operand is."""
        instruction = self.program.instructions[site]
        deferred = self.execution.memory.deferred
        if deferred:
            for name in _registers(instruction.operands[0]):
                if (old := self._poison.get((self.program.function_of[site].name, name))) is not None:
                    old[chosen.mask] = 0
            for access in deferred:
                self._loaded(site, instruction, access)
            deferred.clear()
            return
        if not self._poison or not chosen:
            return
        function = self.program.function_of[site].name
        if instruction.opcode == "st":
            self._stored(site, instruction, function, chosen)
            return
        if not instruction.operands or isinstance(instruction.operands[0], Address | Group):
            return
        if instruction.opcode == "shfl":
            self._shuffled(instruction, function, chosen)
            return
        flows = self._flows(instruction, function) if instruction.opcode in _COMPUTES else None
        self._becomes(function, instruction.operands[0], flows, chosen)

    def _becomes(self, function: str, operand: Operand, flows: Poison | None, chosen: Active) -> None:
        """The registers of a result hold this poison now."""
        for name in _registers(operand):
            if (old := self._poison.get((function, name))) is not None:
                old[chosen.mask] = 0 if flows is None else flows[chosen.mask]
            elif flows is not None and (flows[chosen.mask] != 0).any():
                self._poison[function, name] = np.where(chosen.mask, flows, np.int32(0))

    def _shuffled(self, instruction: Instruction, function: str, chosen: Active) -> None:
        """Each lane gets the poison of the lane that it reads from, and of what chooses that lane, as the predicate does."""
        result, value, *others = instruction.operands
        chooses = _merged([self._of(operand, function) for operand in others])
        found = self._of(value, function)
        if instruction.guard is not None:
            chooses = _merged([chooses, self._poison.get((function, instruction.guard.register))])
        if found is not None:
            found = found[self._from]
        first, second = (result.first, result.second) if isinstance(result, Pair) else (result, None)
        self._becomes(function, first, _merged([found, chooses]), chosen)
        if second is not None:
            self._becomes(function, second, chooses, chosen)

    def _sources(self, site: int, instruction: Instruction) -> NDArray[np.intp]:
        """The threads that a shuffle is about to read from."""
        binding = Binding(self.execution, self.variable_map, site)
        mode = next(word for word in MODES if word in instruction.modifiers)
        lanes, _ = sources(mode, self.execution.lane, *(binding.read(place, TYPES["u32"]) for place in (2, 3)))
        return self.execution.warp * WARP + lanes

    def _loaded(self, site: int, instruction: Instruction, access: AccessBatch) -> None:
        """The elements that a load has found unwritten."""
        function = self.program.function_of[site].name
        execution, flat = self.execution, access.flat
        assert flat is not None
        self._reads.append(access)
        parts = list(_registers(instruction.operands[0]))
        written = execution.memory.arenas[access.space].written
        assert written is not None
        size = access.element or access.size
        first = instruction.operands[0]
        elements = first.elements if isinstance(first, Vector) else (first,)
        for place, element in enumerate(elements):
            if not isinstance(element, Register) or element.name not in parts:
                continue
            poison = self._poison.setdefault((function, element.name), np.zeros(execution.threads, np.int32))
            missing = ~written[(flat + place * size)[:, None] + np.arange(size)].all(axis=1)
            poison[access.threads] = np.where(missing, np.int32(len(self._reads)), np.int32(0))

    def _stored(self, site: int, instruction: Instruction, function: str, chosen: Active) -> None:
        """Memory that holds poison has not been written."""
        first = instruction.operands[1]
        elements = first.elements if isinstance(first, Vector) else (first,)
        memory, size = self.execution.memory, Binding(self.execution, self.variable_map, site).type().bytes
        for place, element in enumerate(elements):
            poison = self._poison.get((function, element.name)) if isinstance(element, Register) else None
            if poison is None or not (held := chosen.mask & (poison != 0)).any():
                continue
            threads = held.nonzero()[0]
            for space, which, within in self._within(site, threads):
                arena = memory.arenas[space]
                some = threads if which is None else threads[which]
                flat = within.view(np.int64) + place * size
                if space is Space.SHARED:
                    flat = memory.shared_places(some, flat.view(np.uint64), size)
                elif space is Space.LOCAL:
                    flat = flat + some * memory.local_stride
                if arena.written is not None:
                    arena.written[flat[:, None] + np.arange(size)] = 0

    def _within(
        self, site: int, threads: NDArray[np.intp]
    ) -> list[tuple[Space, NDArray[np.intp] | None, NDArray[np.uint64]]]:
        addresses = self._addresses(site)[threads]
        named = next((SPACES[m] for m in self.program.instructions[site].modifiers if m in SPACES), None)
        return [(named, None, addresses)] if named is not None else self.execution.memory.resolve(addresses)

    def _flows(self, instruction: Instruction, function: str) -> Poison | None:
        """The poison of a result, of all threads; None if no operand has any."""
        operands = instruction.operands[1:]
        if instruction.opcode == "selp" and isinstance(operands[2], Register):
            chooser = self.execution.register(function, operands[2].name, "pred")
            sides = [self._of(operand, function) for operand in operands[:2]]
            chosen = _merged([_where(sides[0], chooser), _where(sides[1], ~chooser)])
            return _merged([chosen, self._of(operands[2], function)])
        found = _merged([self._of(operand, function) for operand in operands])
        if instruction.guard is not None:
            found = _merged([found, self._poison.get((function, instruction.guard.register))])
        return found

    def _of(self, operand: Operand, function: str) -> Poison | None:
        return _merged([self._poison.get((function, name)) for name in _registers(operand)])


def _merged(given: list[Poison | None]) -> Poison | None:
    """Any poison there is."""
    found: Poison | None = None
    for poison in given:
        if poison is not None:
            found = poison if found is None else np.where(found != 0, found, poison)
    return found


def _where(poison: Poison | None, mask: Mask) -> Poison | None:
    return None if poison is None else np.where(mask, poison, np.int32(0))


def _registers(operand: Operand) -> Iterator[str]:
    match operand:
        case Register():
            yield operand.name
        case Address():
            yield from _registers(operand.base)
            for coordinate in operand.coordinates:
                yield from _registers(coordinate)
        case Vector() | Group():
            for element in operand.elements:
                yield from _registers(element)
        case Pair():
            yield from _registers(operand.first)
            yield from _registers(operand.second)
        case Not() | Part():
            yield operand.register.name
        case Minus():
            yield from _registers(operand.operand)
        case _:
            pass

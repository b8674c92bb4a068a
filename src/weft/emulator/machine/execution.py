"""The resident blocks: their threads, registers and memory.

A batch of blocks is executed at once. Every per-thread value is one array over all of its threads; blocks are padded to whole
warps with lanes that never run, so that ``array.reshape(-1, 32)`` is always lanes by warps. The arrays live as long as the
launch: the next batch of blocks reuses them, so that steps can be bound to them once.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import Fault, Undefined, Where
from weft.emulator.machine.active import WARP, Active, IndexArray, Mask, alike
from weft.emulator.machine.geometry import geometry
from weft.emulator.machine.grid import Dim3, Grid
from weft.emulator.machine.program import Program
from weft.emulator.machine.special import Special
from weft.emulator.machine.variable_map import VariableMap
from weft.emulator.memory.memory import Memory
from weft.emulator.memory.order import NullOrder, Order
from weft.emulator.native.arrays import address_of
from weft.emulator.profile.counters import Counters
from weft.emulator.ptx.types import STORAGE, TYPES

if TYPE_CHECKING:
    from weft.emulator.native.quick import SharedMemory
    from weft.emulator.native.quick_global import GlobalMemory

V = TypeVar("V")


@dataclass(frozen=True)
class Checks:
    """What is watched for. Each costs time, and each is on unless switched off."""

    bounds: bool = True
    """Accesses outside every allocation. Off: they use a dummy buffer, and accesses of more than 256 bytes are still faults."""
    alignment: bool = True
    uninitialised: bool = True
    """Reads of memory that has not been written."""
    races: bool = True
    """Unordered accesses to shared memory."""
    global_races: bool = True
    """Unordered accesses to global memory, in a block and between blocks."""
    steps: int | None = 100_000_000
    """Steps that the resident blocks may take, each an instruction for all threads that are at it together; None: any number.
    A loop that is still running then is a fault."""

    @classmethod
    def none(cls) -> Checks:
        """Everything off."""
        return cls(False, False, False, False, False, None)

    @property
    def switches(self) -> dict[str, bool]:
        """By name, which of them are on."""
        return {name: value not in (False, None) for name, value in dataclasses.asdict(self).items()}


_LINE: Final = 64
"""Bytes of a line of the processor's cache."""


def _lines(shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
    """Zeros that begin where a line does, so that a warp's registers are whole lines."""
    size = math.prod(shape) * np.dtype(kind).itemsize
    room = np.zeros(size + _LINE, np.uint8)
    start = -address_of(room) % _LINE
    return room[start : start + size].view(kind).reshape(shape)


@dataclass
class Parked:
    """Threads that wait until ``ready`` says they may go on at ``pc``."""

    active: Active
    pc: int
    why: Callable[[], str]
    ready: Callable[[], Mask]
    site: int


class Execution:
    """The state of ``blocks`` resident blocks of a launch of ``kernel``."""

    def __init__(
        self,
        program: Program,
        kernel: str,
        grid: Grid,
        block: Dim3,
        blocks: int,
        memory: Memory,
        counters: Counters,
        checks: Checks,
    ) -> None:
        self.program = program
        self.kernel = kernel
        self.grid = grid
        self.block_shape = block
        self.blocks = blocks
        self.real_threads = block[0] * block[1] * block[2]
        self.block_warps = -(-self.real_threads // WARP)
        self.block_threads = self.block_warps * WARP
        """Threads of a block, padding included."""
        self.threads = blocks * self.block_threads
        self.warps = blocks * self.block_warps
        self.geometry = geometry(block, blocks, grid.cluster)
        self.lane = self.geometry.lane
        self.warp = self.geometry.warp
        """The warp of each thread, counted over all resident blocks."""
        self.block = self.geometry.block
        """The resident block of each thread."""
        self.memory = memory
        self.variable_map: VariableMap
        """Where variables are; the launch sets it."""
        self.counters = counters
        self.checks = checks
        self.order: NullOrder = memory.order
        self.shared_order: Order | None = None
        """The detector for shared memory, if bounds and alignment are checked too."""
        self.quick: SharedMemory | None = None
        """Shared memory for native accesses."""
        self.quick_global: GlobalMemory | None = None
        """Global memory for native accesses."""
        self.output: list[str] = []
        """What vprintf printed."""
        self.registers: dict[tuple[str, str], NDArray[Any]] = {}
        self.parameters: dict[tuple[str, str], NDArray[np.uint8]] = {}
        self.exited: Mask = np.zeros(self.threads, np.bool_)
        """Threads that have ended, padding included."""
        self.parked: list[Parked] = []
        self.stirred = False
        self.issued: NDArray[np.int64] = np.zeros(self.warps, np.int64)
        """Instructions each warp has executed: what its clock says."""
        self.first_block = 0
        """The number, in the grid, of the first resident block."""
        self.next_block = 0
        """The number of the first block that has not been launched, nor was cancelled."""
        self._extras: dict[str, Any] = {}
        self.endings: list[Callable[[], None]] = []
        """What looks at the resident blocks when all have ended; forgotten between batches."""
        self.calling = 0
        """The call that an external function runs for."""
        self.special = Special(self)
        self.depth: NDArray[np.int64] = np.zeros(self.threads, np.int64)
        """How many calls each thread is inside."""
        self.stack_used: NDArray[np.int64] = np.zeros(self.threads, np.int64)
        """Bytes that alloca has given each thread, and that it has still."""

    def begin(self, blocks: int) -> Active:
        """Resets for the next ``blocks`` blocks of the grid; the threads that start."""
        self.first_block = first_block = self.next_block
        self.next_block += blocks
        for array in self.registers.values():
            array[...] = 0
        self._extras.clear()
        self.endings.clear()
        self.parked.clear()
        self.depth[...] = 0
        self.stack_used[...] = 0
        self.issued[...] = 0
        start = (self.geometry.real & (np.arange(self.blocks) < blocks)[:, None]).reshape(-1)
        self.exited[...] = ~start
        self.special.place(first_block)
        return Active(start)

    # ---- state ----------------------------------------------------------------------------------------------------

    def register(self, function: str, name: str, kind: str) -> NDArray[Any]:
        """The array of a register declared with type ``kind``: (T,), or (T, 2) of 128 bits."""
        if (array := self.registers.get((function, name))) is None:
            bits = TYPES[kind].bits
            shape = (self.threads, 2) if bits == 128 else (self.threads,)
            array = self.registers[function, name] = _lines(shape, STORAGE[bits])
        return array

    def parameter(self, function: str, name: str, size: int) -> NDArray[np.uint8]:
        """The bytes of a variable in a function's param space, (T, size): arguments and results of calls."""
        if (array := self.parameters.get((function, name))) is None:
            array = self.parameters[function, name] = np.zeros((self.threads, size), np.uint8)
        return array

    def own(self, function: str) -> list[tuple[tuple[str, str], NDArray[Any]]]:
        """All state that belongs to a function: registers and variables in the param space."""
        both = [*self.registers.items(), *self.parameters.items()]
        return [(key, array) for key, array in both if key[0] == function]

    def extra(self, name: str, make: Callable[[], V]) -> V:
        """State of an instruction family, made when first asked for and forgotten between batches: ask for it in the step."""
        if name not in self._extras:
            self._extras[name] = make()
        return self._extras[name]

    # ---- waiting ----------------------------------------------------------------------------------------------------

    def park(self, active: Active, pc: int, why: Callable[[], str], ready: Callable[[], Mask], site: int) -> None:
        """Threads wait until ``ready()``, a (T,) mask, has them; they go on at ``pc``. ``why`` describes the wait, should it
        never end."""
        self.parked.append(Parked(active, pc, why, ready, site))

    def stir(self) -> None:
        """Something happened that may let parked threads go on."""
        self.stirred = True

    def converge(self, active: Active, site: int, members: NDArray[np.uint32]) -> Active:
        """For a ``.sync`` instruction: those of ``active`` who may execute it now.

        ``members`` (T,) is the mask each thread names. Threads execute when all their named lanes that have not exited are here
        with the same mask; else they are parked at the instruction, until more of the warp arrive and take them along (`unpark`).
        """
        absent = members & ~alike(active.mask, members) & ~Active(self.exited, full=False).ballots[self.warp]
        late = active.mask & (absent != 0)
        if not late.any():
            return active
        waiting, going = active.narrow(late), active.narrow(~late)
        whole = np.setdiff1d(waiting.warps, going.warps, assume_unique=True)
        self.counters.executed(site, -whole.size, -waiting.count)
        place = self.extra("converging", dict[int, Mask])
        place[site] = place[site] | waiting.mask if site in place else waiting.mask.copy()

        def left_alone() -> Mask:
            """Those whose missing lanes have all exited since."""
            here = alike(place[site], members) | Active(self.exited, full=False).ballots[self.warp]
            late = place[site] & (members & ~here != 0)
            done = place[site] & entry.active.mask & ~late
            place[site] &= ~done
            return done

        entry = Parked(waiting, site, lambda: self._missing(entry.active, site), left_alone, site)
        self.parked.append(entry)
        return going

    def unpark(self, site: int, warps_of: Active) -> Active:
        """Takes back the threads parked at ``site`` by `converge` whose warps have threads in ``warps_of``: they join it."""
        place = self._extras.get("converging")
        if not place or site not in place:
            return warps_of
        joining = place[site] & self.of_warps(warps_of.mask)
        if not joining.any():
            return warps_of
        place[site] &= ~joining
        for parked in self.parked:
            if parked.site == site:
                parked.active = parked.active.narrow(~joining)
        self.counters.executed(site, 0, int(np.count_nonzero(joining)))
        self.parked = [parked for parked in self.parked if parked.active]
        return Active(warps_of.mask | joining)

    def of_warps(self, mask: Mask) -> Mask:
        """All threads of the warps that have a thread in the mask."""
        return np.repeat(mask.reshape(-1, WARP).any(axis=1), WARP)

    def _missing(self, waiting: Active, site: int) -> str:
        lanes = int(waiting.ballots[waiting.warps[0]])
        name = self.program.instructions[site].name
        return f"lanes 0x{lanes:08x} of a warp wait at {name} for lanes that its mask names and that never come"

    # ---- who is who -------------------------------------------------------------------------------------------------

    def block_of(self, thread: int) -> Dim3:
        """The block index (x, y, z) of a resident thread."""
        return self.grid.index(self.first_block + thread // self.block_threads)

    def thread_of(self, thread: int) -> Dim3:
        """The thread index (x, y, z) within its block."""
        linear = thread % self.block_threads
        x, y, _ = self.block_shape
        return linear % x, linear // x % y, linear // (x * y)

    def coordinates(self, thread: int) -> tuple[Dim3, Dim3]:
        """Block and thread index of a resident thread."""
        return self.block_of(thread), self.thread_of(thread)

    def fault(self, kind: type[Fault], message: str, site: int, thread: int, address: str = "") -> Fault:
        """A fault of a resident thread at an instruction."""
        where = Where(
            self.kernel, self.program.instructions[site], self.block_of(thread), self.thread_of(thread), address
        )
        return kind(message, where)

    def whole_warps(self, active: Active, site: int) -> IndexArray:
        """The active warps, for an ``.aligned`` instruction that all live lanes of a warp must execute together."""
        if not active.full and (partial := self.of_warps(active.mask) & ~active.mask & ~self.exited).any():
            name = self.program.instructions[site].name
            message = f"{name} must be executed by all lanes of a warp together; this lane is elsewhere"
            raise self.fault(Undefined, message, site, int(partial.nonzero()[0][0]))
        return active.warps

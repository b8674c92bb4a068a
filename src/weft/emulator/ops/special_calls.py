"""trap, brkpt, nanosleep, and functions that CUDA's runtime has on the device: vprintf, __assertfail, cudaCGGetIntrinsicHandle.

What vprintf prints is kept in `Execution.output`, a text for each thread and call, threads in ascending order. The arguments lie
in a buffer as C would lay out a struct of them after promotion: ints on 4 bytes, everything else on 8.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import OutOfBounds, Trap, Where
from weft.emulator.machine.active import Active
from weft.emulator.memory.access_batch import Space
from weft.emulator.memory.cluster import BYTE
from weft.emulator.ops.externals import EXTERNALS
from weft.emulator.ops.forms import form
from weft.emulator.ops.printf import printf
from weft.emulator.ops.registry import Step, instruction
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding
    from weft.emulator.machine.execution import Execution

LONGEST: Final = 1 << 16
"""Bytes of a string, at most."""


@instruction("trap", "brkpt")
def trap(b: Binding) -> Step:
    """Ends the launch: a debugger that brkpt would wake is not here."""
    b.only()
    b.count(0)
    execution, site, name = b.execution, b.site, b.instruction.opcode
    alone = b.variable_map.reads("%envreg1") and not execution.special.values["%envreg1"]
    hint = "; it reads %envreg1: grid.sync() needs a launch with cooperative=True" if alone else ""

    def step(active: Active) -> None:
        if active:
            more = f", as do {active.count - 1} more threads" if active.count > 1 else ""
            more += hint
            raise execution.fault(Trap, f"the program executes {name}{more}", site, int(active.index[0]))

    return step


@instruction("nanosleep", polls=True)
def nanosleep(b: Binding) -> Step:
    """There is no time to sleep for: the others go on."""
    form(b, type="u32")
    b.count(1)
    b.read(0, TYPES["u32"])
    return lambda active: None


# ---- memory of one thread --------------------------------------------------------------------------------------------


def _read(execution: Execution, thread: int, address: int, size: int, what: str) -> bytes:
    """Bytes at a generic address, as a thread sees them."""
    memory = execution.memory
    ((space, _, within),) = memory.resolve(np.array([address], np.uint64))
    at = int(within[0])
    arena = memory.arenas[space]
    if space is Space.LOCAL:
        limit, start = memory.local_bytes, thread * memory.local_stride
    elif space is Space.SHARED:
        place = int(memory.shared_places(np.array([thread]), within, size)[0])
        limit, start, at = memory.shared_bytes, place - (at & BYTE), at & BYTE
    else:
        heap = memory.heaps[space]
        if space is Space.GLOBAL:
            at = int(memory.host.translate(within)[0]) - heap.base
        inside = at >= 0 and heap.outside(np.array([at], np.int64), size, (at, at)) is None
        limit, start = (arena.bytes.size, 0) if inside else (0, 0)
    if not 0 <= at <= limit - size:
        _fault(execution, thread, f"{what} reads {size} bytes outside every allocation", f"0x{address:x}")
    return arena.bytes[start + at : start + at + size].tobytes()


def _fault(execution: Execution, thread: int, message: str, address: str) -> NoReturn:
    where = Where(block=execution.block_of(thread), thread=execution.thread_of(thread), address=address)
    raise OutOfBounds(message, where)


def _string(execution: Execution, thread: int, address: int, what: str) -> str:
    """The bytes up to the next zero."""
    found = bytearray()
    while len(found) < LONGEST:
        byte = _read(execution, thread, address + len(found), 1, what)
        if byte == b"\0":
            return found.decode("utf-8", "replace")
        found += byte
    _fault(execution, thread, f"{what} reads a string that does not end", f"0x{address:x}")


def _word(values: NDArray[np.uint8], thread: int) -> int:
    return int.from_bytes(values[thread].tobytes(), "little")


# ---- the functions ---------------------------------------------------------------------------------------------------


def vprintf(
    execution: Execution, active: Active, arguments: list[NDArray[np.uint8]], results: list[NDArray[np.uint8]]
) -> None:
    """``int vprintf(const char *format, void *arguments)``: the result is the number of arguments."""
    formats: dict[int, str] = {}
    for thread in active.index.tolist():
        address, buffer = _word(arguments[0], thread), _word(arguments[1], thread)
        if address not in formats:
            formats[address] = _string(execution, thread, address, "vprintf")
        place = 0

        def take(size: int, thread: int = thread, buffer: int = buffer) -> bytes:
            nonlocal place
            place = -(-place // size) * size + size
            return _read(execution, thread, buffer + place - size, size, "vprintf")

        def string(address: int, thread: int = thread) -> str:
            return _string(execution, thread, address, "vprintf")

        text, count = printf(formats[address], take, string)
        execution.output.append(text)
        for result in results:
            result[thread] = np.frombuffer(count.to_bytes(result.shape[1], "little"), np.uint8)


def assertfail(
    execution: Execution, active: Active, arguments: list[NDArray[np.uint8]], results: list[NDArray[np.uint8]]
) -> None:
    """``__assertfail(message, file, line, function, char_size)``: a failed assertion."""
    for thread in active.index.tolist():
        message, file, line, function = (_word(values, thread) for values in arguments[:4])
        message, file, function = (_string(execution, thread, a, "__assertfail") for a in (message, file, function))
        where = Where(block=execution.block_of(thread), thread=execution.thread_of(thread))
        raise Trap(f"{file}:{line}: {function}: assertion '{message}' failed", where)


_GRID: Final = 1
"""cudaCGScopeGrid."""


def grid_handle(
    execution: Execution, active: Active, arguments: list[NDArray[np.uint8]], results: list[NDArray[np.uint8]]
) -> None:
    """``unsigned long long cudaCGGetIntrinsicHandle(cudaCGScope)``: the workspace of a cooperative launch, whose scope is the
    grid; 0 of another launch or scope."""
    high, low = (int(execution.special.values[name]) for name in ("%envreg1", "%envreg2"))
    for thread in active.index.tolist():
        handle = high << 32 | low if _word(arguments[0], thread) == _GRID else 0
        for result in results:
            result[thread] = np.frombuffer(handle.to_bytes(result.shape[1], "little"), np.uint8)


EXTERNALS.update({"vprintf": vprintf, "__assertfail": assertfail, "cudaCGGetIntrinsicHandle": grid_handle})

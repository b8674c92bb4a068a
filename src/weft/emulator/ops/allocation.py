"""malloc, __cuda_syscall_aligned_malloc and free, as functions that a program calls (Programming Guide, dynamic global memory).

Threads allocate one after the other, in ascending order. Where the heap's limit is reached, malloc answers 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.errors import LaunchError, Undefined, Where
from weft.emulator.machine.active import Active
from weft.emulator.memory.access_batch import Space
from weft.emulator.memory.device_heap import ALIGNMENT, ROOM, HeapUse
from weft.emulator.ops.externals import EXTERNALS

if TYPE_CHECKING:
    from weft.emulator.machine.execution import Execution

NAMES: Final = frozenset({"malloc", "__cuda_syscall_aligned_malloc", "free"})
"""Functions that need the heap."""


def _word(values: NDArray[np.uint8], thread: int) -> int:
    return int.from_bytes(values[thread].tobytes(), "little")


def _heap(execution: Execution) -> HeapUse:
    heap = execution.memory.device_heap
    assert heap is not None
    return heap


def _who(execution: Execution, thread: int) -> str:
    instruction = execution.program.instructions[execution.calling]
    line = f"PTX line {instruction.line}" if instruction.source is None else str(instruction.source)
    return f"thread {execution.thread_of(thread)} of block {execution.block_of(thread)} at {line}"


def malloc(
    execution: Execution, active: Active, arguments: list[NDArray[np.uint8]], results: list[NDArray[np.uint8]]
) -> None:
    """``void *malloc(size_t)``, ``void *__cuda_syscall_aligned_malloc(size_t, size_t)``."""
    use = _heap(execution)
    for thread in active.index.tolist():
        size = _word(arguments[0], thread)
        alignment = _word(arguments[1], thread) if len(arguments) > 1 else ALIGNMENT
        try:
            place = use.malloc(size, max(alignment, 1), _who(execution, thread))
        except MemoryError:
            most = f"{ROOM} times the {use.heap.limit} bytes of the heap's limit"
            message = (
                f"{execution.kernel} allocates and frees more in one launch than the emulator has room for, {most}"
            )
            raise LaunchError(f"{message}: set module.heap_limit") from None
        address = 0 if place is None else use.arena.base + place
        for result in results:
            result[thread] = np.frombuffer(address.to_bytes(result.shape[1], "little"), np.uint8)


def free(
    execution: Execution, active: Active, arguments: list[NDArray[np.uint8]], results: list[NDArray[np.uint8]]
) -> None:
    """``void free(void *)``; of 0 nothing."""
    use = _heap(execution)
    for thread in active.index.tolist():
        address = _word(arguments[0], thread)
        if not address:
            continue
        if wrong := use.free(address - use.arena.base, _who(execution, thread)):
            where = execution.memory.describe(Space.GLOBAL, address)
            block, at = execution.block_of(thread), execution.thread_of(thread)
            raise Undefined(wrong, Where(block=block, thread=at, address=where))


EXTERNALS.update({"malloc": malloc, "__cuda_syscall_aligned_malloc": malloc, "free": free})

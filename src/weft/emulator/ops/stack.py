"""alloca, stacksave, stackrestore: memory on a thread's stack (PTX ISA 9.7.17).

What a program allocates so lies behind its variables in local memory, upwards: a thread's stack pointer is the first free byte. A
return gives back what the function allocated. Hardware's stacks end where the driver's limit says; here they have
`weft.emulator.machine.variable_map.STACK` bytes, and what does not fit is a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from weft.emulator.errors import OutOfBounds, Undefined
from weft.emulator.machine.active import Active
from weft.emulator.ops.forms import form
from weft.emulator.ops.mbarrier import per_thread
from weft.emulator.ops.registry import Step, instruction, masked
from weft.emulator.ptx.types import TYPES

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding

_ALIGNMENT: Final = 8
"""Of addresses, where an alloca does not say more."""


@instruction("alloca")
def alloca(b: Binding) -> Step:
    """``alloca.type pointer, size, alignment``: the address, in local memory, of so many new bytes."""
    f = form(b, type="u32 u64")
    kind = TYPES[f["type"]]
    alignment = b.constant(2) if b.count(2, 3) == 3 else _ALIGNMENT
    b.require(alignment > 0 and alignment & alignment - 1 == 0, f"an alignment is a power of two, not {alignment}")
    target, sizes = b.write(0, kind), b.read(1, kind)
    execution, site = b.execution, b.site
    start, end = b.variable_map.stack_start, b.variable_map.local_bytes

    def step(active: Active) -> None:
        threads, used = active.index, execution.stack_used
        given = per_thread(sizes, threads)
        first = -(-(start + used[threads]) // alignment) * alignment
        behind = first + given
        if (bad := (behind > end) | (given < 0)).any():
            which = int(bad.argmax())
            room = end - start - used[threads[which]]
            message = f"alloca of {given[which]} bytes, where {room} of the thread's {end - start} are left"
            raise execution.fault(OutOfBounds, message, site, int(threads[which]))
        local = execution.memory.local
        if local.written is not None:
            for thread, low, high in zip(threads.tolist(), first.tolist(), behind.tolist(), strict=True):
                origin = thread * execution.memory.local_stride
                local.written[origin + low : origin + high] = 0
        used[threads] = behind - start
        addresses = np.zeros(execution.threads, np.uint64)
        addresses[threads] = first.astype(np.uint64)
        masked(target, addresses.astype(kind.numpy), active)

    return step


@instruction("stacksave")
def stacksave(b: Binding) -> Step:
    """``stacksave.type d``: the stack pointer."""
    f = form(b, type="u32 u64")
    b.count(1)
    kind = TYPES[f["type"]]
    target, start, execution = b.write(0, kind), b.variable_map.stack_start, b.execution
    return lambda active: masked(target, (start + execution.stack_used).astype(kind.numpy), active)


@instruction("stackrestore")
def stackrestore(b: Binding) -> Step:
    """``stackrestore.type a``: what was allocated since stacksave gave a is given back."""
    f = form(b, type="u32 u64")
    b.count(1)
    source = b.read(0, TYPES[f["type"]])
    execution, site, start = b.execution, b.site, b.variable_map.stack_start

    def step(active: Active) -> None:
        threads, used = active.index, execution.stack_used
        given = per_thread(source, threads)
        if (bad := (given < start) | (given > start + used[threads])).any():
            which = int(bad.argmax())
            message = f"stackrestore of {given[which]}, which is no earlier stack pointer of the thread"
            raise execution.fault(Undefined, message, site, int(threads[which]))
        used[threads] = given - start

    return step

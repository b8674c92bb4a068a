"""What the emulator says when a program, or a question about it, is wrong.

A fault is not a wrong result: it is an event of the program (an access outside every allocation, two threads racing, a barrier
that part of a block will never reach) and is raised where it happens, with the kernel, the source line, the PTX line, and
block, thread and address where there are such. Hardware would continue, or stop much later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weft.emulator.ptx.syntax import Instruction


class PTXError(ValueError):
    """PTX that cannot be read, or has an instruction the emulator does not know; ``line`` is in the PTX, from 1."""

    def __init__(self, message: str, line: int = 0, text: str = "") -> None:
        self.line = line
        self.text = text
        where = f"PTX line {line}: " if line else ""
        super().__init__(f"{where}{message}" + (f"\n    {text}" if text else ""))


class LaunchError(ValueError):
    """A launch that cannot be: no such kernel, wrong arguments, a grid or block that no device has."""


class ToolError(RuntimeError):
    """One of NVIDIA's tools (ptxas, nvdisasm) is not found, or refuses what it is given."""


@dataclass(frozen=True)
class Where:
    """Who did it, as far as is known."""

    kernel: str = ""
    instruction: Instruction | None = None
    block: tuple[int, int, int] | None = None
    thread: tuple[int, int, int] | None = None
    address: str = ""


class Fault(RuntimeError):
    """Something a correct program does not do. Subclasses name the kinds; ``where`` says who did it."""

    kind = "fault"

    def __init__(self, message: str, where: Where | None = None) -> None:
        self.message = message
        self.where = where or Where()
        self.output = ""
        """What the launch had printed (vprintf)."""
        super().__init__(message)

    def at(self, **known: object) -> None:
        """Adds what an outer level knows and ``where`` does not yet say."""
        fresh = {name: value for name, value in known.items() if not getattr(self.where, name)}
        self.where = replace(self.where, **fresh)

    def __str__(self) -> str:
        where = self.where
        lines = [f"{self.kind}: {self.message}"]
        if where.kernel:
            lines.append(f"  kernel {where.kernel}")
        if where.instruction is not None:
            if where.instruction.source is not None:
                own, *inlined = where.instruction.source.chain
                lines.append(f"  source {own.place}")
                for source in inlined:  # Triton names the kernel for every function
                    named = f"{source.function}, " if source.function not in ("", where.kernel) else ""
                    lines.append(f"    inlined {named}{source.place}")
            lines.append(f"  PTX line {where.instruction.line}: {where.instruction.text}")
        if where.block is not None:
            lines.append(f"  block {where.block}" + (f", thread {where.thread}" if where.thread is not None else ""))
        if where.address:
            lines.append(f"  address {where.address}")
        return "\n".join(lines)


class OutOfBounds(Fault):
    """An access outside every allocation, or across the end of one."""

    kind = "out of bounds"


class Misaligned(Fault):
    """An address that is no multiple of the access's size."""

    kind = "misaligned"


class Uninitialised(Fault):
    """A read of memory that has not been written, whose value is used."""

    kind = "uninitialised read"


class Race(Fault):
    """Two accesses to the same bytes, at least one a write, that nothing orders."""

    kind = "race"


class BarrierFault(Fault):
    """Threads that wait for what will never come, or come to different barriers."""

    kind = "barrier"


class Endless(Fault):
    """A loop that has not ended after as many steps as are allowed."""

    kind = "endless loop"


class Trap(Fault):
    """``trap``, ``brkpt``, or a failed device-side assertion."""

    kind = "trap"


class Undefined(Fault):
    """Anything else the PTX ISA says is undefined behaviour (a shuffle from a lane not in its mask, a divergent mma, ...)."""

    kind = "undefined behaviour"

"""What a kernel may know of the machine that runs it: its clock, its processor, the threads of a program."""

from __future__ import annotations

from weft.language.core import constexpr, stub, tensor


@stub
def globaltimer() -> tensor:
    """The time in nanoseconds, int64. On a GPU its global timer; on a CPU the system's monotonic clock; in the emulator the
    number of instructions so far."""
    ...


@stub
def smid() -> tensor:
    """The number of the multiprocessor that runs the program, int32; 0 on a CPU."""
    ...


@stub
def num_threads() -> constexpr:
    """32 times the launch's ``num_warps``, on every machine."""
    ...


@stub
def num_warps() -> constexpr:
    """The launch's ``num_warps``, on every machine."""
    ...

"""What a launch can raise beyond Python's own TypeError and ValueError."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from typing import Final, NamedTuple

from weft.ir.position import Position


class Site(NamedTuple):
    """One memory access of a checked kernel: what it does, the bytes of one element, its positions (innermost first),
    and the array parameter that its pointer comes from (None where the compiler cannot tell). Or an assertion: the operation is
    ``"assert"``, the argument its message."""

    operation: str
    argument: str | None
    itemsize: int
    frames: tuple[Position, ...]


class OutOfBoundsError(IndexError):
    """A checked kernel was about to access memory outside its arguments; that access touched no memory.

    ``kernel``, ``program`` (three indices), ``operation``, ``argument`` (the parameter), ``index`` (of the element,
    from where the argument points) and ``length`` (elements in the array's extent) say what happened; the last three
    are None where the compiler cannot tell which array was meant. ``frames`` says where, innermost first.
    """

    def __init__(
        self,
        kernel: str,
        program: tuple[int, int, int],
        operation: str,
        argument: str | None,
        index: int | None,
        length: int | None,
        frames: Sequence[Position],
    ):
        self.kernel = kernel
        self.program = program
        self.operation = operation
        self.argument = argument
        self.index = index
        self.length = length
        self.frames = tuple(frames)
        super().__init__(self._message())

    def _message(self) -> str:
        where = (
            "accesses memory outside of all array arguments"
            if self.argument is None
            else f"accesses element {self.index} of '{self.argument}', which has {self.length}"
        )
        first = f"kernel '{self.kernel}', program {self.program}: {self.operation} {where}"
        return "\n".join([first, *_places(self.frames)])

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (self.kernel, self.program, self.operation, self.argument, self.index, self.length, self.frames)
        return OutOfBoundsError, arguments


class DeviceAssertionError(AssertionError, RuntimeError):
    """A ``tl.device_assert`` or an ``assert`` of a kernel with ``debug=True`` failed. For a card PyTorch raises a `RuntimeError`,
    so this is one, too.

    ``kernel``, ``program`` (three indices), ``message`` and ``frames`` (innermost first) say where. Programs that ran at the same
    time, and accesses beside the assertion, may have written to memory.
    """

    def __init__(self, kernel: str, program: tuple[int, int, int], message: str, frames: Sequence[Position]):
        self.kernel = kernel
        self.program = program
        self.message = message
        self.frames = tuple(frames)
        what = f"assertion failed: {message}" if message else "assertion failed"
        super().__init__("\n".join([f"kernel '{kernel}', program {program}: {what}", *_places(frames)]))

    def __reduce__(self) -> tuple[object, ...]:
        return DeviceAssertionError, (self.kernel, self.program, self.message, self.frames)


def _places(frames: Sequence[Position]) -> list[str]:
    """Lines that say where something happened, and the text there."""
    lines: list[str] = []
    for depth, frame in enumerate(frames):
        lines.append(f"  {'called from' if depth else 'at'} {frame.file}:{frame.line}, in {frame.function}")
        source = linecache.getline(frame.file, frame.line).rstrip()
        if source:
            lines += [f"    {source}", f"    {' ' * frame.column}^"]
    return lines


class SharedBuffer(NamedTuple):
    """Shared memory of a block that an op holds: the op's name, its first byte, its size, its positions (innermost first)."""

    operation: str
    start: int
    size: int
    frames: tuple[Position, ...]


_SHOWN: Final = 6
"""The buffers that a message lists; it counts the others."""

_UNITS: Final = {"shared memory": " bytes", "threads": "", "registers": ""}
"""What a block can run out of -> the unit of its numbers."""

_ADVICE: Final = {
    "shared memory": "smaller tiles, fewer stages (num_stages) or other num_warps need less",
    "threads": "a warp has 32 threads: lower num_warps",
    "registers": "lower num_warps, or limit the registers of a thread with maxnreg",
}


class OutOfResources(RuntimeError):
    """A block of a kernel asks for more than the GPU has.

    ``resource`` is ``"shared memory"`` (bytes), ``"threads"`` or ``"registers"``; ``asked`` and ``available`` are for one block.
    ``buffers`` are those that hold shared memory, the largest first; empty for other resources. Buffers may overlap.
    """

    def __init__(
        self,
        kernel: str,
        target: str,
        resource: str,
        asked: int,
        available: int,
        buffers: Sequence[SharedBuffer] = (),
    ):
        self.kernel = kernel
        self.target = target
        self.resource = resource
        self.asked = asked
        self.available = available
        self.buffers = tuple(buffers)
        super().__init__(self._message())

    def _message(self) -> str:
        unit = _UNITS[self.resource]
        lines = [
            f"kernel '{self.kernel}' on {self.target}: out of {self.resource}: a block asks for {self.asked}{unit} and may have "
            f"{self.available}{unit}; {_ADVICE[self.resource]}"
        ]
        for buffer in self.buffers[:_SHOWN]:
            lines.append(f"{buffer.size} bytes from byte {buffer.start}: {buffer.operation}")
            lines += [frame.render() for frame in buffer.frames]
        if rest := self.buffers[_SHOWN:]:
            lines.append(f"and {len(rest)} more of at most {rest[0].size} bytes")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return OutOfResources, (self.kernel, self.target, self.resource, self.asked, self.available, self.buffers)


class CudaError(RuntimeError):
    """The CUDA driver cannot be used, or it refused a call; ``code`` is its CUresult, None where there is none."""

    def __init__(self, message: str, code: int | None = None):
        super().__init__(message)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return CudaError, (str(self), self.code)

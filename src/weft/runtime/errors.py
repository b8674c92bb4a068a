"""What a launch can raise beyond Python's own TypeError and ValueError."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass

from weft.ir.position import Position


@dataclass(frozen=True)
class Site:
    """One memory access of a checked kernel: what it does, the bytes of one element, its positions (innermost first),
    and the array parameter that its pointer comes from (None where the compiler cannot tell)."""

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
        lines = [f"kernel '{self.kernel}', program {self.program}: {self.operation} {where}"]
        for depth, frame in enumerate(self.frames):
            lines.append(f"  {'called from' if depth else 'at'} {frame.file}:{frame.line}, in {frame.function}")
            source = linecache.getline(frame.file, frame.line).rstrip()
            if source:
                lines += [f"    {source}", f"    {' ' * frame.column}^"]
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (self.kernel, self.program, self.operation, self.argument, self.index, self.length, self.frames)
        return OutOfBoundsError, arguments

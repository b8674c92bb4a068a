"""``triton.errors``, and the errors of launches: the classes that programs catch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress

from weft.ir.position import Position
from weft.runtime import errors


class TritonError(Exception):
    """The base of the errors of a kernel: of its compilation, its resources, its tuning."""


class _Worded(TritonError):
    """An error that is a message."""

    prefix = ""

    def __init__(self, error_message: str | None = None) -> None:
        super().__init__(error_message)
        self.error_message = error_message

    def __str__(self) -> str:
        return self.prefix + (self.error_message or "")


class InterpreterError(_Worded):
    """Never raised: weft compiles where Triton would interpret. Programs that catch it go on working."""


class PTXASError(_Worded):
    """Never raised: no launch needs ptxas."""

    prefix = "PTXAS error: "


class AutotunerError(_Worded):
    """A sweep has no configuration to measure."""

    prefix = "Autotuner error: "


class OutOfResources(TritonError):
    """A block asks for more of a GPU than there is; ``required`` and ``limit`` of what ``name`` says."""

    def __init__(self, required: int, limit: int, name: str) -> None:
        super().__init__(required, limit, name)
        self.required = required
        self.limit = limit
        self.name = name

    def __str__(self) -> str:
        return (
            f"out of resource: {self.name}, Required: {self.required}, Hardware limit: {self.limit}. Reducing block sizes or "
            "`num_stages` may help."
        )


class DeviceAssertionError(errors.DeviceAssertionError):
    """A failed assertion, in the words that PyTorch has for one on a card; weft's are beneath."""

    def __init__(self, kernel: str, program: tuple[int, int, int], message: str, frames: Sequence[Position]) -> None:
        super().__init__(kernel, program, message, frames)
        self.args = (f"CUDA error: device-side assert triggered\n{self.args[0]}",)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.kernel, self.program, self.message, self.frames)


def assertion_failed(error: errors.DeviceAssertionError) -> DeviceAssertionError:
    """Weft's error in PyTorch's words. Writes the line to file 2 that CUDA's driver writes there."""
    place = error.frames[0] if error.frames else None
    where = f"{place.file}:{place.line}: {place.function}: " if place else ""
    block = ",".join(map(str, error.program))
    line = f"{where}block: [{block}], thread: [0,0,0] Assertion `{error.message}` failed.\n"
    with suppress(OSError):  # there may be no file 2; the driver knows nothing of sys.stderr
        os.write(2, line.encode())
    return DeviceAssertionError(error.kernel, error.program, error.message, error.frames)


def out_of_resources(error: errors.OutOfResources) -> OutOfResources:
    """Weft's error as the class that programs catch; the message has weft's list of buffers beneath."""
    result = OutOfResources(error.asked, error.available, error.resource)
    result.add_note(str(error))
    return result

"""Launches on a card: kernels compiled to PTX, started by the CUDA driver on the arrays' own card.

A launch takes place on the current stream of the library whose arrays it is given (PyTorch, CuPy), else on the stream that an
array names in its CUDA array interface, else on the legacy default stream. It begins after the work of every other stream
that an array names. Launches are asynchronous, as in those libraries: keep the arrays until the work is done.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from weft.runtime.arguments import Bound, to_float32
from weft.runtime.artifacts import GpuArtifact, refuse_read_only
from weft.runtime.binding import Grid
from weft.runtime.cuda_device import Device
from weft.runtime.cuda_driver import Result, checked, error_of
from weft.runtime.description import Parameter, check_grid
from weft.runtime.errors import OutOfResources
from weft.runtime.memory import LEGACY_STREAM, Memory

_LAUNCH_OUT_OF_RESOURCES: Final = 701

_CURRENT_STREAMS: Final[dict[str, Callable[[Any, int], int]]] = {
    "torch": lambda torch, card: torch.cuda.current_stream(card).cuda_stream,
    "cupy": lambda cupy, _: cupy.cuda.get_current_stream().ptr,
}
"""Library -> the handle of its current stream for a card, asked of the library's module."""


class CardKernel:
    """A kernel compiled for a card and loaded there. Raises: `CudaError`, `OutOfResources`."""

    def __init__(self, kernel: str, artifact: GpuArtifact, parameters: Sequence[Parameter], device: Device):
        self.kernel = kernel
        self.artifact = artifact
        self.device = device
        if artifact.shared > device.most_shared:
            place = f"card {device.number} ({device.name})"
            raise OutOfResources(kernel, place, "shared memory", artifact.shared, device.most_shared)
        self._driver = device.driver
        self._function = device.function(kernel, artifact.ptx, artifact.symbol, artifact.shared)
        self._lock = threading.Lock()
        packer = struct.Struct("=" + "".join(f"{p.padding}x{p.code}" for p in parameters))
        self._pack = packer.pack_into
        self._block = ctypes.create_string_buffer(packer.size or 1)
        start = ctypes.addressof(self._block)
        self._pointers = (ctypes.c_void_p * max(len(parameters), 1))(*(start + p.offset for p in parameters))
        self._arguments = ctypes.addressof(self._pointers) if parameters else 0

    def launch(self, bound: Bound, grid: Grid) -> None:
        """Starts the kernel for a grid that is not empty. Raises: `ValueError` for a read-only array that the kernel writes
        through and for a grid that no card has, `OutOfResources`, `CudaError`."""
        if bound.read_only:
            refuse_read_only(self.kernel, self.artifact.written, bound.read_only)
        check_grid(self.kernel, grid)
        stream, others = streams(bound.views, self.device.number)
        pushed = self.device.enter()
        try:
            for other in others:
                self._wait(stream, other)
            result = self._start(bound.slots, grid, stream)
            if int(result[0]):
                raise self._refused(result[0])
        finally:
            self.device.leave(pushed)

    def _start(self, slots: Sequence[Any], grid: Grid, stream: int) -> Result:
        """Writes the parameters, which the driver has read when a launch returns, and launches."""
        artifact = self.artifact
        with self._lock:
            try:
                self._pack(self._block, 0, *slots)
            except OverflowError:
                self._pack(self._block, 0, *to_float32(slots))
            return self._driver.cuLaunchKernel(
                self._function, *grid, artifact.threads, 1, 1, artifact.shared, stream, self._arguments, 0
            )

    def _wait(self, stream: int, other: int) -> None:
        """Makes later work on a stream wait for what is on another by now."""
        driver = self._driver
        event = checked(driver, "cuEventCreate", driver.cuEventCreate(_NO_TIMING))
        try:
            checked(driver, "cuEventRecord", driver.cuEventRecord(event, other))
            checked(driver, "cuStreamWaitEvent", driver.cuStreamWaitEvent(stream, event, 0))
        finally:
            checked(driver, "cuEventDestroy", driver.cuEventDestroy(event))

    def _refused(self, code: Any) -> Exception:
        if int(code) == _LAUNCH_OUT_OF_RESOURCES:
            key = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
            registers = checked(
                self._driver, "cuFuncGetAttribute", self._driver.cuFuncGetAttribute(key, self._function)
            )
            return OutOfResources(
                self.kernel,
                f"card {self.device.number} ({self.device.name})",
                "registers",
                registers * self.artifact.threads,
                self.device.attribute("MAX_REGISTERS_PER_BLOCK"),
            )
        return error_of(self._driver, "cuLaunchKernel", code, f"; launch of kernel '{self.kernel}'")


_NO_TIMING: Final = 2
"""CU_EVENT_DISABLE_TIMING."""


def streams(views: Iterable[tuple[str, Memory]], card: int) -> tuple[int, list[int]]:
    """The stream of a launch, and the others that it has to wait for."""
    current: int | None = None
    named: list[int] = []
    for _, memory in views:
        if current is None and memory.library in _CURRENT_STREAMS and (library := sys.modules.get(memory.library)):
            current = _CURRENT_STREAMS[memory.library](library, card) or LEGACY_STREAM
        if memory.stream is not None and memory.stream not in named:
            named.append(memory.stream or LEGACY_STREAM)
    if current is None:
        current = named[0] if named else LEGACY_STREAM
    return current, [stream for stream in named if stream != current]

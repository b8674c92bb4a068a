"""A card for `gpu.py`: arrays in its memory, PTX with the emulator's arguments, and CUDA events, all through weft's own driver.

`DeviceArray` is what a kernel takes where PyTorch is not installed. `Card.launch` runs what `weft.emulator.Module.launch`
runs: it copies the ranges of host memory that the arguments lie in to the card, and back after the kernel.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator import Module, TensorMap
from weft.emulator.machine.arguments import Arguments
from weft.emulator.machine.launch import dim3
from weft.emulator.machine.variable_map import size_of
from weft.runtime import cuda_device, cuda_driver
from weft.runtime.cuda_device import OPT_IN, Device
from weft.runtime.memory import LEGACY_STREAM

PAGE: Final = 256
"""Bytes that the driver aligns memory to."""

TENSOR_FLOPS: Final[dict[tuple[int, int], dict[str, int]]] = {
    (8, 0): {"float16": 2048, "bfloat16": 2048, "tf32": 1024, "int8": 4096},
    (8, 6): {"float16": 1024, "bfloat16": 1024, "tf32": 512, "int8": 2048},
    (8, 9): {"float16": 1024, "bfloat16": 1024, "tf32": 512, "int8": 2048, "float8": 2048},
    (9, 0): {"float16": 4096, "bfloat16": 4096, "tf32": 2048, "int8": 8192, "float8": 8192},
}
"""Compute capability -> operations of a multiprocessor's matrix units in a clock, dense (NVIDIA's architecture white papers).
Cards for games add float16 products into float32 at half that rate."""


class DeviceArray:
    """A contiguous array in a card's memory, freed with the object. It looks like a tensor of PyTorch to a kernel."""

    def __init__(self, card: Card, array: NDArray[Any]):
        self._card = card
        self._like = np.empty_like(array)
        self.nbytes = array.nbytes
        self._address = int(card.call("cuMemAlloc", max(array.nbytes, 1)))
        self.dtype = array.dtype.name
        self.device = types.SimpleNamespace(type="cuda", index=card.device.number)
        self.shape = array.shape
        card.call("cuMemcpyHtoD", self._address, array.ctypes.data, array.nbytes)

    def __del__(self) -> None:
        self._card.call("cuMemFree", self._address)

    def data_ptr(self) -> int:
        """The address."""
        return self._address

    def stride(self) -> tuple[int, ...]:
        """Strides in elements."""
        return tuple(stride // self._like.itemsize for stride in self._like.strides)

    def numpy(self) -> NDArray[Any]:
        """A copy in the CPU's memory."""
        self._card.call("cuCtxSynchronize")
        result = np.empty_like(self._like)
        self._card.call("cuMemcpyDtoH", result.ctypes.data, self._address, self.nbytes)
        return result


class Card:
    """The card of a number, its context current. Raises: `weft.CudaError` where there is none."""

    def __init__(self, number: int = 0):
        self._driver: Any = cuda_driver.load()
        self.device: Device = cuda_device.device(number)
        self.device.enter()
        self._functions: dict[tuple[str, str], Any] = {}

    def call(self, name: str, *arguments: Any) -> Any:
        """What a function of the driver returns. Raises: `weft.CudaError`."""
        return cuda_driver.checked(self._driver, name, getattr(self._driver, name)(*arguments))

    def __str__(self) -> str:
        version = self.call("cuDriverGetVersion")
        capability = ".".join(map(str, self.device.capability))
        return f"{self.device.name} (compute capability {capability}), driver of CUDA {version // 1000}.{version % 1000 // 10}"

    def runs(self, target: str) -> bool:
        """Whether PTX for this target runs here."""
        number = 10 * self.device.capability[0] + self.device.capability[1]
        least = int(target.removeprefix("sm_").rstrip("a"))
        return least == number if target.endswith("a") else least <= number

    def launch(
        self, module: Module, kernel: str, grid: Any, block: Any, args: Sequence[Any] = (), shared: int = 0
    ) -> None:
        """Runs a kernel of a module; arrays among the arguments hold afterwards what it wrote. Raises: `weft.CudaError`, and
        `ValueError` for tensor maps, whose encoding is the emulator's."""
        if any(isinstance(argument, TensorMap) for argument in args):
            raise ValueError("tensor maps: see gpu_check.py")
        function = module.syntax.functions[kernel]
        given = Arguments(function, args)
        owned = [int(self.call("cuMemAlloc", r.high - r.low + 2 * PAGE)) for r in given.ranges]
        starts = [address + r.skew % PAGE for address, r in zip(owned, given.ranges, strict=True)]
        try:
            for r, start in zip(given.ranges, starts, strict=True):
                if r.high > r.low:
                    self.call("cuMemcpyHtoD", start, r.low, r.high - r.low)
            self._start(module, kernel, dim3("grid", grid), dim3("block", block), given.encode(starts), shared)
            self.call("cuCtxSynchronize")
            for r, start in zip(given.ranges, starts, strict=True):
                if r.writeable and r.high > r.low:
                    self.call("cuMemcpyDtoH", r.low, start, r.high - r.low)
        finally:
            for address in owned:
                self.call("cuMemFree", address)

    def _start(
        self,
        module: Module,
        kernel: str,
        grid: tuple[int, ...],
        block: tuple[int, ...],
        parameters: Sequence[bytes],
        shared: int,
    ) -> None:
        if (module.ptx, kernel) not in self._functions:
            self._functions[module.ptx, kernel] = self.device.function(kernel, module.ptx, kernel, max(shared, OPT_IN))
        buffers = [ctypes.create_string_buffer(data, len(data)) for data in parameters]
        assert [len(b) for b in buffers] == [size_of(v) for v in module.syntax.functions[kernel].parameters]
        pointers = (ctypes.c_void_p * max(len(buffers), 1))(*map(ctypes.addressof, buffers))
        function = self._functions[module.ptx, kernel]
        self.call(
            "cuLaunchKernel",
            function,
            *grid,
            *block,
            shared,
            LEGACY_STREAM,
            ctypes.addressof(pointers) if buffers else 0,
            0,
        )

    def seconds(self, work: Callable[[], object]) -> float:
        """How long work on the legacy default stream takes on the card, by events around it."""
        first, last = (self.call("cuEventCreate", 0) for _ in range(2))
        try:
            self.call("cuEventRecord", first, LEGACY_STREAM)
            work()
            self.call("cuEventRecord", last, LEGACY_STREAM)
            self.call("cuEventSynchronize", last)
            return float(self.call("cuEventElapsedTime", first, last)) / 1000
        finally:
            for event in (first, last):
                self.call("cuEventDestroy", event)

    def copy_rate(self, size: int) -> float:
        """Bytes a second that a copy on the card reads and writes; the best of ten."""
        source, target = (int(self.call("cuMemAlloc", size)) for _ in range(2))
        try:
            copy = lambda: self.call("cuMemcpyDtoDAsync", target, source, size, LEGACY_STREAM)  # noqa: E731
            return 2 * size / min(self.seconds(copy) for _ in range(10))
        finally:
            for address in (source, target):
                self.call("cuMemFree", address)

    def peak(self, kind: str) -> float:
        """Operations a second of the matrix units; 0 where weft has no data."""
        rates = TENSOR_FLOPS.get(self.device.capability, {})
        clock = 1000 * self.device.attribute("CLOCK_RATE")
        return rates.get(kind, 0) * clock * self.device.attribute("MULTIPROCESSOR_COUNT")

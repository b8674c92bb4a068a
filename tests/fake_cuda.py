"""A CUDA driver without a card: the functions of ``cuda.bindings.driver`` over the emulator, as strict as the real ones.

Modules are PTX that the emulator parses, memory is NumPy's, and a launch runs in the emulator with the bytes of its parameters.
Calls fail with the CUresult that the CUDA driver API reference names: before cuInit, without a current context, with a handle of
another kind or context, beyond a card's limits. A fault of a kernel fails every later call of its context, as on a card.

Stricter than a card: parameters that overlap in memory are refused, since their offsets must be wrong.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import types
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from weft.emulator import Fault, LaunchError, Misaligned, Module, OutOfBounds, Profile, PTXError
from weft.emulator.machine.symbols import size_of
from weft.runtime import cuda_device, cuda_driver
from weft.runtime.cuda_driver import Driver, Result


class CUresult(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_INITIALIZED = 3
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_DEVICE = 101
    CUDA_ERROR_INVALID_CONTEXT = 201
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_INVALID_PTX = 218
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_INVALID_HANDLE = 400
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_ILLEGAL_ADDRESS = 700
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701
    CUDA_ERROR_MISALIGNED_ADDRESS = 716
    CUDA_ERROR_LAUNCH_FAILED = 719


class CUdevice_attribute(IntEnum):
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97


class CUfunction_attribute(IntEnum):
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class CUjit_option(IntEnum):
    CU_JIT_ERROR_LOG_BUFFER = 5
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6


class CUpointer_attribute(IntEnum):
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9


ENUMERATIONS: Final = (CUresult, CUdevice_attribute, CUfunction_attribute, CUjit_option, CUpointer_attribute)

EMULATE: Final = Module.launch
"""As it is before `benchmarks/gpu.py` puts another in its place."""

OK: Final = CUresult.CUDA_SUCCESS
CODES: Final[dict[type[Fault], CUresult]] = {
    OutOfBounds: CUresult.CUDA_ERROR_ILLEGAL_ADDRESS,
    Misaligned: CUresult.CUDA_ERROR_MISALIGNED_ADDRESS,
}
"""What a fault is to a card; others are CUDA_ERROR_LAUNCH_FAILED."""

DISABLE_TIMING: Final = 2
REGISTERS: Final = 40
"""Of a thread, of every function."""


class Refusal(Exception):
    """A call that fails."""

    def __init__(self, code: CUresult):
        super().__init__(code.name)
        self.code = code


@dataclass(frozen=True)
class Card:
    """A card's data."""

    name: str = "Imaginary A100"
    capability: tuple[int, int] = (8, 0)
    shared: int = 163 * 1024
    registers: int = 65536


class Handle(int):
    """A context, module, function, stream or event: a number, what it is of, and the context that it belongs to."""

    kind: str
    of: Any
    context: int


@dataclass
class Allocation:
    """Memory of a card."""

    card: int
    start: int
    bytes: NDArray[np.uint8]


@dataclass(frozen=True)
class Pointer:
    """An address for the emulator: an allocation's bytes, and how far into them."""

    array: NDArray[np.uint8]
    offset: int

    def encode(self, address: int) -> bytes:
        return (address + self.offset).to_bytes(8, "little")


@dataclass
class Launch:
    """A launch that has been made."""

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int
    stream: int
    card: int
    profile: Profile | None


@dataclass
class Function:
    """A kernel of a module."""

    module: Module
    name: str
    dynamic: int = 48 * 1024


class _Stack(threading.local):
    def __init__(self) -> None:
        self.contexts: list[Handle] = []


@dataclass
class FakeDriver:
    """``cuda.bindings.driver`` for imaginary cards; ``fail`` has the code that the next call of a function returns."""

    cards: Sequence[Card] = (Card(),)
    version: int = 12040
    fail: dict[str, CUresult] = field(default_factory=dict[str, CUresult])
    calls: Counter[str] = field(default_factory=Counter[str])
    launches: list[Launch] = field(default_factory=list[Launch])
    waits: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """Streams that were made to wait, and for which."""

    CUresult = CUresult
    CUdevice_attribute = CUdevice_attribute
    CUfunction_attribute = CUfunction_attribute
    CUjit_option = CUjit_option
    CUpointer_attribute = CUpointer_attribute

    def __post_init__(self) -> None:
        self.initialised = False
        self.memory: list[Allocation] = []
        self.broken: dict[int, CUresult] = {}
        self._stack = _Stack()
        self._handles = 0x1000
        self._contexts = [self._handle("context", number) for number in range(len(self.cards))]

    def __getattribute__(self, name: str) -> Any:
        """Each function with what all have in common: counts, failures on demand, codes."""
        value = super().__getattribute__(name)
        if not name.startswith("cu"):
            return value

        def called(*args: Any) -> Result:
            self.calls[name] += 1
            if (code := self.fail.pop(name, None)) is not None:
                return (code, None)
            free = ("cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString")
            if not self.initialised and name not in free:
                return (CUresult.CUDA_ERROR_NOT_INITIALIZED, None)
            try:
                result = value(*args)
            except Refusal as refusal:
                return (refusal.code, None)
            return (OK,) if result is None else (OK, result)

        return called

    def _handle(self, kind: str, of: Any, context: int = 0) -> Handle:
        self._handles += 16
        handle = Handle(self._handles)
        handle.kind, handle.of, handle.context = kind, of, context
        return handle

    def _check(self, handle: Any, kind: str) -> Any:
        """What a handle of this kind is of."""
        if not isinstance(handle, Handle) or handle.kind != kind:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_HANDLE)
        if handle.context and handle.context != int(self._current()):
            raise Refusal(CUresult.CUDA_ERROR_INVALID_HANDLE)
        return handle.of

    def _card(self, number: int) -> Card:
        return self.cards[number]

    def _current(self) -> Handle:
        if not self._stack.contexts:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_CONTEXT)
        current = self._stack.contexts[-1]
        if (code := self.broken.get(current.of)) is not None:
            raise Refusal(code)
        return current

    # ---- cards and contexts --------------------------------------------------------------------------------------------

    def cuInit(self, flags: int, /) -> Any:
        if flags:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
        if not self.cards:
            raise Refusal(CUresult.CUDA_ERROR_NO_DEVICE)
        self.initialised = True

    def cuDriverGetVersion(self) -> Any:
        return self.version

    def cuGetErrorName(self, error: Any, /) -> Any:
        return CUresult(error).name.encode()

    def cuGetErrorString(self, error: Any, /) -> Any:
        return CUresult(error).name.removeprefix("CUDA_ERROR_").replace("_", " ").lower().encode()

    def cuDeviceGetCount(self) -> Any:
        return len(self.cards)

    def cuDeviceGet(self, ordinal: int, /) -> Any:
        if not 0 <= ordinal < len(self.cards):
            raise Refusal(CUresult.CUDA_ERROR_INVALID_DEVICE)
        return self._handle("device", ordinal)

    def cuDeviceGetName(self, length: int, dev: Any, /) -> Any:
        return self._card(self._check(dev, "device")).name.encode().ljust(length, b"\0")

    def cuDeviceGetAttribute(self, attrib: Any, dev: Any, /) -> Any:
        card = self._card(self._check(dev, "device"))
        major, minor = card.capability
        return {12: card.registers, 13: 1_400_000, 16: 100, 75: major, 76: minor, 97: card.shared}[attrib]

    def cuDevicePrimaryCtxRetain(self, dev: Any, /) -> Any:
        number: int = self._check(dev, "device")
        return self._contexts[number]

    def cuCtxGetCurrent(self) -> Any:
        return self._stack.contexts[-1] if self._stack.contexts else Handle(0)

    def cuCtxPushCurrent(self, ctx: Any, /) -> Any:
        self._check(ctx, "context")
        self._stack.contexts.append(ctx)

    def cuCtxSetCurrent(self, ctx: Any, /) -> Any:
        self._check(ctx, "context")
        self._stack.contexts[-1:] = [ctx]

    def cuCtxPopCurrent(self) -> Any:
        if not self._stack.contexts:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_CONTEXT)
        return self._stack.contexts.pop()

    def cuCtxSynchronize(self) -> Any:
        self._current()

    # ---- memory ----------------------------------------------------------------------------------------------------------

    def cuMemAlloc(self, bytesize: int, /) -> Any:
        if bytesize <= 0:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
        return Handle(self.allocate(self._current().of, bytesize))

    def allocate(self, card: int, size: int) -> int:
        """The address of new memory of a card, a multiple of 256."""
        whole = np.zeros(size + 256, np.uint8)
        skip = -whole.ctypes.data % 256
        self.memory.append(Allocation(card, whole.ctypes.data + skip, whole[skip : skip + size]))
        return self.memory[-1].start

    def _find(self, address: int, size: int = 1) -> tuple[Allocation, int]:
        for allocation in self.memory:
            offset = int(address) - allocation.start
            if offset >= 0 and offset + size <= allocation.bytes.size:
                return allocation, offset
        raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)

    def cuMemFree(self, dptr: int, /) -> Any:
        self._current()
        self.memory.remove(self._find(dptr)[0])

    def cuMemcpyHtoD(self, target: int, source: int, size: int, /) -> Any:
        self._current()
        allocation, offset = self._find(target, size)
        ctypes.memmove(allocation.start + offset, source, size)

    def cuMemcpyDtoH(self, target: int, source: int, size: int, /) -> Any:
        self._current()
        allocation, offset = self._find(source, size)
        ctypes.memmove(target, allocation.start + offset, size)

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, stream: Any, /) -> Any:
        self._current()
        self._stream(stream)
        (to, there), (of, here) = self._find(target, size), self._find(source, size)
        ctypes.memmove(to.start + there, of.start + here, size)

    def cuPointerGetAttribute(self, attribute: Any, ptr: int, /) -> Any:
        CUpointer_attribute(attribute)
        return self._find(ptr)[0].card

    # ---- modules ---------------------------------------------------------------------------------------------------------

    def cuModuleLoadData(self, image: bytes, /) -> Any:
        return self._load(image, bytearray(1))

    def cuModuleLoadDataEx(self, image: bytes, count: int, options: Sequence[Any], values: Sequence[Any], /) -> Any:
        if not count == len(options) == len(values):
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
        given = dict(zip(map(CUjit_option, options), values, strict=True))
        log = given.get(CUjit_option.CU_JIT_ERROR_LOG_BUFFER, bytearray(1))
        if len(log) < given.get(CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 0):
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
        return self._load(image, log)

    def _load(self, image: bytes, log: bytearray) -> Any:
        context = self._current()
        if not image.endswith(b"\0"):
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
        try:
            module = Module(image[:-1].decode())
        except PTXError as error:
            said = f"ptxas application ptx input, {error}".encode()[: len(log) - 1]
            log[: len(said)] = said
            raise Refusal(CUresult.CUDA_ERROR_INVALID_PTX) from None
        version = next(line.split()[1] for line in module.ptx.splitlines() if line.startswith(".version"))
        major, minor = map(int, version.split("."))
        if 1000 * (major + 4) + 10 * minor > self.version:  # ISA 8.n came with CUDA 12.n
            raise Refusal(CUresult.CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
        target = module.syntax.target[0].removeprefix("sm_")
        capability = self._card(context.of).capability
        number = 10 * capability[0] + capability[1]
        if not (int(target[:-1]) == number if target.endswith("a") else int(target) <= number):
            raise Refusal(CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU)
        return self._handle("module", module, int(context))

    def cuModuleGetFunction(self, hmod: Any, name: bytes, /) -> Any:
        module: Module = self._check(hmod, "module")
        if name.decode() not in module.kernels:
            raise Refusal(CUresult.CUDA_ERROR_NOT_FOUND)
        return self._handle("function", Function(module, name.decode()), int(self._current()))

    def cuFuncSetAttribute(self, hfunc: Any, attrib: Any, value: int, /) -> Any:
        function: Function = self._check(hfunc, "function")
        if CUfunction_attribute(attrib) != CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
        if not 0 <= value <= self._card(self._current().of).shared:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
        function.dynamic = value

    def cuFuncGetAttribute(self, attrib: Any, hfunc: Any, /) -> Any:
        function: Function = self._check(hfunc, "function")
        return {4: REGISTERS, 8: function.dynamic}[CUfunction_attribute(attrib)]

    # ---- streams and launches --------------------------------------------------------------------------------------------

    def cuStreamCreate(self, flags: int, /) -> Any:
        return self._handle("stream", flags, int(self._current()))

    def _stream(self, stream: Any) -> int:
        if isinstance(stream, Handle):
            self._check(stream, "stream")
        elif stream not in (0, 1, 2) and int(stream) not in self.known_streams:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_HANDLE)
        return int(stream)

    known_streams: set[int] = field(default_factory=set[int])
    """Numbers of streams that other libraries have made."""

    def cuStreamSynchronize(self, stream: Any, /) -> Any:
        self._current()
        self._stream(stream)

    def cuEventCreate(self, flags: int, /) -> Any:
        if flags not in (0, DISABLE_TIMING):
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
        return self._handle("event", [flags], int(self._current()))

    def cuEventRecord(self, hEvent: Any, hStream: Any, /) -> Any:
        self._check(hEvent, "event")[1:] = [self._stream(hStream), time.perf_counter()]

    def cuEventSynchronize(self, hEvent: Any, /) -> Any:
        self._check(hEvent, "event")

    def cuEventElapsedTime(self, hStart: Any, hEnd: Any, /) -> Any:
        first, last = (self._check(event, "event") for event in (hStart, hEnd))
        if len(first) < 3 or len(last) < 3 or DISABLE_TIMING in (first[0], last[0]):
            raise Refusal(CUresult.CUDA_ERROR_INVALID_HANDLE)
        return 1000 * (last[2] - first[2])

    def cuEventDestroy(self, hEvent: Any, /) -> Any:
        self._check(hEvent, "event")

    def cuStreamWaitEvent(self, hStream: Any, hEvent: Any, flags: int, /) -> Any:
        if flags:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
        self.waits.append((self._stream(hStream), self._check(hEvent, "event")[1]))

    def cuLaunchKernel(
        self,
        f: Any,
        gx: int,
        gy: int,
        gz: int,
        bx: int,
        by: int,
        bz: int,
        shared: int,
        stream: Any,
        parameters: int,
        extra: int,
        /,
    ) -> Any:
        context = self._current()
        function: Function = self._check(f, "function")
        stream = self._stream(stream)
        grid, block = (gx, gy, gz), (bx, by, bz)
        small = min(*grid, *block) >= 1 and all(g <= m for g, m in zip(grid, (2**31 - 1, 65535, 65535), strict=True))
        if not small or bx * by * bz > 1024 or bz > 64 or not 0 <= shared <= function.dynamic or extra:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
        if REGISTERS * bx * by * bz > self._card(context.of).registers:
            raise Refusal(CUresult.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        arguments = [self._argument(data) for data in _parameters(function, parameters)]
        launch = Launch(function.name, grid, block, shared, stream, context.of, None)
        self.launches.append(launch)
        try:
            launch.profile = EMULATE(function.module, function.name, grid, block, arguments, shared=shared)
        except LaunchError:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE) from None
        except Fault as fault:  # the launch is over; who calls next is told
            self.broken[context.of] = CODES.get(type(fault), CUresult.CUDA_ERROR_LAUNCH_FAILED)

    def _argument(self, data: bytes) -> Any:
        """A parameter for the emulator: eight bytes that are an address of some memory point into it."""
        if len(data) == 8:
            address = int.from_bytes(data, "little")
            for allocation in self.memory:
                if allocation.start <= address <= allocation.start + allocation.bytes.size:
                    size = allocation.bytes.size
                    array = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(allocation.start))
                    return Pointer(array, address - allocation.start)
        return data


def _parameters(function: Function, pointers: int) -> list[bytes]:
    """The bytes of each parameter that an array of pointers leads to."""
    sizes = [size_of(parameter) for parameter in function.module.syntax.functions[function.name].parameters]
    if not sizes:
        return []
    if not pointers:
        raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
    starts = (ctypes.c_void_p * len(sizes)).from_address(pointers)
    places = sorted((start or 0, size) for start, size in zip(starts, sizes, strict=True))
    for (first, size), (second, _) in zip(places, places[1:], strict=False):
        if first + size > second:
            raise Refusal(CUresult.CUDA_ERROR_INVALID_VALUE)
    return [ctypes.string_at(start or 0, size) for start, size in zip(starts, sizes, strict=True)]


def install(patch: pytest.MonkeyPatch, driver: FakeDriver) -> FakeDriver:
    """Makes a driver the one that weft, and any other code, imports."""
    conforms: Driver = driver
    package = types.ModuleType("cuda")
    bindings = types.ModuleType("cuda.bindings")
    package.bindings, bindings.driver = bindings, conforms  # pyright: ignore[reportAttributeAccessIssue]
    for name, module in (("cuda", package), ("cuda.bindings", bindings), ("cuda.bindings.driver", driver)):
        patch.setitem(sys.modules, name, module)
    cuda_driver.load.cache_clear()
    cuda_device.device.cache_clear()
    return driver

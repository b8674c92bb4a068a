"""The CUDA driver as weft calls it: through cuda-bindings, which is imported at the first launch on a card.

`Driver` lists what weft uses of the module ``cuda.bindings.driver``, with that module's conventions: each function returns a
tuple that begins with the CUresult. Tests put an object of this shape in its place, which runs kernels in the emulator.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Protocol, TypeAlias, cast

from weft.runtime.errors import CudaError

Result: TypeAlias = tuple[Any, ...]
"""The CUresult, then what a function returns."""

MISSING: Final = (
    "arrays on a card need cuda-bindings, which is not installed: install weft[cuda]; weft.emulate(target) runs kernels on the "
    "CPU's arrays without a card"
)

_FAULTS: Final = frozenset({700, 714, 715, 716, 717, 718, 719})
"""CUresults that say what a kernel did wrong, in a launch before the call."""

_FAULT: Final = "; an earlier launch is the cause: weft.emulate finds the line of the kernel"


class Driver(Protocol):
    """The functions of ``cuda.bindings.driver`` that weft calls, and the enumerations that it names.

    Handles (devices, contexts, modules, functions, streams, events) are the module's own objects or integers.
    """

    CUdevice_attribute: Any
    CUfunction_attribute: Any
    CUjit_option: Any
    CUpointer_attribute: Any

    def cuInit(self, Flags: int, /) -> Result: ...
    def cuDriverGetVersion(self) -> Result: ...
    def cuGetErrorName(self, error: Any, /) -> Result: ...
    def cuGetErrorString(self, error: Any, /) -> Result: ...
    def cuDeviceGetCount(self) -> Result: ...
    def cuDeviceGet(self, ordinal: int, /) -> Result: ...
    def cuDeviceGetName(self, length: int, dev: Any, /) -> Result: ...
    def cuDeviceGetAttribute(self, attrib: Any, dev: Any, /) -> Result: ...
    def cuDevicePrimaryCtxRetain(self, dev: Any, /) -> Result: ...
    def cuCtxGetCurrent(self) -> Result: ...
    def cuCtxPushCurrent(self, ctx: Any, /) -> Result: ...
    def cuCtxPopCurrent(self) -> Result: ...
    def cuModuleLoadDataEx(
        self, image: bytes, numOptions: int, options: Sequence[Any], optionValues: Sequence[Any], /
    ) -> Result: ...
    def cuModuleGetFunction(self, hmod: Any, name: bytes, /) -> Result: ...
    def cuFuncSetAttribute(self, hfunc: Any, attrib: Any, value: int, /) -> Result: ...
    def cuFuncGetAttribute(self, attrib: Any, hfunc: Any, /) -> Result: ...
    def cuPointerGetAttribute(self, attribute: Any, ptr: int, /) -> Result: ...
    def cuEventCreate(self, Flags: int, /) -> Result: ...
    def cuEventRecord(self, hEvent: Any, hStream: Any, /) -> Result: ...
    def cuEventDestroy(self, hEvent: Any, /) -> Result: ...
    def cuStreamWaitEvent(self, hStream: Any, hEvent: Any, Flags: int, /) -> Result: ...
    def cuLaunchKernel(
        self,
        f: Any,
        gridDimX: int,
        gridDimY: int,
        gridDimZ: int,
        blockDimX: int,
        blockDimY: int,
        blockDimZ: int,
        sharedMemBytes: int,
        hStream: Any,
        kernelParams: int,
        extra: int,
        /,
    ) -> Result: ...


@cache
def load() -> Driver:
    """The driver, initialised. Raises: `CudaError` without cuda-bindings, without a driver, or without a card."""
    try:
        driver = cast(Driver, importlib.import_module("cuda.bindings.driver"))
    except ImportError:
        raise CudaError(MISSING) from None
    try:
        checked(driver, "cuInit", driver.cuInit(0))
    except CudaError:
        raise
    except RuntimeError as error:  # cuda-bindings finds no library of the driver
        raise CudaError(f"arrays on a card need NVIDIA's driver, which cannot be loaded: {error}") from None
    return driver


def checked(driver: Driver, call: str, result: Result) -> Any:
    """What a call returned behind its CUresult. Raises: `CudaError` for any but CUDA_SUCCESS."""
    if int(result[0]):
        raise error_of(driver, call, result[0])
    return result[1] if len(result) > 1 else None


def error_of(driver: Driver, call: str, code: Any, more: str = "") -> CudaError:
    """The error for a CUresult that a call returned."""
    name, text = (
        got[1].decode() if not int(got[0]) and isinstance(got[1], bytes) else ""
        for got in (driver.cuGetErrorName(code), driver.cuGetErrorString(code))
    )
    hint = _FAULT if int(code) in _FAULTS else ""
    return CudaError(f"{call}: {name or 'CUresult'} ({int(code)}): {text or 'unknown'}{more}{hint}", int(code))

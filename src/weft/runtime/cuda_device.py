"""A card: its limits, weft's target for it, and its modules.

weft works in the primary context of a card, which CuPy, PyTorch and JAX use too. The context is pushed for the duration of a call
where another is current, and popped afterwards: a library's own choice of card does not change. A module is loaded once for each
context, at the first launch of a specialisation.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Any, Final

from weft import target as targets
from weft.runtime.cuda_driver import Driver, checked, error_of, load
from weft.runtime.errors import CudaError
from weft.target import GpuTarget

OPT_IN: Final = 48 * 1024
"""Bytes of dynamic shared memory that a kernel may have without asking for more."""

_LOG: Final = 16 * 1024
"""Bytes of the driver's messages about a module."""

_TARGETS: Final[tuple[tuple[tuple[int, int], tuple[int, int], str], ...]] = (
    ((8, 0), (8, 6), "sm_80"),
    ((8, 6), (8, 9), "sm_86"),
    ((8, 9), (9, 0), "sm_89"),
    ((9, 0), (9, 1), "sm_90a"),
    ((9, 1), (1000, 0), "sm_90"),
)
"""From a compute capability to before another: the target whose PTX such cards run. Those after 9.0 get the PTX of sm_90, which
the driver compiles for them: PTX for an accelerated target runs on its own capability alone."""


def target_of(capability: tuple[int, int]) -> GpuTarget | None:
    """The target to compile for; None for a card that weft has none for."""
    return next((targets.gpu(name) for first, end, name in _TARGETS if first <= capability < end), None)


class Device:
    """A card by its number, with its primary context. Raises: `CudaError`."""

    def __init__(self, driver: Driver, number: int):
        self.driver = driver
        self.number = number
        count = checked(driver, "cuDeviceGetCount", driver.cuDeviceGetCount())
        if not 0 <= number < count:
            raise CudaError(f"found an array on card {number}, but the driver knows {count} cards")
        self._handle = checked(driver, "cuDeviceGet", driver.cuDeviceGet(number))
        name: bytes = checked(driver, "cuDeviceGetName", driver.cuDeviceGetName(256, self._handle))
        self.name = name.rstrip(b"\0").decode()
        self.capability = (self.attribute("COMPUTE_CAPABILITY_MAJOR"), self.attribute("COMPUTE_CAPABILITY_MINOR"))
        self.context = checked(driver, "cuDevicePrimaryCtxRetain", driver.cuDevicePrimaryCtxRetain(self._handle))
        self._context = int(self.context)
        self.most_shared = self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")
        self._modules: dict[str, Any] = {}
        self._lock = threading.Lock()

    def attribute(self, name: str) -> int:
        """An attribute by its name without ``CU_DEVICE_ATTRIBUTE_``."""
        key = getattr(self.driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(checked(self.driver, "cuDeviceGetAttribute", self.driver.cuDeviceGetAttribute(key, self._handle)))

    @cached_property
    def target(self) -> GpuTarget:
        """What kernels are compiled for. Raises: `CudaError` for a card older than all targets."""
        found = target_of(self.capability)
        if found is None:
            raise CudaError(
                f"card {self.number} ({self.name}) has compute capability {'.'.join(map(str, self.capability))}; weft compiles "
                "for 8.0 and later"
            )
        return found

    def enter(self) -> bool:
        """Makes the primary context the thread's current one; whether it had to be pushed, for `leave`."""
        driver = self.driver
        if int(checked(driver, "cuCtxGetCurrent", driver.cuCtxGetCurrent())) == self._context:
            return False
        checked(driver, "cuCtxPushCurrent", driver.cuCtxPushCurrent(self.context))
        return True

    def leave(self, pushed: bool) -> None:
        """Makes the context current that was so before `enter`."""
        if pushed:
            checked(self.driver, "cuCtxPopCurrent", self.driver.cuCtxPopCurrent())

    @contextmanager
    def current(self) -> Generator[None]:
        """Makes the primary context the thread's current one inside."""
        pushed = self.enter()
        try:
            yield
        finally:
            self.leave(pushed)

    def function(self, kernel: str, ptx: str, symbol: str, shared: int) -> Any:
        """The handle of a kernel of a module, allowed to have ``shared`` bytes of dynamic shared memory. Raises: `CudaError`."""
        driver = self.driver
        with self._lock, self.current():
            if ptx not in self._modules:
                self._modules[ptx] = self._load(kernel, ptx)
            module = self._modules[ptx]
            function = checked(driver, "cuModuleGetFunction", driver.cuModuleGetFunction(module, symbol.encode()))
            if shared > OPT_IN:
                key = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
                checked(driver, "cuFuncSetAttribute", driver.cuFuncSetAttribute(function, key, shared))
        return function

    def _load(self, kernel: str, ptx: str) -> Any:
        driver, options = self.driver, self.driver.CUjit_option
        _check_version(driver, kernel, ptx)
        log = bytearray(_LOG)
        keys = (options.CU_JIT_ERROR_LOG_BUFFER, options.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        result = driver.cuModuleLoadDataEx(ptx.encode() + b"\0", len(keys), keys, (log, len(log)))
        if int(result[0]):
            said = log.split(b"\0", 1)[0].decode(errors="replace").strip()
            more = f"; kernel '{kernel}' for card {self.number} ({self.name})"
            raise error_of(driver, "cuModuleLoadDataEx", result[0], f"{more}\n{said}" if said else more)
        return result[1]


def _check_version(driver: Driver, kernel: str, ptx: str) -> None:
    """Raises `CudaError` where the driver is older than the PTX: ISA 8.n came with CUDA 12.n, up to 8.5."""
    found = re.search(r"^\s*\.version (\d+)\.(\d+)", ptx, re.MULTILINE)
    if found is None or found[1] != "8":
        return
    version = int(checked(driver, "cuDriverGetVersion", driver.cuDriverGetVersion()))
    if version < 12000 + 10 * int(found[2]):
        raise CudaError(
            f"kernel '{kernel}' is PTX {found[1]}.{found[2]}, which drivers of CUDA 12.{found[2]} and later know; this driver is "
            f"of CUDA {version // 1000}.{version % 1000 // 10}: install a newer one"
        )


@cache
def device(number: int) -> Device:
    """The card of this number. Raises: `CudaError`."""
    return Device(load(), number)


def device_of_address(address: int) -> int:
    """The number of the card that has the memory at an address. Raises: `CudaError`."""
    driver = load()
    key = driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    return int(checked(driver, "cuPointerGetAttribute", driver.cuPointerGetAttribute(key, address)))

"""``triton.backends.driver``: what programs ask of the machine that runs kernels.

Streams and events mean nothing here: a launch has ended when it returns.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any, Final

from weft.runtime.events import Event
from weft.runtime.place import CURRENT
from weft.target import gpu
from weft.triton.backends.compiler import GPUTarget, current

SHARED: Final = 232448
"""Bytes of shared memory that a block may have, for programs that size their tiles by it: those of an H100."""


class DeviceInterface:
    """What `torch.cuda` offers to benchmarks."""

    Event = Event

    @staticmethod
    def synchronize(device: Any = None) -> None:
        """Does nothing: all work has ended."""

    @staticmethod
    def current_device() -> int:
        """The number of the only device."""
        return 0


def properties() -> dict[str, int]:
    """The sizes of the machine, by CUDA's names. Clock rates are zero: weft does not know them."""
    target = CURRENT.get() or gpu("sm_90")
    return {
        "max_shared_mem": target.model.scratch if CURRENT.get() else SHARED,
        "max_num_regs": 65536,
        "multiprocessor_count": os.cpu_count() or 1,
        "warpSize": 32,
        "sm_clock_rate": 0,
        "mem_clock_rate": 0,
        "mem_bus_width": 0,
    }


class Utilities:
    """``driver.active.utils``."""

    @staticmethod
    def get_device_properties(device: int = 0) -> dict[str, int]:
        """See `properties`."""
        return properties()

    @staticmethod
    def cuOccupancyMaxActiveClusters(function: Any, shared: int, num_ctas: int) -> int:
        """Clusters that run at once: as many as threads."""
        return os.cpu_count() or 1

    @staticmethod
    def unload_module(module: Any) -> None:
        """Does nothing: code is unloaded when no kernel holds it."""


class DriverBase:
    """The base of drivers; programs test for it."""

    @classmethod
    def is_active(cls) -> bool:
        """Whether the driver's machine is there."""
        return False


class CpuDriver(DriverBase):
    """The driver of weft: this machine's CPU, and GPUs in the emulator."""

    def __init__(self) -> None:
        self.utils = Utilities()

    @classmethod
    def is_active(cls) -> bool:
        """True."""
        return True

    def get_current_target(self) -> GPUTarget:
        """The machine that launches run on now."""
        return current()

    def get_active_torch_device(self) -> Any:
        """PyTorch's device for arguments: ``cuda:0`` where the CPU stands in for it, else ``torch.device("cpu")``.

        Raises: ImportError without PyTorch.
        """
        torch: Any = importlib.import_module("torch")
        return getattr(torch, "_weft_device", None) or torch.device("cpu")

    def get_current_device(self) -> int:
        """The number of the only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """Does nothing: there is one device."""

    def get_current_stream(self, device: Any = None) -> int:
        """The number of the only stream."""
        return 0

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """The compute capability that programs may count on: the emulated GPU's, 9.0 on the CPU."""
        emulated = CURRENT.get()
        return divmod(emulated.sm, 10) if emulated is not None else (9, 0)

    def get_device_interface(self) -> type[DeviceInterface]:
        """Events and `synchronize`, as ``torch.cuda`` has them."""
        return DeviceInterface

    def get_benchmarker(self) -> Callable[..., Any]:
        """The function that measures a kernel's time."""
        from weft.triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """Memory as large as a cache, to be overwritten between measurements."""
        import numpy as np

        return np.empty(1 << 20, np.uint8)

    def clear_cache(self, cache: Any) -> None:
        """Overwrites the memory."""
        cache[...] = 0

    def map_python_to_cpp_type(self, ty: str) -> str:
        """C's spelling of a type of a signature."""
        return _C_TYPES["*" if ty.startswith("*") else ty]

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments as they are: there are no tensor maps."""
        return args


class GPUDriver(CpuDriver):
    """The name that programs subclass."""


_C_TYPES: Final[dict[str, str]] = {
    "*": "void*",
    **{f"i{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}_t" for bits in (8, 16, 32, 64)},
    **{"u1": "uint8_t", "i1": "int8_t", "fp16": "double", "bf16": "double", "fp32": "double", "fp64": "double"},
}

"""Arrays in the memory of imaginary cards, as other libraries' arrays show themselves."""

from __future__ import annotations

import ctypes
import types
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from fake_cuda import FakeDriver
from weft import dtypes
from weft.runtime.memory import DLTensor


class OnCard:
    """Elements in a card's memory; no library's array yet."""

    def __init__(self, driver: FakeDriver, array: NDArray[Any], card: int = 0, offset: int = 0):
        self.array = np.ascontiguousarray(array)
        self.card = card
        self.address = driver.allocate(card, self.array.nbytes + offset) + offset if array.size else 0
        ctypes.memmove(self.address, self.array.ctypes.data, self.array.nbytes)

    def numpy(self) -> NDArray[Any]:
        """A copy of the elements as they are now."""
        result = np.empty_like(self.array)
        ctypes.memmove(result.ctypes.data, self.address, result.nbytes)
        return result


class Interface(OnCard):
    """An array with ``__cuda_array_interface__``; ``changes`` replace its entries."""

    def __init__(self, driver: FakeDriver, array: NDArray[Any], card: int = 0, offset: int = 0, **changes: Any):
        super().__init__(driver, array, card, offset)
        self.changes = changes

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.array.shape,
            "typestr": self.array.dtype.str,
            "data": (self.address, False),
            "version": 3,
            "strides": None,
            **self.changes,
        }


_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)

_CODES: Final = {"f": 2, "i": 0, "u": 1, "b": 6}


class DLPack(OnCard):
    """An array with ``__dlpack__`` of device type kDLCUDA; ``asked`` has the stream on which it shall be ready."""

    asked: ClassVar[list[Any]] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.card)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        self.asked.append(stream)
        if max_version is not None:
            raise TypeError("unexpected keyword argument 'max_version'")
        dtype = self.array.dtype
        code = 4 if dtype == dtypes.bfloat16.numpy else _CODES[dtype.kind]
        self._shape = (ctypes.c_int64 * self.array.ndim)(*self.array.shape)
        before = 64 if self.address else 0  # the data begin behind what the capsule points to
        start, bits = self.address - before, 8 * dtype.itemsize
        self._tensor = DLTensor(start, 2, self.card, self.array.ndim, code, bits, 1, self._shape, None, before)
        return _new_capsule(ctypes.addressof(self._tensor), b"dltensor", None)


class Tensor(OnCard):
    """A tensor of PyTorch, as far as kernels look."""

    def __init__(self, driver: FakeDriver, array: NDArray[Any], card: int = 0):
        super().__init__(driver, array, card)
        self.dtype = f"torch.{array.dtype}"
        self.device = types.SimpleNamespace(type="cuda", index=card)
        self.shape = array.shape

    def data_ptr(self) -> int:
        return self.address

    def stride(self) -> tuple[int, ...]:
        return tuple(stride // self.array.itemsize for stride in self.array.strides)


Tensor.__module__ = "torch"


class CupyArray(Interface):
    """An array of CuPy, as far as kernels look."""


CupyArray.__module__ = "cupy._core.core"


def fake_torch(streams: dict[int, int]) -> Any:
    """The part of PyTorch that is asked for a card's current stream."""

    def current_stream(card: int) -> Any:
        return types.SimpleNamespace(cuda_stream=streams[card])

    module: Any = types.ModuleType("torch")
    module.cuda = types.SimpleNamespace(current_stream=current_stream)
    return module


def fake_cupy(stream: int) -> Any:
    """The part of CuPy that is asked for the current stream."""
    current = types.SimpleNamespace(ptr=stream)
    module: Any = types.ModuleType("cupy")
    module.cuda = types.SimpleNamespace(get_current_stream=lambda: current)
    return module

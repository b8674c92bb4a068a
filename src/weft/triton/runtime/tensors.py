"""Arrays under another dtype, and stand-ins for arrays."""

from __future__ import annotations

import sys
from itertools import count
from typing import Any, cast

import numpy as np

from weft import dtypes
from weft.runtime.memory import is_numpy_array

_ADDRESSES = count(1 << 32, 1 << 32)


class MockTensor:
    """Stands for a tensor of ``dtype`` where a kernel is compiled without being run. Its address is made up."""

    def __init__(self, dtype: Any, shape: list[int] | None = None) -> None:
        self.dtype = dtype
        self.shape = [1] if shape is None else shape
        self._address = next(_ADDRESSES)

    @staticmethod
    def wrap_dtype(arg: Any) -> Any:
        """A stand-in for a dtype of PyTorch or NumPy; other values as they are."""
        if type(arg).__name__ == "dtype" and type(arg).__module__ == "torch":
            return MockTensor(arg)
        return np.empty(1, cast("Any", arg)) if isinstance(arg, np.dtype) else arg

    def stride(self) -> tuple[int, ...]:
        """The strides of a contiguous tensor, in elements."""
        strides = [1]
        for size in self.shape[:0:-1]:
            strides.append(strides[-1] * size)
        return tuple(reversed(strides))

    def data_ptr(self) -> int:
        """An address that is a multiple of 16."""
        return self._address

    @staticmethod
    def ptr_range() -> int:
        """0: no bytes lie behind the address."""
        return 0


class TensorWrapper:
    """A tensor whose elements kernels take for ``dtype``; ``base`` is the tensor."""

    def __init__(self, base: Any, dtype: Any) -> None:
        self.base = base
        self.dtype = dtype
        self.data = base.data
        self.shape = base.shape

    @property
    def device(self) -> Any:
        """The device of the tensor, as programs are told of it."""
        place = self.base.device
        shown = getattr(sys.modules.get("torch"), "_weft_device", None)
        return shown if shown is not None and place.type == "cpu" else place

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.base.data_ptr()

    def stride(self, *args: Any) -> Any:
        """The strides in elements."""
        return self.base.stride(*args)

    def element_size(self) -> int:
        """The bytes of an element."""
        return self.base.element_size()

    def cpu(self) -> TensorWrapper:
        """A copy in the CPU's memory."""
        return TensorWrapper(self.base.cpu(), self.dtype)

    def copy_(self, other: Any) -> None:
        """Copies the elements of another."""
        self.base.copy_(other.base)

    def clone(self) -> TensorWrapper:
        """A copy."""
        return TensorWrapper(self.base.clone(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        """A copy on a device."""
        return TensorWrapper(self.base.to(device), self.dtype)

    def new_empty(self, sizes: Any) -> TensorWrapper:
        """Another of these sizes."""
        return TensorWrapper(self.base.new_empty(sizes), self.dtype)

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


class ArrayWrapper(TensorWrapper):
    """A NumPy array whose elements kernels take for a dtype that NumPy does not have."""

    def data_ptr(self) -> int:
        """The address of the first element."""
        return int(self.base.ctypes.data)

    def stride(self, *args: Any) -> Any:
        """The strides in elements."""
        strides = tuple(step // self.base.itemsize for step in self.base.strides)
        return strides[args[0]] if args else strides

    def element_size(self) -> int:
        """The bytes of an element."""
        return int(self.base.itemsize)


def reinterpret(tensor: Any, dtype: Any) -> Any:
    """The tensor with elements of another dtype of the same size. NumPy arrays give views, where NumPy has the dtype."""
    if isinstance(tensor, TensorWrapper):
        return tensor.base if dtype == tensor.base.dtype else TensorWrapper(tensor.base, dtype)
    if is_numpy_array(tensor):
        if isinstance(dtype, dtypes.DType) and dtype.saturates:
            if tensor.itemsize != dtype.itemsize:
                raise TypeError(f"Cannot reinterpret {tensor.dtype} as {dtype}: the sizes differ")
            return ArrayWrapper(tensor, dtype)
        return tensor.view(dtype.numpy if isinstance(dtype, dtypes.DType) else dtype)
    if hasattr(tensor, "data_ptr"):
        return TensorWrapper(tensor, dtype)
    raise TypeError(f"Cannot reinterpret a {type(tensor)}.")

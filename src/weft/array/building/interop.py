"""Arrays of other libraries as NumPy arrays, without copying where the memory allows it.

No library but NumPy is imported: an object is known by what it offers. DLPack comes before ``__array__``, since it never
copies; it is read by `weft.runtime.memory`, because NumPy's own reader refuses bfloat16 and float8. Gradients, lazy conjugation
and other devices are refused by the libraries themselves, with their own messages.
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from weft.runtime.memory import Memory, MemoryRefused, dlpack_memory


def is_array(value: object) -> bool:
    """Whether the value is an array of some library."""
    if isinstance(value, (np.generic, type)):
        return False
    return isinstance(value, np.ndarray) or any(
        hasattr(value, name) for name in ("__dlpack__", "__array__", "__array_interface__", "__cuda_array_interface__")
    )


def read(value: object) -> NDArray[Any]:
    """An array of any library as NumPy's; `TypeError` where its memory cannot be read from the CPU."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("asarray found a masked array, whose mask it would ignore; pass .data or .filled()")
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(cast(Any, value)).view()  # an array's shape and type can be changed in place
    if hasattr(value, "__cuda_array_interface__"):
        raise TypeError("asarray found an array in CUDA memory; copy it to the CPU first")
    refusal: Exception | None = None
    if hasattr(value, "__dlpack__"):
        try:
            return _share(dlpack_memory(value))
        except (MemoryRefused, BufferError, RuntimeError, TypeError) as error:
            refusal = error
    if hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        return np.asarray(cast(Any, value))
    raise TypeError(f"asarray cannot read a {type(value).__name__}: {refusal}")


class _Lent:
    """Memory in NumPy's own protocol; the array made of it keeps the owner alive."""

    def __init__(self, memory: Memory) -> None:
        self.owner = memory.owner
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "shape": memory.shape,
            "strides": memory.strides,
            "data": (memory.address, memory.read_only),
            "typestr": f"|V{memory.dtype.itemsize}",
        }


def _share(memory: Memory) -> NDArray[Any]:
    if memory.extent is not None and memory.extent[0] == memory.extent[1]:
        return np.empty(memory.shape or (), memory.dtype.numpy)
    return np.asarray(_Lent(memory)).view(memory.dtype.numpy)


def lend(array: NDArray[Any], keywords: dict[str, Any]) -> Any:
    """A DLPack capsule of a result. Consumers from before DLPack 1.0 cannot be told that memory is read-only, and get a
    copy. `BufferError` for the types of ml_dtypes, which NumPy does not export."""
    if array.dtype.isbuiltin != 1:
        raise BufferError(f"NumPy exports no {array.dtype} through DLPack; pass array.numpy()")
    try:
        return array.__dlpack__(**keywords)
    except BufferError:
        if array.flags.writeable:
            raise
        return array.copy().__dlpack__(**keywords)

"""Tensors as native code reads them: DLPack's exchange interface.

A type whose library has the interface names in ``__dlpack_c_exchange_api__`` a table of C functions (dlpack.h,
``DLPackExchangeAPI``). One of them describes a tensor without taking part in its ownership, in some 30 ns: where its elements
are, shape, strides, dtype and device. PyTorch 2.13 has it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, Final, cast

from weft.runtime.memory import DLTensor, capsule_pointer

_NAME: Final = b"dlpack_exchange_api"
_MAJOR: Final = 1
"""The version of DLPack whose table this is."""
_READ: Final = 40
"""The byte offset of ``dltensor_from_py_object_no_sync`` in the table."""


def is_tensor(kind: type) -> bool:
    """Whether instances are tensors of PyTorch that are nothing but memory; a subclass may be anything."""
    torch = sys.modules.get("torch")
    known = hasattr(getattr(torch, "_C", None), "TensorBase")
    return known and kind in (torch.Tensor, torch.nn.Parameter)  # pyright: ignore[reportOptionalMemberAccess]


def modes() -> Callable[[], bool] | None:
    """PyTorch's function that says whether function modes are active (`torch.set_default_device` is one): then the methods of
    tensors run Python. None where it has none."""
    torch = sys.modules.get("torch")
    return getattr(getattr(torch, "_C", None), "_is_torch_function_mode_enabled", None)


@cache
def reader(kind: type) -> int:
    """The address of the function that describes a type's instances, 0 where it has none."""
    if not is_tensor(kind) or modes() is None:
        return 0
    try:
        table = capsule_pointer(getattr(kind, "__dlpack_c_exchange_api__", None), _NAME)
    except ValueError:  # no such capsule
        return 0
    if ctypes.c_uint32.from_address(table).value != _MAJOR:
        return 0
    return ctypes.c_void_p.from_address(table + _READ).value or 0


def dtype_word(tensor: Any) -> int:
    """A tensor's dtype as DLPack writes it: 8 bits of the kind, 8 of the bits and 16 of the lanes."""
    kind = cast("type[object]", type(tensor))
    read = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DLTensor))(reader(kind))
    found = DLTensor()
    read(tensor, ctypes.byref(found))
    return found.code | found.bits << 8 | found.lanes << 16

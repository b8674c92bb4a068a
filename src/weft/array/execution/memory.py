"""Memory for results, reused when no array over it is left.

Large blocks go back to a small pool when the last array over them is deleted. `np.empty` would be slower: the operating system
provides large memory page by page and zeroed, which costs more than a cheap kernel that fills it.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from weft.array.expression.nodes import Input

SMALLEST: Final = 1 << 20
"""Bytes below which memory is not worth keeping."""

KEPT: Final = 1 << 28
"""Bytes of unused memory that the pool keeps at most."""

_ALIGNMENT: Final = 64


class _Pool:
    """Blocks by size. A thread may come back to it from within: whatever allocates may collect garbage, and arrays with it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._blocks: dict[int, list[NDArray[np.uint8]]] = {}
        self._size = 0

    def take(self, size: int) -> NDArray[np.uint8]:
        with self._lock:
            if blocks := self._blocks.get(size):
                block = blocks.pop()
                self._size -= size
                return block
        return np.empty(size + _ALIGNMENT, np.uint8)

    def give(self, block: NDArray[np.uint8]) -> None:
        size = block.nbytes - _ALIGNMENT
        with self._lock:
            if self._size + size > KEPT:  # sizes that are no longer asked for must not stay
                self._blocks.clear()
                self._size = 0
            if size <= KEPT:
                self._size += size
                self._blocks.setdefault(size, []).append(block)


_pool: Final = _Pool()


class _Lease:
    """What an array over pooled memory keeps alive; gives the block back in the end."""

    def __init__(self, block: NDArray[np.uint8], size: int) -> None:
        self._block = block
        start: int = block.ctypes.data
        address = (start + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}

    def __del__(self) -> None:
        _pool.give(self._block)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """A row-major array of arbitrary contents, aligned to 64 bytes where it is large."""
    return maker(shape, dtype)()


def maker(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[], NDArray[Any]]:
    """`empty` for one shape and dtype."""
    size = math.prod(shape) * dtype.itemsize
    if size < SMALLEST:
        return partial(np.empty, shape, dtype)
    return lambda: np.asarray(_Lease(_pool.take(size), size)).view(dtype).reshape(shape)


class _ArrayInterface(ctypes.Structure):
    """What NumPy's ``__array_struct__`` points at (PyArrayInterface)."""

    _fields_ = (
        ("two", ctypes.c_int),
        ("nd", ctypes.c_int),
        ("typekind", ctypes.c_char),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
    )


_DATA: Final = _ArrayInterface.data.offset
_field: Final = ctypes.c_void_p.from_address
_pointer: Final = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _by_protocol(array: NDArray[Any]) -> int:
    """`address_of` by NumPy's protocol, in 0.8 us."""
    return _field(_pointer(array.__array_struct__, None) + _DATA).value or 0


_FIRST: Final = object.__basicsize__


def _by_field(array: NDArray[Any]) -> int:
    """`address_of` by the first field of NumPy's array object (``PyArrayObject_fields.data``), in 0.1 us. C extensions are
    compiled with the place of that field, so NumPy cannot move it without a new ABI."""
    return _field(id(array) + _FIRST).value or 0


def _known_fields() -> bool:
    """Whether arrays of this interpreter lie as `_by_field` reads them."""
    probe = np.arange(6, dtype=np.int16)
    views = (probe, probe[1:], probe[::-2], probe.reshape(2, 3).T, probe[2:2])
    return sys.implementation.name == "cpython" and all(_by_field(view) == _by_protocol(view) for view in views)


address_of: Final[Callable[[NDArray[Any]], int]] = _by_field if _known_fields() else _by_protocol
"""The address of an array's first element."""


def located(node: Input) -> int:
    """The address of an input's data, which the node keeps from now on."""
    address = address_of(cast("NDArray[Any]", node.array))
    object.__setattr__(node, "address", address)
    return address

"""Memory for results, reused when no array over it is left.

Large blocks go back to a small pool when the last array over them is deleted. `np.empty` would be slower: the operating system
provides large memory page by page and zeroed, which costs more than a cheap kernel that fills it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from weft.array.expression.nodes import Input
from weft.runtime.addresses import address_of

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


def located(node: Input) -> int:
    """The address of an input's data, which the node keeps from now on."""
    address = address_of(cast("NDArray[Any]", node.array))
    object.__setattr__(node, "address", address)
    return address

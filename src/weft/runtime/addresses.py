"""Where the elements of NumPy arrays are.

Every launch asks for the address of each array. NumPy says it in ``array.ctypes.data`` (1.5 us), ``__array_interface__`` (1 us),
or through the buffer protocol (0.4 us, writable arrays of NumPy's own types only). So weft reads it from the array object, in
0.07 us: ``data`` is the first field of ``PyArrayObject``, behind Python's object head, which is part of NumPy's binary
interface (numpy/ndarraytypes.h). A few arrays are compared when weft is imported; where they do not agree, or ``id`` is no
address, `address_of` asks NumPy.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray


def _asked(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _words() -> memoryview | None:
    """The process's memory behind the head of an object at 0, as words: word ``id(array) >> 3`` is the array's address. None
    where that cannot be."""
    if sys.implementation.name != "cpython":
        return None
    try:
        memory = (ctypes.c_uint64 * 2**59).from_address(object.__basicsize__)
    except OverflowError:  # addresses of 32 bits
        return None
    words = memoryview(memory).cast("B").cast("Q").toreadonly()
    samples = np.zeros((3, 4)), np.zeros(5, np.int8)[1:], np.zeros((0, 2), np.int16), np.arange(12.0).reshape(3, 4).T
    return words if all(words[id(sample) >> 3] == _asked(sample) for sample in samples) else None


WORDS: Final = _words()
"""Addresses of arrays by ``id(array) >> 3``, None where only `address_of` knows them. Only for arrays that are alive."""


def _read(array: NDArray[Any]) -> int:
    assert WORDS is not None, "chosen below"
    return WORDS[id(array) >> 3]


address_of: Final[Callable[[NDArray[Any]], int]] = _asked if WORDS is None else _read
"""The address of an array's first element; of any array, empty, read-only and strided ones included."""

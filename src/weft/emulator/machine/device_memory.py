"""Arrays that have an address before there is a launch: for structures and tables that hold pointers.

An argument gets its address when its kernel is launched. Where addresses are part of the data (a kernel's parameters by value,
the table of pointers of a grouped product), the host needs them earlier. A `DeviceMemory` gives each of its arrays an address
that stays the same in all launches that have it as ``memory=``. These addresses have a window of their own, so that a launch
without it faults at the first use.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from weft.emulator.memory.arena import PAGE
from weft.emulator.memory.host import DEVICE
from weft.emulator.memory.multicast import MULTICAST, Multicast


@dataclass(frozen=True)
class Scratch:
    """An array whose contents the kernel must not rely on: reading a byte of it before writing it is a fault."""

    array: NDArray[Any]


@dataclass(frozen=True)
class Placed:
    """An array of a `DeviceMemory`: the host's bytes from ``low`` to ``high`` begin at ``address``."""

    name: str
    low: int
    high: int
    address: int
    array: NDArray[Any]
    defined: bool


class DeviceMemory:
    """Named arrays with addresses: what a kernel reaches through pointers in structures and in other arrays.

        memory = DeviceMemory(a=a, b=b)
        table = np.array([memory.address_of(a), memory.address_of(b)], np.uint64)
        module.launch("grouped", 2, 128, [table], memory=memory)

    A launch copies the arrays in and back, as it does its arguments. An array that is an argument too, or a view of one here, has
    the address that it has here. `Scratch` around an array says that it holds nothing yet.

    Raises: ValueError for a name that is taken, an array of objects, and arrays that share bytes.
    """

    def __init__(self, **arrays: NDArray[Any] | Scratch) -> None:
        self._placed: dict[str, Placed] = {}
        self._multicasts: list[Multicast] = []
        self._end = PAGE
        for name, array in arrays.items():
            self.add(name, array)

    @property
    def placed(self) -> tuple[Placed, ...]:
        """All arrays, in the order of their addresses."""
        return tuple(self._placed.values())

    def add(self, name: str, array: NDArray[Any] | Scratch) -> int:
        """One more array, under a name that messages use; its address."""
        given = array.array if isinstance(array, Scratch) else array
        if name in self._placed:
            raise ValueError(f"DeviceMemory: there is an array '{name}' already")
        if given.dtype.hasobject:
            raise ValueError(
                f"DeviceMemory: '{name}' is an array of Python objects, which have no bytes a kernel could read"
            )
        low, high = bounds(given)
        for other in self._placed.values():
            if low < other.high and other.low < high:
                raise ValueError(
                    f"DeviceMemory: '{name}' and '{other.name}' share bytes; add the array that both are views of"
                )
        start = self._end + (low - owner(given)) % PAGE
        self._placed[name] = Placed(name, low, high, DEVICE + start, given, not isinstance(array, Scratch))
        self._end = (-(-(start + high - low) // PAGE) + 1) * PAGE
        return self.address_of(name)

    def address_of(self, array: NDArray[Any] | str) -> int:
        """The address of an array's first element, or of the array of a name: an integer, for a table or a structure's field.

        Raises: ValueError for an array that is not inside one of these.
        """
        if isinstance(array, str):
            if array not in self._placed:
                raise ValueError(f"DeviceMemory: there is no array '{array}', but {self._names()}")
            found, first = self._placed[array], self._placed[array].array.ctypes.data
        else:
            first = array.ctypes.data
            inside = self.around(*bounds(array))
            if inside is None:
                raise ValueError(f"DeviceMemory: the array is no part of {self._names()}; add it first")
            found = inside
        return found.address + first - found.low

    @property
    def multicasts(self) -> tuple[Multicast, ...]:
        """The multicast objects there are."""
        return tuple(self._multicasts)

    def multicast(self, *arrays: NDArray[Any] | str) -> int:
        """The address of a new multicast object over arrays of this memory, for ``multimem``: what that does at an offset from
        this address, it does at that offset of each array. On hardware they are of several devices.

            memory = DeviceMemory(mine=mine, other=other)
            module.launch("all_reduce", 1, 128, [memory.multicast("mine", "other")], memory=memory)

        Raises: ValueError for arrays that are not in this memory, not contiguous, of different sizes, or that share bytes.
        """
        ranges: list[tuple[int, int]] = []
        for given in arrays:
            array = self._placed[given].array if isinstance(given, str) and given in self._placed else given
            start = self.address_of(given)
            if isinstance(array, str) or not array.flags.c_contiguous:
                raise ValueError("DeviceMemory: an array of a multicast object must be contiguous")
            ranges.append((start, start + array.nbytes))
        sizes = {high - low for low, high in ranges}
        if len(sizes) != 1 or 0 in sizes:
            raise ValueError(f"DeviceMemory: the arrays of a multicast object have one size, got {sorted(sizes)} bytes")
        ranges.sort()
        if any(low < high for (_, high), (low, _) in itertools.pairwise(ranges)):
            raise ValueError("DeviceMemory: arrays of a multicast object share bytes")
        (size,) = sizes
        last = self._multicasts[-1] if self._multicasts else Multicast(MULTICAST, 0, ())
        address = last.address + (-(-last.size // PAGE) + 1) * PAGE
        self._multicasts.append(Multicast(address, size, tuple(self.address_of(array) for array in arrays)))
        return address

    def around(self, low: int, high: int) -> Placed | None:
        """The array that has all the host's bytes from ``low`` to ``high``; None if none has."""
        return next((p for p in self._placed.values() if p.low <= low and high <= p.high), None)

    def _names(self) -> str:
        return ", ".join(f"'{name}'" for name in self._placed) or "any array: it is empty"


def bounds(array: NDArray[Any]) -> tuple[int, int]:
    """The host's bytes of an array: the first, and one past the last."""
    return byte_bounds(array) if array.size else (array.ctypes.data, array.ctypes.data)


def owner(array: NDArray[Any]) -> int:
    """Where the array begins that an array is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return bounds(array)[0]

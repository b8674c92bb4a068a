"""The flat memory a kernel sees: nothing but the argument arrays.

A pointer is an int64 byte address, so pointer arithmetic, casts, comparisons and selects between pointers are integer
operations. The addresses are the arrays' own: two views of one array overlap here exactly as they do in the process,
and a non-contiguous view includes the elements between its own (a native kernel reaches these, too). Each element of
an access must lie inside one extent, else nothing is read or written and `OutOfBoundsError` is raised.
"""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.array_utils import byte_bounds
from xdsl.ir import Operation

from weft.dtypes import DType
from weft.ir.location import describe
from weft.reference.numbers import Array


@dataclass(frozen=True)
class Site:
    """The op that accesses memory and the program (x, y, z) that executes it."""

    op: Operation
    program: tuple[int, int, int]

    def __str__(self) -> str:
        return f"{self.op.name} at {describe(self.op)}, program {self.program}"


class OutOfBoundsError(IndexError):
    """An access outside the argument arrays, or a write to a read-only one.

    ``site`` says where, ``address`` is the first offending byte address and ``element`` its index in the tile.
    """

    def __init__(self, site: Site, address: int, element: tuple[int, ...], size: int, reason: str):
        self.site = site
        self.address = address
        self.element = element
        super().__init__(f"{site}: element {element} accesses {size} bytes at {address:#x}, {reason}")


@dataclass(frozen=True)
class Extent:
    """Bytes ``start <= address < stop`` of the process, seen as uint8."""

    start: int
    stop: int
    writable: bool
    data: Array

    @staticmethod
    def of(start: int, stop: int, writable: bool) -> Extent:
        """The extent over memory that the caller keeps alive."""
        raw = (ctypes.c_uint8 * (stop - start)).from_address(start)
        return Extent(start, stop, writable, np.ctypeslib.as_array(raw))


class Memory:
    """The union of the arrays' extents; overlapping ones are joined, and writable if one of them is."""

    def __init__(self, arrays: Sequence[Array]):
        self._arrays = tuple(arrays)  # kept alive: the extents only borrow their memory
        joined: list[tuple[int, int, bool]] = []
        for start, stop, writable in sorted((*byte_bounds(a), a.flags.writeable) for a in self._arrays if a.size):
            if joined and start < joined[-1][1]:
                first, last, before = joined[-1]
                joined[-1] = (first, max(last, stop), before or writable)
            else:
                joined.append((start, stop, writable))
        self._extents = [Extent.of(*bound) for bound in joined]
        self._starts = [extent.start for extent in self._extents]
        self.changes = 0
        """How many writes have changed what is in memory."""

    def read(self, site: Site, addresses: Array, dtype: DType, mask: Array) -> Array:
        """The elements at ``addresses`` where ``mask`` holds, 0 elsewhere. A bool is any byte but 0."""
        result = np.zeros((addresses.size, dtype.itemsize), np.uint8)
        lanes = np.flatnonzero(mask)
        for extent, where, at in self._locate(site, addresses, lanes, dtype.itemsize, writing=False):
            result[where] = extent.data[at]
        values = result if dtype.is_bool else result.view(dtype.storage)
        return (values != 0 if dtype.is_bool else values).reshape(addresses.shape)

    def write(self, site: Site, addresses: Array, values: Array, mask: Array) -> None:
        """Stores ``values`` where ``mask`` holds; of elements that meet at an address the last one in row-major order
        stays."""
        data = np.ascontiguousarray(values).reshape(-1, 1).view(np.uint8)
        lanes = np.flatnonzero(mask)
        for extent, where, at in self._locate(site, addresses, lanes, values.itemsize, writing=True):
            self.changes += bool((extent.data[at] != data[where]).any())
            extent.data[at] = data[where]

    def check(self, site: Site, addresses: Array, size: int, mask: Array, *, writing: bool) -> None:
        """Raises unless every element where ``mask`` holds lies in an extent (when ``writing``, in a writable one)."""
        self._locate(site, addresses, np.flatnonzero(mask), size, writing=writing)

    def _locate(
        self, site: Site, addresses: Array, lanes: Array, size: int, *, writing: bool
    ) -> list[tuple[Extent, Array, Array]]:
        """For each extent the lanes of the tile that fall into it and their byte indices ``[lane, size]``."""
        flat = addresses.reshape(-1)
        found: list[tuple[Extent, Array, Array]] = []
        while lanes.size:
            at = flat[lanes]
            extent = self._extents[bisect_right(self._starts, at[0]) - 1] if self._extents else None
            if extent is None or not extent.start <= at[0] <= extent.stop - size:
                raise self._error(site, addresses, lanes[0], size, "outside every argument")
            inside = (at >= extent.start) & (at <= extent.stop - size)
            if writing and not extent.writable:
                raise self._error(site, addresses, lanes[0], size, "which is read-only")
            found.append((extent, lanes[inside], at[inside, None] - extent.start + np.arange(size)))
            lanes = lanes[~inside]
        return found

    @staticmethod
    def _error(site: Site, addresses: Array, lane: int, size: int, reason: str) -> OutOfBoundsError:
        element = tuple(int(i) for i in np.unravel_index(lane, addresses.shape))
        return OutOfBoundsError(site, int(addresses[element]), element, size, reason)

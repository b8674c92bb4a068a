"""Multicast objects: an address that stands for the same place in each of several arrays (CUDA's ``cuMulticastCreate``).

On hardware the arrays are memory of several devices. The emulator has one device, so a launch does what one of them does: the
others' arrays are there with what they hold, and instructions of `multimem` read or change all of them. A program of n devices is
n launches, one for each rank; what one launch waits for from another must be there before.

Multicast addresses have a window of their own without memory behind it: ld, st and atom of one, which the ISA leaves undefined,
are out of bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.memory.arena import PAGE

MULTICAST: Final = 0x30_0000_0000
"""Where the addresses of multicast objects begin."""

MULTICAST_END: Final = 0x40_0000_0000


@dataclass(frozen=True)
class Multicast:
    """``size`` bytes at ``address`` for those at each of ``replicas``, addresses of a `DeviceMemory`."""

    address: int
    size: int
    replicas: tuple[int, ...]


def objects_of(
    objects: Sequence[Multicast], addresses: NDArray[np.uint64]
) -> Iterator[tuple[Multicast | None, NDArray[np.intp], NDArray[np.uint64]]]:
    """The addresses (N,) by object: (the object, or None for addresses of none, places in ``addresses``, offsets from the
    object's begin). The bytes up to a page behind an object count as its own: they are behind its replicas, too."""
    rest = np.ones(addresses.shape, np.bool_)
    for found in objects:
        offsets = addresses - np.uint64(found.address)  # of addresses below it huge
        inside = offsets < np.uint64(found.size + PAGE)
        if inside.any():
            rest &= ~inside
            where = inside.nonzero()[0]
            yield found, where, offsets[where]
    if rest.any():
        where = rest.nonzero()[0]
        yield None, where, addresses[where]

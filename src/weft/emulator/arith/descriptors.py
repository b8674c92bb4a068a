"""Where wgmma finds a matrix in shared memory: the 64-bit matrix descriptor, and the address of each 16 bytes of the matrix.

The ISA draws eight canonical layouts, two majors times four swizzles. In units of 16 bytes they are two formulas with four
numbers. A matrix operand is ``rows`` rows (of A: M; columns of B: N) by K. An *atom* is 8 lines of ``span`` bytes, one after
the other (``span`` is 16 without swizzle). Definition, of the address before the swizzle, relative to the start:

    K-major     the units of row r along K, 16 bytes each, are u = 0, 1, ...
                    no swizzle   16 (r % 8)   + SBO (r / 8) + LBO u
                    swizzle      span (r % 8) + SBO (r / 8) + 16 u
    MN-major    line k has the rows, 8 of 16 bits to a unit: u = 0, 1, ...; W = span / 16 units make an atom's width
                    no swizzle   16 (k % 8)   + LBO (k / 8) + SBO u
                    swizzle      span (k % 8) + SBO (k / 8) + 16 (u % W) + LBO (u / W)

Of the swizzle with atoms of 32 bytes, which sm_100 has for MN-major matrices, 4 lines make an atom (r % 4 and r / 4).
LBO and SBO are the descriptor's leading and stride byte offset; a swizzled K-major matrix does not use LBO. The swizzle is
`weft.emulator.arith.swizzle` on the absolute address, so a descriptor may start inside an atom, at a later unit. Where the
pattern does not begin at a multiple of its period, ``base_offset`` says at which 128-byte line of memory, modulo 8; lines are
then counted from there.

    bits   0-13 start / 16   16-29 LBO / 16   32-45 SBO / 16   49-51 base offset   62-63 swizzle: none, 128B, 64B, 32B

    0x4000004000010040: start 0x400, LBO 16, SBO 1024, 128B. K-major, the first units of rows 0, 1, 8, 9 are at
    0x400, 0x490 (line 1 of the atom, unit 0 ^ 1), 0x800, 0x890.

Sources: PTX ISA 9.7.15.5.1.2, "Shared Memory Matrix Layout": "Strides", "Canonical Layouts", "Matrix Descriptor Format". The
prose on strides and the table of canonical layouts differ for MN-major without swizzle; the table is meant (its worked example,
and CUTLASS, agree with it).

Not said by the ISA, and defined here: bits it does not mention are ignored, and a sum beyond 2^18 does not wrap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.swizzle import Swizzle

UNIT: Final = 16
"""Bytes that are never torn apart."""

_MODES: Final = (Swizzle.NONE, Swizzle.B128, Swizzle.B64, Swizzle.B32)


@dataclass(frozen=True)
class Descriptor:
    """A matrix descriptor, decoded; all in bytes but ``base_offset``, which counts 128-byte lines."""

    start: int
    leading: int
    stride: int
    base_offset: int
    swizzle: Swizzle

    @classmethod
    def decode(cls, bits: int) -> Descriptor:
        """The fields of a 64-bit descriptor."""
        field = [(bits >> low & 0x3FFF) << 4 for low in (0, 16, 32)]
        return cls(field[0], field[1], field[2], bits >> 49 & 7, _MODES[bits >> 62 & 3])

    def k_major(self, rows: int, units: int = 2) -> NDArray[np.int64]:
        """Addresses of the units of a K-major matrix, (rows, units): ``units`` times 16 bytes along K."""
        return self._swizzled(_k_major(self.swizzle, self.leading, self.stride, rows, units))

    def mn_major(self, rows: int, depth: int = 16, size: int = 2) -> NDArray[np.int64]:
        """Addresses of the units of an MN-major matrix of elements of ``size`` bytes, (depth, rows size / 16): line k has column
        k of A, row k of B. Requires: ``rows size`` a multiple of 16."""
        return self._swizzled(_mn_major(self.swizzle, self.leading, self.stride, rows * size // UNIT, depth))

    def _swizzled(self, offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        if self.swizzle is Swizzle.NONE:
            return self.start + offsets
        pattern = self.base_offset * 128
        return self.swizzle(self.start - pattern + offsets) + pattern


@lru_cache(maxsize=256)
def _k_major(swizzle: Swizzle, leading: int, stride: int, rows: int, units: int) -> NDArray[np.int64]:
    row, unit = np.arange(rows)[:, None], np.arange(units)
    step = leading if swizzle is Swizzle.NONE else UNIT
    return _frozen(row % 8 * swizzle.span + row // 8 * stride + unit * step)


@lru_cache(maxsize=256)
def _mn_major(swizzle: Swizzle, leading: int, stride: int, units: int, depth: int) -> NDArray[np.int64]:
    line, unit = np.arange(depth)[:, None], np.arange(units)
    if swizzle is Swizzle.NONE:
        return _frozen(line % 8 * UNIT + line // 8 * leading + unit * stride)
    width = swizzle.span // UNIT
    lines = 8 if swizzle.atom == UNIT else swizzle.period // swizzle.span
    return _frozen(line % lines * swizzle.span + line // lines * stride + unit % width * UNIT + unit // width * leading)


def _frozen(offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    offsets.flags.writeable = False
    return offsets

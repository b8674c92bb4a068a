"""The swizzles of shared memory that tensor copies and wgmma know: exclusive-or of address bits (PTX ISA 5.5.7).

A swizzle XORs some low bits of an address with higher bits, those that count the 128-byte rows. One formula with other bits
describes every mode, so no table of cells is kept. Definition, with ``a[i:j]`` the address bits i to j:

    mode                         becomes                      data kept together    repeats after
    none                                                      everything
    32B                          a[4]   ^= a[7]               16 bytes              256 bytes
    64B                          a[4:5] ^= a[7:8]             16 bytes              512 bytes
    128B                         a[4:6] ^= a[7:9]             16 bytes              1024 bytes
    128B, 32B atoms              a[5:6] ^= a[7:8]             32 bytes              512 bytes
    128B, 32B atoms, 8B flip     ... and a[3] ^= a[7]         8 bytes               512 bytes
    128B, 64B atoms              a[6]   ^= a[7]               64 bytes              256 bytes

The table of 64B, where the 16-byte cell that is at (row, place) of the source goes in row, cells of the source numbered in it;
rows are of 128 bytes:

    row 0     0  1  2  3  4  5  6  7
    row 1     1  0  3  2  5  4  7  6
    row 2     2  3  0  1  6  7  4  5
    row 3     3  2  1  0  7  6  5  4

Law: a swizzle is its own inverse (the bits that are XORed in are not changed), and a permutation of each aligned block of as many
bytes as it repeats after. Addresses are absolute, in the shared memory of a block: a buffer that does not start where the
pattern repeats begins in the middle of it, as on hardware (CUDA programming guide, "Shared memory swizzling").

Not here: the 96-byte mode, which no GPU of the supported generations has.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T", bound=np.integer[Any])


@dataclass(frozen=True)
class _Bits:
    """``address ^= (address >> shift) & mask``."""

    mask: int
    shift: int


class Swizzle(enum.Enum):
    """A swizzling mode; ``span`` is its width in bytes (a box or an atom is as wide), ``period`` is after how many bytes it
    repeats (what a buffer should be aligned to), ``atom`` how many bytes it keeps together."""

    NONE = ("none", 16, 16, 16)
    B32 = ("32B", 32, 256, 16, _Bits(0x10, 3))
    B64 = ("64B", 64, 512, 16, _Bits(0x30, 3))
    B128 = ("128B", 128, 1024, 16, _Bits(0x70, 3))
    B128_ATOM_32B = ("128B with atoms of 32B", 128, 512, 32, _Bits(0x60, 2))
    B128_ATOM_32B_FLIP_8B = ("128B with atoms of 32B, 8B flipped", 128, 512, 8, _Bits(0x60, 2), _Bits(0x08, 4))
    B128_ATOM_64B = ("128B with atoms of 64B", 128, 256, 64, _Bits(0x40, 1))

    def __init__(self, label: str, span: int, period: int, atom: int, *steps: _Bits) -> None:
        self.label = label
        self.span = span
        self.period = period
        self.atom = atom
        self.steps = steps

    def __call__(self, addresses: NDArray[T]) -> NDArray[T]:
        """Where the bytes that an unswizzled layout has at ``addresses`` are: a new array, or the same one for `NONE`.

        Addresses are non-negative, of any integer type and shape. What is XORed in are bits 7 to 9 of the given address, so
        all steps look at the same bits.
        """
        result: NDArray[Any] = addresses
        for step in self.steps:
            result = result ^ ((addresses >> step.shift) & step.mask)
        return result

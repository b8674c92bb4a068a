"""The types of a tensor map's elements (PTX ISA 5.5.1, tensormap.replace).

Elements of 4 and 6 bits (sm_100) are packed in global memory and are copied by groups. Sizes, boxes, and coordinates count
elements in the map, in `TensorMap`, and in instructions; a `Tensor` counts groups, so that its runs stay whole bytes. What a
group becomes in shared memory is `Element.shared` bytes (PTX ISA 5.5.1.1, sub-byte types):

    type         elements of a group    bytes in global memory    bytes in shared memory
    b4x16        2                      1                         1
    b4x16_p64    16                     8                         16: the same 8, and 8 of padding
    b6x16_p32    16                     12                        16: the same 12, and 4 of padding

Loads of tf32 round float32 ("TMA converts f32 input to tf32", CUTLASS); that they round to nearest, ties to even, is this
emulator's choice, and so is that .ftz keeps the sign of what it flushes. What stores do to such elements is not known.

A copy completes the bytes without padding, as CUTLASS expects of it. The ISA leaves the padding uninitialised; here its bytes
are 0xFF, and reads of it are no faults. In stores code 15 is ``b6p2x16``: a byte of shared memory for each element, whose upper
two bits are dropped. Stores of ``b4x16_p64`` do not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.formats import TF32, encode

PADDING: Final = 0xFF
"""What padding is filled with: not 0, so that a program that uses it is seen to."""


@dataclass(frozen=True)
class Element:
    """A type of elements: its number in tensormap.replace, PTX's name, and bytes."""

    code: int
    name: str
    bytes: int
    floating: bool = False
    flushed: bool = False
    """Whether loads make zeros of subnormal numbers."""
    rounded: bool = False
    """Whether loads round to tf32."""
    group: int = 1
    """How many elements the bytes are of."""
    padding: int = 0
    """Bytes of shared memory after those of a group."""

    @property
    def shared(self) -> int:
        """Bytes of a group in shared memory."""
        return self.bytes + self.padding

    def loaded(self, values: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """What bytes of global memory, (N, size), are in shared memory."""
        if not self.flushed and not self.rounded:
            return values
        numbers = np.ascontiguousarray(values).view(np.float32)
        if self.flushed:
            numbers = np.where(
                np.abs(numbers) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), numbers), numbers
            )
        if self.rounded:
            numbers = encode(numbers.astype(np.float64), TF32, "rn")
        return numbers.view(np.uint8).reshape(values.shape)

    @property
    def span(self) -> int:
        """Coordinates of dimension 0 are multiples of this many elements (PTX ISA, restriction on tensor copy instructions)."""
        return PADDED if self.padding else self.group


PADDED: Final = 128
"""Elements of a row of a box of padded elements."""

ELEMENTS: Final[dict[int, Element]] = {
    element.code: element
    for element in (
        Element(0, "u8", 1),
        Element(1, "u16", 2),
        Element(2, "u32", 4),
        Element(3, "s32", 4),
        Element(4, "u64", 8),
        Element(5, "s64", 8),
        Element(6, "f16", 2, True),
        Element(7, "f32", 4, True),
        Element(8, "f32.ftz", 4, True, flushed=True),
        Element(9, "f64", 8, True),
        Element(10, "bf16", 2, True),
        Element(11, "tf32", 4, True, rounded=True),
        Element(12, "tf32.ftz", 4, True, flushed=True, rounded=True),
        Element(13, "b4x16", 1, group=2),
        Element(14, "b4x16_p64", 8, group=16, padding=8),
        Element(15, "b6x16_p32", 12, group=16, padding=4),
    )
}
"""Element types by number (PTX ISA, tensormap.replace)."""

BY_NAME: Final = {element.name: element for element in ELEMENTS.values()}

BY_DTYPE: Final = {
    "int16": "u16",
    "uint16": "u16",
    "uint32": "u32",
    "int32": "s32",
    "uint64": "u64",
    "int64": "s64",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
}
"""Element types of NumPy dtypes; any other of one byte is u8, as for the driver."""

"""Tensor maps: what a kernel's tensor copies know of a tensor (PTX ISA 5.5.8; CUDA driver API, cuTensorMapEncodeTiled).

On hardware the driver packs the description into 128 opaque bytes. Their layout is not published, so the emulator has one of
its own, and a `TensorMap` given to a launch in place of a ``CUtensorMap`` is encoded in it; bytes that the driver encoded are
refused. A `TensorMap` names axes as NumPy does, outermost first; PTX and the driver count dimensions from the innermost, so
the coordinates ``{x, y}`` of an instruction are those of ``array[y, x]``.

    bytes    0-7     the letters "weftTMAP"
             8-15    address of the tensor in global memory
            16       rank - 1
            17       element type, numbered as tensormap.replace does: 0 u8, 1 u16, 2 u32, 3 s32, 4 u64, 5 s64, 6 f16, 7 f32, ...
            18       interleave: 0
            19       swizzle: 0 none, 1 32B, 2 64B, 3 128B
            20       atomicity of the 128B swizzle: 0 16B
            21       fill: 0 zeros, 1 NaN
            22       promotion in L2: 0 none, 1 64B, 2 128B, 3 256B
            24-43    size of each dimension, 5 x 32 bits, the innermost first
            44-63    box, 5 x 32 bits
            64-95    stride of dimensions 1 to 4 in bytes, 4 x 64 bits
            96-115   element strides, 5 x 32 bits

All numbers are little-endian, and whatever is not named is 0.

Elements of 4 and 6 bits (sm_100) are packed in global memory and are copied by groups. Sizes, boxes, and coordinates count
elements in the map, in `TensorMap`, and in instructions; a `Tensor` counts groups, so that its runs stay whole bytes. What a
group becomes in shared memory is `Element.shared` bytes (PTX ISA 5.5.1.1, sub-byte types):

    type         elements of a group    bytes in global memory    bytes in shared memory
    b4x16        2                      1                         1
    b4x16_p64    16                     8                         16: the same 8, and 8 of padding
    b6x16_p32    16                     12                        16: the same 12, and 4 of padding

A copy completes the bytes without padding, as CUTLASS expects of it. The ISA leaves the padding uninitialised; here its bytes
are 0xFF, and reads of it are no faults. In stores code 15 is ``b6p2x16``: a byte of shared memory for each element, whose upper
two bits are dropped. Stores of ``b4x16_p64`` do not exist.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.emulator.arith.formats import OUTSIDE
from weft.emulator.arith.swizzle import Swizzle
from weft.emulator.arith.tensor_copy import CHUNK, Tensor

SIZE: Final = 128
"""Bytes of a tensor map."""

MAGIC: Final = b"weftTMAP"

_FORMAT: Final = struct.Struct("<8sQ8B5I5I4Q5I12x")

MOST_RANK: Final = 5

_PADDING: Final = 0xFF
"""What padding is filled with: not 0, so that a program that uses it is seen to."""


@dataclass(frozen=True)
class Element:
    """A type of elements: its number in tensormap.replace, PTX's name, and bytes."""

    code: int
    name: str
    bytes: int
    floating: bool = False
    refused: str = ""
    """Why the emulator does not copy elements of this type; "" if it does."""
    group: int = 1
    """How many elements the bytes are of."""
    padding: int = 0
    """Bytes of shared memory after those of a group."""

    @property
    def shared(self) -> int:
        """Bytes of a group in shared memory."""
        return self.bytes + self.padding

    @property
    def span(self) -> int:
        """Coordinates of dimension 0 are multiples of this many elements (PTX ISA, restriction on tensor copy instructions)."""
        return PADDED if self.padding else self.group


PADDED: Final = 128
"""Elements of a row of a box of padded elements."""

_FTZ: Final = "the ISA does not say what a copy does to its values"

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
        Element(8, "f32.ftz", 4, True, _FTZ),
        Element(9, "f64", 8, True),
        Element(10, "bf16", 2, True),
        Element(11, "tf32", 4, True, _FTZ),
        Element(12, "tf32.ftz", 4, True, _FTZ),
        Element(13, "b4x16", 1, group=2),
        Element(14, "b4x16_p64", 8, group=16, padding=8),
        Element(15, "b6x16_p32", 12, group=16, padding=4),
    )
}
"""Element types by number (PTX ISA, tensormap.replace)."""

_BY_NAME: Final = {element.name: element for element in ELEMENTS.values()}

_BY_DTYPE: Final = {
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

SWIZZLES: Final = {"none": Swizzle.NONE, "32B": Swizzle.B32, "64B": Swizzle.B64, "128B": Swizzle.B128}
FILLS: Final = ("zeros", "nan")
PROMOTIONS: Final = ("none", "64B", "128B", "256B")


@dataclass(frozen=True)
class Description:
    """What a valid tensor map says. Dimensions are in PTX's order, innermost first."""

    tensor: Tensor
    """Its elements are the groups of ``element``."""
    element: Element
    swizzle: Swizzle
    fill: str
    promotion: str = "none"

    def encode(self) -> bytes:
        """The 128 bytes of the map."""
        t = self.tensor
        swizzle = list(SWIZZLES.values()).index(self.swizzle)
        numbers = (
            t.rank - 1,
            self.element.code,
            0,
            swizzle,
            0,
            FILLS.index(self.fill),
            PROMOTIONS.index(self.promotion),
            0,
        )
        return _FORMAT.pack(
            MAGIC,
            t.address,
            *numbers,
            *_padded(_times(t.sizes, self.element.group), 5),
            *_padded(_times(t.box, self.element.group), 5),
            *_padded(t.strides[1:], 4),
            *_padded(t.steps, 5),
        )

    @property
    def row(self) -> int:
        """Bytes of a row of the box in shared memory."""
        return self.tensor.counts[0] * self.element.shared

    @property
    def shared_bytes(self) -> int:
        """Bytes of the box in shared memory, with padding."""
        return self.tensor.bytes // self.element.bytes * self.element.shared

    def pad(self, boxes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Dense boxes as loads put them into shared memory, (N, shared_bytes)."""
        element = self.element
        if not element.padding:
            return boxes
        groups = boxes.reshape(-1, element.bytes)
        padding = np.full((len(groups), element.padding), _PADDING, np.uint8)
        return np.concatenate((groups, padding), axis=1).reshape(len(boxes), -1)

    def unpad(self, boxes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Dense boxes as stores take them from shared memory: of each byte (b6p2x16) the lower six bits."""
        if not self.element.padding:
            return boxes
        bits = np.unpackbits(boxes, bitorder="little").reshape(-1, 8)[:, :6]
        return np.packbits(bits, bitorder="little").reshape(len(boxes), -1)

    def empty_boxes(self, count: int) -> NDArray[np.uint8]:
        """``count`` dense boxes of nothing but the fill, (count, bytes)."""
        size = self.tensor.bytes
        if self.fill == "zeros":
            return np.zeros((count, size), np.uint8)
        return np.full((count, size // 2), OUTSIDE, "<u2").view(np.uint8)


class TensorMap:
    """A tensor in global memory and the boxes that tensor copies of it move: an argument of a launch.

    ``array`` is the NumPy array, or any array whose memory the tensor is in if ``shape`` and ``dtype`` say what it is there: then
    ``strides`` in bytes may say how (dense if not given), and ``offset`` where it begins, in bytes. ``box`` and
    ``element_strides`` are in elements, axes in the array's order. ``element`` overrides the element type by PTX's name ("u8" for
    float8, ...). Elements "b4x16", "b4x16_p64", and "b6x16_p32" are of an array of bytes, in which they are packed along the last
    axis. Then ``shape`` and ``box`` count the elements, not the bytes, and the last stride is 1. ``swizzle`` is "none", "32B",
    "64B" or "128B"; ``fill`` is what loads find outside the tensor, "zeros" or
    "nan" (floats only). ``l2_promotion`` is accepted and does nothing.

    Raises: `ValueError` for what the driver would refuse, and for what the emulator does not know.
    """

    def __init__(
        self,
        array: NDArray[Any],
        *,
        box: Sequence[int],
        shape: Sequence[int] | None = None,
        dtype: Any = None,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        element: str | None = None,
        element_strides: Sequence[int] | None = None,
        interleave: str = "none",
        swizzle: str = "none",
        fill: str = "zeros",
        l2_promotion: str = "none",
    ) -> None:
        kind = array.dtype if dtype is None else np.dtype(dtype)
        found = _BY_NAME.get(element or _BY_DTYPE.get(kind.name, "u8" if kind.itemsize == 1 else ""))
        if found is None:
            raise ValueError(f"TensorMap: elements of type {element or kind} cannot be copied")
        size = found.bytes if found.group == 1 else 1
        _require(size == kind.itemsize, f"element {found.name} does not have {kind.itemsize} bytes")
        if shape is None:
            shape = array.shape
            if found.group > 1:
                shape = (*shape[:-1], shape[-1] * found.group // found.bytes)
            if strides is None:
                strides = array.strides
        rows = [*shape[:-1], -(-shape[-1] * found.bytes // (found.group * size))]
        if strides is None:
            strides = [int(np.prod(rows[i + 1 :], dtype=np.int64)) * kind.itemsize for i in range(len(rows))]
        rank = len(shape)
        steps = [1] * rank if element_strides is None else list(element_strides)
        for name, values in (("box", box), ("strides", strides), ("element_strides", steps)):
            _require(len(values) == rank, f"{name} has {len(values)} entries, expected {rank}, one for each axis")
        _require(1 <= rank <= MOST_RANK, f"the tensor has {rank} axes, expected 1 to {MOST_RANK}")
        _require(
            strides[-1] == kind.itemsize, f"elements of the last axis are {strides[-1]} bytes apart, not side by side"
        )
        _require(interleave == "none", f"interleave is '{interleave}', and the emulator knows 'none' only")
        for what, value, known in (
            ("swizzle", swizzle, tuple(SWIZZLES)),
            ("fill", fill, FILLS),
            ("l2_promotion", l2_promotion, PROMOTIONS),
        ):
            _require(value in known, f"{what} is '{value}', expected one of {', '.join(known)}")
        _require(
            not _outside(array, rows, strides, offset, kind.itemsize),
            "the tensor does not fit into the array's memory",
        )
        self.array = array
        """The array whose memory the tensor is in."""
        self.offset = offset
        """Where the tensor begins, in bytes from the array's first element."""
        sizes, boxes = [int(n) for n in reversed(shape)], [int(n) for n in reversed(box)]
        if reason := _uneven(found, sizes[0], boxes[0]):
            raise ValueError(f"TensorMap: {reason}")
        tensor = Tensor(
            0,
            found.bytes,
            (sizes[0] // found.group, *sizes[1:]),
            (found.bytes, *(int(n) for n in reversed(strides[:-1]))),
            (boxes[0] // found.group, *boxes[1:]),
            (1, *(int(n) for n in reversed(steps[:-1]))),
        )
        self._description = Description(tensor, found, SWIZZLES[swizzle], fill, l2_promotion)
        if reason := why_invalid(self._description):
            raise ValueError(f"TensorMap: {reason}")

    def encode(self, address: int) -> bytes:
        """The 128 bytes of the map, where the array's first element is at ``address`` of global memory.

        Raises: `ValueError` if the tensor then begins at no multiple of 16.
        """
        found = self._description
        t = found.tensor
        placed = replace(found, tensor=replace(t, address=address + self.offset))
        if reason := why_invalid(placed):
            raise ValueError(f"TensorMap: {reason}")
        return placed.encode()

    def __repr__(self) -> str:
        found = self._description
        t = found.tensor
        sizes, box = (_times(values, found.element.group)[::-1] for values in (t.sizes, t.box))
        return f"TensorMap({sizes} of {found.element.name}, box {box}, swizzle {found.swizzle.label})"


def why_invalid(description: Description) -> str:
    """What of a description no tensor map may have (cuTensorMapEncodeTiled lists it); "" if nothing.

    Dimensions are numbered as the driver does, from the innermost.
    """
    t, element = description.tensor, description.element
    if element.refused:
        return f"elements of type {element.name} are not copied: {element.refused}"
    unit = 32 if element.padding else 16
    if t.address % unit:
        return f"the address 0x{t.address:x} is no multiple of {unit}"
    box = _times(t.box, element.group)
    for k in range(t.rank):
        if not 1 <= t.sizes[k] < 1 << 32:
            return f"dimension {k} has {t.sizes[k]} elements, expected 1 to 2**32 - 1"
        if not 1 <= box[k] <= 256:
            return f"the box has {box[k]} elements in dimension {k}, expected 1 to 256"
        if not 1 <= t.steps[k] <= 8:
            return f"the element stride of dimension {k} is {t.steps[k]}, expected 1 to 8"
    for k in range(1, t.rank):
        if t.strides[k] % unit or not 0 <= t.strides[k] < 1 << 40:
            return f"the stride of dimension {k} is {t.strides[k]} bytes, expected a multiple of {unit} below 2**40"
    row = description.row
    if row % CHUNK:
        return f"a row of the box has {row} bytes, expected a multiple of {CHUNK}"
    span = description.swizzle.span
    if description.swizzle is not Swizzle.NONE and row > span:
        return f"a row of the box has {row} bytes, expected at most {span} with the {span}B swizzle"
    if description.swizzle is not Swizzle.NONE and row < span:
        unknown = f"how the {span}B swizzle places rows shorter than {span} is not documented"
        return f"a row of the box has {row} bytes, and {unknown}"
    if element.padding and description.swizzle not in (Swizzle.NONE, Swizzle.B128):
        return f"elements of type {element.name} do not go with the {span}B swizzle"
    if description.fill == "nan" and not element.floating:
        return f"elements of type {element.name} have no NaN to fill with"
    return ""


@lru_cache(maxsize=4096)
def decode(raw: bytes) -> Description | str:
    """What 128 bytes of a tensor map say, or why they say nothing."""
    magic, address, *rest = _FORMAT.unpack(raw)
    numbers: list[int] = rest
    if magic != MAGIC:
        return (
            "these 128 bytes are no tensor map: one that the CUDA driver encoded is opaque; "
            "give the launch a weft.emulator.TensorMap instead"
        )
    rank, code, interleave, swizzle, atomicity, fill, promotion, _ = numbers[:8]
    rank += 1
    sizes, box, strides, steps = numbers[8:13], numbers[13:18], numbers[18:22], numbers[22:27]
    if rank > MOST_RANK:
        return f"the tensor map has rank {rank}, expected 1 to {MOST_RANK}"
    if interleave:
        return f"the tensor map has interleave layout {interleave}, and the emulator knows 0 only"
    if swizzle >= len(SWIZZLES) or atomicity:
        return f"the tensor map has swizzle mode {swizzle} of atomicity {atomicity}, which the emulator does not know"
    if code not in ELEMENTS or fill >= len(FILLS):
        return f"the tensor map has element type {code} and fill mode {fill}, which do not exist"
    element = ELEMENTS[code]
    if reason := _uneven(element, sizes[0], box[0]):
        return f"the tensor map is invalid: {reason}"
    tensor = Tensor(
        address,
        element.bytes,
        (sizes[0] // element.group, *sizes[1:rank]),
        (element.bytes, *strides[: rank - 1]),
        (box[0] // element.group, *box[1:rank]),
        (1, *steps[1:rank]),
    )
    found = Description(tensor, element, list(SWIZZLES.values())[swizzle], FILLS[fill], PROMOTIONS[promotion & 3])
    reason = why_invalid(found)
    return f"the tensor map is invalid: {reason}" if reason else found


def _uneven(element: Element, size: int, box: int) -> str:
    """What is wrong with the innermost dimension's size and box, in elements, of elements that are copied by groups."""
    if size % element.span:
        return f"dimension 0 has {size} elements of type {element.name}, expected a multiple of {element.span}"
    if element.padding and box != PADDED:
        return f"the box has {box} elements of type {element.name} in dimension 0, expected {PADDED}"
    if box % element.group:
        return (
            f"the box has {box} elements of type {element.name} in dimension 0, expected a multiple of {element.group}"
        )
    return ""


def _times(values: Sequence[int], group: int) -> tuple[int, ...]:
    """Sizes of which the innermost counts groups, in elements."""
    return (values[0] * group, *values[1:])


def _padded(values: Sequence[int], length: int) -> tuple[int, ...]:
    return (*values, *(0,) * (length - len(values)))


def _outside(array: NDArray[Any], shape: Sequence[int], strides: Sequence[int], offset: int, itemsize: int) -> bool:
    """Whether a tensor at ``offset`` from the array's first element has bytes that no element of the array has around it."""
    low, high = np.lib.array_utils.byte_bounds(array)
    first = int(array.__array_interface__["data"][0]) + offset
    last = first + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + itemsize
    return first < low or last > high or any(s < 0 for s in strides)


def _require(condition: object, reason: str) -> None:
    if not condition:
        raise ValueError(f"TensorMap: {reason}")

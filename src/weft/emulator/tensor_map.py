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
            20       atomicity of the 128B swizzle: 0 16B, 1 32B, 2 32B with 8B flipped, 3 64B
            21       fill: 0 zeros, 1 NaN
            22       promotion in L2: 0 none, 1 64B, 2 128B, 3 256B
            23       mode: 0 tiled, 1 im2col, 2 im2col::w; then the box is {channels, pixels}
            24-43    size of each dimension, 5 x 32 bits, the innermost first
            44-63    box, 5 x 32 bits
            64-95    stride of dimensions 1 to 4 in bytes, 4 x 64 bits
            96-115   element strides, 5 x 32 bits
           116-121   im2col: lower corner of the box of pixels in W, H, D, 3 x 16 bits; 122-127: the upper corner

All numbers are little-endian, and whatever is not named is 0.
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
from weft.emulator.arith.tensor_elements import BY_DTYPE, BY_NAME, ELEMENTS, PADDED, PADDING, Element
from weft.emulator.arith.tensor_modes import Column

SIZE: Final = 128
"""Bytes of a tensor map."""

MAGIC: Final = b"weftTMAP"

_FORMAT: Final = struct.Struct("<8sQ8B5I5I4Q5I6h")

MOST_RANK: Final = 5

SWIZZLES: Final = {
    "none": Swizzle.NONE,
    "32B": Swizzle.B32,
    "64B": Swizzle.B64,
    "128B": Swizzle.B128,
    "128B_ATOM_32B": Swizzle.B128_ATOM_32B,
    "128B_ATOM_32B_FLIP_8B": Swizzle.B128_ATOM_32B_FLIP_8B,
    "128B_ATOM_64B": Swizzle.B128_ATOM_64B,
}
"""As the driver names them."""

_CODES: Final = dict(zip(SWIZZLES.values(), ((0, 0), (1, 0), (2, 0), (3, 0), (3, 1), (3, 2), (3, 3)), strict=True))
"""The mode and the atomicity of each."""

_BY_CODES: Final = {codes: swizzle for swizzle, codes in _CODES.items()}
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
    column: Column | None = None
    """Of an im2col map, whose tensor's box is the channels of a pixel."""

    def encode(self) -> bytes:
        """The 128 bytes of the map."""
        t = self.tensor
        numbers = (
            t.rank - 1,
            self.element.code,
            0,
            *_CODES[self.swizzle],
            FILLS.index(self.fill),
            PROMOTIONS.index(self.promotion),
            0 if self.column is None else 1 + self.column.wide,
        )
        box, corners = _times(t.box, self.element.group), ((), ())
        if self.column is not None:
            box, corners = (box[0], self.column.pixels), (self.column.lower, self.column.upper)
        return _FORMAT.pack(
            MAGIC,
            t.address,
            *numbers,
            *_padded(_times(t.sizes, self.element.group), 5),
            *_padded(box, 5),
            *_padded(t.strides[1:], 4),
            *_padded(t.steps, 5),
            *_padded(corners[0], 3),
            *_padded(corners[1], 3),
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
        padding = np.full((len(groups), element.padding), PADDING, np.uint8)
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
    axis. Then ``shape`` and ``box`` count the elements, not the bytes, and the last stride is 1. ``swizzle`` is one of
    `SWIZZLES`, those with atoms for sm_100; ``fill`` is what loads find outside the tensor, "zeros" or "nan" (floats only).
    ``l2_promotion`` is accepted and does nothing.

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
        column: Column | None = None,
    ) -> None:
        kind = array.dtype if dtype is None else np.dtype(dtype)
        found = BY_NAME.get(element or BY_DTYPE.get(kind.name, "u8" if kind.itemsize == 1 else ""))
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
        self._description = Description(tensor, found, SWIZZLES[swizzle], fill, l2_promotion, column)
        if reason := why_invalid(self._description):
            raise ValueError(f"TensorMap: {reason}")

    @classmethod
    def im2col(
        cls,
        array: NDArray[Any],
        *,
        lower: Sequence[int] | int,
        upper: Sequence[int] | int,
        channels: int,
        pixels: int,
        element_strides: Sequence[int] | None = None,
        **others: Any,
    ) -> TensorMap:
        """A map for im2col copies of an array whose axes are N, then D, H, W or some of the last of them, then C.

        ``lower`` and ``upper`` are the corners of the box of pixels in the array's order of axes: {-padding} and {padding -
        (taps - 1) * dilation} for a convolution. A number instead is the corner in W of a map for ``im2col::w``. A copy moves
        ``channels`` of ``pixels``; ``element_strides`` are the convolution's strides, one for each axis. Others as for tiles.

        Raises: `ValueError` for what the driver would refuse.
        """
        wide = isinstance(lower, int)
        first, last = (tuple(reversed([c] if isinstance(c, int) else [*c])) for c in (lower, upper))
        expected = 1 if wide else array.ndim - 2
        for name, corner in (("lower", first), ("upper", last)):
            _require(len(corner) == expected, f"{name} has {len(corner)} entries, expected {expected}")
        column = Column(pixels, first, last, wide)
        box = [*[1] * (array.ndim - 1), channels]
        return cls(array, box=box, element_strides=element_strides, column=column, **others)

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
    return "" if description.column is None else _why_no_column(description.column, t, description.swizzle)


CORNERS: Final = {3: 1 << 15, 4: 1 << 7, 5: 1 << 4}
"""By rank: corners of boxes of pixels are at least minus this, and less than it."""


def _why_no_column(column: Column, tensor: Tensor, swizzle: Swizzle) -> str:
    """What an im2col map may not have (cuTensorMapEncodeIm2col); "" if nothing."""
    if tensor.rank < min(CORNERS):
        return f"the tensor has {tensor.rank} axes, expected 3 to {MOST_RANK} for im2col"
    if not 1 <= column.pixels <= 1024:
        return f"a column has {column.pixels} pixels, expected 1 to 1024"
    if column.wide and swizzle is Swizzle.NONE:
        return "im2col::w needs a swizzle"
    limit = CORNERS[3 if column.wide else tensor.rank]
    for corner in (*column.lower, *column.upper):
        if not -limit <= corner < limit:
            return f"a corner of the box of pixels is {corner}, expected {-limit} to {limit - 1}"
    low, high = column.box(tensor.sizes)
    if (low > high).any():
        return "the box of pixels is empty"
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
    rank, code, interleave, swizzle, atomicity, fill, promotion, mode = numbers[:8]
    rank += 1
    sizes, box, strides, steps = numbers[8:13], numbers[13:18], numbers[18:22], numbers[22:27]
    corners = numbers[27:30], numbers[30:33]
    if rank > MOST_RANK:
        return f"the tensor map has rank {rank}, expected 1 to {MOST_RANK}"
    if interleave:
        return f"the tensor map has interleave layout {interleave}, and the emulator knows 0 only"
    kind = _BY_CODES.get((swizzle, atomicity))
    if kind is None:
        return f"the tensor map has swizzle mode {swizzle} of atomicity {atomicity}, which the emulator does not know"
    if code not in ELEMENTS or fill >= len(FILLS):
        return f"the tensor map has element type {code} and fill mode {fill}, which do not exist"
    if mode > 2:
        return f"the tensor map has mode {mode}, which does not exist"
    element = ELEMENTS[code]
    column = None
    if mode:
        count = 1 if mode == 2 else rank - 2
        column = Column(box[1], tuple(corners[0][:count]), tuple(corners[1][:count]), mode == 2)
        box = [box[0], *[1] * (MOST_RANK - 1)]
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
    found = Description(tensor, element, kind, FILLS[fill], PROMOTIONS[promotion & 3], column)
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

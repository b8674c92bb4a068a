"""The shared memory that NVIDIA's TMA writes and wgmma reads: 32, 64 and 128 byte swizzles.

NVIDIA describes these as a swizzle of address bits: bits 4 to 6 XOR bits 7 to 9 (for 128 bytes). As a map from offsets to
elements, the swizzle is a tile of 8 rows, as wide as the swizzle, whose row r has its units of 16 bytes in another order:

    swizzle      place u of row r holds unit    columns of the three row bits
    128 bytes    u ^ r                          (1, unit) (2, 2 units) (4, 4 units)
     64 bytes    u ^ (r / 2 mod 4)              (1, 0) (2, unit) (4, 2 units)
     32 bytes    u ^ (r / 4 mod 2)              (1, 0) (2, 0) (4, unit)

so it is mma swizzling with vec = 16 bytes, per_phase = 128 / swizzle, max_phase = swizzle / 16. TMA moves boxes of at most 256
along a dimension and as wide as a tile. A box is tiles under each other, all dimensions but the fastest taken as rows; boxes
follow one another along the first dimension, then the next (without swizzle: the last one first).

With ``fp4_padded`` an 8-bit element is a pair of 4-bit ones, and 8 bytes of data are followed by 8 bytes that hold nothing: a
zero column among the offsets, so such a layout is not one-to-one.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.layout.algebra import f2
from weft.layout.algebra.linear_layout import LinearLayout
from weft.layout.families.dealing import Bases
from weft.layout.memory.shared import Part

_BOX_BITS = 8
"""log2 of the most elements that a TMA box has along a dimension."""
_TILE_ROW_BITS = 3


def _check(swizzle_bytes: int, element_bits: int, transposed: bool, fp4_padded: bool, rank: int) -> None:
    if swizzle_bytes not in (0, 32, 64, 128):
        raise ValueError(f"nvmma_shared: swizzle_bytes is {swizzle_bytes}, expected 0, 32, 64 or 128")
    if element_bits not in (8, 16, 32, 64):
        raise ValueError(f"nvmma_shared: element_bits is {element_bits}, expected 8, 16, 32 or 64")
    if fp4_padded and (swizzle_bytes, element_bits) != (128, 8):
        raise ValueError(
            f"nvmma_shared: fp4_padded with swizzle_bytes {swizzle_bytes} and element_bits {element_bits}, expected 128 and 8"
        )
    if rank < (2 if swizzle_bytes else 1):
        raise ValueError(
            f"nvmma_shared: the shape has {rank} dimensions, expected at least {2 if swizzle_bytes else 1}"
        )
    if transposed and rank > 2:
        raise ValueError(f"nvmma_shared: transposed with {rank} dimensions, expected at most 2")


def nvmma_shared(
    shape: Sequence[int],
    swizzle_bytes: int,
    element_bits: int,
    transposed: bool = False,
    fp4_padded: bool = False,
    cga_layout: Bases | None = None,
) -> LinearLayout:
    """The layout of a tensor of ``shape`` as TMA puts it in shared memory.

    ``transposed``: the first dimension is the fastest, not the last. Needs rows of at least ``swizzle_bytes`` and, with a
    swizzle, 8 of them, in the part that each block of ``cga_layout`` has; `ValueError` otherwise.
    """
    _check(swizzle_bytes, element_bits, transposed, fp4_padded, len(shape))
    part = Part("nvmma_shared", shape, cga_layout)
    # Fastest dimension first; all the others make the rows.
    axes = tuple(range(len(shape))) if transposed else tuple(reversed(range(len(shape))))
    boxes = {axis: part.units[axis][:_BOX_BITS] for axis in axes}
    if not swizzle_bytes:
        box = [unit for axis in axes for unit in boxes[axis]]
        return part.layout([*box, *_rest(part, boxes, tuple(reversed(range(len(shape)))))])
    fastest, *others = axes
    width = swizzle_bytes * 8 // (element_bits * (2 if fp4_padded else 1))
    boxes[fastest] = part.units[fastest][: width.bit_length() - 1]
    columns = boxes[fastest]
    rows = [unit for axis in others for unit in boxes[axis]]
    if 1 << len(columns) < width:
        raise ValueError(
            f"nvmma_shared: dim{fastest} of a block's part {part.shape} is {1 << len(columns)}, expected at least {width}: "
            f"a row of {swizzle_bytes} bytes"
        )
    if len(rows) < _TILE_ROW_BITS:
        raise ValueError(f"nvmma_shared: a block's part {part.shape} has {1 << len(rows)} rows, expected at least 8")
    unit_bits = (128 // element_bits).bit_length() - 1 - fp4_padded
    for bit in range(_TILE_ROW_BITS):
        turn = ((1 << bit) * swizzle_bytes // 128) % (swizzle_bytes // 16)
        rows[bit] ^= f2.apply(columns[unit_bits:], turn)
    if fp4_padded:
        columns = (*columns[:unit_bits], 0, *columns[unit_bits:])
    return part.layout([*columns, *rows, *_rest(part, boxes, tuple(range(len(shape))))])


def _rest(part: Part, boxes: dict[int, f2.Matrix], axes: Sequence[int]) -> list[int]:
    """The index bits that choose the box."""
    return [unit for axis in axes for unit in part.units[axis][len(boxes[axis]) :]]

"""Matrix descriptors against the examples of the PTX ISA, section 9.7.15.5.1.2, and against weft's own shared-memory layouts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from weft.emulator.arith.descriptors import Descriptor
from weft.emulator.arith.swizzle import Swizzle
from weft.layout import LinearLayout, nvmma_shared

MODE_BITS = {Swizzle.NONE: 0, Swizzle.B128: 1, Swizzle.B64: 2, Swizzle.B32: 3}


Tree = int | tuple["Tree", ...]


def cute(shape: Tree, stride: Tree, index: int) -> int:
    """A CuTe layout at a linear index: nested tuples of sizes and strides, the first mode fastest."""
    offset = 0
    for size, step in zip(leaves(shape), leaves(stride), strict=True):
        offset += index % size * step
        index //= size
    return offset


def leaves(tree: Tree) -> list[int]:
    return [tree] if isinstance(tree, int) else [leaf for branch in tree for leaf in leaves(branch)]


def cute_swizzle(bits: int, offset: int) -> int:
    """CuTe's Swizzle<bits, 4, 3> of a byte offset, bit by bit."""
    for i in range(bits):
        if offset >> (7 + i) & 1:
            offset ^= 1 << (4 + i)
    return offset


# The worked examples of "Canonical Layouts": (figure, exact layout: rows and columns, in elements, swizzle bits,
# bytes of an element, K-major, LBO and SBO in bytes). Rows first; figures 168 to 170 have M first.
EXAMPLES = [
    ("166", ((8, 2), (4, 4)), ((4, 32), (1, 64)), 0, 4, True, 64 * 4, 32 * 4),
    ("167", ((8, 2), (4, 4)), ((8, 64), (1, 4)), 1, 4, True, 16, 64 * 4),
    ("168", ((8, 1, 2), (8, 2)), ((1, 8, 64), (8, 128)), 0, 2, False, 128 * 2, 64 * 2),
    ("169", ((8, 2, 2), (8, 2)), ((1, 8, 128), (16, 256)), 1, 2, False, 128 * 2, 256 * 2),
    ("170", ((8, 4, 2), (8, 2)), ((1, 8, 256), (32, 512)), 2, 2, False, 256 * 2, 512 * 2),
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: f"figure {e[0]}")
def test_worked_examples_of_the_isa(
    example: tuple[str, tuple[tuple[int, ...], ...], tuple[tuple[int, ...], ...], int, int, bool, int, int],
) -> None:
    _, shape, stride, bits, size, k_major, leading, step = example
    swizzle = (Swizzle.NONE, Swizzle.B32, Swizzle.B64)[bits]
    descriptor = Descriptor(4096, leading, step, 0, swizzle)
    rows, columns = (int(np.prod(mode)) for mode in shape)
    per_unit = 16 // size
    for row, column in itertools.product(range(rows), range(columns)):
        expected = 4096 + cute_swizzle(bits, size * cute(shape, stride, column * rows + row))
        if k_major:
            units = descriptor.k_major(rows, columns // per_unit)
            found = units[row, column // per_unit] + column % per_unit * size
        else:
            units = descriptor.mn_major(rows, columns)
            found = units[column, row // per_unit] + row % per_unit * size
        assert found == expected, (row, column)


def test_decode_worked_by_hand() -> None:
    # start 0x400 >> 4 = 0x40; LBO 16 >> 4 = 1 << 16; SBO 1024 >> 4 = 0x40 << 32; 128B is 1 << 62.
    assert Descriptor.decode(0x4000004000010040) == Descriptor(0x400, 16, 1024, 0, Swizzle.B128)
    # All bits of each field, and none of its neighbours'.
    assert Descriptor.decode(0x3FFF) == Descriptor(0x3FFF0, 0, 0, 0, Swizzle.NONE)
    assert Descriptor.decode(0x3FFF << 16) == Descriptor(0, 0x3FFF0, 0, 0, Swizzle.NONE)
    assert Descriptor.decode(0x3FFF << 32) == Descriptor(0, 0, 0x3FFF0, 0, Swizzle.NONE)
    assert Descriptor.decode(0b101 << 49) == Descriptor(0, 0, 0, 5, Swizzle.NONE)
    assert Descriptor.decode(2 << 62).swizzle is Swizzle.B64
    assert Descriptor.decode(3 << 62).swizzle is Swizzle.B32
    unused = sum(1 << bit for bit in (14, 15, 30, 31, 46, 47, 48, *range(52, 62)))
    assert Descriptor.decode(unused) == Descriptor(0, 0, 0, 0, Swizzle.NONE)


def test_units_worked_by_hand() -> None:
    units = Descriptor.decode(0x4000004000010040).k_major(16)
    # Row 1 is line 1 of the atom: units 0 and 1 exchange places. Row 8 begins the next atom.
    assert units[[0, 1, 8, 9]].tolist() == [[0x400, 0x410], [0x490, 0x480], [0x800, 0x810], [0x890, 0x880]]
    # 32 bytes further along K: units 2 and 3 of each line.
    later = Descriptor.decode(0x4000004000010042).k_major(16)
    assert later[[0, 1, 2, 7]].tolist() == [[0x420, 0x430], [0x4B0, 0x4A0], [0x500, 0x510], [0x7D0, 0x7C0]]


def test_base_offset_counts_lines_from_where_the_pattern_begins() -> None:
    # A pattern that begins at 0x380 (line 7): its lines 0 to 7 are at 0x380, 0x400, ..., 0x700.
    begin = 0x380
    moved = Descriptor(begin, 16, 1024, begin >> 7 & 7, Swizzle.B128).k_major(8, 8)
    aligned = Descriptor(0x400, 16, 1024, 0, Swizzle.B128).k_major(8, 8)
    np.testing.assert_array_equal(moved - begin, aligned - 0x400)
    # It has no meaning without a swizzle.
    np.testing.assert_array_equal(
        Descriptor(begin, 16, 1024, 5, Swizzle.NONE).k_major(8), Descriptor(begin, 16, 1024, 0, Swizzle.NONE).k_major(8)
    )


def offset_of(layout: LinearLayout, size: int) -> dict[tuple[int, int], int]:
    """Byte offset of each (row, column) of a shared-memory layout of elements of ``size`` bytes."""
    elements = 1 << len(layout.columns("offset"))
    found: dict[tuple[int, int], int] = {}
    for offset in range(elements):
        row, column = layout.apply({"offset": offset}).values()
        found[row, column] = offset * size
    return found


@pytest.mark.parametrize("swizzle", [Swizzle.B32, Swizzle.B64, Swizzle.B128], ids=lambda s: s.name)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_k_major_reads_what_the_layout_stores(swizzle: Swizzle, size: int) -> None:
    """A 64 x (one atom) tile stored by weft's layout, K last: the descriptor of each 32 bytes along K finds them."""
    width = swizzle.span // size
    stored = offset_of(nvmma_shared((64, width), swizzle.span, 8 * size), size)
    base = 0x2000
    for piece in range(swizzle.span // 32):
        units = Descriptor(base + 32 * piece, 16, 8 * swizzle.span, 0, swizzle).k_major(64)
        for row, unit in itertools.product(range(64), range(2)):
            column = (32 * piece + 16 * unit) // size
            assert units[row, unit] == base + stored[row, column]


@pytest.mark.parametrize("swizzle", [Swizzle.B32, Swizzle.B64, Swizzle.B128], ids=lambda s: s.name)
@pytest.mark.parametrize("rows", [64, 128, 256])
def test_mn_major_reads_what_the_layout_stores(swizzle: Swizzle, rows: int) -> None:
    """A (64 deep) x rows tile of 16 bits, MN last: atoms of 8 k follow one another, then come those of the next rows."""
    depth, width = 64, swizzle.span // 2
    stored = offset_of(nvmma_shared((depth, rows), swizzle.span, 16), 2)
    base = 0x4000
    for piece in range(depth // 16):
        descriptor = Descriptor(
            base + piece * 2 * 8 * swizzle.span,
            depth * swizzle.span if rows > width else 16,
            8 * swizzle.span,
            0,
            swizzle,
        )
        units = descriptor.mn_major(rows)
        assert units.shape == (16, rows // 8)
        for k, unit in itertools.product(range(16), range(rows // 8)):
            assert units[k, unit] == base + stored[16 * piece + k, 8 * unit]


# What Triton 3.9 emits for tl.dot of 64x64 by 64x128 float16 with num_warps 4, a pair for each 16 of K: A's and B's
# descriptor without the start address (PTX: 4611686293305294848 | start, and 33554432 | ..., + 128, + 256, + 384 for B).
TRITON_A = [4611686293305294848 + 2 * step for step in range(4)]
TRITON_B = [4611686293305294848 + 33554432 + 128 * step for step in range(4)]


@pytest.mark.parametrize("step", range(4))
def test_descriptors_that_triton_emits(step: int) -> None:
    """Both operands are nvmma_shared with 128 bytes, the last dimension fastest: A K-major, B MN-major, two boxes wide."""
    start = 0x6000
    stored = offset_of(nvmma_shared((64, 64), 128, 16), 2)
    units = Descriptor.decode(TRITON_A[step] + start // 16).k_major(64)
    for row, unit in itertools.product(range(64), range(2)):
        assert units[row, unit] == start + stored[row, 16 * step + 8 * unit]
    stored = offset_of(nvmma_shared((64, 128), 128, 16), 2)
    units = Descriptor.decode(TRITON_B[step] + start // 16).mn_major(128)
    for k, unit in itertools.product(range(16), range(16)):
        assert units[k, unit] == start + stored[16 * step + k, 8 * unit]


@pytest.mark.parametrize("swizzle", list(MODE_BITS), ids=lambda s: s.name)
def test_each_unit_has_a_place_of_its_own(swizzle: Swizzle) -> None:
    for rows in (8, 24, 64, 256):
        k_major = Descriptor(1024, 128, 8 * swizzle.span if swizzle is not Swizzle.NONE else 256, 0, swizzle).k_major(
            rows
        )
        assert len(set(k_major.ravel().tolist())) == k_major.size == 2 * rows
        assert not (k_major % 16).any()

"""Which registers one access to global memory moves, against a search over all groups; and that copies move once."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from laid_out import Laid
from weft import dtypes
from weft.ir import tile
from weft.ir.types import pointer
from weft.layout import LinearLayout
from weft.target import GpuTarget
from weft.transforms.axis import AxisInfo
from weft.transforms.nvidia.groups import groups

LANES = (0, 0, 0, 0, 0)


def registers(layout: LinearLayout, bits: int, pointer: AxisInfo | None, mask: AxisInfo | None) -> list[list[int]]:
    """The registers of each instruction."""
    return groups(layout, bits, pointer, mask).all


def known(contiguity: int, divisibility: int, constancy: int = 1) -> AxisInfo:
    """What is known of a value along its only dimension."""
    return AxisInfo((contiguity,), (divisibility,), (constancy,))


def line_of(register: tuple[int, ...], lane: tuple[int, ...]) -> LinearLayout:
    """A layout of one dimension and one warp."""
    size = max(*register, *lane).bit_length()
    return LinearLayout.from_columns({"register": register, "lane": lane, "warp": ()}, [("dim0", size)])


def line(*columns: int) -> LinearLayout:
    """A layout of 16 elements in the registers of one thread."""
    return LinearLayout.from_columns({"register": columns, "lane": LANES, "warp": ()}, [("dim0", 4)])


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("contiguity", [1, 2, 4, 16])
@pytest.mark.parametrize("divisibility", [1, 4, 8, 16, 64])
@pytest.mark.parametrize("constancy", [None, 1, 2, 4, 16])
def test_as_wide_as_all_facts_allow(bits: int, contiguity: int, divisibility: int, constancy: int | None) -> None:
    """A group of n is contiguous, of n elements' alignment, of at most 128 bits, and under one value of the mask."""
    mask = None if constancy is None else known(1, 1, constancy)
    allowed = [
        n
        for n in (1, 2, 4, 8, 16)
        if n == 1
        or (
            n <= contiguity
            and n * bits // 8 <= divisibility
            and n * bits <= 128
            and (constancy is None or n <= constancy)
        )
    ]
    found = registers(line(1, 2, 4, 8), bits, known(contiguity, divisibility), mask)
    assert found == [list(range(first, first + max(allowed))) for first in range(0, 16, max(allowed))]


def test_registers_come_in_the_order_of_addresses() -> None:
    assert registers(line(8, 2, 1, 4), 32, known(16, 16), None) == [
        [0, 4, 2, 6],
        [1, 5, 3, 7],
        [8, 12, 10, 14],
        [9, 13, 11, 15],
    ]


def test_a_neighbour_in_another_lane_ends_a_group() -> None:
    layout = LinearLayout.from_columns({"register": (1, 4), "lane": (2, 8, 0, 0, 0), "warp": ()}, [("dim0", 4)])
    assert registers(layout, 32, known(16, 16), None) == [[0, 1], [2, 3]]


def test_copies_are_in_no_group() -> None:
    assert registers(line(0, 1, 2), 32, known(16, 16), None) == [[0, 2, 4, 6]]
    assert registers(line(1, 0, 2), 32, known(1, 4), None) == [[0], [1], [4], [5]]


def test_nothing_is_known_of_the_pointers() -> None:
    assert registers(line(1, 2), 32, None, None) == [[0], [1], [2], [3]]


def test_the_dimension_with_the_widest_groups_is_walked() -> None:
    """A tile of 4 x 4 in the registers of one thread."""
    columns = {"register": (1, 2, 4, 8), "lane": LANES, "warp": ()}
    layout = LinearLayout.from_columns(columns, [("dim0", 2), ("dim1", 2)])
    for rows, along in product((1, 2, 4), repeat=2):
        pointer = AxisInfo((rows, along), (16, 16), (1, 1))
        first = registers(layout, 32, pointer, None)[0]
        step = 4 if rows > along else 1
        assert first == [step * place for place in range(max(rows, along))]


# ---- the accesses themselves, emulated ------------------------------------------------------------------------------


@pytest.mark.jit
@pytest.mark.parametrize("volatile", [False, True])
def test_elements_with_copies_are_accessed_once(volatile: bool) -> None:
    """16 elements, each in two registers of a thread and in two lanes: 1 is added to each once, and all copies see it."""
    layout = line_of(register=(0, 1), lane=(2, 4, 8, 0, 0))
    kernel = Laid()
    base = kernel.block.insert_arg(pointer(dtypes.int32), 0)
    kernel.outputs.append(np.arange(16, dtype=np.int32))
    index = kernel.emit(tile.ArangeOp(0, 16, layout))
    pointers = kernel.emit(tile.AddPtrOp(kernel.emit(tile.SplatOp(base, (16,), layout)), index))
    if volatile:
        found = kernel.emit(tile.LoadOp(pointers, volatile=True))
    else:
        found = kernel.emit(tile.AtomicRmwOp("add", pointers, kernel.emit(tile.ConstantOp(1, index.type))))
    other = line_of(register=(8, 4, 2, 1), lane=LANES)
    kernel.store(kernel.emit(tile.ConvertLayoutOp(found, other)), 16, other, dtypes.int32)
    memory, seen = kernel.run(GpuTarget(90), 0)
    np.testing.assert_array_equal(memory, np.arange(16) + (not volatile))
    np.testing.assert_array_equal(seen, np.arange(16))


@pytest.mark.jit
def test_a_range_of_more_registers_than_a_vector_has() -> None:
    layout = line_of(register=(1, 2, 4, 8, 16, 32), lane=(64, 128, 0, 0, 0))
    kernel = Laid()
    kernel.store(kernel.numbers(256, layout, dtypes.int32), 256, layout, dtypes.int32)
    np.testing.assert_array_equal(kernel.run(GpuTarget(90), 0)[0], np.arange(256))

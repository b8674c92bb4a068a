"""Buffers: copies and reads move every element (simulated on labels); their costs on operands of matrix instructions, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sampling import examples
from weft.layout import LinearLayout, blocked, coalesced, nvidia_mma_operand, trans
from weft.layout.algebra import f2
from weft.layout.planning.buffers import BufferPlan, plan_buffer
from weft.layout.planning.machine import AMPERE, HOPPER


def vector(layout: LinearLayout, stride: int, most: int) -> f2.Matrix:
    """The registers that walk along a dimension of the given stride, up to ``most`` elements."""
    columns = layout.columns("register")
    found: list[int] = []
    while 2 << len(found) <= most and stride << len(found) in columns:
        found.append(1 << columns.index(stride << len(found)))
    return tuple(found)


def check(plan: BufferPlan, writer: LinearLayout, readers: tuple[LinearLayout, ...]) -> None:
    """What is copied is each element's number; what is read is the number of the element that the reader has there."""
    size = 1 << len(plan.memory.columns("offset"))
    buffer = np.full(size, -1)
    plan.stores.store(numbers(writer), buffer)
    assert sorted(buffer) == list(range(size))
    for read, reader in zip(plan.reads, readers, strict=True):
        np.testing.assert_array_equal(read.load(buffer), numbers(reader))


def numbers(layout: LinearLayout) -> NDArray[np.int64]:
    """The flattened element of each warp, lane and register."""
    shape = [layout.in_size(dim) for dim in ("warp", "lane", "register")]
    found = np.empty(shape, dtype=np.int64)
    for place in np.ndindex(*shape):
        found[place] = layout.flat(**dict(zip(("warp", "lane", "register"), place, strict=True)))
    return found


# Shape, operand, bits of an element, k_width, order of memory, elements of a copy; then instructions and wavefronts of the copies
# and of the reads of 4 warps (2 x 2). A warp copies 512 bytes in 4 wavefronts and reads a matrix of 128 bytes in one.
OPERANDS = {
    # 64 x 32 float16 are 4 KiB, 8 copies of warps; each of 2 rows of warps reads 32 x 32, 16 matrices.
    "left f16": ((64, 32), 0, 16, 2, (1, 0), 8, (2, 32), (4, 64)),
    "right f16 by rows": ((32, 64), 1, 16, 2, (1, 0), 8, (2, 32), (4, 64)),
    "right f16 by columns": ((32, 64), 1, 16, 2, (0, 1), 8, (2, 32), (4, 64)),
    # A narrow tile: 128 x 16, rows of 32 bytes; the reads are 64 x 16 a warp, 16 matrices.
    "narrow rows": ((128, 16), 0, 16, 2, (1, 0), 8, (2, 32), (4, 64)),
    "left tf32": ((64, 32), 0, 32, 1, (1, 0), 4, (4, 64), (8, 128)),
    # Rows across the contraction of 32-bit elements: no matrix instruction; each word by itself, without conflicts.
    "right tf32 by rows": ((32, 64), 1, 32, 1, (1, 0), 4, (4, 64), (32, 128)),
    "left s8": ((64, 64), 0, 8, 4, (1, 0), 16, (2, 32), (4, 64)),
    "right s8 by columns": ((64, 64), 1, 8, 4, (0, 1), 16, (2, 32), (4, 64)),
    # Four bytes are copied at once where the mask allows no more.
    "narrow copies": ((64, 32), 0, 16, 2, (1, 0), 2, (8, 32), (4, 64)),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_operands_of_matrix_instructions(name: str) -> None:
    shape, index, bits, width, order, copied, copies, reads = OPERANDS[name]
    writer = coalesced(shape, bits, 4, order, copied, copied * bits // 8)
    reader = nvidia_mma_operand(shape, index, width, 2, (2, 2), (16, 8))
    inside = vector(writer, shape[1] if order[0] == 0 else 1, copied)
    plan = plan_buffer(writer, ((reader, 0),), bits, AMPERE, inside, 32)
    check(plan, writer, (reader,))
    assert plan.stores.width == copied * bits
    assert (plan.stores.cost.stores, plan.stores.cost.wavefronts) == copies
    assert (plan.reads[0].cost.loads, plan.reads[0].cost.wavefronts) == reads


def test_two_readers_share_a_buffer_without_conflicts() -> None:
    """Attention backward reads a tile and its transpose: ldmatrix and ldmatrix.trans over one swizzle."""
    writer = coalesced((64, 64), 16, 4, (1, 0), 8, 16)
    left = nvidia_mma_operand((64, 64), 0, 2, 2, (2, 2), (16, 8))
    turned = trans(nvidia_mma_operand((64, 64), 1, 2, 2, (2, 2), (16, 8)), (1, 0))
    plan = plan_buffer(writer, ((left, 0), (turned, 0)), 16, HOPPER, vector(writer, 1, 8), 32)
    check(plan, writer, (left, turned))
    assert [str(read) for read in plan.reads] == ["ldmatrix 8 x x4", "ldmatrix 8 x x4"]
    assert [read.cost.wavefronts for read in plan.reads] == [128, 128]


def test_registers_of_later_steps_are_read_last() -> None:
    """[64, 128] float16, the right operand of ``mma.m16n8k16`` for a column of warps: 32 loads of 4 matrices. An instruction
    takes 16 rows, by register bits 0 (a pair) and 1. Bits 2 and 3 go on to later rows, 4 to 7 to other columns. So the first 8
    loads have the first 16 rows. The swizzle mixes three bits of the column with the row: one is a load's own, two are XORs."""
    writer = coalesced((64, 128), 16, 4, (1, 0), 8, 16)
    reader = nvidia_mma_operand((64, 128), 1, 2, 2, (4, 1), (16, 8))
    later = 0b1100
    plan = plan_buffer(writer, ((reader, later),), 16, AMPERE, vector(writer, 1, 8), 32)
    check(plan, writer, (reader,))
    (read,) = plan.reads
    assert str(read) == "ldmatrix 32 x x4.trans"
    assert [bool(unit & later) for unit in read.across] == [False] * 5 + [True] * 2
    assert plan.addresses == 4


def test_threads_with_copies_copy_once() -> None:
    """One warp holds all of the tile; three others hold it, too."""
    writer = blocked((16, 16), (1, 8), (16, 2), (4, 1), (1, 0))
    reader = nvidia_mma_operand((16, 16), 0, 2, 2, (1, 4), (16, 8))
    plan = plan_buffer(writer, ((reader, 0),), 16, AMPERE, vector(writer, 1, 8), 32)
    check(plan, writer, (reader,))
    assert (plan.stores.idle, plan.stores.cost.wavefronts) == ((0, 3), 4)


def test_no_memory_lets_a_thread_copy_what_it_does_not_hold() -> None:
    writer = blocked((32, 32), (1, 1), (1, 32), (4, 1), (1, 0))
    with pytest.raises(ValueError, match="^plan_buffer: no memory layout lets a thread of .* copy 32 bits at once$"):
        plan_buffer(writer, ((writer, 0),), 16, AMPERE, (), 32)


GRIDS = ((1, 4), (2, 2), (4, 1))


@given(st.data())
@examples(60)
def test_random_pairs_move_every_element(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([(16, 16), (32, 16), (16, 64), (64, 32)]))
    bits = data.draw(st.sampled_from([8, 16, 32]))
    order = data.draw(st.sampled_from([(1, 0), (0, 1)]))
    run = data.draw(st.sampled_from([32 // bits, 64 // bits, 128 // bits]))
    writer = coalesced(shape, bits, 4, order, run, run * bits // 8)
    inside = vector(writer, shape[1] if order[0] == 0 else 1, run)

    def operand(index: int, grid: tuple[int, int]) -> LinearLayout:
        return nvidia_mma_operand(shape, index, max(1, 32 // bits), 2, grid, (16, 8))

    readers = tuple(
        data.draw(
            st.lists(
                st.sampled_from([*(operand(i, grid) for i in (0, 1) for grid in GRIDS), coalesced(shape, bits, 4)]),
                min_size=1,
                max_size=2,
                unique=True,
            )
        )
    )
    machine = data.draw(st.sampled_from([AMPERE, HOPPER, replace(HOPPER, name="bytes", matrix_b8=True)]))
    reads = tuple((reader, data.draw(st.integers(0, reader.in_size("register") - 1))) for reader in readers)
    check(plan_buffer(writer, reads, bits, machine, inside, min(32, bits << len(inside))), writer, readers)
    stored = plan_buffer(writer, reads, bits, machine)
    check(stored, writer, readers)

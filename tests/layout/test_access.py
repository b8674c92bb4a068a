"""Accesses to given memory layouts: simulated on labels against the evaluation of both layouts, element by element; and counts,
addresses and refusals against hand derivations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sampling import examples
from weft.layout import LinearLayout, blocked, mma_swizzled, nvidia_mma, nvidia_mma_operand, nvmma_shared, unswizzled
from weft.layout.memory.banks import Banks, access_map, bank_conflicts
from weft.layout.planning.access import WAYS, AccessPlan, plan_access, why_not_access
from weft.layout.planning.machine import AMPERE, HOPPER, vector_machine

BYTES = replace(HOPPER, name="bytes", matrix_b8=True)


def elements(layout: LinearLayout, block: int = 0) -> NDArray[Any]:
    """The flattened element of each warp, lane and register, or of each offset, of a block, by evaluating the layout."""
    dims = [dim for dim in ("warp", "lane", "register", "offset") if dim in layout.in_dims]
    sizes = [layout.in_size(dim) for dim in dims]
    found = np.empty(sizes, dtype=np.int64)
    own = {"block": block} if "block" in layout.in_dims else {}
    for place in np.ndindex(*sizes):
        found[place] = layout.flat(**dict(zip(dims, place, strict=True)), **own)
    return found


def check(plan: AccessPlan, distributed: LinearLayout, memory: LinearLayout) -> None:
    """Load a buffer that holds each element's number, or store the numbers and compare the buffer; for every block."""
    same_order = memory.transpose_outs(distributed.out_dims)
    blocks = max(layout.in_size("block") if "block" in layout.in_dims else 1 for layout in (distributed, memory))
    for block in range(blocks):
        buffer = elements(same_order, block % (memory.in_size("block") if "block" in memory.in_dims else 1))
        held = elements(distributed, block % (distributed.in_size("block") if "block" in distributed.in_dims else 1))
        if not plan.stores:
            np.testing.assert_array_equal(plan.load(buffer, block), held)
            continue
        empty = np.full_like(buffer, -1)
        plan.store(held, empty, block)
        written = empty != -1
        np.testing.assert_array_equal(empty[written], buffer[written])
        # Every element that a thread of the block holds is in memory.
        assert set(held.ravel()) == set(empty[written])


# Worked by hand

A_OPERAND = nvidia_mma_operand((16, 64), 0, 2, 2, (1, 1), (16, 8))


def test_ldmatrix_of_a_swizzled_left_operand() -> None:
    """[16, 64] float16 in 128-byte swizzle: a row of the tensor is 128 bytes. mma's left operand of 16 x 16: register bit 0 is
    column bit 0 and lanes 0, 1 column bits 1, 2: a row of 16 bytes. Lanes 2, 3, 4 are row bits 0, 1, 2, at byte offsets 128, 256,
    512, each plus its swizzle 16, 32, 64. Register bit 1 is row bit 3 (byte 1024), bit 2 column bit 3 (byte 16), bits 3 and 4
    column bits 4 and 5 (bytes 32 and 64)."""
    memory = nvmma_shared((16, 64), 128, 16)
    plan = plan_access(A_OPERAND, memory, 16, HOPPER)
    assert str(plan) == "ldmatrix 4 x x4"
    # Lane l gives the address of row l % 8 of matrix l / 8.
    assert plan.addressed == (128 + 16, 256 + 32, 512 + 64, 1024, 16)
    # Both steps along columns are bits that the swizzle has in the lanes' addresses.
    assert (plan.xors, plan.immediates) == ((32, 64), (0, 0))
    # 4 instructions of 4 matrices of 8 rows of 16 bytes: one wavefront a matrix, since the swizzle spreads 8 rows over the banks.
    assert (plan.cost.loads, plan.cost.wavefronts, plan.cost.permutes) == (4, 16, 0)
    check(plan, A_OPERAND, memory)


def test_without_the_swizzle_rows_meet_in_banks_and_columns_are_immediates() -> None:
    memory = unswizzled((16, 64))
    plan = plan_access(A_OPERAND, memory, 16, HOPPER, way="matrix")
    assert plan.addressed == (128, 256, 512, 1024, 16)
    assert (plan.xors, plan.immediates) == ((0, 0), (32, 64))
    # All 8 rows of a matrix begin in one bank.
    assert plan.cost.wavefronts == 16 * 8
    check(plan, A_OPERAND, memory)


def test_transposed_operand_takes_ldmatrix_trans() -> None:
    """The right operand from a row-major [64, 8] buffer: its columns are lanes 2, 3, 4, which lie side by side in memory."""
    operand = nvidia_mma_operand((64, 8), 1, 2, 2, (1, 1), (16, 8))
    memory = unswizzled((64, 8))
    plan = plan_access(operand, memory, 16, HOPPER)
    # 64 rows of 8 columns: 8 matrices, 4 an instruction; rows of 16 bytes follow one another without conflicts.
    assert (str(plan), plan.cost.loads, plan.cost.wavefronts) == ("ldmatrix 2 x x4.trans", 2, 8)
    assert plan.immediates == (512,)
    check(plan, operand, memory)
    message = "basis 0 of lane moves the offset by 16, expected 2"
    assert why_not_access(operand, memory, 16, HOPPER, "matrix") == message


def test_stmatrix_where_the_machine_has_it() -> None:
    result = nvidia_mma((16, 64), 2, (1, 1), (16, 8))
    memory = nvmma_shared((16, 64), 128, 16)
    assert str(plan_access(result, memory, 16, HOPPER, stores=True)) == "stmatrix 4 x x4"
    plan = plan_access(result, memory, 16, AMPERE, stores=True)
    assert str(plan) == "store 16 x 32 bits"
    assert plan.reason == (
        "store 16 x 32 bits: 16 clocks; not matrix: sm_80 has no stmatrix; not transposed: sm_80 has no stmatrix.trans; "
        "not bytes: sm_80 has no stmatrix.trans.b8"
    )
    check(plan, result, memory)


def test_vectors_are_as_wide_as_the_swizzle_leaves_them() -> None:
    """A swizzle of vec = 4 float32 keeps 16 bytes together; one of vec = 2 keeps 8."""
    layout = blocked((32, 32), (1, 4), (4, 8), (1, 1), (1, 0))
    widths = [
        plan_access(layout, mma_swizzled((32, 32), vec, 1, 8), 32, HOPPER, way="vector").width for vec in (4, 2, 1)
    ]
    assert widths == [128, 64, 32]


def test_copies_are_stored_once_and_loaded_by_all() -> None:
    layout = LinearLayout(
        {"register": [(0,), (32,)], "lane": [(1,), (2,), (4,), (8,), (0,)], "warp": [(0,), (16,)]}, {"dim0": 64}
    )
    memory = unswizzled((64,))
    stores, loads = (plan_access(layout, memory, 32, HOPPER, stores, "vector") for stores in (True, False))
    assert (stores.idle, loads.idle) == ((0b10000, 0b01), (0, 0))
    # 16 lanes with 16 words, for each of 2 elements: 2 wavefronts a warp, in 2 of 4 warps when stored.
    assert (stores.cost.stores, stores.cost.wavefronts) == (2, 4)
    assert (loads.cost.loads, loads.cost.wavefronts) == (2, 8)
    check(stores, layout, memory)
    check(loads, layout, memory)


def test_blocks_access_their_own_part() -> None:
    layout = blocked((64, 64), (1, 8), (4, 8), (4, 1), (1, 0), cga_layout=[(1, 0)])
    memory = nvmma_shared((64, 64), 128, 16, cga_layout=[(1, 0)])
    check(plan_access(layout, memory, 16, HOPPER), layout, memory)
    # A memory in which each block has all of the tensor: blocks differ in their addresses.
    whole = nvmma_shared((64, 64), 128, 16)
    plan = plan_access(layout, whole, 16, HOPPER)
    assert plan.columns.block == (32 * 64,)
    check(plan, layout, whole)


def test_bytes_are_transposed_where_the_machine_can() -> None:
    operand = nvidia_mma_operand((32, 16), 1, 4, 2, (1, 1), (16, 8))
    memory = unswizzled((32, 16))
    plan = plan_access(operand, memory, 8, BYTES)
    assert (str(plan), plan.cost.loads) == ("ldmatrix 1 x x2.trans.b8", 1)
    check(plan, operand, memory)
    assert why_not_access(operand, memory, 8, HOPPER, "bytes") == "sm_90 has no ldmatrix.trans.b8"


def test_a_swizzle_below_the_vector_leaves_it_whole_only_within_a_thread() -> None:
    """A memory whose offset 4 is element 5: element 4 is at offset 5. A thread that has elements 0, 1, 4 and 5 finds two vectors,
    the second in the order of registers 3 and 2. A warp that begins at element 4 finds its vector turned round, and so loads
    single elements."""
    memory = LinearLayout.parse("{offset: [1,2,5,8,16,32,64]} -> [dim0: 128]")
    mine = LinearLayout.parse("{register: [1,4], lane: [2,8,16,32,64], warp: []} -> [dim0: 128]")
    plan = plan_access(mine, memory, 32, HOPPER)
    assert (plan.width, plan.inside, plan.across) == (64, (0b01,), (0b11,))
    check(plan, mine, memory)
    for dim in ("warp", "block"):
        own = f"{dim}: [4]" if dim == "warp" else "warp: [], block: [4]"
        other = LinearLayout.parse(f"{{register: [1], lane: [2,8,16,32,64], {own}}} -> [dim0: 128]")
        plan = plan_access(other, memory, 32, HOPPER)
        assert plan.width == 32
        check(plan, other, memory)


# Laws


@st.composite
def pairs(draw: st.DrawFn) -> tuple[LinearLayout, LinearLayout]:
    """A register layout of 32 lanes and any bijective memory layout of one tensor: often one for which matrix ways exist."""
    bits = draw(st.integers(0, 9))
    units = [1 << bit for bit in range(bits)]
    outputs = (("dim0", bits),)
    blocks = draw(st.integers(0, min(1, bits)))
    own, other = units[: bits - blocks], units[bits - blocks :]
    # Memory: the units in order, each plus lower ones of a swizzle.
    order = draw(st.permutations(own)) if draw(st.booleans()) else own
    offset = [unit ^ draw(st.sampled_from([0, *order[:at]])) for at, unit in enumerate(order)]
    memory = LinearLayout.from_columns(
        {"offset": tuple(offset), **({"block": tuple(other)} if blocks else {})}, outputs
    )
    warp_bits, register_bits = draw(st.integers(0, 2)), draw(st.integers(0, 4))
    columns = draw(st.sampled_from((own, offset)))
    zeros = [0] * max(0, 5 + warp_bits + register_bits - len(columns))
    if draw(st.booleans()):
        columns = draw(st.permutations([*columns, *zeros]))
    else:
        # Registers, lanes and rows as a matrix instruction has them.
        low = draw(st.sampled_from([(0, 1, 2), (1, 2), (2, 3), (3, 4, 5)]))
        rest = [unit for at, unit in enumerate(columns) if at not in low] + zeros
        lanes = [columns[at] for at in low if at < len(columns)]
        at = draw(st.sampled_from((0, 2)))
        five = (rest[:at] + lanes + rest[at:])[:5]
        pool = [unit for unit in [*columns, *zeros] if unit not in five or not unit]
        columns = pool[:register_bits] + five + pool[register_bits:]
        cut = register_bits
        return _layout(columns, cut, warp_bits, other, outputs), memory
    return _layout(columns, register_bits, warp_bits, other, outputs), memory


def _layout(
    columns: list[int], cut: int, warp_bits: int, blocks: list[int], outputs: tuple[tuple[str, int], ...]
) -> LinearLayout:
    lane = (*columns[cut : cut + 5], *([0] * 5))[:5]
    dims = {"register": tuple(columns[:cut]), "lane": lane, "warp": tuple(columns[cut + 5 : cut + 5 + warp_bits])}
    return LinearLayout.from_columns({**dims, **({"block": tuple(blocks)} if blocks else {})}, outputs)


@examples(300)
@given(pairs(), st.sampled_from((8, 16, 32, 64)), st.booleans())
def test_every_way_moves_what_the_layouts_say(
    drawn: tuple[LinearLayout, LinearLayout], bits: int, stores: bool
) -> None:
    distributed, memory = drawn
    plans = [plan_access(distributed, memory, bits, BYTES, stores)]
    for way in WAYS:
        reason = why_not_access(distributed, memory, bits, BYTES, way, stores)
        if reason is None:
            plans.append(plan_access(distributed, memory, bits, BYTES, stores, way))
        else:
            with pytest.raises(ValueError) as caught:
                plan_access(distributed, memory, bits, BYTES, stores, way)
            assert str(caught.value) == f"plan_access: no access by {way}: {reason}"
    for plan in plans:
        check(plan, distributed, memory)
        # The immediate and the XORed part of an instruction's column share no bit with each other.
        assert all(x & i == 0 for x, i in zip(plan.xors, plan.immediates, strict=True))


@examples(100)
@given(pairs(), st.sampled_from((8, 16, 32, 64)))
def test_wavefronts_of_vectors_are_those_of_the_conflict_count(
    drawn: tuple[LinearLayout, LinearLayout], bits: int
) -> None:
    """`bank_conflicts` counts by ranks; the plan by addresses."""
    distributed, memory = drawn
    plan = plan_access(distributed, memory, bits, HOPPER, way="vector")
    counted = bank_conflicts(distributed, memory, bits, plan.width // bits, Banks())
    assert (plan.cost.wavefronts, plan.instructions << len(plan.columns.warp)) == (counted.wavefronts, counted.requests)


@examples(150)
@given(pairs(), st.sampled_from((8, 16, 32)), st.data())
def test_theorem_5_1(drawn: tuple[LinearLayout, LinearLayout], bits: int, data: st.DataObject) -> None:
    """A way exists iff the access map, its registers in some order, divides by the instruction's tile on the left: here for
    memory without a swizzle, where registers only have to be permuted."""
    distributed = drawn[0]
    assume(all(not column & (column - 1) for column in distributed.columns("register")))
    offsets = data.draw(st.permutations([1 << bit for bit in range(distributed.out_bits)]))
    home = dict(distributed.inputs).get("block", ())
    own = tuple(unit for unit in offsets if unit not in home)
    memory = LinearLayout.from_columns({"offset": own, **({"block": home} if home else {})}, distributed.outputs)
    access = access_map(distributed, memory)
    held = [column for column in access.columns("register") if column]

    def divides(tile: LinearLayout, lanes: tuple[int, ...]) -> bool:
        lane = tuple(access.columns("lane")[at] for at in lanes)
        found = (access.with_columns({"register": order, "lane": lane}) for order in permutations(held))
        return any(layout.divide_left(tile) is not None for layout in found)

    def tile(registers: int, lanes: int) -> LinearLayout:
        return LinearLayout.identity(registers, "register", "offset") * LinearLayout.identity(lanes, "lane", "offset")

    matrix = divides(tile(32 // bits, 4), (0, 1, 2, 3, 4))
    assert matrix == (why_not_access(distributed, memory, bits, BYTES, "matrix") is None)
    widths = [size for size in range(6) if bits << size <= 128 and divides(tile(1 << size, 1), (0, 1, 2, 3, 4))]
    assert plan_access(distributed, memory, bits, BYTES, way="vector").width == bits << max(widths)
    if bits < 32:
        # A register has to be left for the rows that meet in a word.
        unit = 16 // bits
        transposed = divides(tile(unit, 8), (2, 3, 4, 0, 1)) and len(held) > unit.bit_length() - 1
        assert transposed == (why_not_access(distributed, memory, bits, BYTES, "transposed") is None)


ROW = blocked((4, 32), (1, 1), (1, 32), (1, 1), (1, 0))


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (
            lambda: plan_access(ROW, unswizzled((4, 32)), 4, HOPPER),
            "plan_access: bits is 4, expected a power of two from 8 to 128",
        ),
        (
            lambda: plan_access(ROW, unswizzled((8, 32)), 32, HOPPER),
            f"plan_access: the layouts are of different tensors: {ROW} and {unswizzled((8, 32))}",
        ),
        (
            lambda: plan_access(LinearLayout({"lane": [(1,)]}, {"dim0": 2}), unswizzled((2,)), 32, HOPPER),
            "plan_access: the register layout has 2 lanes, sm_90 has 32",
        ),
        (
            lambda: plan_access(LinearLayout({"thread": [(1,)]}, {"dim0": 2}), unswizzled((2,)), 32, HOPPER),
            "plan_access: the register layout has input dimension thread, expected register, lane, warp, block",
        ),
        (
            lambda: plan_access(ROW, unswizzled((4, 32), cga_layout=[(1, 0)]), 32, HOPPER),
            "plan_access: basis 1 of register leads to element (2, 0), which the block's own memory does not hold",
        ),
        (
            lambda: plan_access(ROW, unswizzled((4, 32)), 32, HOPPER, way="trans"),
            "plan_access: way is 'trans', expected one of vector, matrix, transposed, bytes",
        ),
        (
            lambda: plan_access(ROW, unswizzled((4, 32)), 32, vector_machine(32)),
            "plan_access: cpu has no shared memory",
        ),
        (
            lambda: plan_access(ROW, unswizzled((4, 32)), 64, HOPPER, way="matrix"),
            "plan_access: no access by matrix: ldmatrix moves elements of 8 or 16 or 32 bits, not 64",
        ),
    ],
)
def test_refusals(fails: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        fails()
    assert str(caught.value) == message

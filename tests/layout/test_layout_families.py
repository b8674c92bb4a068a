"""Blocked, sliced and vector layouts: the definitions by arithmetic on indices, edge cases, errors.

That they are Triton's is compared in test_families_golden.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from weft.layout import LinearLayout, blocked, blocked_operand, sliced, vector, why_not_distributed


def delinearize(index: int, sizes: Sequence[int], order: Sequence[int]) -> list[int]:
    """The coordinates of a linear index, the first dimension of ``order`` fastest."""
    coordinates = [0] * len(sizes)
    for axis in order:
        index, coordinates[axis] = divmod(index, sizes[axis])
    return coordinates


@st.composite
def blocked_arguments(draw: st.DrawFn) -> tuple[tuple[int, ...], ...]:
    rank = draw(st.integers(1, 3))
    sizes = [tuple(1 << draw(st.integers(0, bits)) for _ in range(rank)) for bits in (3, 1, 2, 1)]
    return (*sizes, tuple(draw(st.permutations(range(rank)))))


@given(blocked_arguments())
@examples(80)
def test_blocked_is_tiles_of_tiles(arguments: tuple[tuple[int, ...], ...]) -> None:
    """Element = warp tile + thread tile + own element + repetition, as with ordinary division, wrapped at the tensor's size."""
    shape, per_thread, threads, warps, order = arguments
    layout = blocked(shape, per_thread, threads, warps, order)
    tile = [a * b * c for a, b, c in zip(per_thread, threads, warps, strict=True)]
    # Registers of a thread that survive: those of its own tile that fit the tensor, then whole-tile repetitions.
    own = [min(size, full) for size, full in zip(per_thread, shape, strict=True)]
    repetitions = [max(1, full // size) for full, size in zip(shape, tile, strict=True)]
    assert layout.in_size("register") == math.prod(own) * math.prod(repetitions)
    assert (layout.in_size("lane"), layout.in_size("warp")) == (math.prod(threads), math.prod(warps))
    for register, lane, warp in itertools.product(*(range(layout.in_size(dim)) for dim in layout.in_dims)):
        r = delinearize(register % math.prod(own), own, order)
        again = delinearize(register // math.prod(own), repetitions, order)
        t = delinearize(lane, threads, order)
        w = delinearize(warp, warps, order)
        expected = [
            (again[k] * tile[k] + (w[k] * threads[k] + t[k]) * per_thread[k] + r[k]) % shape[k]
            for k in range(len(shape))
        ]
        assert list(layout.apply({"register": register, "lane": lane, "warp": warp}).values()) == expected


def test_the_modules_example() -> None:
    layout = blocked((4, 8), (1, 2), (2, 4), (1, 1), (1, 0))
    assert str(layout) == "{register: [(0,1),(2,0)], lane: [(0,2),(0,4),(1,0)], warp: []} -> [dim0: 4, dim1: 8]"


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        # One element: everything is a copy, and registers hold no copies.
        (blocked((1,), (4,), (2,), (2,), (0,)), "{register: [], lane: [0], warp: [0]} -> [dim0: 1]"),
        (blocked((), (), (), (), ()), "{register: [], lane: [], warp: []} -> []"),
        # The tile is 2*4*2 = 16 on 8 elements: the warp's bit is in excess.
        (blocked((8,), (2,), (4,), (2,), (0,)), "{register: [1], lane: [2,4], warp: [0]} -> [dim0: 8]"),
        # On 4 elements the upper lane bit is in excess too.
        (blocked((4,), (2,), (4,), (2,), (0,)), "{register: [1], lane: [2,0], warp: [0]} -> [dim0: 4]"),
        # On 64 the tile repeats 4 times.
        (blocked((64,), (2,), (4,), (2,), (0,)), "{register: [1,16,32], lane: [2,4], warp: [8]} -> [dim0: 64]"),
        (vector((64,)), "{register: [16,32], lane: [1,2,4,8]} -> [dim0: 64]"),
        (vector((2, 4), lanes=16), "{register: [], lane: [(0,1),(0,2),(1,0),(0,0)]} -> [dim0: 2, dim1: 4]"),
        (vector((), lanes=4), "{register: [], lane: [(),()]} -> []"),
        (vector((1, 1), lanes=2), "{register: [], lane: [(0,0)]} -> [dim0: 1, dim1: 1]"),
        (vector((4,), lanes=1), "{register: [1,2], lane: []} -> [dim0: 4]"),
        (vector((2, 4), 4, (0, 1)), "{register: [(0,2)], lane: [(1,0),(0,1)]} -> [dim0: 2, dim1: 4]"),
    ],
)
def test_edge_cases(layout: LinearLayout, text: str) -> None:
    assert str(layout) == text
    assert why_not_distributed(layout) is None


@given(blocked_arguments(), st.data())
@examples(60)
def test_a_cluster_cuts_the_tensor_first(arguments: tuple[tuple[int, ...], ...], data: st.DataObject) -> None:
    """On each block the layout is that of the part alone, moved to where the part begins."""
    shape, per_thread, threads, warps, order = arguments
    splits = tuple(data.draw(st.integers(0, size.bit_length() - 1)) for size in shape)
    bases = [
        tuple(1 << bit if k == axis else 0 for k in range(len(shape)))
        for axis, split in enumerate(splits)
        for bit in range(split)
    ]
    bases = data.draw(st.permutations([*bases, (0,) * len(shape)]))
    part = [size >> split for size, split in zip(shape, splits, strict=True)]
    whole = blocked(shape, per_thread, threads, warps, order, cga_layout=bases)
    alone = blocked(part, per_thread, threads, warps, order)
    assert whole.in_dims == ("register", "lane", "warp", "block")
    for block in range(whole.in_size("block")):
        chosen = [basis for bit, basis in enumerate(bases) if block >> bit & 1]
        start = [sum(basis[k] for basis in chosen) * part[k] for k in range(len(shape))]
        for register, lane, warp in itertools.product(*(range(alone.in_size(dim)) for dim in alone.in_dims)):
            element = alone.unflatten(alone.flat(register=register, lane=lane, warp=warp))
            expected = tuple(a + b for a, b in zip(element, start, strict=True))
            assert whole.unflatten(whole.flat(register=register, lane=lane, warp=warp, block=block)) == expected


@given(blocked_arguments(), st.sampled_from([0, 1]), st.integers(0, 3))
@examples(60)
def test_a_thread_has_the_operands_of_its_results(
    arguments: tuple[tuple[int, ...], ...], index: int, summed_bits: int
) -> None:
    """The elements of operand 0 that a thread holds are its result rows times all of the contraction; operand 1: columns."""
    shape, per_thread, threads, warps, order = arguments
    if len(shape) < 2:
        return
    result = blocked(shape, per_thread, threads, warps, order)
    operand_shape = list(shape)
    operand_shape[-1 if index == 0 else -2] = 1 << summed_bits
    operand = blocked_operand(operand_shape, index, per_thread, threads, warps, order)
    for lane, warp in itertools.product(range(result.in_size("lane")), range(result.in_size("warp"))):
        needed: set[tuple[int, ...]] = set()
        for register in range(result.in_size("register")):
            element = list(result.unflatten(result.flat(register=register, lane=lane, warp=warp)))
            for summed in range(1 << summed_bits):
                element[-1 if index == 0 else -2] = summed
                needed.add(tuple(element))
        held = {
            operand.unflatten(operand.flat(register=register, lane=lane, warp=warp))
            for register in range(operand.in_size("register"))
        }
        assert held == needed


@given(st.lists(st.integers(0, 3), max_size=3), st.integers(0, 4), st.data())
@examples(60)
def test_vectors_are_consecutive_elements(shape_bits: list[int], lane_bits: int, data: st.DataObject) -> None:
    shape = [1 << bits for bits in shape_bits]
    order = data.draw(st.permutations(range(len(shape))))
    lanes, elements = 1 << lane_bits, math.prod(shape)
    layout = vector(shape, lanes, order)
    assert layout.in_size("register") == max(1, elements // lanes)
    for register, lane in itertools.product(range(layout.in_size("register")), range(lanes)):
        expected = delinearize((register * lanes + lane) % elements, shape, order)
        assert list(layout.apply({"register": register, "lane": lane}).values()) == expected


def test_the_default_order_is_row_major() -> None:
    assert vector((8, 4, 16)) == vector((8, 4, 16), 16, (2, 1, 0))
    assert [vector((4, 8), 4).flat(register=r, lane=c) for r in range(8) for c in range(4)] == list(range(32))


def test_slicing_forgets_a_coordinate() -> None:
    parent = blocked((4, 8), (1, 2), (2, 4), (1, 1), (1, 0))
    # Without dim1: register bit 0 and lane bits 0, 1 move only dim1. The register bit goes, the lane bits become zero.
    assert str(sliced(parent, 1)) == "{register: [2], lane: [0,0,1], warp: []} -> [dim0: 4]"
    # Without dim0: dim1 is renumbered.
    assert str(sliced(parent, 0)) == "{register: [1], lane: [2,4,0], warp: []} -> [dim0: 8]"
    assert str(sliced(sliced(parent, 0), 0)) == "{register: [], lane: [(),(),()], warp: []} -> []"
    # A memory layout has no registers to drop.
    assert str(sliced(parent.rename({"register": "offset"}), 1)) == (
        "{offset: [0,2], lane: [0,0,1], warp: []} -> [dim0: 4]"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{register: [1,2], lane: [0]} -> [dim0: 4]", None),
        ("{} -> []", None),
        ("{register: [1,3]} -> [dim0: 4]", "basis 1 of register is (3,), expected at most one bit set"),
        (
            "{register: [(1,0)], lane: [(0,1),(1,0)]} -> [dim0: 2, dim1: 2]",
            "basis 1 of lane is (1, 0), and so is basis 0 of register",
        ),
        ("{register: [1], lane: [0]} -> [dim0: 4]", "it is not surjective: 1 of 2 output bits are reached"),
    ],
)
def test_distributed_layouts(text: str, reason: str | None) -> None:
    assert why_not_distributed(LinearLayout.parse(text)) == reason


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: blocked((4, 4), (1,), (2, 2), (1, 1), (1, 0)),
            "blocked: size_per_thread (1,) has 1 dimensions, the shape has 2",
        ),
        (
            lambda: blocked((4, 4), (1, 1), (2, 2, 2), (1, 1), (1, 0)),
            "blocked: threads_per_warp (2, 2, 2) has 3 dimensions, the shape has 2",
        ),
        (lambda: blocked((4,), (1,), (2,), (3,), (0,)), "blocked: warps_per_cta (3,) holds 3, expected powers of two"),
        (
            lambda: blocked((4,), (0,), (2,), (1,), (0,)),
            "blocked: size_per_thread (0,) holds 0, expected powers of two",
        ),
        (
            lambda: blocked((4, 4), (1, 1), (2, 2), (1, 1), (1, 1)),
            "blocked: order (1, 1) is not a permutation of the 2 dimensions",
        ),
        (lambda: blocked((4, 6), (1, 1), (1, 1), (1, 1), (1, 0)), "dim1 of shape (4, 6) is 6, expected a power of two"),
        (
            lambda: blocked((4,), (1,), (2,), (1,), (0,), cga_layout=[(2,)]),
            "blocked: cga_layout: 2 along dim0 is there but not 1",
        ),
        (
            lambda: blocked_operand((4, 4), 2, (1, 1), (2, 2), (1, 1), (1, 0)),
            "blocked_operand: operand_index is 2, expected 0 (left) or 1 (right)",
        ),
        (
            lambda: blocked_operand((4,), 0, (1,), (2,), (1,), (0,)),
            "blocked_operand: shape (4,) has 1 dimensions, expected 2, or 3 with a batch",
        ),
        (
            lambda: blocked_operand((4, 4), 0, (1, 1), (2, 2), (1, 1), (0, 0)),
            "blocked_operand: order (0, 0) is not a permutation of the 2 dimensions",
        ),
        (
            lambda: blocked_operand((4, 4), 0, (1, 1), (2, 2), (3, 1), (1, 0)),
            "blocked_operand: warps_per_cta (3, 1) holds 3, expected powers of two",
        ),
        (lambda: vector((0,)), "dim0 of shape (0,) is 0, expected a power of two"),
        (lambda: vector((4,), 12), "vector: lanes is 12, expected a power of two"),
        (lambda: vector((4,), 4, (1,)), "vector: order (1,) is not a permutation of the 1 dimensions"),
        (lambda: sliced(vector((4,)), 1), "sliced: dimension 1 is out of range for rank 1"),
        (lambda: sliced(vector((4,)), -1), "sliced: dimension -1 is out of range for rank 1"),
    ],
)
def test_families_say_what_they_require(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message

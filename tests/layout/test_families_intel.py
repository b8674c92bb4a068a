"""Intel's fragments against the documents.

``PASSED`` is what a work item passes, by the OpenCL extension cl_intel_subgroup_matrix_multiply_accumulate: component ``c`` of
the vector argument of work item ``t``, packed elements ``p`` from the lowest bits up. ``EXPECTED`` are expectations of the public
unit tests of Intel's Triton backend (DPAStoLinearLayoutTest), which also fix the order of registers beyond one tile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from weft.layout import LinearLayout, intel_dpas, intel_dpas_operand, why_not_distributed

Passed: TypeAlias = Callable[[int, int, int], tuple[int, int]]
"""(work item, component, element packed in it) -> (row, column)."""

# (name, sub-group = threads_per_warp, execution_size, ops_per_channel, operand, shape, packed elements, formula)
PASSED: list[tuple[str, int, int, int, int | None, tuple[int, int], int, Passed]] = [
    # f16_f16_matrix_mad_k16, sub-group of 16: short8 a, int8 b, float8 acc.
    ("f16 a", 16, 16, 2, 0, (8, 16), 1, lambda t, c, p: (c, t)),
    ("f16 b", 16, 16, 2, 1, (16, 16), 2, lambda t, c, p: (2 * c + p, t)),
    ("f16 acc", 16, 16, 2, None, (8, 16), 1, lambda t, c, p: (c, t)),
    # i8_i8_matrix_mad_k32, sub-group of 16: short8 a, int8 b, int8 acc.
    ("i8 a", 16, 16, 4, 0, (8, 32), 2, lambda t, c, p: (c, 2 * t + p)),
    ("i8 b", 16, 16, 4, 1, (32, 16), 4, lambda t, c, p: (4 * c + p, t)),
    # tf32_tf32_matrix_mad_k8, sub-group of 16: float4 a, two rows in each; float8 b.
    ("tf32 a", 16, 16, 1, 0, (8, 8), 1, lambda t, c, p: (2 * c + t // 8, t % 8)),
    ("tf32 b", 16, 16, 1, 1, (8, 16), 1, lambda t, c, p: (c, t)),
    # Sub-groups of 8: int8 a holds 32 bits of a row per work item.
    ("f16 a, 8", 8, 8, 2, 0, (8, 16), 2, lambda t, c, p: (c, 2 * t + p)),
    ("f16 b, 8", 8, 8, 2, 1, (16, 8), 2, lambda t, c, p: (2 * c + p, t)),
    ("i8 a, 8", 8, 8, 4, 0, (8, 32), 4, lambda t, c, p: (c, 4 * t + p)),
    ("i8 b, 8", 8, 8, 4, 1, (32, 8), 4, lambda t, c, p: (4 * c + p, t)),
    ("i8 acc, 8", 8, 8, 4, None, (8, 8), 1, lambda t, c, p: (c, t)),
]


def build(
    operand: int | None,
    shape: tuple[int, ...],
    warps: tuple[int, ...],
    execution_size: int,
    ops_per_channel: int,
    threads: int,
    cluster: tuple[int, ...] | None = None,
    repeat_count: int = 8,
) -> LinearLayout:
    if operand is None:
        return intel_dpas(shape, warps, repeat_count, 8, execution_size, ops_per_channel, threads, cluster)
    return intel_dpas_operand(shape, operand, warps, repeat_count, 8, execution_size, ops_per_channel, threads, cluster)


@pytest.mark.parametrize(("name", "threads", "execution_size", "ops", "operand", "shape", "packed", "passed"), PASSED)
def test_fragments_are_what_work_items_pass(
    name: str,
    threads: int,
    execution_size: int,
    ops: int,
    operand: int | None,
    shape: tuple[int, int],
    packed: int,
    passed: Passed,
) -> None:
    layout = build(operand, shape, (1, 1), execution_size, ops, threads)
    assert layout.in_size("register") * threads == shape[0] * shape[1], name
    for lane in range(threads):
        for register in range(layout.in_size("register")):
            component, element = divmod(register, packed)
            assert layout.unflatten(layout.flat(register=register, lane=lane)) == passed(lane, component, element), name


# (operand, shape, warps, ops_per_channel, rep_cluster, threads, register, lane, warp); execution_size 16, repeat_count 8
EXPECTED: list[tuple[int | None, str, str, int, str, int, str, str, str]] = [
    (None, "8,16", "1,1", 2, "1,1", 32, "2,0 4,0", "0,1 0,2 0,4 0,8 1,0", ""),
    (None, "8,16", "1,1", 1, "1,1", 16, "1,0 2,0 4,0", "0,1 0,2 0,4 0,8", ""),
    (0, "8,32", "1,1", 4, "1,1", 32, "0,1 2,0 4,0", "0,2 0,4 0,8 0,16 1,0", ""),
    (0, "8,16", "1,1", 2, "1,1", 32, "2,0 4,0", "0,1 0,2 0,4 0,8 1,0", ""),
    (0, "8,8", "1,1", 1, "1,1", 32, "4,0", "0,1 0,2 0,4 1,0 2,0", ""),
    (1, "32,16", "1,1", 4, "1,1", 32, "1,0 2,0 8,0 16,0", "0,1 0,2 0,4 0,8 4,0", ""),
    (1, "16,16", "1,1", 2, "1,1", 32, "1,0 4,0 8,0", "0,1 0,2 0,4 0,8 2,0", ""),
    (1, "8,16", "1,1", 1, "1,1", 32, "2,0 4,0", "0,1 0,2 0,4 0,8 1,0", ""),
    (None, "32,32", "1,1", 2, "4,2", 16, "1,0 2,0 4,0 0,16 8,0 16,0", "0,1 0,2 0,4 0,8", ""),
    (0, "32,16", "1,1", 2, "4,2", 32, "2,0 4,0 8,0 16,0", "0,1 0,2 0,4 0,8 1,0", ""),
    (1, "16,32", "1,1", 2, "4,2", 32, "1,0 4,0 8,0 0,16", "0,1 0,2 0,4 0,8 2,0", ""),
    (None, "32,32", "1,1", 1, "4,2", 16, "1,0 2,0 4,0 0,16 8,0 16,0", "0,1 0,2 0,4 0,8", ""),
    (None, "32,32", "4,1", 2, "1,2", 16, "1,0 2,0 4,0 0,16", "0,1 0,2 0,4 0,8", "8,0 16,0"),
    (None, "64,64", "2,2", 1, "4,2", 32, "2,0 4,0 0,16 8,0 16,0", "0,1 0,2 0,4 0,8 1,0", "0,32 32,0"),
    (0, "64,64", "2,2", 2, "4,2", 32, "2,0 4,0 8,0 16,0 0,16 0,32", "0,1 0,2 0,4 0,8 1,0", "0,0 32,0"),
    (1, "64,64", "2,2", 2, "4,2", 32, "1,0 4,0 8,0 0,16 16,0 32,0", "0,1 0,2 0,4 0,8 2,0", "0,32 0,0"),
]


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def test_the_intel_backend_expects_the_same() -> None:
    assert len(EXPECTED) == 16
    for operand, shape, warps, ops, cluster, threads, *bases in EXPECTED:
        layout = build(operand, numbers(shape), numbers(warps), 16, ops, threads, numbers(cluster))
        for dim, text in zip(("register", "lane", "warp"), bases, strict=True):
            assert layout.bases(dim) == tuple(numbers(basis) for basis in text.split()), (operand, shape, dim)
        assert why_not_distributed(layout) is None


@pytest.mark.parametrize("operand", [None, 0, 1])
@pytest.mark.parametrize("threads", [16, 32])
@pytest.mark.parametrize("repeat_count", [1, 2, 4, 8])
@pytest.mark.parametrize("ops", [1, 2, 4])
def test_all_sizes_are_distributed(operand: int | None, threads: int, repeat_count: int, ops: int) -> None:
    for shape in ((1, 1), (8, 8), (64, 64)):
        layout = build(operand, shape, (2, 2), 16, ops, threads, None, repeat_count)
        assert why_not_distributed(layout) is None
        assert (layout.shape, layout.in_size("lane"), layout.in_size("warp")) == (shape, threads, 4)


def test_a_batch_and_a_cluster() -> None:
    layout = intel_dpas((2, 16, 16), (2, 1, 1), 8, 8, 16, 2, 16, cga_layout=[(0, 1, 0)])
    # One result of 8x16 per warp and block: warps count the batch, the block bit cuts the 16 rows.
    assert str(layout) == (
        "{register: [(0,1,0),(0,2,0),(0,4,0)], lane: [(0,0,1),(0,0,2),(0,0,4),(0,0,8)], warp: [(1,0,0)], "
        "block: [(0,8,0)]} -> [dim0: 2, dim1: 16, dim2: 16]"
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: intel_dpas((8, 16), (1, 1), 3, 8, 16, 2, 16),
            "intel_dpas: repeat_count is 3, expected 1 or 2 or 4 or 8",
        ),
        (lambda: intel_dpas((8, 16), (1, 1), 8, 4, 16, 2, 16), "intel_dpas: systolic_depth is 4, expected 8"),
        (lambda: intel_dpas((8, 16), (1, 1), 8, 8, 32, 2, 16), "intel_dpas: execution_size is 32, expected 8 or 16"),
        (
            lambda: intel_dpas((8, 16), (1, 1), 8, 8, 16, 3, 16),
            "intel_dpas: ops_per_channel is 3, expected 1 or 2 or 4",
        ),
        (lambda: intel_dpas((8, 16), (1, 1), 8, 8, 16, 2, 8), "intel_dpas: threads_per_warp is 8, expected 16 or 32"),
        (
            lambda: intel_dpas((8, 16), (1, 1), 8, 8, 16, 2, 16, (1, 3)),
            "intel_dpas: rep_cluster (1, 3) holds 3, expected powers of two",
        ),
        (
            lambda: intel_dpas_operand((8, 16), 3, (1, 1), 8, 8, 16, 2, 16),
            "intel_dpas_operand: operand_index is 3, expected 0 (left) or 1 (right)",
        ),
        (
            lambda: intel_dpas_operand((8, 16), 0, (1,), 8, 8, 16, 2, 16),
            "intel_dpas_operand: warps_per_cta (1,) has 1 dimensions, the shape has 2",
        ),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message

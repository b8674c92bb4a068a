"""NVIDIA's fragments against the formulas of the PTX ISA, written out; what each family refuses, word for word.

In the formulas ``group`` is laneid >> 2 and ``thread`` is laneid % 4 (PTX: groupID, threadID_in_group), ``i`` the index of the
element in the fragment. Each formula gives (row, column).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pytest

from weft.layout import LinearLayout, nvidia_mma, nvidia_mma_operand, why_not_distributed

Formula: TypeAlias = Callable[[int, int, int], tuple[int, int]]


def check_fragment(layout: LinearLayout, count: int, formula: Formula) -> int:
    """Compare the first ``count`` registers of every lane of warp 0; how many elements that was."""
    compared = 0
    for lane in range(32):
        for i in range(count):
            assert layout.unflatten(layout.flat(register=i, lane=lane)) == formula(lane >> 2, lane % 4, i), (lane, i)
            compared += 1
    return compared


# PTX ISA, "Warp-level matrix instructions": (name, instruction M N, k_width, operand shape, elements, formula).
OPERANDS: list[tuple[str, tuple[int, int], int, int, tuple[int, int], int, Formula]] = [
    ("m16n8k8.f16 A", (16, 8), 0, 2, (16, 8), 4, lambda g, t, i: (g + 8 * (i >= 2), t * 2 + (i & 1))),
    ("m16n8k8.f16 B", (16, 8), 1, 2, (8, 8), 2, lambda g, t, i: (t * 2 + i, g)),
    (
        "m16n8k16.f16 A",
        (16, 8), 0, 2, (16, 16), 8,
        lambda g, t, i: (g if i < 2 or 4 <= i < 6 else g + 8, t * 2 + (i & 1) + (8 if i >= 4 else 0)),
    ),
    ("m16n8k16.f16 B", (16, 8), 1, 2, (16, 8), 4, lambda g, t, i: (t * 2 + (i & 1) + (8 if i >= 2 else 0), g)),
    ("m16n8k4.tf32 A", (16, 8), 0, 1, (16, 4), 2, lambda g, t, i: (g + 8 * i, t)),
    ("m16n8k4.tf32 B", (16, 8), 1, 1, (4, 8), 1, lambda g, t, i: (t, g)),
    ("m16n8k8.tf32 A", (16, 8), 0, 1, (16, 8), 4, lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4)),
    ("m16n8k8.tf32 B", (16, 8), 1, 1, (8, 8), 2, lambda g, t, i: (t if i == 0 else t + 4, g)),
    ("m16n8k16.s8 A", (16, 8), 0, 4, (16, 16), 8, lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3))),
    ("m16n8k16.s8 B", (16, 8), 1, 4, (16, 8), 4, lambda g, t, i: (t * 4 + i, g)),
    (
        "m16n8k32.s8 A",
        (16, 8), 0, 4, (16, 32), 16,
        lambda g, t, i: (g if i < 4 or 8 <= i < 12 else g + 8, t * 4 + (i & 3) + (16 if i >= 8 else 0)),
    ),
    ("m16n8k32.s8 B", (16, 8), 1, 4, (32, 8), 8, lambda g, t, i: (t * 4 + (i & 3) + (16 if i >= 4 else 0), g)),
    (
        "m16n8k64.s4 A",
        (16, 8), 0, 8, (16, 64), 32,
        lambda g, t, i: (g if i < 8 or 16 <= i < 24 else g + 8, t * 8 + (i & 7) + (32 if i >= 16 else 0)),
    ),
    ("m16n8k64.s4 B", (16, 8), 1, 8, (64, 8), 16, lambda g, t, i: (t * 8 + (i & 7) + (32 if i >= 8 else 0), g)),
    (
        "m16n8k256.b1 A",
        (16, 8), 0, 32, (16, 256), 128,
        lambda g, t, i: (g if i < 32 or 64 <= i < 96 else g + 8, t * 32 + (i & 31) + (128 if i >= 64 else 0)),
    ),
    ("m16n8k256.b1 B", (16, 8), 1, 32, (256, 8), 64, lambda g, t, i: (t * 32 + (i & 31) + (128 if i >= 32 else 0), g)),
    ("m8n8k4.f64 A", (8, 8), 0, 1, (8, 4), 1, lambda g, t, i: (g, t)),
    ("m8n8k4.f64 B", (8, 8), 1, 1, (4, 8), 1, lambda g, t, i: (t, g)),
    ("m16n8k16.f64 A", (16, 8), 0, 1, (16, 16), 8, lambda g, t, i: (g + 8 * (i % 2), t + i * 2 - (i % 2) * 2)),
    ("m16n8k16.f64 B", (16, 8), 1, 1, (16, 8), 4, lambda g, t, i: (t + i * 4, g)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "instruction", "index", "k_width", "shape", "count", "formula"), OPERANDS)
def test_operands_of_mma_are_ptx_fragments(
    name: str,
    instruction: tuple[int, int],
    index: int,
    k_width: int,
    shape: tuple[int, int],
    count: int,
    formula: Formula,
) -> None:
    layout = nvidia_mma_operand(shape, index, k_width, 2, (1, 1), instruction)
    assert check_fragment(layout, count, formula) == shape[0] * shape[1], name
    # All other registers are copies that the instruction's smaller K leaves.
    assert len([column for column in layout.columns("register") if column]) == count.bit_length() - 1


@pytest.mark.parametrize(("instruction", "count"), [((16, 8), 4), ((8, 8), 2)])
def test_results_of_mma_are_ptx_fragments(instruction: tuple[int, int], count: int) -> None:
    """c_i of m16n8k*: row = groupID for i < 2, else groupID + 8; col = threadID_in_group * 2 + (i & 1). m8n8k4 has i < 2."""
    layout = nvidia_mma(instruction, 2, (1, 1), instruction)
    elements = check_fragment(layout, count, lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)))
    assert elements == instruction[0] * instruction[1]


def check_warpgroup(layout: LinearLayout, count: int, formula: Formula) -> int:
    """As `check_fragment`, for the 4 warps of a group, each of which has 16 more rows."""
    compared = 0
    for warp in range(4):
        for lane in range(32):
            for i in range(count):
                row, column = formula(lane >> 2, lane % 4, i)
                assert layout.unflatten(layout.flat(register=i, lane=lane, warp=warp)) == (16 * warp + row, column)
                compared += 1
    return compared


@pytest.mark.parametrize("n", [8, 16, 32, 64, 128, 256])
def test_results_of_wgmma_are_ptx_fragments(n: int) -> None:
    """wgmma.m64nNk*: d_i at row groupID + 8 * (i / 2 % 2), column 8 * (i / 4) + 2 * threadID + i % 2 of the warp's 16 rows."""
    layout = nvidia_mma((64, n), 3, (4, 1), (16, n, 16))
    formula: Formula = lambda g, t, i: (g + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * t + i % 2)  # noqa: E731 -- a typed formula
    assert check_warpgroup(layout, n // 2, formula) == 64 * n


WGMMA_LEFT: list[tuple[int, int, Formula]] = [
    (8, 1, lambda g, t, i: (g + 8 * (i % 2), 4 * (i // 2) + t)),
    (16, 2, lambda g, t, i: (g + 8 * (i // 2 % 2), 8 * (i // 4) + 2 * t + i % 2)),
    (32, 4, lambda g, t, i: (g + 8 * (i // 4 % 2), 16 * (i // 8) + 4 * t + i % 4)),
]


@pytest.mark.parametrize(("k", "k_width", "formula"), WGMMA_LEFT)
def test_left_operands_of_wgmma_are_ptx_fragments(k: int, k_width: int, formula: Formula) -> None:
    """tf32, f16 and 8-bit elements: 32 bits at a time along K, rows g and g + 8, then the other half of K."""
    layout = nvidia_mma_operand((64, k), 0, k_width, 3, (4, 1), (16, 64, k))
    assert check_warpgroup(layout, k // 2, formula) == 64 * k


@pytest.mark.parametrize("k_width", [1, 2, 4, 8, 16])
def test_a_wider_k_permutes_the_contraction_alike_in_both_operands(k_width: int) -> None:
    """Registers i of A and of B that one instruction multiplies are at the same place of the contraction, in every thread."""
    k = 8 * k_width
    left = nvidia_mma_operand((16, k), 0, k_width, 2, (1, 1), (16, 8))
    right = nvidia_mma_operand((k, 8), 1, k_width, 2, (1, 1), (16, 8))
    for lane in range(32):
        # A's registers of row group 0: those of B with the row bit, k_width, left out.
        rows = [register for register in range(4 * k_width) if not register & k_width]
        along = [left.unflatten(left.flat(register=r, lane=lane))[1] for r in rows]
        assert along == [right.unflatten(right.flat(register=r, lane=lane))[0] for r in range(2 * k_width)]


def product(*factors: tuple[int, str, str]) -> LinearLayout:
    """``id_k^{i,j} x ...``, with the dimensions in the order that families list them."""
    result = LinearLayout.parse("{register: [], lane: [], warp: []} -> [dim0: 1, dim1: 1]")
    for bits, source, target in factors:
        result = result * LinearLayout.identity(1 << bits, source, target)
    return result


@pytest.mark.parametrize(("bits", "k_width"), [(8, 4), (16, 2), (32, 1)])
def test_tiles_are_the_papers_products(bits: int, k_width: int) -> None:
    """Paper 4.7, operands of ``bits``: the left tile is id_log2(32/b)^{reg,1} x id_2^{lane,1} x id_3^{lane,0} x id_1^{reg,0} x
    id_1^{reg,1}; the right one its mirror image without rows 8 to 15, and so with id_1^{reg,0} last (the paper prints reg,1);
    wgmma's is times id_2^{warp,0}. The result is the left tile of 16-bit elements, of mma.m16n8 half of it."""
    elements = (32 // bits).bit_length() - 1
    left = product(
        (elements, "register", "dim1"),
        (2, "lane", "dim1"),
        (3, "lane", "dim0"),
        (1, "register", "dim0"),
        (1, "register", "dim1"),
    )
    assert nvidia_mma_operand((16, 8 * k_width), 0, k_width, 2, (1, 1), (16, 8)) == left
    group = left * LinearLayout.identity(4, "warp", "dim0")
    assert nvidia_mma_operand((64, 8 * k_width), 0, k_width, 3, (4, 1), (16, 64)) == group
    right = product((elements, "register", "dim0"), (2, "lane", "dim0"), (3, "lane", "dim1"), (1, "register", "dim0"))
    assert nvidia_mma_operand((8 * k_width, 8), 1, k_width, 2, (1, 1), (16, 8)) == right
    if bits == 16:
        assert nvidia_mma((64, 16), 3, (4, 1), (16, 16)) == group
        assert nvidia_mma((16, 8), 2, (1, 1), (16, 8)) == product(
            (1, "register", "dim1"), (2, "lane", "dim1"), (3, "lane", "dim0"), (1, "register", "dim0")
        )


def warp_needs(layout: LinearLayout, axis: int) -> list[set[int]]:
    """The coordinates along ``axis`` that each warp holds."""
    other = {dim: layout.in_size(dim) for dim in ("register", "lane")}
    return [
        {
            layout.unflatten(layout.flat(register=r, lane=lane, warp=warp))[axis]
            for r in range(other["register"])
            for lane in range(other["lane"])
        }
        for warp in range(layout.in_size("warp"))
    ]


@pytest.mark.parametrize(
    ("version", "warps", "instruction"),
    [(2, (1, 1), (16, 8)), (2, (2, 2), (16, 8)), (2, (4, 1), (8, 8)), (3, (4, 1), (16, 32)), (3, (4, 2), (16, 16))],
)
@pytest.mark.parametrize("shape", [(64, 64), (32, 16), (128, 32)])
def test_a_warp_has_the_operands_of_its_results(
    version: int, warps: tuple[int, int], instruction: tuple[int, int], shape: tuple[int, int]
) -> None:
    """Rows of operand 0 and of the result are the same in each warp, and columns of operand 1; both have all of K."""
    result = nvidia_mma(shape, version, warps, instruction)
    left = nvidia_mma_operand((shape[0], 32), 0, 2, version, warps, instruction)
    assert warp_needs(left, 0) == warp_needs(result, 0)
    assert warp_needs(left, 1) == [set(range(32))] * (warps[0] * warps[1])
    if version == 2:
        right = nvidia_mma_operand((32, shape[1]), 1, 2, version, warps, instruction)
        assert warp_needs(right, 1) == warp_needs(result, 1)
        assert warp_needs(right, 0) == [set(range(32))] * (warps[0] * warps[1])


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        # One element: the instruction has 4 registers all the same, and 32 lanes with copies.
        (
            nvidia_mma((1, 1), 2, (1, 1), (16, 8)),
            "{register: [(0,0),(0,0)], lane: [(0,0),(0,0),(0,0),(0,0),(0,0)], warp: []} -> [dim0: 1, dim1: 1]",
        ),
        # A batch comes last: warps (1,2,2) count columns, rows, batch; what is left too.
        (
            nvidia_mma((2, 32, 16), 2, (1, 2, 2), (1, 16, 8)),
            "{register: [(0,0,1),(0,8,0),(1,0,0)], lane: [(0,0,2),(0,0,4),(0,1,0),(0,2,0),(0,4,0)], "
            "warp: [(0,0,8),(0,16,0)]} -> [dim0: 2, dim1: 32, dim2: 16]",
        ),
        # Two blocks cut the rows; operand 1 has all of them in both, as they are its contraction.
        (
            nvidia_mma((32, 8), 2, (1, 1), (16, 8), cga_layout=[(1, 0)]),
            "{register: [(0,1),(8,0)], lane: [(0,2),(0,4),(1,0),(2,0),(4,0)], warp: [], block: [(16,0)]} "
            "-> [dim0: 32, dim1: 8]",
        ),
        (
            nvidia_mma_operand((16, 8), 1, 2, 2, (1, 1), (16, 8), cga_layout=[(1, 0)]),
            "{register: [(1,0),(8,0)], lane: [(2,0),(4,0),(0,1),(0,2),(0,4)], warp: [], block: [(0,0)]} "
            "-> [dim0: 16, dim1: 8]",
        ),
    ],
)
def test_edges(layout: LinearLayout, text: str) -> None:
    assert str(layout) == text
    assert why_not_distributed(layout) is None


def mma(
    shape: Sequence[int] = (64, 64), version: int = 2, warps: Sequence[int] = (2, 2), instr: Sequence[int] = (16, 8)
) -> Any:
    return nvidia_mma(shape, version, warps, instr)


def operand(
    index: int = 0, k_width: int = 2, shape: Sequence[int] = (64, 64), version: int = 2, instr: Sequence[int] = (16, 8)
) -> Any:
    return nvidia_mma_operand(shape, index, k_width, version, (2, 2), instr)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mma(shape=(64,)), "nvidia_mma: shape (64,) has 1 dimensions, expected 2, or 3 with a batch"),
        (lambda: mma(shape=(64, 48)), "dim1 of shape (64, 48) is 48, expected a power of two"),
        (lambda: mma(warps=(4,)), "nvidia_mma: warps_per_cta (4,) has 1 dimensions, the shape has 2"),
        (lambda: mma(warps=(3, 1)), "nvidia_mma: warps_per_cta (3, 1) holds 3, expected powers of two"),
        (
            lambda: mma(instr=(16, 16)),
            "nvidia_mma: instr_shape is (16, 16), expected (16, 8) or (8, 8) for version 2, after a 1 for a batch",
        ),
        (
            lambda: mma(instr=(16, 8, 16)),
            "nvidia_mma: instr_shape is (16, 8, 16), expected (16, 8) or (8, 8) for version 2, after a 1 for a batch",
        ),
        (
            lambda: mma(version=5),
            "nvidia_mma: version is 5, expected 2 (mma.sync) or 3 (wgmma); "
            "version 5 (tcgen05) has its result in tensor memory",
        ),
        (
            lambda: mma(version=3, instr=(16, 24, 16)),
            "nvidia_mma: instr_shape has N = 24, expected a power of two from 8 to 256: "
            "that wgmma exists, but its result is not linear",
        ),
        (
            lambda: mma(version=3, instr=(16, 4)),
            "nvidia_mma: instr_shape has N = 4, expected a power of two from 8 to 256: there is no such wgmma",
        ),
        (
            lambda: mma(version=3, instr=(64, 64, 16)),
            "nvidia_mma: instr_shape is (64, 64, 16), expected (16, N) or (16, N, K) for version 3: M is per warp",
        ),
        (
            lambda: nvidia_mma((2, 64, 64), 3, (1, 4, 1), (16, 64)),
            "nvidia_mma: version 3 (wgmma) has no batch, the shape has 3 dimensions",
        ),
        (
            lambda: operand(index=1, version=3, instr=(16, 64)),
            "nvidia_mma_operand: operand_index is 1, expected 0: wgmma reads its right operand from shared memory",
        ),
        (lambda: operand(index=2), "nvidia_mma_operand: operand_index is 2, expected 0 (left) or 1 (right)"),
        (lambda: operand(k_width=3), "nvidia_mma_operand: k_width is 3, expected a power of two"),
        (lambda: operand(k_width=0), "nvidia_mma_operand: k_width is 0, expected a power of two"),
        (
            lambda: nvidia_mma((64, 64), 2, (2, 2), (16, 8), cga_layout=[(1,)]),
            "nvidia_mma: cga_layout basis (1,) has 1 coordinates, the shape has 2",
        ),
        (
            lambda: nvidia_mma((64, 64), 2, (2, 2), (16, 8), cga_layout=[(1, 1)]),
            "nvidia_mma: cga_layout basis (1, 1) is not a power of two along one dimension",
        ),
        (
            lambda: nvidia_mma((64, 64), 2, (2, 2), (16, 8), cga_layout=[(3, 0)]),
            "nvidia_mma: cga_layout basis (3, 0) is not a power of two along one dimension",
        ),
        (
            lambda: nvidia_mma((64, 64), 2, (2, 2), (16, 8), cga_layout=[(0, 1), (0, 1)]),
            "nvidia_mma: cga_layout basis (0, 1) is there twice",
        ),
        (
            lambda: nvidia_mma((64, 64), 2, (2, 2), (16, 8), cga_layout=[(0, 2)]),
            "nvidia_mma: cga_layout: 2 along dim1 is there but not 1",
        ),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message

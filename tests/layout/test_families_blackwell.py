"""Registers of tcgen05.ld: Triton's layouts line by line, the fragments of the PTX ISA written out, refusals word for word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from weft.layout import LinearLayout, tcgen05_registers, tensor_memory, tensor_memory_scales, why_not_distributed

GOLDEN = Path(__file__).parent.parent / "golden" / "distributed_layouts" / "tensor_memory.txt"
WIDTHS = {"float32": 32, "float16": 16, "float8e5": 8}
Formula: TypeAlias = Callable[[int, int], tuple[int, int]]


def pair(text: str) -> tuple[int, int]:
    first, second = text.split("x")
    return int(first), int(second)


def spell(layout: LinearLayout) -> str:
    return "; ".join(
        f"{dim[0]}:{' '.join(','.join(map(str, basis)) for basis in layout.bases(dim))}" for dim in layout.in_dims
    )


def test_triton_gives_the_same_layouts_and_refuses_the_same() -> None:
    equal, refused = 0, 0
    for line in GOLDEN.read_text().splitlines():
        case, answer = line.split(" | ")
        dtype, shape, block, stride, warps, variant = case.split()
        memory = tensor_memory(pair(shape), pair(block), int(stride))
        if answer == "None":
            with pytest.raises(ValueError, match="columns in memory, expected at least"):
                tcgen05_registers(memory, variant, int(warps), WIDTHS[dtype])
            refused += 1
            continue
        layout = tcgen05_registers(memory, variant, int(warps), WIDTHS[dtype])
        assert spell(layout) == answer, line
        assert why_not_distributed(layout) is None
        equal += 1
    assert (equal, refused) == (231, 93)


# PTX ISA, "tcgen05 Data Movement Shape": the row of the warp's 32 and the 32-bit column, by lane and register.
FRAGMENTS: list[tuple[str, Formula]] = [
    ("32x32b", lambda lane, r: (lane, r)),
    ("16x128b", lambda lane, r: (lane // 4 + 8 * (r % 2), 4 * (r // 2) + lane % 4)),
    ("16x256b", lambda lane, r: (lane // 4 + 8 * (r // 2 % 2), 8 * (r // 4) + 2 * (lane % 4) + r % 2)),
]


@pytest.mark.parametrize(("variant", "formula"), FRAGMENTS)
def test_atoms_are_ptx_fragments(variant: str, formula: Formula) -> None:
    """32 columns; the first 32 registers of 32x32b are all, of the others the first 16 are rows 0 to 15 of each warp."""
    layout = tcgen05_registers(tensor_memory((128, 32), (128, 32)), variant)
    half = 32 if variant == "32x32b" else 16
    for warp in range(4):
        for lane in range(32):
            for register in range(32):
                row, column = formula(lane, register % half)
                expected = (32 * warp + 16 * (register // half) + row, column)
                assert layout.unflatten(layout.flat(register=register, lane=lane, warp=warp)) == expected


def test_scales_are_in_all_four_warps() -> None:
    """32 rows of 4 8-bit scales fill one column of 32 rows; warps hold copies, as tensor memory does."""
    layout = tcgen05_registers(tensor_memory_scales((32, 4)), "32x32b", element_bitwidth=8)
    assert spell(layout) == "r:0,1 0,2; l:1,0 2,0 4,0 8,0 16,0; w:0,0 0,0"


MEMORY = tensor_memory((128, 64), (128, 64))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: tcgen05_registers(MEMORY, "8x8"),
            "tcgen05_registers: instr_variant is '8x8', expected one of 32x32b, 16x64b, 16x128b, 16x256b",
        ),
        (lambda: tcgen05_registers(MEMORY, num_warps=6), "tcgen05_registers: num_warps is 6, expected a power of two"),
        (
            lambda: tcgen05_registers(MEMORY, num_warps=2),
            "tcgen05_registers: num_warps is 2, expected at least 4: each reaches a quarter of the rows",
        ),
        (
            lambda: tcgen05_registers(MEMORY, element_bitwidth=64),
            "tcgen05_registers: element_bitwidth is 64, expected 8, 16 or 32",
        ),
        (
            lambda: tcgen05_registers(tensor_memory((128, 64), (128, 64), 2), element_bitwidth=8),
            "tcgen05_registers: memory has a col_stride of 2, expected 1 or 4 for 8-bit elements",
        ),
        (
            lambda: tcgen05_registers(tensor_memory((128, 4), (128, 4)), "16x256b"),
            "tcgen05_registers: the tensor has 4 columns in memory, expected at least 8 for 16x256b of 32-bit elements",
        ),
        (
            lambda: tcgen05_registers(LinearLayout.parse("{offset: [1]} -> [dim0: 2]")),
            "tcgen05_registers: memory is {offset: [1]} -> [dim0: 2], expected row (128) and col to a tensor",
        ),
    ],
)
def test_refusals(call: Any, message: str) -> None:
    with pytest.raises(ValueError) as error:
        call()
    assert str(error.value) == message

"""Layout rules of a GPU: how warps divide a dot, and which dots are chained."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from weft.ir import tile
from weft.ir.text import parse
from weft.transforms.layouts.threads import chained, warp_grid


@pytest.mark.parametrize(
    ("shape", "warps", "free", "rows_first"),
    [
        ((64, 64), 4, (2, 2), (4, 1)),
        ((128, 64), 4, (2, 2), (4, 1)),
        ((16, 128), 8, (1, 8), (1, 8)),
        ((32, 32), 4, (2, 2), (2, 2)),
        ((16, 8), 4, (2, 2), (2, 2)),
    ],
)
def test_warps_divide_a_result(
    shape: tuple[int, int], warps: int, free: tuple[int, int], rows_first: tuple[int, int]
) -> None:
    """An instruction has 16 x 8 results: of 64 x 64 there are 4 rows and 8 columns. Columns are halved; then both have 4, and
    rows are."""
    assert warp_grid(shape, warps) == free
    assert warp_grid(shape, warps, whole_rows=True) == rows_first
    assert free[0] * free[1] == rows_first[0] * rows_first[1] == warps


def test_a_dot_is_chained_to_that_whose_left_operand_it_makes() -> None:
    text = """
    func.func @k(%a: tensor<32x32xf16>, %c: tensor<32x32xf32>) {
      %first = tile.dot %a, %a, %c : tensor<32x32xf16>, tensor<32x32xf16> to tensor<32x32xf32>
      %e = tile.unary "exp" %first : tensor<32x32xf32>
      %h = tile.cast %e : tensor<32x32xf32> to tensor<32x32xf16>
      %second = tile.dot %h, %a, %c : tensor<32x32xf16>, tensor<32x32xf16> to tensor<32x32xf32>
      %g = tile.cast %second : tensor<32x32xf32> to tensor<32x32xf16>
      %right = tile.dot %a, %g, %c : tensor<32x32xf16>, tensor<32x32xf16> to tensor<32x32xf32>
      func.return
    }
    """
    (function,) = [op for op in parse(text).walk() if isinstance(op, FuncOp)]
    dots = [op for op in function.walk() if isinstance(op, tile.DotOp)]
    assert [chained(dot) for dot in dots] == [True, True, False]

"""Layout rules of a GPU: how warps divide a dot, and which dots are chained."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp

from weft.ir import tile
from weft.ir.text import parse
from weft.layout import nvidia_mma, nvidia_mma_operand
from weft.target import gpu
from weft.transforms.axis import analyse
from weft.transforms.layouts import LayoutFacts
from weft.transforms.layouts.thread_dots import along, chained, pair_columns, warp_grid
from weft.transforms.layouts.threads import ThreadRules


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


def test_pairs_of_columns_are_of_two_tiles_of_a_thread() -> None:
    """The first of 2 x 2 warps has columns 0 to 7 and 16 to 23 of 32: bit 4 numbers its tiles. It becomes bit 0: the lane of
    column c of tile t then reads column 2c + t (bits below bit 4 move up). A thread's results are four columns in a row."""
    right = nvidia_mma_operand((32, 32), 1, 4, 2, (2, 2), (16, 8))
    sums = nvidia_mma((32, 32), 2, (2, 2), (16, 8))
    paired, results = pair_columns(right, sums)
    assert str(right) == (
        "{register: [(1,0),(2,0),(16,0),(0,16)], lane: [(4,0),(8,0),(0,1),(0,2),(0,4)], warp: [(0,8),(0,0)]}"
        " -> [dim0: 32, dim1: 32]"
    )
    assert str(paired) == (
        "{register: [(1,0),(2,0),(16,0),(0,1)], lane: [(4,0),(8,0),(0,2),(0,4),(0,8)], warp: [(0,16),(0,0)]}"
        " -> [dim0: 32, dim1: 32]"
    )
    assert str(sums) == (
        "{register: [(0,1),(8,0),(0,16)], lane: [(0,2),(0,4),(1,0),(2,0),(4,0)], warp: [(0,8),(16,0)]} -> [dim0: 32, dim1: 32]"
    )
    assert str(results) == (
        "{register: [(0,2),(8,0),(0,1)], lane: [(0,4),(0,8),(1,0),(2,0),(4,0)], warp: [(0,16),(16,0)]} -> [dim0: 32, dim1: 32]"
    )
    narrow = nvidia_mma_operand((32, 16), 1, 4, 2, (2, 2), (16, 8)), nvidia_mma((32, 16), 2, (2, 2), (16, 8))
    assert pair_columns(*narrow) == narrow


def test_the_dimension_along_which_a_matrix_lies_in_memory() -> None:
    text = """
    func.func @k(%x: !tile.ptr<i8>, %n: tensor<32x32xi32>) {
      %i = tile.arange 0 32 : tensor<32xi32>
      %e = tile.expand_dims %i 0 : tensor<32xi32> to tensor<1x32xi32>
      %b = tile.broadcast %e : tensor<1x32xi32> to tensor<32x32xi32>
      %xs = tile.splat %x : !tile.ptr<i8> to tensor<32x32x!tile.ptr<i8>>
      %p = tile.addptr %xs, %b : tensor<32x32x!tile.ptr<i8>>, tensor<32x32xi32> to tensor<32x32x!tile.ptr<i8>>
      %v = tile.load %p : tensor<32x32x!tile.ptr<i8>> to tensor<32x32xi8>
      %c = tile.cast %v : tensor<32x32xi8> to tensor<32x32xf16>
      %t = tile.trans %c [1, 0] : tensor<32x32xf16> to tensor<32x32xf16>
      %q = tile.addptr %xs, %n : tensor<32x32x!tile.ptr<i8>>, tensor<32x32xi32> to tensor<32x32x!tile.ptr<i8>>
      %w = tile.load %q : tensor<32x32x!tile.ptr<i8>> to tensor<32x32xi8>
      %s = tile.binary "add" %v, %v : tensor<32x32xi8>
      %true = tile.constant 1 : i1
      %zero = tile.constant 0 : i32
      %buffer = gpu.alloc : !gpu.buffer<1 x tensor<32x32xi8>>
      gpu.async_copy %p to %buffer[%zero] if %true : tensor<32x32x!tile.ptr<i8>> to !gpu.buffer<1 x tensor<32x32xi8>>
      %l = gpu.local_load %buffer[%zero] : !gpu.buffer<1 x tensor<32x32xi8>> to tensor<32x32xi8>
      func.return
    }
    """
    (function,) = [op for op in parse(text).walk() if isinstance(op, FuncOp)]
    values = {result.name_hint: result for op in function.walk() for result in op.results}
    facts = analyse(function)
    found = {name: along(values[name], facts) for name in ("v", "c", "t", "w", "s", "l")}
    assert found == {"v": (1, 8), "c": (1, 8), "t": (0, 8), "w": None, "s": None, "l": (1, 8)}


MASKED = """
func.func @k(%x: !tile.ptr<f16> {{tile.divisibility = 16 : i64}}, %n: i32 {{tile.divisibility = {multiple} : i64}}) {{
  %rows = tile.arange 0 {m} : tensor<{m}xi32>
  %columns = tile.arange 0 {n} : tensor<{n}xi32>
  %r = tile.expand_dims %rows 1 : tensor<{m}xi32> to tensor<{m}x1xi32>
  %c = tile.expand_dims %columns 0 : tensor<{n}xi32> to tensor<1x{n}xi32>
  %width = tile.constant {stride} : tensor<{m}x1xi32>
  %start = tile.binary "mul" %r, %width : tensor<{m}x1xi32>
  %row = tile.broadcast %r : tensor<{m}x1xi32> to tensor<{m}x{n}xi32>
  %from = tile.broadcast %start : tensor<{m}x1xi32> to tensor<{m}x{n}xi32>
  %column = tile.broadcast %c : tensor<1x{n}xi32> to tensor<{m}x{n}xi32>
  %i = tile.binary "add" %from, %column : tensor<{m}x{n}xi32>
  %xs = tile.splat %x : !tile.ptr<f16> to tensor<{m}x{n}x!tile.ptr<f16>>
  %p = tile.addptr %xs, %i : tensor<{m}x{n}x!tile.ptr<f16>>, tensor<{m}x{n}xi32> to tensor<{m}x{n}x!tile.ptr<f16>>
  %limit = tile.splat %n : i32 to tensor<{m}x{n}xi32>
  %mask = tile.compare "lt" %{bounded}, %limit : tensor<{m}x{n}xi32> to tensor<{m}x{n}xi1>
  %v = tile.load %p mask %mask : tensor<{m}x{n}xi1> : tensor<{m}x{n}x!tile.ptr<f16>> to tensor<{m}x{n}xf16>
  func.return
}}
"""


@pytest.mark.parametrize(
    ("shape", "stride", "bounded", "multiple", "together"),
    [
        ((16, 64), 64, "column", 1, 1),
        ((16, 64), 64, "column", 2, 2),
        ((16, 64), 128, "column", 1, 1),
        ((16, 64), 128, "column", 4, 4),
        ((16, 64), 128, "column", 16, 8),
        ((16, 64), 128, "row", 1, 8),
        ((128, 2), 2, "column", 1, 1),
        ((128, 2), 2, "row", 1, 2),
        ((128, 2), 2, "row", 2, 4),
        ((128, 2), 2, "row", 4, 8),
        ((128, 2), 4, "row", 4, 2),
    ],
)
def test_vectors_are_no_wider_than_equal_mask_values(
    shape: tuple[int, int], stride: int, bounded: str, multiple: int, together: int
) -> None:
    """Elements of 2 bytes, 16 bytes at most. Indices below a multiple of k are bounded in groups of k: along the columns, or
    along both dimensions, where a row's two elements have one mask value and the next row follows."""
    text = MASKED.format(m=shape[0], n=shape[1], stride=stride, bounded=bounded, multiple=multiple)
    (function,) = [op for op in parse(text).walk() if isinstance(op, FuncOp)]
    (load,) = [op for op in function.walk() if isinstance(op, tile.LoadOp)]
    layout = ThreadRules(gpu("sm_90"), 1).anchor(load.pointer, LayoutFacts(dict(analyse(function))))
    flat = [row * shape[1] + column for row, column in layout.bases("register")]
    walked = next((place for place, element in enumerate(flat) if element != 1 << place), len(flat))
    assert 1 << walked == together

"""What tiles take of a thread's registers at once: by hand, in the rewritten IR, and what the solver makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from solver_kernels import imported, prices, simplified, solution_of, tile_ir
from weft.ir.text import parse
from weft.target import gpu
from weft.transforms.layouts.solve.lifetimes import Lifetimes
from weft.transforms.layouts.thread_prices import FRAGMENTS
from weft.transforms.layouts.threads import ThreadRules


class Blind(ThreadRules):
    """Registers cost nothing."""

    def spills(self, words: int) -> float:
        return 0.0


class Tight(ThreadRules):
    """A thread has no registers for tiles."""

    def spills(self, words: int) -> float:
        return float(words)


def attention(m: int, n: int, d: int) -> ModuleOp:
    half, whole = np.zeros((2 * m, d), np.float16), np.zeros((2 * m, d), np.float32)
    kernel = imported("benchmarks", "gpu_kernels").attention
    return tile_ir(kernel, [half, half.copy(), half.copy(), whole, 2 * m, 0.5], {"M": m, "N": n, "D": d})


def most(module: ModuleOp, rules: ThreadRules) -> int:
    """The words that a thread holds in a loop, as solved."""
    function = simplified(module, rules.target.name, rules.warps)
    solution = solution_of(function, rules)
    found = Lifetimes(function, solution.problem, rules).peaks(solution.choices)
    return next(peak.words for peak in found if isinstance(peak.block.parent_op(), scf.ForOp))


@pytest.mark.parametrize(("shape", "warps", "query"), [((128, 64, 64), 4, True), ((128, 64, 128), 4, False)])
def test_attention_holds_most_where_its_weights_are_summed(
    shape: tuple[int, int, int], warps: int, query: bool
) -> None:
    """Words of a thread: the sums (M x D), the weights (M x N), the query (M x D halves) where it is not in shared memory, and of
    its rows, of which a warp has M / warps and a thread an eighth, the new maximum, the factor, the old total and the sum."""
    m, n, d = shape
    threads = 32 * warps
    rows = m // warps // 8
    expected = m * d // threads + m * n // threads + query * m * d // 2 // threads + 4 * rows
    assert most(attention(*shape), ThreadRules(gpu("sm_90"), warps)) == expected


def test_a_dearer_division_of_warps_is_taken_where_the_cheaper_spills() -> None:
    """Eight warps, rows of 128 elements: several columns of warps read less from shared memory, but each holds the query and the
    weights of its rows. Without a price for registers they are taken."""
    module = attention(128, 64, 128)
    limit = 255 - 24 - FRAGMENTS
    assert most(module, Blind(gpu("sm_90"), 8)) > limit
    assert most(module, ThreadRules(gpu("sm_90"), 8)) <= limit


def test_registers_that_ptxas_takes_besides_tiles_are_left_to_it() -> None:
    """Gradients of attention: three of four dots by columns of warps would read less, and hold 224 words. ptxas spills there."""
    case = next(c for c in imported("benchmarks", "gpu_counts").CASES if c.name == "attention backward D=64")
    module = tile_ir(imported("benchmarks", "gpu_kernels").attention_backward, case.make(), case.constants)
    assert (most(module, Blind(gpu("sm_90"), 4)), most(module, ThreadRules(gpu("sm_90"), 4))) == (224, 128)


DOT = """
func.func @k(%x: !tile.ptr<f16> {tile.divisibility = 16 : i64}, %out: !tile.ptr<f32> {tile.divisibility = 16 : i64}) {
  %rows = tile.arange 0 64 : tensor<64xi32>
  %r = tile.expand_dims %rows 1 : tensor<64xi32> to tensor<64x1xi32>
  %c = tile.expand_dims %rows 0 : tensor<64xi32> to tensor<1x64xi32>
  %width = tile.constant 64 : tensor<64x1xi32>
  %start = tile.binary "mul" %r, %width : tensor<64x1xi32>
  %from = tile.broadcast %start : tensor<64x1xi32> to tensor<64x64xi32>
  %column = tile.broadcast %c : tensor<1x64xi32> to tensor<64x64xi32>
  %i = tile.binary "add" %from, %column : tensor<64x64xi32>
  %xs = tile.splat %x : !tile.ptr<f16> to tensor<64x64x!tile.ptr<f16>>
  %p = tile.addptr %xs, %i : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32> to tensor<64x64x!tile.ptr<f16>>
  %outs = tile.splat %out : !tile.ptr<f32> to tensor<64x64x!tile.ptr<f32>>
  %q = tile.addptr %outs, %i : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32> to tensor<64x64x!tile.ptr<f32>>
  %a = tile.load %p : tensor<64x64x!tile.ptr<f16>> to tensor<64x64xf16>
  %b = tile.load %p : tensor<64x64x!tile.ptr<f16>> to tensor<64x64xf16>
  %none = tile.constant 0.0 : tensor<64x64xf32>
  %d = tile.dot %a, %b, %none : tensor<64x64xf16>, tensor<64x64xf16> to tensor<64x64xf32>
  tile.store %q, %d : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xf32>
  func.return
}
"""


def test_operands_are_held_as_they_are_wanted_and_beside_the_result() -> None:
    """64 x 64 by 2 x 2 warps. Loads give a thread 16 words of each operand. Its fragments are 32 x 64 halves a warp, 32 words,
    and conversions to them stand behind the loads. With the dot's 32 sums that makes 96; before it, 64."""
    rules = ThreadRules(gpu("sm_80"), 4)
    (function,) = [op for op in parse(DOT).walk() if isinstance(op, FuncOp)]
    problem = solution_of(function, rules).problem
    (peak,) = Lifetimes(function, problem, rules).peaks([variable.preferred for variable in problem.variables])
    assert (peak.words, sorted(life.words for life in peak.lives)) == (96, [32, 32, 32])


def test_choices_that_spill_are_barred_and_others_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 256 elements, four warps: the cheapest choices spill. Without others the search keeps what it met before them."""
    module, rules = attention(64, 32, 256), ThreadRules(gpu("sm_90"), 4)
    found = solution_of(simplified(module, "sm_90", 4), rules)

    def none(*_: object) -> set[int]:
        return set()

    monkeypatch.setattr(Lifetimes, "too_many", none)
    assert found.price < 0.95 * solution_of(simplified(module, "sm_90", 4), rules).price


@pytest.mark.parametrize("name", ["row sums 64x128", "matmul f16 64x64x32", "attention forward D=64"])
def test_lifetimes_of_choices_are_those_of_the_ir(name: str) -> None:
    """Where each word costs, the solution's price is still that of the IR in which conversions and clones are ops."""
    case = next(each for each in imported("benchmarks", "gpu_counts").CASES if each.name == name)
    kernel = getattr(imported("benchmarks", "gpu_kernels"), case.kernel)
    found = prices(tile_ir(kernel, case.make(), case.constants), "sm_90", 4, Tight)
    assert found.solved == pytest.approx(found.solution.price)
    assert found.solved <= found.preferred * (1 + 1e-9)

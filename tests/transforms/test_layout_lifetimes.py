"""What tiles take of a thread's registers at once: by hand, in the rewritten IR, and what the solver makes of it."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from solver_kernels import imported, prices, simplified, solution_of, tile_ir
from weft.target import gpu
from weft.transforms.layouts.solve.lifetimes import Lifetimes
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
    limit = 255 - 24
    assert most(module, Blind(gpu("sm_90"), 8)) > limit
    assert most(module, ThreadRules(gpu("sm_90"), 8)) <= limit


@pytest.mark.parametrize("name", ["row sums 64x128", "matmul f16 64x64x32", "attention forward D=64"])
def test_lifetimes_of_choices_are_those_of_the_ir(name: str) -> None:
    """Where each word costs, the solution's price is still that of the IR in which conversions and clones are ops."""
    case = next(each for each in imported("benchmarks", "gpu_counts").CASES if each.name == name)
    kernel = getattr(imported("benchmarks", "gpu_kernels"), case.kernel)
    found = prices(tile_ir(kernel, case.make(), case.constants), "sm_90", 4, Tight)
    assert found.solved == pytest.approx(found.solution.price)
    assert found.solved <= found.preferred * (1 + 1e-9)

"""Inline PTX in LLVM: how often it stands in the code, and what LLVM may do with it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from laid_out import Laid
from weft import dtypes
from weft.ir import tile
from weft.layout import LinearLayout
from weft.target import GpuTarget

pytestmark = pytest.mark.jit

MARK = "// mine"
ADD = tl.constexpr("add.s32 $0, $1, 7; " + MARK)
LANES = (4, 8, 16, 32, 64)


@pytest.mark.parametrize(
    ("register", "executions"), [((1, 2), 4), ((1, 0, 2), 4), ((0, 1, 2), 4), ((1, 2, 0, 0), 4), ((0, 0), 1)]
)
@pytest.mark.parametrize("pure", [False, True])
def test_registers_that_hold_copies_share_one_execution(register: tuple[int, ...], executions: int, pure: bool) -> None:
    """A basis 0 is a copy: each of the 4 elements of a thread (or the one) is passed once, and all copies get the result."""
    lanes = LANES if executions > 1 else (1, 2, 4, 8, 16)
    bits = 7 if executions > 1 else 5
    layout = LinearLayout.from_columns({"register": register, "lane": lanes, "warp": ()}, [("dim0", bits)])
    size = 1 << bits
    laid = Laid()
    numbers = laid.numbers(size, layout, dtypes.int32)
    op = tile.AssemblyOp(ADD.value, "=r,r", [numbers], [numbers.type], pure=pure)
    laid.store(laid.emit(op), size, layout, dtypes.int32)
    (out,) = laid.run(GpuTarget(90), 0)
    assert out.tolist() == list(range(7, 7 + size))
    laid = Laid()
    numbers = laid.numbers(size, layout, dtypes.int32)
    laid.store(
        laid.emit(tile.AssemblyOp(ADD.value, "=r,r", [numbers], [numbers.type], pure=pure)), size, layout, dtypes.int32
    )
    assert laid.compiled(GpuTarget(90), 0).ptx.count(MARK) == executions


@weft.jit
def thrice(x: Any, out: Any, N: tl.constexpr, PURE: tl.constexpr) -> None:
    """The same assembly twice, and once for nothing."""
    i = tl.arange(0, N)
    value = tl.load(x + i)
    first = tl.inline_asm_elementwise(ADD, "=r,r", [value], tl.int32, PURE, 1)
    second = tl.inline_asm_elementwise(ADD, "=r,r", [value], tl.int32, PURE, 1)
    tl.inline_asm_elementwise(ADD, "=r,r", [first], tl.int32, PURE, 1)
    tl.store(out + i, first + second)


@pytest.mark.parametrize(("pure", "executions"), [(True, 1), (False, 3)])
def test_only_pure_assembly_is_merged_and_left_out(pure: bool, executions: int) -> None:
    x, out = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    assert thrice.compile(x, out, 128, pure, target="sm_90").ptx.count(MARK) == executions
    thrice.on("sm_90")[(1,)](x, out, 128, pure)
    assert out.tolist() == [2 * (i + 7) for i in range(128)]


@pytest.mark.parametrize("pure", [True, False])
def test_what_llvm_is_told(pure: bool) -> None:
    """LLVM may move, merge and duplicate pure assembly. Other assembly has effects, and may need all threads of a warp to execute
    it together, which LLVM calls convergent."""
    x, out = np.arange(128, dtype=np.int32), np.zeros(128, np.int32)
    calls = [line for line in thrice.compile(x, out, 128, pure, target="sm_90").llvm.splitlines() if MARK in line]
    assert len(calls) >= 1
    assert {bool(re.search(r"call i32 asm sideeffect ", line)) for line in calls} == {not pure}
    assert {bool(re.search(r"\) convergent\b", line)) for line in calls} == {not pure}

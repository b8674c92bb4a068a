"""Long kernels: the code that LLVM gets grows with the source text alone, and no basic block grows with it.

LLVM's time grows with the square of a block's length, so compile time is linear where both hold.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportUnnecessaryComparison=false
# pyright: reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import weft.language as tl
from sampling import grid
from weft import dtypes
from weft import target as targets
from weft.codegen import emit_llvm
from weft.codegen.cpu import later
from weft.codegen.cpu.machine import target_machine
from weft.codegen.cpu.schedule import RegisterLoop
from weft.codegen.cpu.values import LONG_BLOCK
from weft.codegen.llvm.pipeline import parsed, simplify
from weft.frontend import ConstantArgument, KernelFunction, PointerArgument, build_module
from weft.options import Options

if TYPE_CHECKING:
    from codegen.conftest import Differential

jit = KernelFunction
F32 = PointerArgument(dtypes.float32, aligned=True)


@jit
def sums(x: Any, out: Any, COUNT: tl.constexpr, N: tl.constexpr) -> None:
    """Loads between the additions; the tile has N / 16 registers."""
    offsets = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for i in tl.static_range(COUNT):
        total += tl.load(x + offsets + i * N)
    tl.store(out + offsets, total)


@jit
def powers(x: Any, out: Any, COUNT: tl.constexpr, N: tl.constexpr) -> None:
    """A chain of arithmetic alone."""
    offsets = tl.arange(0, N)
    value = tl.load(x + offsets)
    for i in tl.static_range(COUNT):
        value = value * 0.5 + i
    tl.store(out + offsets, value)


@jit
def scalars(x: Any, out: Any, COUNT: tl.constexpr, N: tl.constexpr) -> None:
    """No tile at all."""
    total = 0.0
    for i in tl.static_range(COUNT):
        total += tl.load(x + i)
    tl.store(out, total)


def llvm_of(kernel: KernelFunction, count: int, size: int, disjoint: bool = True) -> str:
    """LLVM IR before LLVM's passes."""
    signature = {"x": F32, "out": F32, "COUNT": ConstantArgument(count), "N": ConstantArgument(size)}
    return emit_llvm(build_module(kernel, signature), targets.host(), Options(disjoint=disjoint))


def longest_block(text: str) -> int:
    """The most lines of a basic block."""
    return max(len(block.splitlines()) for block in re.split(r"^[\w.]+:", text, flags=re.MULTILINE))


@pytest.mark.parametrize(
    ("count", "size", "copies"), [(20, 128, 8), (40, 128, 1), (3, 1024, 2), (9, 1024, 2), (20, 1024, 1)]
)
def test_a_long_body_is_unrolled_less(count: int, size: int, copies: int) -> None:
    """Additions in the code for a tile of 8 registers, or of 64 in a loop. A line has about 5 values (offset, address, load,
    addition and what they are made of). So 1024 in one block are 8 copies of up to 25 lines, and 96 in a loop are 2 copies of
    up to 10 lines."""
    assert llvm_of(sums, count, size).count("fadd") == count * copies


@KernelFunction
def rows_in_a_loop(x: Any, out: Any, COUNT: tl.constexpr, N: tl.constexpr) -> None:
    """Rows far apart, of which each is summed before it is stored: two register loops for each."""
    at = tl.arange(0, N)
    for row in range(0, 64, 8):
        for i in tl.static_range(COUNT):
            a = tl.load(x + (row * COUNT + i) * N + at)
            tl.store(out + (row * COUNT + i) * N + at, a - tl.sum(a))


@pytest.mark.parametrize(("name", "count", "traced"), [("scalars", 300, 0), ("sums", 20, 0), ("rows_in_a_loop", 9, 10)])
def test_each_register_loop_is_traced_once(name: str, count: int, traced: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """To know what loops behind another compute, in loops that prefetch rows far apart: one loop sums the first row, one stores
    each and sums the next, and the last stores. A block of n items took n^2 looks once."""
    loops: list[Any] = []
    computed = later._computed  # pyright: ignore[reportPrivateUsage]

    def noted(loop: RegisterLoop, buffered: Any) -> Any:
        loops.append(loop)
        return computed(loop, buffered)

    monkeypatch.setattr(later, "_computed", noted)
    signature = {"x": F32, "out": F32, "COUNT": ConstantArgument(count), "N": ConstantArgument(1024)}
    target = replace(targets.host(), tuning=("prefetch-rows",))
    emit_llvm(build_module(globals()[name], signature), target, Options(disjoint=True))
    assert len(loops) == traced


def name_of(value: KernelFunction | int) -> str:
    """For the names of cases."""
    return value.name if isinstance(value, KernelFunction) else str(value)


@pytest.mark.jit
@pytest.mark.parametrize(("kernel", "disjoint"), grid(2, [sums, powers, scalars], [False, True]), ids=name_of)
def test_no_block_grows_with_the_source(kernel: KernelFunction, disjoint: bool) -> None:
    """After LLVM's passes, which join blocks and move code between them where they can."""
    machine = target_machine(targets.host())
    with parsed(llvm_of(kernel, 500, 128, disjoint)) as module:
        simplify(module, machine, loops=False)
        assert longest_block(str(module)) < 2 * LONG_BLOCK


@pytest.mark.jit
@pytest.mark.parametrize(("kernel", "size"), grid(2, [sums, powers, scalars], [1, 128]), ids=name_of)
def test_split_blocks_compute_the_same(kernel: KernelFunction, size: int, differ: Differential) -> None:
    """Values are used across the places where a block is split."""
    x = np.random.default_rng(0).standard_normal(300 * size, dtype=np.float32)
    differ(kernel, x=x, out=np.zeros(size, np.float32), COUNT=300, N=size)

"""Which loops prefetch far ahead, and in which launches."""

# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from host_targets import compiled_for
from weft import dtypes
from weft.codegen import emit_llvm
from weft.codegen.cpu.far_ahead import AHEAD
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget

CACHE = 3 << 20


@weft.jit
def sum_of(x: Any, n: Any, BN: tl.constexpr) -> Any:
    total = tl.zeros((BN,), tl.float32)
    for k in range(0, n, BN):
        at = k + tl.arange(0, BN)
        total += tl.load(x + at, mask=at < n, other=0.0)
    return tl.sum(total, axis=0)


@weft.jit
def one_row(x: Any, y: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    row = tl.program_id(0)
    tl.store(out + row, sum_of(x + row * n, n, BN))


@weft.jit
def in_parts(x: Any, y: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Several rows a program."""
    for row in range(tl.program_id(0) * m, tl.program_id(0) * m + m):
        tl.store(out + row, sum_of(x + row * n, n, BN))


@weft.jit
def rows_of(x: Any, y: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, total = tl.program_id(0) * BM + tl.arange(0, BM), tl.zeros((BM,), tl.float32)
    for k in range(0, n, BN):
        at = k + tl.arange(0, BN)
        inside = (rows < m)[:, None] & (at < n)[None, :]
        total += tl.sum(tl.load(x + rows[:, None] * n + at[None, :], mask=inside, other=0.0), axis=1)
    tl.store(out + rows, total, mask=rows < m)


@weft.jit
def products_of(x: Any, y: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, total = tl.program_id(0) * BM + tl.arange(0, BM), tl.zeros((BM,), tl.float32)
    for k in range(0, n, BN):
        at = k + tl.arange(0, BN)
        inside = (rows < m)[:, None] & (at < n)[None, :]
        part = tl.load(x + rows[:, None] * n + at[None, :], mask=inside, other=0.0)
        total += tl.sum(part * tl.load(y + at, mask=at < n, other=0.0)[None, :], axis=1)
    tl.store(out + rows, total, mask=rows < m)


def text_of(kernel: Any, bm: int, bn: int, *tuning: str, divisible: bool = True, **more: Argument) -> str:
    """The LLVM IR of a kernel for a machine of AVX-512 whose last cache has `CACHE` bytes."""
    pointer, number = PointerArgument(dtypes.float32, aligned=True), ScalarArgument(dtypes.int32, divisible=divisible)
    signature: dict[str, Argument] = {**dict.fromkeys(("x", "y", "out"), pointer), "m": number, "n": number}
    constants: dict[str, Argument] = {"BM": ConstantArgument(bm), "BN": ConstantArgument(bn)}
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f", 512, tuning=tuning, cache=CACHE)
    return emit_llvm(
        build_module(KernelFunction(kernel.fn), signature | constants | more), target, Options(disjoint=True)
    )


def count(text: str) -> int:
    """How many prefetches are written in a text."""
    return text.count('call void @"llvm.prefetch')


def leasts(text: str) -> set[int]:
    """From how much that its loops count in all a kernel prefetches."""
    found = re.findall(r'(%"?\.\d+"?) = icmp sge i64 %"?\.\d+"?, (\d+)\n', text)
    return {int(least) for name, least in found if f"select  i1 {name}, i64 {AHEAD}, i64 0" in text}


@pytest.mark.parametrize(
    ("kernel", "bn", "prefetches"),
    [
        (one_row, 1024, 1),  # of eight registers
        (one_row, 128, 1),
        (in_parts, 1024, 1),
        (rows_of, 64, 2),  # of four registers, and where a mask cuts some of them off
        (rows_of, 16, 3),  # of four iterations, and of two and of one in the end
    ],
)
def test_one_line_of_each_step_is_fetched(kernel: Any, bn: int, prefetches: int) -> None:
    """Elements are counted, of 4 bytes each; rows of a tile, and rows that a loop takes, are as many times that."""
    text = text_of(kernel, 16, bn, "far-prefetches")
    assert count(text) == prefetches
    assert leasts(text) == {CACHE // 3 // 4 // (16 if kernel is rows_of else 1)}
    assert not count(text_of(kernel, 16, bn, "halved-loads"))


def test_rows_side_by_side_are_not_fetched() -> None:
    assert not count(text_of(products_of, 16, 64, "far-prefetches"))
    assert count(text_of(products_of, 16, 64, "far-prefetches", "lone-rows")) == 1
    assert not count(text_of(products_of, 16, 64, "far-prefetches", "lone-rows", divisible=False))


@weft.jit
def every(x: Any, y: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Every ``BM``-th element."""
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(out + at, tl.load(x + at * BM))


@weft.jit
def every_again(x: Any, y: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    for k in range(n):
        at = (tl.program_id(0) + k) * BN + tl.arange(0, BN)
        tl.store(out + at, tl.load(x + at * BM))


@pytest.mark.parametrize(("step", "prefetches"), [(1, 0), (2, 2), (3, 3), (4, 3)])
def test_one_line_of_each_512_bytes_is_fetched_for_elements_apart(step: int, prefetches: int) -> None:
    """Of four registers, which read 124, 184 and 244 bytes each, and in a loop over registers where programs are joined."""
    text = text_of(every, step, 64, "far-prefetches")
    assert count(text) == prefetches
    assert leasts(text) == {CACHE // 3 // (4 * span) for span in {2: [124], 3: [184], 4: [244]}.get(step, [])}
    assert not count(text_of(every, step, 64))
    assert count(text_of(every, step, 4, "far-prefetches")) <= prefetches, "of fewer elements than a register has lanes"
    assert not count(text_of(every_again, step, 64, "far-prefetches"))


@weft.jit
def turned(x: Any, y: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr, KIND: tl.constexpr) -> None:
    """A transpose by tiles of which x counts rows, or what else is done with such tiles."""
    rows = tl.program_id(1 if KIND == "columns first" else 0) * BM + tl.arange(0, BM)
    columns = tl.program_id(0 if KIND == "columns first" else 1) * BN + tl.arange(0, BN)
    part = tl.load(x + rows[:, None] * n + columns[None, :])
    if KIND == "copy":
        tl.store(out + rows[:, None] * n + columns[None, :], part)
    else:
        tl.store(out + columns[:, None] * m + rows[None, :], tl.trans(part))
    if KIND == "sums, too":
        tl.store(y + rows, tl.sum(part, axis=1))


@pytest.mark.parametrize("kind", ["", "copy", "sums, too", "columns first"])
def test_transposes_fetch_the_rows_of_the_tile_below(kind: str) -> None:
    """By the bytes of a row times the rows of a tile, 4 * 32 * n; of a tall one by 64 rows."""
    constants: dict[str, Argument] = {"KIND": ConstantArgument(kind)}
    text = text_of(turned, 32, 32, "far-prefetches", **constants)
    assert bool(count(text)) == (not kind)
    assert not count(text_of(turned, 32, 32, **constants))
    if not kind:
        assert re.search(r'= mul i64 128, %"?\.\d+"?\n', text)
        assert re.search(r'= mul i64 256, %"?\.\d+"?\n', text_of(turned, 256, 32, "far-prefetches", **constants))


@pytest.mark.parametrize("n", [3000, 1024, 50, 0])
@pytest.mark.parametrize("kernel", [one_row, in_parts, rows_of, products_of], ids=lambda kernel: kernel.__name__)
def test_sums_are_the_same(kernel: Any, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the prefetches go beyond the end of the array."""
    compiled_for("x86-64-v4,+far-prefetches,+lone-rows", monkeypatch)
    again, m = weft.jit(kernel.fn), 5
    monkeypatch.setattr("weft.codegen.cpu.far_ahead.PARTS", 1 << 40)
    x, out = np.random.default_rng(n).integers(-9, 9, (m, n)).astype(np.float32), np.zeros(m, np.float32)
    y = np.ones(n, np.float32)
    grid = {one_row: m, in_parts: 1}.get(kernel, 1)
    again[(grid,)](x, y, out, m, n, BM=16, BN=128)
    assert np.array_equal(out, x.sum(axis=1))

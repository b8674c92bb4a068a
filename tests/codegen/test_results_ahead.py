"""Which products prefetch the lines of their results, and which lines."""

# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import ir

import weft
import weft.language as tl
from host_targets import compiled_for
from weft import dtypes
from weft.codegen import emit_llvm
from weft.codegen.cpu import results_ahead
from weft.codegen.llvm.types import I8, I64
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.runtime import compiler
from weft.target import CpuTarget

pytestmark = pytest.mark.jit


@weft.jit
def product(
    a: Any, b: Any, c: Any, at: Any, M: Any, N: Any, K: Any, BM: tl.constexpr, BN: tl.constexpr, KIND: tl.constexpr
) -> None:
    """What is done with the sums of a tile depends on the kind."""
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k, total = tl.arange(0, 16), tl.zeros((BM, BN), tl.float32)
    first = tl.load(at) if KIND == "begins elsewhere" else 0
    for step in range(0, K, 16):
        x = tl.load(a + m[:, None] * K + (step + k)[None, :], mask=(m < M)[:, None], other=0)
        y = tl.load(b + (step + k)[:, None] * N + n[None, :], mask=(n < N)[None, :], other=0)
        total = tl.dot(x, y, total)
    inside = (m < M)[:, None] & (n < N)[None, :]
    if KIND == "every second":
        tl.store(c + m[:, None] * N * 2 + n[None, :] * 2, total, mask=inside)
    elif KIND == "rows at indices":
        tl.store(c + tl.load(at + m)[:, None] * N + n[None, :], total, mask=inside)
    elif KIND == "begins behind it":
        tl.store(c + tl.load(at) + m[:, None] * N + n[None, :], total, mask=inside)
    elif KIND == "turned":
        tl.store(c + n[:, None] * M + m[None, :], tl.trans(total), mask=tl.trans(inside))
    elif KIND == "with a bias":
        tl.store(c + first + m[:, None] * N + n[None, :], total + tl.load(at + n)[None, :], mask=inside)
    elif KIND == "sums of rows":
        tl.store(c + m, tl.sum(total, axis=1), mask=m < M)
    else:
        tl.store(c + first + m[:, None] * N + n[None, :], total, mask=inside)


def count(kind: str, *tuning: str, m: int = 16, n: int = 32, checked: bool = False) -> int:
    """How many prefetches for the result a kernel has, which emits them as calls of `fetch`."""
    signature: dict[str, Argument] = {
        **dict.fromkeys("abc", PointerArgument(dtypes.float32, aligned=True)),
        "at": PointerArgument(dtypes.int32, aligned=True),
        **dict.fromkeys("MNK", ScalarArgument(dtypes.int32, divisible=True)),
        **{"BM": ConstantArgument(m), "BN": ConstantArgument(n), "KIND": ConstantArgument(kind)},
    }
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx512vl", 512, tuning=tuning)
    module = build_module(KernelFunction(product.fn), signature)
    text = emit_llvm(module, target, Options(disjoint=True, checked=checked))
    return text.count('"llvm.prefetch')


@pytest.mark.parametrize(
    ("kind", "fetches"),
    [
        ("", True),
        ("with a bias", True),
        ("begins elsewhere", True),  # loaded before the product
        ("begins behind it", False),  # behind it
        ("every second", False),
        ("rows at indices", False),
        ("turned", False),
        ("sums of rows", False),
    ],
)
def test_products_that_fetch(kind: str, fetches: bool) -> None:
    """A loop over the 8 rows of a block of 32 columns fetches two lines; so does one over left-over rows, in blocks of 2."""
    assert count(kind, "prefetch-results") - count(kind) == (2 * 2 if fetches else 0)


def test_checked_kernels_do_not_fetch() -> None:
    assert count("", "prefetch-results", checked=True) == count("", checked=True)


def test_results_past_the_caches_are_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the launch decides, a branch does."""
    conditions: list[Any] = []
    fetch = results_ahead.fetch_block

    def seen(registers: Any, result: results_ahead.Result, *place: Any) -> None:
        conditions.append(result.wanted)
        fetch(registers, result, *place)

    monkeypatch.setattr(results_ahead, "fetch_block", seen)
    assert count("", "prefetch-results", "streaming-stores") > count("", "streaming-stores")
    assert all(isinstance(each, ir.Instruction) for each in conditions)
    conditions.clear()
    count("", "prefetch-results", "streaming-stores", n=16)
    assert set(conditions) == {None}, "rows of one line do not stream"


@pytest.mark.parametrize("tile", [(16, 16), (16, 32), (32, 64)])
@pytest.mark.parametrize(("m", "n"), [(48, 64), (33, 96), (5, 80)])
def test_each_line_of_the_result_is_fetched(
    tile: tuple[int, int], m: int, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each prefetch writes to a place as far behind the result as that is long, and a block's rows beyond the end to what lies
    behind that. Values are as without."""
    target = compiled_for("x86-64-v4,+prefetch-results", monkeypatch)
    rows, depth = 64, 32

    def mark(builder: ir.IRBuilder, place: ir.Value) -> None:
        shadow = builder.gep(place, [ir.Constant(I64, rows * n * 4)], source_etype=I8)
        builder.store(ir.Constant(I8, 1), shadow, align=1)

    monkeypatch.setattr(results_ahead, "fetch", mark)
    monkeypatch.setattr(compiler, "machine_key", lambda: f"{target!r} that marks {n}")
    random = np.random.default_rng(m + n)
    a, b = (random.integers(-4, 5, shape).astype(np.float32) for shape in ((m, depth), (depth, n)))
    space = np.zeros(3 * rows * n + 16, np.float32)
    out = space[-space.ctypes.data % 64 // 4 :][: 3 * rows * n].reshape(3, rows, n)
    grid = (weft.cdiv(m, tile[0]), weft.cdiv(n, tile[1]))
    weft.jit(product.fn)[grid](a, b, out[0], np.zeros(1, np.int32), m, n, depth, BM=tile[0], BN=tile[1], KIND="")
    assert np.array_equal(out[0, :m], a @ b)
    assert not out[0, m:].any()
    marked = out[1].view(np.uint8).reshape(rows, n * 4)
    at = np.arange(n * 4) % 64 == 0
    assert marked[:m, at].all()
    assert not marked[:, ~at].any()
    assert not marked[weft.cdiv(m, 8) * 8 + 8 :].any(), "rows of blocks that are not multiplied"

"""Sums of products that begin with a constant in registers: values beside exact arithmetic, at depths of no, one and several
panels; and what is written to memory first."""

# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import dtypes
from weft.codegen import emit_llvm
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget
from weft.transforms.factors import DEEPEST

pytestmark = pytest.mark.jit


@weft.jit
def product(
    a: Any, b: Any, c: Any, M: Any, K: Any, START: tl.constexpr, SUMS: tl.constexpr, CARRIED: tl.constexpr
) -> None:
    m, n, k = tl.program_id(0) * 16 + tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, 32)
    total = tl.full((16, 32), START, SUMS)
    if CARRIED:
        total += tl.load(c + m[:, None] * 32 + n[None, :], mask=(m < M)[:, None], other=0)
    for at in range(0, K, 32):
        x = tl.load(a + m[:, None] * K + (at + k)[None, :], mask=(m < M)[:, None], other=0)
        total = tl.dot(x, tl.load(b + (at + k)[:, None] * 32 + n[None, :]), total)
    tl.store(c + m[:, None] * 32 + n[None, :], total, mask=(m < M)[:, None])


@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("depth", [0, 32, 2 * DEEPEST + 32])
@pytest.mark.parametrize("name", ["float32", "int8"])
def test_values(name: str, depth: int, carried: bool) -> None:
    """35 rows: two whole tiles, and three rows that are left. Sums that are loaded begin with what is in memory."""
    dtype, sums, acc = {"float32": (np.float32, np.float32, tl.float32), "int8": (np.int8, np.int32, tl.int32)}[name]
    random = np.random.default_rng(depth)
    a, b = (random.integers(-4, 5, shape).astype(dtype) for shape in ((35, depth), (depth, 32)))
    c = np.full((35, 32), 99, sums)
    product[(3,)](a, b, c, 35, depth, START=3, SUMS=acc, CARRIED=carried)
    assert np.array_equal(c, a.astype(np.float64) @ b.astype(np.float64) + 3 + 99 * carried)


def text_of(*features: str, bits: int = 512, narrow: bool = False) -> str:
    operand = PointerArgument(dtypes.int8 if narrow else dtypes.float32, aligned=True)
    sums = dtypes.int32 if narrow else dtypes.float32
    signature: dict[str, Argument] = {
        **dict.fromkeys("ab", operand),
        "c": PointerArgument(sums, aligned=True),
        **dict.fromkeys("MK", ScalarArgument(dtypes.int32)),
        **{"START": ConstantArgument(3), "SUMS": ConstantArgument(sums), "CARRIED": ConstantArgument(False)},
    }
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v3", ",".join(f"+{each}" for each in features), bits)
    return emit_llvm(build_module(KernelFunction(product.fn), signature), target, Options(disjoint=True))


def blocks_of(text: str) -> dict[str, str]:
    """The blocks of a function by their names."""
    return dict(re.findall(r"^(\S+):\n((?:  .*\n)+)", text, re.M))


def test_constants_are_written_where_the_loop_does_not_run() -> None:
    """And nowhere else: other sums that begin with the constant do so in registers."""
    text = text_of("avx512f", "avx512bw", "avx512vl")
    (writes,) = (body for body in blocks_of(text).values() if "store <16 x float> splat (float 0x4008" in body)
    entered = re.search(r'phi +i64 \[0, %"(\S+)"\]', writes)
    assert entered is not None
    branch = re.search(rf'(%\S+) = icmp sge i64 .*\n  br i1 \1, label %"{entered[1]}"', text)
    assert branch is not None


def test_left_over_rows_of_integers_have_more_chains_of_sums() -> None:
    """A block has 8 rows of 32 columns, left-over rows are a quarter of that; of integers one row with two chains for each
    register of it, over two words of the depth."""
    features = "avx512f", "avx512bw", "avx512vl"
    found = [body for body in blocks_of(text_of(*features)).values() if '@"llvm.fmuladd' in body]
    assert 2 * 2 in [body.count('@"llvm.fmuladd') for body in found]
    name = '@"llvm.x86.avx512.vpdpbusd.512"'
    counts = [body.count(name) for body in blocks_of(text_of(*features, "avx512vnni", narrow=True)).values()]
    assert sorted(filter(None, counts))[:2] == [2 * 2, 2 * 2 + 2], counts

"""Dot nests over panels: loops that qualify and loops that must not, against NumPy on whole numbers, where every sum is exact.

Each kernel says whether its loop is a nest: its laid-out IR then multiplies panels of a depth that is known at run time.
"""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from typing import Any

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from entries import enter
from sampling import at_night, grid, some
from weft import dtypes
from weft import target as targets
from weft.codegen.compile import emit_assembly
from weft.codegen.cpu import machine
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.ir.cpu import MultiplyOp
from weft.options import Options
from weft.runtime import compiler
from weft.runtime.workspace import Workspace
from weft.target import FMA, PRODUCTS, X86_LEVELS, CpuTarget, product_for

Array = NDArray[Any]


def whole(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Array:
    """Small whole numbers."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def products_of(kernel: Any, *arguments: Any, **constants: Any) -> tuple[int, int, int]:
    """How many dots of a kernel are nests, how many are multiplied from panels of one step, whose depth is a constant, and how
    many from tiles."""
    handle = kernel.compile(*arguments, **constants)
    module = compiler.laid_out(handle.kernel, handle.signature, handle.options, targets.host())
    products = [op for op in module.walk() if isinstance(op, MultiplyOp)]
    single = [op for op in products if isinstance(op.depth.owner, tile.ConstantOp)]
    return len(products) - len(single), len(single), sum(isinstance(op, tile.DotOp) for op in module.walk())


@weft.jit
def product(
    a_ptr: Any, b_ptr: Any, c_ptr: Any, M: Any, N: Any, K: Any, a_row: Any, a_column: Any, b_row: Any, b_column: Any,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, WRAP: tl.constexpr, ACC: tl.constexpr, OTHER: tl.constexpr,
) -> None:  # fmt: skip
    columns = tl.cdiv(N, BN)
    pid = tl.program_id(0)
    m = pid // columns * BM + tl.arange(0, BM)
    n = pid % columns * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    row, column = (m % M, n % N) if WRAP else (m, n)
    a_tile = a_ptr + row[:, None] * a_row + k[None, :] * a_column
    b_tile = b_ptr + k[:, None] * b_row + column[None, :] * b_column
    acc = tl.zeros((BM, BN), ACC)
    for i in range(tl.cdiv(K, BK)):
        if WRAP:
            a = tl.load(a_tile, mask=k[None, :] < K - i * BK, other=0)
            b = tl.load(b_tile, mask=k[:, None] < K - i * BK, other=0)
        else:
            a = tl.load(a_tile, mask=(m < M)[:, None] & (k[None, :] < K - i * BK), other=OTHER)
            b = tl.load(b_tile, mask=(k[:, None] < K - i * BK) & (n < N)[None, :], other=0)
        acc = tl.dot(a, b, acc)
        a_tile += BK * a_column
        b_tile += BK * b_row
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m < M)[:, None] & (n < N)[None, :])


TYPES = {
    "float32": (np.float32, np.float32, tl.float32),
    "float64": (np.float64, np.float64, tl.float64),
    "float16": (np.float16, np.float32, tl.float32),
    "bfloat16": (ml_dtypes.bfloat16, np.float32, tl.float32),
    "int8": (np.int8, np.int32, tl.int32),
}
TILES = ((16, 16, 16), (32, 16, 32), (16, 32, 64), (64, 32, 16), (128, 64, 32))


def test_few_passes_go_over_kernels_that_multiply_panels(monkeypatch: pytest.MonkeyPatch) -> None:
    said, simplify = list[bool](), machine.simplify

    def noted(module: llvm.ModuleRef, host: llvm.TargetMachine, *, loops: bool, products: bool) -> None:
        said.append(products)
        simplify(module, host, loops=loops, products=products)

    monkeypatch.setattr(machine, "simplify", noted)
    x = whole((16, 16))
    sizes: dict[str, Any] = dict(BM=16, BN=16, BK=16, WRAP=False, ACC=tl.float32, OTHER=0)
    kernel: Any = product
    multiplies = kernel.compile(x, x.copy(), x.copy(), *[16] * 3, 16, 1, 16, 1, **sizes)
    for handle, few in ((multiplies, True), (total_of_rows.compile(x, x.copy()), False)):
        compiler.build(handle.kernel, handle.signature, handle.options)
        assert said[-1] == few


@weft.jit
def total_of_rows(x_ptr: Any, out_ptr: Any) -> None:
    i = tl.arange(0, 16)
    tl.store(out_ptr + i, tl.sum(tl.load(x_ptr + i[:, None] * 16 + i[None, :]), 1))


@pytest.mark.parametrize(
    ("name", "block", "wrap", "turned"),
    grid(11, tuple(TYPES), TILES, (False, True), ("", "a", "b")),
)
def test_matmul(name: str, block: tuple[int, int, int], wrap: bool, turned: str) -> None:
    """Cut-off tiles on all sides, wrap-arounds, and operands whose columns are contiguous."""
    dtype, sums, acc = TYPES[name]
    m, n, k = 75, 50, 70
    a = whole((k, m), dtype, 1).T if turned == "a" else whole((m, k), dtype, 1)
    b = whole((n, k), dtype, 2).T if turned == "b" else whole((k, n), dtype, 2)
    out = np.full((m, n), 99, sums)
    programs = (weft.cdiv(m, block[0]) * weft.cdiv(n, block[1]),)
    strides = [step // x.itemsize for x in (a, b) for step in x.strides]
    constants = dict(zip(("BM", "BN", "BK"), block, strict=True)) | {"WRAP": wrap, "ACC": acc, "OTHER": 0}
    arguments = (a, b, out, m, n, k, *strides)
    product[programs](*arguments, **constants)
    assert np.array_equal(out, a.astype(np.float64) @ b.astype(np.float64))
    assert products_of(product, *arguments, **constants)[0] == 1


LEFT_IN = [(16, 16, 16), (64, 32, 16), (128, 64, 32)]

product_of_any_size = weft.jit(do_not_specialize=("M", "N", "b_row"))(product.fn)
"""`product`, compiled once for all numbers of rows and columns."""


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("block", LEFT_IN)
def test_rows_and_columns_that_are_left(name: str, block: tuple[int, int, int]) -> None:
    """Every number of rows that blocks and quarters of blocks have to make up, and columns that end in each vector of a group.
    By day each block has every third number of rows, the others the numbers between."""
    dtype, sums, acc = TYPES[name]
    k = 37
    constants = dict(zip(("BM", "BN", "BK"), block, strict=True)) | {"WRAP": False, "ACC": acc, "OTHER": 0}
    a, b = whole((40, k), dtype, 1), whole((k, 70), dtype, 2)
    sizes = list(zip((*range(1, 21), 31, 33, 36, 37), itertools.cycle((1, 16, 17, 33, 49, 65, 70)), strict=False))
    for m, n in sizes if at_night() else sizes[LEFT_IN.index(block) :: len(LEFT_IN)]:
        right = np.ascontiguousarray(b[:, :n])
        out = np.full((m, n), 99, sums)
        programs = (weft.cdiv(m, block[0]) * weft.cdiv(n, block[1]),)
        product_of_any_size[programs](a, right, out, m, n, k, k, 1, n, 1, **constants)
        assert np.array_equal(out, a[:m].astype(np.float64) @ right.astype(np.float64)), (m, n)


@pytest.mark.parametrize("wrap", [False, True])
def test_columns_apart(wrap: bool) -> None:
    """Addresses that ascend by more than an element, or not at all, are no run."""
    m, n, k = 20, 40, 30
    a = whole((m, k))
    for step in (3, 0):
        b, out = whole((k, 3 * n), seed=1), np.zeros((m, n), np.float32)
        constants = {"BM": 16, "BN": 16, "BK": 16, "WRAP": wrap, "ACC": tl.float32, "OTHER": 0}
        product[(6,)](a, b, out, m, n, k, k, 1, 3 * n, step, **constants)
        assert np.array_equal(out, a @ (b[:, ::3] if step else np.repeat(b[:, :1], n, axis=1)))


def test_what_masked_elements_have() -> None:
    """``other`` is part of the operand where rows end, though not of any element that is stored."""
    a, b, out = whole((20, 40)), whole((40, 20), seed=1), np.zeros((20, 20), np.float32)
    product[(4,)](a, b, out, 20, 20, 40, 40, 1, 20, 1, BM=16, BN=16, BK=16, WRAP=False, ACC=tl.float32, OTHER=3)
    # beyond K the left operand has 3 and the right 0
    assert np.array_equal(out, a @ b)


@pytest.mark.parametrize("k", [0, 1, 16, 17, 2048, 2049, 5000])
def test_any_depth(k: int) -> None:
    """No iteration, one, and more than a panel holds."""
    a, b, out = whole((16, k)), whole((k, 16), seed=1), np.full((16, 16), 99, np.float32)
    product[(1,)](a, b, out, 16, 16, k, k, 1, 16, 1, BM=16, BN=16, BK=16, WRAP=False, ACC=tl.float32, OTHER=0)
    assert np.array_equal(out, a @ b)


@pytest.mark.parametrize("order", ["rows", "columns"])
def test_more_panels_than_a_thread_keeps(order: str) -> None:
    """70 panels of one operand, twice around: each is evicted before it is asked for again."""
    m, n, k = 32, 70 * 16, 20
    a, b, out = whole((m, k)), whole((k, n), seed=1), np.zeros((m, n), np.float32)
    if order == "columns":
        m, n, a, b, out = n, m, b.T.copy(), a.T.copy(), np.zeros((n, m), np.float32)
    programs = (weft.cdiv(m, 16) * weft.cdiv(n, 16),)
    product[programs](a, b, out, m, n, k, k, 1, n, 1, BM=16, BN=16, BK=16, WRAP=False, ACC=tl.float32, OTHER=0)
    assert np.array_equal(out, a @ b)


def test_panels_are_of_one_launch() -> None:
    """What arrays hold between launches is seen: a panel of an earlier launch is not used."""
    a, b, out = whole((16, 32)), whole((32, 16), seed=1), np.zeros((16, 16), np.float32)
    for seed in range(3):
        a[:] = whole((16, 32), seed=seed)
        b[:] = whole((32, 16), seed=seed + 10)
        product[(1,)](a, b, out, 16, 16, 32, 32, 1, 16, 1, BM=16, BN=16, BK=16, WRAP=False, ACC=tl.float32, OTHER=0)
        assert np.array_equal(out, a @ b)


@weft.jit
def batched(a_ptr: Any, b_ptr: Any, c_ptr: Any, scales: Any, K: Any, STEP: tl.constexpr, START: tl.constexpr) -> None:
    """Programs in three dimensions, of which the operands depend on different ones; a scale that each program loads."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    i, k = tl.arange(0, 16), tl.arange(0, 16)
    scale = tl.load(scales + z)
    acc = tl.zeros((16, 16), tl.float32) + x
    for at in range(START, K, STEP):
        a = tl.load(a_ptr + (y * 16 + i)[:, None] * K + (at + k)[None, :], mask=(at + k)[None, :] < K, other=0)
        b = tl.load(b_ptr + ((x * K + at + k)[:, None]) * 16 + i[None, :], mask=(at + k)[:, None] < K, other=0)
        acc = tl.dot(a * scale, b, acc)
    place = ((z * tl.num_programs(1) + y) * tl.num_programs(0) + x) * 256
    tl.store(c_ptr + place + i[:, None] * 16 + i[None, :], acc)


@pytest.mark.parametrize(("step", "start"), [(16, 0), (16, 3), (7, 1), (16, 11)])
def test_keys_are_what_operands_depend_on(step: int, start: int) -> None:
    """Overlapping steps, a start that is no multiple of anything, and an accumulator that does not begin with zeros."""
    k = 60
    a, b, scales = whole((3, 16, k)), whole((2, k, 16), seed=1), np.array([1, 2, -1, 2], np.float32)
    out = np.zeros((4, 3, 2, 16, 16), np.float32)
    batched[(2, 3, 4)](a, b, out, scales, k, STEP=step, START=start)
    times = np.array([sum(s <= at < s + 16 for s in range(start, k, step)) for at in range(k)])
    expected = np.einsum("z,yik,k,xkj->zyxij", scales, a, times, b) + np.arange(2)[:, None, None]
    assert np.array_equal(out, expected)
    assert products_of(batched, a, b, out, scales, k, STEP=step, START=start)[0] == 1


@weft.jit
def triangle(a_ptr: Any, b_ptr: Any, c_ptr: Any, K: Any, DOWN: tl.constexpr) -> None:
    """Programs whose loops have other lengths, over one right operand."""
    i, k = tl.arange(0, 16), tl.arange(0, 16)
    pid = tl.program_id(0)
    first = (tl.num_programs(0) - 1 - pid if DOWN else 0) * 16
    last = K if DOWN else (pid + 1) * 16
    acc = tl.zeros((16, 16), tl.float32)
    place = 0
    for at in range(first, last, 16):
        a = tl.load(a_ptr + (pid * 16 + i)[:, None] * K + (at + k)[None, :])
        acc = tl.dot(a, tl.load(b_ptr + (place + k)[:, None] * 16 + i[None, :]), acc)
        place += 16
    tl.store(c_ptr + (pid * 16 + i)[:, None] * 16 + i[None, :], acc)


@pytest.mark.parametrize("down", [False, True])
def test_programs_with_loops_of_other_lengths(down: bool) -> None:
    """A panel that a shorter loop filled does not serve a longer one."""
    k = 5 * 16
    a, b, out = whole((k, k)), whole((k, 16), seed=1), np.zeros((k, 16), np.float32)
    triangle[(5,)](a, b, out, k, DOWN=down)
    for first in range(0, k, 16):
        row, length = a[first : first + 16], first + 16
        expected = (row[:, k - length :] if down else row[:, :length]) @ b[:length]
        assert np.array_equal(out[first : first + 16], expected)
    assert products_of(triangle, a, b, out, k, DOWN=down)[0] == 1


@weft.jit
def gated(a_ptr: Any, b_ptr: Any, c_ptr: Any, d_ptr: Any, K: Any, last: Any) -> None:
    """Two dots with one operand in common; what the loop carries is read after it."""
    i, k = tl.arange(0, 16), tl.arange(0, 32)
    gate, up = tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32)
    at = 5
    for start in range(0, K, 32):
        a = tl.load(a_ptr + i[:, None] * K + (start + k)[None, :])
        gate = tl.dot(a, tl.load(b_ptr + (start + k)[:, None] * 32 + i[None, :]), gate)
        up = tl.dot(a, tl.load(b_ptr + (start + k)[:, None] * 32 + 16 + i[None, :]), up)
        at += 3
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], gate)
    tl.store(d_ptr + i[:, None] * 16 + i[None, :], up)
    tl.store(last, at)


def test_two_accumulators() -> None:
    a, b, last = whole((16, 96)), whole((96, 32), seed=1), np.zeros(1, np.int32)
    c, d = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    gated[(1,)](a, b, c, d, 96, last)
    assert np.array_equal(c, (a @ b)[:, :16])
    assert np.array_equal(d, (a @ b)[:, 16:])
    assert last[0] == 5 + 3 * 3
    assert products_of(gated, a, b, c, d, 96, last)[0] == 2


@weft.jit
def powers(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    """An operand from outside the loop, which is no function of scalars: a tile that another dot gives."""
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    a = tl.dot(tl.load(a_ptr + at), tl.load(a_ptr + at))
    acc = tl.load(c_ptr + at)
    for j in range(n):
        acc = tl.dot(a, tl.load(b_ptr + j * 256 + at), acc)
    tl.store(c_ptr + at, acc)


def test_operands_from_outside_the_loop() -> None:
    a, b, c = whole((16, 16)), whole((5, 16, 16), seed=1), whole((16, 16), seed=2)
    expected = c + sum(a @ a @ x for x in b)
    powers[(1,)](a, b, c, 5)
    assert np.array_equal(c, expected)
    assert products_of(powers, a, b, c, 5)[0] == 1


# ---- loops that are no nests -----------------------------------------------------------------------------------------


@weft.jit
def reads_its_sum(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    acc, total = tl.zeros((16, 16), tl.float32), 0.0
    for j in range(n):
        acc = tl.dot(tl.load(a_ptr + j * 256 + at), tl.load(b_ptr + j * 256 + at), acc)
        total += tl.sum(acc)
    tl.store(c_ptr + at, acc + total)


@weft.jit
def reads_the_old_sum(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    acc, total = tl.zeros((16, 16), tl.float32), 0.0
    for j in range(n):
        total += tl.sum(acc)
        acc = tl.dot(tl.load(a_ptr + j * 256 + at), tl.load(b_ptr + j * 256 + at), acc)
    tl.store(c_ptr + at, acc + total)


@weft.jit
def stores_what_it_loads(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    """Each iteration writes the left operand of the next."""
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    acc = tl.zeros((16, 16), tl.float32)
    for j in range(n):
        acc = tl.dot(tl.load(a_ptr + j * 256 + at), tl.load(b_ptr + j * 256 + at), acc)
        tl.store(a_ptr + (j + 1) * 256 + at, tl.load(b_ptr + j * 256 + at) + j)
    tl.store(c_ptr + at, acc)


@weft.jit
def steps_grow(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    acc = tl.zeros((16, 16), tl.float32)
    place = 1
    for _ in range(n):
        acc = tl.dot(tl.load(a_ptr + (place - 1) * 256 + at), tl.load(b_ptr + (place - 1) * 256 + at), acc)
        place *= 2
    tl.store(c_ptr + at, acc)


@weft.jit
def leaves_early(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    acc = tl.zeros((16, 16), tl.float32)
    j = 0
    while j < n:
        acc = tl.dot(tl.load(a_ptr + j * 256 + at), tl.load(b_ptr + j * 256 + at), acc)
        if tl.sum(acc) > 50:
            break
        j += 1
    tl.store(c_ptr + at, acc)


@weft.jit
def scales_its_sum(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    """As in attention: the accumulator changes between dots."""
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    acc = tl.zeros((16, 16), tl.float32)
    for j in range(n):
        acc = tl.dot(tl.load(a_ptr + j * 256 + at), tl.load(b_ptr + j * 256 + at), acc * 2)
    tl.store(c_ptr + at, acc)


@weft.jit
def multiplies_its_sum(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    """The sum so far is an operand of another dot."""
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    acc, second = tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32)
    for j in range(n):
        acc = tl.dot(tl.load(a_ptr + j * 256 + at), tl.load(b_ptr + j * 256 + at), acc)
        second = tl.dot(acc, tl.load(b_ptr + at), second)
    tl.store(c_ptr + at, second)


@weft.jit
def multiplies_the_old_sum(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    acc, second = tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32)
    for j in range(n):
        second = tl.dot(acc, tl.load(b_ptr + at), second)
        acc = tl.dot(tl.load(a_ptr + j * 256 + at), tl.load(b_ptr + j * 256 + at), acc)
    tl.store(c_ptr + at, second)


@weft.jit
def stores_between_loops(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    """The loop of dots has no effects, but what it loads changes before it runs again."""
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    acc = tl.zeros((16, 16), tl.float32)
    for _ in range(2):
        acc = tl.zeros((16, 16), tl.float32)
        for j in range(n):
            acc = tl.dot(tl.load(a_ptr + j * 256 + at), tl.load(b_ptr + j * 256 + at), acc)
        tl.store(a_ptr + at, acc)
    tl.store(c_ptr + at, acc)


def expect_twice(a: Array, b: Array, n: int) -> Array:
    for _ in range(2):
        a[0] = sum(a[j] @ b[j] for j in range(n))
    return a[0]


def expect_product(a: Array, b: Array, n: int, *, old: bool) -> Array:
    sums = list(itertools.accumulate((a[j] @ b[j] for j in range(n)), initial=np.zeros((16, 16), np.float32)))
    zero = np.zeros((16, 16), np.float32)
    return sum((s @ b[0] for s in (sums[:-1] if old else sums[1:])), zero)


def expect_total(a: Array, b: Array, n: int, *, old: bool) -> Array:
    sums = list(itertools.accumulate((a[j] @ b[j] for j in range(n)), initial=np.zeros((16, 16), np.float32)))
    return sums[-1] + sum(s.sum() for s in (sums[:-1] if old else sums[1:]))


def expect_stored(a: Array, b: Array, n: int) -> Array:
    lefts = [a[0], *(b[j] + j for j in range(n))]
    return sum((lefts[j] @ b[j] for j in range(n)), np.zeros((16, 16), np.float32))


def expect_early(a: Array, b: Array, n: int) -> Array:
    acc = np.zeros((16, 16), np.float32)
    for j in range(n):
        acc = acc + a[j] @ b[j]
        if acc.sum() > 50:
            break
    return acc


def expect_scaled(a: Array, b: Array, n: int) -> Array:
    acc = np.zeros((16, 16), np.float32)
    for j in range(n):
        acc = acc * 2 + a[j] @ b[j]
    return acc


NO_NESTS: dict[str, tuple[Any, Any]] = {
    "reads its sum": (reads_its_sum, lambda a, b, n: expect_total(a, b, n, old=False)),
    "reads the old sum": (reads_the_old_sum, lambda a, b, n: expect_total(a, b, n, old=True)),
    "multiplies its sum": (multiplies_its_sum, lambda a, b, n: expect_product(a, b, n, old=False)),
    "multiplies the old sum": (multiplies_the_old_sum, lambda a, b, n: expect_product(a, b, n, old=True)),
    "stores between loops": (stores_between_loops, expect_twice),
    "stores what it loads": (stores_what_it_loads, expect_stored),
    "steps grow": (steps_grow, lambda a, b, n: sum(a[2**j - 1] @ b[2**j - 1] for j in range(n))),
    "leaves early": (leaves_early, expect_early),
    "scales its sum": (scales_its_sum, expect_scaled),
}


@pytest.mark.parametrize("name", NO_NESTS)
def test_loops_that_are_no_nests(name: str) -> None:
    kernel, expected = NO_NESTS[name]
    a, b, c = whole((9, 16, 16)), whole((9, 16, 16), seed=1), np.zeros((16, 16), np.float32)
    wanted = expected(a.copy(), b, 3)
    assert products_of(kernel, a, b, c, 3)[0] == 0
    kernel[(1,)](a, b, c, 3)
    assert np.array_equal(c, wanted)


def sum_of_products(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    acc = tl.zeros((16, 16), tl.float32)
    for j in range(n):
        acc = tl.dot(tl.load(a_ptr + j * 256 + at), tl.load(b_ptr + j * 256 + at), acc)
    tl.store(c_ptr + at, acc)


def test_arrays_that_overlap() -> None:
    """No load is invariant where the launch cannot promise that arrays are disjoint."""
    memory, b = whole((4 * 256 + 16,)), whole((3, 16, 16), seed=1)
    a, c = memory[: 3 * 256].reshape(3, 16, 16), memory[2 * 256 + 16 : 3 * 256 + 16].reshape(16, 16)
    expected = sum(a[j] @ b[j] for j in range(3))
    assert products_of(weft.jit(sum_of_products), a, b, c, 3)[0] == 0
    weft.jit(sum_of_products)[(1,)](a, b, c, 3)
    assert np.array_equal(c, expected)


def test_checked_kernels_name_the_access() -> None:
    """A checked kernel keeps its loads in place, and reports the one that is out of bounds."""
    a, b, c = whole((2, 16, 16)), whole((3, 16, 16), seed=1), np.zeros((16, 16), np.float32)
    checked = weft.jit(checked=True)(sum_of_products)
    assert products_of(checked, a, b, c, 3)[0] == 0
    with pytest.raises(weft.OutOfBoundsError, match="a_ptr"):
        checked[(1,)](a, b, c, 3)


@weft.jit
def one_row_of_tiles(a_ptr: Any, b_ptr: Any, c_ptr: Any) -> None:
    """Programs have rows of their own, and one right operand."""
    i, k = tl.program_id(0) * 16 + tl.arange(0, 16), tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    for step in range(4):
        a = tl.load(a_ptr + i[:, None] * 64 + (step * 16 + k)[None, :])
        b = tl.load(b_ptr + (step * 16 + k)[:, None] * 16 + k[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * 16 + k[None, :], acc)


def test_panels_outlive_a_pause() -> None:
    """A launch that is asked to return between programs goes on with the panels that it has: what is written into the right
    operand meanwhile is not seen. The next launch packs it again."""
    a, b, out = whole((48, 64)), whole((64, 16), seed=1), np.zeros((48, 16), np.float32)
    expected = a @ b
    handle, space = one_row_of_tiles.compile(a, b, out), Workspace()
    for _ in range(2):
        assert enter(handle, (a, b, out), (3, 1, 1), 3, pauses=True, paused=lambda: b.fill(0), space=space) == 3
        assert np.array_equal(out, expected)
        expected = np.zeros_like(out)


# ---- tiles that are cut off -------------------------------------------------------------------------------------------


def wanted_of(kernel: Any, *arguments: Any, **constants: Any) -> list[bool]:
    """Whether the rows and the columns of each multiplication are a number that is known at run time only."""
    handle = kernel.compile(*arguments, **constants)
    module = compiler.laid_out(handle.kernel, handle.signature, handle.options, targets.host())
    products = [op for op in module.walk() if isinstance(op, MultiplyOp)]
    return [not isinstance(size.owner, tile.ConstantOp) for op in products for size in (op.rows, op.columns)]


@pytest.mark.parametrize(
    ("name", "m", "n", "wrap"),
    grid(6, ("float32", "bfloat16", "int8"), (1, 8, 9, 33, 64), (5, 32, 40, 200), (False, True)),
)
def test_products_of_few_rows_and_columns(name: str, m: int, n: int, wrap: bool) -> None:
    """Whatever part of the tiles is there, in the last tiles and in the only ones. By day float32 has kernels of its own for
    sizes of 1 and of multiples of 16."""
    dtype, sums, acc = TYPES[name]
    a, b, out = whole((m, 70), dtype, 1), whole((70, n), dtype, 2), np.full((m, n), 99, sums)
    arguments = (a, b, out, m, n, 70, 70, 1, n, 1)
    constants = {"BM": 64, "BN": 128, "BK": 32, "WRAP": wrap, "ACC": acc, "OTHER": 0}
    kernel = product if at_night() or name == "float32" else product_of_any_size
    kernel[(weft.cdiv(m, 64) * weft.cdiv(n, 128),)](*arguments, **constants)
    assert np.array_equal(out, a.astype(np.float64) @ b.astype(np.float64))
    assert wanted_of(kernel, *arguments, **constants) == [True, True]


@weft.jit
def partly_stored(a_ptr: Any, b_ptr: Any, c_ptr: Any, s_ptr: Any, first: Any, M: Any, KIND: tl.constexpr) -> None:
    """Rows ``first + i`` of 64 are stored where they are below M, but for some kinds of which all elements are read."""
    i, k = tl.arange(0, 64), tl.arange(0, 16)
    acc = tl.zeros((64, 16), tl.int32)
    for step in range(2):
        a = tl.load(a_ptr + i[:, None] * 32 + (step * 16 + k)[None, :])
        b = tl.load(b_ptr + (step * 16 + k)[:, None] * 16 + k[None, :])
        acc = tl.dot(a, b, acc)
    m = first + i
    out, at = c_ptr + i[:, None] * 16 + k[None, :], (m < M)[:, None]
    if KIND == "masked":
        tl.store(out, acc * 2 + 1, mask=at & (k > 3)[None, :])
    elif KIND == "either":
        tl.store(out, acc, mask=at | (k < 3)[None, :])
    elif KIND == "up to":
        tl.store(out, acc, mask=(m <= M)[:, None])
    elif KIND == "turned":
        tl.store(out, acc, mask=(m > M)[:, None])
    elif KIND == "twice":
        tl.store(out, acc, mask=at)
        tl.store(s_ptr + i[:, None] * 16 + k[None, :], acc)
    elif KIND == "summed":
        tl.store(out, acc, mask=at)
        tl.store(s_ptr + k, tl.sum(acc, 0))
    elif KIND == "divided":
        tl.store(out, 1000 // (acc + 1), mask=at)
    else:
        tl.store(out, acc)


@pytest.mark.parametrize("kind", ["masked", "either", "up to", "turned", "twice", "summed", "divided", "whole"])
@pytest.mark.parametrize("first", [0, 7, 2**31 - 20])
def test_what_is_stored_decides(kind: str, first: int) -> None:
    """Sums that a mask keeps from all stores need not be there. Offsets that wrap around below the limit are stored."""
    a, b = np.random.default_rng(0).integers(1, 5, (64, 32)).astype(np.int8), np.ones((32, 16), np.int8)
    limit = first + 10 if first < 2**30 else 5
    m, k = (np.arange(64) + first).astype(np.uint32).view(np.int32)[:, None], np.arange(16)[None, :]
    total = a.astype(np.int32) @ b.astype(np.int32)
    masks = {
        "masked": (m < limit) & (k > 3),
        "either": (m < limit) | (k < 3),
        "up to": m <= limit,
        "turned": limit < m,
    }
    stored = {"masked": total * 2 + 1, "divided": 1000 // (total + 1)}.get(kind, total)
    expected = np.where(masks.get(kind, True if kind == "whole" else m < limit), stored, -1)
    out, sums = np.full((64, 16), -1, np.int32), np.full((64, 16), -1, np.int32)
    partly_stored[(1,)](a, b, out, sums, first, limit, KIND=kind)
    assert np.array_equal(out, expected)
    also = {"twice": total, "summed": np.vstack([total.sum(0), np.full((63, 16), -1)])}
    assert np.array_equal(sums, also.get(kind, np.full_like(sums, -1)))
    assert wanted_of(partly_stored, a, b, out, sums, first, limit, KIND=kind) == [kind == "masked", False]


@weft.jit
def two_limits(a_ptr: Any, b_ptr: Any, c_ptr: Any, M: Any, N: Any) -> None:
    """Rows are stored that are below M and below N."""
    i, k = tl.arange(0, 64), tl.arange(0, 16)
    acc = tl.zeros((64, 16), tl.float32)
    for step in range(2):
        a = tl.load(a_ptr + i[:, None] * 32 + (step * 16 + k)[None, :])
        b = tl.load(b_ptr + (step * 16 + k)[:, None] * 16 + k[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + i[:, None] * 16 + k[None, :], acc, mask=(i < M)[:, None] & (i < N)[:, None])


@pytest.mark.parametrize(("m", "n"), [(3, 34), (34, 3)])
def test_the_first_of_two_limits_counts(m: int, n: int) -> None:
    """Always the same one: code is the same however Python numbers the values of a module."""
    a, b, out = whole((64, 32)), whole((32, 16), seed=1), np.full((64, 16), 99, np.float32)
    two_limits[(1,)](a, b, out, m, n)
    assert np.array_equal(out[:3], (a @ b)[:3])
    assert np.all(out[3:] == 99)
    handle = two_limits.compile(a, b, out, m, n)
    modules = [compiler.laid_out(handle.kernel, handle.signature, handle.options, targets.host()) for _ in range(20)]
    assert len({str(module) for module in modules}) == 1


@weft.jit
def one_left_operand(a_ptr: Any, b_ptr: Any, c_ptr: Any, M: Any, N: Any) -> None:
    """Two sums of one left operand, of which other rows are stored; then programs that want other rows of one panel."""
    i, k, other = tl.arange(0, 64), tl.arange(0, 16), tl.program_id(0) * -60
    first, second = tl.zeros((64, 16), tl.float32), tl.zeros((64, 16), tl.float32)
    for step in range(2):
        a = tl.load(a_ptr + i[:, None] * 32 + (step * 16 + k)[None, :])
        b = tl.load(b_ptr + (step * 16 + k)[:, None] * 16 + k[None, :])
        first = tl.dot(a, b, first)
        second = tl.dot(a, b + 1, second)
    third = tl.zeros((64, 16), tl.float32)
    for step in range(2):
        a = tl.load(a_ptr + i[:, None] * 32 + (step * 16 + k)[None, :])
        b = tl.load(b_ptr + (step * 16 + k)[:, None] * 16 + k[None, :])
        third = tl.dot(a, b, third)
    out = c_ptr + tl.program_id(0) * 3072 + i[:, None] * 16 + k[None, :]
    tl.store(out, first, mask=(i < N)[:, None])
    tl.store(out + 1024, second, mask=(i < M)[:, None])
    tl.store(out + 2048, third, mask=(other + i < M)[:, None])


def test_panels_of_several_extents() -> None:
    a, b, out = whole((64, 32)), whole((32, 16), seed=1), np.full((2, 3, 64, 16), 99, np.float32)
    one_left_operand[(2,)](a, b, out, 3, 34)
    for pid in range(2):
        for found, right, rows in zip(out[pid], (b, b + 1, b), (34, 3, 3 + 60 * pid), strict=True):
            assert np.array_equal(found[:rows], (a @ right)[:rows])
            assert np.all(found[rows:] == 99)


# ---- the machine's own instructions ----------------------------------------------------------------------------------


def assembly_of(name: str, block: tuple[int, int, int], features: frozenset[str], turned: str = "") -> str:
    """The assembly of `product` for a CPU of x86-64's level 4 with more features. The columns of the operand ``turned`` are
    contiguous, else rows."""
    dtype, sums_, acc = TYPES[name]
    numpy_types = {np.float32: dtypes.float32, np.int32: dtypes.int32}
    operand = PointerArgument(dtypes.from_numpy(np.dtype(dtype)), aligned=True)
    contiguous = {f"{each}_{'row' if each == turned else 'column'}" for each in "ab"}
    numbers = sorted({"M", "N", "K", "a_row", "a_column", "b_row", "b_column"} - contiguous)
    signature: dict[str, Argument] = {parameter: ScalarArgument(dtypes.int32) for parameter in numbers}
    signature |= {"a_ptr": operand, "b_ptr": operand, "c_ptr": PointerArgument(numpy_types[sums_], aligned=True)}
    constants = dict(zip(("BM", "BN", "BK"), block, strict=True)) | {
        "WRAP": False,
        "ACC": acc,
        "OTHER": 0,
        **dict.fromkeys(contiguous, 1),
    }
    signature |= {parameter: ConstantArgument(value) for parameter, value in constants.items()}
    module = build_module(KernelFunction(product.fn), signature)
    levels = " ".join(X86_LEVELS.values()).split()
    text = ",".join(f"+{f}" for f in [*levels, *sorted(features)])
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", text, 512)
    return emit_assembly(module, target, Options(disjoint=True))


AMX = frozenset(feature for product in PRODUCTS.values() if product.rows for feature in product.needs)
"""What its instructions need. Those of vectors are in `test_product_instructions`."""


@pytest.mark.parametrize(
    ("name", "block", "instruction"),
    [
        ("bfloat16", (32, 32, 32), "tdpbf16ps"),
        ("bfloat16", (16, 16, 16), "tdpbf16ps"),
        ("int8", (32, 16, 64), "tdpbssd"),
        ("float16", (32, 32, 32), None),
        ("float32", (32, 32, 32), None),
    ],
)
def test_instructions(name: str, block: tuple[int, int, int], instruction: str | None) -> None:
    """Tiles are configured once a launch, and given back; a machine without the instruction does not get it."""
    features = AMX
    text = assembly_of(name, block, features)
    used = {found for found in ("tdpbf16ps", "tdpbssd") if f"\t{found}" in text}
    assert used == ({instruction} if instruction else set())
    assert text.count("ldtilecfg") == bool(instruction)
    assert ("tilerelease" in text) == bool(instruction)
    for missing in features if instruction else ():
        others = assembly_of(name, block, features - {missing})
        product_ = next(p for p in PRODUCTS.values() if p.rows and p.operands == name)
        assert ("ldtilecfg" in others) == (missing not in product_.needs)


@pytest.mark.parametrize("turned", ["a", "b"])
@pytest.mark.parametrize(("name", "instruction"), [("bfloat16", "tdpbf16ps"), ("int8", "tdpbssd")])
def test_instructions_of_turned_operands(name: str, instruction: str, turned: str) -> None:
    """Operands whose columns are contiguous get the same instruction, as ``x @ w.T`` and ``x.T @ y`` have them."""
    features = AMX
    assert f"\t{instruction}" in assembly_of(name, (32, 32, 64), features, turned)


LEVELS = """
import numpy as np, weft, ml_dtypes
from codegen.test_nests import TYPES, product, whole
for name, (dtype, sums, acc) in TYPES.items():
    a, b, out = whole((40, 70), dtype, 1), whole((70, 50), dtype, 2), np.zeros((40, 50), sums)
    constants = dict(BM=32, BN=16, BK=16, WRAP=True, ACC=acc, OTHER=0)
    product[(8,)](a, b, out, 40, 50, 70, 70, 1, 50, 1, **constants)
    assert np.array_equal(out, a.astype(np.float64) @ b.astype(np.float64)), name
print("right")
"""


@pytest.mark.parametrize("level", some(["x86-64", "x86-64-v3", "x86-64-v4"], "x86-64", "x86-64-v4"))
def test_lower_levels_of_the_machine(level: str) -> None:
    """What this machine computes without its best instructions."""
    try:
        targets.level(level, llvm.get_process_triple(), targets.host().enabled)
    except ValueError as lacks:
        pytest.skip(f"this CPU does not run code for the level: {lacks}")
    environment = {**os.environ, "WEFT_TARGET": level, "WEFT_CACHE": "0", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", LEVELS], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "right\n", done.stderr


@pytest.mark.parametrize(("m", "n", "k", "block"), [(50, 40, 300, (32, 32, 16)), (64, 64, 1500, (16, 16, 32))])
def test_bfloat16_of_any_size(m: int, n: int, k: int, block: tuple[int, int, int]) -> None:
    """Sums of bfloat16 products are those of float32 up to the rounding of each addition, in whatever order."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((m, k), (k, n)))
    out = np.zeros((m, n), np.float32)
    constants = dict(zip(("BM", "BN", "BK"), block, strict=True))
    programs = (weft.cdiv(m, block[0]) * weft.cdiv(n, block[1]),)
    product[programs](a, b, out, m, n, k, k, 1, n, 1, **constants, WRAP=False, ACC=tl.float32, OTHER=0)
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    bound = k * 2.0**-24 * (np.abs(a64) @ np.abs(b64))
    assert np.all(np.abs(out - a64 @ b64) <= bound)


@pytest.mark.parametrize("name", ["int8", "bfloat16"])
def test_the_extremes_of_narrow_operands(name: str) -> None:
    """-128 * -128 summed 2,000 times is exact in int32, and so is 255 * 255 of bfloat16 in float32."""
    dtype, sums_, acc = TYPES[name]
    least, k = (-128, 2000) if name == "int8" else (255, 256)
    a, b, out = np.full((16, k), least, dtype), np.full((k, 16), least, dtype), np.zeros((16, 16), sums_)
    product[(1,)](a, b, out, 16, 16, k, k, 1, 16, 1, BM=16, BN=16, BK=64, WRAP=False, ACC=acc, OTHER=0)
    assert np.all(out == k * least**2)


@weft.jit
def begins(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any, K: tl.constexpr, START: tl.constexpr, ACC: tl.constexpr) -> None:
    i, k = tl.arange(0, 32), tl.arange(0, K)
    for step in range(n):
        a = tl.load(a_ptr + (step * 32 + i)[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * 32 + i[None, :])
        total = tl.dot(a, b, tl.full((32, 32), START, ACC))
        tl.store(c_ptr + (step * 32 + i)[:, None] * 32 + i[None, :], total)


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("k", [32, 2048])
@pytest.mark.parametrize("name", TYPES)
def test_sums_begin_with_a_constant(name: str, k: int, start: int) -> None:
    """Not with what memory holds, which is the step's before; also where tiles take several stretches of the depth."""
    dtype, sums, acc = TYPES[name]
    a, b, out = whole((96, k), dtype, 1), whole((k, 32), dtype, 2), np.full((96, 32), 99, sums)
    arguments, constants = (a, b, out, 3), {"K": k, "START": start, "ACC": acc}
    begins[(1,)](*arguments, **constants)
    assert np.array_equal(out, a.astype(np.float64) @ b.astype(np.float64) + start)
    assert products_of(begins, *arguments, **constants) == (0, 1, 0)


@pytest.mark.parametrize("start", [0.0, -0.0])
def test_sums_begin_with_the_sign_of_a_zero(start: float) -> None:
    """Of float32: AMX makes 0.0 of sums of -0.0."""
    a, b, out = np.zeros((32, 64), np.float32), -np.ones((64, 32), np.float32), np.ones((32, 32), np.float32)
    begins[(1,)](a, b, out, 1, K=64, START=start, ACC=tl.float32)
    assert not out.any()
    assert np.all(np.signbit(out) == np.signbit(start))


@pytest.mark.parametrize("name", ["int8", "bfloat16"])
def test_depths_that_are_no_whole_tiles(name: str) -> None:
    """The rest of a tile is zeros, whatever the scratch memory held."""
    dtype, sums_, acc = TYPES[name]
    fill = 127 if name == "int8" else np.inf
    for k in (512, 16, 48):
        a, b, out = whole((16, k), dtype, 1), whole((k, 16), dtype, 2), np.zeros((16, 16), sums_)
        if k == 512:
            a[:], b[:] = fill, fill
        product[(1,)](a, b, out, 16, 16, k, k, 1, 16, 1, BM=16, BN=16, BK=16, WRAP=False, ACC=acc, OTHER=0)
        if k < 512:
            assert np.array_equal(out, a.astype(np.float64) @ b.astype(np.float64))


@weft.jit
def rounded(a_ptr: Any, b_ptr: Any, c_ptr: Any) -> None:
    i, k = tl.arange(0, 16), tl.arange(0, 32)
    a = tl.load(a_ptr + i[:, None] * 32 + k[None, :]).to(tl.bfloat16)
    b = tl.load(b_ptr + k[:, None] * 32 + k[None, :])
    tl.store(c_ptr + i[:, None] * 32 + k[None, :], tl.dot(a, b))


def test_operands_that_are_rounded_for_the_product() -> None:
    """To nearest even, as everywhere: ties, neighbours of ties, the least normal number, and what rounds to the greatest one."""
    random = np.random.default_rng(0)
    bits = random.integers(0x0080, 0x7F7F, (16, 32), np.uint32) << 16 | random.choice(
        [0, 0x7FFF, 0x8000, 0x8001], (16, 32)
    )
    a = (bits | random.integers(0, 2, (16, 32)) << 31).astype(np.uint32).view(np.float32)
    a[0, :2] = np.finfo(np.float32).tiny, np.float32(3.38e38)
    b, out = np.eye(32, dtype=ml_dtypes.bfloat16), np.zeros((16, 32), np.float32)
    rounded[(1,)](a, b, out)
    assert np.array_equal(out, a.astype(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize("feature", [True, False])
def test_the_instruction_that_rounds(feature: bool) -> None:
    """Machines with AMX and without ``vcvtneps2bf16`` round by integers."""
    pointers = {"a_ptr": dtypes.float32, "b_ptr": dtypes.bfloat16, "c_ptr": dtypes.float32}
    module = build_module(
        KernelFunction(rounded.fn), {name: PointerArgument(t, aligned=True) for name, t in pointers.items()}
    )
    names = [*" ".join(X86_LEVELS.values()).split(), "amx-tile", "amx-bf16", *(["avx512bf16"] if feature else [])]
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", ",".join(f"+{name}" for name in names), 512)
    text = emit_assembly(module, target, Options(disjoint=True))
    assert "tdpbf16ps" in text
    assert ("vcvtneps2bf16" in text) == feature


@weft.jit
def computed(a_ptr: Any, b_ptr: Any, c_ptr: Any, K: Any) -> None:
    """An operand of so much work that its loop would not be unrolled, but for the rows that are packed together."""
    i, k = tl.arange(0, 16), tl.arange(0, 64)
    acc = tl.zeros((16, 64), tl.int32)
    for at in range(0, K, 64):
        a = tl.load(a_ptr + i[:, None] * K + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * 64 + k[None, :], mask=(at + k)[:, None] < K - 5, other=0).to(tl.int32)
        for _ in tl.static_range(40):
            b = (b + 64) % 128 - 64
        acc = tl.dot(a, b.to(tl.int8), acc)
    tl.store(c_ptr + i[:, None] * 64 + k[None, :], acc)


def test_operands_of_much_work() -> None:
    a, b, out = whole((16, 128), np.int8), whole((128, 64), np.int8, 1), np.zeros((16, 64), np.int32)
    computed[(1,)](a, b, out, 128)
    assert np.array_equal(out, a[:, :-5].astype(np.int32) @ b[:-5].astype(np.int32))


def test_the_number_of_threads_does_not_matter() -> None:
    """Bit for bit, with sums that depend on their order."""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((128, 128), dtype=np.float32) for _ in range(2))
    found: list[Array] = []
    for block in ((16, 16, 16), (32, 32, 64), (64, 16, 32)):
        out = np.zeros((128, 128), np.float32)
        constants = dict(zip(("BM", "BN", "BK"), block, strict=True))
        programs = (128 // block[0] * (128 // block[1]),)
        product[programs](a, b, out, 128, 128, 128, 128, 1, 128, 1, **constants, WRAP=False, ACC=tl.float32, OTHER=0)
        found.append(out)
    assert all(np.array_equal(out, found[0]) for out in found)


# ---- dots in no nest -------------------------------------------------------------------------------------------------


@weft.jit
def attention(
    q_ptr: Any, k_ptr: Any, v_ptr: Any, o_ptr: Any, length: Any, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr
) -> None:
    """Weights are whole numbers, so that all sums are exact: (2 + q @ k^T) for pairs that are seen, no softmax."""
    head = tl.program_id(1) * length * D
    rows, d = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + d[None, :], mask=(rows < length)[:, None], other=0)
    acc = tl.zeros((M, D), tl.float32)
    for start in range(0, tl.minimum(length, (tl.program_id(0) + 1) * M), N):
        columns = start + tl.arange(0, N)
        seen = columns < length
        k = tl.load(k_ptr + head + columns[None, :] * D + d[:, None], mask=seen[None, :], other=0)
        v = tl.load(v_ptr + head + columns[:, None] * D + d[None, :], mask=seen[:, None], other=0)
        p = tl.where(rows[:, None] >= columns[None, :], tl.dot(q, k) + 2, 0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * 0.5)
    out = o_ptr + head + rows[:, None] * D + d[None, :]
    tl.store(out, acc, mask=(rows < length)[:, None])


@pytest.mark.parametrize("name", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize(("m", "n"), [(32, 32), (16, 64), (64, 16)])
def test_attention(name: str, m: int, n: int) -> None:
    """Keys and values are packed once for all programs of a head, weights for each step. The accumulator is scaled in between."""
    dtype = TYPES[name][0]
    heads, length, d = 2, 72, 32
    q, k, v = (np.random.default_rng(i).integers(-1, 2, (heads, length, d)).astype(dtype) for i in range(3))
    out = np.zeros((heads, length, d), np.float32)
    attention[(weft.cdiv(length, m), heads)](q, k, v, out, length, D=d, M=m, N=n)
    q64, k64, v64 = (x.astype(np.float64) for x in (q, k, v))
    weights = np.tril(q64 @ k64.swapaxes(1, 2) + 2)
    expected = np.zeros((heads, length, d))
    for first in range(0, length, m):
        rows = slice(first, first + m)
        for start in range(0, min(length, first + m), n):
            columns = slice(start, start + n)
            expected[:, rows] = expected[:, rows] * 0.5 + weights[:, rows, columns] @ v64[:, columns]
    assert np.allclose(out, expected, rtol=1e-6, atol=0)
    assert products_of(attention, q, k, v, out, length, D=d, M=m, N=n) == (0, 2, 0)


@weft.jit
def paged(q_ptr: Any, k_ptr: Any, table_ptr: Any, o_ptr: Any, pages: Any) -> None:
    """Pages whose numbers are loaded, in an order that differs between programs; the last one depends on a branch."""
    i = tl.arange(0, 16)
    at = i[:, None] * 16 + i[None, :]
    pid = tl.program_id(0)
    q = tl.load(q_ptr + pid * 256 + at)
    acc = tl.zeros((16, 16), tl.float32)
    for j in range(pages):
        page = tl.load(table_ptr + pid * pages + j)
        if page >= 0:
            acc += tl.dot(q + j, tl.load(k_ptr + page * 256 + at))
        else:
            acc -= tl.dot(q, tl.load(k_ptr + at))
    tl.store(o_ptr + pid * 256 + at, acc)


def test_pages_by_a_table() -> None:
    """A key is a number that was loaded, and claims stand in branches."""
    q, k, out = whole((6, 16, 16)), whole((40, 16, 16), seed=1), np.zeros((6, 16, 16), np.float32)
    table = np.random.default_rng(2).integers(-1, 40, (6, 50)).astype(np.int32)
    paged[(6,)](q, k, table, out, 50)
    for p in range(6):
        steps = ((q[p] + j) @ k[page] if page >= 0 else -(q[p] @ k[0]) for j, page in enumerate(table[p]))
        assert np.array_equal(out[p], sum(steps, np.zeros((16, 16), np.float32)))
    assert products_of(paged, q, k, table, out, 50) == (0, 2, 0)


@weft.jit
def chained(a_ptr: Any, b_ptr: Any, c_ptr: Any) -> None:
    """A right operand that is no function of scalars."""
    i = tl.arange(0, 32)
    at = i[:, None] * 32 + i[None, :]
    a = tl.load(a_ptr + at)
    once = tl.dot(a, tl.load(b_ptr + at))
    tl.store(c_ptr + at, tl.dot(a, once.to(a.dtype)))


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_right_operands_that_are_computed(name: str) -> None:
    """Vectors are multiplied in the tile's buffer; an instruction that takes panels gets one that is filled each time."""
    dtype = TYPES[name][0]
    a, b = (np.random.default_rng(i).integers(-1, 2, (32, 32)).astype(dtype) for i in range(2))
    out = np.zeros((32, 32), np.float32)
    chained[(1,)](a, b, out)
    a64, b64 = a.astype(np.float64), b.astype(np.float64)
    assert np.array_equal(out, a64 @ (a64 @ b64))
    panels = product_for(targets.host().enabled, name, "float32") is not FMA
    assert products_of(chained, a, b, out) == ((0, 2, 0) if panels else (0, 1, 1))

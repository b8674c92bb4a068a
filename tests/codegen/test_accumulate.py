"""Loops that only accumulate: which they are, and that each accumulator goes through the same additions as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func, scf

import weft
import weft.language as tl
from sampling import grid
from weft import target as targets
from weft.codegen import lay_out
from weft.codegen.cpu.accumulate import Accumulation, accumulation_of
from weft.codegen.cpu.cost import Costs
from weft.codegen.cpu.fusion import Fusion
from weft.codegen.cpu.order import FAR, steps_in
from weft.codegen.cpu.placement import BufferPlacement
from weft.codegen.cpu.strips import Strips
from weft.dtypes import DType, float16, float32, int32
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.options import Options
from weft.transforms.axis import analyse, base_arguments

pytestmark = pytest.mark.jit

SHAPES = [(1, 16), (4, 16), (16, 16), (64, 16), (16, 64), (8, 256), (128, 32), (2, 8), (32, 4)]


@weft.jit
def elements(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Sums and sums of squares, of a tile's elements."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total, squares = tl.zeros((BM, BN), tl.float32), tl.full((BM, BN), 0.5, tl.float32)
    for k in range(0, n, BN):
        inside = (rows < m)[:, None] & (k + columns < n)[None, :]
        x = tl.load(a + rows[:, None] * n + (k + columns)[None, :], mask=inside, other=0.0)
        total += x
        squares += x * x
    at = rows[:, None] * BN + columns[None, :]
    tl.store(out + at, total, mask=(rows < m)[:, None])
    tl.store(out + m * BN + at, squares, mask=(rows < m)[:, None])


@weft.jit
def rows_of(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """A sum and a maximum of each row; the pointer is carried, and so is a scalar."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    p = a + rows[:, None] * n + columns[None, :]
    total, highest = tl.full((BM,), 3, tl.int32), tl.full((BM, BN), -100, tl.int32)
    steps = 0
    for k in range(0, n, BN):
        x = tl.load(p, mask=(rows < m)[:, None] & (k + columns < n)[None, :], other=-50)
        total += tl.sum(x, axis=1)
        highest = tl.maximum(highest, x + steps)
        p += BN
        steps += 1
    tl.store(out + rows, total, mask=rows < m)
    tl.store(out + m + rows, tl.max(highest, axis=1), mask=rows < m)
    tl.store(out + 2 * m, steps)


@weft.jit
def columns_of(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), tl.int32)
    for k in range(0, m, BM):
        rows = k + tl.arange(0, BM)
        inside = (rows < m)[:, None] & (columns < n)[None, :]
        total += tl.sum(tl.load(a + rows[:, None] * n + columns[None, :], mask=inside, other=0), axis=0)
    tl.store(out + columns, total, mask=columns < n)


@weft.jit
def float_columns_of(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    columns = tl.arange(0, BN)
    total = tl.zeros((BN,), out.dtype.element_ty)
    for k in range(0, m, BM):
        total += tl.sum(tl.load(a + (k + tl.arange(0, BM))[:, None] * n + columns[None, :]), axis=0).to(total.dtype)
    tl.store(out + columns, total)


@weft.jit
def means_of(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    columns = tl.arange(0, BN)
    total = tl.zeros((BN,), tl.float32)
    for k in range(0, m, BM):
        total += tl.sum(tl.load(a + (k + tl.arange(0, BM))[:, None] * n + columns[None, :]), axis=0) / BM
    tl.store(out + columns, total)


@weft.jit
def several_columns_of(
    a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr, COUNTS: tl.constexpr
) -> None:
    """Sums and sums of squares of columns, and what is no sum of a tile."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total, squares, extremes = tl.full((BN,), 7, tl.int32), tl.zeros((BN,), tl.int32), tl.zeros((BN,), tl.int32)
    for k in range(0, m, BM):
        rows = k + tl.arange(0, BM)
        x = tl.load(
            a + rows[:, None] * n + columns[None, :], mask=(rows < m)[:, None] & (columns < n)[None, :], other=0
        )
        total += tl.sum(x, axis=0)
        squares = tl.sum(x * x, axis=0) + squares
        if COUNTS:
            extremes = tl.minimum(extremes, columns - k)
    tl.store(out + columns, total, mask=columns < n)
    tl.store(out + n + columns, squares, mask=columns < n)
    tl.store(out + 2 * n + columns, extremes, mask=columns < n)


@weft.jit
def corrected(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Kahan's sum: each of two accumulators is computed from both."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total, lost = tl.zeros((BM, BN), tl.float32), tl.zeros((BM, BN), tl.float32)
    for k in range(0, n, BN):
        inside = (rows < m)[:, None] & (k + columns < n)[None, :]
        y = tl.load(a + rows[:, None] * n + (k + columns)[None, :], mask=inside, other=0.0) - lost
        t = total + y
        lost = (t - total) - y
        total = t
    tl.store(out + rows[:, None] * BN + columns[None, :], total - lost, mask=(rows < m)[:, None])


@weft.jit
def storing(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, n, BN):
        total += tl.load(a + rows[:, None] * n + (k + columns)[None, :])
        tl.store(out + k, n)
    tl.store(out + rows[:, None] * BN + columns[None, :], total)


@weft.jit
def shared(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """What all rows need of an iteration is better computed once than for each group of rows."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, n, BN):
        weight = tl.exp(tl.load(a + k + columns))
        total += tl.load(a + rows[:, None] * n + (k + columns)[None, :]) * weight[None, :]
    tl.store(out + rows[:, None] * BN + columns[None, :], total)


@weft.jit
def tall(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Goes down a matrix, and has more accumulators than a group."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, m, BM):
        total += tl.load(a + (k + rows)[:, None] * n + columns[None, :])
    tl.store(out + rows[:, None] * BN + columns[None, :], total)


def loop_of(
    kernel: Any, bm: int, bn: int, *, dtype: DType | None = None, disjoint: bool = True
) -> tuple[scf.ForOp, Accumulation | None]:
    """The only loop of a kernel, and what it is."""
    dtype = dtype or (int32 if kernel in (rows_of, columns_of) else float32)
    pointer, number = PointerArgument(dtype, aligned=True), ScalarArgument(int32)
    constants: dict[str, Argument] = {"BM": ConstantArgument(bm), "BN": ConstantArgument(bn)}
    signature: dict[str, Argument] = {"a": pointer, "out": pointer, "m": number, "n": number, **constants}
    function = kernel if isinstance(kernel, KernelFunction) else KernelFunction(kernel.fn)
    module = build_module(function, signature)
    lay_out(module, targets.CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "", 512), Options(disjoint=disjoint))
    body = next(op for op in module.ops if isinstance(op, func.FuncOp))
    (loop,) = (op for op in body.walk() if isinstance(op, scf.ForOp))
    axis = analyse(body)
    bases = base_arguments(op.pointer for op in body.walk() if tile.is_access(op))
    block = loop.body.block
    items = Fusion(bases, disjoint, axis).items(block)
    found = accumulation_of(loop, BufferPlacement(Costs(axis)).place(block, items), 1024)
    assert not isinstance(found, Strips), "test_strips.py has those"
    return loop, found


@pytest.mark.parametrize(
    ("kernel", "bm", "bn", "group", "others"),
    [
        (elements, 64, 16, 8, 8),
        (elements, 4, 16, 4, 1),
        (elements, 8, 16, 8, 1),
        (corrected, 16, 64, 8, 8),
        (rows_of, 64, 16, 8, 8),
        (columns_of, 2, 32, 2, 1),
        (columns_of, 64, 32, 2, 1),
        (columns_of, 16, 256, 16, 1),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_a_group_is(kernel: Any, bm: int, bn: int, group: int, others: int) -> None:
    _, found = loop_of(kernel, bm, bn)
    assert found is not None
    assert (1 << len(found.group), 1 << len(found.others)) == (group, others)


@pytest.mark.parametrize("kernel", [storing, shared, tall], ids=lambda kernel: kernel.__name__)
def test_other_loops_are_left_alone(kernel: Any) -> None:
    assert loop_of(kernel, 64, 16)[1] is None


@pytest.mark.parametrize(
    ("kernel", "dtype", "beside"),
    [
        (columns_of, int32, True),
        (float_columns_of, float32, True),
        (float_columns_of, float16, None),
        (means_of, float32, None),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_which_sums_are_added_side_by_side(kernel: Any, dtype: DType, beside: bool | None) -> None:
    """Not those of narrow floats, whose total is rounded in each iteration, nor what is no sum in the end."""
    _, found = loop_of(kernel, 128, 16, dtype=dtype)
    assert (found and found.beside) == beside


def test_loads_that_a_store_may_meet_keep_their_place() -> None:
    assert loop_of(elements, 64, 16)[1] is not None
    assert loop_of(elements, 64, 16, disjoint=False)[1] is None


@pytest.mark.parametrize(("kernel", "step"), [(elements, 16), (rows_of, 16), (columns_of, FAR), (tall, FAR)])
def test_how_far_an_iteration_moves(kernel: Any, step: float) -> None:
    loop, _ = loop_of(kernel, 64, 16)
    (load,) = (op for op in loop.body.block.ops if isinstance(op, tile.LoadOp))
    assert steps_in(loop).of(load.pointer) == step


def by_steps(a: Any, bn: int) -> Any:
    """[steps, rows, bn]: what each iteration loads."""
    m, n = a.shape
    steps = -(-n // bn)
    padded = np.zeros((m, steps * bn), a.dtype)
    padded[:, :n] = a
    return padded.reshape(m, steps, bn).transpose(1, 0, 2)


@pytest.mark.parametrize(("shape", "size"), grid(2, SHAPES, [(64, 512), (37, 101), (1, 1), (5, 0)]))
def test_elements(shape: tuple[int, int], size: tuple[int, int]) -> None:
    (bm, bn), (m, n) = shape, size
    a = np.random.default_rng(m + n).standard_normal((m, n), np.float32)
    out = np.zeros((2, m, bn), np.float32)
    elements[(weft.cdiv(m, bm),)](a, out, m, n, BM=bm, BN=bn)
    total, squares = np.zeros((m, bn), np.float32), np.full((m, bn), 0.5, np.float32)
    for x in by_steps(a, bn):
        total, squares = total + x, squares + x * x
    assert np.array_equal(out, [total, squares])


@pytest.mark.parametrize(("shape", "size"), grid(2, SHAPES, [(64, 512), (37, 101), (1, 1)]))
def test_rows_and_columns(shape: tuple[int, int], size: tuple[int, int]) -> None:
    (bm, bn), (m, n) = shape, size
    a = np.random.default_rng(m * n).integers(-20, 20, (m, n)).astype(np.int32)
    out = np.zeros(2 * m + 1, np.int32)
    rows_of[(weft.cdiv(m, bm),)](a, out, m, n, BM=bm, BN=bn)
    steps = -(-n // bn)
    numbers = np.arange(steps * bn) // bn
    padded = np.full((m, steps * bn), -50, np.int32)
    padded[:, :n] = a
    assert out[:m].tolist() == (3 + padded.sum(axis=1)).tolist()
    assert out[m : 2 * m].tolist() == (padded + numbers).max(axis=1).tolist()
    assert out[2 * m] == steps
    found = np.zeros(n, np.int32)
    columns_of[(weft.cdiv(n, bn),)](a, found, m, n, BM=bm, BN=bn)
    assert found.tolist() == a.sum(axis=0).tolist()


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize(("bm", "bn"), SHAPES)
def test_several_sums(bm: int, bn: int, counts: bool) -> None:
    m, n = 101, 77
    a = np.random.default_rng(5).integers(-20, 20, (m, n)).astype(np.int32)
    out = np.zeros((3, n), np.int32)
    several_columns_of[(weft.cdiv(n, bn),)](a, out, m, n, BM=bm, BN=bn, COUNTS=counts)
    last = (-(-m // bm) - 1) * bm
    lowest = np.minimum(np.arange(n) - last, 0) * counts
    assert out.tolist() == [(7 + a.sum(axis=0)).tolist(), (a * a).sum(axis=0).tolist(), lowest.tolist()]


@pytest.mark.parametrize(("bm", "bn"), SHAPES)
def test_accumulators_of_each_other(bm: int, bn: int) -> None:
    m, n = 37, 300
    a = np.random.default_rng(7).standard_normal((m, n), np.float32) * np.float32(1e4)
    out = np.zeros((m, bn), np.float32)
    corrected[(weft.cdiv(m, bm),)](a, out, m, n, BM=bm, BN=bn)
    total, lost = np.zeros((m, bn), np.float32), np.zeros((m, bn), np.float32)
    for x in by_steps(a, bn):
        y = x - lost
        t = total + y
        lost = (t - total) - y
        total = t
    assert np.array_equal(out, total - lost)

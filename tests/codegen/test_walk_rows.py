"""Sums along rows: which loops walk rows one after the other, that each column is added once, and the order of additions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func, scf

import weft
import weft.language as tl
from host_targets import compiled_for
from sampling import at_night
from weft import target as targets
from weft.codegen import emit_llvm, lay_out
from weft.codegen.cpu.accumulate import Accumulation, accumulation_of
from weft.codegen.cpu.cost import Costs
from weft.codegen.cpu.fusion import Fusion
from weft.codegen.cpu.placement import BufferPlacement
from weft.codegen.cpu.walks import Walk, walk_of
from weft.dtypes import DType, float16, float32, float64, int32
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.options import Options
from weft.target import CpuTarget
from weft.transforms.axis import analyse, base_arguments

pytestmark = pytest.mark.jit


@weft.jit
def sums_of(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """The sum of each row, and that of the squares, of columns that are numbered from ``first``."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total, squares = tl.full((BM,), 3, out.dtype.element_ty), tl.zeros((BM,), out.dtype.element_ty)
    for k in range(first, end, BN):
        inside = (rows < m)[:, None] & (columns < end - k)[None, :]
        x = tl.load(a + rows[:, None] * (end - first) + ((k - first) + columns)[None, :], mask=inside, other=0)
        total += tl.sum(x, axis=1)
        squares = tl.sum(x * x, axis=1) + squares
    tl.store(out + rows, total, mask=rows < m)
    tl.store(out + m + rows, squares, mask=rows < m)


@weft.jit
def tiles_of(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """The sum of each row, of which nothing is masked with a zero."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.full((BM, BN), 2, out.dtype.element_ty)
    for k in range(first, end, BN):
        inside = (rows < m)[:, None] & (columns < end - k)[None, :]
        total += tl.load(a + rows[:, None] * (end - first) + ((k - first) + columns)[None, :], mask=inside, other=5)
    tl.store(out + rows, tl.sum(total, axis=1), mask=rows < m)


@weft.jit
def products_of(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Each row times the first one."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM,), out.dtype.element_ty)
    for k in range(first, end, BN):
        inside = (rows < m)[:, None] & (columns < end - k)[None, :]
        x = tl.load(a + rows[:, None] * (end - first) + ((k - first) + columns)[None, :], mask=inside, other=0)
        total += tl.sum(x * tl.load(a + (k - first) + columns, mask=columns < end - k, other=0)[None, :], axis=1)
    tl.store(out + rows, total, mask=rows < m)


@weft.jit
def stepping(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Sums of rows in which the loop carries a number, too: iterations stay apart."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM,), out.dtype.element_ty)
    weight = 1
    for k in range(first, end, BN):
        inside = (rows < m)[:, None] & (columns < end - k)[None, :]
        x = tl.load(a + rows[:, None] * (end - first) + ((k - first) + columns)[None, :], mask=inside, other=0)
        total += tl.sum(x * weight, axis=1)
        weight = (weight * 3) % 7
    tl.store(out + rows, total, mask=rows < m)


@weft.jit
def stored(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Sums of elements, not of rows: their order is the loop's."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), out.dtype.element_ty)
    for k in range(first, end, BN):
        total += tl.load(a + rows[:, None] * (end - first) + ((k - first) + columns)[None, :])
    tl.store(out + rows[:, None] * BN + columns[None, :], total)


@weft.jit
def used_twice(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), out.dtype.element_ty)
    for k in range(first, end, BN):
        total += tl.load(a + rows[:, None] * (end - first) + ((k - first) + columns)[None, :])
    tl.store(out + rows, tl.max(total, axis=1) + tl.sum(total, axis=1))


@weft.jit
def read_twice(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), out.dtype.element_ty)
    for k in range(first, end, BN):
        x = tl.load(a + rows[:, None] * (end - first) + ((k - first) + columns)[None, :])
        total += tl.where(total > 3, x, 1).to(total.dtype)
    tl.store(out + rows, tl.sum(total, axis=1))


@weft.jit
def highest(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM, BN), out.dtype.element_ty)
    for k in range(first, end, BN):
        total += tl.load(a + rows[:, None] * (end - first) + ((k - first) + columns)[None, :])
    tl.store(out + rows, tl.max(total, axis=1))


@weft.jit
def used_in_part(
    a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr, HOW: tl.constexpr
) -> None:
    """Sums of which those of rows from ``m`` on are needed, too, unless all uses are stores of the first ``m``."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM,), out.dtype.element_ty)
    for k in range(first, end, BN):
        inside = columns < end - k
        total += tl.sum(
            tl.load(a + rows[:, None] * (end - first) + ((k - first) + columns)[None, :], mask=inside, other=0), axis=1
        )
    tl.store(out + rows, total * 2, mask=(rows < m) & (total > -1000))
    if HOW == "reduced":
        tl.store(out + BM, tl.max(total, axis=0))
    if HOW == "whole":
        tl.store(out + BM + rows, total)


def walk_in(
    kernel: Any,
    bm: int,
    bn: int,
    dtype: DType,
    level: str,
    bits: int,
    *,
    tuning: tuple[str, ...] = (),
    divisible: bool = False,
) -> Walk | None:
    """How the only loop of a kernel walks rows on a target; ``divisible``: rows are multiples of 16 elements apart."""
    pointer, number = PointerArgument(dtype, aligned=True), ScalarArgument(int32, divisible)
    constants: dict[str, Argument] = {"BM": ConstantArgument(bm), "BN": ConstantArgument(bn)}
    numbers: dict[str, Argument] = dict.fromkeys(("m", "first", "end"), number)
    module = build_module(KernelFunction(kernel.fn), {"a": pointer, "out": pointer, **numbers, **constants})
    target = targets.CpuTarget("x86_64-unknown-linux-gnu", level, "", bits, tuning=tuning)
    lay_out(module, target, Options(disjoint=True))
    body = next(op for op in module.ops if isinstance(op, func.FuncOp))
    (loop,) = (op for op in body.walk() if isinstance(op, scf.ForOp))
    axis = analyse(body)
    bases = base_arguments(op.pointer for op in body.walk() if tile.is_access(op))
    items = Fusion(bases, True, axis).items(loop.body.block)
    found = accumulation_of(loop, BufferPlacement(Costs(axis)).place(loop.body.block, items), 1024)
    return walk_of(loop, found, target, axis) if isinstance(found, Accumulation) else None


@pytest.mark.parametrize(
    ("kernel", "bm", "bn", "dtype", "bits", "expected"),
    [  # registers beside each other and apart, accumulators of each, iterations that are one
        (tiles_of, 64, 16, float32, 512, (1, 64, 4, 4)),
        (tiles_of, 64, 32, float32, 512, (1, 64, 4, 2)),
        (tiles_of, 16, 64, float32, 512, (1, 16, 4, 1)),
        (tiles_of, 16, 256, float32, 512, (1, 16, 4, 1)),
        (tiles_of, 2, 256, float32, 512, (4, 2, 1, 1)),
        (tiles_of, 16, 16, float64, 512, (1, 16, 4, 4)),
        (tiles_of, 16, 16, float32, 256, (1, 16, 4, 4)),
        (tiles_of, 16, 16, float32, 128, (1, 16, 2, 2)),
        (tiles_of, 16, 16, float64, 128, (1, 16, 1, 1)),
        (sums_of, 1, 64, int32, 512, (1, 1, 4, 1)),
        (sums_of, 8, 16, int32, 512, (1, 8, 4, 4)),
        (products_of, 64, 64, float32, 512, (8, 8, 1, 1)),
        (products_of, 64, 64, float32, 256, (4, 16, 1, 1)),
        (products_of, 64, 64, float32, 128, (2, 32, 1, 1)),
        (products_of, 4, 64, float32, 512, (4, 1, 1, 1)),
        (products_of, 2, 16, float32, 512, (2, 1, 2, 2)),
        (stepping, 16, 32, int32, 512, (1, 16, 2, 1)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_how_rows_are_walked(
    kernel: Any, bm: int, bn: int, dtype: DType, bits: int, expected: tuple[int, int, int, int]
) -> None:
    level = {512: "x86-64-v4", 256: "x86-64-v3", 128: "x86-64"}[bits]
    walk = walk_in(kernel, bm, bn, dtype, level, bits)
    assert walk is not None
    found = len(walk.beside), len(walk.rest), walk.accumulators, walk.iterations
    assert tuple(1 << each for each in found) == expected


@weft.jit
def leaning(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Each row begins four elements further than it would."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM,), out.dtype.element_ty)
    for k in range(first, end, BN):
        total += tl.sum(tl.load(a + rows[:, None] * end + rows[:, None] * 4 + (k + columns)[None, :]), axis=1)
    tl.store(out + rows, total)


BOTH = ("halved-loads", "lone-rows")


@pytest.mark.parametrize(
    ("kernel", "dtype", "bits", "tuning", "divisible", "halved", "lone"),
    [  # whether the walk is by halves, and whether there is a lone one, by halves or not
        (sums_of, float32, 512, BOTH, True, True, None),
        (sums_of, int32, 512, BOTH, True, True, None),
        (sums_of, float32, 512, BOTH, False, False, None),
        (leaning, float32, 512, BOTH, True, False, None),
        (sums_of, float32, 512, ("lone-rows",), True, False, None),
        (sums_of, float32, 256, BOTH, True, False, None),
        (sums_of, float64, 512, BOTH, True, False, None),  # registers of 128 bytes
        (products_of, float32, 512, BOTH, True, False, True),
        (products_of, float32, 512, BOTH, False, False, None),
        (products_of, float32, 512, ("halved-loads",), True, False, None),
        (products_of, float32, 512, ("lone-rows",), True, False, False),
        (products_of, float64, 256, BOTH, True, False, False),
    ],
)
def test_rows_that_lie_lines_apart(
    kernel: Any,
    dtype: DType,
    bits: int,
    tuning: tuple[str, ...],
    divisible: bool,
    halved: bool,
    lone: bool | None,
) -> None:
    level = {512: "x86-64-v4", 256: "x86-64-v3"}[bits]
    walk = walk_in(kernel, 16, 64, dtype, level, bits, tuning=tuning, divisible=divisible)
    assert walk is not None
    assert walk.halved == halved
    assert (walk.lone and walk.lone.halved) == lone
    if walk.lone is not None:
        assert len(walk.lone.rest) == 4
        assert len(walk.rest) < 4


@pytest.mark.parametrize("kernel", [stored, used_twice, read_twice, highest], ids=lambda kernel: kernel.__name__)
def test_the_order_is_free_only_where_nothing_but_the_sums_is_used(kernel: Any) -> None:
    assert walk_in(kernel, 16, 16, float32, "x86-64-v4", 512) is None


def test_narrow_floats_are_rounded_in_each_iteration() -> None:
    assert walk_in(tiles_of, 16, 16, float16, "x86-64-v4", 512) is None


@pytest.mark.parametrize("kernel", [sums_of, tiles_of, products_of], ids=lambda kernel: kernel.__name__)
def test_rows_that_are_not_stored_are_not_walked(kernel: Any) -> None:
    walk = walk_in(kernel, 64, 16, float32, "x86-64-v4", 512)
    assert walk is not None
    assert walk.limit is not None
    assert walk.limit.axis == 0


@weft.jit
def channels(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Each iteration takes the rows of another image."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM,), out.dtype.element_ty)
    for k in range(first, end):
        total += tl.sum(tl.load(a + k * (BM * BN) + rows[:, None] * BN + columns[None, :]), axis=1)
    tl.store(out + rows, total)


@weft.jit
def parts_of(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Every second tile of the rows."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM,), out.dtype.element_ty)
    for k in range(first, end, 2 * BN):
        total += tl.sum(tl.load(a + rows[:, None] * end + (k + columns)[None, :]), axis=1)
    tl.store(out + rows, total)


@pytest.mark.parametrize("kernel", [channels, parts_of], ids=lambda kernel: kernel.__name__)
def test_rows_are_walked_where_iterations_go_on_in_them(kernel: Any) -> None:
    """Else each row would be come back to from memory, a few bytes at a time."""
    assert walk_in(kernel, 16, 32, float32, "x86-64-v4", 512) is None


@weft.jit
def moving_on(a: Any, out: Any, last: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Carries a pointer and a number that are used behind the loop."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total, p, w = tl.zeros((BM,), tl.float32), a, 1
    for k in range(0, n, BN):
        inside = (rows < m)[:, None] & (k + columns < n)[None, :]
        total += tl.sum(tl.load(p + rows[:, None] * n + columns[None, :], mask=inside, other=0.0) * w, axis=1)
        p, w = p + BN, (w * 3) % 7
    tl.store(out + rows, total, mask=rows < m)
    tl.store(last + tl.program_id(0), tl.load(p) * 10 + w)


@pytest.mark.parametrize("m", [20, 16, 0])
def test_what_a_loop_carries_does_not_depend_on_its_rows(m: int) -> None:
    n, given = 96, np.arange(20 * 96, dtype=np.float32)
    a, out, last = given.copy(), np.zeros(max(m, 1), np.float32), np.full(3, -1, np.float32)
    moving_on[(3,)](a, out, last, m, n, BM=16, BN=32)
    weights = np.repeat([1, 3, 2], 32)
    assert out[:m].tolist() == (given.reshape(20, n)[:m] * weights).sum(axis=1).tolist()
    assert last.tolist() == [n * 10 + 6] * 3


@weft.jit
def stored_apart(a: Any, out: Any, m: Any, first: Any, end: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Sums of which fewer are stored than of their squares."""
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    total, squares = tl.zeros((BM,), out.dtype.element_ty), tl.zeros((BM,), out.dtype.element_ty)
    for k in range(first, end, BN):
        x = tl.load(a + rows[:, None] * (end - first) + ((k - first) + columns)[None, :])
        total += tl.sum(x, axis=1)
        squares += tl.sum(x * x, axis=1)
    tl.store(out + rows, total, mask=rows < m)
    tl.store(out + BM + rows, squares, mask=rows < 2 * m)


def test_as_many_rows_are_walked_as_any_store_keeps() -> None:
    a = np.random.default_rng(3).integers(-20, 20, (16, 64)).astype(np.int32)
    out = np.full((2, 16), -1, np.int32)
    stored_apart[(1,)](a, out, 5, 0, 64, BM=16, BN=16)
    assert out[0].tolist() == [*a[:5].sum(axis=1).tolist(), *[-1] * 11]
    assert out[1].tolist() == [*(a[:10] ** 2).sum(axis=1).tolist(), *[-1] * 6]


@pytest.mark.parametrize(("bm", "bn"), [(16, 16), (64, 32)])
@pytest.mark.parametrize("how", ["stored", "reduced", "whole"])
def test_rows_that_are_needed_otherwise(how: str, bm: int, bn: int) -> None:
    """The sums of some are greater than those of the rows that a mask leaves."""
    n = 57
    a = (np.arange(bm, dtype=np.int32)[:, None] + np.arange(n, dtype=np.int32)[None, :]) % 83
    sums = a.sum(axis=1)
    for m in (0, 1, 7, bm - 1, bm + 5):
        out = np.full(2 * bm, -1, np.int32)
        used_in_part[(1,)](a, out, m, 0, n, BM=bm, BN=bn, HOW=how)
        assert out[:bm].tolist() == [int(2 * s) if i < m else -1 for i, s in enumerate(sums)]
        assert (
            out[bm:].tolist()
            == {
                "stored": [-1] * bm,
                "reduced": [int(sums.max())] + [-1] * (bm - 1),
                "whole": sums.tolist(),
            }[how]
        )


@weft.jit
def zeros_of(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.arange(0, BM), tl.arange(0, BN)
    total = tl.full((BM,), -0.0, tl.float32)
    for k in range(0, n, BN):
        inside = (rows < m)[:, None] & (k + columns < n)[None, :]
        total += tl.sum(tl.load(a + rows[:, None] * n + (k + columns)[None, :], mask=inside, other=0.0), axis=1)
    tl.store(out + rows, total, mask=rows < m)


@pytest.mark.parametrize("n", [64, 16, 48, 7, 200, 320])
def test_what_a_mask_leaves_out_is_a_zero(n: int) -> None:
    """A sum of negative zeros is one, unless a mask adds positive ones."""
    out = np.ones(5, np.float32)
    zeros_of[(1,)](np.full((5, n), -0.0, np.float32), out, 5, n, BM=8, BN=64)
    assert np.signbit(out).tolist() == [n % 64 == 0] * 5
    assert not out.any()


SIZES = [(3, 0), (5, 15), (7, 49), (33, 50), (3, 65), (18, 127), (9, 333), (5, 1023)]


OF_ANY_LENGTH = {
    kernel: weft.jit(do_not_specialize=("m", "first", "end"))(kernel.fn)
    for kernel in (sums_of, tiles_of, products_of, stepping)
}
"""The kernels, compiled once for all rows."""


@pytest.mark.parametrize(("bm", "bn"), [(1, 16), (16, 16), (8, 64), (4, 128)])
def test_each_column_is_added_once(bm: int, bn: int) -> None:
    """Loops of few iterations, such as begin below zero, and such as end where the counter would wrap. By day tiles of 16 rows
    have kernels of their own for limits that are multiples of 16."""
    for (m, n), end in itertools.product(SIZES, (7, np.iinfo(np.int32).max)):
        a = np.random.default_rng(n).integers(-20, 20, (m, n)).astype(np.int32)
        steps = -(-n // bn)
        weights = np.repeat([pow(3, i, 7) for i in range(steps)], bn)[:n]
        for kernel, expected in {
            sums_of: [3 + a.sum(axis=1), (a * a).sum(axis=1)],
            tiles_of: [a.sum(axis=1) + 2 * bn + 5 * (steps * bn - n)],
            products_of: [(a * a[0]).sum(axis=1)],
            stepping: [(a * weights).sum(axis=1)],
        }.items():
            out = np.zeros((len(expected), m), np.int32)
            launched = kernel if at_night() or bm == 16 else OF_ANY_LENGTH[kernel]
            launched[(weft.cdiv(m, bm),)](a, out, m, end - n, end, BM=bm, BN=bn)
            assert out.tolist() == np.array(expected).tolist(), (kernel, m, n)


@weft.jit
def scaled(a: Any, factor: Any, out: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Rows, and rows times the first one, whose elements are multiplied by one number that is loaded before the loop."""
    rows, columns, by = tl.arange(0, BM), tl.arange(0, BN), tl.load(factor).to(tl.float32)
    total, products = tl.zeros((BM,), tl.float32), tl.zeros((BM,), tl.float32)
    for k in range(0, n, BN):
        total += tl.sum(tl.load(a + rows[:, None] * n + (k + columns)[None, :]) * by, axis=1)
    for k in range(0, n, BN):
        row = tl.load(a + k + columns) * by
        products += tl.sum(tl.load(a + rows[:, None] * n + (k + columns)[None, :]) * row[None, :], axis=1)
    tl.store(out + rows, total)
    tl.store(out + BM + rows, products)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_are_multiplied_by_a_number(dtype: Any) -> None:
    """Of another type, too: it is no row."""
    a = np.random.default_rng(0).integers(-4, 5, (16, 1024)).astype(np.float32)
    out = np.zeros(32, np.float32)
    scaled[(1,)](a, np.full(1, 3, dtype), out, 1024, BM=16, BN=64)
    assert out.tolist() == [*(3 * a.sum(axis=1)).tolist(), *(3 * a @ a[0]).tolist()]


def in_halves(left: int) -> list[int]:
    """The accumulators of registers of iterations that are left: half of all, if so many are left, then a quarter, and so on."""
    return [at for bit in reversed(range(left.bit_length())) if left >> bit & 1 for at in range(1 << bit)]


def added(padded: Any, lanes: int, count: int, rest: Sequence[int] = ()) -> Any:
    """Sums of float32 rows: registers in turns to so many accumulators, the last ones to those of ``rest``, then the accumulators
    in pairs, then lanes."""
    registers = padded.reshape(len(padded), -1, lanes)
    totals = np.full((count, len(padded), lanes), -0.0, np.float32)
    places = [at % count for at in range(registers.shape[1] - len(rest))]
    for at, place in enumerate([*places, *rest]):
        totals[place] += registers[:, at]
    while len(totals) > 1:
        totals = totals[::2] + totals[1::2]
    (total,) = totals
    for bit in range(lanes.bit_length() - 1):
        total = total + total[:, np.arange(lanes) ^ (1 << bit)]
    return total[:, 0]


@pytest.mark.parametrize("bn", [16, 64, 256])
@pytest.mark.parametrize("tuning", [",+lone-rows", ",+lone-rows,+halved-loads", ""])
def test_rows_of_some_length_are_walked_alone(bn: int, tuning: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have several accumulators. Side by side, eight rows have one each. Also rows that a mask leaves out."""
    target = compiled_for(f"x86-64-v4{tuning}", monkeypatch)
    kernel, m = weft.jit(products_of.fn), 13  # not compiled before, for another target
    for n in (64, 1008, 1024, 1040, 2032, 2048, 2064):
        a = np.random.default_rng(n).standard_normal((m, n), np.float32)
        out = np.zeros(m, np.float32)
        kernel[(1,)](a, out, m, 0, n, BM=16, BN=bn)
        padded = np.zeros((m, -(-n // bn) * bn), np.float32)
        padded[:, :n] = a * a[0]
        lone = 1024 <= n <= 2048 and "lone-rows" in target.tuning
        left = padded.shape[1] // 16 % 4 if bn == 16 else 4 if n % 64 else 0  # what a mask cuts off is added in a loop
        rest = in_halves(left) if bn == 16 else [0] * left
        assert np.array_equal(out, added(padded, 16, 4, rest) if lone else added(padded, 16, 1)), n


@pytest.mark.parametrize(("bn", "loops"), [(64, []), (256, [8]), (1024, [8])])
def test_one_test_of_the_masks_of_a_tile(bn: int, loops: list[int]) -> None:
    """Tiles of more registers than accumulators are added in a loop without branches, four registers to each of both sums, where
    no mask cuts any of them off."""
    pointer, number = PointerArgument(float32, aligned=True), ScalarArgument(int32)
    signature: dict[str, Argument] = {
        **dict.fromkeys(("a", "out"), pointer),
        **dict.fromkeys(("m", "first", "end"), number),
    }
    signature |= {"BM": ConstantArgument(16), "BN": ConstantArgument(bn)}
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx512vl", 512)
    text = emit_llvm(build_module(KernelFunction(sums_of.fn), signature), target, Options(disjoint=True))
    blocks = re.findall(r'^"?([^\s"]+)"?:\n((?:  .*\n)+)', text, re.M)
    alone = [body.count("fadd") for name, body in blocks if f'label %"{name}"' in body and "fadd" in body]
    assert alone == loops


@pytest.mark.parametrize(("bm", "bn"), [(16, 16), (4, 256), (8, 32)])
@pytest.mark.parametrize("n", [50, 1001])
def test_accumulators_take_turns(bm: int, bn: int, n: int) -> None:
    """The order of the additions: registers in turns, then accumulators in pairs, then lanes. Iterations that are left of several
    are in halves of these."""
    m, host = 5, targets.host()
    lanes, count = host.lanes, min(8 * host.vector_bits // (32 * host.lanes), 4)
    a = np.random.default_rng(n).standard_normal((m, n), np.float32)
    out = np.zeros((2, m), np.float32)
    sums_of[(weft.cdiv(m, bm),)](a, out, m, 0, n, BM=bm, BN=bn)
    padded = np.zeros((m, -(-n // bn) * bn), np.float32)
    padded[:, :n] = a
    for x, initial, found in ((padded, 3, out[0]), (padded * padded, 0, out[1])):
        rest = in_halves(x.shape[1] // lanes % count) if bn // lanes < count else ()
        assert np.array_equal(found, added(x, lanes, count, rest) + np.float32(initial))

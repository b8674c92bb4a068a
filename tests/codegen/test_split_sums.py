"""Long rows that are summed in parts: which kernels, what they compute, and that the bits are those of one thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

import sampling
import weft
import weft.language as tl
from weft import target as targets
from weft.codegen import lay_out
from weft.dtypes import DType, float16, float32, int32
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options, Phase
from weft.reference import run as interpret
from weft.runtime import executor, parted
from weft.transforms import split_sums
from weft.transforms.split_sums import sums_of

pytestmark = pytest.mark.jit


@weft.jit
def row(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    """Rows of numbers, and one sum in the end."""
    at = a + tl.program_id(0).to(tl.int64) * n
    total = tl.zeros((BLOCK,), a.dtype.element_ty)
    for k in range(0, n, BLOCK):
        columns = k + tl.arange(0, BLOCK)
        total += tl.load(at + columns, mask=columns < n, other=0)
    tl.store(out + tl.program_id(0), tl.sum(total, axis=0))


@weft.jit
def moments(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    """Two sums, one of each kind, that begin with something, over a range that does not begin with 0."""
    at = a + (tl.program_id(0) + tl.num_programs(0) * tl.program_id(1)).to(tl.int64) * n
    squares = tl.full((BLOCK,), 2, a.dtype.element_ty)
    total = tl.load(at).to(a.dtype.element_ty)
    for k in range(1, n, BLOCK):
        columns = k + tl.arange(0, BLOCK)
        x = tl.load(at + columns, mask=columns < n, other=0)
        squares += x * x
        total += tl.sum(x, axis=0)
    place = out + 2 * (tl.program_id(0) + tl.num_programs(0) * tl.program_id(1))
    tl.store(place, total)
    tl.store(place + 1, tl.sum(squares, axis=0) + tl.load(at))


@weft.jit
def kept(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    """The row is stored, too: its elements are added in the order of the program."""
    total = tl.zeros((BLOCK,), a.dtype.element_ty)
    for k in range(0, n, BLOCK):
        total += tl.load(a + k + tl.arange(0, BLOCK))
    tl.store(out + 1 + tl.arange(0, BLOCK), total)
    tl.store(out, tl.sum(total, axis=0))


@weft.jit
def largest(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    total = tl.zeros((BLOCK,), a.dtype.element_ty)
    for k in range(0, n, BLOCK):
        total += tl.load(a + k + tl.arange(0, BLOCK))
    tl.store(out, tl.max(total, axis=0))


@weft.jit
def seen(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    """The total is read in the loop."""
    total = tl.zeros((), a.dtype.element_ty)
    for k in range(0, n, BLOCK):
        total += tl.sum(tl.load(a + k + tl.arange(0, BLOCK)) - total, axis=0)
    tl.store(out, total)


@weft.jit
def stored(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    total = tl.zeros((), a.dtype.element_ty)
    for k in range(0, n, BLOCK):
        x = tl.load(a + k + tl.arange(0, BLOCK))
        tl.store(out + k + tl.arange(0, BLOCK), x)
        total += tl.sum(x, axis=0)
    tl.store(out, total)


@weft.jit
def stored_before(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    tl.store(out + 1, tl.load(a))
    total = tl.zeros((), a.dtype.element_ty)
    for k in range(0, n, BLOCK):
        total += tl.sum(tl.load(a + k + tl.arange(0, BLOCK)), axis=0)
    tl.store(out, total)


@weft.jit
def added(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    total = tl.zeros((), a.dtype.element_ty)
    for k in range(0, n, BLOCK):
        total += tl.sum(tl.load(a + k + tl.arange(0, BLOCK)), axis=0)
    tl.atomic_add(out, total)


@weft.jit
def plain(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    """Numbers that are added one by one are no sum of a tile: the order is the program's."""
    total = tl.zeros((), a.dtype.element_ty)
    for k in range(0, n, BLOCK):
        total += tl.load(a + k)
    tl.store(out, total)


@weft.jit
def twice(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    """Two loops."""
    total = tl.zeros((), a.dtype.element_ty)
    for k in range(0, n, BLOCK):
        total += tl.sum(tl.load(a + k + tl.arange(0, BLOCK)), axis=0)
    for k in range(0, n, BLOCK):
        total += tl.sum(tl.load(a + k + tl.arange(0, BLOCK)) * 2, axis=0)
    tl.store(out, total)


@weft.jit
def waiting(a: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    total = tl.zeros((), a.dtype.element_ty)
    for k in range(0, n, BLOCK):
        total += tl.sum(tl.load(a + k + tl.arange(0, BLOCK), volatile=True), axis=0)
    tl.store(out, total)


SPLIT: list[tuple[Any, DType, int]] = [
    (row, float32, 1),
    (row, int32, 1),
    (moments, float32, 2),
    (row, float16, 0),  # rounded in each iteration
    (plain, int32, 1),
    *((kernel, float32, 0) for kernel in (kept, largest, seen, stored, stored_before, added, plain, twice, waiting)),
]


def module_of(kernel: Any, dtype: DType, block: int) -> Any:
    signature: dict[str, Argument] = {name: PointerArgument(dtype) for name in ("a", "out")}
    return build_module(
        KernelFunction(kernel.fn), signature | {"n": ScalarArgument(int32), "BLOCK": ConstantArgument(block)}
    )


@pytest.mark.parametrize(("kernel", "dtype", "expected"), SPLIT, ids=lambda value: getattr(value, "__name__", value))
def test_which_loops_are_split(kernel: Any, dtype: DType, expected: int) -> None:
    for phase in (Phase.WHOLE, Phase.PARTS, Phase.TOTALS):
        module = module_of(kernel, dtype, 64)
        lay_out(module, targets.host(), Options(phase=phase))
        module.verify()
        assert sums_of(next(op for op in module.ops if isinstance(op, func.FuncOp))) == expected


def test_checked_kernels_are_left_alone() -> None:
    module = module_of(row, float32, 64)
    lay_out(module, targets.host(), Options(checked=True))
    assert sums_of(next(op for op in module.ops if isinstance(op, func.FuncOp))) == 0


def test_the_runtime_knows_how_many_parts() -> None:
    assert parted.MOST_PARTS == split_sums.MOST_PARTS


@pytest.fixture
def always_parted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """All launches after the first are run in parts; the grids of what ran."""
    monkeypatch.setattr(parted, "_LONG", 0)
    monkeypatch.setattr(parted, "_SHORT", 0)
    ran: list[int] = []
    run = parted.Parted.run

    def watched(self: Any, *args: Any) -> bool:
        found = run(self, *args)
        ran.append(found)
        return found

    monkeypatch.setattr(parted.Parted, "run", watched)
    return ran


OF_ANY_LENGTH = {kernel: weft.jit(do_not_specialize=("n",))(kernel.fn) for kernel in (row, moments)}
"""The kernels, compiled once for all lengths."""


def launched(kernel: Any, a: Any, grid: tuple[int, ...], n: int, block: int, threads: int, monkeypatch: Any) -> Any:
    pool = executor.Pool(threads)
    monkeypatch.setattr(executor, "pool", lambda: pool)
    out = np.zeros(2 * int(np.prod(grid)), a.dtype)
    kernel[grid](a, out, n, BLOCK=block)
    return out


SIZES = [0, 3, 1000, (1 << 16) + 1, 3 << 16, (1 << 20) + 77]
"""No part, one, some, and as many as there may be; whole and ragged."""


@pytest.mark.parametrize(
    ("dtype", "kernel", "block"), sampling.grid(2, [np.float32, np.int32], [row, moments], [16, 1024])
)
def test_bits_do_not_depend_on_the_threads(
    kernel: Any, dtype: Any, block: int, always_parted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By day float32 has kernels of its own for lengths that are multiples of 16."""
    run = kernel if sampling.at_night() or dtype is np.float32 else OF_ANY_LENGTH[kernel]
    for n in SIZES if kernel is row else SIZES[1:]:
        for grid in ((1,), (2, 1)) if kernel is row else ((1,), (1, 2)):
            count = int(np.prod(grid))
            a = np.random.default_rng(n).integers(-9, 9, (count, max(n, 1))).astype(dtype)
            if dtype is np.float32:
                a += np.random.default_rng(n).standard_normal(a.shape, np.float32)
            whole = launched(run, a, grid, n, block, 1, monkeypatch)
            always_parted.clear()
            for threads in (3, 3, 5):
                assert launched(run, a, grid, n, block, threads, monkeypatch).tobytes() == whole.tobytes(), (n, grid)
            assert all(always_parted) and len(always_parted) >= 2
            exact = a[:, :n].astype(np.float64)
            if kernel is row:
                expected = exact.sum(axis=1)
                found = whole[:count]
            else:
                squares = (exact[:, 1:] ** 2).sum(axis=1) + 2 * block + a[:, 0]
                expected = np.stack([a[:, 0] + exact[:, 1:].sum(axis=1), squares], axis=1).reshape(-1)
                found = whole
            assert np.allclose(found, expected, rtol=1e-4, atol=1e-2 if dtype is np.float32 else 0)


def test_parts_in_another_order_are_not_run(monkeypatch: pytest.MonkeyPatch, always_parted: list[int]) -> None:
    """Where the compiler chose another order for parts, programs are run whole."""
    halves = parted.Parted.__dict__["_halves"].func

    def other(self: Any) -> Any:
        self._order += " or another"
        return halves(self)

    monkeypatch.setattr(parted.Parted, "_halves", property(other))
    a = np.ones((1, 1 << 17), np.float32)
    for _ in range(3):
        assert launched(row, a, (1,), a.size, 128, 3, monkeypatch)[0] == a.size
    assert always_parted and not any(always_parted)


@pytest.mark.parametrize("n", sampling.some([5, 70_000, 200_001], 200_001))
def test_phases_mean_the_kernel(n: int) -> None:
    """The reference interpreter on the passes' results: parts, then totals, are the kernel."""
    a = np.random.default_rng(n).integers(-99, 99, n).astype(np.int32)
    found = np.zeros(2, np.int32)
    sums = np.zeros(2 * split_sums.MOST_PARTS, np.int64)
    for phase, grid in ((Phase.PARTS, (split_sums.MOST_PARTS, 1, 1)), (Phase.TOTALS, (1, 1, 1))):
        module = module_of(moments, int32, 4096)
        split_sums.SplitSums(phase).apply(None, module)  # pyright: ignore[reportArgumentType]
        module.verify()
        interpret(module, [a, found, n, sums], grid)
    expected = [a.sum(dtype=np.int64), (a[1:].astype(np.int64) ** 2).sum() + 2 * 4096 + a[0]]
    assert found.tolist() == np.array(expected).astype(np.int32).tolist()

"""Neighbouring programs that run as one: which kernels they are of, that each program runs once, and what it computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

import sampling
import weft
import weft.language as tl
from entries import enter
from weft import target as targets
from weft.codegen import emit_llvm, lay_out
from weft.dtypes import DType, float32, float64, int32, uint8
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.language.extra import libdevice
from weft.options import Options
from weft.runtime import executor
from weft.transforms.join_programs import joined_of

pytestmark = pytest.mark.jit


@weft.jit
def add_one(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(out + at, tl.load(a + at, mask=at < n) + 1, mask=at < n)


@weft.jit
def wide_offsets(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0).to(tl.int64) * BN + tl.arange(0, BN).to(tl.int64)
    tl.store(out + at, tl.load(a + at, mask=at < n) + 1, mask=at < n)


@weft.jit
def gathered(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(out + at, tl.load(a + tl.load(a + at, mask=at < n) % n, mask=at < n), mask=at < n)


@weft.jit
def apart(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(out + at, tl.load(a + at * 3, mask=at < n), mask=at < n)


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
def copy_x(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Columns in x, rows in y."""
    rows, columns = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    at, inside = rows[:, None] * n + columns[None, :], (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(out + at, tl.load(a + at, mask=inside) + 1, mask=inside)


@weft.jit
def copy_y(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Rows in x, columns in y, and one more for each z."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    at, inside = rows[:, None] * n + columns[None, :], (rows < m)[:, None] & (columns < n)[None, :]
    at += tl.program_id(2) * m * n
    tl.store(out + at, tl.load(a + at, mask=inside) + 1, mask=inside)


@weft.jit
def transposed(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    x = tl.load(a + rows[:, None] * n + columns[None, :], mask=inside)
    tl.store(out + columns[None, :] * m + rows[:, None], x, mask=inside)


@weft.jit
def by_trans(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    x = tl.trans(tl.load(a + rows[:, None] * n + columns[None, :], mask=inside))
    tl.store(out + columns[:, None] * m + rows[None, :], x, mask=(columns < n)[:, None] & (rows < m)[None, :])


@weft.jit
def transposed_y(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    x = tl.load(a + columns[None, :] * m + rows[:, None], mask=inside)
    tl.store(out + rows[:, None] * n + columns[None, :], x, mask=inside)


@weft.jit
def transposed_often(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    for k in range(0, m):
        x = tl.load(a + k + rows[:, None] * n + columns[None, :])
        tl.store(out + k + columns[None, :] * m + rows[:, None], x)


@weft.jit
def transposed_sums(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    tl.atomic_add(out + columns[None, :] * m + rows[:, None], tl.load(a + rows[:, None] * n + columns[None, :]))


@weft.jit
def row_totals(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """A loop along rows takes a few of them at a time, however many a tile has."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    total = tl.zeros((BM,), tl.int32)
    for k in range(0, n, BN):
        total += tl.sum(tl.load(a + rows[:, None] * n + (k + columns)[None, :]), axis=1)
    tl.store(out + rows, total)


@weft.jit
def products(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Elements of one program meet, those of two must not."""
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    x = tl.load(a + at)
    both = x[:, None] + x[None, :]
    tl.store(out + at, tl.sum(both, axis=0))


@weft.jit
def sums(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    x = tl.load(a + at)
    tl.store(out + at, x - tl.sum(x, axis=0))


@weft.jit
def scans(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(out + at, tl.cumsum(tl.load(a + at), axis=0))


@weft.jit
def shapes(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    x = tl.reshape(tl.load(a + at), (2, BN // 2))
    tl.store(out + at, tl.reshape(x * 2, (BN,)))


@weft.jit
def numbered(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """The id is also a number."""
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(out + at, tl.load(a + at) + tl.program_id(0))


@weft.jit
def placed(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """A number of each place in the tile."""
    i = tl.arange(0, BN)
    at = tl.program_id(0) * BN + i
    tl.store(out + at, tl.load(a + at) + i)


@weft.jit
def overlapping(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * (BN // 2) + tl.arange(0, BN)
    tl.store(out + at, tl.load(a + at))


@weft.jit
def adding(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.atomic_add(out + at, tl.load(a + at), sem="relaxed")


@weft.jit
def learning(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(a + at, tl.atomic_add(out + at, tl.load(a + at), sem="relaxed"))


@weft.jit
def adding_y(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(1) * BN + tl.arange(0, BN)
    tl.atomic_add(out + at, tl.load(a + at), sem="relaxed")


@weft.jit
def counting(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.atomic_add(out.to(tl.pointer_type(tl.int32)) + tl.load(a + at, mask=at < n, other=0), 1, mask=at < n)


@weft.jit
def counted(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Each program counts itself."""
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(a + at, tl.load(a + at) + 1)
    tl.atomic_add(out.to(tl.pointer_type(tl.int32)), 1, sem="relaxed")


@weft.jit
def counted_often(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(a + at, tl.load(a + at) + 1)
    tl.atomic_add(out.to(tl.pointer_type(tl.int32)) + tl.arange(0, BM), 1, sem="relaxed")


@weft.jit
def narrow_range(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """A longer range than a program's has numbers that int8 has not."""
    at = tl.program_id(0) * BN + tl.arange(0, BN).to(tl.int8).to(tl.int32)
    tl.store(out + at, tl.load(a + at))


@weft.jit
def rounded_ids(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """float16 has no 2049: to it, the program beside 2048 is that one."""
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    rounded = tl.program_id(0).to(tl.float16) * BN + tl.arange(0, BN).to(tl.float16)
    tl.store(out + at, rounded.to(tl.uint8))


@weft.jit
def waiting(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(out + at, tl.load(a + at, volatile=True))


@weft.jit
def rows_alone(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """What moves with the id is a stride apart."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    at = rows[:, None] * n + columns[None, :]
    tl.store(out + at, tl.load(a + at))


@weft.jit
def number(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Programs of one number; what does not depend on the id is read once."""
    at = tl.program_id(0) + tl.program_id(1) * n
    tl.store(out + at, tl.load(a + at, mask=at < m, other=3) + tl.load(a), mask=at < m)


@weft.jit
def number_apart(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * 2
    tl.store(out + at, tl.load(a + at))


@weft.jit
def number_gathered(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0)
    tl.store(out + at, tl.load(a + tl.load(a + at)))


@weft.jit
def one_place(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0)
    tl.store(out + at, at)
    tl.store(a, at)


@weft.jit
def number_waiting(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0)
    tl.store(out + at, tl.load(a + at, volatile=True))


@weft.jit
def number_counted(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0)
    tl.atomic_add(out.to(tl.pointer_type(tl.int32)) + at, 1)


@weft.jit
def number_or_none(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0)
    if at < n:
        tl.store(out + at, tl.load(a + at))
    else:
        tl.store(out + at, 7)


@weft.jit
def numbers_of_y(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(1)
    tl.store(out + at, tl.load(a + at))


@weft.jit
def nothing_stored(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    tl.load(a + tl.program_id(0))


@weft.jit
def computing(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    x = tl.load(a + at, mask=at < n)
    y = x
    for _ in tl.static_range(BM):
        y = y * x + x
    tl.store(out + at, y, mask=at < n)


JOINED: list[tuple[Any, DType, tuple[int, int], tuple[int, ...] | None]] = [
    (add_one, int32, (1, 16), (0, 16)),
    (add_one, int32, (1, 256), (0, 4)),
    (add_one, int32, (1, 1024), None),
    (add_one, uint8, (1, 1024), (0, 4)),
    (add_one, uint8, (1, 4), (0, 16)),
    (add_one, float64, (1, 128), (0, 4)),
    (wide_offsets, int32, (1, 16), (0, 16)),
    (gathered, int32, (1, 64), (0, 16)),
    (apart, float64, (1, 64), (0, 8)),
    (computing, int32, (56, 64), (0, 16)),
    (computing, int32, (64, 64), None),
    (computing, int32, (64, 32), (0, 16)),
    (computing, uint8, (64, 64), (0, 16)),
    (computing, uint8, (64, 256), None),
    (columns_of, int32, (16, 16), (0, 4)),
    (columns_of, int32, (512, 16), (0, 2)),
    (columns_of, int32, (16, 64), None),
    (copy_x, float32, (16, 16), (0, 8)),
    (copy_y, float32, (16, 16), (1, 8)),
    (copy_y, float32, (64, 32), (1, 4)),
    *((kernel, int32, (16, 16), None) for kernel in (products, sums, scans, shapes, numbered, placed)),
    *((kernel, int32, (16, 16), None) for kernel in (overlapping, learning, adding_y, waiting, rows_alone)),
    (adding, int32, (16, 16), (0, 16)),
    (transposed, int32, (16, 64), (0, 4)),
    (transposed, int32, (32, 32), (0, 2)),
    (transposed, int32, (64, 16), None),
    (transposed, int32, (16, 8), (0, 4, 2)),
    (transposed, uint8, (16, 16), (0, 16, 4)),
    (by_trans, uint8, (64, 16), (0, 4, 4)),
    (by_trans, uint8, (256, 16), (0, 1, 4)),
    (by_trans, uint8, (256, 64), None),
    (by_trans, uint8, (1024, 16), (0, 1, 4)),
    (by_trans, uint8, (2048, 16), None),
    (transposed_y, uint8, (32, 32), (1, 8, 2)),
    *((kernel, int32, (16, 8), None) for kernel in (transposed_often, transposed_sums)),
    (copy_x, uint8, (16, 16), (0, 16)),
    (transposed_y, int32, (64, 16), (1, 4)),
    (by_trans, int32, (16, 64), (0, 4)),
    (row_totals, int32, (16, 64), None),
    (counting, uint8, (16, 16), (0, 16)),
    *((number, dtype, (1, 1), (0, 64)) for dtype in (uint8, int32, float64)),
    *((kernel, int32, (1, 1), None) for kernel in (number_apart, number_gathered, one_place, number_waiting)),
    *((kernel, int32, (1, 1), None) for kernel in (number_counted, number_or_none, numbers_of_y, nothing_stored)),
    *((kernel, uint8, (16, 16), None) for kernel in (counted, counted_often, narrow_range, rounded_ids)),
]


@pytest.mark.parametrize(
    ("kernel", "dtype", "tile", "expected"), JOINED, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_which_programs_are_joined(
    kernel: Any, dtype: DType, tile: tuple[int, int], expected: tuple[int, ...] | None
) -> None:
    """The axis, and how many: 4 KiB without rows where programs compute less than 32 KiB, rows of 512 bytes, in loops of 256,
    at most 64 KiB and 16 programs. Last how many are beside each of these, where loads across are less than a line."""
    assert joining(kernel, dtype, tile, Options()) == expected


def test_checked_kernels_run_one_by_one() -> None:
    assert joining(add_one, int32, (1, 16), Options(checked=True)) is None


def joining(kernel: Any, dtype: DType, tile: tuple[int, int], options: Options) -> tuple[int, ...] | None:
    constants: dict[str, Argument] = {"BM": ConstantArgument(tile[0]), "BN": ConstantArgument(tile[1])}
    signature: dict[str, Argument] = {name: PointerArgument(dtype) for name in ("a", "out")}
    signature |= {name: ScalarArgument(int32) for name in ("m", "n")} | constants
    module = build_module(KernelFunction(kernel.fn), signature)
    lay_out(module, targets.host(), options)
    module.verify()
    found = joined_of(next(op for op in module.ops if isinstance(op, func.FuncOp)))
    if found is None:
        return None
    _, (axis, programs, _, beside) = found
    return (axis, programs) if beside == 1 else (axis, programs, beside)


@weft.jit
def note(seen: Any, counter: Any, B: tl.constexpr) -> None:
    """Counts how often each program ran."""
    at = tl.program_id(0) * B + tl.arange(0, B)
    at += tl.num_programs(0) * B * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    tl.store(seen + at, tl.load(seen + at) + 1)


@weft.jit
def note_number(seen: Any, counter: Any, B: tl.constexpr) -> None:
    at = tl.program_id(0) + tl.num_programs(0) * (tl.program_id(1) + tl.num_programs(1) * tl.program_id(2))
    tl.store(seen + at, tl.load(seen + at) + 1)


@weft.jit
def note_turned(seen: Any, counter: Any, B: tl.constexpr) -> None:
    """Programs of both axes are joined, since they load 4 * B bytes across."""
    x, y = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    across = tl.load(counter + x[:, None] * tl.num_programs(1) * B + y[None, :])
    at = (tl.program_id(2) * tl.num_programs(1) * B + y)[:, None] * tl.num_programs(0) * B + x[None, :]
    tl.store(seen + at, tl.load(seen + at) + 1 + tl.trans(across))


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize("chunk", [1, 5, 64, 1000])
@pytest.mark.parametrize(
    "grid", [(1, 1, 1), (15, 1, 1), (16, 1, 1), (17, 1, 1), (64, 1, 1), (130, 1, 1), (65, 2, 3), (3, 2, 1), (35, 9, 2)]
)
@pytest.mark.parametrize(
    ("note", "numbers", "b"),
    [(note, 8, 8), (note_number, 1, 1), (note_turned, 16, 4)],
    ids=["tiles", "numbers", "turned"],
)
def test_each_program_runs_once(
    note: Any, numbers: int, b: int, grid: tuple[int, int, int], chunk: int, pauses: bool
) -> None:
    total = int(np.prod(grid))
    seen, counter = np.zeros(numbers * total, np.int32), np.zeros(numbers * total, np.int32)
    enter(note.compile(seen, counter, B=b), (seen, counter), grid, chunk, pauses=pauses)
    assert (seen == 1).all()


@pytest.mark.parametrize(
    ("tile", "shape"), sampling.grid(3, [(16, 16), (4, 64), (32, 2)], [(40, 1), (40, 333), (1, 300), (64, 512)])
)
def test_values(tile: tuple[int, int], shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """With one thread and with three, which run the same kernels. ``make test`` has each tile and each shape."""
    for threads in (1, 3):
        pool = executor.Pool(threads)
        monkeypatch.setattr(executor, "pool", lambda pool=pool: pool)
        check_values(tile, shape)


def check_values(tile: tuple[int, int], shape: tuple[int, int]) -> None:
    (bm, bn), (m, n) = tile, shape
    a = np.random.default_rng(m + n).integers(-99, 99, (m, n)).astype(np.int32)
    for kernel, grid in (
        (copy_x, (weft.cdiv(n, bn), weft.cdiv(m, bm))),
        (copy_y, (weft.cdiv(m, bm), weft.cdiv(n, bn))),
    ):
        out = np.zeros((m, n), np.int32)
        kernel[grid](a, out, m, n, BM=bm, BN=bn)
        assert (out == a + 1).all()
    three, out = np.stack([a, a + 7, a - 7]), np.zeros((3, m, n), np.int32)
    copy_y[(weft.cdiv(m, bm), weft.cdiv(n, bn), 3)](three, out, m, n, BM=bm, BN=bn)
    assert (out == three + 1).all()
    for kernel, given in ((transposed, a), (by_trans, a), (transposed_y, a.T.copy())):
        out = np.zeros((m, n) if kernel is transposed_y else (n, m), np.int32)
        kernel[(weft.cdiv(m, bm), weft.cdiv(n, bn))](given, out, m, n, BM=bm, BN=bn)
        assert (out == given.T).all()
    flat, total = np.zeros(m * n, np.int32), np.zeros(n, np.int32)
    add_one[(weft.cdiv(m * n, bn),)](a.reshape(-1), flat, m, m * n, BM=bm, BN=bn)
    assert (flat == a.reshape(-1) + 1).all()
    gathered[(weft.cdiv(m * n, bn),)](abs(a).reshape(-1), flat, m, m * n, BM=bm, BN=bn)
    assert (flat == abs(a).reshape(-1)[abs(a).reshape(-1) % (m * n)]).all()
    apart[(weft.cdiv(m * n // 3, bn),)](a.reshape(-1), flat, m, m * n // 3, BM=bm, BN=bn)
    assert (flat[: m * n // 3] == a.reshape(-1)[::3][: m * n // 3]).all()
    columns_of[(weft.cdiv(n, bn),)](a, total, m, n, BM=bm, BN=bn)
    assert total.tolist() == a.sum(axis=0).tolist()


@pytest.mark.parametrize("kernel", [products, sums, scans, shapes, numbered, placed], ids=lambda k: k.__name__)
def test_elements_of_different_programs_do_not_meet(kernel: Any) -> None:
    b, programs = 16, 40
    a, out = (
        np.random.default_rng(1).integers(-99, 99, (programs, b)).astype(np.int32),
        np.zeros((programs, b), np.int32),
    )
    kernel[(programs,)](a, out, 1, b * programs, BM=16, BN=b)
    expected = {
        products: a * b + a.sum(axis=1, keepdims=True),
        sums: a - a.sum(axis=1, keepdims=True),
        scans: a.cumsum(axis=1),
        shapes: a * 2,
        numbered: a + np.arange(programs)[:, None],
        placed: a + np.arange(b),
    }
    assert (out == expected[kernel]).all()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [5, 1000, 4096 + 7])
def test_atomics_of_all_programs_arrive(n: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pool = executor.Pool(threads)
    monkeypatch.setattr(executor, "pool", lambda: pool)
    a, out = np.random.default_rng(n).integers(0, 256, n).astype(np.uint8), np.zeros(256, np.int32)
    counting[(weft.cdiv(n, 16),)](a, out, 1, n, BM=16, BN=16)
    assert out.tolist() == np.bincount(a, minlength=256).tolist()


@pytest.mark.parametrize("kernel", [counted, counted_often], ids=lambda k: k.__name__)
def test_each_program_counts_itself(kernel: Any) -> None:
    """An atomic without the dimension happens once a program."""
    a, out = np.zeros(16 * 40, np.uint8), np.zeros(16, np.int32)
    kernel[(40,)](a, out, 1, a.size, BM=16, BN=16)
    assert out.tolist() == ([40] * 16 if kernel is counted_often else [40] + [0] * 15)
    assert (a == 1).all()


def test_sums_do_not_depend_on_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which programs are joined depends on the grid alone, whoever claims them."""
    m, n = 77, 16 * 37
    a = np.random.default_rng(3).standard_normal((m, n), np.float32)
    found: list[bytes] = []
    for threads in (1, 2, 3, 5):
        pool = executor.Pool(threads)
        monkeypatch.setattr(executor, "pool", lambda pool=pool: pool)
        for _ in range(3):
            out = np.zeros(n, np.float32)
            sums_of_floats[(n // 16,)](a, out, m, n, BM=16, BN=16)
            found.append(out.tobytes())
            assert np.allclose(out, a.sum(axis=0), rtol=1e-4, atol=1e-4)
    assert len(set(found)) == 1


@weft.jit
def sums_of_floats(a: Any, out: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BN,), tl.float32)
    for k in range(0, m, BM):
        rows = k + tl.arange(0, BM)
        total += tl.sum(tl.load(a + rows[:, None] * n + columns[None, :], mask=(rows < m)[:, None], other=0.0), axis=0)
    tl.store(out + columns, total)


@weft.jit
def float_columns(
    a: Any, out: Any, n: Any, steps: Any, IN_LOOP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
) -> None:
    """Sums of columns: of each block of rows, or of all blocks in the end."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    at = a + tl.arange(0, BM)[:, None] * n + columns[None, :]
    if IN_LOOP:
        total = tl.zeros((BN,), tl.float32)
        for k in range(steps):
            total += tl.sum(tl.load(at + k * BM * n).to(tl.float32), axis=0)
    else:
        tile = tl.zeros((BM, BN), tl.float32)
        for k in range(steps):
            tile += tl.load(at + k * BM * n).to(tl.float32)
        total = tl.sum(tile, axis=0)
    tl.store(out + columns, total)


@weft.jit
def float_rows(a: Any, out: Any, n: Any, steps: Any, IN_LOOP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Sums of rows, the rows side by side in memory of the results."""
    rows = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.sum(tl.load(a + rows[:, None] * BM + tl.arange(0, BM)[None, :]).to(tl.float32), axis=1)
    tl.store(out + rows, total)


@pytest.mark.parametrize(
    ("kernel", "in_loop", "dtype", "rows", "columns"),
    sampling.grid(
        3, [float_columns, float_rows], [False, True], [np.float32, np.float16], [4, 16, 64], [4, 8, 16, 32, 64]
    ),
)
def test_bits_do_not_depend_on_the_grid(kernel: Any, in_loop: bool, dtype: Any, rows: int, columns: int) -> None:
    """A program's floats have the bits that it computes alone, in grids of one program. ``make test`` has each kernel
    of each type with all rows and all columns, and each number of rows with one or two of columns."""
    programs, steps = 21, 5
    n = programs * columns
    a = np.random.default_rng(rows).standard_normal((rows * steps, n)).astype(dtype)
    together, single = np.zeros(n, np.float32), np.zeros(n, np.float32)
    kernel[(programs,)](a, together, n, steps, in_loop, rows, columns)
    for program in range(programs):
        first = program * columns
        start = a.reshape(-1)[first * (rows if kernel is float_rows else 1) :]
        kernel[(1,)](start, single[first:], n, steps, in_loop, rows, columns)
    assert together.tobytes() == single.tobytes()


@weft.jit
def heavy_columns(
    a: Any, out: Any, n: Any, steps: Any, IN_LOOP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, EXPS: tl.constexpr
) -> None:
    """As `float_columns`, of values that take much work: their registers are unrolled less."""
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    at = a + tl.arange(0, BM)[:, None] * n + columns[None, :]
    total = tl.zeros((BN,), tl.float32)
    for k in range(steps if IN_LOOP else 1):
        x = tl.load(at + k * BM * n)
        for _ in tl.static_range(EXPS):
            x = tl.exp(x * 0.125)
        if IN_LOOP:
            total += tl.sum(x, axis=0)
        else:
            tl.store(out + columns, tl.sum(x, axis=0))
    if IN_LOOP:
        tl.store(out + columns, total)


@pytest.mark.parametrize(
    ("in_loop", "exps", "rows", "columns"),
    sampling.grid(3, [False, True], [0, 1, 2, 4, 12], [1, 2, 4, 8, 16, 64], [16, 64]),
)
def test_bits_do_not_depend_on_the_work(in_loop: bool, exps: int, rows: int, columns: int) -> None:
    """``make test`` has each number of rows with all amounts of work, and each amount of work in and out of a loop."""
    programs, steps = 11, 3
    n = programs * columns
    a = np.random.default_rng(rows).standard_normal((rows * steps, n)).astype(np.float32)
    together, single = np.zeros(n, np.float32), np.zeros(n, np.float32)
    heavy_columns[(programs,)](a, together, n, steps, in_loop, rows, columns, exps)
    for first in range(0, n, columns):
        heavy_columns[(1,)](a.reshape(-1)[first:], single[first:], n, steps, in_loop, rows, columns, exps)
    assert together.tobytes() == single.tobytes()


FLOAT_SUMS: list[tuple[Any, dict[str, int], bool]] = [
    (float_columns, {"IN_LOOP": 1, "BM": 16, "BN": 16}, True),
    (float_columns, {"IN_LOOP": 1, "BM": 64, "BN": 16}, True),
    (float_columns, {"IN_LOOP": 1, "BM": 4, "BN": 32}, True),
    (float_columns, {"IN_LOOP": 0, "BM": 64, "BN": 16}, True),
    (heavy_columns, {"IN_LOOP": 0, "BM": 64, "BN": 16, "EXPS": 4}, True),
    (heavy_columns, {"IN_LOOP": 1, "BM": 16, "BN": 16, "EXPS": 12}, True),
    (float_columns, {"IN_LOOP": 1, "BM": 16, "BN": 8}, False),  # a register has two rows
    (float_rows, {"IN_LOOP": 0, "BM": 16, "BN": 16}, False),
]


@pytest.mark.parametrize(
    ("kernel", "constants", "expected"), FLOAT_SUMS, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_which_sums_of_floats_are_joined(kernel: Any, constants: dict[str, int], expected: bool) -> None:
    """The entry point runs joined programs where both functions add up in one order, with AVX-512 as elsewhere."""
    signature: dict[str, Argument] = {name: PointerArgument(float32) for name in ("a", "out")}
    signature |= {name: ScalarArgument(int32) for name in ("n", "steps")}
    signature |= {name: ConstantArgument(value) for name, value in constants.items()}
    module = build_module(KernelFunction(kernel.fn), signature)
    text = emit_llvm(module, targets.host(), Options(disjoint=True))
    assert (f'call i32 @"{kernel.__name__}.joined.program"' in text) == expected


def computed(a: Any, b: Any, whole: Any, half: Any, flag: Any, n: Any) -> None:
    """Functions, conversions, integers, choices and booleans, of one number each."""
    at = tl.program_id(0)
    x, y = tl.load(a + at, mask=at < n, other=1.0), tl.load(b + at, mask=at < n, other=2.0)
    z = tl.exp(x) * y + tl.sin(x) / tl.sqrt(tl.abs(y)) - tl.log(tl.abs(x)) + tl.erf(y) + tl.fma(x, y, x)
    z = tl.where(x < y, z, tl.rsqrt(tl.abs(x)) + tl.floor(y) + libdevice.tanh(x))
    i = (x * 1000).to(tl.int32)
    tl.store(whole + at, (i // 7 + i % 5 * at) ^ (i >> 3))
    tl.store(half + at, (z + y.to(tl.float16)).to(tl.bfloat16).to(half.dtype.element_ty))
    tl.store(a + at, z, mask=(x < 3) & (at < n))
    tl.store(flag + at, (x < y) | (at < 5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_have_the_same_bits(dtype: Any) -> None:
    """A checked kernel's programs run one by one."""
    one, together = weft.jit(checked=True)(computed), weft.jit(computed)
    random = np.random.default_rng(1)
    n = 16 * 37 + 5
    given = random.standard_normal((2, n)).astype(dtype) * 4
    given[0, ::9] = np.resize([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e30, -1e-30], given[0, ::9].size)
    given[1, 4::11] = 0
    found: list[list[bytes]] = []
    for kernel in (one, together):
        a, b = given.copy()
        rest = [np.zeros(n, np.int32), np.zeros(n, np.float32), np.zeros(n, np.bool_)]
        kernel[(n,)](a, b, *rest, n - 20)
        found.append([array.tobytes() for array in (a, *rest)])
    assert found[0] == found[1]

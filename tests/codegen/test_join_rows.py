"""Programs that run together as whole rows of the grid, and loops over registers that end with what is there of a row."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.ir import SSAValue

import sampling
import weft
import weft.language as tl
from entries import enter
from tiled_kernels import joined, module_of
from weft import target as targets
from weft.codegen import emit_llvm, lay_out
from weft.dtypes import DType, float32, float64, int32, uint8
from weft.options import Options
from weft.runtime import executor
from weft.transforms.join_programs import Joined, joined_of

pytestmark = pytest.mark.jit

RNG = np.random.default_rng(0)


@weft.jit
def copy(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Rows in x, columns in y."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    at, inside = rows[:, None] * n + columns[None, :], (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(out + at, tl.load(a + at, mask=inside), mask=inside)


@weft.jit
def everywhere(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Columns in x, rows in y, and no masks; ``n`` is how far rows are apart."""
    rows, columns = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    at = rows[:, None] * n + columns[None, :]
    tl.store(out + at, tl.load(a + at) + tl.program_id(2))


@weft.jit
def scaled(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """A row that all rows share is loaded for each of them."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    at, inside = rows[:, None] * n + columns[None, :], (rows < m)[:, None] & (columns < n)[None, :]
    shared = tl.load(row + columns, mask=columns < n, other=0) + 1
    tl.store(out + at, tl.load(a + at, mask=inside) * shared[None, :], mask=inside)


@weft.jit
def dear(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """As `scaled`, by what is computed once."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    at, inside = rows[:, None] * n + columns[None, :], (rows < m)[:, None] & (columns < n)[None, :]
    shared = tl.exp(tl.load(row + columns, mask=columns < n, other=0).to(tl.float32)).to(out.dtype.element_ty)
    tl.store(out + at, tl.load(a + at, mask=inside) * shared[None, :], mask=inside)


@weft.jit
def in_place(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    at, inside = rows[:, None] * n + columns[None, :], (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(a + at, tl.load(a + at, mask=inside) + 1, mask=inside)


@weft.jit
def and_rows(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """A store of each program without its columns."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    at = rows[:, None] * n + columns[None, :]
    tl.store(out + at, tl.load(a + at))
    tl.store(row + rows, rows)


@weft.jit
def summed(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    at = rows[:, None] * n + columns[None, :]
    x = tl.load(a + at)
    tl.store(out + at, x + tl.sum(x, axis=0)[None, :])


@weft.jit
def in_line(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    at = tl.program_id(0) * BN + tl.arange(0, BN)
    tl.store(out + at, tl.load(a + at, mask=at < n), mask=at < n)


@weft.jit
def turned(a: Any, out: Any, row: Any, m: Any, n: Any, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Columns are the first dimension of tiles."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    at = rows[None, :] * n + columns[:, None]
    tl.store(out + at, tl.load(a + at))


JOINED: list[tuple[Any, DType, tuple[int, int], Joined | None]] = [
    (copy, float32, (16, 16), Joined(1, 512, 8)),
    (copy, float32, (64, 256), Joined(1, 32, 1)),
    (copy, float64, (2, 16), Joined(1, 256, 4)),
    (copy, uint8, (16, 64), Joined(1, 512, 8)),
    (copy, float32, (1, 64), Joined(1, 2)),
    (everywhere, float32, (16, 16), Joined(0, 512, 8)),
    (scaled, float32, (16, 16), Joined(1, 512, 8)),
    (dear, float32, (16, 16), Joined(1, 8)),
    (in_place, float32, (16, 16), Joined(1, 8)),
    (and_rows, int32, (16, 16), Joined(1, 8)),
    (summed, int32, (16, 16), Joined(1, 8)),
    (in_line, float32, (16, 16), Joined(0, 16)),
    (turned, float32, (16, 16), Joined(1, 8)),
]


@pytest.mark.parametrize(
    ("kernel", "dtype", "tile", "expected"), JOINED, ids=lambda value: getattr(value, "__name__", str(value))
)
def test_which_programs_become_rows(kernel: Any, dtype: DType, tile: tuple[int, int], expected: Joined | None) -> None:
    """Rows of 32 KiB, and at least as many programs as are joined otherwise."""
    assert joined(kernel, dtype, tile) == expected


def test_arrays_that_may_overlap_have_no_rows() -> None:
    module = module_of(copy, float32, (16, 16))
    lay_out(module, targets.host(), Options())
    found = joined_of(next(op for op in module.ops if isinstance(op, func.FuncOp)))
    assert found is not None and found[1] == Joined(1, 8)


@pytest.mark.parametrize("kernel", [copy, everywhere, scaled], ids=lambda kernel: kernel.__name__)
def test_the_joined_function_is_used_and_has_no_buffer(kernel: Any) -> None:
    """Nothing goes through all registers of a row: the machine would leave the function out."""
    text = emit_llvm(module_of(kernel, float32, (64, 16)), targets.host(), Options(disjoint=True))
    assert f'call i32 @"{kernel.__name__}.joined.program"' in text
    assert 'getelementptr i8, ptr %"scratch"' not in text


def test_what_has_a_long_buffer_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: SSAValue) -> int:
        return 0

    monkeypatch.setattr("weft.transforms.join_rows._operations", none)
    text = emit_llvm(module_of(dear, float32, (64, 16)), targets.host(), Options(disjoint=True))
    assert 'joined.program"(' in text
    assert 'call i32 @"dear.joined.program"' not in text


@weft.jit
def noted(a: Any, out: Any, HEIGHT: tl.constexpr, STRIDE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr) -> None:
    """Columns in x, rows in y, planes in z, and no masks."""
    rows, columns = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    at = (tl.program_id(2) * HEIGHT + rows[:, None]) * STRIDE + columns[None, :]
    tl.store(out + at, tl.load(a + at) + 1)


@pytest.mark.parametrize("pauses", [False, True])
@pytest.mark.parametrize(
    ("grid", "chunk"),
    sampling.grid(2, [(1, 1, 1), (2, 3, 1), (9, 1, 2), (17, 2, 1), (40, 3, 1), (600, 1, 1)], [1, 5, 8, 11, 16, 1000]),
)
def test_each_program_runs_and_no_other(grid: tuple[int, int, int], chunk: int, pauses: bool) -> None:
    """Beside and below what the programs store, nothing changes."""
    bm, bn = 2, 16
    x, y, z = grid
    a = RNG.integers(0, 1000, (z, bm * y + 1, bn * x + 40)).astype(np.int32)
    out = np.full_like(a, -7)
    handle = noted.compile(a, out, HEIGHT=a.shape[1], STRIDE=a.shape[2], BM=bm, BN=bn)
    enter(handle, (a, out), grid, chunk, pauses=pauses)
    expected = np.full_like(a, -7)
    expected[:, : bm * y, : bn * x] = a[:, : bm * y, : bn * x] + 1
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    ("row", "chunk", "groups"),
    [
        (18, 4, [6, 6, 6]),  # not above 8 programs, which are joined whatever a claim has, and equal
        (40, 9, [8, 8, 8, 8, 8]),
        (40, 19, [14, 14, 12]),
        (40, 20, [40]),  # not two halves
        (41, 20, [41]),
        (42, 20, [14, 14, 14]),
        (18, 16, [18]),
        (18, 1, [6, 6, 6]),
    ],
)
def test_how_a_row_is_cut_into_groups(row: int, chunk: int, groups: list[int]) -> None:
    a = np.zeros((6, row * 16), np.int32)
    out, stored = np.zeros_like(a), list[int]()
    handle = noted.compile(a, out, HEIGHT=6, STRIDE=a.shape[1], BM=2, BN=16)
    enter(handle, (a, out), (row, 3, 1), chunk, pauses=True, paused=lambda: stored.append(int(out.sum()) // (2 * 16)))
    assert stored[: 3 * len(groups)] == list(accumulate(groups * 3))


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("tile", "shape"), sampling.grid(2, [(16, 16), (4, 64), (32, 4)], [(40, 1), (40, 333), (1, 300), (65, 513)])
)
def test_values(tile: tuple[int, int], shape: tuple[int, int], threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    (bm, bn), (m, n) = tile, shape
    pool = executor.Pool(threads)
    monkeypatch.setattr(executor, "pool", lambda: pool)
    a, row = RNG.integers(-99, 99, (m, n)).astype(np.int32), RNG.integers(-9, 9, n).astype(np.int32)
    for kernel, expected in ((copy, a), (scaled, a * (row + 1))):
        out = np.full((m + 1, n), -1, np.int32)
        kernel[(weft.cdiv(m, bm), weft.cdiv(n, bn))](a, out, row, m, n, BM=bm, BN=bn)
        np.testing.assert_array_equal(out[:m], expected)
        assert (out[m] == -1).all()
        out[...], some = -1, weft.cdiv(n, bn) // 2  # fewer programs than the masks let through
        if some:
            kernel[(weft.cdiv(m, bm), some)](a, out, row, m, n, BM=bm, BN=bn)
            np.testing.assert_array_equal(out[:m], np.where(np.arange(n) < some * bn, expected, -1))


# Loops that end with rows.


@weft.jit
def below(x: Any, out: Any, first: Any, n: Any, KIND: tl.constexpr, WIDE: tl.constexpr, N: tl.constexpr) -> None:
    """Copies the elements of each row that a comparison lets through."""
    at = tl.arange(0, 4)[:, None] * N + tl.arange(0, N)[None, :]
    numbers = (first + tl.arange(0, N)).to(WIDE.value)
    if KIND == "lt":
        inside = numbers < n
    elif KIND == "le":
        inside = numbers <= n
    elif KIND == "gt":
        inside = n > numbers
    elif KIND == "ge":
        inside = n >= numbers
    else:
        inside = (numbers < n) & (tl.arange(0, N) <= 300)
    tl.store(out + at, tl.load(x + at, mask=inside[None, :]), mask=inside[None, :])


KINDS: dict[str, Any] = {"lt": np.less, "le": np.less_equal, "gt": np.less, "ge": np.less_equal, "both": np.less}
below_any = weft.jit(do_not_specialize=("first", "n"))(below.fn)
"""`below`, compiled once for all first numbers and bounds."""
BOUNDS = [-(2**31), -1, 0, 1, 16, 31, 32, 33, 500, 511, 512, 513, 2**31 - 1]


@pytest.mark.parametrize("wide", [tl.int32, tl.int64, tl.uint64], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_loops_end_with_rows(kind: str, wide: Any) -> None:
    """By day int32 has kernels of its own for first numbers and bounds of 1 and of multiples of 16."""
    size = 512
    kernel = below if sampling.at_night() or wide is tl.int32 else below_any
    x = RNG.integers(0, 100, (4, size)).astype(np.int32)
    for first in (0, 7) if wide is tl.uint64 else (0, 7, -40):
        for bound in BOUNDS:
            if wide is tl.uint64 and bound < 0:
                continue
            out = np.full((5, size), -1, np.int32)
            kernel[(1,)](x, out, first, bound, KIND=kind, WIDE=wide, N=size)
            numbers = first + np.arange(size)
            inside = KINDS[kind](numbers, bound) & ((np.arange(size) <= 300) | (kind != "both"))
            np.testing.assert_array_equal(out[:4], np.where(inside, x, -1), err_msg=f"{first}, {bound}")
            assert (out[4] == -1).all()


@weft.jit
def far(x: Any, out: Any, n: Any, BEFORE: tl.constexpr, WIDE: tl.constexpr, N: tl.constexpr) -> None:
    """Numbers whose difference from the bound no int64 has."""
    at = tl.arange(0, 4)[:, None] * N + tl.arange(0, N)[None, :]
    inside = tl.arange(0, N).to(WIDE.value) - BEFORE < n
    tl.store(out + at, tl.load(x + at, mask=inside[None, :]), mask=inside[None, :])


@pytest.mark.parametrize(
    ("bound", "before", "wide"),
    [(-(2**63), 16, tl.int64), (2**63 - 1, 16, tl.int64), (2**63 + 5, 0, tl.uint64)],
    ids=str,
)
def test_bounds_at_the_ends_of_int64(bound: int, before: int, wide: Any) -> None:
    x, out = RNG.integers(0, 100, (4, 512)).astype(np.int32), np.full((4, 512), -1, np.int32)
    far[(1,)](x, out, bound, BEFORE=before, WIDE=wide, N=512)
    np.testing.assert_array_equal(out, x if bound > 0 else np.full_like(x, -1))


@weft.jit
def of_two_ends(x: Any, out: Any, other: Any, n: Any, m: Any, N: tl.constexpr) -> None:
    """Stores of one loop that end at different places."""
    at, columns = tl.arange(0, 4)[:, None] * N + tl.arange(0, N)[None, :], tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    tl.store(out + at, v, mask=(columns < n) & (at >= 0))
    tl.store(other + at, v + 1, mask=(columns < m) & (at >= 0))


@pytest.mark.parametrize(("n", "m"), [(0, 0), (0, 512), (40, 400), (400, 40), (512, 1)])
def test_the_longest_row_of_several_stores(n: int, m: int) -> None:
    x = RNG.integers(0, 100, (4, 512)).astype(np.int32)
    out, other = np.full_like(x, -1), np.full_like(x, -1)
    of_two_ends[(1,)](x, out, other, n, m, N=512)
    np.testing.assert_array_equal(out, np.where(np.arange(512) < n, x, -1))
    np.testing.assert_array_equal(other, np.where(np.arange(512) < m, x + 1, -1))

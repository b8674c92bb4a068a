"""In which order a thread runs the programs of a grid, and how far accesses move from program to program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

import weft
import weft.language as tl
from weft import target as targets
from weft.codegen import lay_out
from weft.codegen.cpu.order import FAR, steps_of, y_first
from weft.dtypes import float32, int32
from weft.frontend import Argument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.runtime import executor

pytestmark = pytest.mark.jit
jit = KernelFunction


@jit
def rows_in_x(a: Any, out: Any, stride: Any) -> None:
    m, n = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 32 + tl.arange(0, 32)
    at = m[:, None] * stride + n[None, :]
    tl.store(out + at, tl.load(a + at))


@jit
def rows_in_y(a: Any, out: Any, stride: Any) -> None:
    m, n = tl.program_id(1) * 16 + tl.arange(0, 16), tl.program_id(0) * 32 + tl.arange(0, 32)
    at = m[:, None] * stride + n[None, :]
    tl.store(out + at, tl.load(a + at))


@jit
def transposed(a: Any, out: Any, stride: Any) -> None:
    m, n = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 32 + tl.arange(0, 32)
    tl.store(out + n[None, :] * stride + m[:, None], tl.load(a + m[:, None] * stride + n[None, :]))


@jit
def known_strides(a: Any, out: Any, stride: Any) -> None:
    m, n = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 32 + tl.arange(0, 32)
    at = m[:, None] * 512 + n[None, :]
    tl.store(out + at, tl.load(a + at))


@jit
def with_bias(a: Any, out: Any, stride: Any) -> None:
    """The bias moves with y alone, and says nothing."""
    m, n = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 32 + tl.arange(0, 32)
    at = m[:, None] * stride + n[None, :]
    tl.store(out + at, tl.load(out + at) + tl.load(a + n)[None, :])


@jit
def in_a_loop(a: Any, out: Any, stride: Any) -> None:
    m, n = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 32 + tl.arange(0, 32)
    total = tl.zeros((16, 32), tl.float32)
    for k in range(tl.program_id(1) * 4, stride):
        total += tl.load(a + m[:, None] * stride + n[None, :] + k)
    tl.store(out + m[:, None] * stride + n[None, :], total)


@jit
def gathered(a: Any, out: Any, stride: Any) -> None:
    """Where the load goes is not known; the store decides."""
    m, n = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 32 + tl.arange(0, 32)
    row = tl.load(a + m).to(tl.int32)
    tl.store(out + m[:, None] * stride + n[None, :], tl.load(a + row[:, None] * stride + n[None, :]))


@jit
def one_axis(a: Any, out: Any, stride: Any) -> None:
    n = tl.program_id(1) * 32 + tl.arange(0, 32)
    tl.store(out + n, tl.load(a + n * stride))


@jit
def multiplied(a: Any, out: Any, stride: Any) -> None:
    m, n, k = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 16 + tl.arange(0, 16), tl.arange(0, 16)
    left, right = tl.load(a + m[:, None] * stride + k[None, :]), tl.load(a + k[:, None] * stride + n[None, :])
    tl.store(out + m[:, None] * stride + n[None, :], tl.dot(left, right))


@jit
def atomic(a: Any, out: Any, stride: Any) -> None:
    m, n = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 32 + tl.arange(0, 32)
    at = m[:, None] * stride + n[None, :]
    tl.atomic_add(out + at, tl.load(a + at))


@jit
def printing(a: Any, out: Any, stride: Any) -> None:
    m, n = tl.program_id(0) * 16 + tl.arange(0, 16), tl.program_id(1) * 32 + tl.arange(0, 32)
    at = m[:, None] * stride + n[None, :]
    tl.store(out + at, tl.load(a + at))
    tl.device_print("here", tl.program_id(0))


def laid_out(kernel: KernelFunction) -> func.FuncOp:
    pointer = PointerArgument(float32)
    signature: dict[str, Argument] = {"a": pointer, "out": pointer, "stride": ScalarArgument(int32)}
    module = build_module(kernel, signature)
    lay_out(module, targets.host(), Options())
    return next(op for op in module.ops if isinstance(op, func.FuncOp))


ORDERS = {
    rows_in_x: True,
    rows_in_y: False,
    transposed: False,
    known_strides: True,
    with_bias: True,
    in_a_loop: True,
    gathered: True,
    one_axis: False,
    multiplied: False,
    atomic: False,
    printing: False,
}


@pytest.mark.parametrize("kernel", ORDERS, ids=lambda k: k.name)
def test_which_axis_is_first(kernel: KernelFunction) -> None:
    assert y_first(laid_out(kernel), Options()) == ORDERS[kernel]


def test_checked_kernels_run_x_first() -> None:
    """The first access that fails is that of the lowest program."""
    assert not y_first(laid_out(rows_in_x), Options(checked=True))


STEPS = {
    rows_in_x: [(FAR, 32), (FAR, 32)],
    rows_in_y: [(32, FAR), (32, FAR)],
    transposed: [(FAR, 32), (16, FAR)],
    known_strides: [(16 * 512, 32), (16 * 512, 32)],
    with_bias: [(FAR, 32), (0, 32), (FAR, 32)],
    in_a_loop: [(FAR, 36), (FAR, 32)],
    gathered: [(16, 0), (None, None), (FAR, 32)],
    one_axis: [(0, FAR), (0, 32)],
}


@pytest.mark.parametrize("kernel", STEPS, ids=lambda k: k.name)
def test_how_far_accesses_move(kernel: KernelFunction) -> None:
    """In x and in y, by hand: tiles of 16 rows and 32 columns; a product with ``stride`` is far."""
    assert steps_of(laid_out(kernel)) == STEPS[kernel]


@weft.jit
def numbered(seen: Any, counter: Any, out: Any, stride: Any) -> None:
    """Notes the ids in the order in which programs run, and stores a tile whose rows are in x."""
    at = tl.load(counter)
    tl.store(counter, at + 1)
    for axis in tl.static_range(3):
        tl.store(seen + 3 * at + axis, tl.program_id(axis))
    m, n = tl.program_id(0) * 2 + tl.arange(0, 2), tl.program_id(1) * 4 + tl.arange(0, 4)
    tl.store(out + m[:, None] * stride + n[None, :], tl.program_id(2))


@pytest.mark.parametrize("grid", [(1, 1, 1), (3, 1, 1), (1, 3, 1), (2, 3, 1), (3, 2, 2), (2, 1, 3)])
def test_every_program_runs_once_y_first(grid: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    pool = executor.Pool(1)
    monkeypatch.setattr(executor, "pool", lambda: pool)
    total = int(np.prod(grid))
    counter, seen = np.zeros(1, np.int32), np.full((total, 3), -1, np.int32)
    numbered[grid](seen, counter, np.zeros(2 * 3 * 4 * 3, np.int32), 12)
    x, y, z = (range(size) for size in grid)
    assert seen.tolist() == [[i, j, k] for k in z for i in x for j in y]

"""Dot nests of several loops, whose iterations are counted through, against NumPy on whole numbers, where every sum is exact."""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import scf
from xdsl.ir import Operation

import weft
import weft.language as tl
from weft import target as targets
from weft.ir.cpu import MultiplyOp
from weft.runtime import compiler

Array = NDArray[Any]


def whole(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Array:
    """Small whole numbers."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def loops_around(kernel: Any, *arguments: Any, **constants: Any) -> int | None:
    """In how many loops the product stands; None where a dot is none of panels whose depth is known at run time."""
    handle = kernel.compile(*arguments, **constants)
    module = compiler.laid_out(handle.kernel, handle.signature, handle.options, targets.host())
    products = [op for op in module.walk() if isinstance(op, MultiplyOp)]
    if not products:
        return None
    loops, above = 0, products[0].parent_op()
    while isinstance(above, Operation):
        loops, above = loops + isinstance(above, scf.ForOp), above.parent_op()
    return loops


@weft.jit
def windows(
    a_ptr: Any, b_ptr: Any, c_ptr: Any, first: Any, R: Any, S: Any, C: Any, width: Any,
    STEP: tl.constexpr, CARRIED: tl.constexpr, ACC: tl.constexpr, M: tl.constexpr,
) -> None:  # fmt: skip
    """Sums over r, s and c. Offsets come from the loops' counters or, CARRIED, from scalars that each loop moves on."""
    m, n, k = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, 16), tl.arange(0, 16)
    acc = tl.zeros((M, 16), ACC)
    row = first * width * C
    for r in range(first, R, STEP):
        column = row
        for s in range(S):
            place = column
            for c in range(0, C, 16):
                at = (place if CARRIED else (r * width + s) * C + c) + k
                left = c + k < C
                a = tl.load(a_ptr + m[:, None] * (R * width * C) + at[None, :], mask=left[None, :], other=0)
                b = tl.load(b_ptr + at[:, None] * 16 + n[None, :], mask=left[:, None], other=0)
                acc = tl.dot(a, b, acc)
                place += 16
            column += C
        row += STEP * width * C
    tl.store(c_ptr + m[:, None] * 16 + n[None, :], acc)


SIZES = {
    "one panel": (3, 3, 64),
    "the last steps are cut off": (2, 3, 40),
    "panels end within rows": (12, 5, 70),
    "one step each": (5, 4, 16),
    "one iteration outside": (1, 4, 72),
    "none outside": (0, 3, 32),
    "none between": (3, 0, 32),
    "none inside": (3, 2, 0),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("carried", [False, True])
def test_three_loops(size: str, carried: bool) -> None:
    """The middle one goes through some of what the outer one steps over."""
    rows, columns, channels = SIZES[size]
    width, m = columns + 1, 32
    a, b = whole((m, rows, width, channels)), whole((rows, width, channels, 16), seed=1)
    for first, step in ((1, 2), (0, 1)):
        out = np.full((m, 16), 99, np.float32)
        arguments = (a, b, out, first, rows, columns, channels, width)
        windows[(2,)](*arguments, STEP=step, CARRIED=carried, ACC=tl.float32, M=16)
        part = slice(first, rows, step), slice(0, columns)
        assert np.array_equal(out, np.einsum("mrsc,rscn->mn", a[:, *part], b[part]))
    assert loops_around(windows, *arguments, STEP=1, CARRIED=carried, ACC=tl.float32, M=16) == 1


@pytest.mark.parametrize("name", ["bfloat16", "int8", "float64"])
def test_narrow_operands(name: str) -> None:
    """An instruction that takes deeper tiles than a step gets zeros after the last step, not after each row's."""
    dtype, sums = {
        "bfloat16": (ml_dtypes.bfloat16, np.float32), "int8": (np.int8, np.int32), "float64": (np.float64, np.float64)
    }[name]  # fmt: skip
    rows, columns, channels, m = 3, 3, 48, 64
    a, b = whole((m, rows, columns, channels), dtype), whole((rows, columns, channels, 16), dtype, seed=1)
    out = np.full((m, 16), 99, sums)
    acc = {"int8": tl.int32, "float64": tl.float64}.get(name, tl.float32)
    arguments = (a, b, out, 0, rows, columns, channels, columns)
    windows[(2,)](*arguments, STEP=1, CARRIED=False, ACC=acc, M=32)
    exact = np.einsum("mrsc,rscn->mn", a.astype(np.float64), b.astype(np.float64))
    assert np.array_equal(out, exact)
    assert loops_around(windows, *arguments, STEP=1, CARRIED=False, ACC=acc, M=32) == 1


@weft.jit
def known(a_ptr: Any, b_ptr: Any, c_ptr: Any, d_ptr: Any, C: tl.constexpr, R: tl.constexpr) -> None:
    """Loops of a known length; two sums, which the loops carry in different orders, and a scalar that is read after them."""
    i, k = tl.arange(0, 16), tl.arange(0, 16)
    up, down = tl.zeros((16, 16), tl.float32), tl.full((16, 16), 3, tl.float32)
    seen = 5
    for r in range(R):
        scale = tl.load(d_ptr + r)
        for c in range(0, C, 16):
            at = r * C + c + k
            a = tl.load(a_ptr + i[:, None] * (R * C) + at[None, :])
            down = tl.dot(a * scale, tl.load(b_ptr + at[:, None] * 32 + 16 + i[None, :]), down)
            up = tl.dot(a, tl.load(b_ptr + at[:, None] * 32 + i[None, :]), up)
        seen += 4
    tl.store(c_ptr + i[:, None] * 32 + i[None, :], up)
    tl.store(c_ptr + i[:, None] * 32 + 16 + i[None, :], down * seen)


@pytest.mark.parametrize(("r", "c"), [(3, 32), (1, 16), (0, 16), (3, 688), (9, 256)])
def test_loops_of_known_lengths(r: int, c: int) -> None:
    """Where one panel has all, there is no loop. A load between the loops, by an operand, is one of the outer iteration."""
    a, b, scales = whole((16, r * c)), whole((r * c, 32), seed=1), np.arange(1, 10, dtype=np.float32)
    out = np.full((16, 32), 99, np.float32)
    known[(1,)](a, b, out, scales, C=c, R=r)
    scaled = a * np.repeat(scales[:r], c)
    expected = np.hstack([a @ b[:, :16], (scaled @ b[:, 16:] + 3) * (5 + 4 * r)])
    assert np.array_equal(out, expected)


@weft.jit
def steps_grow(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    """An inner loop moves on by what the outer one computes."""
    i = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    for r in range(n):
        at = r + i
        for _ in range(n):
            a = tl.load(a_ptr + i[:, None] * 64 + at[None, :])
            acc = tl.dot(a, tl.load(b_ptr + at[:, None] * 16 + i[None, :]), acc)
            at += 2 * r
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], acc)


def test_growth_that_an_outer_loop_computes() -> None:
    a, b, out = whole((16, 64)), whole((64, 16), seed=1), np.zeros((16, 16), np.float32)
    steps_grow[(1,)](a, b, out, 4)
    starts = [r + 2 * r * c for r in range(4) for c in range(4)]
    assert np.array_equal(out, sum(a[:, at : at + 16] @ b[at : at + 16] for at in starts))
    assert loops_around(steps_grow, a, b, out, 4) == 1


@weft.jit
def shapes_differ(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any, MORE: tl.constexpr) -> None:
    """Programs whose loops have other lengths, over one right operand."""
    i, pid = tl.arange(0, 16), tl.program_id(0)
    acc = tl.zeros((16, 16), tl.float32)
    for r in range(n + pid * MORE):
        for c in range(n + 1 - pid):
            a = tl.load(a_ptr + (pid * 16 + i)[:, None] * 256 + ((r * 4 + c) * 16 + i)[None, :])
            acc = tl.dot(a, tl.load(b_ptr + ((r * 4 + c) * 16 + i)[:, None] * 16 + i[None, :]), acc)
    tl.store(c_ptr + (pid * 16 + i)[:, None] * 16 + i[None, :], acc)


@pytest.mark.parametrize("more", [0, 1])
def test_programs_whose_loops_have_other_shapes(more: int) -> None:
    """Of 2 x 3 and 3 x 2 iterations, or 2 x 2: a panel of one is none of the other's."""
    a, b, out = whole((2, 16, 4, 4, 16)), whole((4, 4, 16, 16), seed=1), np.zeros((2, 16, 16), np.float32)
    shapes_differ[(2,)](a, b, out, 2, MORE=more)
    for pid, (rows, columns) in enumerate(((2, 3), (2 + more, 2))):
        part = slice(0, rows), slice(0, columns)
        assert np.array_equal(out[pid], np.einsum("mrck,rckn->mn", a[pid][:, *part], b[part]))
    assert loops_around(shapes_differ, a, b, out, 2, MORE=more) == 1


@weft.jit
def swaps(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    up, down = tl.zeros((16, 16), tl.float32), tl.zeros((16, 16), tl.float32)
    for r in range(n):
        for c in range(n):
            a = tl.load(a_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :])
            b = tl.load(b_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :])
            up = tl.dot(a, b, up)
            down = tl.dot(a, b * 2, down)
        up, down = down, up
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], up)


@weft.jit
def lengths_differ(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    for r in range(n):
        for c in range(r + 1):
            a = tl.load(a_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :])
            acc = tl.dot(a, tl.load(b_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :]), acc)
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], acc)


@weft.jit
def goes_on(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    at = 0
    for _ in range(n):
        for _ in range(n):
            a = tl.load(a_ptr + at * 256 + i[:, None] * 16 + i[None, :])
            acc = tl.dot(a, tl.load(b_ptr + at * 256 + i[:, None] * 16 + i[None, :]), acc)
            at += 1
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], acc)


@weft.jit
def scales_between(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    for r in range(n):
        for c in range(n):
            a = tl.load(a_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :])
            acc = tl.dot(a, tl.load(b_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :]), acc)
        acc = acc * 2
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], acc)


@weft.jit
def adds_parts(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    total = tl.zeros((16, 16), tl.float32)
    for r in range(n):
        part = tl.zeros((16, 16), tl.float32)
        for c in range(n):
            a = tl.load(a_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :])
            part = tl.dot(a, tl.load(b_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :]), part)
        total += tl.maximum(part, 0)
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], total)


@weft.jit
def doubles(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    factor = 1
    for r in range(n):
        for c in range(n):
            a = tl.load(a_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :])
            acc = tl.dot(a * factor, tl.load(b_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :]), acc)
        factor *= 2
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], acc)


@weft.jit
def begins_again(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    for r in range(n):
        here = tl.zeros((16, 16), tl.float32) + r
        for c in range(n):
            a = tl.load(a_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :])
            here = tl.dot(a, tl.load(b_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :]), here)
        acc = here
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], acc)


@weft.jit
def one_right_operand(a_ptr: Any, b_ptr: Any, c_ptr: Any, n: Any) -> None:
    i = tl.arange(0, 16)
    acc = tl.zeros((16, 16), tl.float32)
    for r in range(n):
        for c in range(n):
            a = tl.load(a_ptr + (r * n + c) * 256 + i[:, None] * 16 + i[None, :])
            acc = tl.dot(a, tl.load(b_ptr + c * 256 + i[:, None] * 16 + i[None, :]), acc)
    tl.store(c_ptr + i[:, None] * 16 + i[None, :], acc)


def parts(a: Array, b: Array) -> Array:
    return np.einsum("rcij,rcjk->rcik", a, b)


APART: dict[str, tuple[Any, Any]] = {
    "lengths differ": (lengths_differ, lambda p: sum(p[r, : r + 1].sum(0) for r in range(3))),
    "sums are swapped": (swaps, lambda p: 2 * p[0].sum(0) + p[1].sum(0) + 2 * p[2].sum(0)),
    "a scalar goes on": (goes_on, lambda p: p.sum((0, 1))),
    "sums are scaled between": (scales_between, lambda p: 8 * p[0].sum(0) + 4 * p[1].sum(0) + 2 * p[2].sum(0)),
    "parts are added": (adds_parts, lambda p: np.maximum(p.sum(1), 0).sum(0)),
    "a scalar doubles": (doubles, lambda p: (p.sum(1) * np.array([1, 2, 4])[:, None, None]).sum(0)),
    "the right operand stays": (one_right_operand, lambda p: p.sum((0, 1))),
    "sums begin again": (begins_again, lambda p: p[2].sum(0) + 2),
}


@pytest.mark.parametrize("name", APART)
def test_loops_that_are_no_nest_with_the_inner_one(name: str) -> None:
    kernel, expected = APART[name]
    a, b, c = whole((3, 3, 16, 16)), whole((3, 3, 16, 16), seed=1), np.zeros((16, 16), np.float32)
    if kernel is one_right_operand:
        b[1:] = b[0]
    kernel[(1,)](a, b, c, 3)
    assert np.array_equal(c, expected(parts(a, b)))
    assert loops_around(kernel, a, b, c, 3) == 2

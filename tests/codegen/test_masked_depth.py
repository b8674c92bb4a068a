"""Nests whose masks make the ends of both operands zeros: which part of the last step is multiplied, and that
nothing else changes."""

# pyright: reportIndexIssue=false, reportOperatorIssue=false, reportAssignmentType=false

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue

import weft
import weft.language as tl
from sampling import at_night
from weft import dtypes
from weft.codegen import lay_out
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.ir.cpu import MultiplyOp
from weft.options import Options
from weft.target import CpuTarget

pytestmark = pytest.mark.jit

Array = NDArray[Any]

FORMS = ("less is left", "offsets", "strided", "one more step", "both", "turned")
"""How the masks are written: ``k < K - start``, ``start + k < K``, in a loop that counts elements, with a step behind the end,
with rows and columns, and of a right operand whose columns are contiguous."""


@weft.jit
def product(
    a: Any,
    b: Any,
    c: Any,
    K: Any,
    K2: Any,
    BK: tl.constexpr,
    FORM: tl.constexpr,
    OTHER: tl.constexpr,
    ONE: tl.constexpr,
    START: tl.constexpr,
) -> None:
    """16 rows of 32 columns; rows of the right operand from K2 on are masked, or none with ONE. Left rows have 640 numbers."""
    m, n, k = tl.arange(0, 16), tl.arange(0, 32), tl.arange(0, BK)
    total = tl.full((16, 32), START, tl.float32)
    row, column = (1, 640) if FORM == "turned" else (32, 1)
    if FORM == "strided":
        for start in range(0, K, BK):
            x = tl.load(a + m[:, None] * 640 + (start + k)[None, :], mask=(start + k < K)[None, :], other=OTHER)
            y = tl.load(b + (start + k)[:, None] * 32 + n[None, :], mask=(start + k < K2)[:, None], other=0)
            total = tl.dot(x, y, total)
    else:
        for step in range(tl.cdiv(K, BK) + (FORM == "one more step")):
            left, right = k < K - step * BK, k < K2 - step * BK
            if FORM == "offsets":
                left, right = step * BK + k < K, step * BK + k < K2
            left, right = left[None, :], right[:, None]
            if FORM == "both":
                left, right = left & (m < 15)[:, None], (n < 31)[None, :] & right
            x = tl.load(a + m[:, None] * 640 + (step * BK + k)[None, :], mask=left, other=OTHER)
            if ONE:
                y = tl.load(b + (step * BK + k)[:, None] * row + n[None, :] * column)
            else:
                y = tl.load(b + (step * BK + k)[:, None] * row + n[None, :] * column, mask=right, other=0)
            total = tl.dot(x, y, total)
    tl.store(c + m[:, None] * 32 + n[None, :], total)


def depth_of(
    form: str, block: int, other: float = 0.0, *, one: bool = False, dtype: dtypes.DType = dtypes.float32
) -> Callable[[int, int], int]:
    """The depth that the first panels are multiplied over, as a function of K and K2, by the ops that compute it."""
    types: dict[str, Argument] = {
        **dict.fromkeys("ab", PointerArgument(dtype)),
        "c": PointerArgument(dtypes.float32),
        **dict.fromkeys(("K", "K2"), ScalarArgument(dtypes.int32)),
        **{"BK": ConstantArgument(block), "FORM": ConstantArgument(form)},
        **{"OTHER": ConstantArgument(other), "ONE": ConstantArgument(one), "START": ConstantArgument(0.0)},
    }
    module = build_module(KernelFunction(product.fn), types)
    lay_out(module, CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f", 512), Options(disjoint=True))
    (multiply,) = (op for op in module.walk() if isinstance(op, MultiplyOp))
    return lambda k, k2: value_of(multiply.depth, {"K": k, "K2": k2})


KINDS: dict[str, Callable[[int, int], int]] = {
    **{
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "and": lambda a, b: a & b,
        "min": min,
        "max": max,
    },
    "div": lambda a, b: int(a / b),
}


def value_of(value: SSAValue, arguments: Mapping[str, int]) -> int:
    """A scalar of integers that do not wrap around; counters of loops are where these begin."""
    op = value.owner
    match op:
        case Block():
            loop = op.parent_op()
            return value_of(loop.lb, arguments) if isinstance(loop, scf.ForOp) else arguments[value.name_hint or ""]
        case tile.ConstantOp():
            return int(op.number)
        case tile.CastOp():
            return value_of(op.source, arguments)
        case tile.BinaryOp():
            return KINDS[op.kind.data](value_of(op.lhs, arguments), value_of(op.rhs, arguments))
        case _:
            raise AssertionError(f"unexpected {op}")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("block", [16, 32])
def test_the_end_of_the_last_step(form: str, block: int) -> None:
    """All elements of both operands and a zero behind them, in fours; or all of the step. Of two ends the later one counts."""
    depth = depth_of(form, block)
    for k in range(1, 200):
        for k2 in {k, 1, k - 1, min(k + 5, -(-k // block) * block)}:
            steps = -(-k // block) + (form == "one more step")
            before, there = (steps - 1) * block, max(k, k2) - (steps - 1) * block
            some = max(there, 0) // 4 * 4 + 4
            assert depth(k, k2) == before + min(block, some), (k, k2)


def test_operands_that_are_cast() -> None:
    """To float32, in which they are multiplied."""
    assert [depth_of("less is left", 32, dtype=dtypes.float16)(k, k) for k in (33, 64, 65)] == [36, 64, 68]


def test_steps_that_are_multiplied_as_a_whole() -> None:
    """Where one operand may have other numbers than zeros behind the end."""
    assert [depth_of("less is left", 32)(k, k) for k in (33, 64, 65)] == [36, 64, 68]
    assert [depth_of("less is left", 32, 1.0)(k, k) for k in (33, 64, 65)] == [64, 64, 96]
    assert [depth_of("less is left", 32, one=True)(k, k) for k in (33, 64, 65)] == [64, 64, 96]


product_of_any_depth = weft.jit(do_not_specialize=("K", "K2"))(product.fn)
"""`product`, compiled once for all depths."""


def run(a: Array, b: Array, k: int, k2: int, kernel: Any = product, **constants: Any) -> Array:
    out = np.full((16, 32), 99, np.float32)
    kernel[(1,)](
        a, b, out, k, k2, **{"BK": 32, "FORM": "less is left", "OTHER": 0.0, "ONE": False, "START": 0.0, **constants}
    )
    return out


@pytest.mark.parametrize("form", FORMS)
def test_sums_of_any_depth(form: str) -> None:
    """Whole numbers, behind which memory has NaNs. By day the first forms have kernels of their own for depths of 1 and of
    whole steps."""
    kernel = product if at_night() or form in FORMS[:2] else product_of_any_depth
    rng = np.random.default_rng(1)
    for k, k2 in ((1, 1), (31, 31), (32, 32), (33, 33), (34, 40), (40, 34), (63, 64), (577, 577), (600, 590)):
        a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((16, 640), (640, 32)))
        a[:, k:], b[k2:] = np.nan, np.nan
        both = min(k, k2)
        expected = a[:, :both].astype(np.float64) @ b[:both].astype(np.float64)
        out = run(a, np.ascontiguousarray(b.T) if form == "turned" else b, k, k2, kernel, FORM=form)
        there = (slice(15), slice(31)) if form == "both" else (slice(16), slice(32))
        assert np.array_equal(out[there], expected[there]), (k, k2)


def test_what_zeros_do_to_sums() -> None:
    """A sum of -0.0 to which products of -0.0 are added: a zero behind the end makes a 0.0 of it. Where no step is cut off there
    is none. Zeros by infinities are NaNs, where only one operand is masked."""
    a, b = np.zeros((16, 640), np.float32), np.full((640, 32), -1, np.float32)
    for k in (1, 4, 28, 31, 32, 33, 36, 60, 64):
        assert (np.signbit(run(a, b, k, k, START=-0.0)) == (k % 32 == 0)).all(), k
    b[40:] = np.inf
    assert np.isnan(run(a, b, 40, 40, ONE=True)).all()

"""Atomics of floats by blocks of 16 bytes: which kernels have them, what they leave alone, and that none is lost."""

# pyright: reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import weft
import weft.language as tl
from sampling import at_night, grid
from weft import dtypes
from weft.codegen import emit_assembly, emit_llvm
from weft.dtypes import DType
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.runtime import executor
from weft.target import CpuTarget

pytestmark = pytest.mark.jit


@weft.jit
def update(x: Any, out: Any, first: Any, n: Any, KIND: tl.constexpr, OLD: tl.constexpr, N: tl.constexpr) -> None:
    """Programs meet at the same row. Memory shared with other processes is never updated plainly."""
    i = first + tl.arange(0, N)
    value = tl.load(x + tl.program_id(0) * N + tl.arange(0, N))
    if KIND == "add":
        old = tl.atomic_add(out + i, value, mask=i < n, sem="relaxed", scope="sys")
    elif KIND == "max":
        old = tl.atomic_max(out + i, value, mask=i < n, sem="relaxed", scope="sys")
    else:
        old = tl.atomic_xchg(out + i, value, mask=i < n, sem="relaxed", scope="sys")
    if OLD:
        tl.store(x + tl.program_id(0) * N + tl.arange(0, N), old)


def module_and_target(level: str, dtype: DType, kind: str = "add", *, old: bool = False) -> tuple[ModuleOp, CpuTarget]:
    """The kernel, and a level of x86-64."""
    signature: dict[str, Argument] = {"x": PointerArgument(dtype), "out": PointerArgument(dtype)}
    signature |= {name: ScalarArgument(dtypes.int32) for name in ("first", "n")}
    signature |= {name: ConstantArgument(value) for name, value in (("KIND", kind), ("OLD", old), ("N", 64))}
    target = CpuTarget("x86_64-unknown-linux-gnu", level, "+cx16" if level != "x86-64" else "", 256)
    return build_module(KernelFunction(update.fn), signature), target


def text_of(level: str, dtype: DType, kind: str = "add", *, old: bool = False, checked: bool = False) -> str:
    """The kernel in LLVM IR."""
    return emit_llvm(*module_and_target(level, dtype, kind, old=old), Options(checked=checked))


def test_which_atomics_have_blocks() -> None:
    """Those of floats whose old values nothing uses, on machines that swap 16 bytes."""
    for dtype in (dtypes.float32, dtypes.float64):
        for kind in ("add", "max"):
            assert " i128 " in text_of("x86-64-v2", dtype, kind)
    assert " i128 " not in text_of("x86-64", dtypes.float32)
    assert " i128 " not in text_of("x86-64-v2", dtypes.int32)
    assert " i128 " not in text_of("x86-64-v2", dtypes.float32, "xchg")
    assert " i128 " not in text_of("x86-64-v2", dtypes.float32, old=True)
    assert " i128 " not in text_of("x86-64-v2", dtypes.float32, checked=True)


def test_a_block_is_one_instruction() -> None:
    """No function of a library, which kernels are not linked with."""
    text = emit_assembly(*module_and_target("x86-64-v2", dtypes.float32), Options())
    assert "cmpxchg16b" in text
    assert "__" not in text


update_anywhere = weft.jit(do_not_specialize=("first", "n"))(update.fn)
"""`update`, compiled once for all places where rows begin and end."""


@pytest.mark.parametrize(
    ("kind", "dtype", "shift", "first", "n"),
    grid(3, ["add", "max"], [np.float32, np.float64], [0, 1, 2, 3, 4], [0, 1, 8], [0, 1, 3, 4, 60, 63, 64, 70]),
)
def test_values(kind: str, dtype: Any, shift: int, first: int, n: int) -> None:
    """Rows that begin anywhere, and masks that end anywhere; what is before, behind and masked keeps its bits. By day sums
    of float32 have kernels of their own for first places and ends of 1 and of multiples of 16."""
    size, programs = 64, 3
    rng = np.random.default_rng(n)
    x = rng.integers(-50, 50, (programs, size)).astype(dtype)
    memory = rng.integers(-50, 50, 120).astype(dtype)
    memory[80:] = np.nan  # behind what any mask lets through
    expected = memory.copy()
    out = memory[shift:]
    kernel = update if at_night() or (kind == "add" and dtype is np.float32) else update_anywhere
    kernel[(programs,)](x, out, first, n, KIND=kind, OLD=False, N=size)
    combine = np.add if kind == "add" else np.maximum
    many = max(0, min(size, n - first))
    for row in x:
        part = expected[shift + first : shift + first + many]
        part[...] = combine(part, row[:many])
    np.testing.assert_array_equal(memory.view(np.uint8), expected.view(np.uint8))


@weft.jit
def several(x: Any, out: Any, rows: Any, n: Any, PROGRAMS: tl.constexpr, N: tl.constexpr) -> None:
    """Each row is added as it comes; half of the programs begin one element later, where no block is whole."""
    later = tl.program_id(0) % 2
    i = later + tl.arange(0, N)
    for row in range(tl.program_id(0), rows, PROGRAMS):
        tl.atomic_add(out + i, tl.load(x + row * n + i, mask=i < n, other=0.0), mask=i < n, sem="relaxed")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_lose_no_update(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of blocks and of the single elements of other threads."""
    pool = executor.Pool(4)
    monkeypatch.setattr(executor, "pool", lambda: pool)
    programs, rows, n = 16, 2000, 100
    x = np.random.default_rng(0).integers(-9, 9, (rows, n)).astype(dtype)
    expected = np.zeros(n)
    for row in range(rows):
        later = row % programs % 2
        expected[later:] += x[row, later:]
    for _ in range(5):
        out = np.zeros(n, dtype)
        several[(programs,)](x, out, rows, n, PROGRAMS=programs, N=128)
        np.testing.assert_array_equal(out, expected)

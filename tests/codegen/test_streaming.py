"""Stores past the caches: the same bits as plain ones, only where nobody can see the order, from the right size on."""

# pyright: reportUnnecessaryComparison=false, reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import weft.language as tl
from sampling import grid
from synchronised import CASES
from weft import dtypes
from weft import target as targets
from weft.codegen import emit_assembly, emit_llvm
from weft.codegen.cpu import streaming as rule
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget, architecture

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit
jit = KernelFunction

LINUX = "x86_64-unknown-linux-gnu"
SMALL = CpuTarget(LINUX, "x86-64", "+sse2", 128, tuning=("streaming-stores",), cache=1)
"""A machine whose cache one element exceeds."""


@pytest.fixture(params=["native", *targets.X86_LEVELS])
def streaming(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels are compiled for a level, and stream in any launch, rows of any length."""
    monkeypatch.setattr(rule, "SHORT_ROW", 0)
    triple = llvm.get_process_triple()
    if architecture(triple) != "x86_64":
        pytest.skip("stores stream on x86-64 only")
    chosen, present = targets.host(), frozenset(name for name, here in llvm.get_host_cpu_features().items() if here)
    if request.param != "native":
        try:
            chosen = targets.level(request.param, triple, present)
        except ValueError as lacks:
            pytest.skip(f"this CPU does not run code for the level: {lacks}")
    chosen = replace(chosen, tuning=("streaming-stores",), cache=1)
    monkeypatch.setattr(targets, "host", lambda: chosen)


@jit
def add(x: Any, y: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@jit
def transposed(x: Any, out: Any, m: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    tile = tl.load(x + rows[:, None] * n + columns[None, :], mask=(rows < m)[:, None] & (columns < n)[None, :])
    inside = (columns < n)[:, None] & (rows < m)[None, :]
    tl.store(out + columns[:, None] * m + rows[None, :], tl.trans(tile), mask=inside)


@jit
def looped(x: Any, out: Any, last: Any, N: tl.constexpr) -> None:
    """Stores in a loop, one of which is stored over."""
    base, i = tl.program_id(0) * 4 * N, tl.arange(0, N)
    for k in range(4):
        tl.store(out + base + k * N + i, tl.load(x + base + k * N + i) * 2)
        tl.store(last + tl.program_id(0) * N + i, tl.load(x + base + k * N + i))


@pytest.mark.parametrize(("dtype", "off"), grid(3, ["float32", "float64", "float16", "uint8", "bool"], [0, 1, 4, 16]))
def test_sums_have_equal_bits(streaming: None, differ: Differential, dtype: str, off: int) -> None:
    """Arrays that begin on a line, beside it, and beside a multiple of 16 bytes; a tail; what lies behind the end stays."""
    n = 1000
    x, y, out = (np.zeros(n + 96, dtype) for _ in range(3))
    x[:], y[:] = (np.random.default_rng(seed).integers(0, 50, n + 96) for seed in (1, 2))
    start = -out.ctypes.data // out.itemsize % 64 + off
    found = out[start : start + n + 7]
    differ(add, grid=(8,), promises=(True,), x=x, y=y, out=found, n=np.int32(n), N=128)


@pytest.mark.parametrize(("m", "n"), [(64, 64), (61, 75), (36, 132)])
def test_transposes_have_equal_bits(streaming: None, differ: Differential, m: int, n: int) -> None:
    """Rows that begin on lines, anywhere, and at multiples of 16 bytes alone."""
    x = np.random.default_rng(0).standard_normal((m, n), np.float32)
    grid, out = (-(-m // 32), -(-n // 16)), np.zeros((n, m), np.float32)
    differ(transposed, grid=grid, promises=(True,), x=x, out=out, m=np.int32(m), n=np.int32(n), M=32, N=16)


def test_stores_over_stores_have_equal_bits(streaming: None, differ: Differential) -> None:
    x = np.arange(4096, dtype=np.float32)
    last = np.zeros(1024, np.float32)
    differ(looped, grid=(8,), promises=(True,), x=x, out=np.zeros_like(x), last=last, N=128)


# ---- which stores stream --------------------------------------------------------------------------------------------


def emitted(
    kernel: KernelFunction,
    target: CpuTarget = SMALL,
    *,
    disjoint: bool = True,
    assembly: bool = False,
    **constants: Any,
) -> str:
    """The LLVM IR (or assembly) of a kernel whose parameters are pointers to float32 in lower case, but for ``n``, ``m`` and
    ``flags``."""
    kinds: dict[str, Argument] = {
        **dict.fromkeys(("x", "y", "out", "last"), PointerArgument(dtypes.float32)),
        **dict.fromkeys(("m", "n"), ScalarArgument(dtypes.int32)),
        "flags": PointerArgument(dtypes.int32),
    }
    signature = {
        p.name: ConstantArgument(constants[p.name]) if p.name in constants else kinds[p.name] for p in kernel.parameters
    }
    emit = emit_assembly if assembly else emit_llvm
    return emit(build_module(kernel, signature), target, Options(disjoint=disjoint))


def streams(text: str) -> bool:
    """Whether any store of the module goes past the caches; its entry point then has a fence at each return."""
    found = "!nontemporal" in text
    *_, entry = (part for part in text.split("define ") if "noinline" not in part.partition("\n")[0])
    assert len(re.findall(r"call void @\"?llvm\.x86\.sse\.sfence\"?\(\)\s+ret", entry)) == (
        entry.count(" ret ") if found else 0
    )
    return found


@jit
def copied(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))


@jit
def in_place(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i) + tl.load(out + i))


@jit
def kept(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i), eviction_policy="evict_last")


@jit
def counting(x: Any, out: Any, flags: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))
    tl.atomic_add(flags, 1, sem="relaxed")


@jit
def fenced(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))
    tl.debug_barrier()


@jit
def waiting(x: Any, out: Any, flags: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))
    tl.load(flags, volatile=True)


@jit
def printing(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + i, tl.load(x + i))
    tl.device_print("stored")


@jit
def sometimes(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    if tl.program_id(0) == n:
        tl.store(out + i, tl.load(x + i))


@jit
def spread(x: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + 2 * i, tl.load(x + i))


REFUSED = {k.name: k for k in (in_place, kept, counting, fenced, waiting, printing, sometimes, spread)}


def test_a_copy_streams() -> None:
    assert streams(emitted(copied, N=128))


@pytest.mark.parametrize("name", REFUSED)
def test_what_must_not_stream_does_not(name: str) -> None:
    assert not streams(emitted(REFUSED[name], N=128))


@pytest.mark.parametrize("name", CASES)
def test_programs_that_synchronise_do_not_stream(name: str) -> None:
    """Their data must be seen before their flags."""
    case = CASES[name]
    arguments = {k: PointerArgument(dtypes.from_numpy(v.dtype)) for k, v in case.arguments(16).items()}
    constants = {k: ConstantArgument(v) for k, v in case.constants.items()}
    module = build_module(case.kernel, {**arguments, **constants})
    assert not streams(emit_llvm(module, SMALL, Options(disjoint=True)))


def test_short_runs_do_not_stream() -> None:
    """Two lines are 32 elements of float32. A program of 16x16 stores rows of one line, programs that run together more."""
    assert streams(emitted(copied, N=32))
    functions = emitted(transposed, M=16, N=16).split("define ")
    assert ["!nontemporal" in text for text in functions if text.startswith('internal i32 @"')] == [False, True]


@pytest.mark.parametrize(
    "target", [replace(SMALL, tuning=()), CpuTarget("aarch64-unknown-linux-gnu", "generic", "+neon", 128, cache=1)]
)
def test_machines_without_the_tuning_do_not_stream(target: CpuTarget) -> None:
    assert not streams(emitted(copied, target, N=128))


def test_arrays_that_may_overlap_are_not_streamed_to() -> None:
    assert not streams(emitted(copied, disjoint=False, N=128))


# ---- rows that end within a line ------------------------------------------------------------------------------------


@jit
def rows_of_a_tile(x: Any, out: Any, m: Any, n: Any, M: tl.constexpr, N: tl.constexpr) -> None:
    rows, columns = tl.program_id(0) * M + tl.arange(0, M), tl.program_id(1) * N + tl.arange(0, N)
    inside = (rows < m)[:, None] & (n > columns)[None, :]
    at = rows[:, None] * n + columns[None, :]
    tl.store(out + at, tl.load(x + at, mask=inside), mask=inside)


@jit
def rows_of_programs(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    at = tl.program_id(0) * n + tl.arange(0, N)
    inside = (tl.arange(0, N) < n - 4) & (tl.load(x) == 0)
    tl.store(out + at, tl.load(x + at, mask=inside), mask=inside)


@pytest.mark.parametrize(("length", "expected"), [(60, False), (64, True), (1535, False), (1536, True), (1537, True)])
def test_rows_stream_that_are_long_or_end_with_a_line(length: int, expected: bool) -> None:
    """A row's end is stored plainly to the line in which the next row begins. How many rows there are does not matter."""
    for m in (3, 4096):
        text = emitted(rows_of_a_tile, replace(SMALL, cache=0), assembly=True, m=m, n=length, M=4, N=64)
        assert ("movnt" in text) == expected


def test_the_bound_of_a_row_may_be_computed() -> None:
    for length, expected in ((64, False), (68, True)):
        text = emitted(rows_of_programs, replace(SMALL, cache=0), assembly=True, n=length, N=128)
        assert ("movnt" in text) == expected


# ---- from which size on ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "constants", "cache", "programs"),
    [
        (copied, {"N": 1024}, 1 << 20, 256),  # programs of 4 KiB
        (copied, {"N": 1024}, (1 << 20) + 1, 257),
        (copied, {"N": 1024}, (1 << 20) - 1, 256),
        (looped, {"N": 1024}, 1 << 20, 32),  # two stores of 4 KiB four times
    ],
)
def test_launches_stream_from_the_size_of_the_cache_on(
    kernel: KernelFunction, constants: dict[str, Any], cache: int, programs: int
) -> None:
    text = emitted(kernel, replace(SMALL, cache=cache), **constants)
    assert set(re.findall(r"icmp uge i64 [^,]+, (\d+)", text)) == {str(programs)}


def test_programs_that_run_together_count_one_by_one() -> None:
    """Programs of 64 elements are joined; 2^20 bytes are 4,096 of them in both functions of the kernel."""
    text = emitted(copied, replace(SMALL, cache=1 << 20), N=64)
    assert text.count("define internal") >= 2
    assert re.findall(r"icmp uge i64 [^,]+, (\d+)", text) == ["4096", "4096"]

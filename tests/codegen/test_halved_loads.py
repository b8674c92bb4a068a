"""Which loops load vectors of 64 bytes as two of 32, and what they load."""

# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from host_targets import compiled_for
from weft import dtypes
from weft.codegen import emit_llvm
from weft.codegen.cpu import halved_loads
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget

pytestmark = pytest.mark.jit


@weft.jit
def combined(x: Any, y: Any, out: Any, n: Any, KIND: tl.constexpr, BLOCK: tl.constexpr) -> None:
    """Sums of two arrays, and what has another number of arrays, reduces them, or keeps what it loads."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(x + at, mask=at < n, other=0)
    if KIND == "copy":
        tl.store(out + at, a, mask=at < n)
    elif KIND == "same for all":
        tl.store(out + at, a + tl.load(y), mask=at < n)
    elif KIND == "reduced":
        b = tl.load(y + at, mask=at < n, other=0)
        tl.store(out + tl.program_id(0), tl.sum(a * b, 0))
    elif KIND == "stored and reduced":
        c = a + tl.load(y + at, mask=at < n, other=0)
        tl.store(out + at, c, mask=at < n)
        tl.store(out + n + tl.program_id(0), tl.sum(c, 0))
    elif KIND == "same for rows":
        rows = tl.arange(0, 4)[:, None] * BLOCK
        tl.store(out + rows + at[None, :], tl.load(x + rows + at[None, :]) + tl.load(y + at)[None, :])
    elif KIND == "sum, then of one array":
        b = tl.load(y + at, mask=at < n, other=0)
        tl.store(out + at, a + b, mask=at < n)
        total = tl.zeros((BLOCK,), tl.float32)
        for k in range(n):
            total += tl.load(x + k * BLOCK + tl.arange(0, BLOCK))
        tl.store(out + tl.arange(0, BLOCK), total)
    else:
        b = tl.load(y + at, mask=at < n, other=0)
        tl.store(out + at, a + b, mask=at < n)


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The types of the vectors that are loaded by halves."""
    types: list[Any] = []
    load = halved_loads.load_halves

    def noted(builder: Any, address: Any, type_: Any, size: int, apart: bool) -> Any:
        types.append(type_)
        return load(builder, address, type_, size, apart)

    monkeypatch.setattr("weft.codegen.cpu.access.load_halves", noted)
    return types


@pytest.mark.parametrize(
    ("kind", "dtype", "tuning", "halves"),
    [
        ("sum", dtypes.float32, ("halved-loads",), 6),
        ("sum, then of one array", dtypes.float32, ("halved-loads",), 6),
        ("stored and reduced", dtypes.float32, ("halved-loads",), 0),
        ("same for rows", dtypes.float32, ("halved-loads",), 0),
        ("sum", dtypes.int32, ("halved-loads",), 6),
        ("sum", dtypes.float32, (), 0),
        ("sum", dtypes.int8, ("halved-loads",), 0),  # registers of 32 bytes
        ("copy", dtypes.float32, ("halved-loads",), 0),
        ("same for all", dtypes.float32, ("halved-loads",), 0),
        ("reduced", dtypes.float32, ("halved-loads",), 0),
    ],
)
def test_loops_that_load_by_halves(
    kind: str, dtype: dtypes.DType, tuning: tuple[str, ...], halves: int, loaded: list[Any]
) -> None:
    pointer = PointerArgument(dtype, aligned=True)
    constants = {"KIND": ConstantArgument(kind), "BLOCK": ConstantArgument(1024)}
    signature: dict[str, Argument] = {
        **dict.fromkeys(("x", "y", "out"), pointer),
        "n": ScalarArgument(dtypes.int32),
        **constants,
    }
    features = "+avx512f,+avx512bw,+avx512vl"
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", features, 512, tuning=tuning)
    emit_llvm(build_module(KernelFunction(combined.fn), signature), target, Options(disjoint=True))
    assert len(loaded) == halves, "two registers, and one of those at the end, of two arrays each"


@weft.jit
def rows_then(x: Any, out: Any, n: Any, THEN: tl.constexpr) -> None:
    """Sums of rows, and perhaps a copy."""
    rows, columns, total = tl.arange(0, 4), tl.arange(0, 64), tl.zeros((4,), tl.float32)
    for k in range(0, n, 64):
        total += tl.sum(tl.load(x + rows[:, None] * n + (k + columns)[None, :]), axis=1)
    tl.store(out + rows, total)
    if THEN:
        tl.store(out + 4 + columns, tl.load(x + columns))


@pytest.mark.parametrize("then", [False, True])
def test_only_the_loop_over_rows_loads_by_halves(then: bool, loaded: list[Any]) -> None:
    pointer, n = PointerArgument(dtypes.float32, aligned=True), ScalarArgument(dtypes.int32, divisible=True)
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f", 512, tuning=("halved-loads",))
    signature: dict[str, Argument] = {"x": pointer, "out": pointer, "n": n, "THEN": ConstantArgument(then)}
    emit_llvm(build_module(KernelFunction(rows_then.fn), signature), target, Options(disjoint=True))
    assert len(loaded) == 4, "one for each accumulator"


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int32, ml_dtypes.bfloat16])
def test_sums_of_halves(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of arrays that begin anywhere, whole registers and ends."""
    compiled_for("x86-64-v4,+halved-loads", monkeypatch)
    random = np.random.default_rng(3)
    for n, begin in ((1024, 0), (1000, 1), (2085, 3)):
        x, y = (random.integers(-99, 100, n + begin).astype(dtype)[begin:] for _ in range(2))
        out = np.full(n + 8, 77, dtype)
        combined[(weft.cdiv(n, 1024),)](x, y, out, n, KIND="sum", BLOCK=1024)
        np.testing.assert_array_equal(out[:n].astype(np.float64), (x + y).astype(np.float64))
        np.testing.assert_array_equal(out[n:].astype(np.float64), 77)

"""A few kernels at each level of x86-64 that this machine has, so that `make test` runs code without AVX-512, without AVX2 and
without fused multiply-add. ``WEFT_TARGET`` runs all tests at a level (docs/platforms.md)."""

# pyright: reportUnnecessaryComparison=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import ml_dtypes
import numpy as np
import pytest

import weft.language as tl
from weft import target as targets
from weft.frontend import KernelFunction
from weft.language.extra import libdevice
from weft.target import X86_LEVELS, CpuTarget, architecture

if TYPE_CHECKING:
    from codegen.conftest import Differential

TRIPLE = llvm.get_process_triple()
pytestmark = [
    pytest.mark.jit,
    pytest.mark.skipif(architecture(TRIPLE) != "x86_64", reason="the levels whose code is run are those of x86-64"),
]

jit = KernelFunction


@pytest.fixture(params=X86_LEVELS)
def at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CpuTarget:
    """The level, as the target of what is compiled."""
    present = frozenset(name for name, here in llvm.get_host_cpu_features().items() if here)
    try:
        chosen = targets.level(request.param, TRIPLE, present)
    except ValueError as lacks:
        pytest.skip(f"this CPU does not run code for the level: {lacks}")
    monkeypatch.setattr(targets, "host", lambda: chosen)
    return chosen


@jit
def tails(a: Any, b: Any, c: Any, out: Any, narrow: Any, half: Any, n: Any, N: tl.constexpr) -> None:
    """Masked accesses of 8, 16 and 32 bits, conversions, and steps that round."""
    i = tl.program_id(0) * N + tl.arange(0, N)
    mask = i < n
    x = tl.load(a + i, mask=mask, other=1).to(tl.float32) * tl.load(b + i, mask=mask, other=0).to(tl.float32)
    x = tl.fma(x, x, tl.load(c + i, mask=mask, other=2.5))
    tl.store(out + i, tl.floor(x) + tl.sqrt(tl.abs(x)) / 3 + tl.maximum(x, tl.ceil(x * 0.3)), mask=mask)
    tl.store(narrow + i, tl.where(x > 4, x, -x).to(tl.int8), mask=mask)
    tl.store(half + i, x.to(tl.float16), mask=mask)


@jit
def across(a: Any, total: Any, place: Any, order: Any, running: Any, counts: Any, N: tl.constexpr) -> None:
    """Reductions with their places, scans, order, atomics and integers of 64 bits."""
    i = tl.arange(0, N)
    x = tl.load(a + i)
    tl.store(total, tl.sum(x.to(tl.int64) * x) // 3)
    tl.store(place, tl.argmax(x, axis=0))
    tl.store(order + i, tl.sort(x))
    tl.store(running + i, tl.cumsum(x))
    tl.atomic_add(counts + x % 5, 1)


@jit
def products(a: Any, b: Any, out: Any, N: tl.constexpr) -> None:
    """Small whole numbers, whose sums no order of the additions rounds."""
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@jit
def functions(a: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    x = tl.load(a + i)
    tl.store(out + i, tl.exp(x))
    tl.store(out + N + i, tl.log(tl.abs(x) + 1))
    tl.store(out + 2 * N + i, tl.sin(x))


@jit
def powers(x: Any, y: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, libdevice.pow(tl.load(x + i), tl.load(y + i)))


@jit
def doubled(a: Any, out: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    tl.store(out + i, tl.load(a + i) * 2)


def test_masked_accesses_and_conversions(differ: Differential, at: CpuTarget) -> None:
    r = np.random.default_rng(0)
    n, size = 83, 96
    given = {
        "a": r.integers(-9, 9, size).astype(np.int8),
        "b": r.integers(-9, 9, size).astype(ml_dtypes.bfloat16),
        "c": r.normal(size=size).astype(np.float32),
    }
    made = {"out": np.float32, "narrow": np.int8, "half": np.float16}
    after = differ(
        tails,
        grid=(3,),
        promises=(True,),
        **given,
        **{name: np.full(size, 77, dtype) for name, dtype in made.items()},
        n=np.int32(n),
        N=32,
    )
    assert all((after[name][n:] == 77).all() and (after[name][:n] != 77).any() for name in made)


def test_what_goes_across_lanes(differ: Differential, at: CpuTarget) -> None:
    a = np.random.default_rng(1).permutation(64).astype(np.int32)
    one, all_ = np.zeros(1, np.int64), np.zeros(64, np.int32)
    after = differ(
        across,
        promises=(True,),
        a=a,
        total=one,
        place=np.zeros(1, np.int32),
        order=all_,
        running=all_.copy(),
        counts=np.zeros(5, np.int32),
        N=64,
    )
    assert after["total"][0] == sum(k * k for k in range(64)) // 3
    assert (after["order"] == np.arange(64)).all()
    assert after["counts"].tolist() == [13, 13, 13, 13, 12]


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, np.int8], ids=lambda dtype: dtype.__name__)
def test_products(dtype: Any, differ: Differential, at: CpuTarget) -> None:
    r = np.random.default_rng(2)
    a, b = (r.integers(-4, 5, (16, 16)).astype(dtype) for _ in range(2))
    out = np.zeros((16, 16), np.int32 if dtype is np.int8 else np.float32)
    after = differ(products, promises=(True,), a=a, b=b, out=out, N=16)
    assert (after["out"] == a.astype(np.int32) @ b.astype(np.int32)).all()


def test_functions_with_and_without_fused_multiply_add(differ: Differential, at: CpuTarget) -> None:
    a = np.random.default_rng(3).normal(size=32).astype(np.float32) * 4
    differ(functions, ulps=2, promises=(True,), a=a, out=np.zeros(96, np.float32), N=32)


def test_powers_of_edge_values(differ: Differential, at: CpuTarget) -> None:
    """All pairs, within a unit in the last place of the reference. Without FMA powers of -1 near the ends were NaN."""
    largest = np.finfo(np.float64).max
    edges = [
        0,
        1,
        np.inf,
        np.nan,
        largest,
        largest / 2,
        2.0**1023,
        2.0**54,
        2.0**53 - 1,
        2.0,
        3.0,
        0.5,
        2.0**-1022,
        5e-324,
    ]
    signed = np.array([sign * edge for edge in edges for sign in (1, -1)] + [1.5, -1.5, 1.0, 1.0])
    x, y = (side.ravel() for side in np.meshgrid(signed, signed))
    after = differ(powers, ulps=1, promises=(True,), x=x, y=y, out=np.zeros_like(x), N=x.size)
    unit = (np.abs(x) == 1) & (np.abs(y) >= 2.0**54)
    assert (after["out"][unit] == 1).all()


def test_a_level_has_its_registers_alone(at: CpuTarget) -> None:
    """The fixture's target is what is compiled: no code of a lower level names registers of a higher."""
    from weft.codegen import emit_assembly
    from weft.dtypes import float32
    from weft.frontend import ConstantArgument, PointerArgument, build_module
    from weft.options import Options

    pointer = PointerArgument(float32)
    module = build_module(functions, {"a": pointer, "out": pointer, "N": ConstantArgument(64)})
    text = emit_assembly(module, targets.host(), Options(disjoint=True))
    widest = next(bits for name, bits in (("%zmm", 512), ("%ymm", 256), ("%xmm", 128)) if name in text)
    assert widest == at.vector_bits
    assert ("vfmadd" in text) == ("fma" in at.enabled)


def test_stores_follow_memory(at: CpuTarget) -> None:
    """The registers of a wide vector are stored from the lowest address on."""
    from weft import dtypes
    from weft.codegen import emit_assembly
    from weft.frontend import ConstantArgument, PointerArgument, build_module
    from weft.options import Options

    for dtype, size in ((dtypes.float32, 4), (dtypes.float64, 8)):
        pointer = PointerArgument(dtype)
        module = build_module(doubled, {"a": pointer, "out": pointer, "N": ConstantArgument(32)})
        text = emit_assembly(module, targets.host(), Options(disjoint=True))
        found = re.findall(r"v?movup[sd]\s+%[xyz]mm\d+, (-?\d*)\(([^)]*)\)", text)
        stored = [int(offset or 0) for offset, base in found if "%rsp" not in base]
        assert stored == list(range(0, 32 * size, at.vector_bits // 8))

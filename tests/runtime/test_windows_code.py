"""Kernels compiled for Windows, run on Linux (`windows_code` has how) and compared with NumPy.

Not covered are Windows' own libraries and memory. docs/platforms.md says what was run where.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import weft
import weft.language as tl
import windows_code
from weft import target as targets
from weft.codegen.cpu.machine import target_machine
from weft.runtime import executable, linker, loader, shares, spinning
from weft.target import CpuTarget, level

pytestmark = [
    pytest.mark.jit,
    pytest.mark.skipif(not linker.SUPPORTED, reason="the functions between the conventions are for Linux on x86-64"),
]


@pytest.fixture(params=["x86-64", "host"], autouse=True)
def windows(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CpuTarget:
    """What this process compiles for: Windows without fused multiply-add, so that functions are the C library's, and Windows on
    this machine."""
    spinning.prepare()  # weft's own code is this system's
    assert shares.claims()
    here = targets.host()
    plain = level("x86-64", windows_code.TRIPLE, here.enabled)
    full = CpuTarget(windows_code.TRIPLE, here.cpu, here.features, here.vector_bits)
    target = plain if request.param == "x86-64" else full
    monkeypatch.setattr(targets, "host", lambda: target)
    monkeypatch.setattr(executable.loader, "load", _load(loader.load))
    monkeypatch.setenv("WEFT_CACHE", "0")
    return target


def _load(load: Any) -> Any:
    """Objects for Windows have absolute addresses in a section of their own name; those of this system go where they went."""

    def chosen(code: bytes, symbol: str) -> loader.LoadedCode:
        return windows_code.load(code, symbol) if b".ltext" in code else load(code, symbol)

    return chosen


def test_functions_of_floats() -> None:
    @weft.jit
    def kernel(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
        i = tl.program_id(0) * N + tl.arange(0, N)
        v = tl.load(x + i, mask=i < n, other=1.0)
        tl.store(out + i, tl.exp(tl.sin(v)) + tl.extra.libdevice.pow(v, 2.5 + 0 * v), mask=i < n)

    x = np.random.default_rng(0).uniform(0, 3, 1000)
    for dtype, tolerance in ((np.float32, 1e-5), (np.float64, 1e-13)):
        given: Any = x.astype(dtype)
        out = np.zeros_like(given)
        kernel[(8,)](given, out, 999, N=128)
        np.testing.assert_allclose(out[:999], (np.exp(np.sin(given)) + given**2.5)[:999], rtol=tolerance)
        assert out[999] == 0


def test_products_and_transposes() -> None:
    @weft.jit
    def kernel(a: Any, b: Any, c: Any, N: tl.constexpr) -> None:
        i = tl.arange(0, N)
        at = i[:, None] * N + i[None, :]
        tl.store(c + at, tl.trans(tl.dot(tl.load(a + at), tl.load(b + at))))

    a, b = (np.random.default_rng(s).integers(-8, 9, (64, 64)).astype(np.float32) for s in (0, 1))
    c = np.zeros_like(a)
    kernel[(1,)](a, b, c, N=64)
    assert (c == (a @ b).T).all()


def test_sorts_scans_and_narrow_floats() -> None:
    @weft.jit
    def kernel(x: Any, ordered: Any, sums: Any, N: tl.constexpr) -> None:
        i = tl.arange(0, N)
        v = tl.load(x + i)
        tl.store(ordered + i, tl.sort(v))
        tl.store(sums + i, tl.cumsum(v.to(tl.float32)).to(tl.float16))

    x: Any = np.random.default_rng(0).integers(-3, 4, 512).astype(np.float16)
    ordered, sums = np.zeros_like(x), np.zeros_like(x)
    kernel[(1,)](x, ordered, sums, N=512)
    assert (ordered == np.sort(x)).all()
    assert (sums == np.cumsum(x.astype(np.float64))).all()


def test_atomics_and_many_programs() -> None:
    @weft.jit
    def kernel(counts: Any, index: Any, N: tl.constexpr) -> None:
        i = tl.program_id(0) * N + tl.arange(0, N)
        tl.atomic_add(counts + tl.load(index + i), 1)

    index: Any = np.random.default_rng(0).integers(0, 8, 64 * 256).astype(np.int32)
    counts = np.zeros(8, np.int32)
    kernel[(64,)](counts, index, N=256)
    assert (counts == np.bincount(index, minlength=8)).all()


def test_checked_kernels_name_the_line() -> None:
    @weft.jit(checked=True)
    def kernel(x: Any, N: tl.constexpr) -> None:
        tl.store(x + tl.arange(0, N), 1.0)

    with pytest.raises(weft.OutOfBoundsError, match="store accesses element 12 of 'x', which has 12"):
        kernel[(1,)](np.zeros(12, np.float32), N=16)


@pytest.mark.parametrize("linker_of", ["Windows", "macOS"])
def test_code_is_executable_and_not_writable(linker_of: str, windows: CpuTarget) -> None:
    """Also where LLVM's RuntimeDyld or JITLink put it."""
    text = f'target triple = "{windows.triple}"\ndefine i64 @f() {{\n  ret i64 1\n}}\n'
    code = target_machine(windows).emit_object(llvm.parse_assembly(text))
    load: Any = windows_code.link if linker_of == "Windows" else loader._load_by_llvm  # pyright: ignore[reportPrivateUsage]
    loaded = load(code, "f")
    with open("/proc/self/maps", encoding="ascii") as file:
        spans = [(*(int(end, 16) for end in line.split()[0].split("-")), line.split()[1]) for line in file]
    assert [rights for low, high, rights in spans if low <= loaded.address < high] == ["r-xp"]


def test_a_large_frame_touches_its_pages(windows: CpuTarget) -> None:
    """Windows gives a thread's stack page by page. (``__chkstk`` is in ntdll.dll.)"""
    found: list[bool] = []
    for size in (2048, 8192):
        text = f"""
target triple = "{windows.triple}"
declare void @use(ptr)
define void @f() {{
  %frame = alloca [{size} x i8]
  call void @use(ptr %frame)
  ret void
}}
"""
        found.append("__chkstk" in target_machine(windows).emit_assembly(llvm.parse_assembly(text)))
    assert found == [False, True]

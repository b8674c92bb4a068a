"""What the objects of each system ask of its libraries: nothing that they do not export. Objects are made here, not linked."""

# pyright: reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

from typing import Any, Final

import pytest

import weft.language as tl
from objects import undefined
from weft import dtypes
from weft.codegen import compile_module
from weft.codegen.cpu.exclusive import LOCK
from weft.dtypes import DType
from weft.frontend import ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget, object_triple, vector_bits

jit = KernelFunction

_NAMES: Final = (
    "exp",
    "exp2",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "tanh",
    "erf",
    "cbrt",
    "pow",
    "atan2",
)
C99: Final = frozenset(f"{name}{suffix}" for name in (*_NAMES, "fmod", "floor", "ceil") for suffix in ("", "f"))
"""Functions of C99, section 7.12, in glibc's libm, in macOS' libSystem and in Windows' ucrtbase.dll."""

MEMORY: Final = {
    "linux": frozenset({"memcpy", "memmove", "memset"}),
    "apple": frozenset({"memcpy", "memmove", "memset", "bzero", "__bzero", "memset_pattern16"}),
    "windows": frozenset({"memcpy", "memmove", "memset", "__chkstk"}),
}
"""libc; libSystem; ntdll.dll, which has all of them."""

MACHINES: Final = {
    "linux x86-64": ("x86_64-unknown-linux-gnu", "x86-64", "+sse2"),
    "linux aarch64": ("aarch64-unknown-linux-gnu", "generic", ""),
    "apple x86-64": ("x86_64-apple-darwin24.0.0", "x86-64", "+sse2"),
    "apple haswell": ("x86_64-apple-darwin24.0.0", "haswell", "+avx2,+avx,+fma,+f16c"),
    "apple arm64": ("arm64-apple-darwin24.0.0", "apple-m1", ""),
    "windows x86-64": ("x86_64-pc-windows-msvc", "x86-64", "+sse2"),
    "windows haswell": ("x86_64-pc-windows-msvc", "haswell", "+avx2,+avx,+fma,+f16c"),
    "windows arm64": ("aarch64-pc-windows-msvc", "generic", ""),
}
"""The triple of the process, the CPU and its features."""


def target(machine: str) -> CpuTarget:
    """The target as `weft.target.host` makes it there."""
    triple, cpu, features = MACHINES[machine]
    return CpuTarget(object_triple(triple), cpu, features, vector_bits(features, triple))


@jit
def functions(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    """Each elementwise function that has no instruction."""
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=1.0).to(tl.float32)
    w = tl.exp(v) + tl.exp2(v) + tl.log(v) + tl.log2(v) + tl.sin(v) + tl.cos(v) + tl.erf(v)
    lib = tl.extra.libdevice
    w += lib.log10(v) + lib.log1p(v) + lib.tan(v) + lib.tanh(v) + lib.cbrt(v) + lib.pow(v, w) + lib.atan2(v, w)
    tl.store(out + i, (tl.floor(w) + tl.ceil(v) + w % v).to(out.dtype.element_ty))


@jit
def movement(x: Any, out: Any, n: Any, N: tl.constexpr) -> None:
    """What copies and clears memory, converts, compares and shares."""
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    v = tl.load(x + at, mask=i[None, :] < n, other=0.0)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(n):
        acc = tl.dot(v, tl.trans(v), acc) + k
    tl.store(out + at, tl.sort(tl.cumsum(acc, axis=1)).to(out.dtype.element_ty))
    tl.atomic_add(out + tl.argmax(acc, axis=1), tl.sum(acc, axis=0).to(out.dtype.element_ty))


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64], ids=str)
@pytest.mark.parametrize("kernel", [functions, movement], ids=["functions", "movement"])
@pytest.mark.parametrize("machine", MACHINES)
def test_objects_ask_for_what_the_system_has(machine: str, kernel: KernelFunction, dtype: DType) -> None:
    pointer = PointerArgument(dtype, aligned=True)
    signature = {"x": pointer, "out": pointer, "n": ScalarArgument(dtypes.int32), "N": ConstantArgument(16)}
    found = undefined(compile_module(build_module(kernel, signature), target(machine), Options()).object)
    named = found - {LOCK, "_GLOBAL_OFFSET_TABLE_"}
    assert named <= C99 | MEMORY[machine.partition(" ")[0]]
    assert bool(named & C99) == (kernel is functions and machine.endswith("x86-64")), "only without fused multiply-add"


def test_coff_needs_a_symbol_that_no_library_has() -> None:
    """The reason for `object_triple`: ``_fltused`` is in the static part of Microsoft's runtime."""
    pointer = PointerArgument(dtypes.float32)
    signature = {"x": pointer, "out": pointer, "n": ScalarArgument(dtypes.int32), "N": ConstantArgument(16)}
    coff = CpuTarget("x86_64-pc-windows-msvc", "x86-64", "+sse2", 128)
    found = undefined(compile_module(build_module(functions, signature), coff, Options()).object)
    assert "_fltused" in found
    assert found - {"_fltused"} <= C99

"""The code that other machines get, and how much of it: register blocks, CPUs that are not the host, tiles of any size."""

# pyright: reportUnnecessaryComparison=false, reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import weft.language as tl
from sampling import grid
from weft import dtypes
from weft.codegen import emit_assembly, emit_llvm
from weft.codegen.cpu.microkernel import RegisterBlock, register_block
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget

if TYPE_CHECKING:
    from codegen.conftest import Differential

jit = KernelFunction
F32, I32 = PointerArgument(dtypes.float32, aligned=True), ScalarArgument(dtypes.int32)


def module_of(kernel: KernelFunction, **arguments: Any) -> Any:
    """The frontend's module; arguments that are not of a signature are constants."""
    signature: dict[str, Argument] = {
        name: a if isinstance(a, PointerArgument | ScalarArgument) else ConstantArgument(a)
        for name, a in arguments.items()
    }
    return build_module(kernel, signature)


# ---- targets --------------------------------------------------------------------------------------------------------

LINUX, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
TARGETS = {
    "x86-64": CpuTarget(LINUX, "x86-64", "+sse2", 128),
    "haswell": CpuTarget(LINUX, "haswell", "+avx,+avx2,+fma,+f16c,+sse2", 256),
    "skylake-avx512": CpuTarget(LINUX, "skylake-avx512", "+avx512f,+avx512vl,+avx512bw,+avx512dq,+fma,+avx2", 512),
    "aarch64": CpuTarget(ARM, "generic", "+neon", 128),
    "apple": CpuTarget("arm64-apple-macosx", "apple-m1", "+neon,+fullfp16", 128),
    "none": CpuTarget(LINUX, "x86-64", "", 64),
}


@pytest.mark.parametrize(
    ("target", "dtype", "m", "n", "expected"),
    [
        ("x86-64", dtypes.float32, 64, 64, RegisterBlock(4, 2, 4)),  # 8 of 16 registers
        ("haswell", dtypes.float32, 64, 64, RegisterBlock(4, 2, 8)),
        ("haswell", dtypes.float64, 64, 64, RegisterBlock(4, 2, 4)),
        ("skylake-avx512", dtypes.float32, 64, 64, RegisterBlock(8, 2, 16)),  # 16 of 32
        ("skylake-avx512", dtypes.int32, 64, 16, RegisterBlock(16, 1, 16)),
        ("skylake-avx512", dtypes.float32, 2, 64, RegisterBlock(2, 2, 16)),
        ("aarch64", dtypes.float32, 64, 64, RegisterBlock(8, 2, 4)),
        ("apple", dtypes.float64, 64, 64, RegisterBlock(8, 2, 2)),
        ("aarch64", dtypes.float32, 1, 1, RegisterBlock(1, 1, 1)),
        ("none", dtypes.float64, 4, 4, RegisterBlock(4, 2, 1)),
    ],
)
def test_register_block(target: str, dtype: Any, m: int, n: int, expected: RegisterBlock) -> None:
    assert register_block(TARGETS[target], dtype, m, n) == expected


@pytest.mark.parametrize("m", [1, 2, 16, 128])
@pytest.mark.parametrize("n", [1, 4, 16, 128])
@pytest.mark.parametrize("target", TARGETS)
def test_register_blocks_divide_the_tile(target: str, m: int, n: int) -> None:
    for dtype in (dtypes.float32, dtypes.float64, dtypes.int32):
        block = register_block(TARGETS[target], dtype, m, n)
        assert m % block.rows == 0
        assert n % (block.columns * block.lanes) == 0
        assert block.lanes * dtype.bits <= max(TARGETS[target].vector_bits, dtype.bits)


@jit
def everything(x: Any, h: Any, out: Any, flags: Any, n: Any, N: tl.constexpr) -> None:
    """Masked, strided and gathered accesses, a conversion between layouts, reductions, a product, narrow floats, an atomic and a
    loop."""
    i = tl.arange(0, N)
    at = i[:, None] * N + i[None, :]
    v = tl.load(x + at, mask=i[None, :] < n, other=0.0)
    w = tl.load(h + at).to(tl.float32)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(n):
        acc = tl.dot(v, tl.trans(w), acc) + k
    best = tl.argmax(acc, axis=1)
    rest = tl.sum(tl.exp(acc - tl.max(acc, axis=1)[:, None]), axis=1)
    tl.store(out + at, acc, mask=i[:, None] < n)
    tl.store(out + N * N + i, tl.load(x + best) / rest)
    tl.atomic_add(out + best, rest)
    tl.store(flags + i, rest > 1)
    tl.store(h + at, (acc * v).to(h.dtype.element_ty))


@pytest.mark.parametrize(
    ("target", "half"), grid(3, list(TARGETS), [dtypes.float16, dtypes.bfloat16, dtypes.float8_e5m2]), ids=str
)
def test_every_target_gets_code(target: str, half: Any) -> None:
    """LLVM accepts it and gets through its passes; it calls nothing but what every C library has."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    arguments = {"x": F32, "h": PointerArgument(half), "out": F32, "flags": PointerArgument(dtypes.bool_), "n": I32}
    module = module_of(everything, **arguments, N=16)
    llvm.parse_assembly(emit_llvm(module.clone(), TARGETS[target], Options())).verify()
    assembly = emit_assembly(module, TARGETS[target], Options())
    called = set(re.findall(r"^\s+(?:callq?|bl|b|jmpq?)\s+_?([A-Za-z][\w.]*)", assembly, re.MULTILINE))
    outside = {name for name in called if not (name.startswith(("weft.", "LBB")) or name.endswith(".claim"))}
    assert outside <= {"expf", "memcpy", "memset", "bzero"}


# ---- big tiles ------------------------------------------------------------------------------------------------------


@jit
def softmax(x: Any, y: Any, n: Any, N: tl.constexpr) -> None:
    i = tl.arange(0, N)
    v = tl.load(x + i, mask=i < n, other=-float("inf"))
    top = tl.max(v, 0)
    e = tl.exp(v - top)
    total = tl.sum(e, 0)
    tl.store(y + i, e / total, mask=i < n)


@jit
def big_accumulator(a: Any, b: Any, out: Any, n: Any, N: tl.constexpr, K: tl.constexpr) -> None:
    i, k = tl.arange(0, N), tl.arange(0, K)
    acc = tl.zeros((N, N), tl.float32)
    for _ in range(n):
        acc = tl.dot(tl.load(a + i[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + i[None, :]), acc)
    tl.store(out + i[:, None] * N + i[None, :], acc * 2)


def instructions(kernel: KernelFunction, **arguments: Any) -> int:
    """How many instructions LLVM is given."""
    text = emit_llvm(module_of(kernel, **arguments), TARGETS["skylake-avx512"], Options(disjoint=True))
    return sum(len(list(block.instructions)) for f in llvm.parse_assembly(text).functions for block in f.blocks)


def test_code_does_not_grow_with_the_tile() -> None:
    """From where nothing is unrolled completely: a thousand times the elements, the same code but for constants."""
    arguments = {"x": F32, "y": F32, "n": I32}
    row = [instructions(softmax, **arguments, N=n) for n in (512, 4096, 131072)]
    assert row[0] == row[1] == row[2] < 1500
    matrices = {"a": F32, "b": F32, "out": F32, "n": I32}
    block = [instructions(big_accumulator, **matrices, N=n, K=32) for n in (128, 256)]
    assert block[0] == block[1] < 1500


@pytest.mark.jit
def test_a_row_of_131072_elements(differ: Differential) -> None:
    """Against NumPy in float64: a sum of so many terms depends on its order."""
    x: Any = np.random.default_rng(0).standard_normal(131072).astype(np.float32)
    y = np.zeros_like(x)
    arguments = [x, y, np.int32(131000)]
    differ.native(module_of(softmax, x=F32, y=F32, n=I32, N=131072), arguments, disjoint=True)
    powers = np.exp(x[:131000].astype(np.float64))
    np.testing.assert_allclose(y[:131000], powers / powers.sum(), rtol=1e-5)
    assert not y[131000:].any()


@pytest.mark.jit
def test_an_accumulator_of_256_by_256(differ: Differential) -> None:
    """Small integers: exact."""
    rng: Any = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((256, 32), (32, 256)))
    out = np.zeros((256, 256), np.float32)
    module = module_of(big_accumulator, a=F32, b=F32, out=F32, n=I32, N=256, K=32)
    differ.native(module, [a, b, out, np.int32(3)], disjoint=True)
    assert (out == 6 * (a @ b)).all()

"""The order of a block with matrix instructions: what they read comes just before them, and memory keeps its order."""

from __future__ import annotations

import re
import shutil
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from llvmlite import ir

import weft
import weft.language as tl
from solver_kernels import imported
from weft.codegen.llvm.types import I32
from weft.codegen.nvidia.order import order
from weft.transforms.layouts.solve import search


def assembly(builder: ir.IRBuilder, text: str, *operands: ir.Value) -> Any:
    """Inline assembly with effects, as emission has it."""
    type_ = ir.FunctionType(I32, [I32] * len(operands))
    return builder.asm(type_, text, ",".join(["=r", *"r" * len(operands)]), operands, side_effect=True)


def names(block: ir.Block) -> list[str]:
    """The texts of inline assembly, the names of other ops."""
    found: list[str] = []
    for instruction in block.instructions:
        call = re.search(r'asm sideeffect "([^"]+)', str(instruction))
        found.append(call[1] if call else instruction.opname)
    return found


def block_of(*, multiply: bool) -> ir.Block:
    """Two fragments, a sum of each, a barrier, a third fragment; then two matrix instructions, the second first used."""
    function = ir.Function(ir.Module(), ir.FunctionType(I32, [I32]), "f")
    builder = ir.IRBuilder(function.append_basic_block())
    (x,) = function.args
    a, b = (assembly(builder, f"ldmatrix.{name}", x) for name in "ab")
    c = builder.add(a, x)
    d = builder.sub(b, x)
    assembly(builder, "bar.sync")
    e = assembly(builder, "ldmatrix.e", x)
    f = builder.xor(e, x)
    first = assembly(builder, "mma.sync.1" if multiply else "other.1", d)
    second = assembly(builder, "mma.sync.2" if multiply else "other.2", c, f, first)
    builder.ret(second)
    order(function)
    return function.blocks[0]


def test_operands_go_to_their_readers_and_loads_stay_between_barriers() -> None:
    """Both loads stay before the barrier, what they are changed by goes behind it. The third load may not go before it."""
    assert names(block_of(multiply=True)) == [
        "ldmatrix.a", "ldmatrix.b", "bar.sync", "sub", "mma.sync.1", "add", "ldmatrix.e", "xor", "mma.sync.2", "ret",
    ]  # fmt: skip


def test_blocks_without_matrix_instructions_stay() -> None:
    assert names(block_of(multiply=False)) == [
        "ldmatrix.a", "ldmatrix.b", "add", "sub", "bar.sync", "ldmatrix.e", "xor", "other.1", "other.2", "ret",
    ]  # fmt: skip


@weft.jit
def products(x: Any, out: Any, KEPT: tl.constexpr) -> None:
    i = tl.arange(0, 128)
    product = tl.load(x + i) * 3.0
    if KEPT:
        tl.store(out + i, product)
    tl.store(out + 128 + i, product - tl.load(x + 128 + i))


@pytest.mark.parametrize(("kept", "found"), [(False, ["fma.rn.f32"]), (True, ["mul.rn.f32", "sub.f32"])])
def test_a_product_that_is_also_stored_is_no_part_of_a_sum(kept: bool, found: list[str]) -> None:
    """A fused sum would save no instruction then, and keep the factor in a register for longer."""
    x, out = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    handle = products.compile(x, out, KEPT=kept, target="sm_90")
    assert re.findall(r"\b((?:mul|sub|add|fma)[.\w]*\.f32)\b", handle.ptx) == found
    products.on("sm_90")[(1,)](x, out, KEPT=kept)
    np.testing.assert_array_equal(out[128:], x[:128] * 3 - x[128:])


def kernels() -> Any:
    """Those that are counted beside Triton's."""
    return imported("benchmarks", "gpu_kernels")


needs_ptxas = pytest.mark.skipif(
    shutil.which("ptxas") is None, reason="ptxas, which assembles the kernels, is not on the PATH"
)


@needs_ptxas
@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
@pytest.mark.parametrize(("D", "warps"), [(128, 4), (64, 8)])
def test_attention_does_not_spill(target: str, D: int, warps: int) -> None:
    """The tutorial's blocks of 128 queries and 64 keys."""
    q, out = np.zeros((256, D), np.float16), np.zeros((256, D), np.float32)
    handle = kernels().attention.compile(q, q, q, out, 256, 0.5, M=128, N=64, D=D, target=target, num_warps=warps)
    assert handle.spills == 0


@needs_ptxas
def test_a_read_of_a_buffer_goes_behind_an_exchange(monkeypatch: pytest.MonkeyPatch) -> None:
    """The solver's least price exchanges weights between warps before they are multiplied; it saves less than its margin. The
    values that they are multiplied by were read before the exchange, and 180 bytes spilled."""
    monkeypatch.setattr(search, "MARGIN", 1.0)
    monkeypatch.setenv("WEFT_CACHE", "off")
    q, out = np.zeros((256, 128), np.float16), np.zeros((256, 128), np.float32)
    constants = {"M": 128, "N": 64, "D": 128, "num_stages": 2}
    handle = kernels().attention.compile(q, q, q, out, 256, 0.25, target="sm_90", num_warps=4, **constants)
    exchanged = [line for line in handle.laid_out.splitlines() if "convert_layout" in line and "gpu.scratch" in line]
    assert any("tensor<128x64xf16" in line for line in exchanged)
    assert handle.spills == 0


@needs_ptxas
@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn])
@pytest.mark.parametrize(("N", "K", "warps"), [(128, 64, 4)])
def test_products_of_float8_do_not_spill(N: int, K: int, warps: int, dtype: Any) -> None:
    """They are of float16 there: ptxas makes more instructions of those of float8, and spilled up to 92 bytes."""
    a, b, c = np.zeros((256, 512), dtype), np.zeros((512, 512), dtype), np.zeros((256, 512), np.float32)
    handle = kernels().matmul.compile(
        a, b, c, 512, 512, M=128, N=N, K=K, KIND="plain", PRECISION="ieee", target="sm_90", num_warps=warps
    )
    assert "m16n8k16.row.col.f32.f16.f16.f32" in handle.ptx
    assert handle.spills == 0

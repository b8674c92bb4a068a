"""Dots by each matrix instruction: operands from registers, the instruction that the PTX has and how often, results by NumPy.

Numbers are whole, of integer types any that they hold. So a row, a column, half of a contraction or a sign that is mistaken gives
another sum. The fragments that the emulator executes are tested beside the PTX ISA in
``tests/emulator/test_emu_mma.py``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from sampling import every
from weft import dtypes, emulator
from weft import target as targets
from weft.codegen import compile_module
from weft.codegen.kernel import GpuKernel
from weft.dtypes import DType
from weft.ir import tile
from weft.ir.types import pointer
from weft.options import Options

Array = NDArray[Any]

EIGHT_BITS = ((dtypes.int8, "s8"), (dtypes.uint8, "u8"))
FLOAT8 = ((dtypes.float8_e4m3fn, "e4m3"), (dtypes.float8_e5m2, "e5m2"))


@dataclass(frozen=True)
class Case:
    """A dot: its target, types and sizes (M, N, K), and the instruction by its shape and types."""

    target: str
    left: DType
    right: DType
    sums: DType
    sizes: tuple[int, int, int]
    instruction: str
    shape: tuple[int, int, int]
    precision: str = "ieee"

    def __str__(self) -> str:
        return f"{self.target}-{self.instruction}-{'x'.join(map(str, self.sizes))}"


def case(target: str, types: tuple[DType, DType, DType], sizes: tuple[int, int, int], name: str) -> Case:
    """The shape is that of ``name``, as in ``m16n8k4.f64.f64.f64.f64``."""
    m, n, k = map(int, re.findall(r"\d+", name.split(".", 1)[0]))
    return Case(target, *types, sizes, name, (m, n, k), "tf32" if "tf32" in name else "ieee")


F16, BF16, F32 = dtypes.float16, dtypes.bfloat16, dtypes.float32
DOUBLES: tuple[DType, DType, DType] = dtypes.float64, dtypes.float64, dtypes.float64
CASES = [
    *(
        case(target, (a, b, dtypes.int32), (32, 16, 64), f"m16n8k32.s32.{x}.{y}.s32")
        for target in ("sm_80", "sm_90")
        for a, x in EIGHT_BITS
        for b, y in EIGHT_BITS
    ),
    *(
        case(target, (a, b, dtypes.float32), (16, 16, 64), instruction)
        for a, x in FLOAT8
        for b, y in FLOAT8
        for target, instruction in (("sm_89", f"m16n8k32.f32.{x}.{y}.f32"), ("sm_90", "m16n8k16.f32.f16.f16.f32"))
    ),
    case("sm_80", DOUBLES, (8, 8, 4), "m8n8k4.f64.f64.f64.f64"),
    case("sm_86", DOUBLES, (32, 16, 16), "m8n8k4.f64.f64.f64.f64"),
    case("sm_90", DOUBLES, (8, 16, 32), "m8n8k4.f64.f64.f64.f64"),
    case("sm_90", DOUBLES, (32, 16, 4), "m16n8k4.f64.f64.f64.f64"),
    case("sm_90a", DOUBLES, (16, 32, 8), "m16n8k8.f64.f64.f64.f64"),
    case("sm_90", DOUBLES, (32, 16, 32), "m16n8k8.f64.f64.f64.f64"),
    case("sm_80", (F16, F16, F32), (32, 16, 32), "m16n8k16.f32.f16.f16.f32"),
    case("sm_80", (F16, F16, F32), (32, 16, 8), "m16n8k8.f32.f16.f16.f32"),
    case("sm_80", (F16, F16, F16), (32, 16, 32), "m16n8k16.f16.f16.f16.f16"),
    case("sm_90", (F16, F16, F16), (16, 32, 8), "m16n8k8.f16.f16.f16.f16"),
    case("sm_90", (F16, dtypes.float8_e5m2, F16), (16, 16, 16), "m16n8k16.f16.f16.f16.f16"),
    case("sm_80", (BF16, BF16, F32), (32, 16, 32), "m16n8k16.f32.bf16.bf16.f32"),
    case("sm_86", (BF16, BF16, F32), (16, 8, 8), "m16n8k8.f32.bf16.bf16.f32"),
    case("sm_80", (F32, F32, F32), (32, 16, 16), "m16n8k8.f32.tf32.tf32.f32"),
    case("sm_80", (F32, F32, F32), (16, 32, 4), "m16n8k4.f32.tf32.tf32.f32"),
    case("sm_80", (dtypes.uint8, dtypes.int8, dtypes.int32), (16, 32, 16), "m16n8k16.s32.u8.s8.s32"),
    case("sm_80", (dtypes.float8_e4m3fn, dtypes.float8_e5m2, F32), (16, 8, 8), "m16n8k8.f32.f16.f16.f32"),
    case("sm_80", (dtypes.float8_e4m3fn, dtypes.float8_e5m2, F32), (32, 32, 64), "m16n8k16.f32.f16.f16.f32"),
]


def matrix(rng: np.random.Generator, dtype: DType, shape: tuple[int, int]) -> Array:
    """Random whole numbers: of an integer type any, of a float such that sums are exact."""
    if dtype.is_float:
        return rng.integers(-4, 5, shape).astype(dtype.numpy)
    info = np.iinfo(dtype.numpy)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype.numpy)


class Dot:
    """A kernel of one dot between loads and a store, all row-major."""

    def __init__(self, case: Case):
        self.case = case
        self.block = Block()
        m, n, k = case.sizes
        operands = [
            self.load(dtype, shape) for dtype, shape in ((case.left, (m, k)), (case.right, (k, n)), (case.sums, (m, n)))
        ]
        product = tile.DotOp(*operands, precision=case.precision)
        self.block.add_op(product)
        pointers = self.pointers(case.sums, (m, n))
        self.block.add_ops([tile.StoreOp(pointers, product.result), ReturnOp()])
        function = FuncOp("kernel", (list(self.block.arg_types), []), Region(self.block))
        self.module = ModuleOp([function])
        self.module.verify()

    def pointers(self, dtype: DType, shape: tuple[int, int]) -> SSAValue:
        """A new argument, and the pointers to its elements."""
        base = self.block.insert_arg(pointer(dtype), len(self.block.args))
        index = tile.ArangeOp(0, shape[0] * shape[1])
        flat = tile.ReshapeOp(index.result, shape)
        splat = tile.SplatOp(base, shape)
        found = tile.AddPtrOp(splat.result, flat.result)
        self.block.add_ops([index, flat, splat, found])
        return found.result

    def load(self, dtype: DType, shape: tuple[int, int]) -> SSAValue:
        """A new argument, loaded."""
        op = tile.LoadOp(self.pointers(dtype, shape))
        self.block.add_op(op)
        return op.result

    def compiled(self, warps: int) -> GpuKernel:
        """Its PTX."""
        options = Options(disjoint=True, launch=(("num_warps", warps),))
        return compile_module(self.module, targets.gpu(self.case.target), options)


def assemble(kernel: GpuKernel, target: str, folder: Path) -> None:
    """ptxas accepts it, where there is ptxas."""
    if shutil.which("ptxas") is not None:
        source = folder / "kernel.ptx"
        source.write_text(kernel.ptx)
        command = ["ptxas", f"-arch={target}", str(source), "-o", str(folder / "kernel.cubin")]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("warps", every(2, [4, 1]))
def test_a_dot_by_its_instruction(case: Case, warps: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    m, n, k = case.sizes
    arrays = [matrix(rng, d, s) for d, s in ((case.left, (m, k)), (case.right, (k, n)), (case.sums, (m, n)))]
    if not case.sums.is_float:
        arrays[2] >>= 8  # so that sums do not wrap
    kernel = Dot(case).compiled(warps)
    tiles = (m // case.shape[0]) * (n // case.shape[1])
    count = max(1, tiles // warps) * (k // case.shape[2])
    shape, types = case.instruction.split(".", 1)
    assert kernel.ptx.count(f"mma.sync.aligned.{shape}.row.col.{types} ") == kernel.ptx.count("mma.sync") == count
    assemble(kernel, case.target, tmp_path)
    result = np.zeros((m, n), case.sums.numpy)
    emulator.Module(kernel.ptx).launch("kernel", 1, kernel.threads, [*arrays, result], shared=kernel.shared)
    wide = np.float64 if case.sums.is_float else np.int64
    np.testing.assert_array_equal(result, arrays[2].astype(wide) + arrays[0].astype(wide) @ arrays[1].astype(wide))


def test_sums_of_float16_are_rounded_behind_each_instruction() -> None:
    """2049 lies between the float16 2048 and 2050 and becomes 2048: once behind the first 16 products, and again behind the rest.
    All products at once give 2050."""
    a, b, c = np.zeros((16, 32), np.float16), np.ones((32, 8), np.float16), np.zeros((16, 8), np.float16)
    a[:, 0], a[:, 1], a[:, 16] = 2048, 1, 1
    kernel = Dot(case("sm_80", (F16, F16, F16), (16, 8, 32), "m16n8k16.f16.f16.f16.f16")).compiled(1)
    result = np.zeros((16, 8), np.float16)
    emulator.Module(kernel.ptx).launch("kernel", 1, kernel.threads, [a, b, c, result], shared=kernel.shared)
    assert (result == 2048).all()

"""Rows of a product's right operand that is packed before it is multiplied, as for AMX, are packed four registers at a time, in
groups that are left out where their columns are not wanted: values beside NumPy, and the emitted code."""

# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from xdsl.dialects.builtin import ModuleOp

import weft
import weft.language as tl
from weft import dtypes
from weft.codegen import emit_llvm, lay_out
from weft.codegen.cpu.panels import guard_of
from weft.codegen.cpu.schedule import RegisterLoop
from weft.codegen.llvm.types import I64
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.ir.cpu import PackOp
from weft.ir.types import layout_of
from weft.options import Options
from weft.target import CpuTarget

pytestmark = pytest.mark.jit


@weft.jit
def products(a: Any, b: Any, c: Any, columns: Any, depth: Any, N: tl.constexpr, SUMS: tl.constexpr) -> None:
    m, n, k = tl.arange(0, 16), tl.arange(0, N), tl.arange(0, 16)
    total = tl.zeros((16, N), SUMS)
    for at in range(0, depth, 16):
        left = at + k < depth
        x = tl.load(a + m[:, None] * depth + (at + k)[None, :], mask=left[None, :], other=0)
        inside = left[:, None] & (n < columns)[None, :]
        total = tl.dot(x, tl.load(b + (at + k)[:, None] * columns + n[None, :], mask=inside, other=0), total)
    tl.store(c + m[:, None] * columns + n[None, :], total, mask=(n < columns)[None, :])


@pytest.mark.parametrize(("dtype", "sums"), [(np.float32, tl.float32), (np.float64, tl.float64), (np.int8, tl.int32)])
def test_columns_that_end_within_a_group_and_between_groups(dtype: Any, sums: Any) -> None:
    random = np.random.default_rng(7)
    for columns in (1, 31, 32, 33, 63, 64, 65, 96, 127, 128):
        depth = 40
        a, b = (random.integers(-3, 4, shape).astype(dtype) for shape in ((16, depth), (depth, columns)))
        c = np.full((16, columns), 99, np.int32 if dtype is np.int8 else dtype)
        products[(1,)](a, b, c, columns, depth, N=128, SUMS=sums)
        np.testing.assert_array_equal(c, a.astype(np.float64) @ b, err_msg=f"{columns}")


TARGET = CpuTarget(
    "x86_64-unknown-linux-gnu", "sapphirerapids", "+avx512f,+avx512bw,+avx512vl,+amx-tile,+amx-bf16", 512
)


def module_of(n: int) -> ModuleOp:
    pointer, number = PointerArgument(dtypes.bfloat16, aligned=True), ScalarArgument(dtypes.int32)
    signature: dict[str, Argument] = {
        **dict.fromkeys("ab", pointer),
        "c": PointerArgument(dtypes.float32, aligned=True),
        **dict.fromkeys(("columns", "depth"), number),
        "N": ConstantArgument(n),
        "SUMS": ConstantArgument(tl.float32),
    }
    return build_module(KernelFunction(products.fn), signature)


def test_groups_are_left_out_of_loops_that_pack_alone() -> None:
    """What else a loop does is wanted in all columns."""
    module = module_of(64)
    lay_out(module, TARGET, Options(disjoint=True))
    packs = [op for op in module.walk() if isinstance(op, PackOp)]
    left, right = (next(op for op in packs if op.geometry.axis == axis) for axis in (1, 0))
    size: ir.Value = ir.Function(ir.Module(), ir.FunctionType(I64, [I64]), "size").args[0]

    def scalar(_: Any) -> ir.Value:
        return size

    registers: Any = SimpleNamespace(scalar=scalar)

    def is_guarded(roots: list[Any], kept: list[Any]) -> bool:
        return guard_of(registers, RegisterLoop(layout_of(right.value), roots, kept=kept)) is not None

    assert is_guarded([right], [])
    assert not is_guarded([left], [])
    assert not is_guarded([right], [right.value])
    assert not is_guarded([right, next(op for op in module.walk() if isinstance(op, tile.StoreOp))], [])
    size = ir.Constant(I64, 64)
    assert not is_guarded([right], [])


@pytest.mark.parametrize(("n", "together"), [(32, 2), (64, 4), (128, 8)])
def test_registers_of_a_row_are_packed_together(n: int, together: int) -> None:
    """Two rows, of each at most four registers: one comparison with the number of columns that are wanted decides for all of a
    group, in both versions, and where zeros are packed."""
    text = emit_llvm(module_of(n), TARGET, Options(disjoint=True))
    blocks = {name: body for name, body in re.findall(r"^(\S+):\n((?:  .*\n)+)", text, re.M)}
    copied = {
        name: (len(re.findall(r"load <32 x i16>, ptr \S+, align 2\b", body)), body.count("store <32 x i16>"))
        for name, body in blocks.items()
    }
    groups = [name for name, found in copied.items() if found == (together, together)]
    left = [name for name, found in copied.items() if min(found) > together]
    assert groups and not left
    tested = re.findall(r"(%\S+) = icmp slt i64 \S+, (\S+)\n\s+br i1 \1, label %(\S+),", text)
    wanted = [limit for _, limit, name in tested if name.strip('"') in {group.strip('"') for group in groups}]
    assert len(wanted) == 1
    assert [limit for _, limit, _ in tested].count(wanted[0]) == 3

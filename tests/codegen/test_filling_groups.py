"""Right panels that are filled while their first rows are multiplied: which ones, how often their elements are read, and values
beside exact arithmetic, at each number of rows that a block and its quarters leave."""

# pyright: reportAssignmentType=false, reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects import scf

import weft
import weft.language as tl
from product_kernels import product, twice, whole
from sampling import at_night, grid
from weft import dtypes
from weft.codegen import emit_llvm, lay_out
from weft.codegen.cpu import fill_panels
from weft.codegen.cpu.fill_panels import loaded
from weft.codegen.cpu.filling_groups import filled_by_groups
from weft.codegen.cpu.schedule import RegisterLoop, Schedule
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir.cpu import ClaimOp, MultiplyOp, PackOp
from weft.ir.types import shape_of
from weft.options import Options
from weft.target import CpuTarget

pytestmark = pytest.mark.jit


TYPES: dict[str, tuple[Any, Any, Any]] = {
    "float32": (np.float32, np.float32, tl.float32),
    "float64": (np.float64, np.float64, tl.float64),
    "bfloat16": (ml_dtypes.bfloat16, np.float32, tl.float32),
    "int8": (np.int8, np.int32, tl.int32),
}


product_of_any_size = weft.jit(do_not_specialize=("M",))(product.fn)
"""`product`, compiled once for all numbers of rows."""


@pytest.mark.parametrize(
    ("name", "tile", "wrap"), grid(3, tuple(TYPES), ((16, 16, 16), (16, 64, 32), (64, 32, 16)), (False, True))
)
def test_rows_that_blocks_and_quarters_leave(name: str, tile: tuple[int, int, int], wrap: bool) -> None:
    """The first rows of programs that find the panel, and of those that fill it. 70 columns are no whole group, and 37 of the
    depth no whole step: what lies behind is packed under masks. The right operand is another one for each number of rows: else
    a panel that is not filled has what an earlier launch left."""
    bm, bn, bk = tile
    dtype, result, sums = TYPES[name]
    random = np.random.default_rng(bm + bn)
    columns, depth = 70, 37
    for rows in (1, 2, 4, 5, 8, 9, 12, 13, 16, 17, 33):
        a, b = (random.integers(-4, 5, shape).astype(dtype) for shape in ((rows, depth), (depth, columns)))
        c = np.full((rows, columns), 99, result)
        programs = weft.cdiv(rows, bm) * weft.cdiv(columns, bn)
        # by day one type has a kernel of its own for a single row, and for whole groups of 16
        kernel = product if at_night() or name == "float32" else product_of_any_size
        kernel[(programs,)](a, b, c, rows, columns, depth, BM=bm, BN=bn, BK=bk, WRAP=wrap, SUMS=sums)
        np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64), err_msg=f"{rows} rows")


TARGET = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx512vl", 512)


def module_of(kernel: Any, m: int, n: int, bk: int, dtype: Any = dtypes.float32) -> Any:
    signature: dict[str, Argument] = {
        **dict.fromkeys("ab", PointerArgument(dtype, aligned=True)),
        "c": PointerArgument(dtypes.float32, aligned=True),
        "K": ScalarArgument(dtypes.int32),
        **{name: ConstantArgument(value) for name, value in (("M", m), ("N", n), ("BK", bk))},
    }
    return build_module(KernelFunction(kernel.fn), signature)


def delayed(kernel: Any, target: CpuTarget = TARGET, dtype: Any = dtypes.float32) -> list[bool]:
    """Whether what fills the panels of a kernel is delayed, of the left and then the right ones."""
    module = module_of(kernel, 16, 32, 16, dtype)
    lay_out(module, target, Options(disjoint=True))

    def schedule_of(block: Any) -> Schedule:
        packs = [op for op in block.ops if isinstance(op, PackOp)]
        return Schedule([RegisterLoop(None, [pack]) for pack in packs], set(), {})

    branches = [op for op in module.walk() if isinstance(op, scf.IfOp) and isinstance(op.cond.owner, ClaimOp)]
    return [filled_by_groups(op, schedule_of) is not None for op in branches]


def test_panels_that_products_fill() -> None:
    """The right one of one product. Not one that is left, or has two readers, or is multiplied by AMX."""
    assert delayed(whole) == [False, True]
    assert delayed(twice) == [False, False, False]
    amx = CpuTarget(TARGET.triple, "sapphirerapids", f"{TARGET.features},+amx-tile,+amx-bf16", 512)
    assert delayed(whole, amx, dtypes.bfloat16) == [False, False]


def test_what_else_a_loop_does_keeps_it_where_it_is() -> None:
    module = module_of(whole, 16, 32, 16)
    lay_out(module, TARGET, Options(disjoint=True))
    (product,) = (op for op in module.walk() if isinstance(op, MultiplyOp))
    claim = product.right.owner
    assert isinstance(claim, ClaimOp)
    (branch,) = (use.operation for use in claim.stale.uses if isinstance(use.operation, scf.IfOp))
    (pack,) = (op for op in branch.walk() if isinstance(op, PackOp))

    def found(outside: list[Any], inside: list[Any]) -> bool:
        def schedule_of(block: Any) -> Schedule:
            return Schedule(outside if block is branch.true_region.block else inside, set(), {})

        return filled_by_groups(branch, schedule_of) is not None

    def loop(roots: list[Any], kept: list[Any]) -> Any:
        return RegisterLoop(None, roots, kept=kept)

    packing, keeping = loop([pack], []), loop([], [pack.value])
    assert found([], [packing])
    assert found([keeping], [packing])
    assert not found([], [keeping, packing])
    assert not found([], [loop([pack], [pack.value])])
    assert not found([], [loop([pack, product], [])])


@pytest.mark.parametrize(("n", "rows"), [(32, 8), (16, 16)])
def test_what_was_packed_is_multiplied_from_registers(n: int, rows: int) -> None:
    """Where a word of 32 columns is packed, or two of 16, each sum is there once a word; and no vector is loaded there but of the
    operand, and of sums and words in stack slots."""
    text = emit_llvm(module_of(whole, 16, n, 16), TARGET, Options(disjoint=True))
    blocks = re.findall(r"^\S+:\n((?:  .*\n)+)", text, re.M)
    (filling,) = (b for b in blocks if "fmuladd" in b and "store <16 x float>" in b and "align 4\n" in b)
    assert filling.count('@"llvm.fmuladd') == rows * 2
    assert len(re.findall(r"load <16 x float>, ptr \S+, align 4\b", filling)) == 2
    assert not re.findall(r"load <16 x float>, ptr \S+, align 64\b", filling)


def text_of_product(bm: int, bn: int, *, wrap: bool) -> str:
    pointer, number = PointerArgument(dtypes.float32, aligned=True), ScalarArgument(dtypes.int32)
    constants: dict[str, Any] = {"BM": bm, "BN": bn, "BK": 16, "WRAP": wrap, "SUMS": dtypes.float32}
    signature: dict[str, Argument] = {
        **dict.fromkeys("abc", pointer),
        **dict.fromkeys("MNK", number),
        **{name: ConstantArgument(value) for name, value in constants.items()},
    }
    return emit_llvm(build_module(KernelFunction(product.fn), signature), TARGET, Options(disjoint=True))


def test_what_rows_share_is_read_before_them() -> None:
    """Of wrapped columns, whose offsets are in a buffer, the ends of both registers of a group: once, and not for each word."""
    (entry, *blocks) = re.findall(r"^\S+:\n((?:  .*\n)+)", text_of_product(16, 32, wrap=True), re.M)
    offsets = [body.count("load i32,") for body in blocks if "load i32," in body]
    assert "load i32," in entry, "arguments"
    assert offsets == [4]


def test_sums_begin_with_zeros_in_rows_that_are_wanted() -> None:
    """A row of 32 columns is two registers. Rows that the last programs leave out stay as they are. Where there are no steps, the
    result is zeros."""
    blocks = re.findall(r"^\S+:\n((?:  .*\n)+)", text_of_product(64, 32, wrap=False), re.M)
    (clearing,) = (body for body in blocks if "store <16 x float> splat (float" in body)
    assert clearing.count("store <16 x float> splat (float") == 2
    assert re.search(r"icmp ult i64 \S+, %", clearing), "a number of rows that is known at run time"
    x, c = np.ones((70, 40), np.float32), np.full((70, 40), 99, np.float32)
    product[(4,)](x, x.copy(), c, 70, 40, 0, BM=64, BN=32, BK=16, WRAP=False, SUMS=tl.float32)
    assert not c.any()


def test_rows_are_prefetched_before_they_are_packed() -> None:
    """Both lines of 32 columns, by the distance from the row before. Not rows of narrow elements, which are packed together."""
    blocks = re.findall(r"^\S+:\n((?:  .*\n)+)", text_of_product(64, 32, wrap=False), re.M)
    row = r"ptr (%\S+), i64 63\n.*prefetch.*\n.*ptr \1, i64 127\n.*prefetch"
    (packing,) = (body for body in blocks if re.search(row, body))
    assert re.search(r"(%\S+) = sub i64 %\S+, %\S+\n\s+%\S+ = mul i64 \1, 16\n", packing)
    target = CpuTarget(TARGET.triple, "x86-64-v4", f"{TARGET.features},+avx512bf16,+fast-dpbf16ps", 512)
    text = emit_llvm(module_of(whole, 8, 32, 16, dtypes.bfloat16), target, Options(disjoint=True))
    assert "prefetch" not in text


def test_no_more_rows_are_multiplied_while_a_panel_is_filled_than_are_wanted() -> None:
    """Two of eight, where no more are: by 2 registers of a row. Else a product of one row took 1.4 times as long."""
    blocks = re.findall(r"^\S+:\n((?:  .*\n)+)", text_of_product(16, 32, wrap=False), re.M)
    counts = [body.count('@"llvm.fmuladd') for body in blocks if '@"llvm.fmuladd' in body]
    assert sorted(counts) == [
        2 * 2,
        2 * 2,
        8 * 2,
        2 * 8 * 2,
    ]  # filling and left-over rows; filling, and two words in a block


@weft.jit
def scaled(a: Any, s: Any, b: Any, c: Any, K: Any, FIRST: tl.constexpr, N: tl.constexpr) -> None:
    """A row of the right operand has a scale for each column, which is loaded in each step."""
    m, n, k = tl.arange(0, 8), tl.arange(0, N), tl.arange(0, 16)
    total = tl.zeros((8, N), tl.float32)
    for at in range(0, K, 16):
        x = tl.load(a + m[:, None] * K + (at + k)[None, :])
        scale, y = tl.load(s + at // 16 * N + n)[None, :], tl.load(b + (at + k)[:, None] * N + n[None, :])
        total = tl.dot(x, scale * y if FIRST else y * scale, total)
    tl.store(c + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize("first", [False, True])
def test_rows_of_the_operand_are_prefetched_and_not_of_its_scales(first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []

    def seen(loop: RegisterLoop) -> Any:
        found.append(loaded(loop))
        return found[-1]

    monkeypatch.setattr(fill_panels, "loaded", seen)
    signature: dict[str, Argument] = {
        **dict.fromkeys("asbc", PointerArgument(dtypes.float32, aligned=True)),
        "K": ScalarArgument(dtypes.int32),
        "FIRST": ConstantArgument(first),
        "N": ConstantArgument(32),
    }
    text = emit_llvm(build_module(KernelFunction(scaled.fn), signature), TARGET, Options(disjoint=True))
    assert "prefetch" in text
    assert {shape_of(load.result) for load in found if load is not None} == {(16, 32)}

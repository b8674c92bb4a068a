"""Which lines a block of a product prefetches for the next one: the emitted code with a recorder in the place of the
prefetches; and which products do."""

# pyright: reportIndexIssue=false, reportOperatorIssue=false, reportArgumentType=false

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

import weft
import weft.language as tl
from weft import dtypes
from weft.codegen import emit_llvm
from weft.codegen.cpu.next_rows import LINE, NextRows
from weft.codegen.llvm.types import I64, POINTER, Module
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, build_module
from weft.options import Options
from weft.target import CpuTarget, host

pytestmark = pytest.mark.jit

RECORDED: list[tuple[int, int, int, int]] = []
"""Address, whether it is to be written, locality, and whether it is data."""


@ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)
def record(*prefetch: int) -> None:
    """Stands for a prefetch."""
    RECORDED.append((prefetch[0], prefetch[1], prefetch[2], prefetch[3]))


@cache
def compiled(rows: NextRows) -> tuple[object, Callable[[int, int], None], Callable[[int, int], int]]:
    """``void fetch(first, step)``, whose prefetches call the recorder, and ``int64 after(row, wanted)``."""
    module = Module("test", host().triple, host().enabled)
    fetch = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, I64]), "fetch")
    builder = ir.IRBuilder(fetch.append_basic_block("entry"))
    rows.fetch(builder, *fetch.args)
    builder.ret_void()
    after = ir.Function(module, ir.FunctionType(I64, [I64, I64]), "after")
    builder = ir.IRBuilder(after.append_basic_block("entry"))
    builder.ret(rows.after(builder, *after.args))
    llvm.add_symbol("record_prefetch", ctypes.cast(record, ctypes.c_void_p).value)
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    text = str(module).replace('@"llvm.prefetch.p0"', '@"record_prefetch"')
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    fetched = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("fetch"))
    following = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(engine.get_function_address("after"))
    return engine, fetched, following


@pytest.mark.parametrize("rows", [1, 2, 4, 6, 8, 16])
@pytest.mark.parametrize("stretch", [8, 16, 32])
def test_each_line_of_each_row_is_fetched_once(rows: int, stretch: int) -> None:
    """In the steps that read the same line, each as many rows. Where that is more than there are, some are fetched again."""
    pitch, first = 320, 1 << 20
    _, fetch, _ = compiled(NextRows(rows, pitch, stretch))
    steps = LINE // stretch
    share = -(-rows // steps)
    for line in range(3):
        RECORDED.clear()
        counts: list[int] = []
        for step in range(line * steps, (line + 1) * steps):
            before = len(RECORDED)
            fetch(first, step)
            counts.append(len(RECORDED) - before)
        assert set(counts) == {share}
        assert {prefetch[1:] for prefetch in RECORDED} == {(0, 2, 1)}, "data to read, into the second cache"
        lines = [(prefetch[0] - first) // LINE for prefetch in RECORDED]
        assert sorted(set(lines)) == sorted(row * pitch // LINE + line for row in range(rows))
        assert len(lines) == share * steps


def test_the_rows_that_come_next() -> None:
    """A block that is there as a whole, or the first one; never rows that are not wanted."""
    _, _, after = compiled(NextRows(8, 320, 16))
    for row, wanted in product(range(0, 64, 8), range(65)):
        assert after(row, wanted) == (row + 8 if row + 16 <= wanted else 0)


@weft.jit
def products(a: Any, b: Any, c: Any, M: tl.constexpr, N: tl.constexpr, TURNED: tl.constexpr) -> None:
    m, n, k = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, 32)
    total = tl.zeros((M, N), tl.float32)
    for step in range(8):
        at = k + step * 32
        x = tl.load(a + (m[:, None] + at[None, :] * 1024 if TURNED else m[:, None] * 256 + at[None, :]))
        total = tl.dot(x, tl.load(b + at[:, None] * N + n[None, :]), total)
    tl.store(c + m[:, None] * N + n[None, :], total)


@pytest.mark.parametrize(
    ("m", "n", "turned", "fetched"),
    [(64, 32, False, 1), (8, 32, False, 0), (32, 16, False, 2), (16, 16, False, 0), (64, 32, True, 0)],
)
def test_products_that_fetch(m: int, n: int, turned: bool, fetched: int) -> None:
    """Blocks have 8 rows of 32 columns or 16 of 16. They fetch from the rows behind the next one, or from the first of the panel,
    whose rows have 256 elements and 64 bytes of padding; not where there is one block, and not in a panel that is one stream.
    Prefetches at constant offsets are of the right operand."""
    pointer = PointerArgument(dtypes.float32, aligned=True)
    constants = {"M": ConstantArgument(m), "N": ConstantArgument(n), "TURNED": ConstantArgument(turned)}
    signature: dict[str, Argument] = {**dict.fromkeys("abc", pointer), **constants}
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx512vl", 512)
    text = emit_llvm(build_module(KernelFunction(products.fn), signature), target, Options(disjoint=True))
    places = re.findall(r'gep (%\S+), i64 %\S+\n.*"llvm.prefetch', text.replace("getelementptr i8, ptr", "gep"))
    assert len(places) == fetched
    chosen = r"(%\S+) = select +i1 \S+, i64 \S+, i64 0\n"
    first = r"\s+(%\S+) = mul i64 \1, 272\n\s+(%\S+) = mul i64 \2, 4\n\s+(%\S+) = getelementptr i8, ptr \S+, i64 \3\n"
    assert set(places) == {found[-1] for found in re.findall(chosen + first, text)}

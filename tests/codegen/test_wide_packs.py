"""Panels of narrow elements, packed by long registers: their interleaving lane by lane, and products whose columns wrap around
within a register, beside NumPy on whole numbers."""

# Kernels give constexpr variables plain values, which no type checker can know to be right.
# pyright: reportAssignmentType=false, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pytest
from llvmlite import ir
from numpy.typing import NDArray
from xdsl.dialects import func

import weft
import weft.language as tl
from host_targets import compiled_for
from native_functions import native_function
from sampling import at_night
from weft import dtypes
from weft import target as targets
from weft.codegen import emit_llvm, lay_out
from weft.codegen.cpu.likely_runs import deciding
from weft.codegen.llvm.interleave import interleaved
from weft.codegen.llvm.types import I64, POINTER, Module
from weft.frontend import ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir import tile
from weft.ir.cpu import ClaimOp, MultiplyOp, PackOp
from weft.ir.types import shape_of
from weft.options import Options
from weft.runtime import compiler
from weft.target import CpuTarget, host
from weft.transforms.axis import analyse

if TYPE_CHECKING:
    from codegen.conftest import Differential

pytestmark = pytest.mark.jit

Array = NDArray[Any]

PARTS: Final = (
    *((1, 16, 1), (2, 8, 2), (2, 32, 2), (4, 4, 1), (4, 16, 1), (4, 32, 1), (4, 64, 1), (4, 32, 2)),
    *((8, 16, 1), (8, 64, 1), (8, 4, 1), (16, 8, 2)),
)
"""How many vectors, their lanes, and the bytes of an element."""


@pytest.mark.parametrize(("parts", "lanes", "size"), PARTS)
def test_lanes_take_turns(parts: int, lanes: int, size: int) -> None:
    module = Module("test", host().triple, host().enabled)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER, POINTER]), "interleave")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    type_, source, result = ir.VectorType(ir.IntType(8 * size), lanes), *function.args

    def at(pointer: ir.Value, i: int) -> ir.Value:
        return builder.gep(pointer, [ir.Constant(I64, i)], source_etype=type_)

    vectors = [builder.load(at(source, i), typ=type_, align=1) for i in range(parts)]
    for i, vector in enumerate(interleaved(builder, vectors, size)):
        builder.store(vector, at(result, i), align=1)
    builder.ret_void()
    call = native_function(module, "interleave", ctypes.c_void_p, ctypes.c_void_p)
    given = np.arange(parts * lanes, dtype=f"u{size}")
    found = np.zeros_like(given)
    call(given.ctypes.data, found.ctypes.data)
    assert np.array_equal(found, given.reshape(parts, lanes).T.ravel())


@KernelFunction
def two_products(
    a_ptr: Any, b_ptr: Any, c_ptr: Any, d_ptr: Any, e_ptr: Any, K: Any, M: tl.constexpr, M2: tl.constexpr
) -> None:  # fmt: skip
    """Of one right operand."""
    m, m2, n, k = tl.arange(0, M), tl.arange(0, M2), tl.arange(0, 16), tl.arange(0, 64)
    total, other = tl.zeros((M, 16), tl.int32), tl.zeros((M2, 16), tl.int32)
    for at in range(0, K, 64):
        a = tl.load(a_ptr + m[:, None] * K + (at + k)[None, :])
        d = tl.load(d_ptr + m2[:, None] * K + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * 16 + n[None, :])
        total, other = tl.dot(a, b, total), tl.dot(d, b, other)
    tl.store(c_ptr + m[:, None] * 16 + n[None, :], total)
    tl.store(e_ptr + m2[:, None] * 16 + n[None, :], other)


@pytest.mark.parametrize(("m", "m2"), [(16, 8), (8, 16), (8, 4)])
def test_panels_whose_excess_is_kept_have_room_for_it(m: int, m2: int) -> None:
    """A machine with AMX multiplies 16 rows by it, and fewer by vpdpbusd: the panels of one operand differ by the excess."""
    features = "+avx512f,+avx512bw,+avx512vl,+avx512dq,+avx512vnni,+amx-tile,+amx-int8"
    target = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", features, 512)
    pointers = {name: PointerArgument(dtypes.int8) for name in ("a_ptr", "b_ptr", "d_ptr")}
    pointers |= {name: PointerArgument(dtypes.int32) for name in ("c_ptr", "e_ptr")}
    numbers = {"K": ScalarArgument(dtypes.int32), "M": ConstantArgument(m), "M2": ConstantArgument(m2)}
    module = build_module(two_products, pointers | numbers)
    lay_out(module, target, Options(disjoint=True))
    used: list[str] = []
    for op in (op for op in module.walk() if isinstance(op, MultiplyOp)):
        claim = op.right.owner
        assert isinstance(claim, ClaimOp)
        used.append(op.instruction.data)
        excess = 4 * 16 if used[-1] == "avx512.vnni" else 0
        assert claim.bytes.value.data >= 16 * op.right_depth.value.data + excess
    assert sorted(used) == sorted("amx.int8" if rows == 16 else "avx512.vnni" for rows in (m, m2))


@KernelFunction
def product(
    a_ptr: Any, b_ptr: Any, c_ptr: Any, K: Any, columns: Any, shift: Any,
    M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, WAY: tl.constexpr,
) -> None:  # fmt: skip
    """Columns of ``b`` that wrap around, stay at the last one, or end."""
    m, n, k = tl.arange(0, M), tl.arange(0, N) - shift, tl.arange(0, BK)
    column = n % columns if WAY == "rem" else tl.minimum(n, columns - 1) if WAY == "min" else n
    total = tl.zeros((M, N), tl.int32)
    for at in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + (at + k)[None, :], mask=(at + k)[None, :] < K, other=0)
        inside = (at + k)[:, None] < K
        if WAY == "mask":
            inside = inside & (n < columns)[None, :]
        b = tl.load(b_ptr + 200 + (at + k)[:, None] * 400 + column[None, :], mask=inside, other=0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * N + tl.arange(0, N)[None, :], total)


@pytest.fixture(params=["native", "x86-64-v4", "x86-64-v3,+avxvnni", "x86-64-v3", "x86-64", "native,-i8mm"])
def at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> CpuTarget:
    """A target that this machine can run, as what is compiled for."""
    return compiled_for(request.param, monkeypatch)


SIZES: Final = ((1000, 0), (128, 0), (127, 0), (64, 3), (63, 0), (37, 0), (7, 0), (1, 0), (16, 64), (100, 65))
"""How many columns there are, and how far behind the first the tile begins: remainders of negative numbers are negative."""


@pytest.mark.parametrize("way", ["rem", "min", "mask"])
def test_columns_that_wrap_around(differ: Differential, at: CpuTarget, way: str) -> None:
    """In every register, in some, and in none; with a depth that no group divides."""
    m, n, k = 4, 128, 75
    r = np.random.default_rng(1)
    a, b = (r.integers(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, 400)))
    out, numbers = np.zeros((m, n), np.int32), np.int32(k)
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": out, "K": numbers, "columns": numbers, "shift": numbers}
    kernel = differ.build(product, **arguments, M=m, N=n, BK=64, WAY=way)
    code = differ.compiled(kernel, disjoint=True)
    for columns, shift in SIZES:
        wanted = np.arange(n) - shift
        if way == "mask":
            wanted, there = np.minimum(wanted, 190), wanted < columns
        else:
            wanted = np.fmod(wanted, columns) if way == "rem" else np.minimum(wanted, min(columns, 190) - 1)
            there = np.ones(n, bool)
        right = b[:, 200 + wanted].astype(np.int64) * there
        differ.launch(
            code, [a, b, out, numbers, np.int32(columns if way != "min" else min(columns, 190)), np.int32(shift)]
        )
        assert np.array_equal(out, a.astype(np.int64) @ right), (columns, shift)


@pytest.mark.parametrize("differ", ["native"], indirect=True)
def test_addresses_take_no_memory(differ: Differential) -> None:
    """Remainders are kept for each column: 512 bytes, and not an address of 8 bytes for each of 64 x 128 elements."""
    number, a, b, c = np.int32(1), np.zeros(1, np.int8), np.zeros(1, np.int8), np.zeros(1, np.int32)
    arguments = {"a_ptr": a, "b_ptr": b, "c_ptr": c, "K": number, "columns": number, "shift": number}
    wrapped, plain = (
        differ.compiled(differ.build(product, **arguments, M=4, N=128, BK=64, WAY=way), disjoint=True).scratch
        for way in ("rem", "run")
    )
    assert wrapped - plain <= 1024


@weft.jit
def columns_of(b_ptr: Any, c_ptr: Any, columns: Any, WAY: tl.constexpr) -> None:
    """A tile whose columns are chosen in one of several ways."""
    k, n = tl.arange(0, 16), tl.program_id(0) * 64 + tl.arange(0, 64)
    column = n
    if WAY == "rem":
        column = 5 + n % columns
    elif WAY == "min":
        column = tl.minimum(n, columns - 1)
    elif WAY == "max":
        column = tl.maximum(n, columns)
    elif WAY == "twice":
        column = 2 * n % columns
    elif WAY == "sum":
        column = n % columns + n
    elif WAY == "own":
        column = n % (n + columns)
    elif WAY == "loaded":
        column = tl.load(c_ptr + n) % columns
    b = tl.load(b_ptr + (k * columns)[:, None] + column[None, :])
    tl.store(c_ptr + tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :], b.to(tl.int32))


@pytest.mark.parametrize(
    ("way", "expected"),
    [("run", 1), ("rem", 1), ("min", 1), ("max", 0), ("twice", 0), ("sum", 0), ("own", 0), ("loaded", 0)],
)
def test_where_the_ends_decide(way: str, expected: int) -> None:
    """Where a run wraps around or stays at its last number; of other ways some would do, but are not looked for."""
    b, c = np.zeros(4096, np.int8), np.zeros(1024, np.int32)
    handle = columns_of.compile(b, c, 100, WAY=way)
    module = compiler.laid_out(handle.kernel, handle.signature, handle.options, targets.host())
    function = next(op for op in module.walk() if isinstance(op, func.FuncOp))
    (load,) = [op for op in module.walk() if isinstance(op, tile.LoadOp) and shape_of(op.pointer) == (16, 64)]
    path = deciding(load.pointer, analyse(function))
    assert bool(path) == bool(expected)
    if way in ("rem", "min"):
        (offsets,) = [op for op in module.walk() if isinstance(op, tile.BinaryOp) and op.kind.data == way]
        assert path[0] is load.pointer and path[-1] is offsets.result


@weft.jit
def cut_off(a_ptr: Any, b_ptr: Any, c_ptr: Any, columns: Any, TWICE: tl.constexpr) -> None:
    """Columns that wrap around, of which the first are stored; and of another product, if ``TWICE``, half as many."""
    m, k, n, half = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 64), columns // 2
    total, other = tl.zeros((16, 64), tl.float32), tl.zeros((16, 64), tl.float32)
    for at in range(0, 64, 16):
        a = tl.load(a_ptr + m[:, None] * 64 + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * columns + (n % columns)[None, :])
        total = tl.dot(a, b, total)
        if TWICE:
            other = tl.dot(a, b, other)
    tl.store(c_ptr + m[:, None] * columns + n[None, :], total, mask=(n < columns)[None, :])
    if TWICE:
        tl.store(c_ptr + 1024 + m[:, None] * columns + n[None, :], other, mask=(n < half)[None, :])


cut_off_anywhere = weft.jit(do_not_specialize=("columns",))(cut_off.fn)
"""`cut_off`, compiled once for all numbers of columns."""


@pytest.mark.parametrize("twice", [False, True])
def test_only_columns_that_are_stored_are_packed(twice: bool) -> None:
    """Unless another product stores other ones. By day one product has kernels of its own for 1 column and for multiples of
    16."""
    kernel = cut_off_anywhere if twice and not at_night() else cut_off
    r = np.random.default_rng(1)
    for columns in (1, 16, 31, 32, 33, 63, 64):
        a, b = (r.integers(-4, 5, shape).astype(np.float32) for shape in ((16, 64), (64, columns)))
        out = np.zeros(2048, np.float32)
        kernel[(1,)](a, b, out, columns, TWICE=twice)
        assert np.array_equal(out[: 16 * columns].reshape(16, columns), a @ b)
        if twice:
            half = out[1024:][: 16 * columns].reshape(16, columns)
            assert np.array_equal(half, (a @ b) * (np.arange(columns) < columns // 2))
    handle = cut_off.compile(a, b, out, 33, TWICE=twice)
    module = compiler.laid_out(handle.kernel, handle.signature, handle.options, targets.host())
    sizes = [op.size for op in module.walk() if isinstance(op, PackOp) and not op.axis.value.data]
    assert [isinstance(size.owner, tile.ConstantOp) for size in sizes] == [twice] * len(sizes)


@weft.jit
def narrower_first(a_ptr: Any, b_ptr: Any, c_ptr: Any, TWICE: tl.constexpr) -> None:
    """16 rows by 64 of 128 columns. Even rows of programs store 8 columns of the product and 9 of the second, odd ones all."""
    p = tl.program_id(0) // 2
    first, second = 8 + p % 2 * 56, 9 + p % 2 * 55
    m, k, n = p * 16 + tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 64)
    column = tl.program_id(0) % 2 * 64 + n
    total, other = tl.zeros((16, 64), tl.int32), tl.zeros((16, 64), tl.int32)
    for at in range(0, 64, 16):
        b = tl.load(b_ptr + (at + k)[:, None] * 128 + column[None, :])
        total = tl.dot(tl.load(a_ptr + m[:, None] * 64 + (at + k)[None, :]), b, total)
        if TWICE:
            other = tl.dot(tl.load(a_ptr + 8192 + m[:, None] * 64 + (at + k)[None, :]), b, other)
    out = m[:, None] * 128 + column[None, :]
    tl.store(c_ptr + out, total, mask=(n < first)[None, :])
    if TWICE:
        tl.store(c_ptr + 16384 + out, other, mask=(n < second)[None, :])


@pytest.mark.parametrize("twice", [False, True])
def test_panels_that_are_found_have_the_sums_of_all_their_columns(twice: bool) -> None:
    """Two panels in turn, which a program fills that wants fewer columns than the next."""
    r = np.random.default_rng(1)
    a, b = (r.integers(-128, 128, shape).astype(np.int8) for shape in ((2, 128, 64), (64, 128)))
    out = np.full((2, 8, 16, 2, 64), 7, np.int32)
    narrower_first[(16,)](a, b, out, TWICE=twice)
    expected = (a.astype(np.int64) @ b.astype(np.int64)).reshape(out.shape)
    n, odd = np.arange(64), np.arange(8)[:, None, None, None] % 2
    stored = np.stack(np.broadcast_arrays(n < 8 + 56 * odd, (n < 9 + 55 * odd) & twice))
    assert np.array_equal(out, np.where(stored, expected, 7))


@weft.jit
def wraps(a_ptr: Any, b_ptr: Any, c_ptr: Any, period: Any, columns: Any, TO: tl.constexpr) -> None:
    """Columns that wrap around after a period, of which the first are stored."""
    m, k, n = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 64)
    total = tl.zeros((16, 64), TO)
    for at in range(0, 64, 16):
        a = tl.load(a_ptr + m[:, None] * 64 + (at + k)[None, :])
        b = tl.load(b_ptr + (at + k)[:, None] * period + (n % period)[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + m[:, None] * 64 + n[None, :], total, mask=(n < columns)[None, :])


wraps_anywhere = weft.jit(do_not_specialize=("period", "columns"))(wraps.fn)
"""`wraps`, compiled once for all periods and numbers of columns."""


@pytest.mark.parametrize("dtype", [np.int8, np.float32])
def test_columns_behind_the_wrap(dtype: Any) -> None:
    """What is not stored is not gathered, and what is stored is right wherever columns wrap around. By day int8 has kernels of
    its own for periods and columns of 1 and of multiples of 16."""
    kernel = wraps if at_night() or dtype is np.int8 else wraps_anywhere
    r = np.random.default_rng(2)
    sums = np.int32 if dtype is np.int8 else np.float32
    for period in (1, 7, 16, 33, 63, 64, 100):
        a, b = (r.integers(-4, 5, shape).astype(dtype) for shape in ((16, 64), (64, period)))
        for columns in {1, period - 1, period, period + 1, 40, 64} - {0}:
            out = np.full((16, 64), 99, sums)
            kernel[(1,)](a, b, out, period, columns, TO=tl.int32 if dtype is np.int8 else tl.float32)
            expected = a.astype(np.float64) @ b.astype(np.float64)[:, np.arange(64) % period]
            np.testing.assert_array_equal(
                out, np.where(np.arange(64) < columns, expected, 99), err_msg=f"{period}, {columns}"
            )


def test_columns_behind_the_wrap_are_masked_off() -> None:
    b, c = np.zeros(6400, np.int8), np.zeros((16, 64), np.int32)
    handle = wraps.compile(b, b, c, 100, 70, TO=tl.int32)
    target = CpuTarget(
        "x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512vnni", 512
    )
    module = build_module(handle.kernel, handle.signature)
    assert re.search(r"call <\d+ x i8> @.?llvm\.masked\.load", emit_llvm(module, target, Options(disjoint=True)))

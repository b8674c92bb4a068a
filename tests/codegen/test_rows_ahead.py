"""Prefetches of rows that follow loaded indices, and of rows far apart: which loops have them, how far ahead, and that they read
no foreign page."""

# pyright: reportIndexIssue=false, reportOperatorIssue=false

from __future__ import annotations

import ctypes
import mmap
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft import dtypes
from weft.codegen import emit_llvm
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import CpuTarget

pytestmark = pytest.mark.jit
jit = KernelFunction
TARGET = CpuTarget("x86_64-unknown-linux-gnu", "x86-64", "+sse2", 128)
AHEAD = replace(TARGET, tuning=("prefetch-rows",))
PAGE = 4096


@weft.jit
def bags(table: Any, index: Any, out: Any, rows: Any, length: Any, COLUMNS: tl.constexpr, BAGS: tl.constexpr) -> None:
    columns, bag = tl.arange(0, COLUMNS), tl.program_id(0) * BAGS + tl.arange(0, BAGS)
    total = tl.zeros((BAGS, COLUMNS), tl.float32)
    for k in range(length):
        at = tl.load(index + bag * length + k, mask=bag < rows, other=0)
        total += tl.load(table + at[:, None] * COLUMNS + columns[None, :])
    tl.store(out + bag[:, None] * COLUMNS + columns[None, :], total, mask=(bag < rows)[:, None])


@weft.jit
def sparse(table: Any, index: Any, begins: Any, out: Any, COLUMNS: tl.constexpr) -> None:
    """Sums of the rows between two places: a product with a sparse matrix of ones."""
    row, columns = tl.program_id(0), tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for k in range(tl.load(begins + row), tl.load(begins + row + 1)):
        total += tl.load(table + tl.load(index + k) * COLUMNS + columns).to(tl.float32)
    tl.store(out + row * COLUMNS + columns, total)


def at_the_end_of_a_page(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], mmap.mmap]:
    """A copy in memory behind which no byte may be read; and that memory."""
    size = -(-values.nbytes // mmap.PAGESIZE) * mmap.PAGESIZE
    memory = mmap.mmap(-1, size + mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + size), ctypes.c_size_t(mmap.PAGESIZE), 0) == 0
    copy = np.frombuffer(memory, values.dtype, values.size, size - values.nbytes).reshape(values.shape)
    copy[:] = values
    return copy, memory


@pytest.mark.skipif(
    not hasattr(mmap, "PROT_READ"), reason="this system has no mprotect, by which the test forbids a page"
)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("length", [1, 5, 40, 1100])
def test_no_page_behind_the_indices_is_read(dtype: Any, length: int) -> None:
    """A wrong read would end this process. The sums are NumPy's, also where a last program has fewer bags."""
    rng = np.random.default_rng(length)
    table = rng.integers(-9, 9, (50, 64)).astype(np.float32)
    index, memory = at_the_end_of_a_page(rng.integers(0, 50, (7, length)).astype(dtype))
    for together in (1, 4, 16):
        out = np.zeros((7, 64), np.float32)
        bags[(weft.cdiv(7, together),)](table, index, out, 7, length, COLUMNS=64, BAGS=together)
        np.testing.assert_array_equal(out, table[index].sum(axis=1))
    begins = np.array([0, 0, length, 7 * length - 1, 7 * length], dtype)
    out = np.zeros((4, 64), np.float32)
    sparse[(4,)](table, index, begins, out, COLUMNS=64)
    flat = index.ravel()
    expected = [table[flat[first:last]].sum(axis=0) for first, last in zip(begins[:-1], begins[1:], strict=True)]
    np.testing.assert_array_equal(out, expected)
    assert not memory.closed


def text_of(
    kernel: Any,
    numbers: dict[str, Any],
    *,
    checked: bool = False,
    table: dtypes.DType = dtypes.float32,
    target: CpuTarget = TARGET,
) -> str:
    """A kernel's LLVM IR. Parameters are int64 indices, float32 tables, int32 numbers, or the constants given."""
    kinds: dict[str, Argument] = {
        **dict.fromkeys(("index", "begins", "second"), PointerArgument(dtypes.int64)),
        "table": PointerArgument(table),
        "out": PointerArgument(dtypes.float32),
        **dict.fromkeys(("rows", "length", "stride"), ScalarArgument(dtypes.int32)),
    }
    function = kernel if isinstance(kernel, KernelFunction) else kernel.kernel
    signature = {
        p.name: ConstantArgument(numbers[p.name]) if p.name in numbers else kinds[p.name] for p in function.parameters
    }
    return emit_llvm(build_module(function, signature), target, Options(disjoint=not checked, checked=checked))


def distances(text: str) -> set[int]:
    """The bytes by which addresses of indices are moved."""
    assert ("llvm.prefetch" in text) == ("icmp ult i64" in text and f", {PAGE}" in text)
    return {int(found) for found in re.findall(r"add i64 %[^,]+, (\d+)\n[^\n]+ = xor i64", text)}


@pytest.mark.parametrize(
    ("kernel", "numbers", "rows"),
    [
        (sparse, {"COLUMNS": 64}, 16),
        (sparse, {"COLUMNS": 32}, 16),
        (sparse, {"COLUMNS": 256}, 8),
        (sparse, {"COLUMNS": 512}, 4),
        (bags, {"COLUMNS": 64, "BAGS": 1}, 32),
        (bags, {"COLUMNS": 64, "BAGS": 4}, 32),
    ],
)
def test_sixteen_rows_ahead(kernel: Any, numbers: dict[str, int], rows: int) -> None:
    """And at most 8 KiB of them. Sums have 128 bytes of SSE2's registers: a loop over bags goes over half of a bag's row at a
    time, 32 of them ahead. An index has 8 bytes."""
    assert distances(text_of(kernel, numbers)) == {8 * rows}


@pytest.mark.parametrize(("table", "columns"), [(dtypes.float64, 32), (dtypes.float32, 64), (dtypes.float16, 128)])
def test_each_line_is_fetched_once(table: dtypes.DType, columns: int) -> None:
    """A row of 256 bytes has four lines; their index is read once."""
    text = text_of(sparse, {"COLUMNS": columns}, table=table)
    assert text.count('call void @"llvm.prefetch') == 4
    assert len(re.findall(r"xor i64", text)) == 1


@jit
def steps(
    table: Any, index: Any, out: Any, length: Any, stride: Any, COLUMNS: tl.constexpr, KIND: tl.constexpr
) -> None:
    columns = tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for k in range(0, length, 3):
        place = k
        if KIND == "run-time stride":
            place = k * stride
        if KIND == "still":
            place = stride
        at = tl.load(index + place)
        if KIND == "masked":
            at = tl.load(index + place, mask=k < stride, other=0)
        if KIND == "second index":
            at = tl.load(index + at)
        if KIND == "division":
            at = at // stride
        if KIND == "moves":
            at += k
        if KIND == "arithmetic":
            at = tl.minimum(tl.maximum(at - 1, 0), 40) ^ 1
        if KIND == "float":
            at = (at * 0.5).to(tl.int64)
        total += tl.load(table + at * COLUMNS + columns)
    tl.store(out + columns, total)


@pytest.mark.parametrize("kind", ["plain", "arithmetic"])
def test_steps_of_three(kind: str) -> None:
    assert distances(text_of(steps, {"COLUMNS": 64, "KIND": kind})) == {16 * 3 * 8}


@pytest.mark.parametrize("kind", ["run-time stride", "still", "masked", "second index", "division", "moves", "float"])
def test_where_rows_ahead_are_not_known(kind: str) -> None:
    assert not distances(text_of(steps, {"COLUMNS": 64, "KIND": kind}))


@pytest.mark.parametrize(("columns", "fetched"), [(16, False), (32, True), (512, True), (1024, False)])
def test_rows_of_128_to_2048_bytes(columns: int, fetched: bool) -> None:
    assert bool(distances(text_of(steps, {"COLUMNS": columns, "KIND": "plain"}))) == fetched


def test_checked_kernels_look_at_their_own_indices_alone() -> None:
    assert not distances(text_of(steps, {"COLUMNS": 64, "KIND": "plain"}, checked=True))


# Rows far apart.


@jit
def every_third(
    table: Any, out: Any, begins: Any, length: Any, stride: Any, COLUMNS: tl.constexpr, KIND: tl.constexpr
) -> None:
    columns = tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for row in range(tl.program_id(0), length, 1 if KIND == "one by one" else stride if KIND == "any step" else 3):
        place = row * stride
        if KIND == "known stride":
            place = row * 4096
        if KIND == "division":
            place = row // stride * stride
        if KIND == "short step":
            place = row
        if KIND == "index":
            place = tl.load(begins + row * stride) * stride
        if KIND == "masked":
            total += tl.load(table + place + columns, mask=columns < length, other=0)
        elif KIND == "rows":
            rows = tl.load(table + place + tl.arange(0, 4)[:, None] * stride + columns[None, :])
            total += tl.sum(rows, axis=0)
        elif KIND == "inner":
            for k in range(0, 4):
                total += tl.load(table + place + k + columns)
        else:
            total += tl.load(table + place + columns)
    tl.store(out + columns, total)


def rows_ahead(kind: str, columns: int = 1024, target: CpuTarget = AHEAD, *, checked: bool = False) -> list[int]:
    """By how many iterations counters are moved for prefetches."""
    text = text_of(every_third, {"COLUMNS": columns, "KIND": kind}, target=target, checked=checked)
    found = re.findall(r"mul i\d+ (?:3|1), (\d+)\n[^\n]+ = add i", text)
    assert ("llvm.prefetch" in text) == bool(found)
    return [int(number) for number in found]


@pytest.mark.parametrize(("columns", "iterations"), [(32, 64), (512, 4), (1024, 2), (4096, 1)])
def test_eight_kilobytes_of_rows_and_at_least_the_next(columns: int, iterations: int) -> None:
    assert set(rows_ahead("plain", columns)) == {iterations}


@pytest.mark.parametrize("kind", ["any step", "masked"])
def test_rows_far_apart(kind: str) -> None:
    assert rows_ahead(kind)


@pytest.mark.parametrize("kind", ["one by one", "known stride", "division", "short step", "index", "rows", "inner"])
def test_rows_that_are_not_fetched(kind: str) -> None:
    assert not rows_ahead(kind)


def test_short_rows_other_machines_and_checked_kernels_fetch_nothing() -> None:
    assert not rows_ahead("plain", 16)
    assert not rows_ahead("plain", target=TARGET)
    assert not rows_ahead("plain", checked=True)


@pytest.mark.parametrize("length", [0, 1, 40])
def test_values_of_rows_far_apart(length: int) -> None:
    """The rows behind the last one are not read."""
    table = np.random.default_rng(length).integers(-9, 9, (41, 1000)).astype(np.float32)
    out, begins = np.zeros(1024, np.float32), np.zeros(1, np.int64)
    kernel = weft.jit(every_third.fn)
    kernel[(1,)](table.reshape(-1)[: length * 1000 + 1000], out, begins, length, 1000, COLUMNS=512, KIND="plain")
    np.testing.assert_array_equal(out[:512], table[:length:3, :512].sum(axis=0))


@jit
def twice(
    table: Any, out: Any, begins: Any, length: Any, stride: Any, COLUMNS: tl.constexpr, KIND: tl.constexpr
) -> None:
    """Rows, or rows less their sums. An atomic keeps stores in the caches."""
    columns = tl.arange(0, COLUMNS)
    total = 0.0
    for row in range(tl.program_id(0), length, 3):
        x = tl.load(table + row * stride + columns)
        if KIND != "once":
            x -= tl.sum(x, axis=0)
        place = row * stride
        if KIND == "at the sum":
            place = tl.sum(x, axis=0).to(tl.int32)
        if KIND == "one place":
            place = 0
        tl.store(out + place + columns, x)
        total += 1
    if KIND != "no atomic":
        tl.atomic_add(out + length * stride, total)


def fetches(kind: str, target: CpuTarget = AHEAD, *, checked: bool = False) -> list[tuple[str, ...]]:
    """Whether prefetches are to write, and of which cache they are (3: the first)."""
    text = text_of(twice, {"COLUMNS": 4096, "KIND": kind}, target=target, checked=checked)
    return re.findall(r"call void @.?llvm\.prefetch.*, i32 (\d), i32 (\d), i32 1\)", text)


@pytest.mark.parametrize("kind", ["once", "twice", "one place"])
def test_rows_that_are_gone_over_twice_are_fetched_once(kind: str) -> None:
    """By the loop that stores, which has two registers an iteration, into the second cache."""
    assert [each for each in fetches(kind) if each[0] == "0"] == 2 * [("0", "2")]


@pytest.mark.parametrize(("kind", "registers"), [("once", 0), ("twice", 2), ("at the sum", 0), ("one place", 0)])
def test_what_is_stored_to_next_is_fetched(kind: str, registers: int) -> None:
    """By the loop that stores, into the first cache."""
    assert [each for each in fetches(kind) if each[0] == "1"] == registers * [("1", "3")]
    assert not fetches(kind, TARGET) and not fetches(kind, checked=True)


@pytest.mark.parametrize(("columns", "loaded"), [(512, "4"), (1024, "2")])
def test_rows_that_are_stored_to_are_fetched_one_ahead(columns: int, loaded: str) -> None:
    """Loads and stores each look ahead by their own number of rows, though one product says where both are."""
    text = text_of(twice, {"COLUMNS": columns, "KIND": "twice"}, target=AHEAD)
    found = re.findall(r"mul i32 3, (\d+)|call void @.?llvm\.prefetch[^(]*\([^,]+, i32 (\d)", text)
    assert [rows or f"writes {writes}" for rows, writes in found[:4]] == [loaded, "writes 0", "1", "writes 1"]


def test_what_is_stored_past_the_caches_is_not_fetched() -> None:
    streams = replace(AHEAD, tuning=("prefetch-rows", "streaming-stores"))
    assert ("1", "3") in fetches("no atomic") and ("1", "3") not in fetches("no atomic", streams)


@pytest.mark.parametrize("length", [0, 1, 40])
def test_values_of_rows_that_are_gone_over_twice(length: int) -> None:
    """Nothing but the rows is stored to."""
    stride = 1500
    table = np.random.default_rng(length).integers(-9, 9, length * stride).astype(np.float32)
    out, begins = np.full(length * stride + 2, -1, np.float32), np.zeros(1, np.int64)
    weft.jit(twice.fn)[(1,)](table, out, begins, length, stride, COLUMNS=1024, KIND="twice")
    expected = np.full((length, stride), -1, np.float32)
    rows = table.reshape(length, stride)[::3, :1024]
    expected[::3, :1024] = rows - rows.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(out, [*expected.reshape(-1), -1 + -(-length // 3), -1])

"""Accesses to global memory whose neighbours are in several dimensions: as wide as memory and mask allow."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl

pytestmark = pytest.mark.jit


@weft.jit
def rows(x: Any, out: Any, K: tl.constexpr, RESHAPED: tl.constexpr) -> None:
    i = tl.arange(0, 512)[:, None] * K + tl.arange(0, K)[None, :]
    if RESHAPED:
        i = tl.reshape(tl.arange(0, 512 * K), (512, K))
    tl.store(out + i, tl.load(x + i))


@weft.jit
def some_rows(x: Any, out: Any, n: Any, K: tl.constexpr, STRIDE: tl.constexpr, WHOLE: tl.constexpr) -> None:
    row = tl.program_id(0) * 256 + tl.arange(0, 256)
    i = row[:, None] * STRIDE + tl.arange(0, K)[None, :]
    m = n // 16 * 16 if WHOLE else n
    inside = (row < m)[:, None] & (tl.arange(0, K) < K)[None, :]
    tl.store(out + i, tl.load(x + i, mask=inside), mask=inside)


@weft.jit
def columns(x: Any, out: Any, K: tl.constexpr) -> None:
    """The dimension of size K is the slow one."""
    i = tl.arange(0, K)[:, None] + tl.arange(0, 512)[None, :] * K
    tl.store(out + i, tl.load(x + i))


@weft.jit
def walked(x: Any, out: Any, n: Any, K: tl.constexpr) -> None:
    i = tl.arange(0, 512)[:, None] * K + tl.arange(0, K)[None, :]
    source = x + i
    target = out + i
    for _ in range(n):
        tl.store(target, tl.load(source))
        source += 512 * K
        target += 512 * K


def widths(ptx: str) -> dict[str, list[str]]:
    """The form of each load and store."""
    return {op: re.findall(rf"\b{op}\.global((?:\.v\d)?\.[bu]\d+)", ptx) for op in ("ld", "st")}


def bits(form: str) -> int:
    """The bits that an access of a form moves."""
    found = re.fullmatch(r"(?:\.v(\d))?\.[bu](\d+)", form)
    assert found, f"{form} is no form of a load or store"
    return int(found[1] or 1) * int(found[2])


@pytest.mark.parametrize("reshaped", [False, True], ids=["sum", "reshape"])
@pytest.mark.parametrize(
    ("size", "k", "count", "width"),
    [
        (1, 1, 1, 32),
        (1, 2, 1, 64),
        (1, 4, 1, 128),
        (1, 8, 2, 128),
        (1, 16, 4, 128),
        (2, 1, 1, 64),
        (2, 2, 1, 128),
        (2, 4, 2, 128),
        (2, 8, 4, 128),
        (2, 16, 8, 128),
    ],
)
def test_rows_that_follow_one_another(size: int, k: int, count: int, width: int, reshaped: bool) -> None:
    """[512, k] of 8 and 16 bits and 128 threads: what each thread moves, in words of at most 128 bits (paper, table 2)."""
    dtype = f"int{8 * size}"
    x = np.random.default_rng(0).integers(-100, 100, 512 * k).astype(dtype)
    out = np.zeros_like(x)
    found = widths(rows.compile(x, out, K=k, RESHAPED=reshaped, target="sm_80").ptx)
    assert {op: [bits(form) for form in forms] for op, forms in found.items()} == dict.fromkeys(found, [width] * count)
    rows.on("sm_80")[(1,)](x, out, K=k, RESHAPED=reshaped)
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize(
    ("stride", "whole", "width"),
    [
        (4, True, 64),  # 4 elements for each of 256 rows: 8 a thread, 16 rows under one mask
        (4, False, 32),  # each row has its own mask
        (8, True, 32),  # gaps between the rows
    ],
)
def test_masks_and_gaps_end_a_vector(stride: int, whole: bool, width: int) -> None:
    x = np.random.default_rng(0).integers(-100, 100, 512 * stride).astype(np.int8)
    out = np.zeros_like(x)
    constants = {"K": 4, "STRIDE": stride, "WHOLE": whole}
    found = widths(some_rows.compile(x, out, 300, **constants, target="sm_80").ptx)
    assert {bits(form) for forms in found.values() for form in forms} == {width}
    some_rows.on("sm_80")[(2,)](x, out, 300, **constants)
    expected = np.zeros_like(x).reshape(512, stride)
    count = 300 // 16 * 16 if whole else 300
    expected[:count, :4] = x.reshape(512, stride)[:count, :4]
    np.testing.assert_array_equal(out, expected.reshape(-1))


def test_the_fast_dimension_may_be_any() -> None:
    x = np.arange(2048, dtype=np.int16)
    out = np.zeros_like(x)
    found = widths(columns.compile(x, out, K=4, target="sm_80").ptx)
    assert [bits(form) for forms in found.values() for form in forms] == [128] * 4
    columns.on("sm_80")[(1,)](x, out, K=4)
    np.testing.assert_array_equal(out, x)


def test_pointers_that_a_loop_moves() -> None:
    x = np.arange(3 * 2048, dtype=np.int16)
    out = np.zeros_like(x)
    found = widths(walked.compile(x, out, 3, K=4, target="sm_80").ptx)
    assert {bits(form) for forms in found.values() for form in forms} == {128}
    walked.on("sm_80")[(1,)](x, out, 3, K=4)
    np.testing.assert_array_equal(out, x)


@weft.jit
def doubled(x: Any, out: Any, n: Any, MASKED: tl.constexpr) -> None:
    i = tl.arange(0, 256)
    if MASKED:
        tl.store(out + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)
    else:
        tl.store(out + i, tl.load(x + i) * 2)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("dtype", "form"), [(np.float32, ".v2.b32"), (np.int64, ".v2.b64")])
def test_two_words_are_not_packed_into_one_of_64_bits(dtype: Any, form: str, masked: bool) -> None:
    """128 threads have two elements each. Packing two words into one takes four instructions for each access."""
    x, out = np.arange(256).astype(dtype), np.zeros(256, dtype)
    ptx = doubled.compile(x, out, 208, MASKED=masked, target="sm_90").ptx
    assert widths(ptx) == {"ld": [form], "st": [form]}
    doubled.on("sm_90")[(1,)](x, out, 208, MASKED=masked)
    np.testing.assert_array_equal(out, np.where(np.arange(256) < (208 if masked else 256), x * 2, 0))

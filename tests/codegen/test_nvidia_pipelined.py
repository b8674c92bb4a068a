"""Pipelined kernels in the emulator, all checks on, and their code: results by NumPy, the counts by hand."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import weft
import weft.language as tl
from sampling import every

pytestmark = pytest.mark.jit
Array = NDArray[Any]


@weft.jit
def matmul(
    a: Any,
    b: Any,
    c: Any,
    k_size: Any,
    along: Any,
    across: Any,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    HALF: tl.constexpr,
) -> None:
    """``b`` by rows (across = 1) or by columns; the last tile of K is masked. Sums are in the dtype of ``c``, products of float16
    where ``HALF``."""
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left_at = a + rows[:, None] * k_size + depth[None, :]
    right_at = b + depth[:, None] * along + columns[None, :] * across
    total = tl.zeros((M, N), c.dtype.element_ty)
    for k in range(0, k_size, K):
        left = tl.load(left_at, mask=(depth < k_size - k)[None, :], other=0.0)
        right = tl.load(right_at, mask=(depth < k_size - k)[:, None], other=0.0)
        if HALF:
            total = tl.dot(left.to(tl.float16), right.to(tl.float16), total)
        else:
            total = tl.dot(left, right, total, input_precision="tf32")
        left_at += K
        right_at += K * along
    tl.store(c + rows[:, None] * N + columns[None, :], total)


TYPES: dict[str, tuple[Any, Any, bool]] = {
    "float16": (np.float16, np.float32, False),
    "bfloat16": (ml_dtypes.bfloat16, np.float32, False),
    "float32": (np.float32, np.float32, False),
    "int8": (np.int8, np.int32, False),
    "int8 as float16": (np.int8, np.float32, True),
    "float8": (ml_dtypes.float8_e4m3fn, np.float32, False),
    "float64": (np.float64, np.float64, False),
    "uint8": (np.uint8, np.int32, False),
    "float16 in float16": (np.float16, np.float16, False),
}
"""Of operands and sums, and whether operands are cast to float16."""

CASES = [
    (name, order, stages, size)
    for name in TYPES
    for order in ("rows", "columns")
    for stages in (1, 2, 3, 4)
    for size in (32, 96, 176)
]


@pytest.mark.parametrize("case", every(7, CASES), ids=str)
@pytest.mark.parametrize("target", every(2, ["sm_80", "sm_90"]))
def test_matmul(case: tuple[str, str, int, int], target: str) -> None:
    name, order, stages, size = case
    dtype, sums, half = TYPES[name]
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (64, size)).astype(dtype)
    b = rng.integers(-4, 5, (size, 32)).astype(dtype)
    c = np.zeros((64, 32), sums)
    given = b if order == "rows" else np.ascontiguousarray(b.T)
    along, across = (32, 1) if order == "rows" else (1, size)
    matmul.on(target)[(1,)](
        a, given, c, size, along, across, M=64, N=32, K=32, HALF=half, num_stages=stages
    )  # sums of small integers are exact
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))


@weft.jit
def plain(a: Any, b: Any, c: Any, k_size: Any, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr) -> None:
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, k_size, K):
        left = tl.load(a + rows[:, None] * k_size + (k + depth)[None, :])
        total = tl.dot(left, tl.load(b + (k + depth)[:, None] * N + columns[None, :]), total)
    tl.store(c + rows[:, None] * N + columns[None, :], total)


def compiled(stages: int) -> Any:
    a, b, c = np.zeros((64, 128), np.float16), np.zeros((128, 64), np.float16), np.zeros((64, 64), np.float32)
    return plain.compile(a, b, c, 128, M=64, N=64, K=32, target="sm_80", num_stages=stages)


def test_the_code_of_a_pipelined_loop() -> None:
    """64 x 32 and 32 x 64 float16: 4 KiB each, 2 copies of 16 bytes a thread and operand, in each of 2 groups before the loop and
    of that in it. The left operand takes 16 matrices a warp, the right one as many: 4 ldmatrix.x4 each. One barrier is in the
    loop, one behind it where scratch for the stores lies on buffers, one in the exchange."""
    handle = compiled(3)
    copies = re.findall(r"@%p\d+ cp\.async\.cg\.shared\.global \[%r\d+\+\d+\], \[%rd\d+\+\d+\], 16;", handle.ptx)
    assert len(copies) == 3 * 4
    assert handle.ptx.count("cp.async.commit_group") == 3
    assert re.findall(r"cp\.async\.wait_group (\d+)", handle.ptx) == ["1"]
    assert handle.ptx.count("ldmatrix.sync.aligned.m8n8.x4.shared") == 4
    assert handle.ptx.count("ldmatrix.sync.aligned.m8n8.x4.trans.shared") == 4
    assert handle.ptx.count("bar.sync 0") == 3
    assert handle.shared == 3 * 2 * 4096


def test_one_stage_is_not_pipelined() -> None:
    assert "cp.async" not in compiled(1).ptx


@weft.jit
def two_dots(q: Any, k: Any, v: Any, out: Any, keys: Any, N: tl.constexpr, D: tl.constexpr, S: tl.constexpr) -> None:
    """Two operands of different dots, one by columns; the loop's own number of stages; scratch in the loop beside buffers."""
    rows, columns, dims = tl.arange(0, 64), tl.arange(0, N), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + dims[None, :])
    result = tl.zeros((64, D), tl.float32)
    for start in tl.range(0, keys, N, num_stages=S):
        key = tl.load(k + (start + columns)[None, :] * D + dims[:, None])
        score = tl.dot(query, key)
        score -= tl.min(score, 0)[None, :]
        value = tl.load(v + (start + columns)[:, None] * D + dims[None, :])
        result = tl.dot(score.to(tl.float16), value, result)
    tl.store(out + rows[:, None] * D + dims[None, :], result)


def two_dots_arrays() -> tuple[Array, Array, Array, Array, Array]:
    """Arguments, and what the last of them shall be."""
    rng = np.random.default_rng(1)
    q, k, v = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((64, 32), (96, 32), (96, 32)))
    expected = np.zeros((64, 32), np.int64)
    for start in range(0, 96, 32):
        score = q.astype(np.int64) @ k[start : start + 32].astype(np.int64).T
        expected += (score - score.min(0)) @ v[start : start + 32].astype(np.int64)
    return q, k, v, np.zeros((64, 32), np.float32), expected


@pytest.mark.parametrize("stages", [2, 4])
def test_two_dots_and_scratch_in_one_loop(stages: int) -> None:
    *arrays, expected = two_dots_arrays()
    profile = two_dots.profile("sm_80")[(1,)](*arrays, 96, N=32, D=32, S=stages)
    np.testing.assert_array_equal(arrays[-1], expected)
    assert profile.totals["shared_wavefronts"] == profile.totals["shared_ideal_wavefronts"]


@pytest.mark.parametrize("target", ["sm_80", "sm_90"])
def test_an_operand_from_outside_stays_in_shared_memory_where_registers_are_short(target: str) -> None:
    *arrays, expected = two_dots_arrays()
    handle = two_dots.compile(*arrays, 96, N=32, D=32, S=2, maxnreg=40, target=target)
    assert handle.laid_out.count("gpu.local_store") == 1
    assert "gpu.local_store" not in two_dots.compile(*arrays, 96, N=32, D=32, S=2, target=target).laid_out
    two_dots.on(target)[(1,)](*arrays, 96, N=32, D=32, S=2, maxnreg=40)
    np.testing.assert_array_equal(arrays[-1], expected)


@pytest.mark.parametrize(("target", "tile"), [("sm_80", "m8n8k4"), ("sm_90", "m16n8k8")])
def test_float64_is_read_from_buffers_without_conflicts(target: str, tile: str) -> None:
    """``ldmatrix`` gives a thread 32 bits, so elements of 64 are read by vectors."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(-9, 9, (64, 32)).astype(np.float64), rng.integers(-9, 9, (32, 32)).astype(np.float64)
    c = np.zeros((64, 32))
    tiles = {"M": 64, "N": 32, "K": 16, "HALF": False}
    handle = matmul.compile(a, b, c, 32, 32, 1, **tiles, target=target)
    assert f"mma.sync.aligned.{tile}.row.col.f64.f64.f64.f64" in handle.ptx
    assert "cp.async.cg.shared.global" in handle.ptx
    profile = matmul.profile(target)[(1,)](a, b, c, 32, 32, 1, **tiles)
    np.testing.assert_array_equal(c, a @ b)
    assert profile.totals["shared_load_wavefronts"] == profile.totals["shared_load_ideal_wavefronts"]


BYTES = [
    ("sm_90", np.int8, np.int32, "s32.s8.s8.s32"),
    ("sm_89", ml_dtypes.float8_e4m3fn, np.float32, "f32.e4m3.e4m3.f32"),
]


@pytest.mark.parametrize(("target", "dtype", "sums", "instruction"), BYTES)
def test_bytes_by_rows_are_read_by_transposing_matrices(target: str, dtype: Any, sums: Any, instruction: str) -> None:
    """Each of 2 x 2 warps has 32 rows of 32 bytes of the left operand, and 32 columns of the right one: 1 KiB, two ldmatrix.x4.
    The pairs of bytes of the right one are put in order by byte permutes."""
    a, c = np.zeros((64, 64), dtype), np.zeros((64, 64), sums)
    handle = matmul.compile(a, a, c, 64, 64, 1, M=64, N=64, K=32, HALF=False, target=target)
    assert f"mma.sync.aligned.m16n8k32.row.col.{instruction}" in handle.ptx
    assert handle.ptx.count("ldmatrix.sync.aligned.m8n8.x4.shared") == 2
    assert handle.ptx.count("ldmatrix.sync.aligned.m8n8.x4.trans.shared") == 2
    assert "ld.shared.b8" not in handle.ptx


@pytest.mark.parametrize(
    ("left", "right", "order", "K", "loads"),
    [
        (np.int8, np.float16, "rows", 32, {"x4.shared": 2, "x4.trans.shared": 4}),
        (np.int8, np.float16, "columns", 32, {"x4.shared": 2, "v2.b32": 8}),
        (np.float16, np.uint8, "columns", 32, {"x4.shared": 2, "v2.b32": 8}),
        (np.int8, np.int8, "rows", 64, {"x4.shared": 4, "x4.trans.shared": 4}),
        (np.int8, np.float16, "rows", 16, {"b16": 4, "x4.trans.shared": 4}),
    ],
)
@pytest.mark.parametrize("target", every(2, ["sm_80", "sm_90"]))
def test_narrow_operands_are_read_by_words(
    target: str, left: Any, right: Any, order: str, K: int, loads: dict[str, int]
) -> None:
    """A thread has four neighbours along the contraction, not two as is usual of float16: the instructions take the contraction
    in another order. Bytes that lie along it are read by words, and float16 by two words. Each warp has 32 rows and 32 columns.
    A contraction of 16 is too short, and bytes are read by pairs. There each warp has 16 rows and all columns, so that each byte
    becomes a float once."""
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 9, (64, 64)).astype(left), rng.integers(0, 9, (64, 64)).astype(right)
    c = np.zeros((64, 64), np.float32)
    given, along, across = (b, 64, 1) if order == "rows" else (np.ascontiguousarray(b.T), 1, 64)
    tiles = {"M": 64, "N": 64, "K": K, "HALF": True}
    ptx = matmul.compile(a, given, c, 64, along, across, **tiles, target=target).ptx
    found = Counter(
        re.findall(r"(?:ldmatrix.sync.aligned.m8n8.|ld.shared.)(x4.shared|x4.trans.shared|b16|b8|v2.b32)", ptx)
    )
    assert found == loads
    profile = matmul.profile(target)[(1,)](a, given, c, 64, along, across, **tiles)
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))
    assert profile.totals["shared_load_wavefronts"] == profile.totals["shared_load_ideal_wavefronts"]


def test_few_threads_copy_a_small_tile() -> None:
    """16 x 16 float8 are 256 bytes: 16 threads copy 16 bytes each. 128 threads would copy 2 bytes each, for which there is no
    instruction."""
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-4, 5, (16, 16)).astype(ml_dtypes.float8_e4m3fn) for _ in range(2))
    c = np.zeros((16, 16), np.float32)
    arguments = (a, b, c, 16, 16, 1)
    tiles = {"M": 16, "N": 16, "K": 16, "HALF": False, "num_stages": 2}
    assert "cp.async.cg.shared.global" in matmul.compile(*arguments, **tiles, target="sm_80").ptx
    profile = matmul.profile("sm_80")[(1,)](*arguments, **tiles)
    np.testing.assert_array_equal(c, a.astype(np.int64) @ b.astype(np.int64))
    assert profile.totals["global_load_bytes"] == 2 * 256

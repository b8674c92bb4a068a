"""ptxas accepts what kernels compile to, for every target. It is no part of weft; where it is missing there is nothing to ask."""

# pyright: reportUnnecessaryComparison=false

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from sampling import grid

pytestmark = [
    pytest.mark.jit,
    pytest.mark.skipif(shutil.which("ptxas") is None, reason="ptxas, which assembles the kernels, is not on the PATH"),
]

TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_90a")
DOTS = ("float16", "bfloat16", "float32", "int8", "float8_e4m3fn", "float8_e5m2", "float64", "uint8")


@weft.jit
def softmax(x: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * n + i, e / tl.sum(e, axis=0), mask=i < n)


@weft.jit
def matmul(a: Any, b: Any, c: Any, n: Any, BLOCK: tl.constexpr, PRECISION: tl.constexpr) -> None:
    i, j = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    acc = tl.load(c + i[:, None] * BLOCK + j[None, :])
    for k in range(0, n, BLOCK):
        left = tl.load(a + i[:, None] * n + k + j[None, :])
        right = tl.load(b + (k + i[:, None]) * BLOCK + j[None, :])
        acc = tl.dot(left, right, acc, input_precision=PRECISION, out_dtype=acc.dtype)
    tl.store(c + i[:, None] * BLOCK + j[None, :], acc)


@weft.jit
def transpose(x: Any, out: Any, BLOCK: tl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    tl.store(out + i[:, None] * BLOCK + i[None, :], tl.trans(tl.load(x + i[:, None] * BLOCK + i[None, :])))


@weft.jit
def atomics(x: Any, out: Any, flag: Any, BLOCK: tl.constexpr) -> None:
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    old = tl.atomic_add(out + i, v)
    old += tl.atomic_max(out + i, v, sem="relaxed", scope="cta")
    tl.store(x + i, tl.atomic_xchg(out + i, old))
    while tl.load(flag, volatile=True) == 0:
        pass
    tl.atomic_cas(flag, 1, 2)


def assemble(code: Any, tmp_path: Path) -> str:
    """What ptxas says of a compiled kernel."""
    source = tmp_path / "kernel.ptx"
    source.write_text(code.ptx)
    command = ["ptxas", "-v", f"-arch={code.target.name}", str(source), "-o", str(tmp_path / "kernel.cubin")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stderr


@pytest.mark.parametrize("target", TARGETS)
def test_row_reductions(target: str, tmp_path: Path) -> None:
    x = np.zeros((4, 1000), np.float32)
    report = assemble(softmax.compile(x, x.copy(), 1000, BLOCK=1024, target=target), tmp_path)
    assert "0 bytes spill stores" in report


@pytest.mark.parametrize(
    ("target", "dtype"),
    grid(2, TARGETS, DOTS),
)
def test_dots(target: str, dtype: str, tmp_path: Path) -> None:
    numpy = weft.dtypes.parse(dtype).numpy
    total = {"int8": np.int32, "uint8": np.int32, "float64": np.float64}.get(dtype, np.float32)
    a, c = np.zeros((32, 32), numpy), np.zeros((32, 32), total)
    assemble(matmul.compile(a, a.copy(), c, 32, BLOCK=32, PRECISION="tf32", target=target), tmp_path)


@pytest.mark.parametrize(("target", "dtype"), grid(2, TARGETS, ["int8", "int16", "int32", "int64"]))
def test_conversions_through_shared_memory(target: str, dtype: str, tmp_path: Path) -> None:
    x = np.zeros((64, 64), dtype)
    report = assemble(transpose.compile(x, x.copy(), BLOCK=64, target=target), tmp_path)
    assert "0 bytes spill stores" in report


@pytest.mark.parametrize(
    ("target", "dtype"), grid(2, TARGETS, ["int16", "uint32", "int64", "float16", "float32", "float64"])
)
def test_atomics(target: str, dtype: str, tmp_path: Path) -> None:
    x = np.zeros(256, dtype)
    assemble(atomics.compile(x, x.copy(), np.zeros(1, np.int32), BLOCK=256, target=target), tmp_path)


@weft.jit
def attention(q: Any, k: Any, v: Any, out: Any, keys: Any, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr) -> None:
    rows, columns, dims = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + dims[None, :])
    largest = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    result = tl.zeros((M, D), tl.float32)
    for start in range(0, keys, N):
        key = tl.load(k + (start + columns)[None, :] * D + dims[:, None])
        score = tl.dot(query, key)
        following = tl.maximum(largest, tl.max(score, 1))
        weight = tl.exp2(score - following[:, None])
        shrink = tl.exp2(largest - following)
        total = total * shrink + tl.sum(weight, 1)
        value = tl.load(v + (start + columns)[:, None] * D + dims[None, :])
        result = tl.dot(weight.to(tl.float16), value, result * shrink[:, None])
        largest = following
    tl.store(out + rows[:, None] * D + dims[None, :], result / total[:, None])


@pytest.mark.parametrize(
    ("target", "shape", "warps"),
    grid(3, ("sm_80", "sm_90"), ((128, 64, 64), (128, 32, 128), (64, 64, 64)), (4, 8)),
)
def test_attention_does_not_spill(target: str, shape: tuple[int, int, int], warps: int, tmp_path: Path) -> None:
    """With all registers that a thread may have. Left to itself, ptxas takes 128 of them for 64x64 on sm_90, for one more block
    on a multiprocessor, and spills 8 bytes; told to take 128 it spills none, and told 255 it takes 141."""
    m, n, d = shape
    q = np.zeros((2 * m, d), np.float16)
    out = np.zeros((2 * m, d), np.float32)
    code = attention.compile(
        q, q.copy(), q.copy(), out, 2 * m, M=m, N=n, D=d, target=target, num_warps=warps, maxnreg=255
    )
    assert "0 bytes spill stores" in assemble(code, tmp_path)

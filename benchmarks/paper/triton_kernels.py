"""The kernels that Triton compiles for the scripts of this folder. It is run by an interpreter that has triton 3.9, with a list
of requests on its standard input; weft is not imported. A request is for a kernel of this file, or has TTGIR as text."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def gather(x, index, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), 1))


@triton.jit
def copy(x, out, K: tl.constexpr):
    at = tl.arange(0, 512)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(out + at, tl.load(x + at))


@triton.jit
def product(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, KIND: tl.constexpr):
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + rows[:, None] * K + depth[None, :])
    right = tl.load(b + depth[:, None] * N + columns[None, :])
    if KIND == "f16":
        left, right = left.to(tl.float16), right.to(tl.float16)
    elif KIND == "bf16":
        left, right = left.to(tl.bfloat16), right.to(tl.bfloat16)
    elif KIND == "f32":
        left, right = left.to(tl.float32), right.to(tl.float32)
    else:
        left, right = left.to(tl.float64), right.to(tl.float64)
    tl.store(out + rows[:, None] * N + columns[None, :], tl.dot(left, right, input_precision="tf32"))


@triton.jit
def decoded(four, exponents, K: tl.constexpr, N: tl.constexpr):
    size = four & 7
    bits = tl.where(size < 2, size * 0x3F00, 0x3F00 + (size << 6)) | ((four & 8) << 12)
    numbers = tl.reshape(bits.to(tl.uint16).to(tl.bfloat16, bitcast=True), (K, N))
    scale = (exponents.to(tl.uint16) << 7).to(tl.bfloat16, bitcast=True)
    scale = tl.reshape(tl.broadcast_to(scale[:, None, :], (K // 32, 32, N)), (K, N))
    return numbers * scale


@triton.jit
def mxfp4(x, packed, scales, out, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, JOIN: tl.constexpr):
    rows, columns, inside = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    halves, groups = tl.arange(0, K // 2), tl.arange(0, K // 32)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, depth, K):
        left = tl.load(x + rows[:, None] * depth + (start + inside)[None, :])
        pairs = tl.load(packed + (start // 2 + halves)[:, None] * N + columns[None, :])
        exponents = tl.load(scales + (start // 32 + groups)[:, None] * N + columns[None, :])
        if JOIN:
            four = tl.join(pairs & 15, pairs >> 4).permute(0, 2, 1)
        else:
            four = pairs[:, None, :] >> (tl.arange(0, 2) * 4).to(tl.uint8)[None, :, None]
        total = tl.dot(left, decoded(four.to(tl.uint16), exponents, K, N), total)
    tl.store(out + rows[:, None] * N + columns[None, :], total)


@triton.jit
def scaled(x, packed, scales, out, depth, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, inside = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    halves, groups = tl.arange(0, K // 2), tl.arange(0, K // 32)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, depth, K):
        left = tl.load(x + rows[:, None] * depth + (start + inside)[None, :])
        pairs = tl.load(packed + (start // 2 + halves)[:, None] * N + columns[None, :])
        exponents = tl.load(scales + (start // 32 + groups)[None, :] * N + columns[:, None])
        total = tl.dot_scaled(left, None, "bf16", pairs, exponents, "e2m1", total)
    tl.store(out + rows[:, None] * N + columns[None, :], total)


def without_ptxas(*given: Any) -> Any:
    """Triton's hook of its stages: an empty file instead of ptxas's. Asked without arguments, it names itself for the cache."""
    if not given:
        return "without ptxas", "without ptxas"
    given[1]["cubin"] = lambda ptx, metadata: b""
    return None


def source_of(request: dict[str, Any], folder: Path) -> Any:
    """What `triton.compile` takes: a kernel with its types, or a file of TTGIR."""
    if "ttgir" in request:
        file = folder / "kernel.ttgir"
        file.write_text(request["ttgir"], encoding="utf-8")
        return str(file)
    kernel = globals()[request["kernel"]]
    kinds = request["signature"] | dict.fromkeys(request["constants"], "constexpr")
    aligned = {(kernel.arg_names.index(name),): [["tt.divisibility", 16]] for name in request["signature"]}
    return ASTSource(fn=kernel, signature=kinds, constexprs=request["constants"], attrs=aligned)


def compiled(request: dict[str, Any]) -> dict[str, Any]:
    """PTX, bytes of shared memory, and the seconds that Triton took, with ptxas's unless ``ptxas`` is False; or the ``error``."""
    with tempfile.TemporaryDirectory() as folder:
        source = source_of(request, Path(folder))
        triton.knobs.runtime.add_stages_inspection_hook = None if request.get("ptxas", True) else without_ptxas
        started = time.perf_counter()
        try:
            made = triton.compile(source, target=GPUTarget("cuda", request["target"], 32), options=request["options"])
        except Exception as error:  # the table says which kernels it refuses
            return {"error": f"{type(error).__name__}: {error}"}
    return {"ptx": made.asm["ptx"], "shared": made.metadata.shared, "seconds": time.perf_counter() - started}


if __name__ == "__main__":
    json.dump([compiled(request) for request in json.load(sys.stdin)], sys.stdout)

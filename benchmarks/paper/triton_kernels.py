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
    """PTX, bytes of shared memory, and the seconds that Triton took, with ptxas's; or the ``error``."""
    with tempfile.TemporaryDirectory() as folder:
        source = source_of(request, Path(folder))
        started = time.perf_counter()
        try:
            made = triton.compile(source, target=GPUTarget("cuda", request["target"], 32), options=request["options"])
        except Exception as error:  # the table says which kernels it refuses
            return {"error": f"{type(error).__name__}: {error}"}
    return {"ptx": made.asm["ptx"], "shared": made.metadata.shared, "seconds": time.perf_counter() - started}


if __name__ == "__main__":
    json.dump([compiled(request) for request in json.load(sys.stdin)], sys.stdout)

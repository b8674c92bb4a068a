"""Matrix products that Triton 3.9 compiled to wgmma, against NumPy: its descriptors, of swizzles of 32, 64 and 128 bytes and both
majors, say what ours must mean. ``wgmma_programs/make.py`` makes the PTX."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from weft.emulator import Module, Scratch

PROGRAMS = Path(__file__).parent / "wgmma_programs"
DTYPES: dict[str, Any] = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "fp32": np.float32,
    "fp8e5": ml_dtypes.float8_e5m2,
    "i8": np.int8,
}
DEPTH = {"fp16": 16, "bf16": 16, "fp32": 8, "fp8e5": 32, "i8": 32}


@pytest.mark.parametrize("kind", DTYPES)
def test_products(kind: str) -> None:
    ptx = (PROGRAMS / f"matmul_{kind}.ptx").read_text()
    said = {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", ptx.splitlines()[0])}
    rng = np.random.default_rng(97)
    m, n, k = 2 * said["M"], 2 * said["N"], 3 * said["K"]
    a, b = (rng.integers(-3, 4, shape) for shape in ((m, k), (k, n)))
    x = np.ascontiguousarray((a.T if said["M_FASTEST"] else a).astype(DTYPES[kind]))
    y = np.ascontiguousarray((b.T if said["K_FASTEST"] else b).astype(DTYPES[kind]))
    c = np.zeros((m, n), np.int32 if kind == "i8" else np.float32)
    profile = Module(ptx).launch(
        "matmul", (2, 2), 128, [x, y, Scratch(c), k, x.shape[1], y.shape[1], n, 0, 0], shared=said["shared"]
    )
    np.testing.assert_array_equal(c, a @ b)
    # Each 64 rows of each of 4 blocks, for each step along K.
    assert profile.total("wgmma") == 4 * (said["M"] // 64) * k // DEPTH[kind]
    assert profile.total("matrix_flops") == 2 * m * n * k

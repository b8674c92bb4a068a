"""Products of panels, as the CPU's passes leave them, mean what the kernel does: the reference executes both."""

# pyright: reportIndexIssue=false, reportOperatorIssue=false, reportAssignmentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.dialects import func

import weft
import weft.language as tl
from weft import dtypes, reference
from weft.codegen import lay_out
from weft.frontend import Argument, ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.ir.cpu import MultiplyOp
from weft.options import Options
from weft.target import CpuTarget

TARGET = CpuTarget("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f", 512)


@weft.jit
def product(
    a: Any, b: Any, out: Any, m: Any, n: Any, k: Any,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, TURNED: tl.constexpr,
) -> None:  # fmt: skip
    """``out = a @ b``; b is stored by columns where it is turned."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        inside = start + depth < k
        x = tl.load(
            a + rows[:, None] * k + (start + depth)[None, :], mask=(rows < m)[:, None] & inside[None, :], other=0
        )
        if TURNED:
            at = columns[:, None] * k + (start + depth)[None, :]
            y = tl.trans(tl.load(b + at, mask=(columns < n)[:, None] & inside[None, :], other=0))
        else:
            at = (start + depth)[:, None] * n + columns[None, :]
            y = tl.load(b + at, mask=inside[:, None] & (columns < n)[None, :], other=0)
        acc = tl.dot(x, y, acc)
    tl.store(out + rows[:, None] * n + columns[None, :], acc, mask=(rows < m)[:, None] & (columns < n)[None, :])


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(16, 16, 16), (20, 40, 37), (33, 17, 5)])
def test_panels_mean_the_product(shape: tuple[int, int, int], turned: bool) -> None:
    m, n, k = shape
    constants = {"BM": 16, "BN": 32, "BK": 16, "TURNED": turned}
    signature: dict[str, Argument] = {name: PointerArgument(dtypes.float32) for name in ("a", "b", "out")}
    signature |= {name: ScalarArgument(dtypes.int32) for name in ("m", "n", "k")}
    signature |= {name: ConstantArgument(value) for name, value in constants.items()}
    module = build_module(KernelFunction(product.fn), signature)
    lay_out(module, TARGET, Options(disjoint=True))
    kernel = next(op for op in module.ops if isinstance(op, func.FuncOp))
    assert any(isinstance(op, MultiplyOp) for op in kernel.walk())
    generator = np.random.default_rng(m)
    a, b = (generator.integers(-9, 9, size).astype(np.float32) for size in ((m, k), (k, n)))
    out: NDArray[Any] = np.full((m + 1, n), -1, np.float32)
    stored = np.ascontiguousarray(b.T if turned else b)
    reference.run(module, [a, stored, out, m, n, k], (weft.cdiv(m, 16), weft.cdiv(n, 32), 1))
    np.testing.assert_array_equal(out[:m], a @ b)
    assert (out[m] == -1).all()

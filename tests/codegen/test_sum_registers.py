"""Loops that sum keep their sums in registers of the machine, however many it has: the loop that adds most uses no stack, and
stores nothing.

The tests look at assembly; nothing is run.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

import weft
import weft.language as tl
from weft import dtypes
from weft.codegen import emit_assembly
from weft.dtypes import DType
from weft.frontend import ConstantArgument, KernelFunction, PointerArgument, ScalarArgument, build_module
from weft.options import Options
from weft.target import X86_LEVELS, CpuTarget, level, vector_bits

_ALL: Final = frozenset(feature for features in X86_LEVELS.values() for feature in features.split())
_ARM: Final = "aarch64-unknown-linux-gnu"
MACHINES: Final = {
    **{name: level(name, "x86_64-unknown-linux-gnu", _ALL) for name in ("x86-64-v4", "x86-64-v3", "x86-64")},
    "aarch64": CpuTarget(_ARM, "generic", "", vector_bits("", _ARM)),
}
ADDITION: Final = re.compile(r"\s(v?addp[sd]|fadd)\s")
STACK: Final = re.compile(r"\(%rsp\)|\(%rbp\)|\[sp")
STORE: Final = re.compile(r"\sv?mov[au]p[sd]\s+%[xyz]mm\d+, |\sst[pru]\w*\s")
BLOCK: Final = re.compile(r"^[.\w]+:.*$|^\s(?:j|b|cb)\w*[.\s].*$", re.MULTILINE)
"""Where a block begins or ends: at a label, or a jump."""


@weft.jit
def row_sums(x: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    total = tl.zeros((B,), x.dtype.element_ty)
    for k in range(0, n, B):
        total += tl.load(x + tl.program_id(0) * n + k + tl.arange(0, B))
    tl.store(out + tl.program_id(0), tl.sum(total))


@weft.jit
def bags(x: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    """Sums of rows, of several programs' side by side."""
    rows, columns = tl.program_id(0) * 4 + tl.arange(0, 4), tl.arange(0, B)
    total = tl.zeros((4, B), x.dtype.element_ty)
    for k in range(n):
        total += tl.load(x + (rows[:, None] * n + k) * B + columns[None, :])
    tl.store(out + rows[:, None] * B + columns[None, :], total)


CASES: Final = [
    (kernel, size, dtype, machine)
    for kernel, size in ((row_sums, 1024), (bags, 64))
    for dtype in (dtypes.float32, dtypes.float64)
    for machine in MACHINES
    if (kernel, dtype, machine)
    != (bags, dtypes.float64, "x86-64")  # two tile registers at least, which are all 16 there
]


@pytest.mark.parametrize(("kernel", "size", "dtype", "machine"), CASES)
def test_no_sum_is_on_the_stack(kernel: KernelFunction, size: int, dtype: DType, machine: str) -> None:
    pointer = PointerArgument(dtype, aligned=True)
    signature = {"x": pointer, "out": pointer, "n": ScalarArgument(dtypes.int32), "B": ConstantArgument(size)}
    text = emit_assembly(build_module(kernel, signature), MACHINES[machine], Options(disjoint=True))
    loop = max(BLOCK.split(text), key=lambda block: len(ADDITION.findall(block)))
    assert len(ADDITION.findall(loop)) >= 8
    assert [line for line in loop.splitlines() if STACK.search(line) or STORE.search(line)] == []

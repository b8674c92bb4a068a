"""``torch.compile`` and weft's kernels: what weft answers, and, where PyTorch is installed, whole programs."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import weft
from weft import triton
from weft.triton import language as tl
from weft.triton import torch_compile

pytestmark = pytest.mark.jit

FLOATS = SimpleNamespace(dtype="torch.float32")
"""What PyTorch knows of a tensor while it traces."""


@triton.jit
def moved(x: Any, out: Any, count: Any, n: Any, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)
    tl.atomic_add(count, 1)


@triton.jit
def rows(x: Any, out: Any):
    tl.store(out + tl.arange(0, 2), tl.sum(x.load([0, 0]), 1))


@triton.jit
def through_a_table(table: Any, other: Any):
    pointer = tl.load(table).to(tl.pointer_type(tl.float32))
    tl.store(pointer, 1.0)


@triton.jit
def broken(x: Any, n: Any):
    tl.store(x + tl.arange(0, n), 1)


tuned = triton.autotune([triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})], key=["n"])(moved)
computed = triton.heuristics({"BLOCK": lambda given: 16})(tuned)

SYMBOL = SimpleNamespace()
"""A size that is not known while PyTorch traces."""


@pytest.mark.parametrize(
    ("kernel", "values", "blocks", "expected"),
    [
        (
            moved,
            {"x": FLOATS, "out": FLOATS, "count": SimpleNamespace(dtype="torch.int32"), "n": SYMBOL, "BLOCK": 16},
            {},
            (("x", "count"), ("out", "count")),
        ),
        (moved, {"x": FLOATS, "out": FLOATS, "count": FLOATS, "n": 16, "BLOCK": 16}, {}, (("x", "count"), ("out", "count"))),
        (tuned, {"x": FLOATS, "out": FLOATS, "count": FLOATS, "n": 5}, {}, (("x", "count"), ("out", "count"))),
        (computed, {"x": FLOATS, "out": FLOATS, "count": FLOATS, "n": 5}, {}, (("x", "count"), ("out", "count"))),
        (rows, {"x": FLOATS, "out": FLOATS}, {"x": [2, 8]}, (("x",), ("out",))),
        (
            through_a_table,
            {"table": SimpleNamespace(dtype="torch.int64"), "other": FLOATS},
            {},
            (("table",), ("table", "other")),
        ),
    ],
)  # fmt: skip
def test_what_a_kernel_reads_and_writes(kernel: Any, values: Any, blocks: Any, expected: Any) -> None:
    assert tuple(torch_compile.accesses(kernel, values, blocks)) == expected


def wrapping(**functions: Any) -> Any:
    module = ModuleType("torch._higher_order_ops.triton_kernel_wrap")
    module.__dict__.update(functions)
    torch_compile.install(module)
    return module


def test_earlier_versions_ask_for_what_is_written_only() -> None:
    def identify_mutated_tensors(kernel: Any, kwargs: Any) -> Sequence[str]:
        return ["theirs"]

    module = wrapping(identify_mutated_tensors=identify_mutated_tensors)
    values = {"x": FLOATS, "out": FLOATS, "count": FLOATS, "n": SYMBOL, "BLOCK": 16}
    assert module.identify_mutated_tensors(moved, values) == ["out", "count"]
    assert module.identify_mutated_tensors(SimpleNamespace(fn=len), values) == ["theirs"]
    assert module.identify_mutated_tensors(broken, {"x": FLOATS, "n": SYMBOL}) == ["x"]


def test_kernels_are_compiled_in_this_process() -> None:
    class AsyncCompile:
        @classmethod
        def use_process_pool(cls) -> bool:
            return True

    module: Any = ModuleType("torch._inductor.async_compile")
    module.AsyncCompile = AsyncCompile
    torch_compile.install(module)
    assert AsyncCompile.use_process_pool() is False


def test_dtypes_are_constants_that_are_written_into_code() -> None:
    module: Any = ModuleType("torch._dynamo.utils")
    module.common_constant_types = {int}
    torch_compile.install(module)
    assert isinstance(tl.float32, tuple(module.common_constant_types))
    before = repr(tl.float32)
    with weft.as_triton():
        spelled = [repr(dtype) for dtype in (tl.float32, tl.bfloat16, tl.int1, tl.uint8, tl.float8e4nv)]
    assert (repr(tl.float32), before) == ("float32", "float32")
    names = ["float32", "bfloat16", "int1", "uint8", "float8e4nv"]
    assert spelled == [f"triton.language.{name}" for name in names]
    assert all(
        getattr(tl, name) is dtype for name, dtype in zip(names, (tl.float32, tl.bfloat16, tl.int1), strict=False)
    )


PROGRAM = """\
import torch
import triton
import triton.language as tl
from torch.library import triton_op, wrap_triton
from triton.tools.tensor_descriptor import TensorDescriptor

@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def sine(x, out, n, TYPE: tl.constexpr, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x + i) if EVEN else tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.sin(y).to(TYPE), mask=i < n)

@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64}, num_warps=8)], key=["n"], restore_value=["x"])
@triton.jit
def double(x, bias, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x + i, mask=i < n)
    if bias is not None:
        y += tl.load(bias)
    tl.store(x + i, 2 * y, mask=i < n)

@triton.jit
def sums(x, out, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS
    tl.store(out + row + tl.arange(0, ROWS), tl.sum(x.load([row, 0]), 1))

def plain(x):
    out = torch.empty_like(x)
    sine[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), tl.float32, BLOCK=64, num_warps=2)
    return out

@triton_op("weft_test::op", mutates_args={})
def op(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    wrap_triton(sine.fn)[(triton.cdiv(x.numel(), 64),)](x, out, x.numel(), tl.float32, BLOCK=64, EVEN=False)
    return out

@torch.library.custom_op("weft_test::custom", mutates_args=())
def custom(x: torch.Tensor) -> torch.Tensor:
    return plain(x)

@custom.register_fake
def _(x):
    return torch.empty_like(x)

class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return plain(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * plain(x + torch.pi / 2)

def in_place(x):
    y = x + 1
    double[lambda given: (triton.cdiv(y.numel(), given["BLOCK"]),)](y, None, y.numel())
    return y

def described(x):
    out = torch.empty(x.shape[0])
    sums[(x.shape[0] // 8,)](TensorDescriptor.from_tensor(x, [8, 32]), out, ROWS=8)
    return out + 1

torch.manual_seed(0)
x = torch.randn(100)
for function in (plain, op, custom, Function.apply):
    compiled = torch.compile(lambda x: function(x) * 2, fullgraph=True)
    torch.testing.assert_close(compiled(x), 2 * x.sin())
for dynamic in (False, True):
    compiled = torch.compile(in_place, fullgraph=True, dynamic=dynamic)
    for n in (100, 64):
        torch.testing.assert_close(compiled(x[:n].clone()), 2 * (x[:n] + 1))
y = torch.randn(16, 32)
torch.testing.assert_close(torch.compile(described, fullgraph=True)(y), y.sum(1) + 1)
for function in (Function.apply, torch.compile(lambda x: Function.apply(x) * 1, fullgraph=True)):
    x.requires_grad_().grad = None
    function(x).sum().backward()
    torch.testing.assert_close(x.grad, x.detach().cos())
for mode in (None, "max-autotune", "reduce-overhead"):
    torch.testing.assert_close(torch.compile(lambda y: torch.softmax(y @ y.T, 0), mode=mode)(y), torch.softmax(y @ y.T, 0))
from weft.runtime.loader import loaded
before = loaded()
torch._inductor.config.cpu_backend = "triton"  # PyTorch writes kernels for Triton for all that it compiles
for function in (lambda y: torch.softmax(y, 1), lambda y: y.cumsum(0), lambda y: y.relu().sum(0), lambda y: y.argmax(1)):
    torch._dynamo.reset()
    torch.testing.assert_close(torch.compile(function)(y), function(y))
assert loaded() - before >= 4
print("passed")
"""


@pytest.mark.torch
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
@pytest.mark.skipif(not (shutil.which("g++") or shutil.which("c++")), reason="torch.compile needs a C++ compiler")
def test_kernels_under_torch_compile(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    command = [sys.executable, "-m", "weft.run", "--quiet", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert result.stdout == "passed\n", result.stderr
    assert "identify_accessed_tensors" not in result.stderr

"""Stand-ins for a card: programs that name ``cuda`` run on CPU tensors. A process of its own, since they last."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [pytest.mark.jit, pytest.mark.torch]

PROGRAM = """\
import torch
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

torch.manual_seed(0)
x = torch.rand(100, device="cuda")
y = torch.rand(100).to("cuda").cuda().to(torch.device("cuda:0"))
out = torch.empty_like(x)
assert x.is_cuda and x.device == torch.device("cuda:0") and isinstance(x.device, torch.device)
add[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, y, out, 100, BLOCK=64)
torch.cuda.synchronize()
assert torch.equal(out, x + y)
assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.cuda.current_device() == 0
assert torch.cuda.get_device_capability() == (9, 0)
assert torch.cuda.get_device_properties(0).multi_processor_count >= 1
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
with torch.cuda.stream(torch.cuda.Stream()):
    start.record()
    end.record()
assert start.elapsed_time(end) >= 0
torch.cuda.manual_seed(3)
first = torch.rand(2, device="cuda")
torch.cuda.manual_seed_all(3)
assert torch.equal(first, torch.rand(2, generator=None, device="cuda"))
generator = torch.Generator(device="cuda")
with torch.autocast("cuda", dtype=torch.bfloat16):
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
with torch.cuda.device(0), torch.random.fork_rng():
    pass
module = torch.nn.Linear(2, 2).cuda().to("cuda").to(0).to(torch.float32)
assert torch.zeros(2).to(0, torch.float16).dtype is torch.float16
assert torch.cuda.device(0).idx == 0 and torch._C._cuda_getCurrentRawStream(0) == 0
module_of = getattr(torch, x.device.type)
with module_of.stream(module_of.Stream()):
    module_of.set_stream(module_of.current_stream())
assert module_of.get_device_properties(x.device).multi_processor_count >= 1 and module_of.get_device_capability() == (9, 0)
torch.cuda.nvtx.range_push("a")
torch.cuda.nvtx.mark("b")
torch.cuda.nvtx.range_pop()
with torch.cuda.nvtx.range("c {}", 1):
    pass
assert module(torch.ones(2, device="cuda", requires_grad=True)).sum().backward() is None
assert torch.zeros(2).new_ones(3, device="cuda").device.type == "cuda"
assert triton.runtime.driver.active.get_active_torch_device() == torch.device("cuda", 0) == x.device
assert triton.reinterpret(x, tl.int32).device == x.device
@torch.library.custom_op("weft_test::double", mutates_args=())
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    add[(2,)](x, x, out, 100, BLOCK=64)
    return out

@double.register_fake
def _(x):
    return torch.empty_like(x)

compiled = torch.compile(lambda x: double(x) + 1, backend="aot_eager")
assert torch.equal(compiled(x), 2 * x + 1)
made = torch.compile(lambda x: torch.ones(3, device=x.device) + x.to(x.device)[:3], backend="aot_eager", fullgraph=True)
assert torch.equal(made(x), x[:3] + 1)
print("passed")
"""


def test_a_program_that_names_cuda(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    result = subprocess.run(
        [sys.executable, "-m", "weft.run", str(script)], capture_output=True, text=True, check=False
    )
    assert result.stdout == "passed\n", result.stderr
    assert result.stderr.splitlines().count("weft: device 'cuda': tensors are in the CPU's memory") == 1


def test_quiet_names_nothing(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import torch; torch.zeros(1, device='cuda')")
    command = [sys.executable, "-m", "weft.run", "--quiet", str(script)]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


OPERATORS = """\
import warnings
import torch

with warnings.catch_warnings():
    warnings.simplefilter("error")  # as for a card, nothing is said of two functions for two kinds of machines
    first = torch.library.Library("weft_test", "FRAGMENT")
    first.define("add_seven(Tensor x) -> Tensor")
    for key in ("CPU", "CUDA"):
        first.impl("add_seven", lambda x: x + 7, key)
library = torch.library.Library("aten", "IMPL")
library.impl("erfinv", lambda x: x + 1, "CUDA")
of_key = torch.library.Library("aten", "IMPL", "CUDA")
of_key.impl("sinc", lambda x: x + 2)
other = torch.library.Library("aten", "IMPL")
other.impl("digamma", lambda x: x + 3, "XPU")

@torch.library.custom_op("weft_test::add_four", mutates_args=(), device_types=("cpu", "cuda"))
def add_four(x: torch.Tensor) -> torch.Tensor:
    return x + 4

@torch.library.custom_op("weft_test::add_five", mutates_args=(), device_types="cpu")
def add_five(x: torch.Tensor) -> torch.Tensor:
    raise NotImplementedError

@add_five.register_kernel("cuda")
def _(x):
    return x + 5

torch.library.define("weft_test::add_six", "(Tensor x) -> Tensor")

@torch.library.impl("weft_test::add_six", "cuda")
def _(x):
    return x + 6

ops = torch.ops.weft_test
x = torch.ones(1, device="cuda")
digamma = torch.digamma(x).item()
assert abs(digamma + 0.5772157) < 1e-6, digamma
print([f(x).item() for f in (torch.erfinv, torch.sinc, add_four, add_five, ops.add_six, ops.add_seven)])
"""


def test_operators_for_cuda_are_called_for_the_cpu(tmp_path: Path) -> None:
    """Expected: what each function adds to 1. Operators for other machines stay theirs."""
    script = tmp_path / "program.py"
    script.write_text(OPERATORS)
    command = [sys.executable, "-W", "ignore", "-m", "weft.run", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout == "[2.0, 3.0, 5.0, 6.0, 7.0, 8.0]\n", result.stderr
    assert "weft: operators for dispatch key CUDA: they are registered for CPU" in result.stderr.splitlines()

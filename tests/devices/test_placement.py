"""What tensors and ``torch.device`` say of where they are. Programs in processes of their own, since stand-ins last."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [pytest.mark.jit, pytest.mark.torch]


def _run(tmp_path: Path, text: str, *options: str) -> list[str]:
    """The lines that a program prints under ``weft run``."""
    script = tmp_path / "program.py"
    script.write_text(text)
    command = [sys.executable, "-W", "ignore", "-m", "weft.run", *options, str(script)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


ANSWERS = """\
import copy
import pickle
import torch

x = torch.zeros(3)
print(x.device, x.device.type, x.device.index, x.is_cuda, x.is_cpu, x.get_device())
print(torch.device("cuda"), torch.device("cuda:1"), torch.device("cuda", 0), torch.device(0), torch.device("cpu"))
print(x.device == torch.device("cuda"), x.device == torch.device("cuda:0"), torch.device(x.device) == x.device)
print(isinstance(x.device, torch.device), type(x.device) == torch.device, torch.device(type="cuda", index=0) == x.device)
print(copy.deepcopy(x.device), pickle.loads(pickle.dumps(x.device)), {x.device: 1}[torch.device("cuda:0")])
print(torch.nn.Parameter(x).device, torch.nn.Linear(1, 1, device="cuda").weight.is_cuda, torch.zeros(1, device="meta").device)
print(getattr(torch, x.device.type) is torch.cuda, hasattr(x, "__cuda_array_interface__"), torch.Tensor.device is not None)


class Named(torch.Tensor):
    pass


print(x.as_subclass(Named).device, x.as_subclass(Named).is_cuda)
"""


def test_programs_are_told_of_a_card(tmp_path: Path) -> None:
    """Expected: what PyTorch says with a card, where a tensor's device has a number and ``torch.device("cuda")`` has none."""
    assert _run(tmp_path, ANSWERS) == [
        "cuda:0 cuda 0 True False 0",
        "cuda cuda:1 cuda:0 cuda:0 cpu",
        "False True True",
        "True True True",
        "cuda:0 cuda:0 1",
        "cuda:0 True meta",
        "True False True",
        "cuda:0 True",
    ]


def test_without_stand_ins_tensors_say_cpu(tmp_path: Path) -> None:
    text = "import torch; x = torch.zeros(3); print(x.device, x.is_cuda, x.get_device(), torch.device('cuda'))"
    assert _run(tmp_path, text, "--device", "none") == ["cpu False -1 cuda"]


TAKEN = """\
import torch
from torch.utils._device import _device_constructors

for at in (torch.device("cuda"), torch.zeros(1).device, "cuda:0"):
    torch.empty(2, device=at), torch.zeros(2).to(at), torch.zeros(2).new_full((2,), 1.0, device=at)
    torch.fft.fftfreq(4, device=at), torch.kaiser_window(4, device=at), torch.randint_like(torch.zeros(2), 3, device=at)
    torch.nested.nested_tensor([torch.zeros(1)], device=at), torch.empty_permuted((2, 3), (1, 0), device=at)
    torch.nn.Linear(2, 2, device=at), torch.nn.Linear(2, 2).to(at), torch.Generator(device=at), torch.cuda.device(at)
    torch.nn.Linear(2, 2, device="meta").to_empty(device=at), torch.autocast(torch.device(at).type)
    with torch.device(at):
        torch.zeros(2)
    torch.set_default_device(at)
    torch.zeros(2)
    torch.set_default_device(None)
print([f.__name__ for f in _device_constructors() if not hasattr(f, "__wrapped__")])
"""


def test_pytorch_takes_the_devices_that_programs_are_told(tmp_path: Path) -> None:
    """Each of PyTorch's own list of functions that make tensors on a device has a stand-in."""
    assert _run(tmp_path, TAKEN) == ["[]"]


COPIES = """\
import functools
import torch

x = torch.zeros(3, device="cuda")
moves = (("cpu",), (torch.device("cpu"),), ("cpu", torch.float32))
for copy in (x.cpu, *[functools.partial(x.to, *move) for move in moves], functools.partial(x.to, device="cpu")):
    copied = copy()
    x += 1
    print(copied.tolist())
print(x.cuda() is x, x.to("cuda") is x, x.to(torch.float32) is x)
y = torch.zeros(2, requires_grad=True)
y.cpu().sum().backward()
print(y.grad.tolist())
"""


def test_a_copy_to_the_cpu_is_a_copy(tmp_path: Path) -> None:
    """A program keeps what a tensor holds before a kernel overwrites it."""
    snapshots = [f"[{i}.0, {i}.0, {i}.0]" for i in range(5)]
    assert _run(tmp_path, COPIES) == [*snapshots, "True True True", "[1.0, 1.0]"]


CAST = """\
import torch

class Half(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda", cast_inputs=torch.bfloat16)
    def forward(ctx, x):
        print(x.dtype, torch.is_autocast_enabled("cuda"))
        return x

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, dy):
        return dy

class Older(torch.autograd.Function):
    @staticmethod
    @torch.cuda.amp.custom_fwd(cast_inputs=torch.float16)
    def forward(ctx, x):
        print(x.dtype)
        return x

with torch.autocast("cuda", dtype=torch.bfloat16):
    Half.apply(torch.zeros(2, device="cuda", requires_grad=True)).sum().backward()
    Older.apply(torch.zeros(2, device="cuda"))
"""


def test_functions_with_autocast_of_their_own(tmp_path: Path) -> None:
    assert _run(tmp_path, CAST) == ["torch.bfloat16 False", "torch.float16"]


COMPILED = """\
import torch

DEVICE = torch.device("cuda:0")

def f(x):
    assert x.is_cuda and x.device.type == "cuda" and x.device == DEVICE and not x.is_cpu
    y = x.cuda() + torch.ones(3, device=DEVICE) + torch.ones(3, device=x.device) + x.to(DEVICE) + x.new_ones(3, device="cuda")
    return y + torch.zeros(3, device=torch.device("cuda")) + torch.zeros_like(x, device=DEVICE) + x.to("cuda")

for backend in ("eager", "aot_eager"):
    print(torch.compile(f, backend=backend, fullgraph=True)(torch.ones(3)).tolist())
"""


def test_compiled_functions_are_told_the_same(tmp_path: Path) -> None:
    """1 (x) + 1 + 1 (ones) + 1 (x) + 1 (new_ones) + 0 + 0 + 1 (x) = 6. Notices are left out of what is compiled."""
    assert _run(tmp_path, COMPILED) == ["[6.0, 6.0, 6.0]"] * 2


IMITATION = """\
import torch, triton
import triton.language as tl

@triton.jit
def double(x, y):
    i = tl.arange(0, 4)
    tl.store(y + i, 2 * tl.load(x + i))

class Buffer:
    def __init__(self, tensor):
        self.tensor, self.dtype, self.device, self.shape = tensor, tensor.dtype, tensor.device, tensor.shape
        self.stride = tensor.stride

    def data_ptr(self):
        return self.tensor.data_ptr()

x, y = torch.arange(4), torch.empty(4, dtype=torch.int64)
double[(1,)](Buffer(x), triton.reinterpret(y, tl.int64))
print(y.tolist())
"""


@pytest.mark.parametrize("device", ["cpu", "sm_80"])
def test_objects_that_imitate_tensors_are_in_the_memory_of_the_cpu(tmp_path: Path, device: str) -> None:
    assert _run(tmp_path, IMITATION, "--device", device)[0] == "[0, 2, 4, 6]"

"""The state of CUDA's generators, in CUDA's form. A program in a process of its own, since stand-ins last."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytestmark = [pytest.mark.jit, pytest.mark.torch]

PROGRAM = """\
import torch

def state(generator):
    return generator.get_state().view(torch.int64).tolist()

def refused(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"

default = torch.cuda.default_generators[torch.cuda.current_device()]
torch.manual_seed(7)
assert state(default) == [7, 0] and torch.cuda.get_rng_state().dtype is torch.uint8 and torch.cuda.initial_seed() == 7
torch.cuda.manual_seed(9)
assert state(default) == [9, 0] and torch.cuda.get_rng_state().numpy().tobytes() == b"\\x09" + bytes(15)

# Numbers that were drawn move the offset; a state restores the numbers that followed it.
first = torch.rand(5, device="cuda")
saved = torch.cuda.get_rng_state()
seed, offset = saved.view(torch.int64).tolist()
assert seed == 9 and offset > 0 and offset % 4 == 0
second = torch.rand(5, device="cuda")
torch.cuda.manual_seed(11)
torch.rand(3)
assert state(default)[0] == 11
torch.cuda.set_rng_state(saved)
assert torch.equal(torch.rand(5, device="cuda"), second)
torch.cuda.manual_seed(9)
assert torch.equal(torch.rand(5, device="cuda"), first) and state(default) == [9, offset]

# Two states of a seed have two offsets, also where as many calls drew other numbers.
torch.cuda.manual_seed(9)
torch.rand(8)
assert state(default)[1] not in (0, offset)
torch.cuda.set_rng_state_all([saved])
assert torch.equal(torch.rand(5, device="cuda"), second) and len(torch.cuda.get_rng_state_all()) == 1

# As Triton's programs take seed and offset from it.
torch.manual_seed(3)
for expected in (0, 12, 24):
    copy = default.get_state()
    words = copy.view(torch.int64)
    assert words.tolist() == [3, expected]
    words[1] += 12
    default.set_state(copy)
default.set_state(torch.tensor([5, 400]).view(torch.uint8))
a = torch.rand(4)
default.set_offset(404)
b = torch.rand(4)
default.set_offset(400)
assert torch.equal(torch.rand(4), a) and not torch.equal(a, b) and default.initial_seed() == 5

# A generator of its own.
g = torch.Generator(device="cuda").manual_seed(-1)
assert isinstance(g, torch.Generator) and g.device.type == "cuda" and state(g) == [-1, 0]
before = torch.get_rng_state()
drawn = torch.rand(3, generator=g, device="cuda")
assert torch.equal(torch.get_rng_state(), before) and g.get_offset() == 4
twin = g.clone_state()
assert torch.equal(torch.rand(3, generator=twin), torch.rand(3, generator=g))
assert torch.equal(torch.rand(3, generator=g.manual_seed(-1)), drawn)
assert isinstance(g.seed(), int) and torch.Generator(device="cpu").get_state().numel() == 5056

torch.manual_seed(1)
with torch.random.fork_rng():
    torch.rand(7)
x = torch.rand(2)
torch.manual_seed(1)
assert torch.equal(torch.rand(2), x)
dropped = torch.nn.Dropout(0.5)
y = torch.ones(64, requires_grad=True)
torch.utils.checkpoint.checkpoint(lambda t: dropped(t), y, use_reentrant=False).sum().backward()
torch.manual_seed(1)
torch.rand(2)
assert torch.equal(y.grad, dropped(torch.ones(64)))

print(refused(lambda: default.set_state(torch.zeros(5056, dtype=torch.uint8))))
print(refused(lambda: default.set_state(torch.zeros(2))))
print(refused(lambda: default.set_state(torch.tensor([5, 401]).view(torch.uint8))))
print(refused(lambda: default.set_offset(2)))
for i in range(5000):
    torch.rand(1), default.get_state()
"""


def test_states_hold_seed_and_offset(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("import torch\n", "import torch\nimport torch.utils.checkpoint\n", 1))
    command = [sys.executable, "-W", "ignore", "-m", "weft.run", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [
        "RuntimeError: RNG state is wrong size: CUDA's has 16 bytes, this one 5056",
        "TypeError: RNG state must be a torch.ByteTensor",
        "RuntimeError: offset must be a multiple of 4",
        "RuntimeError: offset must be a multiple of 4",
    ]

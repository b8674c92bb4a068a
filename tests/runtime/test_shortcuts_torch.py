"""Routes for tensors of PyTorch: what they take, and what they leave to the long way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.runtime.arguments import Parameter, bind, disjoint
from weft.runtime.shortcuts import route

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")

from tensor_values import ALIGNED, NOT_TAKEN, TAKEN  # noqa: E402 - they are tensors

pytestmark = [pytest.mark.jit, pytest.mark.torch]

PARAMETERS = (Parameter("x"), Parameter("y"))


@pytest.mark.parametrize("name", TAKEN)
def test_facts_decide_what_bind_says(name: str) -> None:
    """Beside each of the others, in both places: slots are `bind`'s, and equal facts mean equal tokens and overlaps."""
    meanings: dict[Any, Any] = {}
    for pair in [p for other in TAKEN.values() for p in ((TAKEN[name](), other()), (other(), TAKEN[name]()))]:
        found = route("k", PARAMETERS, pair)
        assert found is not None
        looked = found.look(*pair)
        assert looked is not None
        facts, slots = looked
        bound = bind("k", PARAMETERS, pair)
        meaning = (disjoint(bound.extents), bound.key)
        assert list(slots) == bound.slots
        assert meanings.setdefault(facts, meaning) == meaning


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_what_routes_leave_to_the_long_way(name: str) -> None:
    pair = ALIGNED[:32], NOT_TAKEN[name]()
    try:
        found = route("k", PARAMETERS, pair)
        looked = None if found is None else found.look(*pair)
    except RuntimeError:  # a tensor without memory
        looked = None
    assert looked is None


@weft.jit
def copy(x: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)


def test_launches_that_differ_from_those_before() -> None:
    """Values from torch's own conversions; NumPy's arrays and tensors in turns."""
    out: Any = None
    for _ in range(3):
        for x in (
            torch.arange(8.0),
            torch.arange(9.0)[1:],
            np.arange(8, dtype=np.float32),
            torch.arange(8, dtype=torch.int32),
        ):
            out = torch.zeros(8, dtype=torch.float64)
            copy[(1,)](x, out, 8, 8)
            assert out.tolist() == [float(v) for v in x]
    complex_ones = torch.full((8,), 1 - 2j, dtype=torch.complex64)
    for _ in range(3):
        with pytest.raises(TypeError, match=r"found a tensor whose negation is pending; pass tensor.resolve_neg\(\)"):
            copy[(1,)](complex_ones.conj().imag, out, 8, 8)


def test_a_tensor_of_a_transformation_is_refused_again_and_again() -> None:
    """Its type is that of any tensor, and it has no memory."""

    def launch(x: Any) -> Any:
        copy[(1,)](x, torch.zeros(8), 8, 8)
        return x.sum()

    for _ in range(3):
        copy[(1,)](torch.arange(8.0), torch.zeros(8), 8, 8)
    with pytest.raises(TypeError, match="found a tensor of type Tensor without memory"):
        torch.func.grad(launch)(torch.ones(8))


UNDER_RUN = """\
import sys
import torch
import triton
import triton.language as tl

@triton.jit
def add(x, y, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)

x, y = torch.ones(8, device="cuda"), torch.arange(8.0, device="cuda")
for step in range(5):
    if step == 3:
        sys.modules['weft.runtime.jit'].bind = None  # known launches do not ask
    out = torch.zeros(8, device="cuda")
    add[(1,)](x + step, y, out, 8, B=8, num_warps=4)
    assert out.is_cuda and out.tolist() == [v + step + 1 for v in range(8)]
print("ok")
"""


def test_under_weft_run_tensors_take_the_short_way(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(UNDER_RUN)
    command = [sys.executable, "-W", "ignore", "-m", "weft.run", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "ok\n"), result.stderr

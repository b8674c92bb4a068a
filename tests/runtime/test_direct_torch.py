"""Launches without Python on tensors of PyTorch, which native code reads by DLPack's exchange interface."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from planned import GRID, Code, planned
from weft.codegen import compile as compiler
from weft.runtime import tensors
from weft.runtime.arguments import Parameter, bind, disjoint
from weft.runtime.plans import Call

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed")

from tensor_values import ALIGNED, NOT_TAKEN, TAKEN  # noqa: E402 - they are tensors

pytestmark = [
    pytest.mark.jit,
    pytest.mark.torch,
    pytest.mark.skipif(not tensors.reader(torch.Tensor), reason="this PyTorch has no exchange interface"),
]

assert compiler is not None  # the code is compiled where the compiler has been loaded

PARAMETERS = (Parameter("x"), Parameter("y"))
VALUES: dict[str, Callable[[], Any]] = {
    **TAKEN,
    **{name: NOT_TAKEN[name] for name in ("transposed", "with steps", "broadcast")},
    "float16": lambda: ALIGNED[64:96].view(torch.float16),
    "bool": lambda: ALIGNED[64:96].view(torch.bool),
    "int8": lambda: ALIGNED[64:96].view(torch.int8),
    "many with steps": lambda: ALIGNED[:64:2],
    "between steps": lambda: ALIGNED[63:65],
    "zeros": lambda: torch.zeros(5),
    "NumPy": lambda: np.zeros(5, np.float32),
}
REFUSED: dict[str, Callable[[], Any]] = {
    **{name: NOT_TAKEN[name] for name in ("negated", "meta", "sparse", "a subclass")},
    "negated, contiguous": lambda: torch._neg_view(torch.zeros(5)),
    "between its elements": lambda: torch.frombuffer(bytearray(64), dtype=torch.float32, count=4, offset=1),
    "complex": lambda: torch.zeros(3, dtype=torch.complex64),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_launch_that_fits_is_bound_as_the_plans_was(name: str) -> None:
    """Beside each of the others, in both places; what is refused never fits."""
    first = VALUES[name](), ALIGNED[192:200]
    bound = bind("k", PARAMETERS, first)
    code = Code(2)
    plans, slow = planned(code, Call(first, {}, PARAMETERS, bound.key))
    assert plans.count == 1
    kinds = tuple(map(type, first))
    for other in (*VALUES.values(), lambda: first[0]):
        for pair in ((other(), first[1]), (first[0], other()), (other(), ALIGNED[:200])):
            code.seen.clear()
            slow.clear()
            plans.function(GRID, *pair)
            now = bind("k", PARAMETERS, pair)
            same = (disjoint(now.extents), now.key, tuple(map(type, pair))) == (
                disjoint(bound.extents),
                bound.key,
                kinds,
            )
            assert (len(code.seen), len(slow)) == (int(same), int(not same))
            assert not same or np.frombuffer(code.seen[0], np.uint64).tolist() == now.slots
    for refused in REFUSED.values():
        code.seen.clear()
        plans.function(GRID, refused(), first[1])
        assert not code.seen


@weft.jit
def add(x: Any, y: Any, out: Any, n: Any, B: tl.constexpr) -> None:
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def test_kernels_on_tensors() -> None:
    kernel = weft.jit(add.fn)
    x, y, out = torch.arange(100, dtype=torch.float32), torch.ones(100), torch.zeros(100)
    for turn in range(6):
        out = torch.zeros(100)
        kernel[(4,)](x, y, out, 90 + turn, B=32)
        assert out[: 90 + turn].tolist() == list(range(1, 91 + turn))
        assert not out[90 + turn :].any()
    assert inspect.isbuiltin(kernel[(4,)].func)
    with pytest.raises(TypeError, match="found a tensor whose negation is pending"):
        kernel[(4,)](x, torch._neg_view(y), out, 90, B=32)
    with pytest.raises(TypeError, match="found a tensor on the meta device"):
        kernel[(4,)](x, torch.empty(100, device="meta"), out, 90, B=32)


def test_a_captured_launch_of_a_tensor_that_moves() -> None:
    x, out = torch.ones(32), torch.zeros(32)
    again = add[(1,)].bind(x, x, out, 32, 32)
    again()
    assert out.tolist() == [2] * 32
    assert inspect.isbuiltin(again)
    x.data = torch.full((32,), 5.0)
    with pytest.raises(RuntimeError, match="parameter 'x': the array's memory has moved"):
        again()


def test_under_a_mode_python_launches() -> None:
    """Methods of tensors then run Python, which may do anything."""
    seen: list[Any] = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    first = torch.zeros(5), ALIGNED[192:200]
    code = Code(2)
    plans, slow = planned(code, Call(first, {}, PARAMETERS, bind("k", PARAMETERS, first).key))
    with Mode():
        plans.function(GRID, *first)
    assert (code.seen, len(slow), seen) == ([], 1, [])
    plans.function(GRID, *first)
    assert len(code.seen) == 1

"""Pipelined loops compute what the loops did, whatever the number of iterations and stages.

The reference executes both, and raises where a copy is read too early."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation

import weft
import weft.language as tl
from weft.ir import gpu
from weft.ir.text import parse
from weft.reference import run
from weft.reference.programs import UndefinedBehaviourError
from weft.transforms import optimise
from weft.transforms.nvidia.pipeline import PipelineLoads

Array = NDArray[Any]


@weft.jit
def product(a: Any, b: Any, c: Any, first: Any, last: Any, step: Any, K: tl.constexpr) -> None:
    """Bounds of any kind that are divisible by 16; addresses from the induction variable."""
    rows, columns, depth = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 16)
    total = tl.zeros((16, 16), tl.float32)
    for k in range(first, last, step):
        inside = k + depth < K
        left = tl.load(a + 16 + rows[:, None] * K + (k + depth)[None, :], mask=inside[None, :], other=0.0)
        right = tl.load(b + 256 + (k + depth)[:, None] * 16 + columns[None, :], mask=inside[:, None], other=2.0)
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * 16 + columns[None, :], total)


@weft.jit
def carried(a: Any, b: Any, c: Any, first: Any, last: Any, step: Any, K: tl.constexpr) -> None:
    """Pointers are carried; one step depends on the iteration before."""
    rows, columns, depth = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 16)
    left_at = a + rows[:, None] * K + depth[None, :]
    right_at = b + depth[:, None] * 16 + columns[None, :]
    total = tl.zeros((16, 16), tl.float32)
    skip = 0
    for _ in range(first, last, step):
        total = tl.dot(tl.load(left_at).to(tl.float16), tl.load(right_at) * 2, total)
        left_at += 8 + skip
        right_at += (8 + skip) * 16
        skip = 8 - skip
    tl.store(c + rows[:, None] * 16 + columns[None, :], total + skip)


@weft.jit
def looked_up(a: Any, b: Any, c: Any, first: Any, last: Any, step: Any, K: tl.constexpr) -> None:
    """Rows of b are found by numbers that the loop loads; both orders of b are multiplied."""
    rows, columns, depth = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, 16)
    total = tl.zeros((16, 16), tl.float32)
    for k in range(first, last, step):
        number = tl.load(c + 256 + k).to(tl.int32)
        right = tl.load(b + (number + depth)[:, None] * 16 + columns[None, :])
        total = tl.dot(right, tl.trans(right), total)
    tl.store(c + rows[:, None] * 16 + columns[None, :], total)


KERNELS = {"product": product, "carried": carried, "looked_up": looked_up}
BOUNDS = {
    "none": (32, 32, 16),
    "backwards": (16, -16, 32),
    "one": (0, 1, 16),
    "two": (0, 32, 16),
    "partly": (0, 48, 32),
    "many": (-16, 64, 16),
    "overflow": (2**31 - 48, 2**31 - 16, 2**30),
}


@dataclass
class Data:
    """Arrays of a launch: ``c`` ends with numbers of rows."""

    a: Array
    b: Array
    c: Array

    @staticmethod
    def random() -> Data:
        rng = np.random.default_rng(3)
        a = rng.integers(-4, 5, 16 * 128 + 512).astype(np.float16)
        b = rng.integers(-4, 5, 16 * 128 + 512).astype(np.float16)
        c = np.zeros(256 + 128, np.float32)
        c[256:] = rng.integers(0, 100, 128)
        return Data(a, b, c)


@cache
def module_of(name: str) -> ModuleOp:
    data = Data.random()
    text = KERNELS[name].compile(data.a, data.b, data.c, 32, 48, 16, K=128, target="sm_80", num_stages=1).tile_ir
    return parse(text)


def executed(module: ModuleOp, bounds: tuple[int, int, int]) -> Array:
    """``c`` after the launch."""
    data = Data.random()
    run(module, [data.a, data.b, data.c, *bounds], (1,))
    return data.c


def pipelined(module: ModuleOp, stages: int, target: str = "sm_80") -> ModuleOp:
    copy = module.clone()
    PipelineLoads(target, stages, disjoint=True).apply(Context(), copy)
    optimise(copy)
    copy.verify()
    return copy


def ops(module: ModuleOp, kind: type[Operation]) -> list[Any]:
    return [op for op in module.walk() if isinstance(op, kind)]


@pytest.mark.parametrize("name", KERNELS)
def test_all_loads_of_the_dots_are_copied(name: str) -> None:
    made = pipelined(module_of(name), 3)
    assert len(ops(made, gpu.AllocOp)) == (1 if name == "looked_up" else 2)
    assert len(ops(made, gpu.WaitOp)) == 1


CASES = [
    (name, bounds, stages)
    for name in KERNELS
    for bounds in BOUNDS
    for stages in (2, 3, 5)
    if name == "product" or bounds in ("none", "one", "two", "partly")
]


@pytest.mark.parametrize(("name", "bounds", "stages"), CASES)
def test_the_results_stay(name: str, bounds: str, stages: int) -> None:
    module = module_of(name)
    shifted = BOUNDS[bounds]
    expected = executed(module, shifted)
    np.testing.assert_array_equal(executed(pipelined(module, stages), shifted), expected)


@weft.jit
def storing(a: Any, c: Any, n: Any, WHERE: tl.constexpr) -> None:
    i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
    total = tl.zeros((16, 16), tl.float32)
    for k in range(n):
        left = tl.load(a + k * 256 + i)
        total = tl.dot(left, left, total)
        if WHERE == "the same array":
            tl.store(a + i, total.to(tl.float16))
        elif WHERE == "another array":
            tl.store(c + i, total)
        else:
            tl.debug_barrier()
    tl.store(c + i, total)


@pytest.mark.parametrize(
    ("where", "disjoint", "copied"),
    [
        ("the same array", False, False),
        ("the same array", True, False),
        ("another array", False, False),
        ("another array", True, True),
        ("a barrier", True, False),
    ],
)
def test_loads_pass_stores_to_arrays_that_are_known_to_be_others(where: str, disjoint: bool, copied: bool) -> None:
    """A copy for the next iteration comes before this one's store: only where the launch promises that arrays are disjoint."""
    a, c = np.zeros(4096, np.float16), np.zeros(256, np.float32)
    module = parse(storing.compile(a, c, 3, WHERE=where, target="sm_80", num_stages=1).tile_ir)
    PipelineLoads("sm_80", 3, disjoint=disjoint).apply(Context(), module)
    assert bool(ops(module, gpu.AsyncCopyOp)) == copied


def changed(module: ModuleOp, change: str) -> ModuleOp:
    """A pipelined module with a fault."""
    made = pipelined(module, 3)
    (wait,) = ops(made, gpu.WaitOp)
    copies = ops(made, gpu.AsyncCopyOp)
    if change == "no wait":
        wait.detach()
    elif change == "waits for one less":
        wait.properties["pending"] = IntegerAttr(2, i64)
    elif change == "the last copies come before the first":
        copies[-1].operands[-2] = ops(made, gpu.LocalLoadOp)[0].slot
    else:
        copies[0].detach()
    return made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("no wait", "slot 0 is read while it is being copied into"),
        ("waits for one less", "slot 0 is read while it is being copied into"),
        ("the last copies come before the first", "slot 0 is read while it is being copied into"),
        ("a copy is missing", "slot 0 is read before anything was copied into it"),
    ],
)
def test_the_reference_finds_what_is_read_too_early(change: str, message: str) -> None:
    with pytest.raises(UndefinedBehaviourError, match=f"gpu.local_load at .*, program .*: {message}"):
        executed(changed(module_of("product"), change), (0, 48, 16))

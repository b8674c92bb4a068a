"""Triton's kernels for sm_100a: their results, and what the check of tensor memory's order says of each wait that is taken out.

Triton emits no tcgen05.fence: its barriers and mbarriers release and acquire.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from emulator_programs import program
from weft.emulator import Module, Race, Scratch, TensorMap

ATTENTION, SPECIALIZED = (program(f"triton_{name}_sm100").ptx for name in ("attention", "matmul_specialized"))


def without(text: str, pattern: str, number: int) -> str:
    """The text without its n-th line that has a pattern; a wait for an mbarrier is answered at once."""
    lines = text.splitlines()
    which = [i for i, line in enumerate(lines) if re.search(pattern, line)][number]
    lines[which] = "setp.eq.u32 complete, 0, 0;" if "try_wait" in lines[which] else ""
    return "\n".join(lines)


def attend(text: str) -> tuple[np.ndarray, np.ndarray]:
    """What a block of two steps of 32 keys computes, and what it should."""
    rng = np.random.default_rng(100)
    q, k, v = (rng.uniform(-1, 1, (64, 32)).astype(np.float16) for _ in range(3))
    out = np.zeros((64, 32), np.float32)
    Module(text).launch("attention", 1, 128, [q, k, v, Scratch(out), 64, 0.5, 0, 0], shared=12320)
    scores = q.astype(np.float64) @ k.astype(np.float64).T * 0.5
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return out, weights / weights.sum(axis=1, keepdims=True) @ v.astype(np.float64)


def multiply(text: str, m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """What two programs of specialized warps compute, and what they should: whole numbers."""
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float16)
    args: list[object] = []
    for array in (a, b, c):
        args += [TensorMap(array, box=(64, 64), swizzle="128B"), *array.shape, array.shape[1], 1]
    Module(text).launch("matmul_specialized", 2, 256, [*args, m, n, k, 0, 0], shared=57444)
    return c, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (150, 136, 192)])
def test_specialized_warps(m: int, n: int, k: int) -> None:
    found, expected = multiply(SPECIALIZED, m, n, k)
    np.testing.assert_array_equal(found, expected)


NO_STORE, NO_LOAD = "no tcgen05.wait::st follows it", "no tcgen05.wait::ld follows it"
NOT_WAITED = "its completion is not waited for: tcgen05.commit and a wait for the mbarrier are missing between"
NOTHING = "nothing orders them: a barrier is missing between"


@pytest.mark.parametrize(
    ("pattern", "number", "why"),
    [
        (r"tcgen05\.wait::st", 0, NO_STORE),
        (r"tcgen05\.wait::st", 2, NO_STORE),
        (r"tcgen05\.wait::ld", 1, NO_LOAD),
        (r"mbarrier\.try_wait", 0, NOT_WAITED),
        (r"mbarrier\.try_wait", 3, NOT_WAITED),
    ],
)
def test_attention_without_a_wait(pattern: str, number: int, why: str) -> None:
    with pytest.raises(Race) as raised:
        attend(without(ATTENTION, pattern, number))
    assert raised.value.message.partition("; ")[2] == why


@pytest.mark.parametrize(
    ("pattern", "number", "why", "tiles"),
    [
        (r"tcgen05\.wait::ld", 0, NO_LOAD, 6),
        (r"tcgen05\.wait::st", 0, NO_STORE, 2),
        (r"mbarrier\.try_wait", 1, NOTHING, 2),
    ],
)
def test_specialized_warps_without_a_wait(pattern: str, number: int, why: str, tiles: int) -> None:
    """Of three tiles a program's last one is where its first was."""
    with pytest.raises(Race) as raised:
        multiply(without(SPECIALIZED, pattern, number), 64 * tiles, 64, 192)
    assert raised.value.message.partition("; ")[2] == why


def test_a_wait_for_registers_alone() -> None:
    """Scores are loaded, used, and written again only after the next product is waited for: the ISA respects the registers'
    dependency (9.7.16.6.4.5), so that nothing races without the wait."""
    found, expected = attend(without(ATTENTION, r"tcgen05\.wait::ld", 0))
    np.testing.assert_allclose(found, expected, atol=2e-3)

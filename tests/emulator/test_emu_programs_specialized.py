"""A persistent matmul of Triton whose warps are specialized: a warpgroup loads boxes, two multiply and store; they meet at
mbarriers only, and hand each other registers. Compared with NumPy; and found to hang where a consumer frees nothing."""

from __future__ import annotations

import numpy as np
import pytest

from emulator_programs import program
from weft.emulator import BarrierFault, Module, Profile, TensorMap

NAME = "triton_matmul_specialized_sm90"
SHARED = 65696


def launched(module: Module, m: int, n: int, k: int) -> tuple[Profile, np.ndarray, np.ndarray]:
    """What two programs of twelve warps compute, and what it should be: small integers, so every sum is exact."""
    rng = np.random.default_rng(m)
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = np.zeros((m, n), np.float16)
    args: list[object] = []
    for array in (a, b, c):
        args += [TensorMap(array, box=(64, 64), swizzle="128B"), *array.shape, array.shape[1], 1]
    profile = module.launch("matmul_specialized", 2, 384, [*args, m, n, k, 0, 0], shared=SHARED)
    return profile, c, (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)


@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 64), (150, 72, 192)])
def test_specialized_warps(m: int, n: int, k: int) -> None:
    profile, found, expected = launched(program(NAME), m, n, k)
    np.testing.assert_array_equal(found, expected)
    # The compiler has both consumers compute, and store, every tile; the producer loads each box once.
    tiles, steps = -(-m // 64) * -(-n // 64), -(-k // 64)
    assert profile.total("matrix_flops") == 2 * tiles * steps * 2 * 64**3
    assert profile.total("async_global_store_bytes") == 2 * found.nbytes
    stored = sum(row.counts.get("async_shared_store_bytes", 0) for row in profile.instructions)
    assert stored == tiles * steps * 2 * 64 * 64 * 2


def test_a_consumer_that_frees_nothing() -> None:
    """Once all stages are full, the producer waits for the second consumer's 128 threads, and the consumers for the producer."""
    text = program(NAME).ptx
    arrivals = [line for line in text.splitlines() if "mbarrier.arrive.shared::cta.b64 _" in line]
    assert len(arrivals) == 2
    silent = text.replace(arrivals[1], "")
    with pytest.raises(BarrierFault) as caught:
        launched(Module(silent), 64, 64, 512)
    assert caught.value.message.startswith("threads wait for what will never come:\n    mbarrier at shared 0x")
    assert "lacks 128 arrivals" in caught.value.message

"""``kernel.preload``: what the hook of compilation was told compiles the kernel again, with nothing left to do for a launch."""

# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
from __future__ import annotations

import gc
import json
from typing import Any, NamedTuple

import numpy as np
import pytest

from weft import triton
from weft.triton import knobs
from weft.triton import language as tl
from weft.triton.runtime import preloading
from weft.triton.tools.tensor_descriptor import TensorDescriptor

pytestmark = pytest.mark.jit


@triton.jit
def doubled(x: Any):
    return x + x


@triton.jit
def kernel(x: Any, out: Any, pair: Any, none: Any, n: Any, f: tl.constexpr, TYPE: tl.constexpr, SIZES: tl.constexpr):
    to: Any = TYPE
    i = tl.arange(0, SIZES[0])
    tl.store(out + i, f(tl.load(x + i, mask=i < n).to(to)) + pair[0] + pair[1], mask=i < n)


@triton.jit
def rows(x: Any, out: Any):
    tl.store(out, tl.sum(x.load([0, 0])))


def arguments() -> tuple[Any, ...]:
    x = np.arange(70, dtype=np.float32)
    return x, np.zeros_like(x), (3, tl.constexpr(4)), None, 70, doubled, tl.float32, (128, -0.0)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that the hook was told."""
    texts: list[str] = []
    monkeypatch.setattr(
        knobs.runtime, "jit_cache_hook", lambda **given: texts.append(given["compile"]["specialization_data"])
    )
    return texts


def forget(*kernels: Any) -> None:
    for each in kernels:
        each.device_caches.clear()
        each._executables.clear()


def test_a_launch_after_preload_compiles_nothing(told: list[str]) -> None:
    first = kernel.warmup(*arguments(), grid=(1,), num_warps=2)
    forget(kernel)
    again = kernel.preload(told[0])
    assert again.hash == first.hash
    given = arguments()
    assert kernel[(1,)](*given, num_warps=2) is again
    np.testing.assert_array_equal(given[1], 2 * given[0] + 7)
    assert len(told) == 2  # by the first compilation, and by preload


def test_arrays_that_overlap_are_told(told: list[str]) -> None:
    x, _, *rest = arguments()
    kernel[(1,)](x, x, *rest)
    forget(kernel)
    again = kernel.preload(told[0])
    assert kernel[(1,)](x, x, *rest) is again
    assert kernel[(1,)](*arguments()) is not again


def test_descriptors(told: list[str]) -> None:
    x, out = np.arange(64, dtype=np.int16).reshape(8, 8), np.zeros(1, np.int32)
    rows[(1,)](TensorDescriptor.from_tensor(x, [2, 8]), out)
    forget(rows)
    again = rows.preload(told[0])
    assert rows[(1,)](TensorDescriptor.from_tensor(x, [2, 8]), out) is again


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"name": "other.kernel"},
            f"Specialization data is for other.kernel but trying to preload for {__name__}.kernel",
        ),
        (
            {"target": {"backend": "hip", "arch": "x", "warp_size": 64}},
            "Specialization data is for {'backend': 'hip', 'arch': 'x', 'warp_size': 64} but trying to preload for TARGET",
        ),
    ],
)
def test_another_kernel_or_machine(told: list[str], change: dict[str, Any], message: str) -> None:
    forget(kernel)
    kernel.warmup(*arguments(), grid=(1,))
    with pytest.raises(RuntimeError) as raised:
        kernel.preload(json.dumps(json.loads(told[0]) | change))
    target = triton.runtime.driver.active.get_current_target()
    assert str(raised.value) == message.replace("TARGET", str(target))


def test_a_function_that_is_not_there(told: list[str]) -> None:
    forget(kernel)
    kernel.warmup(*arguments(), grid=(1,))
    with pytest.raises(RuntimeError) as raised:
        kernel.preload(told[0].replace(f"{__name__}:doubled", "elsewhere:tripled"))
    assert str(raised.value) == "Unable to resolve JITFunction elsewhere:tripled for preload"


class Pair(NamedTuple):
    """A constant that has no text."""

    first: int
    second: int


def test_a_value_without_a_text(told: list[str]) -> None:
    @triton.jit
    def constant(out: Any, pair: tl.constexpr):
        tl.store(out, len(pair))

    constant.warmup(np.zeros(1, np.int32), Pair(1, 2), grid=(1,))
    with pytest.raises(ValueError, match="text") as raised:
        constant.preload(told[0])
    expected = "parameter 'pair' is Pair(first=1, second=2), which a text cannot hold: launch the kernel instead"
    assert str(raised.value) == expected


@pytest.mark.usefixtures("apart")
def test_kernels_of_one_name() -> None:
    """The newest is found by name; all are known, as long as programs keep them."""

    def made() -> Any:
        @triton.jit
        def twin(x: Any):
            tl.store(x, 1)

        return twin

    first, second = made(), made()
    key = preloading.key_of(first)
    assert preloading.KERNELS.named(key) is second
    assert [k for k in preloading.KERNELS.all() if preloading.key_of(k) == key] == [first, second]
    del second
    gc.collect()
    assert preloading.KERNELS.named(key) is first
    assert preloading.KERNELS.named("no:kernel") is None

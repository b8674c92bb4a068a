"""Launches on a card, by a driver that runs them in the emulator: results, streams, contexts, modules, and what goes wrong."""

from __future__ import annotations

import builtins
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from cuda_arrays import CupyArray, DLPack, Interface, OnCard, Tensor, fake_cupy, fake_torch
from fake_cuda import ENUMERATIONS, Card, CUresult, FakeDriver, install
from weft import dtypes
from weft.runtime import cuda_driver, memory
from weft.runtime.cuda_device import device, target_of

pytestmark = pytest.mark.jit


@weft.jit
def add(x: Any, y: Any, out: Any, n: Any, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@weft.jit
def mixed(on: Any, x: Any, wide: Any, factor: Any, narrow: Any, last: Any) -> None:
    """Parameters of 1, 8, 8, 4, 4 and 1 bytes: two of them need padding before them."""
    if on and last:
        tl.store(x, tl.load(x) * factor + wide + narrow)


@weft.jit
def product(a: Any, b: Any, c: Any, K: tl.constexpr) -> None:
    m, k = tl.arange(0, 16), tl.arange(0, K)
    value = tl.dot(tl.load(a + m[:, None] * K + k), tl.load(b + k[:, None] * 16 + m), input_precision="ieee")
    tl.store(c + m[:, None] * 16 + m, value)


@weft.jit
def nothing() -> None:
    pass


def fresh(kernel: weft.JITFunction) -> weft.JITFunction:
    """The kernel without code of earlier tests, whose driver is another."""
    return weft.jit(kernel.fn)


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch, FakeDriver())


def two_cards(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch, FakeDriver([Card(), Card("Imaginary H100", (9, 0), 227 * 1024)]))


def numbers(n: int, dtype: Any = np.float32) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.integers(-9, 9, n).astype(dtype), rng.integers(-9, 9, n).astype(dtype)


def launched(kernel: weft.JITFunction, made: Callable[[Any], OnCard], n: int = 300, dtype: Any = np.float32) -> None:
    """Adds on the card, and compares with NumPy. ``made`` makes an array on the card."""
    x, y = numbers(n, dtype)
    out = made(np.zeros(n, dtype))
    kernel[(weft.cdiv(n, 128),)](made(x), made(y), out, n, BLOCK=128)
    np.testing.assert_array_equal(out.numpy(), x + y)


# ---- results ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Interface, CupyArray, DLPack, Tensor])
def test_arrays_of_each_library_run_on_their_card(kind: type[OnCard], driver: FakeDriver) -> None:
    kernel = fresh(add)
    launched(kernel, lambda array: kind(driver, array))
    (launch,) = driver.launches
    assert (launch.kernel, launch.grid, launch.block, launch.card) == ("add", (3, 1, 1), (128, 1, 1), 0)
    launched(kernel, lambda array: kind(driver, array), 1000)
    assert driver.calls["cuModuleLoadDataEx"] == driver.calls["cuModuleGetFunction"] == 1


@pytest.mark.parametrize("name", ["bfloat16", "int8", "float64"])
def test_types(name: str, driver: FakeDriver) -> None:
    dtype = dtypes.parse(name).numpy
    launched(fresh(add), lambda array: DLPack(driver, array), dtype=dtype)
    if name != "bfloat16":
        launched(fresh(add), lambda array: Interface(driver, array), dtype=dtype)


@pytest.mark.parametrize(("on", "last"), [(True, True), (False, True), (True, False)])
def test_scalars_of_all_sizes(on: bool, last: bool, driver: FakeDriver) -> None:
    x = Interface(driver, np.full(1, 3.0, np.float32))
    fresh(mixed)[(1,)](on, x, 2**40, 2.5, 7, last)
    assert x.numpy()[0] == np.float32(np.float32(3.0 * 2.5 + 2**40) + 7 if on and last else 3.0)


def test_a_float_beyond_float32_is_infinite(driver: FakeDriver) -> None:
    x = Interface(driver, np.full(1, 3.0, np.float32))
    fresh(mixed)[(1,)](True, x, 2**40, 1e300, 7, True)
    assert np.isinf(x.numpy()[0])


def test_a_kernel_without_parameters_runs_on_the_cpu(driver: FakeDriver) -> None:
    fresh(nothing)[(2,)]()
    assert not driver.calls


def test_an_empty_grid_launches_nothing(driver: FakeDriver) -> None:
    empty = Interface(driver, np.zeros(0, np.float32))
    fresh(add)[(0,)](empty, empty, empty, 0, BLOCK=128)
    assert not driver.launches


def test_strided_views_are_launched_as_on_the_cpu(driver: FakeDriver) -> None:
    """A kernel gets the address of the first element and steps by itself; overlapping views are not disjoint."""
    whole = np.arange(256, dtype=np.float32)
    on_card = Interface(driver, whole)
    every_second = Interface(
        driver, np.zeros(0, np.float32), data=(on_card.address + 4, False), shape=(64,), strides=(8,)
    )
    fresh(add)[(1,)](every_second, every_second, on_card, 64, BLOCK=64)
    expected = whole.copy()
    expected[:64] = 2 * whole[1:65]
    np.testing.assert_array_equal(on_card.numpy(), expected)


def test_arrays_without_elements_are_of_any_card(driver: FakeDriver) -> None:
    empty, one = Interface(driver, np.zeros(0, np.float32)), Interface(driver, np.ones(1, np.float32))
    fresh(add)[(1,)](empty, one, one, 0, BLOCK=128)
    assert driver.calls["cuPointerGetAttribute"] == 2
    fresh(add)[(1,)](one, empty, one, 0, BLOCK=128)
    assert len(driver.launches) == 2


def test_arrays_that_are_not_aligned_have_code_of_their_own(driver: FakeDriver) -> None:
    kernel = fresh(add)
    launched(kernel, lambda array: Interface(driver, array))
    launched(kernel, lambda array: Interface(driver, array, offset=4))
    assert driver.calls["cuModuleGetFunction"] == 2


def test_the_compilers_options_reach_the_launch(driver: FakeDriver) -> None:
    x = Interface(driver, np.ones(128, np.float32))
    fresh(add)[(1,)](x, x, x, 128, BLOCK=128, num_warps=2)
    assert driver.launches[0].block == (64, 1, 1)
    np.testing.assert_array_equal(x.numpy(), np.full(128, 2.0, np.float32))


def dot_operands(k: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-4, 4, (16, k)).astype(np.float32), rng.integers(-4, 4, (k, 16)).astype(np.float32)
    return a, b, a @ b


def test_more_than_48_kib_of_shared_memory(driver: FakeDriver) -> None:
    a, b, expected = dot_operands(512)
    c = Interface(driver, np.zeros((16, 16), np.float32))
    fresh(product)[(1,)](Interface(driver, a), Interface(driver, b), c, K=512)
    assert driver.launches[0].shared > 48 * 1024
    assert driver.calls["cuFuncSetAttribute"] == 1
    np.testing.assert_array_equal(c.numpy(), expected)


@pytest.mark.parametrize(("size", "asked"), [(48 * 1024, 0), (48 * 1024 + 1, 1)])
def test_exactly_48_kib_need_no_attribute(size: int, asked: int, driver: FakeDriver) -> None:
    x = np.zeros(128, np.float32)
    handle = fresh(add).compile(x, x, x, 128, BLOCK=128, target="sm_80")
    device(0).function("add", handle.ptx, handle.symbol, size)
    device(0).function("add", handle.ptx, handle.symbol, size)
    assert driver.calls["cuFuncSetAttribute"] == 2 * asked
    assert driver.calls["cuModuleLoadDataEx"] == 1


# ---- streams, contexts, cards -------------------------------------------------------------------------------------------


def test_the_current_stream_of_the_arrays_library(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    driver.known_streams = {0x70, 0x90, 0x50}
    monkeypatch.setitem(sys.modules, "torch", fake_torch({0: 0x70}))
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(0x90))
    kernel = fresh(add)
    launched(kernel, lambda array: Tensor(driver, array))
    launched(kernel, lambda array: CupyArray(driver, array))
    launched(kernel, lambda array: Interface(driver, array, stream=0x50))
    launched(kernel, lambda array: Interface(driver, array))
    launched(kernel, lambda array: Interface(driver, array, stream=2))
    assert [launch.stream for launch in driver.launches] == [0x70, 0x90, 0x50, 1, 2]
    assert driver.waits == []


def test_the_default_stream_of_a_library_is_the_legacy_one(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", fake_torch({0: 0}))
    launched(fresh(add), lambda array: Tensor(driver, array))
    assert [launch.stream for launch in driver.launches] == [1]


def test_a_launch_waits_for_the_streams_of_other_arrays(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch's current stream orders its tensors; the other arrays name 0x50, and DLPack is ready on the legacy stream."""
    driver.known_streams = {0x70, 0x50}
    monkeypatch.setitem(sys.modules, "torch", fake_torch({0: 0x70}))
    monkeypatch.setattr(DLPack, "asked", [])
    x, y = numbers(128)
    out = Tensor(driver, np.zeros(128, np.float32))
    kernel = fresh(add)
    kernel[(1,)](Interface(driver, x, stream=0x50), DLPack(driver, y), out, 128, BLOCK=128)
    np.testing.assert_array_equal(out.numpy(), x + y)
    assert driver.launches[0].stream == 0x70
    assert driver.waits == [(0x70, 0x50), (0x70, 1)]
    assert driver.calls["cuEventCreate"] == driver.calls["cuEventDestroy"] == 2
    assert set(DLPack.asked) == {memory.LEGACY_STREAM}
    driver.waits.clear()
    named = Interface(driver, x, stream=0x50)
    kernel[(1,)](named, named, out, 128, BLOCK=128)
    assert driver.waits == [(0x70, 0x50)]


def test_without_a_current_stream_the_first_that_is_named(driver: FakeDriver) -> None:
    driver.known_streams = {0x50, 0x60}
    first, second = (Interface(driver, np.ones(128, np.float32), stream=stream) for stream in (0x50, 0x60))
    null = Interface(driver, np.ones(128, np.float32), stream=0)
    kernel = fresh(add)
    kernel[(1,)](first, second, null, 128, BLOCK=128)
    kernel[(1,)](null, first, first, 128, BLOCK=128)
    assert [launch.stream for launch in driver.launches] == [0x50, 1]
    assert driver.waits == [(0x50, 0x60), (0x50, 1), (1, 0x50)]


def test_dlpack_is_read_where_the_interface_names_no_stream(
    driver: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As JAX's arrays: the interface has no stream, so pending work is waited for through DLPack."""

    class Both(DLPack, Interface):
        def __init__(self, array: Any, **changes: Any):
            Interface.__init__(self, driver, array, **changes)

    monkeypatch.setattr(DLPack, "asked", [])
    launched(fresh(add), Both)
    assert DLPack.asked
    DLPack.asked.clear()
    launched(fresh(add), lambda array: Both(array, stream=None))
    assert not DLPack.asked
    assert not driver.calls["cuPointerGetAttribute"]
    launched(fresh(add), lambda array: Both(array, stream=None, typestr="<V2"), dtype=dtypes.bfloat16.numpy)
    assert DLPack.asked


def test_a_tensor_that_does_not_name_its_card(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = two_cards(monkeypatch)
    tensor = Tensor(driver, np.ones(128, np.float32), 1)
    tensor.device.index = None
    fresh(add)[(1,)](tensor, tensor, tensor, 128, BLOCK=128)
    assert driver.launches[0].card == 1


def test_arrays_choose_the_card_and_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = two_cards(monkeypatch)
    kernel = fresh(add)
    for card in (0, 1, 0, 1):
        launched(kernel, lambda array, card=card: Interface(driver, array, card))
    assert [launch.card for launch in driver.launches] == [0, 1, 0, 1]
    assert driver.calls["cuModuleLoadDataEx"] == 2


def test_another_current_context_stays_current(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = two_cards(monkeypatch)
    driver.cuInit(0)
    contexts = [driver.cuDevicePrimaryCtxRetain(driver.cuDeviceGet(card)[1])[1] for card in (0, 1)]
    driver.cuCtxPushCurrent(contexts[1])
    kernel = fresh(add)
    launched(kernel, lambda array: Interface(driver, array, 0))
    assert driver.cuCtxGetCurrent()[1] == contexts[1]
    pushed = driver.calls["cuCtxPushCurrent"]
    launched(kernel, lambda array: Interface(driver, array, 1))
    assert driver.calls["cuCtxPushCurrent"] == pushed
    driver.fail["cuLaunchKernel"] = CUresult.CUDA_ERROR_LAUNCH_FAILED
    with pytest.raises(weft.CudaError):
        launched(kernel, lambda array: Interface(driver, array, 0))
    assert driver.cuCtxGetCurrent()[1] == contexts[1]


def test_threads_have_contexts_of_their_own(driver: FakeDriver) -> None:
    kernel = fresh(add)
    failed: list[BaseException] = []

    def run() -> None:
        try:
            launched(kernel, lambda array: Interface(driver, array))
        except BaseException as error:  # pragma: no cover
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(driver.launches) == 3


@pytest.mark.parametrize(
    ("capability", "target"),
    [
        ((7, 5), None),
        ((7, 9), None),
        ((8, 0), "sm_80"),
        ((8, 5), "sm_80"),
        ((8, 6), "sm_86"),
        ((8, 7), "sm_86"),
        ((8, 8), "sm_86"),
        ((8, 9), "sm_89"),
        ((8, 99), "sm_89"),
        ((9, 0), "sm_90a"),
        ((9, 1), "sm_90"),
        ((10, 0), "sm_90"),
        ((12, 1), "sm_90"),
    ],
)
def test_the_target_of_a_card(capability: tuple[int, int], target: str | None) -> None:
    found = target_of(capability)
    assert (found and found.name) == target


def test_a_later_card_compiles_the_ptx_of_sm_90(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(monkeypatch, FakeDriver([Card("Imaginary B200", (10, 0), 227 * 1024)], version=12080))
    launched(fresh(add), lambda array: Interface(driver, array))


def test_a_launch_needs_few_calls_of_the_driver(driver: FakeDriver) -> None:
    kernel = fresh(add)
    x = Tensor(driver, np.ones(128, np.float32))
    kernel[(1,)](x, x, x, 128, BLOCK=128)
    driver.calls.clear()
    kernel[(1,)](x, x, x, 128, BLOCK=128)
    assert driver.calls == {"cuCtxGetCurrent": 1, "cuCtxPushCurrent": 1, "cuLaunchKernel": 1, "cuCtxPopCurrent": 1}


# ---- what goes wrong ----------------------------------------------------------------------------------------------------


def refused(kernel: weft.JITFunction, error: type[Exception], *args: Any, **keywords: Any) -> str:
    with pytest.raises(error) as raised:
        kernel[(1,)](*args, BLOCK=128, **keywords)
    return str(raised.value)


def test_arrays_in_several_places(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = two_cards(monkeypatch)
    host = np.ones(128, np.float32)
    here, there = Interface(driver, host), Interface(driver, host, card=1)
    kernel = fresh(add)
    one_card = "; a launch takes arrays of one card"
    assert refused(kernel, TypeError, here, there, here, 128) == (
        f"kernel 'add': parameter 'y': found an array on card 1, but 'x' is on card 0{one_card}"
    )
    advice = "; copy all arrays to the card, or all to the CPU"
    assert refused(kernel, TypeError, host, there, there, 128) == (
        f"kernel 'add': parameter 'x': found an array in the CPU's memory, but 'y' is on card 1{advice}"
    )
    assert refused(kernel, TypeError, here, here, host[::2], 128) == (
        f"kernel 'add': parameter 'out': found an array in the CPU's memory, but 'x' is on card 0{advice}"
    )
    with pytest.raises(TypeError) as raised:
        fresh(mixed)[(1,)](True, host, here, 2.5, 7, True)
    assert str(raised.value) == (
        f"kernel 'mixed': parameter 'x': found an array in the CPU's memory, but 'wide' is on card 0{advice}"
    )
    assert refused(kernel.on("sm_80"), TypeError, here, here, here, 128) == (  # pyright: ignore[reportArgumentType]
        "kernel 'add': parameter 'x': found an array on a card, but the launch is emulated, which takes arrays in the "
        "CPU's memory"
    )
    with pytest.raises(TypeError) as raised:
        kernel.compile(here, here, here, 128, BLOCK=128)
    assert str(raised.value) == (
        "kernel 'add': the arrays are on a card; say what to compile for, such as target='sm_90'"
    )
    assert kernel.compile(here, here, here, 128, BLOCK=128, target="sm_80").target.name == "sm_80"


def test_without_cuda_bindings(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    x, error = Interface(driver, np.ones(128, np.float32)), weft.CudaError  # imported before imports fail
    for name in ("cuda", "cuda.bindings", "cuda.bindings.driver"):
        monkeypatch.delitem(sys.modules, name)
    imported = builtins.__import__

    def without(name: str, *args: Any, **keywords: Any) -> Any:
        if name.partition(".")[0] == "cuda":
            raise ModuleNotFoundError(f"No module named '{name}'")
        return imported(name, *args, **keywords)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(cuda_driver.importlib, "import_module", without)
    assert refused(fresh(add), error, x, x, x, 128) == (
        "arrays on a card need cuda-bindings, which is not installed: install weft[cuda]; weft.emulate(target) runs kernels on "
        "the CPU's arrays without a card"
    )


def test_without_a_driver(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any) -> Any:
        raise RuntimeError("Failed to dlopen libcuda.so.1")

    x = Interface(driver, np.ones(128, np.float32))
    monkeypatch.setattr(FakeDriver, "cuInit", missing)
    assert refused(fresh(add), weft.CudaError, x, x, x, 128) == (
        "arrays on a card need NVIDIA's driver, which cannot be loaded: Failed to dlopen libcuda.so.1"
    )


def test_without_a_card(driver: FakeDriver) -> None:
    x = Interface(driver, np.ones(128, np.float32))
    driver.cards = ()
    assert refused(fresh(add), weft.CudaError, x, x, x, 128) == "cuInit: CUDA_ERROR_NO_DEVICE (100): no device"


def test_a_card_that_the_driver_does_not_know(driver: FakeDriver) -> None:
    x = Tensor(driver, np.ones(128, np.float32), 1)
    assert refused(fresh(add), weft.CudaError, x, x, x, 128) == "found an array on card 1, but the driver knows 1 cards"


def test_a_card_that_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(monkeypatch, FakeDriver([Card("Imaginary T4", (7, 5), 64 * 1024)]))
    x = Interface(driver, np.ones(128, np.float32))
    assert refused(fresh(add), weft.CudaError, x, x, x, 128) == (
        "card 0 (Imaginary T4) has compute capability 7.5; weft compiles for 8.0 and later"
    )


@pytest.mark.parametrize(
    ("capability", "version", "message"),
    [
        ((8, 0), 11080, "PTX 8.0, which drivers of CUDA 12.0 and later know; this driver is of CUDA 11.8"),
        ((8, 9), 12020, "PTX 8.4, which drivers of CUDA 12.4 and later know; this driver is of CUDA 12.2"),
        ((8, 0), 12000, ""),
        ((9, 0), 12040, ""),
    ],
)
def test_a_driver_that_is_too_old(
    capability: tuple[int, int], version: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = install(monkeypatch, FakeDriver([Card(capability=capability)], version=version))
    if not message:
        launched(fresh(add), lambda array: Interface(driver, array))
        return
    x = Interface(driver, np.ones(128, np.float32))
    assert refused(fresh(add), weft.CudaError, x, x, x, 128) == f"kernel 'add' is {message}: install a newer one"


def test_ptx_of_earlier_versions_needs_no_driver_of_cuda_12(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.zeros(128, np.float32)
    handle = fresh(add).compile(x, x, x, 128, BLOCK=128, target="sm_80")
    driver = install(monkeypatch, FakeDriver(version=11080))
    device(0).function("add", handle.ptx.replace(".version 8.0", ".version 7.8"), handle.symbol, 0)
    assert driver.calls["cuModuleLoadDataEx"] == 1


def test_an_error_that_the_driver_has_no_words_for(driver: FakeDriver) -> None:
    driver.fail = dict.fromkeys(("cuInit", "cuGetErrorName", "cuGetErrorString"), CUresult.CUDA_ERROR_INVALID_VALUE)
    x = Interface(driver, np.ones(128, np.float32))
    assert refused(fresh(add), weft.CudaError, x, x, x, 128) == "cuInit: CUresult (1): unknown"


def test_the_drivers_messages_about_a_module(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.runtime import compiler

    made = compiler.gpu_artifact_for

    def broken(*args: Any) -> Any:
        artifact = made(*args)
        return artifact._replace(ptx=artifact.ptx.replace("ret;", "ret nonsense"))

    monkeypatch.setattr(compiler, "gpu_artifact_for", broken)
    x = Interface(driver, np.ones(128, np.float32))
    said = refused(fresh(add), weft.CudaError, x, x, x, 128)
    first, log = said.split("\n", 1)
    assert (
        first
        == "cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX (218): invalid ptx; kernel 'add' for card 0 (Imaginary A100)"
    )
    assert re.match(r"ptxas application ptx input, PTX line \d+: ", log)
    assert "nonsense" in log


def test_a_fault_on_the_card_is_told_by_the_next_call(driver: FakeDriver) -> None:
    """The mask lets programs beyond the arrays through."""
    x = Interface(driver, np.ones(128, np.float32))
    kernel = fresh(add)
    kernel[(40,)](x, x, x, 40 * 128, BLOCK=128)
    cause = "; an earlier launch is the cause: weft.emulate finds the line of the kernel"
    assert refused(kernel, weft.CudaError, x, x, x, 128) == (
        f"cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700): illegal address; launch of kernel 'add'{cause}"
    )
    driver.broken.clear()
    driver.fail["cuLaunchKernel"] = CUresult.CUDA_ERROR_LAUNCH_FAILED
    assert refused(kernel, weft.CudaError, x, x, x, 128) == (
        f"cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED (719): launch failed; launch of kernel 'add'{cause}"
    )
    driver.fail["cuLaunchKernel"] = CUresult.CUDA_ERROR_OUT_OF_MEMORY
    assert refused(kernel, weft.CudaError, x, x, x, 128) == (
        "cuLaunchKernel: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory; launch of kernel 'add'"
    )


def test_a_read_only_array(driver: FakeDriver) -> None:
    x = Interface(driver, np.ones(128, np.float32))
    fixed = Interface(driver, np.ones(128, np.float32), data=(x.address, True))
    fresh(add)[(1,)](fixed, x, x, 128, BLOCK=128)
    assert refused(fresh(add), ValueError, x, x, fixed, 128) == (
        "kernel 'add': parameter 'out': found a read-only array, but the kernel writes through it; pass a writable one"
    )


def test_a_checked_kernel(driver: FakeDriver) -> None:
    x = Interface(driver, np.ones(128, np.float32))
    assert refused(weft.jit(checked=True)(add.fn), TypeError, x, x, x, 128) == (
        "kernel 'add' is checked, which launches on a card are not; weft.emulate checks every access, on arrays in the CPU's "
        "memory"
    )


@pytest.mark.parametrize("place", ["card", "emulator"])
def test_a_grid_that_no_card_has(place: str, driver: FakeDriver) -> None:
    x = np.ones(128, np.float32)
    on_card = Interface(driver, x)
    with pytest.raises(ValueError, match="kernel 'add'") as raised:
        if place == "card":
            fresh(add)[(1, 65536)](on_card, on_card, on_card, 128, BLOCK=128)
        else:
            fresh(add).on("sm_80")[(1, 65536)](x, x, x, 128, BLOCK=128)
    assert str(raised.value) == (
        "kernel 'add': a grid on a GPU has at most 65535 programs in y, found 65536 in (1, 65536, 1)"
    )


def test_a_mask_or_a_pointer_that_is_no_elements(driver: FakeDriver) -> None:
    x = Interface(driver, np.ones(128, np.float32))
    masked = Interface(driver, np.ones(128, np.float32), mask=x)
    assert refused(fresh(add), TypeError, masked, x, x, 128) == (
        "kernel 'add': parameter 'x': found a masked array, whose mask a kernel would ignore; pass its data"
    )
    odd = Interface(driver, np.ones(128, np.float32), offset=2)
    assert refused(fresh(add), TypeError, odd, x, x, 128) == (
        "kernel 'add': parameter 'x': found float32 elements at an address that is no multiple of 4; pass a copy"
    )


def test_the_fake_is_as_the_bindings() -> None:
    """Numbers of the enumerations, and names of the functions."""
    bindings = pytest.importorskip("cuda.bindings.driver")
    for mine in ENUMERATIONS:
        theirs = getattr(bindings, mine.__name__)
        assert {member.name: member.value for member in mine} == {
            member.name: int(getattr(theirs, member.name)) for member in mine
        }
    for protocol in (cuda_driver.Driver, FakeDriver):
        assert [name for name in vars(protocol) if name.startswith("cu") and not hasattr(bindings, name)] == []


def test_importing_weft_imports_no_cuda() -> None:
    import subprocess

    code = "import sys, weft, weft.runtime.jit; print([m for m in sys.modules if m.partition('.')[0] == 'cuda'])"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    assert run.stdout == "[]\n"

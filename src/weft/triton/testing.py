"""``triton.testing``: times of functions, and reports over sizes.

Times are those of this machine's clock: a launch has ended when it returns. In the emulator they say nothing about a GPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from weft.triton.report import Benchmark, Mark, perf_report

__all__ = ["Benchmark", "Mark", "assert_close", "cuda_memcheck", "do_bench", "do_bench_cudagraph", "get_dram_gbps",
           "get_max_simd_tflops", "get_max_tensorcore_tflops", "perf_report", "set_gpu_clock"]  # fmt: skip

_MODES: Final[dict[str, Callable[[Sequence[float]], Any]]] = {
    "min": min,
    "max": max,
    "mean": statistics.mean,
    "median": statistics.median,
    "all": list,
}

_MOST: Final = 10_000
"""The most launches of a measurement."""


def _milliseconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return (time.perf_counter() - start) * 1e3


def _summary(times: Sequence[float], quantiles: Sequence[float] | None, mode: str) -> Any:
    if quantiles is None:
        return _MODES[mode](times)
    found = [float(q) for q in np.quantile(times, list(quantiles))]
    return found[0] if len(found) == 1 else found


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """The milliseconds that ``fn`` takes.

    It runs for some ``warmup`` milliseconds, then for some ``rep`` (at least once), which are measured call by call.
    ``quantiles`` asks for these, in a list if there are several; else ``return_mode`` is "min", "max", "mean", "median" or "all".
    ``grad_to_none`` are tensors whose gradients are dropped before each call.
    """
    if return_mode not in _MODES:
        raise AssertionError(f"return_mode is {return_mode!r}, expected one of {', '.join(_MODES)}")
    fn()
    once = max(min(_milliseconds(fn) for _ in range(2)), 1e-4)
    for _ in range(min(int(warmup / once), _MOST)):
        fn()
    times: list[float] = []
    for _ in range(max(1, min(int(rep / once), _MOST))):
        for tensor in grad_to_none or ():
            tensor.grad = None
        times.append(_milliseconds(fn))
    return _summary(times, quantiles, return_mode)


def do_bench_cudagraph(
    fn: Callable[[], Any],
    rep: float = 20,
    grad_to_none: Sequence[Any] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """As `do_bench`: there are no graphs, and a launch costs some microseconds."""
    return do_bench(fn, 0, rep, grad_to_none, quantiles, return_mode)


def assert_close(x: Any, y: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Raises `AssertionError` unless ``x`` and ``y`` are close.

    Tolerances are numbers or functions of the dtype; by default 1e-2 absolutely, and nothing relatively."""
    first, second = _as_array(x), _as_array(y)
    absolute: Any = 1e-2 if atol is None else atol(first.dtype) if callable(atol) else atol
    relative: Any = 0.0 if rtol is None else rtol(first.dtype) if callable(rtol) else rtol
    if first.size > 1 or second.size > 1:
        np.testing.assert_allclose(first, second, atol=absolute, rtol=relative, equal_nan=True, err_msg=err_msg)
        return
    if not np.allclose(first, second, atol=absolute, rtol=relative):
        raise AssertionError(f"{err_msg} {x} is not close to {y} (atol={absolute}, rtol={relative})")


def _as_array(value: Any) -> Any:
    """The value as NumPy has it; narrow floats as float32."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            value = value.float()
        return value.numpy()
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.kind == "V" else array


def get_dram_gbps(device: Any = None) -> float:
    """The bandwidth of a GPU's memory: 0, since weft does not know it."""
    return 0.0


def get_max_tensorcore_tflops(dtype: Any, clock_rate: Any, device: Any = None) -> float:
    """The speed of a GPU's matrix instructions: 0, since weft does not know it."""
    return 0.0


def get_max_simd_tflops(dtype: Any, clock_rate: Any, device: Any = None) -> float:
    """The speed of a GPU's other instructions: 0, since weft does not know it."""
    return 0.0


def cuda_memcheck(**keywords: Any) -> Callable[[Any], Any]:
    """Returns the test as it is: the emulator checks every access, natively use ``WEFT_CHECKED``."""
    return lambda test: test


def _refused(name: str, reason: str) -> Callable[..., Any]:
    def refused(*args: Any, **keywords: Any) -> Any:
        raise NotImplementedError(f"triton.testing.{name}: {reason}")

    return refused


cublas = _refused("cublas", "weft has no cuBLAS; compare with torch.matmul or numpy.matmul")
nvsmi = _refused("nvsmi", "weft asks no card")
cuda_graph_without_gc = _refused("cuda_graph_without_gc", "there are no CUDA graphs; call the function itself")
do_bench_proton = _refused("do_bench_proton", "weft has no Proton; use do_bench")
do_bench_cudagraph_proton = _refused("do_bench_cudagraph_proton", "weft has no Proton; use do_bench")


def set_gpu_clock(ref_sm_clock: int = 1350, ref_mem_clock: int = 1215) -> Any:
    """A context in which nothing is changed: there is no clock to set."""
    from contextlib import nullcontext

    return nullcontext((0.0, 0.0))

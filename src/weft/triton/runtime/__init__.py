"""``triton.runtime``: kernels, launches, tuning, the driver."""

from __future__ import annotations

from weft.triton.runtime import autotuner, cache, errors, jit
from weft.triton.runtime.autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from weft.triton.runtime.cache import RedisRemoteCacheBackend, RemoteCacheBackend
from weft.triton.runtime.driver import driver
from weft.triton.runtime.errors import InterpreterError, OutOfResources
from weft.triton.runtime.jit import JITFunction, KernelInterface
from weft.triton.runtime.tensors import MockTensor, TensorWrapper, reinterpret

__all__ = [
    "Autotuner", "Config", "Heuristics", "InterpreterError", "JITFunction", "KernelInterface", "MockTensor",
    "OutOfResources", "RedisRemoteCacheBackend", "RemoteCacheBackend", "TensorWrapper", "autotune", "autotuner", "cache",
    "driver", "errors", "heuristics", "jit", "reinterpret",
]  # fmt: skip

"""What ``import triton`` gives while `weft.as_triton` is in force: Triton's host side and language, under its names.

The modules below stand where Triton's stand, so that ``from triton.runtime.jit import JITFunction`` finds its name. Kernels have
the semantics of Triton 3.9. ``import weft`` does not load this package.
"""

from __future__ import annotations

from weft.language.aggregates import aggregate
from weft.runtime.sizes import cdiv
from weft.triton import backends, compiler, errors, knobs, language, runtime, testing, tools
from weft.triton.asynchronous import AsyncCompileMode, FutureKernel
from weft.triton.compiler.compiler import compile
from weft.triton.compiler.errors import CompilationError
from weft.triton.errors import TritonError
from weft.triton.runtime.allocation import set_allocator
from weft.triton.runtime.autotuner import Config, autotune, heuristics
from weft.triton.runtime.errors import InterpreterError, OutOfResources
from weft.triton.runtime.jit import JITFunction, KernelInterface, constexpr_function, jit
from weft.triton.runtime.tensors import MockTensor, TensorWrapper, reinterpret
from weft.triton.values import must_use_result, next_power_of_2

__version__ = "3.9.0"

__all__ = [
    "AsyncCompileMode", "CompilationError", "Config", "FutureKernel", "InterpreterError", "JITFunction", "KernelInterface",
    "MockTensor", "OutOfResources", "TensorWrapper", "TritonError", "aggregate", "autotune", "backends", "cdiv", "compile",
    "compiler", "constexpr_function", "errors", "heuristics", "jit", "knobs", "language", "must_use_result",
    "next_power_of_2", "reinterpret", "runtime", "set_allocator", "testing", "tools",
]  # fmt: skip

"""weft: kernels in the Triton language, compiled to native code for the CPU you have.

The names below are loaded at their first use, so that ``import weft.layout`` or ``import weft.semantics`` loads no compiler.
The compiler (xDSL, `weft.codegen`) is loaded by the first kernel that has to be compiled: a program whose kernels are in the disk
cache starts without it. The garbage collector is off during these imports: they make many objects and no garbage, so collections
would only cost time.

This package stands above all others. It therefore also names the implementations of the extension points
(`weft.extensions`), which lower packages offer and higher packages implement.
"""

from __future__ import annotations

import gc
import importlib
from typing import TYPE_CHECKING, Any

from weft.extensions import implement

if TYPE_CHECKING:
    from weft import array, language, semantics
    from weft.dropin import as_triton
    from weft.ir.errors import CompilationError
    from weft.language.aggregates import aggregate
    from weft.runtime.descriptors import TensorDescriptor
    from weft.runtime.emulated import emulate
    from weft.runtime.errors import CudaError, DeviceAssertionError, OutOfBoundsError, OutOfResources
    from weft.runtime.jit import JITFunction, jit
    from weft.runtime.sizes import cdiv, next_power_of_2

__version__ = "0.1.0"

__all__ = [
    "CompilationError",
    "CudaError",
    "DeviceAssertionError",
    "JITFunction",
    "OutOfBoundsError",
    "OutOfResources",
    "TensorDescriptor",
    "aggregate",
    "array",
    "as_triton",
    "cdiv",
    "emulate",
    "jit",
    "language",
    "next_power_of_2",
    "semantics",
]

_HOMES = {
    "CompilationError": "weft.ir.errors",
    "CudaError": "weft.runtime.errors",
    "DeviceAssertionError": "weft.runtime.errors",
    "JITFunction": "weft.runtime.jit",
    "OutOfBoundsError": "weft.runtime.errors",
    "OutOfResources": "weft.runtime.errors",
    "TensorDescriptor": "weft.runtime.descriptors",
    "as_triton": "weft.dropin",
    "aggregate": "weft.language.aggregates",
    "cdiv": "weft.runtime.sizes",
    "emulate": "weft.runtime.emulated",
    "jit": "weft.runtime.jit",
    "next_power_of_2": "weft.runtime.sizes",
}
"""Where each lazily loaded name lives."""

_PACKAGES = ("array", "jax", "language", "semantics")
"""The packages that ``import weft`` brings; ``jax`` needs JAX."""

implement(
    {
        "comparison.drawn": ("weft.report.comparison", "drawn"),
        "comparison.page": ("weft.report.comparison_page", "page"),
        "comparison.text": ("weft.report.comparison", "text"),
        "diff.tables": ("weft.report.disagreement", "diff_tables"),
        "diff.text": ("weft.report.disagreement", "text"),
        "emulator.native": ("weft.runtime.helpers", "native"),
        "layout.notebook": ("weft.report.layouts", "notebook_html"),
        "semantics.compare": ("weft.array.comparing.check", "compare"),
    }
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"weft.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'weft' has no attribute {name!r}")
    collecting = gc.isenabled()
    gc.disable()
    try:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    finally:
        if collecting:
            gc.enable()
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

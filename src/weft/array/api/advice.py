"""What to write for a name of another library that `weft.array` or its arrays do not have.

A name that is missing raises `AttributeError` in any case. This module says what takes its place: a function of another name, or
why there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from weft.nearest import did_you_mean

_NO_LAYOUT: Final = "leave it out, arrays have no layout in memory"
_NO_WRITING: Final = "arrays are never written to; keep the result of the function without the underscore"
_NO_DEVICE: Final = "leave it out, weft.array computes on the CPU"

FUNCTIONS: Final[Mapping[str, str]] = {
    "array": "write asarray",
    "from_numpy": "write asarray",
    "tensor": "write asarray",
    "empty": "write zeros",
    "empty_like": "write zeros_like",
    "cat": "write concatenate",
    "concat": "write concatenate",
    "unsqueeze": "write expand_dims",
    "permute": "write transpose",
    "movedim": "write moveaxis",
    "index_select": "write take",
    "gather": "write take_along_axis",
    "masked_fill": "write where(mask, value, x)",
    "select": "nest where",
    "lerp": "write x + weight * (y - x)",
    "mm": "write matmul",
    "bmm": "write matmul",
    "mv": "write matmul",
    "convolve": "sum products of slices",
    "round_": "write round",
    "abs": "write absolute or Python's abs",
    "newaxis": "write None",
    "pi": "write math.pi",
    "inf": "write math.inf",
    "nan": "write math.nan",
    **dict.fromkeys(("fft", "random"), "compute it with NumPy, outside the system, and asarray the outcome"),
    **dict.fromkeys(
        ("vmap", "grad", "jit", "lax", "nn"), "weft.array has no such transformations; fuse compiles a function"
    ),
}
"""By the name in NumPy, JAX or PyTorch."""

METHODS: Final[Mapping[str, str]] = {
    "unsqueeze": "write expand_dims(axis)",
    "view": "write reshape(shape), or to(dtype)",
    "expand": "write broadcast_to(shape)",
    "expand_as": "write broadcast_to(other.shape)",
    "dim": "write ndim",
    "numel": "write size",
    "float": "write to('float32')",
    "double": "write to('float64')",
    "half": "write to('float16')",
    "bfloat16": "write to('bfloat16')",
    "int": "write to('int32')",
    "long": "write to('int64')",
    "bool": "write to('bool')",
    "copy": "leave it out, arrays never change",
    "clone": "leave it out, arrays never change",
    "contiguous": _NO_LAYOUT,
    "strides": "read array.numpy().strides",
    "nbytes": "read array.numpy().nbytes",
    "itemsize": "read array.dtype.itemsize",
    "device": _NO_DEVICE,
    "cpu": _NO_DEVICE,
    "cuda": _NO_DEVICE,
    "detach": "leave it out, weft.array has no gradients",
    "requires_grad": "weft.array has no gradients",
    "backward": "weft.array has no gradients",
    "masked_fill": "write weft.array.where(mask, value, array)",
    "index_select": "write weft.array.take(array, indices, axis)",
    "gather": "write weft.array.take_along_axis(array, indices, axis)",
    "block_until_ready": "read array.numpy()",
    "values": "write array.numpy()",
    "fill": _NO_WRITING,
}
"""By the name of the method in NumPy, JAX or PyTorch."""


def missing_function(name: str, known: Iterable[str]) -> str:
    """The message about a function that the package lacks."""
    return f"weft.array has no '{name}'; {FUNCTIONS.get(name) or _near(name, known, 'compute it with NumPy on array.numpy()')}"


def missing_method(name: str, known: Iterable[str], functions: Iterable[str]) -> str:
    """The message about a method or attribute that arrays lack."""
    if name in METHODS:
        advice = METHODS[name]
    elif name in functions:
        advice = f"write weft.array.{name}(array)"
    elif name.endswith("_") and not name.startswith("_"):
        advice = _NO_WRITING
    else:
        advice = _near(name, known, "compute it with NumPy on array.numpy()")
    return f"weft's arrays have no '{name}'; {advice}"


def _near(name: str, known: Iterable[str], otherwise: str) -> str:
    return did_you_mean(name, known, otherwise, cutoff=0.75)

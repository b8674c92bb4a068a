"""The kernels that `gpu.py` times: arguments, the peers that do the same, and what bounds them.

Kernels are those of `gpu_kernels.py`, which are weft's and Triton's alike. A case says how many bytes must be read and
written and how many operations a matrix unit must do; no kernel can be faster than either allows.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import gpu_kernels
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

TILES: Final = (
    {"M": 64, "N": 64, "K": 32, "num_warps": 4},
    {"M": 128, "N": 64, "K": 32, "num_warps": 4},
    {"M": 128, "N": 128, "K": 32, "num_warps": 8},
)
"""Tiles of products; weft and Triton are given each, and their best is shown."""


@dataclass(frozen=True)
class Case:
    """A kernel of `gpu_kernels` and a size. ``make`` gives the arguments, of which the last array is the result; ``grid``
    takes the constants. ``expected`` is NumPy's result, ``torch`` PyTorch's function of the arrays before the result."""

    name: str
    kernel: str
    make: Callable[[], list[Any]]
    grid: Callable[[dict[str, Any]], tuple[int, ...]]
    expected: Callable[..., Array]
    variants: tuple[dict[str, Any], ...]
    moved: int
    """Bytes."""
    flops: int = 0
    kind: str = ""
    """Of the matrix unit's operations, as in `gpu_card.TENSOR_FLOPS`."""
    tolerance: float = 0.0
    """Of the greatest difference, in units of the greatest absolute value expected."""
    torch: Callable[..., Any] | None = None
    options: dict[str, Any] = field(default_factory=dict[str, Any])


@cache
def triton_kernels() -> Any:
    """`gpu_kernels` as Triton's; None where Triton is not installed."""
    if importlib.util.find_spec("triton") is None:
        return None
    spec = importlib.util.spec_from_file_location("gpu_kernels_of_triton", Path(gpu_kernels.__file__))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases(small: bool) -> list[Case]:
    """All cases; small ones can be run in the emulator."""
    n, rows, columns, size, keys = (4000, 4, 256, 128, 64) if small else (1 << 25, 8192, 4096, 4096, 8192)
    made = [_add(n), _softmax(rows, columns), _layer_norm(rows, columns)]
    for dtype in ("float16", "bfloat16", "tf32", "int8"):
        made.append(_matmul(dtype, size))
    return [*made, _attention(keys, 64)]


def _rng() -> np.random.Generator:
    return np.random.default_rng(7)


def _floats(*shape: int, dtype: Any = np.float32) -> Array:
    return _rng().uniform(-1, 1, shape).astype(dtype)


def _add(n: int) -> Case:
    return Case(
        f"add, {n} float32",
        "vector_add",
        lambda: [_floats(n), _floats(n), np.zeros(n, np.float32), n],
        lambda c: (-(-n // c["BLOCK"]),),
        lambda x, y: x + y,
        ({"BLOCK": 1024},),
        12 * n,
        torch=lambda torch, x, y: torch.add(x, y),
    )


def _rows_to_softmax(x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _softmax(rows: int, columns: int) -> Case:
    return Case(
        f"softmax, {rows} x {columns} float32",
        "softmax",
        lambda: [_floats(rows, columns), np.zeros((rows, columns), np.float32), columns],
        lambda _: (rows,),
        _rows_to_softmax,
        tuple({"BLOCK": columns, "num_warps": warps} for warps in (4, 8)),
        8 * rows * columns,
        tolerance=1e-5,
        torch=lambda torch, x: torch.softmax(x, -1),
    )


def _normalised(x: Array, weight: Array, bias: Array) -> Array:
    x = x.astype(np.float64)
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) * weight + bias


def _layer_norm(rows: int, columns: int) -> Case:
    return Case(
        f"layer norm, {rows} x {columns} float32",
        "layer_norm",
        lambda: [
            _floats(rows, columns),
            _floats(columns),
            _floats(columns),
            np.zeros((rows, columns), np.float32),
            columns,
            1e-5,
        ],
        lambda _: (rows,),
        _normalised,
        tuple({"BLOCK": columns, "num_warps": warps} for warps in (4, 8)),
        8 * rows * columns,
        tolerance=1e-5,
        torch=lambda torch, x, weight, bias: torch.nn.functional.layer_norm(x, (columns,), weight, bias),
    )


def _matmul(kind: str, size: int) -> Case:
    import ml_dtypes

    integer = kind == "int8"
    dtype: Any = {"bfloat16": ml_dtypes.bfloat16, "tf32": np.float32}.get(kind, kind)
    result = np.int32 if integer else np.float32

    def operand() -> Array:
        whole = _rng().integers(-8, 8, (size, size))
        return whole.astype(dtype) if integer else (whole / 8).astype(np.float32).astype(dtype)

    def product(torch: Any, a: Any, b: Any) -> Any:
        if integer:
            return torch._int_mm(a, b)
        torch.backends.cuda.matmul.allow_tf32 = kind == "tf32"
        return a @ b

    constants = {"KIND": "int" if integer else "float", "PRECISION": "tf32" if kind == "tf32" else "ieee"}
    itemsize = np.dtype(dtype).itemsize
    return Case(
        f"matmul, {size}^3 {kind}",
        "matmul",
        lambda: [operand(), operand(), np.zeros((size, size), result), size, size],
        lambda c: (size // c["M"], size // c["N"]),
        lambda a, b: a.astype(np.float64) @ b.astype(np.float64),
        tuple(constants | tile for tile in TILES),
        (2 * itemsize + 4) * size * size,
        2 * size**3,
        kind,
        tolerance=1e-6,
        torch=product,
    )


def _attention(keys: int, depth: int) -> Case:
    def heads() -> Array:
        return _floats(keys, depth, dtype=np.float16)

    def expected(q: Array, k: Array, v: Array) -> Array:
        q, k, v = (x.astype(np.float64) for x in (q, k, v))
        return _rows_to_softmax(q @ k.T / depth**0.5) @ v

    def flash(torch: Any, *heads: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(*(x[None, None] for x in heads))

    return Case(
        f"attention, {keys} x {depth} float16",
        "attention",
        lambda: [heads(), heads(), heads(), np.zeros((keys, depth), np.float32), keys, depth**-0.5],
        lambda c: (keys // c["M"],),
        expected,
        tuple({"M": rows, "N": 64, "D": depth, "num_warps": rows // 16} for rows in (64, 128) if rows <= keys),
        (3 * 2 + 4) * keys * depth,
        4 * keys * keys * depth,
        "float16",
        tolerance=2e-3,
        torch=flash,
    )

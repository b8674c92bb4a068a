"""Functions of NumPy that `weft.array` has under no name of its own, said in those it has, with NumPy's parameters.

What they compute follows the arrays' system, operation by operation. Functions about shape and kind compute nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np


def _weft() -> Any:
    """The package that imports this module."""
    return importlib.import_module("weft.array")


def _clip(a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None) -> Any:
    low, high = a_min if min is None else min, a_max if max is None else max
    return a if low is high is None else _weft().clip(a, low, high)


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None or y is None:
        raise TypeError("numpy.where of a condition alone has no counterpart in weft.array; write where(mask, x, y)")
    return _weft().where(condition, x, y)


def _dot(a: Any, b: Any) -> Any:
    """NumPy's ``dot`` is the matrix product up to two dimensions, and the plain product with a number."""
    if 0 in (np.ndim(a), np.ndim(b)):
        return a * b
    if np.ndim(a) > 2 or np.ndim(b) > 2:
        raise TypeError("numpy.dot of more than two dimensions has no counterpart; write weft.array.matmul(a, b)")
    return _weft().matmul(a, b)


def _copy(a: Any) -> Any:
    return a


def _shape(a: Any) -> tuple[int, ...]:
    return a.shape


def _ndim(a: Any) -> int:
    return a.ndim


def _size(a: Any, axis: int | None = None) -> int:
    return a.size if axis is None else a.shape[axis]


def _is_complex(x: Any) -> bool:
    return x.dtype.is_complex


def _is_real(x: Any) -> bool:
    return not x.dtype.is_complex


def _matrix_transpose(x: Any) -> Any:
    return _weft().swapaxes(x, -1, -2)


SPECIAL: Final[Mapping[str, Callable[..., Any]]] = {
    "clip": _clip,
    "where": _where,
    "dot": _dot,
    "copy": _copy,
    "shape": _shape,
    "ndim": _ndim,
    "size": _size,
    "iscomplexobj": _is_complex,
    "isrealobj": _is_real,
    "matrix_transpose": _matrix_transpose,
}
"""By NumPy's names."""

"""Functions of NumPy that `weft.array` has under no name of its own, said in those it has, with NumPy's parameters.

What they compute follows the arrays' system, operation by operation. Functions about shape and kind compute nothing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
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


def _at_least(ndim: int, a: Any) -> Any:
    """An array with dimensions of size 1 in front, or a row as a matrix."""
    return a if np.ndim(a) >= ndim else _weft().reshape(a, (1,) * (ndim - np.ndim(a)) + np.shape(a))


def _vstack(tup: Sequence[Any]) -> Any:
    return _weft().concatenate([_at_least(2, a) for a in tup], axis=0)


def _hstack(tup: Sequence[Any]) -> Any:
    arrays = [_at_least(1, a) for a in tup]
    return _weft().concatenate(arrays, axis=0 if np.ndim(arrays[0]) == 1 else 1)


def _column_stack(tup: Sequence[Any]) -> Any:
    columns = [_weft().reshape(a, (-1, 1)) if np.ndim(a) < 2 else a for a in tup]
    return _weft().concatenate(columns, axis=1)


def _flipud(m: Any) -> Any:
    return _weft().flip(m, 0)


def _fliplr(m: Any) -> Any:
    return _weft().flip(m, 1)


def _matrix_transpose(x: Any) -> Any:
    return _weft().swapaxes(x, -1, -2)


def _diff(a: Any, n: int = 1, axis: int = -1) -> Any:
    for _ in range(n):
        size = a.shape[axis]
        where = [slice(None)] * a.ndim
        later, earlier = list(where), list(where)
        later[axis], earlier[axis] = slice(1, None), slice(0, max(size - 1, 0))
        sides = a[tuple(later)], a[tuple(earlier)]
        a = sides[0] != sides[1] if a.dtype.is_bool else sides[0] - sides[1]
    return a


def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return _weft().sum(a if a.dtype.is_bool else a != 0, axis, keepdims)


def _ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _weft().max(a, axis, keepdims) - _weft().min(a, axis, keepdims)


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
    "vstack": _vstack,
    "hstack": _hstack,
    "column_stack": _column_stack,
    "flipud": _flipud,
    "fliplr": _fliplr,
    "matrix_transpose": _matrix_transpose,
    "diff": _diff,
    "count_nonzero": _count_nonzero,
    "ptp": _ptp,
}
"""By NumPy's names."""

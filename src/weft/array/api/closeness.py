"""Comparisons of whole arrays with a tolerance, and what replaces NaN and infinities."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from weft.array.api.composition import Data, arrays, base, constant, like, one, operands
from weft.array.api.functions import all as every
from weft.array.api.functions import where
from weft.array.api.lazy import Array, apply, asarray
from weft.dtypes import DType
from weft.semantics import PromotionError


def isclose(x: Data, y: Data, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    """Whether ``abs(x - y) <= atol + rtol * abs(y)``, or both are equal; NaN equals NaN where ``equal_nan`` says so."""
    given = operands("isclose", x, y)
    arrays("isclose", *given)
    a, b = _met(*given)
    equal = a == b
    if _exact(a) and _exact(b):
        return equal
    error, size = abs(a - b), abs(b)
    if error.dtype != size.dtype:
        size = size.astype(error.dtype)
    near = equal | (apply("isfinite", b) & (error <= atol + rtol * size))
    return near | (apply("isnan", a) & apply("isnan", b)) if equal_nan else near


def _exact(array: Array) -> bool:
    return array.dtype.is_integer or array.dtype.is_bool


def _met(x: Any, y: Any) -> tuple[Array, Array]:
    """Both sides in the types in which the package compares them: NumPy's ``y`` as floats, both of JAX as floats, PyTorch's of
    one type, integers as float64."""
    name = base(x if isinstance(x, Array) else y)
    if name == "torch":
        if x.dtype != y.dtype:
            raise PromotionError(
                f"torch.isclose compares tensors of one type, found {x.dtype} and {y.dtype}", "use .to()"
            )
        return (x, y) if not _exact(x) else (x.astype("float64"), y.astype("float64"))
    if name == "jax":
        a, b = like("isclose", "==", x, y)[0]
        return (cast("tuple[Array, Array]", tuple(like("isclose", "/", a, b)[0]))) if _exact(a) else (a, b)
    system = (x if isinstance(x, Array) else y).semantics
    first, second = (side if isinstance(side, Array) else asarray(side, system) for side in (x, y))
    if isinstance(y, Array):
        return first, second * 1.0 if _exact(second) else second
    return first, asarray(float(y), system) if _exact(first) else constant(y, first)


def allclose(x: Data, y: Data, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Array:
    """Whether all elements are close (`isclose`)."""
    return every(isclose(x, y, rtol, atol, equal_nan))


def array_equal(x: Data, y: Data, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements."""
    a, b = arrays("array_equal", x, y)
    if a.shape != b.shape:
        return asarray(np.array(False), a.semantics)
    equal = a == b
    if equal_nan and not (_exact(a) or _exact(b)):
        equal = equal | (apply("isnan", a) & apply("isnan", b))
    return every(equal)


def nan_to_num(x: Data, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """NaN, infinity and minus infinity replaced: by default by 0, the greatest and the least number."""
    array = one("nan_to_num", x)
    if _exact(array):
        return array
    if array.dtype.is_complex:
        parts = [nan_to_num(part, nan, posinf, neginf) for part in (array.real, array.imag)]
        return parts[0] + parts[1] * 1j
    high, low = _bounds(array.dtype)
    chosen = (nan, high if posinf is None else posinf, low if neginf is None else neginf)
    missing, greatest, least = (constant(number, array) for number in chosen)
    found = where(apply("isnan", array), missing, array)
    infinite = apply("isinf", array)
    return where(infinite, where(array > 0, greatest, least), found)


def _bounds(dtype: DType) -> tuple[float, float]:
    return float(dtype.largest), -float(dtype.largest)

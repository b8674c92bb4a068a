"""Elementwise functions that are made of others: divisors, angles, neighbours, powers of two, products with logarithms."""

from __future__ import annotations

import builtins
import math

import numpy as np

from weft import dtypes
from weft.array.api.composition import Data, arrays, axis_slice, base, constant, fit, like, operands, widened
from weft.array.api.functions import where
from weft.array.api.lazy import Array, apply, asarray, system_of
from weft.array.building.operations import Value
from weft.array.building.whole import call
from weft.array.expression import views
from weft.array.expression.conversion import convert
from weft.dtypes import DType
from weft.semantics import PromotionError, Semantics


def _called(name: str, *sides: Array) -> Array:
    """An elementwise function that NumPy computes."""
    shape = views.broadcast_shape(name, *(side.shape for side in sides))
    nodes = [views.broadcast_to(side.node, shape) for side in sides]
    return Array(Value(call(name, shape, nodes[0].dtype, *nodes), sides[0].weak), sides[0].semantics)


def gcd(x: Data, y: Data) -> Array:
    """The greatest common divisor of integers, in the type that ``x & y`` has; not negative, but for the least integer."""
    return _divisor("gcd", x, y)


def lcm(x: Data, y: Data) -> Array:
    """The least common multiple of integers, in the type that ``x & y`` has."""
    return _divisor("lcm", x, y)


def _divisor(op: str, x: Data, y: Data) -> Array:
    given = operands(op, x, y)
    if any(not isinstance(g, Array) for g in given):
        arrays(op, *given)  # PyTorch takes tensors
    sides, dtype, _ = like(op, "&", *given)
    if dtype.is_bool:
        raise PromotionError(f"'{op}' takes integers, found bools", "convert one of them")
    return _called(op, *sides)


def nextafter(x: Data, y: Data) -> Array:
    """The number of the type next to ``x`` in the direction of ``y``."""
    given = operands("nextafter", x, y)
    arrays("nextafter", *given)
    numpy = base(system_of("nextafter", given)) == "numpy"
    sides = (
        like("nextafter", "copysign", *given)[0] if numpy else like("nextafter", "+", *_floats("nextafter", *given))[0]
    )
    return _called("nextafter", *sides)


def ldexp(x: Data, exponent: Data) -> Array:
    """``x * 2 ** exponent``, rounded once. NumPy and JAX take integers for the exponent, PyTorch a tensor; JAX's result below the
    normal range is zero."""
    given = operands("ldexp", x, exponent)
    system = system_of("ldexp", given)
    first, second = arrays("ldexp", *given)
    if not _is_exponent(system, second.dtype, isinstance(given[1], Array)):
        raise PromotionError(f"{system.name}'s 'ldexp' takes no {second.dtype} exponents", "convert them to int32")
    if second.dtype.is_float or second.dtype.is_complex or first.dtype.is_complex:
        return first * apply("**", 2.0, second)
    (number,), dtype, weak = like("ldexp", "sinh", first)
    wide = widened(number)
    shape = views.broadcast_shape("ldexp", wide.shape, second.shape)
    nodes = [views.broadcast_to(n, shape) for n in (wide.node, convert(second.node, dtypes.int64))]
    found = Array(Value(call("ldexp", shape, wide.dtype, *nodes)), system)
    if base(system) == "jax" and dtype.bits >= 32:
        tiny = float(np.finfo(dtype.numpy).tiny)
        found = where(abs(found) < tiny, found * 0.0, found)
    return fit(found, dtype, weak)


def _is_exponent(system: Semantics, dtype: DType, chosen: bool) -> bool:
    """Whether the system takes exponents of a type, which a user has ``chosen`` or a number has by itself."""
    if base(system) == "torch":
        return not (dtype.is_bool or dtype.is_float8 or dtype.is_integer and not dtype.signed and dtype.bits > 8)
    return dtype.is_bool or dtype.is_integer and not (base(system) == "numpy" and chosen and dtype == dtypes.uint64)


def deg2rad(x: Data) -> Array:
    """Degrees as radians."""
    return _turned("deg2rad", x, math.pi, 180.0)


def rad2deg(x: Data) -> Array:
    """Radians as degrees."""
    return _turned("rad2deg", x, 180.0, math.pi)


radians, degrees = deg2rad, rad2deg


def _turned(op: str, x: Data, upper: float, lower: float) -> Array:
    """``x * (upper / lower)``. NumPy divides the two in the type computed in, JAX rounds the quotient to the type."""
    (number,), dtype, weak = like(op, "sinh", *operands(op, x))
    system = base(number)
    wide = number if system == "jax" else widened(number)
    if system == "numpy":
        kind = wide.dtype.numpy.type
        factor = float(kind(upper) / kind(lower))
    else:
        factor = upper / lower
    return fit(wide * factor, dtype, weak)


def xlogy(x: Data, y: Data) -> Array:
    """``x * log(y)``; 0 where ``x`` is 0, unless ``y`` is NaN."""
    return _times_log("xlogy", "log", x, y)


def xlog1py(x: Data, y: Data) -> Array:
    """``x * log1p(y)``; 0 where ``x`` is 0, unless ``y`` is NaN."""
    return _times_log("xlog1py", "log1p", x, y)


def _times_log(op: str, logarithm: str, x: Data, y: Data) -> Array:
    (a, b), dtype, weak = like(op, "+", *_floats(op, *operands(op, x, y)))
    return fit(where((a != 0) | apply("isnan", b), a * apply(logarithm, b), constant(0.0, a)), dtype, weak)


def _floats(op: str, *sides: Data) -> list[Data]:
    """The operands as numbers that are no integers: where all are integers, in the type that their quotient has."""
    whole = [
        side.dtype.is_integer or side.dtype.is_bool if isinstance(side, Array) else isinstance(side, int)
        for side in sides
    ]
    return like(op, "/", *sides)[0] if all(whole) else list(sides)


def divmod(x: Data, y: Data) -> tuple[Array, Array]:
    """``x // y`` and ``x % y``."""
    a, b = operands("divmod", x, y)
    return a // b, a % b


def diff(x: Data, n: int = 1, axis: int = -1, prepend: Data = None, append: Data = None) -> Array:
    """The differences of neighbours along ``axis``, ``n`` times; of bools whether they differ."""
    array = arrays("diff", x)[0]
    if n < 0:
        raise ValueError(f"'diff' is taken a number of times that is not negative, found {n}")
    if not array.ndim:
        raise ValueError("'diff' takes arrays with dimensions, found none")
    along = views.axis_of(axis, array.ndim, "diff")
    if n and (prepend is not None or append is not None):
        array = _between(array, prepend, append, along)
    for _ in range(n):
        later, earlier = (
            axis_slice(array, along, 1, None),
            axis_slice(array, along, 0, builtins.max(array.shape[along] - 1, 0)),
        )
        array = later != earlier if array.dtype.is_bool else later - earlier
    return array


def _between(array: Array, prepend: Data, append: Data, axis: int) -> Array:
    from weft.array.api.moving import concatenate

    def fitted(data: Data) -> list[Array]:
        if data is None:
            return []
        (side,) = arrays("diff", data if isinstance(data, Array) else asarray(data, array.semantics))
        if side.ndim:
            return [side]
        return [side.broadcast_to([1 if a == axis else size for a, size in enumerate(array.shape)])]

    return concatenate([*fitted(prepend), array, *fitted(append)], axis)

"""The activation functions of neural networks that PyTorch and JAX have.

PyTorch computes each in float32 and rounds once; JAX's are compositions, each step rounded to the type.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.array.api.composition import Data, base, constant, fit, one, widened
from weft.array.api.functions import where
from weft.array.api.lazy import Array, Axis, apply


def _rounded(op: str, x: Data, compute: Callable[[Array], Array]) -> Array:
    array = one(op, x)
    if base(array) != "torch" or not array.dtype.is_float:
        return compute(array)
    return fit(compute(widened(array)), array.dtype, array.weak)


def softmax(x: Data, axis: Axis = -1) -> Array:
    """``exp(x - max(x))`` divided by its sum over ``axis``."""
    return _rounded("softmax", x, lambda array: _powers(array, axis) / _powers(array, axis).sum(axis, True))


def _powers(array: Array, axis: Axis) -> Array:
    return apply("exp", array - array.max(axis, True))


def log_softmax(x: Data, axis: Axis = -1) -> Array:
    """The logarithm of `softmax`."""

    def compute(array: Array) -> Array:
        shifted = array - array.max(axis, True)
        return shifted - apply("log", apply("exp", shifted).sum(axis, True))

    return _rounded("log_softmax", x, compute)


def relu(x: Data) -> Array:
    """0 where ``x`` is below it, else ``x``; a -0 stays in PyTorch."""
    array = one("relu", x)
    if base(array) == "torch":
        return where(array < 0, constant(0, array), array)
    return apply("maximum", array, 0)


def relu6(x: Data) -> Array:
    """``x`` limited to 0 and 6."""
    array = one("relu6", x)
    if base(array) == "torch":
        array = where(array < 0, constant(0, array), array)
        return where(array > 6, constant(6, array), array)
    return apply("minimum", apply("maximum", array, 0), 6)


def silu(x: Data) -> Array:
    """``x * sigmoid(x)``."""
    return _rounded("silu", x, lambda array: array * apply("sigmoid", array))


def softplus(x: Data) -> Array:
    """``log(1 + exp(x))``; above 20 PyTorch's is ``x``."""

    def compute(array: Array) -> Array:
        if base(array) == "jax":
            return apply("logaddexp", array, 0.0)
        return where(array > 20.0, array, apply("log1p", apply("exp", array)))

    return _rounded("softplus", x, compute)


def gelu(x: Data, approximate: bool | None = None) -> Array:
    """``x`` times the normal distribution's function of ``x``: by `erf`, or approximated with `tanh`, JAX's default."""

    def compute(array: Array) -> Array:
        if approximate or approximate is None and base(array) == "jax":
            inner = 0.7978845608028654 * (array + 0.044715 * (array * array * array))
            return array * (0.5 * (1.0 + apply("tanh", inner)))
        return 0.5 * array * (1.0 + apply("erf", array * 0.7071067811865476))

    return _rounded("gelu", x, compute)


def leaky_relu(x: Data, negative_slope: float = 0.01) -> Array:
    """``x`` at or above 0, ``negative_slope * x`` below."""
    return _rounded("leaky_relu", x, lambda array: where(array >= 0, array, negative_slope * array))


def elu(x: Data, alpha: float = 1.0) -> Array:
    """``x`` above 0, ``alpha * (exp(x) - 1)`` below."""

    def compute(array: Array) -> Array:
        below = where(array > 0, 0.0, array)
        return where(array > 0, array, alpha * apply("expm1", below))

    return _rounded("elu", x, compute)

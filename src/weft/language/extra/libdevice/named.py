"""Functions under the names that CUDA has for a rounding or a speed. ``fast_`` ones are computed as the others are."""

from __future__ import annotations

from weft.dtypes import float64
from weft.language.compiletime import to_tensor
from weft.language.core import Tile, composite, tensor
from weft.language.elementwise import cos, div_rn, exp, fdiv, fma, log, log2, meaning, sin, sqrt_rn, tanh


@composite
def add_rn(arg0: Tile, arg1: Tile) -> tensor:
    """``x + y``, rounded to nearest."""
    return to_tensor(arg0) + to_tensor(arg1)


@composite
def sub_rn(arg0: Tile, arg1: Tile) -> tensor:
    """``x - y``, rounded to nearest."""
    return to_tensor(arg0) - to_tensor(arg1)


@composite
def mul_rn(arg0: Tile, arg1: Tile) -> tensor:
    """``x * y``, rounded to nearest."""
    return to_tensor(arg0) * to_tensor(arg1)


@composite
def fma_rn(arg0: Tile, arg1: Tile, arg2: Tile) -> tensor:
    """``x * y + z``, rounded once."""
    return fma(arg0, arg1, arg2)


@composite
def rcp_rn(arg0: Tile) -> tensor:
    """``1 / x``, correctly rounded."""
    return div_rn(1.0, arg0)


@composite
def rsqrt_rn(arg0: Tile) -> tensor:
    """``1 / sqrt(x)``. float32 is computed in float64, and so correctly rounded but for a few hard cases."""
    x = to_tensor(arg0)
    return div_rn(1.0, sqrt_rn(x.to(float64))).to(x.dtype)


@composite
def fast_sinf(arg0: Tile) -> tensor:
    """The sine."""
    return sin(to_tensor(arg0))


@composite
def fast_cosf(arg0: Tile) -> tensor:
    """The cosine."""
    return cos(to_tensor(arg0))


@composite
def fast_tanf(arg0: Tile) -> tensor:
    """The tangent."""
    return meaning("tan", arg0)


@composite
def fast_tanhf(arg0: Tile) -> tensor:
    """The hyperbolic tangent."""
    return tanh(to_tensor(arg0))


@composite
def fast_expf(arg0: Tile) -> tensor:
    """e to the power of x."""
    return exp(to_tensor(arg0))


@composite
def fast_exp10f(arg0: Tile) -> tensor:
    """10 to the power of x."""
    return meaning("power", 10.0, to_tensor(arg0))


@composite
def fast_logf(arg0: Tile) -> tensor:
    """The natural logarithm."""
    return log(to_tensor(arg0))


@composite
def fast_log2f(arg0: Tile) -> tensor:
    """The logarithm to base 2."""
    return log2(to_tensor(arg0))


@composite
def fast_log10f(arg0: Tile) -> tensor:
    """The logarithm to base 10."""
    return meaning("log10", arg0)


@composite
def fast_powf(arg0: Tile, arg1: Tile) -> tensor:
    """x to the power of y."""
    return meaning("power", to_tensor(arg0), to_tensor(arg1))


@composite
def fast_dividef(arg0: Tile, arg1: Tile) -> tensor:
    """``x / y``."""
    return fdiv(arg0, arg1)

"""Ops that compute each element of the result from the same element of the operands, which broadcast.

Operands that differ in dtype are promoted as the kernel's semantics say. The functions of calculus take floats only;
float16, bfloat16 and the float8 types are computed in float32 and rounded once.
"""

from __future__ import annotations

import enum

from weft.dtypes import DType, bool_
from weft.language.compiletime import to_tensor
from weft.language.core import Tile, composite, constexpr, stub, tensor


class PropagateNan(enum.Enum):
    """Whether minimum and maximum return the NaN (`ALL`) or the number (`NONE`) where one operand is NaN."""

    NONE = 0
    ALL = 0xFFFF


@stub
def where(condition: Tile, x: Tile, y: Tile) -> tensor:
    """``x`` where ``condition`` is true, else ``y``; both are evaluated."""
    ...


@composite
def logical_and(input: Tile, other: Tile) -> tensor:
    """Whether both bools hold; written ``x.logical_and(y)``."""
    return to_tensor(input).to(bool_, bitcast=True) & to_tensor(other).to(bool_, bitcast=True)


@composite
def logical_or(input: Tile, other: Tile) -> tensor:
    """Whether one of the bools holds; written ``x.logical_or(y)``."""
    return to_tensor(input).to(bool_, bitcast=True) | to_tensor(other).to(bool_, bitcast=True)


@stub
def minimum(x: Tile, y: Tile, propagate_nan: PropagateNan | constexpr = PropagateNan.NONE) -> tensor:
    """The smaller of the two; of zeros of different signs either."""
    ...


@stub
def maximum(x: Tile, y: Tile, propagate_nan: PropagateNan | constexpr = PropagateNan.NONE) -> tensor:
    """The larger of the two; of zeros of different signs either."""
    ...


@stub
def clamp(x: Tile, min: Tile, max: Tile, propagate_nan: PropagateNan | constexpr = PropagateNan.NONE) -> tensor:
    """``x`` limited to ``min <= x <= max``, for floats; without ``propagate_nan``, a NaN becomes ``min``."""
    ...


@stub
def add(x: Tile, y: Tile, sanitize_overflow: bool | constexpr = True) -> tensor:
    """``x + y``; integers wrap. With assertions (``debug=True``) and ``sanitize_overflow`` they must not."""
    ...


@stub
def sub(x: Tile, y: Tile, sanitize_overflow: bool | constexpr = True) -> tensor:
    """``x - y``; integers wrap. With assertions (``debug=True``) and ``sanitize_overflow`` they must not."""
    ...


@stub
def mul(x: Tile, y: Tile, sanitize_overflow: bool | constexpr = True) -> tensor:
    """``x * y``; integers wrap. With assertions (``debug=True``) and ``sanitize_overflow`` they must not."""
    ...


@stub
def umulhi(x: Tile, y: Tile) -> tensor:
    """The upper half of the exact product, for integers of 32 or 64 bits, read as unsigned whatever their type is."""
    ...


@stub
def cdiv(x: Tile, div: Tile) -> tensor:
    """``(x + (div - 1)) // div``: division of non-negative integers, rounded up. Compile-time for compile-time
    arguments."""
    ...


@stub
def fdiv(x: Tile, y: Tile, ieee_rounding: bool | constexpr = False, approx: bool | constexpr = False) -> tensor:
    """``x / y`` for floats. ``ieee_rounding=True`` makes it correctly rounded on every target, as `div_rn` is; ``approx`` changes
    nothing."""
    ...


@stub
def div_rn(x: Tile, y: Tile) -> tensor:
    """``x / y`` for floats, correctly rounded on every target."""
    ...


@stub
def fma(x: Tile, y: Tile, z: Tile) -> tensor:
    """``x * y + z`` for floats, rounded once."""
    ...


@stub
def exp(x: tensor) -> tensor:
    """e to the power of x; on GPUs an approximation in float32 (docs/nvidia.md)."""
    ...


@stub
def exp2(x: tensor) -> tensor:
    """2 to the power of x; on GPUs an approximation in float32 (docs/nvidia.md)."""
    ...


@stub
def log(x: tensor) -> tensor:
    """The natural logarithm."""
    ...


@stub
def log2(x: tensor) -> tensor:
    """The logarithm to base 2."""
    ...


@stub
def sqrt(x: tensor) -> tensor:
    """The square root, correctly rounded on CPUs; on GPUs an approximation in float32 (docs/nvidia.md)."""
    ...


@stub
def sqrt_rn(x: tensor) -> tensor:
    """The square root, correctly rounded on every target."""
    ...


@stub
def rsqrt(x: tensor) -> tensor:
    """``1 / sqrt(x)``; on GPUs an approximation in float32 (docs/nvidia.md)."""
    ...


@stub
def sin(x: tensor) -> tensor:
    """The sine of radians."""
    ...


@stub
def cos(x: tensor) -> tensor:
    """The cosine of radians."""
    ...


@stub
def tanh(x: tensor) -> tensor:
    """The hyperbolic tangent (in Triton: libdevice.tanh)."""
    ...


@stub
def erf(x: tensor) -> tensor:
    """The error function."""
    ...


@stub
def sigmoid(x: tensor) -> tensor:
    """``1 / (1 + exp(-x))``."""
    ...


@stub
def abs(x: tensor) -> tensor:
    """The absolute value; of the least signed integer: itself."""
    ...


@stub
def floor(x: tensor) -> tensor:
    """The next float towards minus infinity that is whole."""
    ...


@stub
def ceil(x: tensor) -> tensor:
    """The next float towards infinity that is whole."""
    ...


@stub
def meaning(name: str | constexpr, *operands: Tile | DType) -> tensor:
    """What `weft.semantics.meanings` calls ``name``, whatever the kernel's semantics (Triton has no such function):
    ``tl.meaning("floor_divide", x, y)``.

    The operands are tiles of one dtype, which is the result's (a comparison's is bool), in shapes that broadcast; a number
    becomes one of that dtype. Nothing is promoted, but integers of different dtypes are compared by value. ``select`` takes
    its condition first, a conversion the tile and the dtype: ``tl.meaning("convert_round", x, tl.uint8)``. A ``*_checked``
    meaning raises nothing: it does what the unchecked one does.
    """
    ...

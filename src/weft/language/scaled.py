"""Products of microscaled matrices (OCP Microscaling Formats 1.0): blocks of 32 elements along the inner dimension share a scale.

Elements and scales become bfloat16, or float16 where an operand is float16, by shape ops and arithmetic on bits. These are exact:
bfloat16 has all elements, and the scales from 2**-127 on as powers of two. Products of the two are rounded where they leave its
range. A scale of 255 is NaN, unless ``fast_math`` says that there is none. Scales of float8_e4m3fn belong to 16 elements (nvfp4).
"""

from __future__ import annotations

from typing import Any

from weft.dtypes import bfloat16, float8_e4m3fn, float8_e5m2, float16, float32, int8, uint8, uint16
from weft.language.compiletime import static_assert
from weft.language.core import composite, constexpr, constexpr_function, tensor
from weft.language.creation import cast
from weft.language.elementwise import where
from weft.language.reduction import dot
from weft.language.shape import broadcast_to, expand_dims, join, reshape, trans

_FORMATS = {"e2m1": uint8, "e4m3": float8_e4m3fn, "e5m2": float8_e5m2, "bf16": bfloat16, "fp16": float16}


@constexpr_function
def _known(name: Any) -> Any:
    return name in _FORMATS


@constexpr_function
def _type_of(name: Any) -> Any:
    return _FORMATS[name]


@constexpr_function
def _fits(name: Any, dtype: Any) -> Any:
    """Whether a dtype holds elements of a format: its own, or unsigned integers."""
    return dtype in (_FORMATS[name], uint16 if name in ("bf16", "fp16") else uint8)


@composite
def _fours(packed: tensor) -> tensor:
    """Pairs of e2m1 as bfloat16, in a new last dimension: the lower half of a byte comes first."""
    four = join(packed & 15, packed >> 4).to(uint16)
    size = four & 7
    bits = where(size < 2, size * 0x3F00, 0x3F00 + (size << 6)) | ((four & 8) << 12)
    return bits.to(bfloat16, bitcast=True)


@composite
def _elements(x: tensor, name: str | constexpr, rows: bool | constexpr) -> tensor:
    """A matrix of a format in a type that arithmetic takes; e2m1 is packed along ``rows`` or columns."""
    if name != "e2m1":
        fits: constexpr = _fits(name, x.dtype)
        static_assert(fits, f"Unexpected dtype for {name}. Got {x.dtype}")
        return x.to(_type_of(name), bitcast=True)
    static_assert(x.dtype == uint8, f"e2m1 format must be packed as uint8. Got {x.dtype}")
    pairs = _fours(x)
    if rows:
        return reshape(trans(pairs), x.shape[:-2] + (2 * x.shape[-2], x.shape[-1]))
    return reshape(pairs, x.shape[:-1] + (2 * x.shape[-1],))


@composite
def _scaled(x: tensor, scale: Any, fast_math: bool | constexpr) -> tensor:
    """A matrix (rows, inner) of float16 or bfloat16 times its scales (rows, blocks)."""
    if scale.dtype == int8:  # the same codes
        scale = scale.to(uint8, bitcast=True)
    if scale.dtype == uint8:
        # 2**-127 is subnormal in bfloat16.
        factor = where(scale == 0, 0x40, scale.to(uint16) << 7).to(uint16).to(bfloat16, bitcast=True)
        if not fast_math:
            factor = where(scale == 255, float("nan"), factor.to(float32)).to(bfloat16)
    else:
        factor = scale.to(bfloat16)
    block: constexpr = constexpr(x.shape[-1] // scale.shape[-1])
    wide = broadcast_to(expand_dims(factor, -1), factor.shape + (block,))
    return (x.to(float32) * reshape(wide, x.shape).to(float32)).to(x.dtype)


@composite
def dot_scaled(
    lhs: tensor,
    lhs_scale: tensor | None,
    lhs_format: str | constexpr,
    rhs: tensor,
    rhs_scale: tensor | None,
    rhs_format: str | constexpr,
    acc: tensor | None = None,
    fast_math: bool | constexpr = False,
    lhs_k_pack: bool | constexpr = True,
    rhs_k_pack: bool | constexpr = True,
    out_dtype: Any = float32,
) -> tensor:
    """``acc + lhs @ rhs``, summed in float32, for matrices, or batches, of the formats ``e2m1`` (two in a uint8, the first in the
    lower bits), ``e4m3``, ``e5m2``, ``bf16`` and ``fp16``.

    ``lhs_scale`` is (M, K // 32) and ``rhs_scale`` is (N, K // 32), exponents in uint8 or int8, biased by 127; or
    (.., K // 16) of float8_e4m3fn; or None. A scale of 255 makes its elements NaN; with ``fast_math`` there may be none.
    e2m1 is packed along K, unless ``lhs_k_pack`` or ``rhs_k_pack`` is False: then along M or N.
    """
    static_assert(out_dtype == float32, "Only float32 is supported for out_dtype at the moment")
    static_assert(_known(lhs_format), f"Invalid float format: {lhs_format}.")
    static_assert(_known(rhs_format), f"Invalid float format: {rhs_format}.")
    alone: constexpr = constexpr("only mxfp4 inputs can be packed along a dimension different than K")
    static_assert(lhs_k_pack or lhs_format == "e2m1", alone)
    static_assert(rhs_k_pack or rhs_format == "e2m1", alone)
    kind: constexpr = constexpr(float16 if lhs_format == "fp16" or rhs_format == "fp16" else bfloat16)
    left = cast(_elements(lhs, lhs_format, not lhs_k_pack), kind)
    right = cast(_elements(rhs, rhs_format, rhs_k_pack), kind)
    static_assert(
        left.shape[-1] == right.shape[-2],
        f"Reduction dimension should pack the same number of elements; (lhs: {lhs.shape} vs rhs: {rhs.shape})",
    )
    if lhs_scale is not None and rhs_scale is not None:
        factors: constexpr = constexpr((left.shape[-1] // lhs_scale.shape[-1], left.shape[-1] // rhs_scale.shape[-1]))
        static_assert(
            factors[0] == factors[1],
            f"Operands must have the same scale factor; (lhs: {factors[0]} vs rhs: {factors[1]})",
        )
    if lhs_scale is not None:
        static_assert(
            lhs_scale.shape[:-1] == left.shape[:-1], f"lhs_scale has a row for each of lhs. Got {lhs_scale.shape}"
        )
        left = _scaled(left, lhs_scale, fast_math)
    if rhs_scale is not None:
        turned = trans(right)
        static_assert(
            rhs_scale.shape[:-1] == turned.shape[:-1],
            f"rhs_scale has a row for each column of rhs. Got {rhs_scale.shape}",
        )
        right = trans(_scaled(turned, rhs_scale, fast_math))
    return dot(left, right, acc)

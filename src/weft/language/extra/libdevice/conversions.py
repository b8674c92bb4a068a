"""Conversions that name their rounding: ``rn`` to nearest even, ``rz`` towards zero, ``rd`` down, ``ru`` up.

Values that the integer type has not saturate, and NaN gives 0. Those to unsigned integers give the bits as a signed type, as in
Triton. Integers become floats with ``rn`` only.
"""

from __future__ import annotations

from weft.dtypes import float32, float64, int32, int64, uint32, uint64
from weft.language.compiletime import to_tensor
from weft.language.core import Tile, composite, tensor
from weft.language.elementwise import ceil, floor
from weft.language.extra.libdevice.rounding import rint, trunc


@composite
def float2int_rn(arg0: Tile) -> tensor:
    """As int32, rounded nearest."""
    return rint(to_tensor(arg0)).to(int32)


@composite
def float2int_rz(arg0: Tile) -> tensor:
    """As int32, rounded towards zero."""
    return trunc(to_tensor(arg0)).to(int32)


@composite
def float2int_rd(arg0: Tile) -> tensor:
    """As int32, rounded down."""
    return floor(to_tensor(arg0)).to(int32)


@composite
def float2int_ru(arg0: Tile) -> tensor:
    """As int32, rounded up."""
    return ceil(to_tensor(arg0)).to(int32)


@composite
def float2uint_rn(arg0: Tile) -> tensor:
    """As uint32, rounded nearest; the bits as int32."""
    return rint(to_tensor(arg0)).to(uint32).to(int32, bitcast=True)


@composite
def float2uint_rz(arg0: Tile) -> tensor:
    """As uint32, rounded towards zero; the bits as int32."""
    return trunc(to_tensor(arg0)).to(uint32).to(int32, bitcast=True)


@composite
def float2uint_rd(arg0: Tile) -> tensor:
    """As uint32, rounded down; the bits as int32."""
    return floor(to_tensor(arg0)).to(uint32).to(int32, bitcast=True)


@composite
def float2uint_ru(arg0: Tile) -> tensor:
    """As uint32, rounded up; the bits as int32."""
    return ceil(to_tensor(arg0)).to(uint32).to(int32, bitcast=True)


@composite
def float2ll_rn(arg0: Tile) -> tensor:
    """As int64, rounded nearest."""
    return rint(to_tensor(arg0)).to(int64)


@composite
def float2ll_rz(arg0: Tile) -> tensor:
    """As int64, rounded towards zero."""
    return trunc(to_tensor(arg0)).to(int64)


@composite
def float2ll_rd(arg0: Tile) -> tensor:
    """As int64, rounded down."""
    return floor(to_tensor(arg0)).to(int64)


@composite
def float2ll_ru(arg0: Tile) -> tensor:
    """As int64, rounded up."""
    return ceil(to_tensor(arg0)).to(int64)


@composite
def float2ull_rn(arg0: Tile) -> tensor:
    """As uint64, rounded nearest; the bits as int64."""
    return rint(to_tensor(arg0)).to(uint64).to(int64, bitcast=True)


@composite
def float2ull_rz(arg0: Tile) -> tensor:
    """As uint64, rounded towards zero; the bits as int64."""
    return trunc(to_tensor(arg0)).to(uint64).to(int64, bitcast=True)


@composite
def float2ull_rd(arg0: Tile) -> tensor:
    """As uint64, rounded down; the bits as int64."""
    return floor(to_tensor(arg0)).to(uint64).to(int64, bitcast=True)


@composite
def float2ull_ru(arg0: Tile) -> tensor:
    """As uint64, rounded up; the bits as int64."""
    return ceil(to_tensor(arg0)).to(uint64).to(int64, bitcast=True)


@composite
def double2int_rn(arg0: Tile) -> tensor:
    """As int32, rounded nearest."""
    return rint(to_tensor(arg0)).to(int32)


@composite
def double2int_rz(arg0: Tile) -> tensor:
    """As int32, rounded towards zero."""
    return trunc(to_tensor(arg0)).to(int32)


@composite
def double2int_rd(arg0: Tile) -> tensor:
    """As int32, rounded down."""
    return floor(to_tensor(arg0)).to(int32)


@composite
def double2int_ru(arg0: Tile) -> tensor:
    """As int32, rounded up."""
    return ceil(to_tensor(arg0)).to(int32)


@composite
def double2uint_rn(arg0: Tile) -> tensor:
    """As uint32, rounded nearest; the bits as int32."""
    return rint(to_tensor(arg0)).to(uint32).to(int32, bitcast=True)


@composite
def double2uint_rz(arg0: Tile) -> tensor:
    """As uint32, rounded towards zero; the bits as int32."""
    return trunc(to_tensor(arg0)).to(uint32).to(int32, bitcast=True)


@composite
def double2uint_rd(arg0: Tile) -> tensor:
    """As uint32, rounded down; the bits as int32."""
    return floor(to_tensor(arg0)).to(uint32).to(int32, bitcast=True)


@composite
def double2uint_ru(arg0: Tile) -> tensor:
    """As uint32, rounded up; the bits as int32."""
    return ceil(to_tensor(arg0)).to(uint32).to(int32, bitcast=True)


@composite
def double2ll_rn(arg0: Tile) -> tensor:
    """As int64, rounded nearest."""
    return rint(to_tensor(arg0)).to(int64)


@composite
def double2ll_rz(arg0: Tile) -> tensor:
    """As int64, rounded towards zero."""
    return trunc(to_tensor(arg0)).to(int64)


@composite
def double2ll_rd(arg0: Tile) -> tensor:
    """As int64, rounded down."""
    return floor(to_tensor(arg0)).to(int64)


@composite
def double2ll_ru(arg0: Tile) -> tensor:
    """As int64, rounded up."""
    return ceil(to_tensor(arg0)).to(int64)


@composite
def double2ull_rn(arg0: Tile) -> tensor:
    """As uint64, rounded nearest; the bits as int64."""
    return rint(to_tensor(arg0)).to(uint64).to(int64, bitcast=True)


@composite
def double2ull_rz(arg0: Tile) -> tensor:
    """As uint64, rounded towards zero; the bits as int64."""
    return trunc(to_tensor(arg0)).to(uint64).to(int64, bitcast=True)


@composite
def double2ull_rd(arg0: Tile) -> tensor:
    """As uint64, rounded down; the bits as int64."""
    return floor(to_tensor(arg0)).to(uint64).to(int64, bitcast=True)


@composite
def double2ull_ru(arg0: Tile) -> tensor:
    """As uint64, rounded up; the bits as int64."""
    return ceil(to_tensor(arg0)).to(uint64).to(int64, bitcast=True)


@composite
def double2float_rn(arg0: Tile) -> tensor:
    """As float32, rounded to nearest."""
    return to_tensor(arg0).to(float32)


@composite
def int2float_rn(arg0: Tile) -> tensor:
    """As float32, rounded to nearest."""
    return to_tensor(arg0).to(float32)


@composite
def uint2float_rn(arg0: Tile) -> tensor:
    """As float32, rounded to nearest."""
    return to_tensor(arg0).to(float32)


@composite
def ll2float_rn(arg0: Tile) -> tensor:
    """As float32, rounded to nearest."""
    return to_tensor(arg0).to(float32)


@composite
def ull2float_rn(arg0: Tile) -> tensor:
    """As float32, rounded to nearest."""
    return to_tensor(arg0).to(float32)


@composite
def int2double_rn(arg0: Tile) -> tensor:
    """As float64, exact."""
    return to_tensor(arg0).to(float64)


@composite
def uint2double_rn(arg0: Tile) -> tensor:
    """As float64, exact."""
    return to_tensor(arg0).to(float64)


@composite
def ll2double_rn(arg0: Tile) -> tensor:
    """As float64, rounded to nearest."""
    return to_tensor(arg0).to(float64)


@composite
def ull2double_rn(arg0: Tile) -> tensor:
    """As float64, rounded to nearest."""
    return to_tensor(arg0).to(float64)

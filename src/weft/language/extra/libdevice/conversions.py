"""Conversions that name their rounding: ``rn`` to nearest even, ``rz`` towards zero, ``rd`` down, ``ru`` up.

Values that the integer type has not saturate, and NaN gives 0. Those to unsigned integers give the bits as a signed type, as in
Triton. Integers become floats with ``rn`` only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from weft.dtypes import DType, float32, float64, int32, int64, uint32, uint64
from weft.language.compiletime import to_tensor
from weft.language.core import composite, constexpr_function, variant
from weft.language.elementwise import ceil, floor
from weft.language.extra.libdevice.rounding import rint, trunc


@composite
def _integer(form: Any, arg0: Any) -> Any:
    """A float as an integer: ``form`` is the rounding and the type."""
    value = form[0](to_tensor(arg0)).to(form[1])
    return value if value.dtype.is_int_signed() else value.to(_signed(value.dtype), bitcast=True)


@composite
def _number(form: Any, arg0: Any) -> Any:
    """A number as a float of the type ``form``, rounded to nearest."""
    return to_tensor(arg0).to(form)


_Function = Callable[[Any], Any]


@constexpr_function
def _signed(dtype: Any) -> Any:
    return int64 if dtype == uint64 else int32


def _roundings(name: str, dtype: DType) -> tuple[_Function, _Function, _Function, _Function]:
    """``name_rd``, ``name_rn``, ``name_ru``, ``name_rz``: floats as integers of a type."""

    def rounded(mode: str, function: Any, word: str) -> _Function:
        doc = f"As {dtype}, rounded {word}{'' if dtype.signed else f'; the bits as {dtype.name[1:]}'}."
        return variant(_integer, (function, dtype), f"{name}_{mode}", doc)

    return (
        rounded("rd", floor, "down"),
        rounded("rn", rint, "to nearest even"),
        rounded("ru", ceil, "up"),
        rounded("rz", trunc, "towards zero"),
    )


def _nearest(name: str, dtype: DType) -> _Function:
    return variant(_number, dtype, f"{name}_rn", f"As {dtype}, rounded to nearest; exact where {dtype} has the number.")


float2int_rd, float2int_rn, float2int_ru, float2int_rz = _roundings("float2int", int32)
float2uint_rd, float2uint_rn, float2uint_ru, float2uint_rz = _roundings("float2uint", uint32)
float2ll_rd, float2ll_rn, float2ll_ru, float2ll_rz = _roundings("float2ll", int64)
float2ull_rd, float2ull_rn, float2ull_ru, float2ull_rz = _roundings("float2ull", uint64)
double2int_rd, double2int_rn, double2int_ru, double2int_rz = _roundings("double2int", int32)
double2uint_rd, double2uint_rn, double2uint_ru, double2uint_rz = _roundings("double2uint", uint32)
double2ll_rd, double2ll_rn, double2ll_ru, double2ll_rz = _roundings("double2ll", int64)
double2ull_rd, double2ull_rn, double2ull_ru, double2ull_rz = _roundings("double2ull", uint64)
double2float_rn, int2float_rn, uint2float_rn, ll2float_rn, ull2float_rn = (
    _nearest(f"{name}2float", float32) for name in ("double", "int", "uint", "ll", "ull")
)
int2double_rn, uint2double_rn, ll2double_rn, ull2double_rn = (
    _nearest(f"{name}2double", float64) for name in ("int", "uint", "ll", "ull")
)

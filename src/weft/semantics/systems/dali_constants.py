"""DALI's constants: numbers of Python that meet a tensor, with the type Python's suggests or a chosen one.

An int is int32 and a float is float32, whatever their value and the tensor's type, unlike in NumPy. `constant` chooses another
type. The package refuses an integer that is not a value of its type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

from weft import dtypes
from weft.dtypes import DType
from weft.semantics.core import Constant, Number, Operand, PromotionError, Type
from weft.semantics.systems.dali_rules import SIGNED, TYPES, UNSIGNED


@dataclass(frozen=True, slots=True, eq=False)
class ScalarConstant(Constant):
    """DALI's ``types.Constant``: an operand, and a way to choose its type. Make it with `constant`."""

    def _as(self, dtype: DType) -> ScalarConstant:
        return constant(self.value, dtype)

    def int8(self) -> ScalarConstant:
        """The constant as int8."""
        return self._as(dtypes.int8)

    def int16(self) -> ScalarConstant:
        """The constant as int16."""
        return self._as(dtypes.int16)

    def int32(self) -> ScalarConstant:
        """The constant as int32."""
        return self._as(dtypes.int32)

    def int64(self) -> ScalarConstant:
        """The constant as int64."""
        return self._as(dtypes.int64)

    def uint8(self) -> ScalarConstant:
        """The constant as uint8."""
        return self._as(dtypes.uint8)

    def uint16(self) -> ScalarConstant:
        """The constant as uint16."""
        return self._as(dtypes.uint16)

    def uint32(self) -> ScalarConstant:
        """The constant as uint32."""
        return self._as(dtypes.uint32)

    def uint64(self) -> ScalarConstant:
        """The constant as uint64."""
        return self._as(dtypes.uint64)

    def float16(self) -> ScalarConstant:
        """The constant as float16."""
        return self._as(dtypes.float16)

    def float32(self) -> ScalarConstant:
        """The constant as float32."""
        return self._as(dtypes.float32)

    def float64(self) -> ScalarConstant:
        """The constant as float64, which has float32's precision all the same."""
        return self._as(dtypes.float64)

    def bool(self) -> ScalarConstant:
        """The constant as bool: whether it is not 0."""
        return self._as(dtypes.bool_)


def constant(value: Number, dtype: DType | str | None = None) -> ScalarConstant:
    """``types.Constant(value, dtype)``; without a dtype int32, float32 or bool, by Python's type.

    The value is converted as Python does (``int(10.7)`` is 10). `ValueError` for a dtype that DALI does not have,
    `PromotionError` for a complex number, a NaN or an infinity as an integer, an integer beyond all floats as a float.
    """
    chosen = own_type(value) if dtype is None else dtypes.named(dtype) if isinstance(dtype, str) else dtype
    if chosen not in TYPES:
        raise ValueError(f"DALI has no dtype {chosen}; it has {', '.join(map(str, TYPES))}")
    return ScalarConstant(converted(value, chosen), chosen)


def own_type(value: Number) -> DType:
    """The type of a number of Python; `PromotionError` for a complex one."""
    if isinstance(value, complex):
        raise PromotionError(f"DALI has no complex numbers, found {value}", "keep two floats")
    if isinstance(value, float):
        return dtypes.float32
    return dtypes.bool_ if isinstance(value, bool) else dtypes.int32


def converted(value: Number, dtype: DType) -> bool | int | float:
    """The number as Python converts it to the kind of ``dtype``; `PromotionError` where it cannot."""
    own_type(value)
    if dtype.is_bool:
        return bool(value)
    real = cast("bool | int | float", value)
    if dtype.is_float:
        try:
            return float(real)
        except OverflowError:
            raise PromotionError(
                f"{dtype} has no place for an integer of {int(real).bit_length()} bits", "write inf"
            ) from None
    if isinstance(real, float) and not math.isfinite(real):
        raise PromotionError(f"{real} is no integer, so no constant of type {dtype}", "use a constant of a float type")
    return int(real)


def type_of(operand: Operand) -> DType:
    """Arrays count by dtype alone, whatever their shape; numbers by Python's type."""
    if isinstance(operand, DType):
        return operand
    if isinstance(operand, Type) and operand.weak:
        raise PromotionError(f"DALI has no weakly typed tensors, found {operand}", f"use {operand.dtype}")
    return operand.dtype if isinstance(operand, (Type, Constant)) else own_type(operand)


def check_range(value: int, dtype: DType) -> None:
    """Raise `PromotionError` unless an integer constant is a value of its type, and of int64, in which it travels."""
    wide = dtypes.int64
    if not wide.min <= value <= wide.max:
        raise PromotionError(
            f"Integer constant {value} is out of range for int64, in which DALI passes constants", "write a float"
        )
    if not dtype.min <= value <= dtype.max:
        fits = [d for d in (*SIGNED, *UNSIGNED) if d.min <= value <= d.max and d.bits >= dtype.bits]
        best = min(fits, key=lambda d: (d.signed != dtype.signed and value >= 0, d.bits))
        raise PromotionError(
            f"Integer constant {value} is out of range for {dtype}", f"write Constant({value}).{best}()"
        )

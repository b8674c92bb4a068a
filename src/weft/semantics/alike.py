"""Where two meanings, or two types to compute in, give the same values although they are called differently.

Comparing names is not enough: ``power`` and ``power_xla`` differ for integers only, ``minimum`` and
``minimum_nan`` for floats only, and adding bools modulo 2 is the same as xor. Among differences by name, those that change a
value could not be seen. `same_meaning` knows the types on which meanings coincide, `exact` when a conversion loses nothing, so
that a comparison in one wide type equals the comparison in another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from weft.dtypes import DType, format_within

_ALIKE: Final[tuple[tuple[Callable[[DType], bool], tuple[frozenset[str], ...]], ...]] = (
    (
        lambda d: d.is_bool,
        (
            frozenset({"add", "sub", "xor", "not_equal"}),
            frozenset({"mul", "and", "minimum", "minimum_nan"}),
            frozenset({"or", "maximum", "maximum_nan"}),
            frozenset({"identity", "neg", "abs", "sign", "square", "real"}),
        ),
    ),
    (
        lambda d: d.is_integer or d.is_bool,
        (
            frozenset({"minimum", "minimum_nan"}),
            frozenset({"maximum", "maximum_nan"}),
            frozenset({"identity", "floor", "ceil", "real"}),
            frozenset({"sign", "sign_positive", "sign_compare"}),
            frozenset({"floor_remainder", "floor_remainder_signed"}),
        ),
    ),
    (
        lambda d: d.is_integer and not d.signed,
        (
            frozenset({"truncate_divide", "floor_divide"}),
            frozenset({"truncate_divide_checked", "floor_divide_checked"}),
            frozenset(
                {"truncate_remainder_checked", "floor_remainder_checked", "truncate_remainder_zero_checked"},
            ),
            frozenset({"power", "power_checked", "power_units"}),
            frozenset({"identity", "abs", "floor", "ceil", "real"}),
        ),
    ),
    (lambda d: d.is_integer and d.signed, (frozenset({"shift_right", "shift_right_arithmetic"}),)),
    (
        lambda d: d.is_float,
        (
            frozenset({"floor_divide", "floor_divide_checked"}),
            frozenset({"abs", "abs_compare"}),
            frozenset({"sign", "sign_positive"}),
            frozenset({"truncate_remainder", "truncate_remainder_checked", "truncate_remainder_zero"}),
            frozenset({"floor_remainder", "floor_remainder_checked", "floor_remainder_signed"}),
            frozenset({"power", "power_xla", "power_checked", "power_units"}),
            frozenset({"identity", "real"}),
        ),
    ),
    (lambda d: d.is_float and d.bits >= 32, (frozenset({"floor_divide", "floor_divide_checked", "floor_divide_xla"}),)),
)
"""(on which types, the meanings that have the same values there)."""


def same_meaning(a: str, b: str, dtype: DType) -> bool:
    """Whether two meanings give the same values on operands of ``dtype``. Zeros are equal whatever their signs, and numbers below
    the normal range are left out."""
    a, b = a.removesuffix("_flushed"), b.removesuffix("_flushed")
    return a == b or any(applies(dtype) and any({a, b} <= group for group in groups) for applies, groups in _ALIKE)


def exact(source: DType, target: DType) -> bool:
    """Whether every value of ``source`` is a value of ``target``."""
    if source == target or source.is_bool:
        return True
    if source.is_integer and target.is_integer:
        return target.min <= source.min and source.max <= target.max
    if source.is_integer and (target.is_float or target.is_complex):
        # The integers up to 2**(mantissa + 1) are exact, and so is the power of two at the end of a signed range.
        low, high = source.min, source.max
        within = target.mantissa + 1 >= source.bits - source.signed
        return within and target.largest >= max(-low, high)
    if (source.is_float or source.is_complex) and (target.is_float or target.is_complex):
        kinds = target.kind >= source.kind
        return kinds and format_within(source, target)
    return False

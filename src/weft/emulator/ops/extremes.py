"""Minima and maxima of floats: ``.NaN``, ``.abs`` and ``.xorsign``, of two operands or three."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from weft.emulator.arith import rounding

if TYPE_CHECKING:
    from weft.emulator.machine.binding import Binding


def check_signs(b: Binding, f: dict[str, str], count: int) -> None:
    """``.xorsign`` and ``.abs`` come together, except that three operands take ``.abs`` alone."""
    if count == 4:
        b.require(not f["xorsign"], ".xorsign is for two operands")
    else:
        b.require(bool(f["xorsign"]) == bool(f["abs"]), ".xorsign and .abs come together")


def pick(name: str, f: dict[str, str]) -> Callable[..., Any]:
    """min or max of two or three, with ``.NaN``, ``.abs`` and ``.xorsign``."""
    largest, nan, absolute, xorsign = name == "max", bool(f["nan"]), bool(f["abs"]), bool(f["xorsign"])

    def compute(x: Any, *others: Any) -> Any:
        result: Any = np.abs(x) if absolute else x
        for y in others:
            result = rounding.extreme(result, np.abs(y) if absolute else y, largest, nan)
        if xorsign:
            return rounding.copy_sign_of_product(result, x, others[0])
        return result

    return compute


def one_nan(compute: Callable[..., Any]) -> Callable[..., Any]:
    """Of two NaNs one and the same, whichever comes first: lanes that combine the same f64 in different orders have the same
    bits then, and may write them to one word. (Results of f32 have the canonical NaN in any case.)"""

    def settled(*operands: Any) -> Any:
        result = compute(*operands)
        missing = np.isnan(result)
        return np.where(missing, np.nan, result) if missing.any() else result

    return settled

"""MAX's weak operands (numbers and NumPy values), and the check of typed constants.

MAX asks whether the other side's type holds the value, and does not promote a number by its kind as most systems do. So ``uint8
+ 255`` is uint8 and ``uint8 + 256`` is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from numpy.typing import NDArray

from weft import dtypes
from weft.dtypes import DType
from weft.semantics.core import Constant, Number, PromotionError, Step, Type, show
from weft.semantics.systems.max_rules import FLOATS, INTEGERS, converts_safely


@dataclass(frozen=True, slots=True)
class External(Type):
    """A NumPy array as a weak operand: MAX looks at its elements. ``low`` and ``high`` are the extremes of an array of
    integers or bools (1 if it is empty, which every type holds)."""

    low: int = 1
    high: int = 1

    def __str__(self) -> str:
        return f"array of {self.dtype}"

    @staticmethod
    def of(array: NDArray[Any]) -> External:
        """The operand of ``array``; `PromotionError` for elements MAX does not take."""
        if array.dtype.kind not in "biuf":
            raise PromotionError(f"MAX takes no array of {array.dtype.name}", "convert it to numbers that MAX has")
        dtype = dtypes.named(array.dtype.name)
        if dtype.is_float or array.size == 0:
            return External(dtype, weak=True)
        return External(dtype, weak=True, low=int(array.min()), high=int(array.max()))


Weak: TypeAlias = Number | External
"""An operand without a type of its own."""


NARROW_RANGES: Final[Mapping[DType, tuple[int, int]]] = {
    dtypes.float8_e4m3fn: (-448, 448),
    dtypes.float8_e4m3fnuz: (-240, 240),
    dtypes.float8_e5m2: (-72089, 72089),
    dtypes.float8_e5m2fnuz: (-57344, 57344),
    dtypes.float8_e8m0fnu: (1, 2**127),
}
"""The integers that the package lets into its 8-bit floats: not those they hold exactly, but all between their extremes
(and float8_e5m2's, 57344, is taken for 1.1 * 2**16)."""


def exact_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest integer that enters ``dtype`` as a weak operand: of a float, up to where it holds every one."""
    if dtype in NARROW_RANGES:
        return NARROW_RANGES[dtype]
    if not dtype.is_float:
        return dtype.min, dtype.max
    return -(2 << dtype.mantissa), 2 << dtype.mantissa


def _home(dtype: DType, low: int, high: int) -> DType | None:
    """The narrowest type that holds all of ``dtype`` and the integers; of the same kind and sign where it may choose."""
    fits = [d for d in (*INTEGERS, *FLOATS) if exact_range(d)[0] <= low and high <= exact_range(d)[1]]
    fits = [d for d in fits if d != dtype and converts_safely(dtype, d)]
    fits.sort(key=lambda d: (d.bits, d.kind != dtype.kind, d.signed != dtype.signed))
    return fits[0] if fits else None


_CAST: Final = "cast the other side: ops.cast(x, DType.{})"
_CAST_AND_WRITE: Final = f"write it as a float and {_CAST.format(dtypes.float64)}"


def admit(weak: Weak, dtype: DType) -> Step:
    """The step by which a weak operand takes ``dtype``; `PromotionError` where its value is not safe there."""
    if dtype.is_float and dtype.bits < 8:
        low, high = (
            (weak.low, weak.high) if isinstance(weak, External) else (weak, weak) if isinstance(weak, int) else (0, 0)
        )
        home = _home(dtype, low, high)
        advice = _CAST.format(home) if home is not None else _CAST_AND_WRITE
        raise PromotionError(f"MAX makes no constant of {dtype}, a type below a byte", advice)
    if isinstance(weak, External):
        if not weak.dtype.is_float:
            _check_integers(f"the {weak}, from {weak.low} to {weak.high},", weak.low, weak.high, dtype)
        elif dtype.is_integer:  # bool takes it, which it does not from a number
            raise _refused_float(f"the {weak}", dtype)
    elif isinstance(weak, int):
        _check_integers(repr(weak), weak, weak, dtype)
    elif not dtype.is_float:
        raise _refused_float(f"the float {weak!r}", dtype)
    return Step("weak operand", f"{show(weak)} takes the type of the other side, {dtype}")


def _refused_float(shown: str, dtype: DType) -> PromotionError:
    home = dtypes.float32 if converts_safely(dtype, dtypes.float32) else dtypes.float64
    return PromotionError(
        f"Unsafe cast: {dtype} does not take {shown}", f"cast the other side: ops.cast(x, DType.{home})"
    )


def _check_integers(shown: str, low: int, high: int, dtype: DType) -> None:
    """Raise where ``dtype`` does not hold ``low`` and ``high``; the advice is what does, if possible with all of ``dtype``."""
    least, greatest = exact_range(dtype)
    if least <= low and high <= greatest:
        return
    home = _home(dtype, low, high)
    if home is None and not dtype.is_float:
        home = next((d for d in (dtypes.int64, dtypes.uint64) if d.min <= low and high <= d.max), None)
    if home is not None:
        advice = _CAST.format(home)
    elif dtype.is_float:
        advice = "write it as a float"
    else:
        advice = _CAST_AND_WRITE
    raise PromotionError(f"Unsafe cast: {dtype} does not hold {shown} exactly", advice)


def refuse_complex(value: Weak) -> None:
    """MAX's numbers are real."""
    if isinstance(value, complex):
        raise PromotionError(f"MAX has no complex numbers, found {value!r}", "keep two floats")


def constant_type(constant: Constant) -> DType:
    """The type of a typed constant, its value checked as ``ops.constant`` checks it."""
    value, dtype = constant.value, constant.dtype
    if dtype.is_float and dtype.bits < 8:
        raise PromotionError(f"MAX makes no constant of {dtype}, a type below a byte", "choose float16")
    refuse_complex(value)
    if isinstance(value, float):
        if dtype.is_integer:
            raise PromotionError(
                f"{constant}: a float is no value of {dtype}", "choose a float type, or convert it first"
            )
        return dtype
    if isinstance(value, int) and not dtype.is_float and not dtype.min <= value <= dtype.max:
        home = next((d for d in INTEGERS if d.min <= value <= d.max), dtypes.float64)
        raise PromotionError(
            f"{constant}: the value is out of range", f"write ops.constant({value!r}, DType.{home}, device)"
        )
    return dtype


def as_constant(value: Weak, dtype: DType | None = None) -> str:
    """How to write a weak operand with a type, by default the one Python's or NumPy's have."""
    if isinstance(value, External):
        return f"ops.constant(array, DType.{dtype or value.dtype}, device)"
    if dtype is None:
        dtype = _DEFAULTS[type(value)]
    return f"ops.constant({value!r}, DType.{dtype}, device)"


_DEFAULTS: Final[Mapping[type, DType]] = {
    bool: dtypes.bool_,
    int: dtypes.int64,
    float: dtypes.float64,
}

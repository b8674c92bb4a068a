"""NumPy's promotion: two searches over tables of safe casts and loops, and Python's numbers that only raise the kind.

The rules are implemented anew, not by ``np.result_type`` and the ufuncs, so that each step has a name and can be explained.
The tests compare every answer with NumPy's.

============= ======================================================= ================================
common type   the first standard type that takes all operands safely int8, uint8 -> int16
loop search   the first loop of the ufunc that does                  int8, float16 -> float16
weak number   a Python number raises the kind, if it must            int8, 1.0 -> float64
range         a Python int must fit the integers computed in         uint8 + 300 is refused
exact         comparisons of integers compare the numbers            uint8 == 300 is False
============= ======================================================= ================================

Python's ``bool`` is no weak number but a ``np.bool``. A NumPy scalar and an array without dimensions count like any
array (NEP 50). Where the loop found is one of bools, ``+`` is *or* and ``*`` is *and*; where the operands are integers,
``/`` computes in float64 whatever their width. ``x ** 2`` with that literal is ``np.square(x)``, which is int8 for bools.

What the type of a number cannot say: ``x ** -1`` of integers is an error for a literal exponent, and one of the values
(``power_checked``) for an array. `longdouble` and its complex counterpart are not types of weft.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import ops
from weft.semantics.conversions import by_float32
from weft.semantics.core import Constant, Number, Operand, Promotion, PromotionError, Semantics, Step, Type, show
from weft.semantics.systems import family
from weft.semantics.systems import numpy_loops as loops

MEANING: Final[Mapping[str, str]] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "divide",
    "//": "floor_divide",
    "%": "floor_remainder",
    "**": "power",
    "fpow": "power",
    "fmod": "truncate_remainder",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "shift_left",
    ">>": "shift_right",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "==": "equal",
    "!=": "not_equal",
    "where": "select",
    "minimum": "minimum_nan",
    "maximum": "maximum_nan",
    "pos": "identity",
    "fabs": "abs",
    "~": "not",
}
"""What each op does in the type of its loop, where its own name does not say it."""

OF_BOOLS: Final[Mapping[str, str]] = {"+": "or", "*": "and", "floor": "identity", "ceil": "identity", "abs": "identity"}
OF_INTEGERS: Final[Mapping[str, str]] = {
    "**": "power_checked",
    "fmod": "truncate_remainder_zero",
    "floor": "identity",
    "ceil": "identity",
}
OF_FLOATS: Final[Mapping[str, str]] = {"%": "floor_remainder_signed"}
OF_STANDARD_FLOATS: Final[Mapping[str, str]] = {**OF_FLOATS, "sign": "sign_positive"}
"""What changes where the loop is one of bools, of integers, of floats, of NumPy's own floats."""

UFUNC: Final[Mapping[str, str]] = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    "/": "divide",
    "//": "floor_divide",
    "%": "remainder",
    "**": "power",
    "fpow": "float_power",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "<<": "left_shift",
    ">>": "right_shift",
    "~": "invert",
    "atan2": "arctan2",
    "neg": "negative",
    "pos": "positive",
    "not": "logical_not",
    "abs": "absolute",
    "clamp": "clip",
    **{op: f"arc{op[1:]}" for op in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "conj": "conjugate",
}
"""NumPy's name of an op, where it is another."""

_NO_BOOLS: Final[Mapping[str, str]] = {
    "-": "use ^ or np.logical_xor, or convert one side with .astype(np.int8)",
    "neg": "use ~ or np.logical_not, or convert with .astype(np.int8)",
    "pos": "leave it out, or convert with .astype(np.int8)",
    "sign": "leave it out, or convert with .astype(np.int8)",
}
"""The ops that refuse bools although an integer loop would take them, and the way out."""

_ARRAYS_ONLY: Final = frozenset(("matmul", "concat"))
_INT64: Final = (dtypes.int64.min, dtypes.int64.max)


def spelled(dtype: DType) -> str:
    """A type as NumPy's users write it."""
    return f"{'ml_dtypes' if dtype in loops.CUSTOM else 'np'}.{'bool_' if dtype.is_bool else dtype}"


@dataclass(frozen=True, slots=True)
class _Read:
    """An operand: its type, or a weak number, whose ``dtype`` is what NumPy makes of it alone."""

    dtype: DType
    number: Number | None = None

    @property
    def weak(self) -> bool:
        return self.number is not None

    def __str__(self) -> str:
        return str(self.dtype) if self.number is None else f"Python's {show(self.number)}"


def _read(operand: Operand) -> _Read:
    match operand:
        case bool():
            return _Read(dtypes.bool_)
        case int():
            return _Read(dtypes.int64, operand)
        case float():
            return _Read(dtypes.float64, operand)
        case complex():
            return _Read(dtypes.complex128, operand)
        case Type():
            if operand.weak:
                raise PromotionError(f"NumPy has no weakly typed arrays, found {operand}", f"use {operand.dtype}")
            return _Read(operand.dtype)
        case Constant():
            return _Read(operand.dtype)
        case _:
            return _Read(operand)


def weak_number(array: DType, number: DType) -> DType:
    """What a weak number (by its own type) and an array meet in: the array's type unless the number's kind is higher."""
    if array in loops.CUSTOM:
        trials = {
            dtypes.int64: (dtypes.uint8, dtypes.int8, dtypes.int64),
            dtypes.float64: (dtypes.float16, dtypes.float64),
            dtypes.complex128: (dtypes.complex64, dtypes.complex128),
        }[number]
        found = (loops.meet(array, trial) for trial in trials)
        return next(t for t in found if t is not None)
    if number.kind <= array.kind:
        return array
    narrow = number.is_complex and array in (dtypes.float16, dtypes.float32)
    return dtypes.complex64 if narrow else number


_STAND_IN: Final[Mapping[DType, DType]] = {
    dtypes.int64: dtypes.int8,
    dtypes.float64: dtypes.float16,
    dtypes.complex128: dtypes.complex64,
}
"""What a weak number counts as in the search for a loop beside one of ml_dtypes' types: the narrowest of its kind."""


@dataclass(frozen=True)
class NumpySemantics(Semantics):
    """NumPy's rules; `weft.semantics.core.Semantics` says what the methods mean."""

    name: str
    title: str

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return (*loops.ORDER, *loops.CUSTOM)

    @property
    def lists(self) -> bool:
        return True

    def common(self, *operands: Operand) -> Promotion:
        read = tuple(map(_read, operands))
        if not read:
            raise ValueError("common takes at least one operand")
        arrays = tuple(r.dtype for r in read if not r.weak)
        numbers = tuple(r for r in read if r.weak)
        if not arrays:
            common = max((r.dtype for r in numbers), key=lambda d: d.kind)
            return Promotion(common, common, steps=(Step("default", f"Python numbers alone make {common}"),))
        common = loops.meet_all(arrays)
        shown = " and ".join(map(str, arrays))
        if common is None:
            wide = loops.loop("+", arrays) or dtypes.complex128
            raise PromotionError(f"{shown} have no common type", f"convert them with .astype({spelled(wide)})")
        steps: list[Step] = []
        if len(arrays) > 1:
            steps.append(Step("common type", f"{shown} meet in {common}"))
        for number in numbers:
            common, step = weak_number(common, number.dtype), self._weak_step(number, common)
            steps.append(step)
        return Promotion(common, common, steps=tuple(steps))

    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        left, right = _read(lhs), _read(rhs)
        if op in _ARRAYS_ONLY and (left.weak or right.weak or isinstance(lhs, bool) or isinstance(rhs, bool)):
            raise PromotionError(f"'{op}' takes arrays, found {left} and {right}", "make an array with np.asarray")
        if op in ("where", "concat"):
            return self._select(op, lhs, rhs)
        if op not in (*ops.BINARY, *ops.FAMILY_BINARY) or op not in loops.LOOPS:
            raise ValueError(f"{self.name} has no operation '{op}'")
        if op == "**" and right.number == 2 and isinstance(right.number, int) and not left.weak:
            step = Step("square", "x ** 2 with the literal 2 is np.square(x)")
            return self.unary("square", lhs).after(step)
        return self._ufunc(op, left, right)

    def unary(self, op: str, operand: Operand) -> Promotion:
        read = _read(operand)
        if op == "angle" and not read.dtype.is_complex:  # np.angle is np.arctan2(0, x)
            return replace(self._ufunc("atan2", _read(0), read), meaning="angle")
        if op == "round" and read.dtype in loops.INTEGERS:
            text = f"np.round of {read.dtype} is a copy"
            return Promotion(read.dtype, read.dtype, "identity", steps=(Step("round", text),))
        if op in ("real", "imag"):
            part = _part(read.dtype)
            return Promotion(
                read.dtype, part, "identity" if op == "real" and part == read.dtype else op, steps=(_kept(op, part),)
            )
        if op not in (*ops.UNARY, *ops.FAMILY_UNARY) or op not in loops.LOOPS:
            raise ValueError(f"{self.name} has no operation '{op}'")
        return self._ufunc(op, read)

    def bounds(self, value: Operand, low: Operand, high: Operand) -> tuple[Operand, Operand]:
        """An int below (above) all values of the array's type is no lower (upper) bound: that type's own limit stands for it."""
        dtype = _read(value).dtype
        if dtype.is_integer and dtype not in loops.CUSTOM:
            if type(low) is int and low < dtype.min:
                low = dtype.min
            if type(high) is int and high > dtype.max:
                high = dtype.max
        return low, high

    def ternary(self, op: str, value: Operand, low: Operand, high: Operand) -> Promotion:
        if op != "clamp":
            raise ValueError(f"{self.name} has no operation '{op}'")
        return self._ufunc(op, _read(value), *map(_read, self.bounds(value, low, high)))

    def reduction(self, op: str, operand: Operand) -> Promotion:
        dtype = _read(operand).dtype
        standard = dtype not in loops.CUSTOM and (dtype.is_bool or dtype.is_integer)
        if op in ("sum", "prod", "cumsum", "cumprod"):
            wide = dtype if not standard else dtypes.int64 if dtype.signed or dtype.is_bool else dtypes.uint64
            text = f"'{op}' of {dtype} " + (f"accumulates in {wide}" if standard else f"stays {wide}")
            return Promotion(wide, wide, op, steps=(Step("accumulator", text),))
        if op in ("mean", "var", "std"):
            if dtype in loops.CUSTOM_INTEGERS and op != "mean":
                raise PromotionError(f"np.{op} of {dtype} computes in {dtype}", "convert with .astype(np.float32)")
            result = dtypes.float64 if standard else dtype
            inside = dtypes.float32 if dtype == dtypes.float16 else result
            text = f"'{op}' of {dtype} computes in {inside} and gives {result}"
            return Promotion(inside, _part(result) if op != "mean" else result, op, steps=(Step("accumulator", text),))
        if op in ("any", "all"):
            return Promotion(dtypes.bool_, dtypes.bool_, op, steps=(Step("truth", f"'{op}' asks what is not zero"),))
        if op in ("argmax", "argmin"):
            text = f"'{op}' gives indices of type int64"
            return Promotion(dtype, dtypes.int64, op, steps=(Step("index", text),))
        if op in ("max", "min", "cummax", "cummin"):
            found = self._ufunc(f"{op.removeprefix('cum')}imum", _Read(dtype), _Read(dtype))
            return Promotion(found.operands, found.result, op, steps=found.steps)
        raise ValueError(f"{self.name} has no operation '{op}'")

    def literal(self, value: Number) -> Type:
        dtype = _read(value).dtype
        if dtype == dtypes.int64 and isinstance(value, int) and not _INT64[0] <= value <= _INT64[1]:
            if not 0 <= value <= dtypes.uint64.max:
                raise PromotionError(f"Python integer {value} fits neither int64 nor uint64", "write it as a float")
            dtype = dtypes.uint64
        return Type(dtype)

    def cast(self, source: DType, target: DType) -> Promotion:
        text = f".astype({spelled(target)}) converts {source} unchecked"
        twice = by_float32(source, target) and target != dtypes.float16  # its own; the others are ml_dtypes'
        return Promotion(
            target, target, "convert_by_float32" if twice else "convert_wrap", steps=(Step("astype", text),)
        )

    def _select(self, op: str, *operands: Operand) -> Promotion:
        """``where`` and ``concatenate``, which ask for the common type; numbers wrap into it."""
        found = self.common(*operands)
        common = found.result
        for read in map(_read, operands):
            value = read.number
            bounded = common.is_integer or common in loops.CUSTOM
            if isinstance(value, int) and bounded and not _INT64[0] <= value <= dtypes.uint64.max:
                raise PromotionError(
                    f"Python integer {value} fits neither int64 nor uint64, from which it would be converted to {common}",
                    "write it as a float",
                )
        return Promotion(common, common, MEANING.get(op, op), steps=found.steps)

    def _ufunc(self, op: str, *operands: _Read) -> Promotion:
        """The loop of a ufunc for its operands, and what it does there."""
        types, steps = self._stand_ins(operands)
        if op in _NO_BOOLS and all(t.is_bool for t in types):
            raise PromotionError(f"NumPy's {UFUNC.get(op, op)} does not take bool", _NO_BOOLS[op])
        if op in loops.EXACT and (exact := self._exact(op, operands, types)) is not None:
            return exact
        found = loops.loop(op, types)
        if op == "/" and all(t.is_bool or t.is_integer for t in types) and not {*types} & {*loops.CUSTOM}:
            found = dtypes.float64
            steps.append(Step("division of integers", f"'/' of {_shown(types)} computes in {found}"))
        elif found is None:
            raise PromotionError(f"np.{UFUNC.get(op, op)} has no loop for {_shown(types)}", _way_out(op, types))
        else:
            name = f"np.{UFUNC.get(op, op)}"
            text = f"{found} is the first loop of {name} that takes {_shown(types)} safely"
            steps.append(Step("loop search", text))
        for operand in operands:
            _check_range(operand, dtypes.int64 if op in family.LOGICAL else found)
        if op == "**" and found.is_integer and isinstance(e := operands[-1].number, int) and e < 0:
            raise PromotionError(
                f"Integers to negative integer powers are not allowed, found ** {e}", f"write ** {float(e)}"
            )
        computed = (
            dtypes.bool_ if op == "not" or op in family.LOGICAL else found
        )  # which bits are set does not matter to it
        return Promotion(computed, _result(op, found), _meaning(op, found), steps=tuple(steps))

    def _stand_ins(self, operands: tuple[_Read, ...]) -> tuple[tuple[DType, ...], list[Step]]:
        """The types the search for a loop uses, with a type in place of each weak number."""
        arrays = tuple(r.dtype for r in operands if not r.weak)
        if len(arrays) == len(operands) or not arrays:
            return tuple(r.dtype for r in operands), []
        steps: list[Step] = []
        types: list[DType] = []
        for operand in operands:
            if not operand.weak:
                types.append(operand.dtype)
            elif any(t in loops.CUSTOM for t in arrays):
                stand_in = _STAND_IN[operand.dtype]
                steps.append(Step("weak number", f"{operand} counts as {stand_in} beside a type of ml_dtypes"))
                types.append(stand_in)
            else:
                common = loops.first_safe(loops.ORDER, arrays) or dtypes.complex128
                steps.append(self._weak_step(operand, common))
                types.append(weak_number(common, operand.dtype))
        return tuple(types), steps

    def _weak_step(self, number: _Read, array: DType) -> Step:
        common = weak_number(array, number.dtype)
        kept = f"{number} takes {array}" if common == array else f"{number} raises {array} to {common}"
        return Step("weak number", kept)

    def _exact(self, op: str, operands: tuple[_Read, ...], types: tuple[DType, ...]) -> Promotion | None:
        """Comparisons that convert neither side: of uint64 with signed integers, and with a Python int of any size."""
        if not all(t.is_integer for t in types) or {*types} & {*loops.CUSTOM}:
            return None
        arrays = [r.dtype for r in operands if not r.weak]
        numbers = [r.number for r in operands if isinstance(r.number, int)]
        if len(arrays) == 1 and numbers and not arrays[0].min <= numbers[0] <= arrays[0].max:
            text = f"Python's {numbers[0]} is no {arrays[0]}; the numbers themselves are compared"
            common = arrays[0]
        elif loops.first_safe(loops.INTEGERS, types) is None:
            text = f"no integer type holds {_shown(types)}; the numbers themselves are compared"
            common = dtypes.float64
        else:
            return None
        return Promotion(common, dtypes.bool_, _meaning(op, common), keeps=True, steps=(Step("exact", text),))


def _shown(types: tuple[DType, ...]) -> str:
    return " and ".join(map(str, types))


def _kept(op: str, dtype: DType) -> Step:
    return Step("part", f"'{op}' gives {dtype}")


def _part(dtype: DType) -> DType:
    return {dtypes.complex64: dtypes.float32, dtypes.complex128: dtypes.float64}.get(dtype, dtype)


def _result(op: str, dtype: DType) -> DType:
    """The type a loop gives."""
    if op in ops.FAMILY:
        return family.result(op, dtype)
    if op in ops.COMPARISONS or op == "not":
        return dtypes.bool_
    return _part(dtype) if op == "abs" else dtype


def _meaning(op: str, dtype: DType) -> str:
    if op in ops.FAMILY:
        return family.meaning(op, dtype)
    if dtype.is_float:
        special = OF_FLOATS if dtype in loops.CUSTOM else OF_STANDARD_FLOATS
    else:
        special = OF_BOOLS if dtype.is_bool else OF_INTEGERS if dtype.is_integer else {}
    return special.get(op) or MEANING.get(op, op)


def _check_range(operand: _Read, dtype: DType) -> None:
    """Raise where a Python int has no place in the type computed in."""
    value = operand.number
    if not isinstance(value, int):
        return
    if dtype in loops.CUSTOM_FLOATS and not _INT64[0] <= value <= _INT64[1]:
        raise PromotionError(f"{dtype} takes Python integers of 64 bits, found {value}", "write it as a float")
    if not dtype.is_integer or dtype.min <= value <= dtype.max:
        return
    low, high = min(value, dtype.min), max(value, dtype.max)
    wide = next((t for t in loops.INTEGERS if t.min <= low and high <= t.max), dtypes.float64)
    raise PromotionError(
        f"Python integer {value} out of bounds for {dtype}", f"convert the other side with .astype({spelled(wide)})"
    )


def _way_out(op: str, types: tuple[DType, ...]) -> str:
    """The cast that gives a ufunc a loop."""
    if any(t.is_complex for t in types):
        return "take .real or np.abs first"
    if op in (*ops.BITWISE, *ops.SHIFTS, "~"):
        bits = max(8, *(t.bits for t in types))
        inexact = any(t.is_float for t in types)
        return f"convert both sides with .astype(np.{'' if inexact else 'u'}int{bits})"
    return f"convert both sides with .astype({spelled(loops.loop('+', types) or dtypes.float64)})"


numpy: Final = NumpySemantics("numpy", "NumPy 2.4.6 with the types of ml_dtypes 0.6.0")

"""DALI's promotion, as the document "DALI Binary Arithmetic Operators - Type Promotions" states it (`dali`) and as the
package 2.4.0 computes it (`dali_2`).

Both are one class over data: a lattice of types, tables of operations, and three facts in which the versions differ. The
lattice is the document's six lines, bool counting as uint1:

=========== =========== ================= ===========================
floatX      no float    floatX            float32, int64 -> float32
floatX      floatY      the wider         float32, float64 -> float64
intX        intY        the wider         int8, int32 -> int32
uintX       uintY       the wider         bool, uint16 -> uint16
intX        uintY       intX if X > Y     int16, uint8 -> int16
intX        uintY       int2Y if X <= Y   int8, uint8 -> int16
=========== =========== ================= ===========================

The last line makes int128 of uint64 and a signed type. The document's lattice has that node, though no system has the type:
`dali` refuses where it is the result. The package's lattice puts int64 there instead (so uint64 <= int64, and large values
become negative).

An operation adds to the common type: whether it takes floats, whether it takes bools alone, the float it computes in. A
number of Python is int32 or float32, whatever its value; `constant` chooses another type. Real constants travel as float32
even so.

Where the document is silent (``% ** << >>``, comparisons, functions, reductions, casts), `dali` does as the package does.
The versions differ in this:

- float16: an ordinary float in the document; the package converts it, but computes with it nowhere.
- uint64 with a signed type: refused by the document's rule, int64 in the package.
- two bools: the document says that only ``* | & ^`` take them, so its shifts do not; the package's do. Comparisons are not
  promotions, and take them in both.
- integer constants: the document passes them as int32 (they wrap), the package refuses those their type cannot hold.
- NumPy's float64 scalars are no operands in the package.
- comparisons of floats with negative integers, ``%`` of integers with floats, ``rsqrt`` and ``abs``: the package's formulas
  (`DaliSemantics._as_package`).

On the left of an operator a NumPy scalar is asked first, and hands on a number of Python: there it counts as a literal.

What DALI lacks (``where``, ``argmax``, ``exp2``, a matrix product) is a `ValueError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import numpy as np

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import ops
from weft.semantics.core import Constant, Number, Operand, Promotion, PromotionError, Semantics, Step, Type
from weft.semantics.lattice import Lattice
from weft.semantics.ops import COMPARISONS
from weft.semantics.systems.dali_constants import check_range, constant, converted, own_type, type_of
from weft.semantics.systems.dali_rules import (
    BINARY,
    BOOLS,
    CLAMP,
    DOCUMENT_LATTICE,
    PACKAGE_LATTICE,
    REDUCTIONS,
    TYPES,
    UNARY,
    OpRule,
    rule,
)

__all__ = ["DaliSemantics", "constant", "dali", "dali_2"]


_EMBEDDED: Final = {
    dtypes.int64: dtypes.int32,
    dtypes.uint64: dtypes.uint32,
    dtypes.float64: dtypes.float32,
}
"""What a constant tensor of a type becomes."""


_PYTHON_OPERATORS: Final = frozenset({*ops.ARITHMETIC, *ops.BITWISE, *ops.SHIFTS, *ops.COMPARISONS})


def _enum(dtype: DType) -> str:
    """The type as DALI's programs write it."""
    return f"types.{'FLOAT' if dtype == dtypes.float32 else dtype.name.upper()}"


def _cast(dtype: DType) -> str:
    return f"fn.cast(x, dtype={_enum(dtype)})"


def _literals(operands: Sequence[Operand]) -> list[Step]:
    numbers = [o for o in operands if isinstance(o, (bool, int, float))]
    return [Step(f"{type(number).__name__} literal", f"{number!r} is {own_type(number)}") for number in numbers]


@dataclass(frozen=True)
class DaliSemantics(Semantics):
    """One version of DALI's rules; `weft.semantics.core.Semantics` says what the methods mean."""

    name: str
    title: str
    lattice: Lattice[DType] = field(repr=False, hash=False, compare=False)
    """The common type of every pair it computes with."""
    bools: frozenset[str] = field(repr=False)
    """The operations that take bools alone."""
    ranges: bool = field(repr=False)
    """Whether an integer constant must be a value of its type (else it wraps, by way of int32)."""
    numpy_doubles: bool = field(repr=False)
    """Whether NumPy's float64 scalars are operands."""
    formulas: bool = field(repr=False)
    """Whether values follow the package's formulas where they are not what the operation's name says (`_as_package`)."""

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return TYPES

    @property
    def lists(self) -> bool:
        return True

    def operand(self, value: object) -> Operand:
        """An operand in any spelling, NumPy's arrays and lists included: those without dimensions are constants of their type,
        others constant tensors, whose 64-bit types become 32-bit ones."""
        if isinstance(value, np.float64) and not self.numpy_doubles:
            raise PromotionError(
                "DALI's arithmetic does not take numpy.float64", "pass float(x), or Constant(x).float64()"
            )
        if isinstance(value, (list, tuple, np.ndarray)):
            array = np.asarray(cast(Any, value))
            super().operand(array.dtype)
            return self._embedded(array) if array.ndim else self._typed(array.item(), dtypes.named(array.dtype.name))
        read = super().operand(value)
        return self._typed(read.value, read.dtype) if type(read) is Constant else read

    def arriving(self, op: str, operands: Sequence[object]) -> Sequence[object]:
        """A NumPy scalar on the left of an operator is the number of Python that NumPy makes of it."""
        if len(operands) == 2 and isinstance(operands[0], np.generic) and op in _PYTHON_OPERATORS:
            return cast(Any, operands[0]).item(), operands[1]
        return operands

    def _typed(self, value: Number, dtype: DType) -> Constant:
        """A constant whose value is of the type's kind: a Python float where the type is a float, so that `number` rounds it."""
        return Constant(converted(value, dtype), dtype)

    def _embedded(self, array: np.ndarray[Any, np.dtype[Any]]) -> Type:
        dtype = dtypes.named(array.dtype.name)
        narrow = _EMBEDDED.get(dtype, dtype)
        if dtype.is_float:
            return Type(narrow)
        for edge in (array.min(), array.max()) if array.size else ():
            if not narrow.min <= int(edge) <= narrow.max:
                raise PromotionError(
                    f"Integer {int(edge)} is out of range for {narrow}, the type of constant tensors of {dtype}",
                    "pass it as an input of the pipeline",
                )
        return Type(narrow)

    def common(self, *operands: Operand) -> Promotion:
        kinds = [type_of(o) for o in operands]
        steps = _literals(operands)
        self._check_ranges(operands)
        if len(set(kinds)) == 1:
            joined = kinds[0]
        else:
            self._check_floats("promotion", kinds, dtypes.float32)
            joined, found = self._join(kinds)
            steps += found
        return Promotion(joined, joined, steps=tuple(steps))

    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        if op == "concat":
            return self._concat(lhs, rhs)
        if (found := BINARY.get(op)) is None:
            raise ValueError(f"{self.name} has no operation '{op}'; it has {' '.join(BINARY)} concat")
        if op in COMPARISONS:  # these look at the constants before the types
            self._check_ranges((lhs, rhs))
        kinds = self._checked(op, found, (lhs, rhs))
        steps = _literals((lhs, rhs))
        a, b = kinds
        if op in COMPARISONS and a != b and a.is_integer and b.is_integer:
            joined = cast(DType, PACKAGE_LATTICE.join(a, b))
            steps.append(Step("exact comparison", f"{a} and {b} are compared as the numbers they are"))
            return Promotion(joined, dtypes.bool_, found.meaning, keeps=True, steps=tuple(steps))
        return self._as_package(op, self._promotion(op, found, kinds, steps), kinds)

    def _as_package(self, op: str, promotion: Promotion, kinds: Sequence[DType]) -> Promotion:
        """The promotion with the package's own formulas."""
        if not self.formulas or not promotion.operands.is_float:
            return promotion
        dtype = promotion.operands
        mixed = any(not d.is_float for d in kinds)
        if op in COMPARISONS:
            signed = [side for side, d in zip(("left", "right"), kinds, strict=True) if d.is_integer and d.signed]
            if not signed:
                return promotion
            step = Step("negative integer", f"a negative {signed[0]} operand, an integer, is less than every float")
            return replace(
                promotion, meaning=f"{promotion.meaning}_{signed[0]}_integer", steps=(*promotion.steps, step)
            )
        if op == "%" and mixed and dtype == dtypes.float32:
            step = Step("double precision", "'%' of an integer and a float is computed in float64")
            return replace(promotion, operands=dtypes.float64, steps=(*promotion.steps, step))
        own = {"abs": "abs_compare", "rsqrt": "rsqrt_newton" if dtype == dtypes.float32 else "rsqrt"}.get(op)
        return promotion if own is None else replace(promotion, meaning=own)

    def _promotion(self, op: str, found: OpRule, kinds: Sequence[DType], steps: list[Step]) -> Promotion:
        meaning = found.meaning
        if found.integers_as is not None and not any(d.is_float for d in kinds):
            joined = found.integers_as
            steps.append(Step("function of floats", f"'{op}' of {' and '.join(map(str, kinds))} computes in {joined}"))
        else:
            joined, reasons = self._join(kinds)
            steps += reasons
        if joined.is_float and found.floats_as:
            meaning = found.floats_as
            if meaning == "divide":
                steps.append(Step("true division", f"'{op}' of floats is the true quotient"))
        if found.result is not None:
            steps.append(Step("comparison", f"'{op}' gives {found.result}"))
        return Promotion(joined, found.result or joined, meaning, steps=tuple(steps))

    def _concat(self, lhs: Operand, rhs: Operand) -> Promotion:
        a, b = type_of(lhs), type_of(rhs)
        if a != b:
            raise PromotionError(
                f"fn.cat takes inputs of one type, found {a} and {b}", f"cast the second with {_cast(a)}"
            )
        return Promotion(a, a, "concat", steps=(rule(a, b, a),))

    def ternary(self, op: str, value: Operand, low: Operand, high: Operand) -> Promotion:
        if op != "clamp":
            raise ValueError(f"{self.name} has no operation '{op}'; it has clamp")
        operands = (value, low, high)
        return self._promotion(op, CLAMP, self._checked(op, CLAMP, operands), _literals(operands))

    def unary(self, op: str, operand: Operand) -> Promotion:
        if (found := UNARY.get(op)) is None:
            raise ValueError(f"{self.name} has no operation '{op}'; it has {' '.join(UNARY)}")
        dtype = type_of(operand)
        shown = {"neg": "-", "pos": "+"}.get(op, op)
        if op != "pos":
            self._checked(shown, found, (operand,))
        steps = _literals((operand,))
        if found.integers_as is not None and not dtype.is_float:
            steps.append(Step("function of floats", f"'{op}' of {dtype} computes in {found.integers_as}"))
            dtype = found.integers_as
        else:
            steps.append(Step("type kept", f"unary '{shown}' of {dtype} is {dtype}"))
        return self._as_package(op, Promotion(dtype, dtype, found.meaning, steps=tuple(steps)), (dtype,))

    def reduction(self, op: str, operand: Operand) -> Promotion:
        if (found := REDUCTIONS.get(op)) is None:
            raise ValueError(f"{self.name} has no reduction '{op}'; it has {' '.join(REDUCTIONS)}")
        dtype = type_of(operand)
        if (wide := found.get(dtype)) is None:
            way = _cast(dtypes.uint8 if dtype.is_bool else dtypes.float32)
            name = {"var": "variance", "std": "std_dev"}.get(op, op)
            raise PromotionError(f"fn.reductions.{name} does not take {dtype}", f"cast it with {way}")
        return Promotion(wide, wide, op, steps=(Step("reduction", f"{op} of {dtype} computes in {wide}"),))

    def literal(self, value: Number) -> Type:
        dtype = own_type(value)
        self._check_ranges((value,))
        return Type(dtype)

    def cast(self, source: DType, target: DType) -> Promotion:
        self.operand(source)
        self.operand(target)
        step = Step("cast", f"{source} to {target}: halves round away from zero, what is out of range saturates")
        return Promotion(target, target, "convert_round", steps=(step,))

    def number(self, value: Number, dtype: DType) -> Number:
        """A real constant is a float32 whatever its type. An integer has been checked, or (in the document) passes through
        int32."""
        if isinstance(value, float) and not dtype.is_bool:
            if dtype.is_integer:
                return self.number(converted(value, dtype), dtype)
            with np.errstate(over="ignore"):
                return float(np.float32(value))
        if not self.ranges and not isinstance(value, (bool, complex)):
            value = super().number(value, dtypes.int32)
        return super().number(value, dtype)

    def _join(self, kinds: Sequence[DType]) -> tuple[DType, list[Step]]:
        """The common type, and the rule for each operand that joined."""
        steps: list[Step] = []
        joined = kinds[0]
        for dtype in kinds[1:]:
            both = cast(DType, self.lattice.join(joined, dtype))  # the proof at import: every pair has one
            steps.append(rule(joined, dtype, both))
            joined = both
        if joined not in TYPES:
            raise PromotionError(
                f"{' and '.join(map(str, kinds))} need {joined}, int of twice the unsigned width, which DALI does not have",
                f"cast the uint64 side with {_cast(dtypes.int64)}",
            )
        return joined, steps

    def _checked(self, op: str, found: OpRule, operands: Sequence[Operand]) -> list[DType]:
        """The operands' types; raises where the operation refuses them."""
        kinds = [type_of(o) for o in operands]
        if found.floats or len(kinds) > 1:  # ~ refuses float16 as it does all floats
            self._check_floats(op, kinds, dtypes.float32 if found.floats else dtypes.int32)
        self._check_ranges(operands)
        if not found.floats and (wrong := [d for d in kinds if d.is_float]):
            way = _cast(dtypes.int64 if wrong[0].bits == 64 else dtypes.int32)
            raise PromotionError(f"bitwise '{op}' takes integers, found {wrong[0]}", f"cast it with {way}")
        if all(d.is_bool for d in kinds) and op not in self.bools:
            inputs, one = ("inputs", "one") if len(kinds) > 1 else ("input", "it")
            raise PromotionError(f"the {inputs} of '{op}' cannot be bool", f"cast {one} with {_cast(dtypes.uint8)}")
        return kinds

    def _check_floats(self, op: str, kinds: Sequence[DType], legal: DType) -> None:
        for dtype, side in zip(kinds, ("left", "right", "third"), strict=False):
            if dtype not in self.lattice.edges:
                place = f"the {side} operand of '{op}'" if len(kinds) > 1 else f"the operand of '{op}'"
                raise PromotionError(
                    f"{place} is {dtype}, with which DALI does not compute", f"cast it with {_cast(legal)}"
                )

    def _check_ranges(self, operands: Sequence[Operand]) -> None:
        """Raise where the package refuses an integer constant: its type, or int64, cannot hold it."""
        for operand in operands if self.ranges else ():
            value = operand.value if isinstance(operand, Constant) else operand
            dtype = type_of(operand)
            if isinstance(value, int) and dtype.is_integer:
                check_range(value, dtype)


dali: Final = DaliSemantics(
    "dali",
    "DALI as its document on type promotions states it",
    DOCUMENT_LATTICE,
    BOOLS,
    ranges=False,
    numpy_doubles=True,
    formulas=False,
)
dali_2: Final = DaliSemantics(
    "dali@2",
    "DALI as the package 2.4.0 computes it",
    PACKAGE_LATTICE,
    BOOLS | {"<<", ">>"},
    ranges=True,
    numpy_doubles=False,
    formulas=True,
)

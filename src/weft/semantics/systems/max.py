"""MAX's promotion: its documentation ``type_promotion`` (`max`) and the package 26.7.0 (`max_26`).

The document and the package have different rules. In the document two types meet in the join of `LATTICE`, which always
exists. The package refuses every conversion that would lose something, and asks the user to cast. Both share the ops, the
weak operands and the typed constants.

The document is a lattice::

    bool -> int8 -> int16 -> int32 -> int64 -> float16       int8, uint8   meet in int16
    bool -> uint8 -> uint16 -> uint32 -> uint64 -> float16   int64, uint64 meet in float16
    uint8 -> int16, uint16 -> int32, uint32 -> int64         bfloat16, float16 meet in bfloat16
    index -> uint64, address -> uint64                       index, int8   meet in float16
    float16 -> bfloat16 -> float32 -> tensor_float32 -> float64

Its printed table differs from these joins in four cells (`DOCUMENT_EXCEPTIONS`), contradicts itself there (the mirrored
cells agree with the lattice) and its prose ("never promote other types to them"). Here the lattice holds.

The package: equal types stay, bool yields. Else the *category* is the greater of unsigned < signed < float, the *width*
the greater of the two; the type of that category and width is the result if both sides convert to it safely: unsigned to
signed needs one more bit, an integer must fit the significand, a float must get wider.

Numbers and NumPy values are *weak*: the other side's type is the result, if it holds the value exactly. Integers are
compared with the type's exact range (±2**11 for float16); floats go into any float, and round. Two weak operands are
refused. A `Constant` is ``ops.constant(value, dtype)`` (``g.scalar[dtype](value)`` in the document): strong.

Where the document is silent `max` does as the package: weak operands, ``/`` of two integers in float64, comparisons give
bool, the bit operators take bools only, no shifts, functions keep their operand's type, division as below. Where the
lattice has a word it decides: ``int32 / float16`` is float16.

``//`` and ``%`` floor; ``x % 0`` of integers is 0, ``x // 0`` ends the process (SIGFPE), which weft makes an error.
``/`` of an integer by a bool, or of a bool by an integer, stays in the integer's type and truncates. The graph accepts
some ops that the package then fails to compile (`UNCOMPILED`): they have a type here, and a step that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from weft import dtypes
from weft.dtypes import DType
from weft.semantics import ops
from weft.semantics.core import Constant, Number, Operand, Promotion, PromotionError, Semantics, Step, Type, show
from weft.semantics.lattice import Lattice
from weft.semantics.systems import family
from weft.semantics.systems.max_rules import LATTICE, join_of, meet_safely
from weft.semantics.systems.max_weak import External, Weak, admit, as_constant, constant_type, refuse_complex


@dataclass(frozen=True)
class OpRule:
    """What a binary op does with its common type.

    ``divides``: two integers are converted to float64 first, whatever they are. ``bools``: takes nothing but bools.
    ``equal``: takes equal types only. ``weak``: whether it takes numbers. ``result``: its type if not the common one.
    """

    meaning: str
    divides: bool = False
    bools: bool = False
    equal: bool = False
    weak: bool = True
    result: DType | None = None


BINARY: Final[Mapping[str, OpRule]] = {
    "+": OpRule("add"),
    "-": OpRule("sub"),
    "*": OpRule("mul"),
    "/": OpRule("divide", divides=True),
    "//": OpRule("floor_divide_checked"),
    "%": OpRule("floor_remainder"),
    "**": OpRule("power"),
    "&": OpRule("and", bools=True),
    "|": OpRule("or", bools=True),
    "^": OpRule("xor", bools=True),
    "<": OpRule("less", result=dtypes.bool_),
    "<=": OpRule("less_equal", result=dtypes.bool_),
    ">": OpRule("greater", result=dtypes.bool_),
    ">=": OpRule("greater_equal", result=dtypes.bool_),
    "==": OpRule("equal", result=dtypes.bool_),
    "!=": OpRule("not_equal", result=dtypes.bool_),
    "where": OpRule("select"),
    "minimum": OpRule("minimum"),
    "maximum": OpRule("maximum"),
    "matmul": OpRule("matmul", weak=False),
    "concat": OpRule("concat", weak=False, equal=True),
    **{op: OpRule(meaning, bools=True) for op, meaning in family.LOGICAL.items()},
}
"""The binary ops of MAX."""

FUNCTIONS: Final = ("sqrt", "rsqrt", "exp", "log", "sin", "cos", "tanh", "erf", "sigmoid", "floor", "ceil")
"""The functions of floats."""

UNARY: Final[Mapping[str, str]] = {**{op: op for op in ("neg", "abs", *FUNCTIONS)}, "~": "not", "not": "not"} | {
    op: family.MEANING.get(op, op) for op, row in family.FAMILY.items() if row.max == "any"
}
"""The unary ops and their meanings; each keeps its operand's type. ``~`` and ``not`` take bools only."""

REDUCTIONS: Final = ("sum", "mean", "max", "min", "prod", "argmax", "argmin", "cumsum")
"""The reductions; each keeps its operand's type but for the two that give indices, of int64."""

_SHIFT_ADVICE: Final[Mapping[str, str]] = {"<<": "multiply by 2**n", ">>": "divide with // by 2**n"}
_PYTHON_OPERATORS: Final = frozenset({*ops.ARITHMETIC, *ops.BITWISE, *ops.COMPARISONS})


UNCOMPILED: Final[Mapping[str, Callable[[DType], bool]]] = {
    **dict.fromkeys(("+", "-", "*", "/", "//", "%", "**"), lambda d: d.is_bool),
    "neg": lambda d: not d.signed,
    **dict.fromkeys((*FUNCTIONS, "log1p", "acos", "atanh", "round", "trunc"), lambda d: not d.is_float),
    **dict.fromkeys(("sum", "mean", "prod", "argmax", "argmin", "cumsum"), lambda d: d.is_bool),
}
"""Op -> the common types in which the package's graph accepts it, and its compiler fails."""


_COMPILED: Final = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
"""The floats that the package computes with on a CPU."""

_COMPILED_AS: Final[Mapping[str, str]] = {
    "less": "less_unordered",
    "less_equal": "less_equal_unordered",
    "not_equal": "not_equal_ordered",
    "floor_divide_checked": "floor_divide_quotient",
    "floor_remainder": "floor_remainder_fused",
}
"""What some operations of floats are in the package's code: ``x < y`` is ``not x >= y``."""

_FLUSHES: Final = frozenset(
    {
        *("add", "sub", "mul", "divide", "floor_divide_quotient", "floor_remainder_fused", "minimum", "maximum"),
        *("less_unordered", "less_equal_unordered", "not_equal_ordered", "equal", "greater", "greater_equal"),
        *("floor", "ceil", "sqrt", "rsqrt", "log", "erf"),
    }
)
"""The meanings under which numbers below the normal range are zeros; ``neg`` and ``abs`` keep them."""

_FLUSHED_CONVERSIONS: Final = frozenset(
    {
        *((dtypes.float32, dtypes.float64), (dtypes.bfloat16, dtypes.float64)),
        *((dtypes.float64, dtypes.float32), (dtypes.float64, dtypes.bfloat16)),
    }
)
"""Between which floats it takes such numbers for zeros; bfloat16 and float32 it converts by their bits."""


@dataclass(frozen=True)
class MaxSemantics(Semantics):
    """One version of MAX's rules; `weft.semantics.core.Semantics` says what the methods mean.

    ``meet`` is the type two strong operands have in common and the step that gave it. ``lattice`` is the document's order;
    the package has none.
    """

    name: str
    title: str
    types: tuple[DType, ...] = field(repr=False)
    meet: Callable[[DType, DType], tuple[DType, Step]] = field(repr=False)
    lattice: Lattice[DType] | None = field(default=None, repr=False)

    @property
    def dtypes(self) -> tuple[DType, ...]:
        return self.types

    def operand(self, value: object) -> Operand:
        """As `Semantics.operand`; moreover NumPy's scalars are weak like Python's numbers, and its arrays are `External`."""
        if isinstance(value, np.ndarray):
            return External.of(cast(NDArray[Any], value))
        if isinstance(value, np.integer):
            return int(cast(Any, value))
        if isinstance(value, np.floating):
            return float(cast(Any, value))
        if isinstance(value, np.generic):
            name = cast(Any, value).dtype.name
            raise PromotionError(f"MAX takes no NumPy scalar of {name}", "write it as a number of Python")
        read = super().operand(value)
        self._read(read)
        return read

    def arriving(self, op: str, operands: Sequence[object]) -> Sequence[object]:
        """A ``np.bool_`` is refused but for the left side of an operator: there NumPy's own comes first, and hands a bool on."""
        if len(operands) == 2 and isinstance(operands[0], np.bool_) and op in _PYTHON_OPERATORS:
            return bool(cast(Any, operands[0])), operands[1]
        return operands

    def common(self, *operands: Operand) -> Promotion:
        read = [self._read(o) for o in operands]
        strong = [o for o in read if isinstance(o, DType)]
        if not strong:
            raise _all_weak("promotion", operands)
        common, steps = strong[0], list[Step]()
        for dtype in strong[1:]:
            common, step = self.meet(common, dtype)
            steps.append(step)
        steps += [admit(o, common) for o in read if not isinstance(o, DType)]
        return Promotion(common, common, steps=tuple(steps))

    def binary(self, op: str, lhs: Operand, rhs: Operand) -> Promotion:
        if op in _SHIFT_ADVICE:
            raise PromotionError(f"MAX has no '{op}'", _SHIFT_ADVICE[op])
        rule = BINARY.get(op)
        if rule is None:
            raise ValueError(f"unknown binary operator '{op}'; {self.name} knows {' '.join(BINARY)}")
        left, right = self._read(lhs), self._read(rhs)
        left, right, steps = _both_strong(op, rule, left, right)
        if rule.bools and not (left.is_bool and right.is_bool):
            raise PromotionError(
                f"'{op}' takes bools, found {left} and {right}", "cast both sides: ops.cast(x, DType.bool)"
            )
        if rule.equal and left != right:
            raise PromotionError(
                f"'{op}' takes equal types, found {left} and {right}",
                f"cast the {left} side: ops.cast(x, DType.{right})",
            )
        if rule.divides and left.is_integer and right.is_integer:
            division = Step("division of integers", f"'{op}' converts {left} and {right} to float64 first")
            return self._as_compiled(Promotion(dtypes.float64, dtypes.float64, rule.meaning, steps=(*steps, division)))
        common, step = self.meet(left, right)
        steps, meaning = (*steps, step), rule.meaning
        if rule.divides and not common.is_float:
            steps, meaning = (
                (*steps, Step("division with a bool", f"'{op}' stays in {common}")),
                "truncate_divide_checked",
            )
        promotion = Promotion(common, rule.result or common, meaning, steps=(*steps, *self._note(op, common)))
        return self._as_compiled(promotion)

    def unary(self, op: str, operand: Operand) -> Promotion:
        if op == "pos":
            raise PromotionError("MAX has no unary '+'", "leave it out")
        if op not in UNARY:
            raise ValueError(f"unknown unary operator '{op}'; {self.name} knows {' '.join(UNARY)}")
        dtype = self._alone(op, operand)
        if UNARY[op] == "not" and not dtype.is_bool:
            raise PromotionError(f"'{op}' takes bools, found {dtype}", "cast it: ops.cast(x, DType.bool)")
        if op in family.FAMILY:
            result = family.result(op, dtype)
            return Promotion(dtype, result, family.meaning(op, dtype), steps=self._note(op, dtype))
        return self._as_compiled(Promotion(dtype, dtype, UNARY[op], steps=self._note(op, dtype)))

    def reduction(self, op: str, operand: Operand) -> Promotion:
        if op not in REDUCTIONS:
            raise ValueError(f"unknown reduction '{op}'; {self.name} knows {' '.join(REDUCTIONS)}")
        dtype = self._alone(op, operand)
        result = dtypes.int64 if op.startswith("arg") else dtype
        return Promotion(dtype, result, op, steps=self._note(op, dtype))

    def literal(self, value: Number) -> Type:
        """A refusal: MAX wants a dtype with every constant."""
        refuse_complex(value)
        raise PromotionError(f"the constant {value!r} has no dtype", f"write {as_constant(value)}")

    def cast(self, source: DType, target: DType) -> Promotion:
        if self.lattice is None and source.is_float and target.is_bool:
            return Promotion(target, target, "convert_truth")
        flushed = self.conversion(source, target)
        return Promotion(target, target, "convert_wrap" if flushed == "convert" else flushed)

    def conversion(self, source: DType, target: DType) -> str:
        flushed = self.lattice is None and (source, target) in _FLUSHED_CONVERSIONS
        return "convert_flushed" if flushed else "convert"

    def _as_compiled(self, promotion: Promotion) -> Promotion:
        """The promotion with what the package's code for a CPU does to floats: NaN answers some comparisons the other way,
        quotients are rounded before they are rounded down, and numbers below the normal range are zeros."""
        dtype = promotion.operands
        if self.lattice is not None or dtype not in _COMPILED:
            return promotion
        meaning = _COMPILED_AS.get(promotion.meaning, promotion.meaning)
        if meaning in _FLUSHES and dtype != dtypes.float16:
            meaning = f"{meaning}_flushed"
        if meaning == promotion.meaning:
            return promotion
        return replace(promotion, meaning=meaning, steps=(*promotion.steps, Step("compiled", meaning)))

    def _note(self, op: str, dtype: DType) -> tuple[Step, ...]:
        """The step that says of an op that the package types it and does not compile it."""
        if self.lattice is None and op in UNCOMPILED and UNCOMPILED[op](dtype):
            return (Step("not compiled", f"the graph accepts '{op}' of {dtype}, and MAX 26.7 fails to compile it"),)
        return ()

    def _alone(self, op: str, operand: Operand) -> DType:
        read = self._read(operand)
        if isinstance(read, DType):
            return read
        raise _all_weak(f"'{op}'", (operand,))

    def _read(self, operand: Operand) -> DType | Weak:
        """A strong operand by its dtype (a scalar is like any other), a weak one as it is."""
        match operand:
            case Constant():
                return constant_type(operand)
            case External():
                return operand
            case Type() if operand.weak:
                raise ValueError(
                    f"{self.name} has no weak type: it looks at the value, pass the number itself, found {operand}"
                )
            case Type():
                return operand.dtype
            case DType():
                return operand
            case _:
                refuse_complex(operand)
                return operand


def _both_strong(
    op: str, rule: OpRule, left: DType | Weak, right: DType | Weak
) -> tuple[DType, DType, tuple[Step, ...]]:
    """The operands with the weak one converted to the other's type."""
    if isinstance(left, DType):
        if isinstance(right, DType):
            return left, right, ()
        strong, weak = left, right
    elif isinstance(right, DType):
        strong, weak = right, left
    else:
        raise _all_weak(f"'{op}'", (left, right))
    if not rule.weak:
        raise PromotionError(f"'{op}' takes no number, found {show(weak)}", f"write {as_constant(weak, strong)}")
    return strong, strong, (admit(weak, strong),)


def _all_weak(what: str, operands: tuple[Operand, ...]) -> PromotionError:
    """The refusal of an operation in which no operand has a type of its own."""
    shown = " and ".join(map(show, operands))
    return PromotionError(
        f"{what} of {shown}: one side must be a tensor or a typed constant", f"write {_typed(operands[0])}"
    )


def _typed(operand: Operand) -> str:
    return as_constant(cast("Weak", operand))


@dataclass(frozen=True, slots=True)
class Conversion:
    """What implicit promotion does with one operand; its meaning is ``identity`` where the type stays."""

    source: DType
    target: DType

    @property
    def meaning(self) -> str:
        return "identity" if self.source == self.target else "convert_wrap"


max: Final = MaxSemantics(
    "max", "MAX as its documentation of type_promotion states it", LATTICE.nodes, join_of, LATTICE
)

max_26: Final = MaxSemantics(
    "max@26",
    "MAX as the package 26.7.0 computes it",
    (
        *(dtypes.bool_, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
        *(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
        *(dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64),
        *(dtypes.float4_e2m1fn, dtypes.float6_e2m3fn, dtypes.float6_e3m2fn, dtypes.float8_e8m0fnu),
        *(dtypes.float8_e4m3fn, dtypes.float8_e4m3fnuz, dtypes.float8_e5m2, dtypes.float8_e5m2fnuz),
    ),
    meet_safely,
)


def implicit_cast_type(lhs: object, rhs: object) -> DType:
    """The document's function: the least type to which both may be promoted. `ValueError` for one outside the lattice."""
    return max.promote(lhs, rhs).dtype


def implicit_cast(lhs: object, rhs: object) -> tuple[Conversion, Conversion]:
    """The document's function: what becomes of each operand, tensors or typed constants. `PromotionError` for a number."""
    sides = [max.operand(o) for o in (lhs, rhs)]
    types: list[DType] = []
    for side in sides:
        if not isinstance(side, (DType, Type, Constant)) or isinstance(side, External):
            raise PromotionError(
                f"implicit_cast takes operands with a type, found {show(side)}", f"write {_typed(side)}"
            )
        types.append(side if isinstance(side, DType) else side.dtype)
    target = implicit_cast_type(*types)
    return Conversion(types[0], target), Conversion(types[1], target)

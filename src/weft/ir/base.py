"""The tables of elementwise kinds, and the base class of all tile ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from xdsl.dialects.builtin import StringAttr, UnknownLoc
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import VerifyException

from weft.dtypes import DType
from weft.ir.types import defect, dtype_of, element_of, is_pointer, shape_of, tensor

_NOWHERE: Final = UnknownLoc()


class TileOp(IRDLOperation):
    """Base of the dialect's ops: whatever else they ask for, operands and results are values of tile IR."""

    def __init__(
        self,
        operands: Sequence[SSAValue | None] = (),
        result_types: Sequence[Attribute] = (),
        properties: Mapping[str, Attribute | None] | None = None,
        regions: Sequence[Region] = (),
    ):
        """Makes the op of exactly these values and attributes, less those that are None. It does not compare them with the op's
        declaration, as xDSL's own constructor does in three times the time: ``verify`` does."""
        given = properties or {}
        Operation.__init__(
            self,
            operands=[operand for operand in operands if operand is not None],
            result_types=result_types,
            properties={name: attribute for name, attribute in given.items() if attribute is not None},
            location=_NOWHERE,
            regions=regions,
        )

    def __post_init__(self) -> None:
        """Fills in default values, for a class that declares any. xDSL goes through all declarations for every op."""
        if _has_defaults(type(self)):
            super().__post_init__()

    def verify(self, verify_nested_ops: bool = True) -> None:
        for value in (*self.operands, *self.results):
            if reason := defect(value.type):
                raise VerifyException(f"{self.name}: {reason}")
        super().verify(verify_nested_ops)


@cache
def _has_defaults(kind: type[IRDLOperation]) -> bool:
    """Whether a property or attribute of a class has a default value."""
    declared = kind.get_irdl_definition()
    return any(
        getattr(each, "default_value", None) is not None
        for each in (*declared.properties.values(), *declared.attributes.values())
    )


@cache
def word(text: str) -> StringAttr:
    """A word of a property, of which the dialect has few: the attribute is made once."""
    return StringAttr(text)


FLOAT: Final = "float"
INTEGER: Final = "integer"
BOOL: Final = "bool"

UNARY: Final[dict[str, frozenset[str]]] = {
    "neg": frozenset({FLOAT, INTEGER, BOOL}),
    "not": frozenset({INTEGER, BOOL}),
    "abs": frozenset({FLOAT, INTEGER}),
    **dict.fromkeys(
        ("exp", "exp2", "log", "log2", "sqrt", "sqrt_rn", "rsqrt", "sin", "cos", "tanh", "erf", "floor", "ceil"),
        frozenset({FLOAT}),
    ),
    **dict.fromkeys(
        ("cbrt", "log10", "log1p", "tan"),
        frozenset({FLOAT}),
    ),
}
"""Unary kinds and the element kinds they take. ``not`` complements bits (of a bool: negates it). ``sqrt_rn`` is correctly
rounded; ``sqrt`` is too, unless the target approximates it (`weft.target.APPROXIMATIONS`)."""

BINARY: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("add", "sub", "mul"), frozenset({FLOAT, INTEGER, BOOL})),
    "div": frozenset({FLOAT, INTEGER, BOOL}),
    "div_rn": frozenset({FLOAT}),
    "rem": frozenset({FLOAT, INTEGER, BOOL}),
    **dict.fromkeys(("and", "or", "xor", "shl", "shr"), frozenset({INTEGER, BOOL})),
    "min": frozenset({FLOAT, INTEGER, BOOL}),
    "max": frozenset({FLOAT, INTEGER, BOOL}),
    "minnan": frozenset({FLOAT}),
    "maxnan": frozenset({FLOAT}),
    "umulhi": frozenset({INTEGER}),
    "pow": frozenset({FLOAT, INTEGER, BOOL}),
    "atan2": frozenset({FLOAT}),
}
"""Binary kinds. ``div_rn`` is the true division, correctly rounded; ``div`` of floats is too, unless the target approximates it
(`weft.target.APPROXIMATIONS`), of integers it is C's; ``rem`` has the sign of the dividend (fmod);
``shr`` is arithmetic for signed types; ``umulhi`` is the upper half of the
product of the operands read as unsigned; ``min``/``max`` return the number where one operand is NaN,
``minnan``/``maxnan`` NaN; `TIED_ZEROS` says what they give of two zeros. ``pow`` of integers wraps, and of a negative exponent
is 0; ``atan2(y, x)`` is the angle of the point."""

COMMUTATIVE: Final = frozenset({"add", "mul", "umulhi", "and", "or", "xor", "min", "max", "minnan", "maxnan"})
"""Binary kinds whose operands may be exchanged."""

TIED_ZEROS: Final = frozenset({"min", "max", "minnan", "maxnan"})
"""Binary kinds that may give either of two float zeros of different signs, and not the same one each time.

x86's ``minps`` gives the second zero, PTX's ``min.f32`` the negative one. A fixed choice would cost further instructions on one
of the machines, and passes could not exchange the operands."""

COMPARE: Final[tuple[str, ...]] = ("eq", "ne", "lt", "le", "gt", "ge")
"""Predicates; on floats ordered, except ``ne``, which is true for NaN."""

ATOMIC: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("add", "min", "max", "xchg"), frozenset({FLOAT, INTEGER})),
    **dict.fromkeys(("and", "or", "xor"), frozenset({INTEGER})),
}
"""Read-modify-write kinds: ``xchg`` stores the operand, each other does what the binary kind of its name does."""


def class_of(dtype: DType) -> str:
    """The column of the tables a dtype belongs to: `FLOAT`, `INTEGER` or `BOOL`."""
    return FLOAT if dtype.is_float else BOOL if dtype.is_bool else INTEGER


def check_kind(name: str, kind: str, table: dict[str, frozenset[str]], operand: SSAValue) -> None:
    """`VerifyException` unless ``table`` has ``kind`` and the kind takes the operand's element type."""
    if kind not in table:
        raise VerifyException(f"{name}: unknown kind '{kind}', expected one of {', '.join(table)}")
    if is_pointer(operand):
        raise VerifyException(f"{name} {kind} does not take pointers")
    dtype = dtype_of(operand)
    if class_of(dtype) not in table[kind]:
        raise VerifyException(f"{name} {kind} does not take {dtype}")


def check_axis(name: str, axis: int, rank: int) -> None:
    """`VerifyException` unless a tensor of ``rank`` has the dimension ``axis``."""
    if not 0 <= axis < rank:
        raise VerifyException(f"{name}: axis {axis} is out of range for rank {rank}")


def check_result(name: str, source: SSAValue, result: SSAValue, shape: Sequence[int]) -> None:
    """`VerifyException` unless ``result`` has the elements of ``source`` in ``shape``."""
    if shape_of(result) != tuple(shape) or element_of(result) != element_of(source):
        wanted = tensor(element_of(source), shape)
        raise VerifyException(f"{name} of {source.type}: expected {wanted}, found {result.type}")


def same_either_way(kind: str, dtype: DType) -> bool:
    """Whether a binary kind has the same bits with its operands exchanged."""
    return kind in COMMUTATIVE and not (dtype.is_float and kind in TIED_ZEROS)

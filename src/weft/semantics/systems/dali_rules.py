"""DALI's rules as data: its types, the two lattices they form, what each operation takes and does.

The six lines of the promotion are edges of a graph. `Lattice` checks at import that every pair of types has one join, so the
lines agree with each other. `rule` only tells which line a join came from. `weft.semantics.systems.dali` states the lines, and
reads these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft import dtypes
from weft.dtypes import DType, Kind
from weft.semantics.core import Step
from weft.semantics.lattice import Lattice
from weft.semantics.ops import COMPARISONS
from weft.semantics.systems.family import FAMILY

UNSIGNED: Final = (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
SIGNED: Final = (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
TYPES: Final = (dtypes.bool_, *UNSIGNED, *SIGNED, dtypes.float16, dtypes.float32, dtypes.float64)
"""The element types of DALI, in the order its tables are printed."""

int128: Final = DType("int128", Kind.INTEGER, 128, True, "int128")
"""What the document's rule gives uint64 with a signed integer. DALI has no such type."""


def _lattice(twice_uint64: DType, lowest_float: DType) -> Lattice[DType]:
    """The rules as a graph: each type below the next of its kind, each unsigned one below the signed one of twice its width."""
    floats = [d for d in TYPES if d.is_float and d.bits >= lowest_float.bits]
    signed = (*SIGNED, *(int128,) * (twice_uint64 is int128))
    edges: dict[DType, list[DType]] = {dtypes.bool_: [dtypes.uint8, dtypes.int8]}
    for narrow, wide, twice in zip(UNSIGNED, (*UNSIGNED[1:], None), (*SIGNED[1:], twice_uint64), strict=True):
        edges[narrow] = [twice] if wide is None else [wide, twice]
    for narrow, wide in zip((*signed, *floats), (*signed[1:], *floats, None), strict=True):
        edges[narrow] = [] if wide is None else [wide]
    return Lattice(edges)


DOCUMENT_LATTICE: Final = _lattice(int128, dtypes.float16)
"""The document's rules; int128 stands for the type they name and DALI lacks."""

PACKAGE_LATTICE: Final = _lattice(dtypes.int64, dtypes.float32)
"""The package's; without float16, with which it does not compute."""


@dataclass(frozen=True)
class OpRule:
    """What an operation does in the common type.

    ``floats_as`` is its meaning on floats where that is another one; ``floats`` whether it takes them; ``integers_as`` the
    type integers are computed in; ``result`` its type where that is not the common one.
    """

    meaning: str
    floats_as: str = ""
    floats: bool = True
    integers_as: DType | None = None
    result: DType | None = None


BINARY: Final[Mapping[str, OpRule]] = {
    "+": OpRule("add"),
    "-": OpRule("sub"),
    "*": OpRule("mul"),
    "/": OpRule("divide", integers_as=dtypes.float32),
    "//": OpRule("truncate_divide_checked", floats_as="divide"),
    "%": OpRule("truncate_remainder_checked"),
    "**": OpRule("power"),
    "&": OpRule("and", floats=False),
    "|": OpRule("or", floats=False),
    "^": OpRule("xor", floats=False),
    "<<": OpRule("shift_left_masked", floats=False),
    ">>": OpRule("shift_right_masked", floats=False),
    "<": OpRule("less", result=dtypes.bool_),
    "<=": OpRule("less_equal", result=dtypes.bool_),
    ">": OpRule("greater", result=dtypes.bool_),
    ">=": OpRule("greater_equal", result=dtypes.bool_),
    "==": OpRule("equal", result=dtypes.bool_),
    "!=": OpRule("not_equal", result=dtypes.bool_),
    "minimum": OpRule("minimum", floats_as="minimum_less"),
    "maximum": OpRule("maximum", floats_as="maximum_greater"),
    "atan2": OpRule("atan2", integers_as=dtypes.float32),
    "fpow": OpRule("power", integers_as=dtypes.float32),
    "fdiv": OpRule("divide", integers_as=dtypes.float32),
}
"""The operations of two operands: Python's, and those of ``nvidia.dali.math`` (``fdiv`` is its name for ``/``)."""

BOOLS: Final = frozenset({"*", "&", "|", "^", "~", *COMPARISONS})
"""What takes bools alone in both versions."""

CLAMP: Final = OpRule("clamp", floats_as="clamp_compare")
"""The operation of three operands."""

_FUNCTIONS: Final = (
    "sqrt",
    "rsqrt",
    "cbrt",
    "exp",
    "log",
    "log2",
    "log10",
    "sin",
    "cos",
    "tan",
    "tanh",
    "floor",
    "ceil",
)

UNARY: Final[Mapping[str, OpRule]] = {
    "pos": OpRule("identity"),
    "neg": OpRule("neg"),
    "~": OpRule("not", floats=False),
    "abs": OpRule("abs"),
    "fabs": OpRule("abs", integers_as=dtypes.float32),
    **{name: OpRule(name, integers_as=dtypes.float32) for name in _FUNCTIONS},
    **{name: OpRule(name, integers_as=dtypes.float32) for name, row in FAMILY.items() if row.dali},
}
"""The operations of one operand."""

_REDUCED: Final = (*UNSIGNED, *SIGNED, dtypes.float32)

REDUCTIONS: Final[Mapping[str, Mapping[DType, DType]]] = {
    "sum": {
        **dict.fromkeys(UNSIGNED, dtypes.uint64),
        **dict.fromkeys(SIGNED, dtypes.int64),
        dtypes.float32: dtypes.float32,
    },
    "mean": dict.fromkeys(_REDUCED, dtypes.float32),
    **{name: dict.fromkeys(_REDUCED, dtypes.float32) for name in ("var", "std")},
    "max": {d: d for d in _REDUCED},
    "min": {d: d for d in _REDUCED},
}
"""``fn.reductions``: for each type it takes the type it computes in and gives, where no ``dtype=`` is asked for."""


def rule(a: DType, b: DType, common: DType) -> Step:
    """Which of the document's lines, or the package's cap, gives ``common`` for two types."""
    if a == b:
        return Step("same type", f"{a} on both sides stays {a}")
    if a.is_float and b.is_float:
        return Step("wider float", f"{a} and {b}: the wider float, {common}")
    if a.is_float or b.is_float:
        return Step("float wins", f"{a} and {b}: the float, however wide the other side, {common}")
    if dtypes.bool_ in (a, b):
        return Step("bool is uint1", f"{a} and {b}: bool is uint1, narrower than any integer, {common}")
    if a.signed == b.signed:
        return Step("wider integer", f"{a} and {b}: the wider integer, {common}")
    signed, unsigned = (a, b) if a.signed else (b, a)
    if signed.bits > unsigned.bits:
        return Step("wider signed", f"{a} and {b}: the signed side is wider, {common}")
    if common.bits == unsigned.bits:
        return Step(
            "cap", f"{a} and {b}: int of twice the unsigned width, int{2 * unsigned.bits}, is capped at {common}"
        )
    return Step("twice the unsigned width", f"{a} and {b}: int of twice the unsigned width, {common}")

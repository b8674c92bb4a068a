"""What each meaning of `weft.semantics.meanings` is in tile IR: tables read by the operators and by ``tl.meaning``.

One would let every operator of every system emit its own ops. Here a system names what an operation does, and a table says it
in ops: one op where tile IR has it, a short sequence otherwise. `weft.semantics.evaluate` says the same in NumPy, and tests
compare the two. An entry is by the class of element types; a class it lacks, the meaning does not take.

Sequences of floats narrower than 32 bits are computed in float32 and rounded once at their end. Nothing can be raised at run
time: a ``*_checked`` meaning does here what the unchecked one does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError, nearest
from weft.frontend.meanings import floats, integers
from weft.frontend.meanings.comparisons import COMPARISONS, exactly
from weft.frontend.meanings.conversions import CONVERSIONS
from weft.frontend.values import Tensor
from weft.ir.tile import BOOL, FLOAT, INTEGER, class_of
from weft.semantics.meanings import MEANINGS

__all__ = ["COMPARISONS", "CONVERSIONS", "NOT_ELEMENTWISE", "TABLES", "apply", "arity", "exactly"]

Emit = Callable[..., Tensor]
"""``emit(builder, *operands)``, the operands of one dtype and one shape."""

Entry = Mapping[str, Emit]
"""Class of element types -> what to emit."""

_ALL: Final = (FLOAT, INTEGER, BOOL)
_INTEGRAL: Final = (INTEGER, BOOL)


def _unary(kind: str) -> Emit:
    return lambda b, x: b.unary(kind, x)


def _binary(kind: str) -> Emit:
    return lambda b, x, y: b.binary(kind, x, y)


def _compare(kind: str) -> Emit:
    return lambda b, x, y: b.compare(kind, x, y)


def _clamp(greatest: str, least: str) -> Emit:
    return lambda b, x, low, high: b.binary(least, b.binary(greatest, x, low), high)


def _prefer(kind: str) -> Emit:
    """``x`` where ``x kind y``, else ``y``."""
    return lambda b, x, y: b.select(b.compare(kind, x, y), x, y)


def _clamp_compare(b: Builder, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    x = b.select(b.compare("lt", x, low), low, x)
    return b.select(b.compare("gt", x, high), high, x)


def _identity(b: Builder, x: Tensor) -> Tensor:
    return x


def _select(b: Builder, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    return b.select(condition, x, y)


def _square(b: Builder, x: Tensor) -> Tensor:
    return b.binary("mul", x, x)


def _wide(emit: Emit) -> Emit:
    """A sequence in the compute type of its operands, rounded once."""

    def wide(b: Builder, *operands: Tensor) -> Tensor:
        dtype = operands[0].dtype
        return b.cast(emit(b, *(b.cast(x, dtype.compute) for x in operands)), dtype)

    return wide


def _on(classes: tuple[str, ...], emit: Emit) -> dict[str, Emit]:
    return dict.fromkeys(classes, emit)


_FLOOR_DIVIDE: Final[Entry] = {
    FLOAT: _wide(floats.floor_divide),
    INTEGER: integers.floor_divide,
    BOOL: _binary("div"),
}
_FLOOR_REMAINDER: Final[Entry] = {
    FLOAT: _wide(floats.floor_remainder),
    INTEGER: integers.floor_remainder,
    BOOL: lambda b, x, y: b.constant(False, x.dtype, x.shape),
}

UNARY: Final[Mapping[str, Entry]] = {
    **dict.fromkeys(("identity", "real"), _on(_ALL, _identity)),
    "neg": _on(_ALL, _unary("neg")),
    "not": _on(_INTEGRAL, _unary("not")),
    "abs": {FLOAT: _unary("abs"), INTEGER: _unary("abs"), BOOL: _identity},
    "sign": {FLOAT: floats.sign, INTEGER: integers.sign, BOOL: _identity},
    "square": _on(_ALL, _square),
    **{
        name: {FLOAT: _unary(name)}
        for name in ("sqrt", "rsqrt", "cbrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "erf")
    },
    "sigmoid": {FLOAT: _wide(floats.sigmoid)},
    "floor": {**_on(_INTEGRAL, _identity), FLOAT: _unary("floor")},
    "ceil": {**_on(_INTEGRAL, _identity), FLOAT: _unary("ceil")},
}
"""The meanings of one operand."""

BINARY: Final[Mapping[str, Entry]] = {
    **{name: _on(_ALL, _binary(name)) for name in ("add", "sub", "mul")},
    "divide": {FLOAT: _binary("div")},
    **dict.fromkeys(("truncate_divide", "truncate_divide_checked"), _on(_INTEGRAL, _binary("div"))),
    **dict.fromkeys(("floor_divide", "floor_divide_checked"), _FLOOR_DIVIDE),
    "floor_divide_xla": {**_FLOOR_DIVIDE, INTEGER: integers.floor_divide_xla, BOOL: integers.or_not},
    "ceil_divide": _on(_INTEGRAL, integers.ceil_divide),
    **dict.fromkeys(("truncate_remainder", "truncate_remainder_checked"), _on(_ALL, _binary("rem"))),
    **dict.fromkeys(("floor_remainder", "floor_remainder_checked"), _FLOOR_REMAINDER),
    **dict.fromkeys(("power", "power_checked"), _on(_ALL, _binary("pow"))),
    **{name: _on(_INTEGRAL, _binary(name)) for name in ("and", "or", "xor")},
    "shift_left": _on(_INTEGRAL, _binary("shl")),
    "shift_right": _on(_INTEGRAL, _binary("shr")),
    "shift_right_arithmetic": {INTEGER: integers.shift_right_arithmetic, BOOL: lambda b, x, y: x},
    "shift_right_logical": {INTEGER: integers.shift_right_logical, BOOL: _binary("shr")},
    "shift_left_masked": _on(_INTEGRAL, integers.shift_left_masked),
    "shift_right_masked": _on(_INTEGRAL, integers.shift_right_masked),
    **{name: _on(_ALL, _compare(kind)) for name, kind in COMPARISONS.items()},
    "minimum": _on(_ALL, _binary("min")),
    "maximum": _on(_ALL, _binary("max")),
    "minimum_nan": {**_on(_INTEGRAL, _binary("min")), FLOAT: _binary("minnan")},
    "maximum_nan": {**_on(_INTEGRAL, _binary("max")), FLOAT: _binary("maxnan")},
    "minimum_less": {**_on(_INTEGRAL, _binary("min")), FLOAT: _prefer("lt")},
    "maximum_greater": {**_on(_INTEGRAL, _binary("max")), FLOAT: _prefer("gt")},
    "atan2": {FLOAT: _binary("atan2")},
    "logaddexp": {FLOAT: _wide(floats.logaddexp)},
}
"""The meanings of two operands."""

TERNARY: Final[Mapping[str, Entry]] = {
    "select": _on(_ALL, _select),
    "clamp": {**_on(_INTEGRAL, _clamp("max", "min")), FLOAT: _clamp("maxnan", "minnan")},
    "clamp_compare": {**_on(_INTEGRAL, _clamp("max", "min")), FLOAT: _clamp_compare},
}
"""The meanings of three operands: the condition, ``x`` and ``y``; the value, the least and the greatest."""

TABLES: Final[Mapping[int, Mapping[str, Entry]]] = {1: UNARY, 2: BINARY, 3: TERNARY}

NOT_ELEMENTWISE: Final[Mapping[str, str]] = {
    **{name: f"use tl.{name}" for name in ("sum", "max", "min", "argmax", "argmin")},
    **dict.fromkeys(("prod", "mean", "cumsum", "any", "all"), "use tl.reduce"),
    "matmul": "use tl.dot",
    "concat": "store the parts one after the other",
}
"""The meanings that are no function of single elements, and what kernels use instead."""

_CLASSES: Final[Mapping[str, str]] = {FLOAT: "floats", INTEGER: "integers", BOOL: "bools"}


def arity(meaning: str) -> int:
    """How many operands an elementwise meaning takes (a conversion: 1); `CompilationError` for another name."""
    for count, table in TABLES.items():
        if meaning in table:
            return count
    if meaning in CONVERSIONS:
        return 1
    if (instead := NOT_ELEMENTWISE.get(meaning)) is not None:
        raise CompilationError(f"'{meaning}' is no function of single elements", hint=instead, argument="name")
    raise CompilationError(f"there is no meaning '{meaning}'", hint=nearest(meaning, MEANINGS), argument="name")


def apply(b: Builder, meaning: str, *operands: Tensor) -> Tensor:
    """``meaning`` (one of `TABLES`) of operands that have one dtype, but for the condition of ``select``, and one shape.
    `CompilationError` where the meaning does not take the dtype."""
    entry, dtype = TABLES[len(operands)][meaning], operands[-1].dtype
    emit = entry.get(class_of(dtype))
    if emit is None:
        takes = " and ".join(_CLASSES[c] for c in entry)
        raise CompilationError(f"'{meaning}' takes {takes}, found {dtype}", hint="convert the operands")
    return emit(b, *operands)

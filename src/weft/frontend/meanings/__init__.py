"""What each meaning of `weft.semantics.meanings` is in tile IR: tables read by the operators and by ``tl.meaning``.

A system names what an operation does, and a table implements each name in ops: one op where tile IR has it, a short sequence
otherwise. `weft.semantics.evaluate` says the same in NumPy, and tests compare the two. An entry is by the class of element
types; a class it lacks, the meaning does not take.

Sequences of floats narrower than 32 bits are computed in float32 and rounded once at their end. Nothing can be raised at run
time: a ``*_checked`` meaning does here what the unchecked one does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from weft.frontend.builder import Builder
from weft.frontend.errors import CompilationError, nearest
from weft.frontend.meanings import floats, integers, packages
from weft.frontend.meanings.comparisons import COMPARISONS, PYTHON, exactly
from weft.frontend.meanings.conversions import CONVERSIONS
from weft.frontend.values import Tensor
from weft.ir.tile import BOOL, FLOAT, INTEGER, class_of
from weft.semantics.meanings import FLUSHED, MEANINGS, TRUTHS

__all__ = ["COMPARISONS", "COMPOSED", "CONVERSIONS", "NOT_ELEMENTWISE", "PYTHON", "TABLES", "apply", "arity", "exactly"]

Emit = Callable[..., Tensor]
"""``emit(builder, *operands)``, the operands of one dtype and one shape."""

_Unary = Callable[[Builder, Tensor], Tensor]
_Binary = Callable[[Builder, Tensor, Tensor], Tensor]
_Ternary = Callable[[Builder, Tensor, Tensor, Tensor], Tensor]

Entry = Mapping[str, Emit]
"""Class of element types -> what to emit."""


def _entry(floats: Emit | None = None, integers: Emit | None = None, bools: Emit | None = None) -> Entry:
    given = {FLOAT: floats, INTEGER: integers, BOOL: bools}
    return {class_: emit for class_, emit in given.items() if emit is not None}


def _all(emit: Emit) -> Entry:
    return _entry(emit, emit, emit)


def _integral(emit: Emit, floats: Emit | None = None) -> Entry:
    return _entry(floats, emit, emit)


def _unary(kind: str) -> _Unary:
    return lambda b, x: b.unary(kind, x)


def _binary(kind: str) -> _Binary:
    return lambda b, x, y: b.binary(kind, x, y)


def _compare(kind: str) -> _Binary:
    return lambda b, x, y: b.compare(kind, x, y)


def _prefer(kind: str) -> _Binary:
    """``x`` where ``x kind y``, else ``y``."""
    return lambda b, x, y: b.select(b.compare(kind, x, y), x, y)


def _clamp(greatest: str, least: str) -> _Ternary:
    return lambda b, x, low, high: b.binary(least, b.binary(greatest, x, low), high)


def _clamp_compare(b: Builder, x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    x = b.select(b.compare("lt", x, low), low, x)
    return b.select(b.compare("gt", x, high), high, x)


def _identity(b: Builder, x: Tensor) -> Tensor:
    return x


def _first(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    return x


def _false(b: Builder, x: Tensor, y: Tensor) -> Tensor:
    return b.constant(False, x.dtype, x.shape)


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


_FLOOR_DIVIDE: Final = _entry(_wide(floats.floor_divide), integers.floor_divide, _binary("div"))
_FLOOR_REMAINDER: Final = _entry(_wide(floats.floor_remainder), integers.floor_remainder, _false)
_PRODUCTS: Final = (
    *("mul_saturated", "mul_left_bool", "mul_right_bool", "multiply_reciprocal", "multiply_reciprocal_left_bool"),
    *("multiply_reciprocal_float16", "multiply_reciprocal_bfloat16"),
)
_FUNCTIONS: Final = (
    *("sqrt", "rsqrt", "cbrt", "exp", "exp2", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "tanh"),
    "erf",
)

UNARY: Final[dict[str, Entry]] = {
    **dict.fromkeys(("identity", "real"), _all(_identity)),
    "neg": _all(_unary("neg")),
    "not": _integral(_unary("not")),
    "abs": _entry(_unary("abs"), _unary("abs"), _identity),
    "abs_compare": _entry(packages.FLOATS["abs_compare"], _unary("abs"), _identity),
    "sign": _entry(floats.sign, integers.sign, _identity),
    **{n: _entry(packages.FLOATS[n], integers.sign, _identity) for n in ("sign_positive", "sign_compare")},
    "rsqrt_newton": _entry(packages.FLOATS["rsqrt_newton"]),
    "square": _all(_square),
    **{name: _entry(_unary(name)) for name in _FUNCTIONS},
    "sigmoid": _entry(_wide(floats.sigmoid)),
    **{name: _entry(packages.FLOATS[name]) for name in ("exp2_xla", "sigmoid_xla")},
    **{name: _integral(_identity, floats=_unary(name)) for name in ("floor", "ceil")},
}
"""The meanings of one operand."""

BINARY: Final[dict[str, Entry]] = {
    **{name: _all(_binary(name)) for name in ("add", "sub", "mul")},
    "divide": _entry(_binary("div")),
    **dict.fromkeys(("truncate_divide", "truncate_divide_checked"), _integral(_binary("div"))),
    **dict.fromkeys(("floor_divide", "floor_divide_checked"), _FLOOR_DIVIDE),
    **{n: _entry(packages.FLOATS[n]) for n in _PRODUCTS},
    "floor_divide_stepped": _entry(packages.FLOATS["floor_divide_stepped"]),
    "floor_divide_xla": _entry(packages.FLOATS["floor_divide_xla"], integers.floor_divide_xla, integers.or_not),
    "ceil_divide": _integral(integers.ceil_divide),
    "ceil_divide_floor": _entry(_wide(floats.ceil_divide_floor), integers.ceil_divide_floor, integers.ceil_divide),
    **dict.fromkeys(("truncate_remainder", "truncate_remainder_checked"), _all(_binary("rem"))),
    **dict.fromkeys(
        ("truncate_remainder_zero", "truncate_remainder_zero_checked"),
        _entry(_binary("rem"), integers.truncate_remainder_zero, _false),
    ),
    **dict.fromkeys(("floor_remainder", "floor_remainder_checked"), _FLOOR_REMAINDER),
    **dict.fromkeys(("power", "power_checked"), _all(_binary("pow"))),
    "floor_remainder_signed": {**_FLOOR_REMAINDER, FLOAT: packages.FLOATS["floor_remainder_signed"]},
    "power_units": _entry(_binary("pow"), integers.power_units, _binary("pow")),
    "power_xla": _entry(_binary("pow"), integers.power_xla, _binary("pow")),
    **{name: _integral(_binary(name)) for name in ("and", "or", "xor")},
    "shift_left": _integral(_binary("shl")),
    "shift_right": _integral(_binary("shr")),
    "shift_right_arithmetic": _entry(None, integers.shift_right_arithmetic, _first),
    "shift_right_logical": _entry(None, integers.shift_right_logical, _binary("shr")),
    "shift_left_masked": _integral(integers.shift_left_masked),
    "shift_right_masked": _integral(integers.shift_right_masked),
    **{name: _all(_compare(kind)) for name, kind in COMPARISONS.items()},
    **{
        f"{name}_{side}_integer": _entry(packages.integer_side(kind, side == "left"))
        for name, kind in COMPARISONS.items()
        for side in ("left", "right")
    },
    "minimum": _all(_binary("min")),
    "maximum": _all(_binary("max")),
    "minimum_nan": _integral(_binary("min"), floats=_binary("minnan")),
    "maximum_nan": _integral(_binary("max"), floats=_binary("maxnan")),
    "minimum_less": _integral(_binary("min"), floats=_prefer("lt")),
    "maximum_greater": _integral(_binary("max"), floats=_prefer("gt")),
    "atan2": _entry(_binary("atan2")),
    "logaddexp": _entry(_wide(floats.logaddexp)),
    **{name: _entry(packages.FLOATS[name]) for name in ("logaddexp_xla", "logaddexp2_xla")},
    **{name: _entry(packages.FLOATS[name]) for name in ("minimum_chosen", "maximum_chosen")},
    **{name: _entry(packages.FLOATS[name]) for name in ("floor_divide_quotient", "floor_remainder_fused")},
    "less_unordered": _entry(packages.unordered("ge")),
    "less_equal_unordered": _entry(packages.unordered("gt")),
    "not_equal_ordered": _entry(packages.ordered_not_equal),
}
"""The meanings of two operands."""

TERNARY: Final[dict[str, Entry]] = {
    "select": _all(_select),
    "clamp": _integral(_clamp("max", "min"), floats=_clamp("maxnan", "minnan")),
    "clamp_compare": _integral(_clamp("max", "min"), floats=_clamp_compare),
}
"""The meanings of three operands: the condition, ``x`` and ``y``; the value, the least and the greatest."""


def _flushed(table: Mapping[str, Entry]) -> dict[str, Entry]:
    """A table with the forms of its meanings whose subnormal numbers are zeros."""
    forms = {
        f"{name}_flushed": _entry(
            packages.FLOATS.get(f"{name}_flushed") or packages.flushed(table[name][FLOAT], name in TRUTHS)
        )
        for name in FLUSHED
        if name in table
    }
    return {**table, **forms}


TABLES: Final[Mapping[int, Mapping[str, Entry]]] = {
    count: _flushed(table) for count, table in enumerate((UNARY, BINARY, TERNARY), 1)
}
"""How many operands -> the meanings of so many."""


def _and_flushed(table: Mapping[str, str]) -> Mapping[str, str]:
    """The advice for a meaning is that for its form without subnormal numbers too."""
    return dict(table) | {f"{name}_flushed": table[name] for name in FLUSHED if name in table}


NOT_ELEMENTWISE: Final[Mapping[str, str]] = _and_flushed(
    {
        **{name: f"use tl.{name}" for name in ("sum", "max", "min", "argmax", "argmin", "cumsum")},
        **dict.fromkeys(("prod", "mean", "any", "all", "var", "std", "logsumexp"), "use tl.reduce"),
        "cumprod": "use tl.cumprod",
        **dict.fromkeys(("cummax", "cummin"), "use tl.associative_scan"),
        "matmul": "use tl.dot",
        "concat": "store the parts one after the other",
    }
)

"""The meanings that are no function of single elements, and what kernels use instead."""

LIBDEVICE: Final[Mapping[str, str]] = {
    **{f"a{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: name for name in ("expm1", "sinh", "cosh", "erfc", "lgamma", "rint", "trunc", "hypot")},
    **{name: name for name in ("copysign", "isnan", "isinf", "signbit")},
    "round_away": "round",
    "isfinite": "isfinited",
}
"""The meanings that are functions of libdevice in the kernel language, by their names there."""

COMPOSED: Final[Mapping[str, str]] = _and_flushed(
    {
        **{name: f"use libdevice.{function}" for name, function in LIBDEVICE.items()},
        **{f"{name}_xla": f"use libdevice.{name}" for name in ("sinh", "cosh")},
        "isposinf": "write x == float('inf')",
        "isneginf": "write x == -float('inf')",
        "reciprocal": "write 1 / x",
        **dict.fromkeys(("imag", "conj", "angle", "angle_real"), "compute it of the parts"),
        **dict.fromkeys(("heaviside", "heaviside_compare"), "use tl.where"),
        "logaddexp2": 'use tl.meaning("logaddexp", x, y) of x and y times log(2)',
    }
)
"""The meanings that kernels write with other functions, and how."""

_CLASSES: Final[Mapping[str, str]] = {FLOAT: "floats", INTEGER: "integers", BOOL: "bools"}


def arity(meaning: str) -> int:
    """How many operands an elementwise meaning takes (a conversion: 1); `CompilationError` for another name."""
    for count, table in TABLES.items():
        if meaning in table:
            return count
    if meaning in CONVERSIONS:
        return 1
    if (instead := COMPOSED.get(meaning)) is not None:
        raise CompilationError(f"tl.meaning has no '{meaning}'", hint=instead, argument="name")
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

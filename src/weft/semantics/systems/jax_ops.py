"""What each operation of JAX does beyond joining types, as data.

Operations differ in few things, so each is a row: the kinds it takes once its operands are joined, whether bools count as
int32 and other integers as floats, what the result is where it is not the joined type, and the name under which JAX reports
it. `OpRule` says what the columns mean.

Where JAX computes something other than the operation, the row refuses (`NARROW`): jax 0.10.2 divides int2 as
integers, takes means of int2 in int2, and fails inside on sums and powers of the types below int8.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft import dtypes
from weft.dtypes import DType, Kind

ANY: Final = frozenset(Kind)
NUMBERS: Final = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.COMPLEX})
REALS: Final = frozenset({Kind.BOOL, Kind.INTEGER, Kind.FLOAT})
BITS: Final = frozenset({Kind.BOOL, Kind.INTEGER})
INTEGERS: Final = frozenset({Kind.INTEGER})
INEXACT: Final = frozenset({Kind.FLOAT, Kind.COMPLEX})
FLOATS: Final = frozenset({Kind.FLOAT})

KIND_NAMES: Final[Mapping[Kind, str]] = {
    Kind.BOOL: "bool",
    Kind.INTEGER: "integers",
    Kind.FLOAT: "floats",
    Kind.COMPLEX: "complex numbers",
}


@dataclass(frozen=True)
class OpRule:
    """One operation.

    ``takes``: the kinds it accepts after the conversions below; ``lax`` the name it then refuses by, ``advice`` the way
    out. ``bools_as``: the type two bools are computed in; ``bool_meaning``: what it does on bools where that is another
    meaning. ``inexact``: integers and bools are computed as floats. ``result``: its type where that is not the joined one;
    ``real``: of complex numbers the result is their parts' type. ``strong``: the result is strong though the operands are
    weak.
    """

    meaning: str
    takes: frozenset[Kind] = ANY
    lax: str = ""
    advice: str = ""
    bools_as: DType | None = None
    bool_meaning: str = ""
    inexact: bool = False
    result: DType | None = None
    real: bool = False
    strong: bool = False


_TO_INTEGER: Final = "convert with .astype(jnp.int32)"
_TO_FLOAT: Final = "convert with .astype(jnp.float32)"
_REAL_PART: Final = "take the part you mean: .real or .imag"


def _bits(meaning: str, lax: str) -> OpRule:
    return OpRule(meaning, BITS, lax, advice=_TO_INTEGER)


def _shift(meaning: str, lax: str) -> OpRule:
    return OpRule(meaning, INTEGERS, lax, advice=_TO_INTEGER, bools_as=dtypes.int32)


def _compare(meaning: str) -> OpRule:
    return OpRule(meaning, result=dtypes.bool_)


BINARY: Final[Mapping[str, OpRule]] = {
    "+": OpRule("add", bool_meaning="or"),
    "-": OpRule("sub", NUMBERS, "sub", advice="use ^ on bools, or convert with .astype(jnp.int32)"),
    "*": OpRule("mul", bool_meaning="and"),
    "/": OpRule("divide", INEXACT, "div", inexact=True),
    "//": OpRule("floor_divide_xla", REALS, "floor_divide", advice=_REAL_PART, bools_as=dtypes.int32),
    "%": OpRule("floor_remainder", REALS, "rem", advice=_REAL_PART, bools_as=dtypes.int32),
    "**": OpRule("power_xla", lax="pow", bools_as=dtypes.int32),
    "&": _bits("and", "and"),
    "|": _bits("or", "or"),
    "^": _bits("xor", "xor"),
    "<<": _shift("shift_left", "shift_left"),
    ">>": _shift("shift_right", "shift_right_arithmetic"),
    "<": _compare("less"),
    "<=": _compare("less_equal"),
    ">": _compare("greater"),
    ">=": _compare("greater_equal"),
    "==": _compare("equal"),
    "!=": _compare("not_equal"),
    "where": OpRule("select"),
    "minimum": OpRule("minimum_nan"),
    "maximum": OpRule("maximum_nan"),
    "atan2": OpRule("atan2", INEXACT, "atan2", inexact=True),
    "logaddexp": OpRule("logaddexp", INEXACT, "logaddexp", inexact=True),
    "fmod": OpRule("truncate_remainder_zero", REALS, "rem", advice=_REAL_PART, bools_as=dtypes.int32),
    "fpow": OpRule("power", INEXACT, "pow", inexact=True),
    "matmul": OpRule("matmul"),
    "concat": OpRule("concat"),
}
"""The operations of two operands."""

CLAMP: Final = OpRule("clamp", REALS, "clip", advice=_REAL_PART)
"""``jnp.clip``."""


def _function(name: str, takes: frozenset[Kind] = INEXACT) -> OpRule:
    return OpRule(name, takes, name, advice=_REAL_PART, inexact=True)


def _rounding(name: str) -> OpRule:
    return OpRule(name, REALS, name, advice=_REAL_PART)


UNARY: Final[Mapping[str, OpRule]] = {
    "pos": OpRule("identity"),
    "neg": OpRule("neg", NUMBERS, "neg", advice="use ~ on bools, or convert with .astype(jnp.int32)"),
    "~": OpRule("not", BITS, "not", advice=_TO_INTEGER),
    "not": OpRule("not", result=dtypes.bool_),
    "abs": OpRule("abs", real=True, lax="abs"),
    "fabs": OpRule("abs", FLOATS, "fabs", advice="use jnp.abs", inexact=True),
    "sign": OpRule("sign", NUMBERS, "sign", advice=_TO_INTEGER),
    "square": OpRule("square", bools_as=dtypes.int32),
    **{name: _function(name) for name in ("sqrt", "exp", "exp2", "log", "sin", "cos", "tan", "tanh")},
    **{name: _function(name, FLOATS) for name in ("cbrt", "erf")},
    **{name: OpRule(name, INEXACT, name, inexact=True, strong=True) for name in ("log2", "log10")},
    "rsqrt": OpRule("rsqrt", INEXACT, "rsqrt", advice=_TO_FLOAT),
    "sigmoid": OpRule("sigmoid", INEXACT, "logistic", advice=_TO_FLOAT),
    "floor": _rounding("floor"),
    "ceil": _rounding("ceil"),
    "real": OpRule("real", real=True),
}
"""The operations of one operand; ``not`` is ``jnp.logical_not``."""


def _reduce(name: str, inexact: bool = False) -> OpRule:
    return OpRule(name, lax=name, strong=True, inexact=inexact)


REDUCTIONS: Final[Mapping[str, OpRule]] = {
    **{name: _reduce(name) for name in ("sum", "prod", "max", "min", "cumsum")},
    **{name: OpRule(name, lax=name) for name in ("argmax", "argmin")},
    "mean": _reduce("mean", inexact=True),
    "cumprod": _reduce("cumprod"),
    **{name: OpRule(name, NUMBERS, name, advice="convert with .astype(jnp.int32)") for name in ("cummax", "cummin")},
    **{name: OpRule(name, lax=name, strong=True, inexact=True, real=True) for name in ("var", "std")},
    "logsumexp": _reduce("logsumexp", inexact=True),
    "any": OpRule("any", result=dtypes.bool_, strong=True),
    "all": OpRule("all", result=dtypes.bool_, strong=True),
}
"""The reductions. ``sum`` and ``prod`` widen integers, ``cumsum`` only bools (`JaxSemantics.reduction`)."""

_TINY: Final = frozenset({dtypes.int2, dtypes.uint2, dtypes.int4, dtypes.uint4})
_TINIEST: Final = frozenset({dtypes.int2, dtypes.uint2})

NARROW: Final[Mapping[str, frozenset[DType]]] = {
    "abs": frozenset({dtypes.int2, dtypes.int4}),
    **dict.fromkeys(("sum", "prod", "**"), _TINY),
    **dict.fromkeys(("mean", "var", "std", "logsumexp"), _TINIEST),
    **{op: _TINIEST for table in (BINARY, UNARY) for op, rule in table.items() if rule.inexact},
}
"""The types below int8 that an operation does not compute with."""

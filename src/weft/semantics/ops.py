"""The operations promotion is asked about, and how they may be spelled.

One name for each: Python's symbol where it has one (``+``), else the word most systems use (``where``, ``minimum``). `canonical`
accepts NumPy's, JAX's, PyTorch's and DALI's words too (``add``, ``true_divide``, ``arctan2``). A system refuses the ones it
lacks.
"""

from __future__ import annotations

from typing import Final

from weft.nearest import did_you_mean

ARITHMETIC: Final = ("+", "-", "*", "/", "//", "%", "**")
BITWISE: Final = ("&", "|", "^")
SHIFTS: Final = ("<<", ">>")
COMPARISONS: Final = ("<", "<=", ">", ">=", "==", "!=")
DIVISIONS: Final = ("/", "//", "%")

BINARY: Final[tuple[str, ...]] = (
    *ARITHMETIC,
    *BITWISE,
    *SHIFTS,
    *COMPARISONS,
    *("where", "minimum", "maximum"),
    *("atan2", "logaddexp", "fmod", "fpow", "fdiv", "cdiv", "matmul", "concat"),
)
"""Operations of two operands; ``where`` is asked about its last two. ``fpow`` and ``fdiv`` always compute in floats
(DALI's and Triton's), ``cdiv`` is the quotient rounded up."""

LOGICAL: Final = ("and", "or")
"""Python's ``and`` and ``or`` on run-time values, which only Triton has."""

UNARY: Final[tuple[str, ...]] = (
    *("pos", "neg", "~", "not", "abs", "fabs", "sign", "square"),
    *("sqrt", "rsqrt", "cbrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh", "erf", "sigmoid"),
    *("floor", "ceil", "real"),
)
"""Operations of one operand; ``pos`` and ``neg`` are the signs, ``fabs`` the absolute value as a float."""

TERNARY: Final[tuple[str, ...]] = ("clamp",)
"""``clamp(value, low, high)``."""

REDUCTIONS: Final[tuple[str, ...]] = (
    *("sum", "prod", "mean", "max", "min", "argmax", "argmin", "cumsum", "any", "all"),
)
"""Operations over the elements of one operand."""

FAMILY_UNARY: Final[tuple[str, ...]] = (
    *("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit"),
    *("log1p", "expm1", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erfc", "lgamma"),
    *("rint", "round", "trunc", "reciprocal", "imag", "conj", "angle"),
)
"""More functions of one operand, whose rules are rows of one table (`weft.semantics.systems.family`)."""

FAMILY_BINARY: Final[tuple[str, ...]] = (
    *("logical_and", "logical_or", "logical_xor", "hypot", "copysign", "heaviside", "logaddexp2", "fmax", "fmin"),
)
"""More functions of two operands, of the same table; ``fmax`` and ``fmin`` pass over a NaN."""

FAMILY: Final[frozenset[str]] = frozenset((*FAMILY_UNARY, *FAMILY_BINARY))

FAMILY_REDUCTIONS: Final[tuple[str, ...]] = ("var", "std", "logsumexp", "cumprod", "cummax", "cummin")
"""More operations over the elements of one operand; the last three are scans."""

ALL: Final[tuple[str, ...]] = (
    *BINARY,
    *LOGICAL,
    *UNARY,
    *TERNARY,
    *REDUCTIONS,
    *FAMILY_UNARY,
    *FAMILY_BINARY,
    *FAMILY_REDUCTIONS,
)

_ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "+": ("add",),
    "-": ("sub", "subtract"),
    "*": ("mul", "multiply"),
    "/": ("div", "divide", "truediv", "true_divide"),
    "//": ("floordiv", "floor_divide"),
    "%": ("mod", "rem", "remainder"),
    "**": ("pow", "power"),
    "&": ("bitwise_and",),
    "|": ("bitwise_or",),
    "^": ("xor", "bitwise_xor"),
    "<<": ("lshift", "shl", "left_shift"),
    ">>": ("rshift", "shr", "right_shift"),
    "<": ("lt", "less"),
    "<=": ("le", "less_equal"),
    ">": ("gt", "greater"),
    ">=": ("ge", "greater_equal"),
    "==": ("eq", "equal"),
    "!=": ("ne", "not_equal"),
    "where": ("select",),
    "atan2": ("arctan2",),
    "pos": ("positive",),
    "neg": ("negative",),
    "~": ("invert", "bitwise_not"),
    "not": ("logical_not",),
    "abs": ("absolute",),
    "clamp": ("clip",),
    "matmul": ("dot", "@"),
    "asin": ("arcsin",),
    "acos": ("arccos",),
    "atan": ("arctan",),
    "asinh": ("arcsinh",),
    "acosh": ("arccosh",),
    "atanh": ("arctanh",),
    "trunc": ("fix",),
    "conj": ("conjugate",),
    "max": ("amax",),
    "min": ("amin",),
}

_OF_ONE: Final = frozenset((*UNARY, *FAMILY_UNARY, *REDUCTIONS, *FAMILY_REDUCTIONS))

_CANONICAL: Final[dict[str, str]] = {
    **{op: op for op in ALL},
    **{alias: op for op, aliases in _ALIASES.items() for alias in aliases},
}


def canonical(op: str) -> str:
    """The one name of an operation; `ValueError` with the nearest spelling for an unknown one."""
    if (found := _CANONICAL.get(op)) is not None:
        return found
    if not isinstance(op, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"an operation is a name or a symbol, found {op!r}")
    hint = did_you_mean(op.lower(), _CANONICAL, f"weft knows {' '.join(ALL)}")
    raise ValueError(f"unknown operation '{op}'; {hint}")


def arity(op: str) -> int:
    """How many operands decide the types of an operation (canonical name)."""
    return 1 if op in _OF_ONE else 3 if op in TERNARY else 2


def counted(operands: int) -> str:
    """A number of operands in words: ``1 operand``."""
    return f"{operands} operand{'s' * (operands != 1)}"

"""The functions that array programs use beside operators, by system: one row for each of `ops.FAMILY`.

A column says what one system has; a system without the function has no entry. Each system's module reads its column beside
its own tables, so that its steps, refusals and number rules apply here too:

========== ============================================================================================
``numpy``  the loops of the ufunc, in the order of its search
``jax``    the row of `jax_ops.OpRule`
``torch``  the types of the CPU's kernels
``triton`` the meaning of the function of ``tl.math`` or ``libdevice``, which takes float32 and float64
``dali``   whether ``nvidia.dali.math`` has it: integers are computed in float32
``max``    what ``max.graph.ops`` takes: ``any`` type, or ``bool`` alone
========== ============================================================================================

The types were asked of the packages (NumPy 2.4, JAX 0.10.2, PyTorch 2.13, MAX 26.7), Triton's and DALI's of their sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from weft import dtypes as d
from weft.dtypes import DType, Kind
from weft.semantics.meanings import QUESTIONS
from weft.semantics.systems.jax_ops import FLOATS, INEXACT, NUMBERS, REALS, OpRule

_INTEGERS: Final = (d.int8, d.uint8, d.int16, d.uint16, d.int32, d.uint32, d.int64, d.uint64)
_FLOATS: Final = (d.float16, d.float32, d.float64)
_COMPLEX: Final = (d.complex64, d.complex128)
_EVERY: Final = (d.bool_, *_INTEGERS, *_FLOATS, *_COMPLEX)
"""NumPy's standard types in the order of its searches."""

_TORCH_FLOATS: Final = frozenset((d.float16, d.bfloat16, d.float32, d.float64))
_TORCH_INTEGERS: Final = frozenset((d.uint8, d.int8, d.int16, d.int32, d.int64))
_TORCH_LIMITED: Final = frozenset((d.uint16, d.uint32, d.uint64))
_TORCH_FLOAT8: Final = frozenset(
    (d.float8_e4m3fn, d.float8_e5m2, d.float8_e4m3fnuz, d.float8_e5m2fnuz, d.float8_e8m0fnu)
)
_TORCH_REAL: Final = frozenset((d.bool_,)) | _TORCH_INTEGERS | _TORCH_FLOATS
_TORCH_STANDARD: Final = _TORCH_REAL | _TORCH_LIMITED | {d.complex32, *_COMPLEX}
_TORCH_INEXACT: Final = _TORCH_FLOATS | {*_COMPLEX}

_PART: Final = "take the part you mean: .real or .imag"


@dataclass(frozen=True)
class Row:
    """What each system has of one function; the module says what the columns hold."""

    numpy: tuple[DType, ...] = ()
    jax: OpRule | None = None
    torch: frozenset[DType] = frozenset()
    triton: str = ""
    dali: bool = False
    max: str = ""


def _calculus(name: str, triton: bool = True, dali: bool = False, max: str = "") -> Row:
    """A function of floats and complex numbers, for which integers become floats."""
    rule = OpRule(name, INEXACT, name, advice=_PART, inexact=True)
    return Row((*_FLOATS, *_COMPLEX), rule, _TORCH_INEXACT, name if triton else "", dali, max)


def _special(name: str) -> Row:
    """A function of floats that NumPy leaves to SciPy."""
    return Row((), OpRule(name, FLOATS, name, advice=_PART, inexact=True), _TORCH_FLOATS, name)


def _asks(name: str, torch: frozenset[DType], triton: bool = True, max: str = "", strong: bool = False) -> Row:
    """A question that every number can be asked."""
    return Row(_EVERY, OpRule(name, result=d.bool_, strong=strong), torch, name if triton else "", max=max)


def _infinite(name: str) -> Row:
    rule = OpRule(name, REALS, name, advice=_PART, result=d.bool_, strong=True)
    return Row((d.bool_, *_INTEGERS, *_FLOATS), rule, _TORCH_REAL | _TORCH_LIMITED)


def _logical(meaning: str) -> Row:
    return Row(_EVERY, OpRule(meaning, result=d.bool_, strong=True), _TORCH_REAL | {*_COMPLEX}, max="bool")


def _of_two(
    name: str, takes: frozenset[Kind] = FLOATS, triton: bool = False, strong: bool = True, meaning: str = ""
) -> Row:
    rule = OpRule(meaning or name, takes, name, advice=_PART, inexact=True, strong=strong)
    return Row(_FLOATS, rule, _TORCH_FLOATS, name if triton else "")


FAMILY: Final[Mapping[str, Row]] = {
    "isnan": _asks("isnan", _TORCH_STANDARD | _TORCH_FLOAT8, max="any"),
    "isinf": _asks("isinf", _TORCH_STANDARD | {d.float8_e5m2}, max="any", strong=True),
    "isfinite": _asks("isfinite", _TORCH_STANDARD | {d.float8_e5m2, d.float8_e8m0fnu}),
    "isposinf": _infinite("isposinf"),
    "isneginf": _infinite("isneginf"),
    "signbit": Row(_FLOATS, _infinite("signbit").jax, _TORCH_REAL | _TORCH_LIMITED, triton="signbit"),
    "log1p": _calculus("log1p", max="any"),
    "expm1": _calculus("expm1"),
    **{name: _calculus(name, dali=True) for name in ("sinh", "cosh", "asin", "atan", "asinh", "acosh")},
    **{name: _calculus(name, dali=True, max="any") for name in ("acos", "atanh")},
    **{name: _special(name) for name in ("erfc", "lgamma")},
    "rint": Row((*_FLOATS, *_COMPLEX), OpRule("rint"), triton="rint"),
    "round": Row(
        (*_FLOATS, *_COMPLEX),
        OpRule("rint", NUMBERS, "round", advice="convert with .astype(jnp.int32)"),
        _TORCH_INTEGERS | _TORCH_LIMITED | _TORCH_FLOATS,
        triton="round_away",
        max="any",
    ),
    "trunc": Row(
        (d.bool_, *_INTEGERS, *_FLOATS),
        OpRule("trunc", REALS, "trunc", advice=_PART),
        _TORCH_INTEGERS | _TORCH_LIMITED | _TORCH_FLOATS,
        triton="trunc",
        max="any",
    ),
    "reciprocal": Row(
        (*_INTEGERS, *_FLOATS, *_COMPLEX), OpRule("reciprocal", INEXACT, "reciprocal", inexact=True), _TORCH_INEXACT
    ),
    "imag": Row(_EVERY, OpRule("imag", real=True), frozenset((d.complex32, *_COMPLEX))),
    "conj": Row((*_INTEGERS, *_FLOATS, *_COMPLEX), OpRule("conj"), _TORCH_STANDARD | _TORCH_FLOAT8),
    "angle": Row((*_FLOATS, *_COMPLEX), OpRule("angle", real=True), _TORCH_INEXACT),
    "logical_and": _logical("and"),
    "logical_or": _logical("or"),
    "logical_xor": _logical("xor"),
    "hypot": _of_two("hypot", triton=True),
    "copysign": Row(
        _FLOATS,
        OpRule("copysign", FLOATS, "copysign", advice=_PART, inexact=True),
        _TORCH_FLOATS,
        triton="copysign",
    ),
    "heaviside": Row(
        _FLOATS, OpRule("heaviside", FLOATS, "heaviside", advice=_PART, inexact=True, strong=True), _TORCH_REAL
    ),
    "logaddexp2": _of_two("logaddexp2", INEXACT),
    "fmax": Row(_EVERY, OpRule("maximum"), _TORCH_REAL),
    "fmin": Row(_EVERY, OpRule("minimum"), _TORCH_REAL),
}
"""Each function and what the systems have of it."""

LOGICAL: Final[Mapping[str, str]] = {"logical_and": "and", "logical_or": "or", "logical_xor": "xor"}
"""The functions that compare both sides with zero first, and what they then do."""

MEANING: Final[Mapping[str, str]] = {"fmax": "maximum", "fmin": "minimum", "round": "rint", **LOGICAL}
"""What each function does, where its own name does not say it."""

OF_INTEGERS: Final[Mapping[str, str]] = {
    "rint": "identity",
    "round": "identity",
    "trunc": "identity",
    "conj": "identity",
}
"""What changes where it computes in integers or bools."""

OF_FLOATS: Final[Mapping[str, str]] = {"conj": "identity"}
"""What changes where it computes in floats."""


def meaning(op: str, dtype: DType) -> str:
    """What a function of the family does in the type computed in."""
    special = OF_FLOATS if dtype.is_float else {} if dtype.is_complex else OF_INTEGERS
    return special.get(op) or MEANING.get(op, op)


def result(op: str, dtype: DType) -> DType:
    """What it gives there."""
    if op in QUESTIONS or op in LOGICAL:
        return d.bool_
    return dtype.part if op in ("imag", "angle") else dtype

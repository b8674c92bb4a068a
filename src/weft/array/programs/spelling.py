"""How a generated kernel writes the meanings that are no operator of the kernel language: functions of its `libdevice`, or an
expression of them.

An entry has a text for floats and one for integers and bools; a class it lacks, the meaning does not take. Functions of
`libdevice` compute floats narrower than 32 bits in float32, and round once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from weft.array.programs.reductions import literal, spelled
from weft.dtypes import DType
from weft.semantics.family import reciprocal
from weft.semantics.meanings import QUESTIONS

IMPORT: Final = "from weft.language.extra import libdevice\n"
"""What a kernel needs whose text names `libdevice`."""

_NUMBERS: Final[Mapping[str, float]] = {
    "zero": 0.0,
    "one": 1.0,
    "inf": math.inf,
    "pi": math.pi,
    "half": 0.5,
    "log_half": math.log(0.5),
    "per_ln2": 1 / math.log(2),
}
"""The numbers that texts name."""


@dataclass(frozen=True)
class Spelling:
    """One meaning: ``{0}`` and ``{1}`` are its operands, ``{small0}`` the first without subnormal numbers, names like ``{zero}``
    numbers of their type, ``{own}`` the type."""

    floats: str = ""
    integers: str = ""


def _function(name: str) -> Spelling:
    return Spelling(f"libdevice.{name}({{0}})")


_NEVER: Final = "({0} != {0})"
_LOGADDEXP2: Final = (
    'tl.where({0} == {1}, {0} + {one}, tl.meaning("maximum_nan", {0}, {1}) + '
    "libdevice.log1p(tl.exp2(-tl.abs({0} - {1}))) * {per_ln2})"
)
_SINH_XLA: Final = (
    "tl.where(tl.abs({0}) < {one}, {half} * (libdevice.expm1({0}) + libdevice.expm1({0}) / (libdevice.expm1({0}) + {one})), "
    "tl.exp({0} + {log_half}) - tl.exp(-{0} + {log_half}))"
)

SPELLINGS: Final[Mapping[str, Spelling]] = {
    **{
        name: _function(name)
        for name in (
            "log1p",
            "expm1",
            "sinh",
            "cosh",
            "asin",
            "acos",
            "atan",
            "asinh",
            "acosh",
            "atanh",
            "erfc",
            "lgamma",
        )
    },
    "isnan": Spelling("({0} != {0})", _NEVER),
    "isinf": Spelling("(tl.abs({0}) == {inf})", _NEVER),
    "isfinite": Spelling("(tl.abs({0}) < {inf})", "({0} == {0})"),
    "isposinf": Spelling("({0} == {inf})", _NEVER),
    "isneginf": Spelling("({0} == -{inf})", _NEVER),
    "signbit": Spelling("(libdevice.signbit({0}) != 0)", "({0} < {zero})"),
    "rint": Spelling("libdevice.rint({0})", "{0}"),
    "round_away": Spelling("libdevice.round({0})", "{0}"),
    "trunc": Spelling("libdevice.trunc({0})", "{0}"),
    "reciprocal": Spelling(
        "{one} / {0}", 'tl.where({0} == {zero}, {of_zero}, tl.meaning("truncate_divide", {one}, {0}))'
    ),
    "imag": Spelling("tl.zeros_like({0})", "tl.zeros_like({0})"),
    "conj": Spelling("{0}", "{0}"),
    "angle": Spelling('tl.meaning("atan2", tl.zeros_like({0}), {0})'),
    "angle_real": Spelling("tl.where({0} < {zero}, {pi}, tl.where({0} != {0}, {0}, {zero}))"),
    "hypot": Spelling("libdevice.hypot({0}, {1})"),
    "copysign": Spelling("libdevice.copysign({0}, {1})"),
    "heaviside": Spelling(
        "tl.where({0} == {zero}, {1}, tl.where({0} < {zero}, {zero}, tl.where({0} > {zero}, {one}, {0})))",
        "tl.where({0} == {zero}, {1}, ({0} > {zero}).to({own}))",
    ),
    "heaviside_compare": Spelling("tl.where({0} == {zero}, {1}, tl.where({0} > {zero}, {one}, {zero}))"),
    "logaddexp2": Spelling(_LOGADDEXP2),
    "cosh_xla": Spelling("tl.exp({0} + {log_half}) + tl.exp(-{0} + {log_half})"),
    "sinh_xla": Spelling(_SINH_XLA),
    "heaviside_flushed": Spelling(
        "tl.where({small0} == {zero}, {1}, tl.where({0} < {zero}, {zero}, tl.where({0} > {zero}, {one}, {0})))"
    ),
    "asin_flushed": Spelling(
        'tl.where(tl.meaning("identity_flushed", {0} * {half}) == {zero}, {0} * {zero}, libdevice.asin({0}))'
    ),
}
"""Each meaning's text."""


def _flushed(value: str) -> str:
    return f'tl.meaning("identity_flushed", {value})'


def spell(meaning: str, dtype: DType, values: Sequence[str]) -> str | None:
    """The text of a meaning of operands of ``dtype``; None for one that has no entry. Narrow floats are widened, and what
    is computed of them rounded once."""
    own = spelled(dtype)
    if (entry := SPELLINGS.get(meaning)) is None:
        plain = meaning.removesuffix("_flushed")
        if plain == meaning or plain not in SPELLINGS:
            return None
        text = spell(plain, dtype, [_flushed(value) for value in values])
        return None if text is None else _flushed(f"({text})")
    if not dtype.is_float:
        zero, one = (literal(bool(n) if dtype.is_bool else n, dtype) for n in (0, 1))
        of_zero = literal(reciprocal(dtype, 0), dtype)
        return entry.integers.format(*values, zero=zero, one=one, own=own, of_zero=of_zero)
    wide = dtype.compute
    given = values if wide == dtype else [f"{value}.to({spelled(wide)})" for value in values]
    numbers = {name: literal(value, wide) for name, value in _NUMBERS.items()}
    text = entry.floats.format(*given, small0=_flushed(given[0]), **numbers)
    return text if wide == dtype or meaning in QUESTIONS else f'tl.meaning("convert", {text}, {own})'

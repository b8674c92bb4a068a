"""How Triton finds the common type of two run-time values: rules as data, the first that applies decides.

Each rule is a named value that answers with a type and the reason, refuses, or does not apply. Document and package are two
tuples of rules (`weft.semantics.systems.triton` gives the document's rules in a table).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from weft import dtypes
from weft.dtypes import DType, Kind
from weft.semantics.core import PromotionError

Decision: TypeAlias = tuple[DType, str]
"""A common type, and why."""


@dataclass(frozen=True)
class Rule:
    """One step of the search for a common type.

    ``apply(a, b, op)`` returns it with the reason, or None where the rule says nothing, or raises `PromotionError` where it
    refuses. The type does not depend on the order of ``a`` and ``b``.
    """

    name: str
    apply: Callable[[DType, DType, str], Decision | None] = field(repr=False)


_DIVISIONS: Final = frozenset({"/", "//", "%", "fdiv"})
A_KIND: Final = {Kind.BOOL: "a bool", Kind.INTEGER: "an integer", Kind.FLOAT: "a float"}
"""A kind with its article."""


def _kind(a: DType, b: DType, op: str) -> Decision | None:
    if a.kind == b.kind:
        return None
    low, high = sorted((a, b), key=lambda d: d.kind)
    return high, f"{high} is {A_KIND[high.kind]}, {low} {A_KIND[low.kind]}: {high}"


def _width(a: DType, b: DType, op: str) -> Decision | None:
    if a.bits == b.bits:
        return None
    narrow, wide = sorted((a, b), key=lambda d: d.bits)
    return wide, f"{wide} is wider than {narrow}: {wide}"


def _equal(a: DType, b: DType, op: str) -> Decision | None:
    return (a, f"both are {a}") if a == b else None


def _supremum(a: DType, b: DType, op: str) -> Decision | None:
    if not (a.is_float and b.is_float and a.bits == b.bits == 16):
        return None
    return dtypes.float32, f"{a} and {b} are equally wide, the next larger is float32"


def _float8_pair(a: DType, b: DType, op: str) -> Decision | None:
    return (dtypes.float16, f"{a} and {b} differ: float16") if a.is_float8 and b.is_float8 else None


def _unsigned(a: DType, b: DType, op: str) -> Decision | None:
    unsigned = b if a.signed else a
    return unsigned, f"{a} and {b} are equally wide, {unsigned} is the unsigned one"


def _either(dtype: DType) -> Rule:
    """The rule that a type wins against everything the earlier rules have left."""

    def apply(a: DType, b: DType, op: str) -> Decision | None:
        return (dtype, f"{a} and {b} meet in {dtype}") if dtype in (a, b) else None

    return Rule(f"either is {dtype}", apply)


def _division_of_floats(a: DType, b: DType, op: str) -> Decision | None:
    if op not in _DIVISIONS or not (a.is_float or b.is_float):
        return None
    return dtypes.float32, f"'{op}' of {a} and {b} computes in float32"


def _any_bfloat16(a: DType, b: DType, op: str) -> Decision | None:
    return (dtypes.float32, f"{a} and {b} meet in float32") if dtypes.bfloat16 in (a, b) else None


def _refuse_float8(a: DType, b: DType, op: str) -> Decision | None:
    if a.is_float8 or b.is_float8:
        raise PromotionError(f"{a} and {b} have no common type for '{op}'", "cast both sides with .to(tl.float32)")
    return None


def _refuse_mixed_division(a: DType, b: DType, op: str) -> Decision | None:
    if op in _DIVISIONS and a.signed != b.signed:
        signed = a if a.signed else b
        raise PromotionError(f"'{op}' refuses {a} with {b}, one is signed", f"cast both sides with .to(tl.{signed})")
    return None


_EQUAL: Final = Rule("equal", _equal)
_WIDTH: Final = Rule("width", _width)
_FLOAT8_PAIR: Final = Rule("fp8 pair", _float8_pair)
_UNSIGNED: Final = Rule("prefer unsigned", _unsigned)

DOCUMENT_RULES: Final[tuple[Rule, ...]] = (
    _EQUAL,
    Rule("kind", _kind),
    _WIDTH,
    _FLOAT8_PAIR,
    Rule("supremum", _supremum),
    _UNSIGNED,
)
"""The documentation's algorithm."""

PACKAGE_RULES: Final[tuple[Rule, ...]] = (
    _either(dtypes.float64),
    Rule("division of floats", _division_of_floats),
    _either(dtypes.float32),
    _either(dtypes.float16),
    _EQUAL,
    Rule("bfloat16 with another type", _any_bfloat16),
    _FLOAT8_PAIR,
    Rule("fp8 with integer", _refuse_float8),
    Rule("division of mixed signedness", _refuse_mixed_division),
    _WIDTH,
    _UNSIGNED,
)
"""What triton 3.9.0 computes; bool counts as an unsigned integer of one bit."""

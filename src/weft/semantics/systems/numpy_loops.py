"""NumPy's promotion as data: which casts are safe, and for which types each ufunc has a loop.

NumPy promotes by two searches, not by rules about kinds and widths, and its exceptions follow from the data of the searches.
`common_dtype` searches for the first standard type to which all operands cast safely; a ufunc searches for the first of its
loops to which they do. With ``<=`` for "casts safely to"::

    int8 <= int16, float16;  uint8 <= int16, float16;  int16 <= int32, float32;  float16 <= float32

    int8, uint8            int16        the first in the order of `ORDER`
    int16, float16         float32      float16 does not hold an int16
    int8, uint8, float16   float16      hence not a fold: int16 with float16 is float32

Law: on the standard types the search is commutative and idempotent, and the result holds every operand; it is not
associative (28 of 2744 triples). On ml_dtypes' types none of that holds: `SAFE_CUSTOM` is what 0.6.0 registers, casts
that lose everything among them (``float8_e4m3fn`` to ``uint2``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Final

from weft import dtypes as d
from weft.dtypes import DType
from weft.semantics.systems.family import FAMILY

INTEGERS: Final = (d.int8, d.uint8, d.int16, d.uint16, d.int32, d.uint32, d.int64, d.uint64)
FLOATS: Final = (d.float16, d.float32, d.float64)
COMPLEX: Final = (d.complex64, d.complex128)
ORDER: Final[tuple[DType, ...]] = (d.bool_, *INTEGERS, *FLOATS, *COMPLEX)
"""The standard types in the order both searches try them."""

CUSTOM_FLOATS: Final = (
    d.bfloat16,
    d.float8_e3m4,
    d.float8_e4m3,
    d.float8_e4m3b11fnuz,
    d.float8_e4m3fn,
    d.float8_e4m3fnuz,
    d.float8_e5m2,
    d.float8_e5m2fnuz,
    d.float6_e2m3fn,
    d.float6_e3m2fn,
    d.float4_e2m1fn,
    d.float8_e8m0fnu,
)
CUSTOM_INTEGERS: Final = (d.int2, d.uint2, d.int4, d.uint4)
CUSTOM: Final[tuple[DType, ...]] = (*CUSTOM_FLOATS, *CUSTOM_INTEGERS)
"""The types of ml_dtypes 0.6.0 in the order it registers them: their numbers, by which NumPy decides what a pair that
casts safely both ways meets in."""

NUMBER: Final[Mapping[DType, int]] = {
    **{t: n for n, t in enumerate((d.bool_, *INTEGERS, d.float32, d.float64, *COMPLEX, d.float16, *CUSTOM))}
}
"""The order of NumPy's type numbers; in it float16 comes after the complex types."""

_EIGHT: Final = (
    *(d.float8_e3m4, d.float8_e4m3, d.float8_e4m3b11fnuz, d.float8_e4m3fn, d.float8_e4m3fnuz, d.float8_e5m2fnuz),
)
_SIX: Final = (d.float6_e2m3fn, d.float6_e3m2fn)
_FOUR: Final = (d.float4_e2m1fn,)

SAFE_CUSTOM: Final[Mapping[DType, frozenset[DType]]] = {
    **dict.fromkeys(_EIGHT, frozenset({*_EIGHT, *_SIX, *_FOUR, *CUSTOM_INTEGERS})),
    d.float4_e2m1fn: frozenset({*_EIGHT, *_SIX, *CUSTOM_INTEGERS}),
    d.float6_e2m3fn: frozenset({*_EIGHT, *_SIX, *_FOUR, d.int2, d.uint2}),
    d.float6_e3m2fn: frozenset({*_EIGHT, *_SIX, *_FOUR, *CUSTOM_INTEGERS}),
    d.int4: frozenset({*_EIGHT, *_FOUR, d.float6_e3m2fn}),
    d.uint4: frozenset({*_EIGHT, *_FOUR, d.float6_e3m2fn}),
    d.int2: frozenset({*_EIGHT, *_SIX, *_FOUR, d.int4}),
    d.uint2: frozenset({*_EIGHT, *_SIX, *_FOUR, d.uint4}),
}
"""The casts among ml_dtypes' own types that are registered as safe; the types left out have none."""


@cache
def safe(source: DType, target: DType) -> bool:
    """Whether NumPy casts ``source`` to ``target`` safely (``np.can_cast``)."""
    if source == target or source.is_bool:
        return True
    if target in CUSTOM:
        if source in CUSTOM:
            return target in SAFE_CUSTOM.get(source, ())
        return target in CUSTOM_FLOATS and source in (d.int8, d.uint8)
    if target.is_bool:
        return False
    if source.is_integer and target.is_integer:
        # ml_dtypes has its unsigned types cast to signed ones of more bits, as NumPy's do.
        return target.min <= source.min and source.max <= target.max
    if target.kind < source.kind:
        return False
    return _float_bits(source) <= (target.bits // 2 if target.is_complex else target.bits)


def _float_bits(source: DType) -> int:
    """The width of the narrowest standard float that takes a real or the parts of a complex type safely."""
    if source in CUSTOM_FLOATS:
        return 32
    if source.is_integer:
        return 16 if source.bits <= 8 else 32 if source.bits == 16 else 64
    return source.bits // 2 if source.is_complex else source.bits


def first_safe(candidates: Iterable[DType], operands: Iterable[DType]) -> DType | None:
    """The first candidate to which all operands cast safely."""
    types = tuple(operands)
    return next((c for c in candidates if all(safe(t, c) for t in types)), None)


_REAL: Final = (*INTEGERS, *FLOATS)
_NUMBERS: Final = (*_REAL, *COMPLEX)

LOOPS: Final[Mapping[str, tuple[DType, ...]]] = {
    **dict.fromkeys(("+", "*", "matmul", "minimum", "maximum", "clamp"), ORDER),
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), ORDER),
    **dict.fromkeys(("-", "**", "neg", "pos", "square", "sign"), _NUMBERS),
    "/": (*FLOATS, *COMPLEX),
    **dict.fromkeys(("//", "%", "fmod"), _REAL),
    **dict.fromkeys(("&", "|", "^", "~"), (d.bool_, *INTEGERS)),
    **dict.fromkeys(("<<", ">>"), INTEGERS),
    **dict.fromkeys(("atan2", "logaddexp", "cbrt", "fabs"), FLOATS),
    "fpow": (d.float64, d.complex128),
    **dict.fromkeys(("sqrt", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "tan", "tanh"), (*FLOATS, *COMPLEX)),
    "abs": ORDER,
    "not": ORDER,
    **dict.fromkeys(("floor", "ceil"), (d.bool_, *_REAL)),
    **{op: row.numpy for op, row in FAMILY.items() if row.numpy},
}
"""The types each ufunc has loops for, in the order they are tried; ``uint64`` against ``int64`` is the exception that
comparisons have loops for (`EXACT`)."""

EXACT: Final = frozenset(("<", "<=", ">", ">=", "==", "!="))
"""The ufuncs with loops that take int64 with uint64 and compare the numbers."""

FLOAT_ONLY: Final = frozenset(("fpow", "matmul", "&", "|", "^", "<<", ">>", "~", "clamp"))
"""The ufuncs for which ml_dtypes' floats have no loops of their own."""

INTEGER_LOOPS: Final = frozenset(("+", "-", "*", "//", "%"))
"""The ufuncs for which ml_dtypes' integers have loops of their own."""


def has_custom_loop(op: str, dtype: DType) -> bool:
    """Whether ml_dtypes registers a loop of ``op`` for its type ``dtype``."""
    return op in INTEGER_LOOPS if dtype in CUSTOM_INTEGERS else dtype in CUSTOM_FLOATS and op not in FLOAT_ONLY


def loop(op: str, operands: tuple[DType, ...]) -> DType | None:
    """The type of the first loop to which all operands cast safely: ml_dtypes' own first, in the order of the operands,
    then the standard ones; None where there is none."""
    own = [t for t in dict.fromkeys(operands) if t in CUSTOM and has_custom_loop(op, t)]
    return first_safe((*own, *LOOPS[op]), operands)


@cache
def meet(a: DType, b: DType) -> DType | None:
    """``np.promote_types``: the common type of two; None where there is none."""
    if a not in CUSTOM and b not in CUSTOM:
        return first_safe(ORDER, (a, b))
    low, high = sorted((a, b), key=lambda t: NUMBER[t])
    for source, target in ((high, low), (low, high)):
        if safe(source, target):
            return target
    # float8_e5m2 alone declares itself a float, so that NumPy goes on looking among its own.
    return first_safe(ORDER, (a, b)) if high == d.float8_e5m2 and low not in CUSTOM else None


def _knows(a: DType, b: DType) -> DType | None:
    """What ``a`` says it meets ``b`` in; None where it has nothing to say, always of a type with a higher number."""
    return None if NUMBER[b] > NUMBER[a] else meet(a, b)


def meet_all(operands: tuple[DType, ...]) -> DType | None:
    """``np.result_type`` of any number of types.

    Not a fold. NumPy picks the operand that knows the others best (the highest number, found by comparing from both ends
    inwards) and joins what that one gives with each of the others. On standard types that is `first_safe`. Returns None
    where one of the joins does not exist.
    """
    if not any(t in CUSTOM for t in operands):
        return first_safe(ORDER, operands)
    rest: list[DType | None] = list(operands)
    length = len(rest)
    while length > 1:
        for low in range(length // 2):
            high = length - 1 - low
            a, b = rest[low], rest[high]
            if a is None or b is None:
                continue
            if (known := _knows(a, b)) is None:  # perhaps b knows a
                rest[low], rest[high] = b, a
            elif known == a:
                rest[high] = None
        if length == 2:
            break
        length -= length // 2
    main = rest[0]
    assert main is not None, "the first place is never cleared"
    result: DType | None = main
    for other in rest[1:]:
        if other is None or other == main or result is None:
            continue
        joined = _knows(main, other)
        result = None if joined is None else meet(result, joined)
    return result

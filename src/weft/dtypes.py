"""Element types as data.

One row per type says everything the rest of weft asks about it: kind, width, how NumPy and LLVM spell it, and for
floating-point types the format's parameters (bias and range follow from them). No module branches on a type's name; they
ask the row. Names are NumPy's and ml_dtypes' (``float8_e4m3fn``); `parse` also accepts Triton's (``fp8e4nv``, ``int1``).

`ALL` are the types kernels compute with. `ELEMENTS` adds the float8 types that only Triton's programs have. `KNOWN` adds those
that only `weft.semantics` speaks of, because some system has them: the other narrow formats, complex numbers, MAX's
``index``, ``address`` and ``tensor_float32``.

A type's *storage* is what memory holds, ``bits`` wide, except that ``bool`` occupies one byte as in NumPy and Triton.
Arithmetic on the narrow floats (everything below 32 bits) means: compute in float32 exactly as IEEE 754 says, round the
result once, to nearest even. For + - * / and sqrt that equals rounding the exact result, because float32 has more than
twice their precision (24 >= 2 * 11 + 2).
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import ml_dtypes
import numpy as np

from weft.nearest import did_you_mean


class Kind(enum.IntEnum):
    """Triton's hierarchy of kinds; a later one absorbs an earlier one in promotion."""

    BOOL = 0
    INTEGER = 1
    FLOAT = 2
    COMPLEX = 3


@dataclass(frozen=True, eq=False)
class DType:
    """One element type. The instances in `KNOWN` are the only ones, so types are equal where they are the same object.

    ``bits`` is the width of a value (1 for bool; of a complex type, of both its parts). ``exponent`` and ``mantissa`` are
    the field widths of a floating-point format, sign and hidden bit excluded; 0 otherwise. ``finite_only`` formats have no
    infinities and use the top exponent for numbers: all of them where ``all_numbers``, else the last mantissa is NaN.
    ``has_nan``: some code is NaN. ``offset`` is what the bias has beyond the usual ``2**(exponent - 1) - 1``. A float that is
    not ``signed`` has neither negative numbers nor zero. ``saturates`` is 0, or the greatest code, below the sign, that rounding
    gives: what is beyond, infinity and NaN become that number, and ties are rounded away from zero.
    """

    name: str
    kind: Kind
    bits: int
    signed: bool
    triton: str
    exponent: int = 0
    mantissa: int = 0
    finite_only: bool = False
    aliases: tuple[str, ...] = field(default=(), repr=False)
    all_numbers: bool = False
    offset: int = 0
    has_nan: bool = True
    saturates: int = 0

    spelled: ClassVar[Callable[[DType], str] | None] = None
    """What `repr` gives, None for the name. `weft.as_triton` sets it: programs write this text into code."""

    def __repr__(self) -> str:
        return self.name if DType.spelled is None else DType.spelled(self)

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        """Whether ``other`` is the type or another library's name of it: text, NumPy's dtypes and classes, PyTorch's dtypes.
        `ValueError` for text with two meanings."""
        if self is other or type(other) is DType:
            return self is other
        return _foreign(other) is self

    __hash__ = object.__hash__

    @property
    def __numpy_dtype__(self) -> np.dtype[Any]:
        """What `numpy.dtype` makes of it (from NumPy 2.4)."""
        return self.numpy

    def __reduce__(self) -> tuple[Any, ...]:
        return (named, (self.name,))

    @property
    def is_bool(self) -> bool:
        return self.kind is Kind.BOOL

    @property
    def is_integer(self) -> bool:
        """True for the integers proper; bool is not one of them."""
        return self.kind is Kind.INTEGER

    @property
    def is_float(self) -> bool:
        return self.kind is Kind.FLOAT

    @property
    def primitive_bitwidth(self) -> int:
        """Triton's name for ``bits``."""
        return self.bits

    @property
    def int_bitwidth(self) -> int:
        """Triton's name for the bits of an integer."""
        return self.bits

    @property
    def fp_mantissa_width(self) -> int:
        """Triton's name for ``mantissa``."""
        return self.mantissa

    @property
    def exponent_bias(self) -> int:
        """Triton's name for `bias`."""
        return self.bias

    if not TYPE_CHECKING:  # weft's own code does not use these names

        def __getattr__(self, name: str) -> Any:
            """Triton's methods of dtypes, for functions of programs that kernels call while they are compiled."""
            if (method := {**QUESTIONS, **({} if self.is_float else BOUNDS)}.get(name)) is None:
                raise AttributeError(f"{self} has no attribute {name!r}")
            return functools.partial(method, self)

    def codegen_name(self) -> str:
        """Triton's name in programs: ``float16`` for ``fp16``."""
        for short, long in (("fp", "float"), ("bf", "bfloat")):
            if self.triton.startswith(short):
                return long + self.triton.removeprefix(short)
        return self.triton

    @property
    def scalar(self) -> DType:
        """The type itself, as that of a tile's elements."""
        return self

    @property
    def is_complex(self) -> bool:
        return self.kind is Kind.COMPLEX

    @property
    def is_float8(self) -> bool:
        return self.kind is Kind.FLOAT and self.bits == 8

    @property
    def itemsize(self) -> int:
        """Bytes one element occupies in memory."""
        return max(self.bits, 8) // 8

    @cached_property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy dtype whose memory this type shares; `TypeError` where neither NumPy nor ml_dtypes has one."""
        name = "bool_" if self.is_bool else self.name
        scalar: Any = getattr(ml_dtypes, name, None) or getattr(np, name, None)
        if scalar is None:
            raise TypeError(f"neither NumPy nor ml_dtypes has {self.name}")
        return np.dtype(scalar)

    @property
    def storage(self) -> np.dtype[Any]:
        """As `numpy`; unsigned integers of the width where NumPy has no such floats."""
        return np.dtype(np.uint8) if self.saturates else self.numpy

    @cached_property
    def values(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The number of each code of a format of 8 bits without infinities."""
        codes = np.arange(256)
        fields, sign = codes & 0x7F, np.where(codes & 0x80, -1.0, 1.0)
        exponent, fraction = np.maximum(fields >> self.mantissa, 1), fields & ((1 << self.mantissa) - 1)
        significand = fraction + np.where(fields >> self.mantissa, 1 << self.mantissa, 0)
        numbers = sign * np.ldexp(significand.astype(np.float64), exponent - self.bias - self.mantissa)
        is_nan = (codes == 0x80 if self.all_numbers else fields == 0x7F) & self.has_nan
        return np.where(is_nan, np.nan, numbers)

    @property
    def min(self) -> int:
        """The smallest value of an integer type (or bool)."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def max(self) -> int:
        """The largest value of an integer type (or bool)."""
        return (1 << (self.bits - self.signed)) - 1

    @property
    def bias(self) -> int:
        """The exponent bias of a floating-point format; its normal numbers begin at ``2**(1 - bias)`` (at ``2**-bias`` where
        there is no mantissa, hence no subnormal number)."""
        return (1 << (self.exponent - 1)) - 1 + self.offset

    @property
    def largest(self) -> float:
        """The largest finite value of a floating-point type: what its highest code that is a number stands for."""
        reserved = (1 << self.mantissa) if not self.finite_only else 0 if self.all_numbers else 1
        exponent, fraction = divmod((1 << (self.exponent + self.mantissa)) - reserved - 1, 1 << self.mantissa)
        return math.ldexp(1.0 + math.ldexp(fraction, -self.mantissa), exponent - self.bias)

    @property
    def has_negative_zero(self) -> bool:
        """Whether a floating-point type has -0; some formats have NaN in its place."""
        return self.signed and not (self.all_numbers and self.has_nan)

    def represents(self, value: float) -> bool:
        """Whether ``value`` is a value of this floating-point type: NaN or an infinity it has, or a multiple of its ulp."""
        if math.isnan(value):
            return self.has_nan
        if math.isinf(value):
            return not self.finite_only
        if not self.signed and value <= 0:
            return False
        exponent = max(math.frexp(value)[1] - 1, (1 if self.mantissa else 0) - self.bias)
        return abs(value) <= self.largest and math.ldexp(value, self.mantissa - exponent).is_integer()

    @property
    def part(self) -> DType:
        """The type of the real and of the imaginary part of a complex type; a real type itself."""
        return {32: float16, 64: float32, 128: float64}[self.bits] if self.is_complex else self

    @property
    def compute(self) -> DType:
        """The type in which arithmetic on this type is carried out before the one rounding back."""
        return float32 if self.is_float and self.bits < 32 else self

    @property
    def holds_sums(self) -> bool:
        """Whether a total of this type is not rounded after each term: integers, and floats that are computed in themselves. Only
        such totals may be kept in another place, or in several, until the last term is added."""
        return self.is_integer or (self.is_float and self.compute is self)


def _integer(bits: int, signed: bool) -> DType:
    name = f"{'' if signed else 'u'}int{bits}"
    return DType(name, Kind.INTEGER, bits, signed, name)


bool_: Final = DType("bool", Kind.BOOL, 1, False, "int1", aliases=("i1", "bool_"))
int8: Final = _integer(8, True)
int16: Final = _integer(16, True)
int32: Final = _integer(32, True)
int64: Final = _integer(64, True)
uint8: Final = _integer(8, False)
uint16: Final = _integer(16, False)
uint32: Final = _integer(32, False)
uint64: Final = _integer(64, False)
float8_e4m3fn: Final = DType("float8_e4m3fn", Kind.FLOAT, 8, True, "fp8e4nv", 4, 3, True, ("float8e4nv",))
float8_e5m2: Final = DType("float8_e5m2", Kind.FLOAT, 8, True, "fp8e5", 5, 2, False, ("float8e5",))
float16: Final = DType("float16", Kind.FLOAT, 16, True, "fp16", 5, 10, aliases=("half",))
bfloat16: Final = DType("bfloat16", Kind.FLOAT, 16, True, "bf16", 8, 7)
float32: Final = DType("float32", Kind.FLOAT, 32, True, "fp32", 8, 23)
float64: Final = DType("float64", Kind.FLOAT, 64, True, "fp64", 11, 52)

ALL: Final[tuple[DType, ...]] = (
    bool_,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    bfloat16,
    float32,
    float64,
)


def _narrow(name: str, exponent: int, mantissa: int, triton: str = "", alias: str = "", **rest: Any) -> DType:
    signed = not name.endswith("fnu")
    bits = signed + exponent + mantissa
    return DType(
        name, Kind.FLOAT, bits, signed, triton or name, exponent, mantissa, aliases=(alias,) * bool(alias), **rest
    )


_FN: Final[dict[str, Any]] = {"finite_only": True, "all_numbers": True, "has_nan": False}
_FNUZ: Final[dict[str, Any]] = {"finite_only": True, "all_numbers": True}  # NaN is what would be the negative zero

int2: Final = _integer(2, True)
int4: Final = _integer(4, True)
uint2: Final = _integer(2, False)
uint4: Final = _integer(4, False)
float4_e2m1fn: Final = _narrow("float4_e2m1fn", 2, 1, **_FN)
float6_e2m3fn: Final = _narrow("float6_e2m3fn", 2, 3, **_FN)
float6_e3m2fn: Final = _narrow("float6_e3m2fn", 3, 2, **_FN)
float8_e3m4: Final = _narrow("float8_e3m4", 3, 4)
float8_e4m3: Final = _narrow("float8_e4m3", 4, 3)
float8_e4m3b11fnuz: Final = _narrow("float8_e4m3b11fnuz", 4, 3, offset=4, **_FNUZ)
float8_e4m3b15: Final = _narrow("float8_e4m3b15", 4, 3, "fp8e4b15", "float8e4b15", offset=8, saturates=0x7E, **_FN)
float8_e4m3fnuz: Final = _narrow("float8_e4m3fnuz", 4, 3, "fp8e4b8", "float8e4b8", offset=1, **_FNUZ)
float8_e5m2fnuz: Final = _narrow("float8_e5m2fnuz", 5, 2, "fp8e5b16", "float8e5b16", offset=1, **_FNUZ)
float8_e8m0fnu: Final = _narrow("float8_e8m0fnu", 8, 0, finite_only=True)
tensor_float32: Final = DType("tensor_float32", Kind.FLOAT, 32, True, "tf32", 8, 10)
index: Final = DType("index", Kind.INTEGER, 64, False, "index")
address: Final = DType("address", Kind.INTEGER, 64, False, "address")
complex32: Final = DType("complex32", Kind.COMPLEX, 32, True, "complex32", 5, 10)
complex64: Final = DType("complex64", Kind.COMPLEX, 64, True, "complex64", 8, 23)
complex128: Final = DType("complex128", Kind.COMPLEX, 128, True, "complex128", 11, 52)

ELEMENTS: Final[tuple[DType, ...]] = (*ALL, float8_e4m3b15, float8_e4m3fnuz, float8_e5m2fnuz)

KNOWN: Final[tuple[DType, ...]] = (
    *ALL,
    int2,
    int4,
    uint2,
    uint4,
    float4_e2m1fn,
    float6_e2m3fn,
    float6_e3m2fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3b15,
    float8_e4m3fnuz,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    tensor_float32,
    index,
    address,
    complex32,
    complex64,
    complex128,
)
"""Every type some system has."""


def _spellings(types: tuple[DType, ...]) -> dict[str, DType]:
    return {spelling: dtype for dtype in types for spelling in (dtype.name, dtype.triton, *dtype.aliases)}


_BY_NAME: Final[dict[str, DType]] = _spellings(ELEMENTS)

# Short names. A width counts bytes in NumPy and JAX's documentation (``i4`` is int32) and bits elsewhere (``i4`` is int4).

_BYTES: Final[Mapping[str, DType]] = {
    **{f"i{d.bits // 8}": d for d in (int8, int16, int32, int64)},
    **{f"u{d.bits // 8}": d for d in (uint8, uint16, uint32, uint64)},
    **{f"f{d.bits // 8}": d for d in (float16, float32, float64)},
    **{"b1": bool_, "c8": complex64, "c16": complex128},
}
_BITS: Final[Mapping[str, tuple[DType, ...]]] = {
    **{f"i{d.bits}": (d,) for d in KNOWN if d.name == f"int{d.bits}"},
    **{f"u{d.bits}": (d,) for d in KNOWN if d.name == f"uint{d.bits}"},
    **{f"f{d.bits}": (d,) for d in (float16, float32, float64)},
    **{"i1": (bool_,), "u1": (bool_,)},
    **{"f4": (float4_e2m1fn,), "f8": (float8_e4m3fn, float8_e5m2)},
}
_WORDS: Final[Mapping[str, Mapping[str, DType]]] = {
    "float": {"NumPy and JAX": float64, "PyTorch and DALI": float32},
    "int": {"NumPy and JAX": int64, "PyTorch": int32},
}
_TRITON_BITS: Final = ("i1", "u1", "i8", "u8")

SHORT: Final[Mapping[str, DType]] = {
    **{"single": float32, "double": float64, "bf": bfloat16},
    **{name: dtype for name, dtype in _BYTES.items() if name not in _BITS},
    **{name: found[0] for name, found in _BITS.items() if name not in _BYTES and name not in _TRITON_BITS},
}
"""Short names with one meaning in all systems."""


def _meanings(name: str) -> tuple[tuple[str, tuple[DType, ...]], ...]:
    if name in _WORDS:
        return tuple((f"in {who}", (dtype,)) for who, dtype in _WORDS[name].items())
    bits = "in bits (Triton)" if name in _TRITON_BITS else "in bits"
    return (("in bytes (NumPy, JAX)", (_BYTES[name],)), (bits, _BITS[name]))


AMBIGUOUS: Final[Mapping[str, tuple[tuple[str, tuple[DType, ...]], ...]]] = {
    name: _meanings(name) for name in (*_WORDS, *(n for n in _BITS if n in _BYTES and (_BYTES[n],) != _BITS[n]))
}
"""Names with more than one meaning: how they are read, and as what."""

NAMES: Final[dict[str, DType]] = {n: d for n, d in _spellings(KNOWN).items() if n not in AMBIGUOUS} | dict(SHORT)
"""Every spelling of a dtype that has one meaning in all systems."""
_BY_NUMPY: Final[dict[np.dtype[Any], DType]] = {d.numpy: d for d in ELEMENTS if not d.saturates}


def lossless(source: DType, target: DType) -> bool:
    """Whether every value of ``source`` is a value of ``target``: a conversion there and back changes nothing."""
    if source.is_bool:
        return True
    if target.is_bool or (source.is_float and not target.is_float):
        return source == target
    if not target.is_float:
        return target.min <= source.min and source.max <= target.max
    if source.is_float:
        zeros = target.has_negative_zero or not source.has_negative_zero
        return source == target or (format_within(source, target) and zeros and not target.saturates)
    return source.bits - source.signed <= target.mantissa + 1 and source.max <= target.largest


def format_within(source: DType, target: DType) -> bool:
    """Whether a float format's numbers and infinities are all of another's: precision, range at both ends. Of complex types:
    those of their parts."""
    least = source.bias + source.mantissa <= target.bias + target.mantissa  # of each it is 2**(1 - bias - mantissa)
    numbers = source.mantissa <= target.mantissa and least and source.largest <= target.largest
    return numbers and (source.finite_only or not target.finite_only)


QUESTIONS: Final[dict[str, Callable[[DType], bool]]] = {
    "is_floating": lambda d: d.is_float,
    "is_standard_floating": lambda d: d.is_float and d.bits >= 16,
    "is_fp8": lambda d: d.is_float8,
    "is_int": lambda d: not d.is_float,
    "is_int_signed": lambda d: d.is_integer and d.signed,
    "is_int_unsigned": lambda d: not d.is_float and not d.signed,
    "is_bool": lambda d: d.is_bool,
    "is_int1": lambda d: d.is_bool,
    **dict.fromkeys(("is_ptr", "is_block", "is_const", "is_void"), lambda d: False),
    **{f"is_{d.triton}": lambda d, of=d: d == of for d in ELEMENTS if not d.is_bool},
}
"""Triton's methods of dtypes without arguments, called as ``x.dtype.is_floating()``. On the host `DType.is_bool` is no method."""

BOUNDS: Final[dict[str, Callable[[DType], int]]] = {
    "get_int_max_value": lambda d: d.max,
    "get_int_min_value": lambda d: d.min,
}
"""Such methods of integers."""


def parse(name: str) -> DType:
    """The type that a NumPy, ml_dtypes or Triton spelling names; `ValueError` for an unknown one."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"unknown dtype {name!r}; weft knows {', '.join(d.name for d in ELEMENTS)}") from None


def named(name: str) -> DType:
    """The type of `KNOWN` of that spelling; `ValueError` for one that has two meanings, with both, and for an unknown one, with
    the nearest. `weft.semantics.Semantics.named` reads names as a system does."""
    if (dtype := NAMES.get(name)) is not None:
        return dtype
    if name in AMBIGUOUS:
        read = ", ".join(f"{' or '.join(map(str, found))} {how}" for how, found in AMBIGUOUS[name])
        ways = " or ".join(f"'{dtype}'" for _, found in AMBIGUOUS[name] for dtype in found)
        raise ValueError(f"dtype '{name}' has two meanings: {read}; write {ways}")
    hint = did_you_mean(name.lower(), NAMES, f"weft knows {', '.join(d.name for d in KNOWN)}")
    raise ValueError(f"unknown dtype '{name}'; {hint}")


def _foreign(value: object) -> DType | None:
    """The type that another library's object names, if it names one."""
    if isinstance(value, str):
        return named(value) if value in AMBIGUOUS else NAMES.get(value)
    if isinstance(value, (np.dtype, type)):
        try:
            return NAMES.get(np.dtype(cast(Any, value)).name)
        except TypeError:
            return None
    text = str(value) if type(value).__module__ == "torch" else ""
    return NAMES.get(text.removeprefix("torch.")) if text.startswith("torch.") else None


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """The type that shares memory with a NumPy dtype; `ValueError` where weft has none."""
    try:
        return _BY_NUMPY[dtype]
    except KeyError:
        raise ValueError(
            f"no weft dtype for NumPy's {dtype}; weft knows {', '.join(d.name for d in ELEMENTS)}"
        ) from None

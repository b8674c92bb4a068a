"""The table of element types against NumPy and ml_dtypes."""

from __future__ import annotations

import copy
import math
import pickle
import re
from fractions import Fraction
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from weft import dtypes
from weft.dtypes import DType, Kind

# name, Triton's spelling, bits, bytes, signed, exponent bits, mantissa bits
TABLE = """
bool          int1    1  1 0 0  0
int8          int8    8  1 1 0  0
int16         int16   16 2 1 0  0
int32         int32   32 4 1 0  0
int64         int64   64 8 1 0  0
uint8         uint8   8  1 0 0  0
uint16        uint16  16 2 0 0  0
uint32        uint32  32 4 0 0  0
uint64        uint64  64 8 0 0  0
float8_e4m3fn fp8e4nv 8  1 1 4  3
float8_e5m2   fp8e5   8  1 1 5  2
float16       fp16    16 2 1 5  10
bfloat16      bf16    16 2 1 8  7
float32       fp32    32 4 1 8  23
float64       fp64    64 8 1 11 52
"""

INTEGERS = [d for d in dtypes.ALL if d.is_integer]
FLOATS = [d for d in dtypes.ALL if d.is_float]


def test_the_table() -> None:
    rows = [
        (d.name, d.triton, *map(str, (d.bits, d.itemsize, int(d.signed), d.exponent, d.mantissa))) for d in dtypes.ALL
    ]
    assert rows == [tuple(line.split()) for line in TABLE.strip().splitlines()]


def test_kinds_partition_the_types() -> None:
    assert [d.kind for d in dtypes.ALL] == [Kind.BOOL] + [Kind.INTEGER] * 8 + [Kind.FLOAT] * 6
    for d in dtypes.ALL:
        assert [d.is_bool, d.is_integer, d.is_float].count(True) == 1
    assert [d.name for d in dtypes.ALL if d.is_float8] == ["float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_numpy_round_trip(dtype: DType) -> None:
    assert dtype.numpy.name == dtype.name
    assert dtype.numpy.itemsize == dtype.itemsize
    assert dtypes.from_numpy(dtype.numpy) is dtype
    assert dtypes.from_numpy(np.zeros(2, dtype.numpy).dtype) is dtype


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integer_ranges(dtype: DType) -> None:
    info = np.iinfo(dtype.numpy)
    assert (dtype.min, dtype.max) == (int(info.min), int(info.max))


def test_bool_ranges_from_0_to_1() -> None:
    assert (dtypes.bool_.min, dtypes.bool_.max) == (0, 1)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_float_formats(dtype: DType) -> None:
    finfo: Any = ml_dtypes.finfo  # its stub is only partially typed
    info = finfo(dtype.numpy)
    assert (dtype.exponent, dtype.mantissa) == (info.nexp, info.nmant)
    assert 1 + dtype.exponent + dtype.mantissa == dtype.bits
    with np.errstate(over="ignore"):
        infinite = bool(np.isinf(np.array(np.inf, np.float64).astype(dtype.numpy).astype(np.float64)))
    assert dtype.finite_only == (not infinite)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_arithmetic_is_done_in_float32_where_the_type_is_narrower(dtype: DType) -> None:
    narrow = {"float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"}
    assert dtype.compute is (dtypes.float32 if dtype.name in narrow else dtype)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("int1", "bool"),
        ("i1", "bool"),
        ("bool", "bool"),
        ("fp8e4nv", "float8_e4m3fn"),
        ("float8e4nv", "float8_e4m3fn"),
        ("fp8e5", "float8_e5m2"),
        ("float8e5", "float8_e5m2"),
        ("fp16", "float16"),
        ("half", "float16"),
        ("bf16", "bfloat16"),
        ("fp32", "float32"),
        ("fp64", "float64"),
        ("uint16", "uint16"),
    ],
)
def test_spellings(spelling: str, name: str) -> None:
    assert dtypes.parse(spelling).name == name


def test_spellings_are_unambiguous() -> None:
    spellings = [s for d in dtypes.ALL for s in {d.name, d.triton, *d.aliases}]
    assert len(spellings) == len(set(spellings))


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_instances_are_unique(dtype: DType) -> None:
    assert dtypes.parse(dtype.name) is dtype
    assert dtypes.parse(dtype.triton) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype
    assert str(dtype) == repr(dtype) == dtype.name


def test_types_are_distinct_and_usable_as_keys() -> None:
    assert len(set(dtypes.ALL)) == 15
    assert dtypes.int8 != dtypes.uint8
    assert dtypes.int8 == "int8"


KNOWN = (
    "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
    "float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64, "
    "float8_e4m3b15, float8_e4m3fnuz, float8_e5m2fnuz"
)


def test_unknown_names() -> None:
    with pytest.raises(ValueError) as error:
        dtypes.parse("float12")
    assert str(error.value) == f"unknown dtype 'float12'; weft knows {KNOWN}"


@pytest.mark.parametrize(("numpy", "text"), [(np.complex64, "complex64"), (">i4", ">i4"), ("U3", "<U3")])
def test_numpy_types_without_a_weft_type(numpy: Any, text: str) -> None:
    with pytest.raises(ValueError) as error:
        dtypes.from_numpy(np.dtype(numpy))
    assert str(error.value) == f"no weft dtype for NumPy's {text}; weft knows {KNOWN}"


# ---- the types that only weft.semantics knows -----------------------------------------------------------------------

# name, kind, bits, bytes, signed, exponent bits, mantissa bits, bias
KNOWN_TABLE = """
int2               1 2   1  1 0  0
int4               1 4   1  1 0  0
uint2              1 2   1  0 0  0
uint4              1 4   1  0 0  0
float4_e2m1fn      2 4   1  1 2  1  1
float6_e2m3fn      2 6   1  1 2  3  1
float6_e3m2fn      2 6   1  1 3  2  3
float8_e3m4        2 8   1  1 3  4  3
float8_e4m3        2 8   1  1 4  3  7
float8_e4m3b11fnuz 2 8   1  1 4  3  11
float8_e4m3b15     2 8   1  1 4  3  15
float8_e4m3fnuz    2 8   1  1 4  3  8
float8_e5m2fnuz    2 8   1  1 5  2  16
float8_e8m0fnu     2 8   1  0 8  0  127
tensor_float32     2 32  4  1 8  10 127
index              1 64  8  0 0  0
address            1 64  8  0 0  0
complex32          3 32  4  1 5  10
complex64          3 64  8  1 8  23
complex128         3 128 16 1 11 52
"""

KNOWN_FLOATS = [d for d in dtypes.KNOWN if d.is_float]
FLOATS_OF_ML_DTYPES = [d for d in KNOWN_FLOATS if d.name not in ("float8_e4m3b15", "tensor_float32")]
NARROW = [d for d in KNOWN_FLOATS if d.bits <= 8]


def test_the_table_of_known_types() -> None:
    rows: list[tuple[str, ...]] = []
    for d in dtypes.KNOWN[15:]:
        bias = (str(d.bias),) if d.is_float else ()
        numbers = (int(d.kind), d.bits, d.itemsize, int(d.signed), d.exponent, d.mantissa)
        rows.append((d.name, *map(str, numbers), *bias))
    assert rows == [tuple(line.split()) for line in KNOWN_TABLE.strip().splitlines()]
    assert dtypes.KNOWN[:15] == dtypes.ALL


@pytest.mark.parametrize("dtype", FLOATS_OF_ML_DTYPES, ids=str)
def test_parameters_of_every_float(dtype: DType) -> None:
    finfo: Any = ml_dtypes.finfo
    info = finfo(dtype.numpy)
    assert (dtype.bits, dtype.exponent, dtype.mantissa) == (info.bits, info.nexp, info.nmant)
    assert dtype.largest == float(info.max)
    assert dtype.signed == (float(info.min) < 0)
    normal = -dtype.bias if dtype.mantissa == 0 else 1 - dtype.bias
    assert math.ldexp(1.0, normal) == float(info.smallest_normal)
    assert math.ldexp(1.0, normal - dtype.mantissa) == float(info.smallest_subnormal)
    assert dtype.represents(float(info.smallest_subnormal))
    assert not dtype.represents(float(info.smallest_subnormal) / 2) or dtype is dtypes.float64


@pytest.mark.parametrize("dtype", [d for d in dtypes.KNOWN if d.is_integer and d.bits <= 64], ids=str)
def test_ranges_of_every_integer(dtype: DType) -> None:
    if dtype in (dtypes.index, dtypes.address):
        assert (dtype.min, dtype.max) == (0, 2**64 - 1)
    else:
        iinfo: Any = ml_dtypes.iinfo
        info = iinfo(dtype.numpy)
        assert (dtype.min, dtype.max) == (int(info.min), int(info.max))


def values(dtype: DType) -> list[float]:
    """What each code of a narrow format stands for, by ml_dtypes; float8_e4m3b15 by its definition."""
    if dtype is not dtypes.float8_e4m3b15:
        return np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy).astype(np.float64).tolist()
    # (-1)^s * 2^(e - 15) * (1 + m / 8), and 2^-14 * m / 8 where e is 0: no code is an infinity or NaN.
    finite: list[float] = []
    for code in range(256):
        e, m = code >> 3 & 15, code & 7
        size = Fraction(m, 8) * Fraction(2) ** -14 if e == 0 else Fraction(8 + m, 8) * Fraction(2) ** (e - 15)
        finite.append(float(-size if code >> 7 else size))
    return finite


def test_the_largest_of_each_format_that_ml_dtypes_lacks() -> None:
    assert dtypes.float8_e4m3b15.largest == 1.875 == max(values(dtypes.float8_e4m3b15))
    assert dtypes.tensor_float32.largest == (2 - 2**-10) * 2.0**127


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_represents_every_code_and_nothing_between(dtype: DType) -> None:
    codes = values(dtype)
    finite = sorted({v for v in codes if math.isfinite(v)})
    assert all(dtype.represents(v) for v in finite)
    assert dtype.represents(math.nan) == any(math.isnan(v) for v in codes)
    assert dtype.represents(math.inf) == (math.inf in codes)
    assert dtype.represents(-math.inf) == (-math.inf in codes)
    for low, high in zip(finite, finite[1:], strict=False):
        assert not dtype.represents((low + high) / 2), f"between {low} and {high}"
        assert not dtype.represents(math.nextafter(low, high))
    for beyond in (2 * finite[-1], 1.5 * finite[-1], finite[0] - abs(finite[0]) / 2, math.nextafter(finite[-1], 1e300)):
        assert not dtype.represents(beyond)
    assert dtype.represents(0.0) == (0.0 in finite)
    assert dtype.represents(-1.0) == (-1.0 in finite)


@pytest.mark.parametrize(
    ("spelling", "name"),
    [
        ("fp8e4b8", "float8_e4m3fnuz"),
        ("float8e4b8", "float8_e4m3fnuz"),
        ("fp8e5b16", "float8_e5m2fnuz"),
        ("float8e5b16", "float8_e5m2fnuz"),
        ("fp8e4b15", "float8_e4m3b15"),
        ("float8e4b15", "float8_e4m3b15"),
        ("tf32", "tensor_float32"),
        ("index", "index"),
        ("int1", "bool"),
        ("bf16", "bfloat16"),
        ("complex128", "complex128"),
    ],
)
def test_named_spellings(spelling: str, name: str) -> None:
    assert dtypes.named(spelling).name == name


def test_named_spellings_are_unambiguous() -> None:
    spellings = [s for d in dtypes.KNOWN for s in {d.name, d.triton, *d.aliases}]
    assert len(spellings) == len(set(spellings))
    assert all(dtypes.named(d.name) is d for d in dtypes.KNOWN)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("float23", "unknown dtype 'float23'; did you mean 'float32'?"),
        ("uint88", "unknown dtype 'uint88'; did you mean 'uint8'?"),
        ("INT8", "unknown dtype 'INT8'; did you mean 'int8'?"),
        ("???", None),
        ("", None),
    ],
)
def test_named_errors(text: str, message: str | None) -> None:
    """The nearest spelling; where nothing is near, all names."""
    everything = ", ".join(d.name for d in dtypes.KNOWN)
    with pytest.raises(ValueError) as error:
        dtypes.named(text)
    assert str(error.value) == (message or f"unknown dtype '{text}'; weft knows {everything}")


@pytest.mark.parametrize("dtype", dtypes.KNOWN, ids=str)
def test_every_known_type_is_unique(dtype: DType) -> None:
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert copy.deepcopy(dtype) is dtype


def test_types_without_a_numpy_dtype() -> None:
    without: list[str] = []
    for dtype in dtypes.KNOWN:
        try:
            assert dtype.numpy.itemsize == dtype.itemsize
        except TypeError as error:
            assert str(error) == f"neither NumPy nor ml_dtypes has {dtype.name}"
            without.append(dtype.name)
    assert without == ["float8_e4m3b15", "tensor_float32", "index", "address"]


@pytest.mark.parametrize("dtype", dtypes.KNOWN[15:], ids=str)
def test_narrow_floats_compute_in_float32(dtype: DType) -> None:
    assert dtype.compute is (dtypes.float32 if dtype.is_float and dtype.bits < 32 else dtype)


def test_kinds_of_known_types() -> None:
    assert {d.name for d in dtypes.KNOWN if d.is_complex} == {"complex32", "complex64", "complex128"}
    assert {d.name for d in dtypes.KNOWN if d.is_float8} == {
        d.name for d in dtypes.KNOWN if d.name.startswith("float8")
    }


def test_methods_that_functions_of_programs_call() -> None:
    """Triton's, on the host: what kernels ask of a dtype, they ask by these too."""
    half: Any = dtypes.float16
    byte: Any = dtypes.uint8
    assert (half.is_floating(), half.is_fp16(), half.is_bf16(), half.is_int(), half.is_fp8()) == (
        (True, True, False, False, False)
    )
    assert (byte.is_int_unsigned(), byte.is_uint8(), byte.get_int_max_value()) == (True, True, 255)
    with pytest.raises(AttributeError, match=re.escape("float16 has no attribute 'get_int_max_value'")):
        half.get_int_max_value()


def float8_e4m3b15(code: int) -> float:
    """The number of a code of Triton's float8e4b15, which no package has: 4 bits of exponent, 3 of mantissa, a bias of 15."""
    exponent, fraction = code >> 3 & 15, Fraction(code & 7, 8)
    size = (1 + fraction) * Fraction(2) ** (exponent - 15) if exponent else fraction * Fraction(2) ** -14
    return math.copysign(float(size), -1.0 if code & 0x80 else 1.0)


def codes_of(dtype: DType) -> frozenset[str]:
    """The values of all codes of a float: -0 is not 0, and every NaN is the same."""
    if dtype == dtypes.float8_e4m3b15:
        return frozenset(float8_e4m3b15(code).hex() for code in range(256))
    codes = np.arange(1 << dtype.bits).astype(f"u{dtype.itemsize}")
    with np.errstate(invalid="ignore"):  # NaNs
        return frozenset(value.hex() for value in codes.view(dtype.numpy).astype(np.float64).tolist())


def test_lossless_floats_have_all_values_of_the_others() -> None:
    """By their codes, for all formats of at most 16 bits; `dtypes.format_within` leaves the sign of zero and NaN out."""
    values = {d: codes_of(d) for d in dtypes.KNOWN if d.is_float and d.bits <= 16}
    for source, target in product(values, repeat=2):
        kept = values[source] <= values[target]
        assert dtypes.lossless(source, target) == kept, f"{source} -> {target}"
        numbers = values[source] - {"-0x0.0p+0", "nan"} <= values[target]
        assert dtypes.format_within(source, target) == numbers, f"{source} -> {target}"
    assert sum(dtypes.lossless(*pair) for pair in product(values, repeat=2)) > 30


def test_types_that_hold_sums() -> None:
    assert [dtype.name for dtype in dtypes.KNOWN if dtype.holds_sums and dtype.is_float] == [
        "float32",
        "float64",
        "tensor_float32",
    ]
    assert [dtype for dtype in dtypes.KNOWN if dtype.holds_sums and not dtype.is_float] == [
        dtype for dtype in dtypes.KNOWN if dtype.kind is Kind.INTEGER
    ]

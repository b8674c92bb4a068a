"""The table of element types against NumPy and ml_dtypes."""

from __future__ import annotations

import copy
import pickle
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
    assert dtypes.int8 != "int8"


KNOWN = (
    "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
    "float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64"
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

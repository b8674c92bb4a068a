"""How dtypes may be written: everywhere, in each system, and what is refused because it has two meanings."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft.array as wa
from weft import dtypes, semantics
from weft.cli import main
from weft.dtypes import DType
from weft.semantics import Type

UNIQUE = {
    **{"b1": "bool", "u16": "uint16", "u32": "uint32", "u64": "uint64", "i16": "int16", "i32": "int32", "i64": "int64"},
    **{"f2": "float16", "f16": "float16", "f32": "float32", "f64": "float64", "bf": "bfloat16", "bf16": "bfloat16"},
    **{"c8": "complex64", "c16": "complex128", "half": "float16", "single": "float32", "double": "float64"},
    **{"fp32": "float32", "float8e5": "float8_e5m2", "bool_": "bool", "int1": "bool"},
}


@pytest.mark.parametrize("text", UNIQUE)
def test_short_names_with_one_meaning(text: str) -> None:
    assert dtypes.named(text) is dtypes.named(UNIQUE[text])


AMBIGUOUS = {
    "i1": "int8 in bytes (NumPy, JAX), bool in bits (Triton); write 'int8' or 'bool'",
    "i2": "int16 in bytes (NumPy, JAX), int2 in bits; write 'int16' or 'int2'",
    "i4": "int32 in bytes (NumPy, JAX), int4 in bits; write 'int32' or 'int4'",
    "i8": "int64 in bytes (NumPy, JAX), int8 in bits (Triton); write 'int64' or 'int8'",
    "u1": "uint8 in bytes (NumPy, JAX), bool in bits (Triton); write 'uint8' or 'bool'",
    "u2": "uint16 in bytes (NumPy, JAX), uint2 in bits; write 'uint16' or 'uint2'",
    "u4": "uint32 in bytes (NumPy, JAX), uint4 in bits; write 'uint32' or 'uint4'",
    "u8": "uint64 in bytes (NumPy, JAX), uint8 in bits (Triton); write 'uint64' or 'uint8'",
    "f4": "float32 in bytes (NumPy, JAX), float4_e2m1fn in bits; write 'float32' or 'float4_e2m1fn'",
    "f8": "float64 in bytes (NumPy, JAX), float8_e4m3fn or float8_e5m2 in bits; "
    "write 'float64' or 'float8_e4m3fn' or 'float8_e5m2'",
    "float": "float64 in NumPy and JAX, float32 in PyTorch and DALI; write 'float64' or 'float32'",
    "int": "int64 in NumPy and JAX, int32 in PyTorch; write 'int64' or 'int32'",
}


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_names_with_two_meanings_are_refused(text: str) -> None:
    message = f"dtype '{text}' has two meanings: {AMBIGUOUS[text]}"
    for read in (dtypes.named, dtypes.float32.__eq__):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            read(text)


def test_the_command_refuses_them_unless_it_asks_one_system(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["promote", "i1", "i2"]) == 2
    assert "dtype 'i1' has two meanings: int8 in bytes" in capsys.readouterr().err
    assert main(["promote", "i1", "u1", "--system", "jax", "--system", "jax@0.10"]) == 0
    assert "int8 + uint8" in capsys.readouterr().out
    assert main(["promote", "i1", "i8", "--system", "triton"]) == 0
    assert "bool + int8" in capsys.readouterr().out


OWN: list[tuple[str, str, str]] = [
    *(("numpy", text, name) for text, name in (("i1", "int8"), ("i4", "int32"), ("u8", "uint64"), ("f4", "float32"))),
    *(
        ("numpy", text, name)
        for text, name in (("f8", "float64"), ("?", "bool"), ("<f4", "float32"), ("float", "float64"))
    ),
    *(
        ("numpy", text, name)
        for text, name in (("int", "int64"), ("e", "float16"), ("c8", "complex64"), ("i16", "int16"))
    ),
    *(("jax", text, name) for text, name in (("b1", "bool"), ("i1", "int8"), ("u2", "uint16"), ("bf", "bfloat16"))),
    *(("jax", text, name) for text, name in (("f8", "float64"), ("c16", "complex128"), ("i8", "int64"))),
    *(("jax-x32@0.10", "f8", "float64"), ("jax-strict", "i2", "int16"), ("jax@0.10", "float", "float64")),
    *(
        ("torch", text, name)
        for text, name in (("float", "float32"), ("torch.float16", "float16"), ("double", "float64"))
    ),
    *(
        ("torch", text, name)
        for text, name in (("long", "int64"), ("int", "int32"), ("short", "int16"), ("half", "float16"))
    ),
    *(("torch", text, name) for text, name in (("cfloat", "complex64"), ("torch.bool", "bool"))),
    *(("triton", text, name) for text, name in (("i1", "bool"), ("u8", "uint8"), ("i8", "int8"), ("tl.int1", "bool"))),
    *(
        ("triton@3.9", text, name)
        for text, name in (("fp16", "float16"), ("tl.float8e5", "float8_e5m2"), ("u1", "bool"))
    ),
    *(
        ("dali", text, name)
        for text, name in (("FLOAT", "float32"), ("types.UINT8", "uint8"), ("types.FLOAT64", "float64"))
    ),
    *(
        ("dali@2", text, name)
        for text, name in (("DALIDataType.INT16", "int16"), ("float", "float32"), ("BOOL", "bool"))
    ),
    *(
        ("max", text, name)
        for text, name in (("DType.int8", "int8"), ("si8", "int8"), ("ui16", "uint16"), ("f32", "float32"))
    ),
    *(("max@26", text, name) for text, name in (("DType.float8_e4m3fn", "float8_e4m3fn"), ("f8e5m2", "float8_e5m2"))),
]


@pytest.mark.parametrize(("system", "text", "name"), OWN)
def test_each_systems_own_names(system: str, text: str, name: str) -> None:
    chosen, dtype = semantics.get(system), dtypes.named(name)
    assert chosen.named(text) is dtype and chosen.named(name) is dtype
    assert chosen.operand(text) is dtype
    assert chosen.operand(f"{text}[]") == Type(dtype, scalar=True)
    if dtype in chosen.dtypes and "x32" not in system:
        array = wa.asarray(np.ones(2, np.int16), system)
        assert array.astype(text).dtype is dtype
        assert wa.asarray([0, 1], system, dtype=text).dtype is dtype


def test_names_that_a_system_does_not_know() -> None:
    for system, text, message in (
        ("triton", "i4", f"dtype 'i4' has two meanings: {AMBIGUOUS['i4']}"),
        ("dali", "u1", f"dtype 'u1' has two meanings: {AMBIGUOUS['u1']}"),
        ("numpy", "f16", "NumPy reads 'f16' as float128, which weft does not have; write 'float16' for 16 bits"),
        ("numpy", "flot32", "unknown dtype 'flot32'; did you mean 'float32'?"),
        ("torch", "torch.flot32", "unknown dtype 'torch.flot32'; did you mean 'float32'?"),
    ):
        with pytest.raises(ValueError) as raised:
            semantics.get(system).operand(text)
        assert str(raised.value) == message


# ---- comparisons and conversions ---------------------------------------------------------------------------------------


SINGLE: list[Any] = ["float32", "fp32", "f32", np.float32, np.dtype("float32"), dtypes.float32]
OTHERS: list[Any] = ["float64", "int32", "", "no type", np.float64, np.dtype("int32"), float, int, object, None, 3]
PYTHONS: list[tuple[DType, Any]] = [
    *((dtypes.float64, float), (dtypes.int64, int), (dtypes.bool_, bool), (dtypes.complex128, complex)),
    (dtypes.bfloat16, ml_dtypes.bfloat16),
]


def test_dtypes_equal_other_libraries_names_of_them() -> None:
    dtype = wa.asarray(np.ones(2, np.float32)).dtype
    assert all(dtype == same for same in SINGLE) and not any(dtype != same for same in SINGLE)
    assert all(same == dtype for same in SINGLE)
    assert all(dtype != other for other in OTHERS) and not any(dtype == other for other in OTHERS)
    assert all(dtype == python for dtype, python in PYTHONS)


def test_dtypes_of_torch() -> None:
    class Torch:
        def __repr__(self) -> str:
            return "torch.float32"

    Torch.__module__ = "torch"
    assert dtypes.float32 == Torch() and dtypes.float64 != Torch()


def test_each_dtype_equals_itself_alone() -> None:
    for a in dtypes.KNOWN:
        for b in dtypes.KNOWN:
            assert (a == b) == (a is b) == (a == b.name)
        assert a == a.triton or a.triton in AMBIGUOUS
    assert len({*dtypes.KNOWN}) == len(dtypes.KNOWN)
    assert {dtypes.float32: 1}[dtypes.float32] == 1


def test_numpy_takes_dtypes() -> None:
    for dtype in dtypes.ALL:
        given: Any = dtype
        assert np.dtype(given) == dtype.numpy and np.zeros(2, given).dtype == dtype.numpy
    nothing: Any = dtypes.tensor_float32
    with pytest.raises(TypeError, match="neither NumPy nor ml_dtypes has tensor_float32"):
        np.dtype(nothing)

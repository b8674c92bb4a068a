"""Tensor maps: what a NumPy array becomes, the layout of the 128 bytes, and everything that is refused, word for word."""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from weft.emulator import TensorMap
from weft.emulator.arith.swizzle import Swizzle
from weft.emulator.tensor_map import Description, decode

ADDRESS = 0x10_0000_0100


def test_the_layout_of_the_bytes() -> None:
    array = np.zeros((6, 5, 64), np.float16)
    encoded = TensorMap(
        array, box=(2, 3, 32), element_strides=(2, 1, 1), swizzle="64B", fill="nan", l2_promotion="256B"
    ).encode(ADDRESS)
    expected = b"weftTMAP" + struct.pack("<Q", ADDRESS)
    expected += bytes([2, 6, 0, 2, 0, 1, 3, 0])  # rank - 1, f16, no interleave, 64B, 16B atoms, NaN, 256B
    expected += struct.pack("<5I", 64, 5, 6, 0, 0)
    expected += struct.pack("<5I", 32, 3, 2, 0, 0)
    expected += struct.pack("<4Q", 128, 640, 0, 0)
    expected += struct.pack("<5I", 1, 1, 2, 0, 0)
    assert encoded == expected + bytes(12)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [
        (np.uint8, "u8"),
        (np.int8, "u8"),
        (np.bool_, "u8"),
        (ml_dtypes.float8_e4m3fn, "u8"),
        (np.uint16, "u16"),
        (np.int16, "u16"),
        (np.uint32, "u32"),
        (np.int32, "s32"),
        (np.uint64, "u64"),
        (np.int64, "s64"),
        (np.float16, "f16"),
        (ml_dtypes.bfloat16, "bf16"),
        (np.float32, "f32"),
        (np.float64, "f64"),
    ],
)
def test_element_types(dtype: Any, name: str) -> None:
    array = np.zeros((4, 32), dtype)
    described = TensorMap(array, box=(2, 16))
    found = decode(described.encode(ADDRESS))
    assert isinstance(found, Description)
    assert (found.element.name, found.element.bytes, found.tensor.strides) == (
        name,
        array.itemsize,
        (array.itemsize, 32 * array.itemsize),
    )
    assert repr(described) == f"TensorMap((4, 32) of {name}, box (2, 16), swizzle none)"


def test_views_and_buffers() -> None:
    memory = np.zeros((10, 12, 32), np.float32)
    view = memory[1:9:2, 2:7, 4:28]
    found = decode(TensorMap(view, box=(1, 2, 8), swizzle="32B").encode(ADDRESS))
    assert isinstance(found, Description)
    assert found.tensor.sizes == (24, 5, 4)
    assert found.tensor.strides == (4, 128, 2 * 12 * 128)
    assert found.swizzle is Swizzle.B32
    buffer = np.zeros(4096, np.uint8)
    found = decode(TensorMap(buffer, shape=(8, 16), dtype=np.float16, offset=64, box=(8, 8)).encode(ADDRESS))
    assert isinstance(found, Description)
    assert (found.tensor.address, found.tensor.sizes, found.tensor.strides) == (ADDRESS + 64, (16, 8), (2, 32))


ARRAY = np.zeros((8, 64), np.float32)

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"box": (8,)}, "box has 1 entries, expected 2, one for each axis"),
    ({"element_strides": (1, 1, 1)}, "element_strides has 3 entries, expected 2, one for each axis"),
    ({"shape": (8, 8), "strides": (4,)}, "strides has 1 entries, expected 2, one for each axis"),
    ({"shape": (1,) * 6, "box": (1,) * 6}, "the tensor has 6 axes, expected 1 to 5"),
    ({"dtype": np.complex64}, "elements of type complex64 cannot be copied"),
    ({"element": "e4m3"}, "elements of type e4m3 cannot be copied"),
    ({"element": "f16"}, "element f16 does not have 4 bytes"),
    ({"element": "b4x16"}, "element b4x16 does not have 4 bytes"),
    (
        {"shape": (8, 8), "strides": (256, 16)},
        "elements of the last axis are 16 bytes apart, not side by side",
    ),
    ({"interleave": "16B"}, "interleave is '16B', and the emulator knows 'none' only"),
    (
        {"swizzle": "96B"},
        "swizzle is '96B', expected one of none, 32B, 64B, 128B, 128B_ATOM_32B, 128B_ATOM_32B_FLIP_8B, 128B_ATOM_64B",
    ),
    ({"fill": "ones"}, "fill is 'ones', expected one of zeros, nan"),
    ({"l2_promotion": "512B"}, "l2_promotion is '512B', expected one of none, 64B, 128B, 256B"),
    ({"shape": (9, 64)}, "the tensor does not fit into the array's memory"),
    ({"offset": -16}, "the tensor does not fit into the array's memory"),
    ({"shape": (8, 32), "strides": (-128, 4)}, "the tensor does not fit into the array's memory"),
    ({"box": (8, 257)}, "the box has 257 elements in dimension 0, expected 1 to 256"),
    ({"box": (0, 4)}, "the box has 0 elements in dimension 1, expected 1 to 256"),
    ({"element_strides": (9, 1)}, "the element stride of dimension 1 is 9, expected 1 to 8"),
    ({"box": (8, 6)}, "a row of the box has 24 bytes, expected a multiple of 16"),
    ({"box": (8, 12), "swizzle": "32B"}, "a row of the box has 48 bytes, expected at most 32 with the 32B swizzle"),
    (
        {"shape": (4, 8), "strides": (24, 4)},
        "the stride of dimension 1 is 24 bytes, expected a multiple of 16 below 2**40",
    ),
    (
        {"box": (8, 12), "swizzle": "64B"},
        "a row of the box has 48 bytes, and how the 64B swizzle places rows shorter than 64 is not documented",
    ),
    ({"shape": (8, 0)}, "dimension 0 has 0 elements, expected 1 to 2**32 - 1"),
    ({"dtype": np.uint32, "fill": "nan"}, "elements of type u32 have no NaN to fill with"),
]


@pytest.mark.parametrize(("changed", "message"), REFUSED)
def test_what_no_tensor_map_has(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"box": (4, 8)} | changed
    with pytest.raises(ValueError) as caught:
        TensorMap(ARRAY, **given)
    assert str(caught.value) == f"TensorMap: {message}"


NARROW = np.zeros((8, 192), np.uint8)

REFUSED_NARROW: list[tuple[dict[str, Any], str]] = [
    (
        {"element": "b4x16", "box": (4, 33)},
        "the box has 33 elements of type b4x16 in dimension 0, expected a multiple of 2",
    ),
    ({"element": "b4x16", "box": (4, 16)}, "a row of the box has 8 bytes, expected a multiple of 16"),
    (
        {"element": "b4x16", "shape": (8, 31), "strides": (192, 1)},
        "dimension 0 has 31 elements of type b4x16, expected a multiple of 2",
    ),
    (
        {"element": "b4x16_p64", "box": (4, 64)},
        "the box has 64 elements of type b4x16_p64 in dimension 0, expected 128",
    ),
    (
        {"element": "b4x16_p64", "shape": (8, 192)},
        "dimension 0 has 192 elements of type b4x16_p64, expected a multiple of 128",
    ),
    (
        {"element": "b6x16_p32", "shape": (8, 128), "strides": (112, 1)},
        "the stride of dimension 1 is 112 bytes, expected a multiple of 32 below 2**40",
    ),
    (
        {"element": "b6x16_p32", "swizzle": "64B"},
        "a row of the box has 128 bytes, expected at most 64 with the 64B swizzle",
    ),
    ({"element": "b6x16_p32", "fill": "nan"}, "elements of type b6x16_p32 have no NaN to fill with"),
    ({"element": "b6x16_p32", "shape": (8, 384)}, "the tensor does not fit into the array's memory"),
]


@pytest.mark.parametrize(("changed", "message"), REFUSED_NARROW)
def test_what_no_tensor_map_of_narrow_elements_has(changed: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"box": (4, 128)} | changed
    with pytest.raises(ValueError) as caught:
        TensorMap(NARROW, **given)
    assert str(caught.value) == f"TensorMap: {message}"


@pytest.mark.parametrize(
    ("name", "code", "columns"), [("b4x16", 13, 384), ("b4x16_p64", 14, 384), ("b6x16_p32", 15, 256)]
)
def test_maps_of_narrow_elements_count_elements(name: str, code: int, columns: int) -> None:
    described = TensorMap(NARROW, element=name, box=(2, 128))
    raw = described.encode(ADDRESS)
    assert raw[17] == code
    assert struct.unpack("<2I", raw[24:32]) == (columns, 8)
    assert struct.unpack("<2I", raw[44:52]) == (128, 2)
    assert struct.unpack("<Q", raw[64:72]) == (192,)
    assert repr(described) == f"TensorMap((8, {columns}) of {name}, box (2, 128), swizzle none)"
    found = decode(raw)
    assert isinstance(found, Description)
    assert found.encode() == raw


def test_an_address_that_no_tensor_has() -> None:
    with pytest.raises(ValueError) as caught:
        TensorMap(ARRAY, box=(4, 8)).encode(ADDRESS + 8)
    assert str(caught.value) == "TensorMap: the address 0x1000000108 is no multiple of 16"


def patched(**fields: Any) -> bytes:
    """The bytes of a good map with others at some offsets: ``at17=14``."""
    raw = bytearray(TensorMap(ARRAY, box=(4, 8)).encode(ADDRESS))
    for name, value in fields.items():
        raw[int(name.removeprefix("at"))] = value
    return bytes(raw)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (patched(at16=5), "the tensor map has rank 6, expected 1 to 5"),
        (patched(at18=1), "the tensor map has interleave layout 1, and the emulator knows 0 only"),
        (patched(at19=4), "the tensor map has swizzle mode 4 of atomicity 0, which the emulator does not know"),
        (patched(at19=3, at20=4), "the tensor map has swizzle mode 3 of atomicity 4, which the emulator does not know"),
        (patched(at19=2, at20=1), "the tensor map has swizzle mode 2 of atomicity 1, which the emulator does not know"),
        (patched(at17=16), "the tensor map has element type 16 and fill mode 0, which do not exist"),
        (patched(at23=3), "the tensor map has mode 3, which does not exist"),
        (patched(at21=2), "the tensor map has element type 7 and fill mode 2, which do not exist"),
        (
            patched(at17=14),
            "the tensor map is invalid: dimension 0 has 64 elements of type b4x16_p64, expected a multiple of 128",
        ),
        (
            patched(at17=14, at24=128, at44=128, at8=16),
            "the tensor map is invalid: the address 0x1000000110 is no multiple of 32",
        ),
        (patched(at8=8), "the tensor map is invalid: the address 0x1000000108 is no multiple of 16"),
    ],
)
def test_what_decoding_finds_wrong(raw: bytes, message: str) -> None:
    assert decode(raw) == message

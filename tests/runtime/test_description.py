"""Launches by other code: the description is all it needs, and its parameters are those of the PTX."""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl
from cuda_arrays import Interface
from fake_cuda import FakeDriver, install
from weft import dtypes, emulator
from weft.dtypes import DType
from weft.emulator.machine.symbols import size_of
from weft.frontend.signature import ScalarArgument
from weft.runtime.description import LaunchDescription, parameters_of
from weft.runtime.handles import GpuHandle

pytestmark = pytest.mark.jit


@weft.jit
def mixed(
    on: Any, x: Any, wide: Any, n: Any, none: Any, factor: Any, narrow: Any, last: Any, SIZE: tl.constexpr
) -> None:
    i = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    if on and last:
        tl.store(x + i, tl.load(x + i, mask=i < n) * factor + wide + narrow, mask=i < n)


def handle(x: Any = None, n: int = 32, **options: Any) -> GpuHandle:
    x = np.zeros(64, np.float32) if x is None else x
    return mixed.compile(True, x, 2**40, n, None, 2.5, 7, True, SIZE=32, target="sm_80", **options)


def test_parameters() -> None:
    """Each at a multiple of its size: a bool, a pointer, an int64, two int32 around a float32, a bool; None is no parameter."""
    found = [(p.name, p.dtype.name, p.pointer, p.size, p.offset, p.multiple) for p in handle().parameters]
    assert found == [
        ("on", "bool", False, 1, 0, 1),
        ("x", "float32", True, 8, 8, 16),
        ("wide", "int64", False, 8, 16, 16),
        ("n", "int32", False, 4, 24, 16),
        ("factor", "float32", False, 4, 28, 1),
        ("narrow", "int32", False, 4, 32, 1),
        ("last", "bool", False, 1, 36, 1),
    ]


def test_parameters_are_those_of_the_ptx() -> None:
    made = handle()
    function = emulator.Module(made.ptx).syntax.functions[made.symbol]
    assert [size_of(parameter) for parameter in function.parameters] == [p.size for p in made.parameters]


def test_a_description_is_enough_for_the_emulator() -> None:
    x = np.arange(64, dtype=np.float32)
    expected = np.where(np.arange(64) < 48, x * 2 + np.float32(2**24) + 16, x)
    made = handle(n=48, num_warps=2)
    launch = made.description((2,))
    assert (launch.grid, launch.block, launch.shared) == ((2, 1, 1), (64, 1, 1), 0)
    packed = launch.pack(True, 0, 2**24, 48, 2.0, 16, True)
    values: list[Any] = [packed[p.offset : p.offset + p.size] for p in launch.parameters]
    values[1] = x
    emulator.Module(made.ptx).launch(launch.symbol, launch.grid, launch.block, values, shared=launch.shared)
    np.testing.assert_array_equal(x, expected)


def test_packed_bytes() -> None:
    """Written by hand: one byte, seven of padding, ..."""
    packed = handle().description(1).pack(True, 0x1230, 2**40, 32, 2.5, -7, False)
    assert packed == struct.pack("<?7xQqifi?", True, 0x1230, 2**40, 32, 2.5, -7, False)
    assert handle().description(1).pack(np.bool_(True), 0x1230, np.int64(2**40), 32, 1e300, -7, True)[28:32] == (
        np.float32(np.inf).tobytes()
    )


def test_arrays_are_packed_as_their_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = install(monkeypatch, FakeDriver())
    array = Interface(driver, np.zeros(64, np.float32))
    packed = handle().description(1).pack(True, array, 0, 32, 2.5, 7, True)
    assert int.from_bytes(packed[8:16], "little") == array.address


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (
            (True, 0x1234, 0, 32, 2.5, 7, True),
            ValueError,
            "kernel 'mixed': parameter 'x': found the address 0x1234, but the kernel was compiled for multiples of 16; compile "
            "it for such arguments",
        ),
        (
            (True, 0x1230, 0, 33, 2.5, 7, True),
            ValueError,
            "kernel 'mixed': parameter 'n': found 33, but the kernel was compiled for multiples of 16; compile it for such "
            "arguments",
        ),
        (
            (True, 0x1230, 0, 2**40, 2.5, 7, True),
            ValueError,
            "kernel 'mixed': a value does not fit its parameter: 'i' format requires -2147483648 <= number <= 2147483647",
        ),
        (
            (True, 0x1230),
            TypeError,
            "kernel 'mixed' takes 7 parameters at run time (on, x, wide, n, factor, narrow, last), found 2",
        ),
        (
            (True, "x", 0, 32, 2.5, 7, True),
            TypeError,
            "kernel 'mixed': parameter 'x': expected an address or an array, found str",
        ),
        (
            (True, np.zeros(4, np.int32), 0, 32, 2.5, 7, True),
            TypeError,
            "kernel 'mixed': parameter 'x': found an array of int32, but the kernel was compiled for float32",
        ),
        (
            (True, np.zeros(4, np.complex64), 0, 32, 2.5, 7, True),
            TypeError,
            "kernel 'mixed': parameter 'x': found a NumPy array of complex64; weft has bool, int8, int16, int32, int64, uint8, "
            "uint16, uint32, uint64, float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64, float8_e4m3b15, "
            "float8_e4m3fnuz, float8_e5m2fnuz",
        ),
    ],
)
def test_values_that_were_not_compiled_for(values: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        handle().description(1).pack(*values)
    assert str(raised.value) == message


def test_an_address_that_was_not_specialised_is_that_of_an_element() -> None:
    unaligned = handle(np.zeros(65, np.float32)[1:]).description(1)
    assert unaligned.parameters[1].multiple == 4
    unaligned.pack(True, 0x1234, 0, 32, 2.5, 7, True)
    with pytest.raises(ValueError, match="multiples of 4"):
        unaligned.pack(True, 0x1232, 0, 32, 2.5, 7, True)


@pytest.mark.parametrize(
    "dtype", [d for d in dtypes.ALL if d.name not in ("bool", "bfloat16") and not d.name.startswith("float8")], ids=str
)
def test_scalars_of_every_type(dtype: DType) -> None:
    """Behind a byte, each at a multiple of its size."""
    signature = {"first": ScalarArgument(dtypes.int8), "second": ScalarArgument(dtype)}
    launch = LaunchDescription("k", (1, 1, 1), (32, 1, 1), 0, parameters_of(signature))
    expected = np.zeros(1, np.dtype([("first", "i1"), ("second", dtype.numpy)], align=True))
    expected["first"], expected["second"] = -1, 5
    assert launch.pack(-1, 5 if dtype.is_integer else 5.0) == expected.tobytes()


def test_scalars_that_cannot_be_packed() -> None:
    launch = LaunchDescription("k", (1, 1, 1), (32, 1, 1), 0, parameters_of({"x": ScalarArgument(dtypes.bfloat16)}))
    with pytest.raises(ValueError, match="^parameter 'x': scalars of bfloat16 cannot be packed$"):
        launch.pack(1.0)


def test_the_largest_grid() -> None:
    largest = (2**31 - 1, 65535, 1)
    assert handle().description(largest).grid == largest
    assert handle().description((1, 1, 65535)).grid == (1, 1, 65535)


@pytest.mark.parametrize(
    ("grid", "message"),
    [
        (lambda meta: (1,), "kernel 'mixed': a description is of a grid's sizes, found a function"),  # pyright: ignore
        (
            (1, 2, 65536),
            "kernel 'mixed': a grid on a GPU has at most 65535 programs in z, found 65536 in (1, 2, 65536)",
        ),
    ],
)
def test_grids_that_have_no_description(grid: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}$"):
        handle().description(grid)

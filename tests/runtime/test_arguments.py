"""Classification of arguments: tokens, slots, extents, and what is refused."""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft import dtypes
from weft import language as tl
from weft.dtypes import DType
from weft.frontend.signature import ConstantArgument, PointerArgument, ScalarArgument
from weft.runtime.arguments import Parameter, bind, disjoint, signature_of, slot_format, to_float32
from weft.runtime.jit import jit

X = Parameter("x")
CONSTEXPR = Parameter("B", constexpr=True)


def aligned_array(dtype: Any, size: int = 16, offset: int = 0) -> np.ndarray[Any, Any]:
    """``size`` elements whose address is ``offset`` beyond a multiple of 64."""
    itemsize = np.dtype(dtype).itemsize
    raw = np.zeros(size * itemsize + 64 + offset, np.uint8)
    start = -raw.__array_interface__["data"][0] % 64 + offset
    return raw[start : start + size * itemsize].view(dtype)


def argument(value: Any, parameter: Parameter = X) -> Any:
    """The signature's entry for one value."""
    bound = bind("k", [parameter], [value])
    return signature_of([parameter], bound.key, [value])[parameter.name]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_arrays_of_every_dtype(dtype: DType) -> None:
    array = aligned_array(dtype.numpy)
    assert argument(array) == PointerArgument(dtype, aligned=True)
    bound = bind("k", [X], [array])
    address = array.__array_interface__["data"][0]
    assert bound.slots == [address]
    assert bound.extents == [(address, address + 16 * dtype.itemsize)]


@pytest.mark.parametrize(("offset", "expected"), [(0, True), (4, False), (8, False), (16, True), (32, True)])
def test_alignment_is_that_of_the_address(offset: int, expected: bool) -> None:
    assert argument(aligned_array(np.float32, offset=offset)) == PointerArgument(dtypes.float32, expected)


INTEGERS = [
    (0, dtypes.int32, True),
    (2, dtypes.int32, False),
    (-1, dtypes.int32, False),
    (-16, dtypes.int32, True),
    (2**31 - 1, dtypes.int32, False),
    (2**31 - 16, dtypes.int32, True),
    (-(2**31), dtypes.int32, True),
    (2**31, dtypes.int64, True),
    (-(2**31) - 1, dtypes.int64, False),
    (2**63 - 1, dtypes.int64, False),
    (-(2**63), dtypes.int64, True),
    (2**63, dtypes.uint64, True),
    (2**64 - 1, dtypes.uint64, False),
]


@pytest.mark.parametrize(("value", "dtype", "divisible"), INTEGERS)
def test_integers_take_the_first_type_that_holds_them(value: int, dtype: DType, divisible: bool) -> None:
    assert argument(value) == ScalarArgument(dtype, divisible)


def test_integers_beyond_64_bits_are_refused() -> None:
    for value in (2**64, -(2**63) - 1):
        with pytest.raises(OverflowError) as raised:
            bind("add", [X], [value])
        assert str(raised.value) == f"kernel 'add': parameter 'x' is {value}, which fits neither int64 nor uint64"


def test_the_integer_one_and_none_are_constants() -> None:
    assert argument(1) == ConstantArgument(1)
    assert argument(np.int64(1)) == ConstantArgument(1)
    assert argument(None) == ConstantArgument(None)
    assert bind("k", [X, X], [1, None]).slots == []


@pytest.mark.parametrize("value", [1.5, np.float32(1.5), np.float64(1.5), np.float16(1.5), ml_dtypes.bfloat16(1.5)])
def test_floats_are_float32(value: Any) -> None:
    assert argument(value) == ScalarArgument(dtypes.float32)
    assert bind("k", [X], [value]).slots == [1.5]


@pytest.mark.parametrize("value", [True, np.True_])
def test_bools_are_bools_even_true(value: Any) -> None:
    assert argument(value) == ScalarArgument(dtypes.bool_)
    assert bind("k", [X], [value]).slots == [True]


def test_numpy_integers_count_as_ints() -> None:
    assert argument(np.uint8(32)) == ScalarArgument(dtypes.int32, True)
    assert argument(np.int64(2**40)) == ScalarArgument(dtypes.int64, True)


def test_do_not_specialize() -> None:
    plain = Parameter("x", specialise=False, align=False)
    assert argument(1, plain) == ScalarArgument(dtypes.int32)
    assert argument(16, plain) == ScalarArgument(dtypes.int32)
    assert argument(2**40, plain) == ScalarArgument(dtypes.int64)
    assert argument(aligned_array(np.float32), plain) == PointerArgument(dtypes.float32)
    unaligned = Parameter("x", align=False)
    assert argument(1, unaligned) == ConstantArgument(1)
    assert argument(16, unaligned) == ScalarArgument(dtypes.int32)


def test_constants_that_mean_different_things_have_different_keys() -> None:
    @jit
    def helper() -> None: ...

    @jit
    def other() -> None: ...

    values = [
        0,
        1,
        True,
        False,
        1.0,
        0.0,
        -0.0,
        "1",
        None,
        (1,),
        (True,),
        (1.0,),
        (),
        tl.float32,
        tl.int32,
        helper,
        other,
    ]
    keys = [tuple(bind("k", [CONSTEXPR], [value]).key) for value in values]
    assert len(set(keys)) == len(values)
    assert keys == [tuple(bind("k", [CONSTEXPR], [value]).key) for value in values]


def test_nan_is_one_constant() -> None:
    keys = {tuple(bind("k", [CONSTEXPR], [float(text)]).key) for text in ("nan", "nan")}
    assert len(keys) == 1


def test_constexpr_objects_are_unwrapped() -> None:
    assert argument(tl.constexpr(64), CONSTEXPR) == ConstantArgument(64)
    assert argument(tl.constexpr(64)) == ScalarArgument(dtypes.int32, True)
    assert bind("k", [CONSTEXPR], [tl.constexpr(64)]).key == bind("k", [CONSTEXPR], [64]).key


class Plain:
    """An object that is no array, with a short repr."""

    def __repr__(self) -> str:
        return "Plain()"


def swapped() -> np.ndarray[Any, Any]:
    return np.zeros(4, np.dtype(np.float32).newbyteorder())


KNOWN = (
    "weft has bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float8_e4m3fn, float8_e5m2, float16, "
    "bfloat16, float32, float64, float8_e4m3b15, float8_e4m3fnuz, float8_e5m2fnuz"
)
EXPECTED = "expected an array, an int, a float, a bool or None, found"
REFUSED: list[tuple[Any, str]] = [
    ([1, 2], f"{EXPECTED} list [1, 2]; pass an array, as numpy.asarray makes it, or a tuple of arguments"),
    ("abc", f"{EXPECTED} str 'abc'; a compile-time value needs the annotation 'x: tl.constexpr'"),
    (tl.float32, f"{EXPECTED} DType float32; a compile-time value needs the annotation 'x: tl.constexpr'"),
    (Plain(), f"{EXPECTED} Plain Plain()"),
    (1j, f"{EXPECTED} complex 1j"),
    (np.zeros(2, object), f"found a NumPy array of object; {KNOWN}"),
    (np.zeros(2, "U3"), f"found a NumPy array of <U3; {KNOWN}"),
    (np.zeros(2, [("a", np.int32)]), f"found a NumPy array of [('a', '<i4')]; {KNOWN}"),
    (np.zeros(2, np.complex64), f"found a NumPy array of complex64; {KNOWN}"),
    (np.zeros(2, ml_dtypes.float8_e4m3b11fnuz), f"found a NumPy array of float8_e4m3b11fnuz; {KNOWN}"),
    (swapped(), "found byte-swapped >f4; pass array.astype(array.dtype.newbyteorder('='))"),
    (
        np.ma.masked_array(np.zeros(2), [True, False]),
        "found a masked array, whose mask a kernel would ignore; pass .data or .filled()",
    ),
    (
        aligned_array(np.uint8, 16)[1:9].view(np.float32),
        "found float32 elements at an address that is no multiple of 4; pass a copy",
    ),
]


@pytest.mark.parametrize(
    ("value", "message"), REFUSED, ids=[type(v).__name__ + str(i) for i, (v, _) in enumerate(REFUSED)]
)
def test_what_a_kernel_cannot_take(value: Any, message: str) -> None:
    with pytest.raises(TypeError) as raised:
        bind("add", [X], [value])
    assert str(raised.value) == f"kernel 'add': parameter 'x': {message}"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (np.zeros((4, 2), np.float32), "a NumPy array of float32 with shape (4, 2)"),
        ([1, 2], "list [1, 2]"),
        ({}, "dict {}"),
        ((1, [2]), "list [2]"),
    ],
)
def test_what_a_constexpr_cannot_be(value: Any, found: str) -> None:
    with pytest.raises(TypeError) as raised:
        bind("add", [CONSTEXPR], [value])
    assert str(raised.value) == (
        f"kernel 'add': parameter 'B' is a tl.constexpr: expected a hashable compile-time value, found {found}"
    )


def test_views_of_any_strides_point_to_their_first_element() -> None:
    base = np.arange(24, dtype=np.int32).reshape(4, 6)
    for view in (base[1:, ::2], base[::-1], base.T, base[:, ::-1], base[2:2], np.broadcast_to(base, (3, 4, 6))):
        bound = bind("k", [X], [view])
        assert bound.slots == [view.__array_interface__["data"][0]]
        low, high = np.lib.array_utils.byte_bounds(view)
        assert bound.extents == [(low, high) if view.size else (low, low)]


def test_read_only_arrays_are_noted() -> None:
    array = np.zeros(4, np.float32)
    array.flags.writeable = False
    assert bind("k", [X, Parameter("y")], [array, np.zeros(4)]).read_only == ("x",)


def test_subclasses_and_empty_arrays(tmp_path: Any) -> None:
    mapped = np.memmap(tmp_path / "file", np.float32, "w+", shape=(4,))
    assert argument(mapped).dtype == dtypes.float32
    bound = bind("k", [X], [np.zeros(0, np.float32)])
    assert bound.extents[0] is not None
    assert bound.extents[0][0] == bound.extents[0][1]


SPANS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda p: (p[0], p[0] + p[1])), max_size=6)


@settings(max_examples=200, deadline=None)
@given(SPANS)
def test_disjoint_is_that_no_byte_is_shared(spans: list[tuple[int, int]]) -> None:
    touched = [byte for low, high in spans for byte in range(low, high)]
    assert disjoint(spans) == (len(touched) == len(set(touched)))


def test_disjoint_knows_nothing_of_unknown_extents() -> None:
    assert disjoint([None])
    assert not disjoint([None, (0, 4)])
    assert not disjoint([(0, 4), None])


def test_slots_pack_as_the_kernel_abi_says() -> None:
    """8 bytes each: addresses and integers extended, a float's bits in the low bytes, a bool 0 or 1."""
    values = [aligned_array(np.float32), -2, 2**40, 2**64 - 1, 1.5, True, 1, None]
    parameters = [Parameter(f"p{i}") for i in range(len(values))]
    bound = bind("k", parameters, values)
    packed = struct.pack("=" + slot_format(bound.key), *bound.slots)
    address = bound.slots[0]
    assert np.frombuffer(packed, np.uint64).tolist() == [address, 2**64 - 2, 2**40, 2**64 - 1, 0x3FC00000, 1]


def test_floats_beyond_float32_become_infinite() -> None:
    assert to_float32([7, 1e300, -1e300, 0.5]) == [7, float("inf"), float("-inf"), 0.5]


def test_floats_of_wide_parameters_are_float64() -> None:
    bound = bind("k", [Parameter("x"), Parameter("y", wide=True), Parameter("z", wide=True)], [1e300, 1e300, 3])
    assert bound.key == ["float32", "float64", "int32"]
    assert to_float32(bound.slots) == [float("inf"), 1e300, 3]
    assert slot_format(bound.key) == "f4xdq"

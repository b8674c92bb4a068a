"""The flat memory: which addresses are there, what an access outside says, and that it touches nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import test

from weft import dtypes
from weft.ir import tile
from weft.ir.location import Position, location
from weft.ir.types import pointer
from weft.reference import OutOfBoundsError
from weft.reference.memory import Memory, Site

Execute = Callable[..., None]

ALL = np.array([True, True])


@pytest.fixture
def site() -> Site:
    """A load in line 12 of a kernel, executed by program (1, 2, 0)."""
    source = test.TestOp(result_types=[pointer(dtypes.int32)])
    op = tile.LoadOp(source.results[0])
    op.location = location([Position("k.py", 12, 4, "helper"), Position("k.py", 30, 8, "kernel")])
    return Site(op, (1, 2, 0))


def start(array: np.ndarray[Any, Any]) -> int:
    return array.__array_interface__["data"][0]


def addresses(array: np.ndarray[Any, Any], *offsets: int) -> np.ndarray[Any, Any]:
    """Addresses at byte offsets from the array's first element."""
    return start(array) + np.array(offsets, np.int64)


def test_elements_are_found_by_address(site: Site) -> None:
    array = np.array([10, 20, 30], np.int32)
    memory = Memory([array])
    assert memory.read(site, addresses(array, 8, 0), dtypes.int32, ALL).tolist() == [30, 10]
    memory.write(site, addresses(array, 4, 8), np.array([7, 9], np.int32), ALL)
    assert array.tolist() == [10, 7, 9]


def test_unaligned_and_reinterpreted_access(site: Site) -> None:
    array = np.array([0x11223344, 0x55667788], np.dtype("<i4"))
    memory = Memory([array])
    assert memory.read(site, addresses(array, 2, 3), dtypes.uint16, ALL).tolist() == [0x1122, 0x8811]
    assert memory.read(site, addresses(array, 4, 4), dtypes.int8, ALL).tolist() == [0x88 - 256] * 2


def test_a_scalar_pointer(site: Site) -> None:
    array = np.array([1.5, 2.5])
    one = np.array(start(array) + 8)
    memory = Memory([array])
    result = memory.read(site, one, dtypes.float64, np.array(True))
    assert (result.shape, float(result)) == ((), 2.5)
    memory.write(site, one, np.array(4.0), np.array(True))
    assert array.tolist() == [1.5, 4.0]


def test_masked_elements_are_not_touched_and_read_as_zero(site: Site) -> None:
    array = np.array([5, 6], np.int16)
    memory = Memory([array])
    at = np.array([0, start(array)], np.int64)  # the first address is nowhere
    mask = np.array([False, True])
    assert memory.read(site, at, dtypes.int16, mask).tolist() == [0, 5]
    memory.write(site, at, np.array([1, 2], np.int16), mask)
    assert array.tolist() == [2, 6]


def test_the_last_of_several_writes_stays(site: Site) -> None:
    array = np.zeros(2, np.int32)
    at = addresses(array, 0, 0, 4, 0)
    Memory([array]).write(site, at, np.array([1, 2, 3, 4], np.int32), np.array([True, True, True, False]))
    assert array.tolist() == [2, 3]


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_type_survives_a_round_trip(dtype: dtypes.DType, site: Site) -> None:
    array = np.array([1, 0]).astype(dtype.numpy)
    memory = Memory([array])
    value = memory.read(site, addresses(array, 0, dtype.itemsize), dtype, ALL)
    assert value.dtype == dtype.numpy
    memory.write(site, addresses(array, dtype.itemsize, 0), value, ALL)
    assert array.astype(np.float64).tolist() == [0.0, 1.0]


def test_a_bool_is_any_byte_but_zero(site: Site) -> None:
    array = np.array([0, 2, 255], np.uint8)
    result = Memory([array]).read(site, addresses(array, 0, 1, 2), dtypes.bool_, np.ones(3, np.bool_))
    assert result.dtype == np.bool_
    assert result.tolist() == [False, True, True]


def test_views_of_one_array_share_their_memory(site: Site) -> None:
    base = np.arange(10, dtype=np.int32)
    first, second = base[:6], base[4:]
    memory = Memory([first, second])
    memory.write(site, addresses(first, 20, 36), np.array([50, 90], np.int32), ALL)
    assert (second[1], base[9]) == (50, 90)


def test_strided_and_reversed_views_reach_their_whole_extent(site: Site) -> None:
    base = np.arange(12, dtype=np.int16).reshape(3, 4)
    column, backwards = base[:, 1], base.ravel()[::-1]
    assert Memory([column]).read(site, addresses(column, 2, 16), dtypes.int16, ALL).tolist() == [2, 9]
    with pytest.raises(OutOfBoundsError):
        Memory([column]).read(site, addresses(column, 0, 18), dtypes.int16, ALL)
    assert Memory([backwards]).read(site, addresses(backwards, 0, -22), dtypes.int16, ALL).tolist() == [11, 0]


def test_the_last_element_is_inside_and_the_next_is_not(site: Site) -> None:
    base = np.arange(8, dtype=np.int32)
    array = base[2:5]
    memory = Memory([array])
    assert memory.read(site, addresses(array, 0, 8), dtypes.int32, ALL).tolist() == [2, 4]
    for offset in (12, -4, 9, -1):  # one past the end, one before, and straddling each end
        with pytest.raises(OutOfBoundsError) as error:
            memory.read(site, addresses(array, 4, offset), dtypes.int32, ALL)
        assert str(error.value) == (
            "tile.load at k.py:12:5 in helper, called from k.py:30:9 in kernel, program (1, 2, 0): "
            f"element (1,) accesses 4 bytes at {start(array) + offset:#x}, outside every argument"
        )
        assert (error.value.site, error.value.address, error.value.element) == (site, start(array) + offset, (1,))


def test_nothing_is_written_when_one_element_is_outside(site: Site) -> None:
    first, second = np.zeros(4, np.int32), np.zeros(4, np.int32)
    at = np.array([[start(first), start(second)], [start(first) + 4, 0]], np.int64)
    with pytest.raises(OutOfBoundsError, match=r"element \(1, 1\) accesses 4 bytes at 0x0, outside every argument"):
        Memory([first, second]).write(site, at, np.ones((2, 2), np.int32), np.ones((2, 2), np.bool_))
    assert not first.any()
    assert not second.any()


def test_writing_to_a_read_only_array(site: Site) -> None:
    array = np.zeros(4, np.int32)
    array.flags.writeable = False
    memory = Memory([array])
    assert memory.read(site, addresses(array, 0, 4), dtypes.int32, ALL).tolist() == [0, 0]
    with pytest.raises(OutOfBoundsError) as error:
        memory.write(site, addresses(array, 8, 4), np.ones(2, np.int32), ALL)
    assert str(error.value).endswith(f"element (0,) accesses 4 bytes at {start(array) + 8:#x}, which is read-only")
    assert not array.any()


def test_an_empty_array_has_no_elements(site: Site) -> None:
    array = np.zeros((0, 3), np.int32)
    with pytest.raises(OutOfBoundsError):
        Memory([array]).read(site, addresses(array, 0), dtypes.int32, np.array([True]))

"""Kernels that load an address of the host and use it: the array there is an allocation of the launch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from weft.emulator import Module, OutOfBounds, Race
from weft.emulator.memory.host import HostAddresses


def adds_one(space: str = ".global") -> Module:
    """Thread t of block b adds 1 to element t of the array whose address is ``table[b]``."""
    return Module(f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry adds_one(.param .u64 table)
{{
    .reg .b32 %r<4>; .reg .b64 %rd<9>;
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
    ld.param.u64 %rd0, [table];
    mad.wide.u32 %rd1, %r1, 8, %rd0;
    ld.global.u64 %rd2, [%rd1];
    mad.wide.u32 %rd3, %r0, 4, %rd2;
    ld{space}.u32 %r2, [%rd3];
    add.u32 %r2, %r2, 1;
    st{space}.u32 [%rd3], %r2;
    ret;
}}
""")


def table(*arrays: Any) -> Any:
    return np.array([array.ctypes.data for array in arrays], np.int64)


@pytest.mark.parametrize("space", [".global", ""], ids=["global", "generic"])
def test_what_a_kernel_writes_there_is_there(space: str) -> None:
    x, y, between = np.arange(5, dtype=np.int32), np.arange(40, 45, dtype=np.int32), np.zeros(5, np.int32)
    adds_one(space).launch("adds_one", 2, 5, [table(y, x)], memory=[x, between, y])
    assert x.tolist() == [1, 2, 3, 4, 5]
    assert y.tolist() == [41, 42, 43, 44, 45]
    assert not between.any()


def test_an_address_inside_of_an_array_and_an_array_that_is_an_argument_too() -> None:
    """The table's own third element, counted up by 1, through its own address."""
    given = np.zeros(3, np.int64)
    given[0] = given.ctypes.data + 16
    adds_one().launch("adds_one", 1, 1, [given], memory=[given])
    assert given[2] == 1


def test_behind_the_end_is_out_of_bounds() -> None:
    x = np.zeros(4, np.int32)
    with pytest.raises(OutOfBounds, match=re.escape("0 bytes past the end of 'memory 0' (16 bytes)")):
        adds_one().launch("adds_one", 1, 5, [table(x)], memory=[x])
    assert not x.any()


def test_an_array_that_is_not_named() -> None:
    x = np.zeros(4, np.int32)
    words = f"0x{x.ctypes.data:x}: far from all arrays of the launch; if it is an address of the host, pass its array as memory="
    with pytest.raises(OutOfBounds, match=re.escape(words)):
        adds_one().launch("adds_one", 1, 1, [table(x)])


def test_an_argument_that_is_not_named() -> None:
    """An argument has its emulated address only."""
    given = np.zeros(3, np.int64)
    given[0] = given.ctypes.data + 16
    with pytest.raises(OutOfBounds, match="far from all arrays of the launch"):
        adds_one().launch("adds_one", 1, 1, [given])


def test_two_addresses_of_one_array_race() -> None:
    x = np.zeros(4, np.int32)
    with pytest.raises(Race):
        adds_one().launch("adds_one", 2, 4, [table(x, x)], memory=[x, x[1:]])


def test_ranges_by_hand() -> None:
    """A range, an empty one, and one that follows the first at once; 256 bytes behind it count as behind it."""
    host = HostAddresses([(100, 110, 5000), (40, 40, 9000), (110, 112, 7000)])
    addresses = np.array([0, 39, 40, 99, 100, 109, 110, 111, 112, 367, 368, 2**64 - 1], np.uint64)
    expected = [0, 39, 40, 99, 5000, 5009, 7000, 7001, 7002, 7257, 368, 2**64 - 1]
    assert host.translate(addresses).tolist() == expected
    assert HostAddresses().translate(addresses).tolist() == addresses.tolist()

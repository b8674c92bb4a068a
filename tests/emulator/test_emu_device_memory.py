"""Structures passed by value, and arrays whose addresses are in structures and tables."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

from weft.emulator import DeviceMemory, LaunchError, Module, OutOfBounds, Scratch, Uninitialised
from weft.emulator.machine.launch import launch
from weft.emulator.machine.program import Program
from weft.emulator.ptx import parse

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

# struct Params { const float *x; int n; char c; double d; float *y; short s; };
# __global__ void k(Params p) { if (threadIdx.x < p.n) p.y[threadIdx.x] = p.x[threadIdx.x] * p.d + p.c + p.s; }
BY_VALUE = Module(f"""{HEAD}
.visible .entry k(.param .align 8 .b8 p[40]) {{
  .reg .pred %p; .reg .b32 %r<5>; .reg .b64 %rd<5>; .reg .f32 %f<5>; .reg .f64 %fd;
  mov.u32 %r0, %tid.x;
  ld.param.u32 %r1, [p+8];
  setp.ge.s32 %p, %r0, %r1;
  @%p ret;
  ld.param.u64 %rd0, [p];
  ld.param.u64 %rd1, [p+24];
  ld.param.s8 %r2, [p+12];
  ld.param.f64 %fd, [p+16];
  ld.param.s16 %r3, [p+32];
  mul.wide.u32 %rd2, %r0, 4;
  add.s64 %rd3, %rd0, %rd2;
  add.s64 %rd4, %rd1, %rd2;
  ld.global.f32 %f0, [%rd3];
  cvt.rn.f32.f64 %f1, %fd;
  add.s32 %r2, %r2, %r3;
  cvt.rn.f32.s32 %f2, %r2;
  fma.rn.f32 %f3, %f0, %f1, %f2;
  st.global.f32 [%rd4], %f3;
  ret;
}}""")


class Params(ctypes.Structure):
    _fields_ = (
        ("x", ctypes.c_void_p),
        ("n", ctypes.c_int),
        ("c", ctypes.c_char),
        ("d", ctypes.c_double),
        ("y", ctypes.c_void_p),
        ("s", ctypes.c_short),
    )


class Packed(ctypes.Structure):
    _pack_, _layout_ = 1, "ms"  # Python 3.14 wants the layout to be named; those before do not know the name
    _fields_ = Params._fields_


FIELDS = [("x", "u8"), ("n", "i4"), ("c", "i1"), ("d", "f8"), ("y", "u8"), ("s", "i2")]
ALIGNED = np.dtype(FIELDS, align=True)


def by_ctypes(x: int, y: int) -> Any:
    return Params(x, 5, b"\x03", 0.5, y, -7)


def by_dtype(x: int, y: int) -> Any:
    return np.array([(x, 5, 3, 0.5, y, -7)], ALIGNED)[0]


def by_bytes(x: int, y: int) -> Any:
    """Offsets by hand, as C lays the structure out."""
    data = bytearray(40)
    for at, value in (
        (0, np.uint64(x)),
        (8, np.int32(5)),
        (12, np.int8(3)),
        (16, np.float64(0.5)),
        (24, np.uint64(y)),
        (32, np.int16(-7)),
    ):
        data[at : at + value.nbytes] = value.tobytes()
    return bytes(data)


@pytest.mark.parametrize("params", [by_ctypes, by_dtype, by_bytes])
def test_a_structure_with_pointers(params: Any) -> None:
    x, y = np.arange(6, dtype=np.float32), np.full(6, -1, np.float32)
    memory = DeviceMemory(x=x, y=y)
    BY_VALUE.launch("k", 1, 32, [params(memory.address_of(x), memory.address_of(y))], memory=memory)
    assert y.tolist() == [-4, -3.5, -3, -2.5, -2, -1]


def test_a_structure_with_addresses_of_the_host() -> None:
    x, y = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    BY_VALUE.launch("k", 1, 32, [by_ctypes(x.ctypes.data, y.ctypes.data)], memory=[x, y])
    assert y.tolist() == [-4, -3.5, -3, -2.5, -2, 0]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            Packed(),
            "argument 0 is a structure of 31 bytes (x at 0, n at 8, c at 12, d at 13, y at 21, s at 29), but parameter p has 40; "
            "without _pack_ ctypes pads as C does",
        ),
        (
            np.zeros(1, FIELDS)[0],
            "argument 0 is a structure of 31 bytes (x at 0, n at 8, c at 12, d at 13, y at 21, s at 29), but parameter p has 40; "
            "np.dtype(..., align=True) pads as C does",
        ),
        (
            np.zeros(1, np.dtype(FIELDS[:3], align=True))[0],
            "argument 0 is a structure of 16 bytes (x at 0, n at 8, c at 12), but parameter p has 40",
        ),
        ((ctypes.c_uint64 * 4)(), "argument 0 is a structure of 32 bytes, but parameter p has 40"),
        (b"1234", "argument 0 has 4 bytes, but parameter p has 40"),
        (5, "argument 0 is a number, but parameter p is a structure of 40 bytes"),
    ],
)
def test_a_structure_of_another_size(value: Any, message: str) -> None:
    with pytest.raises(LaunchError) as caught:
        BY_VALUE.launch("k", 1, 32, [value])
    assert str(caught.value) == message


def test_numbers_of_ctypes() -> None:
    module = Module(
        f"{HEAD}.entry k(.param .u64 out, .param .u32 n, .param .f32 f)"
        "{ .reg .b64 %rd; .reg .b32 %r; .reg .f32 %f; ld.param.u64 %rd, [out]; ld.param.u32 %r, [n]; ld.param.f32 %f, [f];"
        " st.global.u32 [%rd], %r; st.global.f32 [%rd+4], %f; ret; }"
    )
    out = np.zeros(2, np.uint32)
    memory = DeviceMemory(out=out)
    module.launch(
        "k", 1, 1, [ctypes.c_void_p(memory.address_of(out)), ctypes.c_int(-2), ctypes.c_float(1.5)], memory=memory
    )
    assert out.tolist() == [0xFFFF_FFFE, 0x3FC0_0000]


# Thread t of block b adds 1 to element t of the array whose address is the b-th of ``table``.
TABLE = Module(f"""{HEAD}
.visible .entry adds_one(.param .u64 table) {{
  .reg .b32 %r<3>; .reg .b64 %rd<4>;
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
  ld.param.u64 %rd0, [table];
  mad.wide.u32 %rd1, %r1, 8, %rd0;
  ld.global.u64 %rd2, [%rd1];
  mad.wide.u32 %rd3, %r0, 4, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r2, %r2, 1;
  st.global.u32 [%rd3], %r2;
  ret;
}}""")


def table(*addresses: int) -> Any:
    return np.array(addresses, np.uint64)


def test_a_table_of_pointers() -> None:
    x, y, other = np.arange(5, dtype=np.int32), np.arange(40, 45, dtype=np.int32), np.zeros(5, np.int32)
    memory = DeviceMemory(x=x, other=other, y=y)
    TABLE.launch("adds_one", 2, 5, [table(memory.address_of("y"), memory.address_of(x))], memory=memory)
    assert x.tolist() == [1, 2, 3, 4, 5]
    assert y.tolist() == [41, 42, 43, 44, 45]
    assert not other.any()


def test_addresses_are_those_of_every_launch() -> None:
    """Arrays that come later change none, and two modules share them."""
    x, y = np.zeros(4, np.int32), np.zeros(4, np.int32)
    memory = DeviceMemory(x=x)
    before = memory.address_of(x)
    TABLE.launch("adds_one", 1, 4, [table(before)], memory=memory)
    assert memory.add("y", y) == memory.address_of(y) != before == memory.address_of(x)
    Module(TABLE.ptx).launch("adds_one", 2, 4, [table(before, memory.address_of(y))], memory=memory)
    assert x.tolist() == [2] * 4 and y.tolist() == [1] * 4


def test_addresses_by_hand() -> None:
    """From 0x20_0000_0000 on, each on pages of 256 bytes of its own with a free one between; views where they are within."""
    base = np.zeros(100, np.float64)
    memory = DeviceMemory(a=np.zeros(1, np.uint8), b=base, c=np.zeros((0,), np.int32), d=base.copy())
    first = 0x20_0000_0000
    assert [p.address - first for p in memory.placed] == [256, 256 * 3, 256 * 8, 256 * 9]
    assert memory.address_of(base[7:]) - memory.address_of(base) == 56
    assert memory.address_of(base[::-1]) - memory.address_of(base) == 99 * 8


def test_a_view_lies_as_far_from_a_page_as_in_its_array() -> None:
    base = np.zeros(100, np.float64)
    assert DeviceMemory(b=base[3:]).address_of("b") == 0x20_0000_0000 + 256 + 24


def test_an_argument_has_the_address_that_it_has_here() -> None:
    """The table is an argument, and names itself: block 0 adds to its own third word."""
    given = np.zeros(3, np.uint64)
    memory = DeviceMemory(given=given)
    given[0] = memory.address_of(given) + 16
    TABLE.launch("adds_one", 1, 1, [given[:1]], memory=memory)
    assert given[2] == 1


def test_an_argument_that_is_not_inside() -> None:
    base = np.zeros(8, np.uint64)
    with pytest.raises(LaunchError) as caught:
        TABLE.launch("adds_one", 1, 1, [base[2:]], memory=DeviceMemory(some=base[:4]))
    words = "argument 0 has bytes of 'some' of the DeviceMemory, and others; add the array that both are views of"
    assert str(caught.value) == words


def test_what_holds_nothing_yet() -> None:
    memory = DeviceMemory(x=Scratch(np.zeros(4, np.int32)))
    with pytest.raises(Uninitialised, match="byte 0 of 'x'"):
        TABLE.launch("adds_one", 1, 4, [table(memory.address_of("x"))], memory=memory)


def test_behind_the_end() -> None:
    x = np.zeros(4, np.int32)
    memory = DeviceMemory(x=x)
    with pytest.raises(OutOfBounds, match=re.escape("0 bytes past the end of 'x' (16 bytes)")):
        TABLE.launch("adds_one", 1, 5, [table(memory.address_of(x))], memory=memory)
    assert not x.any()


def test_before_the_begin_and_without_the_memory() -> None:
    x = np.zeros(4, np.int32)
    memory = DeviceMemory(x=x)
    outside = "outside every array of the launch's DeviceMemory, which is what memory= gave it"
    with pytest.raises(OutOfBounds, match=re.escape(f"0x20000000fc: {outside}")):
        TABLE.launch("adds_one", 1, 1, [table(memory.address_of(x) - 4)], memory=memory)
    with pytest.raises(OutOfBounds, match=re.escape(f"0x2000000100: {outside}")):
        TABLE.launch("adds_one", 1, 1, [table(memory.address_of(x))])


def test_a_read_only_array() -> None:
    x = np.zeros(4, np.int32)
    x.flags.writeable = False
    memory = DeviceMemory(x=x)
    with pytest.raises(LaunchError) as caught:
        TABLE.launch("adds_one", 1, 4, [table(memory.address_of(x))], memory=memory)
    assert str(caught.value) == "x is a read-only array, and adds_one writes to it"


def test_what_has_no_place() -> None:
    base = np.zeros(8)
    memory = DeviceMemory(a=base[:4])
    cases: list[tuple[str, Any, str]] = [
        ("a", np.zeros(1), "DeviceMemory: there is an array 'a' already"),
        (
            "b",
            np.array([None]),
            "DeviceMemory: 'b' is an array of Python objects, which have no bytes a kernel could read",
        ),
        ("b", base[3:], "DeviceMemory: 'b' and 'a' share bytes; add the array that both are views of"),
    ]
    for name, array, message in cases:
        with pytest.raises(ValueError, match=re.escape(message)):
            memory.add(name, array)
    with pytest.raises(ValueError, match=re.escape("DeviceMemory: there is no array 'c', but 'a'")):
        memory.address_of("c")
    with pytest.raises(ValueError, match=re.escape("DeviceMemory: the array is no part of 'a'; add it first")):
        memory.address_of(base)
    with pytest.raises(
        ValueError, match=re.escape("DeviceMemory: the array is no part of any array: it is empty; add it first")
    ):
        DeviceMemory().address_of(base)


def test_a_string_that_is_printed_from_there() -> None:
    text = np.frombuffer(b"from here\0", np.uint8).copy()
    memory = DeviceMemory(text=text)
    ptx = f"""{HEAD}
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.entry k(.param .u64 s) {{
  .reg .b64 %rd;
  ld.param.u64 %rd, [s];
  {{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %rd; st.param.b64 [b], 0; call.uni (r), vprintf, (a, b); }}
  ret;
}}"""
    assert Module(ptx).launch("k", 1, 1, [memory.address_of(text)], memory=memory).output == "from here"


def test_a_launch_below_the_module() -> None:
    """`launch` alone has fresh variables each time."""
    from weft.emulator import Checks, ops

    ops.load()
    x = np.zeros(4, np.int32)
    memory = DeviceMemory(x=x)
    program = Program(parse(TABLE.ptx))
    launch(program, "adds_one", (1, 1, 1), (4, 1, 1), [table(memory.address_of(x))], 0, Checks(), memory)
    assert x.tolist() == [1] * 4

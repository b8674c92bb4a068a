"""A module's variables: set and read by the host, and kept from launch to launch."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np
import pytest

from weft.emulator import DeviceMemory, Module, OutOfBounds, PTXError

# What nvcc makes of these, and a kernel that uses them:
# __constant__ float coefficients[3] = {1, 2, 4};  __device__ int counter;  __device__ float *where;
# struct P { int n; double d; };  __device__ P stored;
PTX = """
.version 8.0
.target sm_80
.address_size 64
.const .align 4 .f32 coefficients[3] = {0f3F800000, 0f40000000, 0f40800000};
.global .align 4 .u32 counter = 10;
.global .align 8 .u64 where;
.global .align 8 .b8 stored[16];
.global .align 8 .v2 .f32 pair;
.global .align 8 .u64 itself = generic(counter);
.visible .entry k(.param .u64 out) {
  .reg .b32 %r<3>; .reg .b64 %rd<4>; .reg .f32 %f<2>;
  ld.param.u64 %rd0, [out];
  mov.u32 %r0, %tid.x;
  mov.u64 %rd1, coefficients;
  mul.wide.u32 %rd2, %r0, 4;
  add.s64 %rd1, %rd1, %rd2;
  ld.const.f32 %f0, [%rd1];
  add.s64 %rd3, %rd0, %rd2;
  st.global.f32 [%rd3], %f0;
  red.global.add.u32 [counter], 1;
  st.global.u32 [stored], 7;
  ret;
}
.visible .entry through() {
  .reg .b64 %rd; .reg .b32 %r;
  ld.global.u64 %rd, [where];
  ld.global.u32 %r, [%rd];
  add.u32 %r, %r, 1;
  st.global.u32 [%rd], %r;
  ret;
}
"""


def launched(variables: str, body: str, count: int = 1, shared: str = "") -> list[int]:
    """What a kernel stores from %l: 64-bit words of its threads."""
    out = np.zeros(count, np.uint64)
    text = f""".version 9.0
    .target sm_90a
    .address_size 64
    {variables}
    .visible .entry k(.param .u64 out) {{
      .reg .b64 %l, %o; .reg .b32 %r, %t; {shared}
      {body}
      mov.u32 %t, %tid.x;
      ld.param.u64 %o, [out];
      mad.wide.u32 %o, %t, 8, %o;
      st.global.u64 [%o], %l;
      ret;
    }}"""
    Module(text).launch("k", 1, count, [out])
    return out.tolist()


def test_bytes_of_an_address() -> None:
    """Eight bytes of a pointer, each taken by its mask, are the pointer."""
    parts = ", ".join(f"0x{0xFF << 8 * i:x}(x+4)" for i in range(8))
    variables = f".global .u32 x[2] = {{5, 77}}; .global .align 8 .u8 p[8] = {{{parts}}};"
    assert launched(variables, "ld.global.u64 %l, [p]; ld.global.u32 %l, [%l];") == [77]


def test_initialised_vectors() -> None:
    text = ".version 9.0\n.target sm_90a\n.address_size 64\n"
    symbols = Module(
        text + ".global .v2 .f32 v[3] = {{1.0, 2.0}, {-3.0, .5}}; .const .v4 .s16 w = {1, 2, 3, -4};"
    ).symbols
    assert symbols["v"].tolist() == [[1, 2], [-3, 0.5], [0, 0]]
    assert symbols["w"].tolist() == [1, 2, 3, -4]


def test_elements_by_a_number() -> None:
    """As ptxas has it: the address of element n is n times the type's bytes, and mov takes the address."""
    variables = ".global .align 8 .u64 x[4] = {10, 11, 12, 13};"
    assert launched(variables, "ld.global.u64 %l, x[2];") == [12]
    assert launched(variables, "mov.u64 %l, x[3]; ld.global.u64 %l, [%l];") == [13]
    assert launched(variables, "mov.u64 %l, 9; st.global.u64 x[1], %l; ld.global.u64 %l, [x+8];") == [9]


@pytest.mark.parametrize(
    "text", ["ld.shared.u64 %l, s[%r]", "mov.u64 %l, s[%r]", "st.shared.u64 s[%r+1], %l", "ld.u64 %l, s[%r]"]
)
def test_elements_by_a_register_are_refused(text: str) -> None:
    with pytest.raises(PTXError) as caught:
        launched("", f"mov.u32 %r, 0;\n{text};", shared=".shared .align 8 .u64 s[4];")
    assert str(caught.value) == (
        "PTX line 8: the emulator does not know elements by an index in a register (name[i]): compute the address, and "
        f"load from [address]\n    {text}"
    )


def test_a_parameter_has_the_name_of_a_variable() -> None:
    text = """.version 9.0
    .target sm_90a
    .address_size 64
    .global .u32 t = 5;
    .shared .u32 u;
    .func (.reg .u32 r) both(.reg .u32 t, .reg .u32 s) { add.u32 r, t, s; ret; }
    .func (.param .b32 u) twice(.param .b32 t) { .reg .b32 a; ld.param.b32 a, [t]; add.u32 a, a, a; st.param.b32 [u], a; ret; }
    .func (.reg .u32 r) variable() { ld.global.u32 r, [t]; ret; }
    .visible .entry k(.param .u64 u, .param .u32 t) {
      .reg .b64 o; .reg .b32 a, b, c;
      ld.param.u64 o, [u];
      ld.param.u32 a, [t];
      call (b), variable;
      call (a), both, (a, b);
      { .param .b32 x, y; st.param.b32 [x], a; call (y), twice, (x); ld.param.b32 c, [y]; }
      st.global.u32 [o], c;
      ret;
    }"""
    out = np.zeros(1, np.uint32)
    Module(text).launch("k", 1, 1, [out, 100])
    assert out.tolist() == [210]


def test_components_of_special_registers() -> None:
    body = "{ .reg .v4 .b32 v; mov.v4.u32 v, %tid; mad.lo.u32 %r, v.y, 100, v.x; add.u32 %r, %r, v.w; cvt.u64.u32 %l, %r; }"
    assert launched("", body, 3) == [0, 1, 2]
    body = "{ .reg .b32 a, b; mov.v4.u32 {_, a, _, b}, %ntid; mad.lo.u32 %r, a, 10, b; cvt.u64.u32 %l, %r; }"
    assert launched("", body) == [10]
    assert launched("", "mov.u32 %r, %tid.w; mov.u32 %t, %pm3; add.u32 %r, %r, %t; cvt.u64.u32 %l, %r;") == [0]
    assert launched("", "mov.u64 %l, %pm7_64; mov.u64 %o, %current_graph_exec; add.u64 %l, %l, %o;") == [0]


@pytest.fixture
def module() -> Module:
    return Module(PTX)


def test_what_there_is(module: Module) -> None:
    symbols = module.symbols
    assert list(symbols) == ["coefficients", "counter", "where", "stored", "pair", "itself"] and len(symbols) == 6
    assert {name: (str(a.dtype), a.shape) for name, a in symbols.items()} == {
        "coefficients": ("float32", (3,)),
        "counter": ("uint32", ()),
        "where": ("uint64", ()),
        "stored": ("uint8", (16,)),
        "pair": ("float32", (2,)),
        "itself": ("uint64", ()),
    }
    assert symbols["coefficients"].tolist() == [1, 2, 4] and symbols["counter"] == 10
    assert symbols["itself"] == symbols.address_of("counter")


def test_constants_that_the_host_sets(module: Module) -> None:
    out = np.zeros(3, np.float32)
    module.symbols["coefficients"] = np.array([5, 6, 7], np.float32)
    module.launch("k", 1, 3, [out])
    assert out.tolist() == [5, 6, 7]
    module.symbols["coefficients"][1] = -1
    module.launch("k", 1, 3, [out])
    assert out.tolist() == [5, -1, 7]


def test_what_a_launch_writes_stays(module: Module) -> None:
    out = np.zeros(3, np.float32)
    module.launch("k", 1, 3, [out])
    module.launch("k", 1, 3, [out])
    assert module.symbols["counter"] == 16
    assert module.symbols["stored"].view(np.int32).tolist() == [7, 0, 0, 0]
    module.symbols.reset()
    assert module.symbols["counter"] == 10 and not module.symbols["stored"].any()


def test_a_launch_that_faults_leaves_them(module: Module) -> None:
    with pytest.raises(OutOfBounds):
        module.launch("k", 1, 3, [np.zeros(2, np.float32)])
    assert module.symbols["counter"] == 10


def test_a_pointer_that_the_host_sets(module: Module) -> None:
    x = np.array([41], np.int32)
    memory = DeviceMemory(x=x)
    module.symbols["where"] = memory.address_of(x)
    module.launch("through", 1, 1, memory=memory)
    assert x[0] == 42
    module.symbols["where"] = module.symbols.address_of("counter")
    module.launch("through", 1, 1)
    assert module.symbols["counter"] == 11


def test_addresses(module: Module) -> None:
    """Variables come first in their memory; a constant's address is a generic one."""
    assert module.symbols.address_of("counter") == 0x10_0000_0100
    assert module.symbols.address_of("where") == 0x10_0000_0300
    assert module.symbols.address_of("coefficients") == 0x3_0000_0100


class P(ctypes.Structure):
    _fields_ = (("n", ctypes.c_int), ("d", ctypes.c_double))


@pytest.mark.parametrize(
    "value",
    [P(3, 0.5), np.array([(3, 0.5)], np.dtype([("n", "i4"), ("d", "f8")], align=True))[0], bytes(P(3, 0.5))],
    ids=["ctypes", "dtype", "bytes"],
)
def test_structures(module: Module, value: Any) -> None:
    module.symbols["stored"] = value
    assert module.symbols["stored"][:4].view(np.int32) == 3 and module.symbols["stored"][8:].view(np.float64) == 0.5


def test_numbers(module: Module) -> None:
    module.symbols["counter"] = 5
    assert module.symbols["counter"] == 5


@pytest.mark.parametrize(
    ("name", "value", "kind", "message"),
    [
        (
            "nothing",
            1,
            KeyError,
            "the module has no variable 'nothing' in global or constant memory; it has coefficients, counter, where, stored, "
            "pair, itself",
        ),
        (
            "coefficients",
            1.5,
            ValueError,
            "'coefficients' has 3 elements, found a single number; it takes an array of them",
        ),
        ("coefficients", np.zeros(3), ValueError, "'coefficients' has 12 bytes, found a value of 24"),
        ("counter", "x", TypeError, "'counter' takes arrays, numbers, structures and bytes, found str"),
    ],
)
def test_what_cannot_be_set(module: Module, name: str, value: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=re.escape(message)):
        module.symbols[name] = value


def test_no_variables() -> None:
    module = Module(".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { ret; }")
    with pytest.raises(KeyError, match="the module has no variable 'x' in global or constant memory; it has none"):
        module.symbols["x"]


def test_an_initial_value_that_names_nothing() -> None:
    module = Module(".version 8.0\n.target sm_80\n.address_size 64\n.global .u64 p = y;\n.entry k() { ret; }")
    with pytest.raises(PTXError) as caught:
        module.launch("k", 1, 1)
    assert str(caught.value) == "PTX line 4: the initial value of 'p' names 'y', which does not exist"

"""Inlined code: messages name the kernel's own line and the chain of calls, profiles count at either."""

from __future__ import annotations

import json

import numpy as np
import pytest

from weft.emulator import Fault, Module
from weft.emulator.profile import Profile
from weft.emulator.ptx import parse
from weft.emulator.ptx.names import FunctionNames, unmangled
from weft.emulator.ptx.syntax import Source


def strings(*names: str) -> str:
    """A section of names, as nvcc writes it."""
    lines: list[str] = []
    for i, name in enumerate(names):
        lines += [f"$L__info_string{i}:", ".b8 " + ",".join(str(byte) for byte in (*name.encode(), 0))]
    return "\n".join((".section .debug_str", "{", *lines, "}"))


READ = "_ZN4util4readIfEET_PKS1_i"
TWICE = "_Z5twiceRKN4util4TileEi"

# As nvcc 13.0 -lineinfo writes it: line 8 of the kernel calls twice, whose line 3 calls util::read.
KERNEL = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 out, .param .u64 x, .param .u32 n) {{
  .reg .b32 %r<4>; .reg .b64 %rd<6>; .reg .f32 %f<3>;
  .loc 1 6 3
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [x]; ld.param.u32 %r3, [n];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.u64 %rd1, %rd1, %rd3;
  .loc 1 8 3
  .loc 1 3 3, function_name $L__info_string0, inlined_at 1 8 3
  .loc 2 4 3, function_name $L__info_string1, inlined_at 1 3 3
  add.u32 %r2, %r1, %r3;
  mul.wide.s32 %rd4, %r2, 4;
  add.s64 %rd5, %rd2, %rd4;
  ld.global.f32 %f1, [%rd5];
  .loc 1 3 3, function_name $L__info_string0, inlined_at 1 8 3
  add.f32 %f2, %f1, %f1;
  .loc 2 0 0, function_name $L__info_string1, inlined_at 1 3 3
  mov.f32 %f1, %f2;
  .loc 1 8 3
  st.global.f32 [%rd1], %f1;
  ret;
}}
.file 1 "src/k.cu"
.file 2 "include/helper.cuh"
{strings(TWICE, READ)}
"""


def launch(offset: int, text: str = KERNEL) -> Profile:
    x = np.arange(32, dtype=np.float32)
    return Module(text).launch("scale", 1, 32, [np.zeros(32, np.float32), x, offset])


def test_the_chain_of_a_fault() -> None:
    with pytest.raises(Fault) as raised:
        launch(4)
    assert str(raised.value) == (
        "out of bounds: read of 4 bytes of global memory\n"
        "  kernel scale\n"
        "  source src/k.cu:8\n"
        "    inlined twice, src/k.cu:3\n"
        "    inlined util::read, include/helper.cuh:4\n"
        "  PTX line 17: ld.global.f32 %f1, [%rd5]\n"
        "  block (0, 0, 0), thread (28, 0, 0)\n"
        "  address 0x1000000380: 0 bytes past the end of 'argument 1' (128 bytes)"
    )


def test_names_that_are_not_there() -> None:
    """Without the section, and where all functions have the kernel's name, as in Triton's PTX."""
    for text in (KERNEL.partition(".section")[0], KERNEL.replace(strings(TWICE, READ), strings("scale", "scale"))):
        with pytest.raises(Fault) as raised:
            launch(4, text)
        lines = str(raised.value).splitlines()[2:5]
        assert lines == ["  source src/k.cu:8", "    inlined src/k.cu:3", "    inlined include/helper.cuh:4"]


def test_a_source_says_both_ends_of_its_chain() -> None:
    own = Source("k.cu", 8)
    middle = Source("k.cu", 3, inlined_at=own)
    inner = Source("h.cuh", 4, inlined_at=middle)
    assert inner.chain == (own, middle, inner)
    assert (str(own), str(inner)) == ("k.cu:8", "k.cu:8, inlined h.cuh:4")


def test_inlined_code_of_no_line_has_the_callers() -> None:
    function = parse(KERNEL).functions["scale"]
    (moved,) = [i for i in function.instructions if i.text.startswith("mov.f32")]
    assert moved.source is not None
    assert (moved.source.place, moved.source.chain[0].place) == ("src/k.cu:3", "src/k.cu:8")


def test_profiles_by_either_line() -> None:
    profile = launch(0)
    written = {row.name: row["executions"] for row in profile.lines}
    assert written == {"helper.cuh:4": 4, "k.cu:3": 2, "k.cu:6": 6, "k.cu:8": 2}
    called = {row.name: row["executions"] for row in profile.at_calls.lines}
    assert called == {"k.cu:6": 6, "k.cu:8": 8}
    assert profile.at_calls.totals == profile.totals
    assert profile.at_calls["k.cu:8"]["global_load_sectors"] == 4


def test_profiles_keep_both_lines() -> None:
    profile = launch(0)
    again = Profile.from_json(profile.to_json())
    assert again.at_calls.lines == profile.at_calls.lines
    rows = json.loads(profile.to_json())["instructions"]
    assert [row["called_line"] for row in rows if "called_line" in row] == [8] * 6


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        (READ, "util::read"),
        (TWICE, "twice"),
        ("_ZNK4util4Tile2atEi", "util::Tile::at"),
        ("_ZN3cub11BlockReduceIfLi128ELNS_20BlockReduceAlgorithmE2ELi1ELi1ELi0EE3SumEf", "cub::BlockReduce::Sum"),
        ("_ZN39_INTERNAL_389234c3_12_reduction_cu_c9289atomicAddEPff", "atomicAdd"),
        ("_ZN12_GLOBAL__N_14stepEv", "(anonymous)::step"),
        ("_ZN4cute7UniversC1Ev", "cute::Univers::Univers"),
        ("_ZN4cute7UniversD1Ev", "cute::Univers::~Univers"),
        ("_ZSt4swapIiEvRT_S1_", "std::swap"),
        ("_ZN7__half2aSEOKS_", ""),
        ("_ZZ4testPfENKUliE_clEi", ""),
        ("_ZN4", ""),
        ("attention", ""),
    ],
)
def test_names(mangled: str, name: str) -> None:
    """As c++filt has them, without arguments; those that are not read stay as they are."""
    assert unmangled(mangled) == (name or mangled)


def test_a_place_among_the_strings() -> None:
    names = FunctionNames(
        "function_name\n" + strings("abc", "de").replace("98", "98 // b, 77\n.b8 ").replace(".b8 ,", ".b8 ")
    )
    assert (names.at("$L__info_string0", 0), names.at("$L__info_string0", 4), names.at("$L__info_string1", 1)) == (
        "abc",
        "de",
        "e",
    )
    assert names.at("$L__info_string7", 0) == ""
